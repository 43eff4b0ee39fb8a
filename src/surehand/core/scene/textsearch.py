"""Search in one long text: where something stands, and the lines around it.

Linear in the text for every pattern. Offsets are characters of the text. `^` and `$` mean lines, `.` no line end. What
is told is bounded (`limits.FIND_*`): matches beyond that are counted, and where counting ended is said.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from surehand import limits
from surehand.core.scene.patterns import pattern
from surehand.model.record import Record, check_range, check_text

_ELLIPSIS: Final = "…"


class Sought(Record, frozen=True, kw_only=True):
    """What is looked for, from which character on, and how much of it is told."""

    text: str
    regex: bool = False
    ignore_case: bool = False
    start: int = 0
    max_matches: int = limits.FIND_MATCHES_DEFAULT
    context_lines: int = 0

    def __post_init__(self) -> None:
        check_text("text", self.text, limits.FIND_PATTERN_BYTES_MAX, empty=False)
        check_range("start", self.start, 0, limits.INTEGER_MAX)
        check_range("max_matches", self.max_matches, 1, limits.FIND_MATCHES_MAX)
        check_range("context_lines", self.context_lines, 0, limits.FIND_CONTEXT_LINES_MAX)


class Match(msgspec.Struct, frozen=True, kw_only=True):
    """One place. `line` counts from 1; `text` is its line, cut around it, `before` and `after` the lines around."""

    start: int
    end: int
    line: int
    text: str
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """The first matches; `count` is of all, unless `counted_all` is false: then there are at least so many."""

    matches: tuple[Match, ...]
    count: int
    counted_all: bool


def search(text: str, sought: Sought) -> Found:
    """Return where a text shows something. Empty matches do not count.

    Raises:
        InvalidRequest: not a pattern RE2 takes.
    """
    places: list[tuple[int, int]] = []
    count = 0
    for place in _places(text, sought):
        if count == limits.FIND_COUNTED_MAX:
            return Found(matches=_told(text, places, sought), count=count, counted_all=False)
        count += 1
        if len(places) < sought.max_matches:
            places.append(place)
    return Found(matches=_told(text, places, sought), count=count, counted_all=True)


def _places(text: str, sought: Sought) -> Iterator[tuple[int, int]]:
    """Yield (start, end) in characters; matches are found in bytes."""
    first = min(sought.start, len(text))
    data = (text[first:] if first else text).encode("utf-8", "replace")
    if sought.regex:
        compiled = pattern(f"(?m){sought.text}", ignore_case=sought.ignore_case)
    else:
        compiled = pattern(sought.text, literal=True, ignore_case=sought.ignore_case)
    ascii_only = len(data) == len(text) - first
    byte, char = 0, first
    for match in compiled.finditer(data):
        start, end = match.span()
        if end == start:
            continue
        at = first + start if ascii_only else char + _chars(data, byte, start)
        past = at + (end - start) if ascii_only else at + _chars(data, start, end)
        byte, char = end, past
        yield at, past


def _chars(data: bytes, start: int, end: int) -> int:
    # A pattern may match a part of a character where it asks for bytes.
    return len(data[start:end].decode("utf-8", "ignore"))


def _told(text: str, places: list[tuple[int, int]], sought: Sought) -> tuple[Match, ...]:
    found = []
    line, counted = 1, 0
    for start, end in places:
        line += text.count("\n", counted, start)
        counted = start
        found.append(
            Match(
                start=start,
                end=end,
                line=line,
                text=_line_around(text, start, end),
                before=tuple(_lines_before(text, start, sought.context_lines)),
                after=tuple(_lines_after(text, end, sought.context_lines)),
            )
        )
    return tuple(found)


def _line_around(text: str, start: int, end: int) -> str:
    """Return the line of a match; of a long one the part around it."""
    room = limits.FIND_LINE_CHARS_MAX
    left = text.rfind("\n", 0, start) + 1
    stop = text.find("\n", start)
    right = len(text) if stop < 0 else stop
    if right - left <= room:
        return text[left:right]
    shown = min(end, right)
    begin = max(left, min(start - (room - min(room, shown - start)) // 2, right - room))
    finish = min(right, begin + room)
    return (_ELLIPSIS if begin > left else "") + text[begin:finish] + (_ELLIPSIS if finish < right else "")


def _lines_before(text: str, start: int, most: int) -> list[str]:
    lines: list[str] = []
    right = text.rfind("\n", 0, start)
    while right >= 0 and len(lines) < most:
        left = text.rfind("\n", 0, right) + 1
        lines.append(_cut(text, left, right))
        right = left - 1
    return lines[::-1]


def _lines_after(text: str, end: int, most: int) -> list[str]:
    lines: list[str] = []
    # A match that ends with a line end ends in the line before it.
    left = text.find("\n", max(0, end - 1)) + 1
    while left and left < len(text) and len(lines) < most:
        stop = text.find("\n", left)
        right = len(text) if stop < 0 else stop
        lines.append(_cut(text, left, right))
        left = stop + 1
    return lines


def _cut(text: str, left: int, right: int) -> str:
    room = limits.FIND_LINE_CHARS_MAX
    return text[left:right] if right - left <= room else text[left : left + room] + _ELLIPSIS
