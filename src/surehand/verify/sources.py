"""Where records come from: a closed SQLite copy of a journal, or an export with one JSON object on a line.

A database is opened read-only and immutable: SQLite takes no lock and writes nothing, and whoever changes the file
meanwhile is told apart from nobody, which is why a journal in use is refused. A write-ahead log that a killed process
left behind belongs to the journal; both files are then copied into a private directory and read there.
"""

from __future__ import annotations

import contextlib
import fcntl
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final, Protocol
from urllib.parse import quote

from surehand.verify.records import EVENT_BYTES_MAX, Fault, Record, encode, read_canonical

_SQLITE_MAGIC: Final = b"SQLite format 3\x00"
_MARKS: Final = {"format": "surehand-journal", "version": "1", "tier": "plain"}
_APPLICATION_ID: Final = 0x53484A31  # "SHJ1"
_KINDS: Final = (int, str, str, int, str, str, str, bytes, bytes, str, str)
_COLUMNS: Final = frozenset(Record._fields)
_LINE_BYTES_MAX: Final = EVENT_BYTES_MAX + 2**16


class NotReadable(Exception):
    """The path is not something to verify; says why. A fault of the question, not of the evidence."""


class Source(Protocol):
    """Records in the order of the log."""

    description: str
    total: int | None

    def records(self) -> Iterator[Record]:
        """Yield records as stored.

        Raises:
            Fault: the source is damaged at this place.
        """

    def finish(self) -> None:
        """Check what the source states beside its records.

        Raises:
            Fault.
        """


@contextlib.contextmanager
def open_source(path: Path) -> Iterator[Source]:
    """Open a journal or an export.

    Raises:
        NotReadable: it is neither, or in use.
    """
    try:
        with path.open("rb") as file:
            start = file.read(len(_SQLITE_MAGIC))
    except OSError as error:
        raise NotReadable(f"{path}: {error.strerror}") from error
    if start == _SQLITE_MAGIC:
        with contextlib.ExitStack() as stack:
            yield SqliteSource(path, stack)
    elif start.startswith(b"{"):
        with path.open("rb") as file:
            yield LinesSource(path, file)
    elif not start:
        raise NotReadable(f"{path} is empty: neither a journal nor an export")
    else:
        raise NotReadable(f"{path} is neither a journal nor an export")


class SqliteSource:
    """A journal file that nobody has open."""

    def __init__(self, path: Path, stack: contextlib.ExitStack) -> None:
        _refuse_in_use(path)
        self.description = f"SQLite journal {path}, opened read-only and immutable"
        address = f"file:{quote(str(path.resolve()))}?mode=ro&immutable=1"
        wal = path.with_name(path.name + "-wal")
        if wal.exists() and wal.stat().st_size:
            copy = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="surehand-verify-"))) / "journal.db"
            shutil.copyfile(path, copy)
            shutil.copyfile(wal, copy.with_name("journal.db-wal"))
            self.description = f"SQLite journal {path}, read from a private copy with its write-ahead log"
            address = f"file:{quote(str(copy))}?mode=rw"
        self._connection = stack.enter_context(contextlib.closing(sqlite3.connect(address, uri=True)))
        self._connection.execute("PRAGMA trusted_schema = OFF")
        self.total: int | None = None
        try:
            self.total = self._connection.execute("SELECT max(seq) FROM events").fetchone()[0] or 0
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            # Damage is told by `records`, where it counts; only what never was a journal is told here.
            if "no such table" in str(error):
                raise NotReadable(f"{path} is a database, but not a journal") from error

    def records(self) -> Iterator[Record]:
        """Yield records as stored."""
        with _damage():
            self._check_marks()
            for (message,) in self._connection.execute("PRAGMA integrity_check(1)"):
                if message != "ok":
                    raise Fault(f"the file is damaged ({message})")
            rows = self._connection.execute(
                "SELECT seq, event_id, stream, stream_version, type, occurred_at, actor, context, payload, prev_hash,"
                " record_hash FROM events ORDER BY seq"
            )
            for row in rows:
                yield _checked(Record(*row))

    def _check_marks(self) -> None:
        marks = dict(self._connection.execute("SELECT key, value FROM meta"))
        header = [
            self._connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
        ]
        if marks != _MARKS or header != [_APPLICATION_ID, 1]:
            raise Fault(f"the marks of the file are not those of a journal of format 1, tier plain: {marks}")

    def finish(self) -> None:
        """Check the tables beside the events against them."""
        with _damage():
            for reason, statement in _TABLE_RULES.items():
                for (name,) in self._connection.execute(statement):
                    raise Fault(reason.format(name))


