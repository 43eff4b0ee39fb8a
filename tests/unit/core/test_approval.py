"""Approvals: what is seen is what is signed; an answer counts once, in time, from who may give it."""

from __future__ import annotations

import msgspec
import pytest

from surehand import limits
from surehand.core import approval
from surehand.errors import AuthorityDenied, InvalidRequest, TooLarge
from surehand.model.actions import Press, SetValue, TypeText
from surehand.model.approval import ApprovalAnswer
from tests.rules_kit import HOST_KEY, OTHER_KEY, ZERO_HASH, document, public_hex, verify

OBSERVED = {"role": "button", "name": "Send", "context": "To: carol", "title": "Mail", "categories": ["send_publish"]}
NOW = 1_000_000
PERSON = approval.Approver(approver="carol", key_id="k1", public_key=public_hex(HOST_KEY))
SECOND = approval.Approver(approver="dave", key_id="k1", public_key=public_hex(OTHER_KEY))


def presented(action=None, *, observed=None, **changes):
    given = document({**OBSERVED, **(observed or {})}, **changes)
    return approval.present(given, action or TypeText(text="hello"), reason="it sends something", action_hash=ZERO_HASH)


def asked(needed=1, **changes):
    return approval.ask(presented(**changes), approval_id="a1", operation_id="op-1", now_ms=NOW, needed=needed)


def answered(pending, key=HOST_KEY, **changes):
    fields = {
        "approval_id": pending.approval_id,
        "presentation_hash": pending.presentation_hash,
        "answer": "approve",
        "approver": "carol",
        "key_id": "k1",
        "answered_at_ms": NOW + 1,
        "expires_at_ms": NOW + 60_000,
        **changes,
    }
    unsigned = ApprovalAnswer(**fields, signature="")
    signature = key.sign(approval.answer_message(unsigned)).hex()
    return msgspec.structs.replace(unsigned, signature=signature)


def check(answer, pending, now_ms=NOW + 2, approvers=(PERSON, SECOND)):
    return approval.check_answer(answer, pending, approvers, verify, now_ms=now_ms)


class TestWhatIsSeen:
    @pytest.mark.parametrize(
        ("text", "seen"),
        [
            ("plain text", "plain text"),
            ("ünïcode €漢", "ünïcode €漢"),
            ("a\nb\tc", "a\\u{a}b\\u{9}c"),
            ("\x1b[31mred", "\\u{1b}[31mred"),
            ("pay \u202e01", "pay \\u{202e}01"),
            ("a\u200bb\ufeff", "a\\u{200b}b\\u{feff}"),
            ("\u2066x\u2069", "\\u{2066}x\\u{2069}"),
            ("x\U000e0041", "x\\u{e0041}"),
            ("\ufe0f\u3164", "\\u{fe0f}\\u{3164}"),
            ("a\u00a0b\u2028", "a\\u{a0}b\\u{2028}"),
            ("a\u034f\u17b4\u180b\u180f", "a\\u{34f}\\u{17b4}\\u{180b}\\u{180f}"),
            ("a\U000e0100\U000e01ef", "a\\u{e0100}\\u{e01ef}"),
            ("\ud800", "\\u{d800}"),
            ("\\u{202e}", "\\\\u{202e}"),
        ],
    )
    def test_nothing_acts_without_showing_and_a_look_alike_stays_apart(self, text, seen):
        assert approval.visible(text) == seen

    def test_the_texts_of_the_action_and_the_element_are_shown(self):
        shown = presented(TypeText(text="1 000 € to dave", submit=True))
        assert shown.parameters == {"text": "1 000 € to dave", "submit": True}
        assert (shown.element, shown.context, shown.app) == ("button Send", "To: carol", "exe:/usr/bin/mousepad")
        assert shown.categories == ("send_publish",)

    def test_secrets_are_masked_everywhere(self):
        given = document({**OBSERVED, "name": "hunter2", "context": "is hunter2"})
        shown = approval.present(
            given, TypeText(text="x hunter2"), reason="r", action_hash=ZERO_HASH, secrets=["hunter2"]
        )
        assert "hunter2" not in str(msgspec.to_builtins(shown))

    def test_a_secret_reference_is_shown_by_name(self):
        assert presented(SetValue(secret_ref="vault:mail")).parameters == {"secret_ref": "vault:mail"}  # noqa: S106 a name, not a secret

    def test_keys_of_a_chord_are_shown_too(self):
        assert presented(Press(chords=("ctrl+\u202es",))).parameters == {"chords": ["ctrl+\\u{202e}s"]}

    def test_a_text_is_shown_whole_up_to_the_bound_and_cut_in_the_open_past_it(self):
        most = limits.PRESENTATION_TEXT_CHARS_MAX
        assert presented(TypeText(text="x" * most)).parameters["text"] == "x" * most
        cut = presented(TypeText(text="a" * most + "b")).parameters["text"]
        assert cut.startswith("a" * 100)
        assert cut.endswith("ab")
        assert "[…1 more characters…]" in cut


