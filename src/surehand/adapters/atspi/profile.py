"""How each toolkit departs from AT-SPI, as one table. Everything here was seen on the versions named.

An application names its own toolkit. A false name costs only that application: its tree is read by other rules, and
what is acted upon is read again from the live object (spec §8.3).
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

Trust = Literal["events", "swept", "read"]


class Profile(NamedTuple):
    """One toolkit's ways.

    Attributes:
        family: Our name for it.
        trust: How a maintained tree is known to be current.
        bulk: Whether `Cache.GetItems` is worth a call.
        window_extents: Extents are relative to the window whatever is asked (spec C06).
        visible_is_showing: SHOWING is set on windows only; VISIBLE, ancestors and size decide.
        sensitive_is_enabled: ENABLED is never set, and a disabled parent does not show on its children.
        showing_by_chain: SHOWING of a child may stand while its parent has no size.
        class_names: An unnamed object gives its class as its name (`GtkRange`).
        ids: `AccessibleId` exists.
        attribute_ids: The identifier is in the attributes.
        long_lists: One object may list a million children, so their count is asked first; false where only what is
            on the screen has objects.
        signals_places: An object that is laid out elsewhere signals its place.
        unsignalled_inserts: A container that takes a child may say nothing but that places changed; after any signal
            the children of containers are read again.
        unsignalled_values: A slider may move without a signal; the few objects with a value are read each time.
        unstable_trees: Every listing of a tree view's items makes new objects (and keeps the old for ever), so items
            are listed again only when their number or their indexes changed.
        unsignalled_states: The focus may move without a signal when what had it goes away, and a container may come to
            show without one; after any other signal about places both are read again.
        idle_roles: Roles whose actions do nothing with them and are not read.
        leaf_items: Cells and headers are no widgets and hold nothing.
        utf16_offsets: Text offsets count UTF-16 units.
        property_means_all: Whatever changes about an object is signalled as its name or a state.
        unsaid_modal: A modal dialog has no state that says so; the window system knows.
        get_all: `Properties.GetAll` works. It crashes Qt 5, so it is asked only where it was seen to work.
        range_clamps: `GetText` with an end beyond the text gives the text, instead of nothing.
        fixed_interfaces: An object has the interfaces of its class for all its life, and no path names two objects.
        fixed_roles: The same of its role; GTK 4 documents that it cannot be changed once set.
    """

    family: str
    trust: Trust = "read"
    bulk: bool = False
    window_extents: bool = False
    visible_is_showing: bool = False
    sensitive_is_enabled: bool = False
    showing_by_chain: bool = False
    class_names: bool = False
    ids: bool = False
    attribute_ids: bool = False
    range_clamps: bool = False
    get_all: bool = False
    long_lists: bool = True
    signals_places: bool = False
    unsignalled_inserts: bool = False
    property_means_all: bool = False
    unsignalled_values: bool = False
    unstable_trees: bool = False
    unsignalled_states: bool = False
    idle_roles: frozenset[str] = frozenset()
    utf16_offsets: bool = False
    leaf_items: bool = False
    unsaid_modal: bool = False
    fixed_interfaces: bool = False
    fixed_roles: bool = False

    @property
    def shows_by_size(self) -> bool:
        """Whether an object without a size does not show, whatever its states say."""
        return self.visible_is_showing or self.showing_by_chain

    @property
    def needs_windows(self) -> bool:
        """Whether what is told of a window is not complete without the window system."""
        return self.window_extents or self.unsaid_modal


#: GTK 3.24.38 with at-spi2-core 2.46.
GTK3: Final = Profile(
    "gtk3",
    trust="events",
    bulk=True,
    ids=True,
    range_clamps=True,
    get_all=True,
    signals_places=True,
    unsignalled_inserts=True,
    unsignalled_states=True,
    fixed_interfaces=True,
)
#: GTK 4.8.3. Its cache holds what somebody walked over, and whoever walks is told all of each object before the
#: answer comes. `AccessibleId` is always empty.
GTK4: Final = Profile(
    "gtk4",
    trust="events",
    bulk=True,
    window_extents=True,
    visible_is_showing=True,
    sensitive_is_enabled=True,
    class_names=True,
    range_clamps=True,
    get_all=True,
    long_lists=False,
    signals_places=True,
    unsignalled_inserts=True,
    property_means_all=True,
    unsignalled_values=True,
    idle_roles=frozenset(["label"]),  # they list clipboard and link actions, disabled
    fixed_interfaces=True,
    fixed_roles=True,
)
#: Qt 5.15.8. `Properties.GetAll` crashes the application and must never be sent; `GetItems` is empty; inserts and
#: removals, values, and whatever happens to items that are no widgets (cells, menu items) are not signalled.
QT5: Final = Profile(
    "qt5",
    trust="swept",
    showing_by_chain=True,
    unsignalled_values=True,
    unstable_trees=True,
    idle_roles=frozenset(["filler", "group", "icon", "image", "label", "menubar", "pane", "separator", "toolbar"]),
    utf16_offsets=True,
    leaf_items=True,
    unsaid_modal=True,
)
#: Qt 6 is read like Qt 5 until it is proven to do better.
QT6: Final = QT5._replace(family="qt6", ids=True)
CHROMIUM: Final = Profile("chromium", bulk=True, attribute_ids=True)
GECKO: Final = Profile("gecko", attribute_ids=True)
OTHER: Final = Profile("other")


#: First minor version of GTK 4 that may have identifiers worth a call.
_GTK4_MINOR_WITH_IDS: Final = 10


def profile_of(toolkit: str, version: str) -> Profile:
    """Return the profile for what an application says its toolkit is."""
    name, (major, _, rest) = toolkit.lower(), version.partition(".")
    if name == "gtk":
        minor = rest.partition(".")[0]
        later = GTK4._replace(ids=minor.isdecimal() and int(minor) >= _GTK4_MINOR_WITH_IDS)
        return {"3": GTK3, "4": later}.get(major, OTHER)
    if name == "qt":
        return {"5": QT5, "6": QT6}.get(major, QT5)
    if name == "chromium":
        return CHROMIUM
    return GECKO if name == "gecko" else OTHER
