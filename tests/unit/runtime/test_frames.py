"""Pictures for people who watch: painted, bounded, the newest only; and what goes on beside them."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import os
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from PIL import Image

from surehand import limits
from surehand.core.wire.methods import AGENT_METHODS
from surehand.errors import CaptureUnavailable, InvalidRequest, TooLarge
from surehand.model.scene import Capture, Surface
from surehand.testing.memory import button, field
from surehand.testing.worlds import World
from tests.unit.runtime.test_halting import Gate, Stage
from tests.unit.runtime.test_people import BIDI, until

WHITE, GREY = (255, 255, 255), (96, 96, 96)
SIZE = (200, 100)
SECRET = (20, 30, 60, 20)


class Screen:
    """A screen that shows one colour, or noise; counts how often it was looked at."""

    def __init__(self) -> None:
        self.colour: tuple[int, int, int] | None = WHITE
        self.size = SIZE
        self.looks = 0
        self.fault: Exception | None = None

    async def capture(self, surface: Surface | None) -> tuple[Capture, bytes]:
        assert surface is None
        self.looks += 1
        if self.fault is not None:
            raise self.fault
        if self.colour is None:
            image = Image.frombytes("RGB", self.size, os.urandom(3 * self.size[0] * self.size[1]))
        else:
            image = Image.new("RGB", self.size, self.colour)
        out = io.BytesIO()
        image.save(out, format="PNG")
        record = Capture(
            capture_id="c", surface_id=None, origin_x=0, origin_y=0, width=self.size[0], height=self.size[1],
            scale_milli=1000, taken_at_ms=0,
        )  # fmt: skip
        return record, out.getvalue()

    async def stacking(self) -> tuple[dict[str, Any], ...]:
        return ({"id": 1, "pid": 4242, "bounds": (0, 0, *self.size), "minimized": False, "title": "memory"},)

    def modal_before(self, _: Surface) -> str | None:
        return None

    async def popups(self) -> tuple[dict[str, Any], ...]:
        return ()


class Seen(Stage):
    screen: Screen

    async def open(self) -> Seen:
        await super().open()
        self.screen = Screen()
        self.world.desk.screen = self.screen  # type: ignore[assignment]
        return self

    async def frame(self, **params: Any) -> dict[str, Any]:
        return await self.control("watch.frame", name="memory", **params)


@pytest.fixture
async def seen(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Seen]:
    monkeypatch.setattr(limits, "VIEW_MS_MIN", 10)
    nodes = (
        button("save", "Save", bounds=(10, 10, 40, 20)),
        msgspec.structs.replace(field("pw", "Password", "hunter2", bounds=SECRET), role="password", secret=True),
    )
    made = await Seen(World(nodes)).open()
    yield made
    await made.host.close()


def pixels(value: dict[str, Any]) -> Any:
    image = Image.open(io.BytesIO(base64.b64decode(value["jpeg_base64"])))
    assert (image.format, image.size) == ("JPEG", (value["width"], value["height"]))
    return image.convert("RGB")


def near(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    return all(abs(a - b) < 12 for a, b in zip(one, other, strict=True))


async def test_a_picture_for_people_is_painted_like_any_other(seen: Seen) -> None:
    value = await seen.frame()
    image = pixels(value)
    x, y, width, height = SECRET
    assert near(image.getpixel((x + width // 2, y + height // 2)), GREY)
    assert near(image.getpixel((150, 80)), WHITE)
    assert "hunter2" not in json.dumps(value)


async def test_who_watches_is_told_when_the_screen_changes_and_not_before(seen: Seen) -> None:
    first = await seen.frame()
    has = {"after": first["tag"], "state_after": first["state_tag"]}
    same = await seen.frame(**has, wait_ms=50)
    assert "jpeg_base64" not in same
    waiting = asyncio.create_task(seen.frame(**has, wait_ms=limits.VIEW_WAIT_MS_MAX))
    await until_looked(seen, 3)
    assert not waiting.done()
    seen.screen.colour = (0, 0, 255)
    assert near(pixels(await asyncio.wait_for(waiting, 5)).getpixel((150, 80)), (0, 0, 255))


async def until_looked(seen: Seen, times: int) -> None:
    async with asyncio.timeout(5):
        before = seen.screen.looks
        while seen.screen.looks < before + times:  # noqa: ASYNC110 - a screen has no event
            await asyncio.sleep(0.005)


async def test_a_window_that_policy_closes_is_in_no_picture() -> None:
    closed = '[[rule]]\nid = "no"\neffect = "deny"\nreason = "closed"\n[rule.match]\napp = ["exe:/opt/memory"]\n'
    seen = await Seen(World((button("save", "Save"),), policy="version = 1\n" + closed)).open()
    assert near(pixels(await seen.frame()).getpixel((150, 80)), GREY)
    await seen.host.close()


async def test_what_goes_on_says_where_the_agent_aims_and_how_it_ended(seen: Seen) -> None:
    gate = Gate(seen)
    idle = await seen.frame()
    assert idle["state"]["operations"] == []
    task = await seen.begin("op")
    await gate.reached.wait()
    busy = await seen.frame(state_after=idle["state_tag"])
    (operation,) = busy["state"]["operations"]
    assert (operation["operation_id"], operation["effect"]) == ("op", "desktop.invoke")
    assert operation["outline"] == [10, 10, 40, 20]
    gate.open.set()
    await task
    (past,) = (await seen.frame())["state"]["recent"]
    assert (past["operation_id"], past["ended"]) == ("op", "succeeded")


async def test_the_overview_names_agents_and_what_holds_them(seen: Seen) -> None:
    seen.agent.client["name"] = BIDI
    await seen.control("pause", desktop="memory")
    (desk,) = (await seen.control("watch.now"))["desktops"]
    (one,) = desk["agents"]
    assert (one["session"], one["held"]) == (seen.agent.label, "paused")
    assert not any(character in one["client"] for character in "\u202e\x1b\n")
    assert desk["holds"][0]["what"] == "paused"


async def test_a_screen_that_gives_no_picture_is_told_and_what_goes_on_too(seen: Seen) -> None:
    seen.screen.fault = CaptureUnavailable("the screen is locked")
    value = await seen.frame()
    assert value["error"] == "the screen is locked"
    assert value["jpeg_base64"] == ""
    assert value["state"]["agents"]
    seen.screen.fault = None
    assert pixels(await seen.frame(after=value["tag"], state_after=value["state_tag"], wait_ms=5_000))


async def test_a_picture_is_made_smaller_until_it_fits(seen: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    seen.screen.size, seen.screen.colour = (500, 400), None
    whole = await seen.frame()
    assert whole["width"] == 500
    monkeypatch.setattr(limits, "VIEW_BYTES_MAX", 40_000)
    seen.host.parts.views.clear()
    small = await seen.frame()
    assert len(base64.b64decode(small["jpeg_base64"])) <= 40_000
    assert small["width"] * small["scale_milli"] == pytest.approx(500_000, rel=0.01)
    seen.screen.size, seen.screen.colour = (limits.VIEW_EDGE_MAX + 1, 20), WHITE
    seen.host.parts.views.clear()
    assert (await seen.frame())["width"] == limits.VIEW_EDGE_MAX


async def test_as_many_watch_as_may_and_one_more_is_refused(seen: Seen) -> None:
    first = await seen.frame()
    has = {"after": first["tag"], "state_after": first["state_tag"], "wait_ms": limits.VIEW_WAIT_MS_MAX}
    waiting = [asyncio.create_task(seen.frame(**has)) for _ in range(limits.VIEW_WATCHERS_MAX)]
    await until(lambda: seen.host.parts.views["memory"].watchers == limits.VIEW_WATCHERS_MAX)
    with pytest.raises(TooLarge):
        await seen.frame()
    waiting[0].cancel()
    await asyncio.gather(waiting[0], return_exceptions=True)
    assert await seen.frame()
    for one in waiting:
        one.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)


async def test_bounds_of_what_is_asked(seen: Seen) -> None:
    with pytest.raises(InvalidRequest):
        await seen.frame(wait_ms=limits.VIEW_WAIT_MS_MAX + 1)
    with pytest.raises(InvalidRequest):
        await seen.control("watch.frame", name="elsewhere")
    assert not AGENT_METHODS & {"watch.frame", "watch.now"}


async def test_only_the_last_operations_are_kept(seen: Seen) -> None:
    recent = seen.host.parts.gateway.recent
    for index in range(limits.RECENT_OPERATIONS_MAX + 1):
        recent.append({"desktop": "memory", "operation_id": str(index)})
    assert len(recent) == limits.RECENT_OPERATIONS_MAX
