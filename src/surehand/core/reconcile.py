"""After the unknown: the same effect is not attempted again until somebody looked (spec §5.7).

Sameness is `hashing.reconcile_key`. An unresolved `outcome_unknown` with the same key refuses a new operation until
that one names it and acts on a scene that was observed after it ended; a new operation id changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from surehand import limits
from surehand.errors import ReconcileRequired
from surehand.model.record import Record


class Unresolved(Record, frozen=True, kw_only=True):
    """One operation whose outcome nobody knows yet. `ended_at_ms` is monotonic; 0 when it ended in an earlier run."""

    operation_id: str
    reconcile_key: str
    ended_at_ms: int


def check(open_operation_id: str, ended_at_ms: int, reconciles: str | None, scene_observed_ms: int | None) -> None:
    """Refuse a repeat of an unresolved effect that does not name it, or has not looked since.

    Args:
        open_operation_id: The unresolved operation with the same key.
        ended_at_ms: When it ended, on the clock of `scene_observed_ms`.
        reconciles: What the request names.
        scene_observed_ms: When the scene it acts on was observed; None where it acts on none.

    Raises:
        ReconcileRequired: with the operation to look into and how to go on.
    """
    details = {"operation_id": open_operation_id}
    if reconciles != open_operation_id:
        raise ReconcileRequired(
            f"the same effect was sent before, as {open_operation_id}, and what became of it is not known",
            gate="idempotency",
            fix=f"Look at the application again, then send the request with reconciles={open_operation_id}, "
            "or have a person resolve that operation.",
            details=details,
        )
    if scene_observed_ms is None or scene_observed_ms <= ended_at_ms:
        raise ReconcileRequired(
            f"the scene was observed before {open_operation_id} ended unknown, so it cannot show what became of it",
            gate="idempotency",
            fix="Observe the application again and use the new scene.",
            details=details,
        )


def check_room(unresolved_count: int, oldest: str) -> None:
    """Refuse any effect of a principal that has left too many unresolved: each of them has to be remembered.

    Args:
        unresolved_count: How many the principal has.
        oldest: The operation to begin with.

    Raises:
        ReconcileRequired: naming it.
    """
    if unresolved_count >= limits.UNRESOLVED_MAX:
        raise ReconcileRequired(
            f"what became of {unresolved_count} effects is not known, and there may be no more",
            gate="idempotency",
            fix=f"Have a person resolve {oldest} and the others, or look into them and reconcile them one by one.",
            details={"operation_id": oldest},
        )


def check_all(
    unresolved: Iterable[Unresolved], key: str, reconciles: str | None, scene_observed_ms: int | None
) -> str | None:
    """Check a request against every unresolved operation of its principal; return the one it reconciles.

    Several with the same key can only come from different runs; each refuses until the latest is named.
    """
    same = [one for one in unresolved if one.reconcile_key == key]
    if not same:
        return None
    latest = max(same, key=lambda one: one.ended_at_ms)
    check(latest.operation_id, latest.ended_at_ms, reconciles, scene_observed_ms)
    return latest.operation_id
