"""An element by what it is: where one of several shows, that one is meant; hidden ones only where none does."""

from __future__ import annotations

import msgspec

from surehand.model.scene import Node
from surehand.testing.memory import button, field
from surehand.testing.worlds import World
from surehand.tools.catalog import TOOLS, call, find_tool
from surehand.tools.tool import Answer
from tests.unit.mcp.straight import straight


def hidden(node: Node) -> Node:
    return msgspec.structs.replace(node, states=node.states - {"showing", "visible"})


async def fill(world: World, **arguments: object) -> Answer:
    async with straight(world) as (context, _):
        return await call(
            context, find_tool(TOOLS, "set_value"), {"value": "x", "target": {"role": "text"}} | arguments
        )


async def test_the_field_that_shows_is_meant_and_not_one_of_a_closed_find_bar() -> None:
    world = World([hidden(field("find", "Find", "")), field("page", "Page", ""), button("ok", "OK")])
    answer = await fill(world, operation_id="op")
    assert answer.data["status"] == "succeeded", answer.text
    assert [effect[1] for effect in world.app.effects] == ["page"]


async def test_the_same_call_again_is_told_its_end_and_does_nothing() -> None:
    world = World([hidden(field("find", "Find", "")), field("page", "Page", "")])
    async with straight(world) as (context, _):
        for again in (False, True):
            arguments = {"value": "x", "target": {"role": "text"}, "operation_id": "op"}
            answer = await call(context, find_tool(TOOLS, "set_value"), arguments)
            assert answer.data["status"] == "succeeded", answer.text
            assert answer.data.get("replayed", False) == again
    assert len(world.app.effects) == 1


async def test_two_that_show_stay_ambiguous_and_what_was_said_of_showing_is_kept() -> None:
    world = World([field("a", "A", ""), field("b", "B", ""), hidden(field("c", "C", ""))])
    assert (await fill(world)).data["error"]["code"] == "ambiguous_target"
    world = World([field("a", "A", ""), hidden(field("c", "C", "")), hidden(field("d", "D", ""))])
    said = {"role": "text", "state": {"showing": False}}
    assert (await fill(world, target=said)).data["error"]["code"] == "ambiguous_target"
    assert world.app.effects == []
