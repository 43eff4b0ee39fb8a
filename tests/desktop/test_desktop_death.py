"""Everything dies with a desktop, and a desktop with its owner (spec §13)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from surehand.errors import Unavailable
from surehand.runtime._desktop_records import process_generation, records_folder
from surehand.runtime.desktops import IsolatedDesktop, list_desktops
from tests.desktop.desktop_support import (
    WAIT_S,
    alive,
    descendants,
    family,
    folders_of_this_user,
    own,
    there,
    until,
    until_gone,
)

pytestmark = pytest.mark.desktop


_OWNER = """
import asyncio, json, os, signal, sys
from surehand.runtime.desktops import IsolatedDesktop
async def main():
    async with await IsolatedDesktop.start(sandbox=sys.argv[1] == "isolated") as desktop:
        await desktop.launch(["mousepad"])
        # A program that leaves its family and its session.
        app = await desktop.launch(["/bin/sh", "-c", "setsid sh -c 'sleep 1000 & echo started' & exec sleep 1000"])
        while "started" not in app.log_text():
            await asyncio.sleep(0.01)
        child = os.fork() if sys.argv[2] == "forked" else None
        if child == 0:
            signal.pause()  # it keeps every descriptor of its parent
        print(json.dumps({
            "child": child,
            "supervisor": desktop._programs.client.pid, "display": desktop.display[1:], "name": desktop.name,
            "folder": str(desktop.folder),
        }), flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        if sys.argv[2] == "raise":
            raise RuntimeError("on purpose")
        await asyncio.sleep(1000)
asyncio.run(main())
"""


class Owner:
    """A process that owns a desktop with programs in it."""

    def __init__(self, isolation: str, ending: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", _OWNER, isolation, ending],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert self.process.stdout is not None
        self.facts = json.loads(self.process.stdout.readline())
        supervisor = self.facts["supervisor"]
        self.processes = {process_generation(supervisor) or "", *family(supervisor)}
        assert len(self.processes) >= 8

    def left(self) -> list[str]:
        return leftovers(self.facts, self.processes)

    async def ended(self) -> None:
        """Let it go on, and wait until it is gone."""
        await asyncio.to_thread(self.process.communicate, b"go on\n", WAIT_S)


@pytest.fixture
def start_owner() -> Iterator[Callable[[str, str], Owner]]:
    started: list[Owner] = []

    def start(isolation: str, ending: str) -> Owner:
        started.append(Owner(isolation, ending))
        return started[-1]

    yield start
    for owner in started:
        owner.process.kill()
        owner.process.wait()


def leftovers(facts: dict[str, Any], processes: set[str]) -> list[str]:
    number = facts["display"]
    paths = [
        facts["folder"],
        f"/tmp/.X{number}-lock",  # noqa: S108
        f"/tmp/.X11-unix/X{number}",  # noqa: S108
        *(str(path) for path in records_folder().glob(f"{facts['name']}.*")),
    ]
    return there(*paths) + alive(processes)


@pytest.mark.parametrize("isolation", ["isolated", "display_only"])
@pytest.mark.parametrize("ending", ["SIGKILL", "SIGTERM", "SIGINT", "raise"])
async def test_everything_dies_with_the_owner(
    start_owner: Callable[[str, str], Owner], isolation: str, ending: str
) -> None:
    owner = start_owner(isolation, ending)
    assert owner.left()
    if ending != "raise":
        owner.process.send_signal(signal.Signals[ending])
    await owner.ended()
    await until_gone(owner.left)
    assert owner.facts["name"] not in {record.name for record in list_desktops()}


async def test_a_forked_child_of_the_owner_does_not_keep_the_desktop_alive(
    start_owner: Callable[[str, str], Owner],
) -> None:
    owner = start_owner("isolated", "forked")
    child = owner.facts["child"]
    try:
        owner.process.kill()
        await until_gone(owner.left)
        assert process_generation(child)
    finally:
        os.kill(child, signal.SIGKILL)
        await owner.ended()


@pytest.mark.parametrize("isolation", ["isolated", "display_only"])
async def test_after_owner_and_supervisor_were_killed_the_next_look_removes_the_rest(
    start_owner: Callable[[str, str], Owner], isolation: str
) -> None:
    owner = start_owner(isolation, "SIGKILL")
    supervisor = owner.facts["supervisor"]
    owner.process.send_signal(signal.SIGSTOP)  # so that it cannot notice
    os.kill(supervisor, signal.SIGKILL)
    # A killed process runs until the system gets to it; until then it holds its lock, and a look leaves all in place.
    await until(lambda: process_generation(supervisor) is None)
    owner.process.kill()
    await owner.ended()
    assert owner.facts["name"] not in {record.name for record in list_desktops()}
    await until_gone(owner.left)  # another process of ours may be removing it at this moment


async def test_a_killed_supervisor_is_noticed_and_its_desktop_removed() -> None:
    desktop = await IsolatedDesktop.start()
    app = await desktop.launch(["sleep", "1000"])
    supervisor = desktop._programs.client.pid or 0
    processes = family(supervisor)
    os.kill(supervisor, signal.SIGKILL)
    await asyncio.wait_for(desktop.wait_closed(), WAIT_S)
    assert not desktop.is_running
    assert await app.wait(WAIT_S) == -signal.SIGKILL
    with pytest.raises(Unavailable, match="has ended"):
        await desktop.launch(["true"])
    await until_gone(lambda: alive(processes))
    await until_gone(lambda: there(desktop.folder))  # without anybody closing it
    await desktop.close()


@pytest.mark.parametrize(("command", "part"), [("/usr/bin/Xvfb", "display server"), ("etc/bus.conf", "session bus")])
async def test_without_its_display_or_bus_a_desktop_ends_and_says_why(command: str, part: str) -> None:
    desktop = await IsolatedDesktop.start()
    app = await desktop.launch(["sleep", "1000"])
    supervisor = desktop._programs.client.pid or 0
    processes = family(supervisor)
    # What confines it has it in its arguments as well; the innermost is the part itself.
    os.kill(max(pid for pid in descendants(supervisor) if command in _command_line(pid)), signal.SIGKILL)
    await asyncio.wait_for(desktop.wait_closed(), WAIT_S)
    assert await app.wait(WAIT_S) != 0
    with pytest.raises(Unavailable, match=f"the desktop has ended: its {part} ended with status"):
        await desktop.launch(["true"])
    await until_gone(lambda: alive(processes))
    await until_gone(lambda: there(desktop.folder))
    await desktop.close()


def _command_line(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_bytes().decode()


async def test_closing_twice_is_fine_and_leaves_nothing() -> None:
    desktop = await IsolatedDesktop.start()
    processes = family(desktop._programs.client.pid or 0)
    await desktop.launch(["mousepad"])
    await desktop.close()
    await desktop.close()
    assert (
        leftovers({"display": desktop.display[1:], "folder": str(desktop.folder), "name": desktop.name}, processes)
        == []
    )


@pytest.mark.parametrize("after_s", [0, 0.005, 0.02, 0.05, 0.1, 0.15, 0.2])
async def test_a_cancelled_start_leaves_nothing(after_s: float) -> None:
    before = family(os.getpid())
    task = asyncio.create_task(IsolatedDesktop.start(name=own("cancelled")))
    await asyncio.wait({task}, timeout=after_s)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await (await task).close()  # it was ready before it could be cancelled
    await until(lambda: not (folders_of_this_user() / own("cancelled")).exists())
    await until_gone(lambda: alive(family(os.getpid()) - before))
