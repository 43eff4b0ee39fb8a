"""The right thing or nothing: what changed between the look and the press is not pressed (cases C01–C08)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from surehand.model.actions import Click, Invoke, SetValue
from surehand.runtime.host import Host
from surehand.testing.desktop import IsolatedDesktop
from surehand.testing.fixture_app import FixtureApp
from tests.desktop.cases.kit import Hand, On, appears, by_query, named, person

pytestmark = [pytest.mark.desktop, pytest.mark.asyncio(loop_scope="module")]


def at_the_last_moment(on: On, monkeypatch: pytest.MonkeyPatch, change: Callable[[], Awaitable[object]]) -> None:
    """Have something happen once, after everything was checked, while the claim is being written."""
    operations = on.hand.host.parts.operations
    claim = operations.claim

    async def claim_and_change(*arguments: Any) -> Any:
        written = await claim(*arguments)
        monkeypatch.setattr(operations, "claim", claim)
        await change()
        await on.change("sync")
        return written

    monkeypatch.setattr(operations, "claim", claim_and_change)


async def test_c01_rows_made_anew_in_another_order_are_not_what_was_seen(on: On) -> None:
    delete = await on.button("Delete", "alice")
    await on.change("rows_set", names=["dave", "carol", "bob", "alice"])
    error = await on.refused("stale_target", Invoke(), delete)
    assert error["observed"]["difference"]["what"] in {"gone", "parent"}
    assert any("alice" in candidate for candidate in error["observed"]["candidates"])


async def test_c01_a_row_that_moved_by_itself_is_found_again_by_meaning(on: On) -> None:
    await on.change("rows_set", names=["dave", "carol", "bob", "alice"])
    await on.presses_once("row.delete", "alice", Invoke(), await on.button("Delete", "alice"))


async def test_c02_a_recycled_row_is_refused_naming_the_change(on: On) -> None:
    opened = await on.button("Open", "carol")
    await on.change("rows_recycle", names=["alice", "bob", "dave", "carol"])
    error = await on.refused("stale_target", Invoke(), opened)
    difference = error["observed"]["difference"]
    assert difference["what"] == "context"
    assert (difference["before"], difference["now"]) == ("carol", "dave")


async def test_c02_a_row_recycled_while_the_press_waits_in_the_toolkit_is_never_called_a_success(on: On) -> None:
    """GTK 4 runs the handler 250 ms after it acknowledged, Qt 100 ms; GTK 3 at once, so nothing can come between."""
    if on.toolkit == "gtk3":
        pytest.skip("GTK 3 has no such window of time")
    opened = await on.button("Open", "bob")
    request = await on.hand.request(Invoke(), opened)
    on.mark = on.app.mark()
    pressing = asyncio.create_task(on.hand.present(request))
    await on.begun(request["operation_id"])
    await on.change("rows_recycle", names=["alice", "dave", "carol", "bob"])
    reply = await pressing
    await on.app.settle()
    pressed = on.presses("row.open")
    assert len(pressed) <= 1
    if pressed != ["bob"]:
        assert reply["status"] == "outcome_unknown"


async def test_c03_a_button_that_says_something_else_now_is_refused(on: On) -> None:
    pay = await on.button("Pay 10")
    await on.change("rename", control="pay", name="Pay 9999")
    error = await on.refused("stale_target", Invoke(), pay)
    assert error["observed"]["difference"] == {"what": "name", "before": "Pay 10", "now": "Pay 9999"}
    await on.change("rename", control="pay", name="Pay 10")
    await on.presses_once("pay", "Pay 10", Invoke(), pay)


@pytest.mark.parametrize("how", ["recycled", "made anew", "removed"])
async def test_c01_c02_rows_that_change_at_the_last_moment_are_not_pressed(
    on: On, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    delete = await on.button("Delete", "bob")
    names = ["alice", "dave", "carol", "bob"]
    changes = {
        "recycled": lambda: on.change("rows_recycle", names=names),
        "made anew": lambda: on.change("rows_set", names=names),
        "removed": lambda: on.change("rows_remove", name="bob"),
    }
    at_the_last_moment(on, monkeypatch, changes[how])
    await on.refused("stale_target", Invoke(), delete)


@pytest.mark.parametrize("action", [Invoke(), Click()], ids=["invoke", "click"])
async def test_c03_a_button_that_changes_at_the_last_moment_is_refused_and_the_id_is_free_again(
    on: On, monkeypatch: pytest.MonkeyPatch, action: Invoke | Click
) -> None:
    await on.focus_window()
    pay = await on.button("Pay 10")
    at_the_last_moment(on, monkeypatch, lambda: on.change("rename", control="pay", name="Pay 9999"))
    request = await on.hand.request(action, pay)
    on.mark = on.app.mark()
    reply = await on.hand.present(request)
    assert (reply["status"], reply["error"]["code"], reply["error"]["gate"]) == (
        "refused",
        "stale_target",
        "final_fence",
    )
    await on.app.settle()
    assert on.effects() == []
    # Nothing happened under it: the same id may be used, once the button says what it said.
    await on.change("rename", control="pay", name="Pay 10")
    await on.change("sync")
    reply = await on.hand.present(request)
    assert (reply["status"], reply.get("replayed")) == ("succeeded", None), reply
    await on.app.settle()
    assert on.effects() == [("press", "pay", "Pay 10")]


async def test_a_control_that_is_disabled_at_the_last_moment_is_refused(
    on: On, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = await on.entry("name", "Name")
    at_the_last_moment(on, monkeypatch, lambda: on.change("enable", control="name", enabled=False))
    try:
        await on.refused("target_not_actionable", SetValue(value="too late"), entry)
    finally:
        await on.change("enable", control="name")


async def test_c03_a_click_is_fenced_like_a_press(on: On) -> None:
    await on.focus_window()
    pay = await on.button("Pay 10")
    await on.change("rename", control="pay", name="Pay 9999")
    await on.refused("stale_target", Click(), pay)


async def test_c04_an_earlier_control_that_becomes_enabled_does_not_shift_the_press(on: On) -> None:
    later = await on.button("Later")
    await on.change("enable", control="early")
    await on.presses_once("later", "Later", Invoke(), later)


async def test_c04_an_earlier_control_that_appears_does_not_shift_the_click(on: On) -> None:
    await on.focus_window()
    later = await on.button("Pay 10")
    await on.change("show", control="later", visible=False)
    await on.change("sync")
    await on.presses_once("pay", "Pay 10", Click(), later)


@pytest.mark.parametrize("action", [Invoke(), Click()], ids=["invoke", "click"])
async def test_c05_a_control_behind_a_modal_dialog_is_refused_showing_the_dialog(
    on: On, action: Invoke | Click
) -> None:
    count = await on.button("Count")
    await on.change("dialog_open", modal=True)
    dialog = await on.hand.window(on.app.pid, "Question")
    error = await on.refused("behind_modal", action, count)
    assert error["observed"]["dialog"] == "Question"
    ok = await on.hand.find(dialog, named("OK"), {"role": "button"})
    await on.act(Invoke(), ok[0])
    await on.app.settle()
    assert on.effects() == [("press", "dialog-ok", "OK"), ("dialog", "dialog", "closed")]
    await on.presses_once("counter", "Count", Invoke(), count)


async def test_c05_a_dialog_that_an_operation_ahead_opened_is_noticed(on: On) -> None:
    """Both were in order when they were proposed; one waits for the other's turn."""
    opens, count = await on.button("Open dialog"), await on.button("Count")
    on.mark = on.app.mark()
    first, second = await asyncio.gather(
        on.hand.act(Invoke(), opens, verification=appears(named("Are you sure?"))), on.hand.act(Invoke(), count)
    )
    await on.app.settle()
    assert first["status"] == "succeeded"
    assert (second["status"], second["error"]["code"]) == ("refused", "behind_modal")
    assert on.effects() == [("press", "open-dialog", "Open dialog"), ("dialog", "dialog", "opened")]


