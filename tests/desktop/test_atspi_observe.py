"""Observing real applications: what is read, where it stands, who they are, and what one in trouble costs others."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from contextlib import asynccontextmanager

import pytest

from surehand import limits
from surehand.adapters.atspi.observer import AtspiObserver
from surehand.errors import SecureSurface, TargetNotFound, Unavailable, WindowNotFound
from surehand.testing.desktop import IsolatedDesktop
from surehand.testing.fixture_app import TOOLKITS, FixtureApp
from tests.unit.atspi.peers import scripted

pytestmark = pytest.mark.desktop

SYSTEM_PYTHON = os.path.realpath("/usr/bin/python3")
NOTE = "first line\nsecond line\n"


@asynccontextmanager
async def observing(desktop: IsolatedDesktop, **options):
    observer = AtspiObserver(desktop.a11y_bus_address, desktop=desktop.name, **options)
    await observer.start()
    try:
        yield observer
    finally:
        await observer.close()


@asynccontextmanager
async def showing(desktop, toolkit, observer, **options):
    """Start a fixture application and yield it with its main window's surface."""
    options.setdefault("scroll_rows", 8)
    app = await FixtureApp.start(desktop, toolkit, title=f"Own {toolkit} {time.monotonic_ns()}", **options)
    try:
        yield app, await surface_of(observer, await app.run("get", control="window"))
    finally:
        app.close()


async def surface_of(observer, title):
    return await until(lambda found: next((s for s in found if s.title == title), None), observer.surfaces)


async def until(wanted: Callable, look: Callable, timeout_s: float = 8.0):
    """Look until what was found is wanted; returns what `wanted` made of it."""
    ends_at = time.monotonic() + timeout_s
    while True:
        found = await look()
        if result := wanted(found):
            return result
        assert time.monotonic() < ends_at, found
        await asyncio.sleep(0.02)


async def at_rest(observer, surface):
    """Return the tree once a window that has just come up gets its focus and its place no more."""
    trees = [await observer.read(surface.surface_id)]

    async def look():
        trees.append(await observer.read(surface.surface_id))
        return trees

    await until(lambda found: len(found) > 4 and all(tree is found[-1] for tree in found[-4:]), look)
    return trees[-1]


def one(tree, role, name=None, app_id=None):
    found = [
        node for node in tree.nodes if node.role == role and name in {None, node.name} and app_id in {None, node.app_id}
    ]
    assert len(found) == 1, [(n.role, n.name, n.app_id) for n in tree.nodes]
    return found[0]


def children(tree, node):
    index = next(i for i, one in enumerate(tree.nodes) if one.handle == node.handle)
    return [tree.nodes[i] for i, parent in enumerate(tree.parents) if parent == index]


@pytest.fixture(params=TOOLKITS)
def toolkit(request):
    return request.param


# --- what is read -----------------------------------------------------------------------------------------------


async def test_controls_are_read_with_role_name_state_and_value(desktop, toolkit):
    async with observing(desktop) as observer, showing(desktop, toolkit, observer) as (app, surface):
        for control, value in (("check", True), ("slider", 30), ("spin", 7), ("colour", "blue")):
            await app.run("set", control=control, value=value)
        await app.run("set_text", control="name", text="Grüße €")
        await app.run("sync")
        tree = await observer.read(surface.surface_id)
        assert tree.complete
        assert {"checked", "checkable", "enabled", "showing"} <= one(tree, "checkbox", "Subscribe").states
        assert one(tree, "slider", "Volume").value == "30"
        assert one(tree, "spinbutton", "Amount").value == "7"
        name = next(n for n in tree.nodes if n.role == "text" and n.value == "Grüße €")
        assert name.text_chars == len("Grüße €")
        assert {"editable", "focusable"} <= name.states
        labels = {n.handle: n.name for n in tree.nodes}
        assert "Name" in {name.name, *(labels.get(handle) for handle in name.labelled_by)}
        assert any(n.value == NOTE and n.text_chars == len(NOTE) and "multiline" in n.states for n in tree.nodes)
        pay = one(tree, "button", "Pay 10")
        assert "invoke" in pay.capabilities
        assert pay.actions
        assert "enabled" not in one(tree, "button", "Disabled").states
        assert not any(n.name == "Hidden" and n.role == "button" and "showing" in n.states for n in tree.nodes)


