"""How long does an operator wait for a page of a long journal, and for a page of many open questions?

The journal is a real one, filled by the path itself. A page is asked for as the console asks: the newest operations,
the next page, a word that all have, one that only the oldest has, one that none has. Beside it what reading the whole
journal costs, which no page may.

Usage: python benchmarks/reviewing.py [OPERATIONS]
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from surehand.adapters.journal_sqlite import SqliteJournal
from surehand.model.approval import PendingApproval, Presentation
from surehand.runtime import params as p
from surehand.runtime import reviewing
from surehand.runtime.clock import SystemClock
from surehand.testing.worlds import World

ROUNDS = 5


async def filled(folder: Path, operations: int) -> World:
    """Return a world whose journal has so many operations, three quarters of them done and the rest refused."""
    clock = SystemClock()
    world = World(journal=SqliteJournal.open(folder / "journal.sqlite", clock=clock), clock=clock)
    await world.act("the-first")
    target = await world.ref("save")
    for start in range(1, operations, 64):
        numbers = range(start, min(start + 64, operations))
        requests = [await world.request(f"op-{n}", target=target, risk="reversible") for n in numbers]
        await asyncio.gather(*(world.gateway.act(world.session, one) for one in requests))
        target = await world.ref("save")
    return world


async def timed(what: str, ask: Callable[[], Awaitable[Any]]) -> None:
    """Print how long it takes, at best and in the middle."""
    took = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        found = await ask()
        took.append((time.perf_counter() - begun) * 1000)
    print(f"{what:44} {min(took):8.1f} {sorted(took)[ROUNDS // 2]:8.1f}  {found}", flush=True)


async def main(operations: int) -> None:
    """Fill, then ask."""
    with tempfile.TemporaryDirectory() as folder:
        world = await filled(Path(folder), operations)
        parts: Any = SimpleNamespace(journal=world.journal, operations=world.operations, approvals=world.approvals)
        print(f"{(await world.journal.head())[0]} events of {operations} operations; ms at best and in the middle")

        async def page(**sought: Any) -> dict[str, Any]:
            return await reviewing.operations(parts, world.session, p.Operations(**sought))

        async def told(**sought: Any) -> str:
            found = await page(**sought)
            return f"{len(found['operations'])} found, {found['looked_at']} looked at"

        async def to_the_end(**sought: Any) -> str:
            calls, count, before = 0, 0, None
            while calls == 0 or before is not None:
                found = await page(before_seq=before, **sought)
                calls, count, before = calls + 1, count + len(found["operations"]), found["next"]
            return f"{count} found in {calls} calls"

        async def whole() -> str:
            after, count = 0, 0
            while events := await world.journal.read(after_seq=after):
                after, count = events[-1].seq, count + len(events)
            return f"{count} events"

        middle = (await world.journal.head())[0] // 2
        await timed("the newest page", told)
        await timed("a page in the middle", lambda: told(before_seq=middle))
        await timed("a word that all have", lambda: told(text="memory"))
        await timed("one call for a word that none has", lambda: told(text="nowhere"))
        await timed("a word that only the oldest has, to the end", lambda: to_the_end(text="the-first"))
        await timed("the whole journal read", whole)
        await world.journal.close()
    await many_questions()


async def many_questions(count: int = 10_000) -> None:
    """Ask for pages of that many open questions."""
    shown = Presentation(
        principal="uid:1000", app="exe:/usr/bin/mousepad", place="main", element="button Save", context="",
        action="desktop.invoke", parameters={}, risk="reversible", categories=(), reason="r" * 200,
        action_hash="0" * 64,
    )  # fmt: skip
    pending = [
        PendingApproval(
            approval_id=f"{n:016x}", operation_id=f"op-{n}", principal="uid:1000", presentation=shown,
            presentation_hash="0" * 64, requested_at_ms=n // 7, expires_at_ms=n + 600_000,
        )
        for n in range(count)
    ]  # fmt: skip
    parts: Any = SimpleNamespace(approvals=SimpleNamespace(pending=lambda: pending))

    async def told(**sought: Any) -> str:
        found = await reviewing.approvals(parts, None, p.ApprovalsPage(**sought))  # type: ignore[arg-type]
        return f"{len(found['pending'])} of {found['total']}"

    print(f"{count} open questions")
    await timed("fifty of them", lambda: told(limit=50))
    await timed("fifty in the middle", lambda: told(limit=50, after=f"{count // 14}.{count // 2:016x}"))
    await timed("as many as one answer holds", told)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000))
