"""`surehand mcp` as a process of its own, against a scripted host behind the daemon's real sockets."""

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

from tests.unit.daemon.fakes import FakeHost, running_in_thread

SUREHAND = str(Path(sys.executable).with_name("surehand"))

LATEST_WITH_HANDSHAKE = "2025-11-25"
STATELESS = "2026-07-28"


def surface(surface_id: str = "w1") -> dict[str, Any]:
    return {
        "surface_id": surface_id,
        "title": "notes",
        "role": "window",
        "app": "exe:/usr/bin/pad",
        "states": ["active"],
    }


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHost]:
    made = FakeHost()

    async def surfaces(*_: Any) -> dict[str, Any]:
        return {"surfaces": [surface()]}

    made.script["surfaces"] = surfaces
    monkeypatch.setenv("SUREHAND_RUNTIME_DIR", str(tmp_path / "run"))
    with running_in_thread(tmp_path, made):
        yield made


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

    async def read(self, seconds: float = 10) -> Any:
        """Return the next message, or None at the end."""
        assert self.process.stdout
        async with asyncio.timeout(seconds):
            line = await self.process.stdout.readline()
        if not line:
            return None
        self.lines.append(line)
        return json.loads(line)

    async def answer(self, request: Any, seconds: float = 10) -> Any:
        """Return the answer to one request; what comes before is dropped."""
        while (message := await self.read(seconds)) is not None:
            if "method" not in message and message.get("id") == request and type(message["id"]) is type(request):
                return message
        raise AssertionError("the server ended without an answer")

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

    async def ended(self, seconds: float = 10) -> int:
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
