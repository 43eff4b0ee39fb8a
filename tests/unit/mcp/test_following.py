"""Who is told of changes: one subscriber's failure is nobody else's, and not even its own for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import mcp_types as types
import pytest

from surehand import limits
from surehand.mcp.resources import Resources
from surehand.mcp.sessions import One

SCENE = "surehand://scene/current"
CHANGED = {"scene": {"surface": "w1", "generation": 2}}


class Told:
    """A session with the daemon that tells what a test wants; it stands for `tools.context.Context`."""

    closed = False

    def __init__(self) -> None:
        self.says: Callable[[dict[str, Any]], None] | None = None
        self.watching = asyncio.Event()

    async def ask(self, _method: str, _params: Any, *, wait_ms: int, on_event: Any) -> None:  # noqa: ARG002
        self.says = on_event
        self.watching.set()
        await asyncio.Event().wait()


class Client:
    """A client that fails, or takes nothing, as often as it is told to, and counts what reached it."""

    def __init__(self, *failures: str) -> None:
        self._failures = list(failures)
        self.heard: asyncio.Queue[str] = asyncio.Queue()
        self.session = SimpleNamespace(send_resource_updated=self.take)
        self.meta: dict[str, Any] = {}

    async def take(self, uri: str) -> None:
        failure = self._failures.pop(0) if self._failures else ""
        if failure == "stuck":
            await asyncio.Event().wait()
        if failure:
            raise RuntimeError(failure)
        await self.heard.put(uri)


@pytest.mark.parametrize("failure", ["gone", "stuck"])
async def test_a_subscriber_that_cannot_be_told_ends_nobodys_telling(
    failure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MCP_TELL_MS_MAX", 100)
    told = Told()
    resources = Resources(One(told))  # type: ignore[arg-type]
    failing, fine = Client(failure), Client()
    await resources.subscribe(failing, types.SubscribeRequestParams(uri=SCENE))  # type: ignore[arg-type]
    # Who subscribes again replaces itself, so the second one follows a window of it.
    await resources.subscribe(fine, types.SubscribeRequestParams(uri=f"{SCENE}/w1"))  # type: ignore[arg-type]
    async with asyncio.timeout(5):
        await told.watching.wait()
        assert told.says is not None
        for _ in range(2):
            told.says(CHANGED)
            assert await fine.heard.get() == f"{SCENE}/w1"
        assert await failing.heard.get() == SCENE
    for client, uri in ((failing, SCENE), (fine, f"{SCENE}/w1")):
        await resources.unsubscribe(client, types.UnsubscribeRequestParams(uri=uri))  # type: ignore[arg-type]
