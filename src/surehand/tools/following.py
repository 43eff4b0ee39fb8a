"""What became of an operation, and after an unknown outcome what to check before going on (spec §5.7)."""

from __future__ import annotations

from typing import Any, Final

from surehand.errors import TargetNotFound
from surehand.model.record import Record
from surehand.tools.context import Context
from surehand.tools.outcomes import WORDS
from surehand.tools.seeing import app_word
from surehand.tools.tool import Answer, Tool


class OfOperation(Record, frozen=True, kw_only=True):
    """One operation."""

    operation_id: str


async def operation_status(context: Context, args: OfOperation) -> Answer:
    """Return what is known of an operation of this agent."""
    found = await context.ask("status", {"operation_id": args.operation_id})
    if not found["known"]:
        raise TargetNotFound(
            "no operation of yours has this id, so nothing was done under it",
            fix="for act, ask for one of its steps: ID:0, ID:1, …",
            details={"operation_id": args.operation_id},
        )
    terminal = found.get("terminal") or {}
    receipt = terminal.get("receipt") or {}
    data: dict[str, Any] = {
        "operation_id": args.operation_id,
        "status": "in_flight" if found.get("in_flight") else terminal.get("kind", found["state"]),
        "effect": receipt.get("effect"),
        "code": terminal.get("code"),
        "sent": _sent(found),
        "now": found.get("now"),
        "check": found.get("check"),
        "resolution": found.get("resolution"),
    }
    data = {name: item for name, item in data.items() if item is not None}
    return Answer(data, "\n".join(_lines(data)))


def _sent(found: dict[str, Any]) -> dict[str, Any] | None:
    """Return what was sent: the action without its texts, which are kept as digests, and the application."""
    sent = found.get("sent")
    if sent is None:
        return None
    return {"action": sent["effect"], "app": sent["app"]}


def _lines(data: dict[str, Any]) -> list[str]:
    effect = WORDS.get(data.get("effect", ""), data.get("effect", ""))
    lines = [f"{data['operation_id']}: {data['status']}" + (f" ({effect})" if effect else "")]
    if "code" in data and data["code"] != data["status"]:
        lines.append(f"code: {data['code']}")
    if sent := data.get("sent"):
        lines.append(f"sent: {sent['action']} to {app_word(sent['app']) or 'no application'}")
    if "now" in data:
        lines += _now(data["now"])
    if "resolution" in data:
        lines.append(f"a person looked into it: {data['resolution']}")
    if "check" in data:
        lines.append(f"check: {data['check']}")
    return lines


def _now(now: dict[str, Any]) -> list[str]:
    """Return what the application shows now of what was acted on."""
    from surehand.core.scene.describe import quote  # noqa: PLC0415 - only after an unknown outcome

    if "error" in now:
        return [f"now: the application cannot be read: {now['error']['message']}"]
    lines = [f"now: window {one['surface']} {quote(one['title'])}" for one in now["windows"]]
    for one in now["elements"]:
        value = f" value={quote(one['value'])}" if one.get("value") is not None else ""
        states = [state for state in ("checked", "selected", "expanded", "pressed") if state in one["states"]]
        lines.append(" ".join([f"what was acted on: {one['text']}{value}", *states]))
    if not now["elements"]:
        lines.append(
            "what was acted on is not there as it was; observe the window" if lines else "now: no window of it"
        )
    return lines


TOOLS: Final = (
    Tool(
        name="operation_status",
        title="What became of an operation",
        description=(
            "What was sent, how it ended, and after outcome_unknown what is there now and what to check before it may "
            "be repeated with reconciles."
        ),
        kind="read",
        args=OfOperation,
        output={"type": "object", "properties": {"status": {"type": "string"}, "check": {"type": "string"}}},
        handler=operation_status,
        core=True,
    ),
)
