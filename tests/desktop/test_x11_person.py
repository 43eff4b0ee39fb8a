"""The person wins (spec §1.5, §10; case C51). The person is an X client of the server that the desktop's server runs in."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from surehand.adapters.x11.interruptions import X11Interruptions
from surehand.errors import Unavailable
from surehand.model.actions import Click, Hold, Move, TypeText, Window
from tests.desktop.x11_actor_support import RecordingAttempt, Stage, Stop, stage
from tests.desktop.x11_support import Display, Painter, display, until_async, window

pytestmark = pytest.mark.desktop


@pytest.fixture(scope="module")
def outer() -> Iterator[Display]:
    with display() as made:
        yield made


@pytest.fixture(scope="module")
def inner(outer: Display) -> Iterator[Display]:
    with display(outer=outer, size="900x600x24") as made:
        yield made


@pytest.fixture
async def on(inner: Display) -> AsyncIterator[Stage]:
    async with stage(inner) as made:
        yield made


@pytest.fixture
async def target(inner: Display, on: Stage) -> AsyncIterator[tuple[Painter, dict[str, Any]]]:
    painter = Painter(inner.name, "target", (200, 150, 300, 200), 0x336699)
    yield painter, await window(on.screen, "target")
    painter.close()

    async def gone() -> bool:
        return all(entry["id"] != painter.id for entry in await on.screen.stacking())

    await until_async(gone, "closed target")


def middle(entry: dict[str, Any]) -> tuple[int, int]:
    x, y, width, height = entry["bounds"]
    return (x + width // 2, y + height // 2)


async def seen(on: Stage, outer: Display, *does: str) -> bool:
    """Let the person do something and return whether it was noticed."""
    touched = on.interruptions.mark()
    outer.run("xdotool", *does)

    async def noticed() -> bool:
        await on.interruptions.settle()
        return touched()

    try:
        return bool(await until_async(noticed, "notice", 2))
    except AssertionError:
        return False


async def test_every_kind_of_physical_input_is_noticed(on: Stage, outer: Display) -> None:
    outer.run("xdotool", "mousemove", "300", "300")
    for does in (
        ("mousemove", "310", "310"), ("mousemove_relative", "5", "0"), ("click", "1"), ("click", "4"), ("key", "a"),
        ("keydown", "Shift_L"), ("keyup", "Shift_L"),
    ):  # fmt: skip
        before = on.interruptions.sequence()
        assert await seen(on, outer, *does), does
        assert on.interruptions.sequence() > before


async def test_no_robots_input_is_taken_for_the_persons(
    on: Stage, inner: Display, target: tuple[Painter, dict[str, Any]]
) -> None:
    painter, entry = target
    await on.interruptions.settle()
    touched = on.interruptions.mark()
    await on.actor.perform(RecordingAttempt(Click(count=2), entry, point=middle(entry)))
    assert (await on.actor.perform(RecordingAttempt(Window(op="focus"), entry))).status == "done"
    await on.actor.perform(RecordingAttempt(TypeText(text="aB€漢"), entry))
    inner.run("xdotool", "key", "x", "click", "3", "mousemove", "10", "10")
    await on.interruptions.settle()
    assert not touched()
    assert len(painter.buttons()) >= 4


async def test_a_mark_knows_only_what_came_after_it(on: Stage, outer: Display) -> None:
    assert await seen(on, outer, "key", "a")
    later = on.interruptions.mark()
    await on.interruptions.settle()
    assert not later()


async def test_text_stops_at_the_persons_first_key(
    on: Stage, outer: Display, target: tuple[Painter, dict[str, Any]]
) -> None:
    painter, entry = target
    assert (await on.actor.perform(RecordingAttempt(Window(op="focus"), entry))).status == "done"
    touched = on.interruptions.mark()
    painter.received.clear()

    def host(delivered: int) -> None:
        if delivered == 3:
            outer.run("xdotool", "key", "F12")
            # The notice comes from another thread; the host of a real attempt sees it at some later unit.
            import time

            until_at = time.monotonic() + 5
            while not touched() and time.monotonic() < until_at:
                pass
        if touched():
            raise Stop

    with pytest.raises(Stop):
        await on.actor.perform(RecordingAttempt(TypeText(text="abcdefgh"), entry, before=host))
    codes = [code for what, code in painter.key_events() if what == "key down"]
    assert codes.count(38) == 1  # a
    assert len([code for code in codes if code != 96]) == 3  # three letters, and the person's F12
    assert not (await on.actor.physical_state())["held"]


async def test_a_held_button_is_released_when_the_person_acts(
    on: Stage, outer: Display, target: tuple[Painter, dict[str, Any]]
) -> None:
    painter, entry = target
    outer.run("xdotool", "mousemove", "300", "300")
    assert await seen(on, outer, "mousemove", "305", "305")
    await on.actor.perform(RecordingAttempt(Hold(), entry, point=middle(entry)))
    assert (await on.actor.physical_state())["held"] == ["button:1"]
    outer.run("xdotool", "mousemove", "320", "320")

    async def released() -> bool:
        state = await on.actor.physical_state()
        return not state["held"] and not state["buttons"]

    await until_async(released, "release")
    assert painter.buttons()[-1] == ("release", 1)


async def test_the_sequence_is_part_of_the_physical_state(on: Stage, outer: Display) -> None:
    assert await seen(on, outer, "key", "a")
    assert (await on.actor.physical_state())["sequence"] == on.interruptions.sequence() > 0


async def test_a_person_who_moves_the_pointer_does_not_move_the_agents_click(
    on: Stage, outer: Display, target: tuple[Painter, dict[str, Any]]
) -> None:
    painter, entry = target
    place = middle(entry)
    for step in range(20):
        outer.run("xdotool", "mousemove", str(100 + 20 * step), str(100 + 10 * step))
        await on.actor.perform(RecordingAttempt(Click(), entry, point=place))
    painter.settle()
    presses = [(x, y) for what, button, x, y, _ in painter.received if (what, button) == ("press", 1)]
    assert presses == [place] * 20
    await on.actor.perform(RecordingAttempt(Move(), entry, point=place))


async def test_without_a_server_nobody_claims_to_listen() -> None:
    listener = X11Interruptions(":3997", None)
    with pytest.raises(Unavailable):
        await listener.open()
