"""Words of other servers: each becomes a call of one of our tools, takes nothing else, and is served only when asked."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from surehand.errors import SurehandError
from surehand.model.record import convert
from surehand.tools import aliases
from surehand.tools.catalog import TOOLS, UsageError, call, find_tool, toolset
from surehand.tools.context import Context
from surehand.tools.schema import input_schema
from surehand.tools.tool import Answer
from tests.unit.mcp.test_fuzz import LONG, WRONG, answered, dispatched, from_schema, straight

ALIASES = {tool.name: tool for tool in toolset("playwright,computer-use")}
ON = {"target": "e7", "element": "the field"}

_BECOMES: list[tuple[str, dict[str, Any], str, dict[str, Any]]] = [
    ("browser_snapshot", {}, "observe", {"full": True}),
    ("browser_snapshot", {"target": "e7"}, "observe", {"scope": "e7"}),
    ("browser_click", {**ON, "doubleClick": True}, "click", {"target": "e7", "count": 2, "button": "left"}),
    ("browser_click", {**ON, "button": "right"}, "click", {"target": "e7", "button": "right"}),
    (
        "browser_click",
        {**ON, "modifiers": ["ControlOrMeta", "Shift"]},
        "click",
        {"target": "e7", "button": "left", "modifiers": ["control", "shift"]},
    ),
    ("browser_type", {**ON, "text": "Ada"}, "set_value", {"target": "e7", "value": "Ada"}),
    ("browser_type", {**ON, "text": "a", "slowly": True}, "type_text", {"target": "e7", "text": "a"}),
    (
        "browser_type",
        {**ON, "text": "a", "submit": True},
        "type_text",
        {"target": "e7", "text": "a", "clear": True, "submit": True},
    ),
    ("browser_press_key", {"key": "ArrowLeft"}, "press_key", {"keys": ["ArrowLeft"]}),
    ("browser_hover", ON, "act", {"steps": [{"do": "hover", "target": "e7"}]}),
    ("browser_drag", {"startTarget": "e1", "endTarget": "e2"}, "drag", {"target": "e1", "to": "e2"}),
    ("browser_select_option", {**ON, "values": ["red"]}, "select_option", {"target": "e7", "option": "red"}),
    ("browser_take_screenshot", {"type": "webp"}, "screenshot", {"format": "webp"}),
    ("browser_wait_for", {"text": "Saved"}, "wait_for", {"until": [{"exists": {"contains": "Saved"}}]}),
    ("browser_wait_for", {"textGone": "…"}, "wait_for", {"until": [{"gone": {"contains": "…"}}]}),
    ("browser_find", {"text": "Save"}, "query", {"contains": "Save"}),
    (
        "browser_resize",
        {"width": 800, "height": 600},
        "act",
        {"steps": [{"do": "window", "op": "resize", "width": 800, "height": 600}]},
    ),
    (
        "browser_fill_form",
        {
            "fields": [
                {"target": "e1", "name": "Name", "type": "textbox", "value": "Ada"},
                {"target": "e2", "type": "checkbox", "value": "true"},
                {"target": "e3", "type": "combobox", "value": "red"},
                {"target": "e4", "type": "slider", "value": "40"},
            ]
        },
        "act",
        {
            "steps": [
                {"do": "set_value", "target": "e1", "value": "Ada"},
                {"do": "toggle", "target": "e2", "to": True},
                {"do": "select_option", "target": "e3", "option": "red"},
                {"do": "set_value", "target": "e4", "value": "40"},
            ]
        },
    ),
    ("computer", {"action": "type", "text": "a b"}, "type_text", {"text": "a b"}),
    ("computer", {"action": "key", "text": "ctrl+s"}, "press_key", {"keys": ["ctrl+s"]}),
    ("computer", {"action": "screenshot"}, "screenshot", {"desktop": True}),
    (
        "computer",
        {"action": "zoom", "region": [10, 20, 110, 70]},
        "screenshot",
        {"desktop": True, "region": [10, 20, 100, 50]},
    ),
    *(
        ("computer", {"action": action, "coordinate": [3, 4]}, "click", {"x": 3, "y": 4, "capture_id": "c1", **more})
        for action, more in aliases._CLICKS.items()
    ),
    *(
        (
            "computer",
            {"action": action, "coordinate": [3, 4]},
            "act",
            {"steps": [{"do": do, "x": 3, "y": 4, "capture_id": "c1"}]},
        )
        for action, do in aliases._MOVES.items()
    ),
    (
        "computer",
        {"action": "left_click_drag", "start_coordinate": [1, 2], "coordinate": [3, 4]},
        "drag",
        {"x": 1, "y": 2, "to_x": 3, "to_y": 4, "capture_id": "c1"},
    ),
    (
        "computer",
        {"action": "scroll", "coordinate": [3, 4], "scroll_direction": "down", "scroll_amount": 5},
        "scroll",
        {"x": 3, "y": 4, "capture_id": "c1", "direction": "down", "amount": 5},
    ),
]


@pytest.mark.parametrize(("name", "arguments", "ours", "become"), _BECOMES)
async def test_a_word_becomes_one_of_ours(
    name: str, arguments: dict[str, Any], ours: str, become: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, dict[str, Any]]] = []

    async def heard(_: Context, tool: str, given: dict[str, Any]) -> Answer:
        given = {key: value for key, value in given.items() if value is not None}
        convert(find_tool(TOOLS, tool).args, given)
        asked.append((tool, given))
        return Answer({"capture_id": "c2"}, "done")

    monkeypatch.setattr(aliases, "_ours", heard)
    context = Context(desktop=None, client="test", start=False)
    context.picture = "c1"
    answer = await call(context, ALIASES[name], arguments)
    assert not answer.is_error, answer.text
    assert asked == [(ours, become)]
    # Coordinates are of the last picture of the whole, and of no closer look.
    assert context.picture == ("c2" if arguments.get("action") == "screenshot" else "c1")


def test_every_word_is_tried_here() -> None:
    assert {name for name, *_ in _BECOMES} == ALIASES.keys()
    tried = {arguments["action"] for name, arguments, *_ in _BECOMES if name == "computer"}
    known = set(input_schema(ALIASES["computer"].args)["properties"]["action"]["enum"])
    assert tried == known - {"wait"}


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("browser_snapshot", {"filename": "page.md"}),
        ("browser_take_screenshot", {"fullPage": True}),
        ("browser_take_screenshot", {"filename": "/tmp/x.png"}),  # noqa: S108 - never written
        ("browser_select_option", {"target": "e1", "values": ["a", "b"]}),
        ("browser_wait_for", {"time": 3}),
        ("browser_find", {"regex": "(a+)+$"}),
        ("browser_click", {"ref": "e1"}),
        ("computer", {"action": "cursor_position"}),
        ("computer", {"action": "left_click", "coordinate": [1]}),
    ],
)
async def test_what_has_no_meaning_here_is_refused(name: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        await call(Context(desktop=None, client="test", start=False), ALIASES[name], arguments)


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("computer", {"action": "left_click"}, "left_click needs coordinate"),
        ("computer", {"action": "type", "text": "x", "coordinate": [1, 2]}, "type takes no coordinate"),
        ("computer", {"action": "left_click", "coordinate": [1, 2]}, "take a screenshot first"),
        ("browser_wait_for", {}, "say text or textGone"),
        ("browser_fill_form", {"fields": [{"target": "e1", "type": "radio", "value": "on"}]}, "is true or false"),
    ],
)
async def test_what_says_too_little_is_told_so(name: str, arguments: dict[str, Any], said: str) -> None:
    answer = await call(Context(desktop=None, client="test", start=False), ALIASES[name], arguments)
    assert answer.is_error
    assert said in answer.text


async def test_a_plain_click_on_a_button_presses_it() -> None:
    async with straight() as (context, world):
        seen = await context.ask("query", {"app": "memory", "query": {"filters": [{"role": "button"}]}})
        answer = await call(context, ALIASES["browser_click"], {"target": seen["matches"][0]["label"]})
        assert not answer.is_error, answer.text
        assert dispatched(world) == 1


def test_sets_are_served_where_they_are_asked_for() -> None:
    assert not ALIASES.keys() & {tool.name for tool in TOOLS}
    for name in ALIASES:
        with pytest.raises(UsageError):
            find_tool(TOOLS, name)
    served = [tool.name for tool in toolset("computer-use, list_windows,core")]
    assert served[:2] == ["computer", "list_windows"]
    assert len(set(served)) == len(served) == 9
    with pytest.raises(SurehandError, match="there is no tool browser_click"):
        toolset("browser_click")


@pytest.mark.parametrize("name", ALIASES)
@settings(max_examples=200 if LONG else 6, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_whatever_is_given_is_answered_and_what_is_refused_has_no_effect(name: str, data: Any) -> None:
    tool = ALIASES[name]
    schema = input_schema(tool.args)
    arguments = data.draw(from_schema(schema))
    if data.draw(st.booleans()):
        arguments[data.draw(st.sampled_from([*schema["properties"], "x", "ref", ""]))] = data.draw(WRONG)
    for slow, quick in (("duration", 0.01), ("text", "Save"), ("textGone", "no such")):
        if slow in arguments and (name == "browser_wait_for" or slow == "duration"):
            arguments[slow] = quick

    async def one() -> None:
        async with straight() as (context, world):
            await context.ask("observe", {"app": "memory"})
            answer = await answered(tool, context, arguments)
            code = None if answer is None else answer.data.get("error", {}).get("code")
            # The one error that says that something may have happened is not a refusal.
            if tool.kind != "act" or answer is None or (answer.is_error and code != "outcome_unknown"):
                assert dispatched(world) == 0 or name == "browser_fill_form"

    asyncio.run(one())
