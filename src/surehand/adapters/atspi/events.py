"""What an application's signals cast doubt on.

A signal changes no fact here: it says what to read again before the next serve, so a flood of the same signal costs
one read, and a signal with false content costs a read and nothing else. What a signal does not name precisely widens
to the subtree.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

from surehand.adapters.atspi import calls, entries
from surehand.adapters.atspi.calls import ROOT_PATH
from surehand.adapters.atspi.transport import Signal, unwrap
from surehand.adapters.atspi.tree import ApplicationTree

OBJECT: Final = "org.a11y.atspi.Event.Object"
WINDOW: Final = "org.a11y.atspi.Event.Window"
DOCUMENT: Final = "org.a11y.atspi.Event.Document"

#: What is registered with the registry; toolkits send nothing else. Pointer, keyboard, caret and announcement events
#: are left out: nothing served depends on them.
REGISTERED_EVENTS: Final = (
    "object:state-changed",
    "object:children-changed",
    "object:property-change",
    "object:text-changed",
    "object:bounds-changed",
    "object:selection-changed",
    "object:visible-data-changed",
    "object:model-changed",
    "object:row-inserted",
    "object:row-deleted",
    "object:row-reordered",
    "object:column-inserted",
    "object:column-deleted",
    "object:column-reordered",
    "object:active-descendant-changed",
    "object:attributes-changed",
    "window:",
    "document:",
)

_PROPERTIES: Final[dict[str, int]] = {
    "accessible-name": entries.NAME,
    "accessible-description": entries.DESCRIPTION,
    "accessible-role": entries.ROLE,
    "accessible-value": entries.VALUE | entries.TEXT | entries.DESCRIPTION,
    "accessible-table-column-header": entries.COLUMNS,
    "accessible-table-row-header": entries.COLUMNS,
}
_STATES_WITHOUT_LAYOUT: Final = frozenset(
    ["busy", "checked", "enabled", "sensitive", "pressed", "selected", "indeterminate", "invalid-entry"]
)
_LEAF: Final = entries.FRESH & ~entries.CHILDREN
_STATES_WITH_STRUCTURE: Final = frozenset(["expanded", "collapsed", "showing", "visible"])
#: A disabled object, and all in it, may have no actions.
_STATES_WITH_ACTIONS: Final = frozenset(["enabled", "sensitive"])


#: What a signal means beyond the facts it names.
Weight = Literal["nothing", "content", "layout"]


def take(signal: Signal, tree: ApplicationTree) -> Weight:
    """Cast the doubts of one signal and return its weight.

    `layout` means that places, containers and the focus may have changed too; `nothing`, that it says nothing of what
    is served.
    """
    if signal.interface == OBJECT:
        return _take_object(signal, tree)
    if signal.interface == calls.CACHE:
        return _take_cache(signal, tree)
    if signal.interface == WINDOW:
        tree.doubt(ROOT_PATH, entries.CHILDREN)
        tree.doubt(signal.path, entries.WINDOW_FACTS)
        return "layout"
    if signal.interface == DOCUMENT:
        tree.doubt_subtree(signal.path, entries.FRESH)
        return "layout"
    return "nothing"


def _take_object(signal: Signal, tree: ApplicationTree) -> Weight:
    if signal.member == "BoundsChanged":
        place = signal.body[3] if len(signal.body) > 3 else None
        return "layout" if tree.take_place(signal.path, unwrap(place)) else "content"
    reader = _OBJECT.get(signal.member)
    if reader is None:
        return "nothing"
    known = reader(signal, tree)
    if not known:
        tree.doubt_parent_of(signal.path)
    entry = tree.entries.get(signal.path)
    if tree.profile.trust == "swept":
        moves = True  # it signals no places, so any signal may be the only sign
    elif entry is None:
        # Toolkits announce objects when we first look at them; what came with them is read with them.
        moves = signal.member not in {"StateChanged", "PropertyChange"}
    elif signal.member == "StateChanged":
        moves = _detail(signal) not in _STATES_WITHOUT_LAYOUT
    elif signal.member == "PropertyChange":
        # A scrolled area says that its bar has another value, and not that everything in it has moved.
        moves = entry.role == "scrollbar" or "Value" in entry.interfaces
    elif signal.member == "VisibleDataChanged":
        moves = bool(entry.children)
    else:
        moves = signal.member != "TextChanged"
    return "layout" if moves else "content"


def _detail(signal: Signal) -> str:
    return signal.body[0] if signal.body and isinstance(signal.body[0], str) else ""


def _leaf(tree: ApplicationTree) -> int:
    """Return all that an object can change about itself."""
    return _LEAF & ~entries.fixed(tree.profile)


def _state(signal: Signal, tree: ApplicationTree) -> bool:
    name = _detail(signal)
    if name == "defunct":
        entry = tree.entries.get(signal.path)
        if entry is not None:
            tree.doubt(entry.parent, entries.CHILDREN)
        return True
    if name in _STATES_WITH_ACTIONS:
        tree.doubt_subtree(signal.path, entries.STATES | entries.ACTIONS)
    facts = _leaf(tree) if tree.profile.property_means_all else entries.STATES
    if name in _STATES_WITH_STRUCTURE:
        facts |= entries.CHILDREN
        if tree.profile.trust == "swept":
            tree.doubt_subtree(signal.path, entries.FRESH)
    return tree.doubt(signal.path, facts)


def _children(signal: Signal, tree: ApplicationTree) -> bool:
    # Rows that move keep their objects but not their row, name or place.
    return tree.doubt(signal.path, entries.CHILDREN | entries.COLUMNS | entries.CHOICE)


def _property(signal: Signal, tree: ApplicationTree) -> bool:
    name = _detail(signal)
    if name == "accessible-parent":
        entry = tree.entries.get(signal.path)
        if entry is None:
            return False
        tree.doubt(entry.parent, entries.CHILDREN)
        tree.doubt_moved(signal.path)
        return True
    known = None if tree.profile.property_means_all else _PROPERTIES.get(name)
    return tree.doubt(signal.path, _leaf(tree) if known is None else known)


def _text(signal: Signal, tree: ApplicationTree) -> bool:
    return tree.doubt(signal.path, entries.TEXT | entries.NAME)


def _selection(signal: Signal, tree: ApplicationTree) -> bool:
    tree.doubt_children(signal.path, entries.STATES)
    return tree.doubt(signal.path, entries.CHOICE | entries.NAME)


def _data(signal: Signal, tree: ApplicationTree) -> bool:
    tree.doubt_children(signal.path, _leaf(tree))
    return tree.doubt(signal.path, entries.CHILDREN | entries.COLUMNS)


def _active(signal: Signal, tree: ApplicationTree) -> bool:
    tree.doubt_children(signal.path, entries.STATES)
    return tree.doubt(signal.path, entries.STATES)


def _identifier(signal: Signal, tree: ApplicationTree) -> bool:
    return tree.doubt(signal.path, entries.IDENTIFIER)


_OBJECT: Final[dict[str, Callable[[Signal, ApplicationTree], bool]]] = {
    "StateChanged": _state,
    "ChildrenChanged": _children,
    "PropertyChange": _property,
    "TextChanged": _text,
    "SelectionChanged": _selection,
    "VisibleDataChanged": _data,
    "ModelChanged": _data,
    "RowInserted": _data,
    "RowDeleted": _data,
    "RowReordered": _data,
    "ColumnInserted": _data,
    "ColumnDeleted": _data,
    "ColumnReordered": _data,
    "ActiveDescendantChanged": _active,
    "AttributesChanged": _identifier,
}


def _take_cache(signal: Signal, tree: ApplicationTree) -> Weight:
    if signal.member == "AddAccessible":
        for item in calls.cache_items(signal.body) or ():
            tree.doubt_added(item)
        return "content"
    if signal.member == "RemoveAccessible":
        gone = calls.reference(signal.body)
        entry = None if gone is None else tree.entries.get(gone[1])
        if entry is not None:
            tree.doubt(entry.parent, entries.CHILDREN)
        return "layout"
    return "nothing"
