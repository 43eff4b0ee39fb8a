"""Cases from the field that are about MCP: a real server process, the real daemon, a real application.

What happened is what the application's own log says (docs/cases.md).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import pytest_asyncio

from surehand.testing.desktop import IsolatedDesktop
from surehand.testing.fixture_app import FixtureApp
from surehand.tools.context import Context
from tests.crash.daemon_kit import Daemon
from tests.desktop.cases.kit import NOISE
from tests.unit.mcp.conftest import Spawned, calling, spawned

pytestmark = [pytest.mark.desktop, pytest.mark.asyncio(loop_scope="module")]

INVALID_PARAMS = -32602
SECRET = "hunter2-ünïque"  # noqa: S105 - what must not be found anywhere
COUNT = {"role": "button", "name": "Count"}
FIELD = {"role": "text", "label": "Name"}
STUBBORN = {"role": "text", "label": "Stubborn"}
#: What a call needs besides the one argument that is wrong; with these alone it would be taken.
NEEDED: dict[str, Any] = {
    "target": COUNT,
    "value": "x",
    "to": True,
    "text": "x",
    "keys": ["a"],
    "direction": "down",
    "name": "nothing-of-this-name",
    "until": {"title": "x"},
    "steps": [{"do": "invoke", "target": COUNT}],
    "reason": "a test",
    "operation_id": "never-used",
}
NO_NUMBERS: list[Any] = [-(2**63) - 1, 2**63, 1.5, "1", None, True, [1]]
NO_LABELS: list[Any] = [-1, 2**63, 1.5, None, True, "1", "e-1", "e1.5", f"e{2**63}", "e01", ""]
#: Lone arguments that a tool takes for a count or a size, where nothing below one makes sense.
COUNTS = {"count", "limit", "rows", "max_nodes", "max_tokens", "max_edge", "max_bytes", "deadline_ms"}


class Agent:
    """A server over its pipe, on the application's window."""

    def __init__(self, server: Spawned, window: str) -> None:
        self.server = server
        self.window = window
        self.requests = 0

    async def ask(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """Return the whole answer, whatever it is."""
        self.requests += 1
        answer: dict[str, Any] = await self.server.call(self.requests, name, arguments)
        return answer

    async def tool(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        answer = await self.ask(name, **arguments)
        assert "result" in answer, answer
        result: dict[str, Any] = answer["result"]
        agrees(result)
        return result

    async def done(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        result = await self.tool(name, **arguments)
        assert result["isError"] is False, result
        data: dict[str, Any] = result["structuredContent"]
        return data

    async def error(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        result = await self.tool(name, **arguments)
        assert result["isError"] is True, result
        error: dict[str, Any] = result["structuredContent"]["error"]
        return error


def agrees(result: dict[str, Any]) -> None:
    """Assert that an answer says one thing: an error, or its end, and never both (case C18)."""
    data = result["structuredContent"]
    if result["isError"]:
        assert "error" in data or any("error" in step for step in data["steps"]), data
        assert data.get("status") != "succeeded"
    else:
        assert "error" not in data
        assert data.get("status") not in {"failed", "refused", "outcome_unknown"} or "operation_id" in data
    assert not {"ok", "success"} & set(data)


def refused(answer: dict[str, Any]) -> bool:
    """Tell whether a call was refused as wrong: by its schema, or in words where the schema has no bound for it."""
    if "error" in answer:
        return bool(answer["error"]["code"] == INVALID_PARAMS)
    error = answer["result"]["structuredContent"].get("error", {})
    return answer["result"]["isError"] is True and error.get("code") in {"invalid_request", "target_not_found"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def app(desktop: IsolatedDesktop, daemon: Daemon) -> AsyncIterator[FixtureApp]:
    del daemon  # it outlives the application
    made = await FixtureApp.start(desktop, "gtk3", scroll_rows=200)
    yield made
    made.close()


@asynccontextmanager
async def agent_of(desktop: IsolatedDesktop, app: FixtureApp, *options: str) -> AsyncIterator[Agent]:
    async with spawned("--desktop", desktop.name, *options) as server:
        await server.greeted()
        agent = Agent(server, "")
        async with asyncio.timeout(15):
            while not agent.window:
                windows = (await agent.done("list_windows"))["windows"]
                agent.window = next((one["window"] for one in windows if one["title"] == app.title), "")
        await agent.done("observe", window=agent.window)
        yield agent


async def effects(app: FixtureApp, mark: int) -> list[tuple[str, Any]]:
    await app.settle()
    return [(event.event, event.value) for event in app.events(after=mark) if event.event not in NOISE]


async def listed(server: Spawned) -> tuple[list[dict[str, Any]], int]:
    """Return the tools that a client is told of, and how many bytes that took."""
    server.send({"jsonrpc": "2.0", "id": "list", "method": "tools/list"})
    found = (await server.answer("list"))["result"]["tools"]
    return found, len(server.lines[-1])


# --- the wrong thing --------------------------------------------------------------------------------------------------


async def test_c10_what_is_no_number_and_no_label_is_refused_and_nothing_happens(
    desktop: IsolatedDesktop, app: FixtureApp
) -> None:
    async with agent_of(desktop, app) as agent:
        mark = app.mark()
        tried = 0
        # An option left open may be written as null where nothing can happen.
        for tool in (await listed(agent.server))[0]:
            schema = tool["inputSchema"]
            needed = {name: NEEDED[name] for name in schema.get("required", ())}
            for name, what in schema["properties"].items():
                if what.get("type") != "integer":
                    continue
                for wrong in [*NO_NUMBERS, *([-1, 0] if name in COUNTS else [])]:
                    if wrong is None and tool["annotations"].get("readOnlyHint"):
                        continue
                    answer = await agent.ask(tool["name"], **{**needed, name: wrong})
                    assert refused(answer), (tool["name"], name, wrong, answer)
                    tried += 1
        assert tried > 100
        for wrong in NO_LABELS:
            answer = await agent.ask("invoke", target=wrong)
            assert refused(answer), (wrong, answer)
        assert await effects(app, mark) == []


# --- false success, false failure -------------------------------------------------------------------------------------


async def test_c18_an_answer_says_one_thing_whatever_its_end_is(desktop: IsolatedDesktop, app: FixtureApp) -> None:
    async with agent_of(desktop, app) as agent:
        done = await agent.done("invoke", target=COUNT, operation_id="told-once")
        assert done["status"] == "succeeded"
        missing = await agent.error("invoke", target={"role": "button", "name": "Nowhere"})
        assert missing["code"] == "target_not_found"
        # Some steps done and one failed is no success either.
        steps = [{"do": "invoke", "target": COUNT}, {"do": "set_value", "target": STUBBORN, "value": "new"}]
        assert (await agent.tool("act", steps=steps))["isError"] is True
        # And it is told alike afterwards.
        again = await agent.done("operation_status", operation_id="told-once")
        assert again["status"] == "succeeded"


# --- twice ------------------------------------------------------------------------------------------------------------


async def test_c23_a_server_that_is_killed_before_its_reply_and_a_client_that_asks_another(
    desktop: IsolatedDesktop, app: FixtureApp
) -> None:
    async with agent_of(desktop, app) as first, agent_of(desktop, app) as second:
        await app.run("arm", control="counter", do={"cmd": "sleep", "ms": 300})
        mark = app.mark()
        first.server.send(calling("cut", "invoke", {"target": COUNT, "operation_id": "server-cut"}))
        await app.wait_for("press", "counter", after=mark)
        first.server.process.kill()
        again = await second.tool("invoke", target=COUNT, operation_id="server-cut")
        await app.run("ping", timeout_s=10)
        await app.settle()
        assert app.presses("counter", after=mark) == ["Count"]
        # Pressed once; whoever asks again is told that end and starts nothing.
        assert again["structuredContent"].get("status") == "succeeded" or (
            again["structuredContent"]["error"]["code"] == "outcome_unknown"
        )
        other = await second.error("invoke", target={"role": "button", "name": "Later"}, operation_id="server-cut")
        assert other["code"] == "conflict"


async def test_c25_two_servers_with_one_operation_id_at_once_are_one_effect_told_to_both(
    desktop: IsolatedDesktop, app: FixtureApp
) -> None:
    async with agent_of(desktop, app) as first, agent_of(desktop, app) as second:
        mark = app.mark()
        both = await asyncio.gather(
            *(agent.done("invoke", target=COUNT, operation_id="at-once") for agent in (first, second))
        )
        await app.settle()
        assert app.presses("counter", after=mark) == ["Count"]
        assert [one["status"] for one in both] == ["succeeded", "succeeded"]
        assert both[0]["operation_id"] == both[1]["operation_id"] == "at-once"


# --- places -----------------------------------------------------------------------------------------------------------


async def test_c33_a_click_in_a_smaller_picture_lands_on_what_it_shows_and_never_in_stale_pixels(
    desktop: IsolatedDesktop, app: FixtureApp
) -> None:
    async with agent_of(desktop, app) as agent:
        picture = await agent.done("screenshot", window=agent.window, max_edge=500)
        assert max(picture["width"], picture["height"]) == 500
        shown = await agent.done("observe", window=agent.window, full=True)
        assert shown
        for name, control in (("Count", "counter"), ("Later", "later")):
            x, y = await _shown_at(desktop, agent, picture, name)
            mark = app.mark()
            place = {"x": x, "y": y, "capture_id": picture["capture_id"]}
            await agent.done("click", **place)
            await app.settle()
            assert len(app.presses(control, after=mark)) == 1
        await app.run("rename", control="later", name="Never")
        try:
            mark = app.mark()
            assert (await agent.error("click", **place))["code"] == "stale_target"
            outside = {**place, "x": picture["width"]}
            assert (await agent.error("click", **outside))["code"] == "invalid_request"
            assert await effects(app, mark) == []
        finally:
            await app.run("rename", control="later", name="Later")


async def _shown_at(desktop: IsolatedDesktop, agent: Agent, picture: dict[str, Any], name: str) -> tuple[int, int]:
    """Return where a smaller picture shows the middle of a button, from where the daemon says that it is."""
    context = Context(desktop=desktop.name, client="test", start=False)
    try:
        wanted = {"filters": [{"role": "button"}, {"name": {"text": name}}]}
        found = await context.ask("query", {"surface": agent.window, "query": wanted})
    finally:
        await context.close()
    (match,) = found["matches"]
    x, y, width, height = match["bounds"]
    middle = (x + width // 2, y + height // 2)
    at = [
        int((one - zero) * scale) for one, zero, scale in zip(middle, picture["origin"], picture["scale"], strict=True)
    ]
    return at[0], at[1]


# --- secrets, sizes ---------------------------------------------------------------------------------------------------


async def test_c44_a_password_that_was_filled_in_is_told_by_nothing(
    desktop: IsolatedDesktop, app: FixtureApp, daemon: Daemon
) -> None:
    async with agent_of(desktop, app) as agent:
        password = {"role": "password"}
        # An agent's own try waits for a person; meanwhile the person fills it in.
        said: list[Any] = [await agent.ask("set_value", target=password, value=SECRET, operation_id="filled")]
        await app.run("set_text", control="secret", text=SECRET)
        for name, arguments in (
            ("observe", {"window": agent.window}),
            ("observe", {"window": agent.window, "full": True}),
            ("query", {"window": agent.window, "role": "password"}),
            ("query", {"window": agent.window, "value": SECRET}),
            ("read_text", {"window": agent.window, "target": password}),
            ("screenshot", {"window": agent.window, "marks": True}),
            ("invoke", {"target": COUNT}),
            ("operation_status", {"operation_id": "filled"}),
            ("set_value", {"target": password, "value": SECRET, "operation_id": "filled"}),
        ):
            said.append(await agent.ask(name, **arguments))
        agent.server.send(
            {"jsonrpc": "2.0", "id": "r", "method": "resources/read", "params": {"uri": "surehand://journal/filled"}}
        )
        said.append(await agent.server.answer("r"))
        agent.server.hang_up()
        await agent.server.ended()
        assert agent.server.process.stderr
        log = await agent.server.process.stderr.read()
    await app.run("set_text", control="secret", text="")
    for one in said:
        # A query by the value says again what was asked for; nothing may say what is there.
        assert SECRET not in json.dumps(one, ensure_ascii=False)
    kept = [log, *(path.read_bytes() for path in sorted(daemon.state.rglob("*")) if path.is_file())]
    kept.append((daemon.run.parent / "daemon.log").read_bytes())
    for data in kept:
        assert SECRET.encode() not in data
        assert json.dumps(SECRET).strip('"').encode() not in data


@pytest.mark.parametrize(("tools", "most"), [("core", 8 * 1024), ("all", 24 * 1024)])
async def test_c52_the_list_of_tools_fits_its_budget(
    tools: str, most: int, desktop: IsolatedDesktop, daemon: Daemon
) -> None:
    del daemon
    async with spawned("--desktop", desktop.name, "--tools", tools) as server:
        await server.greeted()
        found, size = await listed(server)
        assert found
        assert size <= most


async def test_c52_a_window_of_two_hundred_controls_is_told_in_four_kilobytes_and_an_action_in_one(
    desktop: IsolatedDesktop, app: FixtureApp
) -> None:
    async with agent_of(desktop, app) as agent:
        whole = await agent.tool("observe", window=agent.window, full=True)
        assert len(whole["content"][0]["text"].encode()) <= 4 * 1024
        pressed = await agent.tool("invoke", target=COUNT)
        assert len(pressed["content"][0]["text"].encode()) <= 1024
