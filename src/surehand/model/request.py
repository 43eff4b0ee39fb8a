"""The request an agent makes, and the batch envelope (spec §3.1, §5.5)."""

from __future__ import annotations

from typing import Literal

from surehand import limits
from surehand.errors import InvalidRequest
from surehand.model.actions import TARGET_KINDS, Action, kind_of
from surehand.model.authority import SignedGrant
from surehand.model.record import Record, check_count, check_identifier, check_range, tag_of
from surehand.model.targets import Target
from surehand.model.verification import Verification

Risk = Literal["read", "reversible", "external", "destructive"]
InteractionMode = Literal["interactive", "background_only"]


class Request(Record, frozen=True, kw_only=True):
    """One proposed effect.

    `verification` absent means the natural default of the action. `reconciles` names an operation that ended as
    `outcome_unknown` and was looked into since (spec §5.7). `salt` is 32 hex digits; the host may supply it, else the
    daemon derives one.
    """

    protocol_version: Literal[1] = 1
    operation_id: str
    action: Action
    target: Target
    interaction_mode: InteractionMode = "interactive"
    verification: Verification | None = None
    risk: Risk = "reversible"
    deadline_ms: int = limits.DEADLINE_MS_DEFAULT
    authority: SignedGrant | None = None
    reconciles: str | None = None
    salt: str | None = None

    def __post_init__(self) -> None:
        check_identifier("operation_id", self.operation_id)
        check_range("deadline_ms", self.deadline_ms, 1, limits.DEADLINE_MS_MAX)
        kind = kind_of(self.action)
        target_kind = tag_of(type(self.target))
        if target_kind not in TARGET_KINDS[kind]:
            allowed = ", ".join(sorted(TARGET_KINDS[kind]))
            raise InvalidRequest(f"{kind} takes a target of kind {allowed}, not {target_kind}")
        if self.reconciles is not None:
            check_identifier("reconciles", self.reconciles)
        if self.salt is not None and (
            len(self.salt) != limits.SALT_BYTES * 2 or any(c not in "0123456789abcdef" for c in self.salt)
        ):
            raise InvalidRequest(f"salt must be {limits.SALT_BYTES * 2} lower-case hex digits")


class Batch(Record, frozen=True, kw_only=True):
    """Up to 64 steps; step i becomes operation `<operation_id>:<i>`. Empty is a no-op. Not a transaction."""

    protocol_version: Literal[1] = 1
    operation_id: str
    steps: tuple[Request, ...]
    on_refusal: Literal["stop", "continue"] = "stop"

    def __post_init__(self) -> None:
        check_identifier("operation_id", self.operation_id)
        check_count("steps", len(self.steps), 0, limits.BATCH_STEPS_MAX)
        if self.steps:
            # Now, and not when the steps before it have happened.
            check_identifier("the id of the last step", f"{self.operation_id}:{len(self.steps) - 1}")
