"""Which elements the text form shows, and at which depth.

Left out are structure without meaning (boxes with no name, text or use of their own), texts that only repeat the
element they stand in, and labels whose text is told at the one control they label or at the row they name. Promises
that everything that can be acted upon stays, disabled or not, and that no text is lost: what is left out is said by
what stays.

Never shown, although toolkits let them be acted upon, are what nobody acts upon itself: separators; scroll bars out of
sight, as what they scroll can be scrolled; and the nameless box that a combo box or menu item pops up, as it is opened
by the one and chosen from by what is in it.

Only the text form prunes; queries, references and fences know every element.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from surehand.core.scene.context import contexts_of
from surehand.core.scene.rows import (
    ACTIVE_CAPABILITIES,
    CONTROL_ROLES,
    ITEM_ROLES,
    TEXT_ROLES,
    WRAPPER_ROLES,
    label_text,
)
from surehand.core.scene.tree import TreeIndex, index_of
from surehand.model.scene import Node, Tree

_STRUCTURE: Final = WRAPPER_ROLES | {"cell", "page", "scrollpane", "separator", "split", "tabpanel"}
_PASSIVE: Final = TEXT_ROLES - {"text"} | {"icon", "image"}
_IN_USE: Final = frozenset({"focused", "showing"})
#: What pops up, where it has no name, and what it pops up from.
_POPUPS: Final = frozenset({"list", "menu"})
_POPPING: Final = frozenset({"combobox", "menuitem"})
#: All others are always shown.
_QUESTIONED: Final = _STRUCTURE | _PASSIVE | _POPUPS | {"scrollbar"}


class Shown(NamedTuple):
    """The elements the text form shows, in document order, as lists side by side.

    `places` in the tree; `overs`, the places of the shown elements around them, −1 for the top; their `depths` among
    the shown; `told`, by place, the texts of labels that are not shown themselves.
    """

    places: list[int]
    overs: list[int]
    depths: list[int]
    told: dict[int, str]


def prune(tree: Tree, within: int = 0) -> Shown:
    """Return what is shown of the subtree at `within`; the top of it always."""
    index = index_of(tree)
    if not tree.nodes:
        return Shown([], [], [], {})
    told, said = _labels(tree, index)
    parents, nodes, ends = tree.parents, tree.nodes, index.ends
    shown = Shown([within], [-1], [0], told)
    places, overs, depths, _ = shown
    #: The nearest shown element at or above each place from `within` on: its place, and the depth below it.
    above = [within]
    below = [1]
    for place in range(within + 1, ends[within]):
        parent = parents[place] - within
        over, depth = above[parent], below[parent]
        node = nodes[place]
        if place in said:
            keep = False
        elif node.role not in _QUESTIONED or place in told:
            keep = True
        else:
            keep = _means_something(node, nodes[over], nodes[parents[place]], leaf=ends[place] == place + 1)
        if keep:
            places.append(place)
            overs.append(over)
            depths.append(depth)
            over, depth = place, depth + 1
        above.append(over)
        below.append(depth)
    return shown


def _means_something(node: Node, over: Node, parent: Node, *, leaf: bool) -> bool:
    """Decide about an element of a questioned role."""
    if _is_apparatus(node, over):
        return False
    if not node.capabilities.isdisjoint(ACTIVE_CAPABILITIES) or node.secret or "focused" in node.states:
        return True
    if node.role in _STRUCTURE:
        # A scroll bar's trough repeats the bar's value.
        value = node.value if parent.role not in CONTROL_ROLES else None
        if not (node.name or node.description or value):
            return False
    if node.role not in _PASSIVE:
        return True
    text = label_text(node) or node.value or ""
    if not text:
        return bool(node.description) or not leaf
    # A button's own label, an item's only text.
    return not leaf or not (text == over.name or (over.role in CONTROL_ROLES and text in over.name))


def _is_apparatus(node: Node, over: Node) -> bool:
    """Return whether nobody acts upon an element itself."""
    if node.role == "scrollbar":
        return node.states.isdisjoint(_IN_USE)
    popup = node.role in _POPUPS and not node.name and over.role in _POPPING and "focused" not in node.states
    return popup or node.role == "separator"


def _labels(tree: Tree, index: TreeIndex) -> tuple[dict[int, str], frozenset[int]]:
    """Return what each labelled element has to tell beside its name, and the labels it tells.

    A label that stands in another row than what it labels stays: it tells what that row is about.
    """
    contexts = contexts_of(tree)
    rows = contexts.row_keys
    told: dict[int, str] = {}
    said: set[int] = set()
    for place, node in enumerate(tree.nodes):
        row = contexts.contexts[place].row if rows[place] == place and tells_its_row(node) else None
        if row is not None and row.owner == place:
            labels = [index.by_handle[handle] for handle in row.handles]
            said.update(label for label in labels if _is_mere_label(tree.nodes[label], label, place, index))
        if not node.labelled_by or node.role in _PASSIVE:
            continue
        texts: list[str] = []
        for handle in node.labelled_by:
            label = index.by_handle.get(handle, -1)
            same_row = label >= 0 and rows[label] in (None, rows[place])
            if same_row and _is_mere_label(tree.nodes[label], label, place, index):
                said.add(label)
                text = label_text(tree.nodes[label])
                if text not in node.name:
                    texts.append(text)
        if texts:
            told[place] = " ".join(texts)
    return told, frozenset(said)


def tells_its_row(node: Node) -> bool:
    """Return whether a row has a line of its own, which says what it is about."""
    return (
        node.role in ITEM_ROLES
        or bool(node.name or node.description)
        or not node.capabilities.isdisjoint(ACTIVE_CAPABILITIES)
    )


def _is_mere_label(node: Node, label: int, labelled: int, index: TreeIndex) -> bool:
    return (
        node.role in TEXT_ROLES
        and bool(label_text(node))
        and not node.description
        and not node.capabilities & ACTIVE_CAPABILITIES
        and index.ends[label] == label + 1
        and label != labelled
    )
