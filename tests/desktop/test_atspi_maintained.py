"""Maintained == fresh (spec §8.2): after random changes the served tree equals one read by direct calls alone.

The strict form: nothing is read again because time has passed, only because a signal said so, or the toolkit's profile
sweeps it. Seeds are fixed, so a failure names the step that repeats it.
"""

from __future__ import annotations

import os
import random

import pytest

from surehand.adapters.atspi.observer import AtspiObserver
from surehand.core.scene.build import build_scene
from surehand.core.scene.labels import LabelTable
from surehand.core.scene.render import render_text
from surehand.errors import SurehandError
from surehand.testing.fixture_app import TOOLKITS, FixtureApp

pytestmark = pytest.mark.desktop

LONG = os.environ.get("SUREHAND_LONG") == "1"
STEPS = 2000 if LONG else 60
#: How many changes lie between two comparisons, each with the whole window read anew: most of what a step costs.
CHANGES = 4 if LONG else 1
TRUST = {"gtk3": "events", "gtk4": "events", "qt": "swept"}
PATIENCE = 3


async def change(app, chance):
    """Make one random change; returns what it was."""
    if chance.random() < 0.65:
        return await app.run("random_mutation", seed=chance.randrange(10**9), count=1)
    cmd, arguments = chance.choice(
        [
            ("dialog_open", {"modal": chance.random() < 0.5}),
            ("dialog_close", {}),
            ("window_open", {}),
            ("window_close", {}),
            ("replace_tree", {}),
            ("focus", {"control": chance.choice(["name", "notes", "pay", "check", "slider"])}),
            ("title", {"title": f"Title {chance.randrange(100)}"}),
            ("set", {"control": "scrolled", "value": chance.randrange(200)}),
            ("rows_set", {"names": [f"row {number}" for number in range(chance.randrange(1, 9))]}),
            ("random_mutation", {"seed": chance.randrange(10**9), "count": 20}),
        ]
    )
    try:
        await app.run(cmd, **arguments)
    except ValueError:
        return f"{cmd} (nothing to do)"
    return cmd


def difference(maintained, fresh):
    """Return what differs, for the report of a failure."""
    served = {node.handle: node for node in maintained.nodes}
    read = {node.handle: node for node in fresh.nodes}
    found = [f"only read fresh: {read[h].role} {read[h].name}" for h in read.keys() - served.keys()]
    found += [f"only served: {served[h].role} {served[h].name}" for h in served.keys() - read.keys()]
    for handle in read.keys() & served.keys():
        for field in read[handle].__struct_fields__:
            old, new = getattr(served[handle], field), getattr(read[handle], field)
            if old != new:
                found.append(f"{read[handle].role} {read[handle].name}: {field} {old!r} != {new!r}")
    return found or ["the order"]


async def assert_fresh(observer, surface, step):
    """Compare; a window that changes by itself between the two reads gets a few more tries."""
    for attempt in range(PATIENCE):
        maintained = await observer.read(surface.surface_id)
        fresh = await observer.fresh_read(surface.surface_id)
        if (maintained.nodes, maintained.parents) == (fresh.nodes, fresh.parents):
            assert maintained.complete
            assert text_form(maintained, surface) == text_form(fresh, surface)
            return
        # What is stale stays stale; what was on its way has arrived by now.
        again = await observer.read(surface.surface_id)
        if (again.nodes, again.parents) == (fresh.nodes, fresh.parents):
            return
        if attempt == PATIENCE - 1:
            raise AssertionError(f"step {step}: {difference(again, fresh)[:12]}")


def text_form(tree, surface):
    scene, _ = build_scene(tree, surface, None, LabelTable(), session="s", scene_id="sc1", now_ms=0)
    return render_text(scene).encode()


@pytest.mark.timeout(1500 if LONG else 240)
@pytest.mark.parametrize("toolkit", TOOLKITS)
async def test_the_served_tree_equals_a_fresh_read_after_every_random_change(desktop, toolkit):
    app = await FixtureApp.start(desktop, toolkit, scroll_rows=6)
    observer = AtspiObserver(desktop.a11y_bus_address, desktop=desktop.name)
    observer._layout_ms = 0
    await observer.start()
    compared, since = 0, []
    try:
        for step in range(STEPS):
            chance = random.Random(f"{toolkit} {step}")  # noqa: S311 - repeatable, not secret
            since.append(f"{step} {await change(app, chance)}")
            await app.run("sync")
            surfaces = await observer.surfaces(app.pid)
            # Served after every change, as an agent would have it; what it missed stays wrong until it is compared.
            for surface in surfaces:
                assert (await observer.read(surface.surface_id)).trust == TRUST[toolkit]
            if len(since) < CHANGES and step < STEPS - 1:
                continue
            for surface in surfaces:
                await assert_fresh(observer, surface, ", ".join(since))
                compared += 1
            since = []
        assert compared >= STEPS // CHANGES
    finally:
        await observer.close()
        app.close()


@pytest.mark.parametrize("toolkit", TOOLKITS)
async def test_versions_grow_with_every_change_and_never_without_one(desktop, toolkit):
    app = await FixtureApp.start(desktop, toolkit, scroll_rows=2)
    observer = AtspiObserver(desktop.a11y_bus_address, desktop=desktop.name)
    await observer.start()
    try:
        surface = (await observer.surfaces(app.pid))[0]
        await observer.read(surface.surface_id)
        before = await observer.read(surface.surface_id)
        for step in range(30):
            await app.run("random_mutation", seed=step, count=1)
            await app.run("sync")
            after = await observer.read(surface.surface_id)
            same = (after.nodes, after.parents) == (before.nodes, before.parents)
            assert (after is before) == same
            assert (after.version > before.version) == (not same)
            before = after
    finally:
        await observer.close()
        app.close()


@pytest.mark.parametrize("toolkit", TOOLKITS)
async def test_reads_during_a_storm_of_changes_never_fail_and_end_fresh(desktop, toolkit):
    app = await FixtureApp.start(desktop, toolkit, scroll_rows=2)
    observer = AtspiObserver(desktop.a11y_bus_address, desktop=desktop.name)
    await observer.start()
    try:
        surface = (await observer.surfaces(app.pid))[0]
        await app.run("churn", rate_hz=100)
        errors = []
        for step in range(12):
            await app.run("random_mutation", seed=1000 + step, count=15)
            try:
                tree = await observer.read(surface.surface_id)
                assert tree.nodes[0].role == "window"
            except SurehandError as error:
                errors.append(error)
        await app.run("churn", rate_hz=0)
        await app.run("sync")
        assert errors == []
        await assert_fresh(observer, surface, "storm")
    finally:
        await observer.close()
        app.close()
