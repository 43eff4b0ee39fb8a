"""Whether a batch goes on."""

from __future__ import annotations

import pytest

from surehand.core.batch import next_step, step_id
from surehand.model.outcome import Reply
from surehand.model.request import Batch
from tests.rules_kit import terminal


def reply(status, **changes):
    return Reply(operation_id="b:0", status=status, **changes)


def succeeded(effect):
    return reply("succeeded", terminal=terminal(effect=effect))


@pytest.mark.parametrize("on_refusal", ["stop", "continue"])
@pytest.mark.parametrize("status", ["outcome_unknown", "interrupted", "failed", "withheld"])
def test_nothing_goes_on_after_an_end_that_is_no_success(status, on_refusal):
    assert next_step(reply(status), on_refusal, asked_for_none=True) == "stop"


@pytest.mark.parametrize(
    ("effect", "asked_for_none", "expected"),
    [
        ("verified", False, "continue"),
        ("verified", True, "continue"),
        ("executed_unverified", True, "continue"),
        ("executed_unverified", False, "stop"),
        ("unknown", True, "stop"),
    ],
)
def test_a_success_goes_on_only_as_far_as_it_was_verified(effect, asked_for_none, expected):
    assert next_step(succeeded(effect), "continue", asked_for_none=asked_for_none) == expected


@pytest.mark.parametrize("status", ["refused", "approval_required"])
def test_a_refusal_does_what_the_caller_asked_for(status):
    refused = reply(status, error={"code": "stale_target"})
    assert next_step(refused, "stop", asked_for_none=False) == "stop"
    assert next_step(refused, "continue", asked_for_none=False) == "continue"


def test_a_cancellation_is_meant_for_the_whole_batch():
    assert next_step(reply("refused", error={"code": "cancelled"}), "continue", asked_for_none=False) == "stop"


def test_a_success_without_its_terminal_goes_nowhere():
    assert next_step(reply("succeeded"), "continue", asked_for_none=True) == "stop"


def test_each_step_has_an_id_of_its_own():
    batch = Batch(operation_id="b", steps=())
    assert [step_id(batch, index) for index in range(3)] == ["b:0", "b:1", "b:2"]
