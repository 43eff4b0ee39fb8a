"""What the journal says about an operation: the event vocabulary, the fold over a stream, and idempotency (spec §5.3).

Guarantees: a claim without a terminal or a release reads as `outcome_unknown`, whatever else is known; a stream that
breaks the vocabulary raises instead of being guessed at; a terminal, once folded, is never replaced. Resolutions by a
person stand beside it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Literal

import msgspec

from surehand.core.lifecycle import Gate, Happening, Operation, State
from surehand.errors import JournalRecovery
from surehand.model.events import Event
from surehand.model.outcome import Proof, Terminal
from surehand.model.record import Record, check_hash, check_identifier, convert

REFUSED: Final = "operation.refused.v1"
APPROVAL_REQUESTED: Final = "operation.approval_requested.v1"
APPROVED: Final = "operation.approved.v1"
DENIED: Final = "operation.denied.v1"
CLAIMED: Final = "operation.claimed.v1"
RELEASED: Final = "operation.released.v1"
TERMINAL: Final = "operation.terminal.v1"
RESOLVED: Final = "operation.resolved.v1"

#: Every event type of an operation's stream, and nothing else.
EVENT_TYPES: Final = frozenset({REFUSED, APPROVAL_REQUESTED, APPROVED, DENIED, CLAIMED, RELEASED, TERMINAL, RESOLVED})


class Refused(Record, frozen=True, kw_only=True):
    """Payload of `operation.refused.v1`: an attempt ended before its claim."""

    action_hash: str
    gate: Gate
    code: str


class ApprovalRequested(Record, frozen=True, kw_only=True):
    """Payload of `operation.approval_requested.v1`."""

    action_hash: str
    approval_id: str
    presentation_hash: str
    presentation: dict[str, Any]
    requested_at_ms: int
    expires_at_ms: int
    needed: int


class Answered(Record, frozen=True, kw_only=True):
    """Payload of `operation.approved.v1` and `operation.denied.v1`; `how` says by what proof.

    An approval that nobody answered is denied with `how` "unanswered", which is neither a person's yes nor a no.
    """

    action_hash: str
    approval_id: str
    presentation_hash: str
    approver: str
    how: str
    answered_at_ms: int
    reason: str = ""


class Claimed(Record, frozen=True, kw_only=True):
    """Payload of `operation.claimed.v1`: the point of no silent return.

    `request` is redacted, `reconcile_key` is keyed, `receipt` holds what is already known of the receipt, so that
    recovery can write an honest `outcome_unknown` without asking anybody. `standing` names the standing grant used.
    """

    action_hash: str
    app: str
    place: str
    effect: str
    reconcile_key: str
    permit_nonce: str
    permit_expires_at_ms: int
    decision: dict[str, Any]
    request: dict[str, Any]
    receipt: dict[str, Any]
    claimed_at_ms: int
    reconciles: str | None = None
    approval_id: str | None = None
    standing: str | None = None

    def __post_init__(self) -> None:
        check_hash("action_hash", self.action_hash)
        check_identifier("permit_nonce", self.permit_nonce)


class Released(Record, frozen=True, kw_only=True):
    """Payload of `operation.released.v1`: the claim is given back; provably nothing happened."""

    action_hash: str
    gate: Gate
    code: str


class Ended(Record, frozen=True, kw_only=True):
    """Payload of `operation.terminal.v1`."""

    terminal: Terminal


class Resolved(Record, frozen=True, kw_only=True):
    """Payload of `operation.resolved.v1`: a person looked into an unknown outcome (spec §5.7)."""

    answer: Literal["happened", "not_happened"]
    by: str


_PAYLOADS: Final[dict[str, type[Record]]] = {
    REFUSED: Refused,
    APPROVAL_REQUESTED: ApprovalRequested,
    APPROVED: Answered,
    DENIED: Answered,
    CLAIMED: Claimed,
    RELEASED: Released,
    TERMINAL: Ended,
    RESOLVED: Resolved,
}

#: Where each kind of event leaves a folded attempt. `claimed` waits for its end.
_STATES: Final[dict[str, State]] = {
    REFUSED: State.REFUSED,
    APPROVAL_REQUESTED: State.AWAITING_APPROVAL,
    APPROVED: State.APPROVED,
    DENIED: State.REFUSED,
    CLAIMED: State.CLAIMED,
    RELEASED: State.RELEASED,
}


def operation_stream(principal: str, operation_id: str) -> str:
    """Return the stream of one operation of one principal; `/` is in no identifier, so two never meet."""
    check_identifier("principal", principal)
    check_identifier("operation_id", operation_id)
    return f"operation/{principal}/{operation_id}"


class Stored(Record, frozen=True, kw_only=True):
    """One operation as its stream tells it.

    `operation.state` is the last attempt's; a claim without an end folds to `outcome_unknown` with `terminal` None:
    `interrupted_claim` is then true, and whoever starts writes the terminal from `claim.receipt`.
    """

    operation: Operation
    version: int
    claim: Claimed | None = None
    pending: ApprovalRequested | None = None
    terminal: Terminal | None = None
    proof: Proof | None = None
    resolution: Literal["happened", "not_happened"] | None = None

    @property
    def interrupted_claim(self) -> bool:
        """Whether a claim stands without a terminal or a release."""
        return self.operation.claimed and self.terminal is None and self.operation.state is State.OUTCOME_UNKNOWN

    @property
    def unresolved(self) -> bool:
        """Whether the outcome is unknown and no person has said what happened (spec §5.7)."""
        return self.operation.state is State.OUTCOME_UNKNOWN and self.resolution is None


def fold(principal: str, operation_id: str, events: Iterable[Event]) -> Stored | None:
    """Rebuild an operation from the verified events of its stream, in order; None for an empty stream.

    Raises:
        JournalRecovery: an unknown event type, a broken payload, or an order that no honest writer produces.
    """
    folded: Stored | None = None
    for event in events:
        folded = _fold_one(principal, operation_id, folded, event)
    if folded is None or folded.operation.state is not State.CLAIMED:
        return folded
    return msgspec.structs.replace(folded, operation=folded.operation.step(Happening.LOST, code="outcome_unknown"))


def _fold_one(principal: str, operation_id: str, folded: Stored | None, event: Event) -> Stored:
    kind = _PAYLOADS.get(event.type)
    if kind is None:
        raise JournalRecovery(f"an operation's stream holds an event of type {event.type[:64]}")
    payload = convert(kind, event.payload)
    if isinstance(payload, Ended):
        return _fold_terminal(folded, payload.terminal, event)
    if isinstance(payload, Resolved):
        if folded is None or folded.operation.state is not State.OUTCOME_UNKNOWN:
            raise JournalRecovery("a resolution stands without an unknown outcome")
        return msgspec.structs.replace(folded, version=event.stream_version, resolution=payload.answer)
    if not isinstance(payload, Refused | ApprovalRequested | Answered | Claimed | Released):
        raise JournalRecovery("an event has no fold")  # unreachable while _PAYLOADS and this list agree
    return _fold_attempt(principal, operation_id, folded, payload, event)


def _fold_attempt(
    principal: str,
    operation_id: str,
    folded: Stored | None,
    payload: Refused | ApprovalRequested | Answered | Claimed | Released,
    event: Event,
) -> Stored:
    if folded is not None:
        before = folded.operation
        if before.state is State.CLAIMED:
            if not isinstance(payload, Released):
                raise JournalRecovery("an attempt goes on beside an open claim")
        elif before.terminal_kind is not None and not isinstance(payload, Refused):
            # A refusal may be recorded for an id that has ended (a conflict); it changes nothing.
            raise JournalRecovery("something follows a terminal")
        if before.terminal_kind is not None:
            return msgspec.structs.replace(folded, version=event.stream_version)
    if isinstance(payload, Released) and (folded is None or folded.operation.state is not State.CLAIMED):
        raise JournalRecovery("a release stands without a claim")
    ends_early = isinstance(payload, Refused | Released)
    operation = Operation(
        principal=principal,
        operation_id=operation_id,
        action_hash=payload.action_hash,
        state=_STATES[event.type],
        permit_nonce=payload.permit_nonce if isinstance(payload, Claimed) else None,
        approved=event.type == APPROVED or (isinstance(payload, Claimed) and payload.approval_id is not None),
        claimed=isinstance(payload, Claimed),
        gate=payload.gate if isinstance(payload, Refused | Released) else None,
        code=payload.code if ends_early and isinstance(payload, Refused | Released) else None,
    )
    pending = payload if isinstance(payload, ApprovalRequested) else folded.pending if folded is not None else None
    return Stored(
        operation=operation,
        version=event.stream_version,
        claim=payload if isinstance(payload, Claimed) else None,
        pending=pending if event.type in (APPROVAL_REQUESTED, APPROVED) else None,
    )


def _fold_terminal(folded: Stored | None, terminal: Terminal, event: Event) -> Stored:
    if folded is None or folded.operation.state is not State.CLAIMED:
        raise JournalRecovery("a terminal stands without a claim")
    operation = msgspec.structs.replace(
        folded.operation, state=State(terminal.kind), entered=terminal.kind != "outcome_unknown", code=terminal.code
    )
    return msgspec.structs.replace(
        folded,
        operation=operation,
        version=event.stream_version,
        terminal=terminal,
        proof=Proof(seq=event.seq, record_hash=event.record_hash),
    )


class Fresh(Record, frozen=True, kw_only=True):
    """Nothing was dispatched under this id: decide it as if for the first time."""


class Replay(Record, frozen=True, kw_only=True):
    """The same operation has ended: give the stored terminal again; it needs no authority and no live backend."""

    terminal: Terminal
    proof: Proof | None


class Conflict(Record, frozen=True, kw_only=True):
    """The id stands for something else that was dispatched or is on its way."""

    action_hash: str


class Wait(Record, frozen=True, kw_only=True):
    """The same operation is in flight: wait for its outcome and give that."""


class Unknown(Record, frozen=True, kw_only=True):
    """The same operation was claimed and nobody knows the end: `outcome_unknown`, and nothing is sent."""

    claim: Claimed


Verdict = Fresh | Replay | Conflict | Wait | Unknown


def idempotency(stored: Stored | None, in_flight_hash: str | None, action_hash: str) -> Verdict:
    """Decide what a proposal under a (principal, operation_id) that may have been seen before is (spec §5.3).

    Args:
        stored: From `fold`, None when the journal has nothing.
        in_flight_hash: The action hash of an attempt of this id that runs right now in this process, if any.
        action_hash: Of the proposal.
    """
    if in_flight_hash is not None:
        return Wait() if in_flight_hash == action_hash else Conflict(action_hash=in_flight_hash)
    if stored is None or stored.claim is None or stored.operation.state is State.RELEASED:
        return Fresh()
    if stored.operation.action_hash != action_hash:
        return Conflict(action_hash=stored.operation.action_hash)
    if stored.terminal is not None:
        return Replay(terminal=stored.terminal, proof=stored.proof)
    return Unknown(claim=stored.claim)
