"""How many whole operations a second go through the path with a durable journal?

An application in memory answers at once, so what is measured is the path itself: hashing, authority, policy, fences,
permit, the durable claim, reading back, the durable terminal. Beside it, in the same run, the raw cost of two durable
commits of such rows with the same concurrency, which no at-most-once system can go below.

The path is work of the interpreter, so it counts which one it is: builds that were optimised by profile, as most
distributions ship them, are faster than those compiled without. Where others use the machine, compare the CPU times.

Usage: python benchmarks/operations.py [OPERATIONS]
"""

from __future__ import annotations

import asyncio
import platform
import sys
import sysconfig
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

from surehand.adapters.journal_sqlite import SqliteJournal
from surehand.core.authority import Keyring, PinnedKey, grant_message
from surehand.daemon.server import collect_rarely
from surehand.model.actions import Invoke
from surehand.model.authority import Grant, SignedGrant
from surehand.model.events import NewEvent
from surehand.model.request import Request
from surehand.runtime.clock import SystemClock
from surehand.runtime.config import Config
from surehand.signing.ed25519 import SigningKey
from surehand.testing.memory import button
from surehand.testing.worlds import World

HOST = SigningKey(b"a seed for benchmarks, no more..")
PRODUCERS = 64


class Took(NamedTuple):
    """What a number of operations took: by the clock, and of the processor."""

    rate: float
    cpu_us: float


async def measured(operations: int, produce: Callable[[], Awaitable[None]]) -> Took:
    """Let all producers run to their end."""
    started, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(produce() for _ in range(PRODUCERS)))
    return Took(operations / (time.perf_counter() - started), (time.process_time() - cpu) * 1e6 / operations)


def interpreter() -> str:
    """Say what runs this, and how it says itself that it was compiled."""
    options = str(sysconfig.get_config_var("CONFIG_ARGS") or "")
    found = [name for name in ("--enable-optimizations", "--with-lto") if name in options]
    return f"{platform.python_implementation()} {platform.python_version()}, " + (
        "compiled " + " ".join(found) if found else "not said to be compiled --enable-optimizations"
    )


def open_journal(folder: Path) -> SqliteJournal:
    return SqliteJournal.open(folder / "s" / "journal.sqlite", clock=SystemClock())


async def raw(operations: int) -> Took:
    """Two durable appends per operation, nothing else."""
    with tempfile.TemporaryDirectory() as folder:
        journal = open_journal(Path(folder))
        left = iter(range(operations))

        async def produce() -> None:
            for number in left:
                for kind in ("operation.claimed.v1", "operation.terminal.v1"):
                    event = NewEvent(stream=f"o/{number}", type=kind, actor="uid:1", payload={"text": "x" * 900})
                    await journal.append([event])

        took = await measured(operations, produce)
        await journal.close()
        return took


async def path(operations: int, *, granted: bool) -> Took:
    """Whole operations; with `granted`, each carries a grant that a host signed."""
    with tempfile.TemporaryDirectory() as folder:
        journal = open_journal(Path(folder))
        key = PinnedKey(issuer="host", key_id="k1", public_key=HOST.public_key, policy_generation=1)
        world = World(
            [button(f"b{number}", f"Button {number}") for number in range(20)],
            journal=journal,
            config=Config(authority="host" if granted else "daemon"),
            keyring=Keyring([key]),
        )
        target = await world.ref("b0")
        requests = [Request(operation_id=f"op{n}", action=Invoke(), target=target) for n in range(operations)]
        if granted:
            requests = [await sign(world, request) for request in requests]
            target = await world.ref("b0")
        left = iter(requests)

        async def produce() -> None:
            for request in left:
                reply = await world.gateway.act(world.session, request)
                if reply.status != "succeeded":
                    raise SystemExit(f"{reply.status}: {reply.error}")

        took = await measured(operations, produce)
        if len(world.app.effects) != operations:
            raise SystemExit(f"{len(world.app.effects)} effects for {operations} operations")
        await journal.close()
        return took


async def sign(world: World, request: Request) -> Request:
    proposal = await world.gateway.propose(world.session, request)
    grant = Grant(
        issuer="host",
        key_id="k1",
        principal=world.session.principal,
        operation_id=request.operation_id,
        action_hash=proposal["action_hash"],
        risk=request.risk,
        policy_generation=1,
        expires_at_ms=world.clock.wall_ms() + 600_000,
    )
    return Request(
        operation_id=request.operation_id,
        action=request.action,
        target=request.target,
        authority=SignedGrant(grant=grant, signature=HOST.sign(grant_message(grant))),
    )


async def main() -> None:
    operations = int(sys.argv[1]) if len(sys.argv) > 1 else 4_000
    collect_rarely()  # as the daemon does
    base = await raw(operations)
    rows = [("two durable commits, nothing else", base)]
    for name, granted in (("whole path, daemon authority", False), ("whole path, a verified grant each", True)):
        rows.append((name, await path(operations, granted=granted)))
    print(interpreter())
    print(f"{PRODUCERS} producers, {operations} operations, SQLite WAL with synchronous=FULL")
    for name, took in rows:
        ratio = base.rate / took.rate
        print(f"{name:38} {took.rate:8.0f} /s   {took.cpu_us:6.0f} µs CPU each   {ratio:5.2f} × the commits alone")


if __name__ == "__main__":
    asyncio.run(main())
