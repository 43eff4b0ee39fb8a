"""Calls on a connection: each ends once, none is confused with another, none outlives its peer."""

from __future__ import annotations

import asyncio
import gc
import json
import struct
from pathlib import Path
from typing import Any

import pytest

from surehand import limits
from surehand.core.wire.methods import AGENT_METHODS, CONTROL_METHODS
from surehand.errors import AmbiguousTarget
from tests.unit.daemon.fakes import FakeHost, Raw, forever, running


async def test_answers_carry_their_calls_id_in_whatever_order_they_end(tmp_path: Path) -> None:
    gate = asyncio.Event()

    async def wait(*_: Any) -> dict[str, Any]:
        await gate.wait()
        return {"late": True}

    async with running(tmp_path, FakeHost({"wait": wait})) as run:
        raw = await Raw.hello(run.places.agent_socket)
        raw.send({"id": 7, "method": "wait", "params": {}})
        raw.send({"id": 8, "method": "apps", "params": {}})
        assert (await raw.read())["id"] == 8
        gate.set()
        assert await raw.read() == {"id": 7, "result": {"late": True}}


@pytest.mark.parametrize("method", sorted(CONTROL_METHODS - AGENT_METHODS))
async def test_a_control_method_is_unknown_on_the_agent_socket(tmp_path: Path, method: str) -> None:
    async with running(tmp_path) as run:
        raw = await Raw.hello(run.places.agent_socket)
        raw.send({"id": 1, "method": method, "params": {}})
        raw.send({"id": 2, "method": "no_such_thing", "params": {}})
        foreign, nonsense = (await raw.read())["error"], (await raw.read())["error"]
        assert foreign["code"] == "invalid_request"
        # Not a hint that the method exists elsewhere.
        assert foreign["message"].replace(method, "no_such_thing") == nonsense["message"]
        assert run.host.calls == []


@pytest.mark.parametrize("method", sorted(AGENT_METHODS - CONTROL_METHODS))
async def test_an_agent_method_is_unknown_on_the_control_socket(tmp_path: Path, method: str) -> None:
    async with running(tmp_path) as run:
        raw = await Raw.hello(run.places.control_socket, role="control")
        raw.send({"id": 1, "method": method, "params": {}})
        assert (await raw.read())["error"]["code"] == "invalid_request"
        assert run.host.calls == []


async def test_a_typed_refusal_travels_whole(tmp_path: Path) -> None:
    async def act(*_: Any) -> dict[str, Any]:
        raise AmbiguousTarget("two match", observed={"candidates": ["button Open", "button Open"]}, fix="say which")

    async with running(tmp_path, FakeHost({"act": act})) as run:
        raw = await Raw.hello(run.places.agent_socket)
        raw.send({"id": 1, "method": "act", "params": {}})
        assert await raw.read() == {
            "id": 1,
            "error": {
                "code": "ambiguous_target",
                "message": "two match",
                "retry_safe": True,
                "fix": "say which",
                "observed": {"candidates": ["button Open", "button Open"]},
            },
        }


