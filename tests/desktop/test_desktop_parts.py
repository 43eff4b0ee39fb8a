"""Parts of a desktop that are missing, die or stay silent are named (C31)."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path

import pytest

from surehand.errors import Unavailable
from surehand.runtime import _desktop_bringup as bringup
from surehand.runtime import _desktop_folder as folders
from surehand.runtime._desktop_ready import NotReady, start_accessibility
from surehand.runtime.desktops import IsolatedDesktop
from surehand.testing.desktop import isolated_desktop
from tests.desktop.desktop_support import (
    WAIT_S,
    command_name,
    descendants,
    folders_of_this_user,
    own,
)

pytestmark = pytest.mark.desktop


@pytest.mark.parametrize(("program", "package"), [("Xvfb", "xvfb"), ("openbox", "openbox"), ("dbus-daemon", "dbus")])
async def test_a_missing_program_is_named_with_its_package(
    monkeypatch: pytest.MonkeyPatch, program: str, package: str
) -> None:
    from surehand.runtime import _desktop_programs as programs

    find = programs.shutil.which
    monkeypatch.setattr(programs.shutil, "which", lambda word, **kw: None if word == program else find(word, **kw))
    with pytest.raises(Unavailable, match=f"{program} is not installed") as caught:
        await IsolatedDesktop.start()
    assert caught.value.fix == f"apt install {package}"


async def test_a_missing_accessibility_service_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "a11y_launcher", lambda: None)
    with pytest.raises(Unavailable, match="accessibility service") as caught:
        await IsolatedDesktop.start(name=own("no-a11y"))
    assert caught.value.fix == "apt install at-spi2-core"
    assert not (folders_of_this_user() / own("no-a11y")).exists()


@pytest.mark.parametrize(
    ("part", "stand_in", "named"),
    [
        ("Xvfb", "/bin/false", "display server"),
        ("openbox", "/bin/false", "window manager"),
        ("dbus-daemon", "/bin/false", "session bus"),
    ],
)
async def test_a_part_that_dies_at_start_is_named_at_once_and_nothing_is_left(
    monkeypatch: pytest.MonkeyPatch, part: str, stand_in: str, named: str
) -> None:
    real = bringup.required
    monkeypatch.setattr(bringup, "required", lambda word: stand_in if word == part else real(word))
    with pytest.raises(Unavailable, match=named) as caught:
        await asyncio.wait_for(IsolatedDesktop.start(name=own("broken")), 10)
    assert caught.value.details["part"] == named
    assert not (folders_of_this_user() / own("broken")).exists()


async def test_a_silent_accessibility_bus_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """C31: it is there and never answers."""
    launcher = tmp_path / "launcher"
    launcher.write_text("#!/bin/sh\nexec sleep 1000\n")
    launcher.chmod(0o755)
    monkeypatch.setattr(folders, "a11y_launcher", lambda: str(launcher))
    with pytest.raises(Unavailable, match="accessibility bus: it is present but does not answer") as caught:
        await IsolatedDesktop.start(name=own("silent"), timeout_ms=1500, sandbox=False)
    assert caught.value.details["part"] == "accessibility bus"
    assert "at-spi2-core" in (caught.value.fix or "")
    assert not (folders_of_this_user() / own("silent")).exists()


async def test_a_silent_registry_is_told_from_a_silent_bus() -> None:
    """C31: the bus answers, its registry is stopped."""
    async with isolated_desktop() as desktop:
        registry = next(
            pid for pid in descendants(desktop._programs.client.pid or 0) if command_name(pid) == "at-spi2-registr"
        )
        os.kill(registry, signal.SIGSTOP)
        started = time.monotonic()
        with pytest.raises(NotReady, match="does not answer") as caught:
            await start_accessibility(desktop.session_bus_address, 0.5)
        assert caught.value.part == "accessibility registry"
        assert time.monotonic() - started < 2
        os.kill(registry, signal.SIGCONT)
        await start_accessibility(desktop.session_bus_address, WAIT_S)
