"""The page of credentials: which authenticators answer, how one is enrolled with a code, and taken away.

The page asks the authenticator with a script; all that counts is checked by the daemon.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from surehand import limits
from surehand.console.authenticators import KIND, Authenticators
from surehand.console.credentials import CREDENTIAL_FIELD
from surehand.console.pages.approvals import word
from surehand.console.pages.times import of_ms
from surehand.console.views import console, failed, form, render, see
from surehand.errors import AuthorityDenied, Conflict, InvalidRequest, SurehandError
from surehand.model.approval import PendingApproval
from surehand.model.record import convert

TITLE: Final = "Credentials"
PATH: Final = "/credentials"

_SAID: Final = {
    "enrolled": {"tone": "good", "text": "The authenticator is enrolled; it can answer from now on."},
    "removed": {"tone": "good", "text": "The authenticator is taken away; no answer of it counts any more."},
}


async def listed(request: Request) -> Response:
    """Show who may answer, and with what."""
    try:
        found: dict[str, Any] | None = await console(request).daemon.call("keys")
    except SurehandError:
        found = None
    return await render(
        request,
        "credentials.html",
        keys=None if found is None else found["approvers"],
        enrolled=[] if found is None else [_row(one) for one in found["credentials"]],
        label_max=limits.CREDENTIAL_LABEL_BYTES_MAX // 4,
        flash=_SAID.get(request.query_params.get("said", "")),
    )


def _row(one: dict[str, Any]) -> dict[str, Any]:
    return {**one, "since": of_ms(one["enrolled_at_ms"])}


async def begin(request: Request) -> Response:
    """Say what an authenticator is asked for, to whoever has the code."""
    return await _told(console(request).daemon.call("credentials.begin", {"code": form(request).get("code", "")}))


async def enrol(request: Request) -> Response:
    """Enrol what the authenticator made."""
    said = form(request)
    names = ("code", "label", "authenticator_data", "client_data")
    registration = {name: said.get(name, "") for name in names}
    return await _done(request, "credentials.enrol", {"registration": registration}, "enrolled")


async def remove(request: Request) -> Response:
    """Take a credential away."""
    return await _done(request, "credentials.remove", {"key_id": form(request).get("key_id", "")}, "removed")


async def _done(request: Request, method: str, params: dict[str, Any], said: str) -> Response:
    try:
        await console(request).daemon.call(method, params)
    except SurehandError as error:
        return await failed(request, error, back=PATH)
    return see(f"{PATH}?said={said}")


async def challenge(request: Request) -> Response:
    """Form an answer as the form of a question says it, and return what the authenticator is asked to sign."""
    return await _told(_challenge(request))


async def _challenge(request: Request) -> dict[str, Any]:
    said, shared = form(request), console(request)
    kind, _, value = said.get(CREDENTIAL_FIELD, "").partition(":")
    authenticators = shared.credentials.kind(kind)
    if kind != KIND or not isinstance(authenticators, Authenticators):
        raise InvalidRequest("that is no authenticator")
    found = await shared.daemon.call("approvals.show", {"approval_id": said.get("approval_id", "")})
    if found["pending"] is None:
        raise Conflict("this question is over")
    return await authenticators.begin(convert(PendingApproval, found["pending"]), word(said), value)


async def _told(work: Awaitable[dict[str, Any]]) -> Response:
    """Return to a script what it asked for, or why not."""
    try:
        return JSONResponse(await work)
    except SurehandError as error:
        status = 403 if isinstance(error, AuthorityDenied) else 409
        return JSONResponse({"message": error.message, "fix": error.fix or ""}, status_code=status)


_POSTS: Final[tuple[tuple[str, Callable[[Request], Awaitable[Response]]], ...]] = (
    ("begin", begin),
    ("enrol", enrol),
    ("remove", remove),
    ("challenge", challenge),
)
ROUTES: Final[tuple[BaseRoute, ...]] = (
    Route(PATH, listed),
    *(Route(f"{PATH}/{name}", function, methods=["POST"]) for name, function in _POSTS),
)
