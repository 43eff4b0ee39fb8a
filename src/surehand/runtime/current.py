"""The desktop that a person uses: whether an agent may be on it at all, where it is, and what nobody may do there.

Guarantees:
- It is attached only where the operator's configuration pairs its display (spec §11.2). What an agent asks for, and a
  client's environment, never choose a display.
- Pointer and keyboard there are the person's: nothing is sent through them, and asking is refused by its own error.
- Nothing of the session is started, switched on or changed.
"""

from __future__ import annotations

import asyncio
import os
import re
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from dbus_fast import Message, MessageFlag, MessageType
from dbus_fast.aio import MessageBus

from surehand.core.lifecycle import Gate
from surehand.errors import AccessibilityDisabled, PermissionMissing, Unavailable, UnsupportedAction
from surehand.model.actions import Action, kind_of
from surehand.model.scene import CapabilityFact, Node, Surface
from surehand.ports import Attempt, Dispatched
from surehand.runtime.desktops import DesktopRecord
from surehand.runtime.session import Session

CURRENT: Final = "current"
SHARED: Final = "shared"

_DISPLAY: Final = re.compile(r":[0-9]{1,5}(?:\.[0-9]{1,2})?\Z", re.ASCII)
#: What goes through pointer or keyboard, which are one for all. Scrolling does too where accessibility has no way.
#: Focus is where the person's next keys go: one that moved would take a password elsewhere.
_INPUT: Final = frozenset({"click", "hover", "move", "hold", "release", "drag", "type_text", "press", "paste", "focus"})
_ANSWER_S: Final = 2.0


def display_of(said: str) -> str:
    """Return a display without its screen, as `:0`; empty where it is no display of this machine."""
    return said.partition(".")[0] if _DISPLAY.match(said) else ""


def paired_display(pairings: Sequence[str], environ: Mapping[str, str]) -> str:
    """Return the display that `current` means: the daemon's own, or without one the only one that is paired.

    Raises:
        PermissionMissing: the operator paired none, or not this one; names the line to add.
    """
    own = display_of(environ.get("DISPLAY", ""))
    paired = {display_of(said) for said in pairings} - {""}
    if own in paired:
        return own
    if not own and len(paired) == 1:
        return next(iter(paired))
    if not own and paired:
        raise PermissionMissing(
            "several displays are paired, and this daemon belongs to none of them",
            fix="start it in the session that is meant: surehand serve",
            details={"what": "unpaired", "paired": sorted(paired)},
        )
    raise PermissionMissing(
        "this desktop is used by a person and was not paired with Surehand",
        fix=f'the operator adds pairings = ["{own or ":0"}"] to the configuration and restarts the daemon; or use an '
        "isolated desktop: surehand desktop run -- PROGRAM",
        details={"what": "unpaired"},
    )


async def current_desktop(pairings: Sequence[str], environ: Mapping[str, str], home: Path) -> DesktopRecord:
    """Return the record of the person's desktop.

    Args:
        pairings: Displays that the operator paired.
        environ: The daemon's own environment, never a client's.
        home: The user's home by the user database.

    Raises:
        PermissionMissing: not paired.
        Unavailable: the session's accessibility does not answer.
    """
    display = paired_display(pairings, environ)
    session = _session_bus(environ)
    address = await _accessibility(session)
    return DesktopRecord(
        name=CURRENT,
        display=display,
        xauthority=_authority(environ, home),
        session_bus_address=session,
        a11y_bus_address=address,
        folder="",
        isolation=SHARED,
        isolation_reason="a person uses it",
        geometry=(0, 0),
        view=False,
        network=True,
        binds=(),
        control="",
        owner_pid=0,
        owner_generation="",
        supervisor_pid=0,
        # Another session has another accessibility bus, so a desk of the one before is not taken for it.
        supervisor_generation=f"{display} {address}",
        started_at_ms=0,
    )


