"""Who is at the other end of a connection on this machine, as the kernel knows.

Guarantees: a user is told only from the kernel's own table of connections; what cannot be found is nobody. The process
is looked for among those that this user may look into, and is unknown where it hides.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

_PROC: Final = Path("/proc")
_MAPPED: Final = b"\x00" * 10 + b"\xff" * 2
#: Columns of the kernel's table.
_LOCAL, _REMOTE, _UID, _INODE = 1, 2, 7, 9


class Address(NamedTuple):
    """One end of a connection."""

    host: str
    port: int


class Peer(NamedTuple):
    """A connected process: its user, and what names its socket to the kernel."""

    uid: int
    inode: int


def peer_of(theirs: Address, ours: Address) -> Peer | None:
    """Return who holds the other end of a TCP connection of this machine; None where the kernel knows of none."""
    for table, mapped in (("tcp", False), ("tcp6", False), ("tcp6", True)):
        local, remote = _spelled(theirs, mapped=mapped), _spelled(ours, mapped=mapped)
        if local is None or remote is None:
            continue
        try:
            lines = (_PROC / "net" / table).read_text("ascii").splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            columns = line.split()
            if (columns[_LOCAL], columns[_REMOTE]) == (local, remote):
                # Of a socket that its process has closed the kernel tells no user: it calls every such one root's.
                found = Peer(int(columns[_UID]), int(columns[_INODE]))
                return found if found.inode else None
    return None


def _spelled(address: Address, *, mapped: bool) -> str | None:
    """Return an address as the kernel's tables have it: words of four bytes in the machine's order."""
    six = ":" in address.host
    if six and mapped:
        return None
    packed = socket.inet_pton(socket.AF_INET6 if six else socket.AF_INET, address.host)
    packed = _MAPPED + packed if mapped else packed
    words = [packed[place : place + 4] for place in range(0, len(packed), 4)]
    ordered = words if sys.byteorder == "big" else [word[::-1] for word in words]
    return f"{b''.join(ordered).hex().upper()}:{address.port:04X}"


def process_of(peer: Peer, likely: Iterable[int] = ()) -> int | None:
    """Return the process that holds a peer's socket; those that held one before are looked at first."""
    wanted = f"socket:[{peer.inode}]"
    first = list(likely)
    if (found := _holder(first, wanted)) is not None:
        return found
    others = (int(name) for name in os.listdir(_PROC) if name.isdecimal() and int(name) not in first)  # noqa: PTH208
    return _holder(others, wanted)


def _holder(pids: Iterable[int], wanted: str) -> int | None:
    for pid in pids:
        folder = f"/proc/{pid}/fd"
        try:
            names = os.listdir(folder)  # noqa: PTH208 - thousands of them
        except OSError:
            continue
        for name in names:
            try:
                if os.readlink(f"{folder}/{name}") == wanted:  # noqa: PTH115 - the same
                    return pid
            except OSError:
                continue
    return None
