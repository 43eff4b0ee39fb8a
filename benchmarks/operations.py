"""How many whole operations a second go through the path with a durable journal?

An application in memory answers at once, so what is measured is the path itself: hashing, authority, policy, fences,
permit, the durable claim, reading back, the durable terminal. Beside it, in the same run, the raw cost of two durable
commits of such rows with the same concurrency, which no at-most-once system can go below.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path

from surehand.adapters.journal_sqlite import SqliteJournal
from surehand.core.authority import Keyring, PinnedKey, grant_message
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


def open_journal(folder: Path) -> SqliteJournal:
    return SqliteJournal.open(folder / "s" / "journal.sqlite", clock=SystemClock())


async def raw(operations: int) -> float:
    """Two durable appends per operation, nothing else."""
    with tempfile.TemporaryDirectory() as folder:
        journal = open_journal(Path(folder))
        left = iter(range(operations))

        async def produce() -> None:
            for number in left:
                for kind in ("operation.claimed.v1", "operation.terminal.v1"):
                    event = NewEvent(stream=f"o/{number}", type=kind, actor="uid:1", payload={"text": "x" * 900})
                    await journal.append([event])

        started = time.perf_counter()
        await asyncio.gather(*(produce() for _ in range(PRODUCERS)))
        took = time.perf_counter() - started
        await journal.close()
        return operations / took


async def path(operations: int, *, granted: bool) -> float:
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

        started = time.perf_counter()
        await asyncio.gather(*(produce() for _ in range(PRODUCERS)))
        took = time.perf_counter() - started
        if len(world.app.effects) != operations:
            raise SystemExit(f"{len(world.app.effects)} effects for {operations} operations")
        await journal.close()
        return operations / took


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
    base = await raw(operations)
    rows = [("two durable commits, nothing else", base, 1.0)]
    for name, granted in (("whole path, daemon authority", False), ("whole path, a verified grant each", True)):
        rate = await path(operations, granted=granted)
        rows.append((name, rate, base / rate))
    print(f"{PRODUCERS} producers, {operations} operations, SQLite WAL with synchronous=FULL")
    for name, rate, ratio in rows:
        print(f"{name:38} {rate:8.0f} /s   {ratio:5.2f} × the commits alone")


if __name__ == "__main__":
    asyncio.run(main())
