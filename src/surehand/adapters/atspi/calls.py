"""Reads of `org.a11y.atspi.*` objects: how each is asked, and what of an answer is believed.

Promise: nothing here builds a call that changes an application; those live with acting. Every answer comes from an
application and may have any shape, so each reader returns a value of exactly its type or None, never raises, and cuts
text to `limits.FIELD_BYTES_STORED_MAX`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from surehand import limits
from surehand.adapters.atspi.transport import Call, Connection, Failure, Reply, Variant, unwrap

ACCESSIBLE: Final = "org.a11y.atspi.Accessible"
ACTION: Final = "org.a11y.atspi.Action"
APPLICATION: Final = "org.a11y.atspi.Application"
CACHE: Final = "org.a11y.atspi.Cache"
COMPONENT: Final = "org.a11y.atspi.Component"
EDITABLE_TEXT: Final = "org.a11y.atspi.EditableText"
REGISTRY: Final = "org.a11y.atspi.Registry"
SELECTION: Final = "org.a11y.atspi.Selection"
TABLE: Final = "org.a11y.atspi.Table"
TEXT: Final = "org.a11y.atspi.Text"
VALUE: Final = "org.a11y.atspi.Value"
PROPERTIES: Final = "org.freedesktop.DBus.Properties"

ROOT_PATH: Final = "/org/a11y/atspi/accessible/root"
NULL_PATH: Final = "/org/a11y/atspi/null"
CACHE_PATH: Final = "/org/a11y/atspi/cache"

SCREEN_COORDINATES: Final = 0
WINDOW_COORDINATES: Final = 1

#: What a cut text ends with.
CUT_MARK: Final = "…"

Ref = tuple[str, str]
Extents = tuple[int, int, int, int]


class Channel(NamedTuple):
    """How an application is reached: a connection and the destination to name on it ("" on its own socket)."""

    connection: Connection
    destination: str

    def get(self, path: str, interface: str, name: str) -> Call:
        """Return the read of one property."""
        return Call(self.destination, path, PROPERTIES, "Get", "ss", (interface, name))

    def ask(self, path: str, interface: str, member: str, signature: str = "", *body: Any) -> Call:
        """Return the call of a reading method."""
        return Call(self.destination, path, interface, member, signature, body)

    async def call_many(
        self,
        calls: Sequence[Call],
        *,
        timeout_ms: int = limits.APP_CALL_MS_MAX,
        total_ms: int = limits.APP_READ_MS_MAX,
    ) -> list[Reply]:
        """Write all calls at once; see `Connection.call_many`."""
        return await self.connection.call_many(calls, timeout_ms=timeout_ms, total_ms=total_ms)


class CacheItem(NamedTuple):
    """One row of `Cache.GetItems`. `child_count` is −1 where the toolkit does not say; `children` only in Qt's form."""

    ref: Ref
    parent: Ref
    child_count: int
    children: tuple[Ref, ...] | None
    interfaces: frozenset[str]
    name: str
    role: int
    description: str
    states: int


def cut(text: str, *, more: bool = False) -> str:
    """Return text of at most `limits.FIELD_BYTES_STORED_MAX` bytes; what was cut ends in `CUT_MARK`.

    `more` says that the text is already only the beginning of a longer one.
    """
    if not more and len(text) * 4 <= limits.FIELD_BYTES_STORED_MAX:
        return text
    data = text.encode("utf-8", "replace")
    if not more and len(data) <= limits.FIELD_BYTES_STORED_MAX:
        return text
    kept = data[: limits.FIELD_BYTES_STORED_MAX - len(CUT_MARK.encode())]
    return kept.decode("utf-8", "ignore") + CUT_MARK


def _first(reply: Reply | None) -> Any:
    if reply is None or isinstance(reply, Failure) or not reply:
        return None
    value = reply[0]
    # Only properties come as variants; unwrapping rebuilds a value, which a bulk read need not pay for.
    return unwrap(value) if isinstance(value, Variant) else value


def string(reply: Reply | None) -> str | None:
    """Return a text, cut to the bound of a stored field."""
    value = _first(reply)
    return cut(value) if isinstance(value, str) else None


