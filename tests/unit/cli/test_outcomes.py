"""Exit codes and envelopes for every outcome (spec §12, case C18)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from surehand import errors
from tests.unit.cli.conftest import Cli
from tests.unit.client.conftest import Desk, refused, reply

PRESS = ("act", "invoke", "--app", "notes", "--role", "button", "--timeout", "0")


def failed(operation_id: str) -> dict[str, Any]:
    value = reply(operation_id, "failed")
    value["terminal"]["code"] = "verification_failed"
    return value


OUTCOMES: dict[str, tuple[Any, int, str | None]] = {
    "succeeded": (reply, 0, None),
    "replayed": (lambda i: reply(i, replayed=True), 0, None),
    "failed": (failed, 1, "verification_failed"),
    "withheld": (lambda i: reply(i, "withheld"), 1, "policy_denied"),
    "outcome_unknown": (lambda i: reply(i, "outcome_unknown"), 4, "outcome_unknown"),
    "interrupted": (lambda i: reply(i, "interrupted"), 5, "interrupted"),
    "approval_required": (lambda i: reply(i, "approval_required"), 6, "approval_required"),
    **{
        code: (lambda i, code=code: refused(i, code), 1, code)
        for code in (
            "conflict",
            "authority_denied",
            "policy_denied",
            "approval_denied",
            "approval_unanswered",
            "permit_invalid",
            "reconcile_required",
            "stale_target",
            "target_not_found",
            "ambiguous_target",
            "target_not_actionable",
            "behind_modal",
            "secure_surface",
            "unsupported_action",
            "focus_required",
            "app_not_found",
            "ambiguous_app",
            "window_not_found",
            "capture_unavailable",
            "accessibility_disabled",
            "too_large",
            "budget_exhausted",
            "timeout",
            "cancelled",
            "internal",
        )
    },
    "backend_unavailable": (lambda i: refused(i, "backend_unavailable"), 3, "backend_unavailable"),
    "permission_missing": (lambda i: refused(i, "permission_missing"), 3, "permission_missing"),
    "journal_recovery": (lambda i: refused(i, "journal_recovery"), 3, "journal_recovery"),
    "invalid_request": (lambda i: refused(i, "invalid_request"), 2, "invalid_request"),
}


@pytest.mark.parametrize("name", OUTCOMES)
def test_an_outcome_has_one_exit_code_and_one_envelope(desk: Desk, cli: Cli, name: str) -> None:
    answer, code, error_code = OUTCOMES[name]
    desk.replies = [answer]
    said = cli(*PRESS, "--json")
    assert said.code == code
    if error_code is None:
        assert said.data["status"] == "succeeded"
        assert said.data["terminal"]["receipt"]["effect"] == "verified"
    else:
        assert said.error["code"] == error_code
        assert said.error["details"]["operation_id"] == desk.acts[0]["operation_id"]
    assert said.err == ""


@pytest.mark.parametrize("name", OUTCOMES)
def test_for_people_a_result_is_on_standard_output_and_trouble_on_standard_error(
    desk: Desk, cli: Cli, name: str
) -> None:
    answer, code, error_code = OUTCOMES[name]
    desk.replies = [answer]
    said = cli(*PRESS)
    assert said.code == code
    if error_code is None:
        assert "verified via atspi.action in 7 ms" in said.out
        assert said.err == ""
    else:
        assert error_code in said.err
        assert said.out == ""


def test_unknown_is_never_ok_never_safe_to_repeat_and_says_what_to_do(desk: Desk, cli: Cli) -> None:
    desk.replies = [lambda i: reply(i, "outcome_unknown")]
    said = cli(*PRESS, "--json")
    assert said.envelope["ok"] is False
    assert said.error["retry_safe"] is False
    assert "Verify the actual state" in said.error["message"]


def test_an_interruption_is_not_safe_to_repeat_and_carries_its_receipt(desk: Desk, cli: Cli) -> None:
    desk.replies = [lambda i: reply(i, "interrupted")]
    said = cli(*PRESS, "--json")
    assert said.error["retry_safe"] is False
    assert said.error["details"]["receipt"]["route"] == "atspi.action"


def test_a_pending_approval_says_how_to_go_on_and_waiting_goes_on(desk: Desk, cli: Cli) -> None:
    desk.replies = [lambda i: reply(i, "approval_required"), reply]
    said = cli(*PRESS, "--id", "mine", "--json")
    assert "approvals show ap1" in said.error["fix"]
    assert "mine" in said.error["fix"]
    desk.replies = [lambda i: reply(i, "approval_required"), reply]
    assert cli(*PRESS, "--id", "mine", "--wait-approval", "5", "--json").data["status"] == "succeeded"
    assert {request["operation_id"] for request in desk.acts} == {"mine"}


def test_no_daemon_is_exit_code_3_with_a_fix(cli: Cli, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUREHAND_RUNTIME_DIR", str(tmp_path / "nobody"))
    said = cli("ps", "--json")
    assert said.code == 3
    assert said.error["code"] == "backend_unavailable"
    assert "surehand serve" in said.error["fix"]


def test_a_wait_that_is_not_satisfied_is_a_normal_answer(desk: Desk, cli: Cli) -> None:
    said = cli("wait", "notes", "--role", "dialog", "--timeout", "0.1", "--json")
    assert said.data == {"satisfied": False}


USAGE: dict[str, tuple[str, ...]] = {
    "an unknown command": ("frobnicate",),
    "an unknown option": ("ps", "--frobnicate"),
    "a missing argument": ("status",),
    "no action": ("act",),
    "an unknown action": ("act", "explode", "--app", "notes", "--role", "button"),
    "an unknown role": ("act", "invoke", "--app", "notes", "--role", "buton"),
    "no target": ("act", "invoke", "--app", "notes"),
    "no place": ("act", "invoke", "--role", "button"),
    "two places": ("act", "invoke", "--app", "notes", "--surface", "w1", "--role", "button"),
    "an action and a request": ("act", "invoke", "--request", "-"),
    "words too many": ("act", "invoke", "now", "--app", "notes", "--role", "button"),
    "a word missing": ("act", "toggle", "--app", "notes", "--role", "checkbox"),
    "a wrong word": ("act", "toggle", "maybe", "--app", "notes", "--role", "checkbox"),
    "no number": ("act", "select_text", "a", "b", "--app", "notes", "--role", "text"),
    "a negative number": ("act", "select_text", "-1", "2", "--app", "notes", "--role", "text"),
    "an option of another action": ("act", "invoke", "--amount", "3", "--app", "notes", "--role", "button"),
    "count of four": ("act", "click", "--count", "4", "--app", "notes", "--role", "button"),
    "count of 1.5": ("act", "click", "--count", "1.5", "--app", "notes", "--role", "button"),
    "count of 2**63": ("act", "click", "--count", str(2**63), "--app", "notes", "--role", "button"),
    "risk of none": ("act", "invoke", "--risk", "none", "--app", "notes", "--role", "button"),
    "verify is not json": ("act", "invoke", "--verify", "{", "--app", "notes", "--role", "button"),
    "an id with a space": ("act", "invoke", "--id", "a b", "--app", "notes", "--role", "button"),
    "a query that is not json": ("query", "notes", "--query", "nope"),
    "a query of numbers": ("query", "notes", "--query", "[1]"),
    "nothing to wait for": ("wait", "notes"),
    "a bad mode": ("wait", "notes", "--role", "dialog", "--mode", "some"),
    "a request that is not there": ("act", "--request", "/nonexistent/request.json"),
    "a bad geometry": ("desktop", "run", "--geometry", "big", "--", "true"),
    "an empty path to bind": ("desktop", "start", "--bind", ""),
    "a path to bind that is missing": ("desktop", "run", "--bind-writable", "/no/such/path", "--", "true"),
    "a verdict of maybe": ("resolve", "op1", "maybe"),
    "a limit of zero": ("audit", "show", "--limit", "0"),
}  # fmt: skip


@pytest.mark.parametrize("name", USAGE)
def test_wrong_usage_is_exit_code_2_in_json_too_and_nothing_is_done(desk: Desk, cli: Cli, name: str) -> None:
    said = cli(*USAGE[name][:1], "--json", *USAGE[name][1:])
    assert said.code == 2, said
    assert said.error["code"] in {"invalid_request", "too_large"}
    assert said.err == ""
    assert desk.acts == []
    plain = cli(*USAGE[name])
    assert plain.code == 2
    assert plain.out == ""
    assert plain.err


@pytest.mark.parametrize("where", [("--json", "ps"), ("ps", "--json")])
def test_json_may_stand_anywhere(desk: Desk, cli: Cli, where: tuple[str, ...]) -> None:
    async def ps(*_: Any) -> dict[str, Any]:
        return {"sessions": []}

    desk.script["ps"] = ps
    assert cli(*where).data == {"sessions": []}


def test_a_json_after_two_dashes_belongs_to_the_program(desk: Desk, cli: Cli) -> None:
    assert cli("act", "launch", "--", "jq", "--json").code == 0
    assert desk.acts[0]["action"]["arguments"] == ["--json"]


def test_a_program_of_a_desktop_of_its_own_gives_the_exit_code_and_ok_says_that_the_desktop_ran(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    from surehand.daemon import entry

    async def run(*_: Any) -> int:
        return 1

    monkeypatch.setattr(entry, "run_desktop", run)
    said = cli("--json", "desktop", "run", "--", "/bin/false")
    assert (said.code, json.loads(said.out)) == (1, {"ok": True, "data": {"exit_code": 1}})


def test_every_error_class_has_an_exit_code() -> None:
    from surehand.cli.output import exit_code_of

    codes = {
        cls.__name__: exit_code_of(cls("x"))
        for cls in vars(errors).values()
        if isinstance(cls, type) and issubclass(cls, errors.SurehandError)
    }
    assert codes["OutcomeUnknown"] == 4
    assert codes["Unavailable"] == 3
    assert codes["InvalidRequest"] == 2
    assert set(codes.values()) == {1, 2, 3, 4}
