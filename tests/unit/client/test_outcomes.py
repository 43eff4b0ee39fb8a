"""One reply, one outcome; unknown is never true (cases C18, C22)."""

from __future__ import annotations

from typing import Any

import pytest

import surehand
from surehand.client.results import BatchResult, error_of, outcome
from surehand.errors import (
    ApprovalDenied,
    Failed,
    InternalError,
    OutcomeUnknown,
    PolicyDenied,
    SurehandError,
    VerificationFailed,
    Withheld,
)
from surehand.model.outcome import UNKNOWN_STATEMENT
from tests.unit.client.conftest import Desk, refused, reply


def never(_: float) -> Any:
    pytest.fail("nothing asked for this")


def test_only_a_success_is_true() -> None:
    assert outcome(reply("o"), never)
    assert not outcome(reply("o", "interrupted"), never)
    assert not outcome(reply("o", "approval_required"), never)


def test_a_success_says_how_it_is_known() -> None:
    done = outcome(reply("o", replayed=True, output={"after": {"text": "+ e5"}}), never)
    assert isinstance(done, surehand.Receipt)
    assert (done.verified, done.replayed, done.diff, done.operation_id) == (True, True, "+ e5", "o")
    assert repr(done) == "<Receipt invoke verified via atspi.action in 7 ms, replayed: o>"


def test_an_interruption_is_a_result_with_its_receipt() -> None:
    cut = outcome(reply("o", "interrupted"), never)
    assert isinstance(cut, surehand.Interrupted)
    assert cut.receipt["operation_id"] == "o"


@pytest.mark.parametrize(
    ("value", "cls", "code"),
    [
        (reply("o", "failed", terminal={"kind": "failed", "code": "verification_failed", "receipt": {}}), VerificationFailed, "verification_failed"),
        (reply("o", "failed", terminal={"kind": "failed", "code": "unsupported_action", "receipt": {}}), Failed, "unsupported_action"),
        (reply("o", "withheld"), Withheld, "policy_denied"),
        (reply("o", "outcome_unknown"), OutcomeUnknown, "outcome_unknown"),
        (refused("o", "policy_denied"), PolicyDenied, "policy_denied"),
        (refused("o", "approval_denied"), ApprovalDenied, "approval_denied"),
        (reply("o", "something_new"), InternalError, "internal"),
        ({}, InternalError, "internal"),
    ],
)  # fmt: skip
def test_everything_else_is_raised_as_its_own_type(value: dict[str, Any], cls: type[SurehandError], code: str) -> None:
    with pytest.raises(cls) as caught:
        outcome(value, never)
    assert type(caught.value) is cls
    assert caught.value.code == code
    if cls in {VerificationFailed, Failed, Withheld, OutcomeUnknown, InternalError}:
        assert caught.value.retry_safe is False


def test_unknown_is_false_says_what_to_do_and_is_never_safe_to_repeat() -> None:
    value = reply("o", "outcome_unknown")
    value["terminal"].update(code="nonsense", retry_safe=True, message="the toolkit did not answer")
    error = error_of(value)
    assert isinstance(error, OutcomeUnknown)
    assert not error
    assert error.code == "outcome_unknown"
    assert error.retry_safe is False
    assert UNKNOWN_STATEMENT in error.message
    assert error.details["receipt"]["operation_id"] == "o"


def test_a_batch_is_true_only_if_every_step_succeeded() -> None:
    good = reply("b:0")
    assert BatchResult((good, good), 2, None)
    assert not BatchResult((good,), 2, None)
    for status in ("failed", "interrupted", "withheld", "outcome_unknown", "approval_required"):
        assert not BatchResult((good, reply("b:1", status)), 2, status)
    with pytest.raises(OutcomeUnknown):
        BatchResult((reply("b:0", "outcome_unknown"),), 1, "outcome_unknown").check()


def test_waiting_for_an_approval_presents_the_same_operation_until_it_is_answered(desk: Desk) -> None:
    pending = lambda i: reply(i, "approval_required")  # noqa: E731
    desk.replies = [pending, pending, pending, reply]
    with surehand.open() as hand:
        asked = hand.app("notes").get_by_role("button").press()
        assert isinstance(asked, surehand.ApprovalRequired)
        assert (asked.approval_id, bool(asked)) == ("ap1", False)
        assert asked.wait(timeout_s=30)
    assert len({request["operation_id"] for request in desk.acts}) == 1
    assert len(desk.acts) == 4
    waits = [call.get("wait_approval_ms", 0) for call in desk.named("act")]
    assert waits[0] == 0
    assert all(0 < wait <= 30_000 for wait in waits[1:])


def test_waiting_for_an_approval_ends_with_the_persons_no(desk: Desk) -> None:
    desk.replies = [lambda i: reply(i, "approval_required"), lambda i: refused(i, "approval_denied")]
    with surehand.open() as hand:
        asked = hand.launch(["mousepad"])
        with pytest.raises(ApprovalDenied):
            asked.wait(5)  # type: ignore[union-attr]


async def test_waiting_for_an_approval_that_nobody_answers_is_still_a_question(desk: Desk) -> None:
    desk.replies = [lambda i: reply(i, "approval_required")]
    async with surehand.connect() as hand:
        asked = await hand.app("notes").get_by_role("button").press()
        again = await asked.wait(0.1)  # type: ignore[union-attr]
    assert isinstance(again, surehand.ApprovalRequired)
    assert again.operation_id == asked.operation_id
