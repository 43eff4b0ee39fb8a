"""Standing grants: an operator's leave for several uses of something bounded (spec §3.4).

A standing grant answers the question that policy asks; it never turns a deny into anything, and it never answers for a
consequential category. Its uses are counted by the journal in the transaction that claims the operation, under
`use_key`, so that no race and no crash gives one away.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from surehand import limits
from surehand.core.policy.evaluate import is_interpreter
from surehand.core.policy.model import CONSEQUENTIAL, RISKS, Risk
from surehand.errors import InvalidRequest
from surehand.model.approval import ApprovalAnswer, PendingApproval
from surehand.model.authority import StandingGrant


def use_key(grant: StandingGrant) -> str:
    """Return the key under which the journal counts its uses, up to `grant.uses_max`."""
    return f"standing/{grant.grant_id}"


def why_not(
    grant: StandingGrant,
    *,
    principal: str,
    app: str,
    place: str,
    effect: str,
    risk: Risk,
    categories: Collection[str],
    now_ms: int,
) -> str | None:
    """Return why the grant does not cover this, in a few words; None when it does.

    Args:
        grant: One that was not revoked.
        principal: Who asks.
        app: Proven application identity; an operation without one is never covered.
        place: Window identity or origin.
        effect: The effect's exact name; standing grants know no patterns.
        risk: After policy raised it.
        categories: All of them, observed ones too: the screen may take a standing grant away.
        now_ms: Wall-clock.
    """
    checks = (
        ("it is another principal's", grant.principal == principal),
        ("it is for another application", bool(app) and grant.app == app),
        ("its application is an interpreter, which could be anything", not is_interpreter(app)),
        ("it is for another window or origin", grant.place is None or grant.place == place),
        ("it names other actions", effect in grant.actions),
        ("the risk is higher", RISKS.index(risk) <= RISKS.index(grant.risk_max)),
        ("what it would do is consequential", CONSEQUENTIAL.isdisjoint(categories)),
        ("it has expired", now_ms < grant.expires_at_ms),
    )
    return next((reason for reason, holds in checks if not holds), None)


def check_fits(grant: StandingGrant, answer: ApprovalAnswer, pending: PendingApproval, *, now_ms: int) -> None:
    """Refuse leave that says more than what its giver was shown when they agreed to one of it.

    Raises:
        InvalidRequest: naming what does not fit; neither the answer nor the leave counts.
    """
    shown = pending.presentation
    checks = (
        ("leave comes with a yes", answer.answer == "approve"),
        ("only whoever answers gives it", grant.issued_by == answer.approver),
        ("it is for whoever asks", grant.principal == pending.principal),
        ("it is for the application that is shown", bool(shown.app) and grant.app == shown.app),
        ("an interpreter could be any program", not is_interpreter(shown.app)),
        ("it is for the place that is shown, or for its whole application", grant.place in {None, shown.place}),
        ("it is for the action that is shown", set(grant.actions) == {shown.action}),
        ("it is for the risk that is shown", grant.risk_max == shown.risk),
        ("what is consequential is asked about each time", CONSEQUENTIAL.isdisjoint(shown.categories)),
        ("what takes several people is asked about each time", pending.needed == 1),
        ("a plan is asked about each time", not shown.steps),
        ("it must end within a day", now_ms < grant.expires_at_ms <= now_ms + limits.APPROVAL_MS_MAX),
    )
    for message, holds in checks:
        if not holds:
            raise InvalidRequest(f"this cannot be approved for a while: {message}", fix="approve it once")


def first_match(
    grants: Iterable[StandingGrant],
    *,
    principal: str,
    app: str,
    place: str,
    effect: str,
    risk: Risk,
    categories: Collection[str],
    now_ms: int,
) -> StandingGrant | None:
    """Return the first grant that covers this, in the order given."""
    for grant in grants:
        reason = why_not(
            grant,
            principal=principal,
            app=app,
            place=place,
            effect=effect,
            risk=risk,
            categories=categories,
            now_ms=now_ms,
        )
        if reason is None:
            return grant
    return None
