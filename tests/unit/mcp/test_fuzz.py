"""Every tool, given arguments made from its own schema, valid and broken, and by hand: typed answers and no effect.

Below the tools is the real host, around an application in memory; above them, for what belongs to the protocol, the
real process and its pipe.
"""

from __future__ import annotations

import asyncio
import json
import os
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from surehand import errors, limits
from surehand.testing.worlds import World
from surehand.tools.catalog import TOOLS, UsageError, call
from surehand.tools.context import Context
from surehand.tools.schema import input_schema
from surehand.tools.tool import Answer, Tool
from tests.unit.client.conftest import reply, until
from tests.unit.daemon.fakes import FakeHost, forever
from tests.unit.mcp.conftest import Spawned, calling, cancelled, spawned
from tests.unit.mcp.straight import Straight, straight
from tests.unit.runtime.test_attacks_reach import agent, host_of

LONG = bool(os.environ.get("SUREHAND_LONG"))
#: Examples for each tool.
EXAMPLES = 400 if LONG else 15

#: A defect is none of them.
CODES = set(errors._CLASSES) - {"internal"}

BY_NAME = {tool.name: tool for tool in TOOLS}


# --- arguments from schemas ------------------------------------------------------------------------------------------

NASTY_TEXT = st.one_of(
    st.text(max_size=40),
    st.sampled_from(
        ["", "e1", "e2", "Save", "m-one", "\0", "\u202e", "a" * 5000, "(a+)+$", "${x}", "../..", "-1", "\n\n", "ä€😀"]
    ),
)


