"""Tools that act: one fenced operation each, its receipt, and what it changed.

Each takes an element or a window, and may be told what to read back (`expect`), the operation's id and its deadline.
The daemon decides, fences, dispatches at most once and verifies; here arguments become one strict request and the
reply becomes an answer.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from msgspec import Meta

from surehand import limits
from surehand.errors import InvalidRequest
from surehand.model.record import Record
from surehand.tools.context import Context
from surehand.tools.outcomes import CHANGE, answer_of
from surehand.tools.places import Element, Find, Where, surface_of, target
from surehand.tools.tool import Answer, Tool


class Expect(Record, frozen=True, kw_only=True):
    """What must be true afterwards; all that is said must hold."""

    value: Annotated[str | None, Meta(description="the element's value")] = None
    state: dict[str, bool] | None = None
    text: Annotated[str | None, Meta(description="in the element's text")] = None
    appears: Find | None = None
    disappears: Find | None = None
    title: Annotated[str | None, Meta(description="in the window's title")] = None

    def verification(self) -> dict[str, Any]:
        """Return the verification's JSON value (spec §9)."""
        parts: list[dict[str, Any]] = []
        if self.value is not None:
            parts.append({"kind": "value", "equals": self.value})
        if self.state is not None:
            parts.append({"kind": "state", "states": self.state})
        if self.text is not None:
            parts.append({"kind": "text", "contains": self.text})
        if self.appears is not None:
            parts.append({"kind": "appears", "query": self.appears.query()})
        if self.disappears is not None:
            parts.append({"kind": "disappears", "query": self.disappears.query()})
        if self.title is not None:
            parts.append({"kind": "title", "contains": self.title})
        if not parts:
            raise InvalidRequest("expect says nothing; leave it out for the natural check")
        return parts[0] if len(parts) == 1 else {"kind": "all", "parts": parts}


class Acting(Where, frozen=True, kw_only=True):
    """What every acting tool takes."""

    expect: Annotated[Expect | Literal["none"] | None, Meta(description="what to read back; none: do not check")] = None
    operation_id: Annotated[str | None, Meta(description="yours, to repeat safely: the same id never acts twice")] = (
        None
    )
    deadline_ms: Annotated[int, Meta(ge=1, le=limits.DEADLINE_MS_MAX)] = limits.DEADLINE_MS_DEFAULT
    reconciles: Annotated[str | None, Meta(description="an operation of unknown outcome you have looked into")] = None


class OnElement(Acting, frozen=True, kw_only=True):
    """Acts on one element."""

    target: Annotated[Element, Meta(description='a label like "e17", or what it is')]


class SetValue(OnElement, frozen=True, kw_only=True):
    """Replaces a value."""

    value: str


class Toggle(OnElement, frozen=True, kw_only=True):
    """Brings to a state."""

    to: bool


async def run(context: Context, args: Acting, action: dict[str, Any], aim: dict[str, Any]) -> Answer:
    """Present one operation and say what came of it."""
    request: dict[str, Any] = {
        "operation_id": context.operation_id(args.operation_id, None),
        "action": action,
        "target": aim,
        "deadline_ms": args.deadline_ms,
    }
    if args.expect is not None:
        request["verification"] = {"kind": "none"} if isinstance(args.expect, str) else args.expect.verification()
    if args.reconciles is not None:
        request["reconciles"] = args.reconciles
    reply = await context.act(request)
    return answer_of(context, reply)


async def invoke(context: Context, args: OnElement) -> Answer:
    """Activate an element."""
    return await run(context, args, {"kind": "invoke"}, await target(context, args.target, args))


async def set_value(context: Context, args: SetValue) -> Answer:
    """Replace a value."""
    return await run(
        context, args, {"kind": "set_value", "value": args.value}, await target(context, args.target, args)
    )


async def toggle(context: Context, args: Toggle) -> Answer:
    """Bring a check box or switch to a state."""
    return await run(context, args, {"kind": "toggle", "to": args.to}, await target(context, args.target, args))


async def focus_window(context: Context, args: Acting) -> Answer:
    """Bring a window to the front."""
    aim = {"kind": "surface", "ref": await surface_of(context, args)}
    return await run(context, args, {"kind": "window", "op": "focus"}, aim)


TOOLS: Final = (
    Tool(
        name="invoke",
        title="Press",
        description="Activate an element as a person would: press a button, open a menu, follow a link.",
        kind="act",
        args=OnElement,
        output=CHANGE,
        handler=invoke,
        core=True,
        destructive=True,
    ),
    Tool(
        name="set_value",
        title="Fill in",
        description="Replace the whole value of a field, slider or spin button; read back exactly.",
        kind="act",
        args=SetValue,
        output=CHANGE,
        handler=set_value,
        core=True,
        destructive=True,
    ),
    Tool(
        name="toggle",
        title="Tick or untick",
        description="Bring a check box, radio button or switch to a state; already there is a success.",
        kind="act",
        args=Toggle,
        output=CHANGE,
        handler=toggle,
    ),
)
