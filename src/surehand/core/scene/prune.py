"""Which elements the text form shows, and at which depth.

Left out are structure without meaning (boxes with no name, text or use of their own), texts that only repeat the
element they stand in, and labels whose text is told at the one control they label. Promises that everything that can
be acted upon stays, disabled or not, and that no text is lost: what is left out is said by what stays.

Only the text form prunes; queries, references and fences know every element.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from surehand.core.scene.context import contexts_of
from surehand.core.scene.rows import ACTIVE_CAPABILITIES, CONTROL_ROLES, TEXT_ROLES, WRAPPER_ROLES, label_text
from surehand.core.scene.tree import TreeIndex, index_of
from surehand.model.scene import Node, Tree

_STRUCTURE: Final = WRAPPER_ROLES | {"cell", "page", "scrollpane", "separator", "split", "tabpanel"}
_PASSIVE: Final = TEXT_ROLES - {"text"} | {"icon", "image"}


class Shown(NamedTuple):
    """An element the text form shows.

    `place` in the tree; `over`, the place of the shown element around it, −1 for the top; `depth` among the shown;
    `label`, the text of labels that are not shown themselves.
    """

    place: int
    over: int
    depth: int
    label: str


def prune(tree: Tree, within: int = 0) -> list[Shown]:
    """Return what is shown of the subtree at `within`, in document order; the top of it always."""
    index = index_of(tree)
    if not tree.nodes:
        return []
    told, said = _labels(tree, index)
    shown = [Shown(within, -1, 0, told.get(within, ""))]
    parents, nodes = tree.parents, tree.nodes
    #: The nearest shown element at or above each place, as a place in `shown`.
    above = {within: 0}
    for place in range(within + 1, index.ends[within]):
        over = above[parents[place]]
        node = nodes[place]
        leaf = index.ends[place] == place + 1
        if place in said or not (told.get(place) or _means_something(node, nodes[shown[over].place], leaf=leaf)):
            above[place] = over
        else:
            above[place] = len(shown)
            shown.append(Shown(place, shown[over].place, shown[over].depth + 1, told.get(place, "")))
    return shown


def _means_something(node: Node, over: Node, *, leaf: bool) -> bool:
    if node.capabilities & ACTIVE_CAPABILITIES or node.secret or "focused" in node.states:
        return True
    if node.role in _STRUCTURE and not node.name and not node.description and not node.value:
        return False
    if node.role not in _PASSIVE:
        return True
    text = label_text(node) or node.value or ""
    if not text:
        return bool(node.description) or not leaf
    # A button's own label, an item's only text.
    return not leaf or not (text == over.name or (over.role in CONTROL_ROLES and text in over.name))


def _labels(tree: Tree, index: TreeIndex) -> tuple[dict[int, str], frozenset[int]]:
    """Return what each labelled element has to tell beside its name, and the labels it tells.

    A label that stands in a row stays: it tells what the whole row is about.
    """
    rows = contexts_of(tree).row_keys
    told: dict[int, str] = {}
    said: set[int] = set()
    for place, node in enumerate(tree.nodes):
        if not node.labelled_by or node.role in _PASSIVE:
            continue
        texts: list[str] = []
        for handle in node.labelled_by:
            label = index.by_handle.get(handle, -1)
            if label >= 0 and rows[label] is None and _is_mere_label(tree.nodes[label], label, place, index):
                said.add(label)
                text = label_text(tree.nodes[label])
                if text != node.name:
                    texts.append(text)
        if texts:
            told[place] = " ".join(texts)
    return told, frozenset(said)


def _is_mere_label(node: Node, label: int, labelled: int, index: TreeIndex) -> bool:
    return (
        node.role in TEXT_ROLES
        and bool(label_text(node))
        and not node.description
        and not node.capabilities & ACTIVE_CAPABILITIES
        and index.ends[label] == label + 1
        and label != labelled
    )
