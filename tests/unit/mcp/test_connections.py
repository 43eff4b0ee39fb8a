"""Connections that ask for nothing: how long they stay, how many may, and whom they never keep out."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
import uvicorn

from surehand import limits
from surehand.mcp.connections import Connection
from surehand.mcp.http import Guard, listening
from tests.unit.daemon.fakes import FakeHost
from tests.unit.mcp.test_http import post, served

TOKEN = "t" * 32
SHORT_MS = 300


class Peer:
    """One client's connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def is_closed(self, seconds: float = 5) -> bool:
        """Say whether the server closes it in that time; what it says is read."""
        with contextlib.suppress(TimeoutError, ConnectionError):
            async with asyncio.timeout(seconds):
                while await self.reader.read(4096):
                    pass
                return True
            return False
        return self.reader.exception() is not None


class Server:
    """The real protocol and guard over an app that answers when it is told to."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.go = asyncio.Event()
        self.asked = asyncio.Event()
        self.answer = b"ok"
        self.ended = asyncio.Event()
        self._peers: list[Peer] = []

    async def app(self, _scope: Any, _receive: Any, send: Any) -> None:
        self.asked.set()
        await self.go.wait()
        length = str(len(self.answer)).encode()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]})
        await send({"type": "http.response.body", "body": self.answer, "more_body": True})
        try:
            await send({"type": "http.response.body", "body": b""})
        finally:
            self.ended.set()

    def head(self, token: str = TOKEN, length: int = 0) -> bytes:
        said = f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nAuthorization: Bearer {token}\r\n"
        return f"{said}Content-Length: {length}\r\n\r\n".encode()

    async def peer(self, first: bytes = b"") -> Peer:
        found = Peer(*await asyncio.open_connection("127.0.0.1", self.port))
        self._peers.append(found)
        found.writer.write(first)
        return found

    async def close(self) -> None:
        for peer in self._peers:
            peer.writer.close()
            with contextlib.suppress(ConnectionError):
                await peer.writer.wait_closed()


@contextlib.asynccontextmanager
async def serving() -> AsyncIterator[Server]:
    with listening("127.0.0.1", 0) as listener:
        server = Server(listener.getsockname()[1])

        async def ended(_: str) -> None:
            return

        guard = Guard(server.app, TOKEN, frozenset({f"127.0.0.1:{server.port}"}), ended)
        config = uvicorn.Config(guard, http=Connection, log_config=None, lifespan="off", ws="none")
        running = uvicorn.Server(config)
        running.capture_signals = contextlib.nullcontext  # type: ignore[method-assign]
        task = asyncio.create_task(running.serve(sockets=[listener]))
        try:
            yield server
        finally:
            server.go.set()
            await server.close()
            running.should_exit = running.force_exit = True
            await task


@pytest.mark.parametrize("how", ["silent", "in pieces", "unwanted body", "after an answer"])
async def test_a_connection_that_asks_for_nothing_is_closed(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MCP_HEAD_MS_MAX", SHORT_MS)
    async with serving() as server:
        server.go.set()
        first = {
            "silent": b"",
            "in pieces": b"POST /mcp HTTP/1.1\r\n",
            "unwanted body": server.head("wrong", 10_000_000),
            "after an answer": server.head(),
        }[how]
        peer = await server.peer(first)

        async def trickle() -> None:
            while True:  # something new each time, so that silence is not what closes it
                peer.writer.write(b"x" if how == "unwanted body" else b"x: y\r\n")
                await asyncio.sleep(SHORT_MS / 5000)

        task = asyncio.create_task(trickle()) if how in {"in pieces", "unwanted body"} else None
        assert await peer.is_closed()
        if task is not None:
            task.cancel()


async def test_a_request_that_is_worked_on_may_take_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MCP_HEAD_MS_MAX", SHORT_MS)
    async with serving() as server:
        peer, silent = await server.peer(server.head()), await server.peer()
        await server.asked.wait()
        assert await silent.is_closed()
        server.go.set()
        async with asyncio.timeout(5):
            assert b" 200 " in await peer.reader.readline()


async def test_a_connection_that_reads_nothing_of_its_answer_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers that cannot be written never end, and what never ends would keep its place for ever."""
    monkeypatch.setattr(limits, "MCP_WRITE_MS_MAX", SHORT_MS)
    async with serving() as server:
        server.answer = b"x" * 30_000_000  # more than the buffers of both ends
        server.go.set()
        await server.peer(server.head())
        async with asyncio.timeout(5):
            await server.ended.wait()


async def test_as_many_wait_as_the_limit_says_and_one_more_closes_the_one_that_waits_longest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "MCP_WAITING_MAX", 2)
    async with serving() as server:
        worked_on = await server.peer(server.head())
        await server.asked.wait()
        first, second = await server.peer(), await server.peer()
        assert not await first.is_closed(0.2)
        third = await server.peer()
        assert await first.is_closed()
        for kept in (second, third):
            kept.writer.write(server.head())
        server.go.set()
        async with asyncio.timeout(5):
            for peer in (worked_on, second, third):
                assert b" 200 " in await peer.reader.readline()


async def test_silent_connections_keep_nobody_out(host: FakeHost) -> None:
    async with served() as server:
        port = int(server.netloc.rpartition(":")[2])
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(4 * limits.MCP_SESSIONS_MAX + 1)]
        answer = await asyncio.to_thread(post, server)
        assert answer.status_code == 200
        for _, writer in silent:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()
