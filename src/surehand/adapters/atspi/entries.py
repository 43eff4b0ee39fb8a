"""One application object as far as it was read, and how it becomes a `Node`.

An entry remembers raw facts and which of them are in doubt; it is mutable and stays inside this adapter. A node is
made from it when a tree is built and is the same object as before when nothing it shows has changed. A secret's text,
length and value are never kept, so they cannot be shown.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Final, NamedTuple

from surehand.adapters.atspi import roles
from surehand.adapters.atspi.calls import Extents
from surehand.adapters.atspi.geometry import Placement, has_size
from surehand.adapters.atspi.profile import Profile
from surehand.model.scene import Node

# What of an entry is in doubt, as bits.
ROLE: Final = 1
INTERFACES: Final = 2
STATES: Final = 4
NAME: Final = 8
DESCRIPTION: Final = 16
CHILDREN: Final = 32
IDENTIFIER: Final = 64
TEXT: Final = 128
VALUE: Final = 256
ACTIONS: Final = 512
EXTENTS: Final = 1024
RELATIONS: Final = 2048
COLUMNS: Final = 4096
CHOICE: Final = 8192

CORE: Final = ROLE | INTERFACES | STATES | NAME | DESCRIPTION
FRESH: Final = (1 << 14) - 1
#: What a top-level window shows of itself in a list of surfaces.
WINDOW_FACTS: Final = CORE | EXTENTS

#: Characters that entries show instead of a secret. Not the asterisk: that is what many a filter field holds.
_MASKS: Final = frozenset("●•∙⬤⚫")


def fixed(profile: Profile) -> int:
    """Return the facts that an object of a toolkit keeps for all its life: read once, they are known."""
    return (INTERFACES if profile.fixed_interfaces else 0) | (ROLE if profile.fixed_roles else 0)


class Entry:
    """The raw facts of one object; `doubt` holds the bits that must be read before they are served."""

    __slots__ = (
        "actions", "bits", "children", "children_cut", "choice", "columns", "count_hint", "description", "doubt",
        "extents", "failed", "identifier", "interfaces", "key", "labelled_by", "modal", "mute", "name", "node",
        "number", "parent", "path", "role", "said_parent", "stamp", "text", "text_chars", "toolkit_role", "value",
    )  # fmt: skip

    def __init__(self, path: str, parent: str) -> None:
        self.path = path
        self.parent = parent
        self.doubt = FRESH
        #: Facts that were refused when last asked, and those that are never answered and not asked again.
        self.failed = 0
        self.mute = 0
        self.number = -1
        self.role = ""
        self.toolkit_role = ""
        self.interfaces: frozenset[str] = frozenset()
        self.bits = 0
        self.name = ""
        self.description = ""
        self.children: tuple[str, ...] = ()
        self.children_cut = False
        #: How many children a bulk read counted just now; good for one listing.
        self.count_hint = 0
        #: The parent that the object itself named when it was last asked for all its properties.
        self.said_parent: tuple[str, str] | None = None
        self.identifier = ""
        self.text: str | None = None
        self.text_chars: int | None = None
        self.value: float | None = None
        self.actions: tuple[str, ...] = ()
        self.extents: Extents | None = None
        self.labelled_by: tuple[str, ...] = ()
        self.columns = 0
        self.choice = ""
        #: Whether somebody else than its toolkit knows that this window is modal.
        self.modal = False
        #: Grows with every changed fact; with `key` it says whether `node` still stands.
        self.stamp = 0
        self.key: tuple[object, ...] | None = None
        self.node: Node | None = None

    @property
    def is_password(self) -> bool:
        """Whether the toolkit itself says that this is a secret."""
        return self.role == "password"


class Around(NamedTuple):
    """What a node takes from the tree around it."""

    showing: bool = True
    enabled: bool = True
    secret: bool = False
    row: int | None = None
    column: int | None = None
    choice: str | None = None


def is_showing(entry: Entry, profile: Profile, above: bool) -> bool:
    """Return whether an object is visible with its ancestors, by its toolkit's rules."""
    if profile.visible_is_showing:
        if not entry.bits & roles.BIT_VISIBLE:
            return False
        return above and ("Component" not in entry.interfaces or has_size(entry.extents))
    if not entry.bits & roles.BIT_SHOWING:
        return False
    if profile.showing_by_chain:
        return above and ("Component" not in entry.interfaces or has_size(entry.extents))
    return True


