"""Which elements of a picture are worth a mark, and where in it each stands.

Marked is what a person could act upon right now and that shows at least in part; what lies outside the picture is
named and not marked. Of an element and a part of it in the same place one is marked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from surehand import limits
from surehand.core.release import is_secret
from surehand.core.scene.rows import CONTROL_ROLES, ITEM_ROLES
from surehand.core.scene.tree import TreeIndex, index_of
from surehand.model.scene import Bounds, Capture, Node, Scene

_ACTS: Final = frozenset({"expand", "invoke", "select", "set_text", "set_value", "toggle"})
#: What holds others: acting upon it as a whole is not what a mark is for.
_HOLDERS: Final = frozenset(
    [
        "alert", "application", "dialog", "document", "filler", "group", "list", "menubar", "page", "pane",
        "scrollbar", "scrollpane", "split", "statusbar", "table", "tablist", "tabpanel", "toolbar", "tree", "unknown",
        "window",
    ]
)  # fmt: skip
#: What a person presses or chooses, also where its toolkit offers no action for it.
_POINTED: Final = (CONTROL_ROLES | ITEM_ROLES) - {"icon", "image", "scrollbar"}
#: Through these, what is inside shows only as far as they do.
_CLIPS: Final = frozenset({"scrollpane", "list", "table", "tree", "tabpanel", "window", "dialog"})
#: Controls that toolkits build of others, and what they build them of.
_WHOLE: Final = frozenset({"button", "combobox", "menuitem", "spinbutton", "switch", "togglebutton"})
_PARTS: Final = frozenset({"button", "togglebutton"})
#: Two boxes that differ by less show as one.
_SAME_PX: Final = 3


class Mark(NamedTuple):
    """An element in a picture, by its index.

    `box` is left, top, right, bottom in the picture's pixels; `cut` says that there is more of it outside.
    """

    place: int
    box: tuple[int, int, int, int]
    cut: bool


class Marks(NamedTuple):
    """The marks in document order, and the elements that lie outside the picture or found no room among the marks."""

    marks: tuple[Mark, ...]
    outside: tuple[int, ...]
    more: int = 0


def marks_of(scene: Scene, capture: Capture, shows: Callable[[tuple[int, int]], bool] = lambda _: True) -> Marks:
    """Return the marks of a window in a picture.

    Args:
        scene: What the window holds.
        capture: The picture.
        shows: Whether the picture shows the window at a place of the desktop, and nothing before it.
    """
    look = index_of(scene.tree)
    view = (
        capture.origin_x,
        capture.origin_y,
        capture.width * 1000 // capture.scale_milli,
        capture.height * 1000 // capture.scale_milli,
    )
    found: dict[int, Bounds] = {}
    outside: list[int] = []
    for index, node in enumerate(scene.tree.nodes):
        if not _worth(node) or node.bounds is None:
            continue
        part = _visible(look, index, view)
        if part is None or not shows((part[0] + part[2] // 2, part[1] + part[3] // 2)):
            outside.append(index)
            continue
        holder = _one_with(look, index, part, found)
        if holder is None:
            found[index] = part
        elif not scene.tree.nodes[holder].capabilities & _ACTS and node.capabilities & _ACTS:
            # What acts is marked, where it was thought to stand.
            found[index] = found.pop(holder)
    marks = [
        Mark(index, _box(part, capture), cut=_is_cut(part, scene.tree.nodes[index].bounds, view))
        for index, part in sorted(found.items())
    ]
    return Marks(tuple(marks[: limits.MARKS_MAX]), tuple(outside), max(0, len(marks) - limits.MARKS_MAX))


def _is_cut(part: Bounds, whole: Bounds | None, view: Bounds) -> bool:
    return whole is not None and part != whole and _meet(whole, view) != whole


def _worth(node: Node) -> bool:
    if "showing" not in node.states or "enabled" not in node.states or node.role in _HOLDERS:
        return False
    if node.role == "cell" and node.column:
        return False  # one mark a row
    if node.role in _POINTED and "point" in node.capabilities:
        return True
    return bool(node.capabilities & _ACTS) or (is_secret(node) and "focus" in node.capabilities)


def _visible(look: TreeIndex, index: int, view: Bounds) -> Bounds | None:
    part = _meet(look.nodes[index].bounds, view)
    for above in look.ancestors(index):
        if part is None:
            return None
        node = look.nodes[above]
        if node.role in _CLIPS and node.bounds is not None:
            part = _meet(part, node.bounds)
    return part


def _meet(first: Bounds | None, second: Bounds) -> Bounds | None:
    if first is None:
        return None
    left, top = max(first[0], second[0]), max(first[1], second[1])
    right = min(first[0] + first[2], second[0] + second[2])
    bottom = min(first[1] + first[3], second[1] + second[3])
    return (left, top, right - left, bottom - top) if right > left and bottom > top else None


def _one_with(look: TreeIndex, index: int, part: Bounds, found: dict[int, Bounds]) -> int | None:
    """Return what is marked and one thing with an element for a person: in the same place, or the control it works."""
    for above in look.ancestors(index):
        box = found.get(above)
        if box is None:
            continue
        if all(abs(a - b) < _SAME_PX for a, b in zip(box, part, strict=True)):
            return above
        if look.nodes[above].role in _WHOLE and look.nodes[index].role in _PARTS:
            return above
    return None


def _box(part: Bounds, capture: Capture) -> tuple[int, int, int, int]:
    scale = capture.scale_milli
    x, y = part[0] - capture.origin_x, part[1] - capture.origin_y
    right, bottom = -((-x - part[2]) * scale // 1000), -((-y - part[3]) * scale // 1000)
    return x * scale // 1000, y * scale // 1000, min(right, capture.width), min(bottom, capture.height)
