"""What an engine's answer is worth: one rule that matched, before the defaults; and nothing at all where it fails."""

from __future__ import annotations

import json
from random import Random

import jsonschema
import pytest

from surehand import limits
from surehand.core.policy import engine
from surehand.core.policy.defaults import DEFAULT_RULES
from surehand.core.policy.engine import EngineFailure, decide_from, defaults_policy, questions, read_answer
from surehand.core.policy.evaluate import compile_policy, decide
from surehand.core.policy.model import Match, ObservedMatch, Rule
from surehand.core.policy.to_cedar import cedar_schema
from tests.policy_strategies import build_document
from tests.rules_kit import document
from tests.spec_examples import POLICY_ANSWER, SPEC

DEFAULTS = defaults_policy("r1")
ALLOW = {"outcome": "allow", "rule": "mine", "reason": "because"}
ASK = {**ALLOW, "outcome": "require_approval"}
DENY = {**ALLOW, "outcome": "deny"}
DEFAULT = {"outcome": "default"}


def decided(about, *answers):
    return decide_from(DEFAULTS, about, answers, "d1")


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (None, "undefined"),
        (True, "malformed"),
        ("allow", "malformed"),
        ([], "malformed"),
        ({}, "malformed"),
        ({"outcome": "maybe"}, "malformed"),
        ({"outcome": "allow"}, "malformed"),
        ({**ALLOW, "reason": ""}, "malformed"),
        ({**ALLOW, "reason": "x" * (limits.REASON_CHARS_MAX + 1)}, "malformed"),
        ({**ALLOW, "reason": 7}, "malformed"),
        ({**ALLOW, "rule": ""}, "malformed"),
        ({**ALLOW, "rule": "default.consequential"}, "malformed"),
        ({**ALLOW, "rule": "kernel.query"}, "malformed"),
        ({**ALLOW, "rule": "engine.fine"}, "malformed"),
        ({**ALLOW, "covers": ["own_surface"]}, "malformed"),
        ({**ALLOW, "covers": ["denied_app"]}, "malformed"),
        ({**ALLOW, "covers": "purchase"}, "malformed"),
        ({**ALLOW, "allow": True}, "malformed"),
        ({**ALLOW, "obligations": []}, "malformed"),
        ({**ALLOW, "obligations": {"approvals_needed": 0}}, "malformed"),
        ({**ALLOW, "obligations": {"approvals_needed": limits.APPROVALS_NEEDED_MAX + 1}}, "malformed"),
        ({**ALLOW, "obligations": {"approvals_needed": 1.5}}, "malformed"),
        ({**ALLOW, "obligations": {"release": "never"}}, "malformed"),
        ({**ALLOW, "obligations": {"record_video": True}}, "unknown_obligation"),
        ({**DEFAULT, "obligations": {"sandbox": "strict"}}, "unknown_obligation"),
        ({**DEFAULT, "obligations": {"redact": ["feild:iban"]}}, "malformed"),
    ],
)
def test_an_answer_that_is_none_is_a_deny_of_its_kind(answer, kind):
    with pytest.raises(EngineFailure) as caught:
        read_answer(answer)
    assert caught.value.kind == kind
    found = decided(document(), answer)
    assert (found.outcome, found.rule) == ("deny", f"engine.{kind}")


@pytest.mark.parametrize("kind", sorted(engine.FAILURES))
def test_every_failure_denies_and_tells_the_agent_no_detail(kind):
    found = engine.failed(EngineFailure(kind, "secret of the server"), "r1", "d1")
    assert (found.outcome, found.rule) == ("deny", f"engine.{kind}")
    assert "secret" not in found.reason


def test_an_answer_at_its_limits_counts():
    most = {"approvals_needed": limits.APPROVALS_NEEDED_MAX, "release": "ask", "redact": ["png"]}
    found = decided(document(), {**ASK, "reason": "x" * limits.REASON_CHARS_MAX, "obligations": most})
    assert found.outcome == "require_approval"
    assert found.obligations.approvals_needed == limits.APPROVALS_NEEDED_MAX


@pytest.mark.parametrize("answers", [(), (ALLOW,), (ALLOW, ALLOW, ALLOW)])
def test_too_few_or_too_many_answers_deny(answers):
    assert decided(document({"name": "Save"}), *answers).rule == "engine.malformed"


def test_what_was_observed_is_asked_about_apart():
    assert len(questions(document())) == 1
    blind, seen = questions(document({"name": "SA\u200bVE", "categories": ["purchase", "invented"]}))
    assert blind["facts"]["observed"] == {}
    assert seen["facts"]["observed"]["plain"] == {"name": "save"}
    assert seen["facts"]["observed"]["categories"] == ["purchase"]


