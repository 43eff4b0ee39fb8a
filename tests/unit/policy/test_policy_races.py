"""A policy that becomes another one while an effect is under way: the one in force at the last moment decides."""

from __future__ import annotations

import msgspec
import pytest

from surehand import limits
from surehand.core.policy.engine import EngineFailure
from surehand.runtime.config import PolicyChoice
from surehand.testing.worlds import World
from tests.unit.policy.test_policies import DENY, EMPTY, Clock, FalseEngine, policies, with_engine, write

NO = "version = 1\n" + DENY.format("no") + '[rule.match]\naction = ["desktop.invoke"]\n'
ASK = NO.replace('"deny"', '"require_approval"').replace('"no"', '"ask"')
TWO = ASK.replace('reason = "r"', 'reason = "r"\napprovals = 2')


@pytest.fixture
def path(tmp_path):
    found = tmp_path / "p.toml"
    write(found, EMPTY)
    return found


def world_under(path, clock, **facts):
    world = World(clock=clock, **facts)
    world.authority.policies = policies(PolicyChoice(file=str(path)), clock, journal=world.journal)
    return world


def between_decision_and_claim(world, move) -> None:
    """Run something once in the first fence: after the decision, before the claim."""
    look, decide, state = world.app.look, world.authority.policies.decide, {"decided": False, "moved": False}

    async def decided(*args):
        found = await decide(*args)
        state["decided"] = True
        return found

    async def moving(*args, **facts):
        if state["decided"] and not state["moved"]:
            state["moved"] = True
            move()
        return await look(*args, **facts)

    world.authority.policies.decide = decided
    world.app.look = moving


async def test_a_reload_between_decision_and_claim_is_decided_afresh_and_a_no_holds(path):
    world = world_under(path, Clock())
    between_decision_and_claim(world, lambda: (write(path, NO), world.authority.policies.reload()))
    reply = await world.act("op")
    assert (reply.status, reply.error["code"], reply.error["details"]["rule"]) == ("refused", "policy_denied", "no")
    assert reply.error["retry_safe"] is True
    assert world.app.effects == []
    assert "operation.claimed.v1" not in await world.types()


async def test_a_file_that_changed_since_the_decision_is_noticed_before_the_claim(path):
    clock = Clock()
    world = world_under(path, clock)

    def later() -> None:
        write(path, NO)
        clock.now += limits.POLICY_LOOK_MS

    between_decision_and_claim(world, later)
    assert (await world.act("op")).error["details"]["rule"] == "no"
    assert world.app.effects == []


async def test_a_reload_that_still_allows_lets_the_effect_happen_once_under_the_new_policy(path):
    world = world_under(path, Clock())
    between_decision_and_claim(world, lambda: (write(path, EMPTY + "\n# more\n"), world.authority.policies.reload()))
    assert (await world.act("op")).status == "succeeded"
    assert len(world.app.effects) == 1
    claimed = next(one for one in await world.journal.read() if one.type == "operation.claimed.v1")
    assert claimed.payload["decision"]["policy_revision"] == world.authority.policies.ruling.revision


async def test_a_reload_that_asks_a_person_refuses_the_attempt_and_the_next_one_asks(path):
    world = world_under(path, Clock())
    between_decision_and_claim(world, lambda: (write(path, ASK), world.authority.policies.reload()))
    reply = await world.act("op")
    assert (reply.error["code"], reply.error["details"]["what"]) == ("policy_denied", "policy_changed")
    assert world.app.effects == []
    assert (await world.act("op")).status == "approval_required"


async def test_a_yes_is_no_yes_under_a_policy_that_came_since_and_wants_two(path):
    world = world_under(path, Clock())
    write(path, ASK)
    world.authority.policies.reload()
    assert (await world.act("op")).status == "approval_required"
    await world.answer(world.approvals.pending()[0])
    between_decision_and_claim(world, lambda: (write(path, TWO), world.authority.policies.reload()))
    reply = await world.act("op")
    assert (reply.status, reply.error["code"]) == ("refused", "approval_unanswered")
    assert world.app.effects == []


@pytest.mark.parametrize("text", [NO, ASK, EMPTY + "\n# only another revision\n"])
async def test_a_reload_between_claim_and_dispatch_releases_the_claim(path, text):
    world = world_under(path, Clock())

    def reload() -> None:
        write(path, text)
        world.authority.policies.reload()

    world.app.before_enter = reload
    reply = await world.act("op")
    assert (reply.status, reply.error["details"]["what"]) == ("refused", "policy_changed")
    assert world.app.effects == []
    assert "operation.released.v1" in await world.types()
    world.app.before_enter = None
    again = await world.act("op")
    assert again.status == {NO: "refused", ASK: "approval_required"}.get(text, "succeeded")


async def test_an_engine_that_fails_the_second_time_denies(path):
    """The policy is another one, and the engine that should say so does not answer."""
    clock = Clock()
    world = World(clock=clock)
    found = world.authority.policies = with_engine(FalseEngine({"outcome": "default"}), clock)

    def broken() -> None:
        other = msgspec.structs.replace(found.ruling.policy, revision="another")
        failing = FalseEngine(EngineFailure("unavailable"))
        found.ruling = msgspec.structs.replace(found.ruling, policy=other, asked=failing)

    between_decision_and_claim(world, broken)
    assert (await world.act("op")).error["details"]["rule"] == "engine.unavailable"
    assert world.app.effects == []


# --- a policy that appears -----------------------------------------------------------------------------------------


async def test_a_policy_that_appears_where_none_was_holds_without_a_restart(tmp_path):
    clock, path = Clock(), tmp_path / "policy.toml"
    found = policies(PolicyChoice(), clock)
    found.beside = path
    world = World(clock=clock)
    world.authority.policies = found
    assert (await world.act("one")).status == "succeeded"
    write(path, NO)
    clock.now += limits.POLICY_LOOK_MS
    assert (await world.act("two")).error["details"]["rule"] == "no"
    assert (found.generation, (await found.describe())["file"]) == (2, str(path))
    path.unlink()
    assert not found.reload()
    assert (await world.act("three")).error["details"]["rule"] == "no"
    await found.close()


async def test_a_broken_policy_that_appears_opens_nothing_and_is_told_once(tmp_path, caplog):
    clock, path = Clock(), tmp_path / "policy.toml"
    found = policies(PolicyChoice(), clock)
    found.beside = path
    write(path, "version = ")
    for _ in range(3):
        clock.now += limits.POLICY_LOOK_MS
        found.look()
    assert found.failure is not None
    assert sum("was not reloaded" in line for line in caplog.messages) == 1
    write(path, NO)
    clock.now += limits.POLICY_LOOK_MS
    found.look()
    assert (found.failure, found.ruling.policy.rules[0].rule.id) == (None, "no")
    await found.close()
