"""How long from a proposal to a verified receipt, through the client and the real daemon, and where does the time go?

One isolated desktop, a daemon process and an application of each toolkit: invoke verified by the label it changes, and
set_value read back exactly, both as a program sees them that calls the client. Beside them, in the same run and on the
same application, what libatspi takes through the system's Python as its users run it: bare `do_action` (no authority,
no fence, no proof, no record), and from there until the toolkit has run the handler (by the application's own log) and
told of the label, which nobody can undercut. Below, what each step of the path takes, in a host of this process.

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
from typing import Any, NamedTuple

import surehand
from surehand.client.queries import by_role
from surehand.model.query import Filter, TextMatch
from surehand.runtime.compose import build_host
from surehand.runtime.config import Config
from surehand.testing.desktop import isolated_desktop
from surehand.testing.fixture_app import FixtureApp

#: In milliseconds: for GTK 4 what may be added to the toolkit's own delay.
GOALS = {"gtk3": (8.0, 8.0), "gtk4": (10.0, None)}
LIBATSPI_ROUNDS = 12
LIBATSPI = """
import json, sys, time
import gi
gi.require_version("Atspi", "2.0")
from gi.repository import Atspi, GLib
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
bare = []
for _ in range(rounds):
    began = time.monotonic_ns()
    button.get_action_iface().do_action(0)
    bare.append((time.monotonic_ns() - began) / 1e6)
    time.sleep(0.3)
told = []
listener = Atspi.EventListener.new(lambda event: told.append((event.any_data, time.monotonic_ns())))
listener.register("object:property-change:accessible-name")
found = []
for _ in range(rounds):
    told.clear()
    began = time.monotonic_ns()
    button.get_action_iface().do_action(0)
    while not any(str(name).startswith("Presses") for name, _ in told) and time.monotonic_ns() - began < 2e9:
        GLib.MainContext.default().iteration(False)
    found.append([began, told[-1][1] if told else None])
    ends = time.monotonic() + 0.3
    while time.monotonic() < ends:
        GLib.MainContext.default().iteration(False)
        time.sleep(0.001)
print(json.dumps({"bare": bare, "told": found}))
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
BUTTON = by_role("button", name="Count")
FIELD = (*by_role("text"), Filter(context=TextMatch(text="Name", match="contains")))


class Bare(NamedTuple):
    """What libatspi and the toolkit take by themselves: until answered, handled, told; medians in milliseconds."""

    answered: float
    handled: float
    told: float


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


def presses(number: int) -> dict[str, Any]:
    """The label that says how often the button was pressed, as a verification."""
    shown = {"filters": [{"role": "label"}, {"name": {"text": f"Presses: {number}"}}]}
    return {"kind": "appears", "query": shown}


async def until(ready: Callable[[], Any]) -> Any:
    ends = time.monotonic() + 15
    while time.monotonic() < ends:
        if found := await ready():
            return found
        await asyncio.sleep(0.02)
    raise SystemExit("no window came up")


def check(status: str, effect: str | None) -> None:
    if (status, effect) != ("succeeded", "verified"):
        raise SystemExit(f"not verified: {status}, {effect}")


# --- through the client ----------------------------------------------------------------------------------------------


async def through_client(desktop: str, rounds: int) -> tuple[list[float], list[float], int]:
    """Return what a program waits for invoke and for set_value, and how often the button was pressed."""
    async with surehand.connect(desktop=desktop, client="benchmark") as hand:
        surface = (await until(hand.surfaces))[0]["surface_id"]
        window = hand.surface(surface)

        async def act(query: tuple[Filter, ...], action: dict[str, Any], **options: Any) -> float:
            target = await window.locator(list(query)).one()
            started = time.perf_counter()
            receipt = await hand.act(action, target, **options)
            taken = (time.perf_counter() - started) * 1000
            check(receipt.status, receipt.receipt.get("effect"))
            return taken

        warm = 3
        invokes = [
            await act(BUTTON, {"kind": "invoke"}, verify=presses(number)) for number in range(1, rounds + warm + 1)
        ]
        values = [
            await act(FIELD, {"kind": "set_value", "value": f"v{number}-ünïcode-€"})
            for number in range(1, rounds + warm + 1)
        ]
        return invokes[warm:], values[warm:], rounds + warm


# --- what nobody can undercut ----------------------------------------------------------------------------------------


