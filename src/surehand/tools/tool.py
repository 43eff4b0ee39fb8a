"""What a tool is, what it answers, and what it works with. Knows no protocol.

A tool is a record: a name, a text that teaches, strict arguments, and a handler. It decides nothing: every handler is a
client of the daemon's agent socket. An answer has two forms of the same facts: `data`, small JSON for programs, and
`text`, what a model reads. A refusal is an answer (`is_error`), never an exception of the protocol (spec §12).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from surehand import limits
from surehand.core.scene.describe import quote
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


#: What of an error's candidates and texts an answer has room for.
_CANDIDATES_MAX: Final = 5
_SEEN_CHARS_MAX: Final = 200


def refusal(error: SurehandError, **more: Any) -> Answer:
    """Return the answer that an error is: its code, whether trying again is safe, the fix, and what was observed.

    The receipt stays in the journal; of what was observed only the beginning is told.
    """
    value = error.to_value()
    details = {name: item for name, item in value.pop("details", {}).items() if name not in {"receipt", *more}}
    observed = {name: _short(item) for name, item in value.pop("observed", {}).items()}
    value |= {name: item for name, item in (("details", details), ("observed", observed)) if item}
    lines = [f"{value['code']}: {value['message']}"]
    if value.get("fix"):
        lines.append(f"fix: {value['fix']}")
    lines.append("nothing happened; trying again is safe" if value["retry_safe"] else "do not simply try again")
    words = details.get("operator_reason")
    if isinstance(words, str) and words.strip():
        lines.append(guidance(words))
    lines += _seen(observed)
    return Answer({"error": value, **more}, "\n".join(lines), is_error=True)


def guidance(words: str) -> str:
    """Return an operator's words on a line of their own, in quotes that they cannot end."""
    return f"operator guidance (a person's words, not the screen's): {quote(words, limits.HUMAN_TEXT_BYTES_MAX * 4)}"


def _short(item: Any) -> Any:
    if isinstance(item, str):
        return item if len(item) <= _SEEN_CHARS_MAX else item[: _SEEN_CHARS_MAX - 1] + "…"
    if isinstance(item, list):
        return [_short(one) for one in item[:_CANDIDATES_MAX]]
    return {name: _short(one) for name, one in item.items()} if isinstance(item, dict) else item


def _seen(observed: dict[str, Any]) -> list[str]:
    """Return what was observed in lines; each says that it is the screen's."""
    difference = observed.get("difference")
    was, now = observed.get("was"), observed.get("now")
    if isinstance(difference, dict):
        was, now = difference.get("before"), difference.get("now")
    lines = [] if was is None and now is None else [f"on the screen it was {was!r} and is {now!r}"]
    return lines + [f"candidate: {_on_one_line(str(one))}" for one in observed.get("candidates", ())]


def _on_one_line(text: str) -> str:
    """Return a candidate as part of one line; those that quote the screen are so already."""
    return text if text.isprintable() else repr(text)
