"""What lies on an element within its own window, as toolkits paint: later siblings over earlier ones (case C30).

Accessibility does not say what covers what. Only what would take a click for itself counts where a click is refused
for it: layout lies over everything. What scrolls out of an area does not cover what stands around that. What is in an
opened menu, or in the list of a combo box, stands in a window of its own, over everything.
"""

from __future__ import annotations

from typing import Final

from surehand.core.scene.tree import index_of
from surehand.model.scene import Bounds, Node, Tree

#: What takes a click for itself. Items of menus and lists are left out: their places count only while they are open.
TAKES_CLICKS: Final = frozenset(
    [
        "button",
        "checkbox",
        "combobox",
        "link",
        "password",
        "radio",
        "slider",
        "spinbutton",
        "switch",
        "tab",
        "text",
        "togglebutton",
    ]
)


_OPENED: Final = frozenset({"combobox", "menu"})


def covering(tree: Tree, index: int, place: tuple[int, int], roles: frozenset[str] | None = None) -> Node | None:
    """Return the topmost element over another one at a place, None where nothing is.

    Args:
        tree: The window's tree.
        index: The element.
        place: In desktop pixels.
        roles: What counts; everything where it is None.
    """
    if _is_opened(tree, index):
        return None
    for over in range(len(tree.nodes) - 1, index_of(tree).ends[index] - 1, -1):
        node = tree.nodes[over]
        counts = (roles is None or node.role in roles) and "showing" in node.states and node.bounds is not None
        if counts and _shows_at(tree, over, place):
            return node
    return None


def _is_opened(tree: Tree, index: int) -> bool:
    while (index := tree.parents[index]) >= 0:
        if tree.nodes[index].role in _OPENED:
            return True
    return False


def _shows_at(tree: Tree, index: int, place: tuple[int, int]) -> bool:
    while index > 0:
        bounds = tree.nodes[index].bounds
        if bounds is not None and not _inside(bounds, place):
            return False
        index = tree.parents[index]
    return True


def _inside(bounds: Bounds, place: tuple[int, int]) -> bool:
    x, y, width, height = bounds
    return x <= place[0] < x + width and y <= place[1] < y + height
