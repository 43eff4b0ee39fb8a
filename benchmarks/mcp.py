"""What does an agent pay for going through MCP: at the start, to look, and to act?

One isolated desktop, a daemon of its own, the GTK 3 fixture, `surehand mcp` over its real pipe, with a client of a few
lines, so that no other client's time is in the numbers. Beside every number stands the daemon call alone, asked over
the agent socket of the same daemon in the same rounds; the ratio is what the tools, MCP and the second process add.
It ends with 1 if a bound of the project is missed: 1 s to the first reply, 5 ms for an unchanged look at 400 elements,
25 ms for a press that is read back, with the change it caused.

Usage: python benchmarks/mcp.py [--rounds N]
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

from _mcp import Server, run

from surehand.testing.desktop import isolated_desktop
from surehand.testing.fixture_app import FixtureApp
from surehand.tools.context import Context

BOUNDS_MS = {
    "spawn → first reply": 1000.0,
    "observe, unchanged, 400 elements": 5.0,
    "invoke, verified, with its change": 25.0,
}
COUNT = {"role": "button", "name": "Count"}


async def timed(work: Callable[[], Awaitable[Any]]) -> float:
    began = time.perf_counter()
    await work()
    return (time.perf_counter() - began) * 1000


def line(name: str, through: list[float], alone: list[float] | None) -> bool:
    middle = statistics.median(through)
    worst = sorted(through)[int(len(through) * 0.95)]
    beside = (
        f"{statistics.median(alone):8.2f}  {middle / statistics.median(alone):5.2f}×" if alone else f"{'':8}  {'':6}"
    )
    bound = BOUNDS_MS.get(name)
    fine = bound is None or middle <= bound
    said = "" if bound is None else f"  ≤ {bound:g} ms{'' if fine else '  MISSED'}"
    print(f"{name:36} {middle:8.2f} {worst:8.2f} {beside}{said}", flush=True)
    return fine


async def starts(name: str, rounds: int) -> bool:
    first, listed, seen = [], [], []
    for _ in range(rounds):
        began = time.perf_counter()
        server = await Server.start("--desktop", name)
        await server.hello()
        first.append((time.perf_counter() - began) * 1000)
        listed.append(await timed(lambda server=server: server.ask("tools/list", {})))
        seen.append(await timed(lambda server=server: server.call("observe", app="gtk3_app.py")))
        await server.end()
    fine = line("spawn → first reply", first, None)
    line("tools/list", listed, None)
    line("first observe", seen, None)
    return fine


async def looks(name: str, rounds: int) -> bool:
    """The daemon is asked in the same words as the tool asks it, in turn with the tool."""
    server = await Server.start("--desktop", name)
    await server.hello()
    context = Context(desktop=name, client="bench", start=False)
    await server.call("observe", app="gtk3_app.py")
    found = await context.ask("observe", {"app": "gtk3_app.py", "full": True})
    surface, base = found["surface"]["surface_id"], found["scene_id"]
    params = {"surface": surface, "base": base, "settle": True}
    through, alone = [], []
    for _ in range(rounds):
        through.append(await timed(lambda: server.call("observe")))
        alone.append(await timed(lambda: context.ask("observe", params)))
    nodes = found["text"].count("[e")
    print(f"  ({nodes} elements shown)", flush=True)
    fine = line("observe, unchanged, 400 elements", through, alone)
    await context.close()
    await server.end()
    return fine


async def presses(name: str, rounds: int) -> bool:
    server = await Server.start("--desktop", name)
    await server.hello()
    context = Context(desktop=name, client="bench", start=False)
    window = (await server.call("list_windows", app="gtk3_app.py"))["structuredContent"]["windows"][0]["window"]
    await server.call("observe", window=window)
    await context.ask("observe", {"surface": window, "full": True})
    counted = 0
    query = {"filters": [{"role": "button"}, {"name": {"text": "Count", "match": "exact"}}]}

    def expected() -> dict[str, Any]:
        return {"contains": f"Presses: {counted}"}

    def request() -> dict[str, Any]:
        found = {"filters": [{"name": {"text": f"Presses: {counted}", "match": "exact"}}]}
        return {
            "operation_id": f"bench-{os.getpid()}-{counted}",
            "action": {"kind": "invoke"},
            "target": {"kind": "query", "surface": window, "query": query},
            "verification": {"kind": "appears", "query": found},
        }

    async def through_tool() -> None:
        found = await server.call("invoke", target=COUNT, window=window, expect={"appears": expected()})
        assert found["structuredContent"]["effect"] == "verified", found
        assert f"Presses: {counted}" in found["content"][0]["text"], found

    async def daemon_alone() -> None:
        reply = await context.act(request())
        assert reply["terminal"]["receipt"]["effect"] == "verified", reply

    through, alone = [], []
    for _ in range(rounds):
        counted += 1
        through.append(await timed(through_tool))
        counted += 1
        alone.append(await timed(daemon_alone))
    fine = line("invoke, verified, with its change", through, alone)
    await context.close()
    await server.end()
    return fine


async def main(rounds: int) -> int:
    fine = True
    print(f"{'':36} {'p50 ms':>8} {'p95 ms':>8} {'daemon':>8}  {'ratio':>6}")
    async with isolated_desktop() as desktop:
        app = await FixtureApp.start(desktop, "gtk3")
        fine &= await starts(desktop.name, max(3, rounds // 10))
        fine &= await presses(desktop.name, rounds)
        app.close()
        app = await FixtureApp.start(desktop, "gtk3", sections=["buttons"], bulk=380)
        fine &= await looks(desktop.name, rounds)
        app.close()
    return 0 if fine else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=60)
    options = parser.parse_args()
    sys.exit(run(main(options.rounds)))
