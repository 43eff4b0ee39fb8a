"""Texts and diffs as a caller holds them: whatever form was asked for, base and diff make the current text."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from surehand import limits
from surehand.core.scene.diff import apply
from surehand.core.scene.render import RenderOptions, render
from surehand.core.scene.tokens import tokens
from surehand.errors import InvalidRequest, StaleTarget, TargetNotFound
from surehand.runtime import agent, changes
from surehand.runtime import params as p
from surehand.runtime.shown import Before, Shown, still_means
from surehand.runtime.waiting import settle
from surehand.testing.memory import button
from surehand.testing.worlds import World
from tests.journal_kit import SettableClock


class Hand:
    """A caller that keeps the text it was given, as an agent does."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.parts: Any = SimpleNamespace(
            scenes=world.scenes,
            clock=world.clock,
            authority=world.authority,
            reads=SimpleNamespace(note=lambda *_: None),
        )
        self.text = ""
        self.scene_id: str | None = None

    async def observe(self, **asked: Any) -> dict[str, Any]:
        args = p.Observe(surface=self.world.app.surface.surface_id, base=self.scene_id, **asked)
        found = await agent.observe(self.parts, self.world.session, args)
        if args.scope is None:
            self.take(found)
        return found

    def take(self, found: dict[str, Any]) -> None:
        assert found["kind"] == ("diff" if found["text"].startswith("diff ") else "full")
        self.text = apply(self.text, found["text"])
        self.scene_id = found["scene_id"]

    async def change(self) -> dict[str, Any]:
        """Ask what an effect changed."""
        shown = self.world.session.shown
        seen = Before(dict(shown.scenes), frozenset(shown.scenes))
        found = await changes.after(self.parts, self.world.session, seen, [])
        self.take(found)
        return found

    async def current(self, **form: Any) -> str:
        return render(await self.world.observe(), RenderOptions(**form)).text


@pytest.fixture
def hand() -> Hand:
    return Hand(World([button(f"b{number}", f"Button {number}") for number in range(60)]))


async def test_an_unchanged_window_is_one_line(hand: Hand) -> None:
    await hand.observe()
    assert "\n" not in (await hand.observe())["text"]


async def test_the_text_given_last_is_the_base_without_being_named(hand: Hand) -> None:
    first = await agent.observe(hand.parts, hand.world.session, p.Observe(app="memory", base="shown"))
    assert first["kind"] == "full"
    assert "reason" not in first
    hand.take(first)
    hand.world.app.change("b3", name="Other")
    again = await agent.observe(hand.parts, hand.world.session, p.Observe(app="memory", base="shown"))
    assert again["kind"] == "diff"
    hand.take(again)
    assert hand.text == await hand.current()
    whole = await agent.observe(hand.parts, hand.world.session, p.Observe(app="memory", base="shown", full=True))
    assert whole["text"] == hand.text


async def test_a_text_in_another_form_is_whole_and_says_why(hand: Hand) -> None:
    await hand.observe()
    hand.world.app.change("b3", name="Other")
    found = await hand.observe(max_tokens=250)
    assert (found["kind"], found["reason"]) == ("full", "the earlier text was given in another form")
    assert tokens(found["text"]) <= 250
    assert hand.text == await hand.current(tokens_max=250)
    assert (await hand.observe(max_tokens=250))["kind"] == "diff"
    assert (await hand.observe())["kind"] == "full"
    assert hand.text == await hand.current()


async def test_another_form_that_makes_the_same_text_is_no_other_text(hand: Hand) -> None:
    await hand.observe(max_nodes=100)
    hand.world.app.change("b3", name="Other")
    assert (await hand.observe(max_nodes=200, max_tokens=5_000))["kind"] == "diff"
    assert hand.text == await hand.current()


