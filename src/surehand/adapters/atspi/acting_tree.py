"""Finds what an action needs around its target in an observed tree: options, entries, scroll bars. Pure.

Whatever is found here is read again from the live application right before acting; a tree only says where to look.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

from surehand.errors import AmbiguousTarget, StaleTarget, TargetNotFound
from surehand.model.scene import Node, Tree

#: Roles that a person would call an option of the container around it.
_OPTION_ROLES: Final = frozenset(
    ["listitem", "menuitem", "menuitemcheckbox", "menuitemradio", "menu", "tab", "treeitem", "row", "cell", "radio"]
)
#: How far below its container an option may be: a combo box holds a menu or a list that holds the options.
_OPTION_DEPTH: Final = 2
_LABEL_DEPTH: Final = 4
_ENTRY_DEPTH: Final = 3
_SCROLLBAR_DEPTH: Final = 3
_CANDIDATES_MAX: Final = 20

Axis = Literal["vertical", "horizontal"]


class Option(NamedTuple):
    """One option: its node, the node whose name it goes by (itself, or the first label in it), and its place."""

    node: Node
    label: Node
    container: Node
    position: int


class Family:
    """A tree with its parent and child links resolved once."""

    def __init__(self, tree: Tree) -> None:
        self.nodes = tree.nodes
        self.parents = tree.parents
        self._index = {node.handle: index for index, node in enumerate(tree.nodes)}
        self._children: dict[int, list[int]] = {}
        for index, parent in enumerate(tree.parents):
            self._children.setdefault(parent, []).append(index)

    def index(self, handle: str) -> int:
        """Return where a node stands.

        Raises:
            StaleTarget: it is not in the tree any more.
        """
        if handle not in self._index:
            raise StaleTarget("the element is gone", details={"difference": "handle"}, fix="observe again")
        return self._index[handle]

    def children(self, index: int) -> list[int]:
        """Return the positions of a node's children, in order."""
        return self._children.get(index, [])

    def below(self, index: int, depth: int) -> Iterator[int]:
        """Yield the positions of all nodes at most `depth` levels below, in document order."""
        for child in self.children(index):
            yield child
            if depth > 1:
                yield from self.below(child, depth - 1)

    def above(self, index: int) -> Iterator[int]:
        """Yield the positions of a node's ancestors, nearest first."""
        while (index := self.parents[index]) >= 0:
            yield index

    # --- options ----------------------------------------------------------------------------------------------

    def option(self, container: str, name: str) -> Option:
        """Return the one option of a container that goes by exactly this name.

        An option goes by its own name and by the first label in it; GTK 4 names every tab "Tab".

        Raises:
            TargetNotFound, AmbiguousTarget: listing what the container holds, as shown on screen.
        """
        places = list(self._options(self.index(container), _OPTION_DEPTH))
        found = [
            (number, place, label)
            for number, place in enumerate(places, 1)
            if (label := next((one for one in self._labels(place) if one.name == name), None)) is not None
        ]
        if len(found) == 1:
            _, place, label = found[0]
            return self._as_option(place, label)
        if not found:
            listed = [f"{number}. {self._spoken(place)}" for number, place in enumerate(places, 1)]
            raise TargetNotFound(
                "the target holds no option of that name", observed={"candidates": listed[:_CANDIDATES_MAX]}
            )
        same = [f"{number}. {self._spoken(place)}" for number, place, _ in found]
        raise AmbiguousTarget(
            f"the target holds {len(found)} options of that name",
            observed={"candidates": same[:_CANDIDATES_MAX]},
            fix="aim at the option itself",
        )

    def itself(self, handle: str) -> Option:
        """Return a node as an option of the node around it.

        Raises:
            StaleTarget: it is gone.
        """
        index = self.index(handle)
        if self.parents[index] < 0:
            raise StaleTarget("the option has no container any more", details={"difference": "parent"})
        return self._as_option(index, next(iter(self._labels(index)), self.nodes[index]))

    def _as_option(self, index: int, label: Node) -> Option:
        above = self.parents[index]
        return Option(self.nodes[index], label, self.nodes[above], self.children(above).index(index))

    def _options(self, container: int, depth: int) -> Iterator[int]:
        """Yield the positions of options; what is inside an option is none, and what has no name cannot be chosen."""
        rows: set[int] = set()
        for index in self.children(container):
            node = self.nodes[index]
            if node.role not in _OPTION_ROLES or not self._labels(index):
                if depth > 1:
                    yield from self._options(index, depth - 1)
            elif node.role != "cell" or node.row is None:
                yield index
            elif node.row not in rows:
                # A table's option is its row, which goes by its first cell.
                rows.add(node.row)
                yield index

    def _labels(self, index: int) -> list[Node]:
        own = [self.nodes[index]] if self.nodes[index].name else []
        inside = (self.nodes[below] for below in self.below(index, _LABEL_DEPTH))
        return own + [node for node in inside if node.role in {"label", "text"} and node.name][:1]

    def _spoken(self, index: int) -> str:
        return " / ".join(dict.fromkeys(node.name for node in self._labels(index)))

    # --- parts of composite controls ----------------------------------------------------------------------------

    def entry(self, combobox: str) -> Node | None:
        """Return the one text entry inside a combo box."""
        found = [
            self.nodes[index]
            for index in self.below(self.index(combobox), _ENTRY_DEPTH)
            if "set_text" in self.nodes[index].capabilities
        ]
        return found[0] if len(found) == 1 else None

    def scrollbar(self, handle: str, axis: Axis) -> Node | None:
        """Return the bar of the nearest scrolled area around a node (or in it, or itself) that moves along an axis."""
        index = self.index(handle)
        for start in (index, *self.above(index)):
            bars = [self.nodes[bar] for bar in self._bars(start) if _axis_of(self.nodes[bar]) == axis]
            if len(bars) == 1:
                return bars[0]
            if bars:
                return None
        return None

    def _bars(self, index: int) -> Iterator[int]:
        """Yield showing scroll bars that belong to a node: objects with a value, at most three levels below."""
        if self.nodes[index].role == "scrollbar":
            yield from self._valued(index)
            return
        for below in self._own(index, _SCROLLBAR_DEPTH):
            if self.nodes[below].role == "scrollbar":
                yield from self._valued(below)

    def _own(self, index: int, depth: int) -> Iterator[int]:
        # Qt puts a bar into a container of its own; other children's scrolled areas are not ours.
        for child in self.children(index):
            yield child
            only = self.children(child)
            if depth > 1 and len(only) == 1 and self.nodes[only[0]].role == "scrollbar":
                yield only[0]

    def _valued(self, index: int) -> Iterator[int]:
        """Yield the bar, or the range inside it: GTK 4 keeps the value one level down."""
        for candidate in (index, *self.children(index)):
            node = self.nodes[candidate]
            if node.value is not None and "showing" in node.states:
                yield candidate
                return


def _axis_of(node: Node) -> Axis | None:
    for axis in ("vertical", "horizontal"):
        if axis in node.states:
            return axis
    if node.bounds is None:
        return None
    _, _, width, height = node.bounds
    return "vertical" if height > width else "horizontal"
