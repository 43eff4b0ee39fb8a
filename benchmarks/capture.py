"""How much does a picture cost beyond the fetch of its bytes?

Starts an X server of its own (1280×800) with real windows on it and prints one table; every line is a ratio to the
bare MIT-SHM fetch of the same run.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.desktop.x11_support import Clock, display, surface, window

from surehand.adapters.x11 import png
from surehand.adapters.x11.screen import X11Screen

ROUNDS = 60


async def measure(job: Callable[[], Awaitable[object]]) -> float:
    for _ in range(5):
        await job()
    taken = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        await job()
        taken.append((time.perf_counter() - started) * 1000)
    return statistics.median(taken)


async def main() -> None:
    with display() as shown:
        shown.launch("xterm", "-T", "text", "-geometry", "100x30+20+20", "-e", "sh", "-c", "ls -l /usr/bin; sleep 600")
        shown.launch("xterm", "-T", "cover", "-bg", "blue", "-geometry", "60x20+300+200", "-e", "sleep", "600")
        screen = X11Screen(shown.name, None, Clock())
        await screen.open()
        covered = await window(screen, "text")
        await window(screen, "cover")
        _, capturer = screen._parts()
        _, data = await screen.capture(surface(covered))
        picture = await screen._thread.run(lambda _: capturer.desktop())

        async def encode() -> None:
            png.encode(picture.rows)

        lines = [
            (
                "bare MIT-SHM fetch, 1280×800",
                await measure(lambda: screen._thread.run(lambda _: capturer.raw_desktop())),
            ),
            ("fetch and RGB rows", await measure(lambda: screen._thread.run(lambda _: capturer.desktop()))),
            ("PNG of these rows", await measure(encode)),
            ("capture(desktop), all of it", await measure(lambda: screen.capture(None))),
            ("capture(covered window)", await measure(lambda: screen.capture(surface(covered)))),
            ("stacking()", await measure(screen.stacking)),
        ]
        print(f"{'step':34}{'ms, median':>12}{'× fetch':>10}")
        for name, taken in lines:
            print(f"{name:34}{taken:12.2f}{taken / lines[0][1]:10.1f}")
        print(f"PNG bytes: desktop {len(png.encode(picture.rows))}, window {len(data)}")
        await screen.close()


if __name__ == "__main__":
    asyncio.run(main())
