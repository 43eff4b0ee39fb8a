"""The link on an event loop: many calls at once over one connection."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable
from typing import Any, Final

from surehand.client.wire import Answer, ConnectionLost, Event, OnEvent, Wire
from surehand.core.wire.messages import Welcome
from surehand.errors import SurehandError

_HELLO_S: Final = 30.0  # opening a session may attach a desktop


class StreamingLink(asyncio.Protocol):
    """A link that suspends while it waits. Cancelling a call's task cancels the call."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._waiting: dict[int, tuple[asyncio.Future[Answer], OnEvent | None]] = {}
        self.welcomed: asyncio.Future[Welcome] = self._loop.create_future()
        self._why: SurehandError | None = None
        self._gone = asyncio.Event()

    @classmethod
    async def over(cls, connected: socket.socket, wire: Wire) -> StreamingLink:
        """Return a welcomed link over a connected socket."""
        connected.setblocking(False)
        loop = asyncio.get_running_loop()
        _, link = await loop.create_unix_connection(lambda: cls(wire), sock=connected)
        try:
            await asyncio.wait_for(asyncio.shield(link.welcomed), _HELLO_S)
        except TimeoutError as error:
            await link.close()
            raise ConnectionLost("the daemon did not answer the hello", sent=False) from error
        except BaseException:
            await link.close()
            raise
        return link

    @property
    def welcome(self) -> Welcome:
        """What the daemon said to our hello."""
        return self.welcomed.result()

    @property
    def alive(self) -> bool:
        """False once the connection is known to be gone."""
        return self._transport is not None and not self._transport.is_closing()

    async def call(
        self, method: str, params: dict[str, Any], *, timeout_s: float, on_event: OnEvent | None = None
    ) -> Any:
        """Send a call and wait for its answer."""
        call_id, data = self._wire.call(method, params)
        transport = self._transport
        if transport is None or transport.is_closing():
            raise ConnectionLost("the connection is closed", sent=False)
        future: asyncio.Future[Answer] = self._loop.create_future()
        self._waiting[call_id] = (future, on_event)
        transport.write(data)
        timer = self._loop.call_later(timeout_s, self._late, future)
        try:
            return (await future).get()
        except asyncio.CancelledError:
            if not transport.is_closing():
                transport.write(self._wire.cancel(call_id))
            raise
        finally:
            timer.cancel()
            self._waiting.pop(call_id, None)

    @staticmethod
    def _late(future: asyncio.Future[Answer]) -> None:
        if not future.done():
            future.set_exception(ConnectionLost("the daemon did not answer in time", sent=True))

    async def close(self) -> None:
        """End the connection."""
        if self._transport is not None:
            self._transport.close()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._gone.wait(), 1)

    # --- the transport's side ---------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Say hello."""
        if not isinstance(transport, asyncio.Transport):
            raise TypeError("a link needs a stream transport")
        self._transport = transport
        transport.write(self._wire.hello())

    def data_received(self, data: bytes) -> None:
        """Hand every message to whoever waits for it."""
        self._wire.feed(data)
        try:
            while (message := self._wire.next()) is not None:
                self._take(message)
        except SurehandError as error:
            self._why = error
            if self._transport is not None:
                self._transport.close()

    def _take(self, message: Welcome | Answer | Event) -> None:
        if isinstance(message, Welcome):
            if not self.welcomed.done():
                self.welcomed.set_result(message)
            return
        future, on_event = self._waiting.get(message.id, (None, None))
        if isinstance(message, Event):
            if on_event is not None:
                on_event(message.data)
        elif future is not None and not future.done():
            future.set_result(message)

    def connection_lost(self, _exc: Exception | None) -> None:
        """Tell everyone who waits."""
        self._gone.set()
        if not self.welcomed.done():
            self.welcomed.set_exception(self._why or ConnectionLost("the daemon closed the connection", sent=False))
            self.welcomed.exception()  # it may be nobody's any more
        for future, _ in self._waiting.values():
            if not future.done():
                future.set_exception(ConnectionLost("the daemon closed the connection", sent=True))


class StreamingWay:
    """How links on the event loop come about; `connect` blocks and therefore runs in a thread."""

    def __init__(self, connect: Callable[[], tuple[socket.socket, Wire]]) -> None:
        self._connect = connect
        self._lock = asyncio.Lock()

    def turn(self) -> asyncio.Lock:
        """Let one task at a time make a link."""
        return self._lock

    async def link(self) -> StreamingLink:
        """Return a new, welcomed link."""
        return await StreamingLink.over(*await asyncio.to_thread(self._connect))

    async def pause(self, seconds: float) -> None:
        """Let time pass."""
        await asyncio.sleep(seconds)
