"""Each command says what it should, to people and to programs."""

from __future__ import annotations

import io
import json
import pwd
import subprocess
import sys
import tarfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from surehand.cli import output
from surehand.cli.app import build, split_json
from surehand.cli.forms import FORMS
from surehand.client.control import signed_answer
from surehand.core.approval import Approver, answer_message, ask, check_answer, present_plan, presentation_hash
from surehand.core.approvers import standing_message
from surehand.errors import AuthorityDenied
from surehand.model.approval import ApprovalAnswer, PendingApproval, Presentation
from surehand.model.authority import StandingGrant
from surehand.model.record import convert, to_value
from surehand.signing import ed25519
from tests.unit.cli.conftest import Cli
from tests.unit.client.conftest import Desk, match, reply, until


def answers(desk: Desk, **values: Any) -> None:
    """Let methods answer with these values."""
    for method, value in values.items():

        async def answer(_channel: Any, _params: Any, _progress: Any, value: Any = value) -> Any:
            return value

        desk.script[method.replace("__", ".")] = answer


# --- help ------------------------------------------------------------------------------------------------------------


def commands() -> list[tuple[str, ...]]:
    import typer

    found: list[tuple[str, ...]] = []

    def walk(command: Any, path: tuple[str, ...]) -> None:
        children = getattr(command, "commands", None)
        if children is None:
            found.append(path)
            return
        for name, child in children.items():
            walk(child, (*path, name))

    walk(typer.main.get_command(build()), ())
    return found


@pytest.mark.parametrize("path", commands(), ids=" ".join)
def test_every_command_teaches_with_an_example(cli: Cli, path: tuple[str, ...]) -> None:
    said = cli(*path, "--help")
    assert said.code == 0
    assert f"  surehand {' '.join(path)}" in said.out, said.out
    assert "--json" in said.out
    assert "\x08" not in said.out


def test_the_commands_that_were_promised_are_there() -> None:
    promised = (
        "doctor|desktop run|desktop list|serve|ps|stop|capabilities|surfaces|observe|query|act|read|screenshot|wait|"
        "status|resolve|approvals list|approvals show|approvals approve|approvals deny|audit verify|audit list|"
        "audit show|audit report|keys show|policy check|support-bundle|version"
    )
    assert {tuple(one.split()) for one in promised.split("|")} <= set(commands())


def test_help_for_acting_names_every_kind_and_what_does_not_work_yet(cli: Cli) -> None:
    said = cli("act", "--help").out
    for words in (*FORMS, "minimize", "move X Y", "drag", "hold", "release", "--request", "not built yet"):
        assert words in said, words


def test_the_bare_command_shows_help() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import sys; from surehand.cli import main; sys.exit(main([]))"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "First steps" in done.stderr
    assert "policy" in done.stderr.rpartition("Commands:")[2], "the help is shown whole"
    assert "invalid_request" not in done.stderr
    assert (done.returncode, done.stdout) == (2, "")


@pytest.mark.parametrize("words", [(), ("desktop",)])
def test_no_command_is_a_usage_error_in_json(cli: Cli, words: tuple[str, ...]) -> None:
    said = cli(*words, "--json")
    assert (said.code, said.error["code"]) == (2, "invalid_request")


