"""Budgets pause a runaway agent: at the limit, over restarts and races, until an operator says otherwise."""

from __future__ import annotations

import asyncio

import pytest

from surehand.core.authority import Ceiling
from surehand.core.wire.methods import AGENT_METHODS, CONTROL_METHODS
from surehand.errors import InvalidRequest, SurehandError
from surehand.runtime.config import Config
from surehand.testing.memory import button
from surehand.testing.worlds import World
from tests.journal_kit import SettableClock
from tests.unit.runtime.test_attacks_reach import agent, host_of

AGENT = "uid:1000"


def world_of(**budget: int) -> World:
    return World(clock=SettableClock(), config=Config(ceilings=(Ceiling(**budget),)))


async def done(world: World, *names: str) -> list[str]:
    return [(await world.act(name)).status for name in names]


async def test_the_last_operation_in_the_budget_is_done_and_the_next_is_refused_with_the_way_on() -> None:
    world = world_of(operations_max=2)
    assert await done(world, "a", "b") == ["succeeded", "succeeded"]
    reply = await world.act("c")
    assert (reply.status, reply.error["code"]) == ("refused", "budget_exhausted")
    assert reply.error["details"] == {"budget": "operations", "limit": 2}
    assert reply.error["fix"].endswith(f"surehand budgets renew {AGENT}")
    assert len(world.app.effects) == 2


async def test_minutes_are_over_at_the_minute() -> None:
    world = world_of(minutes_max=1)
    await world.act("a")
    world.clock.now += 59_999
    assert await done(world, "b") == ["succeeded"]
    world.clock.now += 1
    assert (await world.act("c")).error["details"] == {"budget": "minutes", "limit": 1}


async def test_a_clock_that_is_set_back_gives_no_more_minutes() -> None:
    class Clock(SettableClock):
        behind = 0

        def wall_ms(self) -> int:
            return self.now - self.behind

    clock = Clock()
    world = World(clock=clock, config=Config(ceilings=(Ceiling(minutes_max=1),)))
    await world.act("a")
    clock.behind = 3_600_000
    clock.now += 59_999
    assert await done(world, "b") == ["succeeded"]
    clock.now += 1
    assert await done(world, "c") == ["refused"]


async def test_a_restart_is_no_new_budget() -> None:
    world = world_of(operations_max=3, minutes_max=5)
    await done(world, "a", "b")
    world = await world.restart()
    assert world.authority.budgets.listed(world.config.ceilings)[0]["operations"] == 2
    assert await done(world, "c", "d") == ["succeeded", "refused"]
    world = await (await world.restart()).restart()
    assert await done(world, "e") == ["refused"]
    assert len(world.app.effects) == 3


async def test_minutes_run_on_while_no_daemon_does() -> None:
    world = world_of(minutes_max=1)
    await world.act("a")
    world.clock.now += 60_000
    world = await world.restart()
    assert await done(world, "b") == ["refused"]


async def test_what_the_last_fence_refused_counts_neither_now_nor_after_a_restart() -> None:
    world = world_of(operations_max=1)
    world.app.before_enter = lambda: world.app.change("save", states=frozenset({"visible", "showing"}))
    for number in range(3):
        assert (await world.act(f"late{number}")).error["gate"] == "final_fence"
        world.app.change("save", states=frozenset({"visible", "showing", "enabled"}))
    world.app.before_enter = None
    world = await world.restart()
    assert await done(world, "a", "b") == ["succeeded", "refused"]


async def test_external_effects_have_a_budget_of_their_own_over_a_restart() -> None:
    rules = '[[rule]]\nid="x"\neffect="allow"\nreason="r"\ncovers=["external"]\n'
    config = Config(ceilings=(Ceiling(external_max=1),))
    world = World(policy=f"version = 1\n{rules}", clock=SettableClock(), config=config)
    assert (await world.act("a", risk="external")).status == "succeeded"
    world = await world.restart()
    assert (await world.act("b", risk="external")).error["details"] == {"budget": "external effects", "limit": 1}
    assert await done(world, "c") == ["succeeded"]


async def test_racing_operations_do_not_slip_past_the_limit_together() -> None:
    world = world_of(operations_max=3)
    requests = [await world.request(f"op{number}") for number in range(8)]
    replies = await asyncio.gather(*(world.gateway.act(world.session, one) for one in requests))
    assert [one.status for one in replies].count("succeeded") == 3
    assert len(world.app.effects) == 3
    world = await world.restart()
    assert await done(world, "more") == ["refused"]


async def test_only_an_operator_gives_leave_to_go_on_and_it_is_recorded() -> None:
    world = world_of(operations_max=1)
    await done(world, "a", "b")
    host = host_of(world)
    mine = await agent(host)
    assert not {name for name in AGENT_METHODS if "budget" in name}
    assert {"budgets", "budgets.renew"} <= CONTROL_METHODS
    with pytest.raises(SurehandError):
        await host.call(mine, "budgets.renew", {"principal": AGENT})
    assert await done(world, "c") == ["refused"]
    person = await host.open_channel(principal="operator", role="control", client={}, desktop=None)
    assert (await host.call(person, "ps", {}))["budgets"][0]["paused"] is True
    await host.call(person, "budgets.renew", {"principal": AGENT})
    assert await done(world, "d", "e") == ["succeeded", "refused"]
    renewed = [event for event in await world.journal.read() if event.type == "budget.renewed.v1"]
    assert [(event.actor, event.payload["principal"]) for event in renewed] == [(person.principal, AGENT)]
    world = await world.restart()
    assert await done(world, "f") == ["refused"]


async def test_a_budget_of_nobody_cannot_begin_anew() -> None:
    with pytest.raises(InvalidRequest):
        await world_of(operations_max=1).authority.budgets.renew("uid:7", "person")


async def test_a_refusal_that_comes_after_a_new_round_takes_nothing_from_it() -> None:
    world = world_of(operations_max=1)
    request = await world.request("late")

    def meanwhile() -> None:
        world.app.change("save", states=frozenset({"visible", "showing"}))
        world.authority.budgets._spent.clear()
        world.authority.budgets._opened.clear()

    world.app.before_enter = meanwhile
    assert (await world.gateway.act(world.session, request)).status == "refused"
    world.app.before_enter = None
    world.app.change("save", states=frozenset({"visible", "showing", "enabled"}))
    assert await done(world, "a", "b") == ["succeeded", "refused"]


async def test_without_a_budget_nothing_is_counted_or_written() -> None:
    world = World([button("save", "Save")], clock=SettableClock())
    await world.act("a", "save")
    assert world.authority.budgets.listed(world.config.ceilings) == []
    assert not [kind for kind in await world.types() if kind.startswith("budget")]


async def test_each_principal_has_its_own() -> None:
    world = world_of(operations_max=1)
    await done(world, "a", "b")
    other = world.new_session("uid:2000")
    request = await world.request("c", target=await world.ref("save", other))
    assert (await world.gateway.act(other, request)).status == "succeeded"


async def test_who_is_paused_asks_no_person_for_anything() -> None:
    world = World([button("save", "Save"), button("gone", "Delete")], clock=SettableClock(),
                  config=Config(ceilings=(Ceiling(operations_max=1),)))  # fmt: skip
    await world.act("a", "save")
    reply = await world.act("b", "gone")
    assert (reply.status, reply.error["code"]) == ("refused", "budget_exhausted")
    assert list(world.approvals.pending()) == []
