"""Pointer and keyboard on elements as accessibility describes them, in real applications (cases C06, C32)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from surehand.adapters.atspi.observer import AtspiObserver
from surehand.adapters.x11.actor import X11Actor
from surehand.adapters.x11.interruptions import X11Interruptions
from surehand.adapters.x11.screen import X11Screen
from surehand.adapters.x11.windows import locate
from surehand.errors import StaleTarget
from surehand.model.actions import Click, Scroll, TypeText, Window
from surehand.model.scene import Node, Surface
from surehand.runtime.guard import Guard
from surehand.testing.attempts import RecordingAttempt
from surehand.testing.desktop import IsolatedDesktop
from surehand.testing.fixture_app import TOOLKITS, FixtureApp, Toolkit
from tests.desktop.atspi_stage import surface_of
from tests.desktop.x11_support import Clock, until_async

pytestmark = pytest.mark.desktop


class Desk:
    """Everything that a daemon has of one desktop."""

    def __init__(self, screen: X11Screen, observer: AtspiObserver, actor: X11Actor) -> None:
        self.screen = screen
        self.observer = observer
        self.actor = actor

    async def find(self, surface: Surface, name: str, role: str) -> Node:
        async def look() -> Node | None:
            await self.screen.refresh()
            tree = await self.observer.read(surface.surface_id)
            found = [node for node in tree.nodes if (node.name, node.role) == (name, role) and node.bounds is not None]
            return found[0] if found else None

        found: Node = await until_async(look, f"{role} {name!r} with a place")
        return found


@asynccontextmanager
async def desk_of(desktop: IsolatedDesktop) -> AsyncIterator[Desk]:
    screen = X11Screen(desktop.display, desktop.xauthority, Clock())
    await screen.open()

    def origin(pid: int, title: str, size: tuple[int, int]) -> tuple[int, ...] | None:
        place = locate(screen.snapshot, pid, title, size)
        return None if place is None else (place.x, place.y, place.width, place.height)

    observer = AtspiObserver(desktop.a11y_bus_address, desktop=desktop.name, window_origin=origin)
    await observer.start()
    guard = Guard(desktop.display, desktop.xauthority)
    await guard.start()
    interruptions = X11Interruptions(desktop.display, desktop.xauthority)
    await interruptions.open()
    actor = X11Actor(screen, guard.note, live_reader=observer.live, interruptions=interruptions)
    await actor.open()
    try:
        yield Desk(screen, observer, actor)
    finally:
        await actor.close()
        await interruptions.close()
        await guard.close()
        await observer.close()
        await screen.close()


@pytest.fixture
async def desk(desktop: IsolatedDesktop) -> AsyncIterator[Desk]:
    async with desk_of(desktop) as made:
        yield made


@pytest.fixture
def started() -> Iterator[list[FixtureApp]]:
    apps: list[FixtureApp] = []
    yield apps
    for app in apps:
        app.process.kill()
        app.close()


def middle(node: Node) -> tuple[int, int]:
    assert node.bounds is not None
    x, y, width, height = node.bounds
    return (x + width // 2, y + height // 2)


async def shown(desk: Desk, app: FixtureApp, x: int, y: int) -> Surface:
    """Return the application's surface once its window stands where the test wants it."""
    surface = await surface_of(desk.observer, app)

    async def stacked() -> Any:
        # It may be on the accessibility bus before the window manager has it.
        return next((found for found in await desk.screen.stacking() if found["title"] == app.title), None)

    entry = await until_async(stacked, f"window {app.title!r}")
    for action in (Window(op="move", x=x, y=y), Window(op="focus")):
        done = await desk.actor.perform(RecordingAttempt(action, surface, None))
        assert done.status == "done", (action, entry)
    return await surface_of(desk.observer, app)


async def press(desk: Desk, surface: Surface, node: Node, action: Any, **options: Any) -> Any:
    attempt = RecordingAttempt(action, surface, node, point=middle(node), **options)
    done = await desk.actor.perform(attempt)
    assert attempt.entered
    return done


