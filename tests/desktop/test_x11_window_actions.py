"""Window actions do what they say, or say that they did not (spec §3.2)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from surehand import limits
from surehand.errors import StaleTarget, Unavailable, UnsupportedAction, WindowNotFound
from surehand.model.actions import Click, SetValue, Window
from surehand.model.scene import Node
from tests.desktop.x11_actor_support import RecordingAttempt, Stage, stage
from tests.desktop.x11_support import Display, Painter, display, surface, until_async, window

pytestmark = pytest.mark.desktop


@pytest.fixture(scope="module")
def shared() -> Iterator[Display]:
    with display() as made:
        yield made


@pytest.fixture
async def on(shared: Display) -> AsyncIterator[Stage]:
    async with stage(shared) as made:
        yield made


async def act(on: Stage, entry: dict[str, Any], **fields: Any) -> Any:
    attempt = RecordingAttempt(Window(**fields), entry)
    done = await on.actor.perform(attempt)
    assert attempt.entered == [{}]
    assert done.route == "x11.window"
    return done


async def now(on: Stage, entry: dict[str, Any]) -> dict[str, Any]:
    return next(found for found in await on.screen.stacking() if found["id"] == entry["id"])


async def comes_to(on: Stage, entry: dict[str, Any], wanted: Callable[[tuple[int, ...]], bool]) -> None:
    def there(snapshot: Any) -> bool:
        return any(one.id == entry["id"] and wanted(tuple(one.bounds)) for one in snapshot.windows)

    assert await on.screen.wait_for(there, 5_000), await now(on, entry)


async def test_focus_minimise_restore_move_resize_maximise_close(shared: Display, on: Stage) -> None:
    app = shared.launch("mousepad")
    other = Painter(shared.name, "other", (600, 100, 200, 150), 0xFF)
    await window(on.screen, "other")
    entry = await window(on.screen, "Mousepad")

    assert (await act(on, entry, op="focus")).status == "done"
    seen = await now(on, entry)
    assert seen["focused"]
    assert seen["active"]
    assert (await on.screen.stacking())[0]["id"] == entry["id"]

    assert (await act(on, entry, op="minimize")).status == "done"
    assert (await now(on, entry))["minimized"]
    assert (await act(on, entry, op="focus")).status == "done"
    assert not (await now(on, entry))["minimized"]

    done = await act(on, entry, op="move", x=150, y=120)
    assert done.status == "done", await now(on, entry)
    # A window manager may put a window in its place in more than one step.
    await comes_to(on, entry, lambda bounds: bounds[:2] == (150, 120))
    assert (await act(on, entry, op="resize", width=500, height=400)).status == "done"
    await comes_to(on, entry, lambda bounds: bounds == (150, 120, 500, 400))

    assert (await act(on, entry, op="maximize")).status == "done"
    _, _, width, height = (await now(on, entry))["bounds"]
    assert width > 1200
    assert height > 700
    assert (await act(on, entry, op="move", x=200, y=160)).status == "done"
    assert (await now(on, entry))["bounds"] == (200, 160, 500, 400)

    assert (await act(on, entry, op="close")).status == "done"
    assert all(found["id"] != entry["id"] for found in await on.screen.stacking())
    app.wait(10)
    other.close()


async def test_cycling_visits_every_window(shared: Display, on: Stage) -> None:
    painters = [Painter(shared.name, f"cycle {index}", (100 + 150 * index, 100, 120, 90), 0xFF) for index in range(3)]
    for index in range(3):
        await window(on.screen, f"cycle {index}")
    visited = set()
    for _ in range(3):
        front = (await on.screen.stacking())[0]
        assert (await act(on, front, op="cycle")).status == "done"
        first = (await on.screen.stacking())[0]
        assert first["focused"]
        visited.add(first["title"])
    assert visited == {"cycle 0", "cycle 1", "cycle 2"}
    for painter in painters[:2]:
        painter.close()

    async def alone() -> bool:
        return len(await on.screen.stacking()) == 1

    await until_async(alone, "one window")
    with pytest.raises(WindowNotFound):
        await act(on, await window(on.screen, "cycle 2"), op="cycle")
    painters[2].close()


async def test_a_window_that_refuses_to_close_is_sent_and_not_done(
    shared: Display, on: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "WINDOW_ACTION_MS_MAX", 200)
    app = shared.launch("/usr/bin/python3", "-c", STUBBORN)
    entry = await window(on.screen, "stubborn")
    assert (await act(on, entry, op="close")).status == "sent"
    assert (await now(on, entry))["title"] == "stubborn"
    app.kill()
    app.wait()


STUBBORN = """
import gi
gi.require_version("Gtk", "3.0")
from gi.repository import Gtk
window = Gtk.Window(title="stubborn")
window.connect("delete-event", lambda *_: True)
window.show_all()
Gtk.main()
"""


async def test_a_refused_window_action_changes_nothing(shared: Display, on: Stage) -> None:
    painter = Painter(shared.name, "kept", (100, 100, 200, 150), 0xFF)
    entry = await window(on.screen, "kept")
    kept = ("bounds", "minimized", "title", "viewable")
    before = {name: (await now(on, entry))[name] for name in kept}
    for fields in ({"op": "move", "x": 5, "y": 5}, {"op": "minimize"}, {"op": "close"}):
        attempt = RecordingAttempt(Window(**fields), entry, refuse=StaleTarget("it is another window now"))
        with pytest.raises(StaleTarget):
            await on.actor.perform(attempt)
    assert {name: (await now(on, entry))[name] for name in kept} == before
    with pytest.raises(WindowNotFound):
        await on.actor.perform(RecordingAttempt(Window(op="close"), entry | {"pid": entry["pid"] + 1}))
    assert {name: (await now(on, entry))[name] for name in kept} == before
    painter.close()


async def test_without_a_window_manager_what_works_works_and_the_rest_says_so() -> None:
    with display(manager=False) as bare:
        async with stage(bare) as on:
            painter = Painter(bare.name, "bare", (100, 100, 200, 150), 0xFF)
            entry = await window(on.screen, "bare")
            assert (await act(on, entry, op="focus")).status == "done"
            assert (await act(on, entry, op="move", x=40, y=30)).status == "done"
            assert (await act(on, entry, op="resize", width=220, height=160)).status == "done"
            assert (await now(on, entry))["bounds"] == (40, 30, 220, 160)
            for op in ("minimize", "maximize", "close"):
                attempt = RecordingAttempt(Window(op=op), entry)
                with pytest.raises(UnsupportedAction) as caught:
                    await on.actor.perform(attempt)
                assert caught.value.fix
                assert not attempt.entered
            painter.close()


async def test_routes_and_capabilities_agree(shared: Display, on: Stage) -> None:
    painter = Painter(shared.name, "routes", (100, 100, 200, 150), 0xFF)
    place = surface(await window(on.screen, "routes"))
    facts = on.actor.capabilities(place)
    assert {fact.background for fact in facts} == {"isolated_only"}
    assert {fact.action for fact in facts} >= {"click", "type_text", "press", "window", "drag", "scroll", "abort"}
    with_bounds = Node(handle="h", role="button", bounds=(0, 0, 5, 5))
    without = Node(handle="h", role="button")
    assert on.actor.route(Click(), place, with_bounds) == "x11.pointer"
    assert on.actor.route(Click(), place, None) == "x11.pointer"
    assert on.actor.route(Click(), place, without) is None
    assert on.actor.route(Window(op="close"), place, None) == "x11.window"
    assert on.actor.route(SetValue(value="x"), place, with_bounds) is None
    with pytest.raises(UnsupportedAction):
        await on.actor.perform(RecordingAttempt(SetValue(value="x"), {}, surface=place))
    painter.close()


async def test_a_server_that_is_gone_is_unavailable_for_every_action() -> None:
    with display(manager=False) as brief:
        async with stage(brief) as on:
            painter = Painter(brief.name, "brief", (100, 100, 200, 150), 0xFF)
            entry = await window(on.screen, "brief")
            brief.server.kill()
            brief.server.wait()
            for action in (Click(), Window(op="focus")):
                with pytest.raises(Unavailable) as caught:
                    await on.actor.perform(RecordingAttempt(action, entry, point=(150, 150)))
                assert caught.value.fix
            painter._thread.join(5)
