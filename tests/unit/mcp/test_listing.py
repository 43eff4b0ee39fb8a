"""What listing the tools costs a model, whichever way a client's session is told apart."""

from __future__ import annotations

import json

import pytest

from surehand.mcp.server import listing
from surehand.tools.catalog import TOOLS, UsageError, call, toolset
from surehand.tools.context import Context


@pytest.mark.parametrize("carried", [False, True])
@pytest.mark.parametrize(("tools", "most"), [("core", 8 * 1024), ("all", 24 * 1024)])
def test_the_list_fits_a_small_budget_on_both_faces(tools: str, most: int, carried: bool) -> None:
    listed = [listing(tool, carried=carried).model_dump(by_alias=True, exclude_none=True) for tool in toolset(tools)]
    assert len(json.dumps({"tools": listed}, ensure_ascii=False, separators=(",", ":")).encode()) <= most


def test_the_token_is_an_argument_of_every_tool_for_who_carries_it_and_of_none_for_others() -> None:
    for tool in TOOLS:
        plain, carried = (listing(tool, carried=one).input_schema for one in (False, True))
        assert carried["properties"].pop("session") == {"type": "string"}
        assert plain == {**carried, "additionalProperties": False}


async def test_unknown_arguments_are_refused_where_the_schema_does_not_say_so_too() -> None:
    context = Context(desktop=None, client="test", start=False)
    for tool in TOOLS:
        with pytest.raises(UsageError):
            await call(context, tool, {"sessions": "x"})
