"""Answers to questions without a person (spec §6.4): the operator's mode, what it may answer, and a risk assessment.

Guarantees:
- No mode turns a no into a yes: it answers questions that policy asks, nothing else, and policy is asked again.
- What is consequential, what several people must answer and what is not given out is never answered by a mode.
- An assessment counts only if it is exactly of its form, and says low and allow; what is missing, late, broken or of
  another opinion leaves the question to a person. Assessments are added up: one that objects is enough.
- What stands on a screen can only make an assessment graver.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from surehand import limits
from surehand.core.policy.evaluate import is_interpreter
from surehand.core.policy.inputs import all_categories
from surehand.core.policy.model import CONSEQUENTIAL, PLACES
from surehand.errors import SurehandError
from surehand.model.decision import Decision, PolicyInput
from surehand.model.record import Record, check_text, convert

Mode = Literal["deny", "ask", "risk-auto", "full-access"]
#: From strict to free; raising one needs the operator's confirmation.
MODES: Final[tuple[Mode, ...]] = ("deny", "ask", "risk-auto", "full-access")
#: Where every daemon begins.
FIRST: Final[Mode] = "ask"

#: What changes one element that can be changed back. Anything else is left to a person.
_PLAIN: Final = frozenset(
    {
        "desktop.expand", "desktop.focus", "desktop.hover", "desktop.scroll", "desktop.scroll_into_view",
        "desktop.select_option", "desktop.select_text", "desktop.set_value", "desktop.toggle", "desktop.type_text",
    }
)  # fmt: skip
#: What presses something; it must say what it is.
_PRESSES: Final = frozenset({"desktop.click", "desktop.invoke"})
_SHARED: Final = frozenset({"shared_desktop"})


class Assessment(Record, frozen=True, kw_only=True):
    """What an evaluator thinks of one request. The exact form; anything beside it is no assessment."""

    risk_level: Literal["low", "medium", "high"]
    recommended_decision: Literal["allow", "deny", "require_approval"]
    reason: str

    def __post_init__(self) -> None:
        check_text("reason", self.reason, limits.REASON_CHARS_MAX * 4, empty=False)
        check_text("reason", self.reason[limits.REASON_CHARS_MAX :], 0)

    @property
    def counts(self) -> bool:
        """Whether it is one that answers in a person's place."""
        return self.risk_level == "low" and self.recommended_decision == "allow"


def assessment_of(value: Any) -> Assessment | None:
    """Return what an evaluator said, or None where it is not exactly an assessment."""
    try:
        return convert(Assessment, value)
    except SurehandError:
        return None


def is_raise(before: Mode, after: Mode) -> bool:
    """Say whether a mode answers more than another."""
    return MODES.index(after) > MODES.index(before)


def why_not(mode: Mode, document: PolicyInput, decision: Decision) -> str:
    """Return why a mode leaves a question to a person; empty where it may answer it."""
    categories = all_categories(document)
    obligations = decision.obligations
    if mode not in ("risk-auto", "full-access") or decision.outcome != "require_approval":
        return "the mode leaves it to a person, or nobody is asked"
    if obligations.approvals_needed != 1 or obligations.release != "always":
        return "policy asks for more than one plain yes"
    if categories & CONSEQUENTIAL or categories & (PLACES - _SHARED):
        return "it is consequential, or its place is sensitive"
    if mode == "risk-auto" and document.risk != "reversible":
        return "it is not reversible"
    return ""


def assess(document: PolicyInput) -> Assessment:
    """Return the assessment that needs no model: by rules, from what is proven; the screen may only make it graver."""
    observed = document.facts.observed
    if document.action not in _PLAIN | _PRESSES:
        return _grave("medium", "this kind of action is looked at by a person")
    if not document.facts.app or is_interpreter(document.facts.app):
        return _grave("medium", "its application is not told apart from others")
    if observed.get("effect") not in (None, document.action):
        return _grave("high", "the screen says that it is something else")
    if observed.get("secret_shown") or document.facts.secret:
        return _grave("high", "a secret is in it")
    if document.action in _PRESSES and not str(observed.get("name", "")).strip():
        return _grave("medium", "what is pressed does not say what it does")
    return Assessment(risk_level="low", recommended_decision="allow", reason="a reversible change of one named element")


def _grave(level: Literal["medium", "high"], reason: str) -> Assessment:
    return Assessment(risk_level=level, recommended_decision="require_approval", reason=reason)
