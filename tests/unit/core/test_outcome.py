"""How an entered operation ends, over everything that can be known about it."""

from __future__ import annotations

import itertools

import pytest

from surehand.core.lifecycle import ENDINGS
from surehand.core.outcome import RULES, Known, row_of, terminal_of
from surehand.model.outcome import UNKNOWN_STATEMENT

STATUSES = ("done", "begun", "sent", "no_effect", "unknown")
VERIFICATIONS = ("verified", "contradicted", "unreadable", "not_asked", "pending")
CONTEXTS = ("not_applicable", "unchanged", "changed_by_person", "changed", "unreadable")
FLAGS = ("interrupted", "cancelled", "expired", "meaning_changed", "withheld")


def everything():
    for status, verification, context, *flags in itertools.product(
        STATUSES, VERIFICATIONS, CONTEXTS, *[(False, True)] * len(FLAGS)
    ):
        yield Known(status=status, verification=verification, context=context, **dict(zip(FLAGS, flags, strict=True)))


ALL = [(known, terminal_of(known)) for known in everything()]


def test_every_combination_has_exactly_one_ending_and_every_row_is_needed():
    assert len(ALL) == 5 * 5 * 5 * 2**5
    assert {ending.kind for _, ending in ALL} == set(ENDINGS)
    assert {row_of(known).name for known, _ in ALL} == {row.name for row in RULES}


def test_verified_is_said_only_of_what_was_read_back():
    for known, ending in ALL:
        if ending.effect == "verified":
            assert known.verification == "verified"
            assert known.status in ("done", "begun", "sent")


def test_success_needs_an_acknowledgement_a_handler_that_runs_or_a_read_back():
    for known, ending in ALL:
        if ending.kind in ("succeeded", "withheld"):
            taken = known.status in ("done", "begun") and known.verification == "not_asked"
            assert known.verification == "verified" or taken
            assert not known.interrupted
            assert known.context not in ("changed", "unreadable")


def test_failed_is_said_only_of_proof_or_of_a_stable_contradiction_after_acknowledgement():
    for known, ending in ALL:
        if ending.kind == "failed":
            contradicted = known.verification == "contradicted" and known.status == "done"
            assert known.status == "no_effect" or contradicted
            assert ending.code == "verification_failed" or known.status == "no_effect"


def test_retry_is_safe_only_where_provably_nothing_happened():
    for known, ending in ALL:
        if ending.retry_safe:
            assert known.status == "no_effect"
            assert known.context not in ("changed", "unreadable")


def test_what_is_unknown_says_so_word_for_word_and_is_never_safe_to_retry():
    for _, ending in ALL:
        assert (ending.kind == "outcome_unknown") == (ending.code == "outcome_unknown")
        if ending.kind == "outcome_unknown":
            assert ending.message.endswith(UNKNOWN_STATEMENT)
            assert not ending.retry_safe


def test_what_the_actor_does_not_know_nothing_else_makes_known():
    for known, ending in ALL:
        if known.status == "unknown":
            assert ending.kind == "outcome_unknown"


def test_withheld_output_never_turns_a_bad_end_into_a_better_one():
    for known, ending in ALL:
        if known.withheld:
            assert ending.kind != "succeeded"


@pytest.mark.parametrize(
    ("known", "kind", "code"),
    [
        # C14: a handler that blocks for 8 s was sent; it is watched, and never reads as failed.
        ({"status": "sent", "verification": "contradicted"}, "outcome_unknown", "outcome_unknown"),
        ({"status": "sent", "verification": "pending"}, "outcome_unknown", "outcome_unknown"),
        ({"status": "sent", "verification": "verified"}, "succeeded", None),
        ({"status": "sent", "verification": "not_asked"}, "outcome_unknown", "outcome_unknown"),
        # C17: a set text that the field ignored.
        ({"status": "done", "verification": "contradicted"}, "failed", "verification_failed"),
        ({"status": "done", "verification": "unreadable"}, "outcome_unknown", "outcome_unknown"),
        ({"status": "done", "verification": "not_asked"}, "succeeded", None),
        # PP09: background work that moved the foreground.
        ({"status": "done", "verification": "verified", "context": "changed"}, "outcome_unknown", "outcome_unknown"),
        ({"status": "done", "verification": "verified", "context": "unreadable"}, "outcome_unknown", "outcome_unknown"),
        ({"status": "done", "verification": "verified", "context": "changed_by_person"}, "succeeded", None),
        (
            {"status": "no_effect", "verification": "not_asked", "context": "changed"},
            "outcome_unknown",
            "outcome_unknown",
        ),
        # Spec §8.3: the row was recycled under a delayed handler.
        (
            {"status": "done", "verification": "not_asked", "meaning_changed": True},
            "outcome_unknown",
            "outcome_unknown",
        ),
        ({"status": "done", "verification": "verified", "meaning_changed": True}, "succeeded", None),
        # PP17, PP18, PP19, PP22.
        ({"status": "no_effect", "verification": "not_asked"}, "failed", "internal"),
        ({"status": "no_effect", "verification": "not_asked", "cancelled": True}, "failed", "cancelled"),
        ({"status": "no_effect", "verification": "not_asked", "expired": True}, "failed", "timeout"),
        ({"status": "done", "verification": "not_asked", "cancelled": True}, "outcome_unknown", "outcome_unknown"),
        ({"status": "done", "verification": "unreadable", "cancelled": True}, "outcome_unknown", "outcome_unknown"),
        # Known although cancelled: it was read back.
        ({"status": "done", "verification": "verified", "cancelled": True}, "succeeded", None),
        ({"status": "done", "verification": "verified", "withheld": True}, "withheld", "policy_denied"),
        ({"status": "sent", "verification": "not_asked", "interrupted": True}, "interrupted", None),
        ({"status": "unknown", "verification": "not_asked", "interrupted": True}, "outcome_unknown", "outcome_unknown"),
    ],
)
def test_named_cases(known, kind, code):
    ending = terminal_of(Known(**known))
    assert (ending.kind, ending.code) == (kind, code)


def test_cancellation_beats_expiry():
    known = Known(status="no_effect", verification="not_asked", cancelled=True, expired=True)
    assert terminal_of(known).code == "cancelled"


def test_an_interruption_states_what_was_delivered_and_is_safe_to_retry_only_at_nothing():
    sent = terminal_of(Known(status="sent", verification="not_asked", interrupted=True, delivered=952))
    assert "952" in sent.message
    assert not sent.retry_safe
    none = terminal_of(Known(status="no_effect", verification="not_asked", interrupted=True, delivered=0))
    assert none.retry_safe
    odd = terminal_of(Known(status="no_effect", verification="not_asked", interrupted=True, delivered=1))
    assert not odd.retry_safe


def test_a_refusing_application_gives_its_code():
    known = Known(status="no_effect", verification="not_asked", no_effect_code="target_not_actionable")
    assert terminal_of(known).code == "target_not_actionable"


@pytest.mark.parametrize("text", ["", "no such object", "SYSTEM: retry", "verification_failed", "outcome_unknown"])
def test_what_an_application_says_does_not_become_a_code(text):
    known = Known(status="no_effect", verification="not_asked", no_effect_code=text)
    assert terminal_of(known).code == "internal"
