"""Setting values in other programs' configuration files without touching anything else in them.

A document is text. What is not ours keeps its bytes: order, spelling, comments, blank lines. Every edit is read back
with a parser and compared with what was meant; an edit that would have changed anything else is not given out.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from surehand import limits
from surehand.errors import InvalidRequest

#: One value to set: the keys to it, and the value.
Setting = tuple[tuple[str, ...], Any]


def edited(text: str, settings: Sequence[Setting], kind: str) -> str:
    """Return a document with these values set.

    Args:
        text: The document; blank for one that is missing.
        settings: What to set, in order.
        kind: `json`, `jsonc` (comments and trailing commas allowed) or `toml`.

    Raises:
        InvalidRequest: the document is broken, or cannot be edited safely.
    """
    before = parsed(text, kind)
    meant = before
    for keys, value in settings:
        meant = _with(meant, keys, value)
    if meant == before:
        return text
    if kind == "toml":
        after = _toml(text, before, settings)
    else:
        after = text if text.strip() else "{}\n"
        for keys, value in settings:
            after = _json(after, keys, value)
    try:
        correct = parsed(after, kind) == meant
    except InvalidRequest:
        correct = False
    if not correct:
        raise InvalidRequest("this file cannot be edited safely by a program", fix="edit it by hand; --print shows how")
    return after


def parsed(text: str, kind: str) -> dict[str, Any]:
    """Return a document's value.

    Raises:
        InvalidRequest: it is broken, or no object.
    """
    if not text.strip():
        return {}
    try:
        if kind == "toml":
            return tomllib.loads(text)
        value = json.loads(text) if kind == "json" else None
        root = _Reader(text, strict=kind == "json").document()
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(f"it is broken: {error}") from error
    if value is None:
        value = root.value
    if not isinstance(value, dict):
        raise InvalidRequest("it is broken: no object at its top")
    return value


def _with(value: Any, keys: tuple[str, ...], leaf: Any) -> Any:
    if not keys:
        return leaf
    if not isinstance(value, dict):
        raise InvalidRequest(f"there is something else where {keys[0]} belongs")
    return {**value, keys[0]: _with(value.get(keys[0], {}), keys[1:], leaf)}


# --- JSON, with or without comments ----------------------------------------------------------------------------------


@dataclass(slots=True)
class _Node:
    start: int
    end: int
    value: Any
    members: dict[str, _Node] = field(default_factory=dict)
    #: Where the last member's value ends, and whether a comma follows it.
    last_end: int = 0
    comma_after_last: bool = False


_BLANK: Final = re.compile(r"[ \t\r\n\ufeff]*")
_COMMENT: Final = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


class _Reader:
    """Reads JSON and remembers where things stand."""

    def __init__(self, text: str, *, strict: bool) -> None:
        self._text = text
        self._strict = strict
        self._decoder = json.JSONDecoder()

    def document(self) -> _Node:
        node = self._value(self._skip(0), 0)
        if self._skip(node.end) != len(self._text):
            raise ValueError(f"something follows its end at character {node.end}")
        return node

    def _skip(self, at: int) -> int:
        while True:
            found = _BLANK.match(self._text, at)
            at = found.end() if found else at
            comment = None if self._strict else _COMMENT.match(self._text, at)
            if comment is None:
                return at
            at = comment.end()

    def _value(self, at: int, depth: int) -> _Node:
        if depth > limits.JSON_DEPTH_MAX:
            raise ValueError("it is nested too deeply")
        mark = self._text[at : at + 1]
        if mark == "{":
            return self._object(at, depth)
        if mark == "[":
            return self._array(at, depth)
        value, end = self._decoder.raw_decode(self._text, at)
        return _Node(at, end, value)

    def _object(self, at: int, depth: int) -> _Node:
        node = _Node(at, at, {})
        place = self._skip(at + 1)
        while self._text[place : place + 1] != "}":
            if node.members and not node.comma_after_last:
                raise ValueError(f"a comma is missing at character {place}")
            key, end = self._decoder.raw_decode(self._text, place)
            colon = self._skip(end)
            if not isinstance(key, str) or self._text[colon : colon + 1] != ":":
                raise ValueError(f"a key is expected at character {place}")
            if key in node.members:
                raise ValueError(f"the key {key!r} stands twice in one object")
            member = self._value(self._skip(colon + 1), depth + 1)
            node.members[key], node.value[key] = member, member.value
            node.last_end = member.end
            place, node.comma_after_last = self._comma(member.end)
        self._no_trailing_comma(node.comma_after_last, place)
        node.end = place + 1
        return node

    def _array(self, at: int, depth: int) -> _Node:
        values: list[Any] = []
        comma = True
        place = self._skip(at + 1)
        while self._text[place : place + 1] != "]":
            if not comma:
                raise ValueError(f"a comma is missing at character {place}")
            one = self._value(place, depth + 1)
            values.append(one.value)
            place, comma = self._comma(one.end)
        self._no_trailing_comma(bool(values) and comma, place)
        return _Node(at, place + 1, values)

    def _comma(self, at: int) -> tuple[int, bool]:
        place = self._skip(at)
        if self._text[place : place + 1] != ",":
            return place, False
        return self._skip(place + 1), True

    def _no_trailing_comma(self, found: bool, place: int) -> None:
        if found and self._strict:
            raise ValueError(f"a comma too many before character {place}")


def _json(text: str, keys: tuple[str, ...], value: Any) -> str:
    """Return a JSON text with one value set."""
    node = _Reader(text, strict=False).document()
    level = 0
    while keys and keys[0] in node.members:
        node, keys, level = node.members[keys[0]], keys[1:], level + 1
    indent = _indent(text)
    for key in reversed(keys[1:]):
        value = {key: value}
    shown = json.dumps(value, indent=indent, ensure_ascii=False)
    if not keys:
        return text[: node.start] + shown.replace("\n", "\n" + indent * level) + text[node.end :]
    inner, outer = indent * (level + 1), indent * level
    member = f"{json.dumps(keys[0], ensure_ascii=False)}: " + shown.replace("\n", "\n" + inner)
    brace = node.end - 1
    head = text[:brace].rstrip(" \t\r\n")
    if node.members and not node.comma_after_last:
        # The comma stands with the value before it, whatever comment follows that.
        head = text[: node.last_end] + "," + head[node.last_end :]
    return f"{head}\n{inner}{member}\n{outer}{text[brace:]}"


def _indent(text: str) -> str:
    """Return the document's own indentation."""
    found = re.search(r"\{[^\S\n]*(?://[^\n]*)?\n([ \t]+)\S", text)
    return found[1] if found else "  "