@pytest.mark.parametrize("action", [Invoke(), Click()], ids=["invoke", "click"])
async def test_c05_a_dialog_that_opens_at_the_last_moment_is_noticed(
    on: On, action: Invoke | Click, monkeypatch: pytest.MonkeyPatch, desktop: IsolatedDesktop
) -> None:
    """It comes after everything was checked, while the claim is being written."""
    await on.focus_window()
    count = await on.button("Count")

    async def open_dialog() -> None:
        await on.change("dialog_open", modal=True)
        # Until the window manager shows it there is nothing that could be noticed.
        shown = ("xdotool", "search", "--sync", "--onlyvisible", "--name", "^Question$")
        await asyncio.to_thread(person, desktop, *shown)

    at_the_last_moment(on, monkeypatch, open_dialog)
    reply = await on.act(action, count)
    await on.app.settle()
    assert on.effects("press") == []
    assert reply["status"] == "refused", reply


async def test_c05_a_dialog_that_is_not_modal_is_in_nobodys_way(on: On) -> None:
    count = await on.button("Count")
    await on.change("dialog_open", modal=False)
    await on.hand.window(on.app.pid, "Question")
    await on.presses_once("counter", "Count", Invoke(), count)


async def test_c06_a_click_lands_in_the_window_that_was_read_wherever_it_stands(
    on: On, desktop: IsolatedDesktop
) -> None:
    """Another application stands where window-relative coordinates would lead."""
    other = await FixtureApp.start(desktop, "gtk3", sections=["buttons"])
    try:
        there = await On.reach(on.hand, other)
        await there.place(0, 0)
        await on.place(60, 40)
        await on.focus_window()
        for name, control in (("Count", "counter"), ("Later", "later")):
            mark = other.mark()
            await on.act(Click(), await on.button(name))
            await on.app.settle()
            assert on.effects() == [("press", control, name)]
            assert other.events("press", after=mark) == []
    finally:
        other.close()


