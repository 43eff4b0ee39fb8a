"""The base of every record, and the few bound checks that records share.

A record is frozen, keyword-only and refuses unknown fields. `__post_init__` runs on construction and on decoding
alike, so there is no way to hold a record that breaks its bounds.
"""

from __future__ import annotations

import functools
import re
from typing import Any, Final, TypeVar

import msgspec

from surehand import canonical, limits
from surehand.errors import InvalidRequest, SurehandError, TooLarge

_IDENTIFIER: Final = re.compile(rf"[A-Za-z0-9._:-]{{1,{limits.IDENTIFIER_CHARS_MAX}}}")
_HASH: Final = re.compile(r"[0-9a-f]{64}")


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Base of all records. Fields whose default is None are absent from the canonical bytes when None."""


class Tagged(Record, frozen=True, kw_only=True, tag_field="kind"):
    """Base of the members of a tagged union; the tag is the field `kind`."""


R = TypeVar("R")


def decode(kind: type[R], data: bytes, *, bytes_max: int = limits.REQUEST_BYTES_MAX) -> R:
    """Read strict JSON bytes into a record: duplicate keys, floats, unknown fields and broken bounds are refused.

    Raises:
        InvalidRequest, TooLarge: naming the field.
    """
    return convert(kind, canonical.parse(data, bytes_max=bytes_max))


def convert(kind: type[R], value: Any) -> R:
    """Turn an already strictly parsed JSON value into a record."""
    try:
        return msgspec.convert(value, kind, strict=True)
    except msgspec.ValidationError as error:
        if isinstance(error.__cause__, SurehandError):
            raise error.__cause__ from None
        raise InvalidRequest(str(error)) from error
    except UnicodeEncodeError as error:
        raise InvalidRequest("a name or a text holds a lone surrogate") from error


def to_value(record: msgspec.Struct) -> Any:
    """Return the plain JSON value of a record."""
    return msgspec.to_builtins(record)


@functools.cache
def tag_of(kind: type[msgspec.Struct]) -> str:
    """Return the tag of a class of records; the class itself makes a new object each time it is asked."""
    return str(kind.__struct_config__.tag)


def check_identifier(name: str, value: str) -> None:
    """Refuse anything but 1..256 of `[A-Za-z0-9._:-]` (spec §3.1)."""
    if _IDENTIFIER.fullmatch(value) is None:
        raise InvalidRequest(f"{name} must be 1..{limits.IDENTIFIER_CHARS_MAX} of A-Z a-z 0-9 . _ : -")


def check_hash(name: str, value: str) -> None:
    """Refuse anything but 64 lower-case hex digits."""
    if _HASH.fullmatch(value) is None:
        raise InvalidRequest(f"{name} must be 64 lower-case hex digits")


def check_range(name: str, value: int, low: int, high: int) -> None:
    """Refuse integers outside `low..high`, both included."""
    if not low <= value <= high:
        raise InvalidRequest(f"{name} must be {low}..{high}")


def check_text(name: str, value: str, bytes_max: int, *, empty: bool = True) -> None:
    """Refuse text above `bytes_max` UTF-8 bytes, lone surrogates and NUL."""
    if not empty and not value:
        raise InvalidRequest(f"{name} must not be empty")
    try:
        size = len(value) if value.isascii() else len(value.encode("utf-8"))
    except UnicodeEncodeError as error:
        raise InvalidRequest(f"{name} holds a lone surrogate") from error
    if size > bytes_max:
        raise TooLarge(f"{name} has {size} bytes; the limit is {bytes_max}")
    if "\x00" in value:
        raise InvalidRequest(f"{name} holds a NUL character")


def check_count(name: str, count: int, low: int, high: int) -> None:
    """Refuse collections with fewer than `low` or more than `high` items."""
    if count < low:
        raise InvalidRequest(f"{name} needs at least {low}")
    if count > high:
        raise TooLarge(f"{name} has {count} items; the limit is {high}")
