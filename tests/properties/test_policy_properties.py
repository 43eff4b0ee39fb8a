"""What must hold of every policy whatever its rules are."""

from __future__ import annotations

import os

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from surehand import limits
from surehand.core.policy.defaults import DEFAULT_RULES
from surehand.core.policy.evaluate import compile_policy, decide
from surehand.core.policy.model import STRICTNESS, Rule
from surehand.model.decision import PolicyInput
from tests.policy_strategies import documents, observed, rule_lists, rules

EXAMPLES = 200_000 if os.environ.get("SUREHAND_LONG") == "1" else 1_000


OBSERVED = ("role", "name", "context", "title", "claimed", "categories", "effect")


def strictness(policy, document: PolicyInput) -> int:
    return STRICTNESS[decide(policy, document, "d1").outcome]


def seeing(document: PolicyInput, shown) -> PolicyInput:
    return msgspec.structs.replace(document, facts=msgspec.structs.replace(document.facts, observed=shown))


@settings(max_examples=EXAMPLES, deadline=None)
@given(given_rules=rule_lists, document=documents, shown=observed)
def test_nothing_observed_ever_makes_an_answer_less_strict(given_rules, document, shown):
    policy = compile_policy(given_rules, DEFAULT_RULES, "r1")
    assert strictness(policy, seeing(document, shown)) >= strictness(policy, seeing(document, {}))


@settings(max_examples=EXAMPLES, deadline=None)
@given(given_rules=rule_lists, document=documents, kept=st.sets(st.sampled_from(OBSERVED)))
def test_the_more_the_screen_says_the_stricter_the_answer(given_rules, document, kept):
    """An application cannot talk one part of itself down by what it calls another."""
    policy = compile_policy(given_rules, DEFAULT_RULES, "r1")
    less = {name: value for name, value in document.facts.observed.items() if name in kept}
    assert strictness(policy, document) >= strictness(policy, seeing(document, less))


@settings(max_examples=EXAMPLES, deadline=None)
@given(given_rules=rule_lists, added=rules, document=documents, position=st.integers(0, 6))
def test_adding_a_rule_that_denies_never_permits(given_rules, added, document, position):
    deny = msgspec.structs.replace(added, effect="deny")
    before = compile_policy(given_rules, DEFAULT_RULES, "r1")
    after = compile_policy([*given_rules[:position], deny, *given_rules[position:]], DEFAULT_RULES, "r1")
    assert strictness(after, document) >= strictness(before, document)


@settings(max_examples=EXAMPLES, deadline=None)
@given(given_rules=rule_lists, document=documents)
def test_an_approval_answers_a_question_and_nothing_else(given_rules, document):
    policy = compile_policy(given_rules, DEFAULT_RULES, "r1")
    asked = decide(policy, msgspec.structs.replace(document, approved=False), "d1").outcome
    approved = decide(policy, msgspec.structs.replace(document, approved=True), "d1").outcome
    assert approved == ("allow" if asked == "require_approval" else asked)


@settings(max_examples=EXAMPLES, deadline=None)
@given(given_rules=rule_lists, document=documents)
def test_the_order_of_rules_changes_no_outcome(given_rules, document):
    forward = compile_policy(given_rules, DEFAULT_RULES, "r1")
    backward = compile_policy(list(reversed(given_rules)), DEFAULT_RULES, "r1")
    assert strictness(forward, document) == strictness(backward, document)


@settings(max_examples=EXAMPLES, deadline=None)
@given(given_rules=rule_lists, document=documents)
def test_own_surfaces_and_denied_applications_are_closed_under_every_policy(given_rules, document):
    for category in ("own_surface", "denied_app"):
        facts = msgspec.structs.replace(document.facts, categories=(*document.facts.categories, category))
        policy = compile_policy(given_rules, DEFAULT_RULES, "r1")
        assert decide(policy, msgspec.structs.replace(document, facts=facts), "d1").outcome == "deny"


@settings(max_examples=EXAMPLES, deadline=None)
@given(document=documents)
def test_every_answer_names_the_rule_that_gave_it(document):
    answer = decide(compile_policy((), DEFAULT_RULES, "r1"), document, "d1")
    assert answer.rule in {rule.id for rule in DEFAULT_RULES} | {"default"}
    assert answer.reason
    assert answer.policy_revision == "r1"


def test_a_rule_that_denies_with_covers_covers_nothing():
    deny = Rule(id="d", effect="deny", reason="x", covers=("shared_desktop",))
    policy = compile_policy([deny], DEFAULT_RULES, "r1")
    assert policy.rules


@settings(max_examples=EXAMPLES // 20, deadline=None)  # each puts some eighty questions
@given(given_rules=rule_lists, asked=st.lists(documents, min_size=2, max_size=8))
def test_no_question_is_given_the_answer_to_another(given_rules, asked):
    """What a policy remembers of one document never answers a document of which any fact that counts is another."""
    policy = compile_policy(given_rules, DEFAULT_RULES, "r1")
    changed = [changed for document in asked for changed in _changed(document)]
    for document in (*asked, *changed, *asked):
        fresh = compile_policy(given_rules, DEFAULT_RULES, "r1")
        assert decide(policy, document, "d1") == decide(fresh, document, "d1")


def _changed(document: PolicyInput) -> list[PolicyInput]:
    """Return the document with one fact of each kind changed."""
    facts = [
        msgspec.structs.replace(document.facts, **change)
        for change in (
            {"app": "exe:/usr/bin/other"},
            {"place": "other"},
            {"isolation": "shared"},
            {"trust_level": "B"},
            {"backend": "other"},
            {"secret": "vault:other"},
            {"categories": ("destructive",)},
            {"sensitive_app": True},
            {"observed": {**document.facts.observed, "categories": ["purchase"]}},
            {"observed": {**document.facts.observed, "effect": "process.run"}},
            {"observed": {**document.facts.observed, "name": "DELETE all"}},
        )
    ]
    return [
        *(msgspec.structs.replace(document, facts=one) for one in facts),
        msgspec.structs.replace(document, principal="other"),
        msgspec.structs.replace(document, action="desktop.other"),
        msgspec.structs.replace(document, risk="destructive"),
        msgspec.structs.replace(document, interaction_mode="background_only"),
        msgspec.structs.replace(document, approved=not document.approved),
    ]


def _number(document: PolicyInput, number: int) -> PolicyInput:
    return msgspec.structs.replace(document, principal=f"agent-{number}")


@settings(max_examples=1, deadline=None)
@given(document=documents)
def test_a_policy_remembers_no_more_answers_than_its_limit(document):
    policy = compile_policy((), DEFAULT_RULES, "r1")
    for number in range(limits.POLICY_ANSWERS_KEPT_MAX):
        decide(policy, _number(document, number), "d1")
    assert len(policy.answered) == limits.POLICY_ANSWERS_KEPT_MAX
    decide(policy, _number(document, limits.POLICY_ANSWERS_KEPT_MAX), "d1")
    assert len(policy.answered) == 1
