"""`surehand requests`: what a person sees of an agent's words, and what is sent when they answer."""

from __future__ import annotations

import time
from typing import Any

from tests.unit.cli.conftest import Cli
from tests.unit.cli.test_commands import answers
from tests.unit.client.conftest import Desk

ASKED: dict[str, Any] = {
    "request_id": "3f09a1c2",
    "principal": "uid:1000",
    "client": {"name": "mcp"},
    "desktop": "play",
    "kind": "captcha",
    "status": "waiting",
    "agent_says": "solve \\u202e it",
    "requested_at_ms": 0,
    "expires_at_ms": 600_000,
    "agent_gone": False,
}


def test_a_list_shows_the_agents_words_in_quotes_and_for_how_long_it_waits(cli: Cli, desk: Desk) -> None:
    answers(desk, requests={"requests": [{**ASKED, "requested_at_ms": time.time_ns() // 1_000_000 - 65_000}]})
    said = cli("requests", "list")
    assert said.code == 0
    assert 'the agent says "solve \\u202e it"' in said.out
    assert "1:05" in said.out or "1:06" in said.out
    assert "play" in said.out


def test_an_empty_list_says_so_and_is_data_for_programs(cli: Cli, desk: Desk) -> None:
    answers(desk, requests={"requests": []})
    assert cli("requests", "list").out == "nothing is waiting\n"
    assert cli("requests", "list", "--json").data == {"requests": []}


def test_what_a_daemon_did_not_escape_cannot_steer_the_terminal(cli: Cli, desk: Desk) -> None:
    answers(desk, requests={"requests": [{**ASKED, "agent_says": "x\x1b[2J\u202ey", "agent_gone": True}]})
    said = cli("requests", "list").out
    assert "\x1b" not in said
    assert "\u202e" not in said
    assert "waiting, agent gone" in said


def test_answers_are_sent_as_given(cli: Cli, desk: Desk) -> None:
    answers(desk, requests__take={**ASKED, "status": "taken"}, requests__done=ASKED, requests__decline=ASKED)
    assert "surehand requests done 3f09a1c2" in cli("requests", "take", "3f09a1c2").out
    assert cli("requests", "done", "3f09a1c2", "--note", "the second").code == 0
    assert cli("requests", "decline", "3f09a1c2").code == 0
    assert desk.calls[-3:] == [
        ("requests.take", {"request_id": "3f09a1c2"}),
        ("requests.done", {"request_id": "3f09a1c2", "note": "the second"}),
        ("requests.decline", {"request_id": "3f09a1c2", "note": ""}),
    ]
