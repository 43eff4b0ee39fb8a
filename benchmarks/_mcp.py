"""What the benchmarks of agents over MCP share: `surehand mcp` with the shortest client there can be, and a daemon of their own."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

SUREHAND = str(Path(sys.executable).with_name("surehand"))


class Server:
    """`surehand mcp` over its real pipe; counts what it answers."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.bytes = 0
        self._id = 0

    @classmethod
    async def start(cls, *options: str) -> Server:
        process = await asyncio.create_subprocess_exec(
            *[SUREHAND, "mcp", *options], stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=2**24
        )
        return cls(process)

    async def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdin
        assert self.process.stdout
        self._id += 1
        message = {"jsonrpc": "2.0", "id": self._id, "method": method, "params": params}
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        line = await self.process.stdout.readline()
        self.bytes += len(line)
        answer = json.loads(line)
        assert answer["id"] == self._id, answer
        return answer["result"]

    async def hello(self) -> Server:
        about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        await self.ask("initialize", about)
        assert self.process.stdin
        self.process.stdin.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        return self

    async def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        found = await self.ask("tools/call", {"name": name, "arguments": arguments})
        if found["isError"]:
            raise RuntimeError(f"{name} {arguments}: {found['content'][0]['text']}")
        return found

    async def end(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        await self.process.wait()


def run(work: Coroutine[Any, Any, int]) -> int:
    """Run a benchmark with a daemon of its own, and end that daemon."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SUREHAND_RUNTIME_DIR"] = folder + "/run"
        try:
            return asyncio.run(work)
        finally:
            subprocess.run([SUREHAND, "stop"], capture_output=True, check=False)


def pid_of_daemon() -> int:
    """Return the pid of that daemon, once it runs."""
    runtime = os.environ["SUREHAND_RUNTIME_DIR"]
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal():
            continue
        try:
            words, command = (folder / "environ").read_bytes(), (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if f"SUREHAND_RUNTIME_DIR={runtime}".encode() in words and b"surehand.daemon" in command:
            return int(folder.name)
    raise SystemExit("no daemon")
