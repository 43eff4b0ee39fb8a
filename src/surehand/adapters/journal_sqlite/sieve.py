"""Which streams were never written: answered from memory, so that a fresh operation id costs no look at the disk.

A Bloom filter. It may take a fresh stream for a known one, which costs a query; it never takes a known one for fresh,
because every stream of the file is put in before the first question and every append puts its own in before it is
queued. Used from one thread only.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

_BITS: Final = 1 << 23
_MASK: Final = _BITS - 1
_PROBES: Final = 4
_HASH_MASK: Final = (1 << 64) - 1


class Sieve:
    """A megabyte of bits; about 1 % false alarms at a million streams."""

    def __init__(self, streams: Iterable[str]) -> None:
        self._bits = bytearray(_BITS >> 3)
        for stream in streams:
            self.add(stream)

    def add(self, stream: str) -> None:
        """Remember a stream."""
        place, step = _places(stream)
        bits = self._bits
        for _ in range(_PROBES):
            bits[place >> 3] |= 1 << (place & 7)
            place = (place + step) & _MASK

    def may_hold(self, stream: str) -> bool:
        """Return false only for a stream that was never added."""
        place, step = _places(stream)
        bits = self._bits
        for _ in range(_PROBES):
            if not bits[place >> 3] & 1 << (place & 7):
                return False
            place = (place + step) & _MASK
        return True


def _places(stream: str) -> tuple[int, int]:
    # Python's own string hash is keyed per process, so nobody can choose ids that collide.
    number = hash(stream) & _HASH_MASK
    return number & _MASK, (number >> 32) | 1
