"""What was observed: nodes, trees, surfaces, targets and scenes (spec §2, §8).

A `Tree` is what an adapter read, in document order, with parents as indexes beside the nodes, so that an unchanged
node is the same object in the next tree and its hashes are not computed again. A `Scene` is one session's immutable
view of a tree: labels, fingerprints, contexts.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from surehand.model.record import Record

Bounds = tuple[int, int, int, int]

#: The role vocabulary; adapters map toolkit roles onto it and keep the toolkit's own name in `toolkit_role`.
# fmt: off
ROLES: Final = frozenset([
    "alert", "application", "button", "calendar", "canvas", "cell", "checkbox", "columnheader", "combobox", "dialog",
    "document", "filler", "group", "heading", "icon", "image", "label", "link", "list", "listitem", "menu",
    "menubar", "menuitem", "menuitemcheckbox", "menuitemradio", "page", "pane", "paragraph", "password",
    "progressbar", "radio", "row", "rowheader", "scrollbar", "scrollpane", "separator", "slider", "spinbutton",
    "split", "statusbar", "switch", "tab", "table", "tablist", "tabpanel", "terminal", "text", "togglebutton",
    "toolbar", "tooltip", "tree", "treeitem", "unknown", "window",
])
# fmt: on

#: Other names callers may use for a role in queries.
ROLE_ALIASES: Final[dict[str, str]] = {
    "textbox": "text",
    "entry": "text",
    "searchbox": "text",
    "option": "listitem",
    "push button": "button",
    "toggle button": "togglebutton",
    "check box": "checkbox",
    "radio button": "radio",
    "menu item": "menuitem",
    "combo box": "combobox",
    "grid": "table",
    "gridcell": "cell",
    "frame": "window",
    "img": "image",
    "spin button": "spinbutton",
    "page tab": "tab",
    "static": "label",
}

#: The state vocabulary. `enabled` already means enabled and sensitive; `showing` means visible with its ancestors.
# fmt: off
STATES: Final = frozenset([
    "active", "busy", "checkable", "checked", "collapsed", "defunct", "editable", "enabled", "expandable",
    "expanded", "focusable", "focused", "horizontal", "iconified", "indeterminate", "invalid", "modal", "multiline",
    "multiselectable", "pressed", "readonly", "required", "selectable", "selected", "showing", "vertical", "visible",
])
# fmt: on

#: What can be done with a node; see `query.Capability`.
# fmt: off
CAPABILITIES: Final = frozenset([
    "expand", "focus", "invoke", "perform", "point", "scroll", "select", "select_text", "set_text", "set_value",
    "toggle",
])
# fmt: on


class Node(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One accessible object as read. `handle` names the live object: opaque, unique on its desktop, never reused
    while anyone holds it. `value` is None for secrets. `bounds` are desktop pixels (x, y, width, height).
    """  # noqa: D205

    handle: str
    role: str
    toolkit_role: str = ""
    app_id: str = ""
    name: str = ""
    description: str = ""
    value: str | None = None
    text_chars: int | None = None
    states: frozenset[str] = frozenset()
    actions: tuple[str, ...] = ()
    capabilities: frozenset[str] = frozenset()
    labelled_by: tuple[str, ...] = ()
    bounds: Bounds | None = None
    row: int | None = None
    column: int | None = None
    secret: bool = False
    incomplete: bool = False


class Tree(msgspec.Struct, frozen=True, kw_only=True, weakref=True):
    """A surface's nodes in document order. `parents[i]` is the index of node i's parent, −1 for the root.

    `version` grows with every change of any node or of the structure. `complete` is false where the read was cut or
    a node failed; `trust` says how the adapter knows the tree is current.
    """

    nodes: tuple[Node, ...]
    parents: tuple[int, ...]
    version: int
    complete: bool = True
    trust: Literal["events", "swept", "read"] = "read"


class LiveNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node read straight from the application a moment ago, with its parent's handle ("" for none)."""

    node: Node
    parent: str


class AppIdentity(Record, frozen=True, kw_only=True):
    """Who an application is, as proven by its pid (spec §6.2).

    `key` is the finest proven identity, such as `exe:/usr/bin/mousepad` or `script:/usr/bin/python3:/srv/tool.py`;
    it has no pid in it. `claimed_name` is what the application says of itself: observed data, may only deny.
    """

    key: str
    pid: int
    process_generation: str
    uid: int
    executable: str
    script: str | None = None
    claimed_name: str = ""


class Surface(Record, frozen=True, kw_only=True):
    """One top-level window. `surface_id` is opaque; `place` names the window's role in its application without its
    title; `native_window` is the X11 window id where known.
    """  # noqa: D205

    surface_id: str
    desktop: str
    app: AppIdentity
    backend: str
    toolkit: str
    title: str
    role: str
    place: str
    bounds: Bounds | None = None
    states: frozenset[str] = frozenset()
    native_window: int | None = None
    handle: str = ""


class Provenance(Record, frozen=True, kw_only=True):
    """Where a scene came from. Its hash fences every target of the scene."""

    backend: str
    desktop: str
    app: str
    process_generation: str
    surface_id: str
    host_opt_ins: tuple[str, ...] = ()


class SceneTarget(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One element of a scene: `label` within the session, `index` into the tree, and the hashes that fence it."""

    label: str
    index: int
    fingerprint_hash: str
    context: str
    context_hash: str
    context_handles: tuple[str, ...] = ()


class Scene(msgspec.Struct, frozen=True, kw_only=True, weakref=True):
    """One immutable observation of one surface by one session.

    `targets[i]` describes `tree.nodes[i]`. Times are monotonic milliseconds of the daemon.
    """

    scene_id: str
    session: str
    generation: int
    surface: Surface
    provenance: Provenance
    provenance_hash: str
    tree: Tree
    targets: tuple[SceneTarget, ...]
    observed_at_ms: int
    expires_at_ms: int


class Capture(Record, frozen=True, kw_only=True):
    """A picture and where its pixels stand. `scale_milli` is delivered pixels per desktop pixel × 1000."""

    capture_id: str
    surface_id: str | None
    origin_x: int
    origin_y: int
    width: int
    height: int
    scale_milli: int
    taken_at_ms: int


class CapabilityFact(Record, frozen=True, kw_only=True):
    """What works on a surface before anyone acts (spec §5.8)."""

    action: str
    target_kind: str
    route: str
    background: Literal["guarded", "isolated_only", "unavailable"]
