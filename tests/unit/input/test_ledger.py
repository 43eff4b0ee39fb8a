"""What is held, and the notes from which a stranger can undo it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surehand import limits
from surehand.core.input.ledger import (
    HEARTBEAT,
    Held,
    HeldLedger,
    Lending,
    Locks,
    Repairs,
    giving_back_line,
    lending_line,
    locks_line,
    press_line,
    release_line,
    unlocks_line,
)
from surehand.errors import InvalidRequest

A, B = Held("key", 38), Held("button", 1)


def test_a_press_twice_or_a_release_of_nothing_is_refused_and_changes_nothing() -> None:
    ledger = HeldLedger()
    ledger.press(A)
    with pytest.raises(InvalidRequest):
        ledger.press(A)
    with pytest.raises(InvalidRequest):
        ledger.check_press(A)
    with pytest.raises(InvalidRequest):
        ledger.release(B)
    assert ledger.newest_first() == (A,)


def test_everything_is_let_go_in_reverse_order() -> None:
    ledger = HeldLedger()
    for held in (A, B, Held("key", 50)):
        ledger.press(held)
    assert ledger.newest_first() == (Held("key", 50), B, A)


def test_the_number_of_held_things_is_bounded() -> None:
    ledger = HeldLedger()
    for code in range(limits.HELD_MAX):
        ledger.press(Held("key", 8 + code))
    with pytest.raises(InvalidRequest):
        ledger.press(Held("key", 200))
    assert len(ledger.newest_first()) == limits.HELD_MAX


def test_notes_lead_to_what_must_be_undone() -> None:
    repairs = Repairs()
    for line in (
        press_line(A), press_line(B), release_line(A), lending_line(248, 0x1006F22, (0, 0)), lending_line(230, 0x6F6, (1,)),
        HEARTBEAT, giving_back_line(230), locks_line(Locks(18, 1)), locks_line(Locks(2, 0)),
    ):  # fmt: skip
        repairs.apply(line.rstrip(b"\n"))
    assert list(repairs.held) == [B]
    assert repairs.lent == {248: Lending(0x1006F22, (0, 0))}
    assert repairs.locks == Locks(18, 1)  # the first note has the truth
    assert repairs.any
    for line in (release_line(B), giving_back_line(248), unlocks_line()):
        repairs.apply(line)
    assert not repairs.any


@pytest.mark.parametrize(
    "line",
    [b"k+", b"k+ x", b"k+ 256", b"k+ -1", b"x+ 1", b"k* 1", b"k+ 1 2", b"m+ 3", b"m+ 3 zz", b"m- 3 4", b"l+ 1", b"l+ 1 4",
     b"l+ 1 x", b"\xff\xfe", b"kk+ 1", b"+ 1", b"k 1"],
)  # fmt: skip
def test_a_line_that_is_no_note_is_refused_and_changes_nothing(line: bytes) -> None:
    repairs = Repairs()
    repairs.apply(press_line(A))
    with pytest.raises(InvalidRequest):
        repairs.apply(line)
    assert (list(repairs.held), repairs.lent, repairs.locks) == ([A], {}, None)


@given(st.binary(max_size=40))
def test_no_bytes_make_the_guard_fail_otherwise(line: bytes) -> None:
    try:
        Repairs().apply(line)
    except InvalidRequest:
        return
