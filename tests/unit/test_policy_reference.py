"""The evaluator against the page-long reference, on random policies and on the policies we ship."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings

from surehand.core.policy.defaults import DEFAULT_RULES
from surehand.core.policy.evaluate import compile_policy, decide
from surehand.core.policy.toml_rules import RuleFile
from surehand.model.record import convert
from tests import policy_reference
from tests.policy_strategies import documents, rule_lists

EXAMPLES = 200_000 if os.environ.get("SUREHAND_LONG") == "1" else 2_000
OFFICE = Path(__file__).parents[2] / "examples" / "policy" / "office.toml"


@settings(max_examples=EXAMPLES, deadline=None)
@given(rules=rule_lists, document=documents)
def test_random_rules_decide_as_the_reference_does(rules, document):
    product = decide(compile_policy(rules, DEFAULT_RULES, "r1"), document, "d1")
    assert product.outcome == policy_reference.decide(rules, DEFAULT_RULES, document)


@settings(max_examples=EXAMPLES // 4, deadline=None)
@given(rules=rule_lists, defaults=rule_lists, document=documents)
def test_random_defaults_decide_as_the_reference_does(rules, defaults, document):
    product = decide(compile_policy(rules, defaults, "r1"), document, "d1")
    assert product.outcome == policy_reference.decide(rules, defaults, document)


@settings(max_examples=EXAMPLES // 4, deadline=None)
@given(document=documents)
def test_the_defaults_alone_decide_as_the_reference_does(document):
    product = decide(compile_policy((), DEFAULT_RULES, "r1"), document, "d1")
    assert product.outcome == policy_reference.decide((), DEFAULT_RULES, document)


@pytest.mark.parametrize("path", [OFFICE], ids=lambda path: path.name)
def test_the_policies_we_ship_decide_as_the_reference_does(path):
    import tomllib

    rules = convert(RuleFile, tomllib.loads(path.read_text("utf-8"))).rule
    compiled = compile_policy(rules, DEFAULT_RULES, "r1")

    @settings(max_examples=EXAMPLES // 4, deadline=None)
    @given(document=documents)
    def check(document):
        assert decide(compiled, document, "d1").outcome == policy_reference.decide(rules, DEFAULT_RULES, document)

    check()
