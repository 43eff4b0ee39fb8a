"""The client's side of the protocol: what it refuses to believe."""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest

from surehand import limits
from surehand.client.wire import Answer, Event, Wire
from surehand.core.wire.frames import frame
from surehand.core.wire.messages import Welcome
from surehand.errors import InvalidRequest, PolicyDenied, SurehandError, TooLarge, Unavailable


def greeted(**changes: Any) -> tuple[Wire, dict[str, Any]]:
    """A wire that said hello, and the welcome it waits for."""
    wire = Wire("agent", "work", "test")
    hello = json.loads(wire.hello()[4:])["hello"]
    welcome = {
        "protocol": 1,
        "nonce": hello["nonce"],
        "daemon": "0",
        "session": "s",
        "principal": "uid:0",
        "role": "agent",
        "trust_level": "A",
        "authority_mode": "daemon",
    }
    return wire, {**welcome, **changes}


def answer(wire: Wire, value: Any) -> Any:
    wire.feed(frame(value))
    return wire.next()


def test_two_hellos_have_two_nonces() -> None:
    nonces = {json.loads(Wire("agent", None, "x").hello()[4:])["hello"]["nonce"] for _ in range(10)}
    assert len(nonces) == 10


def test_a_welcome_that_repeats_our_nonce_is_believed() -> None:
    wire, welcome = greeted()
    assert isinstance(answer(wire, {"welcome": welcome}), Welcome)


@pytest.mark.parametrize("nonce", ["0" * 64, "", "x"])
def test_a_welcome_to_another_hello_is_not(nonce: str) -> None:
    wire, welcome = greeted(nonce=nonce)
    with pytest.raises(Unavailable, match="another hello"):
        answer(wire, {"welcome": welcome})


def test_a_daemon_of_another_version_is_named_with_ours() -> None:
    wire, welcome = greeted(protocol=7)
    with pytest.raises(InvalidRequest) as caught:
        answer(wire, {"welcome": welcome})
    assert caught.value.details == {"client_protocol": 1, "daemon_protocol": 7}


def test_a_refusal_of_the_hello_is_the_daemons_own_error() -> None:
    wire, _ = greeted()
    with pytest.raises(PolicyDenied, match="not this desktop"):
        answer(wire, {"error": {"code": "policy_denied", "message": "not this desktop", "retry_safe": True}})


@pytest.mark.parametrize("body", [b"[]", b"{}", b"nonsense", b'{"id":"1"}', b'"x"', b'{"result":1}', b"\xff\xfe"])
def test_a_message_that_means_nothing_ends_it(body: bytes) -> None:
    wire, welcome = greeted()
    answer(wire, {"welcome": welcome})
    wire.feed(struct.pack(">I", len(body)) + body)
    with pytest.raises(SurehandError):
        wire.next()


def test_answers_and_events_are_told_apart() -> None:
    wire, welcome = greeted()
    answer(wire, {"welcome": welcome})
    call_id, _ = wire.call("apps", {})
    assert wire.next() is None
    assert answer(wire, {"event": "progress", "id": call_id, "data": {"a": 1}}) == Event(
        id=call_id, name="progress", data={"a": 1}
    )
    got = answer(wire, {"id": call_id, "result": {"b": 2}})
    assert isinstance(got, Answer)
    assert got.get() == {"b": 2}


def test_an_unknown_error_code_keeps_its_code_and_is_not_called_safe() -> None:
    with pytest.raises(SurehandError) as caught:
        Answer(id=1, error={"code": "from_the_future", "message": "m"}).get()
    assert (caught.value.code, caught.value.retry_safe) == ("from_the_future", False)


def test_ids_are_never_used_twice_and_a_request_too_large_is_not_sent() -> None:
    wire = Wire("agent", None, "x")
    assert len({wire.call("apps", {})[0] for _ in range(100)}) == 100
    with pytest.raises(TooLarge):
        wire.call("act", {"x": "y" * 3_000_000})


@pytest.mark.parametrize(
    "params",
    [
        {"start": limits.INTEGER_MAX + 1},
        {"start": -limits.INTEGER_MAX - 1},
        {"amount": 0.5},
        {"text": "\ud800"},
        {"many": [0] * limits.JSON_NODES_MAX},
    ],
    ids=lambda params: next(iter(params)),
)
def test_what_the_daemon_would_end_the_connection_over_is_refused_here(params: Any) -> None:
    wire = Wire("agent", None, "test")
    with pytest.raises((InvalidRequest, TooLarge)):
        wire.call("read_text", params)
    number, data = wire.call("read_text", {"start": limits.INTEGER_MAX})
    assert number == 1
    assert json.loads(data[4:])["params"] == {"start": limits.INTEGER_MAX}
