"""`surehand secret`: what an operator enrols and looks at; no secret is taken from an argument or printed."""

from __future__ import annotations

import io
import sys
from typing import Any

import pytest

from surehand import limits
from tests.secrets_kit import CANARY, found_in
from tests.unit.cli.conftest import Cli
from tests.unit.cli.test_commands import answers
from tests.unit.client.conftest import Desk

APP = "exe:/usr/bin/evolution"
MAIL: dict[str, Any] = {"reference": "vault:mail", "bound_to": {"apps": [APP]}, "changed_at_ms": 1}
BANK: dict[str, Any] = {
    "reference": "vault:bank",
    "bound_to": {"apps": [APP], "origins": ["https://bank.example"], "fields": [{"role": "text", "name": "Code"}]},
}
LOCKED = {
    "key": "passphrase",
    "state": "vault_locked",
    "error": {"code": "backend_unavailable", "message": "the vault is locked", "fix": "surehand secret unlock"},
}


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Give something on standard input."""

    def give(data: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))

    return give


def test_one_line_of_standard_input_is_enrolled_with_its_binding_and_not_shown(
    cli: Cli, desk: Desk, given: Any
) -> None:
    answers(desk, secrets__set={"secret": MAIL})
    for data in (f"{CANARY}\n", f"{CANARY}\r\n", CANARY):
        given(data.encode())
        options = ("--origin", "https://bank.example", "--field", "text:One-time: code")
        said = cli("secret", "set", "mail", "--app", APP, *options)
        assert said.code == 0
        assert not found_in((said.out + said.err).encode())
    asked = desk.named("secrets.set")
    assert asked[0] == asked[1] == asked[2]
    assert asked[0]["value"] == CANARY
    fields = [{"role": "text", "name": "One-time: code"}]
    assert asked[0]["bound_to"] == {"apps": [APP], "origins": ["https://bank.example"], "fields": fields}


@pytest.mark.parametrize(
    "data",
    [b"", b"\n", b"a\nb\n", b"\xff\n", b"x" * (limits.SECRET_BYTES_MAX + 1), b"x" * (limits.SECRET_BYTES_MAX + 9)],
)
def test_what_is_no_secret_is_refused_before_the_daemon_is_asked(cli: Cli, desk: Desk, given: Any, data: bytes) -> None:
    answers(desk, secrets__set={"secret": MAIL})
    given(data)
    assert cli("secret", "set", "mail", "--app", APP).code == 2
    assert desk.named("secrets.set") == []


def test_the_longest_secret_is_taken(cli: Cli, desk: Desk, given: Any) -> None:
    answers(desk, secrets__set={"secret": MAIL})
    given(b"x" * limits.SECRET_BYTES_MAX + b"\n")
    assert cli("secret", "set", "mail", "--app", APP).code == 0


@pytest.mark.parametrize(
    "words",
    [
        ("mail",),
        ("mail", CANARY, "--app", APP),
        ("a b", "--app", APP),
        ("mail", "--app", "evolution"),
        ("mail", "--app", "exe:/usr/bin/*"),
        ("mail", "--app", APP, "--origin", "bank.example"),
        ("mail", "--app", APP, "--field", "Code"),
    ],
)
def test_a_wrong_enrolment_is_a_usage_error(cli: Cli, desk: Desk, given: Any, words: tuple[str, ...]) -> None:
    answers(desk, secrets__set={"secret": MAIL})
    given(b"x\n")
    assert cli("secret", "set", *words).code == 2
    assert desk.named("secrets.set") == []


def test_a_list_says_what_is_bound_to_what(cli: Cli, desk: Desk) -> None:
    answers(desk, secrets={"vault": {"key": "file", "state": "open"}, "secrets": [MAIL, BANK]})
    _, first, second = cli("secret", "list").out.splitlines()
    assert first.split() == ["vault:mail", APP, "-", "-"]
    assert second.split() == ["vault:bank", APP, "https://bank.example", "text:Code"]
    assert "also into fields that show it" in cli("secret", "show", "bank").out
    assert cli("secret", "show", "none").code == 2


def test_a_vault_that_does_not_open_is_said_with_what_to_do(cli: Cli, desk: Desk) -> None:
    answers(desk, secrets={"vault": LOCKED, "secrets": []})
    assert "surehand secret unlock" in cli("secret", "list").out
    said = cli("secret", "show", "mail", "--json")
    assert (said.code, said.error["fix"]) == (2, "surehand secret unlock")


def test_a_trial_fails_where_the_secret_may_not_go(cli: Cli, desk: Desk) -> None:
    answers(desk, secrets__test={"opens": True, "usable": False, "bound_to": MAIL["bound_to"]})
    assert cli("secret", "test", "mail").code == 0
    said = cli("secret", "test", "mail", "--app", "exe:/opt/evil", "--json")
    assert (said.code, said.error["code"]) == (1, "authority_denied")
    answers(desk, secrets__test={"opens": True, "usable": True, "bound_to": MAIL["bound_to"]})
    assert cli("secret", "test", "env:TOKEN", "--app", APP).code == 0
    assert desk.named("secrets.test")[-1] == {"reference": "env:TOKEN", "app": APP, "place": ""}


def test_giving_something_up_takes_a_person(cli: Cli, desk: Desk, given: Any) -> None:
    answers(desk, secrets__remove={"name": "mail"}, secrets__init={"vault_id": "v", "key": "file"})
    given(b"y\n")
    assert cli("secret", "rm", "mail").code == cli("secret", "init", "--replace").code == 2
    assert cli("secret", "init", "--key", "floppy").code == 2
    assert desk.named("secrets.remove") == desk.named("secrets.init") == []
    assert cli("secret", "rm", "mail", "--yes").code == cli("secret", "init", "--replace", "--yes").code == 0
    assert desk.named("secrets.init") == [{"replace": True}]


def test_a_passphrase_is_asked_for_where_the_vault_has_one(cli: Cli, desk: Desk, given: Any) -> None:
    answers(desk, secrets={"vault": LOCKED, "secrets": []}, secrets__unlock={"vault_id": "v", "secrets": 2})
    given(b"correct horse\n")
    assert "2" in cli("secret", "unlock").out
    answers(desk, secrets={"vault": {"key": "file", "state": "open"}, "secrets": []})
    assert cli("secret", "unlock").code == 0
    assert desk.named("secrets.unlock") == [{"passphrase": "correct horse"}, {}]
    answers(desk, secrets__lock={"locked": True})
    assert "secret unlock" in cli("secret", "lock").out