def from_schema(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Return values that a schema takes, as far as it says."""
    if "anyOf" in schema:
        return st.one_of([from_schema(one) for one in schema["anyOf"]])
    kinds = schema.get("type", ["string", "integer", "boolean", "object"])
    if "enum" in schema or "const" in schema:
        return st.sampled_from(schema.get("enum", [schema.get("const")]))
    if isinstance(kinds, list):
        return st.one_of([from_schema({**schema, "type": kind}) for kind in kinds])
    return MADE[kinds](schema)


def numbers(schema: dict[str, Any]) -> st.SearchStrategy[int]:
    low, high = schema.get("minimum", -5), schema.get("maximum", 5)
    return st.integers(low, min(high, low + 50))


def arrays(schema: dict[str, Any]) -> st.SearchStrategy[list[Any]]:
    items = from_schema(schema.get("items", {"type": "string"}))
    return st.lists(items, min_size=schema.get("minItems", 0), max_size=min(schema.get("maxItems", 3), 3))


def objects(schema: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    properties = schema.get("properties")
    if properties is None:
        inner = schema.get("additionalProperties")
        values = from_schema(inner) if isinstance(inner, dict) else NASTY_TEXT
        keys = st.sampled_from(["role", "name", "contains", "value", "inside", "state", "checked", "x"])
        return st.dictionaries(keys, values, max_size=3)
    required = schema.get("required", [])
    return st.fixed_dictionaries(
        {name: from_schema(properties[name]) for name in required},
        optional={name: from_schema(one) for name, one in properties.items() if name not in required},
    )


MADE = {
    "string": lambda schema: NASTY_TEXT.filter(lambda text: len(text) >= schema.get("minLength", 0)),
    "integer": numbers,
    "number": numbers,
    "boolean": lambda _: st.booleans(),
    "null": lambda _: st.none(),
    "array": arrays,
    "object": objects,
}

WRONG = st.sampled_from(
    [
        None,
        True,
        -1,
        0,
        2**63,
        -(2**63),
        1.5,
        float(2**70),
        "1",
        "",
        "\0",
        [],
        [None],
        {},
        {"": None},
        {"role": 7},
        ["e1"] * 70,
    ]
)


async def answered(tool: Tool, context: Context, arguments: dict[str, Any]) -> Answer | None:
    """Return the answer, or None where the call itself was refused; fails on anything else."""
    try:
        async with asyncio.timeout(20):
            answer = await call(context.for_call(None), tool, arguments)
    except UsageError:
        return None
    json.dumps(answer.data)
    assert answer.text
    if answer.is_error:
        error = answer.data.get("error") or answer.data["steps"][-1]["error"]
        assert error["code"] in CODES, answer.data
        assert isinstance(error["retry_safe"], bool)
    return answer


def dispatched(world: World) -> int:
    return len(world.app.effects)


@pytest.mark.parametrize("name", BY_NAME)
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_what_the_schema_takes_is_answered(name: str, data: Any) -> None:
    tool = BY_NAME[name]
    arguments = data.draw(from_schema(input_schema(tool.args)))
    for slow in ("timeout_ms", "wait_ms", "deadline_ms"):
        if slow in arguments or slow in input_schema(tool.args).get("properties", {}):
            arguments[slow] = data.draw(st.integers(1, 40))

    async def one() -> None:
        async with straight() as (context, world):
            await context.ask("observe", {"app": "memory"})
            answer = await answered(tool, context, arguments)
            if tool.kind != "act" or answer is None:
                assert dispatched(world) == 0

    asyncio.run(one())


@pytest.mark.parametrize("name", BY_NAME)
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_what_the_schema_does_not_take_is_refused_without_effect(name: str, data: Any) -> None:
    tool = BY_NAME[name]
    schema = input_schema(tool.args)
    arguments = data.draw(from_schema(schema))
    how = data.draw(st.sampled_from(["unknown", "wrong", "missing"]))
    properties, required = schema.get("properties", {}), schema.get("required", [])
    if how == "wrong" and properties:
        arguments[data.draw(st.sampled_from(sorted(properties)))] = data.draw(WRONG)
    elif how == "missing" and required:
        arguments.pop(data.draw(st.sampled_from(sorted(required))), None)
    else:
        arguments[data.draw(st.sampled_from(["x", "Target", "target ", "__class__", ""]))] = data.draw(WRONG)
    for slow in ("timeout_ms", "wait_ms"):
        if isinstance(arguments.get(slow, 0), int) and slow in properties:
            arguments[slow] = 1

    async def one() -> None:
        async with straight() as (context, world):
            await context.ask("observe", {"app": "memory"})
            answer = await answered(tool, context, arguments)
            if answer is None or answer.is_error:
                assert dispatched(world) == 0

    asyncio.run(one())


# --- by hand ---------------------------------------------------------------------------------------------------------

REGEX = "(" * 500 + "a" + ")" * 500 + "*" * 20
HOSTILE: list[tuple[str, dict[str, Any]]] = [
    ("invoke", {"target": "e999999999999999999999"}),
    ("invoke", {"target": "e-1"}),
    ("invoke", {"target": "e1; rm -rf /"}),
    ("invoke", {"target": "\0"}),
    ("invoke", {"target": "\ud800"}),
    ("invoke", {"target": {"name": "\ud800"}}),
    ("invoke", {"target": {}}),
    ("invoke", {"target": {"role": "button"}, "window": "../../etc"}),
    ("invoke", {"target": {"role": "button"}, "window": "m-one", "app": "memory"}),
    ("invoke", {"target": {"role": "button", "name": "Save"}, "operation_id": "a b"}),
    ("invoke", {"target": {"role": "button", "name": "Save"}, "operation_id": ""}),
    ("invoke", {"target": {"role": "button", "name": "Save"}, "operation_id": "x" * 257}),
    ("invoke", {"target": {"role": "button", "name": "Save"}, "operation_id": "\ud800"}),
    ("invoke", {"target": {"role": "button", "name": "Save"}, "deadline_ms": 0}),
    ("invoke", {"target": {"role": "button", "name": "Save"}, "deadline_ms": limits.DEADLINE_MS_MAX + 1}),
    ("invoke", {"target": {"role": "button", "name": "Save"}, "expect": {}}),
    ("invoke", {"target": {"role": "button", "name": "Save"}, "expect": "everything"}),
    ("invoke", {"target": {"role": "button", "name": "Save"}, "authority": {"mode": "host"}}),
    ("invoke", {"target": {"role": "button", "name": "x" * 10_000_000}}),
    ("set_value", {"target": {"role": "text"}, "value": "x" * 10_000_000}),
    ("set_value", {"target": {"role": "text"}, "value": "\ud800"}),
    ("set_value", {"target": {"role": "text"}, "value": 7}),
    ("query", {"role": "button", "limit": 0}),
    ("query", {"role": "button", "limit": 257}),
    ("query", {"role": "no such role"}),
    ("query", {"filters": [{"name": {"text": REGEX, "match": "regex"}}]}),
    ("query", {"filters": [{"name": {"text": "a" * 300, "match": "regex"}}]}),
    ("query", {"filters": [{"name": {"text": "(", "match": "regex"}}]}),
    ("query", {"filters": [{"role": "button"}] * 33}),
    ("observe", {"max_nodes": 0}),
    ("observe", {"max_nodes": limits.RENDER_NODES_MAX + 1}),
    ("observe", {"window": "w" * 100_000}),
    ("observe", {"app": "\0", "full": True}),
    ("operation_status", {"operation_id": "another principal's"}),
    ("operation_status", {"operation_id": "\udfff"}),
    ("act", {"steps": []}),
    ("act", {"steps": [{}] * 65}),
    ("act", {"steps": "all"}),
    ("launch_app", {"name": "\0"}),
    ("launch_app", {"name": "sh", "arguments": ["-c", "touch /tmp/x"] * 5000}),
]


@pytest.mark.parametrize(("name", "arguments"), HOSTILE, ids=lambda value: str(value)[:60])
async def test_a_hostile_call_is_refused_without_effect(name: str, arguments: dict[str, Any]) -> None:
    async with straight() as (context, world):
        await context.ask("observe", {"app": "memory"})
        answer = await answered(BY_NAME[name], context, arguments)
        assert (
            answer is None
            or answer.is_error
            or answer.data.get("status") == "approval_required"
            or name == "operation_status"
        )
        assert dispatched(world) == 0


async def test_labels_of_another_session_name_nothing_here() -> None:
    async with straight() as (context, world):
        shown = await context.ask("observe", {"app": "memory"})
        label = "e" + shown["text"].split("[e")[2].split("]")[0]
        other = Context(desktop=None, client="other", start=False)
        host = host_of(world)
        other.session = Straight(host, await agent(host))  # type: ignore[assignment]
        answer = await answered(BY_NAME["invoke"], other, {"target": label})
        assert answer is not None
        assert answer.data["error"]["code"] in {"target_not_found", "stale_target"}
        assert dispatched(world) == 0


# --- the protocol ----------------------------------------------------------------------------------------------------

INVOKE = {"target": {"role": "button", "name": "Save"}}


async def test_a_giant_argument_is_answered_and_reaches_nothing(host: FakeHost, server: Spawned) -> None:
    found = await server.call(1, "set_value", {"target": {"role": "text"}, "window": "w1", "value": "x" * 10_000_000})
    assert "error" in found or found["result"]["structuredContent"]["error"]["code"] in {
        "too_large",
        "invalid_request",
    }
    assert not [name for name, _ in host.calls if name == "act"]
    assert "result" in await server.call(2, "list_windows")


async def test_many_calls_cancelled_at_once_leave_a_server_that_serves(host: FakeHost, server: Spawned) -> None:
    host.script["act"] = forever
    most = 40
    for number in range(most):
        server.send(calling(number, "invoke", {**INVOKE, "window": "w1"}))
    await asyncio.to_thread(until, lambda: sum(name == "act" for name, _ in host.calls) == most)
    for number in (*range(most), *range(most), "x", -1):
        server.send(cancelled(number))
    await asyncio.to_thread(until, lambda: len(host.cancelled) == most)
    assert "result" in await server.call(1000, "list_windows")


async def test_more_calls_than_the_daemon_takes_at_once_are_refused_and_not_lost(host: FakeHost) -> None:
    host.script["act"] = forever
    async with spawned() as server:
        await server.greeted()
        most = limits.CONNECTION_REQUESTS_MAX + 10
        assert most <= limits.MCP_OPEN_MAX  # else the pipe refuses first, with an error of the protocol
        for number in range(most):
            server.send(calling(number, "invoke", {**INVOKE, "window": "w1"}))
        refused = [await server.read() for _ in range(10)]
        for one in refused:
            assert "result" in one, one
            assert one["result"]["structuredContent"]["error"]["code"] == "too_large"


async def test_ids_of_a_request_that_is_under_way_do_not_make_one_effect_two(host: FakeHost, server: Spawned) -> None:
    asked: list[str] = []

    async def act(_channel: Any, params: Any, _progress: Any) -> Any:
        asked.append(params["request"]["operation_id"])
        return reply(asked[-1])

    host.script["act"] = act
    server.send(*[calling(7, "invoke", {**INVOKE, "window": "w1"}) for _ in range(3)])
    for _ in range(3):
        await server.answer(7)
    # The daemon sees one operation, which acts at most once.
    assert len(set(asked)) == 1
