"""The server over HTTP: who is let in, which session a request belongs to, and how sessions end."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import signal
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import mcp_types as types
import pytest
import pytest_asyncio
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.request_state import AESGCMRequestStateCodec
from mcp.shared.exceptions import MCPError

from surehand import limits
from surehand.errors import InvalidRequest, SurehandError
from surehand.mcp.http import token_file, where
from surehand.mcp.sessions import META_KEY, Many
from surehand.tools.catalog import UsageError
from tests.unit.client.conftest import until
from tests.unit.daemon.fakes import FakeChannel, FakeHost, forever
from tests.unit.mcp.conftest import LATEST_WITH_HANDSHAKE, STATELESS, SUREHAND, HostOfNow, calling, initialize

INVOKE = {"target": {"role": "button", "name": "Save"}}
KEY = b"k" * 32


class Served(NamedTuple):
    process: asyncio.subprocess.Process
    url: str
    token_path: Path

    @property
    def token(self) -> str:
        return self.token_path.read_text().strip()

    @property
    def netloc(self) -> str:
        return self.url.split("/")[2]

    def headers(self, **more: str) -> dict[str, str]:
        found = {
            "authorization": f"Bearer {self.token}",
            "accept": "application/json, text/event-stream",
            "content-type": "application/json",
        }
        found.update({name.replace("_", "-"): value for name, value in more.items()})
        return {name: value for name, value in found.items() if value}

    @contextlib.asynccontextmanager
    async def client(self, mode: str = "legacy", **more: Any) -> AsyncIterator[Client]:
        async with (
            httpx2.AsyncClient(headers={"authorization": f"Bearer {self.token}"}, timeout=30) as http,
            Client(streamable_http_client(self.url, http_client=http), mode=mode, **more) as client,
        ):
            yield client


@contextlib.asynccontextmanager
async def served(*options: str) -> AsyncIterator[Served]:
    process = await asyncio.create_subprocess_exec(
        *[SUREHAND, "mcp", "--http", "0", *options],
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr
    try:
        async with asyncio.timeout(15):
            at = re.search(r"http://\S+", (await process.stderr.readline()).decode())
            path = (await process.stderr.readline()).decode().split(" in ")[1].strip()
        assert at
        yield Served(process, at[0], Path(path))
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGKILL)
        await process.communicate()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def listening(hosts: HostOfNow) -> AsyncIterator[Served]:
    async with served() as found:
        yield found
        assert found.process.returncode is None


@pytest.fixture
def server(listening: Served, host: FakeHost) -> Served:
    """Return the module's server, in which a test opens its own sessions."""
    return listening


def shown_to_others(pid: int) -> bytes:
    return b"".join(Path(f"/proc/{pid}/{name}").read_bytes() for name in ("cmdline", "environ"))


def post(server: Served, message: Any = None, **headers: str) -> Any:
    body = message if isinstance(message, bytes) else json.dumps(message or initialize()).encode()
    return httpx2.post(server.url, content=body, headers=server.headers(**headers), timeout=10)


async def test_the_token_is_the_owners_alone_in_no_argument_and_gone_afterwards(host: FakeHost) -> None:
    async with served() as server:
        assert server.url.startswith("http://127.0.0.1:")
        assert stat.S_IMODE(server.token_path.stat().st_mode) == 0o600
        assert len(server.token) >= 43
        assert server.token.encode() not in shown_to_others(server.process.pid)
        server.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(10):
            assert await server.process.wait() == 0
        assert not server.token_path.exists()
        out, err = await server.process.communicate()
        assert (out, err) == (b"", b"")


