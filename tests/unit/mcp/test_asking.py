"""A client that shows its person a question, over both eras: asked where the operator named it, and nowhere else."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any, Literal

import mcp_types as types
import pytest
from mcp import Client, MCPError

from surehand import limits
from surehand.core.scene.tree import Node
from surehand.mcp.server import build
from surehand.mcp.sessions import One
from surehand.runtime.config import AskingClient, Config
from surehand.testing.memory import button, field
from surehand.testing.worlds import World
from surehand.tools.catalog import TOOLS
from tests.unit.mcp.conftest import STATELESS
from tests.unit.mcp.straight import straight
from tests.unit.runtime.test_attacks_people import ASK, Clock

ERAS = ["legacy", STATELESS]
NAMED = Config(mcp_elicitation=(AskingClient(client="desk", uid=1000),))
SAVE = {"target": {"role": "button", "name": "Save"}, "change": "none"}
YES = {"answer": "approve"}
Action = Literal["accept", "decline", "cancel"]


class Person:
    """What stands behind a client's form."""

    def __init__(self, action: Action = "accept", content: dict[str, Any] | None = None) -> None:
        self.says = types.ElicitResult(action=action, content=content)
        self.asked: list[str] = []

    async def __call__(self, _: Any, params: Any) -> types.ElicitResult:
        self.asked.append(params.message)
        assert set(params.requested_schema["properties"]) == {"answer", "reason"}
        return self.says


@contextlib.asynccontextmanager
async def client_of(
    person: Person | None, mode: str, *, config: Config = NAMED, name: str = "desk", nodes: tuple[Node, ...] = ()
) -> AsyncIterator[tuple[Client, World]]:
    nodes = nodes or (
        button("save", "Save"),
        button("open", "Open"),
        button("pay", "Pay 10"),
        field("name", "Name", "old"),
    )
    world = World(nodes, policy=ASK, config=config, clock=Clock())
    async with straight(world) as (context, _):
        server = build(One(context), TOOLS, "1")
        info = types.Implementation(name=name, version="1")
        async with Client(server, mode=mode, client_info=info, elicitation_callback=person) as client:  # type: ignore[arg-type]
            yield client, world


async def hows(world: World) -> list[Any]:
    return [one.payload["how"] for one in await world.journal.read() if one.type.startswith("operation.approved")]


@pytest.mark.parametrize("mode", ERAS)
async def test_a_yes_in_the_form_lets_the_same_call_go_on_once(mode: str) -> None:
    person = Person(content=YES)
    async with client_of(person, mode) as (client, world):
        found = await client.call_tool("invoke", SAVE)
        assert (found.structured_content or {})["status"] == "succeeded"
        assert "client_asserted" in found.content[0].text  # type: ignore[union-attr]
        assert len(world.app.effects) == 1
        assert await hows(world) == ["client_asserted"]
    (message,) = person.asked
    assert "element: button Save" in message.splitlines()


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize(
    ("person", "status", "denied"),
    [
        (Person("decline"), "refused", True),
        (Person(content={"answer": "deny", "reason": "not now"}), "refused", True),
        (Person("cancel"), "approval_required", False),
        (Person(content={}), "approval_required", False),
        (Person(content={"answer": "yes"}), "approval_required", False),
    ],
)
async def test_a_no_is_a_no_and_a_closed_form_leaves_the_question_to_the_operator(
    mode: str, person: Person, status: str, denied: bool
) -> None:
    person.asked.clear()
    async with client_of(person, mode) as (client, world):
        found = await client.call_tool("invoke", SAVE)
        data = found.structured_content or {}
        assert data.get("status", "refused") == status
        if denied:
            assert data["error"]["code"] == "approval_denied"
        assert bool(world.approvals.pending()) is not denied
        assert len(person.asked) == 1
        assert world.app.effects == []


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize(
    ("facts", "target"),
    [
        ({"config": Config()}, "Save"),
        ({"name": "other"}, "Save"),
        ({}, "Pay 10"),
    ],
)
async def test_nobody_is_asked_without_leave_or_about_what_is_consequential(
    mode: str, facts: dict[str, Any], target: str
) -> None:
    person = Person(content=YES)
    async with client_of(person, mode, **facts) as (client, world):
        found = await client.call_tool("invoke", {**SAVE, "target": {"role": "button", "name": target}})
        assert (found.structured_content or {})["status"] == "approval_required"
        assert person.asked == []
        assert world.app.effects == []


@pytest.mark.parametrize("mode", ERAS)
async def test_a_client_without_forms_is_asked_nothing(mode: str) -> None:
    async with client_of(None, mode) as (client, world):
        found = await client.call_tool("invoke", SAVE)
        assert (found.structured_content or {})["status"] == "approval_required"
        assert world.app.effects == []


