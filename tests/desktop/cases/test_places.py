"""A click lands where the element is, or nowhere (cases C06 with a real calculator, C32, C33, C35)."""

from __future__ import annotations

import base64
import io
import time
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from PIL import Image

from surehand.model.actions import Click, Invoke, SelectOption
from surehand.testing.desktop import IsolatedDesktop
from surehand.testing.fixture_app import TOOLKITS, FixtureApp
from tests.desktop.cases.kit import WAIT_S, Hand, On, named, window_of

pytestmark = [pytest.mark.desktop, pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=TOOLKITS)
async def scaled(request: pytest.FixtureRequest, desktop: IsolatedDesktop) -> AsyncIterator[FixtureApp]:
    """An application that draws twice as large as it counts."""
    double = {"GDK_SCALE": "2", "QT_SCALE_FACTOR": "2"}
    running = await FixtureApp.start(desktop, request.param, sections=["buttons", "values"], env=double)
    yield running
    running.close()


@pytest.mark.parametrize("corner", [(0, 20), (64, 48)])
async def test_c32_a_click_at_scale_two_lands_where_it_is_meant(
    hand: Hand, scaled: FixtureApp, corner: tuple[int, int]
) -> None:
    on = await On.reach(hand, scaled)
    await on.place(*corner)
    await on.focus_window()
    for name, control in (("Later", "later"), ("Count", "counter"), ("Pay 10", "pay")):
        await on.presses_once(control, name, Click(), await on.button(name))
    await on.presses_once("later", "Later", Invoke(), await on.button("Later"))


async def test_c32_a_click_in_a_picture_at_scale_two_lands_where_the_picture_shows_it(
    hand: Hand, scaled: FixtureApp
) -> None:
    on = await On.reach(hand, scaled)
    await on.place(32, 40)
    await on.focus_window()
    later = await on.button("Later")
    taken = await hand.call("screenshot", surface=on.surface)
    x, y, width, height = later["bounds"]
    capture = taken["capture"]
    middle = (x + width // 2 - capture["origin_x"], y + height // 2 - capture["origin_y"])
    picture = Image.open(io.BytesIO(base64.b64decode(taken["png_base64"])))
    assert picture.size == (capture["width"], capture["height"])
    await on.presses_once("later", "Later", Click(), point(capture, middle))


def point(capture: dict[str, object], place: tuple[int, int], space: str = "screenshot") -> dict[str, object]:
    return {"kind": "point", "space": space, "x": place[0], "y": place[1], "capture_id": capture["capture_id"]}


async def test_c33_a_click_in_a_picture_lands_on_what_the_picture_shows_there(on: On) -> None:
    await on.place(30, 30)
    await on.focus_window()
    count = await on.button("Count")
    x, y, width, height = count["bounds"]
    taken = (await on.hand.call("screenshot", surface=on.surface))["capture"]
    place = (x + width // 2 - taken["origin_x"], y + height // 2 - taken["origin_y"])
    await on.presses_once("counter", "Count", Click(), point(taken, place))
    whole = (await on.hand.call("screenshot"))["capture"]
    await on.presses_once("counter", "Count", Click(), point(whole, (x + width // 2, y + height // 2), "desktop"))


async def test_c33_a_click_in_stale_pixels_is_refused(on: On) -> None:
    await on.place(30, 30)
    await on.focus_window()
    pay = await on.button("Pay 10")
    x, y, width, height = pay["bounds"]
    taken = (await on.hand.call("screenshot", surface=on.surface))["capture"]
    place = (x + width // 2 - taken["origin_x"], y + height // 2 - taken["origin_y"])
    await on.place(90, 70)
    await on.refused("stale_target", Click(), point(taken, place))
    await on.place(30, 30)
    taken = (await on.hand.call("screenshot", surface=on.surface))["capture"]
    await on.change("rename", control="pay", name="Pay 9999")
    await on.refused("stale_target", Click(), point(taken, place))


async def test_c33_a_place_outside_the_picture_or_in_an_unknown_picture_is_refused(on: On) -> None:
    taken = (await on.hand.call("screenshot", surface=on.surface))["capture"]
    for place in ((-1, 5), (5, -1), (taken["width"], 5), (5, taken["height"])):
        await on.refused("stale_target", Click(), point(taken, place))
    await on.refused("stale_target", Click(), point({"capture_id": "0" * 24}, (5, 5)))


async def test_c35_what_is_not_on_the_screen_has_no_place_and_is_not_clicked(on: On) -> None:
    seen = await on.hand.call("observe", surface=on.surface, targets=True)
    width, height = 1280, 800
    for target in seen["targets"]:
        if (bounds := target.get("bounds")) is not None:
            assert all(abs(number) < 4 * max(width, height) for number in bounds[:2]), target
            assert min(bounds[2:]) > 0, target
    hidden = [one for one in seen["targets"] if one["role"] in {"menuitem", "listitem"} and "bounds" not in one]
    if on.toolkit != "gtk4":
        # GTK 4 lists what is in a menu only while it is open.
        assert hidden
    for target in hidden[:3]:
        reply = await on.act(Click(), target)
        assert (reply["status"], reply["error"]["code"]) in {
            ("refused", "target_not_actionable"),
            ("refused", "unsupported_action"),
        }
    await on.app.settle()
    assert on.effects() == []


async def test_c35_an_option_of_a_closed_combo_box_is_chosen_without_a_place(on: On) -> None:
    if on.toolkit == "qt":
        pytest.skip("the list of Qt takes nothing over that accessibility selected")
    colour = await on.one({"role": "combobox"}, {"value": {"text": "red"}})
    await on.done("verified", SelectOption(option="blue"), colour)
    assert on.effects() == [("select", "colour", "blue")]


async def test_c06_a_real_calculator_is_clicked_where_its_buttons_are(hand: Hand, desktop: IsolatedDesktop) -> None:
    trap = await FixtureApp.start(desktop, "gtk3", sections=["buttons"])
    calculator = await desktop.launch(["gnome-calculator"])
    try:
        below = await On.reach(hand, trap)
        await below.place(0, 0)
        surface = await hand.window(calculator.pid)
        for op in ({"op": "move", "x": 500, "y": 120}, {"op": "focus"}):
            assert (await hand.act({"kind": "window", **op}, window_of(surface)))["status"] == "succeeded"
        mark = trap.mark()
        for key in ("1", "2", "×", "3", "4", "="):
            found = await wait_for(hand, surface, named(f"{key} {key}"), {"role": "button"})
            reply = await hand.act(Click(), found)
            assert reply["status"] == "succeeded", (key, reply)
        shown = await wait_for(hand, surface, {"value": {"text": "408", "match": "prefix"}})
        assert shown["value"].strip() == "408"
        assert trap.events("press", after=mark) == []
    finally:
        await calculator.terminate()
        trap.close()


async def wait_for(hand: Hand, surface: str, *filters: dict[str, object]) -> dict[str, str]:
    ends_at = time.monotonic() + WAIT_S
    while len(found := await hand.find(surface, *filters)) != 1:
        assert time.monotonic() < ends_at, (filters, found)
    return found[0]
