"""One attempt in flight: what is known of it so far, and what it has to say for journal, policy and receipt.

Holds state and forms records from it; decides nothing and calls nobody.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final, Literal

import msgspec

from surehand.core import redaction
from surehand.core.hashing import Digest
from surehand.core.history import Claimed
from surehand.core.lifecycle import Gate, Happening, Operation
from surehand.core.outcome import Ending
from surehand.core.policy.inputs import all_categories
from surehand.core.policy.model import Risk
from surehand.errors import Cancelled, Timeout
from surehand.model.decision import Decision, Permit, PolicyInput
from surehand.model.outcome import Effect, Evidence, Receipt, Reply
from surehand.model.record import to_value
from surehand.model.request import Request
from surehand.model.secrets import HeldSecret
from surehand.runtime.resolve import Aim
from surehand.runtime.session import Session

_H: Final = Happening
_SUCCEEDED: Final = (_H.CONTEXT_SAMPLED, _H.READ_BACK, _H.OUTPUT_HELD, _H.OUTPUT_RELEASED, _H.SUCCEEDED)
_WITHHELD: Final = (_H.CONTEXT_SAMPLED, _H.READ_BACK, _H.OUTPUT_HELD, _H.OUTPUT_WITHHELD, _H.WITHHELD)
#: Where every attempt begins.
_PROPOSED: Final = Operation()


class Flag(msgspec.Struct, eq=False):
    """An event that happens once: like `asyncio.Event`, which is made only when somebody waits."""

    _is_set: bool = False
    _event: asyncio.Event | None = None

    def is_set(self) -> bool:
        """Return whether it happened."""
        return self._is_set

    def set(self) -> None:
        """Have it happen, and wake everybody who waits."""
        self._is_set = True
        if self._event is not None:
            self._event.set()

    async def wait(self) -> None:
        """Wait until it happens."""
        if self._is_set:
            return
        if self._event is None:
            self._event = asyncio.Event()
        await self._event.wait()


class Run(msgspec.Struct, eq=False):
    """The working state of `Gateway` for one attempt."""

    #: 48 random hex digits.
    chance: str
    request: Request
    session: Session
    started_ms: int
    started_wall_ms: int
    deadline_at_ms: int
    wait_approval_ms: int = 0
    #: Who proposes, as the session says.
    principal: str = ""
    #: Under which id, as the request says.
    operation_id: str = ""
    task: asyncio.Task[Reply] | None = None
    waiters: int = 0
    cancelled: Flag = msgspec.field(default_factory=Flag)
    #: A person stopped it.
    halted: bool = False
    #: Set when the task is done.
    ended: Flag = msgspec.field(default_factory=Flag)
    #: Set once `action_hash` says what is meant, or it is clear that nothing will.
    identified: Flag = msgspec.field(default_factory=Flag)
    operation: Operation = _PROPOSED
    aim: Aim = msgspec.field(default_factory=Aim)
    action_hash: str = ""
    request_hash: str = ""
    effect: str = ""
    meaning: dict[str, Any] = {}
    reconcile_key: str = ""
    document: PolicyInput | None = None
    decision: Decision | None = None
    permit: Permit | None = None
    uses: dict[str, int] = {}
    approval_id: str | None = None
    #: Which step of an approved plan it is.
    plan_step: int | None = None
    standing: str | None = None
    #: A person was asked whether its output may go to the agent, and said yes.
    output_agreed: bool = False
    #: The operator's mode answered in a person's place.
    reviewed: bool = False
    before_hash: str | None = None
    after_hash: str | None = None
    secret: HeldSecret | None = None
    #: Of the action hash, where the action carries text.
    salt: str | None = None
    #: The risk under which it counts against its principal's budget, from just before the claim on.
    counted: Risk | None = None
    #: The uses that the end of a refused claim must count, so that its budget is what it was.
    returned: dict[str, int] = {}
    warnings: list[str] = []

    def __post_init__(self) -> None:
        self.principal, self.operation_id = self.session.principal, self.request.operation_id

    @property
    def isolation(self) -> Literal["isolated", "display_only", "shared"]:
        """How the desktop it works on is set apart, as the host states."""
        return "shared" if self.session.desk is None else self.session.desk.isolation

    def step(
        self,
        happening: Happening,
        *,
        action_hash: str | None = None,
        permit_nonce: str | None = None,
        gate: Gate | None = None,
        code: str | None = None,
    ) -> None:
        """Move the operation along the table."""
        self.operation = self.operation.step(
            happening, action_hash=action_hash, permit_nonce=permit_nonce, gate=gate, code=code
        )

    def halt(self) -> None:
        """Have it end where it is: before its effect, or between two units of input."""
        self.halted = True
        self.cancelled.set()

    def check_not_halted(self) -> None:
        """Refuse to go on where a person stopped it.

        Raises:
            Cancelled: nothing was done.
        """
        if self.halted:
            raise Cancelled("stopped by a person before any effect", gate="deadline", details={"what": "halted"})

    def told(self) -> dict[str, str]:
        """Return what people are told of it while it runs."""
        return {
            "principal": self.principal,
            "operation_id": self.operation_id,
            "state": self.operation.state,
            "effect": self.effect,
            "app": self.aim.app,
            "session": self.session.label,
            "desktop": self.session.desktop,
        }

    def outcome(self) -> str:
        """Return how it ended: the kind of its terminal, or why it was refused; `running` where it has not."""
        if self.task is None or not self.task.done() or self.task.cancelled() or self.task.exception() is not None:
            return "running"
        reply = self.task.result()
        return str((reply.error or {}).get("code", "refused")) if reply.status == "refused" else reply.status

    def past(self) -> dict[str, Any]:
        """Return what people are told of it once it has ended."""
        return {**self.told(), "ended": self.outcome(), "started_at_ms": self.started_wall_ms}

    def check_time(self, now_ms: int) -> None:
        """Refuse to go on once cancelled or late; cancellation beats expiry.

        Raises:
            Cancelled, Timeout, AuthorityDenied: nothing was done.
        """
        self.check_not_halted()
        if self.cancelled.is_set():
            raise Cancelled("cancelled before any effect", gate="deadline")
        if now_ms >= self.deadline_at_ms:
            raise Timeout(
                "the deadline passed before any effect",
                gate="deadline",
                fix="give it more time with deadline_ms",
                details={"deadline_ms": self.request.deadline_ms},
            )
        self.session.check_not_handed_over()

    def revealed(self) -> tuple[str, ...]:
        """Return the secret that it was given, for masking."""
        return () if self.secret is None else (self.secret.reveal(),)

    def forget_secret(self) -> None:
        """Overwrite the secret that it was given."""
        secret, self.secret = self.secret, None
        if secret is not None:
            secret.wipe()

    def claim(self, digest: Digest) -> dict[str, Any]:
        """Return the payload of the claim; the texts of the request are keyed digests in it."""
        decision, permit = self.decision, self.permit
        claimed: dict[str, Any] = to_value(
            Claimed(
                action_hash=self.action_hash,
                app=self.aim.app,
                place=self.aim.place,
                window=self.aim.window,
                effect=self.effect,
                reconcile_key=self.reconcile_key,
                permit_nonce="" if permit is None else permit.nonce,
                claimed_at_ms=self.started_wall_ms,
                reconciles=self.request.reconciles,
                approval_id=self.approval_id,
                standing=self.standing,
                reviewed=self.reviewed,
                categories=self.categories(),
            )
        )
        # What is a plain value already is not turned into one again.
        claimed["request"] = redaction.request_value(self.request, digest)
        claimed["receipt"] = to_value(self.receipt("", "", "unknown", self.started_wall_ms))
        if decision is not None:
            claimed["decision"] = to_value(decision)
        return claimed

    def proposal(self, decision: Decision, policy_generation: int) -> dict[str, Any]:
        """Return what a host must sign, and what policy says of it."""
        return {
            "action_hash": self.action_hash,
            "meaning": self.meaning,
            "policy_generation": policy_generation,
            "decision": {"outcome": decision.outcome, "rule": decision.rule, "reason": decision.reason},
            **({} if self.salt is None else {"salt": self.salt}),
        }

    def categories(self) -> tuple[str, ...]:
        """Return the categories that policy is told of, proven or observed; names of ours."""
        return () if self.document is None else tuple(sorted(all_categories(self.document)))

    def refusal(self) -> dict[str, Any]:
        """Return what was refused, as far as it is known; no text of the request or of a screen."""
        facts = {
            "action_hash": self.action_hash,
            "effect": self.effect,
            "app": self.aim.app,
            "place": self.aim.place,
            "categories": list(self.categories()),
        }
        return {name: value for name, value in facts.items() if value}

    def receipt(self, backend: str, route: str, effect: Effect, finished_wall_ms: int) -> Receipt:
        """Return the receipt as far as it is known."""
        session = self.session
        return Receipt(
            operation_id=self.operation_id,
            action_hash=self.action_hash,
            action=self.effect,
            principal=self.principal,
            started_at_ms=self.started_wall_ms,
            finished_at_ms=finished_wall_ms,
            backend=backend,
            route=route,
            isolation=self.isolation,
            interaction_mode=self.request.interaction_mode,
            context_preservation="not_applicable",
            effect=effect,
            evidence=Evidence(before=self.before_hash, after=self.after_hash),
            authority_mode=session.authority_mode,
            trust_level=session.trust_level,
            decision_id="" if self.decision is None else self.decision.decision_id,
            resolved=self.aim.resolved(),
            warnings=tuple(self.warnings),
        )

    def end(self, ending: Ending) -> None:
        """Move the operation from wherever it is after entering to its terminal."""
        kind = ending.kind
        if kind == "succeeded":
            self.operation = self.operation.through(*_SUCCEEDED)
        elif kind == "withheld":
            self.operation = self.operation.through(*_WITHHELD)
        else:
            happening = {"failed": _H.FAILED, "interrupted": _H.INTERRUPTED}.get(kind, _H.LOST)
            self.step(happening, code=ending.code)
