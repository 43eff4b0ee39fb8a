"""Everything dies with a desktop, and a desktop with its owner (spec §13)."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from typing import Any

import pytest

from surehand.errors import Unavailable
from surehand.runtime._desktop_records import process_generation, records_folder
from surehand.runtime.desktops import IsolatedDesktop, list_desktops
from tests.desktop.desktop_support import (
    WAIT_S,
    descendants,
    folders_of_this_user,
    there,
    until,
)

pytestmark = pytest.mark.desktop


_OWNER = """
import asyncio, json, sys
from surehand.runtime.desktops import IsolatedDesktop
async def main():
    async with await IsolatedDesktop.start(sandbox=sys.argv[1] == "isolated") as desktop:
        await desktop.launch(["mousepad"])
        # A program that leaves its family and its session.
        app = await desktop.launch(["/bin/sh", "-c", "setsid setsid sleep 1000 & echo started; exec sleep 1000"])
        while "started" not in app.log_text():
            await asyncio.sleep(0.01)
        print(json.dumps({
            "supervisor": desktop._programs.client.pid, "display": desktop.display[1:], "name": desktop.name,
            "folder": str(desktop.folder),
        }), flush=True)
        if sys.argv[2] == "raise":
            raise RuntimeError("on purpose")
        await asyncio.sleep(1000)
asyncio.run(main())
"""


async def start_owner(isolation: str, ending: str) -> tuple[asyncio.subprocess.Process, dict[str, Any], set[int]]:
    owner = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _OWNER, isolation, ending, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert owner.stdout is not None
    facts = json.loads(await asyncio.wait_for(owner.stdout.readline(), WAIT_S))
    pids = {facts["supervisor"], *descendants(facts["supervisor"])}
    assert len(pids) >= 8
    return owner, facts, pids


def leftovers(facts: dict[str, Any], pids: set[int]) -> list[str]:
    number = facts["display"]
    paths = [
        facts["folder"],
        f"/tmp/.X{number}-lock",  # noqa: S108
        f"/tmp/.X11-unix/X{number}",  # noqa: S108
        *(str(path) for path in records_folder().glob(f"{facts['name']}.*")),
    ]
    return there(*paths) + [f"pid {pid}" for pid in pids if process_generation(pid)]


@pytest.mark.parametrize("isolation", ["isolated", "display_only"])
@pytest.mark.parametrize("ending", ["SIGKILL", "SIGTERM", "SIGINT", "raise"])
async def test_everything_dies_with_the_owner(isolation: str, ending: str) -> None:
    owner, facts, pids = await start_owner(isolation, ending)
    if ending != "raise":
        assert leftovers(facts, pids)
        owner.send_signal(signal.Signals[ending])
    await asyncio.wait_for(owner.wait(), WAIT_S)
    await until(lambda: not leftovers(facts, pids))
    assert facts["name"] not in {record.name for record in list_desktops()}


async def test_after_owner_and_supervisor_were_killed_the_next_look_removes_the_rest() -> None:
    owner, facts, pids = await start_owner("isolated", "SIGKILL")
    os.kill(owner.pid, signal.SIGSTOP)  # so that it cannot notice
    os.kill(facts["supervisor"], signal.SIGKILL)
    owner.kill()
    await asyncio.wait_for(owner.wait(), WAIT_S)
    await until(lambda: not any(process_generation(pid) for pid in pids))
    assert there(facts["folder"])
    assert facts["name"] not in {record.name for record in list_desktops()}
    assert leftovers(facts, pids) == []


async def test_a_killed_supervisor_is_noticed_and_its_desktop_removed() -> None:
    desktop = await IsolatedDesktop.start()
    app = await desktop.launch(["sleep", "1000"])
    supervisor = desktop._programs.client.pid or 0
    pids = descendants(supervisor)
    os.kill(supervisor, signal.SIGKILL)
    await asyncio.wait_for(desktop.wait_closed(), WAIT_S)
    assert not desktop.is_running
    assert await app.wait(WAIT_S) == -signal.SIGKILL
    with pytest.raises(Unavailable, match="has ended"):
        await desktop.launch(["true"])
    await until(lambda: not any(process_generation(pid) for pid in pids))
    await desktop.close()
    assert not desktop.folder.exists()


async def test_closing_twice_is_fine_and_leaves_nothing() -> None:
    desktop = await IsolatedDesktop.start()
    pids = descendants(desktop._programs.client.pid or 0)
    await desktop.launch(["mousepad"])
    await desktop.close()
    await desktop.close()
    assert leftovers({"display": desktop.display[1:], "folder": str(desktop.folder), "name": desktop.name}, pids) == []


async def test_a_cancelled_start_leaves_nothing() -> None:
    task = asyncio.create_task(IsolatedDesktop.start(name="cancelled"))
    folder = folders_of_this_user() / "cancelled"
    await until(folder.exists)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: not folder.exists())
