"""Turns rules into Cedar policies that say the same, and questions into Cedar requests (spec §6.1).

Cedar knows permit and forbid. What an answer of ours says beyond that stands in annotations of the policies that
decided: `@outcome("require_approval")`, `@covers`, `@approvals`, `@release`, `@redact`, `@reason`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, Final

from surehand.core.policy.effects import EFFECTS
from surehand.core.policy.model import Rule
from surehand.core.policy.vocabulary import plain

#: Conditions on proven facts, each beside the name of its fact in the request's context.
_PROVEN: Final = (
    "principal", "risk", "isolation", "app", "place", "interaction_mode", "trust_level", "backend", "secret",
)  # fmt: skip
_OBSERVED: Final = ("role", "name", "context", "title", "claimed")
_ORIGIN: Final = re.compile(r"[a-z][a-z0-9+.-]*://")
_SILENCE: Final = (
    '@id("default")\n@outcome("default")\n@reason("the defaults decide")\npermit (principal, action, resource);\n'
)


def cedar_text(rules: Iterable[Rule]) -> str:
    """Return policies that answer as these rules do, and leave the rest to the defaults."""
    return "\n".join([*(_policy(rule) for rule in rules), _SILENCE])


def cedar_schema() -> str:
    """Return the schema that policies are checked against: a misspelt name is an error, not a rule that never holds."""
    actions = ",\n  ".join(_text(name) for name in sorted(EFFECTS))
    return f"""entity Desktop;
entity App in [Desktop] {{ interpreter: Bool }};
entity Window in [App, Desktop] {{ place: String }};
entity Origin in [App, Desktop] {{ place: String }};
entity Agent;
type Observed = {{
  role?: String, name?: String, context?: String, title?: String, claimed?: String, effect?: String,
}};
type Context = {{
  principal: String, action: String, risk: String, interaction_mode: String, approved: Bool,
  app: String, interpreter: Bool, place: String, isolation: String, trust_level: String, backend: String,
  secret: String,
  categories: Set<String>, observed: Observed,
}};
action
  {actions}
  appliesTo {{ principal: [Agent], resource: [Desktop, App, Window, Origin], context: Context }};
"""


def cedar_request(question: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the request and the entities for one question of `engine.questions`.

    The principal is an `Agent`, the action an `Action`; the resource is a `Window` in its `App`, or an `Origin`, or
    the `App` alone, or the `Desktop`.
    """
    facts = question["facts"]
    observed = facts["observed"]
    context: dict[str, Any] = {
        name: question[name] for name in ("principal", "action", "risk", "interaction_mode", "approved")
    }
    for name in ("app", "interpreter", "place", "isolation", "trust_level", "backend", "secret"):
        context[name] = facts[name]
    context["categories"] = sorted({*facts["categories"], *observed.get("categories", ())})
    context["observed"] = dict(observed.get("plain", {}))
    if isinstance(seen_as := observed.get("effect"), str):
        context["observed"]["effect"] = seen_as
    agent = {"type": "Agent", "id": question["principal"]}
    resource, entities = _resource(facts)
    entities.append({"uid": agent, "attrs": {}, "parents": []})
    action = {"type": "Action", "id": question["action"]}
    return {"principal": agent, "action": action, "resource": resource, "context": context}, entities


def _resource(facts: dict[str, Any]) -> tuple[dict[str, str], list[dict[str, Any]]]:
    desktop = {"type": "Desktop", "id": facts["isolation"]}
    entities: list[dict[str, Any]] = [{"uid": desktop, "attrs": {}, "parents": []}]
    nearest = desktop
    if facts["app"]:
        app = {"type": "App", "id": facts["app"]}
        entities.append({"uid": app, "attrs": {"interpreter": facts["interpreter"]}, "parents": [desktop]})
        nearest = app
    if facts["place"]:
        kind = "Origin" if _ORIGIN.match(facts["place"]) else "Window"
        name = facts["place"] if kind == "Origin" else f"{facts['app']}#{facts['place']}"
        place = {"type": kind, "id": name}
        entities.append({"uid": place, "attrs": {"place": facts["place"]}, "parents": [nearest]})
        nearest = place
    return nearest, entities


def _policy(rule: Rule) -> str:
    notes = {"id": rule.id, "reason": rule.reason}
    if rule.effect == "require_approval":
        notes["outcome"] = rule.effect
    if rule.covers:
        notes["covers"] = " ".join(rule.covers)
    if rule.approvals != 1:
        notes["approvals"] = str(rule.approvals)
    if rule.release != "always":
        notes["release"] = rule.release
    if rule.redact:
        notes["redact"] = json.dumps(list(rule.redact))
    head = "\n".join(f"@{name}({_text(value)})" for name, value in notes.items())
    kind = "forbid" if rule.effect == "deny" else "permit"
    conditions = _conditions(rule)
    when = f"\nwhen {{ {' && '.join(conditions)} }}" if conditions else ""
    return f"{head}\n{kind} (principal, action, resource){when};\n"


def _conditions(rule: Rule) -> list[str]:
    match = rule.match
    found = [_any_of(f"context.{field}", patterns) for field in _PROVEN if (patterns := getattr(match, field))]
    if match.action:
        asked = _any_of("context.action", match.action)
        if rule.effect != "allow":
            # What the screen says it really is may be denied or asked about as well.
            seen = _any_of("context.observed.effect", match.action)
            asked = f"({asked} || (context.observed has effect && {seen}))"
        found.append(asked)
    if match.category:
        found.append(f"context.categories.containsAny({_set(match.category)})")
    if match.observed is not None:
        for field in _OBSERVED:
            if patterns := getattr(match.observed, field):
                test = _any_of(f"context.observed.{field}", tuple(plain(pattern) for pattern in patterns))
                found.append(f"context.observed has {field} && {test}")
    if match.app and (rule.effect == "allow" or rule.covers):
        # An interpreter stands for every program it could run, so its identity opens nothing.
        found.append("!context.interpreter")
    return found


def _any_of(fact: str, patterns: tuple[str, ...]) -> str:
    exact = [pattern for pattern in patterns if "*" not in pattern]
    tests = [f"{fact} like {_text(pattern)}" for pattern in patterns if "*" in pattern]
    if len(exact) == 1:
        tests.insert(0, f"{fact} == {_text(exact[0])}")
    elif exact:
        tests.insert(0, f"{_set(exact)}.contains({fact})")
    return tests[0] if len(tests) == 1 else f"({' || '.join(tests)})"


def _set(texts: Iterable[str]) -> str:
    return f"[{', '.join(_text(text) for text in texts)}]"


def _text(text: str) -> str:
    """Return a Cedar string. A `*` is only ever in a pattern, where it stands for any characters."""
    return '"' + "".join(_character(character) for character in text) + '"'


def _character(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    if character.isascii() and character.isprintable():
        return character
    return f"\\u{{{ord(character):x}}}"
