"""What a daemon keeps of an agent that never ends: each store at its limit and one past it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from surehand import limits
from surehand.core import permit
from surehand.core.policy import categories
from surehand.errors import PolicyDenied
from surehand.mcp import resources
from surehand.model.decision import Obligations
from surehand.model.events import NewEvent
from surehand.model.scene import Capture, Scene
from surehand.runtime.changes import note
from surehand.runtime.reads import Reads
from surehand.runtime.session import Session
from surehand.runtime.shown import Before
from surehand.runtime.sights import Sight, Sights
from surehand.testing.worlds import World
from tests.scene_kit import El, Watcher
from tests.virtual_time import VirtualLoop, run


def scene_of(surface_id: str) -> Scene:
    scene = Watcher(El("window", "w")).observe()
    return msgspec.structs.replace(scene, surface=msgspec.structs.replace(scene.surface, surface_id=surface_id))


def sight(number: int, size: int = 1, taken_at_ms: int = 0) -> Sight:
    facts = {"origin_x": 0, "origin_y": 0, "width": 1, "height": 1, "scale_milli": 1000}
    capture = Capture(capture_id=f"c{number}", surface_id=None, taken_at_ms=taken_at_ms, **facts)
    return Sight(capture=capture, windows=(), scenes={}, png=b"x" * size)


def kept_of(sights: Sights) -> list[str]:
    return list(sights._kept)


def test_pictures_are_kept_to_a_number_and_to_bytes_and_the_newest_always() -> None:
    most = limits.CAPTURES_KEPT_MAX
    sights = Sights()
    for number in range(most):
        sights.keep(sight(number))
    assert len(kept_of(sights)) == most
    sights.keep(sight(most))
    assert kept_of(sights) == [f"c{number}" for number in range(1, most + 1)]
    sights, half = Sights(), limits.CAPTURES_BYTES_KEPT_MAX // 2
    for number in range(2):
        sights.keep(sight(number, half))
    assert kept_of(sights) == ["c0", "c1"]
    sights.keep(sight(2, 1))
    assert kept_of(sights) == ["c1", "c2"]
    sights.keep(sight(3, 2 * half + 1))
    assert kept_of(sights) == ["c3"]


@pytest.mark.parametrize(("after_ms", "kept"), [(0, ["c0", "c1"]), (1, ["c1"])])
def test_a_picture_is_kept_as_long_as_it_may_be_acted_in(after_ms: int, kept: list[str]) -> None:
    sights = Sights()
    sights.keep(sight(0))
    sights.keep(sight(1, taken_at_ms=limits.SCENE_ACT_MS_MAX + after_ms))
    assert kept_of(sights) == kept


async def test_windows_whose_change_is_asked_for_later_are_so_many() -> None:
    session = World().new_session()
    names = [f"w{number}" for number in range(limits.CHANGES_LATER_MAX + 1)]
    for name in names:
        note(session, Before({name: scene_of(name)}), [])
    assert session.later is not None
    assert list(session.later.scenes) == names[:-1]


async def test_looks_that_no_scene_was_made_of_are_so_many_and_one_more_makes_a_scene_of_the_oldest() -> None:
    world = World()
    surface_id = world.app.surface.surface_id
    sessions: list[Session] = []
    for _ in range(limits.GLANCES_KEPT_MAX):
        sessions.append(world.new_session())
        await world.scenes.glance(sessions[-1], surface_id)
    assert [one for one in sessions if one.latest] == []
    await world.scenes.glance(world.new_session(), surface_id)
    assert [one for one in sessions if one.latest] == sessions[:1]


async def test_answers_about_reading_are_so_many_however_often_a_title_changes() -> None:
    world = World()
    session, surface = world.session, world.app.surface
    for number in range(limits.READ_DECISIONS_MAX):
        await world.authority.check_read(session, msgspec.structs.replace(surface, title=f"t{number}"))
    assert len(session.read_decisions) == limits.READ_DECISIONS_MAX
    await world.authority.check_read(session, msgspec.structs.replace(surface, title="one more"))
    assert len(session.read_decisions) == 1


async def test_refusals_told_apart_are_so_many() -> None:
    operations, error = World().operations, PolicyDenied("no", gate="policy")
    for number in range(limits.REFUSALS_COALESCED_MAX - 1):
        operations._refused[("p", f"o{number}", error.code)] = (0, 0)
    await operations.refused("p", "at-the-limit", error)
    assert len(operations._refused) == limits.REFUSALS_COALESCED_MAX
    await operations.refused("p", "past-it", error)
    assert list(operations._refused) == [("p", "past-it", error.code)]


def test_what_is_remembered_of_obligations_and_applications_has_its_bound() -> None:
    for number in range(limits.OBLIGATIONS_HASHED_MAX + 1):
        permit.obligations_hash(Obligations(approvals_needed=1, redact=(f"r{number}",)))
    assert permit.obligations_hash.cache_info().currsize == limits.OBLIGATIONS_HASHED_MAX
    assert categories.classify_app.cache_info().maxsize == limits.APPS_CLASSIFIED_MAX


async def test_events_that_nobody_passes_on_are_kept_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    queues: list[asyncio.Queue[Any]] = []

    class Watched(asyncio.Queue[Any]):
        def __init__(self, *facts: Any) -> None:
            super().__init__(*facts)
            queues.append(self)

    monkeypatch.setattr(resources.asyncio, "Queue", Watched)

    class Told:
        closed = False

        async def ask(self, _method: str, _params: Any, *, on_event: Any, **_: Any) -> None:
            for number in range(limits.MCP_EVENTS_MAX + 1):
                on_event({"scene": {"surface": f"w{number}"}})
            raise asyncio.CancelledError

    task = asyncio.create_task(resources._watch(Told(), resources._Followed()))  # type: ignore[arg-type]
    with pytest.raises(asyncio.CancelledError):
        await task
    assert queues[0].qsize() == limits.MCP_EVENTS_MAX


def test_a_disk_that_hangs_makes_no_records_of_reads_queue_up() -> None:
    loop = VirtualLoop()
    taken: list[int] = []

    async def work() -> None:
        world, free = World(), asyncio.Event()

        class Hanging:
            async def append(self, events: Sequence[NewEvent]) -> None:
                await free.wait()
                taken.extend(event.payload["count"] for event in events)

        reads = Reads(Hanging(), lambda text: text)  # type: ignore[arg-type]
        for _ in range(100):
            reads.note(world.session, world.app.surface, "desktop.observe", "text")
            await asyncio.sleep(limits.READS_COALESCE_MS / 1000)
            assert len(reads._writing) <= 1
            assert len(reads._waiting) <= 1
        free.set()
        await reads.close()

    run(work(), loop)
    assert (len(taken), sum(taken)) == (2, 100)
