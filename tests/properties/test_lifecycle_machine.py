"""Walks the life of attempts at random, keeps a journal beside it as a writer would, and kills the process anywhere.

Invariants: nothing is dispatched without a permit that was minted and consumed and a durable claim; exactly one
terminal after dispatch; nothing after an end; what the journal folds to is what happened, or `outcome_unknown`.
"""

from __future__ import annotations

import os

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from surehand.core import history
from surehand.core.history import Conflict, Fresh, Replay, Unknown, fold, idempotency
from surehand.core.lifecycle import (
    ENDED,
    ENDINGS,
    GATES_OF,
    TERMINALS,
    TRANSITIONS,
    Happening,
    IllegalTransition,
    Operation,
    State,
)
from surehand.errors import JournalRecovery
from surehand.model.record import to_value
from tests.rules_kit import ZERO_HASH, events, terminal

OTHER = "f" * 64
ENDS = {State.REFUSED, State.RELEASED, *TERMINALS}
DISPATCHED = list(State)[list(State).index(State.ENTERED) : list(State).index(State.REFUSED)]
LONG = os.environ.get("SUREHAND_LONG") == "1"


class Life(RuleBasedStateMachine):
    """One operation id: attempts one after another, a journal, and a world that counts effects."""

    def __init__(self):
        super().__init__()
        self.operation = Operation()
        self.journal: list[tuple[str, dict]] = []
        self.minted = 0
        self.consumed: set[str] = set()
        self.effects = 0
        self.terminals = 0
        self.claims_open = False

    # --- what the gateway does ------------------------------------------------------------------------------------

    @precondition(lambda self: self.operation.state not in ENDED)
    @rule(steps=st.integers(1, 20))
    def the_way_forward(self, steps):
        """Without it hardly any walk would get past ten gates that may each refuse."""
        for _ in range(steps):
            if self.operation.state in ENDED:
                return
            self._happen(next(iter(TRANSITIONS[self.operation.state])))

    @precondition(lambda self: self.operation.state not in ENDED)
    @rule(data=st.data())
    def anything_the_table_lists(self, data):
        happening = data.draw(st.sampled_from(sorted(TRANSITIONS[self.operation.state])))
        self._happen(happening)

    def _happen(self, happening):
        facts = {}
        if happening is Happening.FOUND_FRESH:
            facts["action_hash"] = ZERO_HASH
        elif happening is Happening.PERMIT_MINTED:
            self.minted += 1
            facts["permit_nonce"] = f"n{self.minted}"
        elif happening is Happening.CLAIM_STORED:
            facts["permit_nonce"] = self.operation.permit_nonce
        elif happening in (Happening.REFUSED, Happening.RELEASED):
            facts.update(gate=GATES_OF[self.operation.state][-1], code="timeout")
        before = self.operation
        self.operation = before.step(happening, **facts)
        self._journal_what_happened(happening)

    def _journal_what_happened(self, happening):
        refusal = {"code": "timeout", "gate": self.operation.gate or ""}
        if happening is Happening.CLAIM_STORED:
            self.consumed.add(self.operation.permit_nonce)
            self.journal.append(
                (history.CLAIMED, {"action_hash": ZERO_HASH, "permit_nonce": self.operation.permit_nonce})
            )
            self.claims_open = True
        elif happening is Happening.REFUSED:
            self.journal.append((history.REFUSED, refusal))
        elif happening is Happening.RELEASED:
            self.journal.append((history.RELEASED, refusal))
            self.claims_open = False
        elif happening is Happening.ENTERED:
            self.effects += 1
        if self.operation.state in TERMINALS:
            self.terminals += 1
            self.journal.append((history.TERMINAL, to_value(terminal(TERMINALS[self.operation.state]))))
            self.claims_open = False

    @precondition(lambda self: self.operation.state in (State.REFUSED, State.RELEASED))
    @rule()
    def the_same_id_is_proposed_again(self):
        assert isinstance(idempotency(fold(events(*self.journal)), None, ZERO_HASH), Fresh)
        self.operation = Operation()

    # --- what goes wrong ------------------------------------------------------------------------------------------

    @rule(happening=st.sampled_from(list(Happening)), nonce=st.sampled_from([None, "", "n1", "n2", "forged"]))
    def a_defect_tries_any_move(self, happening, nonce):
        """Whatever a broken gateway calls: an illegal move raises and changes nothing; a legal one only from here."""
        before = self.operation
        try:
            after = before.step(happening, permit_nonce=nonce)
        except IllegalTransition:
            assert self.operation is before
            return
        assert after.state is TRANSITIONS[before.state][happening]
        if after.entered and not before.entered:
            assert before.claimed
            assert before.permit_nonce in self.consumed
        if after.claimed and not before.claimed:
            assert nonce == before.permit_nonce

    @precondition(lambda self: self.operation.state is not State.PROPOSED)
    @rule()
    def the_process_is_killed(self):
        """A new process knows the journal only."""
        stored = fold(events(*self.journal))
        if stored is None or stored.claim is None:
            assert self.effects == 0 or self.operation.state is State.RELEASED
            self.operation = Operation()
            return
        if stored.interrupted_claim:
            assert stored.operation.state is State.OUTCOME_UNKNOWN
            assert isinstance(idempotency(stored, None, ZERO_HASH), Unknown)
            self.operation = stored.operation
            self.terminals += 1
            self.journal.append((history.TERMINAL, to_value(terminal("outcome_unknown"))))
            self.claims_open = False
            return
        assert stored.operation.state is self.operation.state
        assert stored.operation.terminal_kind == self.operation.terminal_kind

    @precondition(lambda self: self.claims_open)
    @rule()
    def a_second_claim_beside_an_open_one_is_no_honest_journal(self):
        for forged in ((history.CLAIMED, {"action_hash": ZERO_HASH}), (history.RESOLVED, {"verdict": "happened"})):
            try:
                fold(events(*self.journal, forged))
            except JournalRecovery:
                continue
            raise AssertionError("a forged journal was believed")

    # --- what must always hold ------------------------------------------------------------------------------------

    @invariant()
    def no_dispatch_without_permit_and_claim(self):
        if self.operation.entered or self.operation.state in DISPATCHED:
            assert self.operation.claimed
            assert self.operation.permit_nonce in self.consumed
        assert self.effects <= len(self.consumed)

    @invariant()
    def at_most_one_dispatch_and_one_terminal(self):
        assert self.effects <= 1
        assert self.terminals <= 1
        if self.terminals:
            assert self.operation.ended

    @invariant()
    def nothing_follows_an_end(self):
        if self.operation.state in ENDS:
            for happening in Happening:
                try:
                    self.operation.step(happening, permit_nonce=self.operation.permit_nonce)
                except IllegalTransition:
                    continue
                raise AssertionError(f"{happening} followed {self.operation.state}")

    @invariant()
    def a_claim_takes_the_permit_that_was_minted_and_no_other(self):
        if self.operation.state is State.PERMITTED:
            for nonce in (None, "", "forged", f"n{self.minted + 1}"):
                try:
                    self.operation.step(Happening.CLAIM_STORED, permit_nonce=nonce)
                except IllegalTransition:
                    continue
                raise AssertionError("the claim took another permit")

    @invariant()
    def a_second_proposal_never_dispatches_what_was_dispatched(self):
        if not self.journal:
            return
        stored = fold(events(*self.journal))
        if self.effects or self.terminals:
            assert isinstance(idempotency(stored, None, ZERO_HASH), Replay | Unknown)
            assert isinstance(idempotency(stored, None, OTHER), Conflict)

    @invariant()
    def refusals_burn_nothing(self):
        if self.operation.state in (State.REFUSED, State.RELEASED):
            assert self.effects == 0
            assert self.terminals == 0


TestLife = Life.TestCase
TestLife.settings = settings(
    max_examples=10_000 if LONG else 500, stateful_step_count=60 if LONG else 25, deadline=None
)


def test_every_terminal_is_reachable_and_only_through_dispatch_or_loss():
    """Exhaustive over the table: walk every path once per state."""
    reached, pending = {State.PROPOSED}, [State.PROPOSED]
    while pending:
        for after in TRANSITIONS[pending.pop()].values():
            if after not in reached:
                reached.add(after)
                pending.append(after)
    assert reached == set(State)
    without_entry = {State.PROPOSED}
    pending = [State.PROPOSED]
    while pending:
        for happening, after in TRANSITIONS[pending.pop()].items():
            if happening is not Happening.ENTERED and after not in without_entry:
                without_entry.add(after)
                pending.append(after)
    assert without_entry & set(TERMINALS) == {State.OUTCOME_UNKNOWN}
    assert not without_entry & set(DISPATCHED)
    assert set(ENDINGS.values()) <= set(Happening)
