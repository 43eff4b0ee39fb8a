"""Two other vocabularies, served through our tools: what their words mean is done by ours, and nothing else is taken.

`playwright` has the names of the Playwright MCP server (0.0.83) that mean something on a desktop; `computer-use` has
the one tool `computer` whose actions name places in the last picture of the whole desktop. A set is served where it is
asked for (`--tools playwright`). Each tool has its own strict arguments and becomes a call of one of our tools, so it
decides nothing, is fenced and recorded like them, and answers as they do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Final, Literal

from msgspec import Meta

from surehand import limits
from surehand.errors import InvalidRequest, StaleTarget
from surehand.model.record import Record, convert
from surehand.tools import acting, picturing, seeing, steps, waiting
from surehand.tools.context import Context
from surehand.tools.places import by_label
from surehand.tools.schema import brief
from surehand.tools.tool import Answer, Kind, Tool

_OURS: Final = {
    tool.name: tool for tool in (*seeing.TOOLS, *picturing.TOOLS, *waiting.TOOLS, *acting.TOOLS, *steps.TOOLS)
}
#: One of our tools and its arguments.
Ours = tuple[str, dict[str, Any]]
Turned = Callable[[Context, Any], Awaitable[Ours]]
#: What a plain click on it does is what invoking it does.
_PRESSED: Final = frozenset(
    ["button", "checkbox", "link", "menuitem", "menuitemcheckbox", "menuitemradio", "radio", "switch", "togglebutton"]
)
_OUTPUT: Final = {"type": "object"}


async def _ours(context: Context, name: str, arguments: dict[str, Any]) -> Answer:
    """Call one of our tools; what its own schema refuses is refused."""
    tool = _OURS[name]
    given = {key: value for key, value in arguments.items() if value is not None}
    return await tool.handler(context, convert(tool.args, given))


# --- playwright -----------------------------------------------------------------------------------------------------

Label = Annotated[str, Meta(description="a label from browser_snapshot")]
#: What it is called in words; people read it, nothing is decided by it.
Words = Annotated[str | None, Meta(description="what it is, for people")]


class Snapshot(Record, frozen=True, kw_only=True):
    """A look."""

    target: Label | None = None


class OnTarget(Record, frozen=True, kw_only=True):
    """Something with one element."""

    target: Label
    element: Words = None


class BrowserClick(OnTarget, frozen=True, kw_only=True):
    """A click."""

    doubleClick: bool = False  # noqa: N815 - their name
    button: Literal["left", "right", "middle"] = "left"
    modifiers: list[Literal["Alt", "Control", "ControlOrMeta", "Meta", "Shift"]] = []


class BrowserType(OnTarget, frozen=True, kw_only=True):
    """Text for a field."""

    text: str
    submit: bool = False
    slowly: bool = False


class BrowserKey(Record, frozen=True, kw_only=True):
    """A key."""

    key: str


class BrowserDrag(Record, frozen=True, kw_only=True):
    """From one element to another."""

    startTarget: Label  # noqa: N815 - their name
    endTarget: Label  # noqa: N815 - their name
    startElement: Words = None  # noqa: N815 - their name
    endElement: Words = None  # noqa: N815 - their name


class BrowserSelect(OnTarget, frozen=True, kw_only=True):
    """Options."""

    values: Annotated[list[str], Meta(min_length=1, max_length=1)]


class Field(Record, frozen=True, kw_only=True):
    """One field of a form."""

    target: Label
    type: Literal["textbox", "checkbox", "radio", "combobox", "slider"]
    value: str
    name: str | None = None
    element: Words = None


class BrowserForm(Record, frozen=True, kw_only=True):
    """Fields."""

    fields: Annotated[list[Field], Meta(min_length=1, max_length=limits.BATCH_STEPS_MAX)]


class BrowserPicture(Record, frozen=True, kw_only=True):
    """A picture."""

    target: Label | None = None
    element: Words = None
    type: Literal["png", "jpeg", "webp"] = "png"


class BrowserWait(Record, frozen=True, kw_only=True):
    """What to wait for."""

    text: str | None = None
    textGone: str | None = None  # noqa: N815 - their name


class BrowserFind(Record, frozen=True, kw_only=True):
    """What to find."""

    text: str


class BrowserResize(Record, frozen=True, kw_only=True):
    """A size."""

    width: int
    height: int


async def _snapshot(_: Context, args: Snapshot) -> Ours:
    return "observe", {"scope": args.target} if args.target is not None else {"full": True}


async def _click(context: Context, args: BrowserClick) -> Ours:
    if not args.doubleClick and args.button == "left" and not args.modifiers:
        found = await by_label(context, args.target)
        if found["role"] in _PRESSED and "invoke" in found["capabilities"]:
            return "invoke", {"target": args.target}
    names = ["control" if name == "ControlOrMeta" else name.lower() for name in args.modifiers]
    more = {"count": 2 if args.doubleClick else None, "button": args.button, "modifiers": names or None}
    return "click", {"target": args.target, **more}


async def _type(_: Context, args: BrowserType) -> Ours:
    if not args.submit and not args.slowly:
        return "set_value", {"target": args.target, "value": args.text}
    clear = None if args.slowly else True
    return "type_text", {"target": args.target, "text": args.text, "clear": clear, "submit": args.submit or None}


async def _key(_: Context, args: BrowserKey) -> Ours:
    return "press_key", {"keys": [args.key]}


async def _hover(_: Context, args: OnTarget) -> Ours:
    return "act", {"steps": [{"do": "hover", "target": args.target}]}


async def _drag(_: Context, args: BrowserDrag) -> Ours:
    return "drag", {"target": args.startTarget, "to": args.endTarget}


async def _select(_: Context, args: BrowserSelect) -> Ours:
    return "select_option", {"target": args.target, "option": args.values[0]}


async def _form(_: Context, args: BrowserForm) -> Ours:
    return "act", {"steps": [_filled(field) for field in args.fields]}


def _filled(field: Field) -> dict[str, Any]:
    if field.type in {"checkbox", "radio"}:
        if field.value not in {"true", "false"}:
            raise InvalidRequest(f"the value of a {field.type} is true or false")
        return {"do": "toggle", "target": field.target, "to": field.value == "true"}
    if field.type == "combobox":
        return {"do": "select_option", "target": field.target, "option": field.value}
    return {"do": "set_value", "target": field.target, "value": field.value}


async def _picture(_: Context, args: BrowserPicture) -> Ours:
    return "screenshot", {"target": args.target, "format": args.type}


async def _wait(_: Context, args: BrowserWait) -> Ours:
    parts = [("exists", args.text), ("gone", args.textGone)]
    until = [{kind: {"contains": text}} for kind, text in parts if text is not None]
    if not until:
        raise InvalidRequest("say text or textGone", fix="nothing here waits for a time: actions wait for their effect")
    return "wait_for", {"until": until}


async def _find(_: Context, args: BrowserFind) -> Ours:
    return "query", {"contains": args.text}


async def _resize(_: Context, args: BrowserResize) -> Ours:
    return "act", {"steps": [{"do": "window", "op": "resize", "width": args.width, "height": args.height}]}


def _alias(name: str, kind: Kind, args: type[Record], turned: Turned, description: str) -> Tool:
    async def handle(context: Context, given: Any) -> Answer:
        return await _ours(context, *await turned(context, given))

    return Tool(
        name=name,
        title=name.removeprefix("browser_").replace("_", " ").capitalize(),
        description=description,
        kind=kind,
        args=args,
        output=_OUTPUT,
        handler=handle,
        destructive=kind == "act",
    )


#: Their name, what it may change, their arguments, what they become.
PLAYWRIGHT: Final = (
    _alias("browser_snapshot", "read", Snapshot, _snapshot, "The window as text; act on its labels."),
    _alias("browser_click", "act", BrowserClick, _click, "Click an element."),
    _alias("browser_type", "act", BrowserType, _type, "Fill in a field; slowly types at its end instead."),
    _alias("browser_press_key", "act", BrowserKey, _key, "Press a key or chord: Enter, Control+a."),
    _alias("browser_hover", "act", OnTarget, _hover, "Rest the pointer on an element."),
    _alias("browser_drag", "act", BrowserDrag, _drag, "Drag one element to another."),
    _alias("browser_select_option", "act", BrowserSelect, _select, "Choose an option by its name."),
    _alias("browser_fill_form", "act", BrowserForm, _form, "Fill in several fields, up to the first that fails."),
    _alias("browser_take_screenshot", "read", BrowserPicture, _picture, "A picture of the window or an element."),
    _alias("browser_wait_for", "read", BrowserWait, _wait, "Wait until a text is there or gone."),
    _alias("browser_find", "read", BrowserFind, _find, "Elements whose name contains a text."),
    _alias("browser_resize", "act", BrowserResize, _resize, "Resize the window."),
)


# --- computer use ---------------------------------------------------------------------------------------------------

Point = Annotated[tuple[int, int] | None, brief("x, y in the last screenshot", "array")]
Action = Literal[
    "screenshot", "zoom", "left_click", "right_click", "middle_click", "double_click", "triple_click", "mouse_move",
    "left_mouse_down", "left_mouse_up", "left_click_drag", "scroll", "type", "key", "wait",
]  # fmt: skip


class Computer(Record, frozen=True, kw_only=True):
    """One action."""

    action: Action
    coordinate: Point = None
    start_coordinate: Point = None
    text: Annotated[str | None, Meta(description="to type, or keys such as ctrl+s")] = None
    scroll_direction: Literal["up", "down", "left", "right"] | None = None
    scroll_amount: Annotated[int, Meta(ge=1, le=100)] | None = None
    duration: Annotated[float, Meta(gt=0, le=limits.WAIT_MS_MAX / 1000), Meta(description="seconds")] | None = None
    region: Annotated[tuple[int, int, int, int] | None, brief("zoom: left, top, right, bottom", "array")] = None


#: What goes with an action: first what it needs, then what it may have besides.
_GOES: Final[dict[str, tuple[frozenset[str], frozenset[str]]]] = {
    "screenshot": (frozenset(), frozenset()),
    "zoom": (frozenset(["region"]), frozenset()),
    "left_click_drag": (frozenset(["start_coordinate", "coordinate"]), frozenset()),
    "scroll": (frozenset(["coordinate", "scroll_direction"]), frozenset(["scroll_amount"])),
    "type": (frozenset(["text"]), frozenset()),
    "key": (frozenset(["text"]), frozenset()),
    "wait": (frozenset(["duration"]), frozenset()),
}
_ON_A_PLACE: Final = (frozenset(["coordinate"]), frozenset[str]())
#: Clicks: what they are besides at a place.
_CLICKS: Final[dict[str, dict[str, Any]]] = {
    "left_click": {},
    "right_click": {"button": "right"},
    "middle_click": {"button": "middle"},
    "double_click": {"count": 2},
    "triple_click": {"count": 3},
}
_MOVES: Final = {"mouse_move": "move", "left_mouse_down": "hold", "left_mouse_up": "release"}


async def _computer(context: Context, args: Computer) -> Answer:
    _check_computer(args)
    match args.action:
        case "screenshot" | "zoom":
            return await _look(context, args)
        case "type":
            return await _ours(context, "type_text", {"text": args.text})
        case "key":
            return await _ours(context, "press_key", {"keys": [args.text]})
        case "wait":
            await asyncio.sleep(args.duration or 0)
            return Answer({"waited": True}, "waited; take a screenshot to see what is there")
        case _:
            return await _ours(context, *_at_place(context, args))


def _check_computer(args: Computer) -> None:
    needs, takes = _GOES.get(args.action, _ON_A_PLACE)
    given = {name for name in Computer.__struct_fields__ if name != "action" and getattr(args, name) is not None}
    if missing := needs - given:
        raise InvalidRequest(f"{args.action} needs {', '.join(sorted(missing))}")
    if surplus := given - needs - takes:
        raise InvalidRequest(f"{args.action} takes no {', '.join(sorted(surplus))}")


async def _look(context: Context, args: Computer) -> Answer:
    arguments: dict[str, Any] = {"desktop": True}
    if args.region is not None:
        left, top, right, bottom = args.region
        arguments["region"] = [left, top, right - left, bottom - top]
    answer = await _ours(context, "screenshot", arguments)
    if args.action == "screenshot":
        # A closer look has places of its own; those of the whole are what coordinates mean.
        context.picture = str(answer.data["capture_id"])
    return answer


def _at_place(context: Context, args: Computer) -> Ours:
    if context.picture is None:
        raise StaleTarget("there is no screenshot that coordinates could be in", fix="take a screenshot first")
    place = dict(zip(("x", "y"), args.start_coordinate or args.coordinate or (), strict=False))
    where: dict[str, Any] = {**place, "capture_id": context.picture}
    if args.action in _CLICKS:
        return "click", {**where, **_CLICKS[args.action]}
    if args.action in _MOVES:
        return "act", {"steps": [{"do": _MOVES[args.action], **where}]}
    if args.action == "left_click_drag" and args.coordinate is not None:
        return "drag", {**where, "to_x": args.coordinate[0], "to_y": args.coordinate[1]}
    return "scroll", {**where, "direction": args.scroll_direction, "amount": args.scroll_amount}


COMPUTER: Final = (
    Tool(
        name="computer",
        title="Use the computer",
        description=(
            "One action with screen, pointer or keyboard. Coordinates are pixels of the last screenshot, which is of "
            "the whole desktop; where it shows something else by now they are refused: take another one."
        ),
        kind="act",
        args=Computer,
        output=_OUTPUT,
        handler=_computer,
        destructive=True,
    ),
)

SETS: Final[dict[str, tuple[Tool, ...]]] = {"playwright": PLAYWRIGHT, "computer-use": COMPUTER}
