"""What a stream says about an operation, and what a second proposal under its id is."""

from __future__ import annotations

import msgspec
import pytest

from surehand.core import history
from surehand.core.history import Conflict, Fresh, Replay, Unknown, Wait, fold, idempotency
from surehand.core.lifecycle import State
from surehand.errors import InvalidRequest, JournalRecovery
from surehand.model.record import to_value
from tests.rules_kit import ZERO_HASH, events, terminal

HASH = ZERO_HASH
OTHER = "f" * 64
CLAIM = (history.CLAIMED, {"action_hash": HASH, "app": "exe:/a", "place": "main", "permit_nonce": "n1"})
REFUSED = (history.REFUSED, {"code": "stale_target", "gate": "first_fence"})
RELEASED = (history.RELEASED, {"code": "stale_target", "gate": "final_fence"})
ASKED = (
    history.APPROVAL_REQUESTED,
    {"action_hash": HASH, "approval_id": "a1", "presentation_hash": HASH, "requested_at_ms": 1, "expires_at_ms": 2},
)
ANSWER = {
    "action_hash": HASH,
    "approval_id": "a1",
    "presentation_hash": HASH,
    "approver": "p",
    "how": "key",
    "answered_at_ms": 2,
}
APPROVED = (history.APPROVED, ANSWER)
DENIED = (history.DENIED, ANSWER)


def ended(kind="succeeded"):
    return (history.TERMINAL, to_value(terminal(kind)))


RESOLVED = (history.RESOLVED, {"verdict": "happened"})


def test_an_empty_stream_is_nothing():
    assert fold([]) is None


def test_a_claim_without_an_end_folds_to_outcome_unknown():
    stored = fold(events(CLAIM))
    assert stored.operation.state is State.OUTCOME_UNKNOWN
    assert stored.interrupted_claim
    assert stored.unresolved
    assert stored.claim.app == "exe:/a"


@pytest.mark.parametrize("kind", ["succeeded", "failed", "interrupted", "withheld", "outcome_unknown"])
def test_a_terminal_is_folded_with_its_proof(kind):
    stored = fold(events(CLAIM, ended(kind)))
    assert stored.operation.terminal_kind == kind
    assert stored.terminal.kind == kind
    assert (stored.proof.seq, stored.proof.record_hash) == (2, f"{2:064x}")
    assert not stored.interrupted_claim
    assert stored.unresolved == (kind == "outcome_unknown")


def test_a_release_frees_the_id():
    stored = fold(events(CLAIM, RELEASED))
    assert stored.operation.state is State.RELEASED
    assert (stored.operation.gate, stored.operation.code) == ("final_fence", "stale_target")
    assert stored.claim is None
    assert not stored.operation.claimed


def test_attempts_follow_each_other_until_one_is_claimed_and_ends():
    stored = fold(events(REFUSED, REFUSED, ASKED, APPROVED, CLAIM, RELEASED, CLAIM, ended()))
    assert stored.terminal is not None
    assert stored.version == 8


def test_an_open_question_is_kept_and_a_no_closes_it():
    assert fold(events(ASKED)).approval.approval_id == "a1"
    assert fold(events(ASKED, APPROVED)).approval.approval_id == "a1"
    assert fold(events(ASKED, APPROVED)).operation.approved
    denied = fold(events(ASKED, DENIED))
    assert denied.approval is None
    assert denied.operation.state is State.REFUSED


def test_a_refused_conflict_leaves_the_operation_as_it_was():
    open_claim = fold(events(CLAIM, REFUSED))
    assert open_claim.interrupted_claim
    done = fold(events(CLAIM, REFUSED, ended(), REFUSED))
    assert done.terminal.kind == "succeeded"
    assert done.version == 4


def test_a_resolution_stands_beside_the_terminal_which_stays():
    stored = fold(events(CLAIM, ended("outcome_unknown"), RESOLVED))
    assert stored.terminal.kind == "outcome_unknown"
    assert stored.resolution == "happened"
    assert not stored.unresolved


@pytest.mark.parametrize(
    "stream",
    [
        (ended(),),
        (RELEASED,),
        (RESOLVED,),
        (CLAIM, CLAIM),
        (CLAIM, ASKED),
        (CLAIM, ended(), ended()),
        (CLAIM, ended(), CLAIM),
        (CLAIM, ended(), RELEASED),
        (CLAIM, RELEASED, RELEASED),
        (CLAIM, RELEASED, ended()),
        (CLAIM, ended("succeeded"), RESOLVED),
        (CLAIM, RESOLVED),
        (REFUSED, ended()),
        (CLAIM, ("operation.invented.v1", {})),
        ((history.CLAIMED, {"app": "no hash"}),),
        ((history.CLAIMED, {"action_hash": 5}),),
        (CLAIM, (history.TERMINAL, {"kind": "succeeded"})),
        (CLAIM, ended("outcome_unknown"), (history.RESOLVED, {"verdict": "perhaps"})),
    ],
)
def test_a_stream_no_honest_writer_produces_is_not_guessed_at(stream):
    with pytest.raises(JournalRecovery):
        fold(events(*stream))


def test_payloads_may_carry_more_than_is_read():
    kind, payload = CLAIM
    assert fold(events((kind, {**payload, "tomorrow": [1]}))).interrupted_claim


class TestIdempotency:
    def verdict(self, *stream, in_flight=None, action_hash=HASH):
        return idempotency(fold(events(*stream)), in_flight, action_hash)

    @pytest.mark.parametrize(
        "stream", [(), (REFUSED,), (ASKED,), (ASKED, APPROVED), (ASKED, DENIED), (CLAIM, RELEASED)]
    )
    @pytest.mark.parametrize("action_hash", [HASH, OTHER])
    def test_what_was_never_dispatched_is_decided_afresh(self, stream, action_hash):
        assert self.verdict(*stream, action_hash=action_hash) == Fresh()

    @pytest.mark.parametrize("kind", ["succeeded", "failed", "interrupted", "withheld", "outcome_unknown"])
    def test_the_same_again_gets_the_stored_terminal(self, kind):
        verdict = self.verdict(CLAIM, ended(kind))
        assert isinstance(verdict, Replay)
        assert verdict.terminal.kind == kind
        assert verdict.proof.seq == 2

    def test_other_content_under_a_dispatched_id_conflicts(self):
        assert self.verdict(CLAIM, ended(), action_hash=OTHER) == Conflict(action_hash=HASH)
        assert self.verdict(CLAIM, action_hash=OTHER) == Conflict(action_hash=HASH)

    def test_a_claim_whose_end_nobody_knows_is_unknown_and_is_not_sent_again(self):
        assert isinstance(self.verdict(CLAIM), Unknown)

    def test_two_at_once_are_one(self):
        assert self.verdict(in_flight=HASH) == Wait()
        assert self.verdict(CLAIM, in_flight=HASH) == Wait()
        assert self.verdict(CLAIM, in_flight=HASH, action_hash=OTHER) == Conflict(action_hash=HASH)

    def test_an_attempt_in_flight_wins_over_what_was_refused_before(self):
        assert self.verdict(REFUSED, in_flight=HASH) == Wait()


def test_streams_of_two_operations_never_meet():
    assert history.operation_stream("a:b", "c") != history.operation_stream("a", "b:c")
    with pytest.raises(InvalidRequest):
        history.operation_stream("a/b", "c")


def test_every_event_type_has_a_payload():
    assert set(history.PAYLOADS) == {
        value for name, value in vars(history).items() if isinstance(value, str) and value.startswith("operation.")
    }
    assert msgspec.json.schema(history.Claimed)
