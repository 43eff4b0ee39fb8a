"""The journal's files: where they are, who may have them, what marks them (spec §7).

Guarantees: one process at a time holds a journal for writing; a file that is not a journal, is of a newer format or of
another tier is refused before anything is written; a new journal appears under its name complete or not at all, so an
empty file in its place is damage and never a new beginning.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import secrets
import shlex
from pathlib import Path
from typing import Final

import apsw

from surehand import limits
from surehand.adapters.journal_sqlite.translate import translated
from surehand.core.appending import CLAIMED
from surehand.errors import JournalRecovery, SurehandError, Unavailable
from surehand.signing.private_files import check_private, open_private, private_directory, sync_directory

FORMAT: Final = "surehand-journal"
FORMAT_VERSION: Final = 1
TIER: Final = "plain"

MARKS: Final = {"format": FORMAT, "version": str(FORMAT_VERSION), "tier": TIER}

#: "SHJ1" in the header of the file, so that `file` and the auditor tell a journal from other databases.
APPLICATION_ID: Final = 0x53484A31

#: What a connection keeps of the file: the way down each index, and not the whole of a journal that is small yet.
_CACHE_KIB: Final = 512

#: SQLite before this could lose commits in WAL mode with several connections.
_SQLITE_MIN: Final = 3_051_003

# Streams with an open claim are what recovery looks for, so they have an index of their own.
_SCHEMA: Final = f"""
CREATE TABLE events(
  seq INTEGER PRIMARY KEY, event_id TEXT NOT NULL, stream TEXT NOT NULL, stream_version INTEGER NOT NULL,
  type TEXT NOT NULL, occurred_at TEXT NOT NULL, actor TEXT NOT NULL, context BLOB NOT NULL, payload BLOB NOT NULL,
  prev_hash TEXT NOT NULL, record_hash TEXT NOT NULL) STRICT;
CREATE UNIQUE INDEX events_by_stream ON events(stream, stream_version);
CREATE TABLE streams(
  stream TEXT PRIMARY KEY, version INTEGER NOT NULL, seq INTEGER NOT NULL, type TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE INDEX streams_claimed ON streams(seq) WHERE type = '{CLAIMED}';
CREATE TABLE uses(key TEXT PRIMARY KEY, count INTEGER NOT NULL, seq INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {FORMAT_VERSION};
"""


class Lease:
    """The right to write one journal, held by a lock that the kernel drops when the process dies."""

    def __init__(self, path: Path) -> None:
        self._stack = contextlib.ExitStack()
        descriptor = self._stack.enter_context(open_private(path, os.O_RDWR | os.O_CREAT))
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor, 32).decode("ascii", "replace").strip() or "unknown"
            self._stack.close()
            raise Unavailable(
                f"the journal is in use by process {holder}",
                fix="a daemon runs with another runtime folder: use its XDG_RUNTIME_DIR, or end it there with "
                "`surehand stop`; a folder of yours in SUREHAND_RUNTIME_DIR has a daemon and a journal of its own",
                details={"holder_pid": holder, "lock": str(path)},
            ) from None
        os.ftruncate(descriptor, 0)
        os.write(descriptor, b"%d\n" % os.getpid())

    def release(self) -> None:
        """Give the right back."""
        self._stack.close()


def prepare(path: Path, *, vfs: str | None) -> tuple[Path, Lease]:
    """Take the lease and make the journal where there is none; return its real path.

    Raises:
        PermissionMissing: a file or the directory is open to others or another user's.
        Unavailable: somebody else holds the journal, or the disk refuses.
        JournalRecovery: the SQLite library is too old to trust.
    """
    if apsw.SQLITE_VERSION_NUMBER < _SQLITE_MIN:
        raise JournalRecovery(
            f"SQLite {apsw.sqlite_lib_version()} can lose commits in WAL mode", fix="install apsw 3.51.3 or later"
        )
    path = private_directory(path.parent) / path.name
    lease = Lease(path.with_name(path.name + ".lock"))
    try:
        for suffix in ("-wal", "-shm"):
            check_private(path.with_name(path.name + suffix))
        if not check_private(path):
            _create(path, vfs)
    except BaseException:
        lease.release()
        raise
    return path, lease


def _create(path: Path, vfs: str | None) -> None:
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    with translated(path):
        os.close(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        try:
            connection = apsw.Connection(str(draft), vfs=vfs)
            with contextlib.closing(connection):
                connection.execute("BEGIN;" + _SCHEMA)
                connection.executemany("INSERT INTO meta VALUES (?, ?)", MARKS.items())
                connection.execute("COMMIT")
                connection.pragma("journal_mode", "WAL")
            os.link(draft, path, follow_symlinks=False)
        finally:
            draft.unlink()
        sync_directory(path.parent)


def connect(path: Path, *, write: bool, vfs: str | None) -> apsw.Connection:
    """Open a connection with the settings every connection of ours has."""
    access = apsw.SQLITE_OPEN_READWRITE if write else apsw.SQLITE_OPEN_READONLY
    with translated(path):
        connection = apsw.Connection(str(path), flags=access | apsw.SQLITE_OPEN_NOFOLLOW, vfs=vfs)
        connection.set_busy_timeout(limits.JOURNAL_BUSY_MS_MAX)
        settings: dict[str, str | int] = {
            "trusted_schema": 0,
            "cell_size_check": 1,
            "temp_store": "FILE",
            "cache_size": -_CACHE_KIB,
        }
        if write:
            settings.update(
                synchronous="FULL",  # each commit reaches the disk before it is acknowledged; NORMAL would not do that
                wal_autocheckpoint=limits.JOURNAL_CHECKPOINT_PAGES,
                journal_size_limit=limits.JOURNAL_WAL_BYTES_KEPT,
            )
        for name, value in settings.items():
            connection.pragma(name, value)
    return connection


def check_size(path: Path) -> None:
    """Refuse an empty file, which SQLite would take for a new database."""
    with translated(path):
        if path.stat().st_size == 0:
            raise _refused(path, "is empty: it was cut, or never was a journal")


def check_marks(path: Path, connection: apsw.Connection) -> None:
    """Refuse a file that is not a journal of this format and tier.

    Raises:
        JournalRecovery: it is foreign, newer, of another tier, or has another schema; nothing was written.
    """
    with translated(path):
        if connection.pragma("application_id") != APPLICATION_ID:
            raise _refused(path, "is a database, but not a journal of ours")
        if connection.pragma("user_version") != FORMAT_VERSION:
            raise _refused(path, f"has format {connection.pragma('user_version')}; this program knows {FORMAT_VERSION}")
        # A trigger or another column would make our statements do what they do not say.
        if _schema_of(connection) != _own_schema():
            raise _refused(path, "does not have the tables of a journal")
        marks = {str(key): str(value) for key, value in connection.execute("SELECT key, value FROM meta")}
    if marks.get("tier") != TIER:
        raise _refused(path, f"is of tier {marks.get('tier')!r}, this program was told {TIER!r}")
    if marks != MARKS:
        raise _refused(path, f"is marked {marks}, not {MARKS}")


def _schema_of(connection: apsw.Connection) -> list[tuple[object, ...]]:
    return list(connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name"))


@functools.cache
def _own_schema() -> list[tuple[object, ...]]:
    with contextlib.closing(apsw.Connection(":memory:")) as connection:
        connection.execute(_SCHEMA)
        return _schema_of(connection)


def _refused(path: Path, why: str) -> SurehandError:
    return JournalRecovery(
        f"{path} {why}",
        fix=f"move {shlex.quote(str(path))} away, with its -wal and -shm files, or name another journal",
    )
