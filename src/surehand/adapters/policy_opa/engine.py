"""Asks an OPA server: `POST /v1/data/PATH` with the question as `input` (spec §6.1).

Guarantees: a question is answered within its time or not at all, however slowly the server sends; both questions of
one decision are put at once, each on a connection of its own; plain TCP goes to loopback only, and everything else
needs TLS with roots that the operator named.
"""

from __future__ import annotations

import asyncio
import hashlib
import ipaddress
import re
import ssl
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final
from urllib.parse import urlsplit

from surehand import canonical, limits
from surehand.adapters.policy_opa.wire import Place, Wire
from surehand.core.policy.engine import EngineFailure, encode_question
from surehand.errors import InvalidRequest, SurehandError

#: Connections kept; one decision asks twice at most, and decisions wait for one another.
_WIRES: Final = 2
_PATH: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:/[A-Za-z_][A-Za-z0-9_]*)*")
_HEALTH: Final = "/health?bundles=true&plugins=true"
#: What OPA adds to an answer; anything else beside `result` means that this is no OPA.
_BESIDE: Final = frozenset({"result", "decision_id", "metrics", "provenance", "explanation", "warning"})


class OpaEngine:
    """Implements `ports.PolicyEngine`."""

    name = "opa"

    def __init__(self, place: Place, path: str, timeout_ms: int, revision: str) -> None:
        self.revision = revision
        self._path = f"/v1/data/{path}"
        self._timeout_s = timeout_ms / 1000
        self._wires = [Wire(place, self._timeout_s) for _ in range(_WIRES)]
        self._threads = ThreadPoolExecutor(max_workers=_WIRES, thread_name_prefix="opa")
        self._free: asyncio.Queue[Wire] | None = None

    async def ask(self, questions: Sequence[dict[str, Any]]) -> list[Any]:
        """Return one answer for each question; both are under way at once."""
        bodies = [b'{"input":' + encode_question(question) + b"}" for question in questions]
        tasks = [asyncio.ensure_future(self._exchange("POST", self._path, body)) for body in bodies]
        try:
            return [_result(data) for data in await asyncio.gather(*tasks)]
        finally:
            for task in tasks:
                task.cancel()

    async def check(self) -> str:
        """Ask the server for its health, bundles and plugins included."""
        await self._exchange("GET", _HEALTH, None)
        return f"OPA answers, {self._path}"

    async def close(self) -> None:
        """Close the connections."""
        for wire in self._wires:
            wire.abort()
        await asyncio.to_thread(self._threads.shutdown, cancel_futures=True)
        for wire in self._wires:
            wire.close()

    async def _exchange(self, method: str, path: str, body: bytes | None) -> bytes:
        """Run one exchange in a thread, and cut it off when its time is over."""
        loop = asyncio.get_running_loop()
        if self._free is None:
            self._free = asyncio.Queue()
            for one in self._wires:
                self._free.put_nowait(one)
        free = self._free
        try:
            async with asyncio.timeout(self._timeout_s):
                wire = await free.get()
        except TimeoutError as error:
            raise EngineFailure("timeout", "other questions are still unanswered") from error
        work = loop.run_in_executor(self._threads, wire.exchange, method, path, body)

        def done(ended: asyncio.Future[bytes]) -> None:
            # The wire is free once its thread is done with it, however that ends.
            if not ended.cancelled():
                ended.exception()
            free.put_nowait(wire)

        work.add_done_callback(done)
        try:
            async with asyncio.timeout(self._timeout_s):
                return await asyncio.shield(work)
        except TimeoutError as error:
            wire.abort()
            raise EngineFailure("timeout") from error
        except asyncio.CancelledError:
            wire.abort()
            raise


def _result(data: bytes) -> Any:
    """Return `result`; absent means undefined."""
    try:
        value = canonical.parse(data, bytes_max=limits.POLICY_ANSWER_BYTES_MAX)
    except SurehandError as error:
        raise EngineFailure("malformed", error.message) from error
    if not isinstance(value, dict) or not value.keys() <= _BESIDE:
        raise EngineFailure("malformed", "the answer is not that of an OPA server")
    return value.get("result")


def open_opa(
    *,
    url: str | None,
    unix_socket: str | None,
    path: str,
    timeout_ms: int,
    ca: str | None = None,
    cert: str | None = None,
    key: str | None = None,
) -> OpaEngine:
    """Return an engine for a server that need not answer yet.

    Args:
        url: `https://host:port`, or `http://127.0.0.1:port`.
        unix_socket: The server's socket, instead of a URL.
        path: Of the decision below `/v1/data/`, such as `surehand/decision`.
        timeout_ms: For one question, from asking to the last byte.
        ca: File with the roots that the server's certificate must go back to.
        cert: File with our certificate.
        key: File with its key.

    Raises:
        InvalidRequest: an address or a file that cannot be used, and what to write instead.
    """
    if _PATH.fullmatch(path) is None:
        raise InvalidRequest(f"{path[:64]!r} is no path of a decision", fix="write it like surehand/decision")
    if (url is None) == (unix_socket is None):
        raise InvalidRequest("name the OPA server by url or by unix_socket, not by both or none")
    place = Place(unix_socket=unix_socket) if url is None else _place(url, ca, cert, key)
    where = unix_socket or url or ""
    revision = hashlib.sha256(f"{where}\0{path}".encode()).hexdigest()
    return OpaEngine(place, path, timeout_ms, revision)


def _place(url: str, ca: str | None, cert: str | None, key: str | None) -> Place:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.path not in ("", "/"):
        raise InvalidRequest(
            f"{url[:128]!r} is no server's address", fix="write https://host:port and nothing behind it"
        )
    port = parts.port or (443 if parts.scheme == "https" else 80)
    if parts.scheme == "http":
        if not _is_loopback(parts.hostname):
            raise InvalidRequest(
                "questions to a policy server name applications and windows, and go in the clear to loopback only",
                fix="use https:// with ca, cert and key, or a Unix socket",
            )
        return Place(host=parts.hostname, port=port)
    if ca is None:
        raise InvalidRequest("a policy server over TLS needs ca", fix="name the file with the roots you trust for it")
    if (cert is None) != (key is None):
        raise InvalidRequest("cert and key go together")
    if cert is None and not _is_loopback(parts.hostname):
        raise InvalidRequest("a policy server elsewhere must know who asks", fix="name cert and key")
    return Place(host=parts.hostname, port=port, tls=_context(ca, cert, key))


def _context(ca: str, cert: str | None, key: str | None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    try:
        context.load_verify_locations(ca)
        if cert is not None and key is not None:
            context.load_cert_chain(cert, key)
    except (OSError, ssl.SSLError) as error:
        raise InvalidRequest(f"a certificate or key cannot be used: {error}", fix="name PEM files") from error
    return context


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
