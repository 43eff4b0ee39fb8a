"""Backpressure for appends: bounded in count and bytes, first come first served."""

from __future__ import annotations

import asyncio
from collections import deque


class Room:
    """Room for a number of things of a total size. Used on one event loop; only `enter` waits.

    Args:
        count_max: Most things inside.
        bytes_max: Most bytes inside; one larger thing may be inside alone, so that nothing waits for ever.
    """

    def __init__(self, count_max: int, bytes_max: int) -> None:
        self._count_left = count_max
        self._bytes_left = bytes_max
        self._bytes_max = bytes_max
        self._queue: deque[tuple[int, asyncio.Future[None]]] = deque()

    def enter_now(self, size: int) -> bool:
        """Take room if there is any and nobody waits for it; say whether that was so."""
        if self._queue or not self._fits(size):
            return False
        self._take(size)
        return True

    async def enter(self, size: int) -> None:
        """Take room, waiting for it behind those who came before."""
        if self.enter_now(size):
            return
        turn = asyncio.get_running_loop().create_future()
        self._queue.append((size, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.leave(size)  # room was given in the moment of the cancellation
            else:
                self._admit()
            raise

    def leave(self, size: int) -> None:
        """Give room back."""
        self._count_left += 1
        self._bytes_left += size
        if self._queue:
            self._admit()

    def _admit(self) -> None:
        while self._queue:
            size, turn = self._queue[0]
            if turn.cancelled():
                self._queue.popleft()
                continue
            if not self._fits(size):
                return
            self._queue.popleft()
            self._take(size)
            turn.set_result(None)

    def _fits(self, size: int) -> bool:
        empty = self._bytes_left == self._bytes_max
        return self._count_left > 0 and (size <= self._bytes_left or empty)

    def _take(self, size: int) -> None:
        self._count_left -= 1
        self._bytes_left -= size
