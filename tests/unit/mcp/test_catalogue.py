"""What a client is told that there is: the tools by name and order, what they may do, and how an answer is carried."""

from __future__ import annotations

import json

import pytest

from surehand.mcp.server import listing, result
from surehand.tools.catalog import TOOLS, find_tool, toolset
from surehand.tools.tool import Answer, Image
from tests.unit.daemon.fakes import FakeHost
from tests.unit.mcp.conftest import Spawned, spawned

NAMES = [
    *("list_apps", "list_windows", "observe", "query", "read_text", "read_table", "screenshot", "wait_for"),
    *("launch_app", "invoke", "set_value", "toggle", "select_option", "select_text", "type_text", "press_key"),
    *("click", "scroll", "drag", "perform_action", "act", "operation_status", "approval_status", "request_human"),
    *("doctor", "end_session"),
]


def test_every_tool_is_listed_once_and_in_order() -> None:
    assert [tool.name for tool in TOOLS] == NAMES
    names = [*NAMES, *(alias for tool in TOOLS for alias in tool.aliases)]
    assert len(set(names)) == len(names)
    assert all(find_tool(TOOLS, name).name in NAMES for name in names)


@pytest.mark.parametrize("name", NAMES)
def test_hints_promise_no_more_than_the_kind_of_tool(name: str) -> None:
    tool = find_tool(TOOLS, name)
    hints = listing(tool).annotations
    assert hints is not None
    # What is left out is what the protocol assumes: not for reading only, and destructive.
    assert bool(hints.read_only_hint) is (tool.kind != "act")
    assert not (tool.kind == "act" and hints.idempotent_hint)
    assert not (hints.destructive_hint and hints.read_only_hint)
    assert all(tool.kind != "act" for tool in toolset("read"))


def test_the_list_is_the_same_bytes_each_time() -> None:
    once, again = (json.dumps([listing(tool).model_dump(mode="json") for tool in TOOLS]) for _ in range(2))
    assert once == again


def test_an_answer_is_its_text_then_its_pictures_which_are_nowhere_else() -> None:
    picture = b"\x89PNG not really"
    sent = result(Answer({"width": 1}, "a picture", images=(Image(picture, "image/png"),)))
    assert [one.type for one in sent.content] == ["text", "image"]
    assert sent.structured_content == {"width": 1}
    assert sent.is_error is False
    plain = result(Answer({}, "no picture"))
    assert [one.type for one in plain.content] == ["text"]


async def test_a_ping_is_answered_with_nothing_before_and_after_the_handshake(host: FakeHost) -> None:
    async with spawned() as server:
        for number in (1, 2):
            server.send({"jsonrpc": "2.0", "id": number, "method": "ping"})
            assert (await server.answer(number))["result"] == {}
            if number == 1:
                await server.greeted()
    assert host.calls == []


async def test_what_has_no_id_is_answered_by_nothing(host: FakeHost, server: Spawned) -> None:
    for method in ("notifications/no-such", "notifications/turn-ended", "tools/no-such"):
        server.send({"jsonrpc": "2.0", "method": method})
    server.send({"jsonrpc": "2.0", "id": 9, "method": "ping"})
    assert (await server.read())["id"] == 9
    assert host.calls == []
