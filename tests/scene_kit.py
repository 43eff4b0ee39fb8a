"""Trees for tests of scenes: written as nested elements, changed in place, read as an adapter would read them.

An element keeps its node object while nothing about it changes, as the adapters do.
"""

from __future__ import annotations

import itertools
from typing import Any

from surehand.core.scene.build import build_scene
from surehand.core.scene.labels import LabelTable
from surehand.model.scene import AppIdentity, Bounds, Node, Scene, Surface, Tree

_numbers = itertools.count(1)

VISIBLE = frozenset({"enabled", "visible", "showing"})
_CAPABILITIES = {
    "button": frozenset({"invoke", "point"}),
    "menuitem": frozenset({"invoke"}),
    "link": frozenset({"invoke", "point"}),
    "checkbox": frozenset({"toggle", "invoke", "point"}),
    "togglebutton": frozenset({"toggle", "invoke", "point"}),
    "text": frozenset({"set_text", "focus", "point"}),
    "slider": frozenset({"set_value", "point"}),
    "combobox": frozenset({"select", "point"}),
}


class El:
    """One object of a pretended application."""

    def __init__(self, role: str, name: str = "", *children: El, **fields: Any) -> None:
        self.handle = fields.pop("handle", None) or f"h{next(_numbers)}"
        self.fields: dict[str, Any] = {
            "role": role,
            "name": name,
            "states": VISIBLE,
            "capabilities": _CAPABILITIES.get(role, frozenset()),
            **fields,
        }
        self.children = list(children)
        self._node: Node | None = None

    def set(self, **fields: Any) -> None:
        self.fields.update(fields)
        self._node = None

    def add_states(self, *states: str) -> None:
        self.set(states=self.fields["states"] | set(states))

    def drop_states(self, *states: str) -> None:
        self.set(states=self.fields["states"] - set(states))

    @property
    def name(self) -> str:
        return self.fields["name"]

    def node(self) -> Node:
        if self._node is None:
            self._node = Node(handle=self.handle, **self.fields)
        return self._node

    def walk(self) -> list[El]:
        found = [self]
        for child in self.children:
            found.extend(child.walk())
        return found

    def parent_of(self, el: El) -> El:
        return next(other for other in self.walk() if el in other.children)


def read(root: El, version: int = 1) -> Tree:
    nodes: list[Node] = []
    parents: list[int] = []

    def visit(el: El, parent: int) -> None:
        place = len(nodes)
        nodes.append(el.node())
        parents.append(parent)
        for child in el.children:
            visit(child, place)

    visit(root, -1)
    return Tree(nodes=tuple(nodes), parents=tuple(parents), version=version)


def surface(
    surface_id: str = "w1",
    *,
    title: str = "Window",
    pid: int = 100,
    process_generation: str = "100:1",
    states: frozenset[str] = VISIBLE,
    role: str = "window",
    bounds: Bounds | None = (0, 0, 800, 600),
) -> Surface:
    return Surface(
        surface_id=surface_id,
        desktop="d1",
        app=AppIdentity(
            key="exe:/usr/bin/app",
            pid=pid,
            process_generation=process_generation,
            uid=1000,
            executable="/usr/bin/app",
        ),
        backend="atspi",
        toolkit="gtk3",
        title=title,
        role=role,
        place="window",
        states=states,
        bounds=bounds,
    )


class Watcher:
    """One session's view of one pretended window."""

    def __init__(self, root: El, *, window: Surface | None = None, session: str = "s" * 32) -> None:
        self.root = root
        self.surface = window or surface()
        self.session = session
        self.labels = LabelTable()
        self.latest: Scene | None = None
        self.now_ms = 1_000
        self._count = 0

    def observe(self, tree: Tree | None = None) -> Scene:
        self._count += 1
        scene, self.labels = build_scene(
            tree if tree is not None else read(self.root, self._count),
            self.surface,
            self.latest,
            self.labels,
            session=self.session,
            scene_id=f"sc{self._count}",
            now_ms=self.now_ms,
        )
        self.latest = scene
        return scene


def place(scene: Scene, el: El) -> int:
    return next(index for index, node in enumerate(scene.tree.nodes) if node.handle == el.handle)


def label(scene: Scene, el: El) -> str:
    return scene.targets[place(scene, el)].label


def context(scene: Scene, el: El) -> str:
    return scene.targets[place(scene, el)].context
