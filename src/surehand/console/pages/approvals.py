"""The page of approvals: what waits for a person."""

from __future__ import annotations

from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from surehand import limits
from surehand.console.views import console, render, session
from surehand.errors import SurehandError
from surehand.model.approval import PendingApproval
from surehand.model.record import convert

TITLE: Final = "Approvals"
PATH: Final = "/approvals"

_VERBS: Final = {
    "batch": "Carry out",
    "process.run": "Run",
    "desktop.invoke": "Press",
    "desktop.set_value": "Fill in",
    "desktop.type_text": "Type into",
}
_TONES: Final = {"destructive": "bad", "external": "warn"}


async def listed(request: Request) -> Response:
    """Show what waits, oldest first, a page at a time."""
    try:
        pending = (await console(request).daemon.call("approvals"))["pending"]
    except SurehandError:
        pending = None
    number = _number(request.query_params.get("page", "1"))
    rows, last = None, 1
    if pending is not None:
        last = max(1, -(-len(pending) // limits.CONSOLE_ROWS_MAX))
        number = min(number, last)
        first = (number - 1) * limits.CONSOLE_ROWS_MAX
        rows = [row(convert(PendingApproval, one)) for one in pending[first : first + limits.CONSOLE_ROWS_MAX]]
    return await render(
        request,
        "approvals.html",
        rows=rows,
        total=len(pending or ()),
        number=number,
        first=(number - 1) * limits.CONSOLE_ROWS_MAX + 1,
        last_page=last,
        flash=session(request).kept.pop("flash", None),
    )


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() and 0 < len(text) < 7 and int(text) else 1


def row(pending: PendingApproval) -> dict[str, Any]:
    """Return what the list shows of a question."""
    shown = pending.presentation
    return {
        "approval_id": pending.approval_id,
        "path": f"{PATH}/{pending.approval_id}",
        "verb": _VERBS.get(shown.action, shown.action),
        "element": shown.element or shown.context,
        "app": shown.app,
        "place": shown.place,
        "principal": shown.principal,
        "risk": shown.risk,
        "tone": _TONES.get(shown.risk, ""),
        "categories": shown.categories,
        "needed": pending.needed,
        "changed": pending.replaces is not None,
        "expires_at_ms": pending.expires_at_ms,
    }


ROUTES: Final[tuple[BaseRoute, ...]] = (Route(PATH, listed),)
