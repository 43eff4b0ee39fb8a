"""The daemon's folders and sockets on disk: made private, checked before use, never through a symlink.

Guarantees:
- A folder is ours, 0700 (0711 where the operator admits other uids), and not a symlink, or the start is refused.
- A socket file is replaced only by the holder of the lease, and only if it is a socket of ours.
- At the end only the very file that was bound is removed (device and inode are compared).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import stat
import struct
import time
from pathlib import Path
from typing import Final

from surehand import limits
from surehand.core.wire.places import Places
from surehand.errors import PermissionMissing, Unavailable
from surehand.signing.private_files import private_directory

_PASSABLE_DIR: Final = 0o711
_PRIVATE_SOCKET: Final = 0o600
_OPEN_SOCKET: Final = 0o666
#: The kernel's form of an access control list (linux/posix_acl_xattr.h): version 2, then tag, rights, uid.
_ACL_NAME: Final = "system.posix_acl_access"
_ACL_HEAD: Final = struct.pack("<I", 2)
_ACL_ENTRY: Final = struct.Struct("<HHI")
_ACL_OWNER, _ACL_USER, _ACL_GROUP, _ACL_MASK, _ACL_OTHER = 0x01, 0x02, 0x04, 0x10, 0x20
_ACL_NOBODY: Final = 0xFFFFFFFF
_LEASE_POLL_S: Final = 0.02
_ELSEWHERE: Final = "set SUREHAND_RUNTIME_DIR to a folder of yours"


def prepare(places: Places, *, foreign: bool) -> None:
    """Make and check the runtime folder and the socket folder. `foreign`: other uids must reach the sockets.

    Raises:
        PermissionMissing, Unavailable: naming the folder and the fix.
    """
    make = _passable_directory if foreign else private_directory
    make(Path(places.runtime_dir))
    socket_dir = Path(places.socket_dir)
    if socket_dir != Path(places.runtime_dir):
        make(socket_dir.parent)
        make(socket_dir)


def _passable_directory(path: Path) -> Path:
    """Return a folder of ours that others may pass through and not list, made where it is missing."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            path.mkdir(mode=_PASSABLE_DIR)
            path.chmod(_PASSABLE_DIR)  # whatever the umask made of it
        facts = path.lstat()
    except OSError as error:
        raise Unavailable(f"the directory {path} cannot be used: {error.strerror}", fix=_ELSEWHERE) from error
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.getuid() or stat.S_IMODE(facts.st_mode) & ~_PASSABLE_DIR:
        raise PermissionMissing(f"{path} is not a directory of ours with mode {_PASSABLE_DIR:o}", fix=_ELSEWHERE)
    return path


class Lease:
    """The right to be the one daemon of a runtime folder; the kernel ends it with the process."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    def take(cls, path: str, *, wait_ms: int = limits.LEASE_WAIT_MS_MAX) -> Lease:
        """Take the lease, waiting for a daemon that is just ending.

        Raises:
            Unavailable: another daemon holds it; `details` names its pid.
        """
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        end = time.monotonic() + wait_ms / 1000
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= end:
                    holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
                    os.close(descriptor)
                    raise Unavailable(
                        "a daemon already runs for this folder",
                        fix="use it, or end it with `surehand stop`",
                        details={"pid": holder},
                    ) from None
                time.sleep(_LEASE_POLL_S)
                continue
            break
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode("ascii"), 0)
        return cls(descriptor)

    def release(self) -> None:
        """Let the next daemon in. The file stays: removing it would let two processes lock two files."""
        os.close(self._descriptor)


class Listening:
    """A bound, listening socket and the identity of its file."""

    def __init__(self, path: str, bound: socket.socket) -> None:
        self.path = path
        self.socket = bound
        facts = os.lstat(path)
        self._identity = (facts.st_dev, facts.st_ino)

    def remove(self) -> None:
        """Remove the socket's file if it is still the one we made."""
        with contextlib.suppress(FileNotFoundError):
            facts = os.lstat(self.path)
            if (facts.st_dev, facts.st_ino) == self._identity:
                Path(self.path).unlink()


def listen(path: str, _lease: Lease, *, foreign: bool, backlog: int, uids: frozenset[int] = frozenset()) -> Listening:
    """Bind and listen at `path`, replacing what a dead daemon left. Takes the lease as proof that we may.

    Args:
        path: Where.
        foreign: Whether other uids must reach a socket of this daemon.
        backlog: How many may wait to be taken in.
        uids: Which ones must reach this socket; any, where none is named. The kernel keeps all others out where the
            file system has access control lists; elsewhere they may connect, and are told that it is not for them.

    Raises:
        PermissionMissing: something else than a socket of ours is there.
    """
    with contextlib.suppress(FileNotFoundError):
        facts = os.lstat(path)
        if not stat.S_ISSOCK(facts.st_mode) or facts.st_uid != os.getuid():
            raise PermissionMissing(f"{path} is not a socket of ours", fix=f"look at what made it, then remove {path}")
        Path(path).unlink()
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    before = os.umask(0o177)
    try:
        bound.bind(path)
    except OSError:
        bound.close()
        raise
    finally:
        os.umask(before)
    if not foreign:
        Path(path).chmod(_PRIVATE_SOCKET)
    elif not uids or not _open_to(path, uids - {os.getuid()}):
        Path(path).chmod(_OPEN_SOCKET)
    bound.listen(backlog)
    bound.setblocking(False)
    return Listening(path, bound)


def _open_to(path: str, uids: frozenset[int]) -> bool:
    """Open a file of ours to these users and nobody else; false where the file system cannot."""
    read_write, nothing = 6, 0
    entries = [(_ACL_OWNER, read_write, _ACL_NOBODY)]
    entries += [(_ACL_USER, read_write, uid) for uid in sorted(uids)]
    entries += [(_ACL_GROUP, nothing, _ACL_NOBODY), (_ACL_MASK, read_write, _ACL_NOBODY)]
    entries.append((_ACL_OTHER, nothing, _ACL_NOBODY))
    try:
        os.setxattr(path, _ACL_NAME, _ACL_HEAD + b"".join(_ACL_ENTRY.pack(*entry) for entry in entries))
    except OSError:
        return False
    return True
