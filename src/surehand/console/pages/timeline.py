"""The timeline: what agents did and were refused, newest first; and one operation with everything that is on record."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from surehand import limits
from surehand.console.pages.times import of_journal, written
from surehand.console.views import console, failed, render
from surehand.errors import SurehandError

TITLE: Final = "Timeline"
PATH: Final = "/timeline"
ONE: Final = f"{PATH}/operation"

_WORDS: Final = ("text", "principal", "app", "action", "outcome", "category")
_TIMES: Final = ("since", "until")
#: What came of it, in words, and how it is coloured.
_OUTCOMES: Final[dict[str, tuple[str, str]]] = {
    "succeeded": ("done", "good"),
    "failed": ("failed, nothing happened", "bad"),
    "outcome_unknown": ("nobody knows", "bad"),
    "interrupted": ("stopped by a person", "warn"),
    "withheld": ("done, result withheld", "warn"),
    "refused": ("refused", "warn"),
    "denied": ("a person said no", "warn"),
    "unanswered": ("nobody answered", "warn"),
    "changed": ("asked anew, it changed", ""),
    "lost": ("the question was lost", "warn"),
    "withdrawn": ("withdrawn", ""),
    "waiting": ("waits for a person", ""),
    "approved": ("approved, not done yet", ""),
    "running": ("running", ""),
}
_CATEGORIES: Final = (
    "credentials", "destructive", "external", "install", "process_run", "purchase", "send_publish", "settings",
    "upload", "denied_app", "own_surface", "sensitive_app", "shared_desktop",
)  # fmt: skip
_EVENTS: Final[dict[str, str]] = {
    "operation.refused.v1": "Refused",
    "operation.approval_requested.v1": "A person is asked",
    "operation.approved.v1": "A person said yes",
    "operation.denied.v1": "The question ended without a yes",
    "operation.claimed.v1": "Claimed: it may happen from here on",
    "operation.released.v1": "Released: nothing happened",
    "operation.terminal.v1": "Ended",
    "operation.resolved.v1": "A person looked and said what happened",
    "daemon.started.v1": "The daemon started",
    "daemon.stopped.v1": "The daemon ended",
    "policy.loaded.v1": "A policy is in force",
    "policy.reload_failed.v1": "A policy could not be used, the one before stays",
    "policy.shadowed.v1": "A policy that is only tried would have decided otherwise",
    "session.opened.v1": "Somebody connected",
    "session.closed.v1": "Somebody went",
    "human.requested.v1": "An agent asks for a person's help",
    "human.taken.v1": "A person has taken over",
    "human.returned.v1": "A person has handed back",
    "human.declined.v1": "A person declined to help",
    "human.unanswered.v1": "Nobody came to help",
    "standing.granted.v1": "A standing grant was given",
    "standing.revoked.v1": "A standing grant was taken back",
    "standing.expired.v1": "A standing grant ran out",
    "agents.halted.v1": "Agents were stopped",
    "hold.set.v1": "Agents are held",
    "hold.lifted.v1": "Agents go on",
    "human.lost.v1": "A request for help was lost with its daemon",
    "human.withdrawn.v1": "An agent took its request back",
    "read.recorded.v1": "Something was read",
    "budget.opened.v1": "A budget began",
    "budget.renewed.v1": "A budget was renewed",
    "credential.enrolled.v1": "A security key was enrolled",
    "credential.removed.v1": "A security key was removed",
    "credential.used.v1": "A security key was used",
    "secret.enrolled.v1": "A secret was enrolled",
    "secret.removed.v1": "A secret was removed",
    "unresolved.opened.v1": "An outcome is unknown",
    "unresolved.closed.v1": "An unknown outcome was looked into",
    "vault.locked.v1": "The vault was locked",
    "vault.made.v1": "The vault was made",
    "vault.unlocked.v1": "The vault was unlocked",
}


async def listed(request: Request) -> Response:
    """Show operations that fit what is looked for."""
    sought = {name: request.query_params.get(name, "").strip() for name in (*_WORDS, *_TIMES)}
    before = _number(request.query_params.get("before", ""))
    found, fault = None, None
    try:
        found = await console(request).daemon.call("operations", asked(sought, before))
    except SurehandError as error:
        fault = error
    context = {} if found is None else shown(found, sought)
    return await render(
        request,
        "timeline.html",
        **{"rows": None, "older": "", "looked_at": 0, **context},
        fault=fault,
        sought=sought,
        is_sought=any(sought.values()),
        is_first=before is None,
        outcomes=[(name, text) for name, (text, _) in _OUTCOMES.items()],
        categories=_CATEGORIES,
        newest=path_of(sought, None),
    )


def asked(sought: Mapping[str, str], before: int | None) -> dict[str, Any]:
    """Return what the daemon is asked for what a person wrote."""
    params: dict[str, Any] = {"limit": limits.CONSOLE_ROWS_MAX}
    params.update({name: sought[name] for name in _WORDS if sought[name]})
    for name in _TIMES:
        at = written(sought[name])
        if at is not None:
            params[f"{name}_ms"] = at
    if before is not None:
        params["before_seq"] = before
    return params


def shown(found: Mapping[str, Any], sought: Mapping[str, str]) -> dict[str, Any]:
    """Return what the page shows of the daemon's answer."""
    return {
        "rows": [row(one) for one in found["operations"]],
        "looked_at": found["looked_at"],
        "older": "" if found["next"] is None else path_of(sought, found["next"]),
    }