def test_the_list_of_commands_says_whole_sentences(cli: Cli) -> None:
    said = cli("--help").out.rpartition("Commands:")[2]
    assert "…" not in said
    assert "..." not in said


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_the_commands(shell: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import sys; from surehand.cli import main; sys.exit(main())"],
        env={"_SUREHAND_COMPLETE": f"complete_{shell}", "COMP_WORDS": "surehand scr", "COMP_CWORD": "1",
             "_TYPER_COMPLETE_ARGS": "surehand scr", "_TYPER_COMPLETE_FISH_ACTION": "get-args", "PATH": "/usr/bin:/bin"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "screenshot" in done.stdout, done


def test_two_dashes_end_our_own_words() -> None:
    assert split_json(["a", "--json", "--", "--json"]) == (["a", "--", "--json"], True)
    assert split_json(["a", "--", "--json"]) == (["a", "--", "--json"], False)


# --- acting ------------------------------------------------------------------------------------------------------------

TARGET = ("--app", "notes", "--role", "button", "--name", "Save")

ACTIONS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "invoke": (("invoke",), {"kind": "invoke"}),
    "set_value": (("set_value", "Hello, world"), {"kind": "set_value", "value": "Hello, world"}),
    "set-value with a dash": (("set-value", "x"), {"kind": "set_value", "value": "x"}),
    "a secret": (("set_value", "--secret", "vault:mail"), {"kind": "set_value", "secret_ref": "vault:mail"}),
    "select_text": (("select_text", "2", "3"), {"kind": "select_text", "start": 2, "length": 3}),
    "select_option": (("select_option", "blue"), {"kind": "select_option", "option": "blue"}),
    "select itself": (("select_option",), {"kind": "select_option"}),
    "toggle": (("toggle", "on"), {"kind": "toggle", "to": True}),
    "expand": (("expand", "off"), {"kind": "expand", "to": False}),
    "focus": (("focus",), {"kind": "focus"}),
    "perform": (("perform", "show menu"), {"kind": "perform", "name": "show menu"}),
    "scroll": (("scroll", "down"), {"kind": "scroll", "direction": "down", "amount_milli": 3000}),
    "scroll pages": (
        ("scroll", "up", "--amount", "1.5", "--unit", "page"),
        {"kind": "scroll", "direction": "up", "amount_milli": 1500, "unit": "page"},
    ),
    "scroll_into_view": (("scroll_into_view",), {"kind": "scroll_into_view"}),
    "click": (("click",), {"kind": "click"}),
    "click twice": (
        ("click", "--count", "2", "--button", "right", "--modifier", "shift"),
        {"kind": "click", "count": 2, "button": "right", "modifiers": ["shift"]},
    ),
    "hover": (("hover",), {"kind": "hover"}),
    "type_text": (("type_text", "--submit", "--clear", "hi"), {"kind": "type_text", "text": "hi", "clear": True, "submit": True}),
    "press": (("press", "ctrl+a", "Delete"), {"kind": "press", "chords": ["ctrl+a", "Delete"]}),
    "paste": (("paste", "p"), {"kind": "paste", "text": "p"}),
}  # fmt: skip


@pytest.mark.parametrize("name", ACTIONS)
def test_a_friendly_form_becomes_its_action(desk: Desk, cli: Cli, name: str) -> None:
    words, action = ACTIONS[name]
    said = cli("act", *words, *TARGET, "--json")
    assert said.data["status"] == "succeeded"
    assert desk.acts[0]["action"] == action
    assert desk.acts[0]["target"] == match()["ref"]


def test_every_friendly_form_is_tried_here() -> None:
    tried = {words[0].replace("-", "_") for words, _ in ACTIONS.values()} | {"window", "launch", "open"}
    assert tried == set(FORMS)


def test_a_whole_window_can_be_typed_into_and_changed(desk: Desk, cli: Cli) -> None:
    assert cli("act", "press", "ctrl+q", "--surface", "w7").code == 0
    assert cli("act", "press", "ctrl+q", "--app", "notes").code == 0
    assert cli("act", "window", "move", "10", "20", "--surface", "w7").code == 0
    assert cli("act", "window", "close", "--surface", "w7").code == 0
    assert [request["target"] for request in desk.acts] == [
        {"kind": "surface", "ref": ref} for ref in ("w7", "w1", "w7", "w7")
    ]
    assert desk.acts[2]["action"] == {"kind": "window", "op": "move", "x": 10, "y": 20}


def test_launching_and_opening_need_no_target(desk: Desk, cli: Cli) -> None:
    assert cli("act", "launch", "--", "mousepad", "--line", "3").code == 0
    assert cli("act", "open", "file:///tmp/x").code == 0
    assert desk.acts[0]["action"] == {"kind": "app", "op": "launch", "name": "mousepad", "arguments": ["--line", "3"]}
    assert desk.acts[1]["action"] == {"kind": "open", "uri": "file:///tmp/x"}


def test_options_reach_the_request(desk: Desk, cli: Cli) -> None:
    words = ("--id", "o1", "--risk", "external", "--deadline-ms", "99", "--background", "--reconciles", "o0", "--diff")
    assert cli("act", "invoke", *TARGET, *words, "--verify", '{"kind":"none"}').code == 0
    assert desk.acts[0] == {
        "operation_id": "o1",
        "action": {"kind": "invoke"},
        "target": match()["ref"],
        "risk": "external",
        "deadline_ms": 99,
        "interaction_mode": "background_only",
        "reconciles": "o0",
        "verification": {"kind": "none"},
    }
    assert desk.named("act")[0]["observe_after"] is True


REQUEST = {"operation_id": "o9", "action": {"kind": "invoke"}, "target": match()["ref"]}


def test_a_whole_request_comes_from_a_file_or_standard_input(
    desk: Desk, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "r.json").write_text(json.dumps(REQUEST))
    assert cli("act", "--request", str(tmp_path / "r.json"), "--json").data["operation_id"] == "o9"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(REQUEST).encode())))
    assert cli("act", "--request", "-").code == 0
    assert desk.acts == [REQUEST, REQUEST]


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", '{"operation_id":"a","operation_id":"b"}', '{"x":1.5}', json.dumps({**REQUEST, "principal": "uid:0"}),
     json.dumps({**REQUEST, "target": {"kind": "none"}}), '{"a":"\\ud800"}'],
)  # fmt: skip
def test_a_malformed_request_is_wrong_usage_and_nothing_is_sent(
    desk: Desk, cli: Cli, tmp_path: Path, text: str
) -> None:
    (tmp_path / "r.json").write_text(text)
    said = cli("act", "--request", str(tmp_path / "r.json"), "--json")
    assert said.code == 2
    assert desk.acts == []


