"""Tools on the real host around an application in memory, without sockets in between."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

from surehand.testing.worlds import World
from surehand.tools.context import Context
from tests.unit.runtime.test_attacks_reach import agent, host_of


class Straight:
    """What a context talks to, without sockets: the host itself."""

    def __init__(self, host: Any, session: Any) -> None:
        self._host = host
        self._session = session

    async def ask(self, method: str, params: dict[str, Any], *, on_event: Any = None, **_: Any) -> Any:
        # As over a socket: JSON or nothing.
        return await self._host.call(self._session, method, json.loads(json.dumps(params)), progress=on_event)

    async def act(self, method: str, params: dict[str, Any], *_: Any, **__: Any) -> Any:
        return await self.ask(method, params)

    async def renew(self, _way: Any) -> None:
        pass


@contextlib.asynccontextmanager
async def straight(world: World | None = None) -> AsyncIterator[tuple[Context, World]]:
    """Return an agent's tools on a world, and the world."""
    world = world or World()
    host = host_of(world)
    context = Context(desktop=None, client="test", start=False)
    context.session = Straight(host, await agent(host))  # type: ignore[assignment]
    yield context, world
