"""Journals for tests: one in memory, and one that fails on purpose.

Neither keeps anything: `durable` is false and `facts` says what it is, so that doctor and receipts cannot take them for
evidence. The memory journal forms the same records by the same rules as every store (`core/appending.py`) and passes
the same contract suite.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, NoReturn

from surehand import limits
from surehand.core import chain
from surehand.core.appending import Plan, StreamEnd
from surehand.errors import CommitUnknown, JournalRecovery, Unavailable
from surehand.model.events import Event, NewEvent
from surehand.ports import Clock, Journal


class MemoryJournal:
    """A journal in memory, for tests: it forgets everything when the process ends.

    Args:
        clock: For the times of events.
        randomness: For event ids; a counter makes them repeatable.
    """

    durable: Final = False

    def __init__(self, *, clock: Clock, randomness: Callable[[int], bytes] = os.urandom) -> None:
        self._clock = clock
        self._randomness = randomness
        self._rows: list[chain.Row] = []
        self._streams: dict[str, list[chain.Row]] = {}
        self._ends: dict[str, StreamEnd] = {}
        self._uses: dict[str, int] = {}
        self._closed = False

    @property
    def recovery(self) -> JournalRecovery | None:
        """Return None: there is no file to be damaged."""
        return None

    def facts(self) -> dict[str, Any]:
        """Return what doctor says of the journal."""
        return {
            "kind": "memory",
            "identity": f"memory-{id(self):x}",
            "tier": "none",
            "lacks": ["nothing survives the process; for tests"],
            "events": len(self._rows),
            "read_only": None,
        }

    async def append(self, events: Sequence[NewEvent]) -> list[Event]:
        """Append all events in one step; see `ports.Journal.append`."""
        return await self.consume({}, events)

    async def consume(self, keys: Mapping[str, int], events: Sequence[NewEvent]) -> list[Event]:
        """Append and count one use of every key; see `ports.Journal.consume`."""
        if self._closed:
            raise Unavailable("the journal is closed")
        chain.check_uses(keys, events)
        drafts = chain.drafts(events)
        if not drafts:
            return []
        # A real journal never answers in the same turn of the loop; neither does this one.
        await asyncio.sleep(0)
        now_ms = self._clock.wall_ms()
        ids = chain.uuids7(now_ms, self._randomness(chain.EVENT_ID_RANDOM_BYTES * len(drafts)))
        names = {new.event.stream for new in drafts} & self._ends.keys()
        ends = {stream: self._ends[stream] for stream in names}
        plan = Plan(self._head(), ends, self._uses, occurred_at=chain.timestamp(now_ms), event_ids=ids)
        stored = plan.add(drafts, keys)
        self._rows.extend(plan.rows)
        for row in plan.rows:
            self._streams.setdefault(row.stream, []).append(row)
        self._ends.update(plan.moved)
        self._uses = plan.counts
        return stored

    def known(self, stream: str) -> bool:
        """Return whether the stream has any event."""
        return stream in self._streams

    async def stream(self, stream: str, *, after_version: int = 0, limit: int = 1000) -> list[Event]:
        """Return a page of one stream."""
        return self._page(self._streams.get(stream, []), after_version, limit)

    async def read(self, *, after_seq: int = 0, limit: int = 1000) -> list[Event]:
        """Return a page of the whole log."""
        return self._page(self._rows, after_seq, limit)

    async def streams_ending(self, event_type: str, *, limit: int = 1000) -> list[str]:
        """Return streams that end in this type, oldest first; an open claim counts as the end of its stream."""
        found = [(end.seq, stream) for stream, end in self._ends.items() if end.type == event_type]
        return [stream for _, stream in sorted(found)][: max(0, limit)]

    async def latest(self, prefix: str, *, before_seq: int | None = None, limit: int = 100) -> list[tuple[str, int]]:
        """Return streams whose names begin so with the number of their last event, newest first."""
        before = self._head().seq + 1 if before_seq is None else before_seq
        named = ((end.seq, stream) for stream, end in self._ends.items() if stream.startswith(prefix))
        return [(stream, seq) for seq, stream in sorted(named, reverse=True) if seq < before][: _clamp(limit)]

    async def uses(self, key: str) -> int:
        """Return how often a key was consumed."""
        return self._uses.get(key, 0)

    async def head(self) -> tuple[int, str]:
        """Return the last sequence number and record hash."""
        return self._head()

    async def close(self) -> None:
        """Refuse further appends."""
        self._closed = True

    def _head(self) -> chain.Head:
        return chain.Head(self._rows[-1].seq, self._rows[-1].record_hash) if self._rows else chain.EMPTY

    @staticmethod
    def _page(rows: list[chain.Row], after: int, limit: int) -> list[Event]:
        start = max(0, after)
        return [chain.event_of(row) for row in rows[start : start + _clamp(limit)]]


#: How an append can fail: refused with nothing written, written with its answer lost, not written with its answer
#: lost, the whole journal read-only from then on.
Fault = Literal["unavailable", "lost_after", "lost_before", "recovery"]


class FaultyJournal:
    """A journal that fails when it is told to, around one that works.

    Example: ``journal.fail("operation.terminal.v1", "lost_after")`` makes the next append that holds a terminal be
    written and raise `CommitUnknown`.
    """

    durable: Final = False

    def __init__(self, inner: Journal) -> None:
        self._inner = inner
        self._faults: list[tuple[str, Fault]] = []
        self._holds: dict[str, asyncio.Event] = {}
        self._recovery: JournalRecovery | None = None
        #: Types of the events of every append that was asked for, in order, whatever became of it.
        self.asked: list[tuple[str, ...]] = []

    @property
    def recovery(self) -> JournalRecovery | None:
        """Return why the journal is read-only, or None."""
        return self._recovery

    def fail(self, event_type: str, fault: Fault, *, times: int = 1) -> None:
        """Make the next appends that hold an event of this type fail; `*` stands for any type."""
        self._faults.extend([(event_type, fault)] * times)

    def reopen(self) -> None:
        """Be writable again, as a real journal is after it was opened anew."""
        self._recovery = None

    def hold(self, event_type: str) -> asyncio.Event:
        """Make appends that hold an event of this type wait until the returned event is set."""
        return self._holds.setdefault(event_type, asyncio.Event())

    def facts(self) -> dict[str, Any]:
        """Return what doctor says of the journal."""
        return {"kind": "faulty", "tier": "none", "lacks": ["it fails on purpose; for tests"], "read_only": None}

    async def append(self, events: Sequence[NewEvent]) -> list[Event]:
        """Append, or fail as told."""
        return await self.consume({}, events)

    async def consume(self, keys: Mapping[str, int], events: Sequence[NewEvent]) -> list[Event]:
        """Append and count, or fail as told."""
        types = tuple(event.type for event in events)
        self.asked.append(types)
        for event_type in types:
            if (hold := self._holds.get(event_type)) is not None:
                await hold.wait()
        fault = self._next_fault(types)
        if self._recovery is not None:
            raise JournalRecovery(self._recovery.message, fix=self._recovery.fix)
        if fault == "unavailable":
            raise Unavailable("the disk is full; nothing was written (made to, in a test)")
        if fault in {"recovery", "lost_before"}:
            self._fall(fault)
        stored = await self._inner.consume(keys, events)
        if fault == "lost_after":
            self._fall(fault)
        return stored

    def _fall(self, fault: Fault) -> NoReturn:
        """Become read-only, as a real journal does after either."""
        kind = JournalRecovery if fault == "recovery" else CommitUnknown
        self._recovery = kind(f"{fault}: made to fail, in a test", fix="open it again")
        raise self._recovery

    def _next_fault(self, types: tuple[str, ...]) -> Fault | None:
        for index, (event_type, fault) in enumerate(self._faults):
            if event_type == "*" or event_type in types:
                del self._faults[index]
                return fault
        return None

    def known(self, stream: str) -> bool:
        """Return what the inner journal says."""
        return self._inner.known(stream)

    async def stream(self, stream: str, *, after_version: int = 0, limit: int = 1000) -> list[Event]:
        """Return what the inner journal says."""
        return await self._inner.stream(stream, after_version=after_version, limit=limit)

    async def read(self, *, after_seq: int = 0, limit: int = 1000) -> list[Event]:
        """Return what the inner journal says."""
        return await self._inner.read(after_seq=after_seq, limit=limit)

    async def streams_ending(self, event_type: str, *, limit: int = 1000) -> list[str]:
        """Return what the inner journal says."""
        return await self._inner.streams_ending(event_type, limit=limit)

    async def latest(self, prefix: str, *, before_seq: int | None = None, limit: int = 100) -> list[tuple[str, int]]:
        """Return what the inner journal says."""
        return await self._inner.latest(prefix, before_seq=before_seq, limit=limit)

    async def uses(self, key: str) -> int:
        """Return what the inner journal says."""
        return await self._inner.uses(key)

    async def head(self) -> tuple[int, str]:
        """Return what the inner journal says."""
        return await self._inner.head()

    async def close(self) -> None:
        """Close the inner journal."""
        await self._inner.close()


def _clamp(limit: int) -> int:
    return max(0, min(limit, limits.JOURNAL_READ_EVENTS_MAX))
