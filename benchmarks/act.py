"""How long from a proposal to a verified receipt, through the client and the real daemon, and where does the time go?

One isolated desktop, the fixture application of each toolkit. Per toolkit: invoke verified by the label it changes,
and set_value read back exactly. Beside them, in the same run and on the same application, libatspi's bare `do_action`
(no authority, no fence, no proof, no record), through the system's Python as its users run it. Below, the time each
step of the path takes.

Usage: python benchmarks/act.py [--rounds N] [TOOLKIT...]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from surehand.runtime.compose import build_host
from surehand.runtime.config import Config
from surehand.testing.desktop import isolated_desktop
from surehand.testing.fixture_app import FixtureApp

LIBATSPI = """
import json, sys, time
import gi
gi.require_version("Atspi", "2.0")
from gi.repository import Atspi
title, rounds = sys.argv[1], int(sys.argv[2])
def walk(node):
    for index in range(node.get_child_count()):
        child = node.get_child_at_index(index)
        if child is None:
            continue
        if child.get_name() == "Count" and child.get_action_iface() is not None:
            return child
        if (found := walk(child)) is not None:
            return found
    return None
desktop = Atspi.get_desktop(0)
button = None
for index in range(desktop.get_child_count()):
    app = desktop.get_child_at_index(index)
    if app is not None and button is None:
        button = walk(app)
times = []
for _ in range(rounds):
    started = time.perf_counter()
    button.get_action_iface().do_action(0)
    times.append((time.perf_counter() - started) * 1000)
    time.sleep(0.3)
print(json.dumps(times))
"""

#: The steps of the path, by the method that takes them.
STEPS = {
    "look up, hash, idempotency": ("gateway", "_identify"),
    "authority": ("gateway", "_authorise"),
    "policy": ("gateway", "_agree"),
    "first fence": ("gateway", "_first_fence"),
    "permit and durable claim": ("gateway", "_claim"),
    "final fence and dispatch": ("actor", "perform"),
    "reading back": ("watcher", "watch"),
    "durable terminal": ("operations", "finish"),
}


def p50(times: list[float]) -> float:
    return statistics.median(times)


class Steps:
    """Adds up what each step of the path takes."""

    def __init__(self, host: Any, desk: Any) -> None:
        self.times: dict[str, list[float]] = defaultdict(list)
        parts = host.parts
        homes = {
            "gateway": parts.gateway,
            "watcher": parts.gateway.watcher,
            "operations": parts.operations,
            "actor": desk.actors[0],
        }
        for name, (home, method) in STEPS.items():
            self._wrap(name, homes[home], method)

    def _wrap(self, name: str, owner: Any, method: str) -> None:
        original: Callable[..., Any] = getattr(owner, method)

        async def asynchronous(*arguments: Any, **named: Any) -> Any:
            started = time.perf_counter()
            try:
                return await original(*arguments, **named)
            finally:
                self.times[name].append((time.perf_counter() - started) * 1000)

        def plain(*arguments: Any, **named: Any) -> Any:
            started = time.perf_counter()
            try:
                return original(*arguments, **named)
            finally:
                self.times[name].append((time.perf_counter() - started) * 1000)

        setattr(owner, method, asynchronous if asyncio.iscoroutinefunction(original) else plain)


async def find(host: Any, channel: Any, surface: str, *filters: dict[str, Any]) -> dict[str, Any]:
    found = await host.call(channel, "query", {"surface": surface, "query": {"filters": list(filters)}})
    if len(found["matches"]) != 1:
        raise SystemExit(f"{len(found['matches'])} matches for {filters}")
    return dict(found["matches"][0])


async def window(host: Any, channel: Any) -> str:
    until = time.monotonic() + 15
    while time.monotonic() < until:
        found = (await host.call(channel, "surfaces", {}))["surfaces"]
        if found:
            return str(found[0]["surface_id"])
        await asyncio.sleep(0.02)
    raise SystemExit("no window came up")


async def measure(toolkit: str, rounds: int) -> list[tuple[str, float, float]]:
    async with isolated_desktop() as desktop:
        app = await FixtureApp.start(desktop, toolkit, scroll_rows=20)
        host = await build_host(Config(), state_dir=Path(tempfile.mkdtemp()) / "state")
        channel = await host.open_channel(principal="uid:0", role="agent", client={}, desktop=desktop.name)
        surface = await window(host, channel)
        label = {"role": "label"}
        invokes: list[float] = []
        steps: Steps | None = None
        for number in range(1, rounds + 4):
            if number == 4:
                steps = Steps(host, channel.desk)
            button = await find(host, channel, surface, {"role": "button"}, {"name": {"text": "Count"}})
            shown = {"filters": [label, {"name": {"text": f"Presses: {number}"}}]}
            request = {
                "operation_id": f"i{number}",
                "action": {"kind": "invoke"},
                "target": button["ref"],
                "verification": {"kind": "appears", "query": shown},
            }
            started = time.perf_counter()
            reply = await host.call(channel, "act", {"request": request})
            invokes.append((time.perf_counter() - started) * 1000)
            check(reply)
        spent = {name: list(times) for name, times in (steps.times if steps else {}).items()}
        values = await set_values(host, channel, surface, rounds)
        bare = await asyncio.to_thread(libatspi, desktop, app, min(rounds, 15))
        await host.close()
        rows = [
            (f"{toolkit}: invoke, verified", p50(invokes[3:]), p50(bare)),
            (f"{toolkit}: set_value, verified", p50(values), p50(bare)),
        ]
        print(f"{toolkit}: what one invoke spends, p50 of {rounds}")
        for name, times in spent.items():
            print(f"  {name:30} {p50(times):8.2f} ms")
        return rows


async def set_values(host: Any, channel: Any, surface: str, rounds: int) -> list[float]:
    times = []
    for number in range(rounds):
        field = await find(host, channel, surface, {"role": "text"}, {"context": {"text": "Name", "match": "contains"}})
        request = {
            "operation_id": f"v{number}",
            "action": {"kind": "set_value", "value": f"v{number}-ünïcode-€"},
            "target": field["ref"],
        }
        started = time.perf_counter()
        reply = await host.call(channel, "act", {"request": request})
        times.append((time.perf_counter() - started) * 1000)
        check(reply)
    return times


def check(reply: dict[str, Any]) -> None:
    effect = ((reply.get("terminal") or {}).get("receipt") or {}).get("effect")
    if (reply["status"], effect) != ("succeeded", "verified"):
        raise SystemExit(f"not verified: {reply}")


def libatspi(desktop: Any, app: Any, rounds: int) -> list[float]:
    done = subprocess.run(
        ["/usr/bin/python3", "-c", LIBATSPI, app.title, str(rounds)],
        env={**desktop.environment, "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if done.returncode != 0:
        raise SystemExit(done.stderr[-500:])
    return list(json.loads(done.stdout))


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("toolkits", nargs="*", default=[])
    parser.add_argument("--rounds", type=int, default=30)
    given = parser.parse_args()
    rows = []
    for toolkit in given.toolkits or ("gtk3", "gtk4", "qt"):
        rows += await measure(toolkit, given.rounds)
    print(f"\n{'':34} {'p50':>9}  {'bare do_action':>15}  {'ratio':>6}")
    for name, ours, bare in rows:
        print(f"{name:34} {ours:7.2f}ms  {bare:13.2f}ms  {ours / bare:6.1f}")


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
