"""Pictures as they were handed out: what stood where in them, so that a click in one reaches what it showed (§3.3).

Promises that a place in a picture is the place of the element that stood there when the picture was taken, and of
nothing that came there since; where accessibility knows no element, the pixels around the place stand for it.
"""

from __future__ import annotations

import asyncio
import io
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from surehand import limits
from surehand.errors import InvalidRequest, StaleTarget, TargetError, TargetNotFound
from surehand.model.scene import Bounds, Capture, Scene
from surehand.model.targets import PointTarget

_TAKE_ANOTHER: Final = "take a new screenshot"
Place = tuple[int, int]


class Shown(msgspec.Struct, frozen=True):
    """A window in a picture. `surface_id` is None for one that cannot be read; `bounds` are desktop pixels."""

    surface_id: str | None
    bounds: Bounds


class Sight(msgspec.Struct, frozen=True, kw_only=True):
    """One picture: its record, its windows from front to back, what they showed, and its pixels."""

    capture: Capture
    windows: tuple[Shown, ...]
    scenes: dict[str, Scene]
    png: bytes

    def place(self, target: PointTarget) -> Place:
        """Return a place of the picture in desktop pixels.

        Raises:
            StaleTarget: it is not in the picture.
        """
        capture = self.capture
        if target.space == "screenshot":
            if not (0 <= target.x < capture.width and 0 <= target.y < capture.height):
                raise StaleTarget("the place is outside the picture", fix="choose a place inside it")
            x = capture.origin_x + target.x * 1000 // capture.scale_milli
            return x, capture.origin_y + target.y * 1000 // capture.scale_milli
        if target.space == "window":
            if capture.surface_id is None:
                raise InvalidRequest("a picture of the desktop has no window to count from", fix="use another space")
            # Of the window, whatever part of it the picture shows.
            x, y = self.windows[0].bounds[:2]
            return x + target.x, y + target.y
        return target.x, target.y

    def window_at(self, place: Place) -> tuple[str, Bounds]:
        """Return the front-most window that the picture showed at a place, and where it stood.

        Raises:
            TargetNotFound: none that can be read.
        """
        for shown in self.windows:
            if inside(shown.bounds, place):
                if shown.surface_id is None or shown.surface_id not in self.scenes:
                    break
                return shown.surface_id, shown.bounds
        raise TargetNotFound("no window that can be read is at that place", fix="take a picture of one window")


