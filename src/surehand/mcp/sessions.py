"""Which session of the daemon a request belongs to: the connection's one, the header's, or the token's.

A connection (stdin and stdout) is one session. Over HTTP the revisions with a handshake name theirs in a header that
the transport made and checks. The newest revision has no sessions: there the client hands back a sealed token, as the
argument `session` or in `_meta`. A token is made and read by this process only, says nothing to whoever holds it, and
is refused once its session has ended; nobody can name a session by guessing.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from surehand import limits
from surehand.errors import SurehandError, Unavailable
from surehand.tools.catalog import UsageError
from surehand.tools.context import Context

#: Where a client that is no model may keep the token instead of spending words of the model on it.
META_KEY: Final = "surehand/session"

#: Where a client names the turn of the person it serves; see `tools.projection`.
TURN_KEY: Final = "surehand/turn"

#: What the argument is called.
ARGUMENT: Final = "session"

_HEADER: Final = "mcp-session-id"


@dataclass(slots=True)
class Found:
    """The session of one request.

    Attributes:
        context: What its tools work with.
        token: What the client has to hand back; None where the transport knows by itself.
        fresh: Whether the client hears the token for the first time.
        ids_once: Whether the ids of its requests come once in the session, so that operations may be named by them.
    """

    context: Context
    token: str | None = None
    fresh: bool = False
    ids_once: bool = True


class Sessions(Protocol):
    """From requests to sessions."""

    def carried(self, request: Any) -> bool:
        """Whether the client of this request has to carry its session's token."""

    def use(self, request: Any, token: str | None) -> contextlib.AbstractAsyncContextManager[Found]:
        """Hold the session of a request while it is worked on.

        Raises:
            UsageError: the token is none of ours, or its session has ended.
            Unavailable: there are too many sessions.
        """


class One(Sessions):
    """A connection that is one session."""

    def __init__(self, context: Context) -> None:
        self._found = Found(context)

    def carried(self, request: Any) -> bool:  # noqa: ARG002 - the connection says it
        """Return False: the connection says it."""
        return False

    @contextlib.asynccontextmanager
    async def use(self, request: Any, token: str | None) -> AsyncIterator[Found]:  # noqa: ARG002
        """Return the one session."""
        yield self._found


class Seal(Protocol):
    """Makes bytes unreadable and unforgeable for whoever has not the key."""

    def seal(self, payload: bytes) -> str:
        """Return the payload as a token."""

    def unseal(self, token: str) -> bytes:
        """Return the payload of a token, or raise."""


@dataclass(slots=True)
class _Held:
    context: Context
    used_at: float
    working: int = 0


class Many(Sessions):
    """Sessions of an HTTP server: bounded in number, ended when nobody uses them."""

    def __init__(
        self,
        make: Callable[[], Context],
        seal: Seal,
        *,
        sessions_max: int = limits.MCP_SESSIONS_MAX,
        idle_ms: int = limits.MCP_IDLE_MS_MAX,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._make = make
        self._seal = seal
        self._most = sessions_max
        self._idle_s = idle_ms / 1000
        self._now = now
        self._held: dict[str, _Held] = {}

    def __len__(self) -> int:
        """Return how many sessions there are."""
        return len(self._held)

    def carried(self, request: Any) -> bool:
        """Whether the request names no session in a header of the transport."""
        return self._header(request) is None

    @staticmethod
    def _header(request: Any) -> str | None:
        headers = getattr(request.request, "headers", None)
        found = None if headers is None else headers.get(_HEADER)
        return found if isinstance(found, str) else None

    @contextlib.asynccontextmanager
    async def use(self, request: Any, token: str | None) -> AsyncIterator[Found]:
        """Return the request's session, which does not end meanwhile."""
        header = self._header(request)
        if header is not None:
            held = self._held.get(f"h.{header}") or await self._begin(f"h.{header}")
            found = Found(held.context)
        elif token is None:
            key = secrets.token_hex(limits.SALT_BYTES)
            held = await self._begin(f"t.{key}")
            token = self._seal.seal(bytes.fromhex(key))
            found = Found(held.context, token=token, fresh=True, ids_once=False)
        else:
            held = self._named(token)
            found = Found(held.context, token=token, ids_once=False)
        held.working += 1
        try:
            yield found
        finally:
            held.working -= 1
            held.used_at = self._now()

    async def _begin(self, key: str) -> _Held:
        """Begin a session; where there are too many, the one that was not used for longest makes room.

        A model that forgets its token begins one with every call, and must not keep others out by it.
        """
        oldest: _Held | None = None
        if len(self._held) >= self._most:
            unused = [(held.used_at, name) for name, held in self._held.items() if not held.working]
            if not unused:
                raise Unavailable(f"{self._most} sessions are at work", fix="wait until one is done")
            oldest = self._held.pop(min(unused)[1])
        held = self._held[key] = _Held(self._make(), self._now())
        if oldest is not None:
            await _close(oldest)
        return held

    def _named(self, token: str) -> _Held:
        """Return the session of a token; what is wrong with a token is not told."""
        try:
            key = self._seal.unseal(token).hex()
        except Exception as error:  # whatever a forged token breaks, it opens nothing
            raise UsageError(_NOT_OURS) from error
        held = self._held.get(f"t.{key}")
        if held is None:
            raise UsageError(_NOT_OURS)
        return held

    async def end_header(self, header: str) -> None:
        """End the session of a transport that ended."""
        held = self._held.pop(f"h.{header}", None)
        if held is not None:
            await _close(held)

    async def reap(self) -> None:
        """End what nobody used for too long."""
        latest = self._now() - self._idle_s
        over = [key for key, held in self._held.items() if not held.working and held.used_at <= latest]
        for held in [self._held.pop(key) for key in over]:
            await _close(held)

    async def reaping(self) -> None:
        """End unused sessions for as long as this task runs."""
        while True:
            await asyncio.sleep(min(self._idle_s / 2, 30))
            await self.reap()

    async def close(self) -> None:
        """End all sessions."""
        held, self._held = list(self._held.values()), {}
        for one in held:
            await _close(one)


_NOT_OURS: Final = "session: not a token of this server, or its session has ended; leave it out to begin a new one"


async def _close(held: _Held) -> None:
    with contextlib.suppress(SurehandError, OSError):
        await held.context.close()


def token_of(arguments: dict[str, Any], meta: Mapping[str, Any] | None) -> str | None:
    """Take the token out of a call's arguments, or read it beside them.

    Raises:
        UsageError: it is no text.
    """
    value = arguments.pop(ARGUMENT, None)
    if value is None and meta is not None:
        value = meta.get(META_KEY)
    if value is not None and not isinstance(value, str):
        raise UsageError("session: must be text")
    return value


def turn_of(meta: Mapping[str, Any] | None) -> str | None:
    """Return the turn that a client names, if it does.

    Raises:
        UsageError: it is no short text.
    """
    name = None if meta is None else meta.get(TURN_KEY)
    if name is not None and not (isinstance(name, str) and len(name) <= limits.MODEL_TURN_CHARS_MAX):
        raise UsageError(f"{TURN_KEY}: must be text of at most {limits.MODEL_TURN_CHARS_MAX} characters")
    return name
