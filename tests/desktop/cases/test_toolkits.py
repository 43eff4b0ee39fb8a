"""Toolkits that tell little or nothing are named, with what helps and what still works (cases C40, C41, C43)."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from surehand.adapters.atspi import calls
from surehand.adapters.atspi.transport import Variant, connect
from surehand.model.actions import Click, Invoke, TypeText
from surehand.testing.desktop import IsolatedDesktop, LaunchedApp
from surehand.testing.fixture_app import TOOLKITS, FixtureApp, Toolkit
from tests.desktop.cases.kit import Hand, On, named, person, until_so, window_of
from tests.desktop.cases.test_places import point

pytestmark = [pytest.mark.desktop, pytest.mark.asyncio(loop_scope="module")]

CHROMIUM = Path("/usr/bin/chromium")
_STATUS = ("org.a11y.Status", "IsEnabled")
#: Where the counter of the Tk fixture stands in its window.
_TK_COUNT, _TK_NAME = (200, 14), (200, 88)


# --- C43: accessibility shows nothing --------------------------------------------------------------------------


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def tk(hand: Hand, desktop: IsolatedDesktop) -> AsyncIterator[On]:
    running = await FixtureApp.start(desktop, "tk")
    yield await On.reach(hand, running)
    running.close()


async def test_c43_an_application_without_accessibility_is_named_with_what_still_works(tk: On) -> None:
    seen = await tk.hand.call("observe", surface=tk.surface)
    assert [line for line in seen["text"].splitlines() if line.strip()][1:] == []
    silent = [one for one in (await tk.hand.call("apps"))["silent"] if one["pid"] == tk.app.pid]
    assert [one["error"]["code"] for one in silent] == ["accessibility_disabled"]
    assert "points still work" in silent[0]["error"]["message"]
    kinds = {
        fact["action"] for fact in (await tk.hand.call("capabilities", surface=tk.surface))["surfaces"][tk.surface]
    }
    assert {"click", "type_text"} <= kinds


async def drawn(tk: On) -> dict[str, Any]:
    """Return a picture once the window looks the same twice: it draws focus, hover and presses later than they come."""
    last = ""

    async def look() -> dict[str, Any] | None:
        nonlocal last
        await tk.change("sync")
        before, taken = last, await tk.hand.call("screenshot", surface=tk.surface)
        last = taken["png_base64"]
        return taken["capture"] if before == last else None

    return await until_so(look, "the window has drawn itself")


async def test_c43_points_and_keys_still_work_there(tk: On) -> None:
    await tk.place(100, 60)
    await tk.focus_window()
    await tk.presses_once("counter", "Count", Click(), point(await drawn(tk), _TK_COUNT))
    await tk.act(Click(), point(await drawn(tk), _TK_NAME))
    reply = await tk.act(TypeText(text="yz/@ äß€漢"), window_of(tk.surface))
    assert reply["status"] == "succeeded"
    assert reply["terminal"]["receipt"]["effect"] == "executed_unverified"
    await tk.app.settle()
    assert await tk.change("get", control="name") == "yz/@ äß€漢"


async def test_c43_a_picture_of_it_that_is_out_of_date_is_refused(tk: On) -> None:
    """No element stands under a place there, so the pixels around it do."""
    await tk.place(100, 60)
    await tk.focus_window()
    taken = (await tk.hand.call("screenshot", surface=tk.surface))["capture"]
    await tk.change("rename", control="counter", name="Delete everything now")
    await tk.change("sync")
    error = await tk.refused("stale_target", Click(), point(taken, _TK_COUNT))
    assert error["details"]["what"] == "pixels"
    await tk.change("rename", control="counter", name="Count")
    await tk.change("sync")
    taken = (await tk.hand.call("screenshot", surface=tk.surface))["capture"]
    await tk.place(140, 90)
    await tk.refused("stale_target", Click(), point(taken, _TK_COUNT))


async def test_c43_nothing_semantic_is_claimed_of_it(tk: On) -> None:
    window = await tk.one({"role": "window"})
    await tk.refused("unsupported_action", Invoke(), window)


# --- C41: the toolkit's cache is partial -----------------------------------------------------------------------

#: GTK 4 gives the class of an object that has no name as its name.
_CLASS_NAMES = re.compile(r"Gtk\w+|Tab|")

_WALK = """
import json
import gi
gi.require_version("Atspi", "2.0")
from gi.repository import Atspi

