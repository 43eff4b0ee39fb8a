"""Whether an application has taken in what it was sent.

X tells nobody when a client reads its events. Most toolkits answer `_NET_WM_PING` in the order of their events, so
an answer proves that everything sent before was taken in. For the others (xterm, plain Xlib programs) the process is
watched: once the server has sent everything and all its threads sleep without having run in between, there is
nothing left that it has not read. Neither proves an effect.
"""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path
from typing import Any, Final

import xcffib
import xcffib.xproto

from surehand.adapters.x11.connection import XServer, XThread
from surehand.adapters.x11.windows import WindowInfo

_SLEEPING: Final = "S"
_PAUSE_S: Final = 0.001
_TOKEN_MAX: Final = 0x7FFF_FFFF


class Acknowledgements:
    """Asks windows whether they are done. `handle` runs on the X thread and must see every event; the rest on the loop.

    Args:
        thread: The connection that input is sent on: questions follow input in order.
    """

    def __init__(self, thread: XThread) -> None:
        self._thread = thread
        self._tokens = itertools.count(1)
        self._waiting: dict[int, tuple[WindowInfo, asyncio.Future[None]]] = {}
        self._server: XServer | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self, server: XServer, loop: asyncio.AbstractEventLoop) -> None:
        """Remember whom to ask and whom to tell (on the X thread, before the first event)."""
        self._server, self._loop = server, loop
        server.atoms(("WM_PROTOCOLS", "_NET_WM_PING"))

    def handle(self, event: Any) -> None:
        """Look for answers, and for windows that vanish instead of answering."""
        server = self._server
        if server is None:
            return
        if isinstance(event, xcffib.xproto.ClientMessageEvent):
            if event.type == server.atom("WM_PROTOCOLS") and event.format == 32:
                kind, token, *_ = event.data.data32
                if kind == server.atom("_NET_WM_PING") and token in self._waiting:
                    self._answered(token)
        elif isinstance(event, xcffib.xproto.UnmapNotifyEvent | xcffib.xproto.DestroyNotifyEvent):
            for token, (window, _) in list(self._waiting.items()):
                if event.window in {window.id, window.frame}:
                    self._answered(token)

    async def wait(self, window: WindowInfo, timeout_ms: int) -> bool:
        """Return whether the window's application took in everything sent so far, or the window vanished."""
        if window.answers_ping:
            return await self._ping(window, timeout_ms)
        return False if window.pid is None else await self._sleeps(window.pid, timeout_ms)

    async def _ping(self, window: WindowInfo, timeout_ms: int) -> bool:
        token = next(self._tokens) & _TOKEN_MAX
        answer = asyncio.get_running_loop().create_future()
        self._waiting[token] = (window, answer)
        try:
            await self._thread.run(lambda server: _send_ping(server, window.id, token))
            await asyncio.wait([answer], timeout=timeout_ms / 1000)
            return answer.done()
        finally:
            self._waiting.pop(token, None)

    async def _sleeps(self, pid: int, timeout_ms: int) -> bool:
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout_ms / 1000
        before: object = None
        while loop.time() < until:
            # Two round trips: the first makes the server handle the input, the second comes after it was written out.
            await self._thread.run(XServer.sync)
            await self._thread.run(XServer.sync)
            now = _threads(pid)
            if now == ():
                return True  # the process has ended
            if now is not None and now == before:
                return True
            before = now
            await asyncio.sleep(_PAUSE_S)
        return False

    def _answered(self, token: int) -> None:
        _, answer = self._waiting[token]
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(_finish, answer)


def _finish(answer: asyncio.Future[None]) -> None:
    if not answer.done():
        answer.set_result(None)


def _send_ping(server: XServer, window: int, token: int) -> None:
    data = (server.atom("_NET_WM_PING"), token, window)
    server.send_message(window, window, "WM_PROTOCOLS", data, xcffib.xproto.EventMask.NoEvent)


def _threads(pid: int) -> tuple[tuple[str, str], ...] | None:
    """Return how often each thread has run, None while one runs, empty when the process is gone."""
    seen = []
    try:
        tasks = sorted(Path(f"/proc/{pid}/task").iterdir())
        for task in tasks:
            fields = dict(line.split(":\t", 1) for line in (task / "status").read_text().splitlines() if ":\t" in line)
            if not fields["State"].startswith(_SLEEPING):
                return None
            seen.append((task.name, fields["voluntary_ctxt_switches"] + "/" + fields["nonvoluntary_ctxt_switches"]))
    except (FileNotFoundError, ProcessLookupError):
        return ()
    except (OSError, KeyError):
        return None
    return tuple(seen)
