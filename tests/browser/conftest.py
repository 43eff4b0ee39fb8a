"""A host, a console process and one browser for each module; a context of its own, already inside, for each test."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Error, Page, sync_playwright

from tests.browser.kit import Console, LiveHost, console_of

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveHost]:
    """Return a host that a module shares."""
    made = LiveHost(Path(tmp_path_factory.mktemp("live")))
    made.start()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def console(live: LiveHost) -> Iterator[Console]:
    """Return the console process that a module shares."""
    with console_of(live.folder, live.keys) as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Return the distribution's Chromium."""
    if CHROMIUM is None:
        if os.environ.get("SUREHAND_CLIENTS") == "required":
            pytest.fail("no Chromium is installed: apt-get install chromium")
        pytest.skip("no Chromium is installed")
    # Chromium does not confine itself for root, and says so.
    arguments = ["--no-sandbox"] if os.getuid() == 0 else []
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield made
        made.close()


@pytest.fixture(scope="module")
def inside(browser: Browser, console: Console) -> dict[str, object]:
    """Return what a browser that came in keeps: contexts made with it are inside."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(console.link())
    page.wait_for_url("**/approvals")
    state = context.storage_state()
    context.close()
    return {"state": state, "base": page.url.rpartition("/")[0]}


@pytest.fixture
def context(browser: Browser, inside: dict[str, object]) -> Iterator[BrowserContext]:
    made = browser.new_context(storage_state=inside["state"], base_url=inside["base"])  # type: ignore[arg-type]
    made.set_default_timeout(10_000)
    yield made
    # A page that is just being loaded may keep its context from closing.
    for shown in made.pages:
        with contextlib.suppress(Error):
            shown.goto("about:blank")
    made.close()


@pytest.fixture
def page(context: BrowserContext, live: LiveHost) -> Iterator[Page]:
    """Return a tab that is inside; what its scripts complain about fails the test."""
    made = context.new_page()
    complaints: list[str] = []
    made.on("pageerror", lambda error: complaints.append(str(error)))
    made.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
    yield made
    live.forget_all()
    assert not [one for one in complaints if "Failed to load resource" not in one], complaints


Asks = Callable[..., object]
