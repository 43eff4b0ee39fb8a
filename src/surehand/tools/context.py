"""One agent's session with the daemon, as tools see it: asking, acting, and what was looked at last.

Opens the connection at the first call that needs it. Holds no authority: what it may do is decided at the daemon.
Each call gets a view of its own (`for_call`), which knows the caller's request and where to report progress.
"""

from __future__ import annotations

import copy
import hashlib
import re
import secrets
from collections.abc import Awaitable, Callable
from typing import Any, Final

from surehand import limits
from surehand.client.opening import connector
from surehand.client.session import Session
from surehand.client.streaming import StreamingWay
from surehand.client.wire import OnEvent
from surehand.tools.turns import Turn

#: Says how a long call goes: what is waited for, and milliseconds so far of milliseconds at most.
Progress = Callable[[str, int, int], Awaitable[None]]

_PLAIN: Final = re.compile(r"[A-Za-z0-9._:-]{1,64}\Z", re.ASCII)


async def silent(message: str, done_ms: int, total_ms: int) -> None:
    """Say nothing."""


class _Seen:
    """What every call of one session shares."""

    def __init__(self) -> None:
        self.window: str | None = None
        self.picture: str | None = None
        self.asked: dict[str, str] = {}
        #: Ids of one session cannot be guessed by, or meant by, another.
        self.mark = secrets.token_hex(8)
        self.count = 0
        self.closed = False
        self.turn = Turn()


class Context:
    """What every tool of one session shares, as one call sees it."""

    def __init__(self, *, desktop: str | None, client: str, start: bool = True) -> None:
        self._client = client
        self._start = start
        self.session = Session(self._way(desktop))
        self._seen = _Seen()
        #: The word for the call in ids made for its effects; None where a count serves.
        self.request: str | None = None
        #: Says how this call goes; nobody listens unless the caller asked to hear it.
        self.progress: Progress = silent

    def _way(self, desktop: str | None) -> StreamingWay:
        return StreamingWay(connector("agent", desktop, self._client, start=self._start))

    def for_call(self, request: str | int | None, progress: Progress = silent) -> Context:
        """Return this session as one call sees it.

        Args:
            request: The id the client gave its request, unique in its session; None where ids may come again.
            progress: Told how the call goes.
        """
        view = copy.copy(self)
        view.request = None if request is None else request_word(request)
        view.progress = progress
        return view

    @property
    def window(self) -> str | None:
        """The window that a call means when it names none: the one looked at last."""
        return self._seen.window

    @window.setter
    def window(self, surface: str | None) -> None:
        self._seen.window = surface

    @property
    def picture(self) -> str | None:
        """The last picture of the whole desktop, for words that name places in it and not the picture."""
        return self._seen.picture

    @picture.setter
    def picture(self, capture_id: str | None) -> None:
        self._seen.picture = capture_id

    @property
    def asked(self) -> dict[str, str]:
        """Requests to people that have not ended, by their words; a person who took over outlasts a session."""
        return self._seen.asked

    @property
    def turn(self) -> Turn:
        """How much a model was shown since the person spoke last."""
        return self._seen.turn

    @property
    def closed(self) -> bool:
        """True once this session is over for good."""
        return self._seen.closed

    async def close(self) -> None:
        """End the session; the daemon releases everything held for it."""
        self._seen.closed = True
        await self.session.close()

    async def end(self) -> None:
        """End the session; the next call begins another one on the same desktop, with nothing seen."""
        found = await self.ask("end_session", {})
        await self.session.renew(self._way(found.get("desktop")))
        self._seen.window = self._seen.picture = None

    async def ask(
        self,
        method: str,
        params: dict[str, Any],
        *,
        wait_ms: int = limits.APP_READ_MS_MAX,
        on_event: OnEvent | None = None,
    ) -> Any:
        """Call a method that is no effect; `on_event` hears what the daemon says before its answer."""
        return await self.session.ask(method, params, wait_ms=wait_ms, on_event=on_event)

    async def act(self, request: dict[str, Any]) -> dict[str, Any]:
        """Present one operation and return the reply, with what changed."""
        params = {"request": request, "observe_after": True}
        wait_ms = int(request.get("deadline_ms", limits.DEADLINE_MS_DEFAULT))
        reply: dict[str, Any] = await self.session.act("act", params, request["operation_id"], wait_ms=wait_ms)
        return reply

    def operation_id(self, given: str | None, request: str | None = None) -> str:
        """Return the id an effect runs under: the caller's, else one made of this session and its request's id.

        Args:
            given: The `operation_id` argument.
            request: Another word for the request than the one of this call.
        """
        if given is not None:
            return given
        word = self.request if request is None else request
        if word is None:
            self._seen.count += 1
            word = f"n{self._seen.count}"
        return f"{self._seen.mark}-{word}"


def request_word(request: str | int) -> str:
    """Return a request's id as part of an operation's; 1 and "1" are two requests and stay two."""
    if isinstance(request, int):
        return str(request)
    if _PLAIN.match(request):
        return f"s.{request}"
    return "h." + hashlib.sha256(request.encode("utf-8", "surrogatepass")).hexdigest()[:32]
