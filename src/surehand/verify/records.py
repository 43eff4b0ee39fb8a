"""The auditor's own reading of records: canonical bytes and hashes, written from `spec/canonical.md` and
`spec/journal.md` and sharing no code with the writer.

Nothing here trusts what is stored: every field is checked for its form, every hash is formed again from the raw bytes.
"""  # noqa: D205

from __future__ import annotations

import hashlib
import json
import re
from json.encoder import encode_basestring
from typing import Any, Final, NamedTuple

RECORD_DOMAIN: Final = b"surehand/journal/record/v1\x00"
GENESIS_HASH: Final = "0" * 64
EVENT_BYTES_MAX: Final = 2**22 + 2**16  # four mebibytes of context and payload, and room for what the journal adds

_INTEGER_MAX: Final = 2**53 - 1
_INTEGER_CHARS_MAX: Final = 17
_DEPTH_MAX: Final = 32
_KEY_CHAR_END: Final = "\ud800"

_HASH: Final = r"[0-9a-f]{64}"
#: The form of each text field; the actor, which may hold anything, comes last.
_FORMS: Final = {
    "event_id": r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}",
    "stream": r"[A-Za-z0-9._:/-]{1,640}",
    "type": r"[a-z][a-z_]{0,62}\.[a-z][a-z_]{0,62}\.v[1-9][0-9]{0,3}",
    "occurred_at": r"[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9]\.[0-9]{3}Z",
    "prev_hash": _HASH,
    "record_hash": _HASH,
    "actor": r"[^\x00]{1,256}",
}
#: All forms in one pattern: a record that fits it needs no other look.
_WHOLE_FORM: Final = re.compile("\n".join(_FORMS.values()))


class Fault(Exception):
    """What is wrong with a record, in one line."""


class Record(NamedTuple):
    """One record as stored; `context` and `payload` are raw bytes."""

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


def _refuse(_text: str) -> Any:
    raise Fault("a number that is not an integer")


def _integer(text: str) -> int:
    value = int(text) if len(text) <= _INTEGER_CHARS_MAX else _INTEGER_MAX + 1
    if not -_INTEGER_MAX <= value <= _INTEGER_MAX:
        raise Fault("an integer beyond 53 bits")
    return value


_DECODER: Final = json.JSONDecoder(parse_float=_refuse, parse_constant=_refuse, parse_int=_integer)
_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))


def encode(value: Any) -> bytes:
    """Return the canonical bytes of a value whose keys all lie below U+D800."""
    return _ENCODER.encode(value).encode("utf-8")


def read_canonical(raw: bytes) -> Any:
    """Return the value of canonical bytes.

    Raises:
        Fault: they are not the one canonical form of a value of the domain.
    """
    try:
        text = raw.decode("utf-8")
        value = _DECODER.decode(text)
        again = encode(value)
    except (ValueError, RecursionError) as error:
        raise Fault("it is not JSON") from error
    if again != raw:
        # A repeated key, a space, an order or an escape that the one form does not have.
        raise Fault("it is not in canonical form")
    # Counting brackets is quick, and most records have too few to be nested too deep.
    deep = raw.count(b"{") + raw.count(b"[") > _DEPTH_MAX
    if deep or (not text.isascii() and max(text) >= _KEY_CHAR_END):
        _check_domain(value, 0)
    return value


def _check_domain(value: Any, depth: int) -> None:
    if not isinstance(value, dict | list):
        return
    if depth >= _DEPTH_MAX:
        raise Fault(f"nested deeper than {_DEPTH_MAX} levels")
    if isinstance(value, dict) and any(key and max(key) >= _KEY_CHAR_END for key in value):
        raise Fault("an object key at or above U+D800")
    for item in value.values() if isinstance(value, dict) else value:
        _check_domain(item, depth + 1)


def digest(domain: bytes, data: bytes) -> str:
    """Return the lower-case hex of SHA-256 over a domain, which ends in a zero byte, and data."""
    return hashlib.sha256(domain + data).hexdigest()


def record_hash(record: Record) -> str:
    """Return the hash that the stored fields give: over all of them but the hash, raw bytes as they are stored."""
    text = encode_basestring
    before = f'{{"actor":{text(record.actor)},"context":'
    between = f',"event_id":{text(record.event_id)},"occurred_at":{text(record.occurred_at)},"payload":'
    after = (
        f',"prev_hash":{text(record.prev_hash)},"seq":{record.seq},"stream":{text(record.stream)}'
        f',"stream_version":{record.stream_version},"type":{text(record.type)}}}'
    )
    parts = (before.encode(), record.context, between.encode(), record.payload, after.encode())
    return digest(RECORD_DOMAIN, b"".join(parts))


def check_record(record: Record) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return context and payload of a record that is whole in itself.

    Raises:
        Fault: naming the first thing that is wrong.
    """
    _check_forms(record)
    context = _object("context", record.context)
    payload = _object("payload", record.payload)
    if record_hash(record) != record.record_hash:
        raise Fault("the record hash does not match the stored fields")
    return context, payload


def _check_forms(record: Record) -> None:
    fields = (record.event_id, record.stream, record.type, record.occurred_at, record.prev_hash, record.record_hash)
    if _WHOLE_FORM.fullmatch("\n".join((*fields, record.actor))) is None:
        names = (name for name, form in _FORMS.items() if re.fullmatch(form, getattr(record, name)) is None)
        raise Fault(f"{next(names, 'a field')} does not have its form")
    if record.stream_version < 1:
        raise Fault("stream_version does not have its form")


def _object(name: str, raw: bytes) -> dict[str, Any]:
    if len(raw) > EVENT_BYTES_MAX:
        raise Fault(f"{name} is larger than any event")
    try:
        value = read_canonical(raw)
    except Fault as fault:
        raise Fault(f"{name}: {fault}") from fault
    if not isinstance(value, dict):
        raise Fault(f"{name} is not an object")
    return value
