"""The built-in evaluator: rules are compiled once, and every request is decided twice (spec §6.1).

Guarantees, each a property test against a page-long reference: deny beats everything, then a question, then an
allowance, and nothing matching is a deny; whatever is observed can only make the answer stricter; adding a rule that
denies never permits anything; an error of any kind is a deny. What rules cover is settled without the screen.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from surehand import limits
from surehand.core.policy.model import CONSEQUENTIAL, PLACES, STRICTNESS, Matches, Rule, matcher
from surehand.core.policy.vocabulary import plain
from surehand.errors import SurehandError
from surehand.model.decision import Decision, Facts, Obligations, Outcome, PolicyInput

#: The proven fields a rule may look at, in the order in which `_proven` reads them.
_FIELDS: Final = (
    "principal", "action", "risk", "isolation", "app", "place", "interaction_mode", "trust_level", "backend",
    "secret",
)  # fmt: skip
_OBSERVED_FIELDS: Final = ("role", "name", "context", "title", "claimed")

#: Programs that run other programs: as an identity they stand for everything they could run (spec §6.2).
_INTERPRETER: Final = re.compile(
    r"exe:(?:.*/)?(?:python|pypy|perl|ruby|node|nodejs|deno|bun|java|lua|luajit|php|bash|dash|sh|zsh|fish|ksh|tclsh|wish"
    r"|guile|mono|dotnet|env|busybox|wine|electron|gjs|qml|qmlscene|Rscript|julia|sudo|pkexec|bwrap|flatpak|snap)[\d.-]*"
)


def is_interpreter(app: str) -> bool:
    """Return whether an identity stands for every program that something could run, and so opens nothing."""
    return _INTERPRETER.fullmatch(app) is not None


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What one of the two passes says."""

    outcome: Outcome
    rule: str
    reason: str
    obligations: Obligations = Obligations()


class Compiled(msgspec.Struct, frozen=True, kw_only=True):
    """A rule, ready to be compared."""

    rule: Rule
    is_default: bool
    denies: bool
    asks: bool
    #: Index into `_FIELDS` with what it must match.
    proven: tuple[tuple[int, Matches], ...]
    category: frozenset[str]
    observed: tuple[tuple[str, Matches], ...]
    #: An interpreter's identity opens nothing: rules that allow or cover by application pass it over.
    by_app: bool


#: All that an answer hangs on where no rule looks at a text of the screen; see `_decide`.
_Question = tuple[tuple[str, ...], frozenset[str], frozenset[str], str | None, bool]


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """Compiled rules under one revision. `closed` is why everything is denied, None for a working policy.

    `answered` are verdicts on questions that were put before. They follow from the rules alone, so they are kept with
    them and go with them: another policy has none.
    """

    revision: str
    rules: tuple[Compiled, ...] = ()
    closed: str | None = None
    answered: dict[_Question, Verdict] = msgspec.field(default_factory=dict)


def compile_policy(rules: Iterable[Rule], defaults: Iterable[Rule], revision: str) -> Policy:
    """Return a policy of operator rules and, behind them, the defaults that they may cover."""
    compiled = [compile_rule(rule, is_default=False) for rule in rules]
    compiled += [compile_rule(rule, is_default=True) for rule in defaults]
    return Policy(revision=revision, rules=tuple(compiled))


def deny_all(reason: str, revision: str = "closed") -> Policy:
    """Return the policy that stands in for one that cannot be used: missing, malformed, late or erroring."""
    return Policy(revision=revision, closed=reason[: limits.REASON_CHARS_MAX])


def decide(policy: Policy, document: PolicyInput, decision_id: str) -> Decision:
    """Decide a request with and without what was observed; the stricter answer stands.

    Never raises: whatever goes wrong inside is a deny that says so.
    """
    try:
        verdict = _decide(policy, document)
    except SurehandError as error:
        verdict = Verdict(outcome="deny", rule="error", reason=f"policy could not be evaluated: {error.code}")
    except Exception as error:  # noqa: BLE001 a policy that errs must deny, whatever the error
        verdict = Verdict(outcome="deny", rule="error", reason=f"policy could not be evaluated: {type(error).__name__}")
    return Decision(
        decision_id=decision_id,
        outcome=verdict.outcome,
        policy_revision=policy.revision,
        rule=verdict.rule,
        reason=verdict.reason,
        obligations=verdict.obligations,
    )


def stricter(first: Verdict, second: Verdict) -> Verdict:
    """Return the stricter of two verdicts with the obligations of both; the first where they are equal."""
    base = second if STRICTNESS[second.outcome] > STRICTNESS[first.outcome] else first
    if first.obligations == second.obligations:
        return base
    return msgspec.structs.replace(base, obligations=join((first.obligations, second.obligations)))


def join(obligations: Iterable[Obligations]) -> Obligations:
    """Return the obligations that satisfy all of these."""
    found = tuple(obligations)
    return Obligations(
        redact=tuple(sorted({name for one in found for name in one.redact})),
        release="ask" if any(one.release == "ask" for one in found) else "always",
        approvals_needed=max((one.approvals_needed for one in found), default=1),
    )


def _decide(policy: Policy, document: PolicyInput) -> Verdict:
    if policy.closed is not None:
        return Verdict(outcome="deny", rule="closed", reason=policy.closed)
    proven = proven_categories_of(document.facts)
    present = proven | observed_categories_of(document.facts.observed)
    seen_as = _seen_as(document)
    question = (_values(document, document.action), proven, present, seen_as, document.approved)
    known = policy.answered.get(question)
    if known is not None:
        return known
    candidates = candidates_of(policy, document, document.action)
    matching = matching_of(candidates, proven, {})
    covered = covered_by(matching)
    verdict = verdict_of(standing_of(matching, proven, covered), approved=document.approved)
    candidates += seen_candidates_of(policy, document) or []
    looks = any(one.observed for one in candidates)
    # Where nothing that was observed is looked at, the second answer would be the first.
    if looks or seen_as is not None or present != proven:
        standing = standing_of(matching_of(candidates, present, document.facts.observed), present, covered)
        verdict = stricter(verdict_of(standing, approved=document.approved), verdict)
    if not looks:
        if len(policy.answered) >= limits.POLICY_ANSWERS_KEPT_MAX:
            policy.answered.clear()
        policy.answered[question] = verdict
    return verdict


