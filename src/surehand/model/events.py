"""Journal events (spec §7)."""

from __future__ import annotations

from typing import Any

import msgspec

from surehand.model.record import Record


class NewEvent(Record, frozen=True, kw_only=True):
    """An event to append. `expected_version` is the stream's current version, 0 for a new stream, None for any."""

    stream: str
    type: str
    actor: str
    payload: dict[str, Any]
    context: dict[str, Any] = {}
    expected_version: int | None = None


class Event(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A stored event. `seq` is gapless from 1; `prev_hash` of the first is 64 zeros; hashes are lower-case hex."""

    seq: int
    event_id: str
    stream: str
    stream_version: int
    type: str
    occurred_at: str
    actor: str
    context: dict[str, Any]
    payload: dict[str, Any]
    prev_hash: str
    record_hash: str