def _session_bus(environ: Mapping[str, str]) -> str:
    if address := environ.get("DBUS_SESSION_BUS_ADDRESS"):
        return address
    usual = Path(environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}") / "bus"
    try:
        facts = usual.lstat()
    except OSError:
        facts = None
    if facts is None or not stat.S_ISSOCK(facts.st_mode) or facts.st_uid != os.getuid():
        raise Unavailable(
            "the session's bus cannot be found", fix="start the daemon in the session that is meant: surehand serve"
        )
    return f"unix:path={usual}"


def _authority(environ: Mapping[str, str], home: Path) -> str:
    """Return where the cookie of the display is; the usual places of display managers."""
    runtime = Path(environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}")
    usual = [home / ".Xauthority", runtime / "gdm/Xauthority"]
    given = [Path(environ["XAUTHORITY"])] if environ.get("XAUTHORITY") else []
    return str(next((path for path in (*given, *usual) if path.is_file()), usual[0]))


async def _accessibility(session: str) -> str:
    """Ask the session where its accessibility bus is; starts nothing."""
    message = Message(
        destination="org.a11y.Bus",
        path="/org/a11y/bus",
        interface="org.a11y.Bus",
        member="GetAddress",
        flags=MessageFlag.NO_AUTOSTART,
    )
    try:
        async with asyncio.timeout(_ANSWER_S):
            bus = await MessageBus(bus_address=session).connect()
            try:
                reply = await bus.call(message)
            finally:
                bus.disconnect()
    except Exception as error:  # whatever an address leads to: no session that answers
        raise Unavailable("the session's bus does not answer", fix="log in again, then `surehand doctor`") from error
    if reply is None or reply.message_type is MessageType.ERROR or not reply.body or not reply.body[0]:
        raise AccessibilityDisabled(
            "accessibility does not run in this session", fix="switch it on: `surehand doctor` says how"
        )
    return str(reply.body[0])


def check_not_the_persons(session: Session, action: Action) -> None:
    """Refuse what needs pointer or keyboard, or starts programs, where those are a person's (spec §10).

    Raises:
        UnsupportedAction.
    """
    kind = kind_of(action)
    if session.desk is None or session.desk.isolation != SHARED:
        return
    if kind in _INPUT:
        raise _needs_input(kind, gate=Gate.AUTHORITY)
    if kind == "app":
        raise UnsupportedAction(
            "on a shared desktop the person starts and ends programs",
            gate=Gate.AUTHORITY,
            fix="ask them to with request_human; or use an isolated desktop",
            details={"what": "shared_programs"},
        )


def _needs_input(kind: str, *, gate: Gate) -> UnsupportedAction:
    return UnsupportedAction(
        f"{kind} needs the pointer or the keyboard, and on a shared desktop those are the person's",
        gate=gate,
        fix="invoke, toggle, set_value, select_option and select_text need neither; or use an isolated desktop",
        details={"what": "shared_input"},
    )


class SharedInput:
    """Stands where pointer, keyboard and program starts are on an agent's own desktop, and refuses them (spec §10)."""

    backend = "shared"

    def capabilities(self, surface: Surface) -> tuple[CapabilityFact, ...]:
        """Return nothing: nothing of it works."""
        del surface
        return ()

    def route(self, action: Action, surface: Surface, node: Node | None) -> str | None:
        """Return None, or say why there is no route.

        Raises:
            UnsupportedAction: it needs what the person has in hand.
        """
        del surface
        kind = kind_of(action)
        if kind in _INPUT | {"scroll"}:
            raise _needs_input(kind, gate=Gate.PERMIT)
        if kind in {"select_option", "expand"} and node is not None and node.role == "combobox":
            raise UnsupportedAction(
                "an open list takes pointer and keyboard, and on a shared desktop those are the person's",
                gate=Gate.PERMIT,
                fix="ask them with request_human; or use an isolated desktop",
                details={"what": "shared_input"},
            )
        return None

    async def perform(self, attempt: Attempt) -> Dispatched:
        """Do nothing: nothing is routed here."""
        raise UnsupportedAction(f"{kind_of(attempt.action)} is not done on a shared desktop")

    async def release_all(self) -> None:
        """Nothing is held."""
