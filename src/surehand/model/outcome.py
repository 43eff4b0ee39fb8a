"""What became of a request: refusals, receipts, terminals and the reply (spec §3.5)."""

from __future__ import annotations

from typing import Any, Final, Literal

from surehand.model.record import Record

TerminalKind = Literal["succeeded", "failed", "interrupted", "withheld", "outcome_unknown"]
Effect = Literal["verified", "executed_unverified", "unknown"]

#: Carried by every outcome_unknown, word for word.
UNKNOWN_STATEMENT: Final = (
    "The outcome was not recorded. Verify the actual state before redoing anything that has side effects."
)


class Evidence(Record, frozen=True, kw_only=True):
    """Hashes of what was read before and after; no content."""

    before: str | None = None
    after: str | None = None


class Receipt(Record, frozen=True, kw_only=True):
    """What is known about a finished operation. No content of the screen or of the request."""

    operation_id: str
    action_hash: str
    action: str
    principal: str
    started_at_ms: int
    finished_at_ms: int
    backend: str
    route: str
    isolation: Literal["isolated", "display_only", "shared"]
    interaction_mode: Literal["interactive", "background_only"]
    context_preservation: Literal["not_applicable", "unchanged", "changed_by_person", "changed", "unreadable"]
    effect: Effect
    evidence: Evidence
    authority_mode: Literal["host", "daemon"]
    trust_level: Literal["A", "B"]
    decision_id: str
    resolved: dict[str, Any] = {}
    warnings: tuple[str, ...] = ()


class Terminal(Record, frozen=True, kw_only=True):
    """The one end of a dispatched operation. `code` names why it is not a success."""

    kind: TerminalKind
    receipt: Receipt
    code: str | None = None
    message: str | None = None
    retry_safe: bool = False


class Proof(Record, frozen=True, kw_only=True):
    """Where the terminal stands in the journal; attached to replies, never stored inside a terminal."""

    seq: int
    record_hash: str


class Reply(Record, frozen=True, kw_only=True):
    """What the caller gets.

    `status` is a terminal kind, `approval_required`, or `refused`. `error` has the shape of `errors.to_value`.
    `diff` and `scene` are observed data that passed release.
    """

    operation_id: str
    status: Literal["succeeded", "failed", "interrupted", "withheld", "outcome_unknown", "approval_required", "refused"]
    terminal: Terminal | None = None
    error: dict[str, Any] | None = None
    approval: dict[str, Any] | None = None
    replayed: bool = False
    proof: Proof | None = None
    output: dict[str, Any] | None = None
