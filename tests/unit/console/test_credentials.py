"""Keys that answer at the page: what is offered, what proves a person, and what guessing gets."""

from __future__ import annotations

from pathlib import Path

import pytest

from surehand import limits
from surehand.console.credentials import Credentials, Keys, Said
from surehand.core.approval import Approver, ask, check_answer
from surehand.errors import AuthorityDenied, InvalidRequest, SurehandError
from surehand.model.approval import PendingApproval
from surehand.signing import ed25519
from surehand.signing.keystore import KeyStore
from tests.browser.kit import presentation

RIGHT = "only for these tests"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(limits, "PASSPHRASE_OPS", 1)
    monkeypatch.setattr(limits, "PASSPHRASE_MEMORY_BYTES", 8192)
    store = KeyStore.open(tmp_path / "keys")
    store.create_approver("ann", passphrase=RIGHT)
    store.create_approver("bob")
    return tmp_path / "keys"


def pending(**facts: object) -> PendingApproval:
    import time

    return ask(presentation(**facts), approval_id="ap1", operation_id="o1", now_ms=round(time.time() * 1000) - 5)


def allowed(folder: Path) -> list[Approver]:
    return [
        Approver(approver=one.approver, key_id=one.key_id, public_key=one.public_key)
        for one in KeyStore.open(folder).approvers()
    ]


async def test_a_signed_answer_counts_for_exactly_the_question(folder: Path) -> None:
    question = pending()
    fields = {"credential": "key:ann", "passphrase": RIGHT}
    answer = await Credentials([Keys(folder)]).sign(question, Said(answer="approve", leave=(3, 5)), fields)
    approver = check_answer(answer, question, allowed(folder), ed25519.verify, now_ms=answer.answered_at_ms)
    assert approver.approver == "ann"
    assert answer.standing is not None
    assert (answer.standing.uses_max, answer.standing.issued_by) == (3, "ann")
    with pytest.raises(AuthorityDenied):
        check_answer(answer, pending(context="row dave"), allowed(folder), ed25519.verify, now_ms=answer.answered_at_ms)


async def test_what_is_offered_says_which_key_has_a_passphrase(folder: Path) -> None:
    ((template, offers),) = await Credentials([Keys(folder)]).offers(pending())
    assert template == "credentials/key.html"
    assert [(one.approver, one.facts["passphrase"]) for one in offers] == [("ann", True), ("bob", False)]
    ((_, only),) = await Credentials([Keys(folder, "bob")]).offers(pending())
    assert [one.approver for one in only] == ["bob"]
    assert await Credentials([Keys(folder.parent / "empty")]).offers(pending()) == []


@pytest.mark.parametrize(
    "fields",
    [
        {}, {"credential": "key:"}, {"credential": "key"}, {"credential": "other:ann", "passphrase": RIGHT},
        {"credential": "key:ann"}, {"credential": "key:ann", "passphrase": ""},
        {"credential": "key:ann", "passphrase": RIGHT + " "}, {"credential": "key:nobody", "passphrase": RIGHT},
        {"credential": "key:../keys/approver-ann", "passphrase": RIGHT}, {"credential": "key:" + "a" * 5000},
    ],
    ids=str,
)  # fmt: skip
async def test_without_the_right_key_and_passphrase_nothing_is_signed(folder: Path, fields: dict[str, str]) -> None:
    with pytest.raises(SurehandError):
        await Credentials([Keys(folder)]).sign(pending(), Said(answer="approve"), fields)


async def test_a_console_that_answers_as_one_answers_as_no_other(folder: Path) -> None:
    keys = Credentials([Keys(folder, "bob")])
    with pytest.raises(InvalidRequest):
        await keys.sign(pending(), Said(answer="deny"), {"credential": "key:ann", "passphrase": RIGHT})
    await keys.sign(pending(), Said(answer="deny"), {"credential": "key:bob"})


async def test_guessing_is_paused_after_as_many_wrong_passphrases_as_there_may_be(folder: Path) -> None:
    now = [0.0]
    keys = Keys(folder, now=lambda: now[0])

    async def attempt(passphrase: str) -> None:
        await keys.sign(pending(), Said(answer="deny"), "ann", {"passphrase": passphrase})

    for _ in range(limits.CONSOLE_TRIES_MAX - 1):
        with pytest.raises(AuthorityDenied, match="is wrong"):
            await attempt("wrong")
    await attempt(RIGHT)  # the count begins anew
    for _ in range(limits.CONSOLE_TRIES_MAX):
        with pytest.raises(AuthorityDenied, match="is wrong"):
            await attempt("wrong")
    with pytest.raises(AuthorityDenied, match="too many"):
        await attempt(RIGHT)
    now[0] += limits.CONSOLE_PAUSE_MS / 1000 - 0.001
    with pytest.raises(AuthorityDenied, match="too many"):
        await attempt(RIGHT)
    now[0] += 0.001
    await attempt(RIGHT)