def path_of(sought: Mapping[str, str], before: int | None) -> str:
    """Return the address of a page of the same search."""
    parts = {name: value for name, value in sought.items() if value}
    if before is not None:
        parts["before"] = str(before)
    return f"{PATH}?{urlencode(parts)}" if parts else PATH


def path_of_operation(principal: str, operation_id: str) -> str:
    """Return the address of one operation's page."""
    return f"{ONE}?{urlencode({'principal': principal, 'operation': operation_id})}"


def row(one: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the list shows of an operation."""
    text, tone = _OUTCOMES.get(str(one.get("outcome")), (str(one.get("outcome", "")), ""))
    return {
        "key": one["seq"],
        "path": path_of_operation(one["principal"], one["operation_id"]),
        "when": of_journal(one["changed_at"]),
        "outcome": text,
        "tone": tone,
        "effect": one.get("effect", "something that was not looked at"),
        "app": one.get("app", ""),
        "place": one.get("place", ""),
        "principal": one["principal"],
        "operation_id": one["operation_id"],
        "rule": one.get("rule", ""),
        "reason": one.get("reason", ""),
        "code": one.get("code", ""),
        "categories": one.get("categories", ()),
        "verified": one.get("verified") == "verified",
        "repeats": one.get("repeats", 0),
        "resolved": one.get("resolved", ""),
    }


async def one(request: Request) -> Response:
    """Show one operation: what became of it, the decision, the rule, the receipt, and every record."""
    names = {
        "principal": request.query_params.get("principal", ""),
        "operation_id": request.query_params.get("operation", ""),
    }
    try:
        found = await console(request).daemon.call("operation", names)
    except SurehandError as error:
        return await failed(request, error, back=PATH)
    return await render(request, "operation.html", **detail(found))


def detail(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the page of one operation shows."""
    summary = found["summary"]
    payloads = {event["type"]: event["payload"] for event in found["events"]}
    claim = payloads.get("operation.claimed.v1", {})
    terminal = payloads.get("operation.terminal.v1", {})
    receipt = terminal.get("receipt") or {}
    asks = {
        name: str(summary[field])
        for name, field in (
            ("principal", "principal"),
            ("action", "effect"),
            ("app", "app"),
            ("place", "place"),
            ("risk", "risk"),
        )
        if summary.get(field)
    }
    return {
        "one": row(summary),
        "summary": summary,
        "began": of_journal(summary["began_at"]),
        "rule_in_words": found["rule_in_words"],
        "policy_changed": found["policy_changed"],
        "ask_path": f"/policy?{urlencode(asks)}#question",
        "decided": _pairs(
            outcome=(claim.get("decision") or {}).get("outcome") or summary.get("outcome"),
            rule=summary.get("rule"),
            reason=summary.get("reason"),
            code=summary.get("code"),
            gate=summary.get("gate"),
            policy=summary.get("revision"),
            approval=summary.get("approval_id"),
            standing_grant=summary.get("standing"),
            answered_by=summary.get("approver"),
        ),
        "message": terminal.get("message", ""),
        "receipt": _pairs(
            effect=receipt.get("effect"),
            backend=receipt.get("backend"),
            route=receipt.get("route"),
            isolation=receipt.get("isolation"),
            mode=receipt.get("interaction_mode"),
            authority=receipt.get("authority_mode"),
            trust_level=receipt.get("trust_level"),
            before=(receipt.get("evidence") or {}).get("before"),
            after=(receipt.get("evidence") or {}).get("after"),
            action_hash=receipt.get("action_hash"),
        ),
        "warnings": receipt.get("warnings") or (),
        "records": [record(event) for event in found["events"]],
    }


def _pairs(**facts: Any) -> list[tuple[str, str]]:
    return [(name.replace("_", " "), str(value)) for name, value in facts.items() if value not in (None, "", {})]


def record(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is shown of one record of the journal."""
    return {
        "seq": event["seq"],
        "title": _EVENTS.get(event["type"], event["type"]),
        "type": event["type"],
        "when": of_journal(event["occurred_at"]),
        "actor": event["actor"],
        "stream": event["stream"],
        "hash": event["record_hash"],
        "prev": event["prev_hash"],
        "payload": json.dumps(event["payload"], ensure_ascii=False, indent=1, sort_keys=True),
    }


def _number(text: str) -> int | None:
    fits = text.isascii() and text.isdecimal() and len(text) < len(str(limits.TIME_MS_MAX))
    return int(text) if fits else None


ROUTES: Final[tuple[BaseRoute, ...]] = (Route(PATH, listed), Route(ONE, one))
