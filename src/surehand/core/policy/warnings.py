"""What is right in a rule file and does nothing: rules that can never match, or never decide (spec §6.1).

Sound, not complete: what is warned of is so, and not everything that is so is warned of.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from surehand.core.policy.categories import PROCESS_RUN
from surehand.core.policy.effects import EFFECTS
from surehand.core.policy.evaluate import is_interpreter
from surehand.core.policy.inputs import READ_EFFECTS
from surehand.core.policy.model import STRICTNESS, Match, ObservedMatch, Rule, matcher
from surehand.core.policy.vocabulary import plain
from surehand.model.record import Record

_PATTERNS: Final = ("principal", "action", "app", "place", "backend", "secret")
_VALUES: Final = ("risk", "isolation", "interaction_mode", "trust_level")
_OBSERVED: Final = ("role", "name", "context", "title", "claimed")
_ORIGIN: Final = re.compile(r"[a-z][a-z0-9+.-]*://[^/]*")
_IDENTITY: Final = re.compile(r"(?:exe|script|desktop|package|launch|flatpak|snap):|.*\*.*")
#: Effects that only read; their risk can be `read`.
_READING: Final = READ_EFFECTS | {"desktop.screenshot.desktop", "desktop.clipboard.read", "desktop.physical_state",
                                  "desktop.abort"}  # fmt: skip


class Idle(Record, frozen=True, kw_only=True):
    """Something that its author cannot have meant. `field` is where in the rule it stands."""

    rule: str
    position: int
    message: str
    field: tuple[str, ...] = ()


def warnings_of(rules: Sequence[Rule]) -> list[Idle]:
    """Return warnings in the order of the rules."""
    found: list[Idle] = []
    for position, rule in enumerate(rules):
        alone = _alone(rule)
        if alone is None:
            alone = _beside(rule, [other for other in rules if other is not rule], rules[:position])
        if alone is not None:
            message, field = alone
            found.append(Idle(rule=rule.id, position=position, message=message, field=field))
    return found


# --- a rule by itself -----------------------------------------------------------------------------------------------


def _alone(rule: Rule) -> tuple[str, tuple[str, ...]] | None:
    match = rule.match
    effects = _effects(match)
    if match.action and not effects:
        return (f"no effect is called {match.action[0]}, so it never matches", ("match", "action"))
    unknown = next((one for one in match.action if not _effects(Match(action=(one,)))), None)
    if unknown is not None:
        return (f"no effect is called {unknown}", ("match", "action"))
    if match.app and (strange := next((app for app in match.app if not _IDENTITY.match(app)), None)) is not None:
        return (f"{strange} is no identity: write exe:/usr/bin/… as `surehand apps` shows it", ("match", "app"))
    if (why := _nowhere(match.place)) is not None:
        return (why, ("match", "place"))
    grants = rule.effect == "allow" or bool(rule.covers)
    if grants and match.app and all("*" not in app and is_interpreter(app) for app in match.app):
        return ("an interpreter's identity opens nothing, so it never matches: name the script", ("match", "app"))
    return _contradiction(match, effects)


def _nowhere(places: tuple[str, ...]) -> str | None:
    strange = next((place for place in places if "://" in place and not _ORIGIN.fullmatch(place)), None)
    if strange is not None:
        return f"an origin has no path, so {strange} never matches"
    if places and all("://" in place for place in places):
        # Browsers are read through accessibility, which proves no address.
        return "no browser's address is proven yet, so a rule about an origin never matches"
    return None


def _contradiction(match: Match, effects: frozenset[str]) -> tuple[str, tuple[str, ...]] | None:
    if match.risk and match.action:
        if set(match.risk) == {"read"} and effects.isdisjoint(
            _READING | {one.replace("desktop.", "browser.", 1) for one in _READING}
        ):
            return (
                "these actions change something, so their risk is never read, and it never matches",
                ("match", "risk"),
            )
        if effects == {PROCESS_RUN} and set(match.risk) <= {"read", "reversible"}:
            return ("running a program is at least external, so it never matches", ("match", "risk"))
    if match.isolation and "shared" not in match.isolation and set(match.category) == {"shared_desktop"}:
        return ("a desktop that is shared is not isolated, so it never matches", ("match", "category"))
    return None


def _effects(match: Match) -> frozenset[str]:
    if not match.action:
        return EFFECTS
    test = matcher(match.action)
    return frozenset(effect for effect in EFFECTS if test(effect))


# --- a rule among others --------------------------------------------------------------------------------------------


def _beside(rule: Rule, others: Sequence[Rule], earlier: Sequence[Rule]) -> tuple[str, tuple[str, ...]] | None:
    for other in others:
        if STRICTNESS[other.effect] <= STRICTNESS[rule.effect] or not covers_match(other.match, rule.match):
            continue
        if other.effect == "deny":
            return (f"rule {other.id} denies everything that it speaks of, so it never decides", ())
        if not rule.covers:
            return (f"rule {other.id} asks about everything that it allows, so it never decides", ())
    for other in earlier:
        same = (other.effect, other.approvals, other.release, other.redact) == (
            rule.effect, rule.approvals, rule.release, rule.redact,
        )  # fmt: skip
        if same and set(rule.covers) <= set(other.covers) and covers_match(other.match, rule.match):
            return (f"rule {other.id} says the same of more, so it adds nothing", ())
    return None


def covers_match(wide: Match, narrow: Match) -> bool:
    """Say whether every request that `narrow` matches is certainly matched by `wide`."""
    for field in _PATTERNS:
        if not _covers(getattr(wide, field), getattr(narrow, field)):
            return False
    for field in _VALUES:
        if (values := getattr(wide, field)) and not (
            getattr(narrow, field) and set(getattr(narrow, field)) <= set(values)
        ):
            return False
    if wide.category and not (narrow.category and set(narrow.category) <= set(wide.category)):
        return False
    return _covers_observed(wide.observed, narrow.observed)


def _covers_observed(wide: ObservedMatch | None, narrow: ObservedMatch | None) -> bool:
    if wide is None:
        return True
    return all(
        not getattr(wide, field)
        or (
            narrow is not None and _covers(_plain(getattr(wide, field)), _plain(getattr(narrow, field)), needs_one=True)
        )
        for field in _OBSERVED
    )


def _plain(patterns: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(plain(pattern) for pattern in patterns)


def _covers(wide: tuple[str, ...], narrow: tuple[str, ...], *, needs_one: bool = False) -> bool:
    """Say whether what these patterns match is all within what those match.

    A pattern matches another one's text as if its `*` were an ordinary character: only a `*` can take it.
    """
    if not wide:
        return True
    if not narrow:
        return not needs_one and "*" in wide
    test = matcher(wide)
    return all(test(pattern) for pattern in narrow)
