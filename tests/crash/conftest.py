"""The real daemon in a folder of a test's own, and an application that it reaches."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from surehand.testing.desktop import IsolatedDesktop
from surehand.testing.fixture_app import FixtureApp
from tests.crash.daemon_kit import Daemon


@pytest.fixture
def daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Daemon]:
    made = Daemon(tmp_path)
    # Where this process's own clients look.
    monkeypatch.setenv("SUREHAND_RUNTIME_DIR", str(made.run))
    yield made
    made.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def app(desktop: IsolatedDesktop) -> AsyncIterator[FixtureApp]:
    running = await FixtureApp.start(desktop, "gtk3", sections=["buttons", "text", "values"])
    yield running
    running.close()
