"""What an approver sees and signs, and the answer (spec §6.4)."""

from __future__ import annotations

from typing import Any, Literal

from surehand.model.record import Record


class Presentation(Record, frozen=True, kw_only=True):
    """Exactly what the approver sees; the hash of these canonical bytes is what is signed.

    Scene, generation and label are left out on purpose, so that looking again does not void an approval, while any
    change of meaning does. Text is escaped (control and bidi characters) and secrets are masked before it gets here.
    """

    version: Literal[1] = 1
    principal: str
    app: str
    place: str
    element: str
    context: str
    action: str
    parameters: dict[str, Any]
    risk: str
    categories: tuple[str, ...]
    reason: str
    action_hash: str
    crop_hash: str | None = None
    steps: tuple[str, ...] = ()


class PendingApproval(Record, frozen=True, kw_only=True):
    """An unanswered question. `expires_at_ms` is wall-clock."""

    approval_id: str
    operation_id: str
    principal: str
    presentation: Presentation
    presentation_hash: str
    requested_at_ms: int
    expires_at_ms: int
    needed: int = 1


class ApprovalAnswer(Record, frozen=True, kw_only=True):
    """An approver's signed answer.

    `signature` is Ed25519 over `surehand/approval-answer/v1`, a zero byte, the canonical bytes of the other fields.
    """

    approval_id: str
    presentation_hash: str
    answer: Literal["approve", "deny"]
    approver: str
    key_id: str
    answered_at_ms: int
    expires_at_ms: int
    reason: str = ""
    signature: str
