"""An answer that arrives within the same millisecond was not given in the daemon's future."""

from __future__ import annotations

import time

import pytest

from surehand.client.control import signed_answer
from surehand.core.approval import ask
from surehand.model.approval import Presentation
from surehand.runtime.clock import SystemClock
from surehand.signing.ed25519 import SigningKey


@pytest.mark.parametrize("fraction_ns", [0, 499_999, 500_000, 999_999])
def test_an_answer_is_dated_as_the_daemons_clock_reads(monkeypatch: pytest.MonkeyPatch, fraction_ns: int) -> None:
    now_ns = 1_796_033_937_921_000_000 + fraction_ns
    monkeypatch.setattr(time, "time_ns", lambda: now_ns)
    monkeypatch.setattr(time, "time", lambda: now_ns / 1e9)
    shown = Presentation(
        principal="uid:7",
        app="exe:/usr/bin/mousepad",
        place="window",
        element="button Delete",
        context="dave",
        action="desktop.invoke",
        parameters={},
        risk="destructive",
        categories=("destructive",),
        reason="",
        action_hash="a" * 64,
    )
    daemon_ms = SystemClock().wall_ms()
    question = ask(shown, approval_id="ap1", operation_id="op1", now_ms=daemon_ms)
    answer = signed_answer(question, "approve", approver="ann", key=SigningKey(bytes(32)))
    assert question.requested_at_ms <= answer.answered_at_ms <= daemon_ms
