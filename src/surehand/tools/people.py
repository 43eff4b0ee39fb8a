"""Tools about people: how an approval stands, and asking a person in. They wait and tell; they answer nothing.

No answer here holds a link or a credential. What an operator says to the agent is marked as such and never stands among
text of the screen.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from msgspec import Meta

from surehand import limits
from surehand.client.wire import ConnectionLost
from surehand.errors import Unavailable
from surehand.model.record import Record
from surehand.tools.context import Context
from surehand.tools.outcomes import changed
from surehand.tools.tool import Answer, Tool, guidance

_TEXT: Final = {"type": "string"}
_STATUS: Final = {"type": "object", "properties": {"status": _TEXT}}
_WAIT: Final = Meta(ge=0, le=limits.WAIT_MS_MAX)

_APPROVALS: Final = {
    "pending": "no answer yet; call this again to go on waiting",
    "approved": "approved: repeat the call now, unchanged, with operation_id {operation_id}",
    "denied": "denied: a person said no. Do not ask for the same again",
    "unanswered": "nobody answered in time; repeat the call only when somebody may be there",
    "used": "used: it was carried out already; operation_status says how it ended",
    "withdrawn": "withdrawn: the operation went ahead on another approval",
    "changed": "void: what the call would do has changed. Repeat it with operation_id {operation_id} to ask again",
    "lost": "lost: the daemon restarted. Repeat the call with operation_id {operation_id}; a person is asked again",
}
_REQUESTS: Final = {
    "waiting": "asked; nobody has come yet. You do not act meanwhile: repeat this call to go on waiting, or withdraw",
    "taken": "a person has taken over; repeat this call to wait until they hand back",
    "done": "a person has handed back; go on",
    "declined": "a person declined. Do it another way, or stop",
    "unanswered": "nobody came in time; the request is over",
    "withdrawn": "the request is withdrawn; go on",
    "lost": "the daemon restarted, and with it the request is gone. Repeat this call to ask again",
}


class OfApproval(Record, frozen=True, kw_only=True):
    """An approval."""

    approval_id: str | None = None
    operation_id: Annotated[str | None, Meta(description="or of this operation; neither: all open")] = None
    wait_ms: Annotated[int, _WAIT] = limits.HUMAN_WAIT_MS_DEFAULT


class Request(Record, frozen=True, kw_only=True):
    """A request to a person."""

    reason: Annotated[str, Meta(description="what the person should do, in plain words")]
    kind: Literal["captcha", "second_factor", "choice", "other"] = "other"
    wait_ms: Annotated[int, _WAIT] = limits.HUMAN_WAIT_MS_DEFAULT
    withdraw: Annotated[bool, Meta(description="take the same request back")] = False


async def approval_status(context: Context, args: OfApproval) -> Answer:
    """Wait for an answer and say how it stands."""
    params: dict[str, Any] = {"wait_ms": args.wait_ms}
    params |= {name: text for name in ("approval_id", "operation_id") if (text := getattr(args, name)) is not None}
    await context.progress("waiting for a person's answer", 0, args.wait_ms)
    found = await context.ask("approval", params, wait_ms=args.wait_ms)
    if "approvals" in found:
        lines = [f"{one['approval_id']} of {one['operation_id']}: {one['status']}" for one in found["approvals"]]
        return Answer(
            {"status": "listed", **found}, "\n".join([*(lines or ["no approval is open"]), *held_lines(found)])
        )
    lines = [_APPROVALS[found["status"]].format(operation_id=found.get("operation_id"))]
    if found.get("needed", 1) > 1:
        lines.append(f"{found['given']} of {found['needed']} people have agreed")
    if reason := found.get("operator_reason"):
        lines.append(guidance(reason))
    return Answer(found, "\n".join(lines))


def held_lines(found: dict[str, Any]) -> list[str]:
    """Return what is said of a hold that an operator put on the session."""
    if (held := found.get("held")) is None:
        return []
    what = "paused by the operator" if held["what"] == "paused" else "a person has taken over this desktop"
    lines = [f"{what}: no action until that ends. approval_status without a name waits for it"]
    return [*lines, guidance(held["operator_reason"])] if held.get("operator_reason") else lines


async def request_human(context: Context, args: Request) -> Answer:
    """Ask a person in and wait until they hand back.

    Raises:
        Unavailable: the connection broke; asking again with the same words is safe.
    """
    words = f"{args.kind}:{args.reason}"
    params: dict[str, Any] = {"reason": args.reason, "kind": args.kind, "wait_ms": args.wait_ms}
    if args.withdraw:
        params |= {"withdraw": True, "wait_ms": 0}
    if (known := context.asked.get(words)) is not None:
        params["request_id"] = known
    await context.progress("waiting for a person", 0, args.wait_ms)
    try:
        found = await _ask(context, params)
        if known is not None and found["status"] == "withdrawn" and not args.withdraw:
            # It ended with the session that had asked; this is a new one.
            found = await _ask(context, {name: value for name, value in params.items() if name != "request_id"})
    except ConnectionLost as error:
        raise Unavailable(
            "the connection to the daemon broke, and with it the request", fix="repeat this call", retry_safe=True
        ) from error
    if found["status"] in {"waiting", "taken"}:
        context.asked[words] = found["request_id"]
    else:
        context.asked.pop(words, None)
    after = found.pop("after", None) or {}
    more, texts = changed(context, after)
    lines = [_REQUESTS[found["status"]]]
    if note := found.get("operator_note"):
        lines.append(guidance(note))
    return Answer({**found, **more}, "\n".join([*lines, *texts]))


async def _ask(context: Context, params: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = await context.ask("human", params, wait_ms=params["wait_ms"] + limits.SETTLE_BUSY_CAP_MS)
    return found


TOOLS: Final = (
    Tool(
        name="approval_status",
        title="Wait for approval",
        description="How an approval stands; waits for a person. approved: repeat the call, unchanged, at once.",
        kind="read",
        args=OfApproval,
        output=_STATUS,
        handler=approval_status,
        core=True,
    ),
    Tool(
        name="request_human",
        title="Ask a person in",
        description=(
            "Hand the desktop to a person for a captcha, a second factor, a choice that is not yours. You cannot act "
            "until they hand back; then you get their note and what changed."
        ),
        kind="session",
        args=Request,
        output=_STATUS,
        handler=request_human,
    ),
)
