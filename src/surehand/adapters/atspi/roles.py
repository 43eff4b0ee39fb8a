"""What AT-SPI numbers and words mean in Surehand's vocabulary, as tables; and the few rules that combine them.

Numbers are those of `AtspiRole`, `AtspiStateType` and `AtspiRelationType` in at-spi2-core 2.46. An unknown number is
`unknown`, never a guess. Toolkits differ in what their state bits mean; `profile.py` says how.
"""

from __future__ import annotations

from typing import Final

#: AtspiRole number → (AT-SPI's own name, our role).
ROLES_BY_NUMBER: Final[dict[int, tuple[str, str]]] = {
    0: ("invalid", "unknown"),
    1: ("accelerator label", "label"),
    2: ("alert", "alert"),
    3: ("animation", "image"),
    4: ("arrow", "icon"),
    5: ("calendar", "calendar"),
    6: ("canvas", "canvas"),
    7: ("check box", "checkbox"),
    8: ("check menu item", "menuitemcheckbox"),
    9: ("color chooser", "dialog"),
    10: ("column header", "columnheader"),
    11: ("combo box", "combobox"),
    12: ("date editor", "text"),
    13: ("desktop icon", "icon"),
    14: ("desktop frame", "group"),
    15: ("dial", "slider"),
    16: ("dialog", "dialog"),
    17: ("directory pane", "pane"),
    18: ("drawing area", "canvas"),
    19: ("file chooser", "dialog"),
    20: ("filler", "filler"),
    21: ("focus traversable", "filler"),
    22: ("font chooser", "dialog"),
    23: ("frame", "window"),
    24: ("glass pane", "pane"),
    25: ("html container", "document"),
    26: ("icon", "icon"),
    27: ("image", "image"),
    28: ("internal frame", "group"),
    29: ("label", "label"),
    30: ("layered pane", "pane"),
    31: ("list", "list"),
    32: ("list item", "listitem"),
    33: ("menu", "menu"),
    34: ("menu bar", "menubar"),
    35: ("menu item", "menuitem"),
    36: ("option pane", "dialog"),
    37: ("page tab", "tab"),
    38: ("page tab list", "tablist"),
    39: ("panel", "group"),
    40: ("password text", "password"),
    41: ("popup menu", "menu"),
    42: ("progress bar", "progressbar"),
    43: ("push button", "button"),
    44: ("radio button", "radio"),
    45: ("radio menu item", "menuitemradio"),
    46: ("root pane", "pane"),
    47: ("row header", "rowheader"),
    48: ("scroll bar", "scrollbar"),
    49: ("scroll pane", "scrollpane"),
    50: ("separator", "separator"),
    51: ("slider", "slider"),
    52: ("spin button", "spinbutton"),
    53: ("split pane", "split"),
    54: ("status bar", "statusbar"),
    55: ("table", "table"),
    56: ("table cell", "cell"),
    57: ("table column header", "columnheader"),
    58: ("table row header", "rowheader"),
    59: ("tearoff menu item", "menuitem"),
    60: ("terminal", "terminal"),
    61: ("text", "text"),
    62: ("toggle button", "togglebutton"),
    63: ("tool bar", "toolbar"),
    64: ("tool tip", "tooltip"),
    65: ("tree", "tree"),
    66: ("tree table", "tree"),
    67: ("unknown", "unknown"),
    68: ("viewport", "pane"),
    69: ("window", "window"),
    70: ("extended", "unknown"),
    71: ("header", "group"),
    72: ("footer", "group"),
    73: ("paragraph", "paragraph"),
    74: ("ruler", "image"),
    75: ("application", "application"),
    76: ("autocomplete", "combobox"),
    77: ("editbar", "text"),
    78: ("embedded", "group"),
    79: ("entry", "text"),
    80: ("chart", "image"),
    81: ("caption", "label"),
    82: ("document frame", "document"),
    83: ("heading", "heading"),
    84: ("page", "page"),
    85: ("section", "group"),
    86: ("redundant object", "filler"),
    87: ("form", "group"),
    88: ("link", "link"),
    89: ("input method window", "window"),
    90: ("table row", "row"),
    91: ("tree item", "treeitem"),
    92: ("document spreadsheet", "document"),
    93: ("document presentation", "document"),
    94: ("document text", "document"),
    95: ("document web", "document"),
    96: ("document email", "document"),
    97: ("comment", "group"),
    98: ("list box", "list"),
    99: ("grouping", "group"),
    100: ("image map", "image"),
    101: ("notification", "alert"),
    102: ("info bar", "alert"),
    103: ("level bar", "progressbar"),
    104: ("title bar", "toolbar"),
    105: ("block quote", "group"),
    106: ("audio", "group"),
    107: ("video", "group"),
    108: ("definition", "group"),
    109: ("article", "group"),
    110: ("landmark", "group"),
    111: ("log", "group"),
    112: ("marquee", "group"),
    113: ("math", "group"),
    114: ("rating", "slider"),
    115: ("timer", "label"),
    116: ("static", "label"),
    117: ("math fraction", "group"),
    118: ("math root", "group"),
    119: ("subscript", "label"),
    120: ("superscript", "label"),
    121: ("description list", "list"),
    122: ("description term", "listitem"),
    123: ("description value", "listitem"),
    124: ("footnote", "group"),
    125: ("content deletion", "group"),
    126: ("content insertion", "group"),
    127: ("mark", "label"),
    128: ("suggestion", "group"),
    129: ("push button menu", "button"),
}
UNKNOWN_ROLE: Final = ("unknown", "unknown")

