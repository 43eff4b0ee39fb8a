"""A call that its own schema refuses is answered with what to change, bounded whatever it holds."""

from __future__ import annotations

from typing import Any

import pytest

from surehand.tools.catalog import TOOLS, UsageError, call, find_tool
from surehand.tools.context import Context

_CALLS: list[tuple[str, dict[str, Any], list[str]]] = [
    ("click", {"buton": "left"}, ["there is no 'buton', perhaps button", "there are window, app, expect", "modifiers"]),
    ("click", {"button": "lft"}, ['button: expected one of "left", "middle", "right", not "lft", perhaps "left"']),
    ("observe", {"max_nodes": "9"}, ["max_nodes: expected a whole number from 1 to 2000, not text; for example 1"]),
    ("observe", {"max_nodes": 0}, ["from 1 to 2000, not 0"]),
    ("invoke", {}, ['target is missing; for example {"target": "e17"}']),
    ("invoke", {"target": {"nam": "Save"}}, ["target: there is no 'nam', perhaps name; there are role, name"]),
    ("invoke", {"target": 5}, ["target: expected text or an object with role, name", 'not 5; for example "e17"']),
    ("invoke", {"target": "e1", "expect": "maybe"}, ['or "none", not "maybe"; for example {"text": "Saved"}']),
    ("invoke", {"target": "e1", "expect": {"appears": {"stat": 1}}}, ["expect.appears: there is no 'stat'"]),
    ("invoke", {"target": "e1", "image": "yes"}, ["image: expected true or false, not text; for example true"]),
    ("toggle", {"target": "e1", "to": "on"}, ["to: expected true or false, not text"]),
    ("press_key", {"keys": "ctrl+s"}, ['keys: expected a list: each text, not text; for example ["ctrl+s"]']),
    ("press_key", {"keys": ["a", None]}, ["keys[1]: expected text, not null"]),
    ("screenshot", {"region": [1, 2, 3]}, ["a list of 4: each a whole number, not a list of 3", "[0, 0, 400, 300]"]),
    ("act", {"steps": []}, ["a list of 1 to 64: objects, not an empty list", '[{"do": "invoke", "target": "e17"}]']),
    ("act", {"steps": [{"do": "invok"}]}, ['steps[0].do: expected one of "click"', 'not "invok", perhaps "invoke"']),
    ("wait_for", {"until": [{"exist": "e1"}]}, ["until[0]: there is no 'exist', perhaps exists"]),
    ("query", {"state": {"checked": "yes"}}, ["state[…]: expected true or false"]),
    ("list_apps", {"all": True}, ["there is no 'all'", "there are no arguments"]),
]


async def complaint(name: str, arguments: dict[str, Any]) -> str:
    context = Context(desktop=None, client="test", start=False)
    with pytest.raises(UsageError) as caught:
        await call(context, find_tool(TOOLS, name), arguments)
    return str(caught.value)


@pytest.mark.parametrize(("name", "arguments", "said"), _CALLS)
async def test_a_wrong_call_is_told_what_to_change(name: str, arguments: dict[str, Any], said: list[str]) -> None:
    told = await complaint(name, arguments)
    assert told.startswith(f"{name}: ")
    assert all(part in told for part in said), told
    assert "$" not in told
    assert "`" not in told


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
async def test_every_tool_names_its_arguments_to_who_misspelt_one(tool: Any) -> None:
    told = await complaint(tool.name, {"x" * 500_000: 1})
    assert len(told) <= 1_100
    assert all(name in told for name in tool.args.__struct_fields__) or len(tool.args.__struct_fields__) > 40


@pytest.mark.parametrize("wrong", ["\udcff" * 9, "\x00\n`", "a" * 10_000_000, "\u202e"])
async def test_what_was_given_is_repeated_only_in_part_and_escaped(wrong: str) -> None:
    for name, arguments in (
        ("click", {wrong: 1}),
        ("click", {"button": wrong}),
        ("observe", {"max_nodes": wrong}),
        ("act", {"steps": [{"do": wrong}]}),
        ("query", {"state": {wrong: wrong}}),
    ):
        told = await complaint(name, arguments)
        assert len(told) <= 1_100
        assert told.isprintable()
        told.encode()
