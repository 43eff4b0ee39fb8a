"""SIGKILL at random moments: nothing acknowledged is lost, nothing partial appears, no use is counted wrongly.

The ground truth is what the child wrote into a pipe before it died.
"""

from __future__ import annotations

import asyncio
import os
import random
import select
import subprocess
import sys
import textwrap
import time

from surehand.verify.audit import audit
from tests.journal_kit import open_journal

KILLS = 300 if os.environ.get("SUREHAND_LONG") else 12
PRODUCERS = 8
#: The log grows with every life, so a long run looks at all of it now and then and at the end.
AUDIT_EVERY = max(1, KILLS // 10)

CHILD = textwrap.dedent("""
    import asyncio, os, sys
    from pathlib import Path
    from tests.journal_kit import claim, note, open_journal, terminal

    async def produce(journal, life, index):
        number = 0
        while True:
            name = f"{life}-{index}-{number}"
            number += 1
            batch = [claim(name), note(f"batch:{name}", "batch.part.v1"), note(f"batch:{name}", "batch.part.v1")]
            stored = await journal.consume({f"permit/{name}": 1, "standing/all": 10**9}, batch)
            os.write(1, b"claimed %b %d %b\\n" % (name.encode(), stored[0].seq, stored[0].record_hash.encode()))
            (ended,) = await journal.append([terminal(name)])
            os.write(1, b"ended %b %d %b\\n" % (name.encode(), ended.seq, ended.record_hash.encode()))

    async def main():
        journal = open_journal(Path(sys.argv[1]))
        if journal.recovery is not None:
            print("recovery", journal.recovery, flush=True)
            return
        os.write(1, b"open\\n")
        await asyncio.gather(*(produce(journal, sys.argv[2], index) for index in range(int(sys.argv[3]))))

    asyncio.run(main())
""")


def live_and_die(path, life: int, delay_s: float) -> list[bytes]:
    """Run one child until a random moment after it opened the journal; return the lines it wrote whole."""
    command = [sys.executable, "-c", CHILD, str(path), str(life), str(PRODUCERS)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        descriptor = child.stdout.fileno()
        output = b""
        deadline = time.monotonic() + 30
        kill_at = None
        while time.monotonic() < (kill_at or deadline):
            left = (kill_at or deadline) - time.monotonic()
            if select.select([descriptor], [], [], max(0, left))[0]:
                part = os.read(descriptor, 1 << 16)
                if not part:
                    break
                output += part
            if kill_at is None and output.startswith(b"open\n"):
                kill_at = time.monotonic() + delay_s
        child.kill()
        while part := os.read(descriptor, 1 << 16):
            output += part
    lines = output.split(b"\n")[:-1]
    assert lines[:1] == [b"open"], output[:500]
    return lines[1:]


def test_after_any_kill_what_was_acknowledged_is_there_and_nothing_is_half_there(tmp_path):
    path = tmp_path / "state" / "journal.db"
    chance = random.Random(11)  # noqa: S311 a repeatable sample
    acknowledged: dict[int, str] = {}
    claimed: set[str] = set()
    ended: set[str] = set()
    for life in range(KILLS):
        for line in live_and_die(path, life, chance.uniform(0, 0.12)):
            kind, name, seq, record_hash = line.decode().split(" ")
            acknowledged[int(seq)] = record_hash
            (claimed if kind == "claimed" else ended).add(name)
        if life % AUDIT_EVERY == 0 or life == KILLS - 1:
            verdict = audit(path, held=acknowledged)
            assert verdict.ok, (life, verdict)
            assert verdict.held == len(acknowledged)
    assert len(acknowledged) > KILLS
    asyncio.run(check_whole(path, claimed, ended))


async def check_whole(path, claimed: set[str], ended: set[str]) -> None:
    journal = open_journal(path, mode="full")
    assert journal.recovery is None
    stored_claims: set[str] = set()
    stored_ends: set[str] = set()
    parts: dict[str, int] = {}
    after = 0
    while events := await journal.read(after_seq=after):
        for event in events:
            name = event.stream.rpartition(":")[2]
            if event.type == "operation.claimed.v1":
                stored_claims.add(name)
            elif event.type == "operation.terminal.v1":
                stored_ends.add(name)
            else:
                parts[name] = parts.get(name, 0) + 1
        after = events[-1].seq
    assert claimed <= stored_claims
    assert ended <= stored_ends <= stored_claims
    # A batch is whole or absent, and its uses were counted with it.
    assert parts == dict.fromkeys(stored_claims, 2)
    assert await journal.uses("standing/all") == len(stored_claims)
    open_claims = {
        stream.rpartition(":")[2] for stream in await journal.streams_ending("operation.claimed.v1", limit=10_000)
    }
    assert open_claims == stored_claims - stored_ends
    # At most what was in flight when each child died is there without having been acknowledged.
    assert len(stored_claims - claimed) + len(stored_ends - ended) <= KILLS * PRODUCERS
    await journal.close()
