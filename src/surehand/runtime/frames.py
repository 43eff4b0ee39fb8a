"""What people who watch see: pictures of a desktop as it changes, and what its agents do there now.

Guarantees:
- A picture is painted like every other (runtime/shots.py): no secret field, no window that policy closes.
- A watcher asks for the next picture, so one that is slow gets the newest and nothing queues up; a desktop is pictured
  at most every `limits.VIEW_MS_MIN`, for all watchers together, and only while somebody asks.
- A picture that cannot be taken says why, and what goes on is told all the same.
- Where the agent aims is data beside the picture, never drawn into it.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import io
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from surehand import limits
from surehand.core.scene.describe import escape
from surehand.errors import CaptureUnavailable, InvalidRequest, SurehandError, TooLarge
from surehand.model.scene import Capture
from surehand.runtime import halting
from surehand.runtime import params as p
from surehand.runtime.parts import Parts
from surehand.runtime.run import Run
from surehand.runtime.session import Desk, Session, new_session_id
from surehand.runtime.shots import desktop_shot

_TAG_CHARS: Final = 16
_RECENT_SHOWN: Final = 8
_POINT_PX: Final = 12
_QUALITIES: Final = (78, 60, 40)


@dataclass(slots=True)
class _Picture:
    tag: str
    jpeg: bytes
    width: int
    height: int
    #: Desktop pixels × 1000 for each pixel of the picture.
    scale_milli: int
    error: str = ""


@dataclass(slots=True)
class _View:
    """One desktop, as it was pictured last. `screen_hash` is of the screen before anything was painted over."""

    viewer: Session
    picture: _Picture | None = None
    screen_hash: bytes = b""
    taken_at_ms: int = -limits.VIEW_OLD_MS
    watchers: int = 0
    taking: asyncio.Lock = field(default_factory=asyncio.Lock)


async def now(parts: Parts, _: Session, __: p.Nothing) -> dict[str, Any]:
    """Say what goes on: desktops, their agents and operations, what holds them, who asks for a person."""
    attached = parts.desks.attached()
    names = dict.fromkeys([*attached, *(str(one["name"]) for one in parts.desks.listed())])
    isolations = {str(one["name"]): str(one["isolation"]) for one in parts.desks.listed()}
    return {
        "desktops": [
            {
                "name": name,
                "isolation": isolations.get(name, ""),
                "attached": name in attached,
                **_state(parts, name),
            }
            for name in names
        ],
        "holds": halting.listed(parts),
        "requests": parts.people.open(),
    }


async def frame(parts: Parts, session: Session, args: p.Frame) -> dict[str, Any]:
    """Return the next picture of a desktop and what goes on there.

    Raises:
        InvalidRequest: no agent is on a desktop of that name.
        TooLarge: as many watch it as may.
    """
    desk = parts.desks.attached().get(args.name)
    if desk is None:
        raise InvalidRequest("no agent is on a desktop of that name", fix="`surehand ps` shows where agents are")
    view = _view(parts, desk, session)
    if view.watchers >= limits.VIEW_WATCHERS_MAX:
        raise TooLarge(f"{view.watchers} watch this desktop, which is the limit", fix="close one of the pages")
    view.watchers += 1
    try:
        return await _next(parts, desk, view, args)
    finally:
        view.watchers -= 1


async def _next(parts: Parts, desk: Desk, view: _View, args: p.Frame) -> dict[str, Any]:
    until = parts.clock.monotonic_ms() + args.wait_ms
    while True:
        picture = await _newest(parts, desk, view)
        state = _state(parts, desk.name)
        state_tag = _tag(msgspec.json.encode(state))
        news = picture.tag != args.after or state_tag != args.state_after
        left_ms = until - parts.clock.monotonic_ms()
        if news or left_ms <= 0:
            break
        # A screen has no event that costs less than looking at it.
        await asyncio.sleep(min(left_ms, limits.VIEW_MS_MIN) / 1000)
    value: dict[str, Any] = {
        "name": desk.name,
        "tag": picture.tag,
        "state": state,
        "state_tag": state_tag,
        "error": picture.error,
    }
    value |= {"width": picture.width, "height": picture.height, "scale_milli": picture.scale_milli}
    if picture.tag != args.after:
        value["jpeg_base64"] = base64.b64encode(picture.jpeg).decode("ascii")
    return value


def _view(parts: Parts, desk: Desk, session: Session) -> _View:
    """Return what is known of a desktop's pictures; another desktop of the same name is another one."""
    known: _View | None = parts.views.get(desk.name)
    if known is None or known.viewer.desk is not desk:
        viewer = Session(
            session_id=new_session_id(),
            principal=session.principal,
            role="control",
            trust_level=session.trust_level,
            authority_mode=session.authority_mode,
            desk=desk,
        )
        known = parts.views[desk.name] = _View(viewer)
    return known