def may_show(entry: Entry, profile: Profile) -> bool:
    """Return whether an object could be showing, before its place is known."""
    bit = roles.BIT_VISIBLE if profile.visible_is_showing else roles.BIT_SHOWING
    return bool(entry.bits & bit)


def is_enabled(entry: Entry, profile: Profile, above: bool) -> bool:
    """Return whether an object is enabled and sensitive, by its toolkit's rules."""
    if profile.sensitive_is_enabled:
        return above and bool(entry.bits & roles.BIT_SENSITIVE)
    return bool(entry.bits & roles.BIT_ENABLED and entry.bits & roles.BIT_SENSITIVE)


def is_masked(entry: Entry) -> bool:
    """Return whether an editable text shows nothing but mask characters: then it is a secret whatever it says."""
    return bool(entry.text) and entry.role == "text" and set(entry.text or "") <= _MASKS


def is_text(entry: Entry) -> bool:
    """Return whether an object's text is worth reading: content, or a caption that has no name."""
    if "Text" not in entry.interfaces:
        return False
    # A password is of neither kind.
    return entry.role in roles.TEXT_ROLES or (entry.role in roles.CAPTION_ROLES and not entry.name)


def shown_number(value: float) -> str:
    """Return the shortest decimal text of a number: `3`, `0.1`, `-2.5`; never an exponent."""
    if value != value or value in (float("inf"), float("-inf")):  # noqa: PLR0124 - the test for NaN
        return ""
    text = format(Decimal(repr(value)), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def node_of(entry: Entry, around: Around, *, owner: str, placement: Placement) -> Node:
    """Return the entry's node, the very same one where nothing it shows has changed.

    Args:
        entry: The object.
        around: What the tree gives it.
        owner: The unique bus name of the application; the handle is this and the object's path.
        placement: From the application's units to desktop pixels.
    """
    key = (entry.stamp, around, placement)
    if entry.node is not None and entry.key == key:
        return entry.node
    node = _make(entry, around, owner, placement)
    if entry.node is None or node != entry.node:
        entry.node = node
    entry.key = key
    return entry.node


def _make(entry: Entry, around: Around, owner: str, placement: Placement) -> Node:
    secret = around.secret or entry.is_password or is_masked(entry)
    states = roles.states_of(entry.bits, entry.role, enabled=around.enabled, showing=around.showing)
    if entry.modal:
        states |= {"modal"}
    bounds = placement.to_desktop(entry.extents) if around.showing else None
    name = entry.name
    if not name and entry.role in roles.CAPTION_ROLES and entry.text and not secret:
        name = entry.text
    return Node(
        handle=owner + entry.path,
        role="password" if secret and entry.role == "text" else entry.role or "unknown",
        toolkit_role=entry.toolkit_role,
        app_id=entry.identifier,
        name=name,
        description=entry.description,
        value=None if secret else _value_of(entry, around),
        text_chars=None if secret else entry.text_chars,
        states=states,
        actions=entry.actions,
        capabilities=roles.capabilities_of(
            entry.role, states, entry.interfaces, entry.actions, has_place=bounds is not None
        ),
        labelled_by=tuple(owner + path for path in entry.labelled_by),
        bounds=bounds,
        row=around.row,
        column=around.column,
        secret=secret,
        incomplete=bool(entry.failed | entry.mute) or entry.children_cut,
    )


def _value_of(entry: Entry, around: Around) -> str | None:
    if entry.value is not None:
        return shown_number(entry.value)
    if entry.role in roles.TEXT_ROLES:
        return entry.text
    return around.choice if entry.role == "combobox" else None
