"""The messages inside frames: hello and welcome, calls and cancels, results and events.

What a peer sends is read strictly: unknown fields, duplicate keys, wrong types and broken bounds are refused. The
version is looked at before anything else, so that a peer of another version hears which two versions met.
"""

from __future__ import annotations

import re
from typing import Any, Final, Literal

from surehand import canonical, limits
from surehand.errors import InvalidRequest, SurehandError
from surehand.model.record import Record, check_range, check_text, convert

PROTOCOL_VERSION: Final = 1
NONCE_BYTES: Final = 32

_NONCE: Final = re.compile(r"[0-9a-f]{64}")


def _check_nonce(name: str, value: str) -> None:
    if _NONCE.fullmatch(value) is None:
        raise InvalidRequest(f"{name} must be {NONCE_BYTES * 2} lower-case hex digits")


class ClientInfo(Record, frozen=True, kw_only=True):
    """What a client says of itself. Shown to people, believed by nobody: the principal comes from the socket."""

    name: str
    version: str = ""

    def __post_init__(self) -> None:
        check_text("client.name", self.name, limits.IDENTIFIER_CHARS_MAX, empty=False)
        check_text("client.version", self.version, limits.IDENTIFIER_CHARS_MAX)


class Hello(Record, frozen=True, kw_only=True):
    """The first message of a client. `desktop` is a wish that the host decides about."""

    protocol: int
    role: Literal["agent", "control"]
    nonce: str
    client: ClientInfo
    desktop: str | None = None

    def __post_init__(self) -> None:
        _check_nonce("nonce", self.nonce)
        if self.desktop is not None:
            check_text("desktop", self.desktop, limits.IDENTIFIER_CHARS_MAX, empty=False)


class Welcome(Record, frozen=True, kw_only=True):
    """The daemon's answer to a hello; `nonce` repeats the client's, `session` names the new context.

    `journal` names the store of what was ever done, so that a client can tell a daemon that knows its operations from
    one that knows nothing of them.
    """

    protocol: int
    nonce: str
    daemon: str
    session: str
    principal: str
    role: Literal["agent", "control"]
    trust_level: str
    authority_mode: str
    journal: str = ""


class Call(Record, frozen=True, kw_only=True):
    """One request on a connection; `id` is free to choose and unique among those in flight."""

    id: int
    method: str
    params: dict[str, Any] = {}

    def __post_init__(self) -> None:
        check_range("id", self.id, 1, limits.INTEGER_MAX)
        check_text("method", self.method, limits.IDENTIFIER_CHARS_MAX, empty=False)


class Cancel(Record, frozen=True, kw_only=True):
    """The caller's wish that a call in flight ends; without effect once the operation was dispatched."""

    cancel: int

    def __post_init__(self) -> None:
        check_range("cancel", self.cancel, 1, limits.INTEGER_MAX)


def read_hello(body: bytes) -> Hello:
    """Read a client's first message.

    Raises:
        InvalidRequest: malformed, or of another protocol version; then `details` names both versions.
    """
    value = canonical.parse(body, bytes_max=limits.HELLO_BYTES_MAX)
    inner = value.get("hello") if isinstance(value, dict) and set(value) == {"hello"} else None
    if not isinstance(inner, dict):
        raise InvalidRequest(
            "the first message must be a hello", fix="Speak protocol version 1; see docs/reference/wire.md."
        )
    check_version(inner.get("protocol"), "daemon", "client")
    return convert(Hello, inner)


def check_version(theirs: Any, ours_name: str, theirs_name: str) -> None:
    """Refuse another protocol version, naming both."""
    if type(theirs) is not int or theirs != PROTOCOL_VERSION:
        shown = theirs if type(theirs) is int else None
        told = "none" if shown is None else shown
        raise InvalidRequest(
            f"the {ours_name} speaks protocol {PROTOCOL_VERSION}, the {theirs_name} {told}",
            fix="Use a client and a daemon of the same Surehand version; `surehand stop` ends an old daemon.",
            details={f"{ours_name}_protocol": PROTOCOL_VERSION, f"{theirs_name}_protocol": shown},
        )


def read_message(body: bytes) -> Call | Cancel:
    """Read a client's message after the hello."""
    value = canonical.parse(body)
    if isinstance(value, dict) and "cancel" in value:
        return convert(Cancel, value)
    return convert(Call, value)


def result(call_id: int, value: Any) -> dict[str, Any]:
    """Return the message that ends a call well."""
    return {"id": call_id, "result": value}


def failure(call_id: int, error: SurehandError) -> dict[str, Any]:
    """Return the message that ends a call with an error."""
    return {"id": call_id, "error": error.to_value()}


def fatal(error: SurehandError) -> dict[str, Any]:
    """Return the last message of a connection: it belongs to no call, and the connection closes after it."""
    return {"error": error.to_value()}


def event(name: str, call_id: int, data: dict[str, Any]) -> dict[str, Any]:
    """Return a message that a running call sends before its end."""
    return {"event": name, "id": call_id, "data": data}