# --- looking -----------------------------------------------------------------------------------------------------------


def test_looking(desk: Desk, cli: Cli, tmp_path: Path) -> None:
    fact = {"action": "invoke", "target_kind": "element", "route": "atspi.action", "background": "guarded"}
    answers(
        desk,
        apps={"apps": [{"app": "exe:/usr/bin/notes", "pid": 7, "toolkit": "gtk3", "surfaces": ["w1"]}]},
        observe={"surface": {"surface_id": "w1"}, "scene_id": "s", "generation": 1, "text": "e1 button", "kind": "full"},
        capabilities={"desktop": "d", "isolation": "isolated", "trust_level": "A", "surfaces": {"w1": [fact]}},
        screenshot={"capture": {"capture_id": "c", "width": 1, "height": 1}, "png_base64": "iVBORw=="},
        read_text={"text": "all of it"},
        status={"operation_id": "o1", "known": True, "state": "succeeded", "check": "look"},
    )  # fmt: skip
    assert "exe:/usr/bin/notes" in cli("apps").out
    assert "notes" in cli("surfaces", "notes").out
    assert cli("observe", "notes").out == "e1 button\n"
    assert cli("observe", "--surface", "w1", "--json").data["scene_id"] == "s"
    assert 'e1 button "Save"' in cli("query", "notes", "--role", "button").out
    assert "guarded" in cli("capabilities").out
    assert cli("read", "notes", "--role", "button").out == "all of it\n"
    assert cli("read", "notes", "--role", "button", "--json").data == {"text": "all of it"}
    assert cli("screenshot", str(tmp_path / "a.png"), "--json").data["bytes"] == 4
    assert (tmp_path / "a.png").read_bytes() == b"\x89PNG"
    assert cli("screenshot", str(tmp_path / "no" / "a.png")).code == 3
    assert "succeeded" in cli("status", "o1").out


def test_a_picture_and_json_cannot_share_standard_output(desk: Desk, cli: Cli) -> None:
    assert cli("screenshot", "-", "--json").code == 2
    assert desk.named("screenshot") == []


def test_waiting_for_a_value_asks_for_it(desk: Desk, cli: Cli) -> None:
    cli("wait", "calc", "--role", "text", "--value", "408", "--title", "Calc", "--timeout", "0.2", "--mode", "any")
    (asked,) = desk.named("wait")
    assert asked["conditions"] == [
        {"kind": "title_contains", "contains": "Calc"},
        {
            "kind": "element_exists",
            "query": {"filters": [{"role": "text"}, {"value": {"text": "408"}}], "max_results": 1},
        },
    ]
    assert (asked["mode"], asked["timeout_ms"]) == ("any", 200)


def test_the_desktop_wish_reaches_the_hello(desk: Desk, cli: Cli) -> None:
    cli("surfaces", "--desktop", "work")
    assert desk.opened[0].desktop == "work"


