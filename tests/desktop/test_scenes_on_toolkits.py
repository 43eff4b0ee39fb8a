"""Scene rules on real applications: what an element means in each toolkit, and that churn means nothing (spec §8.3).

The fences are the rules' own; the nodes are read from the application as the adapter reads them.
"""

from __future__ import annotations

import asyncio
import os

import pytest

from surehand.core.scene.build import build_scene
from surehand.core.scene.diff import apply, diff
from surehand.core.scene.fence import SceneView, check_fence, fence_handles
from surehand.core.scene.labels import LabelTable
from surehand.core.scene.query import find, resolve_one
from surehand.core.scene.render import render_text
from surehand.errors import StaleTarget, TargetNotActionable
from surehand.model.query import Filter, Query, TextMatch
from surehand.model.scene import Scene
from surehand.testing.desktop import IsolatedDesktop
from surehand.testing.fixture_app import TOOLKITS, FixtureApp

from .atspi_stage import Stage, stage

pytestmark = pytest.mark.desktop

PEOPLE = ["alice", "bob", "carol", "dave"]
CHURN_STEPS = 2_000 if os.environ.get("SUREHAND_LONG") else 100


class Seen:
    """One session's view of the application's window."""

    def __init__(self, on: Stage) -> None:
        self.on = on
        self.labels = LabelTable()
        self.scene: Scene | None = None
        self._count = 0

    async def observe(self) -> Scene:
        self._count += 1
        self.scene, self.labels = build_scene(
            await self.on.tree(),
            self.on.surface,
            self.scene,
            self.labels,
            session="s",
            scene_id=f"sc{self._count}",
            now_ms=0,
        )
        return self.scene

    async def fence(self, scene: Scene, index: int) -> None:
        """Run the final fence, then the first; where the final one refuses, so does the first."""
        live = await self.on.observer.live(self.on.surface.surface_id, fence_handles(scene, index))
        current = await self.observe()
        try:
            check_fence(scene, index, live, current=current)
        except (StaleTarget, TargetNotActionable) as error:
            with pytest.raises(type(error)):
                check_fence(scene, index, SceneView(current))
            raise
        check_fence(scene, index, SceneView(current))


def in_row(name: str, person: str) -> Query:
    return Query(filters=(Filter(name=TextMatch(text=name)), Filter(context=TextMatch(text=person))))


def named(name: str) -> Query:
    return Query(filters=(Filter(name=TextMatch(text=name)), Filter(role="button")))


@pytest.fixture(scope="module", params=TOOLKITS)
def app(request, desktop: IsolatedDesktop):
    running = asyncio.run(FixtureApp.start(desktop, request.param, scroll_rows=10))
    yield running
    running.close()


@pytest.fixture
async def seen(desktop: IsolatedDesktop, app: FixtureApp):
    app.command("rows_set", names=PEOPLE)
    app.sync()
    async with stage(desktop, app) as ready:
        yield Seen(ready)


async def test_each_row_gives_its_buttons_a_meaning_of_their_own(seen: Seen):
    scene = await seen.observe()
    for person in PEOPLE:
        for name in ("Open", "Delete"):
            index = resolve_one(scene, in_row(name, person))
            assert scene.targets[index].context.endswith(f" › {person}")


async def test_a_recycled_row_is_refused_naming_the_change(seen: Seen):
    scene = await seen.observe()
    index = resolve_one(scene, in_row("Open", "carol"))
    await seen.fence(scene, index)
    seen.on.app.command("rows_recycle", names=["alice", "bob", "dave", "carol"])
    with pytest.raises(StaleTarget) as caught:
        await seen.fence(scene, index)
    difference = caught.value.observed["difference"]
    assert (difference["what"], difference["before"], difference["now"]) == ("context", "carol", "dave")
    assert any("carol" in candidate for candidate in caught.value.observed["candidates"])


async def test_recreated_rows_are_refused(seen: Seen):
    scene = await seen.observe()
    index = resolve_one(scene, in_row("Delete", "alice"))
    seen.on.app.command("rows_set", names=list(reversed(PEOPLE)))
    with pytest.raises(StaleTarget):
        await seen.fence(scene, index)


async def test_rows_inserted_above_are_no_difference(seen: Seen):
    scene = await seen.observe()
    index = resolve_one(scene, in_row("Open", "carol"))
    seen.on.app.command("rows_insert", index=0, name="zoe")
    await seen.fence(scene, index)
    current = await seen.observe()
    assert current.targets[resolve_one(current, in_row("Open", "carol"))].label == scene.targets[index].label


async def test_another_amount_on_the_button_is_refused(seen: Seen):
    scene = await seen.observe()
    index = resolve_one(scene, named("Pay 10"))
    seen.on.app.command("rename", control="pay", name="Pay 9999")
    try:
        with pytest.raises(StaleTarget) as caught:
            await seen.fence(scene, index)
        assert caught.value.observed["difference"] == {"what": "name", "before": "Pay 10", "now": "Pay 9999"}
    finally:
        seen.on.app.command("rename", control="pay", name="Pay 10")


async def test_an_earlier_control_that_becomes_enabled_is_no_difference(seen: Seen):
    scene = await seen.observe()
    index = resolve_one(scene, named("Later"))
    seen.on.app.command("enable", control="early", enabled=True)
    try:
        await seen.fence(scene, index)
    finally:
        seen.on.app.command("enable", control="early", enabled=False)


async def test_disabled_and_hidden_controls_are_not_actionable(seen: Seen):
    scene = await seen.observe()
    with pytest.raises(TargetNotActionable):
        await seen.fence(scene, resolve_one(scene, named("Disabled")))
    index = resolve_one(scene, named("Count"))
    seen.on.app.command("show", control="counter", visible=False)
    try:
        # A toolkit may take a hidden widget out of its tree altogether.
        with pytest.raises((TargetNotActionable, StaleTarget)):
            await seen.fence(scene, index)
    finally:
        seen.on.app.command("show", control="counter", visible=True)
        seen.on.app.sync()


async def test_churn_that_is_not_about_an_element_refuses_nothing(seen: Seen):
    app = seen.on.app
    scene = await seen.observe()
    targets = [resolve_one(scene, in_row("Open", person)) for person in PEOPLE]
    targets += [resolve_one(scene, named(name)) for name in ("Count", "Pay 10", "Later")]
    fields = find(scene, Query(filters=(Filter(capability="set_text"), Filter(state={"showing": True})))).indexes
    targets += list(fields)
    title = app.title
    refused: list[str] = []
    for step in range(CHURN_STEPS):
        app.command("tick", count=1)
        if step % 10 == 0:
            app.command("title", title=f"*{title} ({step})")
        index = targets[step % len(targets)]
        try:
            await seen.fence(scene, index)
        except StaleTarget as error:
            refused.append(str(error.to_value()))
    app.command("title", title=title)
    assert refused == []


async def test_base_and_diffs_make_the_text_of_a_fresh_read_under_random_changes(seen: Seen):
    scene = await seen.observe()
    held = render_text(scene)
    for seed in range(30):
        seen.on.app.command("random_mutation", seed=seed, count=3)
        base, scene = scene, await seen.observe()
        change = diff(base, scene)
        held = apply(held, change.text)
        assert held == render_text(scene)
    labels = [target.label for target in scene.targets]
    assert len(set(labels)) == len(labels)
