"""What an operator can ask the policy in force: its rules in plain words, and what it would decide about a question.

Asking decides nothing: no permit comes of it, and the shadow is not told.
"""

from __future__ import annotations

from typing import Any

from surehand import canonical, limits
from surehand.core.policy import cases, explain
from surehand.core.policy.effects import EFFECTS
from surehand.core.policy.plain import in_words
from surehand.errors import InvalidRequest
from surehand.model.decision import PolicyInput
from surehand.model.record import convert, to_value
from surehand.runtime import params as p
from surehand.runtime.parts import Parts
from surehand.runtime.policy_source import load_vocabulary
from surehand.runtime.session import Session


def request_of(text: str) -> PolicyInput:
    """Read a request to explain: a policy's input document as JSON, or one case as TOML.

    Raises:
        InvalidRequest: it is neither.
    """
    if text.lstrip().startswith("{"):
        return _document(text)
    body = "\n".join(f"{line}" for line in text.splitlines() if line.strip() != "version = 1")
    head = "" if "[[case]]" in body else '[[case]]\nname = "given"\nexpect = "allow"\n'
    table = cases.read_table(f"version = 1\n{head}{body}\n")
    return cases.document_of(table.case[0], load_vocabulary())


def _document(text: str) -> PolicyInput:
    value = canonical.parse(text.encode())
    if isinstance(value, dict) and isinstance(value.get("facts"), dict):
        # What an engine is asked has facts that are worked out; they are worked out again.
        value = {**value, "facts": {name: one for name, one in value["facts"].items() if name != "interpreter"}}
    return convert(PolicyInput, value)


async def rules(parts: Parts, _: Session, args: p.RulesPage) -> dict[str, Any]:
    """List the rules in force in plain words, the operator's first; those of an engine are its own to show."""
    found = parts.authority.policy.rules
    page = found[args.after : args.after + args.limit]
    policies = parts.authority.policies
    return {
        "engine": "builtin" if policies is None else policies.ruling.choice.engine,
        "revision": parts.authority.policy.revision,
        "closed": parts.authority.policy.closed,
        "rules": [
            {
                "rule": one.rule.id,
                "effect": one.rule.effect,
                "in_words": in_words(one.rule),
                "reason": one.rule.reason,
                "built_in": one.is_default,
            }
            for one in page
        ],
        "actions": sorted(EFFECTS),
        "total": len(found),
        "next": args.after + len(page) if args.after + len(page) < len(found) else None,
    }


async def ask(parts: Parts, _: Session, args: p.PolicyQuestion) -> dict[str, Any]:
    """Say what the policy in force would decide about a request, and which rules come to it.

    Raises:
        InvalidRequest: the request is neither a document nor a case; or this host has no policy to be asked.
    """
    policies = parts.authority.policies
    if policies is None:
        raise InvalidRequest("this host's policy is given to it, not read from a file")
    policies.look()
    document = request_of(args.request)
    ruling = policies.ruling
    decision = await policies.ask(ruling, document, "asked")
    looks = [] if ruling.asked is not None else explain.explain(ruling.policy, document)
    return {
        "engine": ruling.choice.engine,
        "outcome": decision.outcome,
        "rule": decision.rule,
        "reason": decision.reason,
        "obligations": to_value(decision.obligations),
        "revision": decision.policy_revision,
        "action": document.action,
        "risk": document.risk,
        "looks": [to_value(look) for look in looks][: limits.POLICY_RULES_MAX],
    }
