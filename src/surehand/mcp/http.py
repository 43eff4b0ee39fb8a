"""`surehand mcp --http`: the same server over streamable HTTP, for clients that do not start processes.

Guarantees:
- Nothing is looked at before Host, Origin and the bearer token are right, a body least of all. A page in a browser
  whose name was pointed at this machine sends the wrong Host, and another page's script the wrong Origin.
- The token is compared in constant time. It stands in a file that only its owner may read, never in an argument, in
  the environment or in the log.
- A connection that asks for nothing is closed after a while, and never keeps out one that asks (`connections`).
- Every MCP session is a session of the daemon of its own, ended with it or when it was not used for ten minutes.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import ipaddress
import json
import os
import secrets
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, MutableMapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import uvicorn
from mcp.server.request_state import AESGCMRequestStateCodec
from mcp.server.transport_security import TransportSecuritySettings

from surehand import limits
from surehand.core.wire.places import places
from surehand.errors import InvalidRequest, PermissionMissing, Unavailable
from surehand.mcp.connections import Connection
from surehand.mcp.server import NAME, build
from surehand.mcp.sessions import Many
from surehand.signing.private_files import create_private, private_directory, read_private
from surehand.signing.runtime_folder import with_runtime_folder
from surehand.tools.catalog import toolset
from surehand.tools.context import Context

PATH: Final = "/mcp"
LOOPBACK: Final = "127.0.0.1"

_EVERYWHERE: Final = ("0.0.0.0", "0", "::", "*")  # noqa: S104 - so as to refuse them
_TOKEN_BYTES: Final = 32
_TOKEN_CHARS_MIN: Final = 32  # of a token that was given: 128 bits in hexadecimal
_TOKEN_FILE_BYTES_MAX: Final = 4096

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


def where(said: str) -> tuple[str, int]:
    """Return the host and port of `[HOST:]PORT`; port 0 is picked.

    Raises:
        InvalidRequest: no port, or a host that stands for every address, whose Host headers could not be checked.
    """
    host, _, port = said.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") or LOOPBACK
    if not port.isascii() or not port.isdigit() or int(port) > limits.COORDINATE_MAX:
        raise InvalidRequest(
            f"--http takes [HOST:]PORT, not {said!r}", fix="--http 8765, or --http 0 to have one picked"
        )
    if host in _EVERYWHERE:
        raise InvalidRequest("name the address to listen on, not all of them", fix=f"--http {LOOPBACK}:{port}")
    return host, int(port)


class Guard:
    """Lets in who knows the token and came by the right name; tells the app's transport sessions' ends."""

    def __init__(self, app: App, token: str, hosts: frozenset[str], ended: Callable[[str], Awaitable[None]]) -> None:
        self._app = app
        self._digest = hashlib.sha256(token.encode()).digest()
        self._hosts = hosts
        self._origins = frozenset(f"http://{host}" for host in hosts)
        self._ended = ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection's request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        headers = _Headers(scope)
        if headers.one("host") not in self._hosts:
            await _answer(send, 421, "the Host header does not name this server")
        elif headers.all("origin") and headers.one("origin") not in self._origins:
            await _answer(send, 403, "requests of this origin are not served")
        elif not self._knows(headers.one("authorization")):
            await _answer(send, 401, "a bearer token is needed", (b"www-authenticate", b'Bearer realm="surehand"'))
        elif scope["path"] != PATH:
            await _answer(send, 404, f"the server is at {PATH}")
        elif scope["method"] == "DELETE":
            await self._delete(scope, receive, send, headers.one("mcp-session-id"))
        else:
            await self._app(scope, receive, send)

    def _knows(self, said: str | None) -> bool:
        scheme, _, given = (said or "").partition(" ")
        digest = hashlib.sha256(given.strip().encode("utf-8", "surrogatepass")).digest()
        return hmac.compare_digest(digest, self._digest) and scheme.lower() == "bearer"

    async def _delete(self, scope: Scope, receive: Receive, send: Send, session: str | None) -> None:
        status = 0

        async def watching(message: MutableMapping[str, Any]) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        await self._app(scope, receive, watching)
        if session is not None and status < 300:
            await self._ended(session)


class _Headers:
    """A request's headers; one that comes twice counts as absent, since two readers could take different ones."""

    def __init__(self, scope: Scope) -> None:
        self._pairs = [(name.lower(), value) for name, value in scope["headers"]]

    def all(self, name: str) -> list[str]:
        return [value.decode("latin-1") for key, value in self._pairs if key == name.encode()]

    def one(self, name: str) -> str | None:
        found = self.all(name)
        return found[0] if len(found) == 1 else None


async def _answer(send: Send, status: int, message: str, *headers: tuple[bytes, bytes]) -> None:
    body = json.dumps({"error": message}).encode()
    kept = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), *headers]
    await send({"type": "http.response.start", "status": status, "headers": kept})
    await send({"type": "http.response.body", "body": body})


