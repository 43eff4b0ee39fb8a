"""A rule in plain words, for people who did not write it. Says everything that the rule says, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from surehand.core.policy.model import Match, Rule

_NUMBERS: Final = {1: "a person's yes", 2: "the yes of two people", 3: "the yes of three people"}
_MODES: Final = {"interactive": "with pointer and keyboard", "background_only": "in the background"}


def in_words(rule: Rule) -> str:
    """Return one sentence."""
    match = rule.match
    who = _or(match.principal) or "any agent"
    what = _or(match.action) or "anything"
    where = _where(match)
    if rule.effect == "deny":
        head = f"{who} may never do {what}{where}"
    elif rule.effect == "allow":
        head = f"{who} may do {what}{where}"
    else:
        yes = _NUMBERS.get(rule.approvals, f"the yes of {rule.approvals} people")
        head = f"{who} needs {yes} to do {what}{where}"
    more = [*_conditions(match), *_also(rule)]
    return "; ".join((head, *more)) + "."


def _where(match: Match) -> str:
    parts = [f" {word} {_or(found)}" for word, found in (("in", match.app), ("at", match.place)) if found]
    if match.isolation:
        parts.append(f" on {_or(match.isolation, 'a desktop that is ')}")
    return "".join(parts)


def _conditions(match: Match) -> list[str]:
    found = []
    if match.risk:
        found.append(f"only where its risk is {_or(match.risk)}")
    if match.category:
        found.append(f"only where it is {_or(match.category)}")
    if match.interaction_mode:
        found.append(f"only {_or(_MODES[one] for one in match.interaction_mode)}")
    if match.trust_level:
        found.append(f"only at trust level {_or(match.trust_level)}")
    if match.backend:
        found.append(f"only through {_or(match.backend)}")
    if match.secret:
        found.append(f"only with the secret {_or(match.secret)}")
    if match.observed is not None:
        looks = [(name, getattr(match.observed, name)) for name in match.observed.__struct_fields__]
        found += [f"only where the screen's {name} is {_or(patterns)}" for name, patterns in looks if patterns]
    return found


def _also(rule: Rule) -> list[str]:
    found = []
    if rule.covers:
        found.append(f"this takes responsibility for {_and(rule.covers)}, about which a built-in rule would ask")
    if rule.effect == "allow" and rule.approvals != 1:
        found.append(f"where a person is asked, {rule.approvals} of them must say yes")
    if rule.release == "ask":
        found.append("what comes back is not given out")
    if rule.redact:
        found.append(f"{_and(rule.redact)} is taken out of what comes back")
    return found


def _or(names: Iterable[str], before: str = "") -> str:
    return " or ".join((f"{before}{names[0]}", *names[1:])) if (names := tuple(names)) else ""


def _and(names: Iterable[str]) -> str:
    return " and ".join(names)
