"""`surehand approvals watch` at a real terminal: what is shown, which key does what, and how it is left."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from surehand.core.approval import Approver, check_answer
from surehand.model.approval import ApprovalAnswer, PendingApproval
from surehand.model.record import convert, to_value
from surehand.signing import ed25519
from surehand.signing.keystore import KeyStore
from surehand.testing.terminal import terminal
from tests.unit.cli.conftest import Cli
from tests.unit.cli.test_commands import question
from tests.unit.client.conftest import Desk, until

SUREHAND = [sys.executable, "-c", "import sys; from surehand.cli import main; sys.exit(main())"]
KEYS = "a approve"


class Questions:
    """What the daemon has open; an answer closes it."""

    def __init__(self, desk: Desk, *pending: PendingApproval) -> None:
        self.open = list(pending)
        self.answers: list[ApprovalAnswer] = []
        #: While set, whoever lists them waits.
        self.held = False
        self.listing = 0
        desk.script.update(approvals=self.listed, answer=self.answer)

    async def listed(self, *_: Any) -> dict[str, Any]:
        self.listing += 1
        while self.held:  # noqa: ASYNC110 - set by a test in another thread
            await asyncio.sleep(0.01)
        return {"pending": [to_value(one) for one in self.open]}

    async def answer(self, _channel: Any, params: Any, _progress: Any) -> dict[str, Any]:
        answer = convert(ApprovalAnswer, params["answer"])
        self.answers.append(answer)
        self.open = [one for one in self.open if one.approval_id != answer.approval_id]
        return {"approval_id": answer.approval_id, "state": "approved" if answer.answer == "approve" else "denied"}


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    KeyStore.open(tmp_path / "keys").create_approver("ann")
    return tmp_path / "keys"


def words(keys: Path) -> list[str]:
    return [*SUREHAND, "approvals", "watch", "--keys", str(keys)]


def test_a_key_answers_what_is_shown_and_each_question_comes_after_the_other(desk: Desk, keys: Path) -> None:
    first = question(element="button Send \x1b[2J\u202e")
    second = question(element="button Delete all", risk="destructive")
    second = PendingApproval(**{**{f: getattr(second, f) for f in second.__struct_fields__}, "approval_id": "ap2"})
    asked = Questions(desk, first, second)
    approver = Approver(
        approver="ann", **{f: getattr(KeyStore.open(keys).approvers()[0], f) for f in ("key_id", "public_key")}
    )
    with terminal(words(keys)) as seen:
        shown = seen.expect(KEYS)
        assert "\a" in shown
        for text in ("button Send", "desktop.invoke", "sends something", first.presentation_hash):
            assert text in shown
        assert "\x1b[2J" not in shown
        assert "Delete all" not in shown
        seen.type("a")
        seen.expect("ap1: approved, as ann")
        (answer,) = asked.answers
        now = answer.answered_at_ms
        assert check_answer(answer, first, [approver], ed25519.verify, now_ms=now) == approver
        # What is consequential cannot be approved for a while; it stays open and is shown again.
        seen.expect(KEYS)
        seen.type("w")
        seen.expect("asked about each time")
        seen.expect(KEYS)
        seen.type("d")
        seen.expect("the agent is told your words: ")
        seen.type("wrong account\n")
        seen.expect("ap2: denied, as ann")
        assert (asked.answers[1].answer, asked.answers[1].reason) == ("deny", "wrong account")
        seen.type("q")
        assert seen.result()[0] == 0


def test_a_yes_for_a_while_asks_how_often_and_how_long(desk: Desk, keys: Path) -> None:
    asked = Questions(desk, question(categories=[]))
    with terminal(words(keys)) as seen:
        seen.expect(KEYS)
        seen.type("w")
        seen.expect("how many uses [20]: ")
        seen.type("5\n")
        seen.expect("for how many minutes [30]: ")
        seen.type("\n")
        seen.expect("5 uses, taken back with `surehand standing revoke sg-")
        grant = asked.answers[0].standing
        assert grant is not None
        assert (grant.uses_max, grant.app, grant.actions) == (5, "exe:/usr/bin/mail", ("desktop.invoke",))
        left_ms = grant.expires_at_ms - asked.answers[0].answered_at_ms
        assert 29 * 60_000 < left_ms <= 30 * 60_000 + 1_000


def test_a_key_pressed_before_a_question_was_shown_answers_nothing(desk: Desk, keys: Path) -> None:
    asked = Questions(desk)
    with terminal(words(keys)) as seen:
        seen.expect("nothing is waiting")
        asked.held = True
        count = asked.listing
        until(lambda: asked.listing > count)
        seen.type("aaaa")
        asked.open.append(question())
        asked.held = False
        seen.expect(KEYS)
        seen.type("s")
        seen.expect("skipped; it stays open")
        assert asked.answers == []
        seen.type("\x03")
        code, _ = seen.result()
        assert code == 0
        assert "Traceback" not in seen.shown


def test_ctrl_c_gives_the_terminal_back_as_it_was(desk: Desk, keys: Path) -> None:
    Questions(desk, question())
    script = f"stty -a > {keys.parent}/before; {' '.join(map(repr, words(keys)))}; echo left $?; stty -a > {keys.parent}/after"
    with terminal(["bash", "-c", script]) as seen:
        seen.expect(KEYS)
        seen.type("\x03")
        # The shell goes on: only the watch was left.
        seen.result()
    before, after = ((keys.parent / name).read_text() for name in ("before", "after"))
    assert before == after


def test_a_question_that_somebody_else_answered_is_said_to_be_closed(desk: Desk, keys: Path) -> None:
    asked = Questions(desk, question())
    with terminal(words(keys)) as seen:
        seen.expect(KEYS)
        asked.open.clear()
        seen.expect("ap1 is no longer open")


def test_a_sealed_key_asks_for_its_passphrase_each_time_and_a_wrong_one_answers_nothing(
    desk: Desk, tmp_path: Path
) -> None:
    store = KeyStore.open(tmp_path / "sealed")
    store.create_approver("ann", passphrase="right")  # noqa: S106 - for this test alone
    asked = Questions(desk, question())
    with terminal(words(tmp_path / "sealed")) as seen:
        for typed, comes in (("wrong", "not answered"), ("right", "ap1: approved")):
            seen.expect(KEYS)
            seen.type("a")
            seen.expect("Passphrase of ann: ")
            seen.type(f"{typed}\n")
            assert typed not in seen.expect(comes)
    assert len(asked.answers) == 1


def test_without_a_terminal_it_shows_and_answers_nothing(desk: Desk, keys: Path) -> None:
    asked = Questions(desk, question())
    with subprocess.Popen(words(keys), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as seen:
        assert seen.stdin is not None
        assert seen.stdout is not None
        seen.stdin.write(b"aaaa\n")
        seen.stdin.flush()
        lines = iter(seen.stdout.readline, b"")
        shown = b"".join(line for line, _ in zip(lines, range(10), strict=False))
        asked.open.append(question(element="button Other"))
        assert b"\x1b" not in shown
        assert b"\a" not in shown
        assert b"button Send" in shown
        seen.terminate()
    assert asked.answers == []


def test_it_waits_for_a_daemon_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUREHAND_RUNTIME_DIR", str(tmp_path / "none"))
    with terminal(words(tmp_path / "keys")) as seen:
        seen.expect("waiting for the daemon")
        seen.type("\x03")
        assert seen.result()[0] == 0


def test_programs_are_sent_to_the_list(desk: Desk, cli: Cli) -> None:
    assert "list --json" in cli("approvals", "watch", "--json").error["fix"]
    until(lambda: not desk.calls)
