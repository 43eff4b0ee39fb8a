"""The readers' half of the journal: pages of events, each verified as it is read (spec §7).

Guarantees: a record whose stored fields do not give its hash, a gap in what was asked for, or a stream shorter than
its length on record raises, and is never returned; a page is bounded in events and bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import apsw

from surehand import limits
from surehand.adapters.journal_sqlite.translate import damaged, translated
from surehand.core import chain
from surehand.core.appending import CLAIMED
from surehand.model.events import Event

_STREAM: Final = (
    "SELECT seq, event_id, stream, stream_version, type, occurred_at, actor, context, payload, prev_hash, record_hash"
    " FROM events WHERE stream = ? AND stream_version > ? ORDER BY stream_version LIMIT ?"
)
LOG: Final = (
    "SELECT seq, event_id, stream, stream_version, type, occurred_at, actor, context, payload, prev_hash, record_hash"
    " FROM events WHERE seq > ? ORDER BY seq LIMIT ?"
)
_HASH: Final = "SELECT record_hash FROM events WHERE seq = ?"
_VERSION: Final = "SELECT version FROM streams WHERE stream = ?"
_USES: Final = "SELECT count FROM uses WHERE key = ?"
# The planner takes a partial index only for the constant it was made with.
_ENDING_CLAIMED: Final = "SELECT stream FROM streams WHERE type = 'operation.claimed.v1' ORDER BY seq LIMIT ?"
# The `+` keeps the planner on the way back through the log: nothing is sorted, and it stops when the page is full.
_LATEST: Final = (
    "SELECT e.stream, e.seq FROM events AS e WHERE e.seq < ? AND +e.stream >= ? AND +e.stream < ?"
    " AND e.seq = (SELECT s.seq FROM streams AS s WHERE s.stream = e.stream) ORDER BY e.seq DESC LIMIT ?"
)
_NAMES: Final = "SELECT stream FROM streams LIMIT ?"
_ENDING: Final = "SELECT stream FROM streams WHERE type = ? ORDER BY seq LIMIT ?"


class Reader:
    """Owns one reading connection, for one thread at a time."""

    def __init__(self, path: Path, connection: apsw.Connection) -> None:
        self._path = path
        self._connection = connection

    def version(self, stream: str) -> int:
        """Return how many events a stream has."""
        return self._number(_VERSION, stream)

    def uses(self, key: str) -> int:
        """Return how often a key was consumed."""
        return self._number(_USES, key)

    def stream_names(self, limit: int) -> list[str]:
        """Return the names of at most `limit` streams, in no order."""
        return [str(row[0]) for row in self._rows(_NAMES, (limit,))]

    def streams_ending(self, event_type: str, limit: int) -> list[str]:
        """Return streams that end in this type, oldest first; an open claim counts as the end of its stream."""
        limit = _clamp(limit)
        if event_type == CLAIMED:
            return [str(row[0]) for row in self._rows(_ENDING_CLAIMED, (limit,))]
        return [str(row[0]) for row in self._rows(_ENDING, (event_type, limit))]

    def latest(self, prefix: str, before_seq: int, limit: int) -> list[tuple[str, int]]:
        """Return streams whose names begin so with the number of their last event, newest first."""
        found = self._rows(_LATEST, (before_seq, prefix, f"{prefix}\U0010ffff", _clamp(limit)))
        return [(str(stream), int(seq)) for stream, seq in found]

    def stream(self, stream: str, after_version: int, limit: int) -> list[Event]:
        """Return a page of a stream."""
        # Read first: rows committed in between make the stream longer than this, never shorter.
        length = self.version(stream)
        events, cut = self._page(_STREAM, (stream, after_version), limit, None)
        for event in events:
            after_version += 1
            if event.stream_version != after_version:
                raise damaged(self._path, f"version {after_version} of stream {stream} is missing", seq=event.seq)
        if not cut and 0 <= after_version < length:
            raise damaged(self._path, f"version {after_version + 1} of stream {stream} is missing")
        return events

    def log(self, after_seq: int, limit: int, head_seq: int) -> list[Event]:
        """Return a page of the whole log, its links checked; `head_seq` is a number the log is known to reach."""
        head = chain.EMPTY
        if after_seq > 0:
            before = next(self._rows(_HASH, (after_seq,)), None)
            if before is None:
                if after_seq <= head_seq:
                    raise damaged(self._path, f"sequence {after_seq} is missing")
                return []
            head = chain.Head(after_seq, str(before[0]))
        events, cut = self._page(LOG, (head.seq,), limit, head)
        last = events[-1].seq if events else head.seq
        if not cut and last < head_seq:
            raise damaged(self._path, f"sequence {last + 1} is missing")
        return events

    def copy_to(self, target: Path) -> None:
        """Write a closed copy of what is committed into an empty file."""
        with translated(target):
            self._connection.execute("VACUUM INTO ?", (str(target),))

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def _number(self, statement: str, name: str) -> int:
        found = next(self._rows(statement, (name,)), None)
        return 0 if found is None else int(found[0])

    def _page(
        self, statement: str, bindings: tuple[Any, ...], limit: int, head: chain.Head | None
    ) -> tuple[list[Event], bool]:
        """Return verified events, and whether the page ended before the rows did."""
        limit = _clamp(limit)
        left = limits.JOURNAL_READ_BYTES_MAX
        events: list[Event] = []
        for values in self._rows(statement, (*bindings, limit)):
            row = chain.Row(*values)
            if why := chain.fault(row, head):
                raise damaged(self._path, why, seq=row.seq)
            events.append(chain.event_of(row))
            head = None if head is None else chain.Head(row.seq, row.record_hash)
            left -= len(row.payload) + len(row.context)
            if left <= 0:
                return events, True
        return events, len(events) == limit

    def _rows(self, statement: str, bindings: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
        with translated(self._path):
            cursor = self._connection.execute(statement, bindings)
            try:
                yield from cursor
            finally:
                # Ends the read transaction: one left open would keep the write-ahead log from being reused.
                cursor.close(True)


def _clamp(limit: int) -> int:
    return max(0, min(limit, limits.JOURNAL_READ_EVENTS_MAX))
