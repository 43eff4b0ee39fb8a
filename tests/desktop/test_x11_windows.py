"""The window list: exact, proven, kept from events (spec §8.1)."""

from __future__ import annotations

import asyncio
import os
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import xcffib
import xcffib.xproto

from surehand import limits
from surehand.adapters.x11.screen import X11Screen
from surehand.adapters.x11.windows import Snapshot
from surehand.errors import Unavailable, WindowNotFound
from tests.desktop.x11_support import Clock, Display, Painter, display, surface, until_async, window

pytestmark = pytest.mark.desktop


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


async def test_windows_come_front_to_back_with_real_places(shared: Display, screen: X11Screen) -> None:
    low = Painter(shared.name, "low", (100, 100, 200, 150), 0xFF)
    await window(screen, "low")
    high = Painter(shared.name, "high", (150, 150, 120, 90), 0xFF)
    await window(screen, "high")
    entries = [entry for entry in await screen.stacking() if entry["title"] in {"low", "high"}]
    assert [entry["title"] for entry in entries] == ["high", "low"]
    for entry, painter in zip(entries, (high, low), strict=True):
        place = painter.conn.core.TranslateCoordinates(painter.id, painter.conn.setup.roots[0].root, 0, 0).reply()
        assert entry["bounds"] == (place.dst_x, place.dst_y, *painter.place[2:])
        assert entry["id"] == painter.id
        assert entry["frame"] != painter.id
        assert entry["frame_extents"][2] > 0
    high.close()
    low.close()


async def test_raising_moving_renaming_and_closing_show_at_once(shared: Display, screen: X11Screen) -> None:
    one = Painter(shared.name, "one", (100, 100, 200, 150), 0xFF)
    two = Painter(shared.name, "two", (120, 120, 200, 150), 0xFF)
    await window(screen, "two")
    entry = await window(screen, "one")
    shared.run("xdotool", "windowactivate", "--sync", str(entry["id"]))

    async def front() -> bool:
        first = (await screen.stacking())[0]
        return first["title"] == "one" and first["focused"] and first["active"]

    await until_async(front, "raised window")
    shared.run("xdotool", "windowmove", "--sync", str(entry["id"]), "400", "300")

    async def moved() -> bool:
        return (await window(screen, "one"))["bounds"][:2] != entry["bounds"][:2]

    await until_async(moved, "moved window")
    name = b"renamed"
    one.do(
        lambda core: core.ChangeProperty(
            0, one.id, core.InternAtom(False, 12, "_NET_WM_NAME").reply().atom, 31, 8, len(name), name
        )
    )
    await window(screen, "renamed")
    one.close()

    async def gone() -> bool:
        return all(found["id"] != entry["id"] for found in await screen.stacking())

    await until_async(gone, "closed window")
    two.close()


async def test_those_who_ask_at_once_share_a_look_and_who_asks_later_gets_another(screen: X11Screen) -> None:
    looks = 0
    tracker = screen._parts()[0]
    refresh = tracker.refresh

    def counted() -> Snapshot:
        nonlocal looks
        looks += 1
        return refresh()

    tracker.refresh = counted  # type: ignore[method-assign]
    held, go = threading.Event(), threading.Event()
    blocked = screen._thread.start(lambda _: (held.set(), go.wait(5)))
    held.wait(5)
    asking = [asyncio.create_task(screen.refresh()) for _ in range(5)]
    await asyncio.sleep(0)
    go.set()
    await asyncio.gather(blocked, *asking)
    assert looks == 1
    await screen.refresh()
    assert looks == 2


async def test_a_property_that_tells_nothing_of_a_window_costs_no_look(shared: Display, screen: X11Screen) -> None:
    one = Painter(shared.name, "telling", (100, 100, 200, 150), 0xFF)
    await window(screen, "telling")
    told = asyncio.Event()
    screen.on_change(told.set)

    def write(name: str) -> None:
        core = one.conn.core
        kinds = [core.InternAtom(False, len(text), text).reply().atom for text in (name, "UTF8_STRING")]
        core.ChangeProperty(xcffib.xproto.PropMode.Replace, one.id, *kinds, 8, 4, b"told")
        one.conn.flush()

    write("_SOMETHING")
    await screen.refresh()
    assert not told.is_set()
    write("_NET_WM_NAME")
    await asyncio.wait_for(told.wait(), 5)
    one.close()


