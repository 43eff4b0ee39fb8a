"""Roles, states and capabilities: the tables speak the vocabulary of scenes, and only named verbs count."""

from __future__ import annotations

import pytest

from surehand.adapters.atspi import roles
from surehand.model.scene import CAPABILITIES, ROLES, STATES


def states(bits, role="button", enabled=True, showing=True):
    return roles.states_of(bits, role, enabled=enabled, showing=showing)


def capabilities(role, interfaces=(), actions=(), has=(), place=False):
    return roles.capabilities_of(role, frozenset(has), frozenset(interfaces), tuple(actions), has_place=place)


def test_every_table_uses_known_words_only():
    assert {role for _, role in roles.ROLES_BY_NUMBER.values()} <= ROLES
    assert set(roles.STATES_BY_BIT.values()) <= STATES
    for group in (
        roles.TEXT_ROLES,
        roles.CAPTION_ROLES,
        roles.LABELLED_ROLES,
        roles.CHECKABLE_ROLES,
        roles.LONG_ROLES,
        roles.CONTAINER_ROLES,
        roles.SILENT_ROLES,
    ):
        assert group <= ROLES


def test_at_spi_numbers_are_complete_and_an_unknown_one_is_no_guess():
    assert set(roles.ROLES_BY_NUMBER) == set(range(130))
    assert roles.role_of(4711) == ("unknown", "unknown")
    assert roles.role_of(-1) == ("unknown", "unknown")
    assert roles.role_of(43) == ("push button", "button")


def test_enabled_and_showing_come_from_rules_and_not_from_bits():
    everything = (1 << 64) - 1
    assert {"enabled", "showing"}.isdisjoint(states(everything, enabled=False, showing=False))
    assert states(0) == {"enabled", "showing"}


def test_expandable_and_not_expanded_is_collapsed():
    assert "collapsed" in states(1 << 9)
    assert "collapsed" not in states(1 << 9 | 1 << 10)


def test_a_text_that_is_not_editable_is_read_only_and_a_label_is_not_called_so():
    assert "readonly" in states(0, "text")
    assert "readonly" not in states(1 << 7, "text")
    assert "readonly" not in states(1 << 43, "label")


@pytest.mark.parametrize("name", ["clipboard.cut", "selection.delete", "Edit", "expand or contract", "menu.popup", ""])
def test_an_action_without_an_activation_verb_is_no_invoke(name):
    found = capabilities("text", actions=[name])
    assert "invoke" not in found
    assert "perform" in found


@pytest.mark.parametrize("name", ["click", "Click", "Press", "activate", "jump"])
def test_named_activation_verbs_are_an_invoke(name):
    assert "invoke" in capabilities("button", actions=["clipboard.cut", name])


def test_capabilities_follow_interfaces_states_and_roles():
    assert "set_text" not in capabilities("text", ["EditableText"])
    assert "set_text" in capabilities("text", ["EditableText"], has=["editable"])
    assert "set_value" in capabilities("slider", ["Value"])
    assert "set_value" not in capabilities("progressbar", ["Value"])
    assert "toggle" in capabilities("checkbox", actions=["Toggle"])
    assert "toggle" not in capabilities("listitem", actions=["Toggle"])
    assert "point" in capabilities("button", place=True)
    assert "scroll" in capabilities("button", ["Component"])
    assert "scroll" not in capabilities("button", ["Component"], has=["showing"])
    assert capabilities("filler") == frozenset()
    assert (
        capabilities("slider", ["Value", "Selection", "Text"], ["click"], ["focusable", "expandable"]) <= CAPABILITIES
    )
