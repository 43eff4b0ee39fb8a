"""What a button's form asks for, so that an "OK" beside a card number is more than an OK (spec §6.2).

Bounded: it climbs only as far as the nearest part of the window that has entry fields at all.
"""

from __future__ import annotations

from typing import Final

from surehand import limits
from surehand.core.scene.tree import TreeIndex

_ENTRIES: Final = frozenset({"text", "password", "combobox", "spinbutton"})


def fields_beside(index: TreeIndex, place: int) -> tuple[str, ...]:
    """Return the names of the entry fields in the smallest part around an element that has any."""
    if not 0 <= place < len(index.nodes):
        return ()
    around = index.parents[place]
    while around >= 0:
        end = min(index.ends[around], around + limits.FORM_NODES_MAX)
        names = [_name_of(index, at) for at in range(around + 1, end) if index.nodes[at].role in _ENTRIES]
        if names or index.ends[around] - around > limits.FORM_NODES_MAX:
            return tuple(names[: limits.FORM_FIELDS_MAX])
        around = index.parents[around]
    return ()


def _name_of(index: TreeIndex, place: int) -> str:
    """Return what a field is called; a password field says by its role what it takes."""
    node = index.nodes[place]
    called = node.name or node.description
    return f"password \n {called}" if node.secret or node.role == "password" else called