def names(node):
    found = [node.get_name()]
    for index in range(node.get_child_count()):
        child = node.get_child_at_index(index)
        if child is not None:
            found += names(child)
    return found

desktop = Atspi.get_desktop(0)
found = {}
for app in (desktop.get_child_at_index(i) for i in range(desktop.get_child_count())):
    for window in (app.get_child_at_index(i) for i in range(app.get_child_count())):
        if window is not None:
            found[window.get_name()] = names(window)
print(json.dumps(found))
"""


@pytest.mark.parametrize("toolkit", TOOLKITS)
async def test_c41_a_fresh_application_is_read_whole(
    hand: Hand, desktop: IsolatedDesktop, toolkit: Toolkit, tmp_path: Path
) -> None:
    """The first read of an application that nobody has walked yet, against a walk of all children by libatspi."""
    app = await FixtureApp.start(desktop, toolkit, scroll_rows=20)
    try:
        surface = await hand.window(app.pid, app.title)
        # Until the window is up, what is in it is hidden.
        await asyncio.to_thread(person, desktop, "xdotool", "search", "--sync", "--onlyvisible", "--name", app.title)
        await app.settle()
        first = await hand.call("observe", surface=surface, max_nodes=2000)
        assert first["complete"] is True
        read = [node.name for node in hand.channel.latest[surface].tree.nodes]
        script = tmp_path / "walk.py"
        script.write_text(_WALK)
        walker = await desktop.launch(["/usr/bin/python3", "-I", script], binds=[script])
        assert await walker.wait(20) == 0, walker.log_text()
        walked = json.loads(walker.log_text().strip().splitlines()[-1])[app.title]
        assert len(walked) > 150
        assert _named(read) == _named(walked)
        again = await hand.call("observe", surface=surface, max_nodes=2000)
        assert again["text"].splitlines()[1:] == first["text"].splitlines()[1:]
    finally:
        app.close()


def _named(names: list[str]) -> Counter[str]:
    return Counter(name for name in names if not _CLASS_NAMES.fullmatch(name))


# --- C40: Chromium ---------------------------------------------------------------------------------------------

_PAGE = "<title>Own page</title><body style='margin:0'><button style='width:100vw;height:100vh'>Press me</button>"
_SCRIPT = "<script>document.querySelector('button').onclick = () => { document.title = 'It was pressed' }</script>"
#: Chromium calls what a click does by another name on each of these, and lists all of them alike.
_CONTROLS = """<title>Own page</title><button disabled>Not now</button><button>Press me</button>
<button aria-haspopup=menu>Menu</button><a href="#x">Link</a><div role=button tabindex=0>Made up</div>
<p style="position: relative"><button>Veiled</button><span style="position: absolute; inset: 0" onclick=""></span></p>
<script>onclick = event => { document.title = 'It was ' + event.target.textContent }</script>"""


@asynccontextmanager
async def chromium(
    desktop: IsolatedDesktop, *, accessible: bool, shown: str = _PAGE + _SCRIPT
) -> AsyncIterator[LaunchedApp]:
    """Start Chromium on a page, one large button; without accessibility as it comes when nobody asks for it."""
    home = desktop.folder / "home"
    page = home / "own-page.html"
    page.write_text(shown)
    # A keyring prompt would hang its first start; its own sandbox does not run as root.
    flags = ["--password-store=basic", "--no-first-run", "--disable-gpu", "--no-sandbox"]
    bus = await connect(desktop.session_bus_address, hello=True)

    async def switch(on: bool) -> None:
        await bus.call("org.a11y.Bus", "/org/a11y/bus", calls.PROPERTIES, "Set", "ssv", (*_STATUS, Variant("b", on)))

    await switch(accessible)
    env = {"HOME": str(home), "ACCESSIBILITY_ENABLED": "1" if accessible else "0"}
    profile = f"--user-data-dir={home}/chromium-{accessible}"
    app = await desktop.launch([str(CHROMIUM), *flags, profile, page.as_uri()], env=env)
    try:
        yield app
    finally:
        await app.terminate()
        await switch(True)
        bus.close()


async def titled(hand: Hand, title: str) -> str:
    """Return the one surface whose title begins so, waiting for a program that takes its time to start."""
    async with asyncio.timeout(40):
        while True:
            found = [
                one["surface_id"]
                for one in (await hand.call("surfaces"))["surfaces"]
                if one["title"].startswith(title) and "chromium" in one["app"]
            ]
            if len(found) == 1:
                return str(found[0])
            await asyncio.sleep(0.05)


@pytest.mark.skipif(not CHROMIUM.exists(), reason="Chromium is not installed")
async def test_c40_a_chromium_without_a_tree_is_named_with_the_flag_to_set_and_points_still_work(
    hand: Hand, desktop: IsolatedDesktop
) -> None:
    async with chromium(desktop, accessible=False):
        surface = await titled(hand, "Own page")
        silent = [one for one in (await hand.call("apps"))["silent"] if one["title"].startswith("Own page")]
        assert [one["error"]["code"] for one in silent] == ["accessibility_disabled"]
        assert "--force-renderer-accessibility" in silent[0]["error"]["fix"]
        assert (await hand.act({"kind": "window", "op": "focus"}, window_of(surface)))["status"] == "succeeded"
        taken = (await hand.call("screenshot", surface=surface))["capture"]
        middle = (taken["width"] // 2, taken["height"] * 3 // 4)
        reply = await hand.act(Click(), point(taken, middle))
        assert reply["status"] == "succeeded", reply
        assert await titled(hand, "It was pressed") == surface


@pytest.mark.skipif(not CHROMIUM.exists(), reason="Chromium is not installed")
async def test_c40_a_chromium_with_a_tree_is_read_and_pressed(hand: Hand, desktop: IsolatedDesktop) -> None:
    async with chromium(desktop, accessible=True, shown=_CONTROLS):
        surface = await titled(hand, "Own page")
        there = {"kind": "element_exists", "query": {"filters": [named("Made up")]}}
        waited = await hand.call("wait", surface=surface, conditions=[there], timeout_ms=20_000)
        assert waited["satisfied"]
        (off,) = await hand.find(surface, named("Not now"))
        assert (await hand.act(Invoke(), off))["error"]["code"] == "target_not_actionable"
        assert (await hand.act({"kind": "window", "op": "focus"}, window_of(surface)))["status"] == "succeeded"
        for action in (Invoke(), Click()):
            for name, role in (("Press me", "button"), ("Menu", "button"), ("Link", "link"), ("Made up", "button")):
                reply = await until_so(lambda pressed=(action, name, role): _press(hand, surface, *pressed), name)
                assert reply["status"] == "succeeded", (name, reply)
                assert reply["terminal"]["receipt"]["effect"] == "verified", (name, reply)
        reply = await until_so(lambda: _press(hand, surface, Click(), "Veiled", "button"), "Veiled")  # case C30
        assert (reply["status"], reply["error"]["details"]) == ("refused", {"what": "covered"}), reply


async def _press(hand: Hand, surface: str, action: Invoke | Click, name: str, role: str) -> dict[str, Any] | None:
    """Return what came of a press; None while the title that the last one changed is on its way to the window."""
    (found,) = await hand.find(surface, named(name), {"role": role})
    reply = await hand.act(action, found, verification={"kind": "title", "contains": f"It was {name}"})
    return None if (reply.get("error") or {}).get("code") == "window_not_found" else reply
