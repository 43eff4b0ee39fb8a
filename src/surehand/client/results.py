"""What a call comes back as: receipts, the two outcomes that are results though nothing succeeded, and errors.

One reply has one outcome (spec §12): a success is a true value; `Interrupted` and `ApprovalRequired` are false
values; everything else is raised. `OutcomeUnknown` is raised and is itself false, so no wrapper can take it for a
success.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from surehand.client import display
from surehand.errors import (
    EffectError,
    Failed,
    InternalError,
    OutcomeUnknown,
    SurehandError,
    VerificationFailed,
    Withheld,
    from_value,
)
from surehand.model.outcome import UNKNOWN_STATEMENT

W = TypeVar("W")


@dataclass(frozen=True, slots=True)
class Outcome:
    """Base of what an action returns; `reply` is the daemon's whole answer."""

    reply: dict[str, Any] = field(repr=False)

    @property
    def operation_id(self) -> str:
        """The operation's id, for `status` and for presenting it again."""
        return str(self.reply["operation_id"])

    @property
    def status(self) -> str:
        """One of `succeeded`, `interrupted`, `approval_required`."""
        return str(self.reply["status"])

    @property
    def receipt(self) -> dict[str, Any]:
        """What is known about the finished operation (spec §3.5); empty where it has not ended."""
        return dict((self.reply.get("terminal") or {}).get("receipt") or {})

    def _repr_html_(self) -> str:
        return display.receipt_html(self.reply)


@dataclass(frozen=True, slots=True)
class Receipt(Outcome):
    """A success. True. `effect` says whether it was read back."""

    def __bool__(self) -> bool:
        return True

    @property
    def effect(self) -> str:
        """`verified` where it was read back, else `executed_unverified`."""
        return str(self.receipt.get("effect", ""))

    @property
    def verified(self) -> bool:
        """True where the effect was read back."""
        return self.effect == "verified"

    @property
    def route(self) -> str:
        """How it was done, such as `atspi.action`."""
        return str(self.receipt.get("route", ""))

    @property
    def elapsed_ms(self) -> int:
        """Milliseconds between start and end."""
        return int(self.receipt.get("finished_at_ms", 0)) - int(self.receipt.get("started_at_ms", 0))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was noticed on the way."""
        return tuple(self.receipt.get("warnings", ()))

    @property
    def replayed(self) -> bool:
        """True where this is the stored outcome of an earlier presentation of the same id."""
        return bool(self.reply.get("replayed"))

    @property
    def output(self) -> dict[str, Any]:
        """What the action gave back, as observed data."""
        return dict(self.reply.get("output") or {})

    @property
    def diff(self) -> str:
        """What changed on the screen, where `observe_after` asked for it; a full tree where no exact diff exists."""
        return str((self.output.get("after") or {}).get("text", ""))

    def __repr__(self) -> str:
        replayed = ", replayed" if self.replayed else ""
        action = self.receipt.get("action", "?")
        return (
            f"<Receipt {action} {self.effect} via {self.route} in {self.elapsed_ms} ms{replayed}: {self.operation_id}>"
        )


@dataclass(frozen=True, slots=True)
class Interrupted(Outcome):
    """The person took over; `receipt` says what was delivered. False."""

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return f"<Interrupted by the person: {self.operation_id}>"


@dataclass(frozen=True, slots=True)
class ApprovalRequired(Outcome, Generic[W]):
    """A person has to answer first. False; nothing happened. `wait` presents the same operation again."""

    again: Callable[[float], W] = field(repr=False)

    def __bool__(self) -> bool:
        return False

    @property
    def approval(self) -> dict[str, Any]:
        """What the person is asked, as far as the agent may know."""
        return dict(self.reply.get("approval") or {})

    @property
    def approval_id(self) -> str:
        """The name under which an operator answers."""
        return str(self.approval.get("approval_id", ""))

    def wait(self, timeout_s: float = 600) -> W:
        """Wait for the answer and go on with the same operation id.

        Args:
            timeout_s: Seconds; when they pass without an answer this returns another `ApprovalRequired`.

        Raises:
            ApprovalDenied: a person said no.
            ApprovalUnanswered: the approval expired.
        """
        return self.again(timeout_s)

    def __repr__(self) -> str:
        return f"<ApprovalRequired {self.approval_id}: {self.operation_id}>"


#: Raised for a terminal of this kind; `failed` is told apart by its code.
_RAISED: Final[dict[str, type[EffectError]]] = {
    "failed": Failed,
    "withheld": Withheld,
    "outcome_unknown": OutcomeUnknown,
}


def error_of(reply: dict[str, Any]) -> SurehandError:
    """Return the exception that a reply other than a success, interruption or pending approval means."""
    status = reply.get("status")
    error = reply.get("error")
    if status == "refused" and isinstance(error, dict):
        refused = from_value(error)
        refused.details.setdefault("operation_id", reply.get("operation_id"))
        return refused
    cls = _RAISED.get(str(status))
    if cls is None:
        return InternalError(f"a reply of unknown status {str(status)[:64]!r}", retry_safe=False)
    terminal = reply.get("terminal") or {}
    code = terminal.get("code")
    if cls is Failed and code == VerificationFailed.default_code:
        cls = VerificationFailed
    details = {"operation_id": reply.get("operation_id"), "receipt": terminal.get("receipt")}
    told = error if isinstance(error, dict) else {}
    message = terminal.get("message") or told.get("message") or str(status)
    if cls is OutcomeUnknown:
        code = None
        if UNKNOWN_STATEMENT not in message:
            message = f"{message} {UNKNOWN_STATEMENT}"
    return cls(
        message,
        code=code,
        fix=told.get("fix"),
        gate=told.get("gate"),
        details=details,
        observed=told.get("observed"),
        retry_safe=bool(terminal.get("retry_safe", False)) and cls is not OutcomeUnknown,
    )


def outcome(reply: dict[str, Any], again: Callable[[float], W]) -> Receipt | Interrupted | ApprovalRequired[W]:
    """Turn a reply into its result, or raise.

    Args:
        reply: From `act`.
        again: Presents the same operation again for up to so many seconds.

    Raises:
        SurehandError: every refusal and every terminal that is neither a success nor an interruption.
    """
    match reply.get("status"):
        case "succeeded":
            return Receipt(reply)
        case "interrupted":
            return Interrupted(reply)
        case "approval_required":
            return ApprovalRequired(reply, again)
    raise error_of(reply)


@dataclass(frozen=True, slots=True)
class BatchResult:
    """The steps of a batch that were presented, in order. True where all of them succeeded."""

    replies: tuple[dict[str, Any], ...]
    steps: int
    stopped_by: str | None

    def __bool__(self) -> bool:
        return len(self.replies) == self.steps and all(reply["status"] == "succeeded" for reply in self.replies)

    def __len__(self) -> int:
        return len(self.replies)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.replies)

    @property
    def receipts(self) -> tuple[Receipt, ...]:
        """The receipts of the steps that succeeded."""
        return tuple(Receipt(reply) for reply in self.replies if reply["status"] == "succeeded")

    def check(self) -> BatchResult:
        """Return self, or raise the error of the first step that was refused or did not succeed.

        An interrupted or pending step raises nothing, as it would not alone; the batch is then false.
        """
        for reply in self.replies:
            if reply["status"] not in {"succeeded", "interrupted", "approval_required"}:
                raise error_of(reply)
        return self

    def _repr_html_(self) -> str:
        return display.batch_html(list(self.replies))