# --- pictures -------------------------------------------------------------------------------------------------------


async def _newest(parts: Parts, desk: Desk, view: _View) -> _Picture:
    async with view.taking:
        old_ms = parts.clock.monotonic_ms() - view.taken_at_ms
        if view.picture is None or old_ms >= limits.VIEW_MS_MIN:
            view.picture = await _take(parts, desk, view)
            view.taken_at_ms = parts.clock.monotonic_ms()
        return view.picture


async def _take(parts: Parts, desk: Desk, view: _View) -> _Picture:
    try:
        if desk.screen is None:
            raise CaptureUnavailable("this desktop gives no pictures", fix="surehand doctor")
        seen = hashlib.sha256((await desk.screen.capture(None))[1]).digest()
        old_ms = parts.clock.monotonic_ms() - view.taken_at_ms
        if view.picture is not None and seen == view.screen_hash and old_ms < limits.VIEW_OLD_MS:
            return view.picture
        shot = await desktop_shot(parts, view.viewer, desk.screen)
        # Nobody refers to what the viewer saw; kept, it would be memory of windows that are long gone.
        view.viewer.scenes.clear()
        for gone in view.viewer.latest.keys() - shot.scenes.keys():
            del view.viewer.latest[gone]
        view.screen_hash = seen
        return await asyncio.to_thread(_encoded, shot.capture, shot.png)
    except SurehandError as error:
        view.screen_hash = b""
        return _Picture(_tag(error.message.encode()), b"", 0, 0, 1000, error.message)


def _encoded(capture: Capture, png: bytes) -> _Picture:
    from PIL import Image  # noqa: PLC0415 - most daemons never need it

    with Image.open(io.BytesIO(png)) as opened:
        image = opened.convert("RGB")
    image.thumbnail((limits.VIEW_EDGE_MAX, limits.VIEW_EDGE_MAX))
    data = b""
    while True:
        for quality in _QUALITIES:
            out = io.BytesIO()
            image.save(out, format="JPEG", quality=quality)
            data = out.getvalue()
            if len(data) <= limits.VIEW_BYTES_MAX:
                scale = round(capture.width * 1000 * 1000 / capture.scale_milli / image.width)
                return _Picture(_tag(data), data, image.width, image.height, scale)
        image = image.resize((max(1, image.width // 2), max(1, image.height // 2)))


def _tag(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:_TAG_CHARS]


# --- what goes on ---------------------------------------------------------------------------------------------------


def _state(parts: Parts, name: str) -> dict[str, Any]:
    """Return what agents do on a desktop now and did last, and what keeps them from it. Nothing of it is a text."""
    agents = [one for one in parts.sessions.values() if one.role == "agent" and one.desktop == name]
    runs = [run for run in parts.gateway.runs() if run.session.desktop == name]
    return {
        "agents": [
            {
                "session": one.label,
                "principal": one.principal,
                "client": escape(one.client.get("name", "")),
                "held": _held(one),
            }
            for one in agents
        ],
        "operations": [{**run.told(), "started_at_ms": run.started_wall_ms, "outline": _outline(run)} for run in runs],
        "recent": [one for one in parts.gateway.recent if one["desktop"] == name][-_RECENT_SHOWN:],
        "holds": [one for one in halting.listed(parts) if one["desktop"] in (None, name)],
    }


def _held(session: Session) -> str:
    if session.handed_over() is not None:
        return "handed_over"
    hold = session.brakes.over(session)
    return "" if hold is None else hold.what


def _outline(run: Run) -> list[int] | None:
    """Return where on the desktop an operation aims: its element, else its point, else nothing."""
    node = run.aim.now or run.aim.node
    if node is not None and node.bounds is not None:
        return list(node.bounds)
    if run.aim.point is not None:
        x, y = run.aim.point
        return [x - _POINT_PX, y - _POINT_PX, 2 * _POINT_PX, 2 * _POINT_PX]
    return None
