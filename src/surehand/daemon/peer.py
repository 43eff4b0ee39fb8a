"""Who is at the other end of a socket, and whether that socket is for them.

The kernel says (SO_PEERCRED), at the moment of connecting; nothing the peer sends can change it.
"""

from __future__ import annotations

import os
import socket
import struct
from typing import Final, Literal

from surehand.errors import PermissionMissing
from surehand.model.record import Record

_UCRED: Final = struct.Struct("=iII")


class Peer(Record, frozen=True, kw_only=True):
    """A connected process as the kernel knows it. The pid is for people; it may be reused."""

    pid: int
    uid: int

    @property
    def principal(self) -> str:
        """The principal of an agent or a person on this socket: exactly one colon, so it is unambiguous in a key."""
        return f"uid:{self.uid}"


class Trust(Record, frozen=True, kw_only=True):
    """Which uids may use which socket. At level A both sets hold the daemon's own uid alone (spec §1)."""

    agent_uids: frozenset[int]
    approver_uids: frozenset[int]

    def admits(self, role: Literal["agent", "control"], uid: int) -> bool:
        """Tell whether a uid may use a role's socket. Root is not special here: it is admitted when it is listed."""
        return uid in (self.agent_uids if role == "agent" else self.approver_uids)

    def foreign(self, own_uid: int) -> bool:
        """Tell whether users other than the daemon's own must be able to reach a socket."""
        return bool((self.agent_uids | self.approver_uids) - {own_uid})


def trust_of(agent_uids: tuple[int, ...], approver_uids: tuple[int, ...]) -> Trust:
    """Return the trust that an operator's configuration means; an empty list means the daemon's own user."""
    own = (os.getuid(),)
    return Trust(agent_uids=frozenset(agent_uids or own), approver_uids=frozenset(approver_uids or own))


def peer_of(connected: socket.socket) -> Peer:
    """Return the credentials the kernel recorded when the peer connected."""
    raw = connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
    pid, uid, _ = _UCRED.unpack(raw)
    return Peer(pid=pid, uid=uid)


def check_peer(trust: Trust, role: Literal["agent", "control"], peer: Peer) -> None:
    """Refuse a uid that this socket is not for.

    Raises:
        PermissionMissing: naming the uid and who can change it.
    """
    if not trust.admits(role, peer.uid):
        setting = "agent_uids" if role == "agent" else "approver_uids"
        raise PermissionMissing(
            f"uid {peer.uid} may not use the {role} socket",
            fix=f"the operator can list it in `{setting}` of the daemon's configuration",
        )