#: What each statement finds at most one row of. `json_each` reads what the events themselves state.
_TABLE_RULES: Final = {
    "the table of streams does not give the end of stream {}": """
        SELECT e.stream FROM events AS e
        JOIN (SELECT stream, max(stream_version) AS v FROM events GROUP BY stream) AS l
          ON l.stream = e.stream AND l.v = e.stream_version
        LEFT JOIN streams AS t ON t.stream = e.stream
        WHERE t.version IS NOT e.stream_version OR t.seq IS NOT e.seq OR t.type IS NOT CASE WHEN
          coalesce((SELECT max(stream_version) FROM events AS c
            WHERE c.stream = e.stream AND c.type = 'operation.claimed.v1'), 0)
          > coalesce((SELECT max(stream_version) FROM events AS s
            WHERE s.stream = e.stream AND s.type IN ('operation.released.v1', 'operation.terminal.v1')), 0)
          THEN 'operation.claimed.v1' ELSE e.type END LIMIT 1""",
    "the table of streams names {}, which has no event": """
        SELECT t.stream FROM streams AS t
        WHERE NOT EXISTS (SELECT 1 FROM events AS e WHERE e.stream = t.stream) LIMIT 1""",
    "the table of uses does not give the uses of {} that the events state": """
        WITH stated AS (
          SELECT u.key AS key, json_extract(u.value, '$.use') AS count, e.seq AS seq
          FROM events AS e, json_each(CAST(e.context AS TEXT), '$.consumed') AS u)
        SELECT s.key FROM stated AS s LEFT JOIN uses AS t ON t.key = s.key
        WHERE t.count IS NULL OR s.count > t.count OR (s.count = t.count) <> (s.seq = t.seq) LIMIT 1""",
    "the table of uses names {}, which no event states so": """
        SELECT t.key FROM uses AS t LEFT JOIN events AS e ON e.seq = t.seq
        WHERE e.seq IS NULL OR NOT EXISTS (
          SELECT 1 FROM json_each(CAST(e.context AS TEXT), '$.consumed') AS u
          WHERE u.key = t.key AND json_extract(u.value, '$.use') = t.count) LIMIT 1""",
}


class LinesSource:
    """An export: the canonical bytes of one whole event on each line."""

    def __init__(self, path: Path, file: IO[bytes]) -> None:
        self.description = f"JSON-lines export {path}"
        self.total: int | None = None
        self._file = file

    def records(self) -> Iterator[Record]:
        """Yield records as stored."""
        while line := self._file.readline(_LINE_BYTES_MAX + 1):
            if len(line) > _LINE_BYTES_MAX:
                raise Fault("a line is longer than any event")
            if not line.endswith(b"\n"):
                raise Fault("the last line is cut")
            value = read_canonical(line[:-1])
            if not isinstance(value, dict) or value.keys() != _COLUMNS:
                raise Fault("a line does not have the members of an event")
            value["context"], value["payload"] = encode(value["context"]), encode(value["payload"])
            yield _checked(Record(**value))

    def finish(self) -> None:
        """Check nothing: an export states nothing beside its records."""


def _refuse_in_use(path: Path) -> None:
    try:
        lock = path.with_name(path.name + ".lock").open("rb")
    except OSError:
        return  # a copy has no lock beside it
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = lock.read(32).decode("ascii", "replace").strip()
            raise NotReadable(f"{path} is in use by process {holder}: stop it, or verify a copy") from error


def _checked(record: Record) -> Record:
    if tuple(map(type, record)) != _KINDS:
        wrong = next(
            name for name, item, kind in zip(Record._fields, record, _KINDS, strict=True) if type(item) is not kind
        )
        raise Fault(f"{wrong} is not of its kind")
    return record


@contextlib.contextmanager
def _damage() -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise Fault(f"the file is damaged ({error})") from error
