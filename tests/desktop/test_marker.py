"""The badge on a person's desktop: seen by them, by nothing else, and gone within a second (spec §1.5)."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from surehand import limits
from surehand.adapters.x11.marker import X11Marker
from surehand.model.actions import Invoke
from surehand.runtime.compose import build_host
from surehand.runtime.config import Config
from surehand.runtime.session import Desk
from surehand.testing.desktop import IsolatedDesktop
from surehand.testing.fixture_app import FixtureApp
from tests.desktop.cases.kit import PRINCIPAL, Hand, On, until_so, write_policy
from tests.desktop.test_current import IN_SESSION, POLICY
from tests.desktop.x11_actor_support import Stage, stage
from tests.desktop.x11_support import Display, Painter, decode_png, display, surface, window

pytestmark = pytest.mark.desktop

PAPER = (176, 0, 32)


@pytest.fixture(scope="module")
def shared() -> Iterator[Display]:
    with display(size="900x600x24") as made:
        yield made


@pytest.fixture
async def on(shared: Display) -> AsyncIterator[Stage]:
    async with stage(shared) as made:
        yield made


@pytest.fixture
async def marker(shared: Display) -> AsyncIterator[X11Marker]:
    made = X11Marker(shared.name, None, "Escape Escape")
    await made.open()
    yield made
    await made.close()


async def shows(on: Stage) -> bool:
    """Return whether a person sees the badge."""
    pixels = decode_png((await on.screen.capture(None))[1])
    return bool(((pixels[2:4] == PAPER).all(axis=2)).any())


async def test_it_shows_while_an_agent_acts_and_goes_within_a_second(on: Stage, marker: X11Marker) -> None:
    assert not await shows(on)
    marker.begin("uid:1000")
    await until_so(lambda: shows(on), "a badge")
    marker.begin("uid:1000")
    marker.end()
    assert marker._hiding is None  # another one still acts
    marker.end()
    ended = time.monotonic()

    async def is_gone() -> bool:
        return not await shows(on)

    await until_so(is_gone, "no badge", 5)
    assert time.monotonic() - ended < 1 + limits.MARKER_IDLE_MS / 1000


async def test_it_takes_no_click_and_no_focus_and_is_in_no_picture_of_a_window(
    on: Stage, shared: Display, marker: X11Marker
) -> None:
    painter = Painter(shared.name, "below", (0, 0, 900, 300), 0x336699)
    entry = await window(on.screen, "below")
    focus = shared.run("xdotool", "getwindowfocus")
    plain = decode_png((await on.screen.capture(surface(entry)))[1])
    popup = Painter(shared.name, "popup", (0, 0, 900, 60), 0x339966, popup=True)
    popup.settle()
    windows = [one["id"] for one in await on.screen.stacking()]
    marker.begin("uid:1000")
    await until_so(lambda: shows(on), "a badge")
    assert (decode_png((await on.screen.capture(surface(entry)))[1]) == plain).all()
    assert [one["id"] for one in await on.screen.stacking()] == windows
    assert shared.run("xdotool", "getwindowfocus") == focus
    # A robot's click where the badge stands arrives at the window below.
    shared.run("xdotool", "mousemove", "450", "8", "click", "1")
    assert popup.buttons() == [("press", 1), ("release", 1)]
    marker.end()
    popup.close()
    painter.close()


async def test_it_stays_above_a_window_that_comes_later(on: Stage, shared: Display, marker: X11Marker) -> None:
    marker.begin("uid:1000")
    await until_so(lambda: shows(on), "a badge")
    painter = Painter(shared.name, "later", (0, 0, 900, 300), 0x336699, popup=True)
    painter.settle()
    await until_so(lambda: shows(on), "a badge above", 5)
    marker.end()
    painter.close()


async def test_it_dies_with_the_daemon(on: Stage, shared: Display) -> None:
    script = (
        "import asyncio\nfrom surehand.adapters.x11.marker import X11Marker\n"
        f"async def main():\n    marker = X11Marker({shared.name!r}, None, 'Pause')\n"
        "    await marker.open()\n    marker.begin('uid:1000')\n    await asyncio.sleep(60)\nasyncio.run(main())\n"
    )
    daemon = subprocess.Popen([sys.executable, "-c", script])  # noqa: ASYNC220 - it is killed, not waited for
    await until_so(lambda: shows(on), "a badge")
    daemon.kill()
    daemon.wait()

    async def is_gone() -> bool:
        return not await shows(on)

    await until_so(is_gone, "no badge", 1)


@pytest.mark.parametrize("wanted", [True, False])
async def test_an_agent_on_a_persons_desktop_is_marked_unless_the_operator_does_not_want_it(
    desktop: IsolatedDesktop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wanted: bool
) -> None:
    for name in IN_SESSION:
        monkeypatch.setenv(name, desktop.environment[name])
    app = await FixtureApp.start(desktop, "gtk3")
    config = Config(pairings=(desktop.display,), policy=str(write_policy(tmp_path, POLICY)), marker=wanted)
    host = await build_host(config, state_dir=tmp_path / "state")
    channel = await host.open_channel(principal=PRINCIPAL, role="agent", client={}, desktop="current")
    on = await On.reach(Hand(host, channel), app)
    desk: Desk = host.parts.desks.attached()["current"]
    told: list[str] = []
    if desk.marker is not None:
        begin = desk.marker.begin
        desk.marker.begin = lambda principal: (told.append(principal), begin(principal))[1]  # type: ignore[method-assign]
    await on.presses_once("counter", "Count", Invoke(), await on.button("Count"))
    assert told == ([PRINCIPAL] if wanted else [])
    await host.close()
    app.close()


async def test_an_isolated_desktop_has_none(desktop: IsolatedDesktop, tmp_path: Path) -> None:
    host = await build_host(Config(), state_dir=tmp_path / "state")
    await host.open_channel(principal=PRINCIPAL, role="agent", client={}, desktop=desktop.name)
    assert all(desk.marker is None for desk in host.parts.desks.attached().values())
    await host.close()