#: AtspiStateType bit → our state. `enabled`, `showing`, `collapsed`, `checkable`, `readonly` need rules besides.
STATES_BY_BIT: Final[dict[int, str]] = {
    1: "active",
    3: "busy",
    4: "checked",
    5: "collapsed",
    6: "defunct",
    7: "editable",
    9: "expandable",
    10: "expanded",
    11: "focusable",
    12: "focused",
    14: "horizontal",
    15: "iconified",
    16: "modal",
    17: "multiline",
    18: "multiselectable",
    20: "pressed",
    22: "selectable",
    23: "selected",
    29: "vertical",
    30: "visible",
    32: "indeterminate",
    33: "required",
    36: "invalid",
    41: "checkable",
    43: "readonly",
}
BIT_DEFUNCT: Final = 1 << 6
BIT_FOCUSABLE: Final = 1 << 11
BIT_FOCUSED: Final = 1 << 12
BIT_SELECTED: Final = 1 << 23
BIT_BUSY: Final = 1 << 3
BIT_ENABLED: Final = 1 << 8
BIT_SENSITIVE: Final = 1 << 24
BIT_SHOWING: Final = 1 << 25
BIT_VISIBLE: Final = 1 << 30

RELATION_LABELLED_BY: Final = 2

#: Roles whose text is content rather than a caption, and so is a node's `value`.
TEXT_ROLES: Final = frozenset(["text", "paragraph", "document", "terminal", "spinbutton", "heading"])
#: Roles whose name is their text; where a toolkit gives no name, the text is it.
CAPTION_ROLES: Final = frozenset(["label", "link"])
#: Roles whose `labelled_by` is worth a read: controls that are named by something beside them.
LABELLED_ROLES: Final = frozenset(
    ["button", "calendar", "checkbox", "combobox", "list", "password", "progressbar", "radio", "slider", "spinbutton"]
) | frozenset(["switch", "table", "terminal", "text", "togglebutton", "tree"])
#: Those whose own name says too little even where there is one.
FIELD_ROLES: Final = frozenset(
    ["calendar", "combobox", "password", "progressbar", "slider", "spinbutton", "table", "terminal", "text", "tree"]
)
#: Roles whose identifier and description are worth no call of their own.
ANONYMOUS_ROLES: Final = frozenset(["filler", "separator"])
#: Roles of items that are no widgets and hold nothing.
LEAF_ROLES: Final = frozenset(["cell", "columnheader", "rowheader", "separator"])
CHECKABLE_ROLES: Final = frozenset(["checkbox", "radio", "switch", "togglebutton", "menuitemcheckbox", "menuitemradio"])
#: Roles that hold their rows as cells in row order.
GRID_ROLES: Final = frozenset(["table", "tree"])
#: Containers that may have a million children: their count is asked before their children are.
LONG_ROLES: Final = frozenset(["list", "table", "tree", "menu", "combobox", "document", "row", "calendar", "canvas"])