async def test_who_has_no_right_token_host_or_origin_is_turned_away_before_anything_is_looked_at(
    host: FakeHost,
    server: Served,
) -> None:
    good = server.token
    for header in ("", f"Bearer {good}x", f"Bearer {good[:-1]}", "Bearer", f"Basic {good}", good):
        assert post(server, authorization=header).status_code == 401
    assert "bearer" in post(server, authorization="").headers["www-authenticate"].lower()
    both = [("authorization", f"Bearer {good}"), ("authorization", f"Bearer {good}")]
    assert httpx2.post(server.url, content=b"{}", headers=both).status_code == 401
    port = server.netloc.rpartition(":")[2]
    for name in (
        "evil.example",
        f"evil.example:{port}",
        "127.0.0.1",
        f"127.0.0.1:{int(port) ^ 1}",
        f"127.0.0.1.evil:{port}",
    ):
        assert post(server, host=name).status_code == 421
    for origin in ("http://evil.example", "null", "https://" + server.netloc, f"http://127.0.0.1.evil:{port}"):
        assert post(server, origin=origin).status_code == 403
    # A body is not even waited for.
    async with asyncio.timeout(5):
        reader, writer = await asyncio.open_connection("127.0.0.1", int(port))
        writer.write(f"POST /mcp HTTP/1.1\r\nHost: {server.netloc}\r\nContent-Length: 999999\r\n\r\n".encode())
        assert b" 401 " in await reader.readline()
        writer.close()
    assert httpx2.get(server.url.replace("/mcp", "/"), headers=server.headers()).status_code == 404
    assert host.opened == []
    for fine in ({}, {"origin": f"http://{server.netloc}"}, {"host": f"localhost:{port}"}):
        assert post(server, **fine).status_code == 200


async def test_a_body_above_the_limit_is_refused(host: FakeHost, server: Served) -> None:
    assert post(server, b" " * (limits.MCP_BODY_BYTES_MAX + 1)).status_code == 413
    assert post(server, json.dumps(initialize()).encode().ljust(limits.MCP_BODY_BYTES_MAX)).status_code == 200
    assert post(server, b"[" * 100_000).status_code == 400
    assert post(server, b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]').status_code == 400


@pytest.mark.parametrize("mode", ["legacy", STATELESS])
async def test_the_official_client_is_served_in_both_eras(mode: str, host: FakeHost, server: Served) -> None:
    async with server.client(mode) as client:
        listed = (await client.list_tools()).tools
        carried = ["session" in tool.input_schema["properties"] for tool in listed]
        assert set(carried) == {mode != "legacy"}
        found = await client.call_tool("list_windows", {})
        assert found.content[0].text.startswith("w1 window")
        assert ("session" in found.structured_content) is (mode != "legacy")


async def test_each_mcp_session_is_a_session_of_the_daemon_and_ends_with_it(host: FakeHost, server: Served) -> None:
    async with server.client() as one, server.client() as other:
        for client in (one, other, one):
            await client.call_tool("list_windows", {})
        assert len(host.opened) == 2
        assert host.closed == []
    await asyncio.to_thread(until, lambda: len(host.closed) == 2)


async def test_a_carried_token_is_the_session_and_no_other_text_is(host: FakeHost, server: Served) -> None:
    async with server.client(STATELESS) as client:
        first = await client.call_tool("list_windows", {})
        token = first.structured_content["session"]
        assert token in first.content[0].text
        again = await client.call_tool("list_windows", {"session": token})
        beside = await client.call_tool("list_windows", {}, meta={META_KEY: token})
        assert len(host.opened) == 1
        for found in (again, beside):
            assert "session" not in found.structured_content
            assert token not in found.content[0].text
        other = (await client.call_tool("list_windows", {})).structured_content["session"]
        assert len(host.opened) == 2
        foreign = AESGCMRequestStateCodec([KEY]).seal(b"\0" * 16)
        swapped = token[:10] + other[10:]
        for bad in ("", "s1", token[:-1], token + "A", token.upper(), foreign, swapped, "v1." + "A" * 64, "\0"):
            with pytest.raises(MCPError, match="not a token of this server"):
                await client.call_tool("list_windows", {"session": bad})
        with pytest.raises(MCPError, match="must be text"):
            await client.call_tool("list_windows", {"session": 5})
        assert len(host.opened) == 2


