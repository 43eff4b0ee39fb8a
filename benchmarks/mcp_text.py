"""What does an agent read in a task of twenty steps, and what would it read if every step gave the whole window?

A sum on a calculator, a text in an editor, and a dialog of settings (a GTK 3 fixture), on an isolated desktop, with the
tools that `surehand mcp` serves. Counted are the bytes of every answer's text, and tokens: by the estimate of
`core/scene/tokens.py`, and by a real vocabulary where `--vocabulary` names a `tokenizer.json` (package `tokenizers`).
The others are the same twenty steps where each says what came of it and gives the window whole: in our own form; with a
line for each accessible node as it was read; and with a picture of the window besides. Then the sizes of single windows.
It ends with 1 if a bound of the project is missed. How long looks take is measured by `mcp.py`.

Usage: python benchmarks/mcp_text.py [--vocabulary tokenizer.json]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from surehand.adapters.atspi.observer import AtspiObserver
from surehand.core.scene.build import build_scene
from surehand.core.scene.labels import LabelTable
from surehand.core.scene.packing import unpack
from surehand.core.scene.render import RenderOptions, render
from surehand.core.scene.tokens import tokens
from surehand.model.scene import Surface, Tree
from surehand.testing.desktop import IsolatedDesktop, isolated_desktop
from surehand.testing.fixture_app import FixtureApp
from surehand.tools.catalog import TOOLS, find_tool
from surehand.tools.catalog import call as call_tool
from surehand.tools.context import Context
from surehand.tools.tool import Answer

SUREHAND = str(Path(sys.executable).with_name("surehand"))
TEXT_BYTES_MAX = 2_500
SETTINGS = ["buttons", "text", "values", "choices", "lists", "tabs"]
MIDDLE = ["buttons", "text", "values", "rows", "status", "lists", "tabs"]
#: (application, tool, arguments); a step looks where it names no target.
STEPS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("gnome-calculator", "observe", {}),
    ("gnome-calculator", "invoke", {"target": {"role": "button", "contains": "7"}}),
    ("gnome-calculator", "invoke", {"target": {"role": "button", "contains": "×"}}),
    ("gnome-calculator", "invoke", {"target": {"role": "button", "contains": "8"}}),
    ("gnome-calculator", "invoke", {"target": {"role": "button", "contains": "="}}),
    ("gnome-calculator", "query", {"role": "text"}),
    ("mousepad", "observe", {}),
    ("mousepad", "set_value", {"target": {"role": "text"}, "value": "7 × 8 = 56"}),
    ("mousepad", "invoke", {"target": {"role": "menuitem", "name": "Word Wrap"}}),
    ("mousepad", "invoke", {"target": {"role": "menuitem", "name": "Line Numbers"}}),
    ("mousepad", "observe", {}),
    ("gtk3_app.py", "observe", {}),
    ("gtk3_app.py", "set_value", {"target": {"role": "text", "inside": "Name"}, "value": "Ada"}),
    ("gtk3_app.py", "toggle", {"target": {"role": "checkbox", "name": "Subscribe"}, "to": True}),
    ("gtk3_app.py", "invoke", {"target": {"role": "radio", "name": "High"}}),
    ("gtk3_app.py", "set_value", {"target": {"role": "slider", "name": "Volume"}, "value": "40"}),
    ("gtk3_app.py", "set_value", {"target": {"role": "spinbutton", "name": "Amount"}, "value": "3"}),
    ("gtk3_app.py", "select_option", {"target": {"role": "combobox", "name": "Colour"}, "option": "green"}),
    ("gtk3_app.py", "invoke", {"target": {"role": "button", "name": "Count"}}),
    ("gtk3_app.py", "observe", {}),
)
Counter = Callable[[str], int]


class Cost(NamedTuple):
    """Texts that were read, and bytes of pictures."""

    texts: list[str]
    pictures: int = 0


def raw(tree: Tree) -> str:
    """Return a line for each node with what was read of it, as servers without a text form of their own send it."""
    depths: list[int] = []
    lines = []
    for node, parent in zip(tree.nodes, tree.parents, strict=True):
        depths.append(depths[parent] + 1 if parent >= 0 else 0)
        value = "" if node.value is None or node.secret else f" value={node.value!r}"
        about = f" description={node.description!r}" if node.description else ""
        place = f" at={node.bounds}" if node.bounds is not None else ""
        states = ",".join(sorted(node.states))
        actions = f" actions={list(node.actions)}" if node.actions else ""
        lines.append(f"{'  ' * depths[-1]}{node.role} {node.name!r}{value}{about} [{states}]{actions}{place}")
    return "\n".join(lines)


async def call(context: Context, tool: str, arguments: dict[str, Any]) -> Answer:
    answer = await call_tool(context, find_tool(TOOLS, tool), arguments)
    if answer.is_error:
        raise RuntimeError(f"{tool} {arguments}: {answer.text}")
    return answer


async def task(context: Context, observer: AtspiObserver, surfaces: dict[str, Surface]) -> dict[str, Cost]:
    """Run the steps; return what is read of each kind."""
    ours, whole, dumped, pictures = [], [], [], 0
    for app, tool, arguments in STEPS:
        answer = await call(context, tool, {"app": app, **arguments})
        ours.append(answer.text)
        came_of_it = "" if tool in {"observe", "query"} else answer.text.split("\n")[0] + "\n"
        tree = await observer.read(surfaces[app].surface_id)
        whole.append(came_of_it + text_of(tree, surfaces[app]))
        dumped.append(came_of_it + raw(tree))
        picture = await call(context, "screenshot", {"window": surfaces[app].surface_id})
        pictures += sum(len(image.data) for image in picture.images)
    return {
        "Surehand": Cost(ours),
        "whole text per step": Cost(whole),
        "raw tree per step": Cost(dumped),
        "raw tree and picture per step": Cost(dumped, pictures),
    }


def text_of(tree: Tree, surface: Surface) -> str:
    scene, _ = build_scene(tree, surface, None, LabelTable(), session="s", scene_id="x", now_ms=0)
    return render(scene, RenderOptions()).text


async def surface_of(observer: AtspiObserver, name: str) -> Surface:
    for _ in range(400):
        for surface in await observer.surfaces():
            if name in (surface.app.executable.rpartition("/")[2], (surface.app.script or "").rpartition("/")[2]):
                return surface
        await asyncio.sleep(0.05)
    raise RuntimeError(name)


def table(rows: list[tuple[Any, ...]]) -> None:
    widths = [max(len(str(row[column])) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  ".join(str(value).ljust(width) for value, width in zip(row, widths, strict=True)).rstrip())


async def sizes(desktop: IsolatedDesktop, count: Counter) -> bool:
    """Print what single windows cost; return whether the bound holds."""
    rows: list[tuple[Any, ...]] = [("window", "nodes", "shown", "raw bytes", "text bytes", "estimate", "vocabulary")]
    for what, options in (
        ("GTK 3, about 120 nodes", {"sections": MIDDLE, "bulk": 20}),
        ("GTK 3, all sections", {}),
    ):
        app = await FixtureApp.start(desktop, "gtk3", **options)
        rows.append(await size_of(desktop, what, "gtk3_app.py", count))
        app.close()
        await app.process.wait(5)
    for name in ("mousepad", "gnome-calculator", "kcalc"):
        launched = await desktop.launch([name])
        rows.append(await size_of(desktop, name, name, count))
        await launched.terminate()
    table(rows)
    return told(f"{rows[1][0]} in at most {TEXT_BYTES_MAX} bytes", holds=rows[1][4] <= TEXT_BYTES_MAX)


def told(what: str, *, holds: bool) -> bool:
    print(f"  asked: {what}:", "ok" if holds else "MISSED")
    return holds


async def size_of(desktop: IsolatedDesktop, what: str, name: str, count: Counter) -> tuple[Any, ...]:
    observer = AtspiObserver(desktop.a11y_bus_address, desktop=desktop.name)
    await observer.start()
    surface = await surface_of(observer, name)
    await asyncio.sleep(0.5)
    tree = await observer.read(surface.surface_id)
    await observer.close()
    text = text_of(tree, surface)
    shown = unpack(line for line in text.split("\n")[1:] if not line.startswith("…"))
    return (
        what,
        len(tree.nodes),
        len(shown) + 1,
        len(raw(tree).encode()),
        len(text.encode()),
        tokens(text),
        count(text),
    )


async def twenty_steps(desktop: IsolatedDesktop, count: Counter) -> bool:
    """Print what the task costs; return whether the bound holds."""
    launched = [await desktop.launch([name]) for name in ("gnome-calculator", "mousepad")]
    app = await FixtureApp.start(desktop, "gtk3", sections=SETTINGS)
    observer = AtspiObserver(desktop.a11y_bus_address, desktop=desktop.name)
    await observer.start()
    surfaces = {name: await surface_of(observer, name) for name in ("gnome-calculator", "mousepad", "gtk3_app.py")}
    context = Context(desktop=desktop.name, client="benchmark")
    await asyncio.sleep(1)
    costs = await task(context, observer, surfaces)
    await context.close()
    await observer.close()
    app.close()
    for one in launched:
        await one.terminate()
    rows: list[tuple[Any, ...]] = [("twenty steps", "text bytes", "picture bytes", "estimate", "vocabulary", "times")]
    ours = sum(len(text.encode()) for text in costs["Surehand"].texts)
    for what, cost in costs.items():
        size = sum(len(text.encode()) for text in cost.texts)
        estimate, real = (sum(map(counter, cost.texts)) for counter in (tokens, count))
        rows.append((what, size, cost.pictures, estimate, real, f"{(size + cost.pictures) / ours:.1f}"))
    table(rows)
    answers = sorted(len(text.encode()) for text in costs["Surehand"].texts)
    print(f"an answer: median {statistics.median(answers):.0f} bytes, largest {answers[-1]}")
    return told("at most a quarter of our own whole text per step", holds=4 * ours <= rows[2][1])


async def main(count: Counter) -> int:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SUREHAND_RUNTIME_DIR"] = folder + "/run"
        try:
            async with isolated_desktop() as desktop:
                held = [await twenty_steps(desktop, count), await sizes(desktop, count)]
        finally:
            await asyncio.to_thread(subprocess.run, [SUREHAND, "stop"], capture_output=True, check=False)
    return 0 if all(held) else 1


def counter_of(vocabulary: str | None) -> Counter:
    if vocabulary is None:
        return lambda _: 0
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(vocabulary)
    return lambda text: len(tokenizer.encode(text).ids)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vocabulary", help="a tokenizer.json")
    sys.exit(asyncio.run(main(counter_of(parser.parse_args().vocabulary))))