class TestWhatIsSigned:
    def test_looking_again_keeps_the_hash(self):
        assert approval.still_covers(asked(), presented())

    @pytest.mark.parametrize(
        "changes",
        [
            {"observed": {"name": "Pay"}},
            {"observed": {"context": "To: dave"}},
            {"observed": {"categories": []}},
            {"action": TypeText(text="hello!")},
            {"facts": {"app": "exe:/other"}},
            {"facts": {"place": "dialog"}},
            {"risk": "external"},
            {"principal": "other"},
        ],
        ids=lambda changes: next(iter(changes)),
    )
    def test_a_change_of_anything_shown_voids_an_answer(self, changes):
        assert not approval.still_covers(asked(), presented(**changes))

    def test_a_plan_is_covered_in_its_order(self):
        def plan(*steps):
            return approval.presentation_hash(
                approval.present(document(OBSERVED), TypeText(text="x"), reason="r", action_hash=ZERO_HASH, steps=steps)
            )

        assert plan("1" * 64, "2" * 64) != plan("2" * 64, "1" * 64)


class TestAnswers:
    def test_a_signed_answer_of_an_allowed_approver_counts(self):
        pending = asked()
        assert check(answered(pending), pending) is PERSON

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("approval_id", "a2"),
            ("presentation_hash", "1" * 64),
            ("answer", "deny"),
            ("approver", "dave"),
            ("answered_at_ms", NOW),
            ("expires_at_ms", NOW + 70_000),
            ("reason", "because"),
        ],
    )
    def test_an_answer_changed_after_signing_is_refused(self, field, value):
        pending = asked()
        changed = msgspec.structs.replace(answered(pending), **{field: value})
        with pytest.raises(AuthorityDenied, match="not signed by an allowed approver"):
            check(changed, pending)

    @pytest.mark.parametrize("signature", ["", "zz", "00", "0" * 128])
    def test_a_broken_signature_is_refused(self, signature):
        pending = asked()
        with pytest.raises(AuthorityDenied) as refused:
            check(msgspec.structs.replace(answered(pending), signature=signature), pending)
        assert "a key that the daemon knows" in refused.value.fix

    def test_a_stranger_and_a_stolen_name_read_alike(self):
        pending = asked()
        for answer in (answered(pending, approver="eve"), answered(pending, OTHER_KEY), answered(pending, key_id="k2")):
            with pytest.raises(AuthorityDenied, match="not signed by an allowed approver"):
                check(answer, pending)

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"approval_id": "a2"}, "another question"),
            ({"presentation_hash": "1" * 64}, "something else"),
            ({"expires_at_ms": NOW + 2}, "answer has expired"),
            ({"answered_at_ms": NOW - 1}, "before the question"),
            ({"answered_at_ms": NOW + 3}, "future"),
            ({"expires_at_ms": NOW + 2 + limits.APPROVAL_MS_MAX}, "too long"),
        ],
    )
    def test_a_signed_answer_that_does_not_fit_is_refused_by_name(self, changes, message):
        pending = asked()
        with pytest.raises(AuthorityDenied, match=message):
            check(answered(pending, **changes), pending)

    def test_the_bounds_of_time_are_exact(self):
        pending = asked()
        check(answered(pending, answered_at_ms=NOW), pending)
        check(answered(pending, answered_at_ms=NOW + 2), pending)
        check(answered(pending, expires_at_ms=NOW + 1 + limits.APPROVAL_MS_MAX), pending)
        late = pending.expires_at_ms
        check(answered(pending, expires_at_ms=late + 1), pending, now_ms=late - 1)
        with pytest.raises(AuthorityDenied, match="question has expired"):
            check(answered(pending, expires_at_ms=late + 1), pending, now_ms=late)

    def test_nobody_approves_their_own_proposal(self):
        own = approval.Approver(approver="agent", key_id="k1", public_key=public_hex(HOST_KEY))
        pending = asked()
        with pytest.raises(AuthorityDenied, match="own proposal"):
            check(answered(pending, approver="agent"), pending, approvers=(own,))

    def test_a_question_whose_words_were_swapped_is_refused(self):
        pending = asked()
        swapped = msgspec.structs.replace(pending, presentation=presented(TypeText(text="other")))
        with pytest.raises(AuthorityDenied, match="has changed"):
            check(answered(pending), swapped)

    def test_a_question_lives_ten_minutes_unless_said_otherwise(self):
        assert asked().expires_at_ms == NOW + 600_000


