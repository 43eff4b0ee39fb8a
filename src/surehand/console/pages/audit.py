"""The audit: whether the evidence is whole, and the evidence itself, record by record, newest first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from surehand import limits
from surehand.console.pages.timeline import path_of_operation, record
from surehand.console.pages.times import of_ms
from surehand.console.views import console, failed, now_ms, render, see, session
from surehand.errors import SurehandError

TITLE: Final = "Audit"
PATH: Final = "/audit"

_VERIFY_MS: Final = 600_000
_KEPT: Final = "audit"


async def listed(request: Request) -> Response:
    """Show the journal's state and a page of records."""
    daemon = console(request).daemon
    head, events = None, []
    upto = request.query_params.get("upto", "")
    try:
        head = await daemon.call("audit.head")
        last = min(int(upto), head["seq"]) if upto.isascii() and upto.isdecimal() and len(upto) < 16 else head["seq"]
        after = max(0, last - limits.CONSOLE_ROWS_MAX)
        if last:
            asked = {"after_seq": after, "limit": last - after}
            events = (await daemon.call("audit.show", asked))["events"]
    except SurehandError:
        head = None
    return await render(
        request,
        "audit.html",
        **({"journal": None} if head is None else journal(head)),
        **pages(events),
        verdict=session(request).kept.get(_KEPT),
    )


def journal(head: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is shown of the journal as a whole."""
    facts = head["journal"]
    fault = facts.get("read_only")
    verified = facts.get("verified") or {}
    return {
        "journal": {
            "seq": head["seq"],
            "hash": head["record_hash"],
            "tier": facts.get("tier", "unknown"),
            "lacks": facts.get("lacks", ()),
            "at_start": verified.get("events"),
            "read_only": None if fault is None else str(fault.get("message", "it is read-only")),
        }
    }


def pages(events: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a page of records, newest first, and where the pages beside it are."""
    rows = [row(event) for event in reversed(events)]
    first = events[0]["seq"] if events else 1
    return {"rows": rows, "older": f"{PATH}?{urlencode({'upto': first - 1})}" if first > 1 else ""}


def row(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is shown of a record; an operation's leads to its page."""
    kind, _, rest = event["stream"].partition("/")
    principal, _, operation_id = rest.partition("/")
    path = path_of_operation(principal, operation_id) if kind == "operation" and operation_id else ""
    return {**record(event), "path": path}


async def verify(request: Request) -> Response:
    """Have the auditor look at a copy of the whole journal; the answer stands until the next one."""
    try:
        found = await console(request).daemon.call("audit.verify", wait_ms=_VERIFY_MS)
    except SurehandError as error:
        return await failed(request, error, back=PATH)
    session(request).kept[_KEPT] = {
        "ok": bool(found.get("ok")),
        "reason": str(found.get("reason") or ""),
        "events": found.get("events"),
        "head": str(found.get("head") or ""),
        "seq": found.get("seq"),
        "when": of_ms(now_ms()),
    }
    return see(PATH)


ROUTES: Final[tuple[BaseRoute, ...]] = (Route(PATH, listed), Route(f"{PATH}/verify", verify, methods=["POST"]))
