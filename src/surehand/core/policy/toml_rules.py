"""Reads an operator's rule file: TOML text in, a compiled policy out, or a policy that denies everything (spec §6.1).

A file that is missing, too large, misspelt or self-contradictory never opens anything: `load_policy` returns the
deny-all policy with the reason, at the start as at a reload. Everything is strict: an unknown key is an error, because
a misspelt condition would make a rule match more than its author meant.
"""

from __future__ import annotations

import tomllib
from typing import Any, Final, Literal

from surehand import canonical, limits
from surehand.core.policy.defaults import DEFAULT_RULES, DEFAULTS_VERSION
from surehand.core.policy.evaluate import Policy, compile_policy, deny_all
from surehand.core.policy.model import Rule, check_rule
from surehand.errors import InvalidRequest, SurehandError, TooLarge
from surehand.model.record import Record, check_count, convert

_REVISION_DOMAIN: Final = "surehand/policy/v1"


class RuleFile(Record, frozen=True, kw_only=True):
    """The whole file: `version = 1`, then `[[rule]]` tables, in order."""

    version: Literal[1]
    rule: tuple[Rule, ...] = ()

    def __post_init__(self) -> None:
        check_count("rules", len(self.rule), 0, limits.POLICY_RULES_MAX)
        seen: set[str] = set()
        for rule in self.rule:
            if rule.id in seen:
                raise InvalidRequest(f"two rules are called {rule.id}")
            if rule.id.startswith("default."):
                raise InvalidRequest(f"rule {rule.id}: names that start with default. are ours")
            seen.add(rule.id)
            check_rule(rule)


def revision_of(text: str) -> str:
    """Return the revision of a rule text together with the defaults behind it."""
    return canonical.hash_value(_REVISION_DOMAIN, [DEFAULTS_VERSION, text])


def parse_policy(text: str) -> Policy:
    """Read rule text; the empty text is the defaults alone.

    Raises:
        InvalidRequest, TooLarge: saying what is wrong in which rule.
    """
    if len(text.encode("utf-8", "surrogatepass")) > limits.POLICY_BYTES_MAX:
        raise TooLarge(f"a rule file has at most {limits.POLICY_BYTES_MAX} bytes")
    try:
        value = tomllib.loads(text) if text else {"version": 1}
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidRequest(f"the rule file is not TOML: {error}") from error
    return parse_rules(value, revision_of(text))


def parse_rules(value: dict[str, Any], revision: str) -> Policy:
    """Compile an already loaded rule file."""
    return compile_policy(convert(RuleFile, value).rule, DEFAULT_RULES, revision)


def load_policy(text: str | None) -> Policy:
    """Read rule text that came from a file, failing closed.

    Args:
        text: None where the file that the operator named could not be read.
    """
    if text is None:
        return deny_all("the policy file cannot be read, so everything is denied")
    try:
        return parse_policy(text)
    except SurehandError as error:
        return deny_all(f"the policy file is broken, so everything is denied: {error.message}", revision_of(text))
