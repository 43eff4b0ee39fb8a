"""Does a thousand calls of an agent leave the daemon's memory flat?

Five applications on one isolated desktop, a daemon of its own, `surehand mcp` over its real pipe, and a mix of what
agents do: looks, queries, texts, waits, presses and edits that are read back, several steps in one call, pictures. The
work stays as much as it was: what grows in an application would be seen as growth here. What the daemon holds is read from /proc: all of it, and its heap (anonymous memory, which is what grows by what is kept).

The first calls fill what is bounded (`surehand/limits.py`): scenes and pictures that may still be acted upon, the ends of
the last 1 024 operations, the words of labels, the libraries that only pictures need. They are the warm-up, 2 000 calls
for the last of these. What grows after it are gaps between what is kept, which end as well. It ends with 1 if the daemon
has more than 90 MB with the five applications observed, or if after the warm-up a thousand calls make its heap grow by
more than 1 %.

Usage: python benchmarks/mcp_memory.py [--calls N]
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from _mcp import Server, pid_of_daemon, run

from surehand.testing.desktop import IsolatedDesktop, isolated_desktop
from surehand.testing.fixture_app import FixtureApp

PROGRAMS = (["mousepad"], ["gnome-calculator"], ["featherpad"], ["kcalc"])
FIXTURE = "gtk3_app.py"
OBSERVED_MB_MAX = 90.0
GROWTH_MAX = 0.01
THOUSAND = 1000
WARM_UP = 2 * THOUSAND
SAMPLED, LAST = 10, 100
SHOWN = 200
START_S = 30.0


class Memory(NamedTuple):
    """What a process has in memory, in MB."""

    resident: float
    heap: float

    def __str__(self) -> str:
        return f"{self.resident:6.1f} MB, heap {self.heap:6.1f} MB"

    @classmethod
    def of(cls, pid: int) -> Memory:
        words = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text("utf-8").splitlines())
        return cls(int(words["VmRSS"].split()[0]) / 1024, int(words["RssAnon"].split()[0]) / 1024)


def work(windows: dict[str, str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return calls without end: a mix, each round a little different."""
    form, editor, sums = windows[FIXTURE], windows["mousepad"], windows["gnome-calculator"]
    count = {"role": "button", "name": "Count"}
    number = 0
    while True:
        number += 1
        on = bool(number % 2)
        yield "observe", {"window": form}
        yield "invoke", {"window": form, "target": count}
        yield "set_value", {"window": form, "target": {"role": "text", "label": "Name"}, "value": f"Ada {number}"}
        yield "toggle", {"window": form, "target": {"role": "togglebutton", "name": "Bold"}, "to": on}
        yield "query", {"window": form, "role": "button"}
        yield "wait_for", {"window": form, "until": [{"exists": count}], "timeout_ms": 2000}
        yield "list_windows", {}
        yield "set_value", {"window": editor, "target": {"role": "text"}, "value": f"line {number}\n" * (number % 40)}
        yield "read_text", {"window": editor, "target": {"role": "text"}}
        yield "observe", {"window": editor}
        digit = {"role": "button", "contains": str(number % 9 + 1)}
        pressed: list[dict[str, Any]] = [{"do": "invoke", "window": sums, "target": digit} for _ in range(3)]
        yield "act", {"steps": [{"do": "press_key", "window": sums, "keys": ["Escape"]}, *pressed]}
        yield "observe", {"window": sums, "full": True}
        yield "screenshot", {"window": [form, editor, sums][number % 3], "marks": on}
        yield "list_apps", {}
        for other in ("featherpad", "kcalc"):
            yield "observe", {"window": windows[other]}
        slider = {"role": "slider", "name": "Volume"}
        yield (
            "set_value",
            {"window": form, "target": slider, "value": str(number % 100), "expect": {"value": str(number % 100)}},
        )


async def observed(server: Server) -> dict[str, str]:
    """Look at every window once; return their ids by application."""
    until = time.monotonic() + START_S
    while True:
        found = (await server.call("list_windows"))["structuredContent"]["windows"]
        windows = {Path(one["app"]).name: one["window"] for one in found}
        if {FIXTURE, *(argv[0] for argv in PROGRAMS)} <= windows.keys():
            break
        if time.monotonic() > until:
            raise SystemExit(f"not every application came up: {sorted(windows)}")
        await asyncio.sleep(0.1)
    for window in windows.values():
        await server.call("observe", window=window)
    return windows


async def measure(desktop: IsolatedDesktop, calls: int) -> bool:
    server = await (await Server.start("--desktop", desktop.name)).hello()
    windows = await observed(server)
    daemon = pid_of_daemon()
    first = Memory.of(daemon)
    fine = first.resident <= OBSERVED_MB_MAX
    print(f"{len(windows)} applications observed: {first} (≤ {OBSERVED_MB_MAX:g} MB{'' if fine else '  MISSED'})")
    print(f"{'calls':>6}  {'daemon':34}  {'surehand mcp':34}  ms/call", flush=True)
    begun, steps = time.perf_counter(), work(windows)
    #: The least that it held at the end of each thousand calls: a moment's buffers come and go.
    held: list[float] = []
    for number in range(1, calls + 1):
        tool, arguments = next(steps)
        await server.call(tool, **arguments)
        if number % SAMPLED == 0 and -number % THOUSAND < LAST:
            if -number % THOUSAND + SAMPLED >= LAST:
                held.append(Memory.of(daemon).heap)
            held[-1] = min(held[-1], Memory.of(daemon).heap)
        if number % SHOWN == 0 or number == calls:
            each = (time.perf_counter() - begun) / number * 1000
            print(
                f"{number:6}  {Memory.of(daemon)!s:34}  {Memory.of(server.process.pid)!s:34}  {each:7.1f}", flush=True
            )
    await server.end()
    print("heap at the end of each thousand calls: " + ", ".join(f"{one:.1f}" for one in held) + " MB")
    grown = max(later / before - 1 for before, later in itertools.pairwise(held[WARM_UP // THOUSAND - 1 :]))
    flat = grown <= GROWTH_MAX
    said = f"at most {grown:+.1%} in a thousand calls after the first {WARM_UP}"
    print(f"{said} (≤ {GROWTH_MAX:+.0%}{'' if flat else '  MISSED'})")
    return fine and flat


async def main(calls: int) -> int:
    async with isolated_desktop() as desktop:
        app = await FixtureApp.start(desktop, "gtk3")
        for argv in PROGRAMS:
            await desktop.launch(argv)
        try:
            fine = await measure(desktop, calls)
        finally:
            app.close()
    return 0 if fine else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=WARM_UP + THOUSAND)
    options = parser.parse_args()
    if options.calls < WARM_UP + THOUSAND:
        parser.error(f"--calls is at least {WARM_UP + THOUSAND}: {WARM_UP} warm up, and a thousand are measured")
    sys.exit(run(main(options.calls)))