def test_nothing_from_a_screen_reaches_a_terminal_as_a_command(desk: Desk, cli: Cli) -> None:
    evil = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202egnp.exe\r"
    desk.matches = [[match(name=evil, context=evil, value=evil)]]
    answers(
        desk,
        observe={"surface": "w", "scene_id": "s", "generation": 1, "text": evil, "kind": "full"},
        apps={"apps": [{"app": evil, "pid": 1}]},
        read_text={"text": evil},
        surfaces={"surfaces": [{"surface_id": "w1", "title": evil, "app": evil}]},
    )
    desk.replies = [
        lambda i: reply(
            i,
            "refused",
            error={"code": "stale_target", "message": evil, "retry_safe": True, "observed": {"candidates": [evil]}},
        )
    ]
    for words in (
        ("observe", "n"),
        ("apps",),
        ("surfaces",),
        ("query", "n", "--role", "button"),
        ("read", "n", "--role", "text"),
        ("act", "invoke", "--app", "n", "--role", "button", "--timeout", "0"),
    ):
        plain = cli(*words)
        in_json = cli(*words, "--json")
        for text in (plain.out, plain.err, in_json.out):
            assert not set(text) & set("\x1b\x07\x9b\u202e\r"), (words, text)
    assert cli("observe", "n", "--json").data["text"] == evil


def test_json_escapes_keep_the_value() -> None:
    for text in ("plain", "ünïcode €", "漢", "\u202e", "\U000e0001", "\x9b", "a\x00b", "😀"):
        written = output._escaped(json.dumps(text, ensure_ascii=False))
        assert json.loads(written) == text
    assert "€" in output._escaped(json.dumps("€", ensure_ascii=False))


def test_a_table_keeps_its_columns_with_wide_and_hostile_cells() -> None:
    lines = output.table(("A", "B"), [("漢字", 1), ("e\u0301", True), ("x\ny", None), ([], ["a", "b"])])
    assert lines == ["A     B", "漢字  1", "e\u0301     yes", "x⏎y   -", "-     a, b"]


# --- operating -----------------------------------------------------------------------------------------------------------


def test_operating(desk: Desk, cli: Cli) -> None:
    session = {
        "session": "s1",
        "principal": "uid:0",
        "role": "agent",
        "client": {"name": "bot", "pid": "9"},
        "desktop": "d",
    }
    answers(
        desk,
        ps={"sessions": [session], "unresolved": [{"principal": "uid:7", "operation_id": "o1"}], "in_flight": [], "desktops": []},
        resolve={"operation_id": "o1", "verdict": "happened"},
        policy={"revision": "r1", "rules": 2},
        desktop__list={"desktops": [{"name": "work", "display": ":90", "isolation": "isolated", "geometry": [1280, 800]}]},
        desktop__start={"name": "work", "display": ":90", "isolation": "isolated"},
        desktop__stop={"name": "work"},
        desktop__launch={"pid": 12},
    )  # fmt: skip
    shown = cli("ps").out
    assert "bot" in shown
    assert "unresolved: 1\nPRINCIPAL  OPERATION ID\nuid:7      o1\n" in shown
    assert cli("resolve", "o1", "happened").code == 0
    assert desk.named("resolve") == [{"principal": "uid:7", "operation_id": "o1", "verdict": "happened"}]
    assert cli("resolve", "o2", "happened", "--json").error["details"]["principals"] == []
    assert cli("resolve", "o2", "not_happened", "--principal", "uid:9").code == 0
    assert "r1" in cli("policy", "show").out
    assert "1280x800" in cli("desktop", "list").out
    assert cli("desktop", "start", "--name", "work", "--geometry", "800x600").code == 0
    assert desk.named("desktop.start") == [{"width": 800, "height": 600, "name": "work"}]
    assert cli("desktop", "start", "--bind", "a/../b", "--bind", "/c", "--bind-writable", "/d").code == 0
    assert desk.named("desktop.start")[1:] == [
        {"width": 1280, "height": 800, "binds": [str(Path.cwd() / "b"), "/c"], "writable": ["/d"]}
    ]
    assert cli("desktop", "stop", "work").code == 0
    assert "12" in cli("desktop", "launch", "work", "--", "mousepad", "--json").out
    assert desk.named("desktop.launch") == [{"name": "work", "argv": ["mousepad", "--json"]}]


def test_stopping_ends_the_daemon_after_its_answer(desk: Desk, cli: Cli) -> None:
    answers(desk, stop={"stopping": True})
    assert cli("stop", "--json").data == {"stopping": True}
    until(lambda: desk.run.server.ending)  # type: ignore[attr-defined]


