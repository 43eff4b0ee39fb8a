"""The table of the life of an attempt, and the reducer over it."""

from __future__ import annotations

import itertools

import pytest

from surehand.core.lifecycle import (
    ENDED,
    ENDINGS,
    GATES,
    GATES_OF,
    TERMINALS,
    TRANSITIONS,
    Gate,
    Happening,
    IllegalTransition,
    Operation,
    State,
)

TO_PERMIT = (
    Happening.SHAPE_CHECKED,
    Happening.SESSION_BOUND,
    Happening.FOUND_FRESH,
    Happening.AUTHORISED,
    Happening.POLICY_ALLOWED,
    Happening.FENCE_HELD,
)
AFTER_ENTRY = (
    Happening.RETURNED,
    Happening.CONTEXT_SAMPLED,
    Happening.READ_BACK,
    Happening.OUTPUT_HELD,
    Happening.OUTPUT_RELEASED,
)


def permitted():
    return Operation().through(*TO_PERMIT).step(Happening.PERMIT_MINTED, permit_nonce="n1")


def claimed():
    return permitted().step(Happening.CLAIM_STORED, permit_nonce="n1")


def entered():
    return claimed().through(Happening.DEADLINE_HELD, Happening.ENTERED)


def test_the_straight_path_reaches_success():
    operation = entered().through(*AFTER_ENTRY, Happening.SUCCEEDED)
    assert operation.state is State.SUCCEEDED
    assert operation.terminal_kind == "succeeded"
    assert operation.ended
    assert (operation.claimed, operation.entered, operation.permit_nonce) == (True, True, "n1")


def test_the_gates_are_in_the_order_of_the_path():
    assert [gate.value for gate in GATES] == [
        "shape", "session", "idempotency", "authority", "policy", "risk_review", "approval", "policy_again",
        "first_fence", "permit", "claim", "deadline", "final_fence", "dispatch", "context", "verify", "quarantine",
        "release", "terminal", "reply",
    ]  # fmt: skip


@pytest.mark.parametrize("state", list(State))
@pytest.mark.parametrize("happening", list(Happening))
def test_a_missing_row_is_an_illegal_move(state, happening):
    operation = Operation(state=state, permit_nonce="n1", claimed=True)
    if happening in TRANSITIONS[state]:
        assert operation.step(happening, permit_nonce="n1").state is TRANSITIONS[state][happening]
    else:
        with pytest.raises(IllegalTransition):
            operation.step(happening, permit_nonce="n1")


def test_every_state_has_a_row_and_every_row_leads_somewhere_known():
    assert set(TRANSITIONS) == set(State)
    reached = {after for row in TRANSITIONS.values() for after in row.values()}
    assert reached == set(State) - {State.PROPOSED}
    assert {happening for row in TRANSITIONS.values() for happening in row} == set(Happening)


def test_terminals_and_refusals_have_empty_rows():
    assert {State.REFUSED, State.RELEASED, *TERMINALS} == ENDED
    assert {TRANSITIONS[State.SETTLED][happening] for happening in (ENDINGS["succeeded"],)} == {State.SUCCEEDED}


def test_refusing_is_possible_before_the_claim_only_and_releasing_only_between_claim_and_entry():
    refusing = {state for state, row in TRANSITIONS.items() if Happening.REFUSED in row}
    releasing = {state for state, row in TRANSITIONS.items() if Happening.RELEASED in row}
    assert releasing == {State.CLAIMED, State.CLEARED}
    assert refusing | releasing == set(GATES_OF)
    before_claim = list(State)[: list(State).index(State.CLAIMED)]
    assert refusing == set(before_claim)


@pytest.mark.parametrize("state", list(GATES_OF))
def test_each_refusal_names_its_gate(state):
    happening = Happening.REFUSED if Happening.REFUSED in TRANSITIONS[state] else Happening.RELEASED
    for gate in GATES_OF[state]:
        refused = Operation(state=state).step(happening, gate=gate, code="timeout")
        assert (refused.gate, refused.code) == (gate, "timeout")
    assert Operation(state=state).step(happening).gate is GATES_OF[state][0]
    with pytest.raises(IllegalTransition, match="not refused at"):
        Operation(state=state).step(happening, gate=Gate.REPLY)


def test_a_claim_must_consume_the_permit_that_was_minted():
    for nonce in (None, "", "n2"):
        with pytest.raises(IllegalTransition, match="another permit"):
            permitted().step(Happening.CLAIM_STORED, permit_nonce=nonce)


def test_a_permit_without_a_nonce_is_none():
    with pytest.raises(IllegalTransition, match="nonce"):
        Operation().through(*TO_PERMIT).step(Happening.PERMIT_MINTED)


def test_a_state_that_was_made_up_does_not_open_dispatch():
    for forged in (Operation(state=State.CLEARED), Operation(state=State.CLEARED, claimed=True),
                   Operation(state=State.CLEARED, permit_nonce="n1")):  # fmt: skip
        with pytest.raises(IllegalTransition, match="dispatch needs"):
            forged.step(Happening.ENTERED)


@pytest.mark.parametrize("start", [Operation(), permitted(), claimed(), entered()], ids=lambda o: str(o.state))
def test_several_happenings_at_once_lead_where_one_after_another_do(start):
    def outcome(move):
        try:
            return move()
        except IllegalTransition:
            return None

    for first, second in itertools.product(Happening, repeat=2):
        at_once = outcome(lambda: start.through(first, second))  # noqa: B023 - called at once
        assert at_once == outcome(lambda: start.step(first).step(second)), (first, second)  # noqa: B023


def test_several_happenings_at_once_open_no_dispatch_without_a_claim():
    with pytest.raises(IllegalTransition, match="dispatch needs"):
        Operation(state=State.CLAIMED).through(Happening.DEADLINE_HELD, Happening.ENTERED)


def test_an_approval_does_not_skip_policy():
    asked = Operation().through(*TO_PERMIT[:4], Happening.APPROVAL_ASKED, Happening.APPROVED)
    assert asked.state is State.APPROVED
    assert asked.approved
    with pytest.raises(IllegalTransition):
        asked.step(Happening.FENCE_HELD)
    assert asked.step(Happening.REFUSED, gate=Gate.POLICY_AGAIN).state is State.REFUSED
    assert asked.step(Happening.POLICY_ALLOWED).state is State.ALLOWED


def test_a_lost_claim_is_outcome_unknown_from_anywhere_after_it():
    for operation in (claimed(), entered(), *(entered().through(*AFTER_ENTRY[:n]) for n in range(1, 6))):
        assert operation.step(Happening.LOST).terminal_kind == "outcome_unknown"


def test_withheld_output_can_end_as_no_success():
    concealed = entered().through(*AFTER_ENTRY[:4], Happening.OUTPUT_WITHHELD)
    with pytest.raises(IllegalTransition):
        concealed.step(Happening.SUCCEEDED)
    assert concealed.step(Happening.WITHHELD).terminal_kind == "withheld"


def test_a_person_who_takes_over_ends_it_as_interrupted():
    assert entered().through(Happening.RETURNED, Happening.INTERRUPTED).terminal_kind == "interrupted"
