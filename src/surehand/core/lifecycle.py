"""The life of one attempt at an operation: a table of states and happenings, and the reducer over it (spec §5.2).

Guarantees, each a property test: no path reaches `entered` without a permit and a durable claim; an attempt that
entered has exactly one terminal; nothing follows a terminal, a refusal or a release. What the table does not list
raises `IllegalTransition`. Diagrams in the docs are generated from the table by `mermaid` and `table_text`.
"""

from __future__ import annotations

import functools
from enum import StrEnum
from typing import Final, NoReturn

import msgspec

from surehand.errors import InternalError
from surehand.model.outcome import TerminalKind
from surehand.model.record import Record


class Gate(StrEnum):
    """The steps of spec §5.1, in order. Every refusal names one."""

    SHAPE = "shape"
    SESSION = "session"
    IDEMPOTENCY = "idempotency"
    AUTHORITY = "authority"
    POLICY = "policy"
    RISK_REVIEW = "risk_review"
    APPROVAL = "approval"
    POLICY_AGAIN = "policy_again"
    FIRST_FENCE = "first_fence"
    PERMIT = "permit"
    CLAIM = "claim"
    DEADLINE = "deadline"
    FINAL_FENCE = "final_fence"
    DISPATCH = "dispatch"
    CONTEXT = "context"
    VERIFY = "verify"
    QUARANTINE = "quarantine"
    RELEASE = "release"
    TERMINAL = "terminal"
    REPLY = "reply"


GATES: Final[tuple[Gate, ...]] = tuple(Gate)


class State(StrEnum):
    """Where an attempt stands; named for what is true of it."""

    PROPOSED = "proposed"
    SHAPED = "shaped"
    IDENTIFIED = "identified"
    FRESH = "fresh"
    AUTHORISED = "authorised"
    UNDER_REVIEW = "under_review"
    AWAITING_APPROVAL = "awaiting_approval"
    APPROVED = "approved"
    ALLOWED = "allowed"
    FENCED = "fenced"
    PERMITTED = "permitted"
    CLAIMED = "claimed"
    CLEARED = "cleared"
    ENTERED = "entered"
    RETURNED = "returned"
    SAMPLED = "sampled"
    READ_BACK = "read_back"
    QUARANTINED = "quarantined"
    SETTLED = "settled"
    CONCEALED = "concealed"
    # Ends of an attempt that burn nothing: the same id may be tried again.
    REFUSED = "refused"
    RELEASED = "released"
    # Terminals.
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    WITHHELD = "withheld"
    OUTCOME_UNKNOWN = "outcome_unknown"


class Happening(StrEnum):
    """What can happen to an attempt."""

    SHAPE_CHECKED = "shape_checked"
    SESSION_BOUND = "session_bound"
    FOUND_FRESH = "found_fresh"
    AUTHORISED = "authorised"
    POLICY_ALLOWED = "policy_allowed"
    REVIEW_ASKED = "review_asked"
    APPROVAL_ASKED = "approval_asked"
    APPROVED = "approved"
    FENCE_HELD = "fence_held"
    PERMIT_MINTED = "permit_minted"
    CLAIM_STORED = "claim_stored"
    DEADLINE_HELD = "deadline_held"
    ENTERED = "entered"
    RETURNED = "returned"
    CONTEXT_SAMPLED = "context_sampled"
    READ_BACK = "read_back"
    OUTPUT_HELD = "output_held"
    OUTPUT_RELEASED = "output_released"
    OUTPUT_WITHHELD = "output_withheld"
    REFUSED = "refused"
    RELEASED = "released"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    WITHHELD = "withheld"
    LOST = "lost"


_S: Final = State
_H: Final = Happening

#: After entering, what came of it can always be lost; it can never be undone or refused.
_LOST: Final = {_H.LOST: _S.OUTCOME_UNKNOWN}
#: Known once the adapter returned: it proved that nothing happened, or the person took over.
_CUT_SHORT: Final = {_H.FAILED: _S.FAILED, _H.INTERRUPTED: _S.INTERRUPTED, **_LOST}
_REFUSAL: Final = {_H.REFUSED: _S.REFUSED}

