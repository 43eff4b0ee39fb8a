"""Values to canonical bytes, and canonical bytes to domain-separated digests (spec §4).

The bytes are RFC 8785 of a restricted domain: null, booleans, integers within ±(2^53−1), strings without lone
surrogates, lists, and objects whose keys all lie below U+D800. No floats, so no number formatting is left to argue
about. `parse` is the strict reader: it refuses duplicate keys, which every fast JSON library accepts silently.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final

import msgspec
import orjson

from surehand import limits
from surehand.errors import InvalidRequest, TooLarge

_OPTIONS: Final = orjson.OPT_SORT_KEYS | orjson.OPT_STRICT_INTEGER
_LEAVES: Final = frozenset({str, int, bool, type(None)})

#: Above U+D800 the order of UTF-16 units and of code points differ, so two writers could disagree on key order.
_KEY_CHAR_END: Final = "\ud800"


def encode(value: Any) -> bytes:
    """Return the canonical bytes of a plain JSON value.

    Raises:
        InvalidRequest: a float, an integer beyond ±(2^53−1), a lone surrogate, a key at or above U+D800, or a type
            JSON does not have.
        TooLarge: nested deeper than `limits.JSON_DEPTH_MAX`.
    """
    _check(value, 0)
    try:
        data = orjson.dumps(value, option=_OPTIONS)
    except TypeError as error:
        raise InvalidRequest(f"not a canonical value: {error}") from error
    # Where all bytes are ASCII, so are the keys; only otherwise are they worth a walk.
    if not data.isascii():
        _check_all_keys(value)
    return data


def encode_record(record: msgspec.Struct) -> bytes:
    """Return the canonical bytes of a record; absent optional fields are left out."""
    return encode(msgspec.to_builtins(record))


def _check(value: Any, depth: int) -> None:
    # Exact types, and no call for a leaf: this walk is most of what a journal append costs.
    # The range of integers, lone surrogates, and keys that are no strings are left to orjson, which refuses them.
    kind = type(value)
    if kind is dict:
        items = value.values()
    elif kind is list or kind is tuple:
        items = value
    elif kind in _LEAVES:
        return
    else:
        raise InvalidRequest(f"{kind.__name__} has no canonical form")
    if depth >= limits.JSON_DEPTH_MAX:
        raise TooLarge(f"nested deeper than {limits.JSON_DEPTH_MAX} levels")
    for item in items:
        kind = type(item)
        # Most leaves are texts, and which type something is costs less to compare than to look up.
        if kind is not str and kind not in _LEAVES:
            _check(item, depth + 1)


def _check_all_keys(value: Any) -> None:
    if isinstance(value, dict):
        _check_keys(value)
        value = value.values()
    elif not isinstance(value, list | tuple):
        return
    for item in value:
        _check_all_keys(item)


def _check_keys(value: dict[str, Any]) -> None:
    # One look at all keys together; which of them it was does not matter to the refusal.
    names = "".join(value)
    if not names.isascii() and max(names) >= _KEY_CHAR_END:
        raise InvalidRequest("an object key lies at or above U+D800")


def digest(domain: str, data: bytes) -> str:
    """Return the lower-case hex of SHA-256(domain ‖ 0x00 ‖ data). Each use has a domain of its own."""
    return hashlib.sha256(domain.encode("ascii") + b"\x00" + data).hexdigest()


def hash_value(domain: str, value: Any) -> str:
    """Return the digest of a plain value's canonical bytes."""
    return digest(domain, encode(value))


def hash_record(domain: str, record: msgspec.Struct) -> str:
    """Return the digest of a record's canonical bytes."""
    return digest(domain, encode_record(record))


class _Reader:
    """Counts what the JSON reader hands over, so that width is bounded as well as size."""

    def __init__(self) -> None:
        self.nodes = 0

    def object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        self.nodes += len(pairs) + 1
        if self.nodes > limits.JSON_NODES_MAX:
            raise TooLarge(f"more than {limits.JSON_NODES_MAX} values")
        found = dict(pairs)
        if len(found) != len(pairs):
            raise InvalidRequest("an object names the same key twice")
        return found


def _no_float(text: str) -> Any:
    raise InvalidRequest(f"not an integer: {text[:32]}")


def _bounded_int(text: str) -> int:
    if len(text) > 17:
        raise InvalidRequest("an integer lies beyond ±(2^53−1)")
    return int(text)


def parse(data: bytes, *, bytes_max: int = limits.REQUEST_BYTES_MAX) -> Any:
    """Read strict JSON: UTF-8, no duplicate keys, no floats, NaN or lone surrogates, bounded in size and depth.

    Raises:
        TooLarge: more than `bytes_max` bytes, too deep or too wide.
        InvalidRequest: anything else that is not exactly one canonical-domain value.
    """
    if len(data) > bytes_max:
        raise TooLarge(f"{len(data)} bytes; the limit is {bytes_max}")
    reader = _Reader()
    try:
        value = json.loads(
            data.decode("utf-8"),
            object_pairs_hook=reader.object,
            parse_float=_no_float,
            parse_constant=_no_float,
            parse_int=_bounded_int,
        )
    except RecursionError as error:
        raise TooLarge(f"nested deeper than {limits.JSON_DEPTH_MAX} levels") from error
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InvalidRequest(f"not JSON: {error}") from error
    _check_parsed(value, 0, [limits.JSON_NODES_MAX])
    return value


def _check_parsed(value: Any, depth: int, left: list[int]) -> None:
    left[0] -= 1
    if left[0] < 0:
        raise TooLarge(f"more than {limits.JSON_NODES_MAX} values")
    if isinstance(value, str):
        _check_text(value)
    elif isinstance(value, int):
        if not -limits.INTEGER_MAX <= value <= limits.INTEGER_MAX:
            raise InvalidRequest("an integer lies beyond ±(2^53−1)")
    elif value is not None:
        _check_container(value, depth, left)


def _check_container(value: dict[str, Any] | list[Any], depth: int, left: list[int]) -> None:
    if depth >= limits.JSON_DEPTH_MAX:
        raise TooLarge(f"nested deeper than {limits.JSON_DEPTH_MAX} levels")
    if isinstance(value, dict):
        _check_keys(value)
    for item in value.values() if isinstance(value, dict) else value:
        _check_parsed(item, depth + 1, left)


def _check_text(text: str) -> None:
    if text.isascii():
        return
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidRequest("a string holds a lone surrogate") from error