#: Roles that hold others, even while they hold none.
CONTAINER_ROLES: Final = (
    frozenset(
        [
            "alert",
            "application",
            "canvas",
            "combobox",
            "dialog",
            "document",
            "filler",
            "group",
            "list",
            "listitem",
            "menu",
        ]
    )
    | frozenset(
        ["menubar", "page", "pane", "row", "scrollpane", "split", "statusbar", "tab", "table", "tablist", "tree"]
    )
    | frozenset(["tabpanel", "toolbar", "treeitem", "unknown", "window"])
)

#: Roles of what is no widget in Qt (items of views and menus), or is named by what it has chosen: it signals neither.
SILENT_ROLES: Final = frozenset(
    ["cell", "columnheader", "combobox", "listitem", "menuitem", "menuitemcheckbox", "menuitemradio", "rowheader"]
) | frozenset(["tab", "tablist", "treeitem"])

#: What a top-level window is in its application, without its title.
PLACES: Final[dict[str, str]] = {
    "frame": "window",
    "window": "popup",
    "popup menu": "menu",
    "menu": "menu",
}
#: Top-level objects that come and go by themselves and are no place to act.
PASSING_WINDOW_ROLES: Final = frozenset(["tooltip"])

#: Action names, in lower case, by what they do. Only these count; an unknown name is a secondary action.
INVOKE_VERBS: Final = frozenset(["click", "press", "activate", "jump", "dodefault", "do default"])
TOGGLE_VERBS: Final = frozenset(["toggle", "check", "uncheck", "click", "press", "activate"])
EXPAND_VERBS: Final = frozenset(["expand or contract", "expand", "collapse", "open", "close", "showmenu", "show menu"])

_VALUE_IS_SET: Final = frozenset(["slider", "spinbutton", "scrollbar", "split"])
_SCROLLERS: Final = frozenset(["scrollbar", "scrollpane"])
_NOT_EDITED_AS_TEXT: Final = frozenset(["label", "link", "image", "icon"])


def role_of(number: int) -> tuple[str, str]:
    """Return AT-SPI's name and our role."""
    return ROLES_BY_NUMBER.get(number, UNKNOWN_ROLE)


def states_of(bits: int, role: str, *, enabled: bool, showing: bool) -> frozenset[str]:
    """Return our states; `enabled` and `showing` were settled by the toolkit's rules."""
    found = {name for bit, name in STATES_BY_BIT.items() if bits >> bit & 1}
    if enabled:
        found.add("enabled")
    if showing:
        found.add("showing")
    if role in CHECKABLE_ROLES:
        found.add("checkable")
    if "expandable" in found and "expanded" not in found:
        found.add("collapsed")
    if role == "text" and "editable" not in found:
        found.add("readonly")
    if role in _NOT_EDITED_AS_TEXT:
        found.discard("readonly")
    return frozenset(found)


def capabilities_of(
    role: str, states: frozenset[str], interfaces: frozenset[str], actions: tuple[str, ...], *, has_place: bool
) -> frozenset[str]:
    """Return what can be done with a node, by its interfaces (short names), states and named actions."""
    verbs = {action.lower() for action in actions}
    holds = {
        "invoke": verbs & INVOKE_VERBS,
        "toggle": role in CHECKABLE_ROLES and verbs & TOGGLE_VERBS,
        "expand": verbs & EXPAND_VERBS or "expandable" in states,
        "perform": actions,
        "set_text": "EditableText" in interfaces and "editable" in states,
        "set_value": "Value" in interfaces and role in _VALUE_IS_SET,
        "select_text": "Text" in interfaces and role in TEXT_ROLES,
        "select": "Selection" in interfaces or "selectable" in states,
        "focus": "focusable" in states,
        "scroll": role in _SCROLLERS or ("Component" in interfaces and "showing" not in states),
        "point": has_place,
    }
    return frozenset(name for name, fact in holds.items() if fact)
