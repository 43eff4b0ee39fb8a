"""A bare label is a name for what it meant when it was shown: it never becomes the name of something else."""

from __future__ import annotations

import msgspec
import pytest

from surehand import limits
from surehand.core.scene.fence import index_of_label, reference
from surehand.core.scene.render import DEFAULTS
from surehand.errors import StaleTarget, TargetNotFound
from surehand.runtime.session import Session
from surehand.runtime.shown import Meaning, Shown, still_means
from surehand.testing.memory import button
from surehand.testing.worlds import World
from tests.journal_kit import SettableClock


async def shown(world: World, session: Session | None = None) -> dict[str, str]:
    """Show the window's text; return labels by handle."""
    scene = await world.observe(session)
    (session or world.session).shown.text(scene)
    return {node.handle: target.label for node, target in zip(scene.tree.nodes, scene.targets, strict=True)}


async def now(world: World, label: str) -> int:
    return still_means(world.session.shown.meaning(label), await world.observe())


async def test_a_label_refers_to_what_is_there_now_while_it_means_what_was_shown() -> None:
    world = World()
    labels = await shown(world)
    world.app.add(button("new", "New"))
    scene = await world.observe()
    place = await now(world, labels["save"])
    assert scene.tree.nodes[place].handle == "save"
    assert reference(scene, place).scene_id == scene.scene_id


async def test_age_alone_refuses_nothing() -> None:
    clock = SettableClock()
    world = World(clock=clock)
    labels = await shown(world)
    clock.now += 10 * limits.SCENE_ACT_MS_MAX
    place = await now(world, labels["save"])
    request = await world.request("late", target=reference(await world.observe(), place))
    assert (await world.gateway.act(world.session, request)).status == "succeeded"


async def test_an_element_with_another_name_is_stale_and_the_candidates_are_told() -> None:
    world = World()
    labels = await shown(world)
    world.app.change("save", name="Delete")
    with pytest.raises(StaleTarget) as caught:
        await now(world, labels["save"])
    assert caught.value.details["what"] in {"gone", "fingerprint"}
    assert "candidates" in (caught.value.observed or {})


async def test_an_element_that_is_gone_is_stale() -> None:
    world = World()
    labels = await shown(world)
    world.app.remove("save")
    with pytest.raises(StaleTarget, match="not in its window any more"):
        await now(world, labels["save"])


async def test_a_changed_context_is_stale_whatever_was_looked_at_in_between() -> None:
    world = World()
    labels = await shown(world)
    scene = await world.observe()
    place = index_of_label(scene, labels["save"])
    assert place is not None
    other = msgspec.structs.replace(scene.targets[place], context="dave", context_hash="0" * 64)
    changed = msgspec.structs.replace(
        scene, targets=tuple(other if target is scene.targets[place] else target for target in scene.targets)
    )
    # A look of the host's, or for another element, shows nothing to the caller.
    world.session.keep_scene(changed)
    with pytest.raises(StaleTarget, match="stands for something else") as caught:
        still_means(world.session.shown.meaning(labels["save"]), changed)
    assert caught.value.observed is not None
    assert caught.value.observed["now"] == "dave"


async def test_what_was_never_shown_cannot_be_named() -> None:
    world = World()
    scene = await world.observe()
    with pytest.raises(TargetNotFound, match="no text this session was given"):
        world.session.shown.meaning(scene.targets[-1].label)


async def test_a_label_of_another_session_names_nothing() -> None:
    world = World()
    other = world.new_session("uid:2000")
    labels = await shown(world, other)
    with pytest.raises(TargetNotFound):
        world.session.shown.meaning(labels["save"])


async def test_a_match_of_a_query_can_be_named_until_its_window_is_shown_anew_or_gone() -> None:
    world = World()
    scene = await world.observe()
    world.session.shown.match(scene, 1)
    label = scene.targets[1].label
    assert await now(world, label) == 1
    world.session.shown.forget(scene.surface.surface_id)
    with pytest.raises(TargetNotFound):
        world.session.shown.meaning(label)


async def test_matches_are_bounded_and_the_oldest_go_first() -> None:
    world = World()
    scene = await world.observe()
    shown_now = Shown()
    node, target = scene.tree.nodes[1], scene.targets[1]
    for number in range(1000, 1000 + limits.QUERY_RESULTS_MAX):
        label = f"e{number}"
        shown_now.matches[label] = Meaning("w", node, msgspec.structs.replace(target, label=label))
    shown_now.match(scene, 1)
    assert len(shown_now.matches) == limits.QUERY_RESULTS_MAX
    assert "e1000" not in shown_now.matches
    assert shown_now.meaning(target.label).node is node


async def test_a_candidate_can_be_named_but_never_gives_a_shown_label_another_meaning() -> None:
    world = World()
    labels = await shown(world)
    meant = world.session.shown.meaning(labels["save"])
    world.app.change("save", name="Delete")
    world.app.add(button("new", "Save"))
    scene = await world.observe()
    new = next(
        target.label for node, target in zip(scene.tree.nodes, scene.targets, strict=True) if node.handle == "new"
    )
    lines = [f'[{labels["save"]}] button "Delete"', f'[{new}] button "Save"', "no label", "[e99999] button"]
    world.session.shown.candidates([scene], {"candidates": lines})
    assert world.session.shown.meaning(new).node.name == "Save"
    assert world.session.shown.meaning(labels["save"]) == meant
    with pytest.raises(TargetNotFound):
        world.session.shown.meaning("e99999")


async def test_a_text_that_somebody_else_reads_gives_no_label_another_meaning() -> None:
    world = World()
    labels = await shown(world)
    world.app.add(button("new", "New"))
    scene = await world.observe()
    place = index_of_label(scene, labels["save"])
    assert place is not None
    other = msgspec.structs.replace(scene.targets[place], context="dave", context_hash="0" * 64)
    targets = tuple(other if target is scene.targets[place] else target for target in scene.targets)
    recycled = msgspec.structs.replace(scene, targets=targets)
    world.session.shown.aside(recycled, DEFAULTS, [target.label for target in targets])
    with pytest.raises(StaleTarget, match="stands for something else"):
        still_means(world.session.shown.meaning(labels["save"]), recycled)
    added = next(t.label for n, t in zip(scene.tree.nodes, targets, strict=True) if n.handle == "new")
    assert scene.tree.nodes[await now(world, added)].handle == "new"
