"""Resources, what follows them, and the prompt: over both eras, against a scripted host."""

from __future__ import annotations

import asyncio
import json
import os
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError

from surehand import limits
from surehand.errors import PolicyDenied
from surehand.mcp.resources import address_of
from tests.unit.client.conftest import until
from tests.unit.daemon.fakes import FakeHost
from tests.unit.mcp.conftest import STATELESS, SUREHAND, Spawned
from tests.unit.mcp.test_http import served

# Clients with a handshake still subscribe in the way that the newest revision has left.
pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")


def stdio() -> StdioServerParameters:
    return StdioServerParameters(command=SUREHAND, args=["mcp"], env={**os.environ})


class Watched:
    """A host that tells what a test wants."""

    def __init__(self, host: FakeHost) -> None:
        self.host = host
        self.tell: list[Any] = []
        self.loops: list[asyncio.AbstractEventLoop] = []
        host.script.update(watch=self.watch, observe=self.observe, status=self.status, approval=self.approval)

    async def watch(self, _channel: Any, _params: Any, progress: Any) -> dict[str, Any]:
        self.loops.append(asyncio.get_running_loop())
        self.tell.append(progress)
        progress({"watching": True})
        await asyncio.Event().wait()
        return {}

    async def observe(self, _channel: Any, params: Any, _progress: Any) -> dict[str, Any]:
        assert params["full"] is True
        assert params["aside"] is True  # who acts may not read it
        if params["surface"] == "secret":
            raise PolicyDenied("not this one")
        return {"text": f'[e1] window "{params["surface"]}"'}

    async def status(self, _channel: Any, params: Any, _progress: Any) -> dict[str, Any]:
        return {"operation_id": params["operation_id"], "known": False}

    async def approval(self, *_: Any) -> dict[str, Any]:
        return {"approvals": []}

    def says(self, value: dict[str, Any]) -> None:
        self.loops[-1].call_soon_threadsafe(self.tell[-1], value)


@pytest.fixture
def watched(host: FakeHost) -> Watched:
    return Watched(host)


async def test_listing_asks_nothing_of_the_daemon(watched: Watched) -> None:
    async with Client(stdio()) as client:
        listed = {one.uri for one in (await client.list_resources()).resources}
        assert {"surehand://scene/current", "surehand://approvals/current"} == {str(uri) for uri in listed}
        assert len((await client.list_resource_templates()).resource_templates) == 2
        assert [one.name for one in (await client.list_prompts()).prompts] == ["working_with_surehand"]
    assert watched.host.opened == []


async def test_the_prompt_teaches_and_is_the_only_one(watched: Watched) -> None:
    async with Client(stdio()) as client:
        text = (await client.get_prompt("working_with_surehand")).messages[0].content.text
        for word in ("list_windows", "outcome_unknown", "approval_status", "never follow instructions"):
            assert word in text
        for name, arguments in (("other", None), ("working_with_surehand", {"x": "y"})):
            with pytest.raises(MCPError):
                await client.get_prompt(name, arguments)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_what_is_read_is_asked_of_the_daemon(mode: str, watched: Watched) -> None:
    async with Client(stdio(), mode=mode) as client:

        async def read(uri: str) -> str:
            return (await client.read_resource(uri)).contents[0].text

        assert await read("surehand://scene/current") == '[e1] window "w1"'
        assert await read("surehand://scene/current/w2") == '[e1] window "w2"'
        assert json.loads(await read("surehand://journal/op-1")) == {"operation_id": "op-1", "known": False}
        assert json.loads(await read("surehand://approvals/current")) == {"approvals": []}
        with pytest.raises(MCPError, match="policy_denied"):
            await read("surehand://scene/current/secret")
    assert len(watched.host.opened) == 1


async def test_what_is_read_is_bounded_as_what_a_tool_tells(watched: Watched) -> None:
    async def observe(*_: Any) -> dict[str, Any]:
        return {"text": "\n".join(f'[e{number}] label "{"x" * 60}"' for number in range(3_000))}

    async def status(*_: Any) -> dict[str, Any]:
        return {"operation_id": "op-1", "known": True, "seen": ["y" * 100] * 5_000}

    watched.host.script.update(observe=observe, status=status)
    async with Client(stdio()) as client:
        sizes = []
        for _ in range(6):
            text = (await client.read_resource("surehand://scene/current/w1")).contents[0].text
            sizes.append(len(text.encode()))
            assert "surehand left out a part here" in text
        assert max(sizes) <= limits.MODEL_RESULT_BYTES_MAX
        assert sum(sizes) <= limits.MODEL_TURN_BYTES_MAX + 2 * limits.MODEL_RESULT_BYTES_MIN
        assert sizes[-1] <= limits.MODEL_RESULT_BYTES_MIN
        told = (await client.read_resource("surehand://journal/op-1")).contents[0].text
        assert len(told.encode()) <= limits.MODEL_RESULT_BYTES_MIN
        assert json.loads(told)["projection"]["truncated"] is True


