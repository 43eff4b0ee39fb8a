"""What does a call cost between a client and the daemon, beside a bare round trip over the same kind of socket?

Prints one table: blocking and asynchronous client, one at a time and 64 side by side, against an empty host.
"""

from __future__ import annotations

import asyncio
import os
import socket
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.unit.daemon.fakes import FakeHost, running_in_thread

import surehand
from surehand.client.blocking import run

CALLS = 3_000
SIDE_BY_SIDE = 64


class EmptyHost(FakeHost):
    """Answers at once and remembers nothing."""

    async def call(self, _channel: Any, _method: str, params: dict[str, Any], **_: Any) -> dict[str, Any]:
        return {"operation_id": params["operation_id"], "known": False}


def bare() -> list[float]:
    """A pair of sockets, a thread that echoes."""
    ours, theirs = socket.socketpair()

    def echo() -> None:
        while data := theirs.recv(4096):
            theirs.sendall(data)

    threading.Thread(target=echo, daemon=True).start()
    times = []
    for _ in range(CALLS):
        start = time.perf_counter()
        ours.sendall(b"x" * 80)
        ours.recv(4096)
        times.append(time.perf_counter() - start)
    ours.close()
    return times


def blocking() -> list[float]:
    with surehand.open(client="benchmark") as hand:
        session = hand._calls.session
        times = []
        for _ in range(CALLS):
            start = time.perf_counter()
            run(session.ask("status", {"operation_id": "a-name-of-some-length"}))
            times.append(time.perf_counter() - start)
    return times


async def asynchronous() -> tuple[list[float], float]:
    async with surehand.connect(client="benchmark") as hand:
        times = []
        for _ in range(CALLS):
            start = time.perf_counter()
            await hand.status("a-name-of-some-length")
            times.append(time.perf_counter() - start)

        async def many() -> None:
            for _ in range(CALLS // SIDE_BY_SIDE):
                await hand.status("a-name-of-some-length")

        start = time.perf_counter()
        await asyncio.gather(*(many() for _ in range(SIDE_BY_SIDE)))
        return times, CALLS // SIDE_BY_SIDE * SIDE_BY_SIDE / (time.perf_counter() - start)


def row(name: str, times: list[float], rate: float | None = None) -> None:
    ordered = sorted(times)
    p50, p99 = statistics.median(ordered) * 1e6, ordered[len(ordered) * 99 // 100] * 1e6
    print(f"{name:32} {p50:8.0f} {p99:8.0f} {rate or 1 / statistics.fmean(times):10.0f}")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SUREHAND_RUNTIME_DIR"] = f"{folder}/run"
        print(f"{'':32} {'p50 µs':>8} {'p99 µs':>8} {'calls/s':>10}")
        row("bare socket pair, two threads", bare())
        with running_in_thread(Path(folder), EmptyHost()):
            row("blocking client", blocking())
            times, rate = asyncio.run(asynchronous())
            row("asynchronous client", times)
            print(f"{f'asynchronous, {SIDE_BY_SIDE} side by side':32} {'':8} {'':8} {rate:10.0f}")


if __name__ == "__main__":
    main()