async def test_a_defect_ends_its_call_only_and_is_neither_told_nor_logged_with_content(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    content = "sdrawkcab eman"[::-1]  # so that the traceback does not quote it

    async def act(*_: Any) -> dict[str, Any]:
        raise RuntimeError(content)

    async with running(tmp_path, FakeHost({"act": act})) as run:
        raw = await Raw.hello(run.places.agent_socket)
        raw.send({"id": 1, "method": "act", "params": {}})
        error = (await raw.read())["error"]
        assert (error["code"], error["retry_safe"]) == ("internal", False)
        assert content not in json.dumps(error)
        assert content not in caplog.text
        assert "RuntimeError" in caplog.text
        raw.send({"id": 2, "method": "apps", "params": {}})
        assert (await raw.read())["id"] == 2


BAD_MESSAGES: dict[str, bytes] = {
    "not json": b"{",
    "no id": b'{"method":"apps","params":{}}',
    "id zero": b'{"id":0,"method":"apps"}',
    "id negative": b'{"id":-1,"method":"apps"}',
    "id too large": b'{"id":9007199254740992,"method":"apps"}',
    "id fraction": b'{"id":1.5,"method":"apps"}',
    "id text": b'{"id":"1","method":"apps"}',
    "id null": b'{"id":null,"method":"apps"}',
    "id true": b'{"id":true,"method":"apps"}',
    "method missing": b'{"id":1}',
    "method empty": b'{"id":1,"method":""}',
    "method number": b'{"id":1,"method":1}',
    "method long": b'{"id":1,"method":"' + b"m" * 257 + b'"}',
    "params list": b'{"id":1,"method":"apps","params":[]}',
    "params null": b'{"id":1,"method":"apps","params":null}',
    "unknown field": b'{"id":1,"method":"apps","principal":"uid:0"}',
    "duplicate key": b'{"id":1,"id":2,"method":"apps"}',
    "duplicate key inside": b'{"id":1,"method":"apps","params":{"a":1,"a":2}}',
    "float inside": b'{"id":1,"method":"apps","params":{"a":1.0}}',
    "nan inside": b'{"id":1,"method":"apps","params":{"a":NaN}}',
    "surrogate inside": b'{"id":1,"method":"apps","params":{"a":"\\udc00"}}',
    "too deep": b'{"id":1,"method":"apps","params":{"a":' + b"[" * 40 + b"]" * 40 + b"}}",
    "very deep": b'{"id":1,"method":"apps","params":{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}}",
    "too wide": b'{"id":1,"method":"apps","params":{"a":[' + b"1," * 20_001 + b"1]}}",
    "cancel of text": b'{"cancel":"1"}',
    "cancel with more": b'{"cancel":1,"id":2}',
    "another hello": b'{"hello":{}}',
}


@pytest.mark.parametrize("name", BAD_MESSAGES)
async def test_a_malformed_message_ends_the_connection_and_does_nothing(tmp_path: Path, name: str) -> None:
    host = FakeHost()
    async with running(tmp_path, host) as run:
        raw = await Raw.hello(run.places.agent_socket)
        raw.body(BAD_MESSAGES[name])
        answer = await raw.read()
        assert answer["error"]["code"] in {"invalid_request", "too_large"}
        assert "id" not in answer
        assert await raw.read() is None
        await host.until(lambda: len(host.closed) == 1)
        assert host.calls == []


async def test_an_oversized_request_is_refused_from_its_header(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        raw = await Raw.hello(run.places.agent_socket)
        raw.bytes(struct.pack(">I", limits.REQUEST_BYTES_MAX + 1))
        assert (await raw.read())["error"]["code"] == "too_large"
        assert await raw.read() is None


async def test_a_request_at_the_size_limit_passes(tmp_path: Path) -> None:
    empty = b'{"id":1,"method":"apps","params":{"a":""}}'
    async with running(tmp_path) as run:
        raw = await Raw.hello(run.places.agent_socket)
        raw.body(empty[:-3] + b"x" * (limits.REQUEST_BYTES_MAX - len(empty)) + empty[-3:])
        assert (await raw.read())["id"] == 1


async def test_an_id_already_in_flight_ends_the_connection_without_an_answer_that_could_be_mistaken(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    host = FakeHost({"act": forever})
    async with running(tmp_path, host) as run:
        raw = await Raw.hello(run.places.agent_socket)
        raw.send({"id": 1, "method": "act", "params": {}})
        raw.send({"id": 1, "method": "act", "params": {}})
        answer = await raw.read()
        assert "id" not in answer
        assert answer["error"]["details"] == {"id": 1}
        assert await raw.read() is None
        await host.until(lambda: len(host.closed) == 1)
        assert len(host.calls) <= 1
        assert len(host.cancelled) == len(host.calls)
    gc.collect()
    assert caplog.text == ""


async def test_an_id_may_be_used_again_after_its_answer(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        raw = await Raw.hello(run.places.agent_socket)
        for _ in range(3):
            raw.send({"id": 1, "method": "apps", "params": {}})
            assert (await raw.read())["id"] == 1


async def test_a_full_connection_refuses_one_more_call_and_still_takes_a_cancel(tmp_path: Path) -> None:
    host = FakeHost({"wait": forever})
    async with running(tmp_path, host) as run:
        raw = await Raw.hello(run.places.agent_socket)
        most = limits.CONNECTION_REQUESTS_MAX
        for number in range(1, most + 1):
            raw.send({"id": number, "method": "wait", "params": {}})
        await host.until(lambda: len(host.calls) == most)
        raw.send({"id": most + 1, "method": "apps", "params": {}})
        answer = await raw.read()
        assert (answer["id"], answer["error"]["code"]) == (most + 1, "too_large")
        raw.send({"cancel": 1})
        assert (await raw.read())["error"]["code"] == "cancelled"
        raw.send({"id": most + 2, "method": "apps", "params": {}})
        assert (await raw.read())["id"] == most + 2


async def test_a_cancel_of_an_ended_or_unknown_call_is_ignored(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        raw = await Raw.hello(run.places.agent_socket)
        raw.send({"cancel": 5})
        raw.send({"id": 5, "method": "apps", "params": {}})
        assert "result" in await raw.read()


async def test_a_host_that_finishes_in_spite_of_a_cancel_has_its_outcome_told(tmp_path: Path) -> None:
    async def act(*_: Any) -> dict[str, Any]:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return {"status": "succeeded"}
        return {}

    host = FakeHost({"act": act})
    async with running(tmp_path, host) as run:
        raw = await Raw.hello(run.places.agent_socket)
        raw.send({"id": 1, "method": "act", "params": {}})
        await host.until(lambda: len(host.calls) == 1)
        raw.send({"cancel": 1})
        assert await raw.read() == {"id": 1, "result": {"status": "succeeded"}}


async def test_a_lost_peer_has_its_calls_cancelled_and_its_channel_closed_once(tmp_path: Path) -> None:
    host = FakeHost({"act": forever, "wait": forever})
    async with running(tmp_path, host) as run:
        raw = await Raw.hello(run.places.agent_socket)
        raw.send({"id": 1, "method": "act", "params": {}})
        raw.send({"id": 2, "method": "wait", "params": {}})
        await host.until(lambda: len(host.calls) == 2)
        await raw.close()
        await host.until(lambda: len(host.closed) == 1)
        assert sorted(host.cancelled) == ["act", "wait"]
    assert len(host.closed) == 1


async def test_a_half_closed_peer_counts_as_gone(tmp_path: Path) -> None:
    host = FakeHost({"act": forever})
    async with running(tmp_path, host) as run:
        raw = await Raw.hello(run.places.agent_socket)
        raw.send({"id": 1, "method": "act", "params": {}})
        await host.until(lambda: len(host.calls) == 1)
        raw.writer.write_eof()
        await host.until(lambda: len(host.closed) == 1)


async def test_a_peer_without_a_hello_leaves_no_channel_to_close(tmp_path: Path) -> None:
    host = FakeHost()
    async with running(tmp_path, host) as run:
        raw = await Raw.to(run.places.agent_socket)
        await raw.close()
        second = await Raw.hello(run.places.agent_socket)
        await second.close()
        await host.until(lambda: len(host.closed) == 1)
        assert host.opened == host.closed


async def test_a_reader_that_stops_reading_is_cut_off_and_memory_stays_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "UNSENT_BYTES_MAX", 4_000_000)
    big = "x" * 1_000_000

    async def observe(*_: Any) -> dict[str, Any]:
        return {"text": big}

    host = FakeHost({"observe": observe})
    async with running(tmp_path, host) as run:
        raw = await Raw.hello(run.places.agent_socket)
        raw.writer.transport.pause_reading()
        for number in range(1, 60):
            raw.send({"id": number, "method": "observe", "params": {}})
        await host.until(lambda: len(host.closed) == 1, 10)
        assert len(host.calls) < 60


async def test_a_reader_that_takes_nothing_for_too_long_is_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "WRITE_STALL_MS_MAX", 100)

    async def observe(*_: Any) -> dict[str, Any]:
        return {"text": "x" * 1_000_000}

    host = FakeHost({"observe": observe})
    async with running(tmp_path, host) as run:
        raw = await Raw.hello(run.places.agent_socket)
        raw.writer.transport.pause_reading()
        raw.send({"id": 1, "method": "observe", "params": {}})
        await host.until(lambda: len(host.closed) == 1, 10)


async def test_an_answer_too_large_to_send_does_not_read_as_safe_to_repeat(tmp_path: Path) -> None:
    async def act(*_: Any) -> dict[str, Any]:
        return {"text": "x" * (limits.FRAME_BYTES_MAX + 1)}

    async with running(tmp_path, FakeHost({"act": act})) as run:
        raw = await Raw.hello(run.places.agent_socket)
        raw.send({"id": 1, "method": "act", "params": {}})
        error = (await raw.read())["error"]
        assert (error["code"], error["retry_safe"]) == ("too_large", False)


async def test_progress_comes_before_the_answer_and_never_after(tmp_path: Path) -> None:
    kept: list[Any] = []

    async def wait(_channel: Any, _params: Any, progress: Any) -> dict[str, Any]:
        kept.append(progress)
        progress({"step": 1})
        progress({"step": 2})
        return {"done": True}

    async with running(tmp_path, FakeHost({"wait": wait})) as run:
        raw = await Raw.hello(run.places.agent_socket)
        raw.send({"id": 3, "method": "wait", "params": {}})
        assert await raw.read() == {"event": "progress", "id": 3, "data": {"step": 1}}
        assert await raw.read() == {"event": "progress", "id": 3, "data": {"step": 2}}
        assert await raw.read() == {"id": 3, "result": {"done": True}}
        kept[0]({"step": 3})
        raw.send({"id": 4, "method": "apps", "params": {}})
        assert (await raw.read())["id"] == 4


async def test_bytes_one_at_a_time_are_answered_like_bytes_at_once(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        raw = await Raw.hello(run.places.agent_socket)
        body = b'{"id":9,"method":"apps","params":{}}'
        for byte in struct.pack(">I", len(body)) + body:
            raw.bytes(bytes([byte]))
            await raw.writer.drain()
        assert (await raw.read())["id"] == 9
