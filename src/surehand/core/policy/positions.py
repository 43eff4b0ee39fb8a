"""Where something stands in a TOML text that parses: line and column of keys, for whoever has to mend them.

The standard library's reader gives values without places. This looks for headers and keys only, past strings, comments
and arrays; a key inside an inline table has the place of the nearest key around it.
"""

from __future__ import annotations

import re
from typing import Final

Path = tuple[str | int, ...]

_NAME: Final = r"(?:[A-Za-z0-9_-]+|\"(?:[^\"\\]|\\.)*\"|'[^']*')"
_NAMES: Final = rf"{_NAME}(?:\s*\.\s*{_NAME})*"
_HEADER: Final = re.compile(rf"\s*(?P<open>\[\[?)\s*(?P<names>{_NAMES})\s*\]\]?")
_KEY: Final = re.compile(rf"\s*(?P<names>{_NAMES})\s*=")
_ONE: Final = re.compile(_NAME)
_TOKEN: Final = re.compile(
    r"\"\"\"(?:[^\\]|\\.)*?\"{3,5}|'''.*?'{3,5}|\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*'|#[^\n]*|[\[\]{}]|\n", re.DOTALL
)


class Places:
    """The places of one text's headers and keys."""

    def __init__(self, text: str) -> None:
        self._found: dict[Path, tuple[int, int]] = {}
        counts: dict[Path, int] = {}
        table: Path = ()
        for at, statement in _statements(text):
            line, column = line_and_column(text, at + len(statement) - len(statement.lstrip()))
            if header := _HEADER.match(statement):
                table = _entered(_split(header["names"]), counts, is_list=header["open"] == "[[")
                self._found.setdefault(table, (line, column))
            elif key := _KEY.match(statement):
                for end in range(1, len(names := _split(key["names"])) + 1):
                    self._found.setdefault((*table, *names[:end]), (line, column))

    def of(self, path: Path) -> tuple[int, int]:
        """Return line and column, from 1, of a key or, where it has none of its own, of what it is in."""
        for end in range(len(path), -1, -1):
            if (found := self._found.get(path[:end])) is not None:
                return found
        return (1, 1)


def line_and_column(text: str, at: int) -> tuple[int, int]:
    """Return line and column, from 1, of a position in a text."""
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)


def _split(names: str) -> Path:
    return tuple(name.strip("\"'") for name in _ONE.findall(names))


def _entered(names: Path, counts: dict[Path, int], *, is_list: bool) -> Path:
    """Return the path of a table, with the number of the list item that each list on the way is at."""
    path: Path = ()
    for position, name in enumerate(names):
        path = (*path, name)
        is_last = position == len(names) - 1
        if is_last and is_list:
            counts[path] = counts.get(path, -1) + 1
        if path in counts:
            path = (*path, counts[path])
    return path


def _statements(text: str) -> list[tuple[int, str]]:
    """Return each statement with where it begins; one that spans lines is one statement."""
    found, start, depth = [], 0, 0
    for token in _TOKEN.finditer(text):
        sign = token[0]
        if sign in "[{":
            depth += 1
        elif sign in "]}":
            depth = max(0, depth - 1)
        elif sign == "\n" and depth == 0:
            found.append((start, text[start : token.start()]))
            start = token.end()
    found.append((start, text[start:]))
    return found
