"""Scenes that a session may still be referred to cost little, and are whole again where one is."""

from __future__ import annotations

import msgspec

from surehand import limits
from surehand.core.scene.fence import index_of_label
from surehand.core.scene.query import find
from surehand.core.scene.render import render
from surehand.core.scene.tree import _MEMOS, index_of
from surehand.model.query import Filter, Query, TextMatch
from surehand.model.scene import Scene
from surehand.runtime.session import Session
from tests.scene_kit import El, Watcher


def _session() -> Session:
    return Session(session_id="s", principal="p", role="agent", trust_level="A", authority_mode="daemon", desk=None)


def _looked_at(scene: Scene, number: int) -> None:
    assert render(scene).text
    assert find(scene, Query(filters=(Filter(name=TextMatch(text=f"Sum {number}")),))).indexes
    assert index_of_label(scene, scene.targets[1].label) == 1
    assert index_of(scene.tree)


def _derived(scenes: list[Scene]) -> set[int]:
    """Return which of some scenes anything is kept of that was worked out."""
    return {
        number
        for number, scene in enumerate(scenes)
        if any(memo.peek(owner) is not None for memo in _MEMOS for owner in (scene, scene.tree))
    }


def _scenes(count: int) -> list[Scene]:
    label = El("label", "Sum 0")
    view = Watcher(El("window", "Sums", label, *(El("button", f"b{number}") for number in range(20))))
    scenes = []
    for number in range(count):
        label.set(name=f"Sum {number}")
        scenes.append(view.observe())
    return scenes


def test_of_older_scenes_only_what_is_named_in_them_is_kept() -> None:
    session, scenes = _session(), _scenes(40)
    for number, scene in enumerate(scenes):
        session.latest["w"] = scene
        _looked_at(scene, number)
        session.keep_scene(scene)
    assert list(session.scenes.values()) == scenes
    assert _derived(scenes) == set(range(40 - limits.SCENES_WHOLE_MAX, 40))
    # The oldest can still be looked at, and costs only the work.
    _looked_at(session.scenes[scenes[0].scene_id], 0)


def test_a_scene_that_was_shown_or_is_the_newest_of_its_window_stays_whole() -> None:
    session, scenes = _session(), _scenes(30)
    session.shown.text(scenes[0])
    session.latest["another"] = scenes[1]
    for number, scene in enumerate(scenes):
        _looked_at(scene, number)
        session.keep_scene(scene)
    assert {0, 1} < _derived(scenes)
    assert len(_derived(scenes)) == 2 + limits.SCENES_WHOLE_MAX


def test_scenes_are_kept_to_a_number_and_the_oldest_make_room() -> None:
    session = _session()
    for number, scene in enumerate(_scenes(limits.SCENES_KEPT_MAX + 1)):
        session.keep_scene(msgspec.structs.replace(scene, observed_at_ms=0, expires_at_ms=1))
        assert len(session.scenes) == min(number + 1, limits.SCENES_KEPT_MAX)
