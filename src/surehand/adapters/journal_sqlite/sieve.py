"""Which streams were never written: answered from memory, so that a fresh operation id costs no look at the disk.

A Bloom filter. It may take a fresh stream for a known one, which costs a query; it never takes a known one for fresh,
because every stream of the file is put in before the first question and every append puts its own in before it is
queued. Used from one thread only. Python's own hash of strings is keyed per process, so nobody can choose ids that
collide.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import Final

_WORDS: Final = 1 << 17
_WORD_MASK: Final = _WORDS - 1
#: Up to four bits of a word, for each of twelve bits of a hash.
_MARKS: Final = tuple(
    1 << (n & 63) | 1 << (n * 5 >> 3 & 63) | 1 << (n * 11 >> 5 & 63) | 1 << (n * 23 >> 7 & 63) for n in range(1 << 12)
)
_MARK_MASK: Final = len(_MARKS) - 1


class Sieve:
    """A megabyte of bits; about 3 % false alarms at a million streams. All of a stream's bits are in one word."""

    def __init__(self, streams: Iterable[str]) -> None:
        self._words = array("Q", bytes(8 * _WORDS))
        for stream in streams:
            self.add(stream)

    def add(self, stream: str) -> None:
        """Remember a stream."""
        number = hash(stream)
        self._words[number & _WORD_MASK] |= _MARKS[number >> 17 & _MARK_MASK]

    def may_hold(self, stream: str) -> bool:
        """Return false only for a stream that was never added."""
        number = hash(stream)
        mark = _MARKS[number >> 17 & _MARK_MASK]
        return self._words[number & _WORD_MASK] & mark == mark