class Sights:
    """The recent pictures of one session; bounded in number, in time and in bytes."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Sight] = OrderedDict()

    def keep(self, sight: Sight) -> None:
        """Remember a picture, and forget what may not be acted upon any more."""
        self._kept[sight.capture.capture_id] = sight
        oldest = sight.capture.taken_at_ms - limits.SCENE_ACT_MS_MAX
        size = sum(len(kept.png) for kept in self._kept.values())
        for name, kept in list(self._kept.items()):
            many = len(self._kept) > limits.CAPTURES_KEPT_MAX or size > limits.CAPTURES_BYTES_KEPT_MAX
            if kept is not sight and (many or kept.capture.taken_at_ms < oldest):
                size -= len(kept.png)
                del self._kept[name]

    def find(self, capture_id: str, now_ms: int) -> Sight:
        """Return a picture that may still be acted upon.

        Raises:
            StaleTarget: it is not one of the session's recent ones.
        """
        sight = self._kept.get(capture_id)
        if sight is None or now_ms - sight.capture.taken_at_ms > limits.SCENE_ACT_MS_MAX:
            raise StaleTarget("that picture is not a recent one of this session", fix=_TAKE_ANOTHER)
        return sight

    def surface_at(self, target: PointTarget) -> str | None:
        """Return the window that a picture showed at a place, however old it is; None where that is not known."""
        sight = self._kept.get(target.capture_id)
        if sight is None:
            return None
        try:
            return sight.window_at(sight.place(target))[0]
        except TargetError:
            return None

    def clear(self) -> None:
        """Forget everything."""
        self._kept.clear()


def windows_of(stacking: Sequence[Mapping[str, Any]], scenes: Mapping[str, Scene]) -> tuple[Shown, ...]:
    """Return the windows of a picture of the whole desktop, each with the surface that it certainly is."""
    found = []
    for window in stacking:
        if window["minimized"]:
            continue
        names = [
            surface_id
            for surface_id, scene in scenes.items()
            if window["id"] == scene.surface.native_window
            or (scene.surface.native_window is None and _is_of(window, scene))
        ]
        found.append(Shown(names[0] if len(names) == 1 else None, tuple(window["bounds"])))
    return tuple(found)


def _is_of(window: Mapping[str, Any], scene: Scene) -> bool:
    return (window["pid"], window["title"]) == (scene.surface.app.pid, scene.surface.title)


def element_at(scene: Scene, place: Place) -> int | None:
    """Return the smallest showing element at a place; of equal ones the last in document order, which is on top."""
    best: int | None = None
    best_area = 0
    for index, node in enumerate(scene.tree.nodes):
        if node.bounds is None or "showing" not in node.states or not inside(node.bounds, place):
            continue
        area = node.bounds[2] * node.bounds[3]
        if best is None or area <= best_area:
            best, best_area = index, area
    return best


def inside(bounds: Bounds, place: Place) -> bool:
    """Return whether a place lies in half-open bounds (x, y, width, height)."""
    x, y, width, height = bounds
    return x <= place[0] < x + width and y <= place[1] < y + height


def check_same(seen: Scene, current: Scene, place: Place) -> None:
    """Refuse a place where another element is now.

    Raises:
        StaleTarget: naming neither; the fence names what became of the element that was there.
    """
    then, now = element_at(seen, place), element_at(current, place)
    before = None if then is None else seen.tree.nodes[then].handle
    if before != (None if now is None else current.tree.nodes[now].handle):
        raise StaleTarget("another element is at that place now", fix=_TAKE_ANOTHER, details={"what": "place"})


def check_window(then: Bounds, now: Bounds | None) -> None:
    """Refuse a picture whose window is elsewhere or of another size now.

    Raises:
        StaleTarget: always where it is not known.
    """
    if now != then:
        raise StaleTarget(
            "the window moved since the picture was taken", fix=_TAKE_ANOTHER, details={"what": "window_place"}
        )


async def check_pixels(sight: Sight, now: Capture, png: bytes, place: Place) -> None:
    """Refuse a place around which the picture of now shows something else.

    Raises:
        StaleTarget: more than a caret or a hover could explain.
    """
    if not await asyncio.to_thread(_look_alike, sight, now, png, place):
        raise StaleTarget("something else is shown at that place now", fix=_TAKE_ANOTHER, details={"what": "pixels"})


def _look_alike(sight: Sight, now: Capture, png: bytes, place: Place) -> bool:
    import numpy as np  # noqa: PLC0415 - most daemons never need it

    region = _region(place, (sight.capture, now))
    then_part, now_part = _pixels(sight.capture, sight.png, region), _pixels(now, png, region)
    if then_part.shape != now_part.shape or not then_part.size:
        return False
    differs = (np.abs(then_part - now_part) > limits.POINT_LEVELS_TOLERATED).any(axis=2)
    return bool(differs.mean() * 1000 <= limits.POINT_PIXELS_TOLERATED_MILLI)


def _region(place: Place, captures: Sequence[Capture]) -> tuple[int, int, int, int]:
    """Return left, top, right, bottom on the desktop of what all pictures show around a place."""
    half = limits.POINT_REGION_PX // 2
    left, top, right, bottom = place[0] - half, place[1] - half, place[0] + half, place[1] + half
    for one in captures:
        left, top = max(left, one.origin_x), max(top, one.origin_y)
        right, bottom = min(right, one.origin_x + one.width), min(bottom, one.origin_y + one.height)
    return left, top, max(left, right), max(top, bottom)


def _pixels(capture: Capture, png: bytes, region: tuple[int, int, int, int]) -> Any:
    """Return a region of a picture as signed numbers."""
    import numpy as np  # noqa: PLC0415 - as above
    from PIL import Image  # noqa: PLC0415 - as above

    left, top, right, bottom = region
    x, y = capture.origin_x, capture.origin_y
    with Image.open(io.BytesIO(png)) as opened:
        return np.asarray(opened.convert("RGB").crop((left - x, top - y, right - x, bottom - y)), dtype=np.int16)
