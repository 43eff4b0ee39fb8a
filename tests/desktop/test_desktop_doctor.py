"""Doctor names what is missing or silent, with its fix, and changes nothing (spec §13, C31)."""

from __future__ import annotations

import os
import signal
import socket
import time
from pathlib import Path

import pytest

from surehand.runtime import _desktop_doctor as doctor
from surehand.runtime.desktops import Fact, IsolatedDesktop, doctor_facts, list_desktops
from surehand.testing.desktop import isolated_desktop
from tests.desktop.desktop_support import command_name, descendants

pytestmark = pytest.mark.desktop


async def fact(name: str, environment: dict[str, str] | None = None) -> Fact:
    found = [fact for fact in await doctor_facts(environment) if fact.name == name]
    assert len(found) == 1
    return found[0]


async def test_this_machine_has_what_desktops_need() -> None:
    facts = await doctor_facts()
    assert [fact.name for fact in facts if fact.needed and not fact.ok] == []
    assert all(fact.detail for fact in facts)
    assert all(fact.ok or fact.fix for fact in facts)
    assert len({fact.name for fact in facts}) == len(facts)


async def test_what_is_missing_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(doctor, "PATH", str(tmp_path))
    monkeypatch.setattr(doctor, "_FONT_FOLDERS", (str(tmp_path),))
    monkeypatch.setattr(doctor, "a11y_launcher", lambda: None)
    monkeypatch.setattr(doctor, "_SYSTEM_PYTHON", str(tmp_path / "python3"))
    monkeypatch.setattr(doctor.ctypes.util, "find_library", lambda _: None)
    monkeypatch.setattr(doctor.sandboxes, "bubblewrap_problem", lambda: "bubblewrap is not installed")
    monkeypatch.setattr(doctor.sandboxes, "bubblewrap", lambda: None)
    monkeypatch.setattr(doctor.sandboxes, "can_scope_sockets", lambda: False)
    facts = {fact.name: fact for fact in await doctor_facts()}
    wanted = Path(__file__).parents[2] / "scripts" / "apt-packages.txt"
    known = {line.split("#")[0].strip() for line in wanted.read_text().splitlines()}
    for name in ("Xvfb", "openbox", "dbus-daemon", "at-spi", "fonts", "bubblewrap", "gtk3-python", "qt-python", "xcb"):
        assert not facts[name].ok
        fix = facts[name].fix or ""
        assert fix.startswith("apt install ")
        assert set(fix.removeprefix("apt install ").split()) <= known
    assert "display_only" in facts["bubblewrap"].detail
    assert "6.12" in (facts["landlock"].fix or "")


async def test_looking_starts_nothing() -> None:
    before = {record.name for record in list_desktops()}
    children = descendants(os.getpid())
    await doctor_facts(dict(os.environ))
    assert {record.name for record in list_desktops()} <= before
    assert descendants(os.getpid()) <= children


async def test_without_a_session_bus_nothing_is_wrong() -> None:
    assert (await fact("session-accessibility", {})).ok


async def test_a_working_session_is_reported_as_such(desktop: IsolatedDesktop) -> None:
    seen = await fact("session-accessibility", desktop.environment)
    assert (seen.ok, seen.detail) == (True, "the session's accessibility answers and is on")


async def test_a_silent_registry_is_found_and_delays_nobody() -> None:
    async with isolated_desktop() as desktop:
        registry = next(
            pid for pid in descendants(desktop._programs.client.pid or 0) if command_name(pid) == "at-spi2-registr"
        )
        os.kill(registry, signal.SIGSTOP)
        started = time.monotonic()
        seen = await fact("session-accessibility", desktop.environment)
        assert time.monotonic() - started < 8
        assert (seen.ok, seen.detail) == (False, "the session's accessibility registry is present but silent")
        assert "restart at-spi-dbus-bus" in (seen.fix or "")


async def test_a_silent_accessibility_bus_is_found() -> None:
    async with isolated_desktop() as desktop:
        bus = next(
            pid for pid in descendants(desktop._programs.client.pid or 0) if command_name(pid) == "at-spi-bus-laun"
        )
        os.kill(bus, signal.SIGSTOP)
        seen = await fact("session-accessibility", desktop.environment)
        assert (seen.ok, seen.detail) == (False, "the session's accessibility bus is present but silent")


async def test_a_session_bus_that_takes_connections_and_says_nothing_is_found(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "bus"))
        listener.listen()
        seen = await fact("session-accessibility", {"DBUS_SESSION_BUS_ADDRESS": f"unix:path={tmp_path / 'bus'}"})
    assert not seen.ok
    assert seen.detail.startswith("the session bus does not answer")


@pytest.mark.parametrize("address", ["unix:path=/no/such/bus", "nonsense", "tcp:host=127.0.0.1,port=1", ";;"])
async def test_a_session_bus_that_is_not_there_is_found(address: str) -> None:
    seen = await fact("session-accessibility", {"DBUS_SESSION_BUS_ADDRESS": address})
    assert not seen.ok
    assert seen.fix
