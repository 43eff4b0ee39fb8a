"""What clients are told of the tools' arguments: short enough to be read by a model, and true.

The schema and the strict decoder are compared on generated arguments, so that neither takes what the other refuses.
Where a schema is brief on purpose the decoder may refuse more, never less.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from surehand.errors import SurehandError
from surehand.model.record import convert
from surehand.tools.catalog import TOOLS, toolset
from surehand.tools.schema import input_schema
from surehand.tools.tool import Tool

ALL = pytest.mark.parametrize("tool", toolset("all,playwright,computer-use"), ids=lambda tool: tool.name)

_FIND = {"role": "button", "name": "Save"}
#: Valid values of each argument that is listed briefly, by its name; a new one needs examples here.
_BRIEF: dict[str, list[Any]] = {
    "target": ["e17", _FIND],
    "to": ["e17", _FIND, True],
    "expect": ["none", {"title": "x"}],
    "until": [{"title": "x"}],
    "region": [[0, 0, 4, 4]],
    "coordinate": [[1, 2]],
    "start_coordinate": [[1, 2]],
    "state": [{"checked": True}],
    "filters": [[{"role": "button"}]],
}


def schema_of(tool: Tool) -> dict[str, Any]:
    return input_schema(tool.args)


def decodes(tool: Tool, arguments: Any) -> bool:
    try:
        convert(tool.args, arguments)
    except (SurehandError, msgspec.ValidationError):
        return False
    return True


def is_brief(schema: dict[str, Any]) -> bool:
    kind = schema.get("type")
    bare = (kind == "object" and "properties" not in schema) or (kind == "array" and "items" not in schema)
    return isinstance(kind, list) or bare


_SIMPLE: dict[str, Callable[[dict[str, Any]], st.SearchStrategy[Any]]] = {
    "string": lambda _: st.text(max_size=8),
    "boolean": lambda _: st.booleans(),
    "integer": lambda schema: st.integers(schema.get("minimum", -9), schema.get("maximum", 9)),
    "number": lambda schema: st.floats(0.5, schema.get("maximum", 9)),
}


def valid(schema: dict[str, Any], name: str = "") -> st.SearchStrategy[Any]:
    """Return values that a schema of ours takes."""
    if is_brief(schema):
        kinds = schema["type"]
        return st.sampled_from([one for one in _BRIEF.get(name, [{}]) if _kind(one) in kinds])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if "anyOf" in schema:
        return st.one_of([valid(option, name) for option in schema["anyOf"]])
    if schema["type"] in _SIMPLE:
        return _SIMPLE[schema["type"]](schema)
    if schema["type"] == "array":
        least, most = schema.get("minItems", 0), min(schema.get("maxItems", 3), 3)
        return st.lists(valid(schema["items"], name), min_size=least, max_size=most)
    needed = set(schema.get("required", ()))
    parts = {key: valid(part, key) for key, part in schema["properties"].items()}
    return st.fixed_dictionaries(
        {key: part for key, part in parts.items() if key in needed},
        optional={key: part for key, part in parts.items() if key not in needed},
    )


def _kind(value: Any) -> str:
    return {str: "string", bool: "boolean", dict: "object", list: "array"}[type(value)]


def spoilt(schema: dict[str, Any], arguments: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Return the arguments with one thing wrong each time."""
    yield {**arguments, "unknown": 1}
    for name in schema.get("required", ()):
        yield {key: value for key, value in arguments.items() if key != name}
    for name, part in schema.get("properties", {}).items():
        for wrong in ([1, 2], 1.5, -(10**9), {"unknown": 1}, "\x00" * 3, True, None):
            changed = copy.deepcopy(arguments)
            changed[name] = wrong
            if not is_brief(part):
                yield changed


@ALL
def test_every_schema_is_valid_and_takes_nothing_unknown(tool: Tool) -> None:
    schema = schema_of(tool)
    Draft202012Validator.check_schema(schema)
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    assert "$ref" not in json.dumps(schema)
    Draft202012Validator.check_schema(dict(tool.output))
    assert tool.output["type"] == "object"


@ALL
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_what_a_schema_takes_the_decoder_takes(tool: Tool, data: st.DataObject) -> None:
    schema = schema_of(tool)
    arguments = data.draw(valid(schema))
    Draft202012Validator(schema).validate(arguments)
    if _nested(schema):
        return  # its records have rules of their own
    assert decodes(tool, arguments), arguments


@ALL
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_what_a_schema_refuses_the_decoder_refuses(tool: Tool, data: st.DataObject) -> None:
    schema = schema_of(tool)
    validator = Draft202012Validator(schema)
    for arguments in spoilt(schema, data.draw(valid(schema))):
        if arguments and any(value is None for value in arguments.values()):
            continue  # an argument that may be left out may be null as well; a schema need not say so
        if not validator.is_valid(arguments):
            assert not decodes(tool, arguments), arguments
        elif not _nested(schema):
            assert decodes(tool, arguments), arguments


def _nested(schema: dict[str, Any]) -> bool:
    """Return whether a tool's arguments hold records that check more than a schema can say."""
    return "filters" in schema.get("properties", {}) or "conditions" in schema.get("properties", {})


@ALL
def test_a_brief_argument_is_checked_whole(tool: Tool) -> None:
    schema = schema_of(tool)
    needed = {name: _example(schema["properties"][name], name) for name in schema.get("required", ())}
    for name, part in schema.get("properties", {}).items():
        if is_brief(part) and "properties" not in part and "additionalProperties" not in part:
            assert all(decodes(tool, {**needed, name: one}) for one in _BRIEF[name] if _kind(one) in part["type"])
            assert not decodes(tool, {**needed, name: {"unknown": 1}})
            assert not decodes(tool, {**needed, name: {"name": 5, "title": 5}})
            assert not decodes(tool, {**needed, name: 5})


def _example(schema: dict[str, Any], name: str) -> Any:
    if is_brief(schema):
        return _BRIEF[name][0]
    if "enum" in schema:
        return schema["enum"][0]
    examples = {"string": "x", "integer": 1, "number": 1.0, "boolean": True, "object": {}}
    if schema["type"] == "array":
        inner = schema["items"]
        least = (
            {key: _example(inner["properties"][key], key) for key in inner.get("required", ())}
            if (inner.get("type") == "object")
            else _example(inner, name)
        )
        return [least]
    return examples[schema["type"]]


def test_the_acting_tools_together_are_no_larger_than_their_share_of_the_list() -> None:
    acting = [tool for tool in TOOLS if tool.kind == "act"]
    size = sum(len(json.dumps(schema_of(tool), ensure_ascii=False, separators=(",", ":")).encode()) for tool in acting)
    assert size <= 12 * 1024, size
