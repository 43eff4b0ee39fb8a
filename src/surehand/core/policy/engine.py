"""What an engine is asked and what its answer is worth, the same for Rego, Cedar and OPA (spec §6.1).

An engine stands where the operator's rules stand: its answer counts as one rule that matched, and the defaults stand
behind it as they stand behind rules. Guarantees: whatever goes wrong (`FAILURES`) is a deny that says which of these it
was; the question is put with and without what was observed, and the stricter answer stands; what an answer covers
counts only as far as it covers it without the screen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal

import msgspec

from surehand import limits
from surehand.core.policy.defaults import DEFAULT_RULES, DEFAULTS_VERSION
from surehand.core.policy.evaluate import (
    Compiled,
    Policy,
    Verdict,
    candidates_of,
    compile_policy,
    compile_rule,
    covered_by,
    is_interpreter,
    matching_of,
    observed_categories_of,
    proven_categories_of,
    seen_candidates_of,
    standing_of,
    stricter,
    verdict_of,
)
from surehand.core.policy.model import COVERABLE, Rule, check_known
from surehand.core.policy.vocabulary import plain
from surehand.errors import InvalidRequest, SurehandError
from surehand.model.decision import Decision, Obligations, PolicyInput
from surehand.model.record import Record, check_identifier, check_range, check_text, convert

FailureKind = Literal["undefined", "unavailable", "timeout", "malformed", "too_large", "unknown_obligation", "error"]

#: What can go wrong with an engine. Each is a deny by the rule `engine.KIND`.
FAILURES: Final[dict[FailureKind, str]] = {
    "undefined": "the policy says nothing about this, not even that the defaults decide",
    "unavailable": "the policy engine cannot be reached",
    "timeout": "the policy engine did not answer in time",
    "malformed": "the policy engine's answer is not one",
    "too_large": "the question or the answer is larger than a policy may make it",
    "unknown_obligation": "the policy asks for something that Surehand cannot hold to",
    "error": "the policy engine failed",
}
#: Names of rules that no engine and no operator may use: they are ours.
RESERVED: Final = ("default", "engine.", "kernel.", "error", "closed")

_OBLIGATIONS: Final = frozenset(Obligations.__struct_fields__)
_TEXTS: Final = ("role", "name", "context", "title", "claimed")


class EngineFailure(Exception):
    """An engine has no answer. `kind` says what became of the question, `detail` the rest, for the operator's log."""

    def __init__(self, kind: FailureKind, detail: str = "") -> None:
        super().__init__(f"{kind}: {detail}" if detail else kind)
        self.kind: FailureKind = kind
        self.detail = detail


class EngineAnswer(Record, frozen=True, kw_only=True):
    """What an engine answers. `default` says that the policy leaves it to the built-in defaults."""

    outcome: Literal["allow", "deny", "require_approval", "default"]
    rule: str = "default"
    reason: str = ""
    covers: tuple[str, ...] = ()
    obligations: Obligations = Obligations()

    def __post_init__(self) -> None:
        check_known("covers", self.covers, COVERABLE)
        if self.outcome == "default":
            return
        check_identifier("rule", self.rule)
        if self.rule.startswith(RESERVED):
            raise InvalidRequest("names of rules that start with default, engine., kernel., error or closed are ours")
        check_text("reason", self.reason, limits.REASON_CHARS_MAX, empty=False)
        check_range("approvals_needed", self.obligations.approvals_needed, 1, limits.APPROVALS_NEEDED_MAX)


def defaults_policy(revision: str) -> Policy:
    """Return the defaults alone, as they stand behind an engine's answers."""
    return compile_policy((), DEFAULT_RULES, f"{revision}.d{DEFAULTS_VERSION}")


# --- the question ---------------------------------------------------------------------------------------------------


def questions(document: PolicyInput) -> list[dict[str, Any]]:
    """Return what to ask: once without what was observed and, where anything was, once with it."""
    blind = input_value(document, {})
    return [blind, input_value(document, document.facts.observed)] if document.facts.observed else [blind]


