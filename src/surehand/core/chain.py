"""Events to records, and records to a chain of hashes (spec §7).

Pure: the previous head, times, versions and randomness are arguments, so that every store forms the same records and
a test can form any of them. A record's hash covers the canonical bytes of all its fields but the hash itself, the
previous hash among them; changing, dropping, adding or moving a record therefore changes every hash after it.

`context` and `payload` travel as the canonical bytes that are stored, so that what is verified is what was written,
not a second rendering of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

import msgspec
import orjson

from surehand import canonical, limits
from surehand.errors import InvalidRequest, TooLarge
from surehand.model.events import Event, NewEvent
from surehand.model.record import check_count, check_range, check_text

RECORD_DOMAIN: Final = "surehand/journal/record/v1"
GENESIS_HASH: Final = "0" * 64

#: The member of a first event's context that says which uses its append counted; only the journal writes it.
CONSUMED: Final = "consumed"

#: Random bytes that one event id takes.
EVENT_ID_RANDOM_BYTES: Final = 10

_TYPE: Final = re.compile(r"[a-z][a-z_]{0,62}\.[a-z][a-z_]{0,62}\.v[1-9][0-9]{0,3}")
_STREAM: Final = re.compile(rf"[A-Za-z0-9._:/-]{{1,{limits.STREAM_CHARS_MAX}}}")
_USE_KEY: Final = re.compile(rf"[!-~]{{1,{limits.USE_KEY_CHARS_MAX}}}")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_UUID_MS_MAX: Final = 2**48 - 1
#: The digit that states the variant, by one whose two low bits are random.
_VARIANT: Final = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}


class Head(NamedTuple):
    """The end of a log: the last sequence number and record hash."""

    seq: int
    record_hash: str


#: The end of an empty log.
EMPTY: Final = Head(0, GENESIS_HASH)


class Draft(msgspec.Struct, frozen=True):
    """A checked event whose context and payload are canonical bytes."""

    event: NewEvent
    context: bytes
    payload: bytes


class Row(NamedTuple):
    """A record as it is stored; the order is the order of the columns."""

    seq: int
    event_id: str
    stream: str
    stream_version: int
    type: str
    occurred_at: str
    actor: str
    context: bytes
    payload: bytes
    prev_hash: str
    record_hash: str


def draft(event: NewEvent) -> Draft:
    """Check an event and take its bytes; what the caller does with the dictionaries afterwards changes nothing.

    Raises:
        InvalidRequest: a name that is not `noun.verb.vN`, a stream or actor out of bounds, a value without canonical
            form, or a context that claims the journal's own member `consumed`.
        TooLarge: above `limits.EVENT_BYTES_MAX`.
    """
    if _TYPE.fullmatch(event.type) is None:
        raise InvalidRequest("an event type reads noun.verb.vN", details={"type": event.type[:64]})
    if _STREAM.fullmatch(event.stream) is None:
        raise InvalidRequest(f"a stream must be 1..{limits.STREAM_CHARS_MAX} of A-Z a-z 0-9 . _ : / -")
    check_text("actor", event.actor, limits.ACTOR_BYTES_MAX, empty=False)
    if event.expected_version is not None:
        check_range("expected_version", event.expected_version, 0, limits.INTEGER_MAX)
    if CONSUMED in event.context:
        raise InvalidRequest(f"the context member {CONSUMED!r} belongs to the journal")
    context = canonical.encode(event.context)
    payload = canonical.encode(event.payload)
    if len(context) + len(payload) > limits.EVENT_BYTES_MAX:
        raise TooLarge(f"an event has {len(context) + len(payload)} bytes; the limit is {limits.EVENT_BYTES_MAX}")
    return Draft(event, context, payload)


def drafts(events: Sequence[NewEvent]) -> list[Draft]:
    """Check and take the events of one append."""
    check_count("events", len(events), 0, limits.APPEND_EVENTS_MAX)
    return [draft(event) for event in events]


def check_uses(keys: Mapping[str, int], events: Sequence[NewEvent]) -> None:
    """Refuse keys to consume, or most uses, that are out of bounds, and uses without an event that records them."""
    if not keys:
        return
    check_count("keys", len(keys), 0, limits.USE_KEYS_MAX)
    if not events:
        raise InvalidRequest("a use is counted in an event; the append has none")
    for key, uses_max in keys.items():
        if _USE_KEY.fullmatch(key) is None:
            raise InvalidRequest(f"a use key must be 1..{limits.USE_KEY_CHARS_MAX} printable ASCII characters")
        check_range("most uses", uses_max, 1, limits.INTEGER_MAX)


def consumed_member(counts: Mapping[str, int], keys: Mapping[str, int]) -> dict[str, Any]:
    """Return the context member that says which use of which key an append is, and of how many."""
    return {CONSUMED: {key: {"use": counts[key], "of": keys[key]} for key in keys}}


def with_consumed(first: Draft, counts: Mapping[str, int], keys: Mapping[str, int]) -> tuple[Draft, dict[str, Any]]:
    """Return the draft whose context also says what the append consumed, so that the chain covers the counts.

    Beside it stands that context as a dictionary; the caller's own stays as it is.
    """
    context = {**first.event.context, **consumed_member(counts, keys)}
    return Draft(first.event, canonical.encode(context), first.payload), context


def seal(new: Draft, head: Head, *, stream_version: int, event_id: str, occurred_at: str) -> Row:
    """Return the record that follows `head`."""
    event = new.event
    named = (head.seq + 1, event_id, event.stream, stream_version, event.type, occurred_at, event.actor)
    fields = (*named, new.context, new.payload, head.record_hash)
    return Row(*fields, canonical.digest(RECORD_DOMAIN, _bytes_of(*fields)))


def next_event(new: NewEvent, head: Head, *, stream_version: int, event_id: str, occurred_at: str) -> Event:
    """Return the event that follows `head`: `seal` for callers that hold no bytes."""
    return event_of(seal(draft(new), head, stream_version=stream_version, event_id=event_id, occurred_at=occurred_at))


def record_bytes(row: Row) -> bytes:
    """Return the canonical bytes that the record hash covers: every field but `record_hash`, keys in order.

    The stored bytes of context and payload are put in as they are. Every other field is escaped, so that no stored
    text can pass for structure.
    """
    return _bytes_of(*row[:-1])


def _bytes_of(  # noqa: PLR0913, PLR0917 - the columns of a record, in their order
    seq: int,
    event_id: str,
    stream: str,
    stream_version: int,
    type_: str,
    occurred_at: str,
    actor: str,
    context: bytes,
    payload: bytes,
    prev_hash: str,
) -> bytes:
    return b"".join(
        (
            b'{"actor":',
            orjson.dumps(actor),
            b',"context":',
            context,
            b',"event_id":',
            orjson.dumps(event_id),
            b',"occurred_at":',
            orjson.dumps(occurred_at),
            b',"payload":',
            payload,
            b',"prev_hash":',
            orjson.dumps(prev_hash),
            b',"seq":%d,"stream":' % seq,
            orjson.dumps(stream),
            b',"stream_version":%d,"type":' % stream_version,
            orjson.dumps(type_),
            b"}",
        )
    )


def record_hash(row: Row) -> str:
    """Return the hash of a record."""
    return canonical.digest(RECORD_DOMAIN, record_bytes(row))


def event_of(row: Row) -> Event:
    """Return the event of a record, its context and payload read from the stored bytes."""
    values = row._asdict()
    values.update(context=orjson.loads(row.context), payload=orjson.loads(row.payload))
    return Event(**values)


def row_of(event: Event) -> Row:
    """Return the record of an event."""
    values: dict[str, Any] = {name: getattr(event, name) for name in Row._fields}
    values.update(context=canonical.encode(event.context), payload=canonical.encode(event.payload))
    return Row(**values)


def fault(row: Row, head: Head | None = None) -> str | None:
    """Say what is wrong with a stored record, or None.

    Args:
        row: As stored.
        head: The record before it in the log; None where only the record itself is looked at.
    """
    if head is not None and row.seq != head.seq + 1:
        return f"sequence {head.seq + 1} is missing"
    try:
        own = record_hash(row)
        whole = isinstance(orjson.loads(row.context), dict) and isinstance(orjson.loads(row.payload), dict)
    except (TypeError, ValueError):
        return "a stored field is not what was written"
    if own != row.record_hash:
        return "the record hash does not match the stored fields"
    if head is not None and row.prev_hash != head.record_hash:
        return "the previous hash is not that of the record before it"
    return None if whole else "context or payload is not an object"


def export_line(event: Event) -> bytes:
    """Return one line of a JSON-lines export: the canonical bytes of all fields, and a line feed."""
    return canonical.encode_record(event) + b"\n"


def uuids7(now_ms: int, randomness: bytes) -> Iterator[str]:
    """Yield a UUID version 7 (RFC 9562 §5.7) of one time for every 10 random bytes, of whose bits 6 are not used."""
    if len(randomness) % EVENT_ID_RANDOM_BYTES:
        raise ValueError("a UUID takes 10 random bytes")
    if not 0 <= now_ms <= _UUID_MS_MAX:
        raise ValueError("a UUID takes 48 bits of milliseconds")
    time = f"{now_ms:012x}"
    first = f"{time[:8]}-{time[8:]}-7"
    for at in range(0, len(randomness), EVENT_ID_RANDOM_BYTES):
        digits = randomness[at : at + EVENT_ID_RANDOM_BYTES].hex()
        yield f"{first}{digits[:3]}-{_VARIANT[digits[19]]}{digits[3:6]}-{digits[6:18]}"


def timestamp(now_ms: int) -> str:
    """Return wall-clock milliseconds as RFC 3339 in UTC, such as `2026-11-30T08:47:33.123Z`."""
    return (_EPOCH + timedelta(milliseconds=now_ms)).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"
