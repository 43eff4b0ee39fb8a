"""One agent's session with the daemon, as tools see it: asking, acting, and what was looked at last.

Opens the connection at the first call that needs it. Holds no authority: what it may do is decided at the daemon.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from typing import Any

from surehand import limits
from surehand.client.opening import connector
from surehand.client.session import Session
from surehand.client.streaming import StreamingWay

#: Says how a long call goes: what is waited for, and milliseconds so far of milliseconds at most.
Progress = Callable[[str, int, int], Awaitable[None]]


async def silent(message: str, done_ms: int, total_ms: int) -> None:
    """Say nothing."""


class Context:
    """What every tool of one session shares."""

    def __init__(self, *, desktop: str | None, client: str, start: bool = True) -> None:
        self.session = Session(StreamingWay(connector("agent", desktop, client, start=start)))
        #: Ids of one session cannot be guessed by, or meant by, another.
        self._mark = secrets.token_hex(8)
        self._count = 0
        #: The window that a call means when it names none: the one looked at last.
        self.window: str | None = None
        #: Per window the scene whose text the agent was given last; a diff stands on it.
        self.texts: dict[str, str] = {}

    def seen(self, surface: str, scene_id: str) -> None:
        """The agent is given the text of this scene, whole or as a diff."""
        self.window = surface
        self.texts[surface] = scene_id

    async def close(self) -> None:
        """End the session; the daemon releases everything held for it."""
        await self.session.close()

    async def ask(self, method: str, params: dict[str, Any], *, wait_ms: int = limits.APP_READ_MS_MAX) -> Any:
        """Call a method that is no effect."""
        return await self.session.ask(method, params, wait_ms=wait_ms)

    async def act(self, request: dict[str, Any]) -> dict[str, Any]:
        """Present one operation and return the reply, with what changed."""
        params = {"request": request, "observe_after": True}
        wait_ms = int(request.get("deadline_ms", limits.DEADLINE_MS_DEFAULT))
        reply: dict[str, Any] = await self.session.act("act", params, request["operation_id"], wait_ms=wait_ms)
        return reply

    def operation_id(self, given: str | None, request: str | None) -> str:
        """Return the id an effect runs under: the caller's, else one made of this session and its request's id.

        Args:
            given: The `operation_id` argument.
            request: The id the client gave its call, unique in its session.
        """
        if given is not None:
            return given
        self._count += 1
        return f"{self._mark}-{self._count if request is None else request}"
