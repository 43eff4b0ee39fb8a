"""However an observation is asked for, it is the same one."""

from __future__ import annotations

from typing import Any

import surehand
from tests.unit.client.conftest import HASH, Desk

SCENE = {"surface": {"surface_id": "w1"}, "scene_id": "sc1", "generation": 1, "text": "", "kind": "full", "x": HASH}


async def _scene(*_: Any) -> dict[str, Any]:
    return SCENE


async def test_an_application_is_observed_with_its_elements_and_at_rest_by_every_way_to_ask(desk: Desk) -> None:
    desk.script["observe"] = _scene
    with surehand.open(start=False) as hand:
        hand.observe("notes")
        hand.app("notes").observe()
    async with surehand.connect(start=False) as hand_:
        await hand_.observe("notes")
        await hand_.app("notes").observe()
    assert desk.named("observe") == [{"app": "notes", "targets": True, "settle": True}] * 4


def test_a_wish_is_kept(desk: Desk) -> None:
    desk.script["observe"] = _scene
    with surehand.open(start=False) as hand:
        hand.app("notes").observe(targets=False, settle=False, max_nodes=5)
    assert desk.named("observe") == [{"app": "notes", "targets": False, "settle": False, "max_nodes": 5}]
