"""Real client stacks complete the same task on a real application; the application's own log is the proof."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import jsonschema
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from surehand.testing.fixture_app import FixtureApp
from surehand.tools.aliases import PLAYWRIGHT
from tests.clients.script import DONE, TEXT, Model, next_step, serving
from tests.crash.daemon_kit import Daemon
from tests.desktop.mcp.conftest import SUREHAND

pytestmark = pytest.mark.desktop

ROOT = Path(__file__).parents[3]
CLIENTS = ROOT / "tests" / "clients"
INSPECTOR = ROOT / ".venv" / "clients" / "inspector" / "node_modules" / ".bin" / "mcp-inspector"


async def assert_done(app: FixtureApp, mark: int) -> None:
    """Assert from the application's log that the task was done, each part once."""
    await app.settle()
    assert app.presses("counter", after=mark) == ["Count"]
    assert [one.value for one in app.events("toggle", "toggle", after=mark)] == [True]
    typed = [one.value for one in app.events("text", "name", after=mark)]
    assert typed == [TEXT]


def installed(what: Path) -> Path:
    if not what.exists():
        if os.environ.get("SUREHAND_CLIENTS") == "required":
            pytest.fail(f"{what} is missing; scripts/clients installs it")
        pytest.skip("scripts/clients installs it")
    return what


def stdio(*options: str) -> StdioServerParameters:
    return StdioServerParameters(command=SUREHAND, args=["mcp", *options], env={**os.environ})


@contextlib.asynccontextmanager
async def over_http(*options: str) -> AsyncIterator[tuple[str, str]]:
    process = await asyncio.create_subprocess_exec(
        *[SUREHAND, "mcp", "--http", "0", *options], stderr=asyncio.subprocess.PIPE
    )
    assert process.stderr
    try:
        said = (await process.stderr.readline()).decode() + (await process.stderr.readline()).decode()
        url, path = re.search(r"http://\S+", said), re.search(r"token in (\S+)", said)
        assert url, said
        assert path, said
        yield url[0], _text(Path(path[1]))
    finally:
        process.terminate()
        await process.communicate()


def _text(path: Path) -> str:
    return path.read_text().strip()


async def follow_script(client: Client, title: str, check: Any = None) -> None:
    """Do the task as the scripted model would; carries the session's token where it is given one."""
    answers: list[str] = []
    carried: dict[str, str] = {}
    while (step := next_step(title, answers)) is not None:
        found = await client.call_tool(step.tool, {**step.arguments, **carried})
        assert not found.is_error, found.content
        carried |= {name: value for name, value in (found.structured_content or {}).items() if name == "session"}
        if check is not None:
            check(step.tool, found.structured_content)
        answers.append(found.content[0].text)


