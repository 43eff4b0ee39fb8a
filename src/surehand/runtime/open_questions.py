"""One open question to people in this run of the daemon, and how it stands; see `runtime.approvals`."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from surehand.model.approval import CLIENT_ASSERTED, ApprovalAnswer, PendingApproval
from surehand.runtime.run import Run


@dataclass(slots=True)
class Question:
    """One open question in this run of the daemon."""

    pending: PendingApproval
    #: Bytes of what is shown.
    size: int
    #: Answers that count.
    answers: list[ApprovalAnswer] = field(default_factory=list)
    #: Those, and the ones whose record is on its way to the disk.
    given: list[ApprovalAnswer] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    #: Callers that wait for the answer.
    waiters: int = 0
    #: A claim is using the yes.
    taken: bool = False
    #: Steps of a plan that have used the yes.
    used: set[int] = field(default_factory=set)
    #: Looks at it when its time is over.
    timer: asyncio.TimerHandle | None = None

    @property
    def denied(self) -> bool:
        """Whether somebody said no."""
        return any(one.answer == "deny" for one in self.answers)

    def is_of(self, run: Run) -> bool:
        """Say whether it is about this operation."""
        return (self.pending.principal, self.pending.operation_id) == (run.principal, run.operation_id)


def is_asserted(answer: ApprovalAnswer) -> bool:
    """Say whether an answer is what a client only says."""
    return answer.key_id == CLIENT_ASSERTED


def standing_of(question: Question, status: str) -> dict[str, Any]:
    """Return what the proposer may know of how its question stands: nothing it could answer with."""
    pending = question.pending
    yes = {answer.approver for answer in question.answers if answer.answer == "approve"}
    value: dict[str, Any] = {
        "approval_id": pending.approval_id,
        "operation_id": pending.operation_id,
        "status": status,
        "needed": pending.needed,
        "given": len(yes),
        "expires_at_ms": pending.expires_at_ms,
    }
    denial = next((answer for answer in question.answers if answer.answer == "deny"), None)
    if denial is not None and denial.reason:
        value["operator_reason"] = denial.reason
    return value
