"""Stops, pauses and take-overs at whatever moment: every effect once, every claim with one end, nothing left running."""

from __future__ import annotations

import asyncio
import os
import random
from collections import Counter
from typing import Any

import pytest

from surehand.testing.worlds import World
from tests.unit.runtime.test_attacks_reach import agent
from tests.unit.runtime.test_halting import Stage

SEEDS = 400 if os.environ.get("SUREHAND_LONG") else 30
OPERATIONS = 6
TRIES = 3


def hesitant(function: Any, chance: random.Random) -> Any:
    """Let others go on before and after each call, for as long as chance has it."""

    async def slow(*args: Any, **facts: Any) -> Any:
        for _ in range(chance.randrange(5)):
            await asyncio.sleep(0)
        found = await function(*args, **facts)
        for _ in range(chance.randrange(5)):
            await asyncio.sleep(0)
        return found

    return slow


async def disturb(stage: Stage, chance: random.Random) -> None:
    """Stop, pause, take over and resume, without end."""
    while True:
        for _ in range(chance.randrange(30)):
            await asyncio.sleep(0)
        what = chance.randrange(5)
        if what == 0:
            await stage.control("pause", principal="uid:1000")
        elif what == 1:
            await stage.control("take", name="memory")
            await stage.control("hand_back", name="memory")
        elif what == 2:
            await stage.control("halt", session=stage.agent.label)
        elif what == 3:
            await stage.control("halt", go_on=True)
        else:
            await stage.control("halt")
            before = list(stage.world.app.effects)
            for _ in range(20):
                await asyncio.sleep(0)
            assert stage.world.app.effects == before
        await stage.control("resume")


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_whenever_agents_are_stopped_no_effect_is_doubled_and_each_claim_has_one_end(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(seed)  # noqa: S311 - which moment is tried
    stage = await Stage(World()).open()
    app, journal = stage.world.app, stage.world.journal
    monkeypatch.setattr(app, "perform", hesitant(app.perform, chance))
    monkeypatch.setattr(journal, "append", hesitant(journal.append, chance))
    ends: dict[str, set[str]] = {}

    async def drive(number: int, session: Any) -> None:
        for operation in (f"op-{number}-{index}" for index in range(OPERATIONS)):
            for _ in range(TRIES):
                ends.setdefault(operation, set()).add((await stage.act(operation, session))["status"])

    disturbing = asyncio.create_task(disturb(stage, chance))
    async with asyncio.timeout(30):
        await asyncio.gather(drive(0, stage.agent), drive(1, await agent(stage.host)))
    assert not disturbing.done() or disturbing.result() is None
    disturbing.cancel()
    await asyncio.gather(disturbing, return_exceptions=True)
    sure = {name for name, statuses in ends.items() if "succeeded" in statuses}
    perhaps = {name for name, statuses in ends.items() if statuses & {"outcome_unknown", "failed", "interrupted"}}
    assert len(sure) <= len(app.effects) <= len(sure | perhaps)
    records: dict[str, Counter[str]] = {}
    for event in await journal.read():
        if event.stream.startswith("operation/"):
            records.setdefault(event.stream, Counter())[event.type] += 1
    for counted in records.values():
        assert counted["operation.terminal.v1"] <= 1
        claimed, released = counted["operation.claimed.v1"], counted["operation.released.v1"]
        assert claimed == counted["operation.terminal.v1"] + released
    assert not list(stage.host.parts.gateway.runs())
    await stage.control("resume")
    await stage.host.close()
