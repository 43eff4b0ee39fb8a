"""A form over MCP: one question for all its steps, and none of it before the yes (spec §6.4)."""

from __future__ import annotations

from typing import Any

import pytest

from surehand.testing.memory import button, field
from surehand.testing.worlds import World
from surehand.tools.catalog import TOOLS, call, find_tool
from surehand.tools.context import Context
from surehand.tools.tool import Answer
from tests.unit.mcp.straight import straight
from tests.unit.runtime.test_approvals import ASK_ALL

FIELDS = 30
ACT = find_tool(TOOLS, "act")


def form() -> World:
    fields = [field(f"f{number}", f"Field {number}", "") for number in range(FIELDS)]
    return World([*fields, button("send", "Send")], policy=ASK_ALL)


def steps(text: str = "x") -> list[dict[str, Any]]:
    filled = [
        {"do": "set_value", "target": {"role": "text", "name": f"Field {number}"}, "value": text}
        for number in range(FIELDS)
    ]
    return [*filled, {"do": "invoke", "target": {"role": "button", "name": "Send"}}]


async def act(context: Context, **arguments: Any) -> Answer:
    return await call(context, ACT, {"steps": steps(), "operation_id": "form", **arguments})


async def test_c48_thirty_fields_of_one_form_are_one_question_and_then_done_once() -> None:
    async with straight(form()) as (context, world):
        await call(context, find_tool(TOOLS, "list_windows"), {})
        answer = await act(context)
        assert (answer.data["status"], answer.data["not_begun"]) == ("approval_required", FIELDS + 1)
        assert "one answer is for all 31 steps" in answer.text
        assert world.app.effects == []
        (pending,) = world.approvals.pending()
        assert answer.data["approval_id"] == pending.approval_id
        assert pending.expires_at_ms > pending.requested_at_ms
        shown = [step["element"] for step in pending.presentation.parameters["steps"]]
        assert shown == [*(f"text Field {number}" for number in range(FIELDS)), "button Send"]
        # Asked again it is the same question.
        assert (await act(context)).data["approval_id"] == pending.approval_id
        await world.answer(pending)
        done = await act(context)
        assert done.data["status"] == "succeeded", done.text
        assert [step["status"] for step in done.data["steps"]] == ["succeeded"] * (FIELDS + 1)
        assert (len(world.app.effects), world.approvals.pending()) == (FIELDS + 1, [])
        again = await act(context)
        assert all(step["replayed"] for step in again.data["steps"])
        assert len(world.app.effects) == FIELDS + 1


async def test_a_no_does_none_of_a_form_and_another_text_is_another_question() -> None:
    async with straight(form()) as (context, world):
        first = (await act(context)).data["approval_id"]
        other = await act(context, steps=steps("y"))
        assert other.data["status"] == "approval_required"
        assert other.data["approval_id"] != first
        (pending,) = world.approvals.pending()
        await world.answer(pending, "deny", reason="not now")
        refused = await act(context, steps=steps("y"))
        assert refused.data["error"]["code"] == "approval_denied"
        assert world.app.effects == []


async def test_a_step_that_became_another_thing_is_not_covered_by_the_yes() -> None:
    pressed = [*steps()[:-1], {"do": "invoke", "target": {"role": "button"}}]
    async with straight(form()) as (context, world):
        await act(context, steps=pressed)
        (pending,) = world.approvals.pending()
        await world.answer(pending)
        world.app.change("send", name="Delete all")
        answer = await act(context, steps=pressed)
        assert answer.data["status"] == "approval_required"
        assert answer.data["approval_id"] != pending.approval_id
        assert world.app.effects == []


async def test_what_only_an_earlier_step_shows_is_asked_about_when_its_turn_comes() -> None:
    async with straight(form()) as (context, world):
        answer = await act(context, steps=[*steps(), {"do": "invoke", "target": "e99"}])
        assert answer.data["status"] == "approval_required"
        assert [step["status"] for step in answer.data["steps"]] == ["approval_required"]
        assert world.approvals.pending()[0].presentation.steps == ()


@pytest.mark.parametrize("step", [{"do": "launch_app", "name": "pad"}, {"do": "release_all"}, {"do": "physical_state"}])
async def test_what_would_never_be_read_back_is_refused_before_anything(step: dict[str, Any]) -> None:
    async with straight(World(policy="")) as (context, world):
        answer = await call(context, ACT, {"steps": [*steps()[:1], {**step, "expect": {"title": "Pad"}}]})
        assert answer.data["error"]["code"] == "invalid_request"
        assert "takes no expect" in answer.text
        assert world.app.effects == []
