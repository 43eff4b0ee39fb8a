"""An agent that has tools and nothing else, on the real daemon and a real application."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from surehand.testing.desktop import IsolatedDesktop
from surehand.testing.fixture_app import FixtureApp, FixtureEvent
from surehand.tools.catalog import TOOLS, call, find_tool
from surehand.tools.context import Context
from surehand.tools.tool import Answer
from tests.desktop.cases.kit import NOISE

#: What pointer and keyboard leave in the log besides an effect.
_RAW = NOISE | {"button_press", "button_release", "wheel", "canvas", "dialog"}


class Agent:
    """One session with tools, and the application whose log says what reached it."""

    def __init__(self, context: Context, app: FixtureApp) -> None:
        self.context = context
        self.app = app
        self.window = ""
        #: Whether the application may still do what it was told; a toolkit puts handlers off.
        self.has_acted = True

    async def rest(self) -> None:
        """Wait until the application has done all that it was told."""
        if self.has_acted:
            await self.app.settle()
            self.has_acted = False

    async def tool(self, name: str, /, **arguments: Any) -> Answer:
        self.has_acted = self.has_acted or find_tool(TOOLS, name).kind == "act"
        answer = await call(self.context, find_tool(TOOLS, name), arguments)
        # What programs get must be what JSON can say.
        assert json.loads(json.dumps(answer.data)) == answer.data
        return answer

    async def done(self, name: str, /, **arguments: Any) -> Answer:
        answer = await self.tool(name, **arguments)
        assert not answer.is_error, answer.text
        assert answer.data["status"] == "succeeded", answer.text
        return answer

    async def refused(self, code: str, name: str, /, **arguments: Any) -> Answer:
        """Call a tool that must be refused, and assert that the application received nothing."""
        mark = self.app.mark()
        answer = await self.tool(name, **arguments)
        assert answer.is_error, answer.text
        assert answer.data["error"]["code"] == code, answer.text
        assert answer.data["error"]["retry_safe"] is True
        await self.rest()
        assert self.effects(mark) == []
        return answer

    def effects(self, mark: int) -> list[FixtureEvent]:
        return [event for event in self.app.events(after=mark) if event.event not in _RAW]

    async def label(self, **what: Any) -> str:
        """Return the label of the one element that is this, from a query."""
        answer = await self.tool("query", window=self.window, **what)
        (match,) = answer.data["matches"]
        return str(match["label"])

    async def picture(self) -> dict[str, Any]:
        """Return a picture of the window, as the daemon took it."""
        found = await self.context.ask("screenshot", {"surface": self.window})
        return dict(found["capture"])

    async def find(self, *filters: dict[str, Any]) -> dict[str, Any]:
        """Return the one match of some filters, with everything the daemon says of it."""
        found = await self.context.ask("query", {"surface": self.window, "query": {"filters": list(filters)}})
        (match,) = found["matches"]
        return dict(match)


@asynccontextmanager
async def agent_on(desktop: IsolatedDesktop, app: FixtureApp) -> AsyncIterator[Agent]:
    """Return an agent that knows the application's window, from a daemon that already runs."""
    agent = Agent(Context(desktop=desktop.name, client="test", start=False), app)
    try:
        async with asyncio.timeout(15):
            while not agent.window:
                windows = (await agent.tool("list_windows")).data["windows"]
                agent.window = next((one["window"] for one in windows if one["title"] == app.title), "")
        await agent.tool("observe", window=agent.window)
        yield agent
    finally:
        await agent.context.close()
