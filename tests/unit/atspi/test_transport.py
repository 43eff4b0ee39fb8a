"""The D-Bus transport: pipelining, order, bounds, and what hostile or dying peers can do to it."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from surehand import limits
from surehand.adapters.atspi import transport
from surehand.adapters.atspi.transport import BUS_NAME, BUS_PATH, Call, CallError, Failure, Signal, connect
from surehand.errors import Unavailable

from .peers import ping_signal, private_bus, reply, scripted, signed_reply

GET_ID = Call(BUS_NAME, BUS_PATH, BUS_NAME, "GetId")
CALL = Call("", "/x", "org.example.Test", "Do")


@pytest.fixture
def bus():
    with private_bus() as running:
        yield running


async def forever(peer):
    await peer.greet()
    await asyncio.Event().wait()


# --- a real bus -------------------------------------------------------------------------------------------------


async def test_a_thousand_calls_in_flight_are_answered_in_order(bus):
    connection = await connect(bus[0], hello=True)
    names = [f"org.example.N{number}" for number in range(1000)]
    calls = [Call(BUS_NAME, BUS_PATH, BUS_NAME, "NameHasOwner", "s", (name,)) for name in names]
    calls.append(Call(BUS_NAME, BUS_PATH, BUS_NAME, "NameHasOwner", "s", (connection.unique_name,)))
    replies = await connection.call_many(calls)
    assert replies == [[False]] * 1000 + [[True]]
    connection.close()


async def test_a_full_socket_delays_calls_and_loses_none(bus):
    # Stock dbus-fast closes the connection here: 64 calls of 8 KB do not fit into the socket.
    connection = await connect(bus[0], hello=True)
    long = "org.example." + "n" * 8000
    replies = await connection.call_many([Call(BUS_NAME, BUS_PATH, BUS_NAME, "GetNameOwner", "s", (long,))] * 64)
    assert [reply.kind for reply in replies] == ["gone"] * 64
    assert (await connection.call_many([GET_ID]))[0]
    connection.close()


async def test_the_peer_is_named_by_the_kernel(bus):
    connection = await connect(bus[0], hello=True)
    assert connection.peer_pid == bus[1].pid
    assert connection.peer_uid == os.getuid()
    connection.close()


async def test_an_absent_name_is_gone_and_an_unknown_method_is_refused(bus):
    connection = await connect(bus[0], hello=True)
    gone, refused = await connection.call_many(
        [Call("org.example.Nobody", "/", "org.example.X", "Do"), Call(BUS_NAME, BUS_PATH, BUS_NAME, "NoSuchMethod")]
    )
    assert isinstance(gone, Failure)
    assert gone.kind == "gone"
    assert isinstance(refused, Failure)
    assert (refused.kind, refused.name) == ("refused", "org.freedesktop.DBus.Error.UnknownMethod")
    with pytest.raises(CallError) as caught:
        await connection.call(BUS_NAME, BUS_PATH, BUS_NAME, "NoSuchMethod")
    assert not caught.value.retry_safe
    connection.close()


async def test_two_connections_answer_each_others_calls_with_a_ping_or_an_error(bus):
    one, two = await connect(bus[0], hello=True), await connect(bus[0], hello=True)
    assert await one.call(two.unique_name, "/", transport.PEER, "Ping") == []
    with pytest.raises(CallError, match="refused"):
        await one.call(two.unique_name, "/", "org.example.X", "Do")
    one.close()
    two.close()


async def test_a_stopped_peer_costs_its_own_time_out_and_a_late_answer_changes_nothing(bus):
    connection = await connect(bus[0], hello=True)
    bus[1].send_signal(signal.SIGSTOP)
    started = asyncio.get_running_loop().time()
    assert await connection.call_many([GET_ID], timeout_ms=100) == [Failure("timeout")]
    assert 0.09 <= asyncio.get_running_loop().time() - started < 1
    bus[1].send_signal(signal.SIGCONT)
    first, second = await connection.call_many([GET_ID, GET_ID])
    assert first == second
    assert len(first[0]) == 32
    connection.close()


async def test_the_death_of_the_bus_ends_waiting_calls_and_is_told_once(bus):
    ends = []
    connection = await connect(bus[0], hello=True, on_closed=ends.append)
    bus[1].send_signal(signal.SIGSTOP)
    waiting = connection.start_many([GET_ID] * 3, timeout_ms=60_000)
    bus[1].kill()
    assert await waiting == [Failure("lost")] * 3
    assert ends == [connection]
    assert await connection.call_many([GET_ID]) == [Failure("unsent")]
    with pytest.raises(CallError) as caught:
        await connection.call(*GET_ID[:4])
    assert caught.value.retry_safe
    connection.close()
    assert len(ends) == 1


async def test_signals_come_before_the_reply_that_was_sent_after_them(bus):
    seen: list[Signal] = []
    connection = await connect(bus[0], hello=True, on_signal=seen.append)
    rule = f"type='signal',sender='{BUS_NAME}',member='NameOwnerChanged'"
    await connection.call(BUS_NAME, BUS_PATH, BUS_NAME, "AddMatch", "s", (rule,))
    seen.clear()
    for number in range(20):
        await connection.call(BUS_NAME, BUS_PATH, BUS_NAME, "RequestName", "su", (f"org.example.S{number}", 0))
        assert seen[-1].body[0] == f"org.example.S{number}" or seen[-2].body[0] == f"org.example.S{number}"
    connection.close()


async def test_nobody_listening_is_unavailable(tmp_path):
    with pytest.raises(Unavailable, match="cannot connect"):
        await connect(f"unix:path={tmp_path}/nothing", hello=True)
    with pytest.raises(Unavailable, match="cannot connect"):
        await connect("tcp:host=localhost", hello=True)


# --- peers that no real application is ------------------------------------------------------------------------------


async def test_a_peer_that_refuses_our_credentials_is_unavailable(tmp_path):
    async def refuse(peer):
        await peer.reader.readuntil(b"\r\n")
        peer.writer.write(b"REJECTED EXTERNAL\r\n")
        await asyncio.Event().wait()

    async with scripted(tmp_path / "s", refuse) as address:
        with pytest.raises(Unavailable):
            await connect(address, hello=False)


async def test_a_peer_that_never_greets_is_given_up_in_time(tmp_path):
    async def mute(_):
        await asyncio.Event().wait()

    async with scripted(tmp_path / "s", mute) as address:
        with pytest.raises(Unavailable):
            await connect(address, hello=False, timeout_ms=100)


async def test_an_endless_greeting_is_cut_off(tmp_path):
    async def babble(peer):
        await peer.reader.readuntil(b"\r\n")
        peer.writer.write(b"x" * (limits.HELLO_BYTES_MAX + 1))
        await asyncio.Event().wait()

    async with scripted(tmp_path / "s", babble) as address:
        with pytest.raises(Unavailable):
            await connect(address, hello=False)


async def test_a_steady_answerer_outlives_the_silence_limit_but_not_the_total(tmp_path):
    async def steady(peer):
        await peer.greet()
        serials = [await peer.read_call() for _ in range(8)]
        for serial in serials:
            await asyncio.sleep(0.06)
            peer.send(reply(serial))
        await asyncio.Event().wait()

    async with scripted(tmp_path / "s", steady) as address:
        connection = await connect(address, hello=False)
        assert await connection.call_many([CALL] * 8, timeout_ms=200) == [["yes"]] * 8
        connection.close()
    async with scripted(tmp_path / "t", steady) as address:
        connection = await connect(address, hello=False)
        replies = await connection.call_many([CALL] * 8, timeout_ms=150, total_ms=150)
        assert replies[0] == ["yes"]
        assert replies[-1] == Failure("timeout")
        connection.close()


async def test_a_reply_from_somebody_else_is_ignored(tmp_path):
    async def forge(peer):
        await peer.greet()
        serial = await peer.read_call()
        peer.send(signed_reply(serial, ":1.66", "forged"), signed_reply(serial, ":1.5", "true"))
        await asyncio.Event().wait()

    async with scripted(tmp_path / "s", forge) as address:
        connection = await connect(address, hello=False)
        assert await connection.call_many([CALL._replace(destination=":1.5")]) == [["true"]]
        connection.close()


async def test_a_frame_at_the_limit_is_taken_and_one_past_it_is_dropped_alone(tmp_path, monkeypatch):
    def padded(serial, size):
        frame = bytes(reply(serial, body="")._marshall(False))
        return bytes(reply(serial, body="x" * (size - len(frame)))._marshall(False))

    async def send(peer):
        await peer.greet()
        first, second, third = [await peer.read_call() for _ in range(3)]
        at, past = padded(first, 4096), padded(second, 4097)
        assert (len(at), len(past)) == (4096, 4097)
        peer.send(at, past, reply(third))
        await asyncio.Event().wait()

    monkeypatch.setattr(limits, "DBUS_MESSAGE_BYTES_MAX", 4096)
    async with scripted(tmp_path / "s", send) as address:
        connection = await connect(address, hello=False)
        first, second, third = await connection.call_many([CALL] * 3, timeout_ms=200)
        assert isinstance(first, list)
        assert second == Failure("timeout")
        assert third == ["yes"]
        assert connection.frames_dropped == 1
        connection.close()


async def test_a_frame_of_nonsense_is_dropped_alone(tmp_path):
    async def send(peer):
        await peer.greet()
        first, second = await peer.read_call(), await peer.read_call()
        broken = bytearray(reply(first)._marshall(False))
        broken[16:40] = b"\xff" * 24
        peer.send(bytes(broken), reply(second))
        await asyncio.Event().wait()

    async with scripted(tmp_path / "s", send) as address:
        connection = await connect(address, hello=False)
        assert await connection.call_many([CALL] * 2, timeout_ms=200) == [Failure("timeout"), ["yes"]]
        assert connection.frames_dropped == 1
        assert not connection.closed
        connection.close()


async def test_frames_cut_anywhere_are_put_together(tmp_path):
    async def drip(peer):
        await peer.greet()
        data = bytes(reply(await peer.read_call(), body="ünïcode")._marshall(False))
        for index in range(len(data)):
            peer.writer.write(data[index : index + 1])
            await peer.writer.drain()
        await asyncio.Event().wait()

    async with scripted(tmp_path / "s", drip) as address:
        connection = await connect(address, hello=False)
        assert await connection.call_many([CALL]) == [["ünïcode"]]
        connection.close()


async def test_a_peer_that_stops_reading_costs_bounded_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "DBUS_UNSENT_BYTES_MAX", 64 * 1024)
    async with scripted(tmp_path / "s", forever) as address:
        connection = await connect(address, hello=False)
        big = CALL._replace(signature="s", body=("x" * 60_000,))
        results = [connection.start_many([big], timeout_ms=60_000) for _ in range(100)]
        refused = [one for one in results if one.done()]
        assert refused
        assert all(one.result() == [Failure("unsent")] for one in refused)
        assert connection._transport.get_write_buffer_size() < 64 * 1024 + 61_000 * 2
        connection.close()


async def test_a_value_that_does_not_fit_its_signature_raises_and_writes_nothing(tmp_path):
    got = asyncio.Event()

    async def listen(peer):
        await peer.greet()
        peer.send(reply(await peer.read_call()))
        got.set()
        await asyncio.Event().wait()

    async with scripted(tmp_path / "s", listen) as address:
        connection = await connect(address, hello=False)
        with pytest.raises(Exception, match="int"):
            connection.start_many([CALL, CALL._replace(signature="i", body=("no number",))])
        assert not connection._pending
        assert not got.is_set()
        assert await connection.call_many([CALL]) == [["yes"]]
        connection.close()


async def test_a_defect_in_a_reader_of_signals_costs_no_signal_and_no_connection(tmp_path):
    async def shout(peer):
        await peer.greet()
        serial = await peer.read_call()
        peer.send(ping_signal(1), ping_signal(2), reply(serial))
        await asyncio.Event().wait()

    seen, complaints = [], []

    def reader(received):
        seen.append(received.member)
        raise KeyError(received.member)

    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    async with scripted(tmp_path / "s", shout) as address:
        connection = await connect(address, hello=False, on_signal=reader)
        assert await connection.call_many([CALL]) == [["yes"]]
        assert seen == ["S1", "S2"]
        assert len(complaints) == 2
        connection.close()


@pytest.mark.parametrize(
    ("address", "names"),
    [
        ("unix:path=/run/bus", ["/run/bus"]),
        ("unix:abstract=/tmp/x,guid=00", ["\0/tmp/x"]),
        ("unix:guid=00,path=/a%20b%2c", ["/a b,"]),
        ("tcp:host=h;unix:path=/one;unix:path=/two", ["/one", "/two"]),
        ("", []),
        ("nonsense", []),
    ],
)
def test_addresses_are_read_as_the_specification_says(address, names):
    assert transport.parse_address(address) == names
