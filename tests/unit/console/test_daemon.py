"""The console's one connection to the daemon: announced first, back after a break, and what it tells the pages."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from surehand import limits
from surehand.console.daemon import Daemon, Feed
from surehand.errors import Unavailable
from tests.unit.daemon.fakes import FakeHost, forever, running

PORT = 47_001


class Host(FakeHost):
    """A host that can be made to tell things."""

    def __init__(self) -> None:
        super().__init__()
        self.told: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.script["events.subscribe"] = self.subscribe

    async def subscribe(self, _channel: Any, _params: Any, progress: Any) -> dict[str, Any]:
        while True:
            progress(await self.told.get())


@contextlib.asynccontextmanager
async def listening(daemon: Daemon) -> AsyncIterator[Feed]:
    task = asyncio.create_task(daemon.run())
    try:
        with daemon.heard() as feed:
            yield feed
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        await daemon.close()


async def taken(feed: Feed) -> dict[str, Any]:
    async with asyncio.timeout(10):
        return await feed.take()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SUREHAND_RUNTIME_DIR", str(tmp_path / "run"))
    # A subscription is in flight when the daemon ends, and is given this long.
    monkeypatch.setattr(limits, "DAEMON_DRAIN_MS_MAX", 100)
    return tmp_path


@pytest.fixture
def browser() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "60"]) as running:
        yield running
        running.kill()


async def test_the_daemon_is_told_of_the_page_before_anything_is_asked_also_when_it_comes_back(folder: Path) -> None:
    daemon = Daemon(PORT)
    await daemon.shown_by(os.getpid())
    first, second = Host(), Host()
    async with listening(daemon) as feed:
        async with running(folder, first):
            assert await taken(feed) == {"event": "daemon.connected"}
            await daemon.call("approvals")
        assert await taken(feed) == {"event": "daemon.lost"}
        assert daemon.fault is not None
        with pytest.raises(Unavailable):
            await daemon.call("approvals")
        async with running(folder, second):
            assert await taken(feed) == {"event": "daemon.connected"}
            assert daemon.fault is None
            await daemon.call("approvals")
            await second.until(lambda: any(method == "approvals" for method, _ in second.calls))
    for host in (first, second):
        assert host.calls[0] == ("console", {"port": PORT, "pids": [os.getpid()]})
        assert [one.role for one in host.opened] == ["control"]


async def test_a_browser_is_told_of_once_and_forgotten_when_it_has_ended(
    folder: Path, browser: subprocess.Popen[bytes]
) -> None:
    host, daemon = Host(), Daemon(PORT)
    async with listening(daemon) as feed, running(folder, host):
        await taken(feed)
        await host.until(lambda: host.calls[-1][0] == "events.subscribe")
        before = len(host.calls)
        await daemon.shown_by(browser.pid)
        await daemon.shown_by(browser.pid)
        assert host.calls[before:] == [("console", {"port": PORT, "pids": [browser.pid]})]
        assert daemon.is_shown_by(browser.pid)
        browser.kill()
        browser.wait()
        assert not daemon.is_shown_by(browser.pid)
        assert daemon.announcement() == {"port": PORT, "pids": []}
        await daemon.shown_by(browser.pid)  # one that has ended meanwhile
        assert daemon.announcement() == {"port": PORT, "pids": []}


async def test_no_more_browsers_are_told_of_than_the_daemon_takes(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("surehand.console.daemon._birth_of", lambda pid: f"born {pid}")
    daemon = Daemon(PORT)
    for pid in range(1, limits.CONSOLE_PIDS_MAX + 1):
        await daemon.shown_by(pid)
    assert daemon.browsers == tuple(range(1, limits.CONSOLE_PIDS_MAX + 1))
    await daemon.shown_by(999)
    assert daemon.browsers == (*range(2, limits.CONSOLE_PIDS_MAX + 1), 999)
    await daemon.close()


async def test_what_happens_is_told_to_every_listener(folder: Path) -> None:
    host, daemon = Host(), Daemon(PORT)
    async with listening(daemon) as feed, running(folder, host):
        await taken(feed)
        with daemon.heard() as other:
            host.told.put_nowait({"event": "approval.requested", "approval_id": "ap1"})
            host.told.put_nowait({"dropped": 3})
            for one in (feed, other):
                assert (await taken(one))["approval_id"] == "ap1"
                assert await taken(one) == {"event": "lagged"}


async def test_a_listener_that_takes_nothing_is_told_to_look_again_and_costs_no_more(folder: Path) -> None:
    feed = Feed()
    for number in range(limits.CONSOLE_EVENTS_MAX):
        feed.put({"event": str(number)})
    assert await taken(feed) == {"event": "0"}
    feed.put({"event": "fits"})
    feed.put({"event": "one more"})
    assert await taken(feed) == {"event": "lagged"}
    feed.put({"event": "next"})
    assert await taken(feed) == {"event": "next"}


async def test_a_daemon_that_does_not_answer_is_said_to_within_the_bound(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host, daemon = Host(), Daemon(PORT)
    host.script["approvals"] = forever
    monkeypatch.setattr(limits, "CONSOLE_DAEMON_MS_MAX", 300)
    async with running(folder, host):
        with pytest.raises(Unavailable, match="does not answer"):
            await daemon.call("approvals")
        host.script["ps"] = slow
        assert await daemon.call("ps") == {"late": True}
        await daemon.close()


async def slow(*_: Any) -> dict[str, Any]:
    await asyncio.sleep(0.1)
    return {"late": True}
