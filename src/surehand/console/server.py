"""The console's process: its pages behind the guard, on loopback, beside one connection to the daemon.

Guarantees: it listens on this machine's own addresses only, and on both kinds of them, so that no other program takes
what a browser sends to `localhost`; it is gone with its terminal; what it holds of a person is gone with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any, Final

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

from surehand import limits
from surehand.console.authenticators import Authenticators
from surehand.console.connections import Connection
from surehand.console.credentials import Credentials, Keys
from surehand.console.daemon import Daemon
from surehand.console.door import ENTER, EVENTS, Door, Guard
from surehand.console.events import events
from surehand.console.pages.listed import PAGES
from surehand.console.peers import Peer, process_of
from surehand.console.views import Console, failed, page, see, session
from surehand.errors import InternalError, InvalidRequest, SurehandError, Unavailable

_STATIC: Final = Path(__file__).parent / "static"
_FOUR: Final = "127.0.0.1"
_SIX: Final = "::1"
_PORT_TRIES: Final = 16


def build(shared: Console, *, uid: int, opened: Callable[[int | None], None] = lambda _pid: None) -> Guard:
    """Return the guarded pages.

    Args:
        shared: What they share.
        uid: The user whose browsers are let in.
        opened: Called when a link was opened, with the browser's process where it is known.
    """

    async def enter(request: Request) -> Response:
        if request.method != "GET":
            return Response(status_code=405, headers={"allow": "GET"})
        secret = shared.door.enter(request.query_params.get("token", ""))
        pid = await _show(shared.daemon, request.state.peer)
        opened(pid)
        # Not a redirect: a browser that came here from elsewhere would not bring its new cookie along one.
        answer = HTMLResponse(page(request, "enter.html", {"next": PAGES[0].PATH}))
        answer.headers["set-cookie"] = shared.door.set_cookie(secret)
        return answer

    async def leave(request: Request) -> Response:
        shared.door.leave(session(request))
        request.state.session = None
        answer = HTMLResponse(page(request, "left.html", {}))
        answer.headers["set-cookie"] = shared.door.unset_cookie()
        return answer

    async def home(_: Request) -> Response:
        return see(PAGES[0].PATH)

    async def error_page(request: Request, error: Exception) -> Response:
        if not isinstance(error, SurehandError):
            raise error
        return await failed(request, error)

    app = Starlette(
        routes=[
            Route("/", home),
            Route(ENTER, enter),
            Route("/leave", leave, methods=["POST"]),
            Route(EVENTS, events),
            *(route for one in PAGES for route in one.ROUTES),
            Mount("/static", StaticFiles(directory=_STATIC)),
        ],
        exception_handlers={SurehandError: error_page, 404: _not_found, Exception: _defect},
    )
    app.state.console = shared

    async def refuse(scope: Scope, receive: Receive, send: Send) -> None:
        scope["app"] = app
        request = Request(scope, receive)
        answer = await failed(request, request.state.refused)
        await answer(scope, receive, send)

    async def shown(peer: Peer) -> None:
        await _show(shared.daemon, peer)

    return Guard(app, shared.door, refuse, uid=uid, shown=shown)


async def _defect(request: Request, error: Exception) -> Response:
    """Say that a page failed, and nothing of how; the library tells the terminal."""
    told = InternalError(f"this page failed ({type(error).__name__})", fix="the terminal says where", retry_safe=False)
    answer = await failed(request, told)
    answer.status_code = 500
    return answer


async def _not_found(request: Request, _: Exception) -> Response:
    answer = await failed(request, InvalidRequest("there is no such page"))
    answer.status_code = 404
    return answer


async def _show(daemon: Daemon, peer: Peer) -> int | None:
    """Have the daemon keep agents away from a browser before it is shown anything; return its process."""
    if (pid := _known.get(peer)) is None:
        pid = await asyncio.to_thread(process_of, peer, daemon.browsers)
        if len(_known) >= limits.CONSOLE_CONNECTIONS_MAX:
            _known.clear()
        if pid is not None:
            _known[peer] = pid
    if pid is not None:
        await daemon.shown_by(pid)
    return pid


#: The process of each connection that asked lately.
_known: dict[Peer, int] = {}


def listening(port: int | None) -> list[socket.socket]:
    """Return sockets that listen on this machine's own addresses, all on one port.

    Raises:
        Unavailable: the port is taken on one of them.
    """
    for _ in range(_PORT_TRIES):
        four = _listen(socket.AF_INET, _FOUR, port or 0)
        chosen = four.getsockname()[1]
        try:
            return [four, _listen(socket.AF_INET6, _SIX, chosen)]
        except OSError as error:
            if not _has_six():
                return [four]
            four.close()
            if port is not None:
                raise _taken(port, error) from error
    raise Unavailable("no port is free on both of this machine's own addresses", fix="name one with --port")


def _listen(family: socket.AddressFamily, host: str, port: int) -> socket.socket:
    try:
        return socket.create_server((host, port), family=family, backlog=limits.CONSOLE_CONNECTIONS_MAX)
    except OSError as error:
        if family == socket.AF_INET:
            raise _taken(port, error) from error
        raise


def _has_six() -> bool:
    try:
        socket.create_server((_SIX, 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


def _taken(port: int, error: OSError) -> Unavailable:
    return Unavailable(f"cannot listen on port {port}: {error.strerror or error}", fix="leave --port out")


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


async def serve(
    port: int | None,
    keys: Path,
    approver: str | None,
    *,
    ready: Callable[[Door], contextlib.AbstractAsyncContextManager[None]],
    opened: Callable[[int | None], None] = lambda _pid: None,
) -> None:
    """Serve until the process is told to end.

    Args:
        port: Which; None has one picked.
        keys: Folder of the approvers' keys.
        approver: Answer as nobody else.
        ready: Entered once the page can be opened: tells the person the link.
        opened: Called when a link was opened.

    Raises:
        Unavailable: the port cannot be had.
    """
    listeners = listening(port)
    chosen = listeners[0].getsockname()[1]
    daemon, door = Daemon(chosen), Door(chosen, lambda: time.monotonic_ns() // 1_000_000)
    shared = Console(
        daemon=daemon,
        door=door,
        credentials=Credentials([Keys(keys, approver), Authenticators(daemon, approver)]),
        pages=tuple((one.TITLE, one.PATH) for one in PAGES),
    )
    config = uvicorn.Config(
        build(shared, uid=os.getuid(), opened=opened),
        log_config=None,
        access_log=False,
        ws="none",
        lifespan="off",
        http=Connection,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        h11_max_incomplete_event_size=limits.CONSOLE_HEAD_BYTES_MAX,
        limit_concurrency=limits.CONSOLE_CONNECTIONS_MAX,
        timeout_graceful_shutdown=1,
    )
    server = _Uvicorn(config)
    server.end_with_signals()
    try:
        async with _listened_to(daemon), ready(door):
            await server.serve(sockets=listeners)
    finally:
        for one in listeners:
            one.close()


@contextlib.asynccontextmanager
async def _listened_to(daemon: Daemon) -> AsyncIterator[None]:
    running = asyncio.create_task(daemon.run())
    try:
        yield
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
        await daemon.close()


def run(port: int | None, keys: Path, approver: str | None, **facts: Any) -> None:
    """Serve in this process."""
    asyncio.run(serve(port, keys, approver, **facts))
