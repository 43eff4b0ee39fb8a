"""What a session was shown, so that a bare label can be acted upon: only while it means what it meant then.

A person or a model names an element as `e17`, from a text it read, perhaps minutes ago. `Shown` keeps, per window, the
scene of the last text that left the host and what queries named since; `references` turns labels into fenced
references to what is there now, and refuses a label whose element is gone or means something else (spec §8.3). Nothing
is re-aimed: a changed fingerprint or context is `stale_target` with the closest current candidates.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from surehand import limits
from surehand.core.scene.describe import closest
from surehand.core.scene.fence import index_of_label
from surehand.core.scene.render import DEFAULTS, RenderOptions, render
from surehand.errors import StaleTarget, TargetNotFound
from surehand.model.scene import Node, Scene, SceneTarget

#: How a candidate begins (`core.scene.describe`).
_NAMED: Final = re.compile(r"\[(e\d+)\] ")
_OBSERVE: Final = "observe the window and use the labels of that text"


class Meaning(NamedTuple):
    """An element as it was shown: in which window, what it was, and what it meant."""

    surface_id: str
    node: Node
    target: SceneTarget


@dataclass(slots=True)
class Before:
    """What the caller knew before some effects: the scenes of the windows aimed at, and which windows there were.

    `verified` as long as every effect since was read back.
    """

    scenes: dict[str, Scene] = field(default_factory=dict)
    windows: frozenset[str] = frozenset()
    verified: bool = True


@dataclass(slots=True)
class Shown:
    """The last text of each window, and matches of queries since."""

    #: In which form that text was given, by scene; also of some texts before.
    forms: dict[str, RenderOptions] = field(default_factory=dict)
    scenes: dict[str, Scene] = field(default_factory=dict)
    matches: dict[str, Meaning] = field(default_factory=dict)
    #: Every window the session was told of; None before it was told of any.
    windows: set[str] | None = None

    def text(self, scene: Scene, form: RenderOptions = DEFAULTS) -> None:
        """A text of this scene, whole or as a diff, left the host."""
        surface_id = scene.surface.surface_id
        self.forms.pop(scene.scene_id, None)
        self.forms[scene.scene_id] = form
        while len(self.forms) > limits.SHOWN_FORMS_MAX:
            del self.forms[next(iter(self.forms))]
        # At the end: the windows are in the order in which they were looked at.
        self.scenes.pop(surface_id, None)
        self.scenes[surface_id] = scene
        self.matches = {label: found for label, found in self.matches.items() if found.surface_id != surface_id}

    def scene(self, scene_id: str) -> Scene | None:
        """Return a scene whose text was the last of its window, however long ago."""
        return next((scene for scene in self.scenes.values() if scene.scene_id == scene_id), None)

    def form(self, surface_id: str) -> RenderOptions:
        """Return the form in which the window's last text was given."""
        scene = self.scenes.get(surface_id)
        return DEFAULTS if scene is None else self.forms.get(scene.scene_id, DEFAULTS)

    def holds(self, base: Scene, form: RenderOptions) -> bool:
        """Return whether the caller was given this very text, so that a diff can stand on it."""
        given = self.forms.get(base.scene_id)
        if given is None or given.within != form.within:
            return False
        return given == form or render(base, given).text == render(base, form).text

    def part(self, scene: Scene, labels: Iterable[str]) -> None:
        """Elements of this scene left the host, and not its whole text."""
        wanted = set(labels)
        for index, target in enumerate(scene.targets):
            if target.label in wanted:
                self.match(scene, index)

    def aside(self, scene: Scene, form: RenderOptions, labels: Iterable[str]) -> None:
        """A text of this scene left the host for somebody else than who acts, such as a client that follows a window.

        Whoever acts may not have read it, so it gives no label that was shown before another meaning.
        """
        if scene.surface.surface_id not in self.scenes:
            self.text(scene, form)
            return
        room = limits.QUERY_RESULTS_MAX - len(self.matches)
        self.part(scene, [label for label in labels if not self._knows(label)][:room])

    def match(self, scene: Scene, index: int) -> None:
        """One element of this scene left the host by itself."""
        found = Meaning(scene.surface.surface_id, scene.tree.nodes[index], scene.targets[index])
        self.matches[found.target.label] = found
        while len(self.matches) > limits.QUERY_RESULTS_MAX:
            del self.matches[next(iter(self.matches))]

    def candidates(self, scenes: Iterable[Scene], observed: Mapping[str, Any]) -> None:
        """Elements were named in an error as what may be meant instead; as they are in these scenes.

        A label that was shown before keeps the meaning it had then: whoever repeats it after a refusal without a look
        must be refused again, and not be led to what it stands for now.
        """
        named = [_NAMED.match(str(line)) for line in observed.get("candidates", ())]
        labels = {found[1] for found in named if found is not None and not self._knows(found[1])}
        for scene in scenes if labels else ():
            for index, target in enumerate(scene.targets):
                if target.label in labels:
                    self.match(scene, index)

    def _knows(self, label: str) -> bool:
        return label in self.matches or any(index_of_label(scene, label) is not None for scene in self.scenes.values())

    def meaning(self, label: str) -> Meaning:
        """Return what a label meant when it was shown last.

        Raises:
            TargetNotFound: this session was never shown it, or its window has closed since.
        """
        if (found := self.matches.get(label)) is not None:
            return found
        for surface_id, scene in self.scenes.items():
            if (index := index_of_label(scene, label)) is not None:
                return Meaning(surface_id, scene.tree.nodes[index], scene.targets[index])
        raise TargetNotFound(f"{label} is in no text this session was given", fix=_OBSERVE, details={"element": label})

    def forget(self, surface_id: str) -> None:
        """The window is gone."""
        self.scenes.pop(surface_id, None)
        self.matches = {label: found for label, found in self.matches.items() if found.surface_id != surface_id}

    def clear(self) -> None:
        """Nothing that was shown may be named any more."""
        self.forms.clear()
        self.scenes.clear()
        self.matches.clear()


def still_means(meaning: Meaning, now: Scene) -> int:
    """Return where an element is now, if it still is and means what was shown.

    Raises:
        StaleTarget: it is gone or changed; names the change and the closest current candidates, as observed data.
    """
    label = meaning.target.label
    index = index_of_label(now, label)
    if index is None:
        raise _stale(meaning, now, f"{label} is not in its window any more", {"what": "gone"})
    target = now.targets[index]
    if target.fingerprint_hash != meaning.target.fingerprint_hash:
        raise _stale(meaning, now, f"{label} is something else now", {"what": "fingerprint"})
    if target.context_hash != meaning.target.context_hash:
        observed = {"was": meaning.target.context, "now": target.context}
        raise _stale(meaning, now, f"{label} stands for something else now", {"what": "context"}, observed)
    return index


def _stale(
    meaning: Meaning, now: Scene, message: str, details: dict[str, Any], observed: dict[str, Any] | None = None
) -> StaleTarget:
    candidates = closest(now, meaning.node, meaning.target.context, most=limits.CANDIDATES_MAX)
    return StaleTarget(
        message,
        fix=_OBSERVE,
        details={"element": meaning.target.label, **details},
        observed={**(observed or {}), "candidates": candidates},
    )
