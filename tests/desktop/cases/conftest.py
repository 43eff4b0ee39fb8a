"""One desktop, one host and one hand per module; a fixture application per toolkit, as new before each test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from surehand.runtime.host import Host
from surehand.testing.desktop import IsolatedDesktop
from surehand.testing.fixture_app import TOOLKITS, FixtureApp
from tests.desktop.cases.kit import PEOPLE, Hand, On, open_host


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def host(tmp_path_factory: pytest.TempPathFactory, desktop: IsolatedDesktop) -> AsyncIterator[Host]:
    # The desktop outlives the host.
    folder: Path = tmp_path_factory.mktemp("host")
    host = await open_host(folder)
    yield host
    await host.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def hand(host: Host, desktop: IsolatedDesktop) -> Hand:
    return await Hand.connect(host, desktop)


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=TOOLKITS)
async def app(request: pytest.FixtureRequest, desktop: IsolatedDesktop) -> AsyncIterator[FixtureApp]:
    running = await FixtureApp.start(desktop, request.param, scroll_rows=40)
    yield running
    running.close()


@pytest_asyncio.fixture(loop_scope="module")
async def on(hand: Hand, app: FixtureApp) -> On:
    """Return a hand on the module's application of one toolkit, which looks as it did when it started."""
    for command in ("dialog_close", "replace_tree"):
        await app.run(command)
    await app.run("rows_set", names=PEOPLE)
    await app.run("sync")
    return await On.reach(hand, app)