async def test_a_claimed_pid_is_not_believed(shared: Display, screen: X11Screen) -> None:
    liar = Painter(shared.name, "liar", (100, 100, 200, 150), 0xFF)
    atom = liar.conn.core.InternAtom(False, 11, "_NET_WM_PID").reply().atom
    liar.do(lambda core: core.ChangeProperty(0, liar.id, atom, 6, 32, 1, [1]))

    async def claimed() -> bool:
        return (await window(screen, "liar"))["claimed_pid"] == 1

    await until_async(claimed, "claim")
    assert (await window(screen, "liar"))["pid"] == os.getpid()
    liar.close()


async def test_a_pid_in_an_inner_namespace_is_told_in_ours(shared: Display, screen: X11Screen) -> None:
    bwrap = ["bwrap", "--dev-bind", "/", "/", "--proc", "/proc", "--unshare-pid", "--die-with-parent"]
    app = shared.launch(*bwrap, "xterm", "-T", "inner", "-e", "sleep", "60")
    entry = await window(screen, "inner")
    assert entry["claimed_pid"] is not None
    assert entry["pid"] != entry["claimed_pid"]
    assert Path(f"/proc/{entry['pid']}/comm").read_text().strip() == "xterm"  # noqa: ASYNC240 - not a real file
    app.kill()


async def test_the_place_of_a_window_is_found_by_process_title_and_size(shared: Display, screen: X11Screen) -> None:
    first = Painter(shared.name, "twin", (100, 100, 200, 150), 0xFF)
    second = Painter(shared.name, "twin", (500, 100, 220, 150), 0xFF)
    third = Painter(shared.name, "other", (100, 400, 200, 150), 0xFF)

    async def all_there() -> bool:
        return len([entry for entry in await screen.stacking() if entry["title"] in {"twin", "other"}]) == 3

    await until_async(all_there, "three windows")
    pid = os.getpid()
    found = await screen.window_origin(pid, "twin", (220, 150))
    assert found is not None
    assert (found.window, found.scale_milli) == (second.id, 1000)
    # A toolkit at scale 2 tells half the pixels.
    found = await screen.window_origin(pid, "twin", (110, 75))
    assert found is not None
    assert (found.window, found.scale_milli) == (second.id, 2000)
    other = await screen.window_origin(pid, "other", None)
    assert other is not None
    assert (other.window, other.scale_milli) == (third.id, None)
    # Never a guess.
    assert await screen.window_origin(pid, "twin", None) is None
    assert await screen.window_origin(pid, "twin", (300, 300)) is None
    assert await screen.window_origin(pid + 1, "other", (200, 150)) is None
    for painter in (first, second, third):
        painter.close()


async def test_a_surface_of_another_process_is_not_found(shared: Display, screen: X11Screen) -> None:
    painter = Painter(shared.name, "mine", (100, 100, 200, 150), 0xFF)
    entry = await window(screen, "mine")
    assert (await screen.window_of(surface(entry))).id == painter.id
    assert (await screen.window_of(surface(entry, native_window=None))).id == painter.id
    with pytest.raises(WindowNotFound):
        await screen.window_of(surface(entry | {"pid": entry["pid"] + 1}))
    with pytest.raises(WindowNotFound):
        await screen.window_of(surface(entry, native_window=0x7FFFFF))
    painter.close()


async def test_windows_are_listed_without_a_window_manager() -> None:
    with display(manager=False) as bare:
        screen = X11Screen(bare.name, None, Clock())
        await screen.open()
        painter = Painter(bare.name, "alone", (100, 50, 200, 150), 0xFF)
        popup = Painter(bare.name, "popup", (120, 70, 50, 50), 0xFF, popup=True)
        entry = await window(screen, "alone")
        assert entry["bounds"] == (100, 50, 200, 150)
        assert [found["title"] for found in await screen.stacking()] == ["alone"]
        painter.close()
        popup.close()
        await screen.close()