def bare(desktop: Any, app: FixtureApp) -> Bare:
    mark = app.mark()
    done = subprocess.run(
        ["/usr/bin/python3", "-c", LIBATSPI, app.title, str(LIBATSPI_ROUNDS)],
        env={**desktop.environment, "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if done.returncode != 0:
        raise SystemExit(done.stderr[-500:])
    found = json.loads(done.stdout)
    handled = [event.t_ns for event in app.events(control="counter", after=mark)][LIBATSPI_ROUNDS:]
    if len(handled) != LIBATSPI_ROUNDS or any(told is None for _, told in found["told"]):
        raise SystemExit("libatspi's presses were not all handled and told of")
    pairs = zip(found["told"], handled, strict=True)
    return Bare(
        statistics.median(found["bare"]),
        statistics.median((at - began) / 1e6 for (began, _), at in pairs),
        statistics.median((told - began) / 1e6 for began, told in found["told"]),
    )


# --- step by step ----------------------------------------------------------------------------------------------------


async def step_by_step(desktop: str, rounds: int, pressed: int) -> dict[str, list[float]]:
    host = await build_host(Config(), state_dir=Path(tempfile.mkdtemp()) / "state")
    channel = await host.open_channel(principal="uid:0", role="agent", client={}, desktop=desktop)

    async def windows() -> Any:
        return (await host.call(channel, "surfaces", {}))["surfaces"]

    surface = (await until(windows))[0]["surface_id"]
    button = {"filters": [{"role": "button"}, {"name": {"text": "Count"}}]}
    steps: Steps | None = None
    for number in range(1, rounds + 4):
        if number == 4:
            steps = Steps(host, channel.desk)
        found = await host.call(channel, "query", {"surface": surface, "query": button})
        request = {
            "operation_id": f"i{number}",
            "action": {"kind": "invoke"},
            "target": found["matches"][0]["ref"],
            "verification": presses(pressed + number),
        }
        reply = await host.call(channel, "act", {"request": request})
        check(reply["status"], ((reply.get("terminal") or {}).get("receipt") or {}).get("effect"))
    await host.close()
    return dict(steps.times) if steps else {}


async def measure(toolkit: str, rounds: int) -> list[list[str]]:
    async with isolated_desktop() as desktop:
        app = await FixtureApp.start(desktop, toolkit, scroll_rows=20)
        invokes, values, pressed = await through_client(desktop.name, rounds)
        floor = await asyncio.to_thread(bare, desktop, app)
        spent = await step_by_step(desktop.name, rounds, pressed + 2 * LIBATSPI_ROUNDS)
        app.close()
    print(f"{toolkit}: what one invoke spends, p50 of {rounds}")
    for name, times in spent.items():
        print(f"  {name:30} {statistics.median(times):8.2f} ms")
    invoke_goal, value_goal = GOALS.get(toolkit, (None, None))
    delay = floor.told if toolkit == "gtk4" else 0.0
    return [
        row(f"{toolkit}: invoke, verified", invokes, floor, None if invoke_goal is None else delay + invoke_goal),
        row(f"{toolkit}: set_value, verified", values, None, value_goal),
    ]


def row(name: str, times: list[float], floor: Bare | None, goal: float | None) -> list[str]:
    ours = statistics.median(times)
    judged = "" if goal is None else f"{goal:.2f} {'ok' if ours <= goal else 'SLOW'}"
    beside = ["-"] * 4 if floor is None else [f"{ms:.2f}" for ms in (*floor, ours - floor.told)]
    return [name, f"{ours:.2f}", f"{sorted(times)[len(times) * 9 // 10]:.2f}", *beside, judged]


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("toolkits", nargs="*", default=[])
    parser.add_argument("--rounds", type=int, default=30)
    given = parser.parse_args()
    heads = ["ms", "p50", "p90", "bare do_action", "until handled", "until told", "ours above that", "goal"]
    table = [heads]
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SUREHAND_RUNTIME_DIR"] = f"{folder}/run"
        try:
            for toolkit in given.toolkits or ("gtk3", "gtk4", "qt"):
                table += await measure(toolkit, given.rounds)
        finally:
            stop = [sys.executable, "-m", "surehand.cli", "stop"]
            await asyncio.to_thread(subprocess.run, stop, capture_output=True, check=False, timeout=30)
    widths = [max(len(line[column]) for line in table) for column in range(len(heads))]
    print()
    for line in table:
        print("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
