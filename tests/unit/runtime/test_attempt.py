"""An attempt can be entered once, past the fence only, and its checkpoints stop the rest."""

from __future__ import annotations

import pytest

from surehand.errors import Cancelled, PermitInvalid, StaleTarget
from surehand.model.actions import Invoke
from surehand.model.decision import Permit
from surehand.runtime.attempt import LiveAttempt, StopInput
from surehand.testing.memory import MemoryApp

ZERO = "0" * 64


def attempt(**facts: object) -> LiveAttempt:
    permit = Permit(
        request_hash=ZERO, decision_id="d", obligations_hash=ZERO, session="s", nonce="n", expires_at_ms=1, mac=ZERO
    )
    parts = {
        "permit": permit,
        "action": Invoke(),
        "surface": MemoryApp([]).surface,
        "node": None,
        "fence_handles": (),
        "fence": lambda _: None,
        "check_last": lambda: None,
        "stop": lambda: None,
        "deadline_ms": 1000,
    }
    return LiveAttempt(**{**parts, **facts})


def test_an_attempt_is_entered_once() -> None:
    one = attempt()
    one.enter({})
    with pytest.raises(PermitInvalid):
        one.enter({})


@pytest.mark.parametrize("part", ["fence", "check_last"])
def test_what_refuses_leaves_it_unentered(part: str) -> None:
    def refuse(*_: object) -> None:
        raise StaleTarget("changed")

    one = attempt(**{part: refuse})
    with pytest.raises(StaleTarget):
        one.enter({})
    assert not one.entered


def test_permit_cancellation_and_deadline_are_looked_at_before_the_fence() -> None:
    order: list[str] = []
    one = attempt(fence=lambda _: order.append("fence"), check_last=lambda: order.append("last"))
    one.enter({})
    assert order == ["last", "fence"]


def test_a_person_stops_the_rest_of_an_input_plan() -> None:
    touched = False
    one = attempt(stop=lambda: "person" if touched else None)
    one.enter({})
    one.checkpoint(1)
    touched = True
    with pytest.raises(StopInput):
        one.checkpoint(2)
    assert (one.stopped_by, one.delivered) == ("person", 2)


def test_a_stop_before_entering_is_a_refusal() -> None:
    one = attempt(stop=lambda: "cancelled")
    with pytest.raises(Cancelled):
        one.checkpoint(0)
