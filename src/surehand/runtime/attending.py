"""Which processes belong to the people on the control socket: what they run, and the terminal that they run it in.

A person who is asked reads and answers in some window. An agent that could write into it would answer itself, so for as
long as they are connected those windows are Surehand's own: out of every agent's reach (spec §6.2). The pid is the
kernel's; a terminal is found above it, so one reached over a multiplexer or from another machine is not.

Whoever runs the console page also names its port and the browsers that show it: what they tell only takes away.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from surehand import limits

_PROC: Final = Path("/proc")
_INIT: Final = 1


def line_of(pid: int) -> frozenset[int]:
    """Return a process and those above it, up to the first of all; what has ended is left out."""
    found: set[int] = set()
    while pid > _INIT and pid not in found and len(found) < limits.ANCESTORS_MAX:
        found.add(pid)
        pid = _parent_of(pid)
    return frozenset(found)


def _parent_of(pid: int) -> int:
    try:
        stat = (_PROC / str(pid) / "stat").read_text("utf-8", "replace")
        # The name stands in parentheses and may hold any character, parentheses too.
        return int(stat.rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0


class Attending:
    """The processes of everybody who is on the control socket now."""

    def __init__(self) -> None:
        self._lines: dict[str, frozenset[int]] = {}
        #: What shows the console page of each, and the port that it is on.
        self._browsers: dict[str, frozenset[int]] = {}
        self._ports: dict[str, int] = {}

    @property
    def ports(self) -> frozenset[int]:
        """Return the ports that console pages are on now."""
        return frozenset(self._ports.values())

    def come(self, session_id: str, pid: str) -> frozenset[int]:
        """Take somebody in; return all processes that are out of reach from now on."""
        self._lines[session_id] = line_of(int(pid)) if pid.isdigit() else frozenset()
        return self._all()

    def shows(self, session_id: str, port: int, pids: Iterable[int]) -> frozenset[int]:
        """Take in a console page and the browsers that show it; return all processes that are out of reach."""
        self._ports[session_id] = port
        self._browsers[session_id] = frozenset[int]().union(*map(line_of, pids))
        return self._all()

    def go(self, session_id: str) -> frozenset[int]:
        """Let somebody go; return all processes that still are out of reach."""
        for kept in (self._lines, self._browsers, self._ports):
            kept.pop(session_id, None)
        return self._all()

    def _all(self) -> frozenset[int]:
        return frozenset[int]().union(*self._lines.values(), *self._browsers.values())