def _seen_as(document: PolicyInput) -> str | None:
    """Return the effect that the screen says it really is; None where it says nothing else."""
    effect = document.facts.observed.get("effect")
    return effect if isinstance(effect, str) and effect != document.action else None


def seen_candidates_of(policy: Policy, document: PolicyInput) -> list[Compiled] | None:
    """Return the rules that speak of what the screen says it really is; None where the screen says nothing else.

    As that it may be denied or asked about as well; it may not be allowed as that.
    """
    effect = _seen_as(document)
    if effect is None:
        return None
    return [one for one in candidates_of(policy, document, effect) if one.denies or one.asks]


def _values(document: PolicyInput, action: str) -> tuple[str, ...]:
    """Return the proven values in the order of `_FIELDS`."""
    facts = document.facts
    return (
        document.principal,
        action,
        document.risk,
        facts.isolation,
        facts.app,
        facts.place,
        document.interaction_mode,
        facts.trust_level,
        facts.backend,
        facts.secret or "",
    )


def candidates_of(policy: Policy, document: PolicyInput, action: str) -> list[Compiled]:
    """Return the rules whose proven conditions hold."""
    values = _values(document, action)
    found = []
    for one in policy.rules:
        for index, matches in one.proven:
            if not matches(values[index]):
                break
        else:
            if not (one.by_app and is_interpreter(document.facts.app)):
                found.append(one)
    return found


def matching_of(candidates: list[Compiled], present: frozenset[str], observed: dict[str, Any]) -> list[Compiled]:
    """Return those of which the other conditions hold as well."""
    return [one for one in candidates if _matches(one, present, observed)]


def covered_by(matching: Iterable[Compiled]) -> frozenset[str]:
    """Return what these rules take responsibility for; the screen has no say, so it is asked without the screen."""
    return frozenset(name for one in matching if not (one.is_default or one.denies) for name in one.rule.covers)


def standing_of(matching: list[Compiled], present: frozenset[str], covered: frozenset[str]) -> list[Compiled]:
    """Return the matching rules but for defaults of which every category that is present is covered."""
    return [one for one in matching if not (one.is_default and one.category and one.category & present <= covered)]


def verdict_of(standing: list[Compiled], *, approved: bool) -> Verdict:
    """Return the answer of the rules that stand: the first of the strictest kind names it."""
    denied = next((one.rule for one in standing if one.denies), None)
    if denied is not None:
        return Verdict(outcome="deny", rule=denied.id, reason=denied.reason)
    asked = next((one.rule for one in standing if one.asks), None)
    allowed = asked or next((one.rule for one in standing), None)
    if allowed is None:
        return Verdict(outcome="deny", rule="default", reason="no rule allows it")
    return Verdict(
        outcome="require_approval" if asked is not None and not approved else "allow",
        rule=allowed.id,
        reason=allowed.reason,
        obligations=_obligations(standing),
    )


def _matches(one: Compiled, present: frozenset[str], observed: dict[str, Any]) -> bool:
    if one.category and one.category.isdisjoint(present):
        return False
    for field, matches in one.observed:
        text = observed.get(field)
        if not isinstance(text, str) or not matches(plain(text[: limits.POLICY_OBSERVED_CHARS_MAX])):
            return False
    return True


def _obligations(standing: list[Compiled]) -> Obligations:
    asking = [
        Obligations(redact=one.rule.redact, release=one.rule.release, approvals_needed=one.rule.approvals)
        for one in standing
        if one.rule.redact or one.rule.release != "always" or one.rule.approvals != 1
    ]
    return join(asking) if asking else _NO_OBLIGATIONS


_NO_OBLIGATIONS: Final = Obligations()


def proven_categories_of(facts: Facts) -> frozenset[str]:
    """Return the categories that are present whatever the screen says."""
    found: set[str] = set(facts.categories)
    if facts.sensitive_app:
        found.add("sensitive_app")
    if facts.isolation == "shared":
        found.add("shared_desktop")
    return frozenset(found)


def observed_categories_of(observed: dict[str, Any]) -> frozenset[str]:
    """Return the categories that the screen gives away."""
    listed = observed.get("categories", ())
    if not isinstance(listed, list | tuple):
        raise TypeError("observed categories are a list")
    return frozenset(listed) & (CONSEQUENTIAL | PLACES)


# --- compiling ----------------------------------------------------------------------------------------------------


def compile_rule(rule: Rule, *, is_default: bool) -> Compiled:
    """Return a rule ready to be compared."""
    match = rule.match
    proven = tuple(
        (index, matcher(getattr(match, field))) for index, field in enumerate(_FIELDS) if getattr(match, field)
    )
    observed = () if match.observed is None else tuple(
        (field, matcher(tuple(plain(pattern) for pattern in getattr(match.observed, field))))
        for field in _OBSERVED_FIELDS
        if getattr(match.observed, field)
    )  # fmt: skip
    return Compiled(
        rule=rule,
        is_default=is_default,
        denies=rule.effect == "deny",
        asks=rule.effect == "require_approval",
        proven=proven,
        category=frozenset(match.category),
        observed=observed,
        by_app=bool(match.app) and (rule.effect == "allow" or bool(rule.covers)),
    )
