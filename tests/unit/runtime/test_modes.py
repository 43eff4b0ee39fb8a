"""The operator's mode: what it answers in a person's place, what it never does, and who sets it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from surehand import limits
from surehand.core import review
from surehand.core.review import MODES, assessment_of
from surehand.errors import ApprovalDenied, InvalidRequest
from surehand.model.actions import SetValue
from surehand.model.record import to_value
from surehand.testing.memory import button, field
from surehand.testing.worlds import World
from tests.rules_kit import document
from tests.unit.runtime.test_people import Scene

ASK = 'version = 1\n[[rule]]\nid = "ask"\neffect = "require_approval"\nreason = "r"\n{more}[rule.match]\n'
ASK += 'action = ["desktop.invoke", "desktop.set_value"]\n'
LOW = {"risk_level": "low", "recommended_decision": "allow", "reason": "fine"}


class Says:
    """An evaluator that says what a test wants."""

    name = "model"

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked: list[dict[str, Any]] = []

    async def assess(self, question: dict[str, Any]) -> Any:
        self.asked.append(question)
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


def world_in(mode: review.Mode, more: str = "", policy: str = "", **facts: Any) -> World:
    nodes = [button("save", "Save"), button("pay", "Pay 10"), button("none", ""), field("name", "Name", "old")]
    world = World(nodes, policy=policy or ASK.format(more=more), **facts)
    world.approvals.leave.reviews.mode = mode
    return world


def reviews(world: World) -> Any:
    return world.approvals.leave.reviews


async def reviewed(world: World) -> list[dict[str, Any]]:
    return [event.payload for event in await world.journal.read() if event.type == "risk.reviewed.v1"]


async def test_a_harmless_change_needs_no_person_in_risk_auto_and_is_on_record_before_it_is_told_or_done() -> None:
    world = world_in("risk-auto")
    order: list[str] = []
    reviews(world).publish = lambda kind, _: order.append(kind)
    reply = await world.act("op", "name", action=SetValue(value="new"))
    assert reply.status == "succeeded"
    types = await world.types()
    assert types.index("risk.reviewed.v1") < types.index("operation.claimed.v1")
    assert order == ["risk.reviewed"]
    (found,) = await reviewed(world)
    assert (found["counts"], found["mode"], found["assessments"][0]["risk_level"]) == (True, "risk-auto", "low")
    claim = next(one for one in await world.journal.read() if one.type == "operation.claimed.v1")
    assert claim.payload["reviewed"] is True
    assert world.approvals.pending() == []


@pytest.mark.parametrize(
    ("handle", "facts", "more"),
    [
        ("pay", {}, ""),
        ("none", {}, ""),
        ("save", {"risk": "external"}, ""),
        ("save", {"risk": "destructive"}, ""),
        ("save", {}, "approvals = 2\n"),
        ("save", {}, 'release = "ask"\n'),
    ],
)
async def test_what_is_not_harmless_is_asked_about_in_risk_auto(handle: str, facts: Any, more: str) -> None:
    world = world_in("risk-auto", more)
    assert (await world.act("op", handle, **facts)).status == "approval_required"
    assert world.app.effects == []
    assert not any(one["counts"] for one in await reviewed(world))


@pytest.mark.parametrize(
    ("handle", "status"), [("save", "succeeded"), ("none", "succeeded"), ("pay", "approval_required")]
)
async def test_full_access_answers_all_but_what_is_consequential(handle: str, status: str) -> None:
    assert (await world_in("full-access").act("op", handle)).status == status


@pytest.mark.parametrize("mode", MODES)
async def test_no_mode_turns_a_no_into_a_yes(mode: review.Mode) -> None:
    deny = (
        'version = 1\n[[rule]]\nid = "no"\neffect = "deny"\nreason = "r"\n[rule.match]\naction = ["desktop.invoke"]\n'
    )
    world = world_in(mode, policy=deny)
    reply = await world.act("op")
    assert reply.error is not None
    assert reply.error["code"] == "policy_denied"
    assert world.app.effects == []
    assert await reviewed(world) == []


async def test_in_deny_nobody_is_asked_and_what_policy_allows_still_happens() -> None:
    world = world_in("deny")
    reply = await world.act("op")
    assert reply.error is not None
    assert (reply.error["code"], reply.error["details"]["what"]) == ("approval_denied", "mode")
    assert world.approvals.pending() == []
    world = world_in("deny", policy="version = 1\n")
    assert (await world.act("op")).status == "succeeded"


# --- an evaluator ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [
        None,
        "low",
        {},
        {**LOW, "more": 1},
        {**LOW, "risk_level": "none"},
        {**LOW, "recommended_decision": "yes"},
        {**LOW, "reason": ""},
        {**LOW, "reason": "x" * (limits.REASON_CHARS_MAX + 1)},
        {**LOW, "reason": 3},
        {**LOW, "risk_level": "medium"},
        {**LOW, "risk_level": "high"},
        {**LOW, "recommended_decision": "deny"},
        {**LOW, "recommended_decision": "require_approval"},
        {"risk_level": "low", "recommended_decision": "allow"},
        RuntimeError("down"),
        TimeoutError(),
    ],
)
async def test_an_evaluator_that_says_anything_but_low_and_allow_leaves_it_to_a_person(answer: Any) -> None:
    world = world_in("risk-auto")
    reviews(world).evaluator = Says(answer)
    assert (await world.act("op")).status == "approval_required"
    assert world.app.effects == []


async def test_an_evaluator_that_agrees_is_on_record_and_was_told_the_screen_apart() -> None:
    world = world_in("risk-auto")
    evaluator = reviews(world).evaluator = Says({**LOW, "reason": "x" * limits.REASON_CHARS_MAX})
    assert (await world.act("op")).status == "succeeded"
    assert [one["by"] for one in (await reviewed(world))[0]["assessments"]] == ["rules", "model"]
    assert evaluator.asked[0]["facts"]["observed"]["name"] == "Save"
    assert "Save" not in str({**evaluator.asked[0]["facts"], "observed": None})


async def test_an_evaluator_is_told_no_text_of_the_request() -> None:
    world = world_in("risk-auto")
    evaluator = reviews(world).evaluator = Says(LOW)
    await world.act("op", "name", action=SetValue(value="correct horse battery"))
    assert len(evaluator.asked) == 1
    assert "correct horse" not in str(evaluator.asked)


@pytest.mark.parametrize("handle", ["pay", "none"])
async def test_an_evaluator_is_not_asked_about_what_it_could_not_answer(handle: str) -> None:
    world = world_in("risk-auto")
    evaluator = reviews(world).evaluator = Says(LOW)
    await world.act("op", handle)
    assert evaluator.asked == []


async def test_an_evaluator_that_is_late_answers_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "REVIEW_MS_MAX", 20)
    world = world_in("risk-auto")

    class Never(Says):
        async def assess(self, _: dict[str, Any]) -> Any:
            await asyncio.Event().wait()

    reviews(world).evaluator = Never(None)
    assert (await world.act("op")).status == "approval_required"


def test_an_assessment_is_exactly_of_its_form() -> None:
    assert assessment_of(LOW) is not None
    assert assessment_of([LOW]) is None


@pytest.mark.parametrize(
    "about",
    [
        document(action="process.run"),
        document(action="desktop.press"),
        document({"effect": "process.run", "name": "x"}),
        document(facts={"app": "exe:/usr/bin/python3"}),
        document(facts={"app": ""}),
        document({"name": "Save", "secret_shown": True}),
    ],
)
def test_what_the_rules_do_not_know_is_not_low(about: Any) -> None:
    assert not review.assess(about).counts


# --- setting it -----------------------------------------------------------------------------------------------------


@pytest.fixture
async def scene():
    found = await Scene(World(policy=ASK.format(more=""))).open()
    yield found
    await found.host.close()


async def test_a_daemon_begins_with_ask_and_raising_takes_a_confirmation(scene: Scene) -> None:
    assert (await scene.control("mode"))["mode"] == "ask"
    for confirm in ("", "yes", "risk-auto"):
        with pytest.raises(InvalidRequest, match="confirmation"):
            await scene.control("mode.set", mode="full-access", confirm=confirm)
    assert (await scene.control("mode.set", mode="full-access", confirm="full-access"))["by"] == "uid:7"
    assert (await scene.control("mode.set", mode="deny"))["mode"] == "deny"
    assert (await scene.control("mode.set", mode="ask"))["mode"] == "ask"
    kept = [one.payload for one in await scene.world.journal.read() if one.type == "mode.set.v1"]
    assert [(one["before"], one["mode"]) for one in kept] == [
        ("ask", "full-access"),
        ("full-access", "deny"),
        ("deny", "ask"),
    ]
    again = await scene.world.restart()
    assert reviews(again).mode == "ask"


async def test_the_mode_is_not_raised_beneath_an_operation_and_lowered_at_any_time(scene: Scene) -> None:
    scene.world.app.hold = asyncio.Event()
    reviews(scene.world).mode = "risk-auto"
    running = asyncio.create_task(scene.act("op"))
    await scene.world.app.entered.wait()
    with pytest.raises(InvalidRequest, match="under way"):
        await scene.control("mode.set", mode="full-access", confirm="full-access")
    assert (await scene.control("mode.set", mode="ask"))["mode"] == "ask"
    scene.world.app.hold.set()
    assert (await running)["status"] == "succeeded"


async def test_a_mode_that_was_lowered_before_the_claim_takes_its_answer_with_it(scene: Scene) -> None:
    found = reviews(scene.world)
    found.mode = "risk-auto"
    found.publish = lambda kind, _: setattr(found, "mode", "ask") if kind == "risk.reviewed" else None
    reply = await scene.act("op")
    assert reply["error"]["details"]["what"] == "mode"
    assert scene.world.app.effects == []


@pytest.mark.parametrize("method", ["mode", "mode.set"])
async def test_an_agent_neither_sees_nor_sets_the_mode(scene: Scene, method: str) -> None:
    with pytest.raises(InvalidRequest, match="no method is called"):
        await scene.host.call(scene.agent, method, {"mode": "full-access", "confirm": "full-access"})


# --- forms ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("mode", "status"), [("risk-auto", "succeeded"), ("deny", "refused"), ("ask", "asked")])
async def test_a_form_is_answered_step_by_step_or_as_a_whole_by_the_same_mode(mode: review.Mode, status: str) -> None:
    world = world_in(mode)
    scene = await Scene(world).open()
    steps = [
        to_value(
            await world.request("form:0", action=SetValue(value="a"), target=await world.ref("name", scene.agent))
        ),
        to_value(await world.request("form:1", target=await world.ref("save", scene.agent))),
    ]
    batch = {"operation_id": "form", "steps": steps}
    try:
        if mode == "deny":
            with pytest.raises(ApprovalDenied):
                await scene.host.call(scene.agent, "plan", {"batch": batch})
            return
        planned = await scene.host.call(scene.agent, "plan", {"batch": batch})
        assert ("approval" in planned) == (status == "asked")
        assert len(world.approvals.pending()) == (1 if status == "asked" else 0)
    finally:
        await scene.host.close()