# --- approvals -----------------------------------------------------------------------------------------------------------


def question(**facts: Any) -> PendingApproval:
    shown = {
        "principal": "uid:1000",
        "app": "exe:/usr/bin/mail",
        "place": "main",
        "element": "button Send",
        "context": "",
        "action": "desktop.invoke",
        "parameters": {"text": "hello"},
        "risk": "external",
        "categories": ["send"],
        "reason": "sends something",
        "action_hash": "a" * 64,
        **facts,
    }
    import time

    now = round(time.time() * 1000)
    return ask(convert(Presentation, shown), approval_id="ap1", operation_id="o1", now_ms=now - 1000)


def test_approvals_are_shown_exactly_and_safely(desk: Desk, cli: Cli) -> None:
    pending = question(element="button \x1b[2J\u202edneS")
    answers(desk, approvals={"pending": [to_value(pending)]})
    assert "ap1" in cli("approvals", "list").out
    shown = cli("approvals", "show", "ap1").out
    for part in (
        "uid:1000",
        "exe:/usr/bin/mail",
        "desktop.invoke",
        "hello",
        "external",
        "send",
        pending.presentation_hash,
    ):
        assert part in shown
    assert not set(shown) & set("\x1b\u202e")
    assert cli("approvals", "show", "ap2", "--json").code == 2


def test_the_list_of_approvals_says_which_program_is_to_be_launched(desk: Desk, cli: Cli) -> None:
    pending = question(action="process.run", element="", place="", app="launch:xterm")
    answers(desk, approvals={"pending": [to_value(pending)]})
    assert "launch:xterm" in cli("approvals", "list").out


def test_an_answer_is_signed_for_what_was_shown_and_nothing_else(desk: Desk, cli: Cli, tmp_path: Path) -> None:
    keys = ("--keys", str(tmp_path / "keys"))
    made = cli("keys", "create", "ann", *keys, "--json").data
    assert made["public_key"] in made["config"]
    pending = question()
    answers(desk, approvals={"pending": [to_value(pending)]}, answer={"approval_id": "ap1", "state": "approved"})
    assert cli("approvals", "approve", "ap1", "--yes", "--reason", "fine", *keys).code == 0
    sent = convert(ApprovalAnswer, desk.named("answer")[0]["answer"])
    approver = Approver(approver="ann", key_id=made["key_id"], public_key=made["public_key"])
    import time

    now = round(time.time() * 1000)
    assert check_answer(sent, pending, [approver], ed25519.verify, now_ms=now) == approver
    assert (sent.answer, sent.reason) == ("approve", "fine")
    other = question(element="button Delete all")
    with pytest.raises(AuthorityDenied):
        check_answer(sent, other, [approver], ed25519.verify, now_ms=now)
    assert cli("approvals", "deny", "ap1", *keys).code == 0
    assert desk.named("answer")[1]["answer"]["answer"] == "deny"


def test_a_yes_for_a_while_is_for_what_was_shown_and_signed_with_it(desk: Desk, cli: Cli, tmp_path: Path) -> None:
    keys = ("--keys", str(tmp_path / "keys"))
    cli("keys", "create", "ann", *keys)
    answers(desk, approvals={"pending": [to_value(question())]}, answer={"approval_id": "ap1", "state": "approved"})
    said = cli("approvals", "approve", "ap1", "--yes", "--uses", "20", "--minutes", "30", *keys)
    (sent,) = desk.named("answer")
    grant = sent["answer"]["standing"]
    assert f"standing revoke {grant['grant_id']}" in said.out
    assert (grant["app"], grant["place"], grant["actions"], grant["uses_max"], grant["issued_by"]) == (
        "exe:/usr/bin/mail", "main", ["desktop.invoke"], 20, "ann",
    )  # fmt: skip
    assert cli("approvals", "approve", "ap1", "--yes", "--uses", "10001", *keys).code == 2


def test_what_changed_since_a_yes_is_shown(desk: Desk, cli: Cli) -> None:
    before = question(element="button Pay 10")
    now = question(element="button Pay 9999").presentation
    after = ask(
        now, approval_id="ap2", operation_id="o1", now_ms=before.requested_at_ms, instead_of=before, was_approved=True
    )
    answers(desk, approvals={"pending": [to_value(after)]})
    shown = cli("approvals", "show", "ap2").out
    assert "changed since it was approved as ap1, which is void" in shown
    assert "was button Pay 10\n" in shown
    assert "is  button Pay 9999\n" in shown


