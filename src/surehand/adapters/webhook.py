"""Tells an operator's web server of questions to people: one signed POST each (spec §6.4).

Guarantees: only to the address that the operator configured, over TLS unless that is this machine; no redirect and no
proxy is followed; nothing of the answer is read but its status. The body holds ids, hashes and what kind of thing is
asked, and of the screen and an agent's words nothing unless `content` is set. The signature is Ed25519 with a key of
the daemon over the domain `surehand/webhook/v1`, a zero byte, the time, a full stop, and the body: neither is passed
off as another.
"""

from __future__ import annotations

import asyncio
import http.client
import ssl
import time
from collections.abc import Callable
from typing import Final, Protocol
from urllib.parse import SplitResult, urlsplit

from surehand import canonical, limits
from surehand.errors import InvalidRequest, Unavailable
from surehand.model.approval import Notice
from surehand.model.record import to_value

_DOMAIN: Final = b"surehand/webhook/v1\x00"
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


class _Signer(Protocol):
    """The daemon's key for this."""

    @property
    def key_id(self) -> str:
        """Its name."""

    def sign(self, message: bytes) -> str:
        """Return a signature, 128 hex digits."""


def check_address(address: str) -> SplitResult:
    """Return the parts of an address that notices may go to.

    Raises:
        InvalidRequest: not https, unless it is this machine; or with a user or a fragment in it.
    """
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise InvalidRequest("webhook: not an address", fix="write https://host/path") from error
    secure = parts.scheme == "https" or (parts.scheme == "http" and host in _LOOPBACK)
    if not secure or not host or parts.username is not None or parts.fragment:
        raise InvalidRequest(
            "webhook: notices go over https, or to this very machine", fix="write https://host/path, without a user"
        )
    return parts


class Webhook:
    """Implements `ports.Herald`."""

    name = "webhook"

    def __init__(
        self,
        address: str,
        signer: _Signer,
        *,
        content: bool = False,
        wall_s: Callable[[], float] = time.time,
        timeout_s: float = limits.NOTICE_MS_MAX / 1000,
    ) -> None:
        self._parts = check_address(address)
        self._signer = signer
        self._content = content
        self._wall_s = wall_s
        self._timeout_s = timeout_s

    async def tell(self, notice: Notice) -> None:
        """Tell; see `ports.Herald.tell`."""
        value = to_value(notice)
        if not self._content:
            value.pop("presentation", None)
            value.pop("agent_says", None)
        await asyncio.to_thread(self._post, canonical.encode(value))

    async def close(self) -> None:
        """Have nothing to let go of: each notice is a connection of its own."""

    def _post(self, body: bytes) -> None:
        at = str(int(self._wall_s()))
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "surehand",
            "Surehand-Timestamp": at,
            "Surehand-Key": self._signer.key_id,
            "Surehand-Signature": self._signer.sign(_DOMAIN + at.encode() + b"." + body),
        }
        path = self._parts.path or "/"
        query = f"?{self._parts.query}" if self._parts.query else ""
        connection = self._connection()
        try:
            connection.request("POST", path + query, body=body, headers=headers)
            status = connection.getresponse().status
        except (OSError, http.client.HTTPException) as error:
            raise Unavailable(f"the web server does not answer: {type(error).__name__}") from error
        finally:
            connection.close()
        if not 200 <= status < 300:
            raise Unavailable(f"the web server answers {status}")

    def _connection(self) -> http.client.HTTPConnection:
        host, port = self._parts.hostname or "", self._parts.port
        if self._parts.scheme == "https":
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(host, port, timeout=self._timeout_s, context=context)
        return http.client.HTTPConnection(host, port, timeout=self._timeout_s)
