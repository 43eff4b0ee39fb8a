"""What does durable evidence cost? Operations per second through the journal, beside bare SQLite in the same harness.

Each operation is two appends, as in the runtime: a claim that consumes a permit, and a terminal. The bare side is the
same asyncio harness, queue, writer thread and group commit, writing opaque bytes of the same size as one row an event:
no canonical form, no hashes, no versions, no counts. The second table is the auditor beside a loop that only hashes the
same bytes.

Usage: python benchmarks/journal.py [--operations N]
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import queue
import resource
import sqlite3
import statistics
import tempfile
import threading
import time
from pathlib import Path

import apsw

from surehand import canonical, limits
from surehand.adapters.journal_sqlite import SqliteJournal
from surehand.model.events import NewEvent
from surehand.runtime.clock import SystemClock
from surehand.verify.audit import audit

HASH = "0123456789abcdef" * 4


def claim(stream: str, principal: str, operation: str) -> NewEvent:
    request = {
        "operation_id": operation,
        "action": {"kind": "set_value", "value": {"redacted": HASH}},
        "target": {"kind": "element", "scene_id": "sc-1", "generation": 4, "element_id": "e17"},
        "interaction_mode": "interactive",
        "risk": "reversible",
        "deadline_ms": 30_000,
    }
    decision = {
        "decision_id": "d-1",
        "outcome": "allow",
        "policy_revision": "r1",
        "rule": "isolated",
        "reason": "isolated desktop",
        "obligations": {"redact": [], "release": "always", "approvals_needed": 1},
    }
    payload = {
        "action_hash": HASH,
        "app": "exe:/usr/bin/mousepad",
        "place": "main",
        "permit_nonce": f"{principal}-{operation}",
        "request": request,
        "decision": decision,
    }
    return NewEvent(
        stream=stream, type="operation.claimed.v1", actor=principal, context={"session": HASH[:32]}, payload=payload
    )


def terminal(stream: str, principal: str, operation: str) -> NewEvent:
    receipt = {
        "operation_id": operation,
        "action_hash": HASH,
        "action": "desktop.set_value",
        "principal": principal,
        "started_at_ms": 1_796_028_453_123,
        "finished_at_ms": 1_796_028_453_129,
        "backend": "atspi",
        "route": "atspi.editable_text",
        "isolation": "isolated",
        "interaction_mode": "interactive",
        "context_preservation": "unchanged",
        "effect": "verified",
        "evidence": {"before": HASH, "after": HASH},
        "authority_mode": "daemon",
        "trust_level": "A",
        "decision_id": "d-1",
    }
    payload = {"kind": "succeeded", "receipt": receipt}
    return NewEvent(stream=stream, type="operation.terminal.v1", actor=principal, payload=payload)


class Bare:
    """The same harness around bare SQLite: opaque bytes, one row each, group commit, FULL."""

    def __init__(self, path: Path) -> None:
        self._connection = apsw.Connection(str(path))
        self._connection.pragma("journal_mode", "WAL")
        self._connection.pragma("synchronous", "FULL")
        self._connection.execute("CREATE TABLE rows(seq INTEGER PRIMARY KEY, data BLOB NOT NULL) STRICT")
        self._queue: queue.SimpleQueue = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()

    async def append(self, data: bytes) -> None:
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        self._queue.put((data, future, loop))
        await future

    def _write(self) -> None:
        while (item := self._queue.get()) is not None:
            group = [item]
            while len(group) < limits.COMMIT_GROUP_MAX:
                try:
                    group.append(self._queue.get_nowait())
                except queue.Empty:
                    break
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.executemany("INSERT INTO rows(data) VALUES (?)", [(data,) for data, _, _ in group])
            self._connection.execute("COMMIT")
            group[0][2].call_soon_threadsafe(self._settle, group)

    @staticmethod
    def _settle(group: list) -> None:
        for _, future, _ in group:
            future.set_result(None)

    def close(self) -> None:
        self._queue.put(None)
        self._thread.join()
        self._connection.close()


async def run_journal(path: Path, producers: int, operations: int) -> tuple[float, list[float]]:
    journal = SqliteJournal.open(path, clock=SystemClock())

    async def one(principal: str, operation: str) -> None:
        stream = f"operation:{principal}:{operation}"
        if journal.known(stream):
            raise RuntimeError("an id was used twice")
        await journal.consume({f"permit/{principal}-{operation}": 1}, [claim(stream, principal, operation)])
        await journal.append([terminal(stream, principal, operation)])

    result = await measure(one, producers, operations)
    await journal.close()
    return result


async def run_bare(path: Path, producers: int, operations: int) -> tuple[float, list[float]]:
    bare = Bare(path)
    first = len(canonical.encode(claim("operation:agent-1:op-100", "agent-1", "op-100").payload)) + 420
    second = len(canonical.encode(terminal("operation:agent-1:op-100", "agent-1", "op-100").payload)) + 350

    async def one(_principal: str, _operation: str) -> None:
        await bare.append(b"x" * first)
        await bare.append(b"x" * second)

    result = await measure(one, producers, operations)
    bare.close()
    return result


async def measure(one, producers: int, operations: int) -> tuple[float, list[float]]:
    numbers = iter(range(operations))
    times: list[float] = []

    async def produce(index: int) -> None:
        for number in numbers:
            started = time.perf_counter()
            await one(f"agent-{index}", f"op-{number}")
            times.append(time.perf_counter() - started)

    started = time.perf_counter()
    await asyncio.gather(*(produce(index) for index in range(producers)))
    return operations / (time.perf_counter() - started), times


def row(producers: int, operations: int, folder: Path) -> None:
    bare, bare_times = asyncio.run(run_bare(folder / f"bare-{producers}.db", producers, operations))
    cpu = time.process_time()
    ours, times = asyncio.run(run_journal(folder / f"j-{producers}" / "journal.db", producers, operations))
    cpu = (time.process_time() - cpu) / operations
    print(
        f"{producers:>9} {ours:>10,.0f} {statistics.median(times) * 1e3:>8.2f} {cpu * 1e6:>10.0f}"
        f" {bare:>12,.0f} {statistics.median(bare_times) * 1e3:>8.2f} {ours / bare:>7.2f}"
    )


def hash_loop(path: Path) -> float:
    connection = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    started = time.perf_counter()
    count = 0
    for values in connection.execute("SELECT context, payload, prev_hash, stream FROM events ORDER BY seq"):
        hashlib.sha256(b"%b%b%b%b" % (values[0], values[1], values[2].encode(), values[3].encode())).hexdigest()
        count += 1
    return count / (time.perf_counter() - started)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--operations", type=int, default=20_000)
    operations = parser.parse_args().operations
    with tempfile.TemporaryDirectory(prefix="surehand-bench-") as name:
        folder = Path(name)
        print("producers      ops/s   p50 ms  CPU us/op   bare ops/s   p50 ms   ratio")
        for producers, share in ((1, 10), (8, 3), (64, 1)):
            row(producers, max(1, operations // share), folder)
        path = folder / "j-64" / "journal.db"
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        started = time.perf_counter()
        verdict = audit(path)
        audited = verdict.events / (time.perf_counter() - started)
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        assert verdict.ok, verdict
        bare = hash_loop(path)
        started = time.perf_counter()
        journal = SqliteJournal.open(path, clock=SystemClock(), mode="full")
        opened = time.perf_counter() - started
        asyncio.run(journal.close())
        started = time.perf_counter()
        journal = SqliteJournal.open(path, clock=SystemClock(), mode="tail")
        tail = time.perf_counter() - started
        asyncio.run(journal.close())
        print()
        print(f"{verdict.events:,} events: auditor {audited:,.0f}/s (hash loop {bare:,.0f}/s), +{after - before} KB")
        print(f"open: full {opened * 1e3:.0f} ms ({verdict.events / opened:,.0f}/s), tail {tail * 1e3:.0f} ms")


if __name__ == "__main__":
    main()
