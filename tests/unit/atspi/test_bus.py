"""Applications on the bus: whose socket is whose, and what a slow or vanished one costs."""

from __future__ import annotations

import asyncio
import os
import signal
import time

import pytest

from surehand import limits
from surehand.adapters.atspi import letters
from surehand.adapters.atspi.bus import Application, Bus
from surehand.adapters.atspi.calls import Channel
from surehand.adapters.atspi.identity import unproven
from surehand.adapters.atspi.profile import CHROMIUM, GTK3, GTK4, OTHER, QT5, QT6, profile_of
from surehand.adapters.atspi.transport import connect
from surehand.errors import Unavailable

from .fake_app import FakeApp
from .peers import private_bus, scripted


@pytest.fixture
def bus():
    with private_bus() as running:
        yield running


async def test_a_socket_of_another_process_is_not_the_applications_own(bus):
    address, process = bus
    one = Bus(address)
    # At this socket listens the bus; an application that names it as its own would borrow its identity.
    assert await one._own_socket(address, os.getpid()) is None
    own = await one._own_socket(address, process.pid)
    assert own.peer_pid == process.pid
    own.close()


async def test_where_the_bus_does_not_know_the_process_the_socket_tells(bus):
    address, process = bus
    own = await Bus(address)._own_socket(address, None)
    assert own.peer_pid == process.pid
    own.close()


async def test_no_socket_and_a_dead_socket_are_no_own_socket(tmp_path, bus):
    one = Bus(bus[0])
    assert await one._own_socket("", 7) is None
    assert await one._own_socket(f"unix:path={tmp_path}/nobody", 7) is None


async def test_a_bus_without_a_registry_is_unavailable_with_a_fix(bus):
    one = Bus(bus[0])
    with pytest.raises(Unavailable, match="registry") as caught:
        await one.start()
    assert caught.value.fix
    await one.close()


async def test_a_bus_that_accepts_and_says_nothing_is_unavailable(tmp_path):
    async def mute(_):
        await asyncio.Event().wait()

    async with scripted(tmp_path / "bus", mute) as address:
        one = Bus(address)
        started = time.monotonic()
        with pytest.raises(Unavailable):
            await one.start()
        assert time.monotonic() - started < 2 * limits.APP_CALL_MS_MAX / 1000
        with pytest.raises(Unavailable, match="not connected"):
            await one.refresh()
        await one.close()


async def test_a_hung_application_is_hung_until_it_answers_and_is_asked_once(bus):
    fake = FakeApp()
    await fake.start(bus[0])
    connection = await connect(bus[0], hello=True)
    channel = Channel(connection, fake.owner)
    one = Application(fake.owner, unproven("fake"), "fake", OTHER, channel, None)
    assert not one.hung
    fake.silent = True
    one.call_hung()
    sent = connection.calls_sent
    one.call_hung()
    assert one.hung
    assert connection.calls_sent == sent
    assert letters.silent(one).code == "backend_unavailable"
    fake.silent = False
    fake.stop()  # gone: the bus answers for it
    await asyncio.wait_for(one.probe, 5)
    assert not one.hung
    connection.close()


async def test_a_stopped_bus_daemon_costs_its_own_time_out(bus):
    connection = await connect(bus[0], hello=True)
    bus[1].send_signal(signal.SIGSTOP)
    started = time.monotonic()
    with pytest.raises(Unavailable):
        await connect(bus[0], hello=True, timeout_ms=200)
    assert time.monotonic() - started < 1
    bus[1].send_signal(signal.SIGCONT)
    connection.close()


@pytest.mark.parametrize(
    ("toolkit", "version", "profile"),
    [
        ("gtk", "3.24.38", GTK3),
        ("GTK", "4.8.3", GTK4),
        ("Qt", "5.15.8", QT5),
        ("Qt", "6.5.0", QT6),
        ("Qt", "", QT5),
        ("Chromium", "1.0", CHROMIUM),
        ("gtk", "2.24.33", OTHER),
        ("", "", OTHER),
        ("Sauron", "1", OTHER),
    ],
)
def test_toolkits_are_known_by_what_they_say_and_unknown_ones_are_read_afresh(toolkit, version, profile):
    assert profile_of(toolkit, version) == profile


def test_only_toolkits_that_were_seen_to_survive_it_are_asked_for_all_properties():
    # Properties.GetAll crashes Qt 5.
    assert [one.family for one in (GTK3, GTK4, QT5, QT6, CHROMIUM, OTHER) if one.get_all] == ["gtk3", "gtk4"]
    assert profile_of("GTK", "4.14.2").ids
    assert not profile_of("GTK", "4.8.3").ids