def input_value(document: PolicyInput, observed: dict[str, Any]) -> dict[str, Any]:
    """Return the input document of spec/policy.md, with every field present.

    `facts.observed.plain` holds the observed texts as they are best compared: no case, nothing invisible, cut at
    `limits.POLICY_OBSERVED_CHARS_MAX`.
    """
    facts = document.facts
    seen = dict(observed)
    if seen:
        seen["plain"] = {
            field: plain(text[: limits.POLICY_OBSERVED_CHARS_MAX])
            for field in _TEXTS
            if isinstance(text := observed.get(field), str)
        }
        seen["categories"] = sorted(observed_categories_of(observed))
    return {
        "version": document.version,
        "principal": document.principal,
        "action": document.action,
        "risk": document.risk,
        "interaction_mode": document.interaction_mode,
        "parameters": document.parameters,
        "approved": document.approved,
        "facts": {
            "app": facts.app,
            "interpreter": is_interpreter(facts.app),
            "place": facts.place,
            "isolation": facts.isolation,
            "trust_level": facts.trust_level,
            "backend": facts.backend,
            "secret": facts.secret or "",
            "target_role": facts.target_role,
            "categories": sorted(proven_categories_of(facts)),
            "observed": seen,
        },
    }


# --- the answer -----------------------------------------------------------------------------------------------------


def read_answer(value: Any) -> EngineAnswer:
    """Read one answer strictly.

    Args:
        value: JSON as the engine gave it; None where the policy is undefined for this.

    Raises:
        EngineFailure: undefined, malformed or unknown_obligation.
    """
    if value is None:
        raise EngineFailure("undefined")
    if isinstance(value, dict) and isinstance(obligations := value.get("obligations"), dict):
        unknown = sorted(str(name)[:64] for name in obligations.keys() - _OBLIGATIONS)
        if unknown:
            raise EngineFailure("unknown_obligation", ", ".join(unknown[:8]))
    try:
        return convert(EngineAnswer, value)
    except SurehandError as error:
        raise EngineFailure("malformed", error.message) from error


def decide_from(defaults: Policy, document: PolicyInput, answers: Sequence[Any], decision_id: str) -> Decision:
    """Turn an engine's answers to `questions(document)` into the decision. Never raises.

    Args:
        defaults: Of `defaults_policy`.
        document: What was asked about.
        answers: One for each question, in order.
        decision_id: For the decision.
    """
    try:
        verdict = _verdict_of(defaults, document, [read_answer(value) for value in answers])
    except EngineFailure as failure:
        return failed(failure, defaults.revision, decision_id)
    except Exception as error:  # noqa: BLE001 an answer that cannot be weighed must deny, whatever the error
        return failed(EngineFailure("error", type(error).__name__), defaults.revision, decision_id)
    return Decision(
        decision_id=decision_id,
        outcome=verdict.outcome,
        policy_revision=defaults.revision,
        rule=verdict.rule,
        reason=verdict.reason,
        obligations=verdict.obligations,
    )


def failed(failure: EngineFailure, revision: str, decision_id: str) -> Decision:
    """Return the deny that a failure is. Its detail is not for the agent; `EngineFailure.detail` goes to the log."""
    return Decision(
        decision_id=decision_id,
        outcome="deny",
        policy_revision=revision,
        rule=f"engine.{failure.kind}",
        reason=FAILURES[failure.kind],
        obligations=Obligations(),
    )


def _verdict_of(defaults: Policy, document: PolicyInput, answers: list[EngineAnswer]) -> Verdict:
    observed = document.facts.observed
    if len(answers) != (2 if observed else 1):
        raise EngineFailure("malformed", f"{len(answers)} answers")
    candidates = candidates_of(defaults, document, document.action)
    proven = proven_categories_of(document.facts)
    spoken = _as_rule(answers[0])
    covered = covered_by(spoken)
    matching = [*spoken, *matching_of(candidates, proven, {})]
    blind = verdict_of(standing_of(matching, proven, covered), approved=document.approved)
    if not observed:
        return blind
    present = proven | observed_categories_of(observed)
    candidates += seen_candidates_of(defaults, document) or []
    matching = [*_as_rule(answers[1]), *matching_of(candidates, present, observed)]
    return stricter(verdict_of(standing_of(matching, present, covered), approved=document.approved), blind)


def _as_rule(answer: EngineAnswer) -> list[Compiled]:
    """Return the answer as a rule that matched, or nothing where the policy leaves it to the defaults."""
    if answer.outcome == "default":
        return []
    rule = Rule(
        id=answer.rule,
        effect=answer.outcome,
        reason=answer.reason,
        covers=answer.covers,
        approvals=answer.obligations.approvals_needed,
        release=answer.obligations.release,
        redact=answer.obligations.redact,
    )
    return [compile_rule(rule, is_default=False)]


def encode_question(value: dict[str, Any]) -> bytes:
    """Return a question's bytes.

    Raises:
        EngineFailure: too_large.
    """
    data = msgspec.json.encode(value)
    if len(data) > limits.POLICY_QUESTION_BYTES_MAX:
        raise EngineFailure("too_large", f"the question has {len(data)} bytes")
    return data
