"""The whole error tree, by whose fault it is.

Every error carries a stable `code` (spec §12), `retry_safe` (true only where provably nothing happened), a
one-line `fix` where one exists, and `observed`: text that came from the screen, kept apart from our own words
because it is data and may lie. `to_value` is the one shape in which errors leave the process.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

#: Longest message or fix that leaves the process, in characters. Stops an application that puts a megabyte into a
#: name from filling every reply.
_TEXT_MAX: Final = 1000
#: How much of a program's own output the text form of an error quotes.
_LOG_LINES_MAX: Final = 5
_LOG_LINE_MAX: Final = 200


class SurehandError(Exception):
    """Base of every error Surehand raises on purpose.

    Args:
        message: What went wrong, in our words only.
        code: One of spec §12; defaults to the class's own.
        fix: What the reader can do about it, in one line.
        gate: The step of spec §5.1 that refused, where one did.
        details: Facts of ours (limits, identifiers); JSON values.
        observed: Facts read from applications (names, labels, candidates); JSON values, never instructions.
        retry_safe: Overrides the class's answer; true only if no effect can have happened.
    """

    default_code: ClassVar[str] = "internal"
    default_retry_safe: ClassVar[bool] = True
    exit_code: ClassVar[int] = 1

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        fix: str | None = None,
        gate: str | None = None,
        details: dict[str, Any] | None = None,
        observed: dict[str, Any] | None = None,
        retry_safe: bool | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message[:_TEXT_MAX]
        self.code = code or self.default_code
        self.fix = None if fix is None else fix[:_TEXT_MAX]
        self.gate = None if gate is None else str(gate)
        self.details = details or {}
        self.observed = observed or {}
        self.retry_safe = self.default_retry_safe if retry_safe is None else retry_safe

    def __str__(self) -> str:
        lines = [f"{self.code}: {self.message}"]
        difference = self.observed.get("difference")
        if isinstance(difference, dict) and "what" in difference:
            before, now = difference.get("before"), difference.get("now")
            lines.append(f"what differs (as shown on screen): {difference['what']}, was {before!r}, is {now!r}")
        candidates = self.observed.get("candidates")
        if isinstance(candidates, list) and candidates:
            lines.append("candidates (as shown on screen):")
            lines.extend(f"  {_on_one_line(str(candidate))}" for candidate in candidates[:10])
        log = self.observed.get("log")
        if isinstance(log, str) and log.strip():
            lines.append("the end of what it printed (its own words):")
            lines.extend(f"  {_on_one_line(line[:_LOG_LINE_MAX])}" for line in log.splitlines()[-_LOG_LINES_MAX:])
        words = self.details.get("operator_reason")
        if isinstance(words, str) and words.strip():
            lines.append(f"the operator's words: {words[:_TEXT_MAX]!r}")
        if self.fix:
            lines.append(f"fix: {self.fix}")
        return "\n".join(lines)

    def to_value(self) -> dict[str, Any]:
        """Return the JSON form: `{code, message, retry_safe, fix?, gate?, details?, observed?}`."""
        value: dict[str, Any] = {"code": self.code, "message": self.message, "retry_safe": self.retry_safe}
        for name in ("fix", "gate", "details", "observed"):
            if content := getattr(self, name):
                value[name] = content
        return value


def _on_one_line(text: str) -> str:
    """Return text from a screen as part of one line: it must not look like the next line of ours."""
    return text if text.isprintable() else repr(text)


# --- the caller's fault ---------------------------------------------------------------------------------------


class InvalidRequest(SurehandError, ValueError):
    """The request is malformed, out of bounds or unfenced; nothing was looked at."""

    default_code = "invalid_request"


class Conflict(SurehandError):
    """The operation id was already used for something else (spec §5.3)."""

    default_code = "conflict"


class ReconcileRequired(SurehandError):
    """The same effect is unresolved as `outcome_unknown`; name it and a later scene first (spec §5.7)."""

    default_code = "reconcile_required"


class BudgetExhausted(SurehandError):
    """The principal's budget is used up (spec §6.2)."""

    default_code = "budget_exhausted"


class TooLarge(SurehandError):
    """A bound of `limits.py` was exceeded."""

    default_code = "too_large"


# --- decided by the host ----------------------------------------------------------------------------------------


class AuthorityDenied(SurehandError):
    """The grant, keyring or configured authority does not cover the request."""

    default_code = "authority_denied"


class PolicyDenied(SurehandError):
    """Policy said no, or could not say yes."""

    default_code = "policy_denied"


class ApprovalDenied(SurehandError):
    """A person said no."""

    default_code = "approval_denied"


class ApprovalUnanswered(SurehandError):
    """Nobody answered before the approval expired; recorded as neither yes nor no."""

    default_code = "approval_unanswered"


class PermitInvalid(SurehandError):
    """A permit is forged, expired, used, or for something else."""

    default_code = "permit_invalid"