def test_a_plan_is_shown_with_every_step(desk: Desk, cli: Cli) -> None:
    steps = [
        question(element=element, parameters=parameters, action=action).presentation
        for element, parameters, action in (
            ("text To", {"value": "carol \x1b[2J"}, "desktop.set_value"),
            ("button Send", {}, "desktop.invoke"),
        )
    ]
    plan = ask(
        present_plan(steps, reason="sends"), approval_id="ap9", operation_id="o1", now_ms=question().requested_at_ms
    )
    answers(desk, approvals={"pending": [to_value(plan)]})
    shown = cli("approvals", "show", "ap9").out
    for text in ("a plan of 2 steps", "1. desktop.set_value  text To", "carol", "2. desktop.invoke  button Send"):
        assert text in shown
    assert "\x1b" not in shown


def test_a_key_can_be_destroyed(cli: Cli, tmp_path: Path) -> None:
    keys = ("--keys", str(tmp_path / "keys"))
    made = cli("keys", "create", "ann", *keys, "--json").data
    assert cli("keys", "remove", "ann", *keys, "--json").code == 2
    assert cli("keys", "remove", "ann", "--yes", *keys, "--json").data["key_id"] == made["key_id"]
    assert cli("keys", "show", *keys, "--json").data["approvers"] == []
    assert cli("keys", "remove", "ann", "--yes", *keys, "--json").code == 3


def test_a_presentation_that_was_swapped_is_signed_as_shown_not_as_claimed(tmp_path: Path) -> None:
    shown = question()
    lying = PendingApproval(
        **{**{f: getattr(shown, f) for f in shown.__struct_fields__}, "presentation_hash": "b" * 64}
    )
    key = ed25519.SigningKey(b"k" * 32)
    signed = signed_answer(lying, "approve", approver="ann", key=key)
    assert signed.presentation_hash == presentation_hash(shown.presentation)
    assert ed25519.verify(bytes.fromhex(key.public_key), answer_message(signed), bytes.fromhex(signed.signature))


def test_without_a_terminal_a_yes_must_be_said_outright(desk: Desk, cli: Cli, tmp_path: Path) -> None:
    cli("keys", "create", "ann", "--keys", str(tmp_path / "keys"))
    answers(desk, approvals={"pending": [to_value(question())]})
    said = cli("approvals", "approve", "ap1", "--keys", str(tmp_path / "keys"), "--json")
    assert said.code == 2
    assert desk.named("answer") == []


def test_without_a_key_nobody_can_answer(desk: Desk, cli: Cli, tmp_path: Path) -> None:
    answers(desk, approvals={"pending": [to_value(question())]})
    said = cli("approvals", "approve", "ap1", "--yes", "--keys", str(tmp_path / "keys"), "--json")
    assert "keys create" in said.error["fix"]
    assert desk.named("answer") == []


def test_a_second_key_of_one_name_is_refused_and_the_first_stays(cli: Cli, tmp_path: Path) -> None:
    keys = ("--keys", str(tmp_path / "keys"))
    first = cli("keys", "create", "ann", *keys, "--json").data
    assert cli("keys", "create", "ann", *keys, "--json").error["code"] == "conflict"
    assert cli("keys", "show", *keys, "--json").data["approvers"][0]["key_id"] == first["key_id"]


def test_standing_grants(desk: Desk, cli: Cli, tmp_path: Path) -> None:
    keys = ("--keys", str(tmp_path / "keys"))
    made = cli("keys", "create", "ann", *keys, "--json").data
    answers(
        desk,
        standing__grant={"grant_id": "g"},
        standing__list={"grants": [{"grant_id": "g", "principal": "p", "app": "a", "actions": ["x"], "risk_max": "read", "uses_left": 3}]},
        standing__revoke={"grant_id": "g"},
    )  # fmt: skip
    words = ("--principal", "uid:7", "--app", "exe:/a", "--action", "desktop.invoke", "--uses", "3", *keys)
    assert cli("standing", "grant", *words).code == 0
    sent = desk.named("standing.grant")[0]
    grant = sent["grant"]
    assert (grant["uses_max"], grant["actions"], grant["issued_by"]) == (3, ["desktop.invoke"], "ann")
    message = standing_message(convert(StandingGrant, grant))
    assert ed25519.verify(bytes.fromhex(made["public_key"]), message, bytes.fromhex(sent["signature"]))
    assert "g" in cli("standing", "list").out
    assert cli("standing", "revoke", "g").code == 0
    assert cli("standing", "grant", *words, "--uses", "10001").code == 2


