"""What the store checks of itself before the first append (spec §7).

A short log is verified whole. A long one is verified at its end only, so that a start costs the same however long the
log is; what lies before is verified as it is read, and whole by `surehand-verify`. Memory does not grow with the log.

The tables beside the events are indexes of them, written in the same transactions, and are compared with the events.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import apsw
import orjson

from surehand import limits
from surehand.adapters.journal_sqlite.reading import LOG
from surehand.adapters.journal_sqlite.translate import damaged, translated
from surehand.core import chain
from surehand.errors import JournalRecovery

#: What each statement finds at most one row of, and what that row means.
_WHOLE_LOG: Final = {
    "the versions of stream {} are out of order": """
        SELECT stream FROM (
          SELECT stream, seq, lag(seq) OVER (PARTITION BY stream ORDER BY stream_version) AS before FROM events
        ) WHERE before >= seq LIMIT 1""",
    "the events of stream {} are not as many as its length on record": """
        SELECT e.stream FROM (
          SELECT stream, count(*) AS n, max(stream_version) AS v, max(seq) AS s FROM events GROUP BY stream
        ) AS e LEFT JOIN streams AS t ON t.stream = e.stream
        WHERE t.stream IS NULL OR e.n <> e.v OR t.version <> e.v OR t.seq <> e.s LIMIT 1""",
    "stream {} does not end as on record": """
        SELECT t.stream FROM streams AS t LEFT JOIN events AS e ON e.seq = t.seq
        WHERE e.stream IS NOT t.stream OR e.stream_version <> t.version OR t.type <> CASE WHEN
          coalesce((SELECT max(stream_version) FROM events AS c
            WHERE c.stream = t.stream AND c.type = 'operation.claimed.v1'), 0)
          > coalesce((SELECT max(stream_version) FROM events AS s
            WHERE s.stream = t.stream AND s.type IN ('operation.released.v1', 'operation.terminal.v1')), 0)
          THEN 'operation.claimed.v1' ELSE e.type END LIMIT 1""",
}


class Verification(NamedTuple):
    """What was verified at the start."""

    path: Literal["empty", "full", "tail"]
    events: int
    ms: int
    #: The end of the log; of a journal with a fault, the last record before it.
    head: chain.Head
    fault: JournalRecovery | None


def verify(path: Path, connection: apsw.Connection, mode: Literal["auto", "full", "tail"]) -> Verification:
    """Verify a journal and return what was done, and the first fault if there is one."""
    started = time.monotonic_ns()
    kind: Literal["empty", "full", "tail"] = "full"
    count = 0
    head = chain.EMPTY
    fault: JournalRecovery | None = None
    try:
        with translated(path):
            last = next(iter(connection.execute("SELECT max(seq) FROM events")))[0] or 0
            kind = _kind(int(last), mode)
            after = max(0, int(last) - limits.JOURNAL_VERIFY_START_EVENTS) if kind == "tail" else 0
            if kind != "tail":
                _check_file(path, connection)
            uses = _Uses(path, connection)
            for row in _checked_rows(path, connection, after):
                uses.see(row)
                count += 1
                head = chain.Head(row.seq, row.record_hash)
            if kind != "tail":
                uses.finish()
                _check_tables(path, connection)
    except JournalRecovery as error:
        fault = error
    return Verification(kind, count, (time.monotonic_ns() - started) // 1_000_000, head, fault)


def _kind(last: int, mode: Literal["auto", "full", "tail"]) -> Literal["empty", "full", "tail"]:
    if last == 0:
        return "empty"
    if mode == "auto":
        return "full" if last <= limits.JOURNAL_VERIFY_START_EVENTS else "tail"
    return mode


def _check_file(path: Path, connection: apsw.Connection) -> None:
    # Finds damaged pages, and index entries that do not fit their rows.
    for (message,) in connection.execute("PRAGMA integrity_check(1)"):
        if message != "ok":
            raise damaged(path, f"the file is damaged ({message})")


def _checked_rows(path: Path, connection: apsw.Connection, after: int) -> Iterator[chain.Row]:
    head = chain.EMPTY
    if after:
        before = next(iter(connection.execute("SELECT record_hash FROM events WHERE seq = ?", (after,))), None)
        if before is None:
            raise damaged(path, f"sequence {after} is missing")
        head = chain.Head(after, str(before[0]))
    for values in connection.execute(LOG, (after, -1)):
        row = chain.Row(*values)
        if why := chain.fault(row, head):
            raise damaged(path, why, seq=row.seq)
        head = chain.Head(row.seq, row.record_hash)
        yield row


def _check_tables(path: Path, connection: apsw.Connection) -> None:
    for meaning, statement in _WHOLE_LOG.items():
        for (name,) in connection.execute(statement):
            raise damaged(path, meaning.format(name))


class _Uses:
    """Compares the counts on record with the uses that the events state."""

    def __init__(self, path: Path, connection: apsw.Connection) -> None:
        self._path = path
        self._connection = connection
        self._total = 0
        self._first = 0

    def see(self, row: chain.Row) -> None:
        # Most events consume nothing; looking for the word first spares reading their contexts.
        if chain.CONSUMED.encode() not in row.context:
            return
        consumed: dict[str, dict[str, Any]] = orjson.loads(row.context).get(chain.CONSUMED, {})
        for key, stated in consumed.items():
            self._compare(row.seq, key, int(stated["use"]))

    def _compare(self, seq: int, key: str, use: int) -> None:
        self._total += 1
        self._first += use == 1
        found = next(iter(self._connection.execute("SELECT count, seq FROM uses WHERE key = ?", (key,))), None)
        count, last = (0, 0) if found is None else (int(found[0]), int(found[1]))
        if use > count or (use == count) != (seq == last):
            raise damaged(self._path, f"the uses of {key} are not as on record", seq=seq)

    def finish(self) -> None:
        rows = self._connection.execute("SELECT count(*), coalesce(sum(count), 0) FROM uses")
        if next(iter(rows)) != (self._first, self._total):
            raise damaged(self._path, "the uses on record are not those that the events state")
