"""How long do scene rules take on a window of 120, 1 000 and 10 000 elements?

Pure computation, no application: building the first scene, building one after a change, an unchanged one, a query with
five filters, a diff of one change, the text form, and the fence of one element. Prints one table, p50 of the thread's own
time (others may share the machine), and fails when a bound of the specification is broken.
"""

from __future__ import annotations

import gc
import statistics
import sys
import time
from collections.abc import Callable

import msgspec

from surehand.core.scene.build import build_scene
from surehand.core.scene.diff import diff
from surehand.core.scene.fence import SceneView, check_fence, fence_handles
from surehand.core.scene.labels import LabelTable
from surehand.core.scene.query import find
from surehand.core.scene.render import RenderOptions, render
from surehand.model.query import Filter, Query, Rect, TextMatch
from surehand.model.scene import AppIdentity, Node, Scene, Surface, Tree

STATES = frozenset({"enabled", "visible", "showing"})
APP = AppIdentity(key="exe:/usr/bin/app", pid=1, process_generation="1", uid=1000, executable="/usr/bin/app")
SURFACE = Surface(
    surface_id="w1", desktop="d", app=APP, backend="atspi", toolkit="gtk3", title="W", role="window", place="window"
)
FIVE = Query(
    filters=(
        Filter(role="button"),
        Filter(state={"enabled": True}),
        Filter(name=TextMatch(text="^(Open|Close)$", match="regex")),
        Filter(context=TextMatch(text="person 7", match="contains")),
        Filter(within=Rect(x=0, y=0, width=65_535, height=65_535)),
    )
)
#: No filter of these narrows by an index: all are tested on every element.
SLOW = Query(
    filters=(
        Filter(capability="point"),
        Filter(state={"enabled": True}),
        Filter(name=TextMatch(text="pen|los", match="regex")),
        Filter(context=TextMatch(text="person", match="contains")),
        Filter(within=Rect(x=0, y=0, width=65_535, height=65_535)),
    )
)
BOUNDS_MS = {"query, 5 filters": 10.0, "query, 5 unindexed filters": 10.0, "diff of one change": 15.0}


def nodes_of(count: int) -> tuple[list[Node], list[int]]:
    """Return rows of five: item, label, box, two buttons."""
    nodes = [Node(handle="root", role="window", name="Window", states=STATES)]
    nodes.append(Node(handle="list", role="list", name="People", states=STATES))
    parents = [-1, 0]
    row = 0
    while len(nodes) < count:
        item = len(nodes)
        parts = [
            ("listitem", "", 1),
            ("label", f"person {row}", item),
            ("filler", "", item),
            ("button", "Open", item + 2),
            ("button", "Delete", item + 2),
        ]
        for part, (role, name, parent) in enumerate(parts):
            capabilities = frozenset({"invoke", "point"}) if role == "button" else frozenset({"point"})
            bounds = (part * 40, row * 20 % 60_000, 40, 20)
            nodes.append(
                Node(
                    handle=f"h{len(nodes)}",
                    role=role,
                    name=name,
                    states=STATES,
                    capabilities=capabilities,
                    bounds=bounds,
                )
            )
            parents.append(parent)
        row += 1
    return nodes, parents


def changed(tree: Tree, round_: int) -> Tree:
    """Return the tree with one label renamed."""
    place = 3 + 5 * (round_ % ((len(tree.nodes) - 2) // 5))
    nodes = list(tree.nodes)
    nodes[place] = msgspec.structs.replace(nodes[place], name=f"other {round_}")
    return Tree(nodes=tuple(nodes), parents=tree.parents, version=tree.version + 1)


def build(tree: Tree, previous: Scene | None, labels: LabelTable) -> tuple[Scene, LabelTable]:
    return build_scene(tree, SURFACE, previous, labels, session="s", scene_id="x", now_ms=0)


def p50(work: Callable[[int], object], rounds: int) -> float:
    taken = []
    for round_ in range(rounds):
        started = time.thread_time()
        work(round_)
        taken.append((time.thread_time() - started) * 1000)
    return statistics.median(taken)


def measure(count: int, rounds: int) -> dict[str, float]:
    nodes, parents = nodes_of(count)

    def first(_: int) -> None:
        tree = Tree(nodes=tuple(nodes), parents=tuple(parents), version=1)
        build(tree, None, LabelTable())

    base, labels = build(Tree(nodes=tuple(nodes), parents=tuple(parents), version=1), None, LabelTable())
    trees = [changed(base.tree, round_) for round_ in range(rounds)]
    scenes = [build(tree, base, labels)[0] for tree in trees]
    options = RenderOptions(nodes_max=2000)
    render(base, options)
    fresh = [changed(base.tree, round_) for round_ in range(rounds)]
    middle = 5 + 5 * ((count - 2) // 10)
    view = SceneView(scenes[0])
    return {
        "first scene": p50(first, rounds),
        "scene after one change": p50(lambda round_: build(fresh[round_], base, labels), rounds),
        "unchanged scene": p50(lambda _: build(base.tree, base, labels), rounds),
        "query, 5 filters": p50(lambda round_: find(scenes[round_], FIVE), rounds),
        "query, 5 unindexed filters": p50(lambda round_: find(scenes[round_], SLOW), rounds),
        "text form, 2000 elements": p50(lambda round_: render(scenes[round_], options), rounds),
        "diff of one change": p50(lambda round_: diff(base, scenes[-1 - round_], RenderOptions()), rounds),
        "fence of one element": p50(lambda _: check_fence(base, middle, view), rounds),
        "nodes a fence reads": float(len(fence_handles(base, middle))),
    }


def main() -> int:
    counts = (120, 1_000, 10_000)
    gc.freeze()
    columns = [measure(count, 50 if count < 5_000 else 15) for count in counts]
    print("| ms (p50) | " + " | ".join(f"{count} elements" for count in counts) + " | at most |")
    print("|---|" + "---|" * (len(counts) + 1))
    broken = 0
    for name in columns[0]:
        bound = BOUNDS_MS.get(name)
        print(f"| {name} | " + " | ".join(f"{column[name]:.3f}" for column in columns) + f" | {bound or ''} |")
        broken += bound is not None and columns[-1][name] > bound
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
