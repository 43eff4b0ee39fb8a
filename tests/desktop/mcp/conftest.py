"""A daemon of the test's own for agents over MCP, and the fixture application on the module's desktop."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from surehand.testing.desktop import IsolatedDesktop
from surehand.testing.fixture_app import FixtureApp
from tests.crash.daemon_kit import Daemon

SUREHAND = str(Path(sys.executable).with_name("surehand"))


@pytest.fixture
def own_daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Let whatever this test starts use a daemon of its own, which ends with the test."""
    folder = tmp_path / "run"
    monkeypatch.setenv("SUREHAND_RUNTIME_DIR", str(folder))
    yield folder
    subprocess.run([SUREHAND, "stop"], env={**os.environ}, capture_output=True, timeout=30, check=False)


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """Return a daemon that a module shares, in a process of its own; its clients find it."""
    made = Daemon(Path(tmp_path_factory.mktemp("daemon")))
    patch = pytest.MonkeyPatch()
    patch.setenv("SUREHAND_RUNTIME_DIR", str(made.run))
    made.start()
    yield made
    made.stop()
    made.close()
    patch.undo()


@pytest.fixture
async def app(desktop: IsolatedDesktop) -> AsyncIterator[FixtureApp]:
    found = await FixtureApp.start(desktop, "gtk3")
    yield found
    found.close()
