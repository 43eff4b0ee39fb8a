"""What must hold between records: versions of streams, ends of operations, uses of permits, ids that never repeat.

The records are met in the order of the log, but most rules are about records that lie far apart. What matters of each
record goes as a small entry into a sorted spill; read back, everything about one stream, key or id lies together.
Of all violations the one with the lowest sequence number is kept.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any, Final, NamedTuple

from surehand.verify.records import Fault, Record
from surehand.verify.spill import Spill

#: Kind, digest of the name, sequence number, two numbers, code.
_ENTRY: Final = struct.Struct(">B16sQQQB")
_STREAM, _USE, _EVENT_ID, _PERMIT = 1, 2, 3, 4
_GROUP_BYTES: Final = 17

_CLAIMED, _RELEASED, _TERMINAL, _RESOLVED = 1, 2, 3, 4
_CODES: Final = {
    "operation.claimed.v1": _CLAIMED,
    "operation.released.v1": _RELEASED,
    "operation.terminal.v1": _TERMINAL,
    "operation.resolved.v1": _RESOLVED,
}
_TERMINAL_KINDS: Final = frozenset({"succeeded", "failed", "interrupted", "withheld", "outcome_unknown"})
_OPERATION_STREAMS: Final = ("operation:", "operation/")
_NUMBER_MAX: Final = 2**53 - 1


class Violation(NamedTuple):
    """A broken rule at a record, or of the log as a whole."""

    seq: int | None
    reason: str


class Counts(NamedTuple):
    """What the log holds, for people."""

    streams: int
    claims: int
    terminals: int
    unended: int


class Rules:
    """Takes in records one after another and judges them together at the end."""

    def __init__(self, spill: Spill | None = None) -> None:
        self._spill = spill or Spill(_ENTRY.size)
        self._first: tuple[int, str] | None = None
        self._streams = self._claims = self._terminals = self._unended = 0

    def add(self, record: Record, context: dict[str, Any], payload: dict[str, Any]) -> None:
        """Take in one record that is whole in itself.

        Raises:
            Fault: it breaks a rule by itself.
        """
        code = _CODES.get(record.type, 0)
        _check_noun(record)
        if code == _TERMINAL:
            _check_terminal(record, payload)
        self._put(_STREAM, record.stream, record.seq, record.stream_version, 0, code)
        self._put(_EVENT_ID, record.event_id, record.seq, 0, 0, 0)
        for key, use, uses_max in _consumed(context):
            self._put(_USE, key, record.seq, use, uses_max, 0)
        nonce = payload.get("permit_nonce")
        if code == _CLAIMED and isinstance(nonce, str) and nonce:
            self._put(_PERMIT, nonce, record.seq, 0, 0, 0)

    def _put(self, kind: int, name: str, seq: int, first: int, second: int, code: int) -> None:
        digest = hashlib.sha256(name.encode()).digest()[:16]
        self._spill.add(_ENTRY.pack(kind, digest, seq, first, second, code))

    def judge(self) -> Violation | None:
        """Return the violation with the lowest sequence number, or None."""
        judges: dict[int, Callable[[Iterator[tuple[int, ...]]], None]] = {
            _STREAM: self._judge_stream,
            _USE: self._judge_uses,
            _EVENT_ID: self._judge_unique("an event id appears twice"),
            _PERMIT: self._judge_unique("a permit was consumed twice"),
        }
        for group, entries in groupby(self._spill, key=lambda entry: entry[:_GROUP_BYTES]):
            judges[group[0]](_ENTRY.unpack(entry)[2:] for entry in entries)
        self._spill.close()
        return None if self._first is None else Violation(*self._first)

    def counts(self) -> Counts:
        """Return what the log holds; valid after `judge`."""
        return Counts(self._streams, self._claims, self._terminals, self._unended)

    def _found(self, seq: int, reason: str) -> None:
        if self._first is None or seq < self._first[0]:
            self._first = (seq, reason)

    def _judge_stream(self, entries: Iterator[tuple[int, ...]]) -> None:
        self._streams += 1
        expected = 1
        state = 0
        for seq, version, _, code in entries:
            if version != expected:
                self._found(seq, f"the stream is at version {version} where {expected} belongs")
                return
            expected += 1
            if code:
                if reason := _step(state, code):
                    self._found(seq, reason)
                    return
                state = code
                self._claims += code == _CLAIMED
                self._terminals += code == _TERMINAL
        self._unended += state == _CLAIMED

    def _judge_uses(self, entries: Iterator[tuple[int, ...]]) -> None:
        expected = 1
        for seq, use, uses_max, _ in entries:
            if use != expected:
                self._found(seq, f"use {use} of a permit or grant is stated where {expected} belongs")
                return
            if use > uses_max:
                self._found(seq, f"a permit or grant was used {use} times; the most is {uses_max}")
                return
            expected += 1

    def _judge_unique(self, reason: str) -> Callable[[Iterator[tuple[int, ...]]], None]:
        def judge(entries: Iterator[tuple[int, ...]]) -> None:
            next(entries)
            for again in entries:
                self._found(again[0], reason)
                return

        return judge


def _step(state: int, code: int) -> str | None:
    """Say why an event may not follow in an operation's stream, or None."""
    ended = state in {_TERMINAL, _RESOLVED}
    if code == _CLAIMED:
        if ended:
            return "the operation was claimed again after its terminal"
        return "the operation was claimed twice" if state == _CLAIMED else None
    if code == _RESOLVED:
        return None if ended else "an operation without a terminal was resolved"
    name = "terminal" if code == _TERMINAL else "release"
    if ended:
        return f"a {name} follows a terminal"
    return None if state == _CLAIMED else f"a {name} without a claim"


def _check_noun(record: Record) -> None:
    of_operation = record.type.startswith("operation.")
    if of_operation != record.stream.startswith(_OPERATION_STREAMS):
        raise Fault(f"{record.type} does not belong into stream {record.stream}")


def _check_terminal(record: Record, payload: dict[str, Any]) -> None:
    if payload.get("kind") not in _TERMINAL_KINDS:
        raise Fault("a terminal of no known kind")
    receipt = payload.get("receipt")
    if not isinstance(receipt, dict):
        raise Fault("a terminal without a receipt")
    owner = f"{receipt.get('principal')}{record.stream[len('operation')]}{receipt.get('operation_id')}"
    if record.stream[len("operation:") :] != owner:
        raise Fault("the receipt is of another operation")


def _consumed(context: dict[str, Any]) -> Iterator[tuple[str, int, int]]:
    consumed = context.get("consumed", {})
    if not isinstance(consumed, dict):
        raise Fault("context: consumed is not an object")
    for key, stated in consumed.items():
        if not isinstance(stated, dict):
            raise Fault("context: a use without its numbers")
        yield key, _number(stated.get("use")), _number(stated.get("of"))


def _number(value: Any) -> int:
    if type(value) is not int or not 0 < value <= _NUMBER_MAX:
        raise Fault("context: a use without its numbers")
    return value
