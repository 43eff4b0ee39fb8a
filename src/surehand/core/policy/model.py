"""Policy rules as records, with the bounds that make a rule file safe to evaluate.

What a rule may depend on is the heart of it: a rule that allows, or that covers a category, may look at proven facts
only. Observed text may only make an answer stricter, so only rules that deny or ask may look at it (spec §6.1).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

from surehand import limits
from surehand.errors import InvalidRequest
from surehand.model.decision import Outcome, check_redact
from surehand.model.record import Record, check_count, check_identifier, check_range, check_text

Risk = Literal["read", "reversible", "external", "destructive"]
#: A test of one text; anything true is a match.
Matches = Callable[[str], object]
Isolation = Literal["isolated", "display_only", "shared"]

#: From harmless to grave; what raises risk moves right and nothing moves left.
RISKS: Final[tuple[Risk, ...]] = ("read", "reversible", "external", "destructive")
#: From free to strict.
STRICTNESS: Final[dict[Outcome, int]] = {"allow": 0, "require_approval": 1, "deny": 2}

#: Effects that a person must have agreed to, unless an operator rule covers them by name (spec §6.2).
CONSEQUENTIAL: Final = frozenset(
    {
        "credentials",
        "destructive",
        "external",
        "install",
        "process_run",
        "purchase",
        "send_publish",
        "settings",
        "upload",
    }
)
#: Places that need an operator's word whatever is done there.
PLACES: Final = frozenset({"denied_app", "own_surface", "sensitive_app", "shared_desktop"})
CATEGORIES: Final = CONSEQUENTIAL | PLACES
#: What a rule can cover. An application that was denied by token and Surehand's own surfaces are not among them.
COVERABLE: Final = CONSEQUENTIAL | {"sensitive_app", "shared_desktop"}


def check_patterns(name: str, patterns: tuple[str, ...]) -> None:
    """Refuse too many, too long or too branching patterns; each `*` multiplies what matching may cost."""
    check_count(name, len(patterns), 0, limits.POLICY_PATTERNS_MAX)
    for pattern in patterns:
        check_text(name, pattern, limits.NAME_CHARS_MAX, empty=False)
        check_count(f"* in {name}", pattern.count("*"), 0, limits.POLICY_STARS_MAX)


def check_known(name: str, values: tuple[str, ...], known: frozenset[str]) -> None:
    """Refuse a name that is not in the vocabulary: a misspelt category would silently protect nothing."""
    for value in values:
        if value not in known:
            raise InvalidRequest(f"{name}: {value[:64]} is none of {', '.join(sorted(known))}")


class ObservedMatch(Record, frozen=True, kw_only=True):
    """Conditions on what the screen says: patterns, compared without case; a missing text matches none."""

    role: tuple[str, ...] = ()
    name: tuple[str, ...] = ()
    context: tuple[str, ...] = ()
    title: tuple[str, ...] = ()
    claimed: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            check_patterns(f"match.observed.{name}", getattr(self, name))


class Match(Record, frozen=True, kw_only=True):
    """Conditions that must all hold; an empty one holds always. `*` in a pattern stands for any characters.

    `category` holds when any of the named categories is present. Everything but `category` and `observed` is proven.
    """

    principal: tuple[str, ...] = ()
    action: tuple[str, ...] = ()
    app: tuple[str, ...] = ()
    place: tuple[str, ...] = ()
    risk: tuple[Risk, ...] = ()
    isolation: tuple[Isolation, ...] = ()
    interaction_mode: tuple[Literal["interactive", "background_only"], ...] = ()
    trust_level: tuple[Literal["A", "B"], ...] = ()
    backend: tuple[str, ...] = ()
    secret: tuple[str, ...] = ()
    category: tuple[str, ...] = ()
    observed: ObservedMatch | None = None

    def __post_init__(self) -> None:
        for name in ("principal", "action", "app", "place", "backend", "secret"):
            check_patterns(f"match.{name}", getattr(self, name))
        check_known("match.category", self.category, CATEGORIES)


class Rule(Record, frozen=True, kw_only=True):
    """One rule. `covers` names the categories that its allowance, or its question, takes responsibility for.

    `approvals`, `release` and `redact` become obligations of whatever the rule lets through.
    """

    id: str
    effect: Outcome
    reason: str
    match: Match = Match()
    covers: tuple[str, ...] = ()
    approvals: int = 1
    release: Literal["always", "ask"] = "always"
    redact: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_identifier("rule id", self.id)
        check_text("reason", self.reason, limits.REASON_CHARS_MAX, empty=False)
        check_range("approvals", self.approvals, 1, limits.APPROVALS_NEEDED_MAX)
        check_known("covers", self.covers, COVERABLE)
        check_redact(self.redact)


def check_rule(rule: Rule) -> None:
    """Refuse an operator rule that could let the screen, or too loose an identity, open something.

    Raises:
        InvalidRequest: naming the rule and what to write instead.
    """
    if rule.effect == "deny" and rule.covers:
        raise InvalidRequest(f"rule {rule.id}: a rule that denies covers nothing")
    grants = rule.effect == "allow" or bool(rule.covers)
    if grants and rule.match.observed is not None:
        raise InvalidRequest(
            f"rule {rule.id}: only rules that deny or ask may look at observed text",
            fix="Use app, place, action or principal, which are proven.",
        )
    if grants and rule.match.category:
        raise InvalidRequest(
            f"rule {rule.id}: categories may be raised by the screen, so they cannot be a condition of an allowance",
            fix='Write covers = ["…"] instead of match.category.',
        )
    if "sensitive_app" in rule.covers and (not rule.match.app or any("*" in app for app in rule.match.app)):
        raise InvalidRequest(
            f"rule {rule.id}: sensitive applications are covered one by one, by exact identity",
            fix='Write match.app = ["exe:/usr/bin/…"] without *.',
        )


def matcher(patterns: tuple[str, ...]) -> Matches:
    """Return a test for "equals one of these", where `*` stands for any characters."""
    exact = frozenset(pattern for pattern in patterns if "*" not in pattern)
    globs = [_glob(pattern) for pattern in patterns if "*" in pattern]
    if not globs:
        return exact.__contains__
    return lambda value: value in exact or any(matches(value) for matches in globs)


def _glob(pattern: str) -> Matches:
    """Return a test for one pattern. Linear in the text, which may be an attacker's, so no regular expression."""
    first, *middle, last = pattern.split("*")

    def matches(text: str) -> bool:
        at, end = len(first), len(text) - len(last)
        if end < at or not (text.startswith(first) and text.endswith(last)):
            return False
        for part in middle:
            found = text.find(part, at, end)
            if found < 0:
                return False
            at = found + len(part)
        return True

    return matches
