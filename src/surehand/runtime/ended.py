"""How the newest questions to people ended: for whoever proposed, and for people who look back.

Bounded by `APPROVALS_ENDED_KEPT_MAX`; the journal has all of them.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from surehand import limits
from surehand.model.approval import PendingApproval


class Ended:
    """The newest ends, by the question's id."""

    def __init__(self) -> None:
        self._ends: OrderedDict[str, tuple[PendingApproval, dict[str, Any], int]] = OrderedDict()

    def note(self, pending: PendingApproval, stands: dict[str, Any], at_ms: int) -> None:
        """Keep how a question ended; `stands` is what its proposer is told."""
        self._ends[pending.approval_id] = (pending, stands, at_ms)
        while len(self._ends) > limits.APPROVALS_ENDED_KEPT_MAX:
            self._ends.popitem(last=False)

    def of(self, principal: str) -> list[dict[str, Any]]:
        """Return how this principal's questions ended, oldest first."""
        return [stands for pending, stands, _ in self._ends.values() if pending.principal == principal]

    def one(self, approval_id: str) -> dict[str, Any] | None:
        """Return how a question ended, as people are told; None where this run knows of no end."""
        found = self._ends.get(approval_id)
        return None if found is None else _told(*found)

    def newest(self, limit: int) -> list[dict[str, Any]]:
        """Return the newest ends, as people are told, newest first."""
        ends = list(self._ends.values())[::-1][:limit]
        return [_told(*end) for end in ends]


def _told(pending: PendingApproval, stands: dict[str, Any], at_ms: int) -> dict[str, Any]:
    shown = pending.presentation
    named = {name: getattr(shown, name) for name in ("principal", "app", "place", "element", "action", "risk")}
    return {**stands, **named, "ended_at_ms": at_ms}