#: The machine. A missing entry is an illegal move.
TRANSITIONS: Final[dict[State, dict[Happening, State]]] = {
    _S.PROPOSED: {_H.SHAPE_CHECKED: _S.SHAPED, **_REFUSAL},
    _S.SHAPED: {_H.SESSION_BOUND: _S.IDENTIFIED, **_REFUSAL},
    _S.IDENTIFIED: {_H.FOUND_FRESH: _S.FRESH, **_REFUSAL},
    _S.FRESH: {_H.AUTHORISED: _S.AUTHORISED, **_REFUSAL},
    _S.AUTHORISED: {
        _H.POLICY_ALLOWED: _S.ALLOWED,
        _H.REVIEW_ASKED: _S.UNDER_REVIEW,
        _H.APPROVAL_ASKED: _S.AWAITING_APPROVAL,
        **_REFUSAL,
    },
    _S.UNDER_REVIEW: {_H.APPROVED: _S.APPROVED, _H.APPROVAL_ASKED: _S.AWAITING_APPROVAL, **_REFUSAL},
    _S.AWAITING_APPROVAL: {_H.APPROVED: _S.APPROVED, **_REFUSAL},
    # Approval never skips policy: it is asked again, and may still say no.
    _S.APPROVED: {_H.POLICY_ALLOWED: _S.ALLOWED, **_REFUSAL},
    _S.ALLOWED: {_H.FENCE_HELD: _S.FENCED, **_REFUSAL},
    _S.FENCED: {_H.PERMIT_MINTED: _S.PERMITTED, **_REFUSAL},
    _S.PERMITTED: {_H.CLAIM_STORED: _S.CLAIMED, **_REFUSAL},
    # From the claim on an attempt is not refused but released, durably; a crash here is unknown to whoever restarts.
    _S.CLAIMED: {_H.DEADLINE_HELD: _S.CLEARED, _H.RELEASED: _S.RELEASED, **_LOST},
    _S.CLEARED: {_H.ENTERED: _S.ENTERED, _H.RELEASED: _S.RELEASED, **_LOST},
    _S.ENTERED: {_H.RETURNED: _S.RETURNED, **_LOST},
    _S.RETURNED: {_H.CONTEXT_SAMPLED: _S.SAMPLED, **_CUT_SHORT},
    _S.SAMPLED: {_H.READ_BACK: _S.READ_BACK, **_CUT_SHORT},
    _S.READ_BACK: {_H.OUTPUT_HELD: _S.QUARANTINED, **_CUT_SHORT},
    _S.QUARANTINED: {_H.OUTPUT_RELEASED: _S.SETTLED, _H.OUTPUT_WITHHELD: _S.CONCEALED, **_LOST},
    _S.SETTLED: {_H.SUCCEEDED: _S.SUCCEEDED, **_LOST},
    _S.CONCEALED: {_H.WITHHELD: _S.WITHHELD, **_LOST},
    _S.REFUSED: {},
    _S.RELEASED: {},
    _S.SUCCEEDED: {},
    _S.FAILED: {},
    _S.INTERRUPTED: {},
    _S.WITHHELD: {},
    _S.OUTCOME_UNKNOWN: {},
}

#: The terminal kind of each terminal state (spec §3.5).
TERMINALS: Final[dict[State, TerminalKind]] = {
    _S.SUCCEEDED: "succeeded",
    _S.FAILED: "failed",
    _S.INTERRUPTED: "interrupted",
    _S.WITHHELD: "withheld",
    _S.OUTCOME_UNKNOWN: "outcome_unknown",
}

#: The happening that brings an attempt to each terminal kind.
ENDINGS: Final[dict[TerminalKind, Happening]] = {
    "succeeded": _H.SUCCEEDED,
    "failed": _H.FAILED,
    "interrupted": _H.INTERRUPTED,
    "withheld": _H.WITHHELD,
    "outcome_unknown": _H.LOST,
}

#: The gates at which an attempt in a state is refused, or released, when the next step does not hold.
GATES_OF: Final[dict[State, tuple[Gate, ...]]] = {
    _S.PROPOSED: (Gate.SHAPE,),
    _S.SHAPED: (Gate.SESSION,),
    _S.IDENTIFIED: (Gate.IDEMPOTENCY,),
    _S.FRESH: (Gate.AUTHORITY,),
    _S.AUTHORISED: (Gate.POLICY,),
    _S.UNDER_REVIEW: (Gate.RISK_REVIEW,),
    _S.AWAITING_APPROVAL: (Gate.APPROVAL,),
    _S.APPROVED: (Gate.POLICY_AGAIN,),
    _S.ALLOWED: (Gate.FIRST_FENCE,),
    _S.FENCED: (Gate.PERMIT,),
    _S.PERMITTED: (Gate.CLAIM,),
    _S.CLAIMED: (Gate.DEADLINE,),
    # Entering runs the fence, then looks once more at permit, cancellation and deadline.
    _S.CLEARED: (Gate.FINAL_FENCE, Gate.PERMIT, Gate.DEADLINE, Gate.DISPATCH),
}

#: What has no row: no effect can follow it any more.
ENDED: Final = frozenset(state for state, row in TRANSITIONS.items() if not row)


# By names of their own: a member that is looked up in its class takes as long as a step.
_FOUND_FRESH: Final = _H.FOUND_FRESH
_APPROVED: Final = _H.APPROVED
_PERMIT_MINTED: Final = _H.PERMIT_MINTED
_CLAIM_STORED: Final = _H.CLAIM_STORED
_ENTERED: Final = _H.ENTERED

#: What changes more than the state, or needs more than the table to be legal.
_BEARING: Final = frozenset({_FOUND_FRESH, _APPROVED, _PERMIT_MINTED, _CLAIM_STORED, _ENTERED, _H.REFUSED, _H.RELEASED})


#: Ways through the table that are remembered; the code takes a handful.
_WAYS_MAX: Final = 64


class IllegalTransition(InternalError):
    """The table has no such move: a defect of ours, stopped before it can become an effect."""


