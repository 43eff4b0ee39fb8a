"""What an effect changed before the caller's eyes: a diff of each window it was aimed at, and windows new or gone.

The diff stands on the text that the caller was given last, so that caller's text and diff make the current text. A look
that fails says so in its place and never takes a result away. How long is waited before looking is the rule of
`waiting.come_to_rest`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from surehand import limits
from surehand.core.scene.diff import diff
from surehand.core.scene.render import RenderOptions, render
from surehand.core.scene.settle import differs
from surehand.errors import SurehandError, WindowNotFound
from surehand.model.outcome import Reply
from surehand.model.request import Request
from surehand.model.scene import Scene, Surface
from surehand.model.targets import PointTarget
from surehand.runtime import params as p
from surehand.runtime.parts import Parts
from surehand.runtime.scenes import desk_of
from surehand.runtime.session import Session
from surehand.runtime.shown import Before
from surehand.runtime.views import surface_value
from surehand.runtime.waiting import come_to_rest, settle_after

_OPENED: Final = RenderOptions(nodes_max=limits.RENDER_OPENED_NODES_MAX)


async def before(parts: Parts, session: Session, requests: Sequence[Request]) -> Before:
    """Remember what the caller knows now."""
    found: dict[str, Scene] = {}
    for request in requests:
        surface_id = _aimed_at(session, request)
        if surface_id is not None and surface_id not in found:
            scene = await _known(parts, session, surface_id)
            if scene is not None:
                found[surface_id] = scene
    known = session.shown.windows
    if known is None:
        known = {surface.surface_id for surface in await parts.scenes.surfaces(session)}
    return Before(found, frozenset(known))


async def _known(parts: Parts, session: Session, surface_id: str) -> Scene | None:
    """Return the scene whose text the caller was given; where there is none, the window as it is now."""
    scene = session.shown.scenes.get(surface_id)
    if scene is not None:
        return scene
    try:
        return await parts.scenes.observe(session, surface_id, hand_out=False)
    except SurehandError:
        return None  # whoever acts on it is told why


def _aimed_at(session: Session, request: Request) -> str | None:
    target = request.target
    if isinstance(target, PointTarget):
        return session.sights.surface_at(target)
    scene = session.scenes.get(getattr(target, "scene_id", ""))
    if scene is not None:
        return scene.surface.surface_id
    return getattr(target, "surface", None) or getattr(target, "ref", None)


def note(session: Session, seen: Before, replies: Sequence[Reply]) -> None:
    """Keep what was known before some effects, to say later what all of them changed."""
    if session.later is None:
        session.later = seen
    later = session.later
    for surface_id, scene in seen.scenes.items():
        if len(later.scenes) < limits.CHANGES_LATER_MAX:
            later.scenes.setdefault(surface_id, scene)
    later.verified = later.verified and seen.verified and _all_verified(replies)


async def changes(parts: Parts, session: Session, args: p.Changes) -> dict[str, Any]:
    """Say what the effects changed whose change was to be asked for later."""
    seen, session.later = session.later, None
    return {} if seen is None else await _since(parts, session, seen, full=args.full)


async def after(
    parts: Parts, session: Session, seen: Before, replies: Sequence[Reply], *, full: bool = False
) -> dict[str, Any]:
    """Wait a moment until the windows are at rest and say what is different.

    Of one window its facts are the answer's own; `windows` is there only for several.
    """
    seen.verified = _all_verified(replies)
    return await _since(parts, session, seen, full=full)


async def opened(
    parts: Parts, session: Session, seen: Before, replies: Sequence[Reply], *, full: bool = False
) -> dict[str, Any]:
    """Name the windows that are new to the caller, whose text it does not want; asked as `after` is."""
    del replies, full
    try:
        now = await parts.scenes.surfaces(session)
    except SurehandError as error:
        return {"error": error.to_value()}
    session.shown.windows = {surface.surface_id for surface in now}
    new = [surface_value(surface) for surface in now if surface.surface_id not in seen.windows]
    return {"opened": new[: limits.CANDIDATES_MAX]} if new else {}


def _all_verified(replies: Sequence[Reply]) -> bool:
    """Return whether every effect was read back; what had ended before brings nothing along now."""
    return all(
        reply.replayed or (reply.terminal is not None and reply.terminal.receipt.effect == "verified")
        for reply in replies
    )


async def _since(parts: Parts, session: Session, seen: Before, *, full: bool) -> dict[str, Any]:
    now = await _at_rest(parts, session, seen)
    found = [await _change(parts, session, scene, full=full) for scene in seen.scenes.values()]
    found += await _elsewhere(parts, session, seen)
    value: dict[str, Any] = {} if not found else dict(found[0]) if len(found) == 1 else {"windows": found}
    if isinstance(now, SurehandError):
        return {**value, "error": now.to_value()}
    session.shown.windows = {surface.surface_id for surface in now}
    opened = [surface for surface in now if surface.surface_id not in seen.windows]
    if opened:
        value["opened"] = [await _opened(parts, session, surface) for surface in opened[: limits.CANDIDATES_MAX]]
    closed = sorted(seen.windows - session.shown.windows - desk_of(session).silent.keys())
    if closed:
        value["closed"] = closed
    return value


async def _at_rest(parts: Parts, session: Session, seen: Before) -> tuple[Surface, ...] | SurehandError:
    """Wait until the windows aimed at are at rest; return the windows there are then."""
    desk = desk_of(session)
    for surface_id, scene in seen.scenes.items():

        async def changed(surface_id: str = surface_id, scene: Scene = scene) -> bool:
            now = await parts.scenes.observe(session, surface_id, hand_out=False)
            if differs(scene, now):
                return True
            windows = await desk_of(session).siblings(now.surface)
            return any(one.surface_id not in seen.windows for one in windows)

        try:
            observer = desk.observer_of(surface_id)
            if seen.verified:
                await _look_ahead(parts, session, scene)
                await settle_after(
                    observer, surface_id, parts.clock, limits.SETTLE_VERIFIED_QUIET_MS, desk.effect_at_ms
                )
            else:
                await come_to_rest(observer, surface_id, parts.clock, desk.effect_at_ms, changed)
        except SurehandError:
            continue  # closed, or silent; the look says which
    try:
        return await parts.scenes.surfaces(session)
    except SurehandError as error:
        return error


async def _look_ahead(parts: Parts, session: Session, before: Scene) -> None:
    """Work out the change while the window is waited for: where nothing more comes, that is what will be told."""
    scene = await parts.scenes.observe(session, before.surface.surface_id, hand_out=False)
    diff(before, scene, session.shown.form(before.surface.surface_id))


async def _change(parts: Parts, session: Session, before: Scene, *, full: bool) -> dict[str, Any]:
    surface_id = before.surface.surface_id
    try:
        scene = await parts.scenes.observe(session, surface_id)
    except WindowNotFound:
        return {"surface": surface_id, "kind": "closed", "text": ""}
    except SurehandError as error:
        return {"surface": surface_id, "error": error.to_value()}
    return _told(session, before, scene, full=full)


def _told(session: Session, before: Scene, scene: Scene, *, full: bool) -> dict[str, Any]:
    form = session.shown.form(scene.surface.surface_id)
    changed = diff(None if full else before, scene, form)
    session.shown.text(scene, form)
    return {
        "surface": scene.surface.surface_id,
        "scene_id": scene.scene_id,
        "generation": scene.generation,
        "kind": "full" if changed.full else "diff",
        "text": changed.text,
    }


async def _elsewhere(parts: Parts, session: Session, seen: Before) -> list[dict[str, Any]]:
    """Return the changes of other windows of the same applications whose text the caller has."""
    pids = {scene.surface.app.pid for scene in seen.scenes.values()}
    found = []
    for surface_id, before in list(session.shown.scenes.items()):
        if surface_id in seen.scenes or surface_id not in seen.windows or before.surface.app.pid not in pids:
            continue
        try:
            scene = await parts.scenes.observe(session, surface_id)
        except SurehandError:
            continue  # gone with what closed, or to be asked for by itself
        if differs(before, scene):
            found.append(_told(session, before, scene, full=False))
    return found


async def _opened(parts: Parts, session: Session, surface: Surface) -> dict[str, Any]:
    """Describe a window that is new to the caller, with its text, once it has been filled."""
    value = surface_value(surface)
    try:
        desk = desk_of(session)
        observer = desk.observer_of(surface.surface_id)
        quiet_ms = limits.SETTLE_SEEN_QUIET_MS
        await settle_after(observer, surface.surface_id, parts.clock, quiet_ms, desk.effect_at_ms)
        scene = await parts.scenes.observe(session, surface.surface_id)
    except SurehandError as error:
        return {**value, "error": error.to_value()}
    session.shown.text(scene, _OPENED)
    return {**value, "scene_id": scene.scene_id, "generation": scene.generation, "text": render(scene, _OPENED).text}
