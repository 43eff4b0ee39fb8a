"""Pictures whose secrets move, hide, hang or belong to closed windows while they are taken."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from PIL import Image

from surehand import limits
from surehand.errors import CaptureUnavailable, PolicyDenied, Unavailable
from surehand.model.scene import Bounds, Capture, Node
from surehand.runtime.host import Host
from surehand.testing.memory import MemoryApp, button, field
from surehand.testing.worlds import World
from tests.unit.runtime.test_attacks_reach import CLOSED, TITLE, agent, host_of

SIZE = 100
WHITE = (255, 255, 255)
RED = (255, 0, 0)
PAINT = (96, 96, 96)
NO_PICTURES = CLOSED.replace('"deny"', '"allow"').replace("[rule.match]", 'redact = ["png"]\n[rule.match]')


class Screen:
    """White pixels, and a red rectangle wherever `secrets` says that one shows as the picture is taken."""

    def __init__(self, world: World, *windows: dict[str, Any]) -> None:
        self.world = world
        self.windows = windows
        self.floating: tuple[dict[str, Any], ...] = ()
        self.secrets: Callable[[], list[Bounds]] = list
        self.before: Callable[[], None] = lambda: None
        self.after: Callable[[], None] = lambda: None
        self.taken = 0
        self.scale_milli = 1000
        self.origin = (0, 0)
        world.desk.screen = self  # type: ignore[assignment]

    async def stacking(self) -> tuple[dict[str, Any], ...]:
        return self.windows

    async def popups(self) -> tuple[dict[str, Any], ...]:
        return self.floating

    async def monitors(self) -> tuple[dict[str, Any], ...]:
        return ({"name": "left", "bounds": [0, 0, 60, 100], "primary": True},)

    async def capture(self, surface: Any) -> tuple[Capture, bytes]:
        self.taken += 1
        self.before()
        image = Image.new("RGB", (SIZE, SIZE), WHITE)
        for x, y, width, height in self.secrets():
            scale = self.scale_milli / 1000
            left, top = (x - self.origin[0]) * scale, (y - self.origin[1]) * scale
            box = (int(left), int(top), round(left + width * scale), round(top + height * scale))
            image.paste(RED, box)
        self.after()
        out = io.BytesIO()
        image.save(out, format="PNG")
        capture = Capture(
            capture_id=f"c{self.taken}",
            surface_id=None if surface is None else surface.surface_id,
            origin_x=self.origin[0],
            origin_y=self.origin[1],
            width=SIZE,
            height=SIZE,
            scale_milli=self.scale_milli,
            taken_at_ms=self.world.clock.monotonic_ms(),
        )
        return capture, out.getvalue()


def picture(answer: dict[str, Any]) -> Image.Image:
    with Image.open(io.BytesIO(base64.b64decode(answer["png_base64"]))) as opened:
        return opened.convert("RGB")


def colours(image: Image.Image) -> set[tuple[int, ...]]:
    return {colour for _, colour in image.getcolors(SIZE * SIZE) or []}


def pin(bounds: Bounds | None, **facts: Any) -> Node:
    return msgspec.structs.replace(field("pw", "Password", "x", bounds=bounds), role="password", secret=True, **facts)


def window(world: World, bounds: Bounds = (0, 0, 100, 100), **facts: Any) -> dict[str, Any]:
    value = {"id": 1, "pid": world.app.surface.app.pid, "title": world.app.surface.title, "bounds": bounds}
    return {**value, "minimized": False, **facts}


class Stage:
    """A world with one secret field that is red wherever it stands, and a session on it."""

    def __init__(self, host: Host, world: World, screen: Screen, session: Any) -> None:
        self.host, self.world, self.screen, self.session = host, world, screen, session

    @classmethod
    async def set(cls, node: Node, *more: Node, policy: str = "", **facts: Any) -> Stage:
        world = World([node, *more], policy=policy)
        screen = Screen(world, window(world, **facts))
        screen.secrets = lambda: [one.bounds for one in world.app.nodes.values() if one.secret and one.bounds]
        host = host_of(world)
        return cls(host, world, screen, await agent(host))

    def move(self, *bounds: int) -> None:
        self.world.app.change("pw", bounds=bounds)

    async def take(self, **asked: Any) -> Image.Image:
        return picture(await self.host.call(self.session, "screenshot", asked))

    async def both(self) -> list[Image.Image]:
        """Return the picture of the window and that of the desktop."""
        return [await self.take(surface=self.world.app.surface.surface_id), await self.take()]


async def test_a_secret_that_moves_on_while_pictures_are_taken_is_in_none() -> None:
    stage = await Stage.set(pin((10, 10, 20, 5)))
    stage.screen.after = lambda: stage.move(10, 10 + stage.screen.taken, 20, 5)
    for asked in ({"surface": stage.world.app.surface.surface_id}, {}):
        stage.screen.taken = 0
        with pytest.raises(CaptureUnavailable) as refused:
            await stage.take(**asked)
        assert refused.value.details == {"reason": "moving"}
        assert refused.value.fix
        assert stage.screen.taken == limits.PICTURE_TRIES_MAX


async def test_a_secret_that_rests_at_the_last_try_is_painted_over() -> None:
    stage = await Stage.set(pin((10, 10, 20, 5)))

    def move() -> None:
        if stage.screen.taken < limits.PICTURE_TRIES_MAX:
            stage.move(10, 10 + 20 * stage.screen.taken, 20, 5)

    stage.screen.after = move
    for asked in ({"surface": stage.world.app.surface.surface_id}, {}):
        stage.screen.taken = 0
        image = await stage.take(**asked)
        assert stage.screen.taken == limits.PICTURE_TRIES_MAX
        assert RED not in colours(image)


async def test_a_secret_that_appears_as_the_picture_is_taken_is_painted_over() -> None:
    stage = await Stage.set(button("save", "Save", bounds=(0, 0, 5, 5)))
    stage.screen.before = lambda: stage.world.app.add(pin((40, 40, 20, 20)))
    for asked in ({"surface": stage.world.app.surface.surface_id}, {}):
        image = await stage.take(**asked)
        assert colours(image) == {WHITE, PAINT}
        assert image.getpixel((50, 50)) == PAINT
        stage.world.app.remove("pw")


async def test_a_field_in_clear_is_painted_over_as_long_as_its_process_lives() -> None:
    stage = await Stage.set(pin((10, 10, 20, 5)))
    stage.screen.secrets = lambda: [(10, 10, 20, 5)]
    await stage.both()
    stage.world.app.change("pw", role="text", secret=False, name="Code")
    for image in await stage.both():
        assert RED not in colours(image)


async def test_a_secret_without_a_known_place_costs_the_picture_or_its_whole_window() -> None:
    stage = await Stage.set(pin(None), bounds=(20, 20, 30, 30))
    with pytest.raises(CaptureUnavailable) as refused:
        await stage.take(surface=stage.world.app.surface.surface_id)
    assert refused.value.details == {"reason": "secret"}
    image = await stage.take()
    assert [image.getpixel(place) for place in ((20, 20), (49, 49), (19, 20), (50, 49))] == [PAINT] * 2 + [WHITE] * 2


@pytest.mark.parametrize(
    ("toolkit", "wide"),
    [("GTK 3.24", limits.SECRET_MARGIN_PX), ("GTK 4.8", limits.SECRET_MARGIN_GTK4_PX), ("Qt", limits.SECRET_MARGIN_PX)],
)
async def test_a_secret_is_painted_with_the_margin_that_its_toolkit_needs(toolkit: str, wide: int) -> None:
    stage = await Stage.set(pin((30, 30, 20, 10)))
    stage.world.app.surface = msgspec.structs.replace(stage.world.app.surface, toolkit=toolkit)
    tall = limits.SECRET_MARGIN_PX
    for image in await stage.both():
        inside = [(30 - wide, 30), (49 + wide, 39), (30, 30 - tall), (30, 39 + tall)]
        outside = [(29 - wide, 30), (50 + wide, 39), (30, 29 - tall), (30, 40 + tall)]
        assert [image.getpixel(place) for place in inside] == [PAINT] * 4
        assert [image.getpixel(place) for place in outside] == [WHITE] * 4


async def test_a_secret_that_does_not_show_costs_nothing() -> None:
    stage = await Stage.set(pin(None, states=frozenset({"enabled"})))
    for image in await stage.both():
        assert colours(image) == {WHITE}


async def test_a_part_of_a_pixel_is_a_pixel() -> None:
    """A picture of half the size: a secret of odd places and sizes takes every pixel that it touches."""
    stage = await Stage.set(pin((11, 13, 21, 7)))
    stage.screen.scale_milli, stage.screen.origin = 500, (3, 2)
    for image in await stage.both():
        assert RED not in colours(image)
        painted = [x for x in range(SIZE) for y in range(SIZE) if image.getpixel((x, y)) == PAINT]
        # From 11 to 32 with its margin, less the corner, at half the size.
        assert (min(painted), max(painted)) == (2, 16)


@pytest.mark.parametrize("bounds", [(-10, -10, 20, 20), (90, 90, 50, 50), (-5, 40, 500, 10)])
async def test_what_of_a_secret_lies_in_the_picture_is_painted(bounds: Bounds) -> None:
    stage = await Stage.set(pin(bounds))
    for image in await stage.both():
        assert colours(image) == {WHITE, PAINT}


async def test_parts_elements_and_monitors_are_cut_from_what_is_painted() -> None:
    stage = await Stage.set(pin((10, 10, 20, 5)), button("save", "Save", bounds=(2, 2, 40, 30)))
    surface = stage.world.app.surface.surface_id
    asked: list[dict[str, Any]] = [
        {"surface": surface, "region": [8, 8, 30, 30]},
        {"surface": surface, "query": {"filters": [{"role": "button"}]}},
        {"surface": surface, "query": {"filters": [{"role": "password"}]}},
        {"monitor": "left"},
        {"region": [10, 10, 20, 5]},
    ]
    for one in asked:
        colour = colours(await stage.take(**one))
        assert PAINT in colour
        assert RED not in colour


async def test_a_window_of_a_closed_application_is_painted_whatever_covers_it() -> None:
    stage = await Stage.set(button("save", "Save"), policy=TITLE, bounds=(10, 10, 50, 50), frame_extents=(1, 1, 8, 1))
    other = MemoryApp([button("b", "B")], name="other", pid=777)
    stage.world.desk.observers = (stage.world.app, other)
    stage.world.app.surface = msgspec.structs.replace(stage.world.app.surface, title="My Bank")
    front = {"id": 2, "pid": 777, "title": "other", "bounds": (30, 30, 60, 60), "minimized": False}
    stage.screen.windows = (front, {**stage.screen.windows[0], "title": "My Bank"})
    image = await stage.take()
    assert [image.getpixel(place) for place in ((9, 2), (59, 59), (40, 40))] == [PAINT] * 3
    assert [image.getpixel(place) for place in ((8, 2), (9, 1), (61, 61), (80, 80))] == [WHITE] * 4


async def test_another_window_of_a_process_is_painted_unless_it_is_certainly_an_open_one() -> None:
    stage = await Stage.set(button("save", "Save"), policy=TITLE)
    app = stage.world.app
    bank = msgspec.structs.replace(app.surface, surface_id="m-bank", title="My Bank", native_window=2)
    main = msgspec.structs.replace(app.surface, native_window=1)
    two = MemoryApp([button("save", "Save")])
    two.surface = bank
    app.surface = main
    stage.world.desk.observers = (app, two)
    pid = app.surface.app.pid
    windows = [
        {"id": number, "pid": pid, "title": "x", "bounds": (30 * number - 30, 0, 20, 20), "minimized": False}
        for number in (1, 2, 3)
    ]
    stage.screen.windows = tuple(windows)
    image = await stage.take()
    assert [image.getpixel((30 * number + 5, 5)) for number in range(3)] == [WHITE, PAINT, PAINT]


async def test_what_floats_above_is_painted_unless_its_process_is_open_and_shows_no_secret() -> None:
    stage = await Stage.set(button("save", "Save"))
    pid = stage.world.app.surface.app.pid
    popups: list[dict[str, Any]] = [
        {"id": 5, "pid": pid, "bounds": (0, 0, 10, 10)},
        {"id": 6, "pid": 999, "bounds": (20, 0, 10, 10)},
        {"id": 7, "pid": None, "bounds": (40, 0, 10, 10)},
    ]
    stage.screen.floating = tuple(popups)
    places = ((5, 5), (25, 5), (45, 5))
    image = await stage.take()
    assert [image.getpixel(place) for place in places] == [WHITE, PAINT, PAINT]
    stage.world.app.add(pin((60, 60, 5, 5)))
    image = await stage.take()
    assert [image.getpixel(place) for place in places] == [PAINT] * 3


async def test_a_closed_window_that_moves_while_the_desktop_is_pictured_is_in_no_picture() -> None:
    stage = await Stage.set(button("save", "Save"), policy=CLOSED, bounds=(0, 0, 20, 20))

    def move() -> None:
        stage.screen.windows = (window(stage.world, (stage.screen.taken, 0, 20, 20)),)

    stage.screen.after = move
    with pytest.raises(CaptureUnavailable) as refused:
        await stage.take()
    assert refused.value.details == {"reason": "moving"}


async def test_an_application_that_stops_answering_is_painted_over() -> None:
    stage = await Stage.set(button("save", "Save"), bounds=(20, 20, 30, 30))

    async def hung(*_: Any, **__: Any) -> Any:
        raise Unavailable("the application does not answer")

    stage.world.app.read = hung  # type: ignore[method-assign]
    image = await stage.take()
    assert (image.getpixel((30, 30)), image.getpixel((60, 60))) == (PAINT, WHITE)


async def test_pictures_of_an_application_that_a_rule_keeps_back_are_given_out_by_nothing() -> None:
    stage = await Stage.set(button("save", "Save"), policy=NO_PICTURES, bounds=(20, 20, 30, 30))
    surface = stage.world.app.surface.surface_id
    assert (await stage.host.call(stage.session, "observe", {"surface": surface}))["text"]
    with pytest.raises(PolicyDenied, match="no picture"):
        await stage.take(surface=surface)
    assert stage.screen.taken == 0
    image = await stage.take()
    assert (image.getpixel((30, 30)), image.getpixel((60, 60))) == (PAINT, WHITE)


async def test_a_window_that_becomes_closed_while_it_is_pictured_is_not_given_out() -> None:
    stage = await Stage.set(button("save", "Save"), policy=TITLE)
    app = stage.world.app

    def close() -> None:
        app.root = msgspec.structs.replace(app.root, name="My Bank")
        app.change("save", name="Save")

    stage.screen.after = close
    with pytest.raises(PolicyDenied):
        await stage.take(surface=app.surface.surface_id)


async def test_a_secret_is_pictured_once_its_window_has_painted_what_it_told() -> None:
    """A field that scrolled is drawn some frames after accessibility says so; a window at rest is not waited for."""
    stage = await Stage.set(pin((10, 10, 20, 5)))
    quiet = [0, 40, limits.PICTURE_REST_MS - 1, limits.PICTURE_REST_MS]
    waited: list[int] = []

    async def stirred(_: str, __: int, timeout_ms: int) -> bool:
        waited.append(timeout_ms)
        assert stage.screen.taken == 0
        return False

    stage.world.app.busy = lambda _: (quiet.pop(0), False)  # type: ignore[method-assign]
    stage.world.app.stirred = stirred  # type: ignore[method-assign]
    await stage.take(surface=stage.world.app.surface.surface_id)
    assert waited == [limits.PICTURE_REST_MS, limits.PICTURE_REST_MS - 40, 1]


async def test_a_window_that_never_rests_is_waited_for_no_longer_than_the_bound() -> None:
    stage = await Stage.set(pin((10, 10, 20, 5)))
    clock, now = stage.world.clock, [0]
    stage.world.clock.monotonic_ms = lambda: now[0]  # type: ignore[method-assign]
    waited: list[int] = []

    async def stirred(_: str, __: int, timeout_ms: int) -> bool:
        waited.append(timeout_ms)
        now[0] += timeout_ms
        return True

    stage.world.app.busy = lambda _: (0, False)  # type: ignore[method-assign]
    stage.world.app.stirred = stirred  # type: ignore[method-assign]
    image = await stage.take(surface=stage.world.app.surface.surface_id)
    assert sum(waited) == limits.PICTURE_REST_MS_CAP
    assert colours(image) == {WHITE, PAINT}
    assert clock is stage.world.clock
