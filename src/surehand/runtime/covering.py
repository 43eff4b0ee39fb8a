"""Which fields are secret although their application does not say so, or not any more (spec §6.3, §8.2).

A button that shows a password makes it a plain text to most toolkits. So a field that was secret once stays so as long
as its process lives, and everything inside it with it; a field whose label calls it a password is secret from the
start; and so is one that a rule of the operator's names. All of this can only hide: nothing on a screen makes a field
readable that was not.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, NamedTuple

import msgspec

from surehand import limits
from surehand.core.release import FIELD_ROLES, cover, is_redacted_field, is_secret, names_a_secret
from surehand.model.scene import Node, Surface, Tree


class _Known:
    """Fields of one process that were secret once."""

    __slots__ = ("full", "handles")

    def __init__(self) -> None:
        self.handles: set[str] = set()
        self.full = False

    def add(self, handle: str) -> None:
        if len(self.handles) >= limits.SECRET_FIELDS_MAX and handle not in self.handles:
            self.full = True
            return
        self.handles.add(handle)


class _Covered(NamedTuple):
    read: Tree
    redact: tuple[str, ...]
    tree: Tree


class SecretFields:
    """What one desktop's applications showed as secret."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[int, str], _Known] = OrderedDict()
        self._last: dict[str, _Covered] = {}

    def cover(self, surface: Surface, tree: Tree, redact: tuple[str, ...] = ()) -> Tree:
        """Return a tree in which every field that is or was secret is one; the same tree for the same tree.

        Args:
            surface: Whose it is.
            tree: As read.
            redact: What the operator's rules say of reading this application.
        """
        last = self._last.get(surface.surface_id)
        if last is not None and last.read is tree and last.redact == redact:
            return last.tree
        known = self._of(surface)
        found = _secret_places(tree, known, redact)
        for place in found:
            known.add(tree.nodes[place].handle)
        if known.full:
            found = _secret_places(tree, known, redact)
        covered = _with(tree, found)
        self._last[surface.surface_id] = _Covered(tree, redact, covered)
        return covered

    def remember(self, surface: Surface, handle: str) -> None:
        """Take a field for secret from now on: an enrolled secret is being entered into it (runtime/secrets.py)."""
        self._of(surface).add(handle)
        self._last.pop(surface.surface_id, None)

    def knows(self, surface: Surface, handle: str) -> bool:
        """Say whether a field is known to be secret by its past, whatever it looks like in an older scene."""
        known = self._of(surface)
        return known.full or handle in known.handles

    def forget(self, surface_id: str) -> None:
        """Let go of a window that is gone; its process may have others, so its fields stay known."""
        self._last.pop(surface_id, None)

    def keep(self, surface_ids: Any) -> None:
        """Let go of every window but these."""
        for gone in self._last.keys() - surface_ids:
            del self._last[gone]

    def _of(self, surface: Surface) -> _Known:
        key = (surface.app.pid, surface.app.process_generation)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = _Known()
        self._known.move_to_end(key)
        while len(self._known) > limits.SECRET_APPS_MAX:
            self._known.popitem(last=False)
        return known


def _secret_places(tree: Tree, known: _Known, redact: tuple[str, ...]) -> list[int]:
    """Return which nodes are secret: by themselves, by their past, by their label, or by what they lie in."""
    found: list[int] = []
    inside: set[int] = set()
    names: dict[str, str] | None = None
    for place, (node, parent) in enumerate(zip(tree.nodes, tree.parents, strict=True)):
        secret = is_secret(node) or parent in inside or node.handle in known.handles
        if not secret and node.role in FIELD_ROLES:
            if node.labelled_by and names is None:
                names = {one.handle: one.name for one in tree.nodes if one.name}
            secret = known.full or _is_named(node, names or {}, redact)
        if secret:
            inside.add(place)
            found.append(place)
    return found


def _is_named(node: Node, names: dict[str, str], redact: tuple[str, ...]) -> bool:
    for label in (node.name, node.description, *(names.get(handle, "") for handle in node.labelled_by)):
        if label and node.role == "text" and names_a_secret(label):
            return True
        if redact and is_redacted_field(label, redact):
            return True
    return False


def _with(tree: Tree, places: list[int]) -> Tree:
    changed = {place: node for place in places if (node := cover(tree.nodes[place])) is not tree.nodes[place]}
    if not changed:
        return tree
    nodes = tuple(changed.get(place, node) for place, node in enumerate(tree.nodes))
    return msgspec.structs.replace(tree, nodes=nodes)
