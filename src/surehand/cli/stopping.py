"""Stop agents, pause them, take a desktop from them: `halt`, `pause`, `resume`, `holds`, `take`, `hand-back`.

`surehand stop` ends the daemon; `surehand halt` stops agents.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Final

import typer

from surehand.cli.output import Line, out, table
from surehand.client.control import Control

DesktopOption = Annotated[str | None, typer.Option("--desktop", help="Only agents on this desktop.")]
PrincipalOption = Annotated[str | None, typer.Option("--principal", help="Only this principal's agents.")]
SessionOption = Annotated[str | None, typer.Option("--session", help="Only this session, as `surehand ps` names it.")]
ReasonOption = Annotated[str, typer.Option("--reason", help="Why, in your words; recorded, and told to the agents.")]
NameArgument = Annotated[str, typer.Argument(help="The desktop's name, as `surehand desktop list` shows it.")]

_WHAT: Final = {"paused": "paused", "taken_over": "taken over", "handed_over": "handed over on request"}


def halt(
    desktop: DesktopOption = None,
    principal: PrincipalOption = None,
    session: SessionOption = None,
    reason: ReasonOption = "",
    go_on: Annotated[
        bool, typer.Option("--go-on", help="End only what is in flight; do not keep the agents paused.")
    ] = False,
) -> None:
    """Stop agents at once: what they do ends, what they hold is released, and they stay paused.

    Examples:
      surehand halt
      surehand halt --desktop work --reason "it clicks on the wrong thing"
      surehand halt --session s3 --go-on

    They act again after `surehand resume`. What was in flight ends honestly: refused, interrupted, or unknown.
    """
    with Control() as control:
        found = control.call("halt", {**_scope(desktop, principal, session), "reason": reason, "go_on": go_on})
    lines: list[Line] = []
    if found["released"]:
        lines.append(("good", f"stopped; everything was released within {found['released_ms']} ms"))
    else:
        lines.append(("bad", "stopped, but a desktop did not say that it released everything"))
    lines += [f"  {one['operation_id']} {one['effect'] or '?'}: {one['ended']}" for one in found["operations"]]
    if found["hold"] is not None:
        lines.append(f"{_about(found['hold'])} stays paused until: surehand resume")
    out().data(found, lines + _unrecorded(found))


def pause(
    desktop: DesktopOption = None,
    principal: PrincipalOption = None,
    session: SessionOption = None,
    reason: ReasonOption = "",
) -> None:
    """Keep agents from acting until you resume. They may look, and questions to you stay open.

    Examples:
      surehand pause
      surehand pause --principal uid:1001 --reason "back at two"
    """
    with Control() as control:
        found = control.call("pause", {**_scope(desktop, principal, session), "reason": reason})
    lines: list[Line] = [f"{_about(found)} is paused until: surehand resume"]
    out().data(found, lines + _unrecorded(found))


def resume(
    desktop: DesktopOption = None,
    principal: PrincipalOption = None,
    session: SessionOption = None,
    hold: Annotated[str | None, typer.Option("--hold", help="Only this pause, as `surehand holds` names it.")] = None,
) -> None:
    """Let paused agents act again; without an option all of them. Desktops that you took stay yours.

    Examples:
      surehand resume
      surehand resume --desktop work
    """
    with Control() as control:
        found = control.call("resume", {**_scope(desktop, principal, session), "hold_id": hold})
    count = len(found["resumed"])
    lines: list[Line] = [f"{count} {'pause' if count == 1 else 'pauses'} lifted" if count else "nothing was paused"]
    out().data(found, lines + _listed(found["holds"]))


def holds() -> None:
    """Show what keeps agents from acting: pauses, desktops taken over, desktops handed over on request.

    Example:
      surehand holds
    """
    with Control() as control:
        found = control.call("holds")
    out().data(found, _listed(found["holds"]) or ["nothing keeps any agent from acting"])


def take(name: NameArgument, reason: ReasonOption = "") -> None:
    """Take a desktop over: no agent acts on it until you hand it back.

    Example:
      surehand take work
    """
    with Control() as control:
        found = control.call("take", {"name": name, "reason": reason})
    lines: list[Line] = [f"desktop {name} is yours; give it back with: surehand hand-back {name}"]
    out().data(found, lines + _unrecorded(found))


def hand_back(name: NameArgument) -> None:
    """Hand a desktop back that you took over.

    Example:
      surehand hand-back work
    """
    with Control() as control:
        found = control.call("hand_back", {"name": name})
    lines: list[Line] = [f"desktop {name} is the agents' again"]
    out().data(found, lines + _listed(found["holds"]))


def _scope(desktop: str | None, principal: str | None, session: str | None) -> dict[str, str | None]:
    return {"desktop": desktop, "principal": principal, "session": session}


def _about(hold: dict[str, Any]) -> str:
    named = [f"{name} {hold[name]}" for name in ("desktop", "principal", "session") if hold[name] is not None]
    count = hold["sessions"]
    return f"{' and '.join(named) or 'every agent'} ({count} {'session' if count == 1 else 'sessions'} now)"


def _unrecorded(found: dict[str, Any]) -> list[Line]:
    return [] if found["recorded"] else [("bad", "the journal could not record it; a restart would not know of it")]


def _listed(found: list[dict[str, Any]]) -> list[Line]:
    rows = [
        (one["hold_id"], _WHAT.get(one["what"], one["what"]), _about(one), one["by"], one["reason"]) for one in found
    ]
    return [*table(("HOLD", "STATE", "WHO", "BY", "REASON"), rows)] if rows else []


COMMANDS: Final[dict[str, Callable[..., Any]]] = {
    "halt": halt,
    "pause": pause,
    "resume": resume,
    "holds": holds,
    "take": take,
    "hand-back": hand_back,
}
