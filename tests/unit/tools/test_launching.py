"""What `launch_app` takes besides a name, and what it answers; the real launch is in `tests/desktop/mcp`."""

from __future__ import annotations

from typing import Any

import pytest

from surehand import limits
from surehand.tools import launching
from surehand.tools.catalog import call, find_tool, toolset
from surehand.tools.context import Context
from surehand.tools.tool import Answer

WINDOW = {"surface_id": "w7", "title": "notes", "app": "exe:/usr/bin/pad"}
TEXT = {**WINDOW, "scene_id": "s1", "text": 'window "notes"'}


class Daemon:
    """Answers a launch, and waits as a test says."""

    def __init__(self, opened: list[dict[str, Any]], shows: set[str] = frozenset(), **reply: Any) -> None:  # type: ignore[assignment]
        self.reply = {"output": {"pid": 1, "after": {"opened": opened}}, **reply}
        self.shows = shows
        self.acted: list[dict[str, Any]] = []
        self.waited: list[dict[str, Any]] = []

    async def act(self, _method: str, params: dict[str, Any], operation_id: str, **_: Any) -> Any:
        self.acted.append(params)
        receipt = {"effect": "executed_unverified", "route": "process.launch"}
        return {
            "operation_id": operation_id,
            "status": "succeeded",
            "terminal": {"kind": "succeeded", "receipt": receipt},
            **self.reply,
        }

    async def ask(self, method: str, params: dict[str, Any], **_: Any) -> Any:
        assert method == "wait"
        self.waited.append(params)
        return {"satisfied": params["surface"] in self.shows, "elapsed_ms": 1, "conditions": []}


async def launch(daemon: Daemon, **arguments: Any) -> Answer:
    context = Context(desktop=None, client="test", start=False)
    context.session = daemon  # type: ignore[assignment]
    return await call(context, find_tool(toolset("core"), "launch_app"), {"name": "pad", **arguments})


async def test_a_launch_takes_what_every_acting_tool_takes() -> None:
    daemon = Daemon([TEXT])
    answer = await launch(daemon, operation_id="op-1", deadline_ms=7_000, reconciles="op-0", change="full")
    (params,) = daemon.acted
    request = params["request"]
    assert (request["operation_id"], request["deadline_ms"], request["reconciles"]) == ("op-1", 7_000, "op-0")
    assert (params["observe_after"], params["full"]) == (True, True)
    assert answer.data["opened"] == ["w7"]
    assert 'window "notes"' in answer.data["change"]
    assert daemon.waited == []
    with_others = set(find_tool(toolset("all"), "invoke").args.__struct_fields__) - {"target", "window", "app"}
    assert with_others <= set(launching.LaunchApp.__struct_fields__)


async def test_without_a_change_a_launch_names_its_window_and_tells_nothing_of_it() -> None:
    daemon = Daemon([WINDOW])
    answer = await launch(daemon, change="none")
    assert daemon.acted[0]["observe_after"] == "windows"
    assert answer.data["opened"] == ["w7"]
    assert answer.text.splitlines() == ["done; not read back", "pid=1", "opened window w7:", '"notes"']


async def test_what_is_expected_is_looked_for_in_the_window_that_was_opened() -> None:
    daemon = Daemon([TEXT], {"w7"})
    expect = {"title": "notes", "appears": {"role": "button"}, "disappears": {"name": "Loading"}, "text": "hello"}
    answer = await launch(daemon, expect=expect)
    assert answer.data["expected"] is True
    assert not answer.is_error
    assert "what was expected shows in window w7" in answer.text
    (waited,) = daemon.waited
    assert waited["surface"] == "w7"
    assert [one["kind"] for one in waited["conditions"]] == [
        "element_exists",
        "element_exists",
        "element_gone",
        "title_contains",
    ]
    assert waited["timeout_ms"] == limits.WAIT_MS_DEFAULT


async def test_the_deadline_bounds_the_look() -> None:
    daemon = Daemon([TEXT], {"w7"})
    await launch(daemon, expect={"title": "notes"}, deadline_ms=300)
    assert daemon.waited[0]["timeout_ms"] <= 300


@pytest.mark.parametrize("opened", [[TEXT], []])
async def test_what_does_not_come_is_an_error_that_says_the_program_was_started(opened: list[dict[str, Any]]) -> None:
    answer = await launch(Daemon(opened), expect={"title": "other"}, deadline_ms=1)
    assert answer.is_error
    error = answer.data["error"]
    assert (error["code"], error["retry_safe"], answer.data["expected"]) == ("verification_failed", False, False)
    assert "the program was started" in error["message"]
    assert answer.data.get("opened", []) == [one["surface_id"] for one in opened]


async def test_any_of_several_windows_may_show_it() -> None:
    second = {**TEXT, "surface_id": "w8"}
    answer = await launch(Daemon([TEXT, second], {"w8"}), expect={"title": "notes"})
    assert answer.data["expected"] is True
    assert "window w8" in answer.text


async def test_nothing_is_looked_for_on_request_or_where_it_had_ended_before() -> None:
    daemon = Daemon([TEXT])
    assert "expected" not in (await launch(daemon, expect="none")).data
    daemon = Daemon([], replayed=True)
    answer = await launch(daemon, expect={"title": "notes"}, operation_id="op-1")
    assert not answer.is_error
    assert "not looked for" in answer.text
    assert daemon.waited == []


async def test_an_empty_expectation_is_refused_before_anything_is_started() -> None:
    daemon = Daemon([TEXT])
    answer = await launch(daemon, expect={})
    assert answer.data["error"]["code"] == "invalid_request"
    assert daemon.acted == []
