"""Tells that something changed, at most so often: whoever looks at a list looks again, however fast it grows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Pulse:
    """Called for each change; tells once for all that come within `every_ms` of each other.

    The first of them is told at the end of that time, so nothing is missed: what is told is only "look again".
    """

    def __init__(self, tell: Callable[[], None], every_ms: int) -> None:
        self._tell = tell
        self._every_s = every_ms / 1000
        self._timer: asyncio.TimerHandle | None = None

    def __call__(self) -> None:
        """Note a change; cheap enough for every operation."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._every_s, self._now)

    def _now(self) -> None:
        self._timer = None
        self._tell()

    def close(self) -> None:
        """Tell nothing any more."""
        if self._timer is not None:
            self._timer.cancel()
