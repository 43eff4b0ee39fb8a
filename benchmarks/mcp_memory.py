"""Does a thousand calls of an agent leave the daemon's memory flat?

Five applications on one isolated desktop, a daemon of its own, `surehand mcp` over its real pipe, and a mix of what
agents do: looks, queries, texts, waits, presses and edits that are read back, several steps in one call, pictures. What
the daemon holds is read from /proc: all of it, and its heap (anonymous memory, which is what grows by what is kept).

The first calls fill what is bounded: scenes and pictures that may still be acted upon (30 s), the journal's pages, the
libraries that only pictures need. They are the warm-up, 5 MB in 200 calls; what comes after it is the allocator filling
its own gaps, and ends with the first thousand. It ends with 1 if the daemon has more than 90 MB with the five
applications observed, or if its heap grows by more than 3 % over the last half of the calls.

Usage: python benchmarks/mcp_memory.py [--calls N]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from surehand.testing.desktop import IsolatedDesktop, isolated_desktop
from surehand.testing.fixture_app import FixtureApp

SUREHAND = str(Path(sys.executable).with_name("surehand"))
PROGRAMS = (["mousepad"], ["gnome-calculator"], ["featherpad"], ["kcalc"])
FIXTURE = "gtk3_app.py"
OBSERVED_MB_MAX = 90.0
GROWTH_MAX = 0.03
EVERY = 200
START_S = 30.0


class Memory(NamedTuple):
    """What a process has in memory, in MB."""

    resident: float
    heap: float

    def __str__(self) -> str:
        return f"{self.resident:6.1f} MB, heap {self.heap:6.1f} MB"

    @classmethod
    def of(cls, pid: int) -> Memory:
        words = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text("utf-8").splitlines())
        return cls(int(words["VmRSS"].split()[0]) / 1024, int(words["RssAnon"].split()[0]) / 1024)


class Server:
    """`surehand mcp` and the shortest client there can be."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.calls = 0
        self.bytes = 0
        self._id = 0

    @classmethod
    async def start(cls, *options: str) -> Server:
        process = await asyncio.create_subprocess_exec(
            *[SUREHAND, "mcp", *options], stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=2**24
        )
        server = cls(process)
        about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        await server.ask("initialize", about)
        assert process.stdin
        process.stdin.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        return server

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

    async def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        self.calls += 1
        found = await self.ask("tools/call", {"name": name, "arguments": arguments})
        if found["isError"]:
            raise RuntimeError(f"{name} {arguments}: {found['content'][0]['text']}")
        return found["structuredContent"]

    async def end(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        await self.process.wait()


def work(windows: dict[str, str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return calls without end: a mix, each round a little different."""
    form, editor, sums = windows[FIXTURE], windows["mousepad"], windows["gnome-calculator"]
    count = {"role": "button", "name": "Count"}
    number = 0
    while True:
        number += 1
        on = bool(number % 2)
        yield "observe", {"window": form}
        yield "invoke", {"window": form, "target": count}
        yield "set_value", {"window": form, "target": {"role": "text", "label": "Name"}, "value": f"Ada {number}"}
        yield "toggle", {"window": form, "target": {"role": "togglebutton", "name": "Bold"}, "to": on}
        yield "query", {"window": form, "role": "button"}
        yield "wait_for", {"window": form, "until": [{"exists": count}], "timeout_ms": 2000}
        yield "list_windows", {}
        yield "set_value", {"window": editor, "target": {"role": "text"}, "value": f"line {number}\n" * (number % 40)}
        yield "read_text", {"window": editor, "target": {"role": "text"}}
        yield "observe", {"window": editor}
        digit = {"role": "button", "contains": str(number % 9 + 1)}
        yield "act", {"steps": [{"do": "invoke", "window": sums, "target": digit} for _ in range(3)]}
        yield "observe", {"window": sums, "full": True}
        yield "screenshot", {"window": [form, editor, sums][number % 3], "marks": on}
        yield "list_apps", {}
        for other in ("featherpad", "kcalc"):
            yield "observe", {"window": windows[other]}
        slider = {"role": "slider", "name": "Volume"}
        yield (
            "set_value",
            {"window": form, "target": slider, "value": str(number % 100), "expect": {"value": str(number % 100)}},
        )


async def observed(server: Server) -> dict[str, str]:
    """Look at every window once; return their ids by application."""
    until = time.monotonic() + START_S
    while True:
        found = (await server.call("list_windows"))["windows"]
        windows = {Path(one["app"]).name: one["window"] for one in found}
        if {FIXTURE, *(argv[0] for argv in PROGRAMS)} <= windows.keys():
            break
        if time.monotonic() > until:
            raise SystemExit(f"not every application came up: {sorted(windows)}")
        await asyncio.sleep(0.1)
    for window in windows.values():
        await server.call("observe", window=window)
    return windows


def pid_of_daemon() -> int:
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


async def measure(desktop: IsolatedDesktop, calls: int) -> bool:
    server = await Server.start("--desktop", desktop.name)
    windows = await observed(server)
    daemon = pid_of_daemon()
    first = Memory.of(daemon)
    fine = first.resident <= OBSERVED_MB_MAX
    print(f"{len(windows)} applications observed: {first} (≤ {OBSERVED_MB_MAX:g} MB{'' if fine else '  MISSED'})")
    print(f"{'calls':>6}  {'daemon':34}  {'surehand mcp':34}  ms/call", flush=True)
    begun, steps = time.perf_counter(), work(windows)
    settled, half = first, calls - calls // 2
    for number in range(1, calls + 1):
        tool, arguments = next(steps)
        await server.call(tool, **arguments)
        if number == half:
            settled = Memory.of(daemon)
        if number % EVERY == 0 or number == calls:
            each = (time.perf_counter() - begun) / number * 1000
            print(
                f"{number:6}  {Memory.of(daemon)!s:34}  {Memory.of(server.process.pid)!s:34}  {each:7.1f}", flush=True
            )
    last = Memory.of(daemon)
    await server.end()
    growth = last.heap / settled.heap - 1
    flat = growth <= GROWTH_MAX
    said = f"heap {last.heap - settled.heap:+.1f} MB ({growth:+.1%}) over the last {calls - half} of {calls} calls"
    print(f"{said} (≤ {GROWTH_MAX:+.0%}{'' if flat else '  MISSED'})")
    return fine and flat


async def main(calls: int) -> int:
    async with isolated_desktop() as desktop:
        app = await FixtureApp.start(desktop, "gtk3")
        for argv in PROGRAMS:
            await desktop.launch(argv)
        try:
            fine = await measure(desktop, calls)
        finally:
            app.close()
    return 0 if fine else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=1000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SUREHAND_RUNTIME_DIR"] = folder + "/run"
        try:
            code = asyncio.run(main(options.calls))
        finally:
            subprocess.run([SUREHAND, "stop"], capture_output=True, check=False)
    sys.exit(code)
