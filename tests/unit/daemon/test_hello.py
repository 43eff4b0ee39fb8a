"""The hello and those who do it wrong: nobody reaches the host before it."""

from __future__ import annotations

import asyncio
import json
import os
import struct
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from surehand import limits
from surehand.daemon.peer import Trust
from surehand.errors import PolicyDenied
from tests.unit.daemon.fakes import NONCE, FakeHost, Raw, forever, hello_value, running


async def test_a_welcome_repeats_the_nonce_and_names_principal_session_and_level(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        raw = await Raw.to(run.places.agent_socket)
        raw.send({"hello": hello_value(desktop="work")})
        welcome = (await raw.read())["welcome"]
        assert welcome["nonce"] == NONCE
        assert welcome["protocol"] == 1
        assert welcome["principal"] == f"uid:{os.getuid()}"
        assert welcome["session"] == "session-0"
        assert (welcome["role"], welcome["trust_level"], welcome["authority_mode"]) == ("agent", "A", "daemon")
        assert run.host.opened[0].desktop == "work"
        assert run.host.opened[0].client["pid"] == str(os.getpid())


async def test_the_principal_is_the_sockets_whatever_the_client_says_of_itself(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        await Raw.hello(run.places.agent_socket, client={"name": "uid:4242", "version": "root"})
        assert run.host.opened[0].principal == f"uid:{os.getuid()}"
        bad = await Raw.to(run.places.agent_socket)
        bad.send({"hello": hello_value(principal="uid:4242")})
        assert (await bad.read())["error"]["code"] == "invalid_request"
        assert len(run.host.opened) == 1


@pytest.mark.parametrize("version", [0, 2, 99, "1", None, True])
async def test_another_version_is_told_both_versions(tmp_path: Path, version: Any) -> None:
    async with running(tmp_path) as run:
        raw = await Raw.to(run.places.agent_socket)
        raw.send({"hello": {**hello_value(protocol=version), "field_of_the_future": 1}})
        error = (await raw.read())["error"]
        assert error["code"] == "invalid_request"
        assert error["details"]["daemon_protocol"] == 1
        if type(version) is int:
            assert error["details"].get("client_protocol") == version
        assert await raw.read() is None
        assert run.host.opened == []


BAD_HELLOS: dict[str, bytes] = {
    "a call first": b'{"id":1,"method":"apps","params":{}}',
    "not json": b"hello",
    "not an object": b"[]",
    "empty object": b"{}",
    "two keys": b'{"hello":{},"x":1}',
    "nonce short": json.dumps({"hello": hello_value(nonce="ab")}).encode(),
    "nonce upper": json.dumps({"hello": hello_value(nonce="AB" * 32)}).encode(),
    "unknown field": json.dumps({"hello": hello_value(extra=1)}).encode(),
    "unknown role": json.dumps({"hello": hello_value(role="root")}).encode(),
    "control on the agent socket": json.dumps({"hello": hello_value(role="control")}).encode(),
    "desktop empty": json.dumps({"hello": hello_value(desktop="")}).encode(),
    "name too long": json.dumps({"hello": hello_value(client={"name": "n" * 257})}).encode(),
    "no client": json.dumps({"hello": {k: v for k, v in hello_value().items() if k != "client"}}).encode(),
    "invalid utf-8": b'{"hello":{"protocol":1,"role":"\xff"}}',
    "lone surrogate": b'{"hello":{"protocol":1,"role":"\\ud800"}}',
    "nan": b'{"hello":{"protocol":NaN}}',
    "duplicate key": json.dumps({"hello": hello_value()})
    .encode()
    .replace(b'"protocol": 1', b'"protocol": 1, "protocol": 1'),
}


@pytest.mark.parametrize("name", BAD_HELLOS)
async def test_a_bad_hello_is_refused_and_the_host_is_not_touched(tmp_path: Path, name: str) -> None:
    async with running(tmp_path) as run:
        raw = await Raw.to(run.places.agent_socket)
        raw.body(BAD_HELLOS[name])
        assert (await raw.read())["error"]["code"] in {"invalid_request", "too_large"}
        assert await raw.read() is None
        assert run.host.opened == []
        assert run.host.calls == []


async def test_an_agent_hello_on_the_control_socket_is_refused(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        raw = await Raw.to(run.places.control_socket)
        raw.send({"hello": hello_value()})
        assert "control socket" in (await raw.read())["error"]["message"]


async def test_a_hello_at_its_size_limit_passes_and_one_byte_more_is_refused(tmp_path: Path) -> None:
    base = json.dumps({"hello": hello_value()}).encode()
    async with running(tmp_path) as run:
        raw = await Raw.to(run.places.agent_socket)
        raw.body(base + b" " * (limits.HELLO_BYTES_MAX - len(base)))
        assert "welcome" in await raw.read()
        over = await Raw.to(run.places.agent_socket)
        over.bytes(struct.pack(">I", limits.HELLO_BYTES_MAX + 1))
        assert (await over.read())["error"]["code"] == "too_large"
        assert await over.read() is None


async def test_a_peer_that_says_nothing_or_drips_bytes_is_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "HELLO_MS_MAX", 100)
    async with running(tmp_path) as run:
        silent, slow = await Raw.to(run.places.agent_socket), await Raw.to(run.places.agent_socket)
        slow.bytes(b"\x00\x00")
        for raw in (silent, slow):
            assert (await raw.read())["error"]["code"] == "timeout"
            assert await raw.read() is None
        assert run.host.opened == []


async def test_a_host_that_refuses_the_desktop_ends_the_connection_with_its_reason(tmp_path: Path) -> None:
    host = FakeHost(refuse_open=PolicyDenied("not that desktop"))
    async with running(tmp_path, host) as run:
        raw = await Raw.to(run.places.agent_socket)
        raw.send({"hello": hello_value(desktop="current")})
        assert (await raw.read())["error"]["code"] == "policy_denied"
        assert await raw.read() is None
        assert host.closed == []


async def test_a_defect_while_opening_leaks_nothing(tmp_path: Path) -> None:
    host = FakeHost(refuse_open=RuntimeError("the password is hunter2"))
    async with running(tmp_path, host) as run:
        raw = await Raw.to(run.places.agent_socket)
        raw.send({"hello": hello_value()})
        answer = await raw.read()
        assert answer["error"]["code"] == "internal"
        assert "hunter2" not in json.dumps(answer)


async def test_a_uid_that_is_not_listed_gets_no_further(tmp_path: Path) -> None:
    nobody = Trust(agent_uids=frozenset({65534}), approver_uids=frozenset({os.getuid()}))
    async with running(tmp_path, trust=nobody) as run:
        raw = await Raw.to(run.places.agent_socket)
        assert (await raw.read())["error"]["code"] == "permission_missing"
        assert await raw.read() is None
        assert run.host.opened == []
        await Raw.hello(run.places.control_socket, role="control")


async def test_calls_sent_ahead_of_the_welcome_are_answered_after_it(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        raw = await Raw.to(run.places.agent_socket)
        raw.send({"hello": hello_value()})
        raw.send({"id": 1, "method": "apps"})
        assert "welcome" in await raw.read()
        assert (await raw.read())["id"] == 1


async def test_one_connection_more_than_the_limit_is_told_so_and_a_freed_place_is_usable(tmp_path: Path) -> None:
    host = FakeHost()
    async with running(tmp_path, host) as run:
        held = [await Raw.hello(run.places.agent_socket) for _ in range(limits.CONNECTIONS_MAX)]
        extra = await Raw.to(run.places.agent_socket)
        error = (await extra.read())["error"]
        assert error["code"] == "backend_unavailable"
        assert str(limits.CONNECTIONS_MAX) in error["message"]
        assert await extra.read() is None
        assert len(host.opened) == limits.CONNECTIONS_MAX
        # Agents cannot lock the operator out.
        await Raw.hello(run.places.control_socket, role="control")
        await held[0].close()
        await host.until(lambda: len(host.closed) == 1)
        await asyncio.wait_for(_until_welcome(run.places.agent_socket), 5)


async def _until_welcome(path: str) -> None:
    while True:
        raw = await Raw.to(path)
        raw.send({"hello": hello_value()})
        if "welcome" in await raw.read():
            return


async def test_a_peer_that_leaves_while_its_channel_opens_leaves_nothing_open(tmp_path: Path) -> None:
    host = FakeHost()
    gate = asyncio.Event()
    plain = host.open_channel

    async def slow(**facts: Any) -> Any:
        await gate.wait()
        return await plain(**facts)

    host.open_channel = slow  # type: ignore[method-assign]
    async with running(tmp_path, host) as run:
        raw = await Raw.to(run.places.agent_socket)
        raw.send({"hello": hello_value()})
        await raw.close()
        gate.set()
        await host.until(lambda: len(host.closed) == 1)
        assert host.opened == host.closed


async def test_two_connections_are_two_sessions(tmp_path: Path) -> None:
    async with running(tmp_path, FakeHost({"apps": forever})) as run:
        for _ in range(2):
            await Raw.hello(run.places.agent_socket)
        assert [channel.session for channel in run.host.opened] == ["session-0", "session-1"]


def passable(folder: str) -> None:
    Path(folder).chmod(0o711)


@pytest.mark.skipif(os.getuid() != 0, reason="needs a second user")
async def test_at_level_b_another_users_agent_gets_its_own_principal_and_not_the_control_socket() -> None:
    code = (
        "import json, os, socket, struct, sys\n"
        "os.setuid(65534)\n"
        "s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])\n"
        "body = sys.argv[2].encode(); s.sendall(struct.pack('>I', len(body)) + body)\n"
        "n = struct.unpack('>I', s.recv(4))[0]; print(s.recv(n).decode())\n"
    )
    trust = Trust(agent_uids=frozenset({65534}), approver_uids=frozenset({0}))
    with tempfile.TemporaryDirectory() as name:
        passable(name)
        async with running(Path(name), trust=trust) as run:

            async def said(path: str, role: str) -> Any:
                words = (sys.executable, "-c", code, path, json.dumps({"hello": hello_value(role=role)}))
                child = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE)
                out, _ = await child.communicate()
                return json.loads(out)

            assert (await said(run.places.agent_socket, "agent"))["welcome"]["principal"] == "uid:65534"
            refused = await said(run.places.control_socket, "control")
            assert refused["error"]["code"] == "permission_missing"
            assert [channel.principal for channel in run.host.opened] == ["uid:65534"]
