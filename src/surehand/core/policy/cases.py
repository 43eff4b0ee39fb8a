"""An operator's table of cases: requests in plain words, each with what must be decided about it.

A case says little; what follows from it (categories from names and words, risk from the action) is worked out by the
same code as for a real request, so that a table tests what will happen.
"""

from __future__ import annotations

import tomllib
from typing import Any, Final, Literal

import msgspec

from surehand import limits
from surehand.core.hashing import text_digest
from surehand.core.policy.categories import effective_risk, proven_categories
from surehand.core.policy.effects import EFFECTS
from surehand.core.policy.inputs import READ_EFFECTS, Scope, policy_input, read_input, with_secret
from surehand.core.policy.model import Isolation, Risk, check_known
from surehand.core.policy.positions import Places, line_and_column
from surehand.core.policy.vocabulary import Vocabulary
from surehand.core.safety import Host
from surehand.errors import InvalidRequest, SurehandError, TooLarge
from surehand.model import actions as a
from surehand.model.decision import Decision, PolicyInput
from surehand.model.record import Record, check_count, check_text, convert
from surehand.model.request import Request
from surehand.model.scene import AppIdentity, Node, Surface
from surehand.model.secrets import BoundSecret, SecretBinding, check_reference
from surehand.model.targets import ElementTarget, NoTarget, SurfaceTarget, Target

Expected = Literal["allow", "ask", "deny"]

_OUTCOMES: Final[dict[Expected, str]] = {"allow": "allow", "ask": "require_approval", "deny": "deny"}
_READS: Final = READ_EFFECTS | {name.replace("desktop.", "browser.", 1) for name in READ_EFFECTS}
#: A request of each kind whose kind says what its names and words mean. Any other kind is told by its name alone.
_SAMPLES: Final[dict[str, a.Action]] = {
    "invoke": a.Invoke(),
    "click": a.Click(),
    "press": a.Press(chords=("Return",)),
    "set_value": a.SetValue(value="text"),
    "type_text": a.TypeText(text="text"),
    "paste": a.Paste(text="text"),
    "upload": a.Upload(paths=("/tmp/file",)),  # noqa: S108 - a name, nothing is opened
    "abort": a.Abort(),
    "physical_state": a.PhysicalState(),
    "screenshot": a.Screenshot(),
}
#: What an enrolled secret can be entered with.
_ENTERING: Final[dict[str, type[a.SetValue | a.TypeText]]] = {"set_value": a.SetValue, "type_text": a.TypeText}
_ELSE: Final = a.Focus()
_NO_HASH: Final = "0" * 64


class Shown(Record, frozen=True, kw_only=True):
    """What the screen says in a case."""

    role: str = ""
    name: str = ""
    context: str = ""
    title: str = ""
    claimed: str = ""


class Case(Record, frozen=True, kw_only=True):
    """One case: who does what, where, and what must come of it. `rule` names the rule that must decide."""

    name: str
    expect: Expected
    action: str
    rule: str | None = None
    principal: str = "agent"
    app: str = ""
    place: str = "main"
    risk: Risk | None = None
    isolation: Isolation = "isolated"
    interaction_mode: Literal["interactive", "background_only"] = "background_only"
    trust_level: Literal["A", "B"] = "A"
    backend: str = "atspi"
    approved: bool = False
    #: The enrolled secret that is entered, by its reference.
    secret: str | None = None
    observed: Shown = Shown()

    def __post_init__(self) -> None:
        check_text("name", self.name, limits.NAME_CHARS_MAX, empty=False)
        check_known("action", (self.action,), EFFECTS)
        if self.secret is not None:
            check_reference("secret", self.secret)
            if self.action.split(".")[1] not in _ENTERING or not self.app:
                raise InvalidRequest("secret goes with set_value and type_text, in an app")


class Table(Record, frozen=True, kw_only=True):
    """A file of cases."""

    version: Literal[1]
    case: tuple[Case, ...] = ()

    def __post_init__(self) -> None:
        check_count("cases", len(self.case), 1, limits.POLICY_RULES_MAX)


class Result(Record, frozen=True, kw_only=True):
    """What came of a case."""

    name: str
    passed: bool
    expected: str
    outcome: str
    rule: str
    reason: str


