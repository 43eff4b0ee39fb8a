"""A host that is scripted by the test, and a server around it on real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import struct
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from surehand.core.wire.places import Places, places_in
from surehand.daemon.paths import Lease, listen, prepare
from surehand.daemon.peer import Trust, trust_of
from surehand.daemon.server import Server

NONCE = "ab" * 32


@dataclass
class FakeChannel:
    session: str
    principal: str
    role: str
    client: dict[str, str]
    desktop: str | None
    trust_level: str = "A"
    authority_mode: str = "daemon"
    journal: str = "one"


@dataclass
class FakeHost:
    """Answers from `script`: method → async function(channel, params, progress)."""

    script: dict[str, Callable[..., Any]] = field(default_factory=dict)
    opened: list[FakeChannel] = field(default_factory=list)
    journal: str = "one"
    closed: list[FakeChannel] = field(default_factory=list)
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    ended: int = 0
    refuse_open: Exception | None = None
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def _tell(self) -> None:
        async with self.changed:
            self.changed.notify_all()

    async def open_channel(
        self, *, principal: str, role: str, client: dict[str, str], desktop: str | None
    ) -> FakeChannel:
        if self.refuse_open is not None:
            raise self.refuse_open
        channel = FakeChannel(f"session-{len(self.opened)}", principal, role, client, desktop, journal=self.journal)
        self.opened.append(channel)
        return channel

    async def call(
        self, channel: FakeChannel, method: str, params: dict[str, Any], *, progress: Any = None
    ) -> dict[str, Any]:
        self.calls.append((method, params))
        await self._tell()
        if method not in self.script:
            return {"method": method, "params": params, "session": channel.session}
        try:
            return await self.script[method](channel, params, progress)
        except asyncio.CancelledError:
            self.cancelled.append(method)
            raise

    async def close_channel(self, channel: FakeChannel) -> None:
        self.closed.append(channel)
        await self._tell()

    async def close(self) -> None:
        self.ended += 1

    async def until(self, fact: Callable[[], bool], seconds: float = 5) -> None:
        """Wait until a fact about this host holds."""
        async with asyncio.timeout(seconds), self.changed:
            await self.changed.wait_for(fact)


async def forever(*_: Any) -> dict[str, Any]:
    await asyncio.Event().wait()
    return {}


@dataclass
class Running:
    host: FakeHost
    places: Places
    server: Server
    loop: asyncio.AbstractEventLoop


@contextlib.asynccontextmanager
async def running(
    folder: Path, host: FakeHost | None = None, trust: Trust | None = None, idle_exit_s: float = 0
) -> AsyncIterator[Running]:
    """A server on real sockets in this loop."""
    host = host or FakeHost()
    places = places_in(str(folder / "run"), os.getuid())
    trust = trust or trust_of((), ())
    foreign = trust.foreign(os.getuid())
    prepare(places, foreign=foreign)
    lease = Lease.take(places.lease)
    agent, control = (
        listen(p, lease, foreign=foreign, backlog=64) for p in (places.agent_socket, places.control_socket)
    )
    server = Server(host, trust, idle_exit_s=idle_exit_s)
    ready = asyncio.Event()
    task = asyncio.create_task(server.run(agent, control, ready.set))
    await ready.wait()
    try:
        yield Running(host, places, server, asyncio.get_running_loop())
    finally:
        for raw in Raw.made:
            await raw.close()
        Raw.made.clear()
        server.stop()
        await asyncio.wait_for(task, 20)
        agent.remove()
        control.remove()
        lease.release()


@contextlib.contextmanager
def running_in_thread(folder: Path, host: FakeHost) -> Iterator[Running]:
    """The same in a thread of its own, for blocking clients."""
    up = threading.Event()
    box: dict[str, Any] = {}

    async def main() -> None:
        host.changed = asyncio.Condition()
        box["loop"], box["stop"] = asyncio.get_running_loop(), asyncio.Event()
        async with running(folder, host) as run:
            box["run"] = run
            up.set()
            await box["stop"].wait()

    thread = threading.Thread(target=lambda: asyncio.run(main()), daemon=True)
    thread.start()
    assert up.wait(10)
    try:
        yield box["run"]
    finally:
        box["loop"].call_soon_threadsafe(box["stop"].set)
        thread.join(20)


class Raw:
    """A peer that sends whatever bytes a test wants."""

    made: ClassVar[list[Raw]] = []

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.made.append(self)

    @classmethod
    async def to(cls, path: str) -> Raw:
        return cls(*await asyncio.open_unix_connection(path, limit=2**26))

    @classmethod
    async def hello(cls, path: str, role: str = "agent", **extra: Any) -> Raw:
        raw = await cls.to(path)
        raw.send({"hello": hello_value(role=role, **extra)})
        welcome = await raw.read()
        assert "welcome" in welcome, welcome
        return raw

    def bytes(self, data: bytes) -> None:
        self.writer.write(data)

    def body(self, body: bytes) -> None:
        self.bytes(struct.pack(">I", len(body)) + body)

    def send(self, value: Any) -> None:
        self.body(json.dumps(value).encode())

    async def read(self, seconds: float = 5) -> Any:
        """Return the next message, or None at the end of the connection."""
        async with asyncio.timeout(seconds):
            try:
                (length,) = struct.unpack(">I", await self.reader.readexactly(4))
                return json.loads(await self.reader.readexactly(length))
            except (asyncio.IncompleteReadError, ConnectionResetError):
                return None

    async def close(self) -> None:
        self.writer.transport.abort() if self.writer.transport.get_write_buffer_size() else self.writer.close()
        with contextlib.suppress(ConnectionError):
            await self.writer.wait_closed()


def hello_value(**extra: Any) -> dict[str, Any]:
    value = {"protocol": 1, "role": "agent", "nonce": NONCE, "client": {"name": "test", "version": "0"}}
    value.update(extra)
    return value
