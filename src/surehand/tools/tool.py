"""What a tool is, what it answers, and what it works with. Knows no protocol.

A tool is a record: a name, a text that teaches, strict arguments, and a handler. It decides nothing: every handler is a
client of the daemon's agent socket. An answer has two forms of the same facts: `data`, small JSON for programs, and
`text`, what a model reads. A refusal is an answer (`is_error`), never an exception of the protocol (spec §12).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from surehand.errors import SurehandError
from surehand.model.record import Record
from surehand.tools.context import Context

#: `read` has no effect. `act` changes the desktop. `session` changes only what this session holds.
Kind = Literal["read", "act", "session"]


@dataclass(frozen=True, slots=True)
class Image:
    """A picture in an answer."""

    data: bytes
    mime: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What a call came to."""

    data: dict[str, Any]
    text: str
    images: tuple[Image, ...] = ()
    is_error: bool = False


Handler = Callable[[Context, Any], Awaitable[Answer]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool.

    Attributes:
        name: As it is called.
        title: For people.
        description: For the model: what it does, when to use it, what to do next.
        kind: What it may change.
        args: Its strict arguments; the input schema is made from it.
        output: JSON Schema of `Answer.data` where it is no error.
        handler: Runs it.
        core: Whether a client with a small budget gets it.
        destructive: Whether it can do what cannot be undone (annotation; policy decides for itself).
        aliases: Names other servers use for the same; accepted, not listed.
    """

    name: str
    title: str
    description: str
    kind: Kind
    args: type[Record]
    output: Mapping[str, Any]
    handler: Handler
    core: bool = False
    destructive: bool = False
    aliases: tuple[str, ...] = ()


def refusal(error: SurehandError, **more: Any) -> Answer:
    """Return the answer that an error is: its code, whether trying again is safe, the fix, and what was observed."""
    value = error.to_value()
    data = {"error": value, **more}
    lines = [f"{value['code']}: {value['message']}"]
    if value.get("fix"):
        lines.append(f"fix: {value['fix']}")
    lines.append("nothing happened; trying again is safe" if value.get("retry_safe") else "do not simply try again")
    candidates = (value.get("observed") or {}).get("candidates", ())
    lines += [f"candidate: {candidate}" for candidate in candidates]
    return Answer(data, "\n".join(lines), is_error=True)