async def test_surfaces_say_title_role_place_states_and_toolkit(desktop, toolkit):
    async with observing(desktop) as observer, showing(desktop, toolkit, observer) as (app, surface):
        assert (surface.role, surface.place, surface.backend) == ("window", "window", "atspi")
        assert surface.desktop == desktop.name
        assert {"enabled", "showing"} <= surface.states
        assert surface.toolkit.lower().startswith({"gtk3": "gtk 3", "gtk4": "gtk 4", "qt": "qt 5"}[toolkit])
        await app.run("title", title=surface.title + " *")
        await app.run("sync")
        again = await surface_of(observer, surface.title + " *")
        assert again.surface_id == surface.surface_id
        assert again.place == surface.place


async def test_a_modal_dialog_is_a_surface_of_its_own_and_goes(desktop, toolkit):
    async with observing(desktop) as observer, showing(desktop, toolkit, observer) as (app, surface):
        before = {s.surface_id for s in await observer.surfaces()}
        await app.run("dialog_open", modal=True)
        await app.run("sync")
        dialog = await until(
            lambda found: next((s for s in found if s.surface_id not in before), None), observer.surfaces
        )
        assert "modal" in dialog.states
        assert dialog.app == surface.app
        assert any(node.role == "button" for node in (await observer.read(dialog.surface_id)).nodes)
        await app.run("dialog_close")
        await app.run("sync")
        await until(lambda found: dialog.surface_id not in {s.surface_id for s in found}, observer.surfaces)
        with pytest.raises(WindowNotFound):
            await observer.read(dialog.surface_id)


async def test_a_secret_leaves_by_no_way(desktop, toolkit):
    async with observing(desktop) as observer, showing(desktop, toolkit, observer) as (app, surface):
        await app.run("set_text", control="secret", text="hunter2-ünïque")
        await app.run("sync")
        tree = await observer.read(surface.surface_id)
        secret = next(node for node in tree.nodes if node.role == "password")
        assert (secret.secret, secret.value, secret.text_chars) == (True, None, None)
        live = await observer.live(surface.surface_id, [node.handle for node in tree.nodes])
        with pytest.raises(SecureSurface):
            await observer.text(surface.surface_id, secret.handle, 0, -1)
        everything = repr((tree, live, await observer.surfaces(), observer.application_of(surface.surface_id).tree))
        raw = [
            getattr(entry, field)
            for entry in observer.application_of(surface.surface_id).tree.entries.values()
            for field in entry.__slots__
        ]
        assert "hunter2" not in everything
        assert "hunter2" not in repr(raw)


async def test_text_is_paged_in_characters(desktop, toolkit):
    text = "ünï€😀" * 500
    async with observing(desktop) as observer, showing(desktop, toolkit, observer) as (app, surface):
        await app.run("set_text", control="notes", text=text)
        await app.run("sync")
        tree = await observer.read(surface.surface_id)
        notes = next(n for n in tree.nodes if "multiline" in n.states and n.role == "text")
        assert notes.value.endswith("…")
        whole = await observer.text(surface.surface_id, notes.handle, 0, -1)
        assert whole.text == text
        part = await observer.text(surface.surface_id, notes.handle, 3, 8)
        assert (part.text, part.start) == (text[3:8], 3)
        assert (await observer.text(surface.surface_id, notes.handle, whole.total_chars + 5, -1)).text == ""
        with pytest.raises(TargetNotFound):
            await observer.text(surface.surface_id, notes.handle + "0", 0, -1)


async def test_tables_know_rows_and_columns(desktop):
    for toolkit in ("gtk3", "qt"):
        async with observing(desktop) as observer, showing(desktop, toolkit, observer) as (_, surface):
            tree = await observer.read(surface.surface_id)
            cells = {(n.row, n.column): n.name for n in children(tree, one(tree, "table", "Stock")) if n.role == "cell"}
            assert cells[0, 0] == "Widget"
            assert cells[2, 2] == "1.25"
            assert len(cells) == 9


async def test_rows_of_gtk_4_are_numbered_and_so_are_their_cells(desktop):
    async with observing(desktop) as observer, showing(desktop, "gtk4", observer) as (_, surface):
        tree = await observer.read(surface.surface_id)
        cells = {(node.row, node.column): children(tree, node)[0].name for node in tree.nodes if node.role == "cell"}
        assert cells[0, 0] == "Widget"
        assert cells[2, 2] == "1.25"
        cell = next(node for node in tree.nodes if (node.role, node.row, node.column) == ("cell", 1, 2))
        live = await observer.live(surface.surface_id, [cell.handle])
        assert live[cell.handle].node == cell


async def test_a_combo_box_says_what_it_has_chosen(desktop, toolkit):
    async with observing(desktop) as observer, showing(desktop, toolkit, observer) as (app, surface):
        await app.run("set", control="colour", value="blue")
        await app.run("sync")
        tree = await observer.read(surface.surface_id)
        assert "blue" in [node.value for node in tree.nodes if node.role == "combobox"]