@pytest.mark.parametrize("toolkit", TOOLKITS)
async def test_a_click_on_an_element_presses_it_and_nothing_else(
    desktop: IsolatedDesktop, desk: Desk, started: list[FixtureApp], toolkit: Toolkit
) -> None:
    # A second application stands where the window's own coordinates would lead without its place on the screen.
    trap = await FixtureApp.start(desktop, "gtk3", sections=["buttons"])
    started.append(trap)
    await shown(desk, trap, 0, 20)
    app = await FixtureApp.start(desktop, toolkit, sections=["buttons", "text"])
    started.append(app)
    surface = await shown(desk, app, 420, 150)
    button = await desk.find(surface, "Count", "button")
    before, trapped = app.mark(), trap.mark()
    for count in range(1, 4):
        done = await press(desk, surface, button, Click())
        assert done.status == "done"
        await app.settle()
        assert app.presses("counter", after=before) == ["Count"] * count
    assert [event.event for event in trap.events(after=trapped) if event.event not in {"window_focus", "focus"}] == []


@pytest.mark.parametrize("toolkit", TOOLKITS)
async def test_text_is_typed_into_the_element_that_was_clicked(
    desktop: IsolatedDesktop, desk: Desk, started: list[FixtureApp], toolkit: Toolkit
) -> None:
    app = await FixtureApp.start(desktop, toolkit, sections=["text"])
    started.append(app)
    surface = await shown(desk, app, 300, 120)
    tree = await desk.observer.read(surface.surface_id)
    entry = next(node for node in tree.nodes if node.role == "text" and "editable" in node.states)
    await press(desk, surface, entry, Click())
    await app.settle()
    text = "yz@{[ äéß€Ω漢 🙂"
    done = await desk.actor.perform(RecordingAttempt(TypeText(text=text, clear=True), surface, None))
    assert done.status == "done"
    handle = entry.handle

    async def held() -> bool:
        live = (await desk.observer.live(surface.surface_id, [handle]))[handle]
        return live is not None and live.node.value == text

    await until_async(held, "text in the element")


async def test_a_wheel_step_reaches_the_element_under_it(
    desktop: IsolatedDesktop, desk: Desk, started: list[FixtureApp]
) -> None:
    app = await FixtureApp.start(desktop, "gtk3", sections=["scroll"], scroll_rows=60)
    started.append(app)
    surface = await shown(desk, app, 20, 40)
    tree = await desk.observer.read(surface.surface_id)
    area = next(node for node in tree.nodes if node.role == "scrollpane" and node.bounds is not None)
    mark = app.mark()
    await press(desk, surface, area, Scroll(direction="down", amount_milli=6000))
    await app.settle()
    assert len(app.events("wheel", after=mark)) == 2
    assert not app.events("button_press", after=mark)


@pytest.mark.parametrize("toolkit", TOOLKITS)
async def test_a_click_at_scale_two_lands_on_the_element_or_is_refused(
    desktop: IsolatedDesktop, desk: Desk, started: list[FixtureApp], toolkit: Toolkit
) -> None:
    # C32: accessibility may count in logical pixels, the pointer counts in the screen's.
    app = await FixtureApp.start(desktop, toolkit, sections=["buttons"], env={"GDK_SCALE": "2", "QT_SCALE_FACTOR": "2"})
    started.append(app)
    surface = await shown(desk, app, 60, 40)
    button = await desk.find(surface, "Count", "button")
    mark = app.mark()
    attempt = RecordingAttempt(Click(), surface, button, point=middle(button))
    try:
        await desk.actor.perform(attempt)
    except StaleTarget:
        assert not attempt.entered
    else:
        await app.settle()
        assert app.presses("counter", after=mark) == ["Count"]
    await app.settle()
    received = [event for event in app.events(after=mark) if event.event == "press" and event.control != "counter"]
    assert received == []
