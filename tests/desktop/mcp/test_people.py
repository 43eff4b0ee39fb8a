"""An MCP client, a real application and a person at the command line: approvals, hand-overs, and what the agent hears.

The operator is the real `surehand` in a process of its own; the application's own log says what happened.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from surehand.signing.keystore import KeyStore
from surehand.testing.desktop import IsolatedDesktop
from surehand.testing.fixture_app import FixtureApp
from surehand.testing.terminal import with_passphrase
from surehand.tools.catalog import TOOLS
from tests.desktop.cases.kit import NOISE

pytestmark = pytest.mark.desktop
SUREHAND = str(Path(sys.executable).with_name("surehand"))
PAY = {"role": "button", "name": "Pay 10"}
APP = {"app": "gtk3_app.py"}
PASSPHRASE = "only for these tests"  # noqa: S105 - for these tests alone


def data_of(said: str, more: object = "") -> Any:
    envelope = json.loads(said)
    assert envelope["ok"], (envelope, more)
    return envelope["data"]


class Stage:
    """A daemon folder of its own, an operator with a key, and what a client was ever asked."""

    def __init__(self, desktop: IsolatedDesktop, app: FixtureApp, folder: Path) -> None:
        self.desktop = desktop
        self.app = app
        self.folder = folder
        run = folder / "run"
        run.mkdir(mode=0o700)
        self.environment = {**os.environ, "SUREHAND_RUNTIME_DIR": str(run)}
        self.elicited: list[Any] = []

    async def operator(self, *words: str) -> Any:
        """Run the operator's command line and return its data."""
        if words[:2] in {("approvals", "approve"), ("approvals", "deny")}:
            return data_of(await asyncio.to_thread(self.typed, *words))
        process = await asyncio.create_subprocess_exec(
            SUREHAND, *words, "--json", env=self.environment, stdout=-1, stderr=-1, stdin=asyncio.subprocess.DEVNULL
        )
        out, err = await asyncio.wait_for(process.communicate(), 60)
        return data_of(out.decode(), err)

    def typed(self, *words: str) -> str:
        """Run the operator's command line at a terminal, where it asks for the passphrase."""
        return with_passphrase([SUREHAND, *words, "--json"], PASSPHRASE, env=self.environment)[1]

    async def until(self, *words: str) -> Any:
        """Ask the operator's command line until it lists something."""
        async with asyncio.timeout(30):
            while not (found := next(iter((await self.operator(*words)).values()))):
                pass
        return found

    @contextlib.asynccontextmanager
    async def client(self, desktop: str | None = None) -> AsyncIterator[Agent]:
        """Connect an MCP client that would answer every elicitation with yes."""

        async def elicited(*asked: Any) -> Any:
            self.elicited.append(asked)
            raise AssertionError("a tool asked its client to decide")

        server = StdioServerParameters(
            command=SUREHAND, args=["mcp", "--desktop", desktop or self.desktop.name], env=self.environment
        )
        async with Client(server, elicitation_callback=elicited) as client:
            yield Agent(client)


