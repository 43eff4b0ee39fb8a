"""`surehand halt`, `pause`, `resume`, `holds`, `take`, `hand-back`: what is asked of the daemon, and what people read."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.cli.conftest import Cli
from tests.unit.cli.test_commands import answers
from tests.unit.client.conftest import Desk

HOLD: dict[str, Any] = {
    "hold_id": "a1", "what": "paused", "desktop": None, "principal": None, "session": None,
    "by": "uid:1000", "since_ms": 1, "reason": "lunch", "sessions": 2,
}  # fmt: skip
OPERATION = {"operation_id": "op-1", "effect": "desktop.type_text", "ended": "interrupted"}
HALTED = {"released": True, "released_ms": 4, "recorded": True, "hold": HOLD, "operations": [OPERATION]}
NOWHERE = {"desktop": None, "principal": None, "session": None}


def test_a_stop_says_what_ended_how_and_that_they_stay_paused(desk: Desk, cli: Cli) -> None:
    answers(desk, halt=HALTED)
    said = cli("halt", "--desktop", "work", "--reason", "wrong thing").out
    assert "within 4 ms" in said
    assert "op-1 desktop.type_text: interrupted" in said
    assert "surehand resume" in said
    assert desk.named("halt") == [{**NOWHERE, "desktop": "work", "reason": "wrong thing", "go_on": False}]


def test_a_stop_that_is_not_sure_says_so(desk: Desk, cli: Cli) -> None:
    answers(desk, halt={**HALTED, "released": False, "recorded": False, "hold": None})
    said = cli("halt", "--go-on").out
    assert "did not say" in said
    assert "could not record" in said
    assert "resume" not in said


@pytest.mark.parametrize("method", ["pause", "resume"])
def test_pausing_and_resuming_name_whom(desk: Desk, cli: Cli, method: str) -> None:
    answers(desk, pause={**HOLD, "recorded": True}, resume={"resumed": ["a1"], "holds": [HOLD]})
    said = cli(method, "--principal", "uid:7", "--session", "s3").out
    (asked,) = desk.named(method)
    assert (asked["principal"], asked["session"]) == ("uid:7", "s3")
    assert ("1 pause lifted" in said) == (method == "resume")
    assert "2 sessions" in said


def test_nothing_to_resume_and_nothing_held_are_said(desk: Desk, cli: Cli) -> None:
    answers(desk, resume={"resumed": [], "holds": []}, holds={"holds": []})
    assert "nothing was paused" in cli("resume").out
    assert "nothing keeps" in cli("holds").out


def test_a_desktop_is_taken_and_handed_back_by_name(desk: Desk, cli: Cli) -> None:
    taken = {**HOLD, "what": "taken_over", "desktop": "work"}
    answers(
        desk, take={**taken, "recorded": True}, hand_back={"desktop": "work", "holds": []}, holds={"holds": [taken]}
    )
    assert "surehand hand-back work" in cli("take", "work").out
    assert "taken over" in cli("holds").out
    assert "agents' again" in cli("hand-back", "work").out
    assert desk.named("take") == [{"name": "work", "reason": ""}]
    assert desk.named("hand_back") == [{"name": "work"}]


def test_who_looks_at_the_daemon_sees_that_agents_are_held(desk: Desk, cli: Cli) -> None:
    answers(
        desk, ps={"sessions": [], "in_flight": [], "unresolved": [], "desktops": [], "budgets": [], "holds": [HOLD]}
    )
    said = cli("ps").out
    assert "1 hold keeps agents from acting" in said
    assert "surehand resume" in said
