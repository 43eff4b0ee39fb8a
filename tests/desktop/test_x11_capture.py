"""What a picture shows, and what it never shows (spec §8.1; cases SC03)."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Iterator

import numpy as np
import pytest

from surehand import limits
from surehand.adapters.x11.screen import X11Screen
from surehand.errors import CaptureUnavailable
from tests.desktop.x11_support import Clock, Display, Painter, decode_png, display, surface, until_async, window

pytestmark = pytest.mark.desktop

RED, GREEN, BLUE = 0xFF0000, 0x00FF00, 0x0000FF


@pytest.fixture(scope="module")
def shared() -> Iterator[Display]:
    with display() as made:
        yield made


@pytest.fixture
async def screen(shared: Display) -> AsyncIterator[X11Screen]:
    made = X11Screen(shared.name, None, Clock())
    await made.open()
    yield made
    await made.close()


def only(pixels: np.ndarray, colour: int) -> bool:
    wanted = [colour >> 16, colour >> 8 & 0xFF, colour & 0xFF]
    return bool((pixels == np.array(wanted, np.uint8)).all())


async def test_a_covered_window_gives_its_own_pixels(shared: Display, screen: X11Screen) -> None:
    below = Painter(shared.name, "below", (100, 100, 200, 150), RED)
    await window(screen, "below")
    above = Painter(shared.name, "above", (150, 120, 300, 300), GREEN)
    entry = await window(screen, "below")
    await window(screen, "above")
    record, data = await screen.capture(surface(entry))
    assert (record.origin_x, record.origin_y, record.width, record.height) == tuple(entry["bounds"])
    assert record.scale_milli == 1000
    assert only(decode_png(data), RED)
    above.close()
    below.close()


async def test_a_window_that_never_draws_shows_no_other_windows_pixels(shared: Display, screen: X11Screen) -> None:
    first = Painter(shared.name, "first", (100, 100, 300, 300), BLUE)
    entry = await window(screen, "first")
    await screen.capture(surface(entry))  # from here on every window has a store of its own
    lazy = Painter(shared.name, "lazy", (120, 120, 100, 100), RED, draws=False)
    entry = await window(screen, "lazy")
    with pytest.raises(CaptureUnavailable) as caught:
        await screen.capture(surface(entry))
    assert caught.value.details["reason"] == "unpainted"
    lazy.draws = True
    _, data = await screen.capture(surface(entry))
    assert only(decode_png(data), RED)
    lazy.close()
    first.close()


async def test_a_window_that_has_not_drawn_yet_when_pictures_begin_shows_no_other_windows_pixels(
    shared: Display,
) -> None:
    """Without a background a new window shows what was there before; it is in front all the same."""
    behind = Painter(shared.name, "behind", (100, 100, 300, 300), GREEN)
    screen = X11Screen(shared.name, None, Clock())
    await screen.open()
    await window(screen, "behind")
    behind.settle()
    late = Painter(shared.name, "late", (120, 120, 100, 100), RED, draws=False)
    entry = await window(screen, "late")
    with pytest.raises(CaptureUnavailable) as caught:
        await screen.capture(surface(entry))
    assert caught.value.details["reason"] == "unpainted"
    late.draws = True
    _, data = await screen.capture(surface(entry))
    assert only(decode_png(data), RED)
    await screen.close()
    late.close()
    behind.close()


async def test_a_covered_window_whose_application_hangs_shows_nothing_foreign(shared: Display) -> None:
    below = Painter(shared.name, "hung", (100, 100, 200, 150), RED)
    above = Painter(shared.name, "cover", (100, 100, 250, 200), GREEN)
    screen = X11Screen(shared.name, None, Clock())
    await screen.open()
    entry = await window(screen, "hung")
    await window(screen, "cover")
    below.draws = False
    with pytest.raises(CaptureUnavailable) as caught:
        await screen.capture(surface(entry))
    assert caught.value.details["reason"] == "unpainted"
    await screen.close()
    above.close()
    below.close()


async def test_a_window_that_shrinks_and_grows_shows_only_what_it_drew_since(
    shared: Display, screen: X11Screen
) -> None:
    backdrop = Painter(shared.name, "backdrop", (50, 50, 600, 500), GREEN)
    await window(screen, "backdrop")
    painter = Painter(shared.name, "elastic", (100, 100, 300, 200), RED)
    entry = await window(screen, "elastic")
    _, data = await screen.capture(surface(entry))
    assert only(decode_png(data), RED)
    for size in ((80, 60), (320, 240), (40, 40), (300, 200)):
        painter.do(lambda core, size=size: core.ConfigureWindow(painter.id, 4 | 8, list(size)))

        async def resized(size: tuple[int, int] = size) -> bool:
            record, data = await screen.capture(surface(entry))
            assert only(decode_png(data), RED)  # at every moment in between, too
            return (record.width, record.height) == size

        await until_async(resized, "new size")
    painter.close()
    backdrop.close()


async def test_a_minimised_window_says_so(shared: Display, screen: X11Screen) -> None:
    painter = Painter(shared.name, "small", (100, 100, 200, 150), RED)
    entry = await window(screen, "small")
    shared.run("xdotool", "windowminimize", str(entry["id"]))

    async def minimized() -> bool:
        return any(found["id"] == entry["id"] and found["minimized"] for found in await screen.stacking())

    await until_async(minimized, "minimised window")
    with pytest.raises(CaptureUnavailable) as caught:
        await screen.capture(surface(entry))
    assert caught.value.details["reason"] == "minimized"
    shared.run("xdotool", "windowmap", str(entry["id"]))
    await window(screen, "small")
    _, data = await screen.capture(surface(entry))
    assert only(decode_png(data), RED)
    painter.close()


async def test_a_vanished_window_says_so(shared: Display, screen: X11Screen) -> None:
    painter = Painter(shared.name, "ghost", (100, 100, 200, 150), RED)
    entry = await window(screen, "ghost")
    painter.close()
    with pytest.raises(CaptureUnavailable) as caught:
        await screen.capture(surface(entry))
    assert caught.value.details["reason"] == "gone"


async def test_a_window_id_that_another_process_owns_is_not_photographed(shared: Display, screen: X11Screen) -> None:
    painter = Painter(shared.name, "owned", (100, 100, 200, 150), RED)
    entry = await window(screen, "owned")
    foreign = surface(entry | {"pid": entry["pid"] + 1})
    with pytest.raises(CaptureUnavailable) as caught:
        await screen.capture(foreign)
    assert caught.value.details["reason"] == "gone"
    painter.close()


async def test_the_desktop_picture_shows_what_the_screen_shows(shared: Display, screen: X11Screen) -> None:
    painter = Painter(shared.name, "shown", (700, 300, 100, 80), BLUE)
    entry = await window(screen, "shown")
    await screen.capture(surface(entry))
    x, y, width, height = entry["bounds"]
    record, data = await screen.capture(None)
    pixels = decode_png(data)
    assert (record.surface_id, record.origin_x, record.origin_y) == (None, 0, 0)
    assert pixels.shape == (800, 1280, 3)
    assert only(pixels[y : y + height, x : x + width], BLUE)
    painter.close()


async def test_a_real_gtk_window_with_alpha_is_photographed_whole(shared: Display, screen: X11Screen) -> None:
    # GTK 4 draws its own frame in a 32-bit window.
    app = shared.launch("gnome-calculator", env={"GSK_RENDERER": "cairo"})
    entry = await window(screen, "Calculator")
    cover = Painter(shared.name, "cover", (entry["bounds"][0], entry["bounds"][1], 300, 300), GREEN)
    await window(screen, "cover")

    async def settled() -> bool:  # it grows once after it was mapped
        record, data = await screen.capture(surface(entry))
        return (await screen.capture(surface(entry)))[1] == data and record.height > 480

    await until_async(settled, "calculator at its final size")
    record, data = await screen.capture(surface(entry))
    pixels = decode_png(data)
    entry = await window(screen, "Calculator")
    assert (record.width, record.height) == tuple(entry["bounds"][2:])
    assert not (pixels == np.array([0, 255, 0], np.uint8)).all(axis=2).any()
    assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 20
    # A hung application's window still shows what it drew last.
    app.send_signal(signal.SIGSTOP)
    _, again = await screen.capture(surface(entry))
    assert decode_png(again).shape == pixels.shape
    app.send_signal(signal.SIGCONT)
    cover.close()


async def test_a_stopped_application_costs_its_own_bound_only(shared: Display, screen: X11Screen) -> None:
    assert limits.REPAINT_MS_MAX < limits.X_CALL_MS_MAX
