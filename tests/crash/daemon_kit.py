"""The real daemon as a process of a test's own: its folder, its life and its death, and what its journal then says."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import surehand
from surehand.adapters.journal_sqlite import SqliteJournal
from surehand.core.wire.places import places
from surehand.runtime.clock import SystemClock
from surehand.testing.fixture_app import FixtureApp
from tests.desktop.cases.kit import write_policy

SERVE = [sys.executable, "-c", "import sys; from surehand.cli import main; sys.exit(main(sys.argv[1:]))", "serve"]
VERIFY = [sys.executable, "-m", "surehand.verify.command", "--json"]
START_S = 20.0


class Daemon:
    """One daemon folder; the daemon in it lives and dies as the test says."""

    def __init__(self, folder: Path) -> None:
        self.run = folder / "run"
        self.run.mkdir(mode=0o700)
        operator = folder / "operator"
        operator.mkdir(mode=0o700)
        policy = write_policy(operator)
        self.config = operator / "config.toml"
        self.config.write_text(f'policy = "{policy}"\n')
        self.config.chmod(0o600)
        self.state = folder / "state"
        self.environment = {**os.environ, "SUREHAND_RUNTIME_DIR": str(self.run)}
        self.where = places(self.environment, os.getuid())
        self.log = (folder / "daemon.log").open("ab")
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def journal(self) -> Path:
        return self.state / "journal.sqlite"

    def start(self) -> None:
        """Start it and wait until it takes connections."""
        options = ["--config", str(self.config), "--state-dir", str(self.state), "--idle-exit", "0"]
        self.process = subprocess.Popen(
            [*SERVE, *options], env=self.environment, stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL
        )
        ends_at = time.monotonic() + START_S
        while not self._answers():
            assert self.process.poll() is None, "the daemon ended while it started"
            assert time.monotonic() < ends_at, "the daemon never came up"
            time.sleep(0.01)

    def _answers(self) -> bool:
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(self.where.agent_socket)
            except OSError:
                return False
        return True

    def kill(self) -> None:
        """End it as a power cut would."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(10)

    def stop(self) -> None:
        """End it in order."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(20)

    def close(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.kill()
        self.log.close()

    def verify(self) -> dict[str, Any]:
        """Have the independent auditor look at the journal of a daemon that does not run."""
        done = subprocess.run([*VERIFY, str(self.journal)], capture_output=True, text=True, timeout=120, check=False)
        verdict: dict[str, Any] = json.loads(done.stdout)
        assert done.returncode == 0, verdict
        return verdict

    async def operations(self) -> dict[str, list[tuple[str, dict[str, Any]]]]:
        """Return (type, payload) of the events of each operation id, in order, of a daemon that does not run."""
        journal = SqliteJournal.open(self.journal, clock=SystemClock())
        found: dict[str, list[tuple[str, dict[str, Any]]]] = defaultdict(list)
        after = 0
        try:
            while events := await journal.read(after_seq=after):
                for event in events:
                    if event.stream.startswith("operation/"):
                        found[event.stream.rpartition("/")[2]].append((event.type, event.payload))
                after = events[-1].seq
        finally:
            await journal.close()
        return found


def check_history(history: list[tuple[str, dict[str, Any]]]) -> str:
    """Assert that one operation's history is possible, and return how it ended: a terminal's kind, or `nothing`.

    A claim is released or has one terminal; nothing follows a terminal; without a claim there is none.
    """
    open_claims, terminal = 0, ""
    for kind, payload in history:
        name = kind.split(".")[1]
        if name == "claimed":
            assert not terminal, "a claim after a terminal"
            assert open_claims == 0, "two claims open at once"
            open_claims += 1
        elif name == "released":
            assert open_claims == 1, "a release without a claim"
            open_claims -= 1
        elif name == "terminal":
            assert open_claims == 1, "a terminal without a claim"
            assert not terminal, "two terminals"
            open_claims -= 1
            terminal = str(payload["kind"])
    assert open_claims == 0, "a claim without an end"
    return terminal or "nothing"


async def look(hand: surehand.AsyncHand, app: FixtureApp) -> surehand.Scene:
    """Observe the application's window, waiting until it is listed."""
    async with asyncio.timeout(15):
        while True:
            for one in await hand.surfaces():
                if one["title"] == app.title:
                    return await hand.observe(surface=one["surface_id"], settle=False)
            await asyncio.sleep(0.01)


def targets_of(scene: surehand.Scene) -> dict[str, surehand.Target]:
    """Return the one field that has the keyboard, and the button that counts."""
    found = {
        "text": [one for one in scene.targets if one.role == "text" and "focused" in one.states],
        "press": [one for one in scene.targets if (one.role, one.name) == ("button", "Count")],
    }
    assert all(len(matches) == 1 for matches in found.values()), found
    return {what: matches[0] for what, matches in found.items()}
