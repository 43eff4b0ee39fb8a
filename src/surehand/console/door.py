"""Who may come in: the one-time link, the sessions it begins, and the checks that every request goes through.

Guarantees (spec §11.5):
- A session begins only with a link from the operator's terminal: 256 bits, opened once, within
  `CONSOLE_LINK_MS_MAX`. What the browser keeps is another secret, of which only a digest is kept here.
- A request is looked at no further unless its connection is of this very user, its Host is the page's own name (DNS
  rebinding), its Origin is absent or the page itself, and the browser says that no other site asks (Sec-Fetch-Site)
  and that no frame shows it. A form also carries its session's token, and comes with the Origin.
- Every answer forbids scripts, styles, frames and addresses of anywhere else, and any copy of it.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl

from surehand import limits
from surehand.console.peers import Peer
from surehand.errors import AuthorityDenied, InvalidRequest, PermissionMissing, SurehandError, TooLarge

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

ENTER: Final = "/enter"
STATIC: Final = "/static/"
EVENTS: Final = "/events"
#: Sent with what a page loads anew because something happened, and not because a person did anything.
BY_ITSELF: Final = "x-surehand-by-itself"
CSRF_FIELD: Final = "csrf"
_TOKEN_BYTES: Final = 32
_FORM: Final = "application/x-www-form-urlencoded"
_COOKIE: Final = re.compile(r"[A-Za-z0-9_-]{43}")
_FRAMES: Final = frozenset({"iframe", "frame", "embed", "object", "fencedframe"})
_HOST: Final = "localhost"

#: Sent with every answer, whatever a page says.
HEADERS: Final[dict[str, str]] = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    # The Origin header of a form is withheld by stricter ones.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=(), display-capture=(), usb=(), "
    "publickey-credentials-create=(self), publickey-credentials-get=(self)",
    "cache-control": "no-store",
}


@dataclass(slots=True)
class Session:
    """One browser that came in. `kept` is the pages' own, by page, gone with the session."""

    digest: bytes
    csrf: str
    began_ms: int
    seen_ms: int
    streams: int = 0
    kept: dict[str, Any] = field(default_factory=dict)


class Door:
    """The links that were given out, and who came in."""

    def __init__(self, port: int, now_ms: Callable[[], int]) -> None:
        self.host = f"{_HOST}:{port}"
        self.origin = f"http://{self.host}"
        self.cookie = f"surehand-console-{port}"
        self._now_ms = now_ms
        self._link: tuple[bytes, int] | None = None
        self._sessions: dict[bytes, Session] = {}

    def link(self) -> str:
        """Return a new one-time link; one that was given out before is void."""
        token = secrets.token_urlsafe(_TOKEN_BYTES)
        self._link = (_digest(token), self._now_ms() + limits.CONSOLE_LINK_MS_MAX)
        return f"{self.origin}{ENTER}?token={token}"

    def enter(self, token: str) -> str:
        """Take a link's token and return the secret of the new session.

        Raises:
            AuthorityDenied: it was opened before, ran out, or never was one.
        """
        digest, until_ms = self._link or (b"", 0)
        if not hmac.compare_digest(_digest(token), digest) or self._now_ms() >= until_ms:
            raise AuthorityDenied(
                "this link was opened before, has run out, or is none",
                gate="console",
                fix="press Enter in the terminal where `surehand console` runs: it shows a new one",
            )
        self._link = None
        while len(self._sessions) >= limits.CONSOLE_SESSIONS_MAX:
            oldest = min(self._sessions.values(), key=lambda one: one.seen_ms)
            del self._sessions[oldest.digest]
        secret, now = secrets.token_urlsafe(_TOKEN_BYTES), self._now_ms()
        digest = _digest(secret)
        self._sessions[digest] = Session(digest, secrets.token_urlsafe(_TOKEN_BYTES), now, now)
        return secret

    def session(self, secret: str, *, looks: bool = True) -> Session | None:
        """Return the session of a browser's secret; None where there is none, or none any more.

        Args:
            secret: What the browser keeps.
            looks: Whether a person looks; what a page asks by itself keeps no session alive.
        """
        session = self._sessions.get(_digest(secret)) if _COOKIE.fullmatch(secret) else None
        if session is None:
            return None
        if not self.stands(session):
            self.leave(session)
            return None
        if looks:
            session.seen_ms = self._now_ms()
        return session

    def stands(self, session: Session) -> bool:
        """Say whether a session still is one: a stream that outlives it must end."""
        ends_ms = min(session.began_ms + limits.CONSOLE_SESSION_MS_MAX, session.seen_ms + limits.CONSOLE_IDLE_MS_MAX)
        return session.digest in self._sessions and self._now_ms() < ends_ms

    def leave(self, session: Session) -> None:
        """End a session."""
        self._sessions.pop(session.digest, None)

    def set_cookie(self, secret: str) -> str:
        """Return the header that has the browser keep its secret: for no script, and for no other site's request."""
        seconds = limits.CONSOLE_SESSION_MS_MAX // 1000
        return f"{self.cookie}={secret}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}"

    def unset_cookie(self) -> str:
        """Return the header that has the browser forget its secret."""
        return f"{self.cookie}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0"


