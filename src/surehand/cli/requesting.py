"""`surehand requests`: what agents ask people to do, taking over, and handing back.

What an agent says is shown in quotes and escaped: it is the agent's word and nothing more. A note goes back to the
agent as the operator's guidance.
"""

from __future__ import annotations

import time
from typing import Annotated, Any, Final

import typer

from surehand.cli.output import Line, out, table
from surehand.client.control import Control

IdArgument = Annotated[str, typer.Argument(help="The request's id, as `surehand requests list` shows it.")]
NoteOption = Annotated[
    str, typer.Option("--note", help="Your words to the agent: your guidance, such as the choice you made.")
]


def list_() -> None:
    """List what agents ask people to do, and what a person has taken over.

    Example:
      surehand requests list
    """
    with Control() as control:
        found = control.call("requests")["requests"]
    rows = [
        (
            one["request_id"],
            one["principal"],
            one["client"].get("name"),
            one["desktop"],
            one["kind"],
            f"{one['status']}, agent gone" if one["agent_gone"] else one["status"],
            _age(one),
        )
        for one in found
    ]
    lines: list[Line] = ["nothing is waiting"]
    if rows:
        lines = [*table(("REQUEST", "WHO", "CLIENT", "DESKTOP", "KIND", "STATE", "FOR"), rows), ""]
        lines += [f'{one["request_id"]}: the agent says "{one["agent_says"]}"' for one in found]
    out().data({"requests": found}, lines)


def take(request_id: IdArgument) -> None:
    """Take the desktop over. No agent of that principal acts on it until you hand it back.

    Example:
      surehand requests take 3f09a1c2
    """
    with Control() as control:
        found = control.call("requests.take", {"request_id": request_id})
    lines: list[Line] = [
        f'{request_id}: desktop {found["desktop"]} is yours; the agent says "{found["agent_says"]}"',
        f"hand it back with: surehand requests done {request_id}",
    ]
    out().data(found, lines)


def done(request_id: IdArgument, note: NoteOption = "") -> None:
    """Hand back: the agent goes on, and sees its windows as they are now.

    Examples:
      surehand requests done 3f09a1c2
      surehand requests done 3f09a1c2 --note "use the second account"
    """
    _answer("requests.done", request_id, note, "handed back")


def decline(request_id: IdArgument, note: NoteOption = "") -> None:
    """Tell the agent that no person will do it.

    Example:
      surehand requests decline 3f09a1c2 --note "leave that page alone"
    """
    _answer("requests.decline", request_id, note, "declined")


def _answer(method: str, request_id: str, note: str, said: str) -> None:
    with Control() as control:
        found = control.call(method, {"request_id": request_id, "note": note})
    out().data(found, f"{request_id}: {said}")


def _age(one: dict[str, Any]) -> str:
    seconds = max(0, round(time.time() - one["requested_at_ms"] / 1000))
    return f"{seconds // 60}:{seconds % 60:02}"


COMMANDS: Final[dict[str, Any]] = {"list": list_, "take": take, "done": done, "decline": decline}