def integer(reply: Reply | None) -> int | None:
    """Return an integer; booleans are none."""
    value = _first(reply)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def number(reply: Reply | None) -> float | None:
    """Return a number."""
    value = _first(reply)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def strings(reply: Reply | None) -> tuple[str, ...] | None:
    """Return a list of texts."""
    value = _first(reply)
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        return None
    return tuple(cut(item) for item in value)


def _as_ref(value: Any) -> Ref | None:
    match value:
        case [str(name), str(path)]:
            return (name, path)
    return None


def reference(reply: Reply | None) -> Ref | None:
    """Return a reference to an object; the null object is one."""
    return _as_ref(_first(reply))


def references(reply: Reply | None) -> tuple[Ref, ...] | None:
    """Return references in order; one that is malformed spoils the answer."""
    value = _first(reply)
    if not isinstance(value, list):
        return None
    found = [_as_ref(item) for item in value]
    return None if None in found else tuple(ref for ref in found if ref is not None)


def _as_states(value: Any) -> int | None:
    match value:
        case [int(low), int(high)]:
            return (high << 32 | low) & 0xFFFF_FFFF_FFFF_FFFF
    return None


def states(reply: Reply | None) -> int | None:
    """Return the 64 state bits."""
    return _as_states(_first(reply))


def extents(reply: Reply | None) -> Extents | None:
    """Return x, y, width, height in the application's own units, as it says."""
    match _first(reply):
        case [int(x), int(y), int(width), int(height)]:
            return (x, y, width, height)
    return None


def relations(reply: Reply | None) -> dict[int, tuple[Ref, ...]] | None:
    """Return targets by relation number."""
    value = _first(reply)
    if not isinstance(value, list):
        return None
    found: dict[int, tuple[Ref, ...]] = {}
    for item in value:
        match item:
            case [int(kind), list(targets)]:
                refs = [_as_ref(target) for target in targets]
                found[kind] = tuple(ref for ref in refs if ref is not None)
            case _:
                return None
    return found


def properties(reply: Reply | None) -> dict[str, object]:
    """Return what `Properties.GetAll` tells, of any type; nothing where it is no dictionary."""
    value = _first(reply)
    return {str(key): unwrap(content) for key, content in value.items()} if isinstance(value, dict) else {}


def attributes(reply: Reply | None) -> dict[str, str] | None:
    """Return an object's attributes."""
    value = _first(reply)
    if not isinstance(value, dict):
        return None
    return {cut(str(key)): cut(str(content)) for key, content in value.items()}


def actions(reply: Reply | None) -> tuple[tuple[str, str, str], ...] | None:
    """Return (localised name, description, key binding) of each action, in order."""
    value = _first(reply)
    if not isinstance(value, list):
        return None
    found: list[tuple[str, str, str]] = []
    for item in value:
        match item:
            case [str(name), str(description), str(keys)]:
                found.append((cut(name), cut(description), cut(keys)))
            case _:
                return None
    return tuple(found)


def cache_items(reply: Reply | None) -> list[CacheItem] | None:
    """Return the rows of `Cache.GetItems` or of one `Cache.AddAccessible`; malformed rows are left out."""
    value = _first(reply)
    if not isinstance(value, list | tuple):
        return None
    rows = [value] if isinstance(value, tuple) else value
    found = [_as_cache_item(row) for row in rows]
    return [item for item in found if item is not None]


def _as_cache_item(row: Any) -> CacheItem | None:
    children: tuple[Ref, ...] | None = None
    match row:
        case [ref, _, parent, int(), int(count), list(interfaces), str(name), int(role), str(description), bits]:
            pass
        case [ref, _, parent, list(listed), list(interfaces), str(name), int(role), str(description), bits]:
            refs = [_as_ref(item) for item in listed]
            children = tuple(item for item in refs if item is not None)
            count = len(children)
        case _:
            return None
    owner, above, state = _as_ref(ref), _as_ref(parent), _as_states(bits)
    if owner is None or above is None or state is None:
        return None
    names = frozenset(item for item in interfaces if isinstance(item, str))
    return CacheItem(owner, above, count, children, names, cut(name), role, cut(description), state)
