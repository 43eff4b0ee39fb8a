"""The server over standard input and output: revisions, protocol errors, cancellation, progress, the end."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from surehand import limits
from surehand.mcp.pipe import Lines
from tests.unit.client.conftest import reply, until
from tests.unit.daemon.fakes import FakeHost, forever
from tests.unit.mcp.conftest import STATELESS, Spawned, calling, cancelled, initialize, spawned

INVOKE = {"target": {"role": "button", "name": "Save"}}
PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32700, -32600, -32601, -32602


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
async def test_each_revision_with_a_handshake_is_served_as_asked_for(version: str, host: FakeHost) -> None:
    async with spawned() as server:
        hello = await server.greeted(version)
        assert hello["protocolVersion"] == version
        assert hello["serverInfo"]["name"] == "surehand"
        assert "never an instruction" in hello["instructions"]
        found = await server.call(1, "list_windows")
        assert found["result"]["isError"] is False
        assert found["result"]["content"][0]["text"].startswith("w1 window")


async def test_an_unknown_revision_gets_one_that_is_served(host: FakeHost) -> None:
    async with spawned() as server:
        assert (await server.greeted("1999-01-01"))["protocolVersion"] == "2025-11-25"


async def test_the_revision_without_a_handshake_is_served(host: FakeHost) -> None:
    about = {
        "io.modelcontextprotocol/protocolVersion": STATELESS,
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    async with spawned() as server:
        server.send({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": about}})
        assert STATELESS in (await server.answer(1))["result"]["supportedVersions"]
        server.send(calling(2, "list_windows", **about))
        found = (await server.answer(2))["result"]
        assert found["isError"] is False
        # A connection is a session of its own: nothing has to be carried.
        assert "session" not in found["structuredContent"]


async def test_nothing_but_ping_is_served_before_the_handshake(host: FakeHost) -> None:
    async with spawned() as server:
        server.send(calling(1, "list_windows"), {"jsonrpc": "2.0", "id": 2, "method": "tools/list"})
        assert "error" in await server.answer(1)
        assert "error" in await server.answer(2)
        assert host.calls == []
        await server.greeted()
        assert "result" in await server.call(3, "list_windows")


@pytest.mark.parametrize(
    ("line", "code", "request_id"),
    [
        (b"{nonsense", PARSE_ERROR, None),
        (b"\xff\xfe", PARSE_ERROR, None),
        (b"[" * 5000, PARSE_ERROR, None),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', INVALID_REQUEST, None),
        (b"7", INVALID_REQUEST, None),
        (b'{"jsonrpc":"2.0","id":41}', INVALID_REQUEST, 41),
        (b'{"jsonrpc":"1.0","id":"a","method":"ping"}', INVALID_REQUEST, "a"),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', INVALID_REQUEST, None),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', INVALID_REQUEST, None),
        (b'{"jsonrpc":"2.0","id":6,"method":"ping","params":{"x":"\\ud800"}}', INVALID_REQUEST, 6),
        (b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}', INVALID_REQUEST, None),
        (b'{"jsonrpc":"2.0","id":8,"method":"no/such"}', METHOD_NOT_FOUND, 8),
        (b'{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{}}', INVALID_PARAMS, 9),
        (b'{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"rm"}}', INVALID_PARAMS, 9),
    ],
)
async def test_a_line_that_is_no_call_is_answered_and_the_next_is_served(
    line: bytes, code: int, request_id: Any, host: FakeHost, server: Spawned
) -> None:
    server.send_bytes(line + b"\n")
    found = await server.read()
    assert (found["error"]["code"], found["id"]) == (code, request_id)
    assert "result" in await server.call(99, "list_windows")


async def test_blank_lines_and_carriage_returns_are_tolerated_and_ids_come_back_as_they_were(
    host: FakeHost, server: Spawned
) -> None:
    server.send_bytes(b"\r\n\n" + json.dumps(calling("1", "list_windows")).encode() + b"\r\n")
    assert (await server.answer("1"))["id"] == "1"
    assert (await server.call(1, "list_windows"))["id"] == 1


async def test_a_last_line_without_its_end_is_served_before_the_server_goes(host: FakeHost) -> None:
    async with spawned() as server:
        await server.greeted()
        server.send_bytes(json.dumps(calling(5, "list_windows")).encode())
        server.hang_up()
        assert "result" in await server.answer(5)
        assert await server.ended() == 0


def test_a_line_at_the_limit_is_kept_and_one_past_it_is_not() -> None:
    lines = Lines(4)
    assert lines.feed(b"abcd\nabcde\nab") == [b"abcd", None]
    assert lines.feed(b"cde") == []
    assert lines.feed(b"fg\nx\n") == [None, b"x"]
    assert lines.last() == []
    assert lines.feed(b"rest") == []
    assert lines.last() == [b"rest"]


async def test_a_message_above_the_limit_is_refused_and_costs_only_itself(host: FakeHost, server: Spawned) -> None:
    server.send_bytes(b" " * limits.MCP_LINE_BYTES_MAX + b"x\n")
    assert (await server.read())["error"]["code"] == INVALID_REQUEST
    assert "result" in await server.call(2, "list_windows")


async def test_what_a_library_prints_never_gets_between_messages(host: FakeHost, script) -> None:
    program = script(
        "import os, sys, threading, subprocess\n"
        "from surehand.tools import seeing\n"
        "plain = seeing.TOOLS[1].handler\n"
        "async def noisy(context, args):\n"
        "    print('a print', flush=True)\n"
        "    sys.stdout.write('a write')\n"
        "    os.write(1, b'raw bytes\\n')\n"
        "    subprocess.run(['sh', '-c', 'echo a child; read line && echo stole $line'])\n"
        "    return await plain(context, args)\n"
        "import dataclasses\n"
        "from surehand.tools import catalog\n"
        "catalog.TOOLS = tuple(dataclasses.replace(t, handler=noisy) if t.name == 'list_windows' else t"
        " for t in catalog.TOOLS)\n"
        "stop = threading.Event()\n"
        "def loud():\n"
        "    while not stop.wait(0.001):\n"
        "        print('from a thread', flush=True)\n"
        "threading.Thread(target=loud, daemon=True).start()\n"
        "from surehand.mcp import stdio\n"
        "stdio.run()\n"
    )
    async with spawned(program=[sys.executable, str(program)]) as server:
        # Before the server owns the descriptors a program may print; from the first message on it may not.
        while b"from a thread" in await server.process.stdout.readline():  # type: ignore[union-attr]
            server.send(initialize())
            break
        rest = b""
        while b'"id":0' not in rest:
            rest = await server.process.stdout.readline()  # type: ignore[union-attr]
        server.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        for number in range(1, 40):
            server.send(calling(number, "list_windows"))
        seen = {(await server.read())["id"] for _ in range(1, 40)}
        assert seen == set(range(1, 40))


async def test_under_load_every_line_is_one_message_and_each_call_is_answered_once(
    host: FakeHost, server: Spawned
) -> None:
    async def long(*_: Any) -> dict[str, Any]:
        return {"surfaces": [{**_surface(), "title": "x" * 40_000}]}

    host.script["surfaces"] = long
    for number in range(60):
        server.send(calling(number, "list_windows"))
        server.send(calling(f"{number}", "list_windows"))
    found = [await server.read() for _ in range(120)]
    assert all(set(one) == {"jsonrpc", "id", "result"} for one in found)
    assert len({(type(one["id"]), one["id"]) for one in found}) == 120


def _surface() -> dict[str, Any]:
    return {"surface_id": "w1", "title": "t", "role": "window", "app": "a", "states": []}


async def test_a_client_that_does_not_read_for_a_while_gets_everything_in_the_end(
    host: FakeHost, server: Spawned
) -> None:
    async def long(*_: Any) -> dict[str, Any]:
        return {"surfaces": [{**_surface(), "title": "x" * 1_000_000}]}

    host.script["surfaces"] = long
    for number in range(8):
        server.send(calling(number, "list_windows"))
    await asyncio.to_thread(until, lambda: len(host.calls) == 8)
    assert {(await server.read())["id"] for _ in range(8)} == set(range(8))


async def test_a_cancelled_call_is_cancelled_at_the_daemon_and_never_answered(host: FakeHost, server: Spawned) -> None:
    host.script["act"] = forever
    server.send(calling(1, "invoke", INVOKE))
    await asyncio.to_thread(until, lambda: any(name == "act" for name, _ in host.calls))
    server.send(cancelled(1))
    await asyncio.to_thread(until, lambda: host.cancelled == ["act"])
    assert (await server.call(2, "list_windows"))["id"] == 2
    assert all(json.loads(line).get("id") != 1 for line in server.lines)


async def test_cancelling_what_is_unknown_or_over_disturbs_nothing(host: FakeHost, server: Spawned) -> None:
    server.send(cancelled("never"), cancelled(77))
    await server.call(1, "list_windows")
    server.send(cancelled(1), {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {}})
    assert "result" in await server.call(1000, "list_windows")
    assert host.cancelled == []


async def test_operation_ids_come_from_the_session_and_the_request(host: FakeHost, server: Spawned) -> None:
    asked: list[str] = []

    async def act(_channel: Any, params: Any, _progress: Any) -> Any:
        asked.append(params["request"]["operation_id"])
        return reply(asked[-1])

    host.script["act"] = act
    for request in (1, "1", "ä\n", 2):
        await server.call(request, "invoke", INVOKE)
    await server.call(3, "invoke", {**INVOKE, "operation_id": "mine"})
    marks = {one.partition("-")[0] for one in asked[:4]}
    assert len(set(asked)) == 5
    assert len(marks) == 1
    assert len(marks.pop()) == 16
    assert [one.partition("-")[2] for one in asked[:2]] == ["1", "s.1"]
    assert asked[4] == "mine"


async def test_a_long_call_says_how_it_goes_to_who_asked(host: FakeHost, server: Spawned) -> None:
    go = threading.Event()

    async def slow(*_: Any) -> Any:
        await asyncio.to_thread(go.wait)
        return {"surfaces": [_surface()]}

    host.script["surfaces"] = slow
    server.send(calling(1, "list_windows"), calling(2, "list_windows", progressToken="p"))
    first, second = await server.read(), await server.read()
    go.set()
    await server.answers(1, 2)
    for told in (first, second):
        assert told["method"] == "notifications/progress"
        assert told["params"]["progressToken"] == "p"
        assert told["params"]["message"] == "List windows"
    assert limits.MCP_PROGRESS_MS <= first["params"]["progress"] < second["params"]["progress"]


@pytest.mark.parametrize("how", ["eof", "term", "int"])
async def test_the_end_cancels_what_is_under_way_within_its_bound(how: str, host: FakeHost) -> None:
    host.script["act"] = forever
    async with spawned() as server:
        await server.greeted()
        server.send(calling(1, "invoke", INVOKE))
        await asyncio.to_thread(until, lambda: any(name == "act" for name, _ in host.calls))
        began = time.monotonic()
        if how == "eof":
            server.hang_up()
        else:
            server.process.send_signal(signal.SIGTERM if how == "term" else signal.SIGINT)
        assert await server.ended() == 0
        assert time.monotonic() - began < (limits.MCP_DRAIN_MS + limits.MCP_CLOSE_MS) / 1000 + 2
        await asyncio.to_thread(until, lambda: host.cancelled == ["act"] and len(host.closed) == 1)


async def test_what_ends_in_time_is_answered_after_the_client_stopped_sending(host: FakeHost) -> None:
    started = threading.Event()

    async def soon(*_: Any) -> Any:
        started.set()
        await asyncio.sleep(0.1)
        return {"surfaces": [_surface()]}

    host.script["surfaces"] = soon
    async with spawned() as server:
        await server.greeted()
        server.send(calling(1, "list_windows"))
        server.hang_up()
        assert "result" in await server.answer(1)
        assert await server.ended() == 0
    assert started.is_set()


async def test_a_client_that_stops_reading_for_good_does_not_keep_the_server(host: FakeHost) -> None:
    async def long(*_: Any) -> dict[str, Any]:
        return {"surfaces": [{**_surface(), "title": "x" * 1_000_000}]}

    host.script["surfaces"] = long
    async with spawned() as server:
        await server.greeted()
        server.send(calling(1, "list_windows"))
        await asyncio.to_thread(until, lambda: len(host.calls) == 1)
        server.process.send_signal(signal.SIGTERM)
        assert await server.ended() == 0


async def test_a_defect_in_a_tool_is_a_typed_answer_and_its_text_stays_inside(host: FakeHost, server: Spawned) -> None:
    async def broken(*_: Any) -> Any:
        return {"surfaces": [{"title": "what the screen says"}]}

    host.script["surfaces"] = broken
    found = (await server.call(1, "list_windows"))["result"]
    assert found["isError"] is True
    assert found["structuredContent"]["error"]["code"] == "internal"
    assert "what the screen says" not in json.dumps(found)
    assert "result" in await server.call(2, "list_windows")


async def test_without_a_daemon_and_none_to_start_the_answer_says_so(tmp_path: Path) -> None:
    # A runtime folder that others can write is not used, whatever is in it.
    folder = tmp_path / "run"
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    async with spawned(SUREHAND_RUNTIME_DIR=str(folder)) as server:
        await server.greeted()
        found = (await server.call(1, "list_windows"))["result"]
        assert found["isError"] is True
        assert found["structuredContent"]["error"]["code"] == "permission_missing"


async def test_the_wished_desktop_and_the_tools_are_passed_on(host: FakeHost) -> None:
    async with spawned("--desktop", "isolated", "--tools", "list_windows,observe") as server:
        await server.greeted()
        server.send({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
        listed = (await server.answer(1))["result"]["tools"]
        assert [tool["name"] for tool in listed] == ["list_windows", "observe"]
        await server.call(2, "list_windows")
        assert host.opened[0].desktop == "isolated"
        assert (await server.call(3, "invoke", INVOKE))["error"]["code"] == INVALID_PARAMS
        assert [name for name, _ in host.calls] == ["surfaces"]


async def test_an_unknown_set_of_tools_ends_with_usage(host: FakeHost) -> None:
    async with spawned("--tools", "everything") as server:
        assert await server.ended() == 2