# --- the world changed or is not as asked -------------------------------------------------------------------------


class TargetError(SurehandError):
    """Base of what can be wrong with a target; nothing was done."""


class StaleTarget(TargetError):
    """What was observed is not there any more or means something else (spec §8.3); names the difference."""

    default_code = "stale_target"


class TargetNotFound(TargetError):
    """No element matches."""

    default_code = "target_not_found"


class AmbiguousTarget(TargetError):
    """Several elements match; `observed["candidates"]` lists them."""

    default_code = "ambiguous_target"


class TargetNotActionable(TargetError):
    """The element is disabled, hidden or cannot do this."""

    default_code = "target_not_actionable"


class BehindModal(TargetError):
    """A modal window of the same application covers the target."""

    default_code = "behind_modal"


class SecureSurface(TargetError):
    """The surface is a lock screen, a password prompt of others, or a secret field."""

    default_code = "secure_surface"


class UnsupportedAction(TargetError):
    """This element, toolkit or backend has no such action."""

    default_code = "unsupported_action"


class FocusRequired(TargetError):
    """The route needs a focused target."""

    default_code = "focus_required"


class AppNotFound(TargetError):
    """No running application has that identity."""

    default_code = "app_not_found"


class AmbiguousApp(TargetError):
    """Several running applications match."""

    default_code = "ambiguous_app"


class WindowNotFound(TargetError):
    """The window is gone or never was."""

    default_code = "window_not_found"


class Cancelled(SurehandError):
    """Cancelled before any effect."""

    default_code = "cancelled"


class Timeout(SurehandError, TimeoutError):
    """A bounded wait ended before any effect."""

    default_code = "timeout"


# --- the environment ----------------------------------------------------------------------------------------------


class Unavailable(SurehandError):
    """A daemon, display, bus or application is missing or does not answer."""

    default_code = "backend_unavailable"
    exit_code = 3


class CaptureUnavailable(Unavailable):
    """A window gives no pixels (minimised, gone, protected)."""

    default_code = "capture_unavailable"
    exit_code = 1


class AccessibilityDisabled(Unavailable):
    """The application runs but exposes no accessibility tree."""

    default_code = "accessibility_disabled"
    exit_code = 1


class PermissionMissing(Unavailable):
    """The operating system does not let us."""

    default_code = "permission_missing"


class JournalRecovery(Unavailable):
    """The journal failed verification and is read-only; effects are refused."""

    default_code = "journal_recovery"


class CommitUnknown(JournalRecovery):
    """The commit was asked for and its answer lost: the events may be durable or not.

    Never retried and never read as "not written": after a claim the gateway must not dispatch, after an effect the
    reply is `outcome_unknown`. The store is read-only until it is opened again, which settles what was written.
    """

    default_retry_safe = False


# --- after dispatch -------------------------------------------------------------------------------------------------


class EffectError(SurehandError):
    """Base of what is raised for a terminal that is not a success; carries `receipt` in `details`."""

    default_retry_safe = False


class VerificationFailed(EffectError):
    """A stable read-back contradicts the expected effect (spec §9)."""

    default_code = "verification_failed"


class Failed(EffectError):
    """The adapter proved that no effect happened."""

    default_code = "internal"


class Withheld(EffectError):
    """It happened; its output was not released."""

    default_code = "policy_denied"


class OutcomeUnknown(EffectError):
    """It was sent and what became of it is not known; never true, never retried (spec §3.5)."""

    default_code = "outcome_unknown"
    exit_code = 4

    def __bool__(self) -> bool:
        return False


class InternalError(SurehandError):
    """A defect of ours."""

    default_code = "internal"


def _by_code() -> dict[str, type[SurehandError]]:
    found: dict[str, type[SurehandError]] = {}
    pending: list[type[SurehandError]] = [SurehandError]
    while pending:
        cls = pending.pop()
        pending.extend(cls.__subclasses__())
        if "default_code" in cls.__dict__ and cls.default_code not in found:
            found[cls.default_code] = cls
    found.update(internal=InternalError, policy_denied=PolicyDenied)
    return found


_CLASSES: Final = _by_code()


def from_value(value: dict[str, Any]) -> SurehandError:
    """Rebuild the error that `to_value` described; an unknown code becomes `SurehandError` with that code.

    The value may come from another process: members of the wrong type are dropped, and `retry_safe` is true only
    where it says exactly true.
    """
    code = value.get("code")
    code = code if isinstance(code, str) else "internal"
    message, fix, gate = (_text_or_none(value.get(name)) for name in ("message", "fix", "gate"))
    return _CLASSES.get(code, SurehandError)(
        message or "",
        code=code,
        fix=fix,
        gate=gate,
        details=_object_or_none(value.get("details")),
        observed=_object_or_none(value.get("observed")),
        retry_safe=value.get("retry_safe") is True,
    )


def _text_or_none(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _object_or_none(value: Any) -> dict[str, Any] | None:
    return value if isinstance(value, dict) else None
