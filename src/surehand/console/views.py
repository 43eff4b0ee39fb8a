"""From a template and facts to an answer: what every page has in common.

Guarantees: everything that is put into a template is escaped by it, whatever it is; a name that a template does not
know is an error, not an empty place. Every page says the daemon's posture, or that no daemon answers.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from surehand.client.display import visible
from surehand.console.credentials import Credentials
from surehand.console.daemon import Daemon
from surehand.console.door import CSRF_FIELD, Door, Session
from surehand.errors import AuthorityDenied, InvalidRequest, PermissionMissing, SurehandError, TooLarge, Unavailable

_HERE: Final = Path(__file__).parent
_STATUS: Final[tuple[tuple[type[SurehandError], int], ...]] = (
    (TooLarge, 413),
    (InvalidRequest, 400),
    (AuthorityDenied, 403),
    (PermissionMissing, 403),
    (Unavailable, 503),
)


@dataclass(frozen=True, slots=True)
class Console:
    """What the pages share."""

    daemon: Daemon
    door: Door
    credentials: Credentials
    #: Title and path of each page, in the order of the navigation.
    pages: tuple[tuple[str, str], ...]


def console(request: Request) -> Console:
    """Return what the pages share."""
    found: Console = request.app.state.console
    return found


def session(request: Request) -> Session:
    """Return whose request it is; the guard lets nobody else through.

    Raises:
        AuthorityDenied: nobody's.
    """
    found = request.state.session
    if not isinstance(found, Session):
        raise AuthorityDenied("this browser has not come in", gate="console")
    return found


def form(request: Request) -> dict[str, str]:
    """Return the fields that were sent, as the guard read them."""
    found: dict[str, str] = request.state.form
    return found


async def render(request: Request, template: str, *, status: int = 200, **context: Any) -> Response:
    """Return a page with the posture of now.

    Args:
        request: Whose.
        template: Its file in `templates/`, which extends `base.html`.
        status: Of HTTP.
        context: What the template shows.
    """
    posture = await _posture(request)
    return HTMLResponse(page(request, template, {**context, "posture": posture}), status_code=status)


async def _posture(request: Request) -> dict[str, Any] | None:
    if request.state.session is None:
        return None
    try:
        return await console(request).daemon.posture()
    except SurehandError:
        return None


def page(request: Request, template: str, context: Mapping[str, Any]) -> str:
    """Return a page's text."""
    shared, who = console(request), request.state.session
    return _ENVIRONMENT.get_template(template).render(
        {
            "pages": shared.pages,
            "here": request.url.path,
            "csrf_field": CSRF_FIELD,
            "csrf": "" if who is None else who.csrf,
            "inside": who is not None,
            "posture": None,
            "now_ms": now_ms(),
            **context,
        }
    )


async def failed(request: Request, error: SurehandError, *, back: str = "") -> Response:
    """Return the page that says what went wrong, and what helps."""
    status = next((code for kind, code in _STATUS if isinstance(error, kind)), 409)
    return await render(request, "error.html", status=status, error=error, back=back)


def see(path: str) -> Response:
    """Return the answer to a form that has done its work: loading it again does nothing again."""
    return RedirectResponse(path, status_code=303)


def now_ms() -> int:
    """Return the wall clock, as the daemon's times are."""
    return time.time_ns() // 1_000_000


def time_left(until_ms: int) -> str:
    """Return how long it is until then, as minutes and seconds."""
    seconds = max(0, round((until_ms - now_ms()) / 1000))
    return f"{seconds // 60}:{seconds % 60:02}"


def ago(at_ms: int) -> str:
    """Return how long ago that was, in words."""
    minutes = max(0, now_ms() - at_ms) // 60_000
    if minutes < 1:
        return "just now"
    return f"{minutes} min ago" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min ago"


def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(shown=lambda value: visible(str(value)), left=time_left, ago=ago)
    return made


_ENVIRONMENT: Final = _environment()
