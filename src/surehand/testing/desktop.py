"""An isolated desktop for tests, with real applications in it.

Example (any event loop; the desktop is not bound to the one it was started in)::

    from surehand.testing.desktop import isolated_desktop

    async with isolated_desktop() as desktop:
        app = await desktop.launch(["mousepad"])
        # desktop.display, .xauthority, .cookie, .session_bus_address, .a11y_bus_address, .folder, .environment
        await app.terminate()

A fixture application that logs into the desktop's folder::

    log = desktop.folder / "app.log"
    app = await desktop.launch(["/usr/bin/python3", "/srv/fixture.py", str(log)], binds=["/srv/fixture.py"])

In this project's tests the fixture `desktop` (tests/conftest.py) is one desktop per test module; elsewhere::

    @pytest.fixture(scope="module")
    def desktop():
        with running_desktop() as desktop:
            yield desktop
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from surehand.runtime.desktops import IsolatedDesktop, LaunchedApp

__all__ = ["IsolatedDesktop", "LaunchedApp", "isolated_desktop", "running_desktop"]


@asynccontextmanager
async def isolated_desktop(**options: Any) -> AsyncIterator[IsolatedDesktop]:
    """Start a desktop (options of `IsolatedDesktop.start`) and remove it afterwards."""
    desktop = await IsolatedDesktop.start(**options)
    try:
        yield desktop
    finally:
        await desktop.close()


@contextmanager
def running_desktop(**options: Any) -> Iterator[IsolatedDesktop]:
    """Do the same without an event loop; what it yields may be used from any."""
    desktop = asyncio.run(IsolatedDesktop.start(**options))
    try:
        yield desktop
    finally:
        desktop.close_now()
