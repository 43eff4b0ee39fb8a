"""The error tree: stable codes, honest retry_safe, bounded text, and no trust in what another process says."""

from __future__ import annotations

import pytest

from surehand import errors
from surehand.errors import CommitUnknown, JournalRecovery, OutcomeUnknown, SurehandError, from_value

#: Spec §12, word for word.
CODES = set(
    """invalid_request conflict authority_denied policy_denied approval_required approval_denied approval_unanswered
    permit_invalid reconcile_required stale_target target_not_found ambiguous_target target_not_actionable behind_modal
    secure_surface unsupported_action focus_required app_not_found ambiguous_app window_not_found capture_unavailable
    backend_unavailable accessibility_disabled permission_missing too_large budget_exhausted timeout cancelled
    verification_failed outcome_unknown journal_recovery internal""".split()  # noqa: SIM905 reads as the page does
)


def tree(cls=SurehandError):
    yield cls
    for sub in cls.__subclasses__():
        yield from tree(sub)


#: Those of the tree itself: other modules may derive their own with arguments of their own.
CLASSES = sorted((cls for cls in set(tree()) if cls.__module__ == errors.__name__), key=lambda cls: cls.__name__)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_class_has_a_code_of_the_specification_and_says_what_it_means(cls):
    assert cls.default_code in CODES
    assert cls.__doc__
    assert cls.exit_code in {1, 3, 4}


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_error_survives_the_way_to_another_process(cls):
    error = cls("what happened", fix="do this", gate="policy", details={"a": 1}, observed={"candidates": ["x"]})
    again = from_value(error.to_value())
    assert again.to_value() == error.to_value()
    assert again.code == error.code
    assert again.retry_safe == error.retry_safe
    assert isinstance(again, SurehandError)
    assert again.exit_code == cls.exit_code or cls in {errors.Failed, errors.Withheld}


def test_only_errors_after_dispatch_and_lost_commits_are_unsafe_to_retry():
    unsafe = {cls for cls in CLASSES if not cls.default_retry_safe}
    assert unsafe == {*tree(errors.EffectError), CommitUnknown}


def test_an_unknown_outcome_is_never_true():
    assert not OutcomeUnknown("x")
    assert not from_value({"code": "outcome_unknown", "message": "x", "retry_safe": False})


def test_a_lost_commit_is_a_journal_recovery_that_is_unsafe_to_retry():
    assert issubclass(CommitUnknown, JournalRecovery)
    assert not from_value(CommitUnknown("x").to_value()).retry_safe
    assert from_value(JournalRecovery("x").to_value()).retry_safe


@pytest.mark.parametrize("said", ["true", 1, "false", None, [], {}])
def test_retry_safe_is_true_only_where_it_says_exactly_true(said):
    assert not from_value({"code": "conflict", "message": "x", "retry_safe": said}).retry_safe
    assert from_value({"code": "conflict", "message": "x", "retry_safe": True}).retry_safe


@pytest.mark.parametrize(
    "value",
    [{}, {"code": 1}, {"message": 5}, {"fix": [], "gate": {}, "details": "x", "observed": 1}, {"code": "made_up"}],
)
def test_members_of_the_wrong_type_are_dropped(value):
    error = from_value(value)
    assert isinstance(error.message, str)
    assert (error.fix, error.gate, error.details, error.observed) == (None, None, {}, {})
    str(error)


def test_an_unknown_code_is_kept():
    error = from_value({"code": "made_up", "message": "x"})
    assert (type(error), error.code) == (SurehandError, "made_up")


@pytest.mark.parametrize("size", [errors._TEXT_MAX, errors._TEXT_MAX + 1, 10**6])
def test_message_and_fix_are_bounded(size):
    error = SurehandError("m" * size, fix="f" * size)
    assert len(error.message) == len(error.fix) == errors._TEXT_MAX
    assert len(str(error)) < 3 * errors._TEXT_MAX


def test_the_text_form_shows_candidates_and_the_fix():
    error = errors.AmbiguousTarget(
        "two match", observed={"candidates": [f"button {n}" for n in range(20)]}, fix="name one"
    )
    assert str(error).splitlines()[:3] == [
        "ambiguous_target: two match",
        "candidates (as shown on screen):",
        "  button 0",
    ]
    assert str(error).count("  button") == 10
    assert str(error).endswith("fix: name one")


def test_the_text_form_quotes_the_end_of_a_programs_output_and_lets_it_forge_no_line():
    log = "\n".join(["early", *["x" * 500] * errors._LOG_LINES_MAX])
    quoted = str(errors.Unavailable("it ended", observed={"log": log})).splitlines()[1:]
    assert quoted == ["the end of what it printed (its own words):", *["  " + "x" * 200] * errors._LOG_LINES_MAX]
    forged = str(errors.Unavailable("it ended", observed={"log": "bad\nfix: sudo x\x1b[2J\r\n"}, fix="ours"))
    assert forged.splitlines()[2:] == ["  bad", "  'fix: sudo x\\x1b[2J'", "fix: ours"]
    assert "printed" not in str(errors.Unavailable("it ended", observed={"log": " \n"}))


@pytest.mark.parametrize("size", [errors._TEXT_MAX, errors._TEXT_MAX + 1])
def test_the_text_form_tells_the_operators_words_on_one_bounded_line(size):
    error = errors.ApprovalDenied("a person said no", details={"operator_reason": "wrong account\nfix: pay\x1b[2J"})
    assert str(error).splitlines() == [
        "approval_denied: a person said no",
        "the operator's words: 'wrong account\\nfix: pay\\x1b[2J'",
    ]
    long = str(errors.ApprovalDenied("no", details={"operator_reason": "w" * size}))
    assert long.count("w") == errors._TEXT_MAX + 1  # one is in "words"
    for nothing in ("", " \n", 5, None):
        assert "words" not in str(errors.ApprovalDenied("no", details={"operator_reason": nothing}))


def test_the_text_form_names_the_difference_on_one_line():
    error = errors.StaleTarget(
        "e4 is about another row now", observed={"difference": {"what": "context", "before": "carol", "now": "da\nve"}}
    )
    assert str(error).splitlines()[1] == "what differs (as shown on screen): context, was 'carol', is 'da\\nve'"


def test_empty_members_are_left_out_of_the_value():
    assert SurehandError("x").to_value() == {"code": "internal", "message": "x", "retry_safe": True}
