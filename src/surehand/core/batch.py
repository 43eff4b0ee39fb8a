"""Whether a batch goes on after a step (spec §5.5). A batch is no transaction: what was done stays done."""

from __future__ import annotations

from typing import Final, Literal

from surehand.model.outcome import Reply
from surehand.model.request import Batch

OnRefusal = Literal["stop", "continue"]
Next = Literal["continue", "stop"]

#: Nothing goes on after these, whatever the caller asked for.
_ALWAYS_STOP: Final = frozenset({"outcome_unknown", "interrupted", "failed", "withheld"})


def step_id(batch: Batch, index: int) -> str:
    """Return the operation id of one step: its own claim, fences and receipt hang on it."""
    return f"{batch.operation_id}:{index}"


def next_step(reply: Reply, on_refusal: OnRefusal, *, asked_for_none: bool) -> Next:
    """Decide whether the step after the one that got `reply` is started.

    Args:
        reply: Of the step that just ended.
        on_refusal: What the caller wants after a refusal. A cancellation is meant for the whole batch and stops.
        asked_for_none: Whether that step wanted no verification, in words or by its action's natural default.
    """
    if reply.status in _ALWAYS_STOP:
        return "stop"
    if reply.status == "succeeded":
        effect = reply.terminal.receipt.effect if reply.terminal is not None else "unknown"
        held = effect == "verified" or (effect == "executed_unverified" and asked_for_none)
        return "continue" if held else "stop"
    if (reply.error or {}).get("code") == "cancelled":
        return "stop"
    return on_refusal
