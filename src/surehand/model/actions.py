"""Every action kind of spec §3.2, with its bounds, and the table of what each may be aimed at.

Adapters for some kinds come later; the kinds are fixed here so that hashes, grants and policies never change shape.
"""

from __future__ import annotations

from typing import Final, Literal

from surehand import limits
from surehand.errors import InvalidRequest
from surehand.model.record import Tagged, check_count, check_range, check_text, tag_of
from surehand.model.secrets import check_reference
from surehand.model.targets import PointTarget

Button = Literal["left", "middle", "right"]
Modifier = Literal["shift", "control", "alt", "meta"]


class Invoke(Tagged, frozen=True, kw_only=True, tag="invoke"):
    """Activate the element through its one named activation verb; never by position in an action list."""


class SetValue(Tagged, frozen=True, kw_only=True, tag="set_value"):
    """Replace the whole value: text, or the decimal text of a number. Exactly one of value and secret_ref.

    `secret_ref` is `vault:NAME` or `env:NAME`: a secret by reference, which the request never holds.
    """

    value: str | None = None
    secret_ref: str | None = None

    def __post_init__(self) -> None:
        if (self.value is None) == (self.secret_ref is None):
            raise InvalidRequest("set_value takes exactly one of value and secret_ref")
        if self.value is not None:
            check_text("value", self.value, limits.VALUE_BYTES_MAX)
        if self.secret_ref is not None:
            check_reference("secret_ref", self.secret_ref)


class SelectText(Tagged, frozen=True, kw_only=True, tag="select_text"):
    """Select `length` characters from `start`; length 0 places the caret."""

    start: int
    length: int

    def __post_init__(self) -> None:
        check_range("start", self.start, 0, limits.VALUE_BYTES_MAX)
        check_range("start + length", self.start + self.length, self.start, limits.VALUE_BYTES_MAX)


class SelectOption(Tagged, frozen=True, kw_only=True, tag="select_option"):
    """Select the option with exactly this name in the target; without a name the target itself is the option."""

    option: str | None = None

    def __post_init__(self) -> None:
        if self.option is not None:
            check_text("option", self.option, limits.NAME_CHARS_MAX)


class Toggle(Tagged, frozen=True, kw_only=True, tag="toggle"):
    """Bring a check box, radio button or switch to the named state; already there is a success without effect."""

    to: bool


class Expand(Tagged, frozen=True, kw_only=True, tag="expand"):
    """Expand (`to` true) or collapse."""

    to: bool


class Focus(Tagged, frozen=True, kw_only=True, tag="focus"):
    """Give the element the keyboard focus."""


class Perform(Tagged, frozen=True, kw_only=True, tag="perform"):
    """Run one advertised secondary action by its exact name."""

    name: str

    def __post_init__(self) -> None:
        check_text("name", self.name, limits.NAME_CHARS_MAX, empty=False)


class Scroll(Tagged, frozen=True, kw_only=True, tag="scroll"):
    """Scroll by `amount_milli` thousandths of a line, page or pixel."""

    direction: Literal["up", "down", "left", "right"]
    amount_milli: int
    unit: Literal["line", "page", "pixel"] = "line"

    def __post_init__(self) -> None:
        check_range("amount_milli", self.amount_milli, 1, limits.SCROLL_AMOUNT_MILLI_MAX)


class ScrollIntoView(Tagged, frozen=True, kw_only=True, tag="scroll_into_view"):
    """Bring the element into the visible part of its scrolled area."""


class Click(Tagged, frozen=True, kw_only=True, tag="click"):
    """Click with the pointer, 1..3 times."""

    button: Button = "left"
    count: int = 1
    modifiers: tuple[Modifier, ...] = ()

    def __post_init__(self) -> None:
        check_range("count", self.count, 1, limits.CLICK_COUNT_MAX)
        if len(set(self.modifiers)) != len(self.modifiers):
            raise InvalidRequest("a modifier is named twice")


class Hover(Tagged, frozen=True, kw_only=True, tag="hover"):
    """Rest the pointer on the target."""


class Move(Tagged, frozen=True, kw_only=True, tag="move"):
    """Move the pointer to the target."""


class Hold(Tagged, frozen=True, kw_only=True, tag="hold"):
    """Press a button and keep it down, at most a minute."""

    button: Button = "left"


