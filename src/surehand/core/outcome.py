"""How an operation that was entered ends: one table from what is known to the terminal (spec §3.5, §8.3, §9, §10).

Guarantees, each tested over every combination: exactly one row applies; "verified" is said only of what was read
back; "failed" only of a definite no-effect or a stable contradiction after the application acknowledged; a handler
that may still be running is never "failed"; `retry_safe` is true only where provably nothing happened.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Final, Literal

import msgspec

from surehand.model.outcome import UNKNOWN_STATEMENT, Effect, TerminalKind
from surehand.model.record import Record

#: Endings that are remembered; nearly all operations end in a handful of ways.
ENDINGS_MAX: Final = 64

Status = Literal["done", "begun", "sent", "no_effect", "unknown"]
Verified = Literal["verified", "contradicted", "unreadable", "not_asked", "pending"]
Context = Literal["not_applicable", "unchanged", "changed_by_person", "changed", "unreadable"]


#: Why an application may refuse. Anything else, above all text of an application, does not become a terminal's code.
NO_EFFECT_CODES: Final = frozenset(
    {
        "accessibility_disabled",
        "ambiguous_target",
        "app_not_found",
        "backend_unavailable",
        "behind_modal",
        "capture_unavailable",
        "focus_required",
        "permission_missing",
        "secure_surface",
        "stale_target",
        "target_not_actionable",
        "target_not_found",
        "unsupported_action",
        "window_not_found",
    }
)


class Known(Record, frozen=True, kw_only=True):
    """Everything that is known about an entered operation when it is time to say how it ended.

    Args:
        status: What the actor said. `no_effect` is its proof that nothing happened; `begun` that the handler runs.
        verification: What reading back said. `pending` means that the budget ended while it still could come true.
        context: The background sample before and after (spec §10).
        interrupted: The person took over; the actor stopped between two units.
        cancelled: The caller cancelled after entering.
        expired: The deadline passed after entering.
        meaning_changed: The target's context changed while a delayed handler was awaited (spec §8.3).
        withheld: Release policy kept the output back.
        delivered: Units of input that were delivered, for the message of an interruption.
        secret: They were of an enrolled secret, so nobody is told how many.
        no_effect_code: Why the application refused, as a code of spec §12.
    """

    status: Status
    verification: Verified
    context: Context = "not_applicable"
    interrupted: bool = False
    cancelled: bool = False
    expired: bool = False
    meaning_changed: bool = False
    withheld: bool = False
    delivered: int = 0
    secret: bool = False
    no_effect_code: str = "internal"


class Ending(Record, frozen=True, kw_only=True):
    """What the terminal says. `code` is None for a success and for an interruption."""

    kind: TerminalKind
    effect: Effect
    code: str | None
    message: str | None
    retry_safe: bool


def _unknown(why: str, *, effect: Effect = "unknown") -> Callable[[Known], Ending]:
    ending = Ending(
        kind="outcome_unknown",
        effect=effect,
        code="outcome_unknown",
        message=f"{why} {UNKNOWN_STATEMENT}",
        retry_safe=False,
    )
    return lambda _: ending


def _interrupted(known: Known) -> Ending:
    nothing = known.status == "no_effect" and known.delivered == 0
    part = "A part of the secret may have been entered." if known.secret else None
    return Ending(
        kind="interrupted",
        effect="unknown",
        code=None,
        message=f"A person took over. {part or f'{known.delivered} units of input had been delivered.'}",
        retry_safe=nothing,
    )


def _no_effect(known: Known) -> Ending:
    if known.cancelled:
        code, message = "cancelled", "It was cancelled, and nothing had happened."
    elif known.expired:
        code, message = "timeout", "The deadline passed, and nothing had happened."
    else:
        code = known.no_effect_code if known.no_effect_code in NO_EFFECT_CODES else "internal"
        message = "The application refused; nothing happened."
    return Ending(kind="failed", effect="unknown", code=code, message=message, retry_safe=True)


def _contradicted(_: Known) -> Ending:
    return Ending(
        kind="failed",
        effect="executed_unverified",
        code="verification_failed",
        message="The application acknowledged, and what was read back stays different from what was expected.",
        retry_safe=False,
    )


def _executed(effect: Effect) -> Callable[[Known], Ending]:
    success = Ending(kind="succeeded", effect=effect, code=None, message=None, retry_safe=False)
    withheld = Ending(
        kind="withheld",
        effect=effect,
        code="policy_denied",
        message="It happened; its output was not released.",
        retry_safe=False,
    )
    return lambda known: withheld if known.withheld else success


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the table: what it is called, what it ends as (both for people), when it applies, how it ends."""

    name: str
    ends: str
    applies: Callable[[Known], bool]
    end: Callable[[Known], Ending]


