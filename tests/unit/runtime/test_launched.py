"""What a launch means before anything is decided; and turns on applications, which are kept for nobody."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
from collections.abc import Callable, Sequence

import msgspec
import pytest

from surehand import limits
from surehand.adapters.process import ProcessActor
from surehand.errors import Unavailable
from surehand.model.actions import Action, App, Open
from surehand.model.request import Request
from surehand.model.scene import AppIdentity
from surehand.model.targets import NoTarget
from surehand.runtime.launched import by_id, wait_for_window
from surehand.testing.worlds import World
from tests.unit.runtime.test_attacks_people import Clock

ASKING = 'version = 1\n[[rule]]\nid = "ask"\neffect = "require_approval"\nreason = "r"\n[rule.match]\n'


def launching(world: World, action: Action) -> Request:
    world.desk.application_of = {"notes": "org.example.notes.desktop"}.get
    return Request(operation_id="op", action=action, target=NoTarget())


async def test_a_plain_name_of_an_installed_application_is_decided_and_recorded_as_that_application() -> None:
    world = World()
    request = launching(world, App(op="launch", name="notes"))
    renamed = await by_id(world.session, request)
    assert renamed == msgspec.structs.replace(request, action=App(op="launch", name="org.example.notes.desktop"))


@pytest.mark.parametrize(
    "action",
    [
        App(op="launch", name="notes", arguments=("secret.txt",)),
        App(op="launch", name="/usr/bin/notes"),
        App(op="launch", name="other"),
        App(op="quit", name="notes"),
        Open(uri="file:///notes"),
    ],
)
async def test_everything_else_stays_what_it_was(action: Action) -> None:
    world = World()
    request = launching(world, action)
    assert await by_id(world.session, request) is request


async def test_nobody_is_asked_to_approve_the_launch_of_what_is_not_there() -> None:
    world = World(policy=ASKING)
    world.desk.missing = {"mousepadd": ("mousepad",), "nonesuch": ()}.get
    replies = {
        name: await world.gateway.act(
            world.session,
            Request(operation_id=name, action=App(op="launch", name=name), target=NoTarget()),
        )
        for name in ("mousepadd", "nonesuch", "mousepad")
    }
    for name, close in (("mousepadd", {"candidates": ["mousepad"]}), ("nonesuch", None)):
        assert replies[name].status == "refused"
        error = replies[name].error or {}
        assert (error["code"], error.get("observed")) == ("app_not_found", close)
        assert repr(name) in error["message"]
    # What is there is asked about as before, and only that.
    assert replies["mousepad"].status == "approval_required"
    assert [pending.operation_id for pending in world.approvals.pending()] == ["mousepad"]


async def test_what_a_host_signs_is_never_put_in_other_words() -> None:
    world = World()
    request = launching(world, App(op="launch", name="notes"))
    world.session.authority_mode = "host"
    assert await by_id(world.session, request) is request


def turn(world: World, pid: int) -> asyncio.Lock:
    identity = AppIdentity(key="exe:/usr/bin/x", pid=pid, process_generation="1", uid=0, executable="/usr/bin/x")
    return world.desk.turn("atspi", msgspec.structs.replace(world.app.surface, app=identity))


async def test_turns_of_applications_go_with_whoever_held_them_or_waited() -> None:
    world = World()
    order: list[str] = []

    async def second() -> None:
        async with turn(world, 7):
            order.append("second")
            # A third one still takes turns with the second, long after the first has gone.
            assert turn(world, 7).locked()

    async with turn(world, 7):
        waiting = asyncio.create_task(second())
        await asyncio.sleep(0)
        assert turn(world, 8) is not turn(world, 7)
        order.append("first")
    await waiting
    assert order == ["first", "second"]
    for pid in range(1_000):
        async with turn(world, pid):
            pass
    del waiting
    gc.collect()
    assert len(world.desk._app_turns) == 0


# --- its window -------------------------------------------------------------------------------------------------------


class Screen:
    """A screen on which nothing changes; waiting for it is what moves the clock."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        #: Called with the milliseconds that passed.
        self.passing: Callable[[int], None] = lambda _: None

    async def changed(self, timeout_ms: int) -> bool:
        self.clock.offset += timeout_ms
        self.passing(self.clock.offset)
        return False


async def waited(pid: int, window_at: int | None = None) -> tuple[bool, int]:
    """Return whether a window was found, and how long was waited for it."""
    world = World(clock=Clock())
    clock = world.clock
    assert isinstance(clock, Clock)
    screen = Screen(clock)
    world.desk.screen = screen  # type: ignore[assignment]
    known = frozenset(one.surface_id for one in await world.scenes.surfaces(world.session))

    def passing(passed_ms: int) -> None:
        nonlocal known
        if window_at is not None and passed_ms >= window_at:
            known = frozenset()

    class Known(frozenset[str]):
        def __contains__(self, one: object) -> bool:
            return one in known

    screen.passing = passing
    return await wait_for_window(world, world.session, Known(), pid), clock.offset  # type: ignore[arg-type]


@pytest.fixture
def ended() -> int:
    """Return the pid of a program that has ended."""
    process = subprocess.Popen(["/bin/true"])
    process.wait()
    return process.pid


async def test_who_handed_over_to_a_window_that_was_there_is_not_waited_for_like_one_that_starts(ended: int) -> None:
    assert await waited(ended) == (False, limits.LAUNCH_ENDED_MS)
    assert await waited(os.getpid()) == (False, limits.LAUNCH_WINDOW_MS_MAX)


async def test_a_window_that_comes_in_time_is_found_and_one_past_it_is_not(ended: int) -> None:
    assert await waited(ended, limits.LAUNCH_ENDED_MS) == (True, limits.LAUNCH_ENDED_MS)
    assert (await waited(ended, limits.LAUNCH_ENDED_MS + 1))[0] is False


# --- one that dies at once --------------------------------------------------------------------------------------------


class Entering:
    """An attempt that may begin."""

    action = App(op="launch", name="pad")

    def enter(self, _: object) -> None:
        pass


@pytest.mark.parametrize("more", [0, 1])
async def test_of_what_a_program_printed_before_it_died_the_end_is_told(more: int) -> None:
    printed = "x" * more + "y" * limits.LAUNCH_SAID_CHARS_MAX

    async def launch(_: Sequence[str]) -> int:
        raise Unavailable("it ended", details={"exit_code": 3}, observed={"log": printed}, retry_safe=False)

    done = await ProcessActor(launch).perform(Entering())  # type: ignore[arg-type]
    assert (done.status, done.output) == ("done", {"exit_code": 3, "said": "y" * limits.LAUNCH_SAID_CHARS_MAX})


async def test_a_start_of_which_nothing_is_known_stays_unknown() -> None:
    async def launch(_: Sequence[str]) -> int:
        raise Unavailable("the supervisor is gone")

    assert (await ProcessActor(launch).perform(Entering())).status == "unknown"  # type: ignore[arg-type]