class Release(Tagged, frozen=True, kw_only=True, tag="release"):
    """Let go of a held button."""

    button: Button = "left"


class Drag(Tagged, frozen=True, kw_only=True, tag="drag"):
    """Drag from the target to a fenced point, through up to 256 fenced points."""

    to: PointTarget
    path: tuple[PointTarget, ...] = ()
    button: Button = "left"

    def __post_init__(self) -> None:
        check_count("path", len(self.path), 0, limits.DRAG_PATH_POINTS_MAX)


class TypeText(Tagged, frozen=True, kw_only=True, tag="type_text"):
    """Type characters into the focused target; `clear` first empties it, `submit` ends with Return.

    Exactly one of text and secret_ref, which is `vault:NAME` or `env:NAME`.
    """

    text: str | None = None
    secret_ref: str | None = None
    clear: bool = False
    submit: bool = False

    def __post_init__(self) -> None:
        if (self.text is None) == (self.secret_ref is None):
            raise InvalidRequest("type_text takes exactly one of text and secret_ref")
        if self.text is not None:
            check_text("text", self.text, limits.TEXT_BYTES_MAX)
        if self.secret_ref is not None:
            check_reference("secret_ref", self.secret_ref)


class Press(Tagged, frozen=True, kw_only=True, tag="press"):
    """Press up to 32 chords such as `ctrl+shift+s`, in xdotool, Playwright or W3C spelling."""

    chords: tuple[str, ...]

    def __post_init__(self) -> None:
        check_count("chords", len(self.chords), 1, limits.CHORDS_MAX)
        for chord in self.chords:
            check_text("chord", chord, limits.IDENTIFIER_CHARS_MAX, empty=False)


class Paste(Tagged, frozen=True, kw_only=True, tag="paste"):
    """Insert text at the caret as a paste would."""

    text: str

    def __post_init__(self) -> None:
        check_text("text", self.text, limits.TEXT_BYTES_MAX)


class Screenshot(Tagged, frozen=True, kw_only=True, tag="screenshot"):
    """Take a picture as a full operation (whole shared desktop, or what an operator marks sensitive)."""


class App(Tagged, frozen=True, kw_only=True, tag="app"):
    """Launch, activate or quit an application; `name` is an executable or a desktop file id, never a shell line."""

    op: Literal["launch", "activate", "quit"]
    name: str
    arguments: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_text("name", self.name, limits.NAME_CHARS_MAX, empty=False)
        check_count("arguments", len(self.arguments), 0, limits.PATHS_MAX)
        for argument in self.arguments:
            check_text("argument", argument, limits.NAME_CHARS_MAX)


class Open(Tagged, frozen=True, kw_only=True, tag="open"):
    """Open a URI or an absolute path with the application the desktop chooses."""

    uri: str

    def __post_init__(self) -> None:
        check_text("uri", self.uri, 16 * 1024, empty=False)


class Window(Tagged, frozen=True, kw_only=True, tag="window"):
    """Change a window; x, y with move, width, height with resize."""

    op: Literal["focus", "close", "minimize", "maximize", "move", "resize", "cycle"]
    x: int | None = None
    y: int | None = None
    width: int | None = None
    height: int | None = None

    def __post_init__(self) -> None:
        if (self.op == "move") != (self.x is not None and self.y is not None):
            raise InvalidRequest("x and y go with move")
        if (self.op == "resize") != (self.width is not None and self.height is not None):
            raise InvalidRequest("width and height go with resize")
        for name in ("x", "y"):
            if (number := getattr(self, name)) is not None:
                check_range(name, number, -limits.COORDINATE_MAX, limits.COORDINATE_MAX)
        for name in ("width", "height"):
            if (number := getattr(self, name)) is not None:
                check_range(name, number, 1, limits.COORDINATE_MAX)


class Clipboard(Tagged, frozen=True, kw_only=True, tag="clipboard"):
    """Read or write the clipboard; text only with write."""

    op: Literal["read", "write"]
    text: str | None = None

    def __post_init__(self) -> None:
        if (self.op == "write") != (self.text is not None):
            raise InvalidRequest("text goes with write")
        if self.text is not None:
            check_text("text", self.text, limits.VALUE_BYTES_MAX)


