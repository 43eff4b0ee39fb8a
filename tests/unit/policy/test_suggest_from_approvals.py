"""Rules proposed from a journal of real approvals: they spare those questions, and no others."""

from __future__ import annotations

from typing import Any

from surehand.core.policy.suggest import CLAIMED, REFUSED, as_rules, habits_of
from surehand.core.policy.toml_rules import examine
from surehand.model.actions import Invoke, SetValue
from surehand.testing.memory import button, field
from surehand.testing.worlds import World

NODES = [button("save", "Save"), button("send", "Send"), field("name", "Name", "old")]


async def approved(world: World, operation_id: str, handle: str, answer: Any = "approve", **facts: Any) -> str:
    """Present it, have the operator answer, present it again; return what came of it."""
    request = await world.request(operation_id, handle, **facts)
    reply = await world.gateway.act(world.session, request)
    if reply.status == "approval_required":
        (pending,) = world.approvals.pending()
        await world.answer(pending, answer)
        reply = await world.gateway.act(world.session, request)
    return reply.status


async def proposed(world: World, least: int = 3) -> str:
    events = [one for one in await world.journal.read() if one.type in (CLAIMED, REFUSED)]
    return as_rules(habits_of(events, least=least))


async def test_what_is_proposed_spares_the_questions_it_was_made_from_and_no_others() -> None:
    world = World(NODES, isolation="shared")
    for number in range(3):
        assert await approved(world, f"save-{number}", "save") == "succeeded"
        assert await approved(world, f"name-{number}", "name", action=SetValue(value=f"v{number}")) == "succeeded"
    text = await proposed(world)
    rules, problems = examine(text)
    assert (len(rules), problems) == (1, [])
    other = World(NODES, isolation="shared", policy=text)
    assert (await other.act("save")).status == "succeeded"
    assert (await other.act("name", "name", action=SetValue(value="w"))).status == "succeeded"
    # Neither what is consequential nor what was never approved.
    assert (await other.act("send", "send")).status == "approval_required"
    assert (await other.act("ext", "save", risk="external")).status == "approval_required"
    other.session = other.new_session("uid:2000")
    assert (await other.act("theirs")).status == "approval_required"


async def test_nothing_is_proposed_where_somebody_said_no_once_and_the_reason_is_told() -> None:
    world = World(NODES, isolation="shared")
    for number in range(4):
        await approved(world, f"save-{number}", "save", "deny" if number == 3 else "approve")
    text = await proposed(world)
    assert "[[rule]]" not in text
    assert "a person said no 1 times" in text


async def test_an_operators_own_question_is_not_undone_and_the_rule_to_narrow_is_named() -> None:
    asks = 'version = 1\n[[rule]]\nid = "look"\neffect = "require_approval"\nreason = "r"\n'
    asks += '[rule.match]\naction = ["desktop.invoke"]\n'
    world = World(NODES, policy=asks)
    for number in range(3):
        assert await approved(world, f"save-{number}", "save", action=Invoke()) == "succeeded"
    text = await proposed(world)
    assert "[[rule]]" not in text
    assert "your rule look asks, and an allowance takes no question away: narrow that rule" in text


async def test_what_is_consequential_is_never_proposed_however_often_it_was_approved() -> None:
    world = World(NODES)
    for number in range(3):
        assert await approved(world, f"send-{number}", "send") == "succeeded"
    text = await proposed(world)
    assert "[[rule]]" not in text
    assert "it has consequences, about which a person is asked each time" in text
