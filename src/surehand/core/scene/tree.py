"""What can be looked up in a tree: children, ancestors, subtrees and handles, worked out once per tree.

Promises that a tree with broken parents is refused before anything walks it, and that what is derived from a tree is
kept at most as long as the tree itself. Never changes a tree.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Any, Final, Generic, TypeVar

from surehand import limits
from surehand.errors import InternalError
from surehand.model.scene import Node, Tree

Owner = TypeVar("Owner")
Derived = TypeVar("Derived")


class Memo(Generic[Owner, Derived]):
    """Values derived from an immutable object, by the object's identity, dropped together with it.

    Records compare and hash by content, which for a tree means by all of its nodes; identity is what makes a cached
    look-up cheaper than the work it saves.
    """

    def __init__(self) -> None:
        self._held: dict[int, tuple[weakref.ref[Owner], Derived]] = {}
        _MEMOS.add(self)

    def peek(self, owner: Owner | None) -> Derived | None:
        """Return what was derived from `owner`, or None."""
        if owner is None:
            return None
        held = self._held.get(id(owner))
        return held[1] if held is not None and held[0]() is owner else None

    def keep(self, owner: Owner, derived: Derived) -> Derived:
        """Remember what was derived from `owner` until it is gone."""
        key = id(owner)

        def forget(gone: weakref.ref[Owner]) -> None:
            held = self._held.get(key)
            # The address may already belong to a newer object with an entry of its own.
            if held is not None and held[0] is gone:
                del self._held[key]

        self._held[key] = (weakref.ref(owner, forget), derived)
        return derived

    def drop(self, owner: object) -> None:
        """Forget what was derived from `owner`, which lives on."""
        held = self._held.get(id(owner))
        if held is not None and held[0]() is owner:
            del self._held[id(owner)]

    def get(self, owner: Owner, derive: Callable[[Owner], Derived]) -> Derived:
        """Return what `derive(owner)` gives, worked out at most once."""
        held = self._held.get(id(owner))
        if held is not None and held[0]() is owner:
            return held[1]
        return self.keep(owner, derive(owner))

    def __len__(self) -> int:
        return len(self._held)


_MEMOS: Final[weakref.WeakSet[Memo[Any, Any]]] = weakref.WeakSet()


def forget_derived(*owners: object) -> None:
    """Give back the memory of everything derived from objects; what is asked for again is worked out again."""
    for memo in _MEMOS:
        for owner in owners:
            memo.drop(owner)


class TreeIndex:
    """Look-ups of one tree. Indexes are places in `tree.nodes`, in document order."""

    __slots__ = ("__weakref__", "_children", "by_handle", "ends", "nodes", "parents")

    def __init__(self, tree: Tree) -> None:
        self.nodes: Final = tree.nodes
        self.parents: Final = tree.parents
        #: Past the last descendant of each node: the descendants of i are `range(i + 1, ends[i])`.
        self.ends: Final = _subtree_ends(tree.parents, len(tree.nodes))
        #: The first node of each handle; an application may show one object twice.
        self.by_handle: Final = _first_by_handle(tree.nodes)
        self._children: tuple[tuple[int, ...], ...] | None = None

    @property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """Return the indexes of each node's children in document order."""
        if self._children is None:
            lists: list[list[int]] = [[] for _ in self.nodes]
            for index, parent in enumerate(self.parents):
                if parent >= 0:
                    lists[parent].append(index)
            self._children = tuple(map(tuple, lists))
        return self._children

    def ancestors(self, index: int) -> Iterator[int]:
        """Yield the parent, its parent, and so on up to the root."""
        parent = self.parents[index]
        while parent >= 0:
            yield parent
            parent = self.parents[parent]

    def contains(self, ancestor: int, index: int) -> bool:
        """Return whether `index` is a descendant of `ancestor`."""
        return ancestor < index < self.ends[ancestor]


_INDEXES: Final[Memo[Tree, TreeIndex]] = Memo()


def index_of(tree: Tree) -> TreeIndex:
    """Return the tree's look-ups, built on first use.

    Raises:
        InternalError: the parents do not describe one tree in document order: the adapter that read it is wrong.
    """
    return _INDEXES.get(tree, TreeIndex)


def _subtree_ends(parents: tuple[int, ...], count: int) -> list[int]:
    """Check document order (a node's parent is on the path to the node before it) and return the subtree ends."""
    if len(parents) != count:
        raise InternalError("a tree has as many parents as nodes")
    if count > limits.SCENE_NODES_MAX:
        raise InternalError(f"a tree has more than {limits.SCENE_NODES_MAX} nodes")
    ends = [count] * count
    path: list[int] = []
    for index, parent in enumerate(parents):
        while path and path[-1] != parent:
            ends[path.pop()] = index
        if not path and (parent != -1 or index != 0):
            raise InternalError("a tree's parents are not in document order")
        path.append(index)
    return ends


def _first_by_handle(nodes: tuple[Node, ...]) -> dict[str, int]:
    found = {node.handle: index for index, node in enumerate(nodes)}
    if len(found) != len(nodes):
        for index in range(len(nodes) - 1, -1, -1):
            found[nodes[index].handle] = index
    return found