async def test_without_ids_that_come_once_equal_calls_are_two_operations(host: FakeHost, server: Served) -> None:
    asked: list[str] = []

    async def act(_channel: Any, params: Any, _progress: Any) -> Any:
        from tests.unit.client.conftest import reply

        asked.append(params["request"]["operation_id"])
        return reply(asked[-1])

    host.script["act"] = act
    about = {
        "io.modelcontextprotocol/protocolVersion": STATELESS,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    async with server.client(STATELESS) as client:
        token = (await client.call_tool("list_windows", {})).structured_content["session"]
        message = calling(1, "invoke", {**INVOKE, "session": token}, **about)
        for _ in range(2):
            sent = post(server, message, mcp_protocol_version=STATELESS, mcp_method="tools/call", mcp_name="invoke")
            assert sent.status_code == 200, sent.text
    assert len(set(asked)) == 2


async def test_a_client_that_goes_away_cancels_its_call_in_both_eras(host: FakeHost, server: Served) -> None:
    host.script["act"] = forever
    for number, mode in enumerate(("legacy", STATELESS), 1):
        async with server.client(mode) as client:
            call = asyncio.create_task(client.call_tool("invoke", INVOKE))
            await asyncio.to_thread(until, lambda n=number: sum(name == "act" for name, _ in host.calls) == n)
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
            await asyncio.to_thread(until, lambda n=number: len(host.cancelled) == n)


async def test_another_session_can_neither_be_guessed_nor_ended(host: FakeHost, server: Served) -> None:
    async with server.client() as client:
        await client.call_tool("list_windows", {})
        assert post(server, calling(1, "list_windows"), mcp_session_id="0" * 32).status_code == 404
        gone = httpx2.delete(server.url, headers=server.headers(mcp_session_id="0" * 32))
        assert gone.status_code == 404
        await client.call_tool("list_windows", {})
        assert len(host.opened) == 1
        assert host.closed == []


async def test_a_term_ends_calls_under_way_and_lets_go_of_the_daemon(host: FakeHost) -> None:
    host.script["act"] = forever
    async with served() as server:
        answer = httpx2.post(server.url, json=initialize(), headers=server.headers(), timeout=10)
        session = answer.headers["mcp-session-id"]
        async with httpx2.AsyncClient(timeout=30) as http:
            headers = server.headers(mcp_session_id=session, mcp_protocol_version=LATEST_WITH_HANDSHAKE)
            call = asyncio.create_task(http.post(server.url, json=calling(1, "invoke", INVOKE), headers=headers))
            await asyncio.to_thread(until, lambda: any(name == "act" for name, _ in host.calls))
            server.process.send_signal(signal.SIGTERM)
            async with asyncio.timeout(10):
                assert await server.process.wait() == 0
            await asyncio.gather(call, return_exceptions=True)
        await asyncio.to_thread(until, lambda: host.cancelled == ["act"] and len(host.closed) == 1)


class _NoContext:
    def __init__(self) -> None:
        self.closed = False

    async def close(self) -> None:
        self.closed = True


class _Asked:
    request = None


def many(**options: Any) -> tuple[Many, list[Any], list[float]]:
    made: list[Any] = []
    clock = [0.0]

    def make() -> Any:
        made.append(_NoContext())
        return made[-1]

    return Many(make, AESGCMRequestStateCodec([KEY]), now=lambda: clock[0], **options), made, clock


async def test_a_session_that_nobody_uses_ends_and_one_at_work_does_not() -> None:
    sessions, made, clock = many(idle_ms=1000)
    async with sessions.use(_Asked, None) as first:
        token = first.token
        clock[0] = 5
        await sessions.reap()
        assert not made[0].closed
    clock[0] = 5.999
    await sessions.reap()
    assert len(sessions) == 1
    clock[0] = 6
    await sessions.reap()
    assert made[0].closed
    with pytest.raises(UsageError):
        async with sessions.use(_Asked, token):
            pass


async def test_the_number_of_sessions_is_bounded_and_the_longest_unused_makes_room() -> None:
    sessions, made, clock = many(sessions_max=2)
    tokens = []
    for at in (1, 2):
        clock[0] = at
        async with sessions.use(_Asked, None) as found:
            tokens.append(found.token)
    clock[0] = 3
    async with sessions.use(_Asked, tokens[0]), sessions.use(_Asked, None):
        assert [one.closed for one in made] == [False, True, False]
        assert len(sessions) == 2
        with pytest.raises(SurehandError) as refused:
            async with sessions.use(_Asked, None):
                pass
    assert refused.value.retry_safe
    await sessions.close()
    assert all(one.closed for one in made)


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("8765", ("127.0.0.1", 8765)),
        (":0", ("127.0.0.1", 0)),
        ("localhost:1", ("localhost", 1)),
        ("[::1]:65535", ("::1", 65535)),
    ],
)
def test_an_address_is_a_port_on_loopback_unless_a_host_is_named(said: str, found: tuple[str, int]) -> None:
    assert where(said) == found


