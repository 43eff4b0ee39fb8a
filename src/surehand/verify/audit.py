"""One verdict over a journal or an export: whole, or not and where first (spec §7).

Streams in constant memory. The first fault in the order of the log is the one that is told: what lies behind it
cannot be judged, because every later hash builds on it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from surehand.verify.proofs import Proofs
from surehand.verify.records import GENESIS_HASH, Fault, Record, check_record
from surehand.verify.rules import Counts, Rules, Violation
from surehand.verify.sources import open_source

_PROGRESS_EVENTS: Final = 20_000

#: What no reading of the file alone can show; part of every good verdict (spec §7).
LIMITS: Final = (
    "The end of the log may have been dropped unseen, unless a receipt or a head kept elsewhere is among what was"
    " checked; whoever can write the file can also write a whole new chain."
)

Progress = Callable[[int, int | None], None]


class Verdict(NamedTuple):
    """What was found. `ok` false: `seq` is the first bad record where one can be named, `reason` says why."""

    ok: bool
    reason: str
    seq: int | None
    stream: str | None
    source: str
    events: int
    head: str
    counts: Counts
    held: int
    ms: int

    def to_value(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {**self._asdict(), "counts": self.counts._asdict(), "limits": LIMITS}


class _Reading:
    """The state of one pass."""

    def __init__(self, held: Mapping[int, str]) -> None:
        self.rules = Rules()
        self.proofs = Proofs()
        self.held = dict(held)
        self.found = 0
        self.seq = 0
        self.head = GENESIS_HASH
        self.last: Record | None = None

    def take(self, record: Record) -> None:
        """Take in the next record, or say what is wrong with it."""
        self.last = record
        if record.seq > self.seq + 1:
            raise Fault(f"sequence {self.seq + 1} is missing")
        if record.seq <= self.seq:
            raise Fault("the sequence goes back")
        context, payload = check_record(record)
        if record.prev_hash != self.head:
            raise Fault("the previous hash is not that of the record before it")
        self.rules.add(record, context, payload)
        self.proofs.add(record, payload)
        if (wanted := self.held.pop(record.seq, None)) is not None:
            if wanted != record.record_hash:
                raise Fault("the record is not the one that the held receipt names")
            self.found += 1
        self.seq, self.head = record.seq, record.record_hash

    def finish(self) -> None:
        """Say when a record that somebody holds is beyond the end."""
        if self.held:
            raise Fault(f"the log ends before sequence {min(self.held)}, which a held receipt names")


def audit(path: Path, *, held: Mapping[int, str] | None = None, progress: Progress | None = None) -> Verdict:
    """Verify a journal or an export.

    Args:
        path: A closed SQLite copy, or a JSON-lines export.
        held: Sequence numbers and record hashes that somebody holds, from receipts or a head noted elsewhere.
        progress: Called now and then with the events read and their total where it is known.

    Raises:
        NotReadable: the path is neither, or in use.
    """
    started = time.monotonic_ns()
    reading = _Reading(held or {})
    violation: Violation | None = None
    with open_source(path) as source:
        place: int | None = 1
        try:
            for record in source.records():
                place = record.seq
                reading.take(record)
                place += 1
                if progress is not None and reading.seq % _PROGRESS_EVENTS == 0:
                    progress(reading.seq, source.total)
            place = None
            reading.finish()
            source.finish()
        except Fault as fault:
            violation = Violation(place, str(fault))
        violation = _earlier(violation, reading.rules.judge())
    last = reading.last
    return Verdict(
        ok=violation is None,
        reason="every record is whole, linked and in its place" if violation is None else violation.reason,
        seq=None if violation is None else violation.seq,
        stream=last.stream if last is not None and violation is not None and last.seq == violation.seq else None,
        source=source.description,
        events=reading.seq,
        head=reading.head,
        counts=reading.rules.counts(),
        held=reading.found,
        ms=(time.monotonic_ns() - started) // 1_000_000,
    )


def _earlier(one: Violation | None, other: Violation | None) -> Violation | None:
    """Return the one that comes first in the log; what concerns the log as a whole comes last."""
    if one is None or other is None:
        return one or other
    return other if one.seq is None or (other.seq is not None and other.seq < one.seq) else one