class _Uvicorn(uvicorn.Server):
    """A server that ends with its signals instead of dying of them."""

    def end_with_signals(self) -> None:
        """Let signals end the server in order, from now on."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, self.handle_exit, number, None)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals as they are: they were taken before anybody was told the address."""
        yield


@contextlib.contextmanager
def token_file(given: Path | None) -> Iterator[tuple[str, Path]]:
    """Return the token and the file it stands in; one made here is gone afterwards.

    Raises:
        InvalidRequest, PermissionMissing, Unavailable: the given file is no good for a secret.
    """
    if given is not None:
        token = read_private(given, _TOKEN_FILE_BYTES_MAX).decode("utf-8", "replace").strip()
        if len(token) < _TOKEN_CHARS_MIN or not token.isascii() or not token.isprintable() or " " in token:
            raise InvalidRequest(
                f"{given} holds no token: at least {_TOKEN_CHARS_MIN} printable characters in one line",
                fix=f"leave --token-file out, or: (umask 077; openssl rand -hex 32 > {given})",
            )
        yield token, given
        return
    folder = private_directory(Path(places(with_runtime_folder(os.environ, os.getuid()), os.getuid()).runtime_dir))
    path = folder / f"mcp-{os.getpid()}.token"
    path.unlink(missing_ok=True)  # of an earlier process with this number
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    if not create_private(path, token.encode() + b"\n"):
        raise PermissionMissing(f"{path} appeared meanwhile", fix="look at who made it")
    try:
        yield token, path
    finally:
        path.unlink(missing_ok=True)


def listening(host: str, port: int) -> socket.socket:
    """Return a listening socket.

    Raises:
        Unavailable: the address cannot be had.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=limits.MCP_SESSIONS_MAX)
    except OSError as error:
        raise Unavailable(f"cannot listen on {host}:{port}: {error.strerror or error}", fix="--http 0") from error


@contextlib.asynccontextmanager
async def _reaped(sessions: Many) -> AsyncIterator[None]:
    reaping = asyncio.create_task(sessions.reaping())
    try:
        yield
    finally:
        reaping.cancel()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limits.MCP_CLOSE_MS / 1000):
                await sessions.close()


async def serve(said: str, *, desktop: str | None, tools: str, given_token: Path | None) -> None:
    """Serve until the process is told to end."""
    host, port = where(said)
    wanted = toolset(tools)
    sessions = Many(
        lambda: Context(desktop=desktop, client="mcp-http"), AESGCMRequestStateCodec([secrets.token_bytes(32)])
    )
    server = build(sessions, wanted, version(NAME))
    app: Any = server.streamable_http_app(
        streamable_http_path=PATH,
        max_request_body_size=limits.MCP_BODY_BYTES_MAX,
        session_idle_timeout=limits.MCP_IDLE_MS_MAX / 1000,
        max_sessions=limits.MCP_SESSIONS_MAX,
        # The guard has checked both, and more strictly.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    with token_file(given_token) as (token, path), listening(host, port) as listener:
        address = listener.getsockname()
        names = _names(host, address)
        config = uvicorn.Config(
            Guard(app, token, names, sessions.end_header),
            log_config=None,
            access_log=False,
            ws="none",
            lifespan="on",
            http=Connection,
            timeout_keep_alive=limits.MCP_HEAD_MS_MAX // 1000,
            proxy_headers=False,
            server_header=False,
            # Connections cost memory before anybody has shown a token; each session may have a few.
            limit_concurrency=4 * limits.MCP_SESSIONS_MAX,
            timeout_graceful_shutdown=max(1, limits.MCP_DRAIN_MS // 1000),
        )
        serving = _Uvicorn(config)
        serving.end_with_signals()
        shown = f"[{host}]" if ":" in host else host
        sys.stderr.write(f"surehand: MCP at http://{shown}:{address[1]}{PATH}\nsurehand: bearer token in {path}\n")
        if not ipaddress.ip_address(address[0]).is_loopback:
            sys.stderr.write("surehand: others can read this traffic; put it behind TLS or a tunnel\n")
        sys.stderr.flush()
        async with _reaped(sessions):
            await serving.serve(sockets=[listener])


def _names(host: str, address: tuple[Any, ...]) -> frozenset[str]:
    """Return what a Host header may say."""
    names = {host, str(address[0])}
    if ipaddress.ip_address(address[0]).is_loopback:
        names.add("localhost")
    return frozenset(f"{f'[{name}]' if ':' in name else name}:{address[1]}" for name in names)


def run(said: str, *, desktop: str | None = None, tools: str = "all", given_token: Path | None = None) -> None:
    """Serve in this process."""
    asyncio.run(serve(said, desktop=desktop, tools=tools, given_token=given_token))
    # A thread that still waits for a daemon to start must not keep a process that nobody talks to.
    sys.stderr.flush()
    os._exit(0)
