"""`surehand budgets`: who is paused, and leave to go on."""

from __future__ import annotations

from typing import Any

from tests.unit.cli.conftest import Cli
from tests.unit.cli.test_commands import answers
from tests.unit.client.conftest import Desk

SPENT: dict[str, Any] = {
    "principal": "uid:1000",
    "operations": 5,
    "operations_max": 5,
    "external": 1,
    "external_max": 0,
    "minutes": 3,
    "minutes_max": 60,
    "paused": True,
}


def test_a_list_says_what_is_spent_of_what_and_who_is_paused(cli: Cli, desk: Desk) -> None:
    answers(desk, budgets={"budgets": [SPENT, {**SPENT, "principal": "uid:7", "paused": False}]})
    first, second = cli("budgets", "list").out.splitlines()
    assert first == "uid:1000: operations 5 of 5, minutes 3 of 60; paused"
    assert "paused" not in second
    assert cli("budgets", "list", "--json").data[0]["paused"] is True


def test_an_unused_budget_says_where_one_is_set(cli: Cli, desk: Desk) -> None:
    answers(desk, budgets={"budgets": []})
    assert "ceilings" in cli("budgets", "list").out


def test_leave_to_go_on_is_asked_of_the_daemon_by_name(cli: Cli, desk: Desk) -> None:
    answers(desk, budgets__renew={"principal": "uid:1000", "spent": {}})
    assert cli("budgets", "renew", "uid:1000").code == 0
    assert desk.named("budgets.renew") == [{"principal": "uid:1000"}]


def test_who_is_paused_is_told_where_an_operator_looks(cli: Cli, desk: Desk) -> None:
    answers(desk, ps={"sessions": [], "in_flight": [], "unresolved": [], "desktops": [], "budgets": [SPENT]})
    said = cli("ps").out
    assert "uid:1000" in said
    assert "surehand budgets renew" in said
    found = cli("doctor", "--json").envelope
    facts = (found.get("data") or found["error"]["details"])["facts"]
    (daemon,) = [fact for fact in facts if fact["name"] == "daemon"]
    assert daemon["fix"] == "surehand budgets renew uid:1000"
