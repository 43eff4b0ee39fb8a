"""What the journal keeps of questions to people: that they were asked, and how each ended. No text of a request."""

from __future__ import annotations

from typing import Any, Final

from surehand import limits
from surehand.core.approvers import Proof, how_of
from surehand.core.history import APPROVAL_REQUESTED, APPROVED, DENIED, operation_stream
from surehand.model.approval import ApprovalAnswer, PendingApproval
from surehand.model.events import NewEvent
from surehand.model.record import to_value

_NAMED: Final = ("action_hash", "approval_id", "presentation_hash")
#: What an end that nobody spoke says of who spoke.
_NOBODY: Final[dict[str, Any]] = {"approver": "", "reason": ""}


def requested(pending: PendingApproval) -> NewEvent:
    """Return the event that a question is asked."""
    return _event(
        pending,
        APPROVAL_REQUESTED,
        pending.principal,
        {
            "requested_at_ms": pending.requested_at_ms,
            "expires_at_ms": pending.expires_at_ms,
            "needed": pending.needed,
            "effect": pending.presentation.action,
            "app": pending.presentation.app,
            "place": pending.presentation.place,
            "categories": list(pending.presentation.categories),
            "reason": pending.presentation.reason[: limits.REASON_CHARS_MAX],
        },
    )


def answered(pending: PendingApproval, answer: ApprovalAnswer, proof: Proof | None, now_ms: int) -> NewEvent:
    """Return the event of an answer that counts, with its proof whole: an auditor can check it again.

    What a client only says has none, and `how` says so.
    """
    kind = APPROVED if answer.answer == "approve" else DENIED
    facts: dict[str, Any] = {
        "approver": answer.approver,
        "how": how_of(answer),
        "answered_at_ms": now_ms,
        "reason": answer.reason[: limits.REASON_CHARS_MAX],
    }
    if proof is not None:
        facts["proof"] = {"algorithm": proof.algorithm, "public_key": proof.public_key, "answer": to_value(answer)}
    return _event(pending, kind, answer.approver, facts)


def ended(pending: PendingApproval, how: str, now_ms: int) -> NewEvent:
    """Return the event of an end that is neither a person's yes nor a no: unanswered, changed."""
    return _event(pending, DENIED, "daemon", {**_NOBODY, "how": how, "answered_at_ms": now_ms})


def _event(pending: PendingApproval, kind: str, actor: str, facts: dict[str, Any]) -> NewEvent:
    return NewEvent(
        stream=operation_stream(pending.principal, pending.operation_id),
        type=kind,
        actor=actor,
        payload={
            "action_hash": pending.presentation.action_hash,
            "approval_id": pending.approval_id,
            "presentation_hash": pending.presentation_hash,
            **facts,
        },
    )


def lost(stream: str, asked: dict[str, Any], now_ms: int) -> NewEvent:
    """Return the event that nothing can show a question any more; `asked` is the last event's payload."""
    payload = {**_NOBODY, **{name: asked[name] for name in _NAMED}, "how": "lost", "answered_at_ms": now_ms}
    return NewEvent(stream=stream, type=DENIED, actor="daemon", payload=payload)