# --- evidence ------------------------------------------------------------------------------------------------------------


def test_a_verdict_decides_the_exit_code(desk: Desk, cli: Cli) -> None:
    answers(desk, audit__verify={"ok": True, "events": 12, "head": "ab", "reason": "whole"})
    assert cli("audit", "verify", "--json").data["events"] == 12
    answers(desk, audit__verify={"ok": False, "events": 3, "reason": "a hash differs", "seq": 4})
    said = cli("audit", "verify", "--json")
    assert (said.code, said.error["code"], said.error["details"]["seq"]) == (1, "journal_recovery", 4)


def test_a_file_that_is_no_journal_is_not_whole_and_not_broken(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"hello")
    assert cli("audit", "verify", str(tmp_path / "x"), "--json").code in {1, 3}
    assert cli("audit", "verify", str(tmp_path / "none"), "--json").code == 3


def test_an_evidence_page_is_one_file_without_a_script_and_everything_in_it_is_escaped(
    desk: Desk, cli: Cli, tmp_path: Path
) -> None:
    evil = "<script>alert(1)</script>\u202e"
    event = {"seq": 1, "occurred_at": evil, "type": evil, "actor": evil, "record_hash": evil, "payload": {"kind": evil}}
    found = {"operations": {f"operation/{evil}": [event]}, "verdict": {"ok": True, "reason": evil}, "head": {"seq": 1}}
    answers(desk, audit__report=found, audit__show={"events": [{**event, "stream": evil}], "after_seq": 1})
    assert cli("audit", "report", str(tmp_path / "e.html")).code == 0
    html = (tmp_path / "e.html").read_text()
    assert "<script" not in html
    assert "\u202e" not in html
    assert "&lt;script&gt;" in html
    assert "\u202e" not in cli("audit", "show", "--operation", "o1").out
    assert desk.named("audit.show") == [{"after_seq": 0, "limit": 100, "operation_id": "o1"}]


def test_a_page_of_events_that_is_full_says_how_to_go_on(desk: Desk, cli: Cli) -> None:
    event = {"seq": 7, "occurred_at": "t", "type": "y", "actor": "a", "stream": "s", "record_hash": "h" * 64}
    answers(desk, audit__show={"events": [event], "after_seq": 7})
    assert cli("audit", "show").err == ""
    assert "--after 7" in cli("audit", "show", "--limit", "1").err
    assert cli("audit", "show", "--limit", "1", "--json").err == ""


# --- the machine -----------------------------------------------------------------------------------------------------------


