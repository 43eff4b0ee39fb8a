"""The blocking link: coroutines that never suspend, so that the shared code runs without an event loop.

`run` drives such a coroutine to its end in one step. One call at a time: threads that share a link take turns.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, Final, TypeVar

from surehand.client.wire import Answer, ConnectionLost, Event, OnEvent, Wire
from surehand.core.wire.messages import Welcome
from surehand.errors import InternalError, SurehandError

T = TypeVar("T")

_CHUNK_BYTES: Final = 256 * 1024
_HELLO_S: Final = 30.0  # opening a session may attach a desktop


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine over blocking links to its end."""
    try:
        work.send(None)
    except StopIteration as done:
        value: T = done.value
        return value
    work.close()
    raise InternalError("a blocking call tried to wait on an event loop")


class BlockingLink:
    """A link over a blocking socket. Interrupting a call (Ctrl-C) cancels it and closes the link."""

    def __init__(self, connected: socket.socket, wire: Wire) -> None:
        self._socket = connected
        self._wire = wire
        self._turn = threading.Lock()
        self.alive = True
        try:
            self._send(wire.hello(), _HELLO_S)
            self.welcome = self._read_welcome()
        except BaseException:
            self._drop()
            raise

    def _read_welcome(self) -> Welcome:
        end = time.monotonic() + _HELLO_S
        while not isinstance(message := self._next(end), Welcome):
            pass
        return message

    async def call(
        self, method: str, params: dict[str, Any], *, timeout_s: float, on_event: OnEvent | None = None
    ) -> Any:
        """Send a call and read until its answer."""
        call_id, data = self._wire.call(method, params)
        with self._turn:
            if not self.alive:
                raise ConnectionLost("the connection is closed", sent=False)
            try:
                self._send(data, timeout_s)
                return self._answer(call_id, time.monotonic() + timeout_s, on_event)
            except ConnectionLost:
                self._drop()
                raise
            except BaseException as error:
                if not isinstance(error, SurehandError):
                    # Interrupted in the middle of reading: the stream's place is lost, so say so and leave. The
                    # daemon cancels what it has not dispatched.
                    with contextlib.suppress(OSError):
                        self._socket.sendall(self._wire.cancel(call_id))
                    self._drop()
                raise

    def _answer(self, call_id: int, end: float, on_event: OnEvent | None) -> Any:
        while True:
            message = self._next(end)
            if isinstance(message, Event) and message.id == call_id:
                if on_event is not None:
                    on_event(message.data)
            elif isinstance(message, Answer) and message.id == call_id:
                return message.get()

    def _next(self, end: float) -> Any:
        while True:
            try:
                if (message := self._wire.next()) is not None:
                    return message
            except SurehandError:
                self._drop()
                raise
            self._socket.settimeout(max(0.001, end - time.monotonic()))
            try:
                data = self._socket.recv(_CHUNK_BYTES)
            except TimeoutError as error:
                raise ConnectionLost("the daemon did not answer in time", sent=True) from error
            except OSError as error:
                raise ConnectionLost(f"the connection failed: {error.strerror}", sent=True) from error
            if not data:
                raise ConnectionLost("the daemon closed the connection", sent=True)
            self._wire.feed(data)

    def _send(self, data: bytes, timeout_s: float) -> None:
        self._socket.settimeout(max(0.001, timeout_s))
        try:
            self._socket.sendall(data)
        except OSError as error:
            # A request sent in part was never whole at the other end, so nothing was done.
            raise ConnectionLost("the connection failed while sending", sent=False) from error

    def _drop(self) -> None:
        self.alive = False
        self._socket.close()

    async def close(self) -> None:
        """End the connection."""
        self._drop()


class BlockingWay:
    """How blocking links come about; `connect` returns a connected socket and a fresh wire."""

    def __init__(self, connect: Callable[[], tuple[socket.socket, Wire]]) -> None:
        self._connect = connect
        self._lock = threading.Lock()

    @contextlib.asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Let one thread at a time make a link."""
        with self._lock:
            yield

    async def link(self) -> BlockingLink:
        """Return a new, welcomed link."""
        return BlockingLink(*self._connect())

    async def pause(self, seconds: float) -> None:
        """Let time pass."""
        time.sleep(seconds)  # noqa: ASYNC251 - the point of this class is that its coroutines never suspend
