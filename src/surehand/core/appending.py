"""What one commit of the journal will write: the rules every store shares (spec §7).

Pure: a plan is given the end of the log, the versions of the streams and the counts of the keys it may meet, and
collects appends one after another. An append that is refused leaves the plan as it was, so those that share its
commit are not touched by it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from surehand.core import chain
from surehand.errors import Conflict, PermitInvalid
from surehand.model.events import Event

CLAIMED: Final = "operation.claimed.v1"

#: What ends a claim. Nothing else does: a refusal of somebody who came second must not hide an open claim.
_SETTLING: Final = frozenset({"operation.released.v1", "operation.terminal.v1"})


class StreamEnd(NamedTuple):
    """How a stream ends: its length, the type of its last event, or a claim that is still open, and the last's seq."""

    version: int
    type: str
    seq: int


_NO_STREAM: Final = StreamEnd(0, "", 0)


def ending(before: str, event_type: str) -> str:
    """Return how a stream ends once an event of this type follows."""
    return CLAIMED if before == CLAIMED and event_type not in _SETTLING else event_type


class Plan:
    """The rows of one commit.

    Args:
        head: The end of the log.
        streams: The end of every stream that an append may name; absent means that there is none.
        counts: How often every key that an append may consume was consumed; absent means 0.
        occurred_at: The time of the commit.
        event_ids: Fresh event ids.
    """

    def __init__(
        self,
        head: chain.Head,
        streams: Mapping[str, StreamEnd],
        counts: Mapping[str, int],
        *,
        occurred_at: str,
        event_ids: Iterator[str],
    ) -> None:
        self.head = head
        self.rows: list[chain.Row] = []
        self._streams = streams
        self.counts = dict(counts)
        #: Streams that gained events, with their new end.
        self.moved: dict[str, StreamEnd] = {}
        #: Keys that were consumed, with the sequence number of the last event that did.
        self.consumed_at: dict[str, int] = {}
        self._occurred_at = occurred_at
        self._event_ids = event_ids

    def add(self, drafts: Sequence[chain.Draft], keys: Mapping[str, int]) -> list[Event]:
        """Take in one append and return its events, which carry the caller's own dictionaries.

        Raises:
            Conflict: an expected version differs; `details` hold `stream`, `expected`, `actual`.
            PermitInvalid: a key has its most uses already.
        """
        self._check_versions(drafts)
        counts = self._check_counts(keys)
        events: list[Event] = []
        for new in drafts:
            counted, context = new, new.event.context
            if keys and not events:
                counted, context = chain.with_consumed(new, counts, keys)
            events.append(_event(self._seal(counted), new, context))
        if events:
            self.counts.update(counts)
            self.consumed_at.update(dict.fromkeys(keys, events[0].seq))
        return events

    def _seal(self, new: chain.Draft) -> chain.Row:
        stream = new.event.stream
        before = self._end(stream)
        version = before.version + 1
        row = chain.seal(
            new, self.head, stream_version=version, event_id=next(self._event_ids), occurred_at=self._occurred_at
        )
        self.head = chain.Head(row.seq, row.record_hash)
        self.rows.append(row)
        self.moved[stream] = StreamEnd(version, ending(before.type, row.type), row.seq)
        return row

    def _end(self, stream: str) -> StreamEnd:
        return self.moved.get(stream) or self._streams.get(stream, _NO_STREAM)

    def _check_versions(self, drafts: Sequence[chain.Draft]) -> None:
        ahead: dict[str, int] = {}
        for new in drafts:
            stream, expected = new.event.stream, new.event.expected_version
            if expected is not None:
                actual = self._end(stream).version + ahead.get(stream, 0)
                if expected != actual:
                    raise Conflict(
                        f"the stream is at version {actual}, not {expected}",
                        details={"stream": stream, "expected": expected, "actual": actual},
                    )
            ahead[stream] = ahead.get(stream, 0) + 1

    def _check_counts(self, keys: Mapping[str, int]) -> dict[str, int]:
        counts = {}
        for key, uses_max in keys.items():
            used = self.counts.get(key, 0)
            if used >= uses_max:
                raise PermitInvalid(
                    f"it was used {used} times already; the most is {uses_max}",
                    details={"key": key, "uses": used, "uses_max": uses_max},
                )
            counts[key] = used + 1
        return counts


def _event(row: chain.Row, new: chain.Draft, context: dict[str, Any]) -> Event:
    return Event(
        seq=row.seq,
        event_id=row.event_id,
        stream=row.stream,
        stream_version=row.stream_version,
        type=row.type,
        occurred_at=row.occurred_at,
        actor=row.actor,
        context=context,
        payload=new.event.payload,
        prev_hash=row.prev_hash,
        record_hash=row.record_hash,
    )