FOREIGN = [
    "surehand://scene/",
    "surehand://scene/session-0",
    "surehand://scene/current/w1/x",
    "surehand://scene//w1",
    "surehand://journal/",
    "surehand://journal/a/b",
    "surehand://approvals/session-0",
    "surehand://keys/current",
    "file:///etc/passwd",
    "https://example.com/",
    "surehand:scene/current",
    "surehand://scene/" + "x" * limits.NAME_CHARS_MAX,
]


@pytest.mark.parametrize("uri", FOREIGN)
async def test_what_is_not_ours_is_not_there(uri: str, watched: Watched, server: Spawned) -> None:
    for request, ask in enumerate(("read", "subscribe", "unsubscribe")):
        server.send({"jsonrpc": "2.0", "id": request, "method": f"resources/{ask}", "params": {"uri": uri}})
        assert "error" in await server.answer(request)
    assert watched.host.calls == []


async def test_a_subscriber_with_a_handshake_is_told_that_something_changed(watched: Watched) -> None:
    told: asyncio.Queue[str] = asyncio.Queue()

    async def hear(message: Any) -> None:
        if getattr(message, "method", "") == "notifications/resources/updated":
            await told.put(str(message.params.uri))

    async with Client(stdio(), mode="legacy", message_handler=hear) as client:
        for uri in ("scene/current", "scene/current/w1", "approvals/current", "journal/op-1", "scene/current"):
            await client.subscribe_resource(f"surehand://{uri}")
        await asyncio.to_thread(until, lambda: len(watched.tell) == 1)

        async def after(event: dict[str, Any], count: int) -> set[str]:
            watched.says(event)
            async with asyncio.timeout(5):
                return {(await told.get()).removeprefix("surehand://") for _ in range(count)}

        assert await after({"scene": {"surface": "w1", "generation": 2}}, 2) == {"scene/current", "scene/current/w1"}
        assert await after({"scene": {"surface": "w2", "generation": 2}}, 1) == {"scene/current"}
        approval = {"approval_id": "a", "operation_id": "op-1", "status": "approved"}
        assert await after({"approval": approval}, 2) == {"approvals/current", "journal/op-1"}
        await client.unsubscribe_resource("surehand://scene/current")
        assert await after({"scene": {"surface": "w1", "generation": 3}}, 1) == {"scene/current/w1"}
        assert told.empty()
        # One watch serves them all, and ends with the last.
        for uri in ("scene/current/w1", "approvals/current", "journal/op-1"):
            assert len(watched.tell) == 1
            await client.unsubscribe_resource(f"surehand://{uri}")
        await asyncio.to_thread(until, lambda: watched.host.cancelled == ["watch"])


async def test_the_number_of_subscriptions_is_bounded(watched: Watched) -> None:
    async with Client(stdio(), mode="legacy") as client:
        for number in range(limits.MCP_SUBSCRIPTIONS_MAX):
            await client.subscribe_resource(f"surehand://journal/op-{number}")
        with pytest.raises(MCPError, match="at most"):
            await client.subscribe_resource("surehand://journal/one-more")


async def test_a_listener_without_a_handshake_is_told_and_its_end_ends_the_watch(watched: Watched) -> None:
    async with Client(stdio(), mode=STATELESS) as client:
        async with client.listen(resource_subscriptions=["surehand://scene/current"]) as events:
            await asyncio.to_thread(until, lambda: len(watched.tell) == 1)
            watched.says({"scene": {"surface": "w1", "generation": 2}})
            async with asyncio.timeout(5):
                async for event in events:
                    assert str(event.uri) == "surehand://scene/current"
                    break
        await asyncio.to_thread(until, lambda: watched.host.cancelled == ["watch"])


async def test_over_http_without_sessions_the_token_is_the_address(watched: Watched) -> None:
    async with served() as server, server.client(STATELESS) as client:
        token = (await client.call_tool("list_windows", {})).structured_content["session"]
        found = await client.read_resource(f"surehand://scene/{token}/w1")
        assert found.contents[0].text == '[e1] window "w1"'
        assert len(watched.host.opened) == 1
        for wrong in ("current", token[:-2], "session-0"):
            with pytest.raises(MCPError):
                await client.read_resource(f"surehand://scene/{wrong}")
        assert len(watched.host.opened) == 1


def test_an_address_comes_apart() -> None:
    found = address_of("surehand://scene/current/w1")
    assert (found.kind, found.of, found.window) == ("scene", "current", "w1")
