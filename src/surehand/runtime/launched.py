"""What a launch means, and waiting for the window of what was launched: bounded, and woken by the window system.

A window counts as the program's when its process is the launched one or was started by it. Programs that hand their
work to a process that ran before, or was started by the session bus, show a window of another process: that one counts
once nothing of the program's own has come for a while, or the program has ended. One that ended and shows no window
soon after has handed over to a window that was there before, or failed: nobody waits for it longer.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import msgspec

from surehand import limits
from surehand.core.lifecycle import Gate
from surehand.errors import AppNotFound
from surehand.model.actions import Action, App
from surehand.model.outcome import Reply
from surehand.model.request import Request
from surehand.runtime.attending import line_of
from surehand.runtime.scenes import desk_of
from surehand.runtime.session import Session, has_ended

if TYPE_CHECKING:
    from surehand.runtime.parts import Parts

#: An application says what is in a window a moment after it is on the screen, and no event of the screen tells that.
_LOOK_MS: Final = 100
LAUNCH_ROUTE: Final = "process.launch"


async def by_id(session: Session, request: Request) -> Request:
    """Return a request to launch "mousepad" as one to launch the installed application of that command.

    Before anything is hashed or decided, so that policy, approval, receipt and adapter see the same. What a host has
    signed stays as it was signed, and so does what comes with arguments: that is running a program.
    """
    action, desk = request.action, session.desk
    if request.authority is not None or session.authority_mode == "host":
        return request
    if not isinstance(action, App) or action.op != "launch" or action.arguments or desk is None:
        return request
    found = await asyncio.to_thread(desk.application_of, action.name)
    if found is None:
        return request
    return msgspec.structs.replace(request, action=msgspec.structs.replace(action, name=found))


def check_there(session: Session, action: Action) -> None:
    """Refuse to launch what is not there, before policy and any person is asked about it.

    Raises:
        AppNotFound: a plain name of no program and no installed application; what comes close is in `observed`.
    """
    if not isinstance(action, App) or action.op != "launch" or session.desk is None:
        return
    close = session.desk.missing(action.name)
    if close is None:
        return
    other = "name one of the candidates" if close else "name a program of this desktop, such as mousepad"
    raise AppNotFound(
        f"there is no program or installed application {action.name[: limits.NAME_CHARS_MAX]!r}",
        gate=Gate.AUTHORITY,
        fix=f"{other}, or a file of /usr/share/applications",
        observed={"candidates": list(close)} if close else None,
    )


async def window_of(parts: Parts, session: Session, known: frozenset[str], reply: Reply) -> Reply:
    """Wait for the window of what an operation has just launched, if it launched anything.

    Returns the reply, with `ended` in its output where the program has ended and no window came.
    """
    receipt = None if reply.terminal is None else reply.terminal.receipt
    pid = (reply.output or {}).get("pid")
    if receipt is None or receipt.route != LAUNCH_ROUTE or not isinstance(pid, int) or reply.replayed:
        return reply
    if await wait_for_window(parts, session, known, pid) or not has_ended(pid):
        return reply
    return msgspec.structs.replace(reply, output={**(reply.output or {}), "ended": True})


async def wait_for_window(parts: Parts, session: Session, known: frozenset[str], pid: int) -> bool:
    """Return whether a window of the launched program is there, once it is or the time for it is over."""
    started = parts.clock.monotonic_ms()
    screen = desk_of(session).screen
    ended_at: int | None = None
    while True:
        # Before the look: what the program left behind when it ended is seen by it.
        now = parts.clock.monotonic_ms()
        if ended_at is None and has_ended(pid):
            ended_at = now
        new = [one for one in await parts.scenes.surfaces(session) if one.surface_id not in known]
        own = any(pid in line_of(one.app.pid) for one in new)
        if own or (new and (now - started >= limits.LAUNCH_HANDED_ON_MS or ended_at is not None)):
            return True
        until = started + limits.LAUNCH_WINDOW_MS_MAX
        until = until if ended_at is None else min(until, ended_at + limits.LAUNCH_ENDED_MS)
        if now >= until or screen is None:
            return False
        await screen.changed(min(_LOOK_MS, until - now))
