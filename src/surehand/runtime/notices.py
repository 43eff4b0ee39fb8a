"""What becomes of questions to people, told to whoever waits or listens.

Approvals are told under their principal, requests to people under their session. Telling never waits and never fails
the teller; a listener takes what it is told at once or drops it. Nothing is kept: who comes later asks for the state.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from typing import Any

Listener = Callable[[dict[str, Any]], None]


class Notices:
    """Wakes who waits, tells who listens."""

    def __init__(self) -> None:
        self._moved = asyncio.Event()
        self._listeners: dict[str, list[Listener]] = {}

    def tell(self, key: str, value: dict[str, Any]) -> None:
        """Tell what happened to those who listen under this key, and wake everybody who waits."""
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()
        for listener in list(self._listeners.get(key, ())):
            listener(value)

    async def wait(self, timeout_ms: int) -> None:
        """Return once anything was told, or when the time is over; the caller looks again at what it waits for."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_ms / 1000):
                await self._moved.wait()

    @contextlib.contextmanager
    def heard(self, key: str, listener: Listener) -> Iterator[None]:
        """Listen under a key."""
        self._listeners.setdefault(key, []).append(listener)
        try:
            yield
        finally:
            self._listeners[key].remove(listener)
            if not self._listeners[key]:
                del self._listeners[key]