def read_table(text: str) -> Table:
    """Read a table of cases.

    Raises:
        InvalidRequest, TooLarge: what is wrong, with line and column.
    """
    if len(text) > limits.POLICY_BYTES_MAX:
        raise TooLarge(f"a table of cases has at most {limits.POLICY_BYTES_MAX} characters")
    try:
        value = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidRequest(f"the table of cases is not TOML: {error}") from error
    listed = value.get("case")
    if isinstance(listed, list):
        places = Places(text)
        for number, one in enumerate(listed):
            try:
                convert(Case, one)
            except SurehandError as error:
                line, _ = places.of(("case", number))
                raise type(error)(f"the case at line {line}: {error.message}", fix=error.fix) from error
    elif listed is not None:
        line, _ = line_and_column(text, text.index("case"))
        raise InvalidRequest(f"line {line}: case is no list", fix="write [[case]] before each case")
    return convert(Table, value)


def document_of(case: Case, vocabulary: Vocabulary) -> PolicyInput:
    """Return what policy would be asked in this case."""
    scope = Scope(
        host=Host(isolation=case.isolation, trust_level=case.trust_level),
        vocabulary=vocabulary,
        digest=text_digest(bytes(32)),
        backend=case.backend,
        browser=case.action.startswith("browser."),
    )
    surface = None if not case.app else _surface(case)
    if case.action in _READS:
        document = read_input(scope, case.action, principal=case.principal, surface=surface)
        return msgspec.structs.replace(document, interaction_mode=case.interaction_mode, approved=case.approved)
    kind = case.action.split(".")[1]
    action = _SAMPLES.get(kind, _ELSE) if case.secret is None else _ENTERING[kind](secret_ref=case.secret)
    declared: dict[str, Any] = {} if case.risk is None else {"risk": case.risk}
    request = Request(
        operation_id="case",
        action=action,
        target=_target(action, case.action),
        interaction_mode=case.interaction_mode,
        **declared,
    )
    shown = case.observed
    node = Node(handle="case", role=shown.role or "button", name=shown.name) if shown.role or shown.name else None
    document = policy_input(
        scope, request, principal=case.principal, surface=surface, node=node, context=shown.context,
        approved=case.approved,
    )  # fmt: skip
    if case.secret is not None:
        bound_to = SecretBinding(apps=(case.app,))
        document = with_secret(document, BoundSecret(reference=case.secret, bound_to=bound_to), node)
    return document if document.action == case.action else _renamed(document, case.action, vocabulary)


def _renamed(document: PolicyInput, action: str, vocabulary: Vocabulary) -> PolicyInput:
    """Return the document under the case's own effect, with what follows from that name alone."""
    categories = {*document.facts.categories, *proven_categories(_ELSE, action, document.risk, vocabulary.words)}
    facts = msgspec.structs.replace(document.facts, categories=tuple(sorted(categories)))
    risk = effective_risk(_ELSE, document.risk, frozenset(categories))
    return msgspec.structs.replace(document, action=action, risk=risk, facts=facts)


def _target(action: a.Action, effect: str) -> Target:
    if isinstance(action, a.Screenshot):
        return SurfaceTarget(ref="case") if effect.endswith(".window") else NoTarget()
    if isinstance(action, a.Abort | a.PhysicalState):
        return NoTarget()
    return ElementTarget(
        scene_id="case",
        generation=1,
        element_id="e1",
        provenance_hash=_NO_HASH,
        fingerprint_hash=_NO_HASH,
        context_hash=_NO_HASH,
    )


def judged(case: Case, decision: Decision) -> Result:
    """Say whether a decision is what the case expects."""
    right = decision.outcome == _OUTCOMES[case.expect] and case.rule in (None, decision.rule)
    expected = case.expect if case.rule is None else f"{case.expect} by {case.rule}"
    short = "ask" if decision.outcome == "require_approval" else decision.outcome
    return Result(
        name=case.name, passed=right, expected=expected, outcome=short, rule=decision.rule, reason=decision.reason
    )


def _surface(case: Case) -> Surface:
    kind, _, rest = case.app.partition(":")
    executable, script = (rest, None) if kind == "exe" else ("", None)
    if kind == "script":
        executable, _, script = rest.partition(":")
    values: dict[str, Any] = {} if script is None else {"script": script}
    identity = AppIdentity(
        key=case.app, pid=1, process_generation="case", uid=0, executable=executable,
        claimed_name=case.observed.claimed, **values,
    )  # fmt: skip
    return Surface(
        surface_id="case", desktop="case", app=identity, backend=case.backend, toolkit="", title=case.observed.title,
        role="window", place=case.place,
    )  # fmt: skip
