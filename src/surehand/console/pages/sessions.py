"""Who is connected, and what they were given: standing grants to take back, budgets to renew."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from surehand.console.pages.timeline import path_of_operation
from surehand.console.pages.times import of_ms
from surehand.console.views import console, failed, form, render, see
from surehand.errors import SurehandError

TITLE: Final = "Sessions"
PATH: Final = "/sessions"

_KINDS: Final = (("operations", "operations"), ("external", "effects outside"), ("minutes", "minutes"))

_SAID: Final = {
    "revoked": {"tone": "good", "text": "The grant is taken back."},
    "renewed": {"tone": "good", "text": "They go on with a new budget."},
}


async def listed(request: Request) -> Response:
    """Show sessions, grants and budgets."""
    daemon = console(request).daemon
    who, grants = None, []
    try:
        who = await daemon.call("ps")
        grants = (await daemon.call("standing.list"))["grants"]
    except SurehandError:
        who = None
    return await render(
        request,
        "sessions.html",
        **({"sessions": None, "in_flight": [], "unresolved": [], "budgets": []} if who is None else present(who)),
        grants=[granted(one) for one in grants],
        # In the address, not in the session: a load in the background must not take it away.
        flash=_SAID.get(request.query_params.get("said", "")),
    )


def present(who: Mapping[str, Any]) -> dict[str, Any]:
    """Return who is connected and what runs, people last."""
    found = [
        {
            "label": one["session"],
            "principal": one["principal"],
            "role": one["role"],
            "client": _client(one.get("client") or {}),
            "desktop": one.get("desktop") or "",
        }
        for one in who["sessions"]
    ]
    return {
        "sessions": sorted(found, key=lambda one: one["role"]),
        "in_flight": [{**one, "path": _path(one)} for one in who["in_flight"]],
        "unresolved": [{**one, "path": _path(one)} for one in who["unresolved"]],
        "budgets": [budget(one) for one in who["budgets"]],
    }


def _client(said: Mapping[str, Any]) -> str:
    """Return what a client says of itself; its words."""
    name = " ".join(str(said[part]) for part in ("name", "version") if said.get(part))
    pid = f"pid {said['pid']}" if said.get("pid") else ""
    return ", ".join(part for part in (name, pid) if part)


def _path(one: Mapping[str, Any]) -> str:
    return path_of_operation(one["principal"], one["operation_id"])


def granted(one: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is shown of a standing grant."""
    return {
        "grant_id": one["grant_id"],
        "principal": one["principal"],
        "app": one["app"],
        "place": one.get("place") or "",
        "actions": one.get("actions") or (),
        "max_risk": one["risk_max"],
        "left": one["uses_left"],
        "most": one["uses_max"],
        "until": of_ms(one["expires_at_ms"]),
        "by": one.get("issued_by", ""),
        "expires_at_ms": one["expires_at_ms"],
    }


def budget(one: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is shown of a budget: what was spent of what is limited."""
    spent = [
        {"name": text, "spent": one[kind], "most": one[f"{kind}_max"]}
        for kind, text in _KINDS
        if one.get(f"{kind}_max") is not None
    ]
    return {"principal": one["principal"], "paused": one["paused"], "spent": spent}


async def revoke(request: Request) -> Response:
    """Take a standing grant back."""
    return await _done(request, "standing.revoke", {"grant_id": form(request).get("grant_id", "")}, "revoked")


async def renew(request: Request) -> Response:
    """Let a principal go on with a new budget."""
    principal = form(request).get("principal", "")
    return await _done(request, "budgets.renew", {"principal": principal}, "renewed")


async def _done(request: Request, method: str, params: dict[str, Any], said: str) -> Response:
    try:
        await console(request).daemon.call(method, params)
    except SurehandError as error:
        return await failed(request, error, back=PATH)
    return see(f"{PATH}?said={said}")


ROUTES: Final[tuple[BaseRoute, ...]] = (
    Route(PATH, listed),
    Route(f"{PATH}/revoke", revoke, methods=["POST"]),
    Route(f"{PATH}/renew", renew, methods=["POST"]),
)
