"""The server process on a real application: cancelling, and its memory."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters

from surehand.testing.desktop import IsolatedDesktop
from surehand.testing.fixture_app import FixtureApp
from tests.desktop.mcp.conftest import SUREHAND

pytestmark = pytest.mark.desktop

LONG = "the quick brown fox jumps over the lazy dog " * 200


async def test_cancelled_typing_stops_between_keys_and_nothing_stays_down(
    own_daemon: Path, app: FixtureApp, desktop: IsolatedDesktop
) -> None:
    server = StdioServerParameters(command=SUREHAND, args=["mcp", "--desktop", desktop.name], env={**os.environ})
    async with Client(server, mode="legacy") as client:
        window = (await client.call_tool("list_windows", {})).structured_content["windows"][0]["window"]
        await client.call_tool("observe", {"window": window})
        mark = app.mark()
        target = {"role": "text", "contains": "Notes"}
        typing = asyncio.create_task(client.call_tool("type_text", {"window": window, "target": target, "text": LONG}))
        await app.wait_for("key_press", after=mark, timeout_s=20)
        typing.cancel()
        await asyncio.gather(typing, return_exceptions=True)

        def ends() -> int:
            return len(app.events("key_press", after=mark))

        # Two looks with the application's own clock between them: nothing more comes.
        async with asyncio.timeout(15):
            count = -1
            while count != ends():
                count = ends()
                await app.settle()
                await app.settle()
        assert 0 < count < len(LONG)
        assert len(app.events("key_release", after=mark)) == count
        # The session goes on.
        assert not (await client.call_tool("list_windows", {})).is_error
