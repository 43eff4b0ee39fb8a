"""The console's one connection to the daemon, and what comes over it.

Guarantees:
- Before anything is asked on a connection, also one that came back, the daemon is told where the page is and who shows
  it, so that agents are kept away from both (spec §6.2).
- What happens is passed to every listener at once; one that does not take it is told to look again, and holds up
  nobody.
- A daemon that goes away is looked for until it is back; meanwhile every call says so within its bound.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Final

from surehand import limits
from surehand.client.opening import connector
from surehand.client.session import Session
from surehand.client.streaming import StreamingLink, StreamingWay
from surehand.errors import SurehandError, Unavailable

_LOOK_AGAIN_S: Final = 0.5
#: A subscription has no end of its own.
_FOR_EVER_MS: Final = 365 * 86_400_000

Told = dict[str, Any]


class Feed:
    """What one listener has not taken yet. Of too much everything goes, and it is told to look again."""

    def __init__(self) -> None:
        self._waiting: deque[Told] = deque()
        self._there = asyncio.Event()

    def put(self, told: Told) -> None:
        """Add one thing."""
        if len(self._waiting) >= limits.CONSOLE_EVENTS_MAX:
            self._waiting.clear()
            told = {"event": "lagged"}
        self._waiting.append(told)
        self._there.set()

    async def take(self) -> Told:
        """Return the next thing, once there is one."""
        while not self._waiting:
            self._there.clear()
            await self._there.wait()
        return self._waiting.popleft()

    async def __aiter__(self) -> AsyncIterator[Told]:
        while True:
            yield await self.take()


class Daemon:
    """The daemon, as the pages see it."""

    def __init__(self, port: int) -> None:
        self._port = port
        #: Processes that show the page, with what tells a process from a later one of the same number.
        self._shown_by: dict[int, str] = {}
        self._session = Session(_Announcing(self, StreamingWay(connector("control", None, "console", start=False))))
        self._feeds: list[Feed] = []
        self._fault: SurehandError | None = Unavailable("no daemon was asked yet")

    # --- calls --------------------------------------------------------------------------------------------------

    async def call(self, method: str, params: dict[str, Any] | None = None, *, wait_ms: int = 0) -> dict[str, Any]:
        """Call a control method.

        Args:
            method: Its name, as docs/reference/wire.md lists it.
            params: JSON values.
            wait_ms: How long the daemon may rightly take, beyond the usual.

        Raises:
            Unavailable: no daemon answers.
            SurehandError: what it answered.
        """
        try:
            async with asyncio.timeout((wait_ms + limits.CONSOLE_DAEMON_MS_MAX) / 1000):
                found: dict[str, Any] = await self._session.ask(method, params or {}, wait_ms=wait_ms)
        except TimeoutError as error:
            raise Unavailable("the daemon does not answer", fix="`surehand ps` in a terminal says more") from error
        return found

    async def posture(self) -> dict[str, Any]:
        """Return trust level, authority mode, tier of the journal, and how much waits for people.

        Raises:
            Unavailable: no daemon answers.
        """
        return await self.call("console", self.announcement())

    @property
    def fault(self) -> SurehandError | None:
        """Why there is no connection; None while there is one."""
        return self._fault

    # --- who shows the page -------------------------------------------------------------------------------------

    def announcement(self) -> dict[str, Any]:
        """Return what the daemon is told: the port, and the processes that show the page and still live."""
        for pid, born in list(self._shown_by.items()):
            if not born or _birth_of(pid) != born:
                del self._shown_by[pid]
        return {"port": self._port, "pids": sorted(self._shown_by)}

    def is_shown_by(self, pid: int) -> bool:
        """Say whether the daemon was told of a process, and it is still that one."""
        return bool(born := self._shown_by.get(pid)) and born == _birth_of(pid)

    @property
    def browsers(self) -> tuple[int, ...]:
        """Return the processes that the page was shown to."""
        return tuple(self._shown_by)

    async def shown_by(self, pid: int) -> None:
        """Tell the daemon of a process before it is shown anything.

        Without a daemon there is nothing to show; it is told of it before its first answer.
        """
        if self.is_shown_by(pid):
            return
        while len(self._shown_by) >= limits.CONSOLE_PIDS_MAX:
            del self._shown_by[next(iter(self._shown_by))]
        self._shown_by[pid] = _birth_of(pid)
        with contextlib.suppress(SurehandError):
            await self.posture()

    # --- what happens -------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def heard(self) -> Iterator[Feed]:
        """Listen to what happens.

        Each is `{"event": NAME, …}` as the daemon tells it; `daemon.connected` and `daemon.lost` are of here, and
        `lagged` says that something was missed.
        """
        feed = Feed()
        self._feeds.append(feed)
        try:
            yield feed
        finally:
            self._feeds.remove(feed)

    def _tell(self, told: Told) -> None:
        for feed in self._feeds:
            feed.put(told)

    async def run(self) -> None:
        """Listen to the daemon until cancelled, coming back to it whenever it goes."""
        while True:
            try:
                await self.posture()
                self._fault = None
                self._tell({"event": "daemon.connected"})
                await self._session.ask("events.subscribe", {}, wait_ms=_FOR_EVER_MS, on_event=self._heard)
            except SurehandError as error:
                if self._fault is None:
                    self._tell({"event": "daemon.lost"})
                self._fault = error
            await asyncio.sleep(_LOOK_AGAIN_S)

    def _heard(self, told: Told) -> None:
        # What comes without a name says how many were dropped on the way.
        self._tell(told if "event" in told else {"event": "lagged"})

    async def close(self) -> None:
        """End the session; the daemon then lets agents near the browsers again."""
        await self._session.close()


class _Announcing:
    """Makes links over which the daemon knows of the page before anything else is asked."""

    def __init__(self, daemon: Daemon, way: StreamingWay) -> None:
        self._daemon = daemon
        self._way = way

    def turn(self) -> asyncio.Lock:
        """Let one task at a time make a link."""
        return self._way.turn()

    async def link(self) -> StreamingLink:
        """Return a new link, announced."""
        link = await self._way.link()
        try:
            timeout_s = limits.CONSOLE_DAEMON_MS_MAX / 1000
            await link.call("console", self._daemon.announcement(), timeout_s=timeout_s)
        except BaseException:
            await link.close()
            raise
        return link

    async def pause(self, seconds: float) -> None:
        """Let time pass."""
        await self._way.pause(seconds)


def _birth_of(pid: int) -> str:
    """Return what tells this process from a later one with its number; empty once it has ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
        return stat.rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""
