"""Applications in a sandbox of their own are proven by their process, whatever their toolkit offers (spec §6.2)."""

from __future__ import annotations

import asyncio
import time

import pytest

from surehand.adapters.atspi.observer import AtspiObserver
from surehand.model.scene import Surface
from surehand.testing.desktop import IsolatedDesktop

pytestmark = pytest.mark.desktop

#: GTK 3 offers a socket of its own, whose other end proves the process; the others leave it to the bus.
APPLICATIONS = ("mousepad", "gnome-calculator", "featherpad")


async def windows(observer: AtspiObserver, count: int) -> tuple[Surface, ...]:
    end = time.monotonic() + 30
    found = await observer.surfaces()
    while len(found) < count and time.monotonic() < end:
        await asyncio.sleep(0.02)
        found = await observer.surfaces()
    return found


async def test_every_toolkit_is_proven_by_executable_and_by_the_hosts_pid(desktop: IsolatedDesktop) -> None:
    if desktop.isolation != "isolated":
        pytest.skip("without bubblewrap there is no namespace to look through")
    pids = {f"exe:/usr/bin/{name}": (await desktop.launch([name])).pid for name in APPLICATIONS}
    observer = AtspiObserver(desktop.a11y_bus_address, desktop=desktop.name)
    await observer.start()
    try:
        found = await windows(observer, len(APPLICATIONS))
        assert {one.app.key: one.app.pid for one in found} == pids
    finally:
        await observer.close()
