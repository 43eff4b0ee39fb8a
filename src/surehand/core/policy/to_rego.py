"""Turns rules into data for the fixed module `data/surehand.rego`, which decides by them as the built-in engine does.

Rules stay data and are looked up by application, place, principal or action, because an engine that compares every
request with every rule is slow with two hundred of them, and one that compiles them into its own code slower.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from surehand import limits
from surehand.core.policy.model import Rule
from surehand.core.policy.vocabulary import plain

#: The module beside the data files of this folder, for whoever reads it.
MODULE_FILE: Final = "surehand.rego"

_PROVEN: Final = (
    "principal", "risk", "isolation", "app", "place", "interaction_mode", "trust_level", "backend", "secret",
)  # fmt: skip
_OBSERVED: Final = ("role", "name", "context", "title", "claimed")
#: By which conditions a rule can be looked up, the likeliest to be rare first.
_INDEXED: Final = ("app", "place", "principal", "action")
_MIDDLE_PARTS: Final = limits.POLICY_STARS_MAX - 1


def rules_data(rules: Iterable[Rule]) -> dict[str, Any]:
    """Return the data document: what stands under `data.surehand` beside the module."""
    listed = list(rules)
    index: dict[str, Any] = {"any": [], **{field: {"equals": {}, "starts": {}, "ends": {}} for field in _INDEXED}}
    table: dict[str, Any] = {}
    for position, rule in enumerate(listed):
        number = f"{position:05}"
        table[number] = _rule(rule)
        _enter(index, rule, number)
    return {"surehand": {"rules": table, "index": index}}


def _enter(index: dict[str, Any], rule: Rule, number: str) -> None:
    """Enter a rule under the condition that tells most requests apart: whole texts, else the longest known ends."""
    keys_of = {field: _keys(getattr(rule.match, field)) for field in _INDEXED}
    best = max(_INDEXED, key=lambda field: _worth(keys_of[field]))
    keys = keys_of[best]
    if not keys:
        index["any"].append(number)
    for kind, text in dict.fromkeys(keys):
        index[best][kind].setdefault(text, []).append(number)


def _keys(patterns: tuple[str, ...]) -> list[tuple[str, str]]:
    """Return under what each pattern can be found; nothing where one of them could be anything."""
    keys = []
    for pattern in patterns:
        first, _, rest = pattern.partition("*")
        last = rest.rpartition("*")[2]
        if "*" not in pattern:
            keys.append(("equals", pattern))
        elif first or last:
            keys.append(("starts", first) if len(first) >= len(last) else ("ends", last))
        else:
            return []
    return keys


def _worth(keys: list[tuple[str, str]]) -> int:
    """Return how well these keys tell requests apart: whole texts best, then by the shortest known end."""
    if not keys:
        return 0
    if all(kind == "equals" for kind, _ in keys):
        return limits.NAME_CHARS_MAX + 1
    return min(len(text) for _, text in keys)


def _rule(rule: Rule) -> dict[str, Any]:
    match = rule.match
    value: dict[str, Any] = {
        "id": rule.id,
        "effect": rule.effect,
        "reason": rule.reason,
        "covers": list(rule.covers),
        "approvals": rule.approvals,
        "release": rule.release,
        "redact": list(rule.redact),
        "by_app": bool(match.app) and (rule.effect == "allow" or bool(rule.covers)),
        "proven": {field: _test(getattr(match, field)) for field in _PROVEN if getattr(match, field)},
        "observed": {},
    }
    if match.action:
        value["action"] = _test(match.action)
    if match.category:
        value["category"] = list(match.category)
    if match.observed is not None:
        value["observed"] = {
            field: _test(tuple(plain(pattern) for pattern in patterns))
            for field in _OBSERVED
            if (patterns := getattr(match.observed, field))
        }
    return value


def _test(patterns: Iterable[str]) -> dict[str, Any]:
    listed = tuple(patterns)
    return {
        "equals": {pattern: True for pattern in listed if "*" not in pattern},
        "globs": [_glob(pattern) for pattern in listed if "*" in pattern],
    }


def _glob(pattern: str) -> dict[str, Any]:
    first, *middle, last = pattern.split("*")
    parts = [part for part in middle if part]
    return {"first": first, "last": last, "middle": parts + [""] * (_MIDDLE_PARTS - len(parts)) if parts else []}