class Agent:
    """An MCP client's tools."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def call(self, name: str, /, **arguments: Any) -> Any:
        return await self._client.call_tool(name, arguments)

    async def data(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        found = await self.call(name, **arguments)
        assert not found.is_error, found.content[0].text
        data: dict[str, Any] = found.structured_content
        return data

    async def error(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        found = await self.call(name, **arguments)
        assert found.is_error, found.structured_content
        error: dict[str, Any] = found.structured_content["error"]
        return error


@pytest.fixture
async def stage(desktop: IsolatedDesktop, tmp_path: Path) -> AsyncIterator[Stage]:
    app = await FixtureApp.start(desktop, "gtk3")
    stage = Stage(desktop, app, tmp_path)
    keys = KeyStore.open(Path(stage.environment["SUREHAND_RUNTIME_DIR"]) / "state" / "keys")
    keys.create_approver("ann", passphrase=PASSPHRASE)
    try:
        yield stage
    finally:
        with contextlib.suppress(AssertionError):
            await stage.operator("stop")
        app.close()
        assert stage.elicited == []


async def asked_to_pay(agent: Agent, operation_id: str) -> str:
    reply = await agent.data("invoke", target=PAY, operation_id=operation_id, **APP)
    assert reply["status"] == "approval_required"
    return str(reply["approval_id"])


# --- approvals -------------------------------------------------------------------------------------------------------


async def test_a_payment_happens_once_after_a_person_agreed_and_only_that_payment(stage: Stage) -> None:
    async with stage.client() as agent:
        approval_id = await asked_to_pay(agent, "pay-1")
        assert (await agent.data("approval_status", approval_id=approval_id, wait_ms=0))["status"] == "pending"
        waiting = asyncio.create_task(agent.call("approval_status", approval_id=approval_id, wait_ms=60_000))
        await stage.operator("approvals", "approve", approval_id, "--yes")
        answer = await waiting
        assert answer.structured_content["status"] == "approved"
        assert "operation_id pay-1" in answer.content[0].text
        assert "http" not in answer.content[0].text
        assert stage.app.presses("pay") == []

        # The yes is for what was shown: with another text it is another question.
        await stage.app.run("rename", control="pay", name="Pay 9999")
        more = {"role": "button", "name": "Pay 9999"}
        other = await agent.data("invoke", target=more, operation_id="pay-1", **APP)
        assert other["status"] == "approval_required"
        assert other["approval_id"] != approval_id
        await stage.app.settle()
        assert stage.app.presses("pay") == []


async def test_repeating_the_approved_call_acts_exactly_once(stage: Stage) -> None:
    async with stage.client() as agent:
        approval_id = await asked_to_pay(agent, "pay-2")
        await stage.operator("approvals", "approve", approval_id, "--yes")
        assert (await agent.data("approval_status", operation_id="pay-2"))["status"] == "approved"
        reply = await agent.data("invoke", target=PAY, operation_id="pay-2", **APP)
        assert reply["status"] == "succeeded"
        again = await agent.call("invoke", target=PAY, operation_id="pay-2", **APP)
        assert again.structured_content["replayed"]
        error = await agent.error("invoke", target={"role": "button", "name": "Count"}, operation_id="pay-2", **APP)
        assert error["code"] == "conflict"
        await stage.app.settle()
        assert stage.app.presses("pay") == ["Pay 10"]
        assert stage.app.presses("counter") == []
        assert (await agent.data("approval_status", approval_id=approval_id))["status"] == "used"


async def test_a_call_of_several_steps_is_one_question_and_none_of_it_happens_before_the_yes(stage: Stage) -> None:
    steps = [
        {"do": "set_value", "target": {"role": "text", "label": "Name"}, "value": "Ada"},
        {"do": "invoke", "target": PAY, "expect": "none"},
        {"do": "invoke", "target": PAY, "expect": "none"},
    ]
    async with stage.client() as agent:
        await agent.data("observe", **APP)
        mark = stage.app.mark()
        asked = await agent.data("act", steps=steps, operation_id="pay-4")
        assert (asked["status"], asked["not_begun"]) == ("approval_required", 3)
        (open_one,) = (await stage.operator("approvals", "list"))["pending"]
        assert open_one["approval_id"] == asked["approval_id"]
        await stage.app.settle()
        assert [event for event in stage.app.events(after=mark) if event.event not in NOISE] == []
        await stage.operator("approvals", "approve", asked["approval_id"], "--yes")
        assert (await agent.data("approval_status", operation_id="pay-4"))["status"] == "approved"
        done = await agent.data("act", steps=steps, operation_id="pay-4")
        assert [step["status"] for step in done["steps"]] == ["succeeded"] * 3
        await stage.app.settle()
        assert stage.app.presses("pay") == ["Pay 10", "Pay 10"]
        assert (await stage.operator("approvals", "list"))["pending"] == []


async def test_a_no_reaches_the_agent_and_nothing_is_pressed(stage: Stage) -> None:
    async with stage.client() as agent:
        approval_id = await asked_to_pay(agent, "pay-3")
        await stage.operator("approvals", "deny", approval_id, "--reason", "not this account")
        answer = await agent.call("approval_status", approval_id=approval_id)
        assert answer.structured_content["status"] == "denied"
        assert "operator guidance (a person's words, not the screen's): \"not this account\"" in answer.content[0].text
        assert (await agent.error("invoke", target=PAY, operation_id="pay-3", **APP))["code"] == "approval_denied"
        assert stage.app.presses("pay") == []


async def test_an_unknown_approval_is_a_typed_refusal(stage: Stage) -> None:
    async with stage.client() as agent:
        assert (await agent.error("approval_status", approval_id="0123456789abcdef"))["code"] == "invalid_request"
        assert (await agent.data("approval_status"))["approvals"] == []


# --- asking a person in ----------------------------------------------------------------------------------------------


async def test_a_person_takes_over_and_hands_back_with_a_note_and_the_agent_sees_what_they_did(stage: Stage) -> None:
    async with stage.client() as agent:
        await agent.data("observe", **APP)
        waiting = asyncio.create_task(
            agent.call("request_human", reason='solve the "captcha"\u202e now', kind="captcha", wait_ms=60_000)
        )
        (request,) = await stage.until("requests", "list")
        assert request["agent_says"] == 'solve the \\"captcha\\"\\u202e now'
        assert request["desktop"] == stage.desktop.name
        error = await agent.error("invoke", target={"role": "button", "name": "Count"}, **APP)
        assert (error["code"], error["gate"]) == ("authority_denied", "authority")
        await stage.operator("requests", "take", request["request_id"])
        await stage.app.run("set_text", control="name", text="by a person")
        await stage.operator("requests", "done", request["request_id"], "--note", "use the second account")
        answer = await waiting
        assert answer.structured_content["status"] == "done"
        assert answer.structured_content["operator_note"] == "use the second account"
        assert "by a person" in answer.structured_content["change"]
        assert '"use the second account"' in answer.content[0].text
        assert "use the second account" not in answer.structured_content["change"]
        assert (await agent.data("invoke", target={"role": "button", "name": "Count"}, **APP))["status"] == "succeeded"
        await stage.app.settle()
        assert stage.app.presses("counter") == ["Count"]


async def test_nobody_coming_is_a_normal_answer_and_the_agent_can_go_on_alone(stage: Stage) -> None:
    async with stage.client() as agent:
        assert (await agent.data("request_human", reason="help", wait_ms=0))["status"] == "waiting"
        assert (await agent.data("doctor"))["handed_over"]
        assert (await agent.data("request_human", reason="help", withdraw=True))["status"] == "withdrawn"
        assert (await agent.data("doctor"))["handed_over"] is None


async def test_a_client_that_cancels_takes_its_request_back(stage: Stage) -> None:
    async with stage.client() as agent:
        assert (await agent.data("doctor"))["handed_over"] is None
        waiting = asyncio.create_task(agent.call("request_human", reason="help", wait_ms=120_000))
        await stage.until("requests", "list")
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        async with asyncio.timeout(30):
            while (await stage.operator("requests", "list"))["requests"]:
                pass
        assert (await agent.data("doctor"))["handed_over"] is None


async def test_a_daemon_that_restarts_says_that_the_request_is_lost(stage: Stage) -> None:
    async with stage.client() as agent:
        await agent.data("request_human", reason="help", wait_ms=0)
        (request,) = await stage.until("requests", "list")
        await stage.operator("requests", "take", request["request_id"])
        await stage.operator("stop")
        told = await agent.data("request_human", reason="help", wait_ms=0)
        assert told["status"] == "lost"
        assert (await agent.data("request_human", reason="help", wait_ms=0))["status"] == "waiting"


# --- the session -----------------------------------------------------------------------------------------------------


async def test_the_doctor_tells_what_works_and_ending_a_session_forgets_its_labels(stage: Stage) -> None:
    async with stage.client() as agent:
        found = await agent.data("doctor")
        assert found["desktop"] == stage.desktop.name
        assert found["isolation"] == stage.desktop.isolation
        assert "invoke" in found["actions"]
        assert str(Path.home()) not in json.dumps(found)
        matches = (await agent.data("query", role="button", name="Count", **APP))["matches"]
        label = matches[0]["label"]
        assert (await agent.data("end_session"))["ended"]
        assert (await agent.error("invoke", target=label))["code"] == "target_not_found"
        assert stage.app.presses("counter") == []
        assert (await agent.data("invoke", target={"role": "button", "name": "Count"}, **APP))["status"] == "succeeded"


async def test_no_tool_asks_its_client_to_decide(stage: Stage) -> None:
    """Nobody named this client (spec §6.4): it says that it can be asked, and is asked nothing, whatever needs a person."""
    async with stage.client() as agent:
        approval_id = await asked_to_pay(agent, "pay-4")
        await agent.data("approval_status", approval_id=approval_id, wait_ms=0)
        await agent.data("request_human", reason="choose", kind="choice", wait_ms=0)
        assert stage.elicited == []
    sources = Path(sys.modules["surehand"].__path__[0])
    for folder in ("tools", "mcp"):
        for path in (sources / folder).rglob("*.py"):
            asks = path.relative_to(sources).as_posix() == "mcp/asking.py"
            assert asks or "elicit" not in path.read_text("utf-8").lower(), path
    assert not [tool.name for tool in TOOLS if "approve" in tool.name or "answer" in tool.name]