async def test_the_list_survives_a_window_manager_that_dies(shared: Display) -> None:
    with display() as lone:
        screen = X11Screen(lone.name, None, Clock())
        await screen.open()
        painter = Painter(lone.name, "orphan", (100, 50, 200, 150), 0xFF)
        await window(screen, "orphan")
        lone._programs[0].kill()
        lone._programs[0].wait()

        async def unmanaged() -> bool:
            snapshot = await screen.refresh()
            return not snapshot.managed and any(found.title == "orphan" for found in snapshot.windows)

        await until_async(unmanaged, "list without a manager")
        painter.close()
        await screen.close()


async def test_a_listener_hears_of_changes_without_asking(shared: Display, screen: X11Screen) -> None:
    heard: list[int] = []
    screen.on_change(lambda: heard.append(1))
    painter = Painter(shared.name, "heard", (100, 50, 200, 150), 0xFF)

    async def told() -> bool:
        return bool(heard)

    await until_async(told, "notice")
    painter.close()


def authority(path: Path, cookie: bytes) -> Path:
    parts = (b"", b"", b"MIT-MAGIC-COOKIE-1", cookie)
    path.write_bytes(struct.pack(">H", 65_535) + b"".join(struct.pack(">H", len(part)) + part for part in parts))
    return path


async def test_a_cookie_may_hold_any_byte_and_a_wrong_one_is_refused(tmp_path: Path) -> None:
    cookie = b"a:b:\x00\xff::" + bytes(6)
    right = authority(tmp_path / "right", cookie)
    wrong = authority(tmp_path / "wrong", cookie[::-1])
    with display(manager=False, auth=right) as guarded:
        screen = X11Screen(guarded.name, str(right), Clock())
        await screen.open()
        assert await screen.stacking() == ()
        await screen.close()
        for path in (str(wrong), str(tmp_path / "absent"), None):
            stranger = X11Screen(guarded.name, path, Clock())
            with pytest.raises(Unavailable) as caught:
                await stranger.open()
            assert caught.value.fix


async def test_a_missing_display_says_what_to_do() -> None:
    screen = X11Screen(":3999", None, Clock())
    with pytest.raises(Unavailable) as caught:
        await screen.open()
    assert caught.value.fix
    assert caught.value.code == "backend_unavailable"
    remote = X11Screen("elsewhere.example:0", None, Clock())
    with pytest.raises(Unavailable):
        await remote.open()


async def test_a_server_that_dies_gives_a_typed_error_for_good() -> None:
    with display(manager=False) as brief:
        screen = X11Screen(brief.name, None, Clock())
        await screen.open()
        await screen.stacking()
        brief.server.kill()
        brief.server.wait()
        for _ in range(3):
            with pytest.raises(Unavailable) as caught:
                await screen.stacking()
            assert caught.value.fix
        with pytest.raises(Unavailable):
            await screen.capture(None)
        await screen.close()


async def test_a_server_that_hangs_costs_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "X_CALL_MS_MAX", 300)
    with display(manager=False) as hung:
        screen = X11Screen(hung.name, None, Clock())
        await screen.open()
        hung.server.send_signal(signal.SIGSTOP)
        started = time.monotonic()
        with pytest.raises(Unavailable):
            await screen.stacking()
        assert time.monotonic() - started < 2
        hung.server.send_signal(signal.SIGCONT)
        await until_async(_answers(screen), "server that goes on")
        await screen.close()


def _answers(screen: X11Screen):
    async def ask() -> bool:
        try:
            await screen.stacking()
        except Unavailable:
            return False
        return True

    return ask


def test_the_environment_leads_to_no_display() -> None:
    # C39: a display in the environment must never be what a screen opens.
    code = (
        "import os, asyncio\n"
        "os.environ['DISPLAY'] = ':0'\n"
        "from surehand.adapters.x11 import connection\n"
        "try:\n"
        "    connection.connect('', None)\n"
        "except connection.Unavailable:\n"
        "    print('refused')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout.strip() == "refused"
