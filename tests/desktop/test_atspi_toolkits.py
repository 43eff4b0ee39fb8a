"""Toolkits beyond the fixtures: Chromium with and without a tree, a one-node application, a partial cache."""

from __future__ import annotations

import itertools
import shutil
from contextlib import asynccontextmanager

import pytest

from surehand.adapters.atspi import calls, letters
from surehand.adapters.atspi.transport import Variant, connect
from surehand.adapters.x11.screen import X11Screen
from surehand.runtime.clock import SystemClock
from surehand.testing.fixture_app import FixtureApp

from .test_atspi_observe import observing, one, surface_of, until

pytestmark = pytest.mark.desktop

needs_chromium = pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed")

PAGE = (
    "<title>Own page</title><h1>Head</h1><button id=b1>Press me</button>"
    "<input id=i1 aria-label=Name value=abc><input type=password aria-label=Pin value=s3cret>"
    "<input type=checkbox id=c1 checked><label for=c1>Check</label>"
)
_numbers = itertools.count(1)
CANVAS = """
import gi, sys
gi.require_version("Gtk", "3.0")
from gi.repository import Gtk
window = Gtk.Window(title="Only a canvas")
window.set_default_size(200, 200)
window.show_all()
print("up", flush=True)
Gtk.main()
"""


async def chromium(desktop, *flags, **environment):
    """Start Chromium on a page. CI runs as root, where its own sandbox does not."""
    home = desktop.folder / "home"
    page = home / "page.html"
    page.write_text(PAGE)
    # A keyring prompt would hang its first start (C40).
    always = ("--no-sandbox", "--password-store=basic", "--no-first-run", "--disable-gpu")
    profile = f"--user-data-dir={home}/chromium-{next(_numbers)}"
    return await desktop.launch(
        ["chromium", *always, profile, *flags, page.as_uri()], env={"HOME": str(home), **environment}
    )


@asynccontextmanager
async def accessibility_off(desktop):
    """Let applications that start meanwhile believe that nobody needs accessibility."""
    bus = await connect(desktop.session_bus_address, hello=True)

    async def switch(on):
        body = ("org.a11y.Status", "IsEnabled", Variant("b", on))
        await bus.call("org.a11y.Bus", "/org/a11y/bus", calls.PROPERTIES, "Set", "ssv", body)

    await switch(False)
    try:
        yield
    finally:
        await switch(True)
        bus.close()


@needs_chromium
async def test_a_page_in_chromium_is_read_and_its_secret_is_not(desktop):
    app = await chromium(desktop)
    try:
        async with observing(desktop) as observer:
            surface = await until(
                lambda found: next((s for s in found if s.title.startswith("Own page")), None), observer.surfaces, 30
            )
            assert surface.toolkit.startswith("Chromium")

            async def read():
                return await observer.read(surface.surface_id)

            tree = await until(lambda tree: tree if any(n.name == "Press me" for n in tree.nodes) else None, read, 20)
            button = one(tree, "button", "Press me")
            assert button.app_id == "b1"
            assert "invoke" in button.capabilities
            assert one(tree, "text", "Name").value == "abc"
            assert "checked" in one(tree, "checkbox", "Check").states
            pin = one(tree, "password", "Pin")
            assert (pin.secret, pin.value) == (True, None)
            assert "s3cret" not in repr(tree)
            assert tree.trust == "read"
            live = await observer.live(surface.surface_id, [button.handle])
            assert live[button.handle].node == button
            assert surface.app.key.startswith("exe:")
            assert "chromium" in surface.app.key
    finally:
        await app.terminate()


@needs_chromium
async def test_a_chromium_with_accessibility_off_is_named_with_the_flag_to_set(desktop):
    screen = X11Screen(desktop.display, desktop.xauthority, SystemClock())
    await screen.open()

    def windows():
        return [(window.pid, window.title) for window in screen.snapshot.windows]

    async with accessibility_off(desktop), observing(desktop, native_windows=windows) as observer:
        app = await chromium(desktop, ACCESSIBILITY_ENABLED="0")
        try:

            async def letters_now():
                await screen.refresh()
                return [one for one in await observer.dead_letters() if one["title"].startswith("Own page")]

            found = await until(lambda letters: letters, letters_now, 30)
            assert found[0]["error"]["code"] == "accessibility_disabled"
            assert "--force-renderer-accessibility" in found[0]["error"]["fix"]
            assert found[0]["app"].startswith("exe:")
            assert "chromium" in found[0]["app"]
        finally:
            await app.terminate()
            await screen.close()


def test_an_electron_is_known_by_what_lies_beside_it(tmp_path):
    program = tmp_path / "some-editor"
    program.touch()
    assert not letters.is_chromium(str(program))
    for name in letters._CHROMIUM_FILES:
        (tmp_path / name).touch()
    assert letters.is_chromium(str(program))


async def test_an_application_with_one_node_is_said_to_have_one(desktop):
    script = desktop.folder / "home" / "canvas.py"
    script.write_text(CANVAS)
    app = await desktop.launch(["/usr/bin/python3", str(script)])
    try:
        async with observing(desktop) as observer:
            surface = await surface_of(observer, "Only a canvas")
            tree = await observer.read(surface.surface_id)
            assert [node.role for node in tree.nodes] == ["window"]
            assert tree.nodes[0].bounds is not None
            found = [letter for letter in await observer.dead_letters() if letter["pid"] == app.pid]
            assert "one node only; points still work" in found[0]["error"]["message"]
    finally:
        await app.terminate()


async def test_a_partial_cache_is_completed_from_what_is_really_there(desktop):
    app = await FixtureApp.start(desktop, "gtk3", scroll_rows=20)
    try:
        # Nobody has walked over it: what its cache lists is less than what it has.
        async with observing(desktop) as observer:
            surface = next(s for s in await observer.surfaces() if s.app.pid == app.pid)
            application = observer.application_of(surface.surface_id)
            channel = application.channel
            reply = (await channel.call_many([channel.ask(calls.CACHE_PATH, calls.CACHE, "GetItems")]))[0]
            cached = {item.ref[1] for item in calls.cache_items(reply)}
            tree = await observer.read(surface.surface_id)
            paths = {node.handle.removeprefix(application.owner) for node in tree.nodes}
            assert paths - cached, "this application's cache was complete, so the test shows nothing"
            assert tree.complete
            assert len(one_by_one(tree)) == len(tree.nodes)
            fresh = await observer.fresh_read(surface.surface_id)
            assert (fresh.nodes, fresh.parents) == (tree.nodes, tree.parents)
    finally:
        app.close()


def one_by_one(tree):
    return {node.handle for node in tree.nodes}
