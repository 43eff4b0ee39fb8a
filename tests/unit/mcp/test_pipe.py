"""What the pipe keeps for a client that does not read, and that it is never kept by one."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any, NamedTuple

import anyio
import mcp_types as types
import pytest
from mcp.shared.message import SessionMessage

from surehand import limits
from surehand.mcp.pipe import Pipe
from tests.unit.client.conftest import until
from tests.unit.daemon.fakes import FakeHost
from tests.unit.mcp.conftest import SUREHAND, calling, cancelled, initialize, surface

INVALID_REQUEST = -32600


@contextlib.contextmanager
def deaf() -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A server whose client holds the outgoing pipe open and never reads it."""
    outgoing, held = os.pipe()
    process = subprocess.Popen([SUREHAND, "mcp"], stdin=subprocess.PIPE, stdout=held)
    os.close(held)
    assert process.stdin
    for message in (initialize(), {"jsonrpc": "2.0", "method": "notifications/initialized"}):
        process.stdin.write(json.dumps(message).encode() + b"\n")
    try:
        yield process, outgoing
    finally:
        process.kill()
        process.wait()
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        os.close(outgoing)


@pytest.mark.parametrize("sent", ["calls", "pings", "nonsense"])
def test_the_end_is_seen_although_nobody_reads_what_is_answered(sent: str, host: FakeHost) -> None:
    async def long(*_: Any) -> dict[str, Any]:
        return {"surfaces": [{**surface(), "title": "x" * 1_000_000}]}

    host.script["surfaces"] = long
    ping = {"jsonrpc": "2.0", "id": 7, "method": "ping"}
    messages = {"calls": [calling(7, "list_windows")] * 4, "pings": [calling(1, "list_windows"), *[ping] * 50]}
    with deaf() as (process, _):
        assert process.stdin
        for message in messages.get(sent, ["no message"] * 200):
            process.stdin.write(json.dumps(message).encode() + b"\n")
        process.stdin.flush()
        until(lambda: sent == "nonsense" or len(host.calls) > 0)
        began = time.monotonic()
        process.stdin.close()
        assert process.wait(20) == 0
        assert time.monotonic() - began < (limits.MCP_DRAIN_MS + limits.MCP_CLOSE_MS) / 1000 + 3


class Ends(NamedTuple):
    """A pipe of this process, and what its client reads and writes with."""

    pipe: Pipe
    receiving: int
    sending: int

    def send(self, *messages: Any) -> None:
        os.write(self.sending, b"".join(json.dumps(one).encode() + b"\n" for one in messages))

    async def handed_in(self) -> Any:
        async with asyncio.timeout(5):
            return (await self.pipe.inward.receive()).message

    async def line(self) -> Any:
        with os.fdopen(os.dup(self.receiving), "rb", buffering=0) as file:
            return json.loads(await asyncio.to_thread(file.readline))


@contextlib.asynccontextmanager
async def connected() -> AsyncIterator[Ends]:
    (reading, sending), (receiving, writing) = os.pipe(), os.pipe()
    pipe = Pipe(reading, writing)
    tasks = [asyncio.create_task(one()) for one in (pipe.read, pipe.write, pipe.refuse)]
    try:
        yield Ends(pipe, receiving, sending)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        pipe.inward.close()
        pipe.outward.close()
        for descriptor in (reading, sending, receiving, writing):
            os.close(descriptor)


async def test_who_takes_no_byte_for_the_longest_time_counts_as_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MCP_WRITE_MS_MAX", 100)
    text = "x" * 200_000  # more than a pipe holds
    note = types.JSONRPCNotification(jsonrpc="2.0", method="notifications/message", params={"data": text})
    async with connected() as ends:
        await ends.pipe.outward.send(SessionMessage(note))
        with pytest.raises(anyio.EndOfStream):  # although its input is open
            await ends.handed_in()
        async with asyncio.timeout(5):
            for _ in range(3):  # dropped, and keeps nobody
                await ends.pipe.outward.send(SessionMessage(note))


async def test_as_many_requests_are_open_as_the_limit_says_and_answers_and_cancelling_make_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "MCP_OPEN_MAX", 2)
    async with connected() as ends:
        ends.send(*[calling(number, "x") for number in (1, 2, 3)])
        assert [(await ends.handed_in()).id for _ in range(2)] == [1, 2]
        refusal = await ends.line()
        assert (refusal["id"], refusal["error"]["code"]) == (3, INVALID_REQUEST)
        await ends.pipe.outward.send(SessionMessage(types.JSONRPCResponse(jsonrpc="2.0", id=1, result={})))
        assert (await ends.line())["id"] == 1
        ends.send(calling(4, "x"), cancelled(2), calling(5, "x"))
        assert [getattr(await ends.handed_in(), "id", None) for _ in range(3)] == [4, None, 5]
