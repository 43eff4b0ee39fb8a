"""What the tests of the journal share: a settable clock, events as the runtime writes them, and tampering."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

from surehand.adapters.journal_sqlite import SqliteJournal
from surehand.model.events import NewEvent

ZEROS = "0" * 64


class SettableClock:
    """Time as a test sets it."""

    def __init__(self, wall_ms: int = 1_796_028_453_123) -> None:
        self.now = wall_ms

    def monotonic_ms(self) -> int:
        return self.now

    def wall_ms(self) -> int:
        return self.now


def counted(start: int = 0):
    """Randomness that counts, so that event ids repeat from run to run."""
    state = [start]

    def take(size: int) -> bytes:
        state[0] += 1
        return state[0].to_bytes(8, "big").rjust(size, b"\0")[-size:] if size <= 10 else _blocks(state, size)

    return take


def _blocks(state: list[int], size: int) -> bytes:
    out = b""
    while len(out) < size:
        state[0] += 1
        out += state[0].to_bytes(10, "big")
    return out[:size]


def claim(operation: str = "op-1", principal: str = "agent", **payload: Any) -> NewEvent:
    return NewEvent(
        stream=f"operation:{principal}:{operation}",
        type="operation.claimed.v1",
        actor=principal,
        context={"session": "5" * 32},
        payload={"action": "desktop.invoke", "permit": {"nonce": operation}, **payload},
    )


def terminal(operation: str = "op-1", principal: str = "agent", kind: str = "succeeded") -> NewEvent:
    return NewEvent(
        stream=f"operation:{principal}:{operation}",
        type="operation.terminal.v1",
        actor=principal,
        payload={"kind": kind, "receipt": {"operation_id": operation, "principal": principal}},
    )


def note(stream: str = "daemon", kind: str = "daemon.started.v1", **payload: Any) -> NewEvent:
    return NewEvent(stream=stream, type=kind, actor="daemon", payload=payload)


def open_journal(path: Path, **named: Any) -> SqliteJournal:
    return SqliteJournal.open(path, clock=named.pop("clock", SettableClock()), **named)


async def fill(path: Path, operations: int = 3) -> None:
    """Write a whole journal as the runtime would: start, operations with permits, stop."""
    journal = open_journal(path)
    await journal.append([note()])
    for number in range(operations):
        await journal.consume({f"permit/n{number}": 1, "standing/g1": 1000}, [claim(f"op-{number}", text=f"é{number}")])
        await journal.append([terminal(f"op-{number}")])
    await journal.append([note(kind="daemon.stopped.v1")])
    await journal.close()


def filled(path: Path, operations: int = 3) -> Path:
    asyncio.run(fill(path, operations))
    return path


def tamper(path: Path, *statements: str, bindings: tuple[Any, ...] = ()) -> None:
    """Change a closed journal behind its back."""
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement, bindings if "?" in statement else ())
    connection.commit()
    connection.close()


def auditor(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the auditor as a program of its own."""
    command = [sys.executable, "-m", "surehand.verify.command", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def dedent(text: str) -> str:
    return textwrap.dedent(text).lstrip()
