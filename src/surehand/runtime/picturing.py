"""Pictures for an agent: of a window, a part of one, an element, a monitor, or an isolated desktop (spec §5.6).

Secret fields are painted over before a picture leaves; what was shown where is kept under its capture id, so that a
place in it means what it showed there (see `sights`). On request it also tells where what can be acted upon stands.
"""

from __future__ import annotations

import base64
from typing import Any

from surehand.core.scene.marks import Marks, marks_of
from surehand.core.scene.tree import index_of
from surehand.errors import CaptureUnavailable, InvalidRequest
from surehand.model.record import to_value
from surehand.model.scene import Bounds, Capture, Scene
from surehand.ports import Screen
from surehand.runtime import params as p
from surehand.runtime.parts import Parts
from surehand.runtime.pictures import crop, crop_region
from surehand.runtime.scenes import desk_of
from surehand.runtime.session import Session
from surehand.runtime.shots import desktop_shot, window_shot
from surehand.runtime.sights import Shown, Sight, inside, windows_of
from surehand.runtime.waiting import settle
from surehand.runtime.where import element_of, one_surface


async def screenshot(parts: Parts, session: Session, args: p.TakePicture) -> dict[str, Any]:
    """Take a picture of a window, an element, a region, or the desktop; secret fields are painted over."""
    screen = desk_of(session).screen
    if screen is None:
        raise CaptureUnavailable("this desktop gives no pictures", fix="surehand doctor")
    if args.is_desktop:
        parts.authority.check_usable()
        return await _of_desktop(parts, session, screen, args)
    if args.settle and args.surface is not None:
        await _come_to_rest(parts, session, args)
    scene, index = await element_of(parts, session, args, places=True)
    meant = None if index is None else scene.tree.nodes[index].handle
    surface_id = scene.surface.surface_id
    shot = await window_shot(parts, session, screen, scene)
    capture, data, scene = shot.capture, shot.png, shot.scenes[surface_id]
    frame = (capture.origin_x, capture.origin_y, capture.width, capture.height)
    if meant is not None:
        capture, data = await crop(capture, data, _bounds_of(scene, meant))
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


def _bounds_of(scene: Scene, handle: str) -> Bounds | None:
    """Return where an element stands in a scene that may be newer than the one it was found in."""
    index = index_of(scene.tree).by_handle.get(handle)
    return None if index is None else scene.tree.nodes[index].bounds


async def _of_desktop(parts: Parts, session: Session, screen: Screen, args: p.TakePicture) -> dict[str, Any]:
    """A picture of an isolated desktop: what this session may not see in it is painted over (see `shots`)."""
    desk = desk_of(session)
    if desk.isolation == "shared":
        raise InvalidRequest(
            "a picture of the whole of a shared desktop is an operation of its own",
            fix="act with the screenshot action, or name a surface",
        )
    monitors = await screen.monitors()
    region = args.region if args.monitor is None else _monitor(monitors, args.monitor)
    shot = await desktop_shot(parts, session, screen)
    for scene in shot.scenes.values():
        parts.reads.note(session, scene.surface, "desktop.screenshot.desktop", "", scene.generation)
    capture, data = shot.capture, shot.png
    if region is not None:
        capture, data = await crop_region(capture, data, region)
    windows = windows_of(shot.stacking, shot.scenes)
    session.sights.keep(Sight(capture=capture, windows=windows, scenes=shot.scenes, png=data))
    value: dict[str, Any] = {
        "capture": to_value(capture),
        "png_base64": base64.b64encode(data).decode("ascii"),
        "monitors": list(monitors),
    }
    if shot.covered:
        # That there are such windows, not which: a rule may name one.
        value["covered_windows"] = shot.covered
    return {**value, **_marked(session, capture, windows, shot.scenes)} if args.marks else value


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