async def test_a_closed_menu_and_a_closed_combo_have_no_place(desktop):
    for toolkit in ("gtk3", "qt"):
        async with observing(desktop) as observer, showing(desktop, toolkit, observer) as (_, surface):
            tree = await observer.read(surface.surface_id)
            hidden = [n for n in tree.nodes if "showing" not in n.states]
            assert {"red", "New"} <= {n.name for n in hidden}
            assert all(n.bounds is None for n in hidden)
            assert all(n.bounds is None or min(n.bounds[2:]) > 0 for n in tree.nodes)


# --- live -------------------------------------------------------------------------------------------------------


async def test_live_nodes_equal_the_served_ones_and_name_their_parent(desktop, toolkit):
    async with observing(desktop) as observer, showing(desktop, toolkit, observer) as (_, surface):
        for attempt in range(3):
            tree = await observer.read(surface.surface_id)
            handles = [node.handle for node in tree.nodes]
            live = await observer.live(surface.surface_id, handles)
            # The window manager may put the new window somewhere between the two.
            if attempt == 2 or all(live[node.handle].node.bounds == node.bounds for node in tree.nodes):
                break
        for index, handle in enumerate(handles):
            assert live[handle].node == tree.nodes[index]
            parent = tree.parents[index]
            assert live[handle].parent == ("" if parent < 0 else handles[parent])


async def test_live_is_none_for_a_removed_row_and_for_foreign_handles(desktop, toolkit):
    async with observing(desktop) as observer, showing(desktop, toolkit, observer) as (app, surface):
        tree = await observer.read(surface.surface_id)
        row = next(n for n in tree.nodes if n.name == "carol").handle
        await app.run("rows_remove", name="carol")
        await app.run("sync")
        live = await observer.live(surface.surface_id, [row, ":1.4711/x", "nonsense", ""])
        assert list(live.values()) == [None] * 4


# --- changes ----------------------------------------------------------------------------------------------------


async def test_changed_wakes_when_the_tree_has_changed_and_not_before(desktop, toolkit):
    async with observing(desktop) as observer, showing(desktop, toolkit, observer) as (app, surface):
        version = (await observer.read(surface.surface_id)).version
        assert not await observer.changed(surface.surface_id, version, 150)
        waiting = asyncio.create_task(observer.changed(surface.surface_id, version, 5000))
        await app.run("rename", control="pay", name="Pay 11")
        assert await waiting
        tree = await observer.read(surface.surface_id)
        assert one(tree, "button", "Pay 11")
        assert tree.version > version
        quiet_ms, busy = observer.busy(surface.surface_id)
        assert 0 <= quiet_ms < 5000
        assert not busy


async def test_an_unchanged_window_gives_the_very_same_tree(desktop, toolkit):
    async with observing(desktop) as observer, showing(desktop, toolkit, observer) as (_, surface):
        first = await at_rest(observer, surface)
        assert await observer.read(surface.surface_id) is first


async def test_a_change_leaves_every_other_node_the_same_object(desktop, toolkit):
    async with observing(desktop) as observer, showing(desktop, toolkit, observer) as (app, surface):
        first = await at_rest(observer, surface)
        await app.run("tick")
        await app.run("sync")
        second = await observer.read(surface.surface_id)
        changed = [a.name for a, b in zip(first.nodes, second.nodes, strict=True) if a is not b]
        assert changed == ["12:00:00"]
        assert second.version == first.version + 1


async def test_a_window_that_closes_is_not_found(desktop, toolkit):
    async with observing(desktop) as observer, showing(desktop, toolkit, observer) as (app, surface):
        await observer.read(surface.surface_id)
        app.kill()
        await app.process.wait(5)
        with pytest.raises((WindowNotFound, Unavailable)):
            await observer.read(surface.surface_id)
        assert surface.surface_id not in {s.surface_id for s in await observer.surfaces()}
        with pytest.raises(WindowNotFound):
            observer.application_of(surface.surface_id)
        with pytest.raises(TargetNotFound):
            observer.object_of(surface.handle)


# --- trouble ----------------------------------------------------------------------------------------------------


