"""What the journal says about an operation: the event vocabulary, the fold over a stream, and idempotency (spec §5.3).

Guarantees: a claim without a terminal or a release reads as `outcome_unknown`, whatever else is known; a stream that
breaks the vocabulary raises instead of being guessed at; a terminal, once folded, is never replaced. What a person
resolved stands beside it. Payloads may carry more fields than are named here: readers of tomorrow's journals must not
break on today's, nor today's on tomorrow's.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any, Final, Literal

import msgspec

from surehand import limits
from surehand.core.lifecycle import ENDED, Happening, Operation, State
from surehand.errors import JournalRecovery
from surehand.model.events import Event
from surehand.model.outcome import Proof, Terminal
from surehand.model.record import Record, check_identifier

REFUSED: Final = "operation.refused.v1"
APPROVAL_REQUESTED: Final = "operation.approval_requested.v1"
APPROVED: Final = "operation.approved.v1"
DENIED: Final = "operation.denied.v1"
CLAIMED: Final = "operation.claimed.v1"
RELEASED: Final = "operation.released.v1"
TERMINAL: Final = "operation.terminal.v1"
RESOLVED: Final = "operation.resolved.v1"


class _Payload(Record, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """What the fold needs of a payload."""


class Refused(_Payload, frozen=True, kw_only=True):
    """Payload of `operation.refused.v1` and `operation.released.v1`: an attempt ended; nothing happened.

    `effect`, `app` and `place` say what was refused, as far as it was known; `rule` names the policy's rule and `what`
    the difference that a fence found. Never with observed text: what the screen said has no place in evidence that is
    kept for ever.
    """

    code: str
    gate: str = ""
    message: str = ""
    action_hash: str = ""
    effect: str = ""
    app: str = ""
    place: str = ""
    rule: str = ""
    what: str = ""
    categories: tuple[str, ...] = ()
    coalesced: int = 0


class ApprovalRequested(_Payload, frozen=True, kw_only=True):
    """Payload of `operation.approval_requested.v1`: what is asked about, and why policy asks; no text of a request."""

    action_hash: str
    approval_id: str
    presentation_hash: str
    requested_at_ms: int
    expires_at_ms: int
    needed: int = 1
    effect: str = ""
    app: str = ""
    place: str = ""
    categories: tuple[str, ...] = ()
    reason: str = ""


class Answered(_Payload, frozen=True, kw_only=True):
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


class Claimed(_Payload, frozen=True, kw_only=True):
    """Payload of `operation.claimed.v1`: the point of no silent return.

    `app`, `place` and `window` let a replay be hashed when the scene is gone. `request` is redacted, `reconcile_key` is
    keyed, `receipt` holds what is already known of the receipt, so that recovery can write an honest `outcome_unknown`
    without asking anybody. `standing` names the standing grant that was used; `reviewed` says
    that the operator's mode answered. `categories` are those that policy was
    told of, proven or raised by what the screen says: names of ours.
    """

    action_hash: str
    app: str = ""
    place: str = ""
    window: str = ""
    effect: str = ""
    reconcile_key: str = ""
    permit_nonce: str = ""
    decision: dict[str, Any] = {}
    request: dict[str, Any] = {}
    receipt: dict[str, Any] = {}
    claimed_at_ms: int = 0
    reconciles: str | None = None
    approval_id: str | None = None
    standing: str | None = None
    reviewed: bool = False
    categories: tuple[str, ...] = ()


class Resolved(_Payload, frozen=True, kw_only=True):
    """Payload of `operation.resolved.v1`: a person looked into an unknown outcome (spec §5.7)."""

    verdict: Literal["happened", "not_happened"]


#: Every event type of an operation's stream with its payload; the terminal event's payload is the terminal itself.
PAYLOADS: Final[dict[str, type[Record]]] = {
    REFUSED: Refused,
    APPROVAL_REQUESTED: ApprovalRequested,
    APPROVED: Answered,
    DENIED: Answered,
    CLAIMED: Claimed,
    RELEASED: Refused,
    TERMINAL: Terminal,
    RESOLVED: Resolved,
}

#: What an event of the stream means to the attempt it belongs to.
_AFTER: Final[dict[str, State]] = {
    REFUSED: State.REFUSED,
    APPROVAL_REQUESTED: State.AWAITING_APPROVAL,
    APPROVED: State.APPROVED,
    DENIED: State.REFUSED,
    CLAIMED: State.CLAIMED,
}

#: What may stand after a claim without being about it.
_BESIDE: Final = frozenset({REFUSED, APPROVED, DENIED})


@functools.lru_cache(maxsize=limits.STREAM_VERSIONS_CACHED)
def operation_stream(principal: str, operation_id: str) -> str:
    """Return the stream of one operation of one principal; `/` is in no identifier, so two never meet."""
    check_identifier("principal", principal)
    check_identifier("operation_id", operation_id)
    return f"operation/{principal}/{operation_id}"


class StoredOperation(Record, frozen=True, kw_only=True):
    """One operation as its stream tells it; `operation` is the last attempt."""

    operation: Operation
    version: int
    claim: Claimed | None = None
    approval: ApprovalRequested | None = None
    terminal: Terminal | None = None
    proof: Proof | None = None
    resolution: Literal["happened", "not_happened"] | None = None

    @property
    def interrupted_claim(self) -> bool:
        """Whether a claim stands without an end: whoever starts must write its `outcome_unknown`."""
        return self.claim is not None and self.terminal is None

    @property
    def unresolved(self) -> bool:
        """Whether the outcome is unknown and no person has said what happened (spec §5.7)."""
        return self.operation.state is State.OUTCOME_UNKNOWN and self.resolution is None


def fold(events: Iterable[Event]) -> StoredOperation | None:
    """Rebuild an operation from the verified events of its stream, in order; None for an empty stream.

    Raises:
        JournalRecovery: an unknown event type, a broken payload, or an order that no honest writer produces.
    """
    stored: StoredOperation | None = None
    for event in events:
        stored = _fold_one(stored, event)
    if stored is None or not stored.interrupted_claim:
        return stored
    lost = stored.operation.step(Happening.LOST, code="outcome_unknown")
    return msgspec.structs.replace(stored, operation=lost)


def _fold_one(stored: StoredOperation | None, event: Event) -> StoredOperation:
    payload = _payload(event)
    if isinstance(payload, Terminal):
        return _ended(stored, payload, event)
    if isinstance(payload, Resolved):
        if stored is None or stored.terminal is None or stored.terminal.kind != "outcome_unknown":
            raise JournalRecovery("a resolution stands without an unknown outcome")
        return msgspec.structs.replace(stored, version=event.stream_version, resolution=payload.verdict)
    if event.type in _BESIDE and stored is not None and stored.claim is not None:
        # A conflicting proposal was refused under the same id, or somebody answered when it was too late: that is no
        # part of the operation that was claimed, and must not keep anybody from reading how it ended.
        return msgspec.structs.replace(stored, version=event.stream_version)
    if stored is not None and stored.terminal is not None:
        raise JournalRecovery(f"{event.type} follows a terminal")
    if (event.type == RELEASED) != (stored is not None and stored.interrupted_claim):
        raise JournalRecovery(f"{event.type} does not follow what the stream says before it")
    if event.type == RELEASED:
        return _released(stored, payload, event)
    return _attempted(stored, payload, event)


def _payload(event: Event) -> Record:
    kind = PAYLOADS.get(event.type)
    if kind is None:
        raise JournalRecovery(f"an operation's stream holds an event of type {event.type[:64]}")
    try:
        return msgspec.convert(event.payload, kind, strict=True)
    except msgspec.ValidationError as error:
        raise JournalRecovery(f"the payload of event {event.seq} ({event.type}) is broken: {error}") from error


def _attempted(stored: StoredOperation | None, payload: Record, event: Event) -> StoredOperation:
    """Start or move an attempt that has no claim yet, or claim it."""
    approval = stored.approval if stored is not None else None
    if isinstance(payload, ApprovalRequested):
        approval = payload
    state = _AFTER[event.type]
    operation = Operation(
        action_hash=getattr(payload, "action_hash", ""),
        state=state,
        approved=event.type == APPROVED or (isinstance(payload, Claimed) and payload.approval_id is not None),
        permit_nonce=payload.permit_nonce if isinstance(payload, Claimed) else None,
        claimed=isinstance(payload, Claimed),
        gate=payload.gate if isinstance(payload, Refused) else None,
        code=payload.code if isinstance(payload, Refused) else None,
    )
    return StoredOperation(
        operation=operation,
        version=event.stream_version,
        claim=payload if isinstance(payload, Claimed) else None,
        approval=None if state in ENDED else approval,
    )


def _released(stored: StoredOperation | None, payload: Record, event: Event) -> StoredOperation:
    if stored is None or not isinstance(payload, Refused):
        raise JournalRecovery("a release stands without a claim")
    operation = msgspec.structs.replace(
        stored.operation, state=State.RELEASED, claimed=False, gate=payload.gate, code=payload.code
    )
    return msgspec.structs.replace(stored, operation=operation, version=event.stream_version, claim=None)


def _ended(stored: StoredOperation | None, terminal: Terminal, event: Event) -> StoredOperation:
    if stored is None or not stored.interrupted_claim:
        raise JournalRecovery("a terminal stands without an open claim")
    operation = msgspec.structs.replace(
        stored.operation, state=State(terminal.kind), entered=terminal.kind != "outcome_unknown", code=terminal.code
    )
    proof = Proof(seq=event.seq, record_hash=event.record_hash)
    return msgspec.structs.replace(
        stored, operation=operation, version=event.stream_version, terminal=terminal, proof=proof
    )


# --- idempotency (spec §5.3) --------------------------------------------------------------------------------------


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


def idempotency(stored: StoredOperation | None, in_flight_hash: str | None, action_hash: str) -> Verdict:
    """Decide what a proposal under a (principal, operation id) that may have been seen before is (spec §5.3).

    Args:
        stored: From `fold`; None when the journal has nothing.
        in_flight_hash: The action hash of an attempt of this id that runs right now in this process, if any. It wins
            over `stored`, which cannot know that its open claim is being worked on.
        action_hash: Of the proposal.
    """
    if in_flight_hash is not None:
        return Wait() if in_flight_hash == action_hash else Conflict(action_hash=in_flight_hash)
    if stored is None or stored.claim is None:
        return Fresh()
    if stored.operation.action_hash != action_hash:
        return Conflict(action_hash=stored.operation.action_hash)
    if stored.terminal is not None:
        return Replay(terminal=stored.terminal, proof=stored.proof)
    return Unknown(claim=stored.claim)
