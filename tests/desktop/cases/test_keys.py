"""Text arrives exactly and only where it is meant (cases C09, C36, C37 through the host; C38 is in tests/crash)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from surehand.model.actions import Click, Press, TypeText
from surehand.testing.desktop import IsolatedDesktop
from surehand.testing.fixture_app import FixtureApp
from tests.desktop.cases.kit import Hand, On, named, person, until, window_of

pytestmark = [pytest.mark.desktop, pytest.mark.asyncio(loop_scope="module")]

C36 = "yz/@{[-_ äéß€Ω漢"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def other(hand: Hand, desktop: IsolatedDesktop) -> AsyncIterator[On]:
    """Another application with a text field that has the keyboard when its window has."""
    running = await FixtureApp.start(desktop, "gtk3", sections=["text"], title="Somebody else")
    await running.run("focus", control="name")
    yield await On.reach(hand, running)
    running.close()


async def typing_into(on: On, text: str = "") -> dict[str, object]:
    """Give a field the keyboard and return it."""
    await on.change("set_text", control="name", text=text)
    await on.focus_window()
    await on.change("focus", control="name")
    await on.change("sync")
    return await on.entry("name", "Name")


@pytest.mark.parametrize("text", [C36, "aaaabbbb  ßßß漢漢..", "é å̊ שלום 🙂👍🏽", "x" * 500])
async def test_c36_c37_text_arrives_exactly_and_is_verified(on: On, text: str) -> None:
    entry = await typing_into(on)
    await on.done("verified", TypeText(text=text), entry)
    assert await on.change("get", control="name") == text


async def test_c36_a_terminal_gets_exactly_the_bytes(hand: Hand, desktop: IsolatedDesktop) -> None:
    """A terminal shows nothing to accessibility: the text goes to its window, and nothing is claimed to be verified."""
    got = desktop.folder / "home" / "typed"
    script = f"stty -echo raw; echo ready > '{got}'; exec cat > '{got}'"
    terminal = await desktop.launch(["xterm", "-u8", "-e", "sh", "-c", script])
    try:
        surface = await hand.window(terminal.pid)
        await until(lambda: got.exists() and got.read_bytes() == b"", "an empty terminal")
        assert (await hand.act({"kind": "window", "op": "focus"}, window_of(surface)))["status"] == "succeeded"
        reply = await hand.act(TypeText(text=C36), window_of(surface))
        assert (reply["status"], reply["terminal"]["receipt"]["effect"]) == ("succeeded", "executed_unverified")
        await until(lambda: got.read_text("utf-8") == C36, "the text in the terminal")
    finally:
        terminal.kill()


async def test_chords_reach_the_field_that_has_the_keyboard(on: On) -> None:
    entry = await typing_into(on, "all of this")
    await on.done("executed_unverified", Press(chords=("ctrl+a", "BackSpace")), entry)
    await on.app.settle()
    assert await on.change("get", control="name") == ""


async def test_clear_and_submit_replace_and_send(on: On) -> None:
    entry = await typing_into(on, "old")
    await on.done("executed_unverified", TypeText(text="new", clear=True, submit=True), entry)
    await on.app.settle()
    assert on.effects("activate", "name") == [("activate", "name", "new")]
    assert await on.change("get", control="name") == "new"


async def test_c09_text_is_not_typed_after_another_window_took_the_focus(on: On, other: On) -> None:
    entry = await typing_into(on)
    await other.focus_window()
    mark = other.app.mark()
    error = await on.refused("focus_required", TypeText(text="secret plans"), entry)
    assert error["retry_safe"]
    await on.refused("focus_required", Press(chords=("Delete",)), window_of(on.surface))
    assert await on.change("get", control="name") == ""
    assert other.app.events("text", after=mark) == []
    assert other.app.events("key_press", after=mark) == []


async def test_c09_text_is_not_typed_after_another_field_took_the_focus(on: On) -> None:
    entry = await typing_into(on)
    await on.change("focus", control="secret")
    await on.change("sync")
    await on.refused("focus_required", TypeText(text="secret plans"), entry)
    assert on.effects("text") == []


async def test_c09_typing_stops_when_another_window_takes_the_focus_in_the_middle(
    on: On, other: On, desktop: IsolatedDesktop
) -> None:
    entry = await typing_into(on)
    window = person(desktop, "xdotool", "search", "--name", "^Somebody else$")
    mark = other.app.mark()
    request = await on.hand.request(TypeText(text="0123456789" * 40), entry)
    on.mark = on.app.mark()
    typing = asyncio.create_task(on.hand.present(request))
    await on.app.wait_for("text", "name", after=on.mark, where=lambda event: len(event.value) >= 5)
    await asyncio.to_thread(person, desktop, "xdotool", "windowactivate", "--sync", window)
    reply = await typing
    await on.app.settle()
    arrived = await on.change("get", control="name")
    assert ("0123456789" * 40).startswith(arrived)
    assert other.app.events("text", after=mark) == []
    if len(arrived) < 400:
        assert reply["status"] == "outcome_unknown", reply
        assert reply["output"]["delivered"] <= 400
    # Nothing stays down.
    held = await physical(on)
    assert (held["held"], held["buttons"]) == ([], [])


async def test_c09_typing_stops_when_a_window_of_the_same_application_takes_the_focus(on: On) -> None:
    entry = await typing_into(on)
    await on.change("arm", control="name", do={"cmd": "window_open"})
    reply = await on.act(TypeText(text="abcdefghij" * 40), entry)
    try:
        await on.app.settle()
        assert on.effects("text", "second-entry") == []
        arrived = await on.change("get", control="name")
        assert ("abcdefghij" * 40).startswith(arrived)
        assert reply["status"] == ("outcome_unknown" if len(arrived) < 400 else "succeeded"), reply
    finally:
        await on.change("window_close")


async def test_c38_a_caller_that_goes_away_lets_go_of_what_it_held(on: On, desktop: IsolatedDesktop) -> None:
    """Another session is still there, so nothing else would let go."""
    await on.focus_window()
    stranger = await Hand.connect(on.hand.host, desktop)
    await stranger.window(on.app.pid, on.app.title)
    later = (await stranger.find(on.surface, {"role": "button"}, named("Later")))[0]
    assert (await stranger.act({"kind": "hold"}, later))["status"] == "succeeded"
    assert (await physical(on))["held"] == ["button:1"]
    await stranger.close()
    state = await physical(on)
    assert (state["held"], state["buttons"], state["modifiers"]) == ([], [], 0)


async def physical(on: On) -> dict[str, Any]:
    reply = await on.hand.act({"kind": "physical_state"}, {"kind": "none"})
    return dict(reply["output"])


async def test_c38_a_caller_that_goes_away_while_it_types_leaves_nothing_down(on: On, desktop: IsolatedDesktop) -> None:
    await typing_into(on)
    stranger = await Hand.connect(on.hand.host, desktop)
    await stranger.window(on.app.pid, on.app.title)
    entry = (await stranger.find(on.surface, {"state": {"focused": True}}, {"role": "text"}))[0]
    request = await stranger.request(TypeText(text="AbCdEfGh" * 40), entry)
    on.mark = on.app.mark()
    typing = asyncio.create_task(stranger.present(request))
    await on.app.wait_for("text", "name", after=on.mark)
    await stranger.close()
    await asyncio.gather(typing, return_exceptions=True)
    state = await physical(on)
    assert (state["held"], state["buttons"], state["modifiers"]) == ([], [], 0)
    stored = await on.hand.call("status", operation_id=request["operation_id"])
    arrived = await on.change("get", control="name")
    assert ("AbCdEfGh" * 40).startswith(arrived)
    assert stored["terminal"]["kind"] == ("outcome_unknown" if len(arrived) < 320 else "succeeded")


async def test_hold_and_release_are_both_told_to_the_application(on: On) -> None:
    await on.focus_window()
    canvas = await on.one(named("Canvas"))
    await on.done("executed_unverified", {"kind": "hold"}, canvas)
    await on.hand.act({"kind": "release"}, {"kind": "none"})
    await on.app.settle()
    assert [event[1] for event in on.effects("canvas") if event[1] != "motion-notify"] == [
        "button-press",
        "button-release",
    ]


async def test_a_click_gives_a_field_the_keyboard(on: On) -> None:
    await on.focus_window()
    await on.change("focus", control="later")
    await on.act(Click(), await on.entry("name", "Name"))
    await on.app.settle()
    assert on.effects("focus", "name") != []
