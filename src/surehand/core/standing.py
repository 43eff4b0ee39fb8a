"""Standing grants: an operator's leave for several uses of something bounded (spec §3.4).

A standing grant answers the question that policy asks; it never turns a deny into anything, and it never answers for a
consequential category. Its uses are counted by the journal in the transaction that claims the operation, under
`use_key`, so that no race and no crash gives one away.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from surehand.core.policy.evaluate import is_interpreter
from surehand.core.policy.model import CONSEQUENTIAL, RISKS, Risk
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