@pytest.mark.parametrize("said", ["", "x", "65536", "-1", "1.5", "²", "0.0.0.0:1", "[::]:1", "localhost"])
def test_other_addresses_are_refused(said: str) -> None:
    with pytest.raises(InvalidRequest):
        where(said)


@pytest.mark.parametrize(
    ("content", "mode", "fine"),
    [
        ("a" * 32, 0o600, True),
        ("a" * 31, 0o600, False),
        ("a" * 32, 0o640, False),
        ("a " * 32, 0o600, False),
        ("ä" * 40, 0o600, False),
    ],
)
def test_a_given_token_is_long_and_private(content: str, mode: int, fine: bool, tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(content + "\n")
    path.chmod(mode)
    if fine:
        with token_file(path) as (token, _):
            assert token == content
        assert path.exists()
    else:
        with pytest.raises(SurehandError), token_file(path):
            pass


async def test_a_port_that_is_taken_and_a_token_without_http_are_said(host: FakeHost, server: Served) -> None:
    port = server.netloc.rpartition(":")[2]
    for options, code in ((["--http", port], 3), (["--token-file", "x"], 2)):
        other = await asyncio.create_subprocess_exec(SUREHAND, "mcp", *options, stderr=asyncio.subprocess.PIPE)
        _, said = await other.communicate()
        assert (other.returncode, b"Traceback" in said) == (code, False), said


@pytest.mark.parametrize("mode", ["legacy", STATELESS])
async def test_a_question_reaches_the_clients_person_and_the_answer_its_session(
    server: Served, host: FakeHost, mode: str
) -> None:
    """What counts is the daemon's (`tests/unit/runtime/test_asserted.py`); here is the way there and back."""
    said: list[dict[str, Any]] = []

    async def act(channel: FakeChannel, params: dict[str, Any], *_: Any) -> dict[str, Any]:
        operation_id = params["request"]["operation_id"]
        if not said:
            return {
                "operation_id": operation_id,
                "status": "approval_required",
                "approval": {"approval_id": f"of-{channel.session}"},
            }
        receipt = {"effect": "executed_unverified", "warnings": ["client_asserted"]}
        return {
            "operation_id": operation_id,
            "status": "succeeded",
            "terminal": {"kind": "succeeded", "receipt": receipt},
        }

    async def form(*_: Any) -> dict[str, Any]:
        return {"text": "element: button Save", "presentation_hash": "a" * 64, "expires_in_ms": 60_000}

    async def assertion(channel: FakeChannel, params: dict[str, Any], *_: Any) -> dict[str, Any]:
        assert params["approval_id"] == f"of-{channel.session}"
        said.append(params)
        return {"approval_id": params["approval_id"], "state": "approved"}

    async def person(_: Any, params: Any) -> types.ElicitResult:
        assert params.message.endswith("element: button Save")
        return types.ElicitResult(action="accept", content={"answer": "approve"})

    host.script.update({"act": act, "approval.form": form, "approval.assert": assertion})
    info = types.Implementation(name="desk", version="1")
    async with server.client(mode, client_info=info, elicitation_callback=person) as client:
        found = await client.call_tool("invoke", {**INVOKE, "window": "w1", "change": "none"})
    assert (found.structured_content or {})["status"] == "succeeded"
    # It had not been told of its session before.
    assert ("session" in (found.structured_content or {})) is (mode == STATELESS)
    presented = [params["request"]["operation_id"] for method, params in host.calls if method == "act"]
    assert len(presented) == 2
    assert len(set(presented)) == 1
    (answer,) = said
    assert (answer["client"], answer["answer"], answer["presentation_hash"]) == ("desk", "approve", "a" * 64)
    assert len({channel.session for channel in host.opened}) == 1
