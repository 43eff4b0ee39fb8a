"""What an agent with tools is told, and may do, after the daemon died between a claim and its end (spec §5.7)."""

from __future__ import annotations

import asyncio

import pytest

from surehand.model.outcome import UNKNOWN_STATEMENT
from surehand.testing.desktop import IsolatedDesktop
from surehand.testing.fixture_app import FixtureApp
from tests.crash.daemon_kit import Daemon, check_history
from tests.desktop.mcp.acting_kit import Agent, agent_on

pytestmark = [pytest.mark.desktop, pytest.mark.asyncio(loop_scope="module")]

FIELD = {"role": "text", "label": "Name"}


async def _interrupted(daemon: Daemon, agent: Agent) -> None:
    """Kill the daemon while the application is at what it was asked to do, and check what the agent is told."""
    await agent.app.run("arm", control="name", do={"cmd": "sleep", "ms": 1_000})
    mark = agent.app.mark()
    writing = asyncio.create_task(agent.tool("set_value", target=FIELD, value="once", operation_id="the-one"))
    await agent.app.wait_for("text", "name", after=mark, where=lambda event: event.value in {"once", ""})
    daemon.kill()
    answer = await writing
    assert answer.is_error
    error = answer.data["error"]
    assert (error["code"], error["retry_safe"]) == ("outcome_unknown", False)
    assert UNKNOWN_STATEMENT in answer.text
    assert "the-one" in answer.text


async def test_an_unknown_outcome_is_looked_into_before_it_is_repeated(
    daemon: Daemon, desktop: IsolatedDesktop, app: FixtureApp
) -> None:
    await app.run("set_text", control="name", text="before")
    mark = app.mark()
    daemon.start()
    async with agent_on(desktop, app) as agent:
        await _interrupted(daemon, agent)
        await app.run("ping", timeout_s=5)
        await app.settle()
        arrived = [event.value for event in app.events("text", "name", after=mark)]
        daemon.start()

        # What was sent, how it ended, what is there now, and what to check.
        status = await agent.tool("operation_status", operation_id="the-one")
        assert status.data["status"] == "outcome_unknown"
        assert status.data["sent"]["action"] == "desktop.set_value"
        (element,) = status.data["now"]["elements"]
        assert element["value"] == await app.run("get", control="name")
        assert "reconciles" in status.data["check"]
        assert len(status.text) <= 1024

        # The same id is told the same, and another id for the same effect is refused until it names it.
        again = await agent.tool("set_value", target=FIELD, value="once", operation_id="the-one")
        assert again.data["error"]["code"] == "outcome_unknown"
        refused = await agent.tool("set_value", target=FIELD, value="once")
        assert refused.data["error"]["code"] == "reconcile_required"
        assert "the-one" in refused.text
        wrong = await agent.tool("set_value", target=FIELD, value="once", reconciles="another-one")
        assert wrong.data["error"]["code"] == "reconcile_required"
        await app.settle()
        assert [event.value for event in app.events("text", "name", after=mark)] == arrived

        # Named, and on what was looked at since, it is done; and then the question is closed.
        done = await agent.done("set_value", target=element["label"], value="once", reconciles="the-one")
        assert done.data["effect"] == "verified"
        await agent.done("set_value", target=FIELD, value="once")
        # What had been done before is told to stay as unknown as it was.
        status = await agent.tool("operation_status", operation_id="the-one")
        assert status.data["status"] == "outcome_unknown"
        assert "check" not in status.data
    assert await app.run("get", control="name") == "once"
    daemon.stop()
    assert daemon.verify()["counts"]["unended"] == 0
    assert check_history((await daemon.operations())["the-one"]) == "outcome_unknown"


async def test_steps_after_an_unknown_one_are_not_begun_and_a_repeat_goes_no_further(
    daemon: Daemon, desktop: IsolatedDesktop, app: FixtureApp
) -> None:
    await app.run("set_text", control="name", text="before")
    daemon.start()
    steps = [
        {"do": "invoke", "target": {"role": "button", "name": "Later"}},
        {"do": "set_value", "target": FIELD, "value": "half"},
        {"do": "invoke", "target": {"role": "button", "name": "Count"}},
    ]
    mark = app.mark()
    async with agent_on(desktop, app) as agent:
        await app.run("arm", control="name", do={"cmd": "sleep", "ms": 1_000})
        acting = asyncio.create_task(agent.tool("act", steps=steps, operation_id="several", change="none"))
        await app.wait_for("text", "name", after=mark, where=lambda event: event.value in {"half", ""})
        daemon.kill()
        answer = await acting
        assert answer.is_error
        assert [step["status"] for step in answer.data["steps"]] == ["succeeded", "outcome_unknown"]
        assert answer.data["not_begun"] == 1
        await app.run("ping", timeout_s=5)
        daemon.start()
        again = await agent.tool("act", steps=steps, operation_id="several", on_refusal="continue")
        assert [step["status"] for step in again.data["steps"]] == ["succeeded", "outcome_unknown"]
        assert again.data["steps"][0]["replayed"] is True
    await app.settle()
    assert [event.control for event in app.events("press", after=mark)] == ["later"]
    daemon.stop()
    ended = {name: check_history(history) for name, history in (await daemon.operations()).items()}
    assert ended == {"several:0": "succeeded", "several:1": "outcome_unknown"}
