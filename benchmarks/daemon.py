"""What does the daemon cost: to start, to keep, over ten thousand operations; and what does importing the client cost?

Starts the real daemon in folders of its own, a desktop with five applications, and asks it as clients do. Beside the
start stands a bare interpreter's; beside the import stands `import json`.

Usage: python benchmarks/daemon.py [--operations N]
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

APPS = (["mousepad"], ["gnome-calculator"], ["featherpad"], ["kcalc"], ["mousepad", "--disable-server"])


def timed(argv: list[str], rounds: int = 7) -> float:
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        subprocess.run(argv, check=True, capture_output=True)
        times.append((time.perf_counter() - started) * 1000)
    return statistics.median(times)


def rss_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text("utf-8").splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    raise SystemExit("the daemon is gone")


def imports() -> None:
    bare = timed([sys.executable, "-c", "pass"])
    rows = [(name, timed([sys.executable, "-c", f"import {name}"]) - bare) for name in ("surehand", "json", "asyncio")]
    print(f"bare interpreter {bare:.0f} ms; on top of it:")
    for name, ms in rows:
        print(f"  import {name:10} {ms:6.1f} ms")


def daemon(operations: int) -> None:
    import surehand
    from surehand.testing.desktop import running_desktop

    started = time.perf_counter()
    with surehand.open() as hand:
        hand.status("none")
        ready = (time.perf_counter() - started) * 1000
    bare = timed([sys.executable, "-c", "pass"], 3)
    print(f"daemon: from nothing to its first answer {ready:.0f} ms ({ready / bare:.0f} × a bare interpreter)")
    import asyncio

    with running_desktop() as desktop:
        for argv in APPS:
            asyncio.run(desktop.launch(argv))
        with surehand.open(desktop=desktop.name) as hand:
            wait_for(lambda: len(hand.surfaces()) >= 4)
            pid = pid_of_daemon()
            for surface in hand.surfaces():
                hand.observe(surface=surface["surface_id"])
            print(f"daemon: {rss_mb(pid):.0f} MB resident with {len(hand.surfaces())} windows observed")
            editor = hand.surfaces("mousepad")[0]["surface_id"]
            text = hand.surface(editor).get_by_role("text")
            # The first half fills what is bounded: caches of scenes, of the journal and of its file.
            settled, before, begun = operations - operations // 2, rss_mb(pid), time.perf_counter()
            for number in range(operations):
                if number == settled:
                    before = rss_mb(pid)
                text.set_value(f"line {number}")
            each = (time.perf_counter() - begun) / operations * 1000
            print(
                f"daemon: {rss_mb(pid) - before:+.2f} MB over the last {operations - settled} of {operations}"
                f" operations (verified set_value, {each:.1f} ms each), {rss_mb(pid):.0f} MB at the end"
            )


def wait_for(condition: object, limit_s: float = 20) -> None:
    until = time.monotonic() + limit_s
    while not condition():  # type: ignore[operator]
        if time.monotonic() > until:
            raise SystemExit("nothing came up")
        time.sleep(0.05)


def pid_of_daemon() -> int:
    runtime = os.environ["SUREHAND_RUNTIME_DIR"]
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal():
            continue
        try:
            words = (folder / "environ").read_bytes()
            command = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if f"SUREHAND_RUNTIME_DIR={runtime}".encode() in words and b"surehand.daemon" in command:
            return int(folder.name)
    raise SystemExit("no daemon")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operations", type=int, default=500, help="10000 takes minutes (default: 500)")
    given = parser.parse_args()
    imports()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SUREHAND_RUNTIME_DIR"] = f"{folder}/run"
        try:
            daemon(given.operations)
        finally:
            subprocess.run([sys.executable, "-m", "surehand.cli", "stop"], capture_output=True, check=False, timeout=30)


if __name__ == "__main__":
    main()
