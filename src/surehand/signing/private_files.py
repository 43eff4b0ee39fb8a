"""Files and directories that only their owner may touch: made so, and checked at each opening.

Guarantees: nothing is read from or written to a file whose owner, kind or mode would let somebody else read or swap
it; a symbolic link in the place of a file or its directory is refused, not followed; a new file appears whole or not
at all. What is wrong is never repaired silently: a key that others could read may have been read.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shlex
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from surehand.errors import PermissionMissing, TooLarge, Unavailable

DIRECTORY_MODE: Final = 0o700
FILE_MODE: Final = 0o600
_OTHERS: Final = 0o077
_OTHERS_WRITE: Final = 0o022


def private_directory(path: Path, *, create: bool = True) -> Path:
    """Return the real path of a directory that is ours alone, made with mode 0700 where it is missing.

    Raises:
        PermissionMissing: it is a symbolic link, not a directory, another user's, or open to others; names the fix.
        Unavailable: it is missing and `create` is false, or cannot be made.
    """
    try:
        if create:
            _make(path)
        found = path.lstat()
    except OSError as error:
        raise Unavailable(f"the directory {path} cannot be used: {error.strerror}") from error
    if not stat.S_ISDIR(found.st_mode):
        raise PermissionMissing(
            f"{path} is not a directory", fix=f"move {shlex.quote(str(path))} away and make a directory in its place"
        )
    _check_ours(path, found, DIRECTORY_MODE)
    return path.resolve()


def _make(path: Path) -> None:
    """Make a directory and what is missing above it, all for us alone; what is above may be checked next."""
    if not path.parent.exists():
        _make(path.parent)
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=DIRECTORY_MODE)


def check_private(path: Path) -> bool:
    """Return whether the file exists; if it does it is a regular file of ours that nobody else may open.

    Raises:
        PermissionMissing: naming what is wrong and the fix.
    """
    try:
        found = path.lstat()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise Unavailable(f"{path} cannot be looked at: {error.strerror}") from error
    _check_file(path, found)
    return True


@contextlib.contextmanager
def open_private(path: Path, flags: int = os.O_RDONLY) -> Iterator[int]:
    """Open a file of ours and check the opened file itself, so that no swap in between is missed; yields a descriptor.

    With `os.O_CREAT` a missing file is made with mode 0600.

    Raises:
        PermissionMissing, Unavailable.
    """
    try:
        descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, FILE_MODE)
    except OSError as error:
        check_private(path)  # a symbolic link or a foreign file is the better answer where it is the cause
        raise Unavailable(f"{path} cannot be opened: {error.strerror}") from error
    try:
        _check_file(path, os.fstat(descriptor))
        yield descriptor
    finally:
        os.close(descriptor)


def read_private(path: Path, bytes_max: int) -> bytes:
    """Return the content of a file of ours that nobody else may open.

    Raises:
        PermissionMissing, Unavailable, TooLarge.
    """
    with open_private(path) as descriptor:
        return _read_all(path, descriptor, bytes_max)


def read_trusted(path: Path, bytes_max: int) -> bytes:
    """Return the content of a file that nobody but us or root may change; others may read it.

    Raises:
        PermissionMissing, Unavailable, TooLarge.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise Unavailable(f"{path} cannot be opened: {error.strerror}", fix="put the file itself there") from error
    try:
        found = os.fstat(descriptor)
        name = shlex.quote(str(path))
        if not stat.S_ISREG(found.st_mode):
            raise PermissionMissing(f"{path} is not a regular file", fix=f"put the file itself at {name}")
        if found.st_uid not in {0, os.geteuid()}:
            raise PermissionMissing(f"{path} belongs to uid {found.st_uid}", fix=f"sudo chown {os.geteuid()} {name}")
        if found.st_mode & _OTHERS_WRITE:
            raise PermissionMissing(f"others may change {path}", fix=f"chmod go-w {name}, and look at what it says")
        return _read_all(path, descriptor, bytes_max)
    finally:
        os.close(descriptor)


def _read_all(path: Path, descriptor: int, bytes_max: int) -> bytes:
    parts = []
    left = bytes_max + 1
    while left and (part := os.read(descriptor, left)):
        parts.append(part)
        left -= len(part)
    data = b"".join(parts)
    if len(data) > bytes_max:
        raise TooLarge(f"{path} has more than {bytes_max} bytes")
    return data


def create_private(path: Path, data: bytes) -> bool:
    """Make a file with this content, durably, unless one is there; return whether it was made here.

    Of several processes that race exactly one gets true; all find the same content afterwards.

    Raises:
        Unavailable: the file system refuses.
    """
    try:
        draft = _draft(path, data)
        try:
            # A link, unlike a rename, fails when the name is taken.
            os.link(draft, path, follow_symlinks=False)
        except FileExistsError:
            return False
        finally:
            draft.unlink()
        sync_directory(path.parent)
    except OSError as error:
        raise Unavailable(f"{path} cannot be written: {error.strerror}") from error
    return True


def replace_private(path: Path, data: bytes) -> None:
    """Give a file this content, durably and at once: whoever reads finds the old content or the new, whole.

    Raises:
        Unavailable: the file system refuses.
    """
    try:
        _draft(path, data).replace(path)
        sync_directory(path.parent)
    except OSError as error:
        raise Unavailable(f"{path} cannot be written: {error.strerror}") from error


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _draft(path: Path, data: bytes) -> Path:
    """Write the content durably under a name of its own beside the file; nothing is left of one that fails."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, FILE_MODE)
    try:
        _write_all(descriptor, data)
        os.fsync(descriptor)
    except BaseException:
        draft.unlink()
        raise
    finally:
        os.close(descriptor)
    return draft


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _check_file(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        kind = "a symbolic link" if stat.S_ISLNK(found.st_mode) else "not a regular file"
        raise PermissionMissing(f"{path} is {kind}", fix=f"put the file itself at {shlex.quote(str(path))}")
    _check_ours(path, found, FILE_MODE)


def _check_ours(path: Path, found: os.stat_result, mode: int) -> None:
    name = shlex.quote(str(path))
    if found.st_uid != os.geteuid():
        raise PermissionMissing(
            f"{path} belongs to uid {found.st_uid}, not to {os.geteuid()}", fix=f"sudo chown {os.geteuid()} {name}"
        )
    if found.st_mode & _OTHERS:
        raise PermissionMissing(
            f"{path} has mode {stat.S_IMODE(found.st_mode):04o}, which lets others in",
            fix=f"chmod {mode:04o} {name}, and replace it if it holds a key",
        )
