"""Presents one operation to the daemon and says what came of it; shared by every tool that acts.

The daemon decides, fences, dispatches at most once and verifies; here arguments become one strict request and the
reply becomes an answer. One call presents one operation, with two exceptions: typing that is refused because the
keyboard is elsewhere first gives the window and the element the focus, each as an operation of its own below the same
id, and then is presented once more, which the answer names; and what was refused because it fits a shown element and
hidden ones is presented once more for the shown one.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, NamedTuple

from msgspec import Meta, structs

from surehand import limits
from surehand.client.session import reply_of_status
from surehand.errors import InvalidRequest, TargetError
from surehand.model.record import Record
from surehand.tools.context import Context
from surehand.tools.deeds import Deed, Prepared, prepare, surface_meant
from surehand.tools.outcomes import answer_of
from surehand.tools.picturing import with_picture
from surehand.tools.places import Find, Where
from surehand.tools.schema import brief
from surehand.tools.tool import Answer

Change = Literal["diff", "full", "none"]
Deadline = Annotated[int, Meta(ge=1, le=limits.DEADLINE_MS_MAX)]
Imaged = Annotated[bool, Meta(description="and a picture")]

_NONE_OR_MANY: Final = frozenset(["target_not_found", "ambiguous_target", "conflict"])
_TYPING: Final = frozenset(["type_text", "press_key"])


class Expect(Record, frozen=True, kw_only=True):
    """What must be true afterwards; all that is said must hold."""

    value: Annotated[str | None, Meta(description="the element's value")] = None
    state: dict[str, bool] | None = None
    text: Annotated[str | None, Meta(description="in the element's text")] = None
    appears: Find | None = None
    disappears: Find | None = None
    title: Annotated[str | None, Meta(description="in the window's title")] = None

    def verification(self) -> dict[str, Any]:
        """Return the verification's JSON value (spec §9).

        Raises:
            InvalidRequest: it says nothing.
        """
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


Expected = Expect | Literal["none"] | None


class Acting(Where, frozen=True, kw_only=True):
    """What every acting tool takes. The server's instructions say what it means, once for all tools."""

    window: str | None = None
    app: str | None = None
    expect: Annotated[Expected, brief('"none" or as in act', "string", "object")] = None
    operation_id: str | None = None
    deadline_ms: Deadline = limits.DEADLINE_MS_DEFAULT
    reconciles: str | None = None
    change: Change = "diff"
    image: Imaged = False


class Terms(NamedTuple):
    """How one operation is presented: its id, and what goes with it."""

    operation_id: str
    #: Whether the caller chose the id, so that it may have been presented before.
    chosen: bool
    deadline_ms: int = limits.DEADLINE_MS_DEFAULT
    expect: Expect | str | None = None
    reconciles: str | None = None
    #: `later` leaves what changed to a question after several operations; `windows` names the new ones and no more.
    change: Change | Literal["later", "windows"] = "none"

    def request(self, prepared: Prepared) -> dict[str, Any]:
        """Return the request's JSON value."""
        value: dict[str, Any] = {
            "operation_id": self.operation_id,
            "action": prepared.action,
            "target": prepared.target,
            "deadline_ms": self.deadline_ms,
        }
        if self.expect is not None:
            value["verification"] = {"kind": "none"} if isinstance(self.expect, str) else self.expect.verification()
        if self.reconciles is not None:
            value["reconciles"] = self.reconciles
        return value


async def run(context: Context, args: Acting, deed: Deed) -> Answer:
    """Present one deed and say what came of it."""
    terms = Terms(
        operation_id=context.operation_id(args.operation_id),
        chosen=args.operation_id is not None,
        deadline_ms=args.deadline_ms,
        expect=args.expect,
        reconciles=args.reconciles,
        change=args.change,
    )
    reply = await present(context, deed, terms)
    answer = answer_of(context, reply)
    if args.image and happened(reply):
        answer = await with_picture(context, answer, window_after(context, reply))
    return answer


def happened(reply: dict[str, Any]) -> bool:
    """Return whether anything was dispatched, so that there may be something to see."""
    return reply.get("terminal") is not None


