"""Random rules and documents over a small vocabulary, so that rules and requests meet often.

Each is built by an ordinary generator from one seed that Hypothesis draws: twenty times as many cases in the same time,
and a failure is reproduced by its seeds.
"""

from __future__ import annotations

from random import Random

from hypothesis import strategies as st

from surehand.core.policy.model import CATEGORIES, COVERABLE, Match, ObservedMatch, Rule
from surehand.model.decision import Facts, PolicyInput

PRINCIPALS = ["agent", "agent.sub"]
ACTIONS = ["desktop.invoke", "desktop.clipboard.read", "process.run"]
APPS = ["exe:/usr/bin/mousepad", "exe:/usr/bin/python3.11", "exe:/opt/bash", "script:/usr/bin/python3:/srv/a.py", ""]
PLACES = ["main", "https://example.org", ""]
SECRETS = ["vault:mail", "env:TOKEN", ""]
TEXTS = ["Save", "DELETE all", "de\u200blete", "", "Ünïcode €", "a_b", "\n"]
#: Longer than what a rule is compared with.
LONG_TEXT = "x" * 1023 + "yz"
RISKS = ["read", "reversible", "external", "destructive"]
ISOLATIONS = ["isolated", "display_only", "shared"]
MODES = ["interactive", "background_only"]


def _some(random: Random, values, most: int = 2) -> tuple:
    return tuple(random.sample(values, random.randint(1, min(most, len(values)))))


def _seldom(random: Random, values, most: int = 2) -> tuple:
    return _some(random, values, most) if random.random() < 0.25 else ()


def _pattern(random: Random, value: str) -> str:
    return (
        random.choice([value, f"{value[:4]}*", f"*{value[-4:]}", f"{value[:2]}*{value[-2:]}", f"*{value[2:5]}*", "*"])
        or "*"
    )


def _patterns(random: Random, values) -> tuple:
    if random.random() < 0.7:
        return ()
    return tuple(_pattern(random, random.choice(values)) for _ in range(random.randint(1, 2)))


def _match(random: Random) -> Match:
    observed = None
    if random.random() < 0.3:
        observed = ObservedMatch(
            role=_patterns(random, ["button", "terminal"]),
            name=_patterns(random, TEXTS),
            context=_patterns(random, TEXTS),
            claimed=_patterns(random, TEXTS),
        )
    return Match(
        principal=_patterns(random, PRINCIPALS),
        action=_patterns(random, ACTIONS),
        app=_patterns(random, APPS),
        place=_patterns(random, PLACES),
        risk=_seldom(random, RISKS, 3),
        isolation=_seldom(random, ISOLATIONS),
        interaction_mode=_seldom(random, MODES, 1),
        secret=_patterns(random, SECRETS) if random.random() < 0.3 else (),
        category=_seldom(random, sorted(CATEGORIES), 3),
        observed=observed,
    )


def build_rule(random: Random) -> Rule:
    """Return any rule, even one that the reader of rule files refuses: the evaluator alone must keep its promises."""
    return Rule(
        id=f"r{random.randint(1, 9)}",
        effect=random.choice(["allow", "allow", "allow", "require_approval", "deny"]),
        reason="because",
        match=_match(random),
        covers=_some(random, sorted(COVERABLE), 8) if random.random() < 0.6 else (),
        approvals=random.randint(1, 3),
        release=random.choice(["always", "ask"]),
        redact=_seldom(random, ["text", "png"]),
    )


def build_rules(random: Random) -> list[Rule]:
    return [build_rule(random) for _ in range(random.randint(0, 5))]


def build_observed(random: Random) -> dict:
    if random.random() < 0.3:
        return {}
    found: dict = {"role": random.choice(["button", "terminal"])}
    for field in ("name", "context", "title", "claimed"):
        if random.random() < 0.6:
            found[field] = random.choice([*TEXTS, LONG_TEXT])
    if random.random() < 0.6:
        found["categories"] = list(_some(random, [*sorted(CATEGORIES), "invented"], 2))
    if random.random() < 0.3:
        found["effect"] = random.choice(ACTIONS)
    return found


def build_document(random: Random) -> PolicyInput:
    # Places that close everything are rarer than chance would have it, or hardly anything else would be decided.
    categories = sorted(CATEGORIES - {"own_surface", "denied_app"})
    return PolicyInput(
        principal=random.choice(PRINCIPALS),
        action=random.choice(ACTIONS),
        risk=random.choice(RISKS),
        interaction_mode=random.choice(MODES),
        parameters={},
        facts=Facts(
            app=random.choice(APPS),
            place=random.choice(PLACES),
            isolation=random.choice(ISOLATIONS),
            trust_level="A",
            backend="atspi",
            secret=random.choice(SECRETS) or None,
            categories=_some(random, categories, 2) if random.random() < 0.5 else (),
            sensitive_app=random.random() < 0.15,
            observed=build_observed(random),
        ),
        approved=random.random() < 0.3,
    )


_randoms = st.integers(0, 2**48).map(Random)
rules = _randoms.map(build_rule)
rule_lists = _randoms.map(build_rules)
observed = _randoms.map(build_observed)
documents = _randoms.map(build_document)
