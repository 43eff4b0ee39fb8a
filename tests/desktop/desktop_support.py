"""What the tests of isolated desktops share: waiting for, asking and running things in and around one."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from dbus_fast import Message
from dbus_fast.aio import MessageBus

from surehand.runtime._desktop_records import process_generation
from surehand.runtime.desktops import IsolatedDesktop

PYTHON = "/usr/bin/python3"
WAIT_S = 20.0


async def until(condition: Callable[[], Any]) -> Any:
    """Poll a cheap condition of the outside world until it holds; there is no event for it."""
    deadline = time.monotonic() + WAIT_S
    while not (value := condition()):
        if time.monotonic() > deadline:
            pytest.fail(f"never happened: {condition}")
        await asyncio.sleep(0.01)
    return value


async def until_gone(what: Callable[[], list[str]]) -> None:
    """Wait until a list of what is left is empty."""
    deadline = time.monotonic() + WAIT_S
    while left := what():
        if time.monotonic() > deadline:
            pytest.fail(f"still there: {left}")
        await asyncio.sleep(0.01)


def there(*paths: Path | str) -> list[str]:
    return [str(path) for path in paths if os.path.lexists(path)]


async def ask(bus: MessageBus, destination: str, path: str, interface: str, member: str, *body: Any) -> Any:
    signature = "s" * len(body)
    reply = await bus.call(
        Message(
            destination=destination, path=path, interface=interface, member=member, signature=signature, body=list(body)
        )
    )
    assert reply is not None
    return reply.body[0] if reply.body else None


async def application_names(desktop: IsolatedDesktop) -> set[str]:
    """Return the names of the applications that the accessibility registry shows to us, outside."""
    bus = await MessageBus(bus_address=desktop.a11y_bus_address).connect()
    try:
        registry, root, accessible = (
            "org.a11y.atspi.Registry",
            "/org/a11y/atspi/accessible/root",
            "org.a11y.atspi.Accessible",
        )
        names = set()
        for name, path in await ask(bus, registry, root, accessible, "GetChildren"):
            value = await ask(bus, name, path, "org.freedesktop.DBus.Properties", "Get", accessible, "Name")
            names.add(str(getattr(value, "value", "")))
        return names
    finally:
        bus.disconnect()


async def appears(desktop: IsolatedDesktop, name: str) -> None:
    deadline = time.monotonic() + WAIT_S
    while not any(name in seen.lower() for seen in await application_names(desktop)):
        if time.monotonic() > deadline:
            pytest.fail(f"{name} never appeared: {await application_names(desktop)}")
        await asyncio.sleep(0.05)


async def run_script(desktop: IsolatedDesktop, path: Path, *arguments: str, **options: Any) -> Any:
    """Run a Python script inside and return the JSON that it printed."""
    app = await desktop.launch([PYTHON, "-I", "-B", path, *arguments], binds=[path], **options)
    code = await app.wait(WAIT_S)
    assert code == 0, app.log_text()
    return json.loads(app.log_text())


def tool(desktop: IsolatedDesktop, *words: str) -> str:
    done = subprocess.run(words, env=desktop.environment, capture_output=True, text=True, timeout=WAIT_S, check=True)
    return done.stdout


def own(name: str) -> str:
    """Return a name for a desktop that no other run of these tests uses: one user's desktops share their names."""
    return f"{name}-{os.getpid()}"


def folders_of_this_user() -> Path:
    return Path(f"/tmp/surehand-{os.getuid()}/d")  # noqa: S108


def executable(pid: int) -> str:
    return str(Path(f"/proc/{pid}/exe").readlink())


def command_name(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def descendants(pid: int) -> set[int]:
    found: set[int] = set()
    pending = [pid]
    while pending:
        parent = pending.pop()
        with contextlib.suppress(OSError):
            children = {int(word) for word in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()}
            found |= children
            pending += children
    return found


def family(pid: int) -> set[str]:
    """Return the generations of a process's descendants; a pid alone may be somebody else's soon."""
    return {found for child in descendants(pid) if (found := process_generation(child))}


def alive(generations: set[str]) -> list[str]:
    """Return those that still run, with their command names."""
    pids = {int(generation.partition(":")[0]): generation for generation in generations}
    return [f"{pid} {command_name(pid)}" for pid, known in pids.items() if process_generation(pid) == known]