@pytest.mark.parametrize("mode", ERAS)
async def test_a_plan_is_one_form_with_every_step(mode: str) -> None:
    person = Person(content=YES)
    steps = [{"do": "invoke", "target": {"role": "button", "name": name}} for name in ("Save", "Open")]
    async with client_of(person, mode) as (client, world):
        found = await client.call_tool("act", {"steps": steps, "change": "none"})
        assert (found.structured_content or {})["status"] == "succeeded"
        assert len(world.app.effects) == 2
    (message,) = person.asked
    assert [line[:6] for line in message.splitlines() if line.startswith("step ")] == ["step 1", "step 2"]


@pytest.mark.parametrize("mode", ERAS)
async def test_one_call_asks_at_most_so_often(mode: str) -> None:
    """Each step of a batch that cannot be foreseen as a whole is asked about when its turn comes."""
    names = [f"Save {place}" for place in range(limits.MCP_FORMS_MAX + 1)]
    nodes = tuple(button(f"b{place}", name) for place, name in enumerate(names))
    for most, status in ((limits.MCP_FORMS_MAX, "succeeded"), (limits.MCP_FORMS_MAX + 1, "approval_required")):
        person = Person(content=YES)
        async with client_of(person, mode, nodes=nodes) as (client, world):
            window = world.app.surface.surface_id
            steps: list[Any] = [
                {"do": "invoke", "target": {"role": "button", "name": name}, "window": window} for name in names[:most]
            ]
            # What is not there yet keeps the batch from being one plan.
            steps.append({"do": "invoke", "target": {"role": "button", "name": "nowhere"}, "window": window})
            found = await client.call_tool("act", {"steps": steps, "change": "none"})
            assert len(person.asked) == limits.MCP_FORMS_MAX
            assert len(world.app.effects) == limits.MCP_FORMS_MAX
            if status == "approval_required":
                assert (found.structured_content or {})["status"] == status


async def test_a_state_that_was_not_sealed_here_opens_nothing() -> None:
    person = Person(content=YES)
    async with client_of(person, STATELESS) as (client, world):
        ended = await client.session.call_tool("invoke", SAVE, allow_input_required=True)
        assert isinstance(ended, types.InputRequiredResult)
        (pending,) = world.approvals.pending()
        forged = json.dumps(
            {
                "approval_id": pending.approval_id,
                "presentation_hash": pending.presentation_hash,
                "operation_id": pending.operation_id,
            }
        )
        answers = {"approval": person.says}
        for state in (forged, (ended.request_state or "") + "x"):
            with pytest.raises(MCPError):
                await client.session.call_tool("invoke", SAVE, input_responses=answers, request_state=state)
        # An answer to another call than the one that asked.
        other = {**SAVE, "target": {"role": "button", "name": "Open"}}
        with pytest.raises(MCPError):
            await client.session.call_tool("invoke", other, input_responses=answers, request_state=ended.request_state)
        # An answer without a question.
        found = await client.session.call_tool("invoke", SAVE, input_responses=answers, allow_input_required=True)
        assert isinstance(found, types.InputRequiredResult)
        assert world.app.effects == []
        assert await hows(world) == []


async def test_a_state_that_comes_again_is_a_replay_and_does_nothing_more() -> None:
    person = Person(content=YES)
    async with client_of(person, STATELESS) as (client, world):
        ended = await client.session.call_tool("invoke", SAVE, allow_input_required=True)
        assert isinstance(ended, types.InputRequiredResult)
        again = {"input_responses": {"approval": person.says}, "request_state": ended.request_state}
        for replayed in (None, True):
            found = await client.session.call_tool("invoke", SAVE, **again)
            assert isinstance(found, types.CallToolResult)
            assert (found.structured_content or {}).get("replayed") is replayed
        assert len(world.app.effects) == 1
        assert await hows(world) == ["client_asserted"]


@pytest.mark.parametrize(("takes_ms", "status"), [(0, "succeeded"), (None, "approval_required")])
async def test_a_form_waits_so_long_and_no_longer(
    monkeypatch: pytest.MonkeyPatch, takes_ms: int | None, status: str
) -> None:
    monkeypatch.setattr(limits, "MCP_FORM_MS_MAX", 10_000 if takes_ms is not None else 50)
    gone = asyncio.Event()

    class Slow(Person):
        async def __call__(self, context: Any, params: Any) -> types.ElicitResult:
            if takes_ms is None:
                await gone.wait()
            return await super().__call__(context, params)

    async with client_of(Slow(content=YES), "legacy") as (client, world):
        found = await client.call_tool("invoke", SAVE)
        assert (found.structured_content or {})["status"] == status
        assert bool(world.approvals.pending()) is (takes_ms is None)
        # What is answered too late is heard by nobody.
        gone.set()
        assert (await client.call_tool("list_windows", {})).is_error is False
        assert len(world.app.effects) == (0 if takes_ms is None else 1)