class TestTally:
    def tally(self, pending, *answers, now_ms=NOW + 2):
        return approval.tally(answers, pending, now_ms=now_ms)

    def test_one_yes_is_enough_where_one_is_needed(self):
        pending = asked()
        assert self.tally(pending) == "waiting"
        assert self.tally(pending, answered(pending)) == "approved"

    def test_one_no_is_a_no_among_any_number_of_yeses(self):
        pending = asked()
        no = answered(pending, OTHER_KEY, approver="dave", answer="deny")
        assert self.tally(pending, answered(pending), no) == "denied"

    def test_a_quorum_counts_people_not_answers(self):
        pending = asked(needed=2)
        assert self.tally(pending, answered(pending), answered(pending, reason="again")) == "waiting"
        assert self.tally(pending, answered(pending), answered(pending, OTHER_KEY, approver="dave")) == "approved"

    def test_a_yes_stops_counting_when_it_expires(self):
        pending = asked()
        answer = answered(pending)
        assert self.tally(pending, answer, now_ms=answer.expires_at_ms - 1) == "approved"
        assert self.tally(pending, answer, now_ms=answer.expires_at_ms) == "waiting"

    def test_silence_is_neither_yes_nor_no(self):
        pending = asked()
        assert self.tally(pending, now_ms=pending.expires_at_ms - 1) == "waiting"
        assert self.tally(pending, now_ms=pending.expires_at_ms) == "unanswered"

    def test_a_quorum_is_bounded(self):
        asked(needed=limits.APPROVALS_NEEDED_MAX)
        for needed in (0, limits.APPROVALS_NEEDED_MAX + 1):
            with pytest.raises((InvalidRequest, TooLarge)):
                asked(needed=needed)


def test_one_use_is_counted_under_its_own_key():
    assert approval.use_key("a1") == "approval/a1"


def test_spaces_cannot_push_a_name_to_where_the_next_line_of_the_question_stands():
    forged = presented(observed={"name": "OK" + " " * 70 + "risk         read"})
    assert " " * 8 not in forged.element
    assert "\\u{20}" in forged.element
    assert approval.visible("a" + " " * 7 + "b") == "a" + " " * 7 + "b"
    assert approval.visible("a" + " " * 8 + "b") == "a" + "\\u{20}" * 8 + "b"


def test_what_is_aimed_at_a_whole_window_shows_its_title_and_is_void_under_another():
    window = {"role": "", "name": "", "context": "", "title": "a.txt"}
    assert presented(observed=window).element == "window a.txt"
    pending = asked(observed=window)
    assert not approval.still_covers(pending, presented(observed={**window, "title": "b.txt"}))
