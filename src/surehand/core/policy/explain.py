"""Why a request was decided as it was: every rule that matched, with and without the screen, and what stood."""

from __future__ import annotations

from typing import Any

from surehand.core.policy.evaluate import (
    Compiled,
    Policy,
    candidates_of,
    covered_by,
    matching_of,
    observed_categories_of,
    proven_categories_of,
    seen_candidates_of,
    standing_of,
    verdict_of,
)
from surehand.model.decision import PolicyInput
from surehand.model.record import Record


class Matched(Record, frozen=True, kw_only=True):
    """A rule that matched. One that does not stand gave way to a rule that covers its categories."""

    rule: str
    effect: str
    reason: str
    built_in: bool
    stands: bool
    covers: tuple[str, ...] = ()


class Look(Record, frozen=True, kw_only=True):
    """One of the two looks at a request: with what was observed, or without."""

    with_screen: bool
    categories: tuple[str, ...]
    outcome: str
    rule: str
    matched: tuple[Matched, ...]


def explain(policy: Policy, document: PolicyInput) -> list[Look]:
    """Return one look, or two where anything was observed. Empty for a policy that denies everything."""
    if policy.closed is not None:
        return []
    proven = proven_categories_of(document.facts)
    candidates = candidates_of(policy, document, document.action)
    matching = matching_of(candidates, proven, {})
    covered = covered_by(matching)
    looks = [_look(matching, proven, covered, document, with_screen=False)]
    observed: dict[str, Any] = document.facts.observed
    if observed:
        present = proven | observed_categories_of(observed)
        seen = matching_of([*candidates, *(seen_candidates_of(policy, document) or [])], present, observed)
        looks.append(_look(seen, present, covered, document, with_screen=True))
    return looks


def _look(
    matching: list[Compiled],
    present: frozenset[str],
    covered: frozenset[str],
    document: PolicyInput,
    *,
    with_screen: bool,
) -> Look:
    standing = standing_of(matching, present, covered)
    verdict = verdict_of(standing, approved=document.approved)
    stands = {id(one) for one in standing}
    matched = {
        one.rule.id: Matched(
            rule=one.rule.id,
            effect=one.rule.effect,
            reason=one.rule.reason,
            built_in=one.is_default,
            stands=id(one) in stands,
            covers=one.rule.covers,
        )
        for one in matching
    }
    return Look(
        with_screen=with_screen,
        categories=tuple(sorted(present)),
        outcome=verdict.outcome,
        rule=verdict.rule,
        matched=tuple(matched.values()),
    )
