"""One vocabulary of doing: what a single tool takes, and a step of `act`, become one action and its target.

A `Deed` names what to do (`do`) and carries the arguments of that kind and no others. `prepare` turns it into the
action and the fenced target of one request; it looks, where the daemon has to be asked, and never acts.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, NamedTuple

from msgspec import Meta

from surehand import limits
from surehand.errors import InvalidRequest, TargetNotFound
from surehand.model.actions import Button, Modifier
from surehand.tools.context import Context
from surehand.tools.places import Element, Find, Where, by_label, one_of, surface_of, target
from surehand.tools.pointing import point
from surehand.tools.schema import brief

Kind = Literal[
    "invoke", "set_value", "toggle", "expand", "focus", "select_option", "select_text", "perform_action", "scroll",
    "scroll_into_view", "click", "hover", "move", "hold", "release", "drag", "type_text", "press_key", "window",
    "launch_app", "release_all", "physical_state",
]  # fmt: skip
Direction = Literal["up", "down", "left", "right"]
Unit = Literal["line", "page", "pixel"]
WindowOp = Literal["focus", "close", "minimize", "maximize", "move", "resize", "cycle"]

#: Told in full once, in `act`, which every list of tools has that has any of these.
_ELEMENT: Final = brief('"e17" or {role, name, …}', "string", "object")
Target = Annotated[Element, _ELEMENT]
#: Where a single tool may do without.
MaybeTarget = Annotated[Element | None, _ELEMENT]
Count = Annotated[int, Meta(ge=1, le=limits.CLICK_COUNT_MAX)]
Amount = Annotated[float, Meta(gt=0, le=limits.SCROLL_AMOUNT_MILLI_MAX / 1000)]


class Deed(Where, frozen=True, kw_only=True):
    """One thing to do. Which arguments go with which kind is the table `_RULES`."""

    do: Kind
    target: Annotated[
        Element | None, brief('"e17" or {role, name, contains, label, value, inside, state}', "string", "object")
    ] = None
    x: Annotated[int | None, Meta(description="in the picture capture_id")] = None
    y: int | None = None
    capture_id: str | None = None
    value: str | None = None
    secret: Annotated[str | None, Meta(description="vault:NAME, for value or text")] = None
    to: Annotated[
        bool | Element | None, brief("toggle, expand: the state; drag: where to", "boolean", "string", "object")
    ] = None
    to_x: int | None = None
    to_y: int | None = None
    option: str | None = None
    text: str | None = None
    start: int | None = None
    length: int | None = None
    clear: bool | None = None
    submit: bool | None = None
    keys: Annotated[list[str] | None, Meta(description='["ctrl+s"]')] = None
    button: Button | None = None
    count: Count | None = None
    modifiers: list[Modifier] | None = None
    direction: Direction | None = None
    amount: Amount | None = None
    unit: Unit | None = None
    name: Annotated[str | None, Meta(description="perform_action, launch_app")] = None
    arguments: list[str] | None = None
    op: WindowOp | None = None
    width: int | None = None
    height: int | None = None


#: How a Deed's fields are called that say where.
_POINT: Final = frozenset(["x", "y", "capture_id"])
_PLACE: Final = _POINT | {"target"}
_WHERE: Final = frozenset(["window", "app"])


class _Rule(NamedTuple):
    needs: frozenset[str]
    takes: frozenset[str] = frozenset()


def _rule(needs: str, takes: str = "", *, place: bool = False, somewhere: bool = True) -> _Rule:
    allowed = frozenset(takes.split()) | (_PLACE if place else frozenset()) | (_WHERE if somewhere else frozenset())
    return _Rule(frozenset(needs.split()), allowed)


_RULES: Final[dict[str, _Rule]] = {
    "invoke": _rule("target"),
    "set_value": _rule("target", "value secret"),
    "toggle": _rule("target to"),
    "expand": _rule("target to"),
    "focus": _rule("target"),
    "select_option": _rule("target", "option"),
    "select_text": _rule("target", "text start length"),
    "perform_action": _rule("target name"),
    "scroll": _rule("direction", "amount unit", place=True),
    "scroll_into_view": _rule("target"),
    "click": _rule("", "button count modifiers", place=True),
    "hover": _rule("", place=True),
    "move": _rule("", place=True),
    "hold": _rule("", "button", place=True),
    "release": _rule("", "button", place=True),
    "drag": _rule("", "to to_x to_y button", place=True),
    "type_text": _rule("", "text secret target clear submit"),
    "press_key": _rule("keys", "target"),
    "window": _rule("op", "x y width height"),
    "launch_app": _rule("name", "arguments", somewhere=False),
    "release_all": _rule("", somewhere=False),
    "physical_state": _rule("", somewhere=False),
}


#: What takes a text, or a secret in its place.
_TEXT_OF: Final = {"set_value": "value", "type_text": "text"}
#: What an action calls otherwise.
_FIELDS: Final = {"secret": "secret_ref"}


class Prepared(NamedTuple):
    """An action with its target, and the window that is in where that is known."""

    action: dict[str, Any]
    target: dict[str, Any]
    window: str | None = None


def check(deed: Deed) -> None:
    """Refuse arguments that do not go with what is to be done, before anything is looked at.

    Raises:
        InvalidRequest.
    """
    rule = _RULES[deed.do]
    given = {name for name in Deed.__struct_fields__ if name != "do" and getattr(deed, name) is not None}
    if missing := rule.needs - given:
        raise InvalidRequest(f"{deed.do} needs {', '.join(sorted(missing))}")
    if surplus := given - rule.needs - rule.takes:
        raise InvalidRequest(f"{deed.do} takes no {', '.join(sorted(surplus))}")
    if (text := _TEXT_OF.get(deed.do)) is not None and (getattr(deed, text) is None) == (deed.secret is None):
        raise InvalidRequest(f"{deed.do} needs {text}, or secret instead")
    if deed.do in {"toggle", "expand"} and not isinstance(deed.to, bool):
        raise InvalidRequest(f"{deed.do} takes to true or false")
    if deed.do == "drag":
        _check_drag(deed)
    if rule.takes >= _POINT:
        _check_place(deed)
    for element in (deed.target, deed.to):
        if isinstance(element, Find):
            element.filters_said()


def _check_place(deed: Deed) -> None:
    said = [name for name in ("x", "y", "capture_id") if getattr(deed, name) is not None]
    ends = deed.to_x is not None  # a drag from an element to a place needs the picture alone
    if deed.target is not None and said and not (ends and said == ["capture_id"]):
        raise InvalidRequest("name a target or a place, not both")
    if deed.target is None and len(said) not in ({0, 3} if deed.do == "release" else {3}):
        raise InvalidRequest(f"{deed.do} needs a target, or x, y and the capture_id of the picture they are in")


def _check_drag(deed: Deed) -> None:
    ends = [end for end in (deed.to_x, deed.to_y) if end is not None]
    if isinstance(deed.to, bool) or len(ends) != (2 if deed.to is None else 0):
        raise InvalidRequest("drag needs to (an element), or to_x and to_y in the same picture")
    if deed.to_x is not None and deed.capture_id is None:
        raise InvalidRequest("to_x and to_y need the capture_id of the picture they are in")


async def prepare(context: Context, deed: Deed) -> Prepared:
    """Return the action and the target of a deed.

    Raises:
        InvalidRequest, TargetError: it cannot be meant, or what it means is not there.
    """
    check(deed)
    if deed.do == "click" and deed.target is None and _is_plain(deed):
        return await _plain_click(context, deed)
    if deed.do == "select_text" and deed.text is not None:
        return await _select_text(context, deed)
    action = await _action(context, deed)
    return Prepared(action, *await _aim(context, deed))


async def _action(context: Context, deed: Deed) -> dict[str, Any]:
    """Return the action alone; what was not said is left to its defaults."""
    said: dict[str, Any] = {}
    match deed.do:
        case "drag":
            said = {"to": await _drop(context, deed), "button": deed.button}
        case "scroll":
            amount = 3.0 if deed.amount is None else deed.amount
            said = {"direction": deed.direction, "unit": deed.unit, "amount_milli": max(1, round(amount * 1000))}
        case "press_key":
            return {"kind": "press", "chords": deed.keys}
        case "perform_action":
            return {"kind": "perform", "name": deed.name}
        case "launch_app":
            return {"kind": "app", "op": "launch", "name": deed.name, "arguments": deed.arguments or []}
        case "release_all":
            return {"kind": "abort"}
        case "select_text":
            if deed.start is None or deed.length is None:
                raise InvalidRequest("select_text needs text, or start and length")
            said = {"start": deed.start, "length": deed.length}
        case _:
            names = _RULES[deed.do].needs | _RULES[deed.do].takes - _PLACE - _WHERE
            names = names | {"x", "y"} if deed.do == "window" else names
            said = {_FIELDS.get(name, name): getattr(deed, name) for name in sorted(names - {"target"})}
    return {"kind": deed.do, **{name: value for name, value in said.items() if value is not None}}


async def _aim(context: Context, deed: Deed) -> tuple[dict[str, Any], str | None]:
    if deed.target is not None:
        return await target(context, deed.target, deed)
    if _RULES[deed.do].takes >= _POINT:
        # A picture that places are named in is mostly of the window seen last.
        return ({"kind": "none"} if deed.capture_id is None else _place(deed)), context.window
    if deed.do in {"launch_app", "release_all", "physical_state"}:
        return {"kind": "none"}, None
    surface = await surface_of(context, deed)
    return {"kind": "surface", "ref": surface}, surface


def _place(deed: Deed) -> dict[str, Any]:
    """Return the place a deed names, in the picture it names."""
    if deed.capture_id is None or deed.x is None or deed.y is None:
        raise InvalidRequest(f"{deed.do} needs x, y and the capture_id of the picture they are in")
    return point(deed.capture_id, deed.x, deed.y)


def _is_plain(deed: Deed) -> bool:
    return deed.button in {None, "left"} and deed.count in {None, 1} and not deed.modifiers


async def _plain_click(context: Context, deed: Deed) -> Prepared:
    """A plain click on something pressable is sent to the element itself, once; on anything else it is a click."""
    place = _place(deed)
    found = await context.ask("at", {"point": place})
    context.window = str(found["surface"])
    if found.get("pressable"):
        return Prepared({"kind": "invoke"}, found["element"]["ref"], context.window)
    return Prepared({"kind": "click"}, place, context.window)


async def _select_text(context: Context, deed: Deed) -> Prepared:
    """Find the one place where the text stands, and select it."""
    if deed.target is None or not deed.text:
        raise InvalidRequest("select_text needs a target, and a text that is not empty")
    if deed.start is not None or deed.length is not None:
        raise InvalidRequest("select_text takes text, or start and length")
    found = await one_of(context, deed.target, deed)
    whole = await _whole_text(context, found["surface"], found["label"])
    count = whole.count(deed.text)
    if count != 1:
        raise TargetNotFound(
            f"the text stands there {count} times" if count else "the text does not stand there",
            fix="use start and length in characters" if count else "read it with read_text",
        )
    action = {"kind": "select_text", "start": whole.index(deed.text), "length": len(deed.text)}
    return Prepared(action, found["ref"], found["surface"])


async def _whole_text(context: Context, surface: str, label: str) -> str:
    text = ""
    while True:
        page = await context.ask("read_text", {"surface": surface, "label": label, "start": len(text)})
        text += str(page["text"])
        if len(text) >= page["total_chars"] or not page["text"] or len(text) > limits.VALUE_BYTES_MAX:
            return text


async def _drop(context: Context, deed: Deed) -> dict[str, Any]:
    """Return the place a drag ends at; an element's is the middle of it, in a picture of its window taken now."""
    if deed.to is None or isinstance(deed.to, bool):
        if deed.capture_id is None or deed.to_x is None or deed.to_y is None:
            raise InvalidRequest("to_x and to_y need the capture_id of the picture they are in")
        return point(deed.capture_id, deed.to_x, deed.to_y)
    found = await one_of(context, deed.to, deed)
    bounds = found.get("bounds")
    if bounds is None:
        raise InvalidRequest("what it is to be dragged to has no place on the screen", fix="name a place: to_x, to_y")
    capture = (await context.ask("screenshot", {"surface": found["surface"]}))["capture"]
    x, y, width, height = bounds
    return point(capture["capture_id"], x + width // 2, y + height // 2, "desktop")


async def surface_meant(context: Context, deed: Deed) -> str:
    """Return the window in which a deed takes place, for bringing it to the front."""
    if isinstance(deed.target, str):
        return str((await by_label(context, deed.target))["surface"])
    if deed.target is not None:
        return str((await one_of(context, deed.target, deed))["surface"])
    return await surface_of(context, deed)
