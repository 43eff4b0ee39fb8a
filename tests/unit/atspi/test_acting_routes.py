"""What the actor says it can do before anyone acts: by toolkit, and by what an element advertises."""

from __future__ import annotations

import pytest

from surehand.adapters.atspi.acting import AtspiActor
from surehand.adapters.atspi.acting_plan import Bench
from surehand.model.actions import (
    Click,
    Expand,
    Focus,
    Invoke,
    Perform,
    Scroll,
    ScrollIntoView,
    SelectOption,
    SelectText,
    SetValue,
    Toggle,
)
from surehand.model.scene import AppIdentity, Node, Surface

_APP = AppIdentity(key="exe:/usr/bin/x", pid=1, process_generation="1", uid=0, executable="/usr/bin/x")


class _Blind:
    """Stands where an observer would: nothing here may be asked before an action is performed."""

    def object_of(self, handle):
        raise AssertionError(handle)

    async def live(self, surface_id, handles, *, around=()):
        raise AssertionError((surface_id, handles, around))

    async def read(self, surface_id, *, places=True):  # noqa: ARG002 - the port names it
        raise AssertionError(surface_id)


ACTOR = AtspiActor(_Blind())
BESIDE_A_PERSON = AtspiActor(_Blind(), may_open_lists=False)


def surface(toolkit: str) -> Surface:
    return Surface(
        surface_id="w1",
        desktop="d",
        app=_APP,
        backend="atspi",
        toolkit=toolkit,
        title="",
        role="window",
        place="window",
    )


GTK3, GTK4, QT5, CHROMIUM = (surface(t) for t in ("gtk 3.24.38", "GTK 4.8.3", "Qt 5.15.8", "Chromium 156"))


def node(role: str, *actions: str, states: tuple[str, ...] = (), can: tuple[str, ...] = ()) -> Node:
    return Node(handle=":1.1/a", role=role, actions=actions, states=frozenset(states), capabilities=frozenset(can))


def test_gtk4_has_no_focus_and_says_so():
    assert {f.action for f in ACTOR.capabilities(GTK3)} - {f.action for f in ACTOR.capabilities(GTK4)} == {"focus"}
    button = node("button", "click", can=("focus",))
    assert ACTOR.route(Focus(), GTK4, button) is None
    assert ACTOR.route(Focus(), GTK3, button) == "atspi.component"


def test_only_moving_the_focus_disturbs_a_person():
    facts = ACTOR.capabilities(QT5)
    assert {f.background for f in facts if f.action != "focus"} == {"guarded"}
    assert {f.background for f in facts if f.action == "focus"} == {"isolated_only"}
    assert {f.target_kind for f in facts} == {"element", "query"}


def test_scroll_into_view_goes_by_the_bar_where_scroll_to_is_missing():
    button = node("button")
    assert ACTOR.route(ScrollIntoView(), GTK3, button) == "atspi.value"
    assert ACTOR.route(ScrollIntoView(), CHROMIUM, button) == "atspi.component"
    assert ACTOR.route(ScrollIntoView(), QT5, node("treeitem")) is None


@pytest.mark.parametrize("actions", [(), ("delete",), ("click", "press"), ("clipboard.cut",)])
def test_without_one_named_verb_there_is_no_invoke(actions):
    assert ACTOR.route(Invoke(), GTK4, node("text", *actions)) is None


def test_toggle_is_for_what_can_be_checked():
    assert ACTOR.route(Toggle(to=True), GTK3, node("checkbox", "click")) == "atspi.action"
    assert ACTOR.route(Toggle(to=True), GTK3, node("button", "click")) is None
    assert ACTOR.route(Toggle(to=True), QT5, node("listitem", "Toggle")) is None
    assert ACTOR.route(Toggle(to=False), QT5, node("radio", "Toggle")) is None
    assert ACTOR.route(Toggle(to=True), GTK4, node("checkbox")) is None


def test_a_press_expands_only_what_says_that_it_expands():
    assert ACTOR.route(Expand(to=True), GTK3, node("button", "activate", states=("expandable",))) == "atspi.action"
    assert ACTOR.route(Expand(to=True), GTK3, node("button", "activate")) is None
    assert ACTOR.route(Expand(to=True), QT5, node("treeitem", "Toggle", states=("expandable",))) is None


def test_values_go_by_value_or_text():
    assert ACTOR.route(SetValue(value="1"), QT5, node("slider", can=("set_value",))) == "atspi.value"
    assert ACTOR.route(SetValue(value="1"), QT5, node("spinbutton", can=("set_value", "set_text"))) == "atspi.value"
    assert ACTOR.route(SetValue(value="1"), QT5, node("text", can=("set_text",))) == "atspi.text"
    assert ACTOR.route(SetValue(value="1"), QT5, node("label")) is None
    assert ACTOR.route(SelectText(start=0, length=1), QT5, node("text", can=("select_text",))) == "atspi.text"
    assert ACTOR.route(SelectText(start=0, length=1), QT5, node("button")) is None


def test_closed_combo_boxes_of_qt_and_gtk4_offer_no_choice():
    combo = node("combobox", "press", can=("select",))
    assert ACTOR.route(SelectOption(option="x"), GTK3, combo) == "atspi.action"
    assert ACTOR.route(SelectOption(option="x"), GTK4, combo) is None
    assert ACTOR.route(SelectOption(option="x"), QT5, combo) is None


def test_an_option_is_chosen_by_its_own_action_or_by_its_place():
    assert ACTOR.route(SelectOption(), QT5, node("listitem", "Toggle")) == "atspi.action"
    assert ACTOR.route(SelectOption(), GTK3, node("listitem", states=("selectable",))) == "atspi.selection"
    assert ACTOR.route(SelectOption(), GTK3, node("label")) is None
    assert ACTOR.route(SelectOption(option="x"), GTK3, node("button", can=("select",))) is None


def test_perform_and_scroll_need_what_they_use():
    assert ACTOR.route(Perform(name="edit"), GTK3, node("cell", "edit", "activate")) == "atspi.action"
    assert ACTOR.route(Perform(name="Edit"), GTK3, node("cell", "edit")) is None
    assert ACTOR.route(Scroll(direction="up", amount_milli=1), GTK3, node("scrollpane")) == "atspi.value"
    assert ACTOR.route(Scroll(direction="up", amount_milli=1), GTK3, node("button")) is None


def test_pointer_actions_and_missing_elements_are_not_its_own():
    assert ACTOR.route(Click(), GTK3, node("button", "click")) is None
    assert ACTOR.route(Invoke(), GTK3, None) is None


def test_a_prepared_action_does_not_print_its_secret():
    assert "hunter2" not in repr(Bench(_Blind(), GTK3, node("password"), "hunter2"))


def test_no_list_that_takes_the_keyboard_is_opened_where_that_is_a_persons():
    combo = node("combobox", "Press", "ShowMenu", "expand or collapse", states=("expandable",))
    for action, toolkit in ((SelectOption(option="blue"), GTK4), (Expand(to=True), QT5)):
        assert ACTOR.route(action, toolkit, combo) is not None
        assert BESIDE_A_PERSON.route(action, toolkit, combo) is None
    # GTK 3 chooses in the closed list, and to close one gives back what it took.
    assert BESIDE_A_PERSON.route(SelectOption(option="blue"), GTK3, combo) is not None
    assert BESIDE_A_PERSON.route(Expand(to=False), QT5, combo) == ACTOR.route(Expand(to=False), QT5, combo)
    item = node("listitem", can=("select",))
    assert BESIDE_A_PERSON.route(SelectOption(), GTK4, item) == ACTOR.route(SelectOption(), GTK4, item)