class Guard:
    """Lets a request through to the pages once it has passed every check; then `state` holds its session and form."""

    def __init__(
        self,
        app: App,
        door: Door,
        refuse: App,
        *,
        uid: int,
        shown: Callable[[Peer], Awaitable[None]],
    ) -> None:
        """Take the pages, and who tells a person why they are refused.

        Args:
            app: The pages.
            door: Who came in.
            refuse: Answers with the error in `state["refused"]`.
            uid: The user whose browsers are let in.
            shown: Called before a browser is shown anything; the pages wait for it.
        """
        self._app = app
        self._door = door
        self._refuse = refuse
        self._uid = uid
        self._shown = shown

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # no page speaks over a WebSocket
            await send({"type": "websocket.close", "code": 1008})
            return
        # Only what is shown as text is sent with the checks' own headers; nothing of a page comes before them.
        sending = _with_headers(send)
        state: dict[str, Any] = scope.setdefault("state", {})
        state.update(session=None, form={}, refused=None)
        try:
            await self._admit(scope, receive, state)
        except SurehandError as error:
            state["refused"] = error
            await self._refuse(scope, receive, sending)
            return
        await self._app(scope, receive, sending)

    async def _admit(self, scope: Scope, receive: Receive, state: dict[str, Any]) -> None:
        headers = Headers(scope)
        peer = state.get("peer")
        self._check_where_from(scope, headers, peer)
        looks = scope["path"] != EVENTS and not headers.all(BY_ITSELF)
        state["session"] = session = self._door.session(headers.cookie(self._door.cookie), looks=looks)
        if scope["method"] == "POST":
            form = await _read_form(headers, receive)
            if session is None or not _same(form.pop(CSRF_FIELD, ""), session.csrf):
                raise AuthorityDenied(
                    "this form is not of this session",
                    gate="console",
                    fix="go back, load the page again, and send it from there",
                )
            state["form"] = form
        elif session is None and scope["path"] != ENTER and not scope["path"].startswith(STATIC):
            raise AuthorityDenied(
                "this browser has not come in",
                gate="console",
                fix="open the link that the terminal of `surehand console` shows; Enter there shows a new one",
            )
        if session is not None and peer is not None and not scope["path"].startswith(STATIC):
            await self._shown(peer)

    def _check_where_from(self, scope: Scope, headers: Headers, peer: Peer | None) -> None:
        """Refuse what no page of ours in a browser of this user would send."""
        site, is_post = headers.one("sec-fetch-site"), scope["method"] == "POST"
        # The link is opened from a terminal, a file or another program, whose site is no matter: it has the token.
        is_link = scope["path"] == ENTER and headers.one("sec-fetch-mode") in {"navigate", None} and not is_post
        origin = headers.one("origin")
        checks = (
            (peer is not None and peer.uid == self._uid, "only this user's own browsers are served"),
            (headers.one("host") == self._door.host, f"the page is at {self._door.origin}, under no other name"),
            (scope["method"] in {"GET", "HEAD", "POST"}, "the page knows GET, HEAD and POST"),
            (
                (not headers.all("origin") and not is_post) or origin == self._door.origin,
                "requests of another origin are not served",
            ),
            (is_link or site in {None, "same-origin"} or (site == "none" and not is_post), "another site asks"),
            (headers.one("sec-fetch-dest") not in _FRAMES, "the page is shown in no frame"),
            (not headers.all("sec-purpose") and not headers.all("purpose"), "nothing is fetched ahead"),
        )
        for holds, message in checks:
            if not holds:
                raise PermissionMissing(message)


class Headers:
    """A request's headers; one that comes twice counts as wrong, since two readers could take different ones."""

    def __init__(self, scope: Scope) -> None:
        self._pairs = [(name.lower(), value.decode("latin-1")) for name, value in scope["headers"]]

    def all(self, name: str) -> list[str]:
        """Return every value of a header."""
        return [value for key, value in self._pairs if key == name.encode()]

    def one(self, name: str) -> str | None:
        """Return a header's value; None where it is missing, and an impossible one where it comes twice."""
        found = self.all(name)
        return found[0] if len(found) == 1 else None if not found else "\x00"

    def cookie(self, name: str) -> str:
        """Return a cookie; none where it comes twice: another port of this machine may have set one of them."""
        pairs = [part.strip().partition("=") for text in self.all("cookie") for part in text.split(";")]
        found = [value for key, _, value in pairs if key == name]
        return found[0] if len(found) == 1 else ""


async def _read_form(headers: Headers, receive: Receive) -> dict[str, str]:
    """Return a form's fields.

    Raises:
        TooLarge, InvalidRequest: it is more than a form of ours, or is not one.
    """
    if (headers.one("content-type") or "").partition(";")[0].strip().lower() != _FORM:
        raise InvalidRequest("a form is sent as one", fix=f"Content-Type: {_FORM}")
    body, more = b"", True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise InvalidRequest("the form ended before its end")
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > limits.CONSOLE_BODY_BYTES_MAX:
            raise TooLarge(f"a form has at most {limits.CONSOLE_BODY_BYTES_MAX} bytes")
    try:
        pairs = parse_qsl(
            body.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=bool(body),
            errors="strict",
            max_num_fields=limits.CONSOLE_FIELDS_MAX,
        )
    except ValueError as error:
        raise InvalidRequest("this is no form of ours") from error
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise InvalidRequest("a field comes twice")
    # Browsers send a line's end as two characters.
    return {name: value.replace("\r\n", "\n") for name, value in fields.items()}


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            kept = [
                (name, value) for name, value in message["headers"] if name.decode("latin-1").lower() not in HEADERS
            ]
            ours = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
            message = {**message, "headers": [*kept, *ours]}
        await send(message)

    return sending


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def _same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(_digest(given), _digest(wanted))
