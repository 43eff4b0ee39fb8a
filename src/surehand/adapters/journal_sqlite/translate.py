"""The one place where errors of SQLite and of the file system become ours."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import apsw

from surehand.errors import CommitUnknown, JournalRecovery, SurehandError, Unavailable

_DAMAGE: Final = (
    apsw.CorruptError,
    apsw.NotADBError,
    apsw.ConstraintError,
    apsw.FormatError,
    apsw.SchemaChangeError,
    apsw.SQLError,  # our statements are fixed: one that fails met another schema
    UnicodeDecodeError,
)


def translate(path: Path, error: apsw.Error | OSError | UnicodeDecodeError) -> SurehandError:
    """Return our error for one that came before a commit was asked for: nothing was written."""
    if isinstance(error, _DAMAGE):
        return damaged(path, f"the file is damaged ({error})")
    if isinstance(error, apsw.FullError):
        return Unavailable(f"the disk of {path} is full; nothing was written", fix="free some space")
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return Unavailable(f"another program holds a lock on {path}; nothing was written", fix="close that program")
    if isinstance(error, apsw.ReadOnlyError):
        return Unavailable(f"{path} is on a read-only file system", fix="mount it for writing")
    return Unavailable(
        f"{path} cannot be used: {error}; nothing was written", fix="look at the disk and its free space"
    )


def damaged(path: Path, why: str, *, seq: int | None = None) -> JournalRecovery:
    """Return the error of a journal that cannot be trusted as it is."""
    name = shlex.quote(str(path))
    return JournalRecovery(
        why if seq is None else f"event {seq}: {why}",
        fix=f"the journal is read-only: run `surehand-verify {name}`, keep the file, and start with another journal",
        details={"path": str(path)} if seq is None else {"path": str(path), "seq": seq},
    )


def commit_unknown(path: Path, error: apsw.Error) -> CommitUnknown:
    """Return our error for a commit whose answer is not known."""
    return CommitUnknown(
        f"the commit was asked for and its answer lost ({error})",
        fix=f"look at the disk of {path}, then start again: what was written is settled when the journal is opened",
    )


@contextlib.contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turn errors of SQLite and of the file system into ours."""
    try:
        yield
    except (apsw.Error, OSError, UnicodeDecodeError) as error:
        raise translate(path, error) from error
