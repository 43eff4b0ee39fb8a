"""Rule files: strict, and closed when anything is wrong."""

from __future__ import annotations

import pytest

from surehand import limits
from surehand.core.policy.evaluate import decide
from surehand.core.policy.toml_rules import parse_policy, revision_of
from surehand.errors import InvalidRequest, SurehandError, TooLarge
from surehand.runtime.config import PolicyChoice
from surehand.runtime.policy_source import first_ruling
from tests.rules_kit import document

RULE = '[[rule]]\nid = "a"\neffect = "allow"\nreason = "r"\n'
GOOD = f"version = 1\n{RULE}"

BROKEN = {
    "not toml": "version = ",
    "no version": RULE,
    "another version": f"version = 2\n{RULE}",
    "version as text": f'version = "1"\n{RULE}',
    "unknown key": f"{GOOD}colour = 1\n",
    "unknown table": f"{GOOD}[other]\n",
    "unknown condition": f'{GOOD}[rule.match]\napplication = ["x"]\n',
    "unknown observed": f'{GOOD.replace("allow", "deny")}[rule.match.observed]\nvalue = ["x"]\n',
    "unknown effect": GOOD.replace("allow", "permit"),
    "a text where a list belongs": f'{GOOD}[rule.match]\napp = "exe:/a"\n',
    "a number in a list": f"{GOOD}[rule.match]\napp = [1]\n",
    "a float": f"{GOOD}approvals = 1.5\n",
    "no reason": GOOD.replace('reason = "r"\n', ""),
    "an empty reason": GOOD.replace('"r"', '""'),
    "no id": GOOD.replace('id = "a"\n', ""),
    "a bad id": GOOD.replace('"a"', '"a b"'),
    "two of one name": GOOD + RULE,
    "a name of ours": GOOD.replace('"a"', '"default.reads"'),
    "an unknown risk": f'{GOOD}[rule.match]\nrisk = ["low"]\n',
    "an unknown isolation": f'{GOOD}[rule.match]\nisolation = ["jail"]\n',
    "an unknown category": f'{GOOD.replace("allow", "deny")}[rule.match]\ncategory = ["purchases"]\n',
    "an unknown cover": f'{GOOD}covers = ["everything"]\n',
    "redacting no field in particular": f'{GOOD}redact = ["field:"]\n',
    "redacting a blank": f'{GOOD}redact = ["field:  "]\n',
    "redacting a misspelt field": f'{GOOD}redact = ["feild:iban"]\n',
    "redacting nothing": f'{GOOD}redact = [""]\n',
    "redacting too much": f"{GOOD}redact = {['png'] * (limits.POLICY_PATTERNS_MAX + 1)}\n",
    "covering denied applications": f'{GOOD}covers = ["denied_app"]\n',
    "covering own surfaces": f'{GOOD}covers = ["own_surface"]\n',
    "a deny that covers": f'{GOOD.replace("allow", "deny")}covers = ["purchase"]\n',
    "an allowance by observed text": f'{GOOD}[rule.match.observed]\nname = ["Save"]\n',
    "a covering question by observed text": f'{GOOD.replace("allow", "require_approval")}covers = ["purchase"]\n[rule.match.observed]\nname = ["Buy"]\n',
    "an allowance by category": f'{GOOD}[rule.match]\ncategory = ["purchase"]\n',
    "sensitive without an application": f'{GOOD}covers = ["sensitive_app"]\n',
    "sensitive by a pattern": f'{GOOD}covers = ["sensitive_app"]\n[rule.match]\napp = ["exe:*"]\n',
    "the same key twice": f'{GOOD}reason = "again"\n',
    "a NUL": GOOD.replace('"r"', '"\\u0000"'),
    "rules that are no list": "version = 1\nrule = 5\n",
    "deep nesting": "version = 1\nx = " + "[" * 5000 + "]" * 5000,
}


def no_engine(*_):
    raise AssertionError("the built-in engine needs no other")


def at_start(tmp_path, text):
    """Return the policy of a daemon that starts with this file."""
    path = tmp_path / "policy.toml"
    path.write_text(text, "utf-8")
    path.chmod(0o600)
    return first_ruling(PolicyChoice(file=str(path)), no_engine).policy


@pytest.mark.parametrize("name", sorted(BROKEN))
def test_a_broken_file_opens_nothing_at_start_or_reload(name, tmp_path):
    # C47.
    with pytest.raises(SurehandError):
        parse_policy(BROKEN[name])
    policy = at_start(tmp_path, BROKEN[name])
    assert policy.closed is not None
    assert policy.closed.startswith("the policy cannot be used")
    for given in (document(), document(risk="read"), document(approved=True), document(action="desktop.abort")):
        assert decide(policy, given, "d1").outcome == "deny"


def test_a_file_that_cannot_be_read_denies_everything(tmp_path):
    policy = first_ruling(PolicyChoice(file=str(tmp_path / "absent.toml")), no_engine).policy
    assert decide(policy, document(risk="read"), "d1").outcome == "deny"


def test_a_good_file_and_an_empty_one_work(tmp_path):
    assert at_start(tmp_path, GOOD).closed is None
    assert decide(at_start(tmp_path, ""), document(), "d1").outcome == "allow"


def test_errors_name_the_rule_and_the_way_out():
    with pytest.raises(InvalidRequest, match="rule a:") as refused:
        parse_policy(BROKEN["an allowance by category"])
    assert "covers" in refused.value.fix


def test_the_revision_follows_the_text():
    assert parse_policy(GOOD).revision == revision_of(GOOD)
    assert revision_of(GOOD) != revision_of(GOOD + "\n")
    assert len(revision_of(GOOD)) == 64


def test_size_and_number_of_rules_are_bounded():
    def many(count):
        return "version = 1\n" + "".join(RULE.replace('"a"', f'"a{n}"') for n in range(count))

    parse_policy(many(limits.POLICY_RULES_MAX))
    with pytest.raises(TooLarge):
        parse_policy(many(limits.POLICY_RULES_MAX + 1))
    padding = GOOD + "#" + "x" * (limits.POLICY_BYTES_MAX - len(GOOD) - 1)
    parse_policy(padding)
    with pytest.raises(TooLarge):
        parse_policy(padding + "x")
