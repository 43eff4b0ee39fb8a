"""One operation in a few facts, from the events of its stream: for people who look through many of them.

Nothing here is evidence: the events are, and whoever wants to know more reads those. Never raises for what an event
holds: a record of another version is shown as far as it is understood.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from surehand.core.history import (
    APPROVAL_REQUESTED,
    APPROVED,
    CLAIMED,
    DENIED,
    REFUSED,
    RELEASED,
    RESOLVED,
    TERMINAL,
)
from surehand.model.events import Event

#: What an operation can have come to, besides the kinds of a terminal.
REFUSED_OUTCOME: Final = "refused"
OUTCOMES: Final = frozenset(
    {
        "waiting",
        "approved",
        "denied",
        "unanswered",
        "changed",
        "lost",
        "withdrawn",
        "running",
        REFUSED_OUTCOME,
        "succeeded",
        "failed",
        "interrupted",
        "withheld",
        "outcome_unknown",
    }
)
_NOT_A_NO: Final = frozenset({"unanswered", "changed", "lost", "withdrawn"})
_SOUGHT: Final = (
    "operation_id", "principal", "effect", "app", "place", "outcome", "rule", "reason", "code", "approval_id",
    "approver", "standing", "answered",
)  # fmt: skip


def summarise(events: Sequence[Event]) -> dict[str, Any]:
    """Return who, what, where, when, what became of it and by which rule; JSON values, absent where not known."""
    first, last = events[0], events[-1]
    _, principal, operation_id = last.stream.split("/", 2)
    value: dict[str, Any] = {
        "principal": principal,
        "operation_id": operation_id,
        "began_at": first.occurred_at,
        "changed_at": last.occurred_at,
        "seq": last.seq,
        "record_hash": last.record_hash,
        "events": last.stream_version,
    }
    for event in events:
        _take(value, event)
    return {name: one for name, one in value.items() if one not in (None, "", [], ())}


def _take(value: dict[str, Any], event: Event) -> None:
    payload = event.payload
    ended = value.get("ended", False)
    if event.type in (REFUSED, RELEASED):
        if ended:
            return  # a later attempt under a used id changes nothing about what happened
        _named(value, payload, "effect", "app", "place", "rule", "code", "gate", "categories")
        value.update(outcome=REFUSED_OUTCOME, reason=payload.get("message"))
        value["repeats"] = value.get("repeats", 0) + _whole(payload.get("coalesced"))
    elif event.type == APPROVAL_REQUESTED:
        value.update(outcome="waiting", approval_id=payload.get("approval_id"), reason=payload.get("reason"))
        value.update(rule=None, code=None, gate=None, answered=None, approver=None)
        _named(value, payload, "effect", "app", "place", "categories")
    elif event.type == APPROVED and not ended:
        value.update(outcome="approved", approver=payload.get("approver"), answered="yes")
    elif event.type == DENIED and not ended:
        how = str(payload.get("how"))
        value.update(outcome=how if how in _NOT_A_NO else "denied", approver=payload.get("approver"))
        value.update(reason=payload.get("reason"), answered=how if how in _NOT_A_NO else "no")
    elif event.type == CLAIMED:
        _claimed(value, event)
    elif event.type == TERMINAL:
        receipt = _record(payload.get("receipt"))
        value.update(
            outcome=str(payload.get("kind")),
            ended=True,
            code=payload.get("code"),
            verified=receipt.get("effect"),
            warnings=receipt.get("warnings"),
            seq=event.seq,
            record_hash=event.record_hash,
        )
    elif event.type == RESOLVED:
        value["resolved"] = payload.get("verdict")


def _claimed(value: dict[str, Any], event: Event) -> None:
    payload = event.payload
    decision, request = _record(payload.get("decision")), _record(payload.get("request"))
    _named(value, payload, "effect", "app", "place", "approval_id", "standing", "categories")
    value.update(
        outcome="running",
        rule=decision.get("rule"),
        reason=decision.get("reason"),
        revision=decision.get("policy_revision"),
        risk=request.get("risk"),
        session=event.context.get("session"),
        code=None,
        gate=None,
    )


def _named(value: dict[str, Any], payload: dict[str, Any], *names: str) -> None:
    value.update({name: payload[name] for name in names if payload.get(name)})


def _record(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _whole(value: Any) -> int:
    return value if isinstance(value, int) else 0


def fits(
    value: dict[str, Any],
    *,
    app: str = "",
    action: str = "",
    outcome: str = "",
    category: str = "",
    text: str = "",
    since: str = "",
    until: str = "",
) -> bool:
    """Say whether an operation is one of those that are looked for; what is empty is not asked for.

    `app` and `text` may stand anywhere, without case; `action` is an effect or its beginning; times are as the journal
    writes them, which sort as text.
    """
    return (
        (not app or app.casefold() in str(value.get("app", "")).casefold())
        and (not action or str(value.get("effect", "")).startswith(action))
        and (not outcome or value.get("outcome") == outcome)
        and (not category or category in value.get("categories", ()))
        and (not since or value["changed_at"] >= since)
        and (not until or value["began_at"] <= until)
        and (not text or text.casefold() in "\n".join(str(value.get(name, "")) for name in _SOUGHT).casefold())
    )
