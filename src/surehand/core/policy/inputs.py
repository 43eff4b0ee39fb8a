"""Builds what policy is asked, the same way for every engine (spec §6.1).

Guarantees: only `facts.observed` holds anything that came from the screen; texts of the request are redacted; risk and
categories are raised from the request, the proven identity and the lists, never lowered; isolation and trust level are
the host's.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from surehand import limits
from surehand.core import redaction
from surehand.core.hashing import Digest
from surehand.core.policy import proof
from surehand.core.policy.categories import (
    PROCESS_RUN,
    AppClass,
    classify_app,
    classify_launch,
    effect_name,
    effective_risk,
    observed_categories,
    proven_categories,
)
from surehand.core.policy.vocabulary import Vocabulary
from surehand.core.release import is_secret
from surehand.core.risk.controls import Control
from surehand.core.safety import Host
from surehand.model.actions import App
from surehand.model.decision import Facts, PolicyInput, Proven
from surehand.model.request import Request
from surehand.model.scene import Node, Surface
from surehand.model.secrets import BoundSecret

_NONE: Final[frozenset[str]] = frozenset()
#: The reads of spec §5.6, as effects.
READ_EFFECTS: Final = frozenset(
    {
        "desktop.list",
        "desktop.observe",
        "desktop.query",
        "desktop.read_table",
        "desktop.read_text",
        "desktop.screenshot.window",
    }
)


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """What stays the same from request to request on one desktop.

    `denied_tokens` are without case; `own_pids` are Surehand's own processes, the terminals that run them and the
    browsers that show its console; `own_ports` are those the console is on.
    """

    host: Host
    vocabulary: Vocabulary
    digest: Digest
    backend: str
    browser: bool = False
    denied_tokens: frozenset[str] = frozenset()
    own_pids: frozenset[int] = frozenset()
    own_ports: frozenset[int] = frozenset()


def denied_tokens(listed: str) -> frozenset[str]:
    """Return the tokens of a comma list such as `SUREHAND_DENIED_APPS`, without case."""
    return frozenset(token for part in listed.split(",") if (token := part.strip().casefold()))


def policy_input(
    scope: Scope,
    request: Request,
    *,
    principal: str,
    surface: Surface | None,
    node: Node | None = None,
    context: str = "",
    fields: tuple[str, ...] = (),
    approved: bool = False,
) -> PolicyInput:
    """Return the document for an operation.

    Args:
        scope: The desktop's.
        request: As proposed.
        principal: As the channel knows.
        surface: What it is aimed at; None for launching, opening and the like.
        node: The element, as read.
        context: The identifying label around it, as read.
        fields: The names of the entry fields beside it in its form, as read.
        approved: Whether a person, or a standing grant, already said yes to exactly this.
    """
    app = _app_of(scope, request, surface)
    effect = effect_name(request.action, request.target, browser=scope.browser, runs_commands=app.runs_commands)
    words = scope.vocabulary.words
    categories = app.proven | proven_categories(request.action, effect, request.risk, words, scope.own_ports)
    observed = _observed(surface, node, context)
    control = _control(surface, node, context, fields)
    told = app.claimed | observed_categories(request.action, scope.vocabulary.words, control)
    if app.claims_to_run_commands or (node is not None and node.role == "terminal"):
        seen_as = effect_name(request.action, request.target, browser=scope.browser, runs_commands=True)
        if seen_as != effect:
            observed["effect"] = seen_as
            told |= {"process_run"} if seen_as == PROCESS_RUN else frozenset()
    if told:
        observed["categories"] = sorted(told)
    return PolicyInput(
        principal=principal,
        action=effect,
        risk=effective_risk(request.action, request.risk, categories),
        interaction_mode=request.interaction_mode,
        parameters=redaction.parameters(request.action, scope.digest),
        facts=_facts(scope, _app_key(request, surface), surface, categories, observed),
        approved=approved,
    )


def with_secret(document: PolicyInput, secret: BoundSecret, node: Node | None) -> PolicyInput:
    """Return the document of an operation that enters an enrolled secret: which one, and whether it will show.

    Args:
        document: Of `policy_input`.
        secret: The secret, by its reference.
        node: The element, as read.
    """
    facts = document.facts
    shows = {"secret_shown": True} if node is None or not is_secret(node) else {}
    stated = msgspec.structs.replace(
        facts,
        secret=proof.secret(secret),
        secret_bound_to=proof.bound_to(secret),
        observed={**facts.observed, **shows},
    )
    return msgspec.structs.replace(document, facts=stated)


def read_input(scope: Scope, effect: str, *, principal: str, surface: Surface | None) -> PolicyInput:
    """Return the document for a read, before the application is touched (spec §5.6).

    Args:
        scope: The desktop's.
        effect: One of `READ_EFFECTS`.
        principal: As the channel knows.
        surface: What would be read; None for a list of everything.
    """
    app = AppClass() if surface is None else _classify(scope, surface)
    observed = _observed(surface, None, "")
    if app.claimed:
        observed["categories"] = sorted(app.claimed)
    return PolicyInput(
        principal=principal,
        action=effect,
        risk="read",
        interaction_mode="background_only",
        parameters={},
        facts=_facts(
            scope, proof.NOTHING if surface is None else proof.application(surface.app), surface, app.proven, observed
        ),
    )


def all_categories(document: PolicyInput) -> frozenset[str]:
    """Return proven and observed categories together, for whatever may only be stricter by them."""
    return _NONE.union(document.facts.categories, document.facts.observed.get("categories", ()))


def _facts(
    scope: Scope, app: Proven, surface: Surface | None, categories: frozenset[Proven], observed: dict[str, Any]
) -> Facts:
    return Facts(
        app=app,
        place=proof.NOTHING if surface is None else proof.place(surface),
        isolation=scope.host.isolation,
        trust_level=scope.host.trust_level,
        backend=scope.backend,
        categories=tuple(sorted(categories)),
        sensitive_app="sensitive_app" in categories,
        observed=observed,
    )


def _app_of(scope: Scope, request: Request, surface: Surface | None) -> AppClass:
    if isinstance(request.action, App) and request.action.op == "launch":
        return classify_launch(scope.vocabulary.apps, request.action.name, scope.denied_tokens)
    return AppClass() if surface is None else _classify(scope, surface)


def _app_key(request: Request, surface: Surface | None) -> Proven:
    """Return the proven identity; what is only going to be launched has none and is named as such."""
    if isinstance(request.action, App) and request.action.op == "launch":
        return proof.launched(request.action)
    return proof.NOTHING if surface is None else proof.application(surface.app)


def _classify(scope: Scope, surface: Surface) -> AppClass:
    return classify_app(
        scope.vocabulary.apps,
        surface.app,
        claimed=(surface.title,),
        denied_tokens=scope.denied_tokens,
        own_pids=scope.own_pids,
    )


def _control(surface: Surface | None, node: Node | None, context: str, fields: tuple[str, ...]) -> Control:
    title = "" if surface is None else surface.title
    if node is None:
        return Control(context=context, title=title)
    return Control(
        role=node.role,
        name=node.name,
        description=node.description,
        context=context,
        title=title,
        secret=node.secret,
        fields=fields,
    )


def _observed(surface: Surface | None, node: Node | None, context: str) -> dict[str, Any]:
    texts = {
        "title": surface.title if surface is not None else "",
        "claimed": surface.app.claimed_name if surface is not None else "",
        "role": node.role if node is not None else "",
        "name": node.name if node is not None else "",
        "context": context,
    }
    return {field: text[: limits.POLICY_OBSERVED_CHARS_MAX] for field, text in texts.items() if text}