async def test_a_stopped_application_is_named_in_time_and_costs_nobody_else_anything(desktop, toolkit):
    async with (
        observing(desktop) as observer,
        showing(desktop, toolkit, observer, sections=["buttons"]) as (hung, hung_surface),
        showing(desktop, "gtk3", observer, sections=["buttons"]) as (_, surface),
    ):
        await observer.read(hung_surface.surface_id)
        await observer.read(surface.surface_id)
        hung.stop()
        try:
            started = time.monotonic()
            with pytest.raises(Unavailable, match="does not answer"):
                await observer.read(hung_surface.surface_id)
            assert time.monotonic() - started < 1.5 * limits.APP_CALL_MS_MAX / 1000
            started = time.monotonic()
            for _ in range(10):
                await observer.read(surface.surface_id)
            listed = await observer.surfaces()
            # All of this together in less than one time-out of the one that hangs.
            assert time.monotonic() - started < limits.APP_CALL_MS_MAX / 1000
            assert surface.surface_id in {s.surface_id for s in listed}
            letters = await observer.dead_letters()
            assert [letter["error"]["code"] for letter in letters] == ["backend_unavailable"], letters
        finally:
            hung.resume()
        tree = await until(lambda tree: tree, lambda: observer.read(hung_surface.surface_id))
        assert one(tree, "button", "Pay 10")
        assert await observer.dead_letters() == ()
        # Asked for by itself it has longer than in a list of all: nobody else waits for it.
        hung.stop()
        asyncio.get_running_loop().call_later(1.5 * limits.APP_PATIENCE_MS / 1000, hung.resume)
        assert hung_surface.surface_id in {one.surface_id for one in await observer.surfaces(hung_surface.app.pid)}


async def test_an_application_that_was_stopped_before_we_came_holds_nobody_up(desktop):
    stopped = await FixtureApp.start(desktop, "gtk3", sections=["buttons"], title="Stopped before")
    try:
        async with observing(desktop) as first:
            await surface_of(first, "Stopped before")
        stopped.stop()
        started = time.monotonic()
        async with observing(desktop) as observer, showing(desktop, "gtk3", observer) as (_, surface):
            assert time.monotonic() - started < 12
            assert (await observer.read(surface.surface_id)).complete
            await until(lambda letters: letters, observer.dead_letters)
            stopped.resume()
            assert await surface_of(observer, "Stopped before")
    finally:
        stopped.resume()
        stopped.close()


async def test_an_application_that_dies_in_the_middle_of_a_read_costs_no_second(desktop, toolkit):
    async with observing(desktop) as observer, showing(desktop, toolkit, observer, bulk=200) as (app, surface):
        reading = asyncio.create_task(observer.read(surface.surface_id))
        await asyncio.sleep(0)
        app.kill()
        started = time.monotonic()
        with pytest.raises((Unavailable, WindowNotFound)):
            await reading
        assert time.monotonic() - started < limits.APP_CALL_MS_MAX / 1000


async def test_a_silent_bus_is_unavailable_in_time(tmp_path):
    async def mute(_):
        await asyncio.Event().wait()

    async with scripted(tmp_path / "bus", mute) as address:
        observer = AtspiObserver(address, desktop="d")
        started = time.monotonic()
        with pytest.raises(Unavailable):
            await observer.start()
        assert time.monotonic() - started < 2 * limits.APP_CALL_MS_MAX / 1000
        await observer.close()
    absent = AtspiObserver(f"unix:path={tmp_path}/absent", desktop="d")
    with pytest.raises(Unavailable):
        await absent.start()
    with pytest.raises(Unavailable):
        await absent.surfaces()
    await absent.close()


async def test_tk_is_on_no_accessibility_bus_and_is_named_with_what_still_works(desktop):
    app = await FixtureApp.start(desktop, "tk")
    try:
        windows = [(app.pid, "Fixture Tk")]
        async with observing(desktop, native_windows=lambda: windows) as observer:
            letters = await until(lambda letters: letters, observer.dead_letters)
            assert letters[0]["error"]["code"] == "accessibility_disabled"
            assert "points still work" in letters[0]["error"]["message"]
            assert letters[0]["app"].endswith("tk_app.py")
    finally:
        app.close()


# --- who they are -----------------------------------------------------------------------------------------------


async def test_an_application_is_who_the_kernel_says_at_the_end_of_its_own_socket(desktop):
    async with observing(desktop) as observer, showing(desktop, "gtk3", observer, sections=["buttons"]) as (app, s):
        assert s.app.pid == app.pid
        assert s.app.key == f"script:{SYSTEM_PYTHON}:{s.app.script}"
        assert s.app.script.endswith("gtk3_app.py")
        connection, destination, path = observer.object_of(s.handle)
        assert (connection.peer_pid, destination) == (app.pid, "")
        assert s.handle.endswith(path)


async def test_a_restarted_application_has_other_surfaces_and_another_generation(desktop):
    async with observing(desktop) as observer:
        async with showing(desktop, "gtk3", observer, sections=["buttons"]) as (_, first):
            pass
        async with showing(desktop, "gtk3", observer, sections=["buttons"]) as (_, second):
            assert first.app.key == second.app.key
            assert first.app.process_generation != second.app.process_generation
            assert first.surface_id != second.surface_id