@pytest.mark.parametrize(
    ("blind", "seen", "outcome"),
    [(ALLOW, DENY, "deny"), (DENY, ALLOW, "deny"), (ALLOW, ASK, "require_approval"), (ASK, ALLOW, "require_approval"),
     (DEFAULT, DENY, "deny"), (DENY, DEFAULT, "deny"), (ALLOW, ALLOW, "allow")],
)  # fmt: skip
def test_the_stricter_of_both_answers_stands(blind, seen, outcome):
    assert decided(document({"name": "Save"}), blind, seen).outcome == outcome


@pytest.mark.parametrize("category", ["own_surface", "denied_app", "sensitive_app"])
def test_an_engine_that_allows_everything_opens_no_place_that_is_closed(category):
    found = decided(document(facts={"categories": (category,)}), ALLOW)
    assert found.outcome == "deny"
    assert found.rule.startswith("default.")


def test_an_engine_that_allows_everything_still_asks_before_what_is_consequential():
    buying = document(facts={"categories": ("purchase",)})
    assert decided(buying, ALLOW).outcome == "require_approval"
    assert decided(buying, {**ALLOW, "covers": ["purchase"]}).outcome == "allow"


def test_what_an_answer_covers_only_because_of_the_screen_is_not_covered():
    buying = document({"name": "harmless", "categories": ["purchase"]})
    found = decided(buying, ALLOW, {**ALLOW, "covers": ["purchase"]})
    assert found.outcome == "require_approval"


def test_a_persons_yes_answers_a_question_and_no_deny():
    asked = document(approved=True)
    assert decided(asked, ASK).outcome == "allow"
    assert decided(asked, DENY).outcome == "deny"
    assert decided(asked, None).outcome == "deny"


def test_what_is_left_to_the_defaults_is_decided_by_them():
    found = decided(document(risk="read"), DEFAULT)
    assert (found.outcome, found.rule) == ("allow", "default.reads")
    assert decided(document(risk="external", facts={"isolation": "isolated"}), DEFAULT).outcome == "deny"


def test_a_question_that_is_too_large_is_not_put():
    with pytest.raises(EngineFailure) as caught:
        engine.encode_question({"x": "y" * limits.POLICY_QUESTION_BYTES_MAX})
    assert caught.value.kind == "too_large"
    assert engine.encode_question({"x": "y" * (limits.POLICY_QUESTION_BYTES_MAX - 8)})


# --- the schemas ----------------------------------------------------------------------------------------------------


def schema(name: str) -> jsonschema.Draft202012Validator:
    value = json.loads((SPEC / name).read_text("utf-8"))
    jsonschema.Draft202012Validator.check_schema(value)
    return jsonschema.Draft202012Validator(value)


def test_every_question_is_what_the_schema_says():
    form = schema("policy-question.schema.json")
    for seed in range(300):
        for question in questions(build_document(Random(seed))):  # noqa: S311 - a test's own dice
            form.validate(json.loads(engine.encode_question(question)))


@pytest.mark.parametrize(
    "answer",
    [ALLOW, ASK, DENY, DEFAULT, POLICY_ANSWER, {**DEFAULT, "covers": ["purchase"]}, True, [], {}, {"outcome": "maybe"},
     {"outcome": "allow"}, {**ALLOW, "reason": ""}, {**ALLOW, "rule": "default.x"}, {**ALLOW, "rule": "a b"},
     {**ALLOW, "covers": ["own_surface"]}, {**ALLOW, "allow": True}, {**ALLOW, "obligations": {"film": True}},
     {**ALLOW, "obligations": {"approvals_needed": 17}}, {**ALLOW, "obligations": {"release": "never"}}],
)  # fmt: skip
def test_the_schema_of_an_answer_takes_what_the_reader_takes(answer):
    taken = True
    try:
        read_answer(answer)
    except EngineFailure:
        taken = False
    assert schema("policy-answer.schema.json").is_valid(answer) is taken


def test_the_cedar_schema_beside_the_specification_is_the_one_that_is_used():
    assert (SPEC / "policy.cedarschema").read_text("utf-8") == cedar_schema()


# --- the built-in engine is held to the same ------------------------------------------------------------------------


def test_what_a_rule_covers_only_because_of_the_screen_is_not_covered():
    rule = Rule(
        id="loose",
        effect="require_approval",
        reason="r",
        covers=("sensitive_app",),
        match=Match(observed=ObservedMatch(name=("harmless*",))),
    )
    policy = compile_policy([rule], DEFAULT_RULES, "r1")
    claimed = {"name": "harmless vault", "categories": ["sensitive_app"]}
    assert decide(policy, document(claimed), "d1").outcome == "deny"
