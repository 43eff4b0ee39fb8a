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
_DEPTH_MAX: Final = 32
_KEY_CHAR_END: Final = "\ud800"

_HASH: Final = re.compile(r"[0-9a-f]{64}")
_FORMS: Final = {
    "event_id": re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"),
    "stream": re.compile(r"[A-Za-z0-9._:/-]{1,640}"),
    "type": re.compile(r"[a-z][a-z_]{0,62}\.[a-z][a-z_]{0,62}\.v[1-9][0-9]{0,3}"),
    "occurred_at": re.compile(r"[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9]\.[0-9]{3}Z"),
    "actor": re.compile(r"[^\x00]{1,256}", re.DOTALL),
    "prev_hash": _HASH,
    "record_hash": _HASH,
}
#: Sixteen digits in a row may be an integer beyond the domain; only then is it worth looking at each.
_MANY_DIGITS: Final = re.compile(rb"[0-9]{16}")


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


_DECODER: Final = json.JSONDecoder(parse_float=_refuse, parse_constant=_refuse)
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
    suspicious = raw.count(b"{") + raw.count(b"[") > _DEPTH_MAX or _MANY_DIGITS.search(raw) is not None
    if suspicious or (not text.isascii() and max(text) >= _KEY_CHAR_END):
        _check_domain(value, 0)
    return value


def _check_domain(value: Any, depth: int) -> None:
    if isinstance(value, int) and not -_INTEGER_MAX <= value <= _INTEGER_MAX:
        raise Fault("an integer beyond 53 bits")
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
    """Return the hash that the stored fields give."""
    strings = {name: encode_basestring(getattr(record, name)).encode() for name in _FORMS}
    parts = (
        (b'{"actor":', strings["actor"]),
        (b',"context":', record.context),
        (b',"event_id":', strings["event_id"]),
        (b',"occurred_at":', strings["occurred_at"]),
        (b',"payload":', record.payload),
        (b',"prev_hash":', strings["prev_hash"]),
        (b',"seq":', b"%d" % record.seq),
        (b',"stream":', strings["stream"]),
        (b',"stream_version":', b"%d" % record.stream_version),
        (b',"type":', strings["type"]),
    )
    return digest(RECORD_DOMAIN, b"".join(piece for part in parts for piece in part) + b"}")


def check_record(record: Record) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return context and payload of a record that is whole in itself.

    Raises:
        Fault: naming the first thing that is wrong.
    """
    for name, form in _FORMS.items():
        if form.fullmatch(getattr(record, name)) is None:
            raise Fault(f"{name} does not have its form")
    if record.stream_version < 1:
        raise Fault("stream_version does not have its form")
    values = []
    for name in ("context", "payload"):
        raw = getattr(record, name)
        try:
            value = read_canonical(raw) if len(raw) <= EVENT_BYTES_MAX else None
        except Fault as fault:
            raise Fault(f"{name}: {fault}") from fault
        if not isinstance(value, dict):
            raise Fault(f"{name} is not an object within its bounds")
        values.append(value)
    if record_hash(record) != record.record_hash:
        raise Fault("the record hash does not match the stored fields")
    return values[0], values[1]
