"""`surehand policy`: what an operator writes, checks, tries and asks, without a daemon and with one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from surehand.core.policy.suggest import as_rules, habits_of
from surehand.core.policy.toml_rules import read_rules
from surehand.core.policy.warnings import warnings_of
from surehand.model.events import Event
from tests.unit.cli.conftest import Cli, cli
from tests.unit.client.conftest import Desk, desk

__all__ = ["cli", "desk"]


def rule(name: str, effect: str = "allow", more: str = "", **match: object) -> str:
    conditions = "".join(f"{field} = {json.dumps(value)}\n" for field, value in match.items())
    return f'[[rule]]\nid = "{name}"\neffect = "{effect}"\nreason = "r"\n{more}[rule.match]\n{conditions}'


def policy(*rules: str) -> str:
    return "version = 1\n" + "".join(rules)


@pytest.fixture
def file(tmp_path):
    def write(text: str, name: str = "policy.toml") -> str:
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return write


# --- init -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", ["careful", "office", "ci"])
def test_a_preset_is_written_for_the_operator_alone_and_is_right(preset, tmp_path, cli: Cli):
    path = tmp_path / "folder" / "policy.toml"
    assert cli("policy", "init", "--preset", preset, str(path), "--json").data["file"] == str(path)
    assert path.stat().st_mode & 0o777 == 0o600
    checked = cli("policy", "check", str(path), "--json").data
    assert (checked["ok"], checked["warnings"]) == (True, [])
    # Every rule has a comment in plain words above it.
    for block in path.read_text().split("[[rule]]")[:-1]:
        assert "\n# " in block


def test_a_policy_that_is_there_is_not_replaced_unasked(file, cli: Cli):
    path = file("mine")
    assert cli("policy", "init", path).code == 2
    assert Path(path).read_text() == "mine"
    assert cli("policy", "init", path, "--force").code == 0
    assert cli("policy", "check", path).code == 0
    assert [one.name for one in Path(path).parent.iterdir()] == ["policy.toml"]


OFFICE = """version = 1
[[case]]
name = "may edit in the editor"
expect = "allow"
rule = "editor"
action = "desktop.type_text"
app = "exe:/usr/bin/mousepad"
isolation = "shared"
[[case]]
name = "asks before anything is sent"
expect = "ask"
action = "desktop.invoke"
app = "exe:/usr/bin/thunderbird"
observed = { role = "button", name = "Send" }
[[case]]
name = "asks before the editor sends"
expect = "ask"
action = "desktop.invoke"
app = "exe:/usr/bin/mousepad"
observed = { role = "button", name = "Senden" }
[[case]]
name = "does not read the password manager"
expect = "deny"
action = "desktop.observe"
app = "exe:/usr/bin/keepassxc"
[[case]]
name = "does not touch it"
expect = "deny"
action = "desktop.invoke"
app = "exe:/opt/other/keepassxc"
[[case]]
name = "nor what looks like it"
expect = "deny"
action = "desktop.invoke"
app = "exe:/opt/vault"
observed = { title = "Passwords.kdbx - KeePassXC" }
[[case]]
name = "asks before it changes other applications"
expect = "ask"
action = "desktop.invoke"
app = "exe:/usr/bin/gnome-calculator"
isolation = "shared"
[[case]]
name = "runs nothing from the editor"
expect = "ask"
action = "process.run"
app = "exe:/usr/bin/mousepad"
"""


@pytest.mark.parametrize("engine", ["builtin", "rego", "cedar"])
def test_the_office_preset_holds_what_it_says_on_every_engine(engine, tmp_path, file, cli: Cli):
    path = str(tmp_path / "office.toml")
    assert cli("policy", "init", path).code == 0
    said = cli("policy", "test", file(OFFICE, "cases.toml"), path, "--engine", engine)
    assert said.code == 0, said.out
    assert "8 of 8 cases as expected" in said.out


# --- check ----------------------------------------------------------------------------------------------------------


def test_what_is_wrong_is_said_with_line_column_and_what_was_expected(file, cli: Cli):
    path = file(
        'version = 1\n\n[[rule]]\nid = "a"\n  effect = "alow"\nreason = "r"\n[[rule]]\nid = "b"\neffect = "deny"\nreason = "r"\nmatch.acton = ["x"]\n'
    )
    said = cli("policy", "check", path)
    assert said.code == 1
    assert f"{path}:5:3: rule a: 'alow' is no effect" in said.out
    assert "expected: allow?" in said.out
    assert f"{path}:11:1: rule b: acton is no part of a rule" in said.out
    assert "expected: action?" in said.out
    problems = cli("policy", "check", path, "--json").error["details"]["problems"]
    assert [(one["line"], one["column"]) for one in problems] == [(5, 3), (11, 1)]


@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        ("p.toml", "version = 1\n[[rule]]\nid = ", "p.toml:3:6"),
        ("p.rego", "package surehand\nimport rego.v1\ndecision := foo(", "p.rego:3:"),
        (
            "p.cedar",
            "permit (principal, action, resource);\n\nforbid (principal, action, resource) whn { true };",
            "line 3",
        ),
    ],
)
def test_every_kind_of_file_is_checked_and_the_place_named(name, text, place, file, cli: Cli):
    said = cli("policy", "check", file(text, name))
    assert said.code == 1
    assert place in said.out


def test_a_policy_that_says_nothing_is_warned_of(file, cli: Cli):
    said = cli("policy", "check", file("package surehand\nimport rego.v1\nother := 1\n", "p.rego"))
    assert said.code == 0
    assert "nothing would be allowed" in said.out


@pytest.mark.parametrize("words", [("check", "{}/none.toml"), ("check", "{}/none.txt"), ("test", "{}/none.toml"), ("explain", "{}/none"), ("explain",), ("suggest",)])  # fmt: skip
def test_what_is_not_there_is_wrong_usage(words, tmp_path, cli: Cli):
    assert cli("policy", *(word.format(tmp_path) for word in words)).code == 2


WARNED = {
    "a misspelt effect": rule("x", action=["desktop.klick"]),
    "a pattern of no effect": rule("x", action=["desktop.invoke", "web.*"]),
    "a name instead of an identity": rule("x", app=["mousepad"]),
    "an origin with a path": rule("x", place=["https://example.org/shop"]),
    "an origin": rule("x", place=["https://example.org", "https://example.net"]),
    "an interpreter": rule("x", app=["exe:/usr/bin/python3.11"]),
    "reading by changing": rule("x", action=["desktop.invoke"], risk=["read"]),
    "a harmless program": rule("x", action=["process.run"], risk=["reversible"]),
    "an isolated desktop that is shared": rule("x", "deny", isolation=["isolated"], category=["shared_desktop"]),
    "allowed within what is denied": rule("wide", "deny", app=["exe:/usr/bin/*"]) + rule("x", app=["exe:/usr/bin/a"]),
    "denied later": rule("x", app=["exe:/usr/bin/a*b"]) + rule("wide", "deny", app=["exe:*"]),
    "asked about within what is denied": rule("wide", "deny", risk=["external", "destructive"])
    + rule("x", "require_approval", risk=["external"]),
    "allowed within what is asked about": rule("wide", "require_approval") + rule("x", app=["exe:/usr/bin/a"]),
    "said twice": rule("wide", app=["exe:/usr/bin/a", "exe:/usr/bin/b"])
    + rule("x", app=["exe:/usr/bin/b"], risk=["reversible"]),
    "denied by what the screen says": rule("wide", "deny", more="match.observed.name = ['*Delete*']\n").replace(
        "[rule.match]\n", ""
    )
    + rule("x", "require_approval", more="match.observed.name = ['DELETE all']\n").replace("[rule.match]\n", ""),
}
NOT_WARNED = {
    "a window's role beside an origin": rule("x", place=["main", "https://example.org"]),
    "a narrower deny": rule("wide") + rule("x", "deny", app=["exe:/usr/bin/a"]),
    "what covers more": rule("wide", app=["exe:*"]) + rule("x", more='covers = ["purchase"]\n', app=["exe:/usr/bin/a"]),
    "what covers under a question": rule("wide", "require_approval")
    + rule("x", more='covers = ["purchase"]\n', app=["exe:/a"]),
    "patterns that only overlap": rule("wide", "deny", app=["exe:/usr/*/a"]) + rule("x", app=["exe:/usr/bin/*"]),
    "other people": rule("wide", "deny", principal=["uid:1"]) + rule("x", principal=["uid:2"]),
    "every effect": rule("x", action=["desktop.*", "browser.select_*", "process.run"]),
    "reading": rule("x", action=["desktop.observe", "desktop.screenshot.*"], risk=["read"]),
    "more approvals": rule("wide", "require_approval")
    + rule("x", "require_approval", more="approvals = 2\n", app=["exe:/a"]),
    "an observed condition beside none": rule("wide", "deny", more="match.observed.name = ['*']\n").replace(
        "[rule.match]\n", ""
    )
    + rule("x", "require_approval"),
    "a script": rule("x", app=["script:/usr/bin/python3:/srv/tool.py"]),
}


@pytest.mark.parametrize("name", WARNED)
def test_rules_that_can_never_match_or_decide_are_warned_of(name):
    assert [one.rule for one in warnings_of(read_rules(policy(WARNED[name])))] == ["x"]


@pytest.mark.parametrize("name", NOT_WARNED)
def test_rules_that_may_decide_are_not_warned_of(name):
    assert warnings_of(read_rules(policy(NOT_WARNED[name]))) == []


def test_a_warning_has_a_place_and_stops_nothing(file, cli: Cli):
    path = file(policy(WARNED["a misspelt effect"]))
    said = cli("policy", "check", path)
    assert said.code == 0
    assert f"{path}:7:1: rule x: no effect is called desktop.klick" in said.out


# --- explain --------------------------------------------------------------------------------------------------------


def test_explain_names_the_rule_that_decides_and_every_other_that_matches(file, cli: Cli):
    own = file(policy(rule("editor", more='covers = ["shared_desktop"]\n', app=["exe:/usr/bin/mousepad"])))
    request = file(
        'action = "desktop.invoke"\napp = "exe:/usr/bin/mousepad"\nisolation = "shared"\nobserved = { name = "Delete" }\n',
        "request.toml",
    )
    said = cli("policy", "explain", request, own, "--json").data
    assert (said["outcome"], said["rule"]) == ("require_approval", "default.consequential")
    blind, seen = said["looks"]
    assert (blind["outcome"], blind["rule"]) == ("allow", "editor")
    assert seen["categories"] == ["destructive", "shared_desktop"]
    gave_way = {one["rule"]: one["stands"] for one in seen["matched"]}
    assert gave_way["default.shared-mutation"] is False
    text = cli("policy", "explain", request, own).out
    assert text.startswith("require_approval by default.consequential:")
    assert "without the screen:" in text


def test_explain_takes_the_input_that_an_engine_is_asked(file, cli: Cli):
    from surehand.core.policy.engine import input_value
    from tests.rules_kit import document

    request = file(json.dumps(input_value(document(), {})), "request.json")
    for name, text in (
        ("own.cedar", '@id("c") @reason("r") forbid (principal, action, resource);'),
        ("own.toml", policy(rule("c", "deny"))),
    ):
        assert cli("policy", "explain", request, file(text, name), "--json").data["rule"] == "c"


def test_translated_rules_decide_the_same(tmp_path, file, cli: Cli):
    path = str(tmp_path / "office.toml")
    cli("policy", "init", path)
    cases = file(OFFICE, "cases.toml")
    for engine in ("rego", "cedar"):
        folder = tmp_path / engine
        assert cli("policy", "translate", path, str(folder), "--to", engine).code == 0
        given = folder if engine == "rego" else folder / "policy.cedar"
        said = cli("policy", "test", cases, str(given))
        assert said.code == 0, said.out


@pytest.mark.parametrize(
    "text",
    ["", "version = 1\n", "[[case]]\nname = 'x'\n", "case = 5", "[[case]]\nname = 'x'\nexpect = 'maybe'\naction = 'desktop.invoke'\n",
     "[[case]]\nname = 'x'\nexpect = 'ask'\naction = 'desktop.klick'\n", "[[case]]\nname = 'x'\nexpect = 'ask'\naction = 'desktop.invoke'\ncolour = 1\n", "= 1"],
)  # fmt: skip
def test_a_broken_table_of_cases_is_wrong_usage(text, file, cli: Cli):
    path = file(policy(), "p.toml")
    assert (
        cli("policy", "test", file(text if "version" in text else f"version = 1\n{text}", "cases.toml"), path).code == 2
    )


# --- suggest --------------------------------------------------------------------------------------------------------


def event(kind: str, seq: int, actor: str = "uid:7", **payload: object) -> Event:
    known = {"app": "exe:/usr/bin/mousepad", "place": "main", "effect": "desktop.invoke"}
    return Event(
        seq=seq, event_id=f"e{seq}", stream=f"operation/{actor}/op{seq}", stream_version=1, type=kind, occurred_at="2026-11-30T00:00:00.000Z",
        actor=actor, context={}, payload={**known, **payload}, prev_hash="0" * 64, record_hash="0" * 64,
    )  # fmt: skip


def approved(seq: int, rule_id: str = "default.shared-mutation", **payload: object) -> Event:
    return event("operation.claimed.v1", seq, approval_id=f"a{seq}", decision={"rule": rule_id}, **payload)


def test_what_was_approved_again_and_again_is_proposed_as_a_rule_that_works():
    text = as_rules(habits_of([approved(1), approved(2), approved(3, effect="desktop.set_value")], least=3))
    (found,) = read_rules(text)
    assert found.match.action == ("desktop.invoke", "desktop.set_value")
    assert found.match.app == ("exe:/usr/bin/mousepad",)
    assert (found.match.principal, found.covers, found.match.risk) == (("uid:7",), ("shared_desktop",), ("reversible",))
    assert warnings_of([found]) == []


@pytest.mark.parametrize(
    "events",
    [
        [approved(1), approved(2)],
        [event("operation.claimed.v1", n, decision={"rule": "editor"}) for n in range(5)],
        [approved(n, "default.consequential") for n in range(5)],
        [approved(n, "my-question") for n in range(5)],
        [approved(n, app="exe:/usr/bin/python3") for n in range(5)],
        [approved(n, app="") for n in range(5)],
        [*(approved(n) for n in range(5)), event("operation.refused.v1", 9, code="approval_denied")],
    ],
    ids=[
        "too seldom",
        "not asked about",
        "consequential",
        "an operator's own question",
        "an interpreter",
        "no application",
        "once refused",
    ],
)
def test_what_a_habit_should_not_open_is_not_proposed(events):
    assert read_rules(as_rules(habits_of(events, least=3))) == ()


def test_hostile_names_stay_text_in_what_is_proposed():
    hostile = 'exe:/tmp/"]\n[[rule]]\nid = "all"\neffect = "allow"\nreason = "\u202e*'
    (found,) = read_rules(as_rules(habits_of([approved(n, app=hostile, place='a\n"b') for n in range(3)], least=3)))
    assert found.match.app == (hostile,)


def test_the_configured_policy_and_the_one_that_is_tried_are_both_checked(tmp_path, cli: Cli):
    tmp_path.chmod(0o700)
    config = tmp_path / "config.toml"
    config.write_text(f'[shadow_policy]\nfile = "{tmp_path}/tried.toml"\n')
    (tmp_path / "policy.toml").write_text(policy(rule("a")))
    (tmp_path / "tried.toml").write_text(policy(rule("b"), "colour = 1\n"))
    said = cli("policy", "check", "--config", str(config))
    assert said.code == 1
    assert f"{tmp_path}/policy.toml: 1 rules" in said.out
    assert f"{tmp_path}/tried.toml:7:1: rule b: colour is no part of a rule" in said.out


def test_a_policy_that_is_not_as_it_should_be_has_one_code_one_exit_code_and_a_fix(file, cli: Cli):
    broken = cli("policy", "check", file("version = "), "--json")
    assert (broken.code, broken.error["code"]) == (1, "policy_denied")
    assert broken.error["fix"]
    failing = cli("policy", "test", file(OFFICE, "cases.toml"), file(policy(), "p.toml"), "--json")
    assert (failing.code, failing.error["code"]) == (1, "verification_failed")
    assert failing.error["details"]["failed"] > 0
    assert failing.error["fix"]


@pytest.mark.parametrize("words", [("check", "{}"), ("check", "{}.toml"), ("test", "{}"), ("explain", "{}")])
def test_a_file_that_is_not_there_is_named_once_with_a_fix(words, tmp_path, cli: Cli):
    missing = str(tmp_path / "none")
    said = cli("policy", *(word.format(missing) for word in words), "--json")
    assert (said.code, said.error["code"]) == (2, "invalid_request")
    assert said.error["message"].count(missing) == 1
    assert "Errno" not in said.error["message"]
    assert said.error["fix"]


def test_a_configuration_that_is_not_there_is_said_to_be_missing(tmp_path, cli: Cli):
    tmp_path.chmod(0o700)
    assert "(not there, so the defaults hold)" in cli("policy", "check", "--config", f"{tmp_path}/config.toml").out


@pytest.mark.parametrize(
    ("answer", "told"),
    [(None, "nobody has answered yet"), ("approved", "approved, and not done yet"), ("denied", "denied")],
)
def test_an_operation_that_waits_for_a_person_is_explained_by_its_question(desk: Desk, cli: Cli, answer, told):
    asked = {"approval_id": "ap1", "reason": "it deletes", "effect": "desktop.invoke", "app": "exe:/usr/bin/mousepad"}
    kinds = ["operation.approval_requested.v1", *([] if answer is None else [f"operation.{answer}.v1"])]
    events = [
        {"type": kind, "actor": "uid:7", "seq": seq, "payload": asked if seq == 0 else {"approval_id": "ap1"}}
        for seq, kind in enumerate(kinds)
    ]
    answers = {"audit.show": {"events": events}, "policy": {"revision": "r"}}
    for method, value in answers.items():

        async def say(*_: object, value: object = value) -> object:
            return value

        desk.script[method] = say
    said = cli("policy", "explain", "--operation", "op1")
    assert said.code == 0
    assert said.out.startswith("require_approval: it deletes\n  desktop.invoke in exe:/usr/bin/mousepad for uid:7\n")
    assert f"approval ap1: {told}" in said.out


def test_a_rule_about_an_origin_is_warned_of(tmp_path, cli: Cli):
    """No rule about a domain holds before browsers of our own prove an address: its author must not think so (C45)."""
    path = tmp_path / "p.toml"
    path.write_text("version = 1\n" + rule("bank", "deny", place=["https://bank.example"]))
    said = cli("policy", "check", str(path))
    assert "no browser's address is proven yet, so a rule about an origin never matches" in said.out
