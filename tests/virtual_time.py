"""An event loop whose time passes at once: a wait of an hour takes no time, and its length is exact.

Only for what waits on nothing but time and other tasks: what comes from a process or a socket would never be in time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class VirtualLoop(asyncio.SelectorEventLoop):
    """Moves its own clock to the next timer where nothing else is to do. It is a `ports.Clock` too."""

    def __init__(self) -> None:
        super().__init__()
        self._now_s = 0.0
        select = self._selector.select

        def at_once(timeout: float | None = None) -> Any:
            found = select(0)
            if not found and timeout:
                self._now_s += timeout
            return found

        self._selector.select = at_once

    def time(self) -> float:
        """Return seconds since the loop was made."""
        return self._now_s

    def monotonic_ms(self) -> int:
        """Return the same in milliseconds."""
        return round(self._now_s * 1000)

    wall_ms = monotonic_ms


def run(work: Coroutine[Any, Any, T], loop: VirtualLoop) -> T:
    """Run to the end."""
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(work)