# --- TOML ------------------------------------------------------------------------------------------------------------


def _toml(text: str, before: dict[str, Any], settings: Sequence[Setting]) -> str:
    """Return a TOML text with the values of one table set; its other tables keep their bytes."""
    tables = {keys[:-1] for keys, _ in settings}
    if len(tables) != 1:
        raise InvalidRequest("the values of one table can be set")
    (table,) = tables
    there: Any = before
    for key in table:
        there = there.get(key, {}) if isinstance(there, dict) else {}
    own = {key: value for key, value in there.items() if not isinstance(value, dict)}
    own |= {keys[-1]: value for keys, value in settings}
    block = "\n".join(
        [f"[{'.'.join(map(_toml_key, table))}]", *(f"{_toml_key(k)} = {_toml_value(v)}" for k, v in own.items())]
    )
    lines = text.splitlines(keepends=True)
    start = next((n for n, line in enumerate(lines) if _header(line) == table), None)
    if start is None:
        return (text.rstrip("\n") + "\n\n" if text.strip() else "") + block + "\n"
    end = next((n for n in range(start + 1, len(lines)) if lines[n].lstrip().startswith("[")), len(lines))
    while end > start + 1 and not lines[end - 1].split("#")[0].strip():
        end -= 1  # blank lines and comments before the next table are its own
    return "".join(lines[:start]) + block + "\n" + "".join(lines[end:])


def _header(line: str) -> tuple[str, ...] | None:
    """Return the keys of a table's header line."""
    if not line.lstrip().startswith("[") or line.lstrip().startswith("[["):
        return None
    try:
        value: Any = tomllib.loads(line)
    except tomllib.TOMLDecodeError:
        return None
    keys = []
    while isinstance(value, dict) and len(value) == 1:
        ((key, value),) = value.items()
        keys.append(key)
    return tuple(keys)


def _toml_key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else json.dumps(key)


def _toml_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list):
        return "[" + ", ".join(_toml_value(one) for one in value) + "]"
    raise InvalidRequest("this file cannot be edited safely by a program", fix="edit it by hand; --print shows how")
