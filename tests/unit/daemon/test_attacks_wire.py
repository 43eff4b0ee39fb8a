"""Attacks over a real socket on a real host: cancels, lost peers, floods; what is told must be true."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from surehand.model.record import to_value
from surehand.runtime.host import Host
from surehand.testing.worlds import World
from tests.unit.daemon.fakes import Raw, running
from tests.unit.runtime.test_attacks_reach import host_of


async def pressing(raw: Raw, world: World, host: Host, call_id: int, operation_id: str, **more: Any) -> None:
    """Send an invoke of Save, seen by the newest session."""
    session = list(host.parts.sessions.values())[-1]
    target = to_value(await world.ref("save", session))
    request = {"operation_id": operation_id, "action": {"kind": "invoke"}, "target": target}
    raw.send({"id": call_id, "method": "act", "params": {"request": request, **more}})


@pytest.mark.parametrize("observe_after", [False, True])
async def test_a_cancel_after_dispatch_is_answered_with_what_became_of_it(tmp_path: Path, observe_after: bool) -> None:
    world = World()
    host = host_of(world)
    world.app.hold = asyncio.Event()
    async with running(tmp_path, host) as run:  # type: ignore[arg-type]
        raw = await Raw.hello(run.places.agent_socket)
        await pressing(raw, world, host, 1, "op", observe_after=observe_after)
        await world.app.entered.wait()
        raw.send({"cancel": 1})
        raw.send({"cancel": 1})
        raw.send({"id": 2, "method": "status", "params": {"operation_id": "op"}})
        assert (await raw.read())["result"]["in_flight"] is True
        world.app.hold.set()
        answer = await raw.read()
        assert answer["result"]["status"] == "outcome_unknown"
        assert answer["result"]["error"]["retry_safe"] is False
    assert len(world.app.effects) == 1


async def test_a_peer_lost_after_dispatch_leaves_one_effect_and_one_end_that_the_next_peer_is_told(
    tmp_path: Path,
) -> None:
    world = World()
    host = host_of(world)
    world.app.hold = asyncio.Event()
    async with running(tmp_path, host) as run:  # type: ignore[arg-type]
        raw = await Raw.hello(run.places.agent_socket)
        await pressing(raw, world, host, 1, "op")
        await world.app.entered.wait()
        await raw.close()
        again = await Raw.hello(run.places.agent_socket)
        await pressing(again, world, host, 1, "op")
        again.send({"id": 2, "method": "status", "params": {"operation_id": "op"}})
        assert (await again.read())["result"]["in_flight"] is True
        world.app.hold.set()
        assert (await again.read())["result"]["status"] in {"succeeded", "outcome_unknown"}
    assert len(world.app.effects) == 1
    assert (await world.types()).count("operation.terminal.v1") == 1


async def test_peers_that_come_and_go_in_a_flood_leave_no_session_no_task_and_no_effect(tmp_path: Path) -> None:
    world = World()
    host = host_of(world)
    async with running(tmp_path, host) as run:  # type: ignore[arg-type]
        before = len(asyncio.all_tasks())
        for _ in range(40):
            raw = await Raw.hello(run.places.agent_socket)
            raw.send(
                {"id": 1, "method": "wait", "params": {"conditions": [{"kind": "title_contains", "contains": "x"}]}}
            )
            raw.send({"id": 2, "method": "observe", "params": {}})
            raw.body(b"[" * 2000)
            await raw.close()
        async with asyncio.timeout(10):
            while host.parts.sessions or len(asyncio.all_tasks()) > before:  # noqa: ASYNC110 - of the outside world
                await asyncio.sleep(0)
    await host.parts.reads.close()
    assert world.app.effects == []