#: First match decides.
RULES: Final[tuple[Row, ...]] = (
    # A foreground that moved, or could not be sampled, contradicts every claim about what was done, even "nothing".
    Row(
        name="background work changed the foreground, the focus or the pointer",
        ends="`outcome_unknown`",
        applies=lambda k: k.context == "changed",
        end=_unknown("Something other than the person changed the foreground, the focus or the pointer."),
    ),
    Row(
        name="the foreground, the focus or the pointer could not be sampled",
        ends="`outcome_unknown`",
        applies=lambda k: k.context == "unreadable",
        end=_unknown("Whether the foreground, the focus and the pointer stayed as they were could not be read."),
    ),
    # An interruption that cannot say what was delivered is no interruption but an unknown.
    Row(
        name="a person took over, and what was delivered is known",
        ends="`interrupted`",
        applies=lambda k: k.interrupted and k.status != "unknown",
        end=_interrupted,
    ),
    Row(
        name="the actor proved that nothing happened",
        ends="`failed` (`cancelled`, `timeout`, or the application's reason), retry safe",
        applies=lambda k: k.status == "no_effect",
        end=_no_effect,
    ),
    Row(
        name="the actor does not know",
        ends="`outcome_unknown`",
        applies=lambda k: k.status == "unknown",
        end=_unknown("It was sent, and what became of it is not known."),
    ),
    # The expected effect may itself change the meaning of its target; only that excuses a change.
    Row(
        name="the target came to mean something else before its handler ran, and the effect was not seen",
        ends="`outcome_unknown`",
        applies=lambda k: k.meaning_changed and k.verification != "verified",
        end=_unknown("What the target means changed while the application had not run its handler yet."),
    ),
    Row(
        name="the expected effect was read back",
        ends="`succeeded`, verified; `withheld` where its output is not released",
        applies=lambda k: k.verification == "verified",
        end=_executed("verified"),
    ),
    # Spec §9, ADR 8: only after an acknowledgement, for a handler that still runs may yet bring it about.
    Row(
        name="the application acknowledged, and what is read back stays different",
        ends="`failed` (`verification_failed`)",
        applies=lambda k: k.verification == "contradicted" and k.status == "done",
        end=_contradicted,
    ),
    Row(
        name="the expected effect was not seen in time and may still come",
        ends="`outcome_unknown`",
        applies=lambda k: k.verification in ("contradicted", "pending"),
        end=_unknown("The expected effect was not seen in time; it may still come."),
    ),
    Row(
        name="the result could not be read back",
        ends="`outcome_unknown`",
        applies=lambda k: k.verification == "unreadable",
        end=_unknown("The result could not be read back."),
    ),
    Row(
        name="nothing was asked, and it was cancelled or its time ran out after it was sent",
        ends="`outcome_unknown`",
        applies=lambda k: k.cancelled or k.expired,
        end=_unknown("It was cut off after it had been sent.", effect="executed_unverified"),
    ),
    Row(
        name="nothing was asked, and the application did not acknowledge",
        ends="`outcome_unknown`",
        applies=lambda k: k.status == "sent",
        end=_unknown("It was delivered, not acknowledged in time, and nothing was read back."),
    ),
    # A handler that runs a dialog of its own acknowledges when that closes (spec §9); it was begun, which is proven.
    Row(
        name="nothing was asked, and the application acknowledged, or is proven to run what it was asked for",
        ends="`succeeded`, executed but not verified; `withheld` where its output is not released",
        applies=lambda _: True,
        end=_executed("executed_unverified"),
    ),
)


@functools.lru_cache(maxsize=ENDINGS_MAX)
def terminal_of(known: Known) -> Ending:
    """Return the one ending of an entered operation; total over everything that can be known.

    The rules look at nothing but what is known, so the same knowledge has the same ending.
    """
    return row_of(known).end(known)


def row_of(known: Known) -> Row:
    """Return the row that decides."""
    return next(row for row in RULES if row.applies(known))
