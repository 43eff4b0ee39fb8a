"""Applications nobody wrote for this project: editors take text exactly, calculators calculate."""

from __future__ import annotations

import asyncio
import os

import pytest

from surehand.adapters.atspi.acting import AtspiActor
from surehand.adapters.atspi.observer import AtspiObserver
from surehand.model.actions import Invoke, SetValue
from surehand.model.scene import Surface
from surehand.testing.attempts import RecordingAttempt
from surehand.testing.desktop import IsolatedDesktop
from surehand.testing.fixture_app import TOOLKITS, FixtureApp

from .atspi_stage import stage

pytestmark = pytest.mark.desktop

TEXT = "v19-ünïcode-€ 😀\nzweite Zeile"
_PRESSES = 300 if os.environ.get("SUREHAND_LONG") else 30


@pytest.fixture
async def observer(desktop: IsolatedDesktop):
    watching = AtspiObserver(desktop.a11y_bus_address, desktop=desktop.name)
    await watching.start()
    yield watching
    await watching.close()


async def _window(observer: AtspiObserver, program: str) -> Surface:
    async with asyncio.timeout(20):
        while True:
            for surface in await observer.surfaces():
                if surface.app.claimed_name.lower() == program:
                    return surface
            await asyncio.sleep(0.02)


async def _node(observer: AtspiObserver, surface: Surface, fits):
    """Return the first node that fits, waiting for a window that is still being filled."""
    async with asyncio.timeout(10):
        while True:
            for node in (await observer.read(surface.surface_id)).nodes:
                if fits(node):
                    return node
            await asyncio.sleep(0.02)


async def _act(observer: AtspiObserver, surface: Surface, action, node):
    return await AtspiActor(observer).perform(RecordingAttempt(action, surface, node))


@pytest.mark.parametrize("program", ["mousepad", "featherpad"])
async def test_an_editor_takes_the_text_exactly(desktop: IsolatedDesktop, observer: AtspiObserver, program):
    app = await desktop.launch([program])
    surface = await _window(observer, program)
    page = await _node(observer, surface, lambda n: n.role == "text" and "multiline" in n.states)
    done = await _act(observer, surface, SetValue(value=TEXT), page)
    assert done.status == "done"
    assert (await observer.text(surface.surface_id, page.handle, 0, -1)).text == TEXT
    app.kill()


@pytest.mark.parametrize("program", ["gnome-calculator", "kcalc"])
async def test_a_calculator_shows_the_product_of_what_was_pressed(desktop: IsolatedDesktop, observer, program):
    app = await desktop.launch([program])
    surface = await _window(observer, program)
    shown = ""
    for key in "12×34=":
        button = await _node(
            observer,
            surface,
            lambda n, key=key: n.role == "button" and n.name in {key, f"{key} {key}"} and bool(n.actions),
        )
        done = await _act(observer, surface, Invoke(), button)
        assert done.status == "done"
        # The next key only when this one was taken: both toolkits run the handler late.
        shown += key
        expected = "408" if key == "=" else shown
        await _node(
            observer, surface, lambda n, expected=expected: _digits(n.value or n.name).endswith(_digits(expected)[-1])
        )
    await _node(observer, surface, lambda n: n.name == "408" or n.value == "408")
    app.kill()


def _digits(text: str) -> str:
    return "".join(character for character in text if character.isdigit())


@pytest.mark.parametrize("toolkit", TOOLKITS)
async def test_every_press_arrives_exactly_once(desktop: IsolatedDesktop, toolkit):
    app = await FixtureApp.start(desktop, toolkit, sections=["buttons"])
    async with stage(desktop, app) as on:
        button = await on.find("Count", "button")
        on.mark = app.mark()
        for count in range(1, _PRESSES + 1):
            done = await on.actor.perform(RecordingAttempt(Invoke(), on.surface, button))
            assert done.status == "done"
            await app.settle()
            assert len(app.presses("counter", after=on.mark)) == count
    app.close()


@pytest.mark.parametrize("toolkit", TOOLKITS)
async def test_presses_in_a_row_are_not_dropped_by_the_toolkit(desktop: IsolatedDesktop, toolkit):
    """GTK 4 and Qt acknowledge a press that comes while the last one still shows, and drop it."""
    app = await FixtureApp.start(desktop, toolkit, sections=["buttons"])
    async with stage(desktop, app) as on:
        first, other = await on.find("Count", "button"), await on.find("Later", "button")
        on.mark = app.mark()
        for button in (first, first, other, first):
            await on.actor.perform(RecordingAttempt(Invoke(), on.surface, button))
        await app.settle()
        await app.settle()
        # Different buttons may overtake one another; none is lost.
        assert sorted(entry.control for entry in app.events("press", after=on.mark)) == ["counter"] * 3 + ["later"]
    app.close()


async def _windows(observer: AtspiObserver, of: Surface, count: int) -> tuple[Surface, ...]:
    """Return the windows of an application once there are so many; never is the one we know missing."""
    async with asyncio.timeout(10):
        while True:
            shown = await observer.surfaces(of.app.pid)
            assert of.surface_id in {one.surface_id for one in shown}
            if len(shown) == count:
                return shown
            await asyncio.sleep(0.02)


async def test_a_dialog_that_an_action_opened_and_waits_for_hides_nothing(desktop: IsolatedDesktop, observer):
    """GTK 3's `gtk_dialog_run` runs a main loop inside our call, whose connection answers nothing until it is over."""
    app = await desktop.launch(["mousepad"])
    surface = await _window(observer, "mousepad")

    async def press(where: Surface, role: str, name: str) -> str:
        button = await _node(observer, where, lambda n: (n.role, n.name.strip()) == (role, name))
        return (await _act(observer, where, Invoke(), button)).status

    for _ in range(3):
        assert await press(surface, "menuitem", "Save As...") == "done"
        dialog = next(one for one in await _windows(observer, surface, 2) if one.role == "dialog")
        # Another one meanwhile takes a connection of its own, and everything stays readable.
        page = await _node(observer, surface, lambda n: n.role == "text" and "multiline" in n.states)
        assert (await _act(observer, surface, SetValue(value=TEXT), page)).status == "done"
        assert (await observer.text(surface.surface_id, page.handle, 0, -1)).text == TEXT
        assert await observer.dead_letters() == ()
        assert await press(dialog, "button", "Cancel") == "done"
        await _windows(observer, surface, 1)
    app.kill()
