"""An operation whose output may not leave: it happened, that is on record, and no byte of the output is anywhere."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from surehand import limits
from surehand.cli.evidence import page
from surehand.core.approval import GIVES_OUTPUT
from surehand.core.review import Mode
from surehand.errors import PolicyDenied
from surehand.model.approval import Presentation
from surehand.model.record import to_value
from surehand.ports import Attempt, Dispatched
from surehand.runtime.control import CONTROL
from surehand.testing.memory import button
from surehand.testing.worlds import World
from tests.unit.policy.test_policies import Clock
from tests.unit.policy.test_policy_races import between_decision_and_claim, world_under
from tests.unit.runtime.test_attacks_people import standing
from tests.unit.runtime.test_attacks_reach import agent, host_of

CANARY = "CANARY-7f3a"
HELD = """
version = 1
[[rule]]
id = "held"
effect = "allow"
reason = "It may be pressed; what it returns stays here."
release = "ask"
[rule.match]
action = ["desktop.invoke"]
"""
REDACTED = HELD.replace('release = "ask"', 'redact = ["content"]')


def returning(world: World, output: dict[str, Any]) -> None:
    """Have the application return this from whatever is done to it, and show it from then on."""

    def acting(_: Attempt) -> Dispatched:
        world.app.add(button("new", f"Shown {CANARY}"))
        return Dispatched(status="done", route="memory", output=output)

    world.app.acting = acting


@pytest.mark.parametrize("observe_after", [False, True])
async def test_a_withheld_output_is_durable_honest_and_nowhere(
    observe_after: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    world = World(policy=HELD)
    returning(world, {"content": CANARY, CANARY: 1})
    host = host_of(world)
    session = await agent(host)
    world.session = session
    request = to_value(await world.request("op"))
    asked = {"request": request, "observe_after": observe_after}
    told = [await host.call(session, "act", asked), await host.call(session, "act", {"request": request})]
    first, again = told
    assert first["status"] == again["status"] == "withheld"
    assert first["terminal"]["code"] == "policy_denied"
    assert first["terminal"]["receipt"]["effect"] == "executed_unverified"
    assert not first["terminal"].get("retry_safe")
    assert again["replayed"] is True
    assert len(world.app.effects) == 1
    told.append(await host.call(session, "status", {"operation_id": "op"}))
    restarted = await world.restart()
    stored = await restarted.operations.load(session.principal, "op")
    assert stored is not None
    assert stored.terminal is not None
    assert stored.terminal.kind == "withheld"
    assert not stored.unresolved
    kept = [to_value(event) for event in await world.journal.read()]
    assert [one["type"] for one in kept].count("operation.terminal.v1") == 1
    assert CANARY not in json.dumps([told, kept])
    assert CANARY not in caplog.text


async def test_nothing_of_a_withheld_output_is_on_the_evidence_page() -> None:
    world = World(policy=HELD)
    returning(world, {"content": CANARY})
    host = host_of(world)
    world.session = await agent(host)
    await world.act("op")
    control = await host.open_channel(principal="uid:0", role="control", client={}, desktop=None)
    kind, report = CONTROL["audit.report"]
    found = await report(host.parts, control, kind())
    assert "withheld" in json.dumps(found)
    assert CANARY not in json.dumps(found)
    assert CANARY not in page(found)


async def test_a_read_whose_output_needs_a_yes_is_refused_before_the_application_is_touched() -> None:
    world = World(policy=HELD.replace("desktop.invoke", "desktop.observe"))
    with pytest.raises(PolicyDenied):
        await world.observe()


# --- a yes to what is given out -------------------------------------------------------------------------------------

ASKED = HELD.replace('effect = "allow"', 'effect = "require_approval"')


async def asked(world: World) -> Presentation:
    """Have it asked about, and return what the person is shown."""
    assert (await world.act("op")).status == "approval_required"
    return world.approvals.pending()[0].presentation


async def test_output_leaves_once_a_person_said_yes_to_a_question_that_says_so() -> None:
    world = World(policy=ASKED)
    returning(world, {"content": CANARY})
    assert (await asked(world)).parameters[GIVES_OUTPUT] is True
    assert CANARY not in str(await world.journal.read())
    await world.answer(world.approvals.pending()[0])
    reply = await world.act("op")
    assert (reply.status, reply.output) == ("succeeded", {"content": CANARY})
    assert CANARY not in str(await world.journal.read())


@pytest.mark.parametrize(("during", "status"), [(False, "approval_required"), (True, "withheld")])
async def test_a_yes_to_a_question_that_did_not_say_so_gives_nothing_out(
    tmp_path: Path, during: bool, status: str
) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(ASKED.replace('release = "ask"', ""))
    world = world_under(path, Clock())
    returning(world, {"content": CANARY})
    assert GIVES_OUTPUT not in (await asked(world)).parameters
    await world.answer(world.approvals.pending()[0])

    def from_now_on() -> None:
        path.write_text(ASKED)
        assert world.authority.policies is not None
        world.authority.policies.reload()

    if during:
        between_decision_and_claim(world, from_now_on)
    else:
        from_now_on()
    reply = await world.act("op")
    # Before the effect it is another meaning, so it is asked anew; after the question was used it is held back.
    assert (reply.status, reply.output) == (status, None)
    assert len(world.app.effects) == (1 if during else 0)


async def test_a_standing_grant_is_no_yes_to_what_is_given_out() -> None:
    world = World(policy=ASKED)
    returning(world, {"content": CANARY})
    await world.approvals.leave.grant(standing(world))
    reply = await world.act("op")
    assert (reply.status, reply.output) == ("withheld", None)


@pytest.mark.parametrize("mode", ["risk-auto", "full-access"])
async def test_no_mode_answers_what_is_given_out(mode: Mode) -> None:
    world = World(policy=ASKED)
    world.approvals.leave.reviews.mode = mode
    assert (await asked(world)).parameters[GIVES_OUTPUT] is True


async def test_a_field_that_a_rule_redacts_is_not_in_the_output() -> None:
    world = World(policy=REDACTED)
    returning(world, {"content": CANARY, "kept": 7})
    reply = await world.act("op")
    assert reply.status == "succeeded"
    assert reply.output == {"content": "[redacted]", "kept": 7}


@pytest.mark.parametrize(("over", "status"), [(0, "succeeded"), (1, "withheld")])
async def test_output_at_the_bound_is_released_and_past_it_withheld(
    over: int, status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = {"content": CANARY}
    monkeypatch.setattr(limits, "OUTPUT_BYTES_MAX", len(json.dumps(output, separators=(",", ":"))) - over)
    world = World()
    returning(world, output)
    reply = await world.act("op")
    assert reply.status == status
    assert reply.output == (None if over else output)


async def test_an_output_that_cannot_be_looked_through_is_withheld_and_the_operation_no_failure() -> None:
    world = World()
    returning(world, {"content": CANARY, "object": object()})
    reply = await world.act("op")
    assert reply.status == "withheld"
    assert CANARY not in json.dumps(to_value(reply))