class Abort(Tagged, frozen=True, kw_only=True, tag="abort"):
    """Let go of everything that is held."""


class PhysicalState(Tagged, frozen=True, kw_only=True, tag="physical_state"):
    """Read pointer, buttons and modifiers."""


class Navigate(Tagged, frozen=True, kw_only=True, tag="navigate"):
    """Load a URL in a page."""

    url: str

    def __post_init__(self) -> None:
        check_text("url", self.url, 16 * 1024, empty=False)


class History(Tagged, frozen=True, kw_only=True, tag="history"):
    """Go back or forward, or reload."""

    op: Literal["back", "forward", "reload"]


class Tab(Tagged, frozen=True, kw_only=True, tag="tab"):
    """Open, close or activate a tab; url only with open."""

    op: Literal["open", "close", "activate"]
    url: str | None = None

    def __post_init__(self) -> None:
        if self.url is not None:
            if self.op != "open":
                raise InvalidRequest("url goes with open")
            check_text("url", self.url, 16 * 1024, empty=False)


class Upload(Tagged, frozen=True, kw_only=True, tag="upload"):
    """Choose files in a file input."""

    paths: tuple[str, ...]

    def __post_init__(self) -> None:
        check_count("paths", len(self.paths), 1, limits.PATHS_MAX)
        for path in self.paths:
            check_text("path", path, 4096, empty=False)


class Dialog(Tagged, frozen=True, kw_only=True, tag="dialog"):
    """Answer a JavaScript dialog."""

    op: Literal["accept", "dismiss"]
    text: str | None = None

    def __post_init__(self) -> None:
        if self.text is not None:
            check_text("text", self.text, limits.TEXT_BYTES_MAX)


Action = (
    Invoke | SetValue | SelectText | SelectOption | Toggle | Expand | Focus | Perform | Scroll | ScrollIntoView | Click
    | Hover | Move | Hold | Release | Drag | TypeText | Press | Paste | Screenshot | App | Open | Window | Clipboard
    | Abort | PhysicalState | Navigate | History | Tab | Upload | Dialog
)  # fmt: skip

_ELEMENT: Final = frozenset({"element", "query"})
_PLACE: Final = _ELEMENT | {"point"}
_ANY_FOCUS: Final = _ELEMENT | {"surface"}

#: Which kinds of target each action may be aimed at; an action absent here cannot run.
TARGET_KINDS: Final[dict[str, frozenset[str]]] = {
    "invoke": _ELEMENT,
    "set_value": _ELEMENT,
    "select_text": _ELEMENT,
    "select_option": _ELEMENT,
    "toggle": _ELEMENT,
    "expand": _ELEMENT,
    "focus": _ELEMENT,
    "perform": _ELEMENT,
    "scroll": _PLACE,
    "scroll_into_view": _ELEMENT,
    "click": _PLACE,
    "hover": _PLACE,
    "move": _PLACE,
    "hold": _PLACE,
    "release": _PLACE | {"none"},
    "drag": _PLACE,
    "type_text": _ANY_FOCUS,
    "press": _ANY_FOCUS,
    "paste": _ANY_FOCUS,
    "screenshot": frozenset({"surface", "none"}),
    "app": frozenset({"none", "surface"}),
    "open": frozenset({"none"}),
    "window": frozenset({"surface"}),
    "clipboard": frozenset({"none"}),
    "abort": frozenset({"none"}),
    "physical_state": frozenset({"none"}),
    "navigate": frozenset({"surface"}),
    "history": frozenset({"surface"}),
    "tab": frozenset({"surface", "none"}),
    "upload": _ELEMENT,
    "dialog": frozenset({"surface"}),
}

#: Actions whose bytes a low-entropy hash could be guessed back to; they carry a salt (spec §3.1).
TEXT_ACTIONS: Final = frozenset({"set_value", "type_text", "press", "paste", "clipboard", "dialog", "select_option"})


#: As a tuple: a union would be put together again at every question.
_ENTERING: Final = (SetValue, TypeText)


def kind_of(action: Action) -> str:
    """Return the tag of an action, such as `set_value`."""
    return tag_of(type(action))


def secret_of(action: Action) -> str | None:
    """Return the reference of the secret that an action enters, None where it enters none."""
    return action.secret_ref if isinstance(action, _ENTERING) else None
