"""Random digits, asked of the system for many runs at a time.

A question to the system lets another thread run, and to come back in costs an operation more than most of its gates.
Digits are handed out once and kept nowhere else; a copy of the process would hand out the same ones, and Surehand
makes none.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Final

_RUNS_AHEAD: Final = 128


class Chance:
    """Hands out hex strings of one length, none twice."""

    def __init__(self, size: int, *, randomness: Callable[[int], bytes] = os.urandom) -> None:
        self._digits = self._draw(size, randomness)

    @staticmethod
    def _draw(size: int, randomness: Callable[[int], bytes]) -> Iterator[str]:
        while True:
            pool = randomness(size * _RUNS_AHEAD).hex()
            for start in range(0, len(pool), 2 * size):
                yield pool[start : start + 2 * size]

    def next(self) -> str:
        """Return the next string."""
        return next(self._digits)
