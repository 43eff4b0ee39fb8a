"""Messages over two file descriptors: one JSON object a line, and nothing else on the outgoing one.

Guarantees:
- While it is open, descriptor 1 is standard error and descriptor 0 is empty, so that what a library or a child prints
  never gets between messages.
- A line that is no message is answered with a protocol error, under its own id where it has one; it never ends the
  connection. A line above `MCP_LINE_BYTES_MAX` is dropped without being kept.
- At the end of input, answers that are under way get `MCP_DRAIN_MS` to be written.
- Nothing blocks the event loop, whether or not the client reads, and no thread keeps the process alive.
- A client that does not read delays nothing but its answers: the end of its input is seen, and after `MCP_WRITE_MS_MAX`
  without a byte taken it counts as gone. What is kept for it is bounded (`MCP_OPEN_MAX`).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import select
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any, Final

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage

from surehand import limits

_READ_BYTES: Final = 65_536
#: A pipe that is ready for writing takes this much at once without blocking (POSIX PIPE_BUF).
_SLICE_BYTES: Final = 4096

_Inward = MemoryObjectSendStream[SessionMessage | Exception]
_Outward = MemoryObjectReceiveStream[SessionMessage]


class Lines:
    """Cuts bytes into lines, within a bound."""

    def __init__(self, bytes_max: int = limits.MCP_LINE_BYTES_MAX) -> None:
        self._most = bytes_max
        self._kept = bytearray()
        self._skipping = False

    def feed(self, data: bytes) -> list[bytes | None]:
        """Return the lines that ended; None stands for one that was too long."""
        found: list[bytes | None] = []
        *ended, rest = data.split(b"\n")
        for part in ended:
            self._keep(part)
            found.append(self._take())
        self._keep(rest)
        return found

    def last(self) -> list[bytes | None]:
        """Return what came after the last end of line."""
        return [self._take()] if self._kept or self._skipping else []

    def _keep(self, part: bytes) -> None:
        if self._skipping or len(self._kept) + len(part) > self._most:
            self._skipping = True
            self._kept.clear()
        else:
            self._kept += part

    def _take(self) -> bytes | None:
        line, skipped = bytes(self._kept), self._skipping
        self._kept.clear()
        self._skipping = False
        return None if skipped else line


def _message(line: bytes) -> types.JSONRPCMessage | None:
    """Return what a line says, or None."""
    try:
        message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        # What has an id is owed an answer, so it is no notification, whatever kind of id that is.
        if isinstance(message, types.JSONRPCNotification) and "id" in json.loads(line):
            return None
    except (ValueError, RecursionError):
        return None
    return message


def refused(line: bytes | None) -> types.JSONRPCError:
    """Return the answer to a line that is no message."""
    if line is None:
        return _error(types.INVALID_REQUEST, f"a message may have {limits.MCP_LINE_BYTES_MAX} bytes")
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return _error(types.PARSE_ERROR, "not JSON")
    if isinstance(value, list):
        return _error(types.INVALID_REQUEST, "batches are not served; send one message a line")
    if not isinstance(value, dict):
        return _error(types.INVALID_REQUEST, "a message is a JSON object")
    return _error(types.INVALID_REQUEST, "not a JSON-RPC message, or text that is no Unicode", value.get("id"))


def _error(code: int, message: str, given: Any = None) -> types.JSONRPCError:
    plain = isinstance(given, int | str) and not isinstance(given, bool) and _is_unicode(str(given))
    return types.JSONRPCError(
        jsonrpc="2.0", id=given if plain else None, error=types.ErrorData(code=code, message=message)
    )


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


class Pipe:
    """Both directions of one connection."""

    def __init__(self, reading: int, writing: int) -> None:
        self._reading = reading
        self._writing = writing
        self._lines = Lines()
        #: How many requests were handed in and not answered, by their ids.
        self._open: Counter[tuple[type, Any]] = Counter()
        self._answered = asyncio.Event()
        #: Answers to what never reached the server.
        self._refusals: asyncio.Queue[types.JSONRPCError] = asyncio.Queue(limits.MCP_OPEN_MAX)
        self._turn = asyncio.Lock()
        self._over = asyncio.Event()
        #: Nothing more is written: nobody reads, or the time for what was under way has passed.
        self._deaf = asyncio.Event()
        self.inward, self._messages = self._pair()
        self._answers, self.outward = self._pair()

    @staticmethod
    def _pair() -> tuple[Any, Any]:
        sending, receiving = anyio.create_memory_object_stream[Any](0)
        return receiving, sending

    def end(self) -> None:
        """Take nothing more; what is under way gets its time."""
        self._over.set()

    async def read(self) -> None:
        """Hand in every message until the input ends, then let answers out."""
        try:
            async with self._messages:
                while not self._over.is_set() and (data := await self._some()):
                    await self._hand_in(self._lines.feed(data))
                if not self._over.is_set():
                    await self._hand_in(self._lines.last())
                await self._drain()
                self._deaf.set()
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return  # the server ended first

    async def _some(self) -> bytes:
        if not await self._ready(self._reading, select.POLLIN):
            return b""
        try:
            return os.read(self._reading, _READ_BYTES)
        except OSError:
            return b""  # a terminal or peer that went away has nothing more to say

    async def _hand_in(self, lines: list[bytes | None]) -> None:
        for line in lines:
            if self._over.is_set():
                return
            if line is not None and not line.strip():
                continue
            message = None if line is None else _message(line)
            if message is None:
                await self._refuse(refused(line))
                continue
            if isinstance(message, types.JSONRPCRequest):
                if self._open.total() >= limits.MCP_OPEN_MAX:
                    said = f"{limits.MCP_OPEN_MAX} requests are open; wait for answers"
                    await self._refuse(_error(types.INVALID_REQUEST, said, message.id))
                    continue
                self._open[type(message.id), message.id] += 1
            elif isinstance(message, types.JSONRPCNotification) and message.method == "notifications/cancelled":
                self._close((message.params or {}).get("requestId"))  # what is cancelled is never answered
            await self._messages.send(SessionMessage(message))

    def _close(self, request: Any) -> None:
        """Count a request as answered."""
        key = type(request), request
        if isinstance(request, int | str) and self._open[key] > 0:
            self._open[key] -= 1
        self._open += Counter()  # forgets what is at nought
        self._answered.set()

    async def _refuse(self, answer: types.JSONRPCError) -> None:
        """Answer later: what comes next, the end above all, has to be seen whether or not anybody reads."""
        try:
            async with asyncio.timeout(limits.MCP_TELL_MS_MAX / 1000):
                await self._refusals.put(answer)
        except TimeoutError:
            self.end()  # it only sends what is refused, and reads none of it

    async def _drain(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limits.MCP_DRAIN_MS / 1000):
                while self._open:
                    self._answered.clear()
                    await self._answered.wait()
                await self._refusals.join()

    async def write(self) -> None:
        """Write every message of the server."""
        async with self._answers:
            async for sent in self._answers:
                message = sent.message
                await self._write(message)
                if isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
                    self._close(message.id)

    async def refuse(self) -> None:
        """Write every answer to what never reached the server."""
        while True:
            await self._write(await self._refusals.get())
            self._refusals.task_done()

    async def _write(self, message: Any) -> None:
        data = message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
        async with self._turn:
            for start in range(0, len(data), _SLICE_BYTES):
                part = data[start : start + _SLICE_BYTES]
                while part:
                    if self._deaf.is_set():
                        return  # a line that was cut must be the last
                    if not await self._ready(self._writing, select.POLLOUT):
                        self._deaf.set()
                        self.end()
                        return
                    try:
                        part = part[os.write(self._writing, part) :]
                    except BlockingIOError:
                        await asyncio.sleep(0)
                    except OSError:
                        self.end()  # nobody reads any more
                        return

    async def _ready(self, descriptor: int, event: int) -> bool:
        """Wait until a descriptor can be used without blocking; False when the end came first, or nobody reads."""
        poll = select.poll()
        poll.register(descriptor, event)
        if poll.poll(0):
            return True
        loop = asyncio.get_running_loop()
        ready = asyncio.Event()
        add, remove = (
            (loop.add_reader, loop.remove_reader) if event == select.POLLIN else (loop.add_writer, loop.remove_writer)
        )
        add(descriptor, ready.set)
        ends, wait_s = (self._over, None) if event == select.POLLIN else (self._deaf, limits.MCP_WRITE_MS_MAX / 1000)
        waits = [asyncio.ensure_future(ready.wait()), asyncio.ensure_future(ends.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED, timeout=wait_s)
        finally:
            remove(descriptor)
            for one in waits:
                one.cancel()
        return ready.is_set()


@contextlib.contextmanager
def _claimed() -> Any:
    """Take descriptors 0 and 1 for messages alone."""
    saved = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    try:
        yield saved
    finally:
        for number, descriptor in enumerate(saved):
            os.dup2(descriptor, number)
            os.close(descriptor)


@contextlib.asynccontextmanager
async def standard() -> AsyncIterator[Pipe]:
    """Speak over standard input and output for as long as this is open."""
    with _claimed() as (reading, writing):
        pipe = Pipe(reading, writing)
        tasks = [asyncio.create_task(one()) for one in (pipe.read, pipe.write, pipe.refuse)]
        try:
            yield pipe
        finally:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(limits.MCP_DRAIN_MS / 1000):
                    await tasks[1]  # the server closed its side; what it said last is written
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
