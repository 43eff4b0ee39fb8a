"""The pointer reaches the intended window or nothing, and nothing stays down (spec §8.3, §10)."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from surehand import limits
from surehand.errors import InvalidRequest, StaleTarget, TargetNotActionable, Timeout, Unavailable
from surehand.model.actions import (
    Abort,
    Click,
    Drag,
    Hold,
    Hover,
    Move,
    PhysicalState,
    Release,
    Scroll,
)
from surehand.model.scene import LiveNode, Node
from surehand.model.targets import PointTarget
from tests.desktop.x11_actor_support import RecordingAttempt, Stage, Stop, stage
from tests.desktop.x11_support import WAIT_S, Display, Painter, display, until_async, window

pytestmark = pytest.mark.desktop
SOMEWHERE = PointTarget(space="desktop", x=0, y=0, capture_id="c")
LEFT, MIDDLE, RIGHT = 1, 2, 3


@pytest.fixture(scope="module")
def shared() -> Iterator[Display]:
    with display() as made:
        yield made


@pytest.fixture
async def on(shared: Display) -> AsyncIterator[Stage]:
    async with stage(shared) as made:
        yield made


class Target:
    """A painter with its entry and the middle of it."""

    def __init__(self, painter: Painter, entry: dict[str, Any]) -> None:
        self.painter = painter
        self.entry = entry
        x, y, width, height = entry["bounds"]
        self.middle = (x + width // 2, y + height // 2)


@pytest.fixture
async def target(shared: Display, on: Stage) -> AsyncIterator[Target]:
    painter = Painter(shared.name, "target", (200, 150, 300, 200), 0x336699)
    made = Target(painter, await window(on.screen, "target"))
    yield made
    painter.close()

    async def gone() -> bool:
        return all(entry["id"] != painter.id for entry in await on.screen.stacking())

    await until_async(gone, "closed target")


async def received(target: Target, expected: list[tuple[str, int]]) -> None:
    """Check what arrived. The window manager may hold events back until it has focused the window."""
    await until_async(lambda: len(target.painter.buttons()) >= len(expected), "buttons")
    assert target.painter.buttons() == expected


async def nothing_is_down(on: Stage) -> bool:
    """Look until nothing is; what is held for good stays, and what is being released goes."""
    until = time.monotonic() + 5
    while True:
        state = await on.actor.physical_state()
        if not state["buttons"] and not state["held"] and not state["modifiers"]:
            return True
        if time.monotonic() > until:
            return False
        await asyncio.sleep(0.02)


@pytest.mark.parametrize(("button", "number"), [("left", LEFT), ("middle", MIDDLE), ("right", RIGHT)])
@pytest.mark.parametrize("count", [1, 2, limits.CLICK_COUNT_MAX])
async def test_a_click_presses_and_releases_the_named_button(
    on: Stage, target: Target, button: Any, number: int, count: int
) -> None:
    attempt = RecordingAttempt(Click(button=button, count=count), target.entry, point=target.middle)
    done = await on.actor.perform(attempt)
    await received(target, [("press", number), ("release", number)] * count)
    assert [event[2:4] for event in target.painter.received if event[0] == "press"] == [target.middle] * count
    assert (done.route, done.output) == ("x11.pointer", {"delivered": count, "units": count})
    assert attempt.entered == [{}]
    assert attempt.checkpoints == list(range(count))
    assert await nothing_is_down(on)


async def test_modifiers_are_held_during_the_click_only(on: Stage, target: Target) -> None:
    action = Click(modifiers=("shift", "control"))
    await on.actor.perform(RecordingAttempt(action, target.entry, point=target.middle))
    target.painter.settle()
    press = next(event for event in target.painter.received if event[0] == "press")
    assert press[4] & 0xFF == 1 | 4
    assert await nothing_is_down(on)


async def test_buttons_keep_their_meaning_for_a_left_handed_person(shared: Display, on: Stage, target: Target) -> None:
    count = len(target.painter.conn.core.GetPointerMapping().reply().map)
    target.painter.do(lambda core: core.SetPointerMapping(count, [3, 2, 1, *range(4, count + 1)]))
    target.painter.settle()
    try:
        await on.actor.perform(RecordingAttempt(Click(button="left"), target.entry, point=target.middle))
        await received(target, [("press", LEFT), ("release", LEFT)])
    finally:
        target.painter.do(lambda core: core.SetPointerMapping(count, list(range(1, count + 1))))
        target.painter.settle()


@pytest.mark.parametrize(("direction", "number"), [("up", 4), ("down", 5), ("left", 6), ("right", 7)])
async def test_a_wheel_step_presses_and_releases_one_and_the_same_button(
    on: Stage, target: Target, direction: Any, number: int
) -> None:
    # PX22: a known system presses one button and releases another, which stays down for ever.
    action = Scroll(direction=direction, amount_milli=9000, unit="line")
    done = await on.actor.perform(RecordingAttempt(action, target.entry, point=target.middle))
    await received(target, [("press", number), ("release", number)] * 3)
    assert done.output == {"delivered": 3, "units": 3}
    assert await nothing_is_down(on)


async def test_move_and_hover_put_the_pointer_there(on: Stage, target: Target) -> None:
    for action, (dx, dy) in ((Move(), (5, 5)), (Hover(), (-7, 3))):
        place = (target.middle[0] + dx, target.middle[1] + dy)
        await on.actor.perform(RecordingAttempt(action, target.entry, point=place))
        state = await on.actor.physical_state()
        assert (state["x"], state["y"]) == place
    assert target.painter.buttons() == []


@pytest.mark.parametrize(
    "action", [Click(), Move(), Hold(), Scroll(direction="down", amount_milli=1000), Drag(to=SOMEWHERE)]
)
async def test_a_covered_place_is_refused_before_anything(
    shared: Display, on: Stage, target: Target, action: Any
) -> None:
    cover = Painter(shared.name, "cover", (250, 180, 300, 200), 0x990000)
    await window(on.screen, "cover")
    before = await on.actor.physical_state()
    attempt = RecordingAttempt(action, target.entry, point=target.middle, path=((400, 300),))
    with pytest.raises(StaleTarget) as caught:
        await on.actor.perform(attempt)
    assert caught.value.observed == {"covered_by": "cover"}
    assert not attempt.entered
    assert cover.buttons() == target.painter.buttons() == []
    assert await on.actor.physical_state() == before
    cover.close()


async def test_a_place_on_the_frame_or_beside_the_window_is_refused(on: Stage, target: Target) -> None:
    x, y, width, height = target.entry["bounds"]
    for place in ((x + 20, y - 8), (x - 1, y + 20), (x + width, y + 20), (x + 20, y + height + 30), (2, 790)):
        with pytest.raises(StaleTarget):
            await on.actor.perform(RecordingAttempt(Click(), target.entry, point=place))
    for place in ((-1, 5), (5, -1), (1280, 5), (5, 800), (60_000, 60_000)):
        with pytest.raises(TargetNotActionable):
            await on.actor.perform(RecordingAttempt(Click(), target.entry, point=place))
    assert target.painter.buttons() == []
    # The last pixel inside is inside.
    last = (x + width - 1, y + height - 1)
    await on.actor.perform(RecordingAttempt(Click(), target.entry, point=last))
    assert len(target.painter.buttons()) == 2


async def test_no_other_program_can_move_a_window_between_check_and_click(
    shared: Display, on: Stage, target: Target
) -> None:
    cover = Painter(shared.name, "late", (900, 600, 100, 100), 0x990000)
    await window(on.screen, "late")
    rival = threading.Event()

    class Racing(RecordingAttempt):
        def enter(self, live: Any) -> None:
            super().enter(live)

            def race() -> None:
                # Another client brings its window over the place, and asks until the server has done it.
                core = cover.conn.core
                core.ConfigureWindow(cover.id, 1 | 2 | 4 | 8 | 64, [100, 100, 600, 500, 0])
                cover.conn.core.GetInputFocus().reply()
                rival.set()

            threading.Thread(target=race, daemon=True).start()
            time.sleep(0.05)  # the rival's requests are in the server's queue by now
            assert not rival.is_set(), "the server answered another client between the check and the click"

    await on.actor.perform(Racing(Click(), target.entry, point=target.middle))
    assert await asyncio.to_thread(rival.wait, WAIT_S)
    await received(target, [("press", LEFT), ("release", LEFT)])
    assert cover.buttons() == []
    cover.close()


async def test_what_the_final_fence_refuses_is_not_sent(on: Stage, target: Target) -> None:
    attempt = RecordingAttempt(
        Click(modifiers=("shift",)), target.entry, point=target.middle, refuse=StaleTarget("it means something else")
    )
    with pytest.raises(StaleTarget):
        await on.actor.perform(attempt)
    target.painter.settle()
    assert [event for event in target.painter.received if event[0] != "motion"] == []
    assert await nothing_is_down(on)


async def test_the_live_state_is_read_before_and_given_to_the_fence(shared: Display, target: Target) -> None:
    node = Node(handle="h1", role="button", bounds=tuple(target.entry["bounds"]))
    asked: list[Any] = []

    async def read(surface_id: str, handles: Any) -> dict[str, LiveNode | None]:
        asked.append((surface_id, handles))
        return {"h1": LiveNode(node=node, parent=""), "h2": None}

    async with stage(shared, live_reader=read) as on:
        attempt = RecordingAttempt(Click(), target.entry, point=target.middle, node=node, fence_handles=("h1", "h2"))
        await on.actor.perform(attempt)
    assert asked == [(attempt.surface.surface_id, ("h1", "h2"))]
    assert attempt.entered[0]["h2"] is None
    assert attempt.entered[0]["h1"].node is node


async def test_a_place_that_the_element_has_left_is_refused(shared: Display, target: Target) -> None:
    x, y, width, height = target.entry["bounds"]
    node = Node(handle="h1", role="button", bounds=(x, y, width, height))
    moved = Node(handle="h1", role="button", bounds=(x, y + height // 2 + 1, width, height))

    async def read(_: str, __: Any) -> dict[str, LiveNode | None]:
        return {"h1": LiveNode(node=moved, parent="")}

    async with stage(shared, live_reader=read) as on:
        attempt = RecordingAttempt(Click(), target.entry, point=target.middle, node=node, fence_handles=("h1",))
        with pytest.raises(StaleTarget):
            await on.actor.perform(attempt)
    assert not attempt.entered
    assert target.painter.buttons() == []


async def test_a_busy_event_loop_ends_in_a_refusal_and_a_free_server(
    shared: Display, on: Stage, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "GRAB_GATE_MS_MAX", 50)
    attempt = RecordingAttempt(Click(), target.entry, point=target.middle)
    work = asyncio.ensure_future(on.actor.perform(attempt))
    blocked = threading.Event()

    def block() -> None:
        # The loop is kept busy until another client gets an answer: the grab must end by itself.
        threading.Thread(
            target=lambda: (time.sleep(0.2), target.painter.conn.core.GetInputFocus().reply(), blocked.set()),
            daemon=True,
        ).start()
        assert blocked.wait(WAIT_S), "the server stayed grabbed while the loop was busy"

    original = on.actor._delivery._on_loop

    def gate(call: Any) -> None:
        asyncio.get_event_loop_policy()
        on.actor._delivery._loop.call_soon_threadsafe(block)
        original(call)

    monkeypatch.setattr(on.actor._delivery, "_on_loop", gate)
    with pytest.raises(Timeout):
        await work
    assert not attempt.entered
    assert target.painter.buttons() == []


async def test_the_rest_is_not_sent_after_a_stop(on: Stage, target: Target) -> None:
    def stop(delivered: int) -> None:
        if delivered == 2:
            raise Stop

    attempt = RecordingAttempt(
        Scroll(direction="down", amount_milli=30_000), target.entry, point=target.middle, before=stop
    )
    with pytest.raises(Stop):
        await on.actor.perform(attempt)
    await received(target, [("press", 5), ("release", 5)] * 2)
    assert await nothing_is_down(on)


async def test_hold_keeps_the_button_down_until_release(on: Stage, target: Target) -> None:
    await on.actor.perform(RecordingAttempt(Hold(), target.entry, point=target.middle))
    state = await on.actor.physical_state()
    assert (state["buttons"], state["held"]) == ([LEFT], ["button:1"])
    with pytest.raises(InvalidRequest):
        await on.actor.perform(RecordingAttempt(Hold(), target.entry, point=target.middle))
    with pytest.raises(InvalidRequest):
        await on.actor.perform(RecordingAttempt(Click(), target.entry, point=target.middle))
    # Other actions in between leave it down.
    await on.actor.perform(RecordingAttempt(Move(), target.entry, point=(target.middle[0] + 9, target.middle[1])))
    assert (await on.actor.physical_state())["buttons"] == [LEFT]
    await on.actor.perform(RecordingAttempt(Release(), target.entry))
    await received(target, [("press", LEFT), ("release", LEFT)])
    assert await nothing_is_down(on)
    with pytest.raises(TargetNotActionable):
        await on.actor.perform(RecordingAttempt(Release(), target.entry))


async def test_a_held_button_is_released_when_its_time_is_over(
    on: Stage, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "HOLD_MS_MAX", 100)
    await on.actor.perform(RecordingAttempt(Hold(button="right"), target.entry, point=target.middle))

    async def released() -> bool:
        return await nothing_is_down(on)

    await until_async(released, "release")
    await received(target, [("press", RIGHT), ("release", RIGHT)])


async def test_abort_and_closing_release_what_is_held(shared: Display, on: Stage, target: Target) -> None:
    await on.actor.perform(RecordingAttempt(Hold(), target.entry, point=target.middle))
    attempt = RecordingAttempt(Abort(), target.entry)
    assert (await on.actor.perform(attempt)).status == "done"
    assert attempt.entered
    assert await nothing_is_down(on)
    async with stage(shared) as other:
        await other.actor.perform(RecordingAttempt(Hold(), target.entry, point=target.middle))
    await received(target, [("press", LEFT), ("release", LEFT)] * 2)


async def test_nobody_disconnects_before_the_server_has_released_what_was_held(
    shared: Display, on: Stage, target: Target
) -> None:
    async with stage(shared) as other:
        await other.actor.perform(RecordingAttempt(Hold(), target.entry, point=target.middle))
        # A server that finds its client gone drops what it has not read, the release included.
        shared.server.send_signal(signal.SIGSTOP)
        try:
            closing = asyncio.create_task(other.actor.close())
            assert not (await asyncio.wait({closing}, timeout=0.3))[0]
        finally:
            shared.server.send_signal(signal.SIGCONT)
        await closing
    assert await nothing_is_down(on)


async def test_the_physical_state_is_read_without_touching_it(on: Stage, target: Target) -> None:
    await on.actor.perform(RecordingAttempt(Move(), target.entry, point=target.middle))
    attempt = RecordingAttempt(PhysicalState(), target.entry)
    done = await on.actor.perform(attempt)
    assert done.output is not None
    assert (done.output["x"], done.output["y"], done.output["buttons"]) == (*target.middle, [])
    assert attempt.entered


async def test_a_drag_goes_through_its_path_and_drops_at_its_end(on: Stage, target: Target) -> None:
    x, y = target.entry["bounds"][:2]
    start, corner, end = (x + 10, y + 10), (x + 150, y + 20), (x + 250, y + 150)
    attempt = RecordingAttempt(Drag(to=SOMEWHERE), target.entry, point=start, path=(corner, end))
    done = await on.actor.perform(attempt)
    target.painter.settle()
    seen = [(what, (px, py)) for what, _, px, py, _ in target.painter.received]
    assert ("press", start) in seen
    assert seen[-1] == ("release", end)
    moves = [place for what, place in seen[seen.index(("press", start)) :] if what == "motion"]
    assert corner in moves
    assert len(moves) >= limits.DRAG_STEPS
    assert done.output is not None
    assert done.output["delivered"] == done.output["units"]
    assert await nothing_is_down(on)


async def test_a_drag_whose_end_is_covered_meanwhile_goes_back_and_says_so(
    shared: Display, on: Stage, target: Target
) -> None:
    x, y = target.entry["bounds"][:2]
    start, end = (x + 10, y + 10), (x + 250, y + 150)
    trap: list[Painter] = []

    def spring(delivered: int) -> None:
        if delivered == 10:
            trap.append(Painter(shared.name, "trap", (x + 200, y + 100, 200, 200), 0x990000, popup=True))
            trap[0].settle()

    attempt = RecordingAttempt(Drag(to=SOMEWHERE), target.entry, point=start, path=(end,), before=spring)
    done = await on.actor.perform(attempt)
    assert done.status == "unknown"
    assert trap[0].buttons() == []
    target.painter.settle()
    assert [event[2:4] for event in target.painter.received if event[0] == "release"] == [start]
    assert await nothing_is_down(on)
    trap[0].close()


async def test_a_stopped_drag_leaves_no_button_down(on: Stage, target: Target) -> None:
    def stop(delivered: int) -> None:
        if delivered == 5:
            raise Stop

    x, y = target.entry["bounds"][:2]
    attempt = RecordingAttempt(
        Drag(to=SOMEWHERE), target.entry, point=(x + 10, y + 10), path=((x + 200, y + 100),), before=stop
    )
    with pytest.raises(Stop):
        await on.actor.perform(attempt)
    await received(target, [("press", LEFT), ("release", LEFT)])
    assert await nothing_is_down(on)


async def test_a_cancelled_action_leaves_nothing_down(on: Stage, target: Target) -> None:
    reached = asyncio.Event()

    def note(delivered: int) -> None:
        if delivered == 3:
            reached.set()

    x, y = target.entry["bounds"][:2]
    attempt = RecordingAttempt(
        Drag(to=SOMEWHERE), target.entry, point=(x + 10, y + 10), path=((x + 200, y + 100),), before=note
    )
    work = asyncio.ensure_future(on.actor.perform(attempt))
    await asyncio.wait_for(reached.wait(), WAIT_S)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert await nothing_is_down(on)
    await received(target, [("press", LEFT), ("release", LEFT)])


async def test_a_menu_of_the_same_program_counts_and_one_of_another_does_not(
    shared: Display, on: Stage, target: Target
) -> None:
    menu = Painter(shared.name, "menu", (target.middle[0] - 20, target.middle[1] - 20, 60, 60), 0xFFFFFF, popup=True)
    menu.settle()
    item = Node(handle="h", role="menuitem", bounds=(0, 0, 1, 1))
    button = Node(handle="h", role="button", bounds=(0, 0, 1, 1))
    await on.actor.perform(RecordingAttempt(Click(), target.entry, point=target.middle, node=item))
    assert menu.buttons() == [("press", LEFT), ("release", LEFT)]
    # A button behind the menu is covered by it, though both are one program's.
    with pytest.raises(StaleTarget):
        await on.actor.perform(RecordingAttempt(Click(), target.entry, point=target.middle, node=button))
    menu.close()
    foreign = shared.launch("xterm", "-T", "foreign", "-xrm", "*overrideRedirect: true", "-geometry", "40x20+250+200")

    async def covered() -> bool:
        try:
            await on.actor.perform(RecordingAttempt(Move(), target.entry, point=target.middle, node=item))
        except StaleTarget:
            return True
        return False

    await until_async(covered, "refusal")
    assert target.painter.buttons() == []
    foreign.terminate()
    foreign.wait()


async def test_a_guard_that_is_gone_means_no_input(shared: Display, target: Target) -> None:
    def gone(_: bytes) -> None:
        raise Unavailable("the input guard is not running")

    async with stage(shared, note=gone) as on:
        with pytest.raises(Unavailable):
            await on.actor.perform(RecordingAttempt(Hold(), target.entry, point=target.middle))
        assert await nothing_is_down(on)
    assert target.painter.buttons() == []


async def test_every_press_is_noted_before_and_every_release_after(on: Stage, target: Target) -> None:
    on.notes.clear()
    action = Click(modifiers=("control",))
    await on.actor.perform(RecordingAttempt(action, target.entry, point=target.middle))
    kinds = [line.partition(b" ")[0] for line in on.notes]
    assert kinds[1:] == [b"k+", b"b+", b"b-", b"k-"]
