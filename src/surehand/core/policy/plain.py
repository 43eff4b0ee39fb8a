"""A rule in plain words, for people who did not write it. Says everything that the rule says, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from surehand.core.policy.model import Match, Rule

_NUMBERS: Final = {1: "a person's yes", 2: "the yes of two people", 3: "the yes of three people"}
_MODES: Final = {"interactive": "with pointer and keyboard", "background_only": "in the background"}
#: What each category is, after "where it is".
CATEGORY_WORDS: Final = {
    "credentials": "about credentials",
    "destructive": "destructive",
    "external": "of consequence outside",
    "install": "an installation",
    "process_run": "running a program",
    "purchase": "a purchase",
    "send_publish": "sending or publishing",
    "settings": "a change of account, security, privacy or network settings",
    "upload": "an upload",
    "denied_app": "in an application that the operator denied by name",
    "own_surface": "in one of Surehand's own windows",
    "sensitive_app": "in a password manager, key store or authentication dialog",
    "shared_desktop": "on a desktop that a person uses",
}


def in_words(rule: Rule) -> str:
    """Return one sentence."""
    match = rule.match
    what = f"do {_or(match.action)}" if match.action else "do anything"
    conditions = " and ".join(_conditions(match))
    rest = f"{what}{_where(match)}{f' where {conditions}' if conditions else ''}"
    who = _or(match.principal)
    if rule.effect == "deny":
        head = f"{who} may not {rest}" if who else f"No agent may {rest}"
    elif rule.effect == "allow":
        head = f"{who or 'Any agent'} may {rest}"
    else:
        yes = _NUMBERS.get(rule.approvals, f"the yes of {rule.approvals} people")
        head = f"{who or 'Any agent'} needs {yes} to {rest}"
    return "; ".join((head, *_also(rule))) + "."


def _where(match: Match) -> str:
    parts = [f" {word} {_or(found)}" for word, found in (("in", match.app), ("at", match.place)) if found]
    if match.isolation:
        parts.append(f" on a desktop that is {_or(match.isolation)}")
    return "".join(parts)


def _conditions(match: Match) -> list[str]:
    found = []
    if match.risk:
        found.append(f"its risk is {_or(match.risk)}")
    if match.category:
        found.append(f"it is {_or(CATEGORY_WORDS.get(name, name) for name in match.category)}")
    if match.interaction_mode:
        found.append(f"it is done {_or(_MODES[one] for one in match.interaction_mode)}")
    if match.trust_level:
        found.append(f"the trust level is {_or(match.trust_level)}")
    if match.backend:
        found.append(f"it goes through {_or(match.backend)}")
    if match.secret:
        found.append(f"it enters the secret {_or(match.secret)}")
    if match.observed is not None:
        looks = [(name, getattr(match.observed, name)) for name in match.observed.__struct_fields__]
        found += [f"the screen says that its {name} is {_or(patterns)}" for name, patterns in looks if patterns]
    return found


def _also(rule: Rule) -> list[str]:
    found = []
    if rule.covers:
        about = _and(CATEGORY_WORDS.get(name, name) for name in rule.covers)
        found.append(f"this takes responsibility where it is {about}, about which a built-in rule would ask")
    if rule.effect == "allow" and rule.approvals != 1:
        found.append(f"where a person is asked, {rule.approvals} of them must say yes")
    if rule.release == "ask":
        found.append("what comes back is given out only where a person is asked about that, and says yes")
    if rule.redact:
        found.append(f"{_and(rule.redact)} is taken out of what comes back")
    return found


def _or(names: Iterable[str]) -> str:
    return " or ".join(names)


def _and(names: Iterable[str]) -> str:
    return " and ".join(names)
