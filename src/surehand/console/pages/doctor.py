"""The doctor: what is wrong and what helps, then what is well."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from surehand.console.views import console, render
from surehand.errors import SurehandError

TITLE: Final = "Doctor"
PATH: Final = "/doctor"


async def listed(request: Request) -> Response:
    """Show what the daemon finds."""
    facts = None
    try:
        facts = (await console(request).daemon.call("health"))["facts"]
    except SurehandError:
        facts = None
    return await render(
        request,
        "doctor.html",
        facts=facts,
        wrong=[one for one in facts or () if not one["ok"]],
        well=[one for one in facts or () if one["ok"] and one["detail"]],
        there=[one["name"] for one in facts or () if one["ok"] and not one["detail"]],
    )


ROUTES: Final[tuple[BaseRoute, ...]] = (Route(PATH, listed),)