class Operation(Record, frozen=True, kw_only=True):
    """One attempt, as a frozen record; `step` returns the next one.

    Whoever holds it keeps it under its key, (principal, operation id). `permit_nonce` is the permit it holds, `claimed`
    and `entered` are facts that stay true, `gate` and `code` say who refused or released it and why.
    """

    action_hash: str = ""
    state: State = State.PROPOSED
    permit_nonce: str | None = None
    approved: bool = False
    claimed: bool = False
    entered: bool = False
    gate: str | None = None
    code: str | None = None

    @property
    def ended(self) -> bool:
        """Whether nothing can follow."""
        return self.state in ENDED

    @property
    def terminal_kind(self) -> TerminalKind | None:
        """The terminal kind, None before it and for attempts that never got that far."""
        return TERMINALS.get(self.state)

    def step(
        self,
        happening: Happening,
        *,
        action_hash: str | None = None,
        permit_nonce: str | None = None,
        gate: Gate | None = None,
        code: str | None = None,
    ) -> Operation:
        """Return the operation after one happening.

        Args:
            happening: What happened.
            action_hash: With `FOUND_FRESH`: what the proposal would do.
            permit_nonce: With `PERMIT_MINTED`: which permit. With `CLAIM_STORED`: the one the claim consumed.
            gate: With `REFUSED` and `RELEASED`: who said no. Defaults to the only gate of the state.
            code: With those, and with terminals that are no success: one of spec §12.

        Raises:
            IllegalTransition: the table has no such move, the gate is not one of this state, or the permit differs.
        """
        after = TRANSITIONS[self.state].get(happening) or _illegal(self.state, happening)
        facts = self._facts(self.state, happening, action_hash, permit_nonce, gate) if happening in _BEARING else {}
        if code is not None:
            facts["code"] = code
        return msgspec.structs.replace(self, state=after, **facts)

    def through(self, *happenings: Happening) -> Operation:
        """Return the operation after several happenings that carry nothing, as if after one `step` for each."""
        after, bearing = _way(self.state, happenings)
        changes: dict[str, object] = {}
        for state, happening in bearing:
            changes.update(self._facts(state, happening))
        return msgspec.structs.replace(self, state=after, **changes)

    def _facts(
        self,
        state: State,
        happening: Happening,
        action_hash: str | None = None,
        permit_nonce: str | None = None,
        gate: Gate | None = None,
    ) -> dict[str, object]:
        """Return what a happening in `state` changes besides the state; check what the table alone cannot."""
        if happening is _FOUND_FRESH:
            return {"action_hash": action_hash} if action_hash else {}
        if happening is _APPROVED:
            return {"approved": True}
        if happening is _PERMIT_MINTED:
            if not permit_nonce:
                raise IllegalTransition("a minted permit has a nonce")
            return {"permit_nonce": permit_nonce}
        if happening is _CLAIM_STORED:
            if not permit_nonce or permit_nonce != self.permit_nonce:
                raise IllegalTransition("the claim consumed another permit than the one this operation holds")
            return {"claimed": True}
        if happening is _ENTERED:
            if not self.claimed or not self.permit_nonce:
                raise IllegalTransition("dispatch needs a durable claim and a consumed permit")
            return {"entered": True}
        return {"gate": _gate(state, gate)}


def _illegal(state: State, happening: Happening) -> NoReturn:
    raise IllegalTransition(f"{happening} cannot follow {state}")


@functools.lru_cache(maxsize=_WAYS_MAX)
def _way(state: State, happenings: tuple[Happening, ...]) -> tuple[State, tuple[tuple[State, Happening], ...]]:
    """Return where several happenings lead, and those of them that bear facts; the table never changes."""
    bearing = []
    for happening in happenings:
        if happening in _BEARING:
            bearing.append((state, happening))
        state = TRANSITIONS[state].get(happening) or _illegal(state, happening)
    return state, tuple(bearing)


def _gate(state: State, gate: Gate | None) -> Gate:
    gates = GATES_OF[state]
    if gate is None:
        return gates[0]
    if gate not in gates:
        raise IllegalTransition(f"{state} is not refused at {gate}")
    return gate


def mermaid() -> str:
    """Return the machine as a Mermaid state diagram, generated from the table."""
    lines = ["stateDiagram-v2", f"    [*] --> {State.PROPOSED}"]
    for state, row in TRANSITIONS.items():
        lines.extend(f"    {state} --> {after}: {happening}" for happening, after in row.items())
        if not row:
            lines.append(f"    {state} --> [*]")
    return "\n".join(lines)


def table_text() -> str:
    """Return the machine as a Markdown table: state, what may happen, where that leads, who can refuse."""
    lines = ["| state | what may happen | gates that can end it here |", "|---|---|---|"]
    for state, row in TRANSITIONS.items():
        moves = ", ".join(f"{happening} → {after}" for happening, after in row.items()) or "nothing: it has ended"
        gates = ", ".join(GATES_OF.get(state, ())) or "–"
        lines.append(f"| `{state}` | {moves} | {gates} |")
    return "\n".join(lines)