def test_doctor_says_what_is_missing_how_to_fix_it_and_changes_nothing(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from surehand.daemon import entry

    monkeypatch.setenv("SUREHAND_RUNTIME_DIR", str(tmp_path / "run"))
    good = {"name": "Xvfb", "ok": True, "detail": "there", "fix": None, "needed": True}
    bad = {"name": "openbox", "ok": False, "detail": "not installed", "fix": "apt install openbox", "needed": True}
    monkeypatch.setattr(entry, "doctor_facts", lambda: [good])
    assert cli("doctor", "--json").data["desktops_work"] is True
    monkeypatch.setattr(entry, "doctor_facts", lambda: [good, bad])
    said = cli("doctor")
    assert said.code == 3
    assert "fix: apt install openbox" in said.out
    assert cli("doctor", "--json").error["fix"] == "apt install openbox"
    monkeypatch.setattr(entry, "doctor_facts", lambda: [good, {**bad, "needed": False}])
    assert cli("doctor").code == 0
    assert "Trust level A" in cli("doctor").out
    assert not (tmp_path / "run").exists()


def test_doctor_tells_what_the_daemon_says_of_itself_once(cli: Cli, desk: Desk) -> None:
    vault = {"name": "vault", "ok": False, "needed": False, "detail": "the vault is locked", "fix": "unlock it"}
    told = [
        vault,
        *({"name": name, "ok": True, "needed": True, "detail": "x"} for name in ("daemon", "policy", "Xvfb")),
    ]
    answers(desk, ps={"sessions": [{}]}, health={"facts": told}, policy={}, keys={})
    envelope = cli("doctor", "--json").envelope
    facts = (envelope.get("data") or envelope["error"]["details"])["facts"]
    names = [fact["name"] for fact in facts]
    assert {name: names.count(name) for name in ("vault", "daemon", "policy", "Xvfb", "console")} == dict.fromkeys(
        ("vault", "daemon", "policy", "Xvfb", "console"), 1
    )
    assert "lack vault                    the vault is locked\n     fix: unlock it" in cli("doctor").out
    assert "runs, 1 session\n" in cli("doctor").out


def test_the_support_bundle_holds_no_content(
    desk: Desk, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from surehand.daemon import entry

    content = "Payroll of Carol"
    home = tmp_path / "home-of-carol"
    home.mkdir()
    # What the daemon goes by, whatever HOME says.
    real, name = "/home/carols-real-one", "carol-of-the-database"
    monkeypatch.setattr(pwd, "getpwuid", lambda _: SimpleNamespace(pw_dir=real, pw_name=name))
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setattr(
        entry,
        "doctor_facts",
        lambda: [
            {"name": "x", "ok": True, "detail": f"{home}/x {real}/.local /tmp/{name}/y", "fix": None, "needed": False}
        ],
    )
    answers(
        desk,
        ps={
            "sessions": [{"client": {"name": content}}],
            "unresolved": [{"operation_id": content}],
            "desktops": [{"name": content}],
        },
        policy={"revision": "r"},
    )
    said = cli("support-bundle", str(tmp_path / "b.tar.gz"), "--json")
    assert said.data["parts"] == ["daemon.json", "doctor.json", "log-end.txt", "versions.json"]
    text = ""
    with tarfile.open(tmp_path / "b.tar.gz") as bundle:
        for member in bundle.getmembers():
            file = bundle.extractfile(member)
            assert file is not None
            text += file.read().decode()
    assert content not in text
    for words in ("home-of-carol", real, name):
        assert words not in text
    assert '"sessions": 1' in text
    assert (tmp_path / "b.tar.gz").stat().st_mode & 0o077 == 0


def test_the_version_is_said(cli: Cli) -> None:
    assert cli("version", "--json").data["surehand"]
    assert cli("--version").out == cli("version").out != ""
    assert cli("--version", "--json").data == cli("version", "--json").data


def test_a_broken_configuration_is_found_before_a_daemon_is(cli: Cli, tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text("polcy = 'x'")
    config.chmod(0o600)
    tmp_path.chmod(0o700)
    said = cli("policy", "check", "--config", str(config), "--json")
    assert said.code == 2
    assert "polcy" in said.error["message"]
    config.write_text("approval_minutes = 5\n")
    assert cli("policy", "check", "--config", str(config), "--json").data["trust_level"] == "A"


def test_colours_need_a_terminal_that_wants_them(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert output.Output.coloured("x", "good", Terminal()) == "\x1b[32mx\x1b[0m"
    assert output.Output.coloured("x", "good", io.StringIO()) == "x"
    monkeypatch.setenv("NO_COLOR", "1")
    assert output.Output.coloured("x", "good", Terminal()) == "x"


def test_operations_are_listed_with_where_older_ones_are_and_nothing_acts_on_the_terminal(desk: Desk, cli: Cli) -> None:
    one = {"changed_at": "2026-11-30T10:00:00.000Z", "principal": "uid:7", "operation_id": "op-1", "seq": 9}
    one |= {"effect": "desktop.invoke", "app": "exe:/usr/bin/\x1b[2Jmail", "outcome": "refused", "rule": "no-mail"}
    answers(desk, operations={"operations": [one], "next": 9, "looked_at": 1})
    said = cli("audit", "list", "mail", "--outcome", "refused", "--limit", "1")
    assert said.code == 0
    assert "no-mail" in said.out
    assert "\x1b[2J" not in said.out
    assert "--before 9" in said.err
    assert cli("audit", "list", "--limit", "1", "--json").data["operations"] == [one]


def test_the_mode_is_shown_in_words(desk: Desk, cli: Cli) -> None:
    answers(desk, mode={"mode": "ask", "by": "", "since_ms": 0})
    assert cli("mode", "show").out.strip() == "ask: a person answers"
