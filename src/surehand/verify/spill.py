"""Sorting more entries than fit into memory: sorted runs in a temporary file, merged as they are read.

Guarantees: memory does not grow with the number of entries; the temporary file has no name and dies with the process.
"""

from __future__ import annotations

import heapq
import tempfile
from collections.abc import Iterator
from typing import IO, Final

#: Entries that are sorted in memory: about 10 MB.
_RUN_ENTRIES: Final = 100_000
_READ_BYTES: Final = 32 * 1024


class Spill:
    """Entries of one size in bytes, read back in order.

    Args:
        size: Bytes of an entry.
        run_entries: Entries held in memory at a time.
    """

    def __init__(self, size: int, *, run_entries: int = _RUN_ENTRIES) -> None:
        self._size = size
        self._run_entries = run_entries
        self._run: list[bytes] = []
        self._file: IO[bytes] | None = None
        self._ends: list[int] = [0]

    def add(self, entry: bytes) -> None:
        """Take in one entry."""
        self._run.append(entry)
        if len(self._run) >= self._run_entries:
            self._write()

    def _write(self) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="surehand-verify-")  # noqa: SIM115 lives as long as the spill
        self._run.sort()
        self._file.write(b"".join(self._run))
        self._ends.append(self._file.tell())
        self._run.clear()

    def __iter__(self) -> Iterator[bytes]:
        self._run.sort()
        runs = [self._read(start, end) for start, end in zip(self._ends, self._ends[1:], strict=False)]
        return heapq.merge(*runs, iter(self._run)) if runs else iter(self._run)

    def _read(self, start: int, end: int) -> Iterator[bytes]:
        if self._file is None:
            return
        step = _READ_BYTES // self._size * self._size
        while start < end:
            # The runs share one file, so each remembers its own place.
            self._file.seek(start)
            block = self._file.read(min(step, end - start))
            start += len(block)
            for offset in range(0, len(block), self._size):
                yield block[offset : offset + self._size]

    def close(self) -> None:
        """Let go of the temporary file."""
        if self._file is not None:
            self._file.close()