@pytest.mark.parametrize("moved", ["the window", "the element"])
async def test_c06_a_click_never_lands_on_what_came_to_its_place(
    on: On, moved: str, monkeypatch: pytest.MonkeyPatch, desktop: IsolatedDesktop
) -> None:
    """The move comes after everything was checked, while the claim is being written."""
    await on.place(40, 40)
    await on.focus_window()
    count = await on.button("Count")

    async def move() -> None:
        if moved == "the element":
            await on.change("show", control="later", visible=False)
        else:
            person(desktop, "xdotool", "search", "--name", on.app.title, "windowmove", "--sync", "40", "80")

    at_the_last_moment(on, monkeypatch, move)
    reply = await on.act(Click(), count)
    await on.app.settle()
    assert [effect for effect in on.effects() if effect != ("press", "counter", "Count")] == []
    assert (reply["status"] == "succeeded") == (on.presses("counter") == ["Count"])


async def test_c06_a_click_on_a_covered_control_is_refused(on: On, desktop: IsolatedDesktop) -> None:
    count = await on.button("Count")
    other = await FixtureApp.start(desktop, "gtk3", sections=["buttons"])
    try:
        there = await On.reach(on.hand, other)
        await on.place(0, 0)
        x, y = count["bounds"][0], count["bounds"][1]
        await there.place(max(0, x - 100), max(0, y - 200))
        await there.focus_window()
        mark = other.mark()
        count = await on.button("Count")
        error = await on.refused("stale_target", Click(), count)
        assert error["observed"]["covered_by"] == other.title
        assert other.events("press", after=mark) == []
    finally:
        other.close()


async def test_c07_a_text_view_is_not_activated_by_whatever_its_first_action_is(on: On) -> None:
    await on.change("set_text", control="notes", text="keep me")
    view = await on.one(named("Notes"), {"role": "text"})
    await on.refused("unsupported_action", Invoke(), view)
    assert await on.change("get", control="notes") == "keep me"


async def test_c08_an_ambiguous_query_lists_its_candidates_and_takes_none(on: On) -> None:
    twins = by_query(on.surface, named("Delete"), {"role": "button"})
    error = await on.refused("ambiguous_target", Invoke(), twins)
    assert len(error["observed"]["candidates"]) == 6
    assert sum("carol" in candidate for candidate in error["observed"]["candidates"]) == 1


async def test_c08_a_query_that_says_which_one_presses_that_one(on: On) -> None:
    in_row = by_query(
        on.surface, named("Open"), {"role": "button"}, {"context": {"text": "carol", "match": "contains"}}
    )
    await on.presses_once("row.open", "carol", Invoke(), in_row)


async def test_c08_a_query_is_never_enough_for_what_cannot_be_undone(on: On) -> None:
    row = {"context": {"text": "carol", "match": "contains"}}
    reply = await on.act(Invoke(), by_query(on.surface, named("Delete"), {"role": "button"}, row))
    assert reply["status"] == "approval_required"
    await on.app.settle()
    assert on.effects() == []


async def test_a_reference_of_another_session_is_worth_nothing(on: On, host: Host, desktop: IsolatedDesktop) -> None:
    count = await on.button("Count")
    stranger = await Hand.connect(host, desktop)
    try:
        await stranger.window(on.app.pid, on.app.title)
        reply = await stranger.act(Invoke(), count)
        assert (reply["status"], reply["error"]["code"]) == ("refused", "stale_target")
        await on.app.settle()
        assert on.effects() == []
    finally:
        await stranger.close()


async def test_a_text_meant_for_one_field_does_not_go_into_the_field_that_took_its_place(on: On) -> None:
    entry = await on.entry("name", "Name")
    await on.change("replace_tree")
    reply = await on.act(SetValue(value="for the old one"), entry)
    assert (reply["status"], reply["error"]["code"]) == ("refused", "stale_target")
    await on.app.settle()
    assert on.effects("text") == []
    assert await on.change("get", control="name") == ""