async def test_the_official_client_completes_the_task_over_stdio(own_daemon: Path, app: FixtureApp, desktop) -> None:
    mark = app.mark()
    async with Client(stdio("--desktop", desktop.name)) as client:
        await follow_script(client, app.title)
    await assert_done(app, mark)


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_the_official_client_completes_the_task_over_http(
    mode: str, own_daemon: Path, app: FixtureApp, desktop
) -> None:
    mark = app.mark()
    async with (
        over_http("--desktop", desktop.name) as (url, token),
        httpx2.AsyncClient(headers={"authorization": f"Bearer {token}"}, timeout=60) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        await follow_script(client, app.title)
    await assert_done(app, mark)


async def test_results_are_what_the_output_schemas_say(own_daemon: Path, app: FixtureApp, desktop) -> None:
    """With a validator that shares nothing with the writer of the schemas."""
    async with Client(stdio("--desktop", desktop.name), mode="legacy") as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        for tool in tools.values():
            for schema in (tool.input_schema, tool.output_schema):
                jsonschema.Draft202012Validator.check_schema(schema)
                assert schema["type"] == "object"

        def check(name: str, value: Any) -> None:
            jsonschema.Draft202012Validator(tools[name].output_schema).validate(value)
            assert "title" in json.dumps(value) or name != "list_windows"

        await follow_script(client, app.title, check)
        for name, arguments in (
            ("list_apps", {}),
            ("query", {"window": None, "role": "button"}),
            ("invoke", {"target": {"role": "button", "name": "no such"}}),
        ):
            given = {key: value for key, value in arguments.items() if value is not None}
            jsonschema.Draft202012Validator(tools[name].input_schema).validate(given)
            found = await client.call_tool(name, given)
            if not found.is_error:
                check(name, found.structured_content)


async def run(program: list[str], *, seconds: float = 90) -> str:
    process = await asyncio.create_subprocess_exec(
        *program, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    try:
        async with asyncio.timeout(seconds):
            out, err = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, (out.decode(), err.decode()[-3000:])
    return out.decode()


@pytest.mark.parametrize(("stack", "program"), [("agents", "agents_task.py"), ("langchain", "langchain_task.py")])
async def test_an_agent_framework_completes_the_task_with_a_scripted_model(
    stack: str, program: str, own_daemon: Path, app: FixtureApp, desktop
) -> None:
    python = installed(ROOT / ".venv" / "clients" / stack / "bin" / "python")
    model, mark = Model(app.title), app.mark()
    with serving(model) as url:
        said = await run([str(python), str(CLIENTS / program), url, SUREHAND, "mcp", "--desktop", desktop.name])
    assert model.stuck is None
    assert said.strip().endswith(DONE)
    assert {"observe", "invoke", "set_value"} <= {tool["function"]["name"] for tool in model.offered}
    await assert_done(app, mark)


async def test_the_inspector_completes_the_task(own_daemon: Path, app: FixtureApp, desktop) -> None:
    """Each of its calls is a process and a session of its own: no label lives on, so what is meant is named anew."""
    node = shutil.which("node")
    if node is None or shutil.which("npm") is None:
        pytest.skip("node and npm are not installed")
    server = [node, str(installed(INSPECTOR)), "--cli", SUREHAND, "mcp", "--desktop", desktop.name]

    async def asked(method: str, *options: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(_json(await run([*server, "--method", method, *options])))
        return found

    async def called(tool: str, **arguments: Any) -> dict[str, Any]:
        given = [f"{name}={one if isinstance(one, str) else json.dumps(one)}" for name, one in arguments.items()]
        found = await asked("tools/call", "--tool-name", tool, *(word for one in given for word in ("--tool-arg", one)))
        assert not found.get("isError"), found
        value: dict[str, Any] = found["structuredContent"]
        return value

    mark = app.mark()
    # All at once: one of them starts the daemon, and which is served first makes no difference.
    listed, *ended = await asyncio.gather(
        asked("tools/list"),
        called("set_value", app="gtk3_app.py", target={"role": "text", "label": "Name"}, value=TEXT),
        called("toggle", app="gtk3_app.py", target={"role": "togglebutton", "name": "Bold"}, to=True),
        called("invoke", app="gtk3_app.py", target={"role": "button", "name": "Count"}),
    )
    assert {"observe", "set_value", "toggle", "invoke"} <= {tool["name"] for tool in listed["tools"]}
    assert [one["status"] for one in ended] == ["succeeded"] * 3
    await assert_done(app, mark)


async def test_the_task_is_done_in_the_words_of_another_server(daemon: Daemon, app: FixtureApp, desktop) -> None:
    mark = app.mark()
    async with Client(stdio("--desktop", desktop.name, "--tools", "playwright")) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == [tool.name for tool in PLAYWRIGHT]

        async def said(tool: str, **arguments: Any) -> str:
            found = await client.call_tool(tool, arguments)
            assert not found.is_error, found.content
            return found.content[0].text

        window = await said("browser_snapshot")
        field, bold, count = (
            re.search(pattern, window)[1]  # type: ignore[index]
            for pattern in (
                r'\[(e\d+)\] text label="Name"',
                r'\[(e\d+)\] togglebutton "Bold"',
                r'\[(e\d+)\](?: button)? "Count"',
            )
        )
        form = [{"target": field, "name": "Name", "type": "textbox", "value": TEXT}]
        assert "all 1 steps done, 1 of them read back" in await said("browser_fill_form", fields=form)
        await said("browser_click", target=bold, element="the switch for bold text")
        await said("browser_click", target=count)
        assert "exists: yes" in await said("browser_wait_for", text="Presses: 1")
        assert TEXT in await said("browser_snapshot", target=field)
        assert (await client.call_tool("browser_take_screenshot", {"type": "png"})).content[1].mime_type == "image/png"
        unknown = await client.call_tool("browser_click", {"target": "e999999"})
        assert unknown.is_error
        assert "target_not_found" in unknown.content[0].text
    await assert_done(app, mark)


async def test_the_task_is_done_by_places_in_pictures_of_the_desktop(daemon: Daemon, app: FixtureApp, desktop) -> None:
    """With the words of a model that only sees; where things stand is taken from pictures of them."""
    mark = app.mark()
    async with Client(stdio("--desktop", desktop.name, "--tools", "computer-use,screenshot")) as client:

        async def does(action: str, **arguments: Any) -> dict[str, Any]:
            found = await client.call_tool("computer", {"action": action, **arguments})
            assert not found.is_error, found.content
            value: dict[str, Any] = found.structured_content
            return value

        unseen = await client.call_tool("computer", {"action": "left_click", "coordinate": [1, 1]})
        assert unseen.is_error
        assert "take a screenshot first" in unseen.content[0].text
        for target, then in (
            ({"role": "text", "label": "Name"}, TEXT),
            ({"role": "togglebutton", "name": "Bold"}, None),
            ({"role": "button", "name": "Count"}, None),
        ):
            part = (await client.call_tool("screenshot", {"app": "gtk3_app.py", "target": target})).structured_content
            whole = await does("screenshot")
            middle = [
                place + size // 2 for place, size in zip(part["origin"], (part["width"], part["height"]), strict=True)
            ]
            await does(
                "left_click", coordinate=[round(one * scale) for one, scale in zip(middle, whole["scale"], strict=True)]
            )
            if then is not None:
                await does("key", text="ctrl+a")
                await does("type", text=then)
    await app.settle()
    assert app.presses("counter", after=mark) == ["Count"]
    assert [one.value for one in app.events("toggle", "toggle", after=mark)] == [True]
    assert app.events("text", "name", after=mark)[-1].value == TEXT


def _json(said: str) -> str:
    return said[said.index("{") :]


@pytest.mark.parametrize("name", ["agents", "langchain"])
def test_the_clients_packages_are_pinned_by_hash_and_name_no_address(name: str) -> None:
    lock = (CLIENTS / f"{name}.lock").read_text("utf-8")
    assert lock.count("--hash=sha256:") > lock.count("==") > 20
    assert "://" not in lock
    assert '"resolved"' not in (CLIENTS / "package-lock.json").read_text("utf-8")


async def test_a_client_that_was_installed_for_a_newcomer_starts_everything_by_itself(
    own_daemon: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the README's line to an application on a desktop that was not there before."""
    monkeypatch.setenv("HOME", str(tmp_path))
    await run([SUREHAND, "install", "claude-code", "--yes"])
    entry = json.loads(_text(tmp_path / ".claude.json"))["mcpServers"]["surehand"]
    server = StdioServerParameters(command=entry["command"], args=entry["args"], env={**os.environ})
    async with Client(server) as client:
        launched = await client.call_tool("launch_app", {"name": "org.xfce.mousepad.desktop"})
        assert not launched.is_error, launched.content
        found = await client.call_tool("observe", {"app": "mousepad"})
        assert 'role="text"' in found.content[0].text or "] text" in found.content[0].text
