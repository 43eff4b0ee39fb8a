"""A secret is typed only where the keyboard certainly is, and only into a field that hides it or that it is bound to."""

# ruff: noqa: S106 - references and made-up texts, not passwords
from __future__ import annotations

import msgspec
import pytest

from surehand.adapters.x11.actor import _refuse_secret_elsewhere, _text_of
from surehand.errors import FocusRequired, TargetNotActionable, UnsupportedAction
from surehand.model.actions import TypeText
from surehand.model.scene import LiveNode
from surehand.model.secrets import HeldSecret
from surehand.testing.attempts import RecordingAttempt
from surehand.testing.memory import MemoryApp, field

APP = MemoryApp([])
FIELD = msgspec.structs.replace(
    field("pw", "Password", ""), role="password", secret=True, states=frozenset({"focused", "focusable"})
)
ACTION = TypeText(secret_ref="vault:mail")


def refuse(node, *, may_show: bool = False, aimed=FIELD) -> None:
    attempt = RecordingAttempt(ACTION, APP.surface, aimed, secret="x")
    attempt.secret = HeldSecret(bytearray(b"x"), may_show=may_show)
    _refuse_secret_elsewhere(attempt, {} if node is None else {"pw": LiveNode(node=node, parent="root")})


def test_a_focused_secret_field_takes_it():
    refuse(FIELD)
    refuse(msgspec.structs.replace(FIELD, secret=False), may_show=True)


@pytest.mark.parametrize(
    "node",
    [
        None,
        msgspec.structs.replace(FIELD, states=frozenset({"focusable"})),
        msgspec.structs.replace(FIELD, states=frozenset()),
    ],
)
def test_a_field_that_has_not_the_keyboard_or_does_not_say_takes_none(node):
    with pytest.raises(FocusRequired):
        refuse(node)


def test_a_whole_window_takes_none():
    with pytest.raises(FocusRequired):
        refuse(FIELD, aimed=None)


def test_a_field_that_shows_its_text_by_now_takes_none():
    with pytest.raises(TargetNotActionable):
        refuse(msgspec.structs.replace(FIELD, secret=False))


def test_what_is_no_secret_is_typed_as_before():
    attempt = RecordingAttempt(TypeText(text="hello"), APP.surface, None)
    _refuse_secret_elsewhere(attempt, {})
    assert _text_of(attempt, TypeText(text="hello")) == "hello"
    with pytest.raises(UnsupportedAction):
        _text_of(attempt, ACTION)
