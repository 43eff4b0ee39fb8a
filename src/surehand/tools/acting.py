"""Tools that do one thing each: one fenced operation, its receipt, and what it changed.

Each takes an element or a window, and may be told what to read back (`expect`), the operation's id and its deadline.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

from msgspec import Meta

from surehand.model.actions import Button, Modifier
from surehand.model.record import Record
from surehand.tools.context import Context
from surehand.tools.deeds import Amount, Count, Deed, Direction, Kind, MaybeTarget, Target, Unit
from surehand.tools.doing import Acting, run
from surehand.tools.outcomes import CHANGE
from surehand.tools.places import Element
from surehand.tools.schema import brief
from surehand.tools.tool import Answer, Handler, Tool

#: In place of a text.
Secret = Annotated[str | None, Meta(description="instead: an enrolled secret, vault:NAME; you never see it")]


class OnElement(Acting, frozen=True, kw_only=True):
    """Acts on one element."""

    target: Target


class AtPlace(Acting, frozen=True, kw_only=True):
    """Acts on one element, or at a place of a picture."""

    target: MaybeTarget = None
    x: Annotated[int | None, Meta(description="in the picture capture_id, with y")] = None
    y: int | None = None
    capture_id: Annotated[str | None, Meta(description="from screenshot")] = None


class SetValue(OnElement, frozen=True, kw_only=True):
    """Replaces a value."""

    value: str | None = None
    secret: Secret = None


class Toggle(OnElement, frozen=True, kw_only=True):
    """Brings to a state."""

    to: bool


class SelectOption(OnElement, frozen=True, kw_only=True):
    """Chooses."""

    option: Annotated[str | None, Meta(description="its exact name; without it the target is the option")] = None


class SelectText(OnElement, frozen=True, kw_only=True):
    """Selects characters."""

    text: Annotated[str | None, Meta(description="stands there once; or start and length")] = None
    start: int | None = None
    length: Annotated[int | None, Meta(description="0 places the caret")] = None


class TypeText(Acting, frozen=True, kw_only=True):
    """Types."""

    text: str | None = None
    secret: Secret = None
    target: MaybeTarget = None
    clear: Annotated[bool | None, Meta(description="empty it first")] = None
    submit: Annotated[bool | None, Meta(description="end with Return")] = None


class PressKey(Acting, frozen=True, kw_only=True):
    """Presses chords."""

    keys: Annotated[list[str], Meta(description='in order: ["ctrl+a", "Delete"]')]
    target: MaybeTarget = None


class Click(AtPlace, frozen=True, kw_only=True):
    """Clicks."""

    button: Button | None = None
    count: Count | None = None
    modifiers: list[Modifier] | None = None


class Scroll(AtPlace, frozen=True, kw_only=True):
    """Scrolls."""

    direction: Direction
    amount: Annotated[Amount | None, Meta(description="3")] = None
    unit: Unit | None = None


class Drag(AtPlace, frozen=True, kw_only=True):
    """Drags."""

    to: Annotated[Element | None, brief("an element; or to_x and to_y in the same picture", "string", "object")] = None
    to_x: int | None = None
    to_y: int | None = None
    button: Button | None = None


class PerformAction(OnElement, frozen=True, kw_only=True):
    """Runs an action by name."""

    name: str


#: What says how an operation is presented; the rest of a tool's arguments says what to do.
_TERMS: Final = frozenset(["expect", "operation_id", "deadline_ms", "reconciles", "change", "image"])


def deed_of(kind: Kind, args: Record) -> Deed:
    """Return the deed that a tool's arguments name."""
    said = {name: getattr(args, name) for name in args.__struct_fields__ if name not in _TERMS}
    return Deed(do=kind, **said)


def _handler(kind: Kind) -> Handler:
    async def handle(context: Context, args: Acting) -> Answer:
        return await run(context, args, deed_of(kind, args))

    return handle


def _tool(kind: Kind, title: str, description: str, args: type[Record], **more: Any) -> Tool:
    return Tool(
        name=kind,
        title=title,
        description=description,
        kind="act",
        args=args,
        output=CHANGE,
        handler=_handler(kind),
        destructive=more.pop("destructive", True),
        **more,
    )


TOOLS: Final = (
    _tool(
        "invoke",
        "Press",
        "Activate an element as a person would: press a button, open a menu, follow a link.",
        OnElement,
    ),
    _tool("set_value", "Fill in", "Replace the whole value of a field, slider or spin button; read back.", SetValue),
    _tool(
        "toggle",
        "Tick or untick",
        "Bring a check box, radio button or switch to a state; already there is a success.",
        Toggle,
    ),
    _tool("select_option", "Choose", "Choose an option of a list, combo box or tab bar.", SelectOption),
    _tool("select_text", "Select text", "Select characters of a text, or place the caret.", SelectText),
    _tool(
        "type_text",
        "Type",
        "Type at the caret with the keyboard; the element or window gets the focus first if it has to.",
        TypeText,
    ),
    _tool("press_key", "Press keys", "Press keys and chords with the keyboard.", PressKey),
    _tool(
        "click",
        "Click",
        "Click with the pointer on an element, or at a place of a picture. A plain click on a button in a picture "
        "is sent to the button itself. Prefer invoke.",
        Click,
    ),
    _tool("scroll", "Scroll", "Scroll an element, or at a place of a picture.", Scroll),
    _tool("drag", "Drag", "Drag from an element or place to another one.", Drag),
    _tool(
        "perform_action",
        "Run a secondary action",
        "Run an action that the element advertises by name, other than its main one.",
        PerformAction,
    ),
)