def window_after(context: Context, reply: dict[str, Any]) -> str | None:
    """Return the window an effect led to: the one it opened, else the one it was aimed at; none where that closed.

    Where the reply says what changed, that has been taken up (`outcomes.changed`), and the agent is there now.
    """
    after = (reply.get("output") or {}).get("after") or {}
    if after.keys() & {"surface", "windows", "opened", "closed"}:
        return context.window
    return reply.get("window")


async def present(context: Context, deed: Deed, terms: Terms) -> dict[str, Any]:
    """Return the reply to one deed.

    Raises:
        SurehandError: nothing was presented, or the daemon cannot say what became of it.
    """
    try:
        prepared = await prepare(context, deed)
    except TargetError:
        # What it was aimed at may be gone because it has happened already.
        ended = await _ended(context, terms.operation_id) if terms.chosen else None
        if ended is None:
            raise
        return ended
    reply = await _send(context, prepared, terms)
    if (narrowed := _narrowed(deed, reply)) is not None:
        shown = await _send(context, await prepare(context, narrowed), terms)
        if _code(shown) not in _NONE_OR_MANY:
            deed, reply = narrowed, shown
    if deed.do in _TYPING and _code(reply) == "focus_required":
        reply = await _with_focus(context, deed, terms, reply)
    return reply


async def _ended(context: Context, operation_id: str) -> dict[str, Any] | None:
    return reply_of_status(await context.ask("status", {"operation_id": operation_id}))


async def _send(context: Context, prepared: Prepared, terms: Terms) -> dict[str, Any]:
    params: dict[str, Any] = {"request": terms.request(prepared)}
    if terms.change != "none":
        params["observe_after"] = terms.change if terms.change in ("later", "windows") else True
        params["full"] = terms.change == "full"
    wait_ms = terms.deadline_ms + limits.LAUNCH_WINDOW_MS_MAX
    reply: dict[str, Any] = await context.session.act("act", params, terms.operation_id, wait_ms=wait_ms)
    return {**reply, "window": prepared.window}


def _narrowed(deed: Deed, reply: dict[str, Any]) -> Deed | None:
    """Return the deed for what shows on the screen, where several elements are meant and nothing was said of that.

    A person who says "the text field" means none that is hidden. `conflict`: it may have been narrowed when it ran.
    """
    if _code(reply) not in {"ambiguous_target", "conflict"} or not isinstance(deed.target, Find):
        return None
    shown = deed.target.shown()
    return None if shown is None else structs.replace(deed, target=shown)


def _code(reply: dict[str, Any]) -> str:
    return str((reply.get("error") or {}).get("code", "")) if reply["status"] == "refused" else ""


async def _with_focus(context: Context, deed: Deed, terms: Terms, refused: dict[str, Any]) -> dict[str, Any]:
    """Give window and element the keyboard, then present the deed again, once.

    Each is decided, fenced and recorded like any operation; the first that does not succeed is the answer.
    """
    window = await surface_meant(context, deed)
    done: list[str] = []
    steps: list[tuple[str, Deed]] = [("window", Deed(do="window", op="focus", window=window))]
    if deed.target is not None:
        steps.append(("focus", Deed(do="focus", target=deed.target, window=deed.window, app=deed.app)))
    for word, step in steps:
        reply = await _focus(context, step, word, terms)
        if reply["status"] == "approval_required":
            return {**reply, "operation_id": terms.operation_id}
        if reply["status"] != "succeeded":
            return {**refused, "prepared": done}
        done.append(word)
    reply = await _send(context, await prepare(context, deed), terms)
    return {**reply, "prepared": done}


async def _focus(context: Context, step: Deed, word: str, terms: Terms) -> dict[str, Any]:
    own = Terms(f"{terms.operation_id}.{word}", chosen=True, deadline_ms=terms.deadline_ms)
    reply = await _send(context, await prepare(context, step), own)
    if _code(reply) == "unsupported_action" and step.do == "focus":
        # GTK 4 gives no element the focus; a click does, as an operation of its own.
        click = Deed(do="click", target=step.target, window=step.window, app=step.app)
        own = own._replace(operation_id=f"{own.operation_id}.click")
        reply = await _send(context, await prepare(context, click), own)
    return reply
