"""What an answer proves: nothing more than was measured, and silence is never a failure."""

from __future__ import annotations

import pytest

from surehand.adapters.atspi.acting_outcome import judge, judge_silence
from surehand.adapters.atspi.transport import Failure
from surehand.errors import from_value

_DBUS = "org.freedesktop.DBus.Error."
_FAMILIES = ["gtk3", "gtk4", "qt5", "qt6", "chromium", "gecko", "other"]
_KINDS = ["action", "text", "range", "value", "selection", "focus", "scroll_to"]


@pytest.mark.parametrize("family", _FAMILIES)
@pytest.mark.parametrize("kind", _KINDS)
def test_silence_is_sent_and_a_lost_connection_is_unknown_everywhere(family, kind):
    assert judge(Failure("timeout"), kind, family).status == "sent"
    assert judge(Failure("lost"), kind, family).status == "unknown"
    assert judge(Failure("gone", _DBUS + "NoReply"), kind, family).status == "unknown"
    assert judge(Failure("gone", _DBUS + "Disconnected"), kind, family).status == "unknown"


@pytest.mark.parametrize("family", _FAMILIES)
def test_what_never_left_or_never_arrived_had_no_effect(family):
    assert judge(Failure("unsent"), "action", family).status == "no_effect"
    assert judge(Failure("gone", _DBUS + "ServiceUnknown"), "action", family).status == "no_effect"
    assert judge(Failure("gone", _DBUS + "NameHasNoOwner"), "action", family).status == "no_effect"


@pytest.mark.parametrize("name", ["UnknownObject", "UnknownMethod", "UnknownInterface", "InvalidArgs", "NotSupported"])
def test_errors_given_before_anything_is_done_prove_no_effect(name):
    verdict = judge(Failure("refused", _DBUS + name, "words"), "action", "other")
    assert verdict.status == "no_effect"
    assert from_value({"code": verdict.detail}).code in {"stale_target", "unsupported_action"}


@pytest.mark.parametrize("name", [_DBUS + "Failed", _DBUS + "NoMemory", _DBUS + "Timeout", "com.example.Oops", ""])
def test_any_other_error_is_unknown(name):
    verdict = judge(Failure("refused", name, "nothing happened, honestly"), "action", "gtk4")
    assert verdict.status == "unknown"
    assert "honestly" not in verdict.detail


@pytest.mark.parametrize("kind", _KINDS)
def test_false_proves_nothing_where_it_was_not_measured(kind):
    for family in ("qt6", "chromium", "gecko", "other", "gtk5"):
        assert judge([False], kind, family).status == "unknown"


@pytest.mark.parametrize(
    ("family", "kind"),
    [("gtk4", "action"), ("gtk4", "text"), ("gtk3", "selection"), ("gtk3", "range"), ("qt5", "focus")],
)
def test_false_proves_no_effect_where_it_was_measured(family, kind):
    assert judge([False], kind, family) == ("no_effect", "target_not_actionable")


def test_gtk3_false_to_an_action_proves_nothing_because_it_answers_before_it_acts():
    assert judge([False], "action", "gtk3").status == "unknown"


@pytest.mark.parametrize("reply", [[True], [], [None], [0]])
def test_any_other_reply_is_an_acknowledgement(reply):
    assert judge(reply, "action", "gtk3").status == "done"


def test_a_handler_is_said_to_run_only_where_the_application_answered_what_was_asked_behind_a_named_action():
    assert judge_silence([[0, 0]], "action", "qt5").status == "begun"
    for behind in (None, Failure("timeout"), Failure("refused", _DBUS + "UnknownObject"), Failure("lost")):
        assert judge_silence(behind, "action", "qt5").status == "sent"
    for kind in ("text", "range", "value", "selection", "focus", "scroll_to"):
        assert judge_silence([[0, 0]], kind, "qt5").status == "sent"


@pytest.mark.parametrize("family", [family for family in _FAMILIES if family != "qt5"])
def test_an_answer_from_another_thread_of_a_hanging_application_proves_no_handler(family):
    assert judge_silence([[0, 0]], "action", family).status == "sent"
