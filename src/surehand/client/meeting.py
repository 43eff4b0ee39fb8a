"""Finding the daemon's socket, and making sure that it is the daemon's.

Guarantees: a socket in a folder that others could have swapped is not used; the process that answers runs as the
owner of the folder or as root; a missing daemon is started only in a folder of our own.
"""

from __future__ import annotations

import os
import socket
import stat
import struct
from typing import Final

from surehand.client.starting import start_daemon
from surehand.client.wire import Role
from surehand.core.wire.places import Places
from surehand.errors import PermissionMissing, Unavailable

_UCRED: Final = struct.Struct("=iII")
_CONNECT_S: Final = 5.0


def meet(places: Places, role: Role, *, start: bool) -> socket.socket:
    """Return a connected socket; starts the daemon first where `start` is true and none answers.

    Raises:
        Unavailable: nobody answers, or the daemon could not be started; the log's end is in `details`.
        PermissionMissing: the folder or the answering process is not to be trusted.
    """
    path = places.agent_socket if role == "agent" else places.control_socket
    found = _connect(places, path)
    if found is None and start:
        start_daemon(places, lambda: _answers(places))
        found = _connect(places, path)
    if found is None:
        raise Unavailable(
            "no daemon answers",
            fix="start it with `surehand serve`; commands that look or act start one by themselves",
            details={"runtime_dir": places.runtime_dir},
        )
    return found


def _answers(places: Places) -> bool:
    found = _connect(places, places.agent_socket)
    if found is None:
        return False
    found.close()
    return True


def _connect(places: Places, path: str) -> socket.socket | None:
    owner = _check_folder(places.socket_dir)
    if owner is None:
        return None
    found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    found.settimeout(_CONNECT_S)
    try:
        found.connect(path)
        _check_peer(found, owner, path)
    except (FileNotFoundError, ConnectionRefusedError):
        found.close()
        return None
    except TimeoutError as error:
        found.close()
        raise Unavailable("the daemon takes no connections", fix="`surehand stop`, then try again") from error
    except OSError as error:
        found.close()
        raise PermissionMissing(f"{path}: {error.strerror}", fix="ask the daemon's operator for access") from error
    except BaseException:
        found.close()
        raise
    return found


def _check_folder(path: str) -> int | None:
    """Return the owner of a folder nobody else can write, or None where it is missing."""
    try:
        facts = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    loose = facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    if not stat.S_ISDIR(facts.st_mode) or loose:
        raise PermissionMissing(f"{path} is not a folder that only its owner can write", fix=f"look at who made {path}")
    return facts.st_uid


def _check_peer(connected: socket.socket, owner: int, path: str) -> None:
    raw = connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
    _, uid, _ = _UCRED.unpack(raw)
    if uid not in {owner, 0}:
        raise PermissionMissing(f"the process behind {path} is neither the folder's owner nor root")
