"""`surehand mcp` as a process of its own, against a scripted host behind the daemon's real sockets.

Starting a server takes longer than most tests: those that only talk to one share it (`server`), each with a host of
its own behind it. Who ends a server, or needs a connection that nobody used, starts one (`spawned`).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from pytest_asyncio.plugin import PytestAsyncioFunction

from tests.unit.daemon.fakes import FakeChannel, FakeHost, running_in_thread

SUREHAND = str(Path(sys.executable).with_name("surehand"))

LATEST_WITH_HANDSHAKE = "2025-11-25"
STATELESS = "2026-07-28"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give a module's tests one event loop: the ends of a shared server's pipe belong to it."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents and isinstance(item, PytestAsyncioFunction):
            item.add_marker(pytest.mark.asyncio(loop_scope="module"), append=False)


def surface(surface_id: str = "w1") -> dict[str, Any]:
    return {
        "surface_id": surface_id,
        "title": "notes",
        "role": "window",
        "app": "exe:/usr/bin/pad",
        "states": ["active"],
    }


class HostOfNow(FakeHost):
    """A host that is the one of the running test; what an earlier test began stays with that test's."""

    def __init__(self) -> None:
        super().__init__()
        self.now = FakeHost()
        self._openers: dict[int, FakeHost] = {}

    async def open_channel(self, **options: Any) -> FakeChannel:
        opener = self.now
        channel = await opener.open_channel(**options)
        self._openers[id(channel)] = opener
        return channel

    async def call(
        self, channel: FakeChannel, method: str, params: dict[str, Any], *, progress: Any = None
    ) -> dict[str, Any]:
        return await self.now.call(channel, method, params, progress=progress)

    async def close_channel(self, channel: FakeChannel) -> None:
        await self._openers.pop(id(channel)).close_channel(channel)


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostOfNow]:
    """Return the daemon's host that a module shares; servers that are started now find it."""
    folder = tmp_path_factory.mktemp("daemon")
    made = HostOfNow()
    with pytest.MonkeyPatch.context() as patch, running_in_thread(folder, made):
        patch.setenv("SUREHAND_RUNTIME_DIR", str(folder / "run"))
        yield made


@pytest.fixture
def host(hosts: HostOfNow) -> FakeHost:
    """Return the host that this test scripts, and that nobody used."""
    made = FakeHost()

    async def surfaces(*_: Any) -> dict[str, Any]:
        return {"surfaces": [surface()]}

    made.script["surfaces"] = surfaces
    hosts.now = made
    return made


def initialize(version: str = LATEST_WITH_HANDSHAKE, request: Any = 0) -> dict[str, Any]:
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    return {"jsonrpc": "2.0", "id": request, "method": "initialize", "params": params}


def calling(request: Any, name: str, arguments: dict[str, Any] | None = None, **meta: Any) -> dict[str, Any]:
    params: dict[str, Any] = {"name": name, "arguments": arguments or {}}
    if meta:
        params["_meta"] = meta
    return {"jsonrpc": "2.0", "id": request, "method": "tools/call", "params": params}


def cancelled(request: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": request}}


class Spawned:
    """The server process and both ends of its pipe."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        #: Every line that came out, whatever it was.
        self.lines: list[bytes] = []

    def send_bytes(self, data: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(data)

    def send(self, *messages: Any) -> None:
        for message in messages:
            self.send_bytes(json.dumps(message).encode() + b"\n")

    async def read(self, seconds: float = 30) -> Any:
        """Return the next message, or None at the end."""
        assert self.process.stdout
        async with asyncio.timeout(seconds):
            line = await self.process.stdout.readline()
        if not line:
            return None
        self.lines.append(line)
        return json.loads(line)

    async def answer(self, request: Any, seconds: float = 30) -> Any:
        """Return the answer to one request; what comes before is dropped."""
        while (message := await self.read(seconds)) is not None:
            if "method" not in message and message.get("id") == request and type(message["id"]) is type(request):
                return message
        raise AssertionError("the server ended without an answer")

    async def answers(self, *requests: Any) -> dict[Any, Any]:
        """Return the answers to several requests, in whatever order they come."""
        found: dict[Any, Any] = {}
        while len(found) < len(requests):
            message = await self.read()
            assert message is not None
            if "method" not in message:
                found[message["id"]] = message
        assert set(found) == set(requests)
        return found

    async def greeted(self, version: str = LATEST_WITH_HANDSHAKE) -> Any:
        self.send(initialize(version))
        found = await self.answer(0)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return found["result"]

    async def call(self, request: Any, name: str, arguments: dict[str, Any] | None = None) -> Any:
        self.send(calling(request, name, arguments))
        return await self.answer(request)

    def hang_up(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()

    async def ended(self, seconds: float = 30) -> int:
        async with asyncio.timeout(seconds):
            return await self.process.wait()


@contextlib.asynccontextmanager
async def spawned(*options: str, program: list[str] | None = None, **env: str) -> AsyncIterator[Spawned]:
    process = await asyncio.create_subprocess_exec(
        *(program or [SUREHAND, "mcp", *options]),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **env},
        limit=2**26,
    )
    try:
        yield Spawned(process)
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGKILL)
        if process.stdin:
            process.stdin.close()
        await process.communicate()


class Shared:
    """A server that a module's tests talk to one after another; one that ended is started again."""

    def __init__(self) -> None:
        self._stack = contextlib.AsyncExitStack()
        self._server: Spawned | None = None
        self._tests = 0

    async def ready(self) -> Spawned:
        """Return it after the handshake, with nothing on the way."""
        self._tests += 1
        if self._server is not None:
            with contextlib.suppress(AssertionError, OSError, TimeoutError, ValueError):
                await self._settled(self._server)
                return self._server
            await self.close()
        self._server = await self._stack.enter_async_context(spawned())
        await self._server.greeted()
        return self._server

    async def _settled(self, server: Spawned) -> None:
        mark = f"test {self._tests}"
        server.send({"jsonrpc": "2.0", "id": mark, "method": "ping"})
        await server.answer(mark, 5)
        server.lines.clear()

    async def close(self) -> None:
        self._server = None
        await self._stack.aclose()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(hosts: HostOfNow) -> AsyncIterator[Shared]:
    made = Shared()
    yield made
    await made.close()


@pytest_asyncio.fixture(loop_scope="module")
async def server(shared: Shared, host: FakeHost) -> Spawned:
    """Return the module's server after the handshake. Leave no call under way."""
    return await shared.ready()
