"""Every engine, given policies that say the same, decides as the page-long reference does."""

from __future__ import annotations

import asyncio
import os
from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surehand.core.policy import engine
from surehand.core.policy.defaults import DEFAULT_RULES
from surehand.core.policy.evaluate import compile_policy, decide
from surehand.core.policy.model import Match, ObservedMatch, Rule
from tests import policy_engines, policy_reference
from tests.policy_strategies import build_document, build_rules

#: The first test that wants OPA may have to wait until it is built, once on a machine.
pytestmark = pytest.mark.timeout(600)
LONG = os.environ.get("SUREHAND_LONG") == "1"
#: Policies to try for each engine, and requests for each policy.
POLICIES = {"rego": 2_000, "cedar": 4_000, "opa": 2_000} if LONG else {"rego": 15, "cedar": 60, "opa": 25}
REQUESTS = 10
DEFAULTS = engine.defaults_policy("r1")
SEEDS = st.integers(0, 2**48)


def agree(asked, rules, document, run) -> None:
    answers = run(asked.ask(engine.questions(document)))
    found = engine.decide_from(DEFAULTS, document, answers, "d1")
    built_in = decide(compile_policy(rules, DEFAULT_RULES, "r1"), document, "d1")
    assert found.outcome == policy_reference.decide(rules, DEFAULT_RULES, document), answers
    assert found.obligations == built_in.obligations, answers
    # Of several rules that say the same, the built-in engine names those about what was asked first.
    if "effect" not in document.facts.observed:
        assert (found.rule, found.reason) == (built_in.rule, built_in.reason), answers


def random_policies(name, given_rules, asked=None) -> None:
    with asyncio.Runner() as runner:

        @settings(max_examples=POLICIES[name], deadline=None)
        @given(seed=SEEDS)
        def check(seed):
            random = Random(seed)  # noqa: S311 - a test's own dice
            rules = build_rules(random)
            asked = given_rules(rules)
            for _ in range(REQUESTS):
                agree(asked, rules, build_document(random), runner.run)

        check()
        if asked is not None:
            runner.run(asked.close())


def test_rego_decides_random_policies_as_the_reference_does():
    random_policies("rego", policy_engines.rego_of)


def test_cedar_decides_random_policies_as_the_reference_does():
    random_policies("cedar", policy_engines.cedar_of)


def test_a_real_opa_server_decides_random_policies_as_the_reference_does(opa):
    asked = opa.engine()

    def given_rules(rules):
        opa.rules(rules)
        return asked

    random_policies("opa", given_rules, asked)


AWKWARD = ['a"b\\', "é\u202e*\u20ac", "*a*b*c*d*e*f*g*", "\n*\t", "a*a", "*", "x{y}?[z]*", "**", "#*//"]
TEXTS = ['a"b\\', "é\u202e\u20ac", "ab\ncdefg", "abcdefg", "\n\t", "a", "aa", "", "x{y}?[z]", "xyz", "#//", "gfedcba"]


def every_pattern(run, engine_of) -> None:
    for pattern in AWKWARD:
        rules = [
            Rule(id="place", effect="allow", reason="r", match=Match(place=(pattern,))),
            Rule(id="name", effect="deny", reason="r", match=Match(observed=ObservedMatch(name=(pattern,)))),
        ]
        asked = engine_of(rules)
        for text in TEXTS:
            document = build_document(Random(3))  # noqa: S311 - a test's own dice
            facts = msgspec.structs.replace(document.facts, place=text, observed={"name": text})
            agree(asked, rules, msgspec.structs.replace(document, facts=facts), run)


@pytest.mark.parametrize("engine_of", [policy_engines.rego_of, policy_engines.cedar_of], ids=["rego", "cedar"])
def test_awkward_patterns_mean_the_same_in_process(engine_of):
    with asyncio.Runner() as runner:
        every_pattern(runner.run, engine_of)


def test_awkward_patterns_mean_the_same_in_opa(opa):
    asked = opa.engine()

    def engine_of(rules):
        opa.rules(rules)
        return asked

    with asyncio.Runner() as runner:
        every_pattern(runner.run, engine_of)
        runner.run(asked.close())
