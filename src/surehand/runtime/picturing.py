"""Pictures for an agent: of a window, a part of one, an element, a monitor, or an isolated desktop (spec §5.6).

Secret fields are painted over before a picture leaves; what was shown where is kept under its capture id, so that a
place in it means what it showed there (see `sights`). On request it also tells where what can be acted upon stands.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from surehand.core.release import is_secret
from surehand.core.scene.marks import Marks, marks_of
from surehand.errors import CaptureUnavailable, InvalidRequest, PolicyDenied
from surehand.model.record import to_value
from surehand.model.scene import Bounds, Capture, Scene
from surehand.ports import Screen
from surehand.runtime import params as p
from surehand.runtime.parts import Parts
from surehand.runtime.pictures import crop, crop_region, paint_out
from surehand.runtime.scenes import desk_of
from surehand.runtime.session import Session
from surehand.runtime.sights import Shown, Sight, inside, unseen, windows_of
from surehand.runtime.waiting import settle
from surehand.runtime.where import element_of, one_surface


async def screenshot(parts: Parts, session: Session, args: p.TakePicture) -> dict[str, Any]:
    """Take a picture of a window, an element, a region, or the desktop; secret fields are painted over."""
    screen = desk_of(session).screen
    if screen is None:
        raise CaptureUnavailable("this desktop gives no pictures", fix="surehand doctor")
    if args.is_desktop:
        parts.authority.check_usable()
        with _untold():
            return await _of_desktop(parts, session, screen, args)
    if args.settle and args.surface is not None:
        await _come_to_rest(parts, session, args)
    scene, index = await element_of(parts, session, args, places=True)
    surface_id = scene.surface.surface_id
    capture, data = await screen.capture(scene.surface)
    # Where it stood before and where it stands after: one of them is what the picture shows, also while it scrolls.
    after = await parts.scenes.observe(session, surface_id, hand_out=False)
    data = await paint_out(capture, data, [*_secrets(scene), *_secrets(after)])
    frame = (capture.origin_x, capture.origin_y, capture.width, capture.height)
    if index is not None:
        capture, data = await crop(capture, data, scene.tree.nodes[index].bounds)
    elif args.region is not None:
        capture, data = await crop_region(capture, data, args.region)
    windows = (Shown(surface_id, frame),)
    session.sights.keep(Sight(capture=capture, windows=windows, scenes={surface_id: scene}, png=data))
    png = base64.b64encode(data).decode("ascii")
    parts.reads.note(session, scene.surface, "desktop.screenshot.window", png, scene.generation)
    value = {"capture": to_value(capture), "png_base64": png, "window": {"surface": surface_id, "bounds": list(frame)}}
    return {**value, **_marked(session, capture, windows, {surface_id: scene})} if args.marks else value


async def _come_to_rest(parts: Parts, session: Session, args: p.TakePicture) -> None:
    """Wait until a window shows what was done to it: what accessibility tells, it may paint a moment later."""
    surface = await one_surface(parts, session, args, listed=False)
    desk = desk_of(session)
    await settle(desk.observer_of(surface.surface_id), surface.surface_id, parts.clock, desk.effect_at_ms)


def _secrets(scene: Scene) -> list[Bounds | None]:
    return [node.bounds for node in scene.tree.nodes if is_secret(node)]


@contextmanager
def _untold() -> Iterator[None]:
    """Say of a closed window only that there is one: nobody named it, and its rule may name it."""
    try:
        yield
    except PolicyDenied as error:
        if str(error.details.get("rule", "")).startswith("engine."):
            raise  # an engine that failed closed nothing
        raise PolicyDenied(
            "a window in the picture is closed to reading",
            gate="policy",
            fix="take a picture of one window by its name, or ask the operator",
        ) from None


async def _of_desktop(parts: Parts, session: Session, screen: Screen, args: p.TakePicture) -> dict[str, Any]:
    """The whole desktop shows every window, so every window must be open to this session.

    What could not be looked at, because its application hangs or says nothing of itself, is painted over.
    """
    desk = desk_of(session)
    if desk.isolation == "shared":
        raise InvalidRequest(
            "a picture of the whole of a shared desktop is an operation of its own",
            fix="act with the screenshot action, or name a surface",
        )
    monitors = await screen.monitors()
    region = args.region if args.monitor is None else _monitor(monitors, args.monitor)
    found = await desk.surfaces()
    scenes: dict[str, Scene] = {}
    for surface in found:
        # Before the picture: what it shows may be newer than this, never older, and newer is refused.
        scene = scenes[surface.surface_id] = await parts.scenes.observe(session, surface.surface_id)
        parts.reads.note(session, surface, "desktop.screenshot.desktop", "", scene.generation)
    stacking = await screen.stacking()
    capture, data = await screen.capture(None)
    covered: list[Bounds | None] = list(unseen((*stacking, *await screen.stacking()), scenes))
    for surface_id, scene in scenes.items():
        covered += [*_secrets(scene), *_secrets(await parts.scenes.observe(session, surface_id, hand_out=False))]
    data = await paint_out(capture, data, covered)
    if region is not None:
        capture, data = await crop_region(capture, data, region)
    windows = windows_of(stacking, scenes)
    session.sights.keep(Sight(capture=capture, windows=windows, scenes=scenes, png=data))
    value = {
        "capture": to_value(capture),
        "png_base64": base64.b64encode(data).decode("ascii"),
        "monitors": list(monitors),
    }
    return {**value, **_marked(session, capture, windows, scenes)} if args.marks else value


def _monitor(monitors: tuple[dict[str, Any], ...], name: str) -> tuple[int, int, int, int]:
    """Return where a monitor's part of the desktop is.

    Raises:
        InvalidRequest: there is none of that name.
    """
    for monitor in monitors:
        if monitor["name"] == name:
            x, y, width, height = monitor["bounds"]
            return x, y, width, height
    raise InvalidRequest(
        "this desktop has no such monitor",
        fix="use one of the candidates",
        observed={"candidates": [f"{one['name']} {one['bounds']}" for one in monitors]},
    )


def _marked(session: Session, capture: Capture, windows: tuple[Shown, ...], scenes: dict[str, Scene]) -> dict[str, Any]:
    """Return the marks of each window that shows, and remember that the session was shown these elements."""
    marks: list[dict[str, Any]] = []
    outside: list[str] = []
    more = 0
    for window in windows:
        scene = None if window.surface_id is None else scenes.get(window.surface_id)
        if scene is None:
            continue
        found = marks_of(scene, capture, _front(windows, window))
        marks += _told(session, scene, found)
        outside += [scene.targets[index].label for index in found.outside]
        more += found.more
    return {"marks": marks, "outside": outside, "unmarked": more}


def _front(windows: tuple[Shown, ...], own: Shown) -> Any:
    """Return a test whether a place of the desktop shows this window and none before it."""
    return lambda place: next((one for one in windows if inside(one.bounds, place)), None) is own


def _told(session: Session, scene: Scene, found: Marks) -> list[dict[str, Any]]:
    told = []
    for mark in found.marks:
        node, target = scene.tree.nodes[mark.place], scene.targets[mark.place]
        session.shown.match(scene, mark.place)
        value: dict[str, Any] = {"label": target.label, "role": node.role, "name": node.name, "box": list(mark.box)}
        if target.context:
            value["context"] = target.context
        if mark.cut:
            value["cut"] = True
        told.append(value)
    return told
