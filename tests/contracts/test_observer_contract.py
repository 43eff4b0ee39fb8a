"""What every Observer keeps, whatever it looks through (ports.Observer). Add an adapter by adding its stage."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import msgspec
import pytest

from surehand import limits
from surehand.adapters.atspi.observer import AtspiObserver
from surehand.errors import SurehandError, TargetError, WindowNotFound
from surehand.model.scene import CAPABILITIES, ROLES, STATES, Surface
from surehand.ports import Observer
from surehand.testing.desktop import IsolatedDesktop
from surehand.testing.fixture_app import FixtureApp, Toolkit

pytestmark = pytest.mark.desktop

#: Yields an observer of one application, and a way to rename one of its buttons.
Stage = Callable[[IsolatedDesktop], AbstractAsyncContextManager[tuple[Observer, Callable[[str], Any]]]]


def _atspi(toolkit: Toolkit) -> Stage:
    @asynccontextmanager
    async def stage(desktop: IsolatedDesktop) -> AsyncIterator[tuple[Observer, Callable[[str], Any]]]:
        app = await FixtureApp.start(desktop, toolkit, scroll_rows=3)
        observer = AtspiObserver(desktop.a11y_bus_address, desktop=desktop.name)
        await observer.start()

        async def rename(name: str) -> None:
            await app.run("rename", control="pay", name=name)
            await app.run("sync")

        try:
            yield observer, rename
        finally:
            await observer.close()
            app.close()

    return stage


STAGES: dict[str, Stage] = {f"atspi-{toolkit}": _atspi(toolkit) for toolkit in ("gtk3", "gtk4", "qt")}


@pytest.fixture(params=STAGES)
async def observed(request, desktop):
    async with STAGES[request.param](desktop) as (observer, rename):
        surfaces: tuple[Surface, ...] = ()
        async with asyncio.timeout(10):
            # An application is on the bus a moment before its first window is.
            while not surfaces:
                surfaces = await observer.surfaces()
        yield observer, surfaces[0], rename


async def test_surfaces_have_opaque_stable_ids_and_say_whose_they_are(observed):
    observer, surface, _ = observed
    again = await observer.surfaces()
    assert [s.surface_id for s in again] == [surface.surface_id]
    assert surface.backend == observer.backend
    assert surface.role in ROLES
    assert surface.states <= STATES
    assert surface.title not in surface.surface_id
    assert surface.app.key
    assert surface.place


async def test_a_tree_is_in_document_order_and_speaks_the_vocabulary(observed):
    observer, surface, _ = observed
    tree = await observer.read(surface.surface_id)
    assert len(tree.nodes) == len(tree.parents) > 10
    assert tree.parents[0] == -1
    assert all(0 <= parent < index for index, parent in enumerate(tree.parents) if index)
    assert len({node.handle for node in tree.nodes}) == len(tree.nodes)
    for node in tree.nodes:
        assert node.role in ROLES
        assert node.states <= STATES
        assert node.capabilities <= CAPABILITIES
        assert not (node.secret and (node.value is not None or node.text_chars is not None))
        assert node.bounds is None or node.bounds[2] > 0 < node.bounds[3]
        assert ("point" in node.capabilities) == (node.bounds is not None)
    assert surface.handle == tree.nodes[0].handle


async def test_versions_say_whether_anything_changed(observed):
    observer, surface, rename = observed
    first = await observer.read(surface.surface_id)
    await rename("Pay 20")
    second = await observer.read(surface.surface_id)
    assert second.version > first.version
    assert {node.name for node in second.nodes} >= {"Pay 20"}
    await rename("Pay 10")


async def test_waiting_for_a_change_ends_with_one_or_with_its_time_out(observed):
    observer, surface, rename = observed
    version = (await observer.read(surface.surface_id)).version
    assert await observer.changed(surface.surface_id, version - 1, 0)
    loop = asyncio.get_running_loop()
    started = loop.time()
    assert not await observer.changed(surface.surface_id, version + 1_000, 120)
    assert 0.1 < loop.time() - started < 2
    waiting = asyncio.create_task(observer.changed(surface.surface_id, version, 5_000))
    await rename("Pay 30")
    assert await waiting
    quiet_ms, busy = observer.busy(surface.surface_id)
    assert quiet_ms >= 0
    assert busy is False


async def test_live_reads_exactly_what_is_asked(observed):
    observer, surface, rename = observed
    tree = await observer.read(surface.surface_id)
    button = next(node for node in tree.nodes if node.name == "Pay 10" and node.role == "button")
    await rename("Pay 9999")
    live = await observer.live(surface.surface_id, [button.handle, "no such handle"])
    assert set(live) == {button.handle, "no such handle"}
    assert live["no such handle"] is None
    assert live[button.handle].node.name == "Pay 9999"
    assert live[button.handle].parent
    assert await observer.live(surface.surface_id, []) == {}
    windows, looked = await observer.look(surface, [button.handle, "no such handle"])
    assert [window.surface_id for window in windows] == [surface.surface_id]
    assert looked == live


async def test_text_is_bounded_and_says_how_long_it_is(observed):
    observer, surface, _ = observed
    tree = await observer.read(surface.surface_id)
    text = next(node for node in tree.nodes if node.role == "text" and node.value and not node.secret)
    whole = await observer.text(surface.surface_id, text.handle, 0, -1)
    assert whole.total_chars == len(whole.text) <= limits.TEXT_CHARS_PER_READ_MAX
    assert (await observer.text(surface.surface_id, text.handle, 1, 3)).text == whole.text[1:3]
    assert (await observer.text(surface.surface_id, text.handle, 10**9, -1)).text == ""
    for start, end in ((0, 10**9), (-5, 2)):
        assert (await observer.text(surface.surface_id, text.handle, start, end)).text == whole.text[
            max(0, start) : end
        ]


async def test_what_is_unknown_is_not_found(observed):
    observer, surface, _ = observed
    for act in (
        observer.read("w0"),
        observer.live("w0", ["x"]),
        observer.changed("w0", 0, 10),
        observer.text("w0", "x", 0, 1),
    ):
        with pytest.raises(WindowNotFound):
            await act
    with pytest.raises(WindowNotFound):
        observer.busy("w0")
    windows, why = await observer.look(msgspec.structs.replace(surface, surface_id="w0"), ["x"])
    assert [window.surface_id for window in windows] == [surface.surface_id]
    assert isinstance(why, WindowNotFound)
    with pytest.raises(TargetError):
        await observer.text(surface.surface_id, "no such handle", 0, 1)


async def test_letters_are_values_and_closing_twice_is_harmless(observed):
    observer, surface, _ = observed
    for letter in await observer.dead_letters():
        assert letter["error"]["code"]
    await observer.close()
    await observer.close()
    with pytest.raises(SurehandError):
        await observer.read(surface.surface_id)
