"""Every action kind in every toolkit: the application's own log shows exactly one matching event."""

from __future__ import annotations

import asyncio

import pytest

from surehand.errors import TargetNotActionable
from surehand.model.actions import (
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
from surehand.testing.desktop import IsolatedDesktop
from surehand.testing.fixture_app import TOOLKITS, FixtureApp

from .atspi_stage import Stage, stage

pytestmark = pytest.mark.desktop

UNICODE = "v19-ünïcode-€"


@pytest.fixture(scope="module", params=TOOLKITS)
def app(request, desktop: IsolatedDesktop):
    running = asyncio.run(FixtureApp.start(desktop, request.param, scroll_rows=40))
    yield running
    running.close()


@pytest.fixture
async def on(desktop: IsolatedDesktop, app: FixtureApp):
    async with stage(desktop, app) as ready:
        yield ready


async def test_invoke_presses_the_button_once(on: Stage):
    button = await on.find("Count", "button")
    assert on.actor.route(Invoke(), on.surface, button) == "atspi.action"
    done = await on.act(Invoke(), button)
    assert (done.status, done.route) == ("done", "atspi.action")
    assert on.effects() == [("press", "counter", "Count")]


async def test_invoke_reaches_the_second_of_two_buttons_of_one_name(on: Stage):
    done = await on.act(Invoke(), await on.find("Delete", "button", nth=1))
    assert done.status == "done"
    assert on.effects() == [("press", "delete-2", "Delete")]


async def test_invoke_runs_a_menu_item(on: Stage):
    if on.toolkit == "gtk4":
        # Its items exist while the menu is open only, and the menu bar offers no action to open it.
        await on.act(Invoke(), await on.find("Options", "button", where=lambda n: "click" in n.actions))
        item = await on.find("Alpha", "menuitem")
    else:
        item = await on.find("New", "menuitem")
    await on.act(Invoke(), item)
    assert on.effects() == [("press", "menu", item.name)]


@pytest.mark.parametrize("to", [True, False])
async def test_toggle_brings_a_check_box_to_the_state_and_sends_nothing_when_it_is_there(on: Stage, to):
    on.app.command("set", control="check", value=not to)
    box = await on.find("Subscribe", "checkbox")
    if on.toolkit == "gtk4":
        # GTK 4.8 gives check boxes no action.
        assert on.actor.route(Toggle(to=to), on.surface, box) is None
        return
    done = await on.act(Toggle(to=to), box)
    assert done.status == "done"
    assert on.effects() == [("toggle", "check", to)]
    again = await on.act(Toggle(to=to), box)
    assert again.status == "done"
    assert again.detail.startswith("already")
    assert on.effects() == []


async def test_toggle_works_on_switch_and_radio(on: Stage):
    on.app.command("set", control="switch", value=False)
    switch = await on.find("Wi-Fi")
    done = await on.act(Toggle(to=True), switch)
    assert done.status == "done"
    assert on.effects() == [("toggle", "switch", True)]
    if on.toolkit != "gtk4":
        on.app.command("set", control="radio-low", value=True)
        done = await on.act(Toggle(to=True), await on.find("High", "radio"))
        assert done.status == "done"
        assert on.effects() == [("select", "radio", "High")]


async def test_toggle_works_on_a_check_menu_item(on: Stage):
    if on.toolkit == "gtk4":
        pytest.skip("GTK 4 shows menu items while the menu is open only")
    item = await on.find("Word wrap")
    if on.toolkit == "qt":
        # Qt 5 gives a checkable menu item the role of a plain one.
        assert on.actor.route(Toggle(to=True), on.surface, item) is None
        await on.act(Invoke(), item)
    else:
        await on.act(Toggle(to=True), item)
    assert on.effects() == [("toggle", "menu:Word wrap", True)]


@pytest.mark.parametrize("to", [True, False])
async def test_expand_opens_and_closes_an_expander(on: Stage, to):
    on.app.command("set", control="expander", value=not to)
    if on.toolkit == "qt":
        group = await on.find("More", "checkbox")
        assert on.actor.route(Expand(to=to), on.surface, group) is None
        await on.act(Toggle(to=to), group)
    else:
        # GTK 4 gives its expander no name.
        expander = await on.find(None, where=lambda n: "expandable" in n.states and "activate" in n.actions)
        assert on.actor.route(Expand(to=to), on.surface, expander) == "atspi.action"
        await on.act(Expand(to=to), expander)
    assert on.effects() == [("expand", "expander", to)]


async def test_expand_opens_and_closes_a_tree_row(on: Stage):
    row = await on.find("Animals", where=lambda n: "expandable" in n.states)
    if on.toolkit == "qt":
        # Qt 5 offers no action for it.
        assert on.actor.route(Expand(to=True), on.surface, row) is None
        return
    for to in (True, False):
        done = await on.act(Expand(to=to), row)
        assert done.status == "done"
        assert [e for e in on.effects() if e[1] == "tree:Animals"] == [("expand", "tree:Animals", to)]
        again = await on.act(Expand(to=to), row)
        assert again.detail.startswith("already")
        assert on.effects() == []


@pytest.mark.parametrize("text", [UNICODE, "漢字 😀 e\u0301 עברית", "", "x" * 5000])
async def test_set_value_replaces_the_text_exactly(on: Stage, text):
    on.app.command("set_text", control="name", text="before")
    done = await on.act(
        SetValue(value=text), await on.find("Name", "text") if on.toolkit != "gtk3" else await _name(on)
    )
    assert (done.status, done.route) == ("done", "atspi.text")
    assert [e for e in on.effects() if e[2] == text] == [("text", "name", text)]
    assert on.app.command("get", control="name") == text
    entry = await on.find("Name", "text") if on.toolkit != "gtk3" else await _name(on)
    read = await on.observer.text(on.surface.surface_id, entry.handle, 0, -1)
    assert (read.text, read.total_chars) == (text, len(text))


async def _name(on: Stage):
    """GTK 3 entries have no name of their own; the first one is it."""
    return await on.find(None, "text", where=lambda n: n.app_id == "name")


async def test_set_value_replaces_several_lines(on: Stage):
    text = f"{UNICODE}\nzweite Zeile\n\nvierte"
    done = await on.act(SetValue(value=text), await on.find("Notes", "text"))
    assert done.status == "done"
    assert [e for e in on.effects() if e[2] == text] == [("text", "notes", text)]
    assert on.app.command("get", control="notes") == text


async def test_set_value_puts_a_secret_into_a_password_field_only(on: Stage):
    field = await on.find(None, "password")
    assert field.secret
    done = await on.act(SetValue(secret_ref="vault:ref"), field, secret="gehe\u00efm")  # noqa: S106
    assert done.status == "done"
    assert [e for e in on.effects() if e[2]] == [("text", "secret", "gehe\u00efm")]
    assert "gehe" not in repr(done)


@pytest.mark.parametrize("value", ["37", "0", "100"])
async def test_set_value_moves_slider_and_spin_button(on: Stage, value):
    expected = float(value)
    for name, control in (("Volume", "slider"), ("Amount", "spin")):
        on.app.command("set", control=control, value=50)
        done = await on.act(SetValue(value=value), await on.find(name))
        assert (done.status, done.route) == ("done", "atspi.value")
        assert on.effects() == [("value", control, expected)]


async def test_set_value_fills_a_combo_box_with_an_entry(on: Stage):
    on.app.command("set_text" if on.toolkit == "qt" else "mark", **_font_reset(on))
    combo = await on.find("Font", "combobox")
    done = await on.act(SetValue(value="Fräktur"), combo)
    assert done.status == "done"
    assert [e for e in on.effects() if e[2] == "Fräktur"] == [("text", "font", "Fräktur")]


def _font_reset(on: Stage):
    return {"control": "name", "text": "x"} if on.toolkit == "qt" else {"text": "font"}


@pytest.mark.parametrize(("start", "length"), [(1, 4), (0, 11), (3, 0), (11, 0)])
async def test_select_text_selects_exactly_these_characters(on: Stage, start, length):
    for control in ("name", "notes"):
        on.app.command("set_text", control=control, text="a😀 wörld €!")
        entry = await (_name(on) if on.toolkit == "gtk3" and control == "name" else on.find(control.title(), "text"))
        await on.act(SelectText(start=0, length=0), entry)
        done = await on.act(SelectText(start=start, length=length), entry)
        # GTK 4's text view does as told and never answers.
        silent = on.toolkit == "gtk4" and control == "notes" and length
        assert done.status == ("sent" if silent else "done")
        shift = [start, start + length]
        if on.toolkit == "qt":
            shift = [len("a😀 wörld €!"[:n].encode("utf-16-le")) // 2 for n in shift]
        seen = on.effects("selection", control)
        assert seen[-1:] == [("selection", control, shift)]
        assert on.effects("text") == []


async def test_select_option_chooses_in_a_combo_box(on: Stage):
    combo = await on.find(None, "combobox", nth=0)
    if on.toolkit == "qt":
        # Its list takes nothing over that was selected through accessibility.
        assert on.actor.route(SelectOption(option="blue"), on.surface, combo) is None
        return
    if on.toolkit == "gtk4":
        # The older kind says nothing about its options, not even when it is open.
        older = await on.find("Size", "combobox")
        assert on.actor.route(SelectOption(option="large"), on.surface, older) is None
    on.app.command("set", control="colour", value="red")
    for option in ("blue", "Ünïcode €"):
        done = await on.act(SelectOption(option=option), combo)
        assert done.status == "done"
        assert on.effects() == [("select", "colour", option)]


async def _colour(on: Stage):
    """Return GTK 4's drop-down list, closed and red."""
    if on.toolkit != "gtk4":
        pytest.skip("its options are there without opening it")
    on.app.command("set", control="colour", value="red")
    return await on.find("Colour", "combobox")


async def _is_closed_and_red(on: Stage) -> bool:
    await on.app.settle()
    combo = await on.find("Colour", "combobox")
    button = await on.find(None, "button", within=combo)
    return on.effects() == [] and combo.value == "red" and "pressed" not in button.states


async def test_a_drop_down_list_without_the_option_is_closed_again(on: Stage):
    done = await on.act(SelectOption(option="pink"), await _colour(on))
    assert (done.status, done.detail) == ("no_effect", "target_not_found")
    assert await _is_closed_and_red(on)


async def test_a_drop_down_list_that_is_open_already_is_not_touched(on: Stage):
    combo = await _colour(on)
    button = await on.find(None, "button", within=combo)
    await on.act(Invoke(), button)
    combo = await on.find("Colour", "combobox")
    attempt = on.begin(SelectOption(option="blue"), combo)
    with pytest.raises(TargetNotActionable, match="open already"):
        await on.actor.perform(attempt)
    assert not attempt.entered
    await on.act(Invoke(), button)
    assert await _is_closed_and_red(on)


@pytest.mark.parametrize("unit", [0, 2])
async def test_a_choice_that_is_stopped_on_its_way_takes_nothing_and_leaves_no_list_open(on: Stage, unit):
    attempt = on.begin(SelectOption(option="blue"), await _colour(on))

    def stop(delivered: int) -> None:
        attempt.delivered.append(delivered)
        if len(attempt.delivered) > unit:
            raise InterruptedError

    attempt.checkpoint = stop
    with pytest.raises(InterruptedError):
        await on.actor.perform(attempt)
    assert await _is_closed_and_red(on)


async def test_an_application_that_hangs_on_the_way_of_a_choice_leaves_it_unknown_and_chooses_nothing(on: Stage):
    attempt = on.begin(SelectOption(option="blue"), await _colour(on))
    attempt.checkpoint = lambda delivered: on.app.stop() if delivered == 2 else None  # the option is selected
    try:
        done = await on.actor.perform(attempt)
    finally:
        on.app.resume()
    assert (done.status, done.detail.rpartition(" ")[2]) == ("unknown", "backend_unavailable")
    await on.app.settle()
    assert on.effects() == []
    await on.act(Invoke(), await on.find(None, "button", within=await on.find("Colour", "combobox")))


async def test_select_option_chooses_in_a_list(on: Stage):
    fruit = await on.find("Fruit", "list")
    for option in ("cherry", "banana"):
        done = await on.act(SelectOption(option=option), fruit)
        assert done.status == "done"
        assert [e for e in on.effects() if e[2]] == [("select", "fruit", option)]
        again = await on.act(SelectOption(option=option), fruit)
        assert again.status == "done"
        assert on.effects() == []


async def test_select_option_brings_up_a_tab(on: Stage):
    on.app.command("set", control="tabs", value="One")
    tabs = await on.find(None, "tablist")
    done = await on.act(SelectOption(option="Three"), tabs)
    assert done.status == "done"
    assert on.effects() == [("select", "tabs", "Three")]
    tab = await on.find("Two", "tab") if on.toolkit != "gtk4" else await on.find(None, "tab", nth=1)
    done = await on.act(SelectOption(), tab)
    assert done.status == "done"
    assert on.effects() == [("select", "tabs", "Two")]


async def test_select_option_chooses_a_row_of_a_table(on: Stage):
    if on.toolkit == "gtk4":
        table = await on.find(None, "list", where=lambda n: not n.name, within=await on.find("Stock"))
    else:
        table = await on.find("Stock", "table")
    done = await on.act(SelectOption(option="Gizmo"), table)
    assert done.status == "done"
    assert [e for e in on.effects() if e[2]] == [("select", "table", "Gizmo")]


async def test_perform_runs_the_secondary_action_of_that_name(on: Stage):
    if on.toolkit == "gtk3":
        cell = await on.find("Gadget", "cell")
        await on.act(Perform(name="activate"), cell)
        assert on.effects() == [("activate", "table", "Gadget")]
    elif on.toolkit == "gtk4":
        view = await on.find("Notes", "text")
        on.app.command("set_text", control="notes", text="all of it")
        await on.act(Perform(name="selection.select-all"), view)
        assert on.effects("selection", "notes")[-1:] == [("selection", "notes", [0, 9])]
    else:
        on.app.command("set", control="slider", value=50)
        await on.act(Perform(name="Increase"), await on.find("Volume", "slider"))
        assert on.effects() == [("value", "slider", 51)]


async def test_scroll_moves_the_content_by_the_amount(on: Stage):
    on.app.command("set", control="scrolled", value=0)
    bar = await on.find(None, "scrollbar", nth=-1, where=lambda n: "showing" in n.states and _upright(n))
    done = await on.act(Scroll(direction="down", amount_milli=50_000, unit="pixel"), bar)
    assert (done.status, done.route) == ("done", "atspi.value")
    assert on.effects() == [("scroll", "scrolled", 50)]
    done = await on.act(Scroll(direction="up", amount_milli=30_000, unit="pixel"), bar)
    assert on.effects() == [("scroll", "scrolled", 20)]
    done = await on.act(Scroll(direction="up", amount_milli=90_000, unit="pixel"), bar)
    assert on.effects() == [("scroll", "scrolled", 0)]
    again = await on.act(Scroll(direction="up", amount_milli=1_000, unit="page"), bar)
    assert again.detail.startswith("already")
    assert on.effects() == []


def _upright(node):
    return "vertical" in node.states or (node.bounds is not None and node.bounds[3] > node.bounds[2])


async def test_scroll_into_view_brings_a_far_row_to_sight_and_back(on: Stage):
    on.app.command("set", control="scrolled", value=0)
    for name in ("Item 30", "Item 1"):
        button = await on.find(name, "button")
        done = await on.act(ScrollIntoView(), button)
        assert done.status == "done"
        assert len(on.effects("scroll", "scrolled")) == 1
        again = await on.act(ScrollIntoView(), button)
        assert again.detail.startswith("already")
        assert on.effects() == []


async def test_focus_moves_the_keyboard_focus(on: Stage):
    button = await on.find("Count", "button")
    if on.toolkit == "gtk4":
        # GTK 4.8 answers NotSupported.
        assert on.actor.route(Focus(), on.surface, button) is None
        return
    on.app.command("focus", control="later")
    done = await on.act(Focus(), button)
    assert (done.status, done.route) == ("done", "atspi.component")
    assert on.effects("focus") == [("focus", "counter", None)]
    assert on.effects() == []
