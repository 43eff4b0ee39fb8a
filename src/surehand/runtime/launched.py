"""What a launch means, and waiting for the window of what was launched: bounded, and woken by the window system.

A window counts as the program's when its process is the launched one or was started by it. Programs that hand their
work to a process that ran before, or was started by the session bus, show a window of another process: that one counts
once nothing of the program's own has come for a while, or the program has ended.
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


async def window_of(parts: Parts, session: Session, known: frozenset[str], reply: Reply) -> None:
    """Wait for the window of what an operation has just launched, if it launched anything."""
    receipt = None if reply.terminal is None else reply.terminal.receipt
    pid = (reply.output or {}).get("pid")
    if receipt is not None and receipt.route == LAUNCH_ROUTE and isinstance(pid, int) and not reply.replayed:
        await wait_for_window(parts, session, known, pid)


async def wait_for_window(parts: Parts, session: Session, known: frozenset[str], pid: int) -> None:
    """Return when a window of the launched program is there, or the time for it is over."""
    started = parts.clock.monotonic_ms()
    screen = desk_of(session).screen
    while True:
        new = [one for one in await parts.scenes.surfaces(session) if one.surface_id not in known]
        passed_ms = parts.clock.monotonic_ms() - started
        own = any(pid in line_of(one.app.pid) for one in new)
        elsewhere = bool(new) and (passed_ms >= limits.LAUNCH_HANDED_ON_MS or has_ended(pid))
        if own or elsewhere or passed_ms >= limits.LAUNCH_WINDOW_MS_MAX or screen is None:
            return
        await screen.changed(min(_LOOK_MS, limits.LAUNCH_WINDOW_MS_MAX - passed_ms))
