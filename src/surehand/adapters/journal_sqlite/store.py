"""The writer's half of the journal: one connection, one thread, one transaction for a group of appends.

Guarantees: an append is in the file whole or not at all; what `commit` answered with events is durable; an append
that is refused takes nothing of its group with it; nothing is written over a file that somebody else changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import apsw
import msgspec
import orjson

from surehand import limits
from surehand.adapters.journal_sqlite.translate import commit_unknown, damaged, translate
from surehand.core import chain
from surehand.core.appending import Plan, StreamEnd
from surehand.errors import SurehandError
from surehand.model.events import Event
from surehand.ports import Clock

_INSERT: Final = "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_MOVE_STREAM: Final = "INSERT OR REPLACE INTO streams VALUES (?, ?, ?, ?)"
_COUNT_USE: Final = "INSERT OR REPLACE INTO uses VALUES (?, ?, ?)"
# The list of names leads: each is looked up once, and no table of them is built first.
_ENDS: Final = (
    "SELECT s.stream, s.version, s.type, s.seq FROM json_each(?) AS named "
    "CROSS JOIN streams AS s ON s.stream = named.value"
)
_COUNTS: Final = "SELECT u.key, u.count FROM json_each(?) AS named CROSS JOIN uses AS u ON u.key = named.value"


class Work(msgspec.Struct, frozen=True):
    """One append: its checked events, and the keys it consumes with their most uses."""

    drafts: Sequence[chain.Draft]
    keys: Mapping[str, int]


Answer = list[Event] | SurehandError


class Store:
    """Owns the writing connection; every method runs on the writer's thread.

    `head` and `ends` may be read by other threads: the first is replaced whole, the second only ever gains or
    loses whole entries.
    """

    def __init__(
        self,
        path: Path,
        connection: apsw.Connection,
        head: chain.Head,
        *,
        clock: Clock,
        randomness: Callable[[int], bytes],
    ) -> None:
        self._path = path
        self._connection = connection
        self._clock = clock
        self._randomness = randomness
        self._data_version = connection.pragma("data_version")
        self.head = head
        #: How the streams that were written last end.
        self.ends: dict[str, StreamEnd] = {}

    def commit(self, group: Sequence[Work], before_commit: Callable[[], None] = lambda: None) -> list[Answer]:
        """Write a group in one transaction and answer each append with its events or its refusal.

        Args:
            group: The appends.
            before_commit: Called when all is written but the commit itself, which waits for the disk.

        Raises:
            Unavailable: nothing of the group was written.
            CommitUnknown: the group may be written or not.
            JournalRecovery: the file is damaged or somebody else wrote to it; nothing of the group was written.
        """
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            self._check_alone()
            plan = self._plan(group)
            answers = [self._add(plan, work) for work in group]
            self._write(plan)
            before_commit()
        except (apsw.Error, UnicodeDecodeError) as error:
            self._roll_back()
            raise translate(self._path, error) from error
        except BaseException:
            self._roll_back()
            raise
        try:
            self._connection.execute("COMMIT")
        except apsw.Error as error:
            raise commit_unknown(self._path, error) from error
        self.head = plan.head
        self._remember(plan)
        return answers

    def close(self) -> None:
        """Move the write-ahead log into the file and let go of it."""
        self._connection.close()

    def _check_alone(self) -> None:
        # The number changes when any other connection wrote; our readers never do.
        if self._connection.pragma("data_version") != self._data_version:
            raise damaged(self._path, "another program wrote to the journal")

    def _plan(self, group: Sequence[Work]) -> Plan:
        streams = {new.event.stream for work in group for new in work.drafts}
        ends = {stream: end for stream in streams if (end := self.ends.get(stream)) is not None}
        if missing := streams - ends.keys():
            ends.update((stream, StreamEnd(*end)) for stream, *end in self._rows(_ENDS, missing))
        keys = {key for work in group for key in work.keys}
        counts = dict(self._rows(_COUNTS, keys)) if keys else {}
        now_ms = self._clock.wall_ms()
        count = sum(len(work.drafts) for work in group)
        ids = chain.uuids7(now_ms, self._randomness(chain.EVENT_ID_RANDOM_BYTES * count))
        return Plan(self.head, ends, counts, occurred_at=chain.timestamp(now_ms), event_ids=ids)

    def _rows(self, statement: str, names: Iterable[str]) -> Iterator[Any]:
        return iter(self._connection.execute(statement, (orjson.dumps(list(names)).decode(),)))

    @staticmethod
    def _add(plan: Plan, work: Work) -> Answer:
        try:
            return plan.add(work.drafts, work.keys)
        except SurehandError as refusal:
            return refusal

    def _write(self, plan: Plan) -> None:
        self._connection.executemany(_INSERT, plan.rows)
        moved = [(stream, end.version, end.seq, end.type) for stream, end in plan.moved.items()]
        self._connection.executemany(_MOVE_STREAM, moved)
        if plan.consumed_at:
            counted = [(key, plan.counts[key], seq) for key, seq in plan.consumed_at.items()]
            self._connection.executemany(_COUNT_USE, counted)

    def _roll_back(self) -> None:
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except apsw.Error as error:
            raise damaged(self._path, f"a transaction could not be undone ({error})") from error

    def _remember(self, plan: Plan) -> None:
        for stream, end in plan.moved.items():
            self.ends.pop(stream, None)
            self.ends[stream] = end
        while len(self.ends) > limits.STREAM_VERSIONS_CACHED:
            self.ends.pop(next(iter(self.ends)))
