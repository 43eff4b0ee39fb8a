"""How each action is written on the command line: its words, its options, and where it is aimed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

from surehand.errors import InvalidRequest

#: Options that belong to some actions only.
OPTIONS: Final = ("secret", "amount", "unit", "button", "count", "modifier", "clear", "submit")


@dataclass(frozen=True, slots=True)
class Form:
    """How an action is written: what its words are called, how they become fields, and which options it takes."""

    words: str
    read: Callable[[list[str]], dict[str, Any]]
    options: frozenset[str] = frozenset()
    #: Where it is aimed: an element; an element or a whole window; or nowhere.
    aim: Literal["element", "window", "none"] = "element"


def _none(words: list[str]) -> dict[str, Any]:
    _exactly(words, 0, "no words")
    return {}


def _one(field: str) -> Callable[[list[str]], dict[str, Any]]:
    def read(words: list[str]) -> dict[str, Any]:
        _exactly(words, 1, f"one word: the {field} (quote it if it has spaces)")
        return {field: words[0]}

    return read


def _perhaps(field: str) -> Callable[[list[str]], dict[str, Any]]:
    return lambda words: _one(field)(words) if words else {}


def _switch(words: list[str]) -> dict[str, Any]:
    _exactly(words, 1, "on or off")
    if words[0] not in {"on", "off"}:
        raise InvalidRequest(f"{words[0]!r} is neither on nor off")
    return {"to": words[0] == "on"}


def _numbers(*fields: str) -> Callable[[list[str]], dict[str, Any]]:
    def read(words: list[str]) -> dict[str, Any]:
        _exactly(words, len(fields), " and ".join(fields))
        try:
            return {field: int(word) for field, word in zip(fields, words, strict=True)}
        except ValueError as error:
            raise InvalidRequest(f"{' and '.join(fields)} are whole numbers") from error

    return read


def _chords(words: list[str]) -> dict[str, Any]:
    if not words:
        raise InvalidRequest("press takes one or more chords, such as ctrl+s")
    return {"chords": words}


def _program(words: list[str]) -> dict[str, Any]:
    if not words:
        raise InvalidRequest(
            "launch takes a program and its arguments", fix="surehand act launch -- mousepad notes.txt"
        )
    return {"op": "launch", "name": words[0], "arguments": words[1:]}


def _window(words: list[str]) -> dict[str, Any]:
    if not words:
        raise InvalidRequest("window takes focus, close, minimize, maximize, cycle, move X Y or resize WIDTH HEIGHT")
    fields = {"move": ("x", "y"), "resize": ("width", "height")}.get(words[0], ())
    return {"op": words[0], **(_numbers(*fields)(words[1:]) if fields or words[1:] else {})}


def _exactly(words: list[str], count: int, what: str) -> None:
    if len(words) != count:
        raise InvalidRequest(f"this action takes {what}, not {len(words)} words")


_POINTER: Final = frozenset({"button", "count", "modifier"})

FORMS: Final[dict[str, Form]] = {
    "invoke": Form("", _none),
    "set_value": Form("VALUE", _perhaps("value"), frozenset({"secret"})),
    "select_text": Form("START LENGTH", _numbers("start", "length")),
    "select_option": Form("[OPTION]", _perhaps("option")),
    "toggle": Form("on|off", _switch),
    "expand": Form("on|off", _switch),
    "focus": Form("", _none),
    "perform": Form("NAME", _one("name")),
    "scroll": Form("up|down|left|right", _one("direction"), frozenset({"amount", "unit"})),
    "scroll_into_view": Form("", _none),
    "click": Form("", _none, _POINTER),
    "hover": Form("", _none),
    "type_text": Form("TEXT", _perhaps("text"), frozenset({"clear", "secret", "submit"}), aim="window"),
    "press": Form("CHORD…", _chords, aim="window"),
    "paste": Form("TEXT", _one("text"), aim="window"),
    "window": Form("focus|close|minimize|maximize|cycle|move X Y|resize W H", _window, aim="window"),
    "launch": Form("PROGRAM [ARGUMENT…]", _program, aim="none"),
    "open": Form("URI", _one("uri"), aim="none"),
}


def action_of(kind: str, words: list[str], given: dict[str, Any]) -> tuple[dict[str, Any], Form]:
    """Return an action's value and its form.

    Raises:
        InvalidRequest: an unknown action, words it does not take, or an option of another action.
    """
    kind = kind.replace("-", "_")
    form = FORMS.get(kind)
    if form is None:
        raise InvalidRequest(f"unknown action {kind!r}", fix=f"one of {', '.join(FORMS)}; others through --request")
    foreign = [option for option, value in given.items() if value is not None and option not in form.options]
    if foreign:
        raise InvalidRequest(f"{kind} takes no --{foreign[0]}")
    action: dict[str, Any] = {"kind": "app" if kind == "launch" else kind, **form.read(words)}
    if given["secret"] is not None:
        action["secret_ref"] = given["secret"]
    if kind == "scroll":
        action["amount_milli"] = round(1000 * (3 if given["amount"] is None else given["amount"]))
    if given["modifier"]:
        action["modifiers"] = given["modifier"]
    for option in ("unit", "button", "count", "clear", "submit"):
        if given[option] is not None:
            action[option] = given[option]
    return action, form
