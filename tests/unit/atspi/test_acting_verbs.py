"""Only named verbs count, only when there is exactly one, and at the index of the moment (case C07)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surehand.adapters.atspi import acting_verbs as verbs
from surehand.errors import StaleTarget, UnsupportedAction

#: What GTK 4.8 advertises on a text view, in the order it was seen in.
_TEXT_VIEW = (
    "clipboard.copy", "clipboard.paste", "selection.delete", "misc.insert-emoji", "clipboard.cut", "menu.popup",
    "selection.select-all",
)  # fmt: skip


@pytest.mark.parametrize("ranks", [verbs.INVOKE, verbs.TOGGLE_ON, verbs.TOGGLE_OFF, verbs.EXPAND, verbs.COLLAPSE])
def test_a_text_views_actions_serve_no_purpose(ranks):
    assert verbs.find(_TEXT_VIEW, ranks) is None


@pytest.mark.parametrize(
    ("actions", "expected"),
    [
        (("click",), 0),
        (("Press", "SetFocus"), 0),
        (("ShowMenu", "Press"), 1),
        (("ShowMenu", "SetFocus"), 0),
        (("expand or contract", "edit", "activate"), 2),
        (("delete",), None),
        (("click", "activate"), None),
        (("click", "click"), None),
        (("window.close", "default.activate"), None),
        (("Toggle",), None),
        ((), None),
    ],
)
def test_invoke_needs_exactly_one_activation_verb(actions, expected):
    assert verbs.find(actions, verbs.INVOKE) == expected


@pytest.mark.parametrize(
    ("actions", "ranks", "expected"),
    [
        (("check", "press"), verbs.TOGGLE_ON, 0),
        (("check", "press"), verbs.TOGGLE_OFF, 1),
        (("toggle", "click"), verbs.TOGGLE_ON, 0),
        (("listitem.toggle-expand", "listitem.collapse", "listitem.expand"), verbs.EXPAND, 2),
        (("listitem.toggle-expand", "listitem.collapse", "listitem.expand"), verbs.COLLAPSE, 1),
        (("Toggle",), verbs.EXPAND, None),
        (("expand or contract", "edit", "activate"), verbs.COLLAPSE, 0),
    ],
)
def test_names_that_lead_to_a_state_come_before_names_that_change_it(actions, ranks, expected):
    assert verbs.find(actions, ranks) == expected


@given(st.permutations(["delete", "click", "edit", "clipboard.cut"]))
def test_the_index_is_that_of_the_moment_whatever_the_order_was(now):
    observed = ["click", "delete", "edit", "clipboard.cut"]
    assert now[verbs.choose(observed, now, verbs.INVOKE, "invoke it")] == "click"
    assert now[verbs.named(observed, now, "delete")] == "delete"


@pytest.mark.parametrize("now", [["delete"], [], ["click", "press"], ["click", "click"], ["press"]])
def test_a_verb_that_is_gone_doubled_or_another_now_is_stale(now):
    with pytest.raises(StaleTarget):
        verbs.choose(["click"], now, verbs.INVOKE, "invoke it")


def test_an_element_without_a_verb_is_unsupported_even_if_it_has_one_now():
    with pytest.raises(UnsupportedAction):
        verbs.choose(["delete"], ["click"], verbs.INVOKE, "invoke it")


@pytest.mark.parametrize("name", ["Click", "clic", "click ", "", "0", "delete everything"])
def test_perform_takes_the_exact_name_only(name):
    with pytest.raises(UnsupportedAction):
        verbs.named(["click", "delete"], ["click", "delete"], name)


def test_perform_refuses_a_name_that_stands_twice():
    with pytest.raises(UnsupportedAction):
        verbs.named(["a", "a"], ["a", "a"], "a")
    with pytest.raises(StaleTarget):
        verbs.named(["a"], ["a", "a"], "a")
    with pytest.raises(StaleTarget):
        verbs.named(["a"], [], "a")
