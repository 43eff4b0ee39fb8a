"""The daemon's life: one instance, two sockets, an orderly end.

Guarantees:
- One daemon per runtime folder: the lease is held from before the sockets exist until after they are gone.
- SIGTERM and SIGINT stop new connections at once, give calls in flight `DAEMON_DRAIN_MS_MAX`, then cancel them.
- The host is closed after the last channel, whatever happens.
- The process cannot be dumped or traced by its own user's other programs (PR_SET_DUMPABLE 0).
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import logging
import os
import resource
import signal
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from surehand import limits
from surehand.core.wire.places import Places
from surehand.daemon.connection import Connection, Role
from surehand.daemon.facade import Host
from surehand.daemon.paths import Lease, Listening, listen, prepare
from surehand.daemon.peer import Trust
from surehand.errors import Unavailable

_log: Final = logging.getLogger("surehand.daemon")
_PR_SET_DUMPABLE: Final = 4
_M_MMAP_THRESHOLD: Final = -3
_CONNECTIONS_MAX: Final[dict[str, int]] = {
    "agent": limits.CONNECTIONS_MAX,
    "control": limits.CONTROL_CONNECTIONS_MAX,
}


def harden() -> None:
    """Keep other programs of the same user from reading this process's memory, and make no core files."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_DUMPABLE) failed")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.umask(0o077)


def return_memory() -> None:
    """Have the C library give large blocks back to the system as soon as they are free.

    By itself it moves the size from which it does so up to the largest block it ever freed. From then on trees and
    replies lie between small things that stay, and the heap grows with every operation by what fits nowhere.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:  # other C libraries have other allocators, which need no such word
        mallopt(_M_MMAP_THRESHOLD, limits.HEAP_BLOCK_BYTES_MAX)


def collect_rarely() -> None:
    """Have the collector of cycles look less often, and never again at what is there now.

    What the path makes goes when its last name goes, and makes no cycles. By itself the collector still looks through
    all that is in hand once for every few operations that come together.
    """
    gc.freeze()
    gc.set_threshold(limits.GARBAGE_OBJECTS_MAX)


class Server:
    """Accepts on both sockets until told to stop or idle for long enough."""

    def __init__(self, host: Host, trust: Trust, *, idle_exit_s: float = 0) -> None:
        self.host = host
        self.trust = trust
        self.version = _version()
        self.sockets = 0
        self._idle_exit_s = idle_exit_s
        self._connections: dict[Role, set[Connection]] = {"agent": set(), "control": set()}
        self._idle: asyncio.TimerHandle | None = None
        self._stopping = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()

    @property
    def ending(self) -> bool:
        """True once nothing new is begun."""
        return self._stopping.is_set()

    def admit(self, connection: Connection) -> None:
        """Count a connection.

        Raises:
            Unavailable: its socket already has as many as it may, or the daemon is ending.
        """
        if self.ending:
            raise Unavailable("the daemon is ending", fix="connect again")
        group = self._connections[connection.role]
        most = _CONNECTIONS_MAX[connection.role]
        if len(group) >= most:
            raise Unavailable(f"{most} connections are open, which is the limit", fix="close one, then connect again")
        group.add(connection)
        self._empty.clear()
        self._stop_idle()

    def gone(self, connection: Connection) -> None:
        """Forget a connection; the last one starts the idle clock."""
        self._connections[connection.role].discard(connection)
        if not any(self._connections.values()):
            self._empty.set()
            self._start_idle()

    def stop(self) -> None:
        """Begin the orderly end."""
        self._stopping.set()

    async def run(self, agent: Listening, control: Listening, ready: Callable[[], None]) -> None:
        """Serve until stopped; calls `ready` once both sockets accept."""
        loop = asyncio.get_running_loop()
        servers = []
        listening: tuple[tuple[Role, Listening], ...] = (("agent", agent), ("control", control))
        for role, place in listening:
            servers.append(await loop.create_unix_server(self._factory(role), sock=place.socket))
        self._start_idle()
        ready()
        await self._stopping.wait()
        for server in servers:
            server.close()
        # Gone at once: whoever finds the lease held and no socket knows that it will be free in a moment.
        for _, place in listening:
            place.remove()
        await self._drain()

    def _factory(self, role: Role) -> Callable[[], Connection]:
        return lambda: Connection(self, role)

    def _stop_idle(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None

    def _start_idle(self) -> None:
        self._stop_idle()
        if self._idle_exit_s > 0 and not self._stopping.is_set():
            self._idle = asyncio.get_running_loop().call_later(self._idle_exit_s, self.stop)

    async def _drain(self) -> None:
        """Close idle connections at once, the others when their calls end or the time is over."""
        self._stop_idle()
        loop = asyncio.get_running_loop()
        end = loop.time() + limits.DAEMON_DRAIN_MS_MAX / 1000
        while calls := [call for connection in self._all() for call in connection.calls]:
            for connection in self._all():
                if not connection.calls:
                    connection.close()
            if loop.time() >= end:
                break
            await asyncio.wait(calls, timeout=end - loop.time(), return_when=asyncio.FIRST_COMPLETED)
        for connection in self._all():
            connection.close()
        # What was dispatched and still runs is left to the journal: at the next start it is outcome_unknown.
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._empty.wait(), limits.DAEMON_DRAIN_MS_MAX / 1000)

    def _all(self) -> list[Connection]:
        return [connection for group in self._connections.values() for connection in group]


async def serve(
    host: Host,
    places: Places,
    trust: Trust,
    *,
    idle_exit_s: float = 0,
    ready: Callable[[], None] = lambda: None,
    lease: Lease | None = None,
) -> None:
    """Serve a host at `places` until SIGTERM, SIGINT or idleness; closes the host.

    Args:
        host: The runtime; closed before this returns.
        places: Where the sockets go.
        trust: Which uids may use which socket.
        idle_exit_s: End after this many seconds without a connection; 0 means never.
        ready: Called once both sockets accept.
        lease: A lease already held; else it is taken here.

    Raises:
        Unavailable: another daemon holds the lease.
        PermissionMissing: a folder or socket path is not safe to use.
    """
    foreign = trust.foreign(os.getuid())
    listening: list[Listening] = []
    held = lease
    try:
        prepare(places, foreign=foreign)
        if held is None:
            held = await asyncio.to_thread(Lease.take, places.lease)
        for path, uids in ((places.agent_socket, trust.agent_uids), (places.control_socket, trust.approver_uids)):
            # One by one, so that the first is removed again when the second is refused.
            listening.append(listen(path, held, foreign=foreign, backlog=limits.CONNECTIONS_MAX, uids=uids))
        server = Server(host, trust, idle_exit_s=idle_exit_s)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, server.stop)
        try:
            await server.run(listening[0], listening[1], ready)
        finally:
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(number)
    finally:
        for place in listening:
            place.remove()
            place.socket.close()
        await host.close()
        if held is not None:
            held.release()


def _version() -> str:
    try:
        return version("surehand")
    except PackageNotFoundError:  # run from a source tree that was never installed
        return "unknown"