@pytest.mark.parametrize("form", [{}, {"max_tokens": 250}, {"max_nodes": 10}])
async def test_what_an_effect_changed_stands_on_the_text_the_caller_has(hand: Hand, form: dict[str, int]) -> None:
    await hand.observe(**form)
    for number in range(5):
        hand.world.app.change(f"b{number}", description=f"changed {number}", states=frozenset({"focused", "showing"}))
        await hand.change()
        assert hand.text == await hand.current(
            nodes_max=form.get("max_nodes", limits.RENDER_NODES_DEFAULT), tokens_max=form.get("max_tokens")
        )
    assert (await hand.observe(**form))["kind"] == "diff"


async def test_a_look_at_a_part_leaves_the_windows_text_what_it_was(hand: Hand) -> None:
    await hand.observe()
    hand.world.app.change("b3", name="Other")
    label = (await hand.world.observe()).targets[-1].label
    part = await hand.observe(scope=label)
    assert part["kind"] == "full"
    assert part["text"].split("\n")[1:] == [f'[{label}] button "Button 59"']
    assert (await hand.observe())["kind"] == "diff"
    assert hand.text == await hand.current()


async def test_an_element_first_seen_in_a_part_can_be_named(hand: Hand) -> None:
    await hand.observe()
    hand.world.app.add(button("new", "New"))
    scene = await hand.world.observe()
    label = scene.targets[-1].label
    with pytest.raises(TargetNotFound):
        hand.world.session.shown.meaning(label)
    await hand.observe(scope=label)
    assert still_means(hand.world.session.shown.meaning(label), scene) == len(scene.targets) - 1


async def test_a_look_at_a_part_changes_the_meaning_of_nothing_else(hand: Hand) -> None:
    await hand.observe()
    scene = await hand.world.observe()
    first, last = scene.targets[1].label, scene.targets[-1].label
    hand.world.app.change("b0", name="Delete everything")
    await hand.observe(scope=last)
    with pytest.raises(StaleTarget):
        still_means(hand.world.session.shown.meaning(first), await hand.world.observe())


async def test_a_part_is_found_without_its_window(hand: Hand) -> None:
    await hand.observe()
    label = (await hand.world.observe()).targets[5].label
    found = await agent.observe(hand.parts, hand.world.session, p.Observe(scope=label))
    assert f"[{label}] button" in found["text"]
    with pytest.raises(TargetNotFound):
        await agent.observe(hand.parts, hand.world.session, p.Observe(scope="e99999"))


@pytest.mark.parametrize("wrong", [{"max_tokens": limits.RENDER_TOKENS_MIN - 1}, {"scope": ""}, {"scope": "e 1"}])
def test_a_form_that_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        p.Observe(**wrong)


async def test_forms_of_old_texts_are_forgotten_and_their_diffs_whole(hand: Hand) -> None:
    await hand.observe()
    shown: Shown = hand.world.session.shown
    scene = await hand.world.observe()
    assert shown.holds(scene, RenderOptions())
    for number in range(limits.SHOWN_FORMS_MAX):
        shown.forms[f"other {number}"] = RenderOptions()
    shown.text(await hand.world.observe(hand.world.new_session()))
    assert len(shown.forms) == limits.SHOWN_FORMS_MAX
    assert not shown.holds(scene, RenderOptions())


@pytest.mark.parametrize(("ago", "waits"), [(limits.SETTLE_MIN_MS, False), (limits.SETTLE_MIN_MS - 1, True)])
async def test_a_window_at_rest_is_waited_for_only_after_an_effect(ago: int, waits: bool) -> None:
    clock = SettableClock()
    world = World(clock=clock)
    surface_id = world.app.surface.surface_id
    asked: list[int] = []

    async def changed(_: str, __: int, timeout_ms: int) -> bool:
        asked.append(timeout_ms)
        clock.now += timeout_ms
        return False

    world.app.changed = changed  # type: ignore[method-assign]
    effect_at = clock.monotonic_ms() - ago
    assert await settle(world.app, surface_id, clock, effect_at) == "settled"
    assert asked == ([1] if waits else [])


async def test_an_effect_on_the_desktop_is_remembered_for_whoever_looks_next() -> None:
    clock = SettableClock()
    world = World(clock=clock)
    before = world.desk.effect_at_ms
    clock.now += 5_000
    await world.act("one")
    assert before < world.desk.effect_at_ms <= clock.monotonic_ms()
