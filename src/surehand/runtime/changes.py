"""What an effect changed before the caller's eyes: a diff of each window it was aimed at, and windows new or gone.

The diff stands on the text that the caller was given last, so that caller's text and diff make the current text. A look
that fails says so in its place and never takes a result away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from surehand import limits
from surehand.core.scene.diff import diff
from surehand.core.scene.render import RenderOptions, render
from surehand.errors import SurehandError, WindowNotFound
from surehand.model.outcome import Reply
from surehand.model.request import Request
from surehand.model.scene import Scene, Surface
from surehand.runtime.parts import Parts
from surehand.runtime.scenes import desk_of
from surehand.runtime.session import Session
from surehand.runtime.views import surface_value
from surehand.runtime.waiting import settle, settle_after


@dataclass(slots=True, frozen=True)
class Before:
    """What the caller knew before: the scenes of the windows aimed at, and which windows there were."""

    scenes: tuple[Scene, ...]
    windows: frozenset[str]


async def before(parts: Parts, session: Session, requests: Sequence[Request]) -> Before:
    """Remember what the caller knows now."""
    found: dict[str, Scene] = {}
    for request in requests:
        scene = _aimed_at(session, request)
        if scene is not None:
            found.setdefault(scene.surface.surface_id, session.shown.scenes.get(scene.surface.surface_id, scene))
    known = session.shown.windows
    if known is None:
        known = {surface.surface_id for surface in await parts.scenes.surfaces(session)}
    return Before(tuple(found.values()), frozenset(known))


def _aimed_at(session: Session, request: Request) -> Scene | None:
    scene_id = getattr(request.target, "scene_id", None)
    if scene_id is not None:
        return session.scenes.get(scene_id)
    return session.latest.get(str(getattr(request.target, "surface", getattr(request.target, "ref", ""))))


async def after(parts: Parts, session: Session, seen: Before, replies: Sequence[Reply]) -> dict[str, Any]:
    """Wait a moment until the windows are at rest and say what is different; `windows` is there only for several."""
    verified = all(reply.terminal is not None and reply.terminal.receipt.effect == "verified" for reply in replies)
    changes = [await _change(parts, session, scene, verified=verified) for scene in seen.scenes]
    value: dict[str, Any] = {} if not changes else dict(changes[0]) if len(changes) == 1 else {"windows": changes}
    try:
        now = await parts.scenes.surfaces(session)
    except SurehandError as error:
        return {**value, "error": error.to_value()}
    session.shown.windows = {surface.surface_id for surface in now}
    opened = [surface for surface in now if surface.surface_id not in seen.windows]
    if opened:
        value["opened"] = [await _opened(parts, session, surface) for surface in opened[: limits.CANDIDATES_MAX]]
    closed = sorted(seen.windows - session.shown.windows - desk_of(session).silent.keys())
    if closed:
        value["closed"] = closed
    return value


async def _change(parts: Parts, session: Session, before: Scene, *, verified: bool) -> dict[str, Any]:
    surface_id = before.surface.surface_id
    try:
        observer = desk_of(session).observer_of(surface_id)
        if verified:
            await settle_after(observer, surface_id, parts.clock)
        else:
            await settle(observer, surface_id, parts.clock)
        scene = await parts.scenes.observe(session, surface_id)
    except WindowNotFound:
        return {"surface": surface_id, "kind": "closed", "text": ""}
    except SurehandError as error:
        return {"surface": surface_id, "error": error.to_value()}
    changed = diff(before, scene)
    session.shown.text(scene)
    return {
        "surface": surface_id,
        "scene_id": scene.scene_id,
        "generation": scene.generation,
        "kind": "full" if changed.full else "diff",
        "text": changed.text,
    }


async def _opened(parts: Parts, session: Session, surface: Surface) -> dict[str, Any]:
    """Describe a window that is new to the caller, with its text."""
    value = surface_value(surface)
    try:
        scene = await parts.scenes.observe(session, surface.surface_id)
    except SurehandError as error:
        return {**value, "error": error.to_value()}
    session.shown.text(scene)
    text = render(scene, RenderOptions(nodes_max=limits.RENDER_OPENED_NODES_MAX)).text
    return {**value, "scene_id": scene.scene_id, "generation": scene.generation, "text": text}
