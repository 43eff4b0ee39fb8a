"""`surehand call`: arguments, sequences with named results, and what each outcome ends with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from surehand import limits
from surehand.cli.calling import check, read_calls, read_json
from surehand.errors import InvalidRequest
from surehand.tools.catalog import TOOLS
from surehand.tools.references import fill, names_in
from tests.unit.cli.conftest import Cli
from tests.unit.client.conftest import Desk, refused, reply

RESULTS = {"a": {"n": 3, "f": 1.5, "yes": True, "no": None, "text": "t", "list": [{"label": "e1"}, 2], "d": {"k": [1]}}}
WINDOW = {"surface_id": "w1", "title": "notes", "role": "window", "app": "exe:/usr/bin/pad", "states": ["active"]}
INVOKE = {"target": {"role": "button", "name": "Save"}}


@pytest.fixture
def desk(desk: Desk) -> Desk:
    async def surfaces(*_: Any) -> Any:
        return {"surfaces": [WINDOW]}

    desk.script["surfaces"] = surfaces
    return desk


def steps(path: Path, *calls: Any) -> str:
    file = path / "steps.json"
    file.write_text(json.dumps(list(calls)))
    return str(file)


# --- references ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${a.n}", 3),
        ("${a.f}", 1.5),
        ("${a.yes}", True),
        ("${a.no}", None),
        ("${a.list}", [{"label": "e1"}, 2]),
        ("${a.list.0.label}", "e1"),
        ("${a.d}", {"k": [1]}),
        ("${a}", RESULTS["a"]),
        ("n=${a.n}, ${a.text}/${a.yes}", "n=3, t/true"),
        ("$${a.n}", "${a.n}"),
        ("$$", "$$"),
        ("$a.n {a.n}", "$a.n {a.n}"),
        ({"x": ["${a.n}", {"y": "${a.text}!"}], "z": 4}, {"x": [3, {"y": "t!"}], "z": 4}),
    ],
)
def test_a_whole_reference_keeps_its_type_and_one_inside_a_text_is_written_out(text: Any, value: Any) -> None:
    found = fill(text, RESULTS)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    "text",
    ["x${a.list}", "x${a.d}", "x${a.no}", "${b.n}", "${a.nothing}", "${a.list.2}", "${a.list.-1}", "${a.list.x}", "${a.n.x}",
     "${}", "${.a}", "${a.}", "${a..n}", "${1a}", "${a b}", "${a.text.0}", "${a.list.²}", "${a.list." + "9" * 5000 + "}"],
)  # fmt: skip
def test_a_reference_that_names_nothing_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest):
        fill(text, RESULTS)


def test_what_a_result_says_is_never_read_as_a_reference() -> None:
    assert fill({"x": "${a.text}"}, {"a": {"text": "${a.secret}", "secret": 1}}) == {"x": "${a.secret}"}


def test_the_names_are_known_before_anything_is_called() -> None:
    assert set(names_in({"x": ["${a.b}", "y${c}"], "z": "$${d}"})) == {"a", "c"}


# --- reading ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["list_windows", "--calls", "x"],
        ["--calls", "/nowhere"],
        ["list_windows", "--args", "{"],
        ["list_windows", "--args", "[]"],
        ["list_windows", "--args", "{}", "--args-file", "x"],
        ["list_windows", "--args", '{"app": "a", "app": "b"}'],
        ["list_windows", "--args", '{"app": NaN}'],
        ["list_windows", "--args", '{"colour": 1}'],
        ["list_windows", "--args", '{"app": 1}'],
        ["list_windows", "--args-file", "/nowhere"],
        ["list_windows", "--flag"],
        ["no_such_tool"],
        ["--calls", "x", "--args", "{}"],
    ],
)
def test_wrong_usage_ends_with_two_and_asks_nothing_of_the_daemon(words: list[str], desk: Desk, cli: Cli) -> None:
    said = cli("call", *words, "--json")
    assert said.code == 2
    assert said.error["code"] == "invalid_request"
    assert desk.calls == []


@pytest.mark.parametrize(
    "data",
    [b"", b"{}", b"[]", b"[1]", b'[{"tool":"observe","colour":1}]', b'[{"args":{}}]', b'[{"tool":"observe","args":[]}]',
     b"\xff", b'[{"tool":"observe","tool":"query"}]', b"[" * 2000, b'[{"tool":"observe","args":{"x":Infinity}}]'],
)  # fmt: skip
def test_a_file_that_is_no_sequence_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidRequest):
        read_calls(data)


def test_a_sequence_at_the_limit_is_read_and_one_past_it_is_not() -> None:
    one = [{"tool": "list_windows"}]
    assert len(read_calls(json.dumps(one * limits.MCP_CALLS_MAX).encode())) == limits.MCP_CALLS_MAX
    with pytest.raises(InvalidRequest):
        read_calls(json.dumps(one * (limits.MCP_CALLS_MAX + 1)).encode())


@pytest.mark.parametrize(
    "calls",
    [
        [{"tool": "nothing"}],
        [{"tool": "observe", "as": "a"}, {"tool": "observe", "as": "a"}],
        [{"tool": "observe", "as": "1"}],
        [{"tool": "observe", "args": {"window": "${a.x}"}, "as": "a"}],
        [{"tool": "observe", "args": {"window": "${b.x}"}}, {"tool": "observe", "as": "b"}],
    ],
)
def test_what_cannot_work_is_refused_before_the_first_call(calls: Any, desk: Desk, cli: Cli, tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest):
        check(read_calls(json.dumps(calls).encode()))
    assert cli("call", "--calls", steps(tmp_path, {"tool": "list_windows"}, *calls), "--json").code == 2
    assert desk.calls == []


def test_numbers_keep_their_kind() -> None:
    assert [type(one) for one in read_json(b"[1, 1.0, 1e3, true]")] == [int, float, float, bool]


# --- calling ---------------------------------------------------------------------------------------------------------


def test_one_tool_gives_what_an_agent_gets(desk: Desk, cli: Cli, tmp_path: Path) -> None:
    assert cli("call", "list_windows").out == 'w1 window "notes" app=exe:/usr/bin/pad active\n'
    assert cli("call", "list_windows", "--json").data["windows"][0]["window"] == "w1"
    file = tmp_path / "args.json"
    file.write_text('{"app": "pad"}')
    cli("call", "list_windows", "--args-file", str(file))
    assert cli("call", "list_windows", "--args={}").code == 0
    assert desk.named("surfaces") == [{}, {}, {"app": "pad"}, {}]


def test_the_list_shows_every_tool_and_one_tools_arguments(desk: Desk, cli: Cli) -> None:
    assert [one["name"] for one in cli("call", "--list", "--json").data["tools"]] == [tool.name for tool in TOOLS]
    assert cli("call", "observe", "--list", "--json").data["input_schema"]["additionalProperties"] is False
    assert desk.calls == []


def test_a_sequence_is_one_session_and_its_results_are_named(desk: Desk, cli: Cli, tmp_path: Path) -> None:
    file = steps(
        tmp_path,
        {"tool": "list_windows", "as": "found"},
        {"tool": "list_windows", "args": {"app": "${found.windows.0.title} of ${found.windows.0.active}"}},
    )
    said = cli("call", "--calls", file, "--json")
    assert len(said.data["results"]) == 2
    assert desk.named("surfaces") == [{}, {"app": "notes of true"}]
    assert len(desk.opened) == 1
    text = cli("call", "--calls", file).out.splitlines()
    assert [line for line in text if line.startswith("#")] == ["# list_windows as found", "# list_windows"]


def test_a_sequence_stops_at_the_first_error_and_says_what_had_happened(desk: Desk, cli: Cli, tmp_path: Path) -> None:
    desk.replies = [lambda op: refused(op, "stale_target"), reply]
    file = steps(
        tmp_path, {"tool": "list_windows"}, {"tool": "invoke", "args": INVOKE}, {"tool": "invoke", "args": INVOKE}
    )
    said = cli("call", "--calls", file, "--json")
    assert said.code == 1
    assert said.error["code"] == "stale_target"
    assert len(said.error["details"]["results"]) == 2
    assert len(desk.acts) == 1


def test_a_reference_without_its_value_stops_before_the_call_it_stands_in(desk: Desk, cli: Cli, tmp_path: Path) -> None:
    file = steps(
        tmp_path,
        {"tool": "list_windows", "as": "found"},
        {"tool": "invoke", "args": {"target": "${found.windows.7.window}"}},
    )
    said = cli("call", "--calls", file, "--json")
    assert said.code == 2
    assert len(said.error["details"]["results"]) == 1
    assert desk.acts == []


@pytest.mark.parametrize(
    ("status", "code"), [("succeeded", 0), ("failed", 1), ("withheld", 1), ("outcome_unknown", 4), ("interrupted", 5), ("approval_required", 6)]
)  # fmt: skip
def test_every_outcome_ends_with_its_code(status: str, code: int, desk: Desk, cli: Cli) -> None:
    desk.replies = [lambda op: reply(op, status)]
    said = cli("call", "invoke", "--args", json.dumps({**INVOKE, "operation_id": "op1"}), "--json")
    assert said.code == code, said
    if code:
        assert said.error["details"]["operation_id"] == "op1"
        assert said.error["retry_safe"] is (status == "approval_required")
    plain = cli("call", "invoke", "--args", json.dumps(INVOKE))
    assert plain.code == code
    assert (plain.out == "") is (code != 0)


def test_the_step_that_stopped_an_act_is_its_error(desk: Desk, cli: Cli) -> None:
    desk.replies = [lambda op: refused(op, "ambiguous_target")]
    step = {"do": "invoke", **INVOKE}
    said = cli("call", "act", "--args", json.dumps({"steps": [step, step]}), "--json")
    assert (said.code, said.error["code"]) == (1, "ambiguous_target")


def test_equal_calls_of_two_runs_are_two_operations(desk: Desk, cli: Cli) -> None:
    for _ in range(2):
        cli("call", "invoke", "--args", json.dumps(INVOKE))
    assert len({one["operation_id"] for one in desk.acts}) == 2
