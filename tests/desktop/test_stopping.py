"""Stopping agents on a real desktop: by the operator and by the stop key, under load, with keys and buttons held.

The person looks on through a window of another display (`--view`), so that their keys are real ones to the desktop.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from surehand import limits
from surehand.adapters.x11.connection import XThread
from surehand.adapters.x11.interruptions import X11Interruptions
from surehand.core.input.stop_key import DEFAULT, parse_stop_key
from surehand.model.actions import Drag, Hold, TypeText
from surehand.runtime.host import Host
from surehand.runtime.session import Session
from surehand.testing.desktop import IsolatedDesktop, running_desktop
from surehand.testing.fixture_app import FixtureApp
from tests.desktop.cases.kit import Hand, On, open_host, until, until_so
from tests.desktop.test_x11_pointer import SOMEWHERE
from tests.desktop.x11_actor_support import RecordingAttempt, Stop, stage
from tests.desktop.x11_support import Display, Painter, display, window

pytestmark = pytest.mark.desktop

TEXT = "the quick brown fox " * 500


@pytest.fixture(scope="module")
def person() -> Iterator[Display]:
    with display(size="1000x700x24") as made:
        yield made


@pytest.fixture(scope="module")
def desktop(person: Display) -> Iterator[IsolatedDesktop]:
    with running_desktop(view=True, view_environment={"DISPLAY": person.name}, geometry=(900, 600)) as running:
        yield running


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Host]:
    made = await open_host(tmp_path)
    yield made
    await made.close()


@pytest.fixture
async def on(host: Host, desktop: IsolatedDesktop) -> AsyncIterator[On]:
    app = await FixtureApp.start(desktop, "gtk3")
    yield await On.reach(await Hand.connect(host, desktop), app)
    app.close()


@pytest.fixture
def load() -> Iterator[None]:
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(4)]
    yield
    for one in busy:
        one.kill()
        one.wait()


async def operator(host: Host) -> Session:
    return await host.open_channel(principal="uid:0", role="control", client={}, desktop=None)


async def begin_typing(on: On) -> asyncio.Task[dict[str, Any]]:
    """Have the agent type a long text, and return once the application has some of it."""
    await on.focus_window()
    await on.change("focus", control="name")
    await on.change("sync")
    entry = await on.entry("name", "Name")
    mark = on.app.mark()
    request = await on.hand.request(TypeText(text=TEXT), entry)
    task = asyncio.create_task(on.hand.call("act", request=request))
    await until(lambda: len(on.app.events("key_press", after=mark)) > 5 or task.done(), "typing")
    assert not task.done(), await task
    return task


def input_of(host: Host) -> Any:
    (desk,) = host.parts.desks.attached().values()
    return next(actor for actor in desk.actors if actor.backend == "x11")


async def held(host: Host) -> list[Any]:
    """Return what is down on the desktop now, in the agent's books and in the server's."""
    state = await input_of(host).physical_state()
    return [*state["held"], *state["buttons"], *([state["modifiers"]] if state["modifiers"] & 0b1101 else [])]


async def test_a_stop_during_a_long_text_releases_everything_in_time_under_load(host: Host, on: On, load: None) -> None:
    task = await begin_typing(on)
    told = await host.call(await operator(host), "halt", {})
    assert told["released_ms"] <= limits.HALT_MS_MAX
    assert await held(host) == []
    assert (await task)["status"] == "interrupted"
    await on.app.settle()
    keys = len(on.app.events("key_press"))
    assert keys < len(TEXT)
    await on.app.settle()
    assert len(on.app.events("key_press")) == keys


async def test_a_stop_lets_go_of_a_button_that_an_agent_holds(host: Host, on: On, load: None) -> None:
    await on.act(Hold(), await on.button("Count"))
    assert 1 in await held(host)
    told = await host.call(await operator(host), "halt", {})
    assert told["released_ms"] <= limits.HALT_MS_MAX
    assert await held(host) == []


async def test_letting_go_in_the_middle_of_a_drag_waits_for_no_application(person: Display) -> None:
    async with stage(person) as bare:
        painter = Painter(person.name, "deaf", (100, 80, 300, 300), 0x336699)
        entry = await window(bare.screen, "deaf")
        painter.answers = False  # each step of a drag waits for it
        x, y = entry["bounds"][:2]
        attempt = RecordingAttempt(Drag(to=SOMEWHERE), entry, point=(x + 10, y + 10), path=((x + 200, y + 200),))
        task = asyncio.create_task(bare.actor.perform(attempt))

        async def is_down() -> bool:
            return bool((await bare.actor.physical_state())["held"])

        await until_so(is_down, "a button that is down")
        attempt.before = stop  # as the gateway's attempt does from a person's stop on
        began = time.perf_counter()
        await bare.actor.release_all()
        assert (time.perf_counter() - began) * 1000 <= limits.HALT_MS_MAX
        assert not (await bare.actor.physical_state())["buttons"]
        with pytest.raises(Stop):
            await task
        assert painter.buttons() == [("press", 1), ("release", 1)]
        painter.close()


def stop(_: int) -> None:
    raise Stop


async def test_the_persons_stop_key_stops_the_agents_there(host: Host, on: On, person: Display) -> None:
    task = await begin_typing(on)
    person.run("xdotool", "key", "Escape", "key", "Escape")
    assert (await task)["status"] == "interrupted"
    (hold,) = await until(host.parts.brakes.all, "a pause")
    assert (hold.what, hold.scope.desktop, hold.by) == (
        "paused",
        on.hand.channel.desktop,
        f"desktop:{hold.scope.desktop}",
    )
    assert await held(host) == []
    reply = await on.act({"kind": "invoke"}, await on.button("Count"))
    assert reply["error"]["details"]["what"] == "paused"


async def test_no_robot_presses_the_stop_key_or_keeps_the_person_from_it(
    person: Display, desktop: IsolatedDesktop
) -> None:
    listener = X11Interruptions(desktop.display, desktop.xauthority, parse_stop_key(DEFAULT))
    stops: list[int] = []
    listener.on_stop(lambda: stops.append(1))
    await listener.open()
    robot = {**desktop.environment, "PATH": "/usr/bin:/bin"}
    grabber = XThread(desktop.display, desktop.xauthority, "grabber")
    await grabber.open()
    try:
        robots(robot, "key", "Escape", "key", "Escape", "key", "Escape")
        await listener.settle()
        assert stops == []
        # Another program has grabbed the keyboard, and a robot presses keys, the stop key too, in between.
        status = await grabber.run(lambda one: one.core.GrabKeyboard(True, one.root, 0, 1, 1).reply().status)
        assert status == 0
        person.run("xdotool", "key", "Escape")
        robots(robot, "key", "a", "keydown", "Escape")
        person.run("xdotool", "key", "Escape")
        await until(lambda: stops, "a stop")
        robots(robot, "keyup", "Escape")
    finally:
        await grabber.close()
        await listener.close()


def robots(environment: dict[str, str], *does: str) -> None:
    subprocess.run(["xdotool", *does], env=environment, check=True, timeout=10)
