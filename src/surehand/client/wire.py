"""One connection as a client sees it, without I/O: hello, calls, answers; and what a link must offer.

A link does the I/O, blocking or not. Everything above it is written once as coroutines that wait for nothing but a
link, so the blocking link, whose coroutines never suspend, can run the same code without an event loop.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, Literal, Protocol

import orjson

from surehand import canonical, limits
from surehand.core.wire import messages
from surehand.core.wire.frames import HEADER_BYTES, FrameReader, frame
from surehand.errors import SurehandError, Unavailable, from_value
from surehand.model.record import Record, convert

Role = Literal["agent", "control"]
OnEvent = Callable[[dict[str, Any]], None]

_RECONNECT: Final = "connect again; `surehand doctor` says whether the daemon runs"


class ConnectionLost(Unavailable):
    """The connection ended before the answer. `sent`: whether the daemon may have got the request."""

    def __init__(self, message: str, *, sent: bool) -> None:
        super().__init__(message, fix=_RECONNECT, retry_safe=not sent)
        self.sent = sent


class Answer(Record, frozen=True, kw_only=True):
    """The end of a call: its value, or its error."""

    id: int
    value: Any = None
    error: dict[str, Any] | None = None

    def get(self) -> Any:
        """Return the value or raise the error."""
        if self.error is not None:
            raise from_value(self.error)
        return self.value


class Event(Record, frozen=True, kw_only=True):
    """Something a running call says before its end."""

    id: int
    name: str
    data: dict[str, Any]


class Wire:
    """The protocol's state on one connection."""

    def __init__(self, role: Role, desktop: str | None, client: str, version: str = "") -> None:
        self._role = role
        self._desktop = desktop
        self._client = client
        self._version = version
        self._nonce = secrets.token_hex(messages.NONCE_BYTES)
        self._reader = FrameReader(limits.FRAME_BYTES_MAX)
        self._last_id = 0
        self.welcome: messages.Welcome | None = None

    def hello(self) -> bytes:
        """Return the first bytes to send."""
        about = {"name": self._client[: limits.IDENTIFIER_CHARS_MAX] or "python", "version": self._version}
        value: dict[str, Any] = {
            "protocol": messages.PROTOCOL_VERSION,
            "role": self._role,
            "nonce": self._nonce,
            "client": about,
        }
        if self._desktop is not None:
            value["desktop"] = self._desktop
        return frame({"hello": value}, bytes_max=limits.HELLO_BYTES_MAX)

    def call(self, method: str, params: dict[str, Any]) -> tuple[int, bytes]:
        """Return a new call's id and bytes.

        Raises:
            TooLarge, InvalidRequest: the daemon would not read the request, and would end the connection over it with
                all other calls on it.
        """
        value = {"id": self._last_id + 1, "method": method, "params": params}
        data = frame(value, bytes_max=limits.REQUEST_BYTES_MAX)
        canonical.parse(data[HEADER_BYTES:])
        self._last_id += 1
        return self._last_id, data

    @staticmethod
    def cancel(call_id: int) -> bytes:
        """Return the bytes that cancel a call in flight."""
        return frame({"cancel": call_id})

    def feed(self, data: bytes) -> None:
        """Take received bytes."""
        self._reader.feed(data)

    def next(self) -> messages.Welcome | Answer | Event | None:
        """Return the next message, or None until more bytes arrive.

        Raises:
            SurehandError: the daemon ended the connection and said why, or does not speak our protocol.
        """
        body = self._reader.next_body()
        if body is None:
            return None
        try:
            value = orjson.loads(body)
        except orjson.JSONDecodeError as error:
            raise Unavailable("the daemon sent something that is not JSON", fix=_RECONNECT) from error
        if not isinstance(value, dict):
            raise Unavailable("the daemon sent something that is no message", fix=_RECONNECT)
        if self.welcome is None:
            return self._read_welcome(value)
        return _read_message(value)

    def _read_welcome(self, value: dict[str, Any]) -> messages.Welcome:
        inner = value.get("welcome")
        if not isinstance(inner, dict):
            raise _fatal(value)
        messages.check_version(inner.get("protocol"), "client", "daemon")
        welcome = convert(messages.Welcome, inner)
        if not secrets.compare_digest(welcome.nonce, self._nonce):
            raise Unavailable("the daemon's welcome answers another hello", fix=_RECONNECT)
        self.welcome = welcome
        return welcome


def _read_message(value: dict[str, Any]) -> Answer | Event:
    call_id = value.get("id")
    if not isinstance(call_id, int):
        raise _fatal(value)
    if "event" in value:
        return Event(id=call_id, name=str(value["event"]), data=dict(value.get("data") or {}))
    error = value.get("error")
    return Answer(id=call_id, value=value.get("result"), error=error if isinstance(error, dict) else None)


def _fatal(value: dict[str, Any]) -> SurehandError:
    error = value.get("error")
    if isinstance(error, dict):
        return from_value(error)
    return Unavailable("the daemon sent a message that means nothing", fix=_RECONNECT)


class Link(Protocol):
    """A live connection that can carry calls."""

    @property
    def welcome(self) -> messages.Welcome:
        """What the daemon said to our hello."""

    @property
    def alive(self) -> bool:
        """False once the connection is known to be gone."""

    async def call(
        self, method: str, params: dict[str, Any], *, timeout_s: float, on_event: OnEvent | None = None
    ) -> Any:
        """Return a call's value.

        Raises:
            ConnectionLost: the connection ended first, or the time is over.
            SurehandError: what the daemon answered.
        """

    async def close(self) -> None:
        """End the connection; the daemon then releases everything held for it."""


class Way(Protocol):
    """How links come about and how time passes: blocking or on an event loop."""

    def turn(self) -> AbstractAsyncContextManager[Any]:
        """Let one caller at a time make a link."""

    async def link(self) -> Link:
        """Return a new, welcomed link."""

    async def pause(self, seconds: float) -> None:
        """Let time pass."""
