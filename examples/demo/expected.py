"""What has to come of everything the agent tries, and what the applications, the person and the auditor have to say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

NOTE: Final = "Dinner on Friday: 12 × 34 = 408 €.\nGrüße, the agent ✓\n"
LIST: Final = "bread\nolives\nSchweizer Käse\n"


@dataclass(frozen=True, kw_only=True)
class Step:
    """One thing the agent tries, and how it has to end.

    name: As the agent tells it.
    operation_id: Under which it is tried; the name, where there is one presentation.
    outcome, code, gate, effect: What it is told.
    replayed: Whether the answer must be, or must not be, an old one; None where either may be.
    details, difference: What the refusal has to name.
    records: Which kinds of record stand behind the answer, where the answer names none.
    """

    name: str
    operation_id: str = ""
    outcome: str = "succeeded"
    code: str | None = None
    gate: str | None = None
    effect: str | None = None
    replayed: bool | None = False
    details: dict[str, Any] = field(default_factory=dict)
    difference: dict[str, Any] = field(default_factory=dict)
    records: tuple[str, ...] = ("operation.terminal.v1",)

    def problem(self, row: dict[str, Any], reply: dict[str, Any]) -> str | None:
        """Return what is not as it has to be, None where all is."""
        for name in ("outcome", "code", "gate", "effect"):
            if row[name] != getattr(self, name):
                return f"{name} is {row[name]!r}, not {getattr(self, name)!r}"
        if self.replayed is not None and row["replayed"] is not self.replayed:
            return "an old answer" if row["replayed"] else "not an old answer"
        error = reply.get("error") or {}
        given = error.get("details") or {}
        if any(given.get(name) != value for name, value in self.details.items()):
            return f"the refusal names {given}, not {self.details}"
        found = (error.get("observed") or {}).get("difference") or {}
        if any(found.get(name) != value for name, value in self.difference.items()):
            return f"the difference is {found}, not {self.difference}"
        return None if row["evidence"] else "no record stands behind it"


_REFUSED: Final = ("operation.refused.v1", "operation.released.v1")


def _verified(name: str, **facts: Any) -> Step:
    return Step(name=name, operation_id=facts.pop("operation_id", name), effect="verified", **facts)


def _refused(name: str, code: str, gate: str, **facts: Any) -> Step:
    operation_id = facts.pop("operation_id", name)
    return Step(
        name=name, operation_id=operation_id, outcome="refused", code=code, gate=gate, records=_REFUSED, **facts
    )


STEPS: Final = (
    *(_verified(f"calculator-{number}") for number in range(1, 7)),
    _verified("note-write"),
    _verified("note-save"),
    _verified("list-write"),
    _verified("list-save"),
    _refused("denied-reset", "policy_denied", "policy", details={"rule": "no-resets"}),
    _refused("denied-terminal", "policy_denied", "policy", details={"rule": "no-programs"}),
    Step(
        name="delete-asked",
        operation_id="delete",
        outcome="approval_required",
        records=("operation.approval_requested.v1",),
    ),
    _verified("delete"),
    _verified("delete-again", operation_id="delete", replayed=True),
    _refused("recycled", "stale_target", "first_fence", difference={"before": "carol", "now": "frank"}),
    _verified("batch-0", operation_id="batch:0"),
    _refused("batch-1", "policy_denied", "policy", operation_id="batch:1", details={"rule": "no-resets"}),
    Step(name="backup", operation_id="backup", outcome="outcome_unknown", code="outcome_unknown", replayed=None),
    Step(name="backup-again", operation_id="backup", outcome="outcome_unknown", code="outcome_unknown", replayed=None),
    _refused("backup-new-id", "reconcile_required", "idempotency", details={"operation_id": "backup"}),
    _verified("backup-second"),
)


# --- what is true ---------------------------------------------------------------------------------------------------

Check = Callable[[dict[str, Any], dict[str, Any]], str | None]


def _same(found: Any, wanted: Any) -> str | None:
    return None if found == wanted else f"it is {found!r}, not {wanted!r}"


def _received(facts: dict[str, Any], *events: str) -> list[Any]:
    return [value if value is not None else event for event, value in facts["guests"] if event in events]


CHECKS: Final[tuple[tuple[str, Check], ...]] = (
    ("the agent read 408 from the calculator", lambda f, _: _same(f["read"]["calculator"], ["408"])),
    ("libatspi, which is not Surehand, reads 408 as well", lambda f, _: _same(f["calculator"], "408")),
    ("the note is in the file that Mousepad wrote", lambda f, _: _same(f["note_file"], NOTE)),
    ("the list is in the file that FeatherPad wrote", lambda f, _: _same(f["list_file"].rstrip(), LIST.rstrip())),
    ("nothing was reset, twice", lambda f, _: _same(_received(f, "reset"), [])),
    ("dave was deleted once, and nobody else", lambda f, _: _same(_received(f, "delete"), ["dave"])),
    ("nobody's Open was pressed", lambda f, _: _same(_received(f, "open"), [])),
    (
        "the batch stopped at its second step",
        lambda f, _: _same(f["batch"], {"presented": 2, "steps": 3, "stopped_by": "batch:1"}),
    ),
    ("the batch's first step wrote the sign", lambda f, _: _same(_received(f, "sign")[-1:], ["Welcome!"])),
    ("the person was shown dave's Delete", lambda f, _: _same(f["asked"]["agreed"], True)),
    ("the daemon died with the operation in flight", lambda f, _: None if f["killed"]["state"] else "it had ended"),
    (
        "afterwards there is nothing left to check",
        lambda f, _: _same(f["status_after"].get("check"), None),
    ),
    (
        "the status says what to check",
        lambda f, _: None if "Observe" in f["status"].get("check", "") else "it does not",
    ),
    (
        "one backup was made across the crash, and one after it",
        lambda f, _: _same(_received(f, "backup"), ["backup"] * 2),
    ),
    (
        "the application counts them the same way",
        lambda f, _: _same(f["read"]["backups"], ["Backups: 1", "Backups: 2"]),
    ),
    (
        "the independent auditor finds the journal whole",
        lambda _, v: None if v.get("ok") is True else str(v.get("reason")),
    ),
    ("every receipt the agent holds is in it", lambda _, v: None if v.get("held", 0) > 0 else "none was looked for"),
    ("every claim has found its end", lambda _, v: _same(v["counts"]["unended"], 0)),
)
