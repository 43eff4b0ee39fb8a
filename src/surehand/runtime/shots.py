"""Taking pictures that show no secret: where secrets stand is read before and after, and painted over (spec §6.3).

Guarantees:
- A picture in whose taking a secret field, or a window that may not be seen, moved, came or went is not given out: it
  is taken again, a few times, and then refused as `CaptureUnavailable` with the reason `moving`.
- A window that shows a secret nobody knows the place of is not given out: alone it is refused with the reason
  `secret`, on the desktop it is painted over whole.
- Of a whole desktop, every window that policy closes to the session, that could not be looked at, or that may belong to
  such an application is painted over with its frame, whatever stands before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from surehand import limits
from surehand.core.release import REDACT_PICTURES, is_secret
from surehand.errors import CaptureUnavailable, PolicyDenied, SurehandError
from surehand.model.scene import Bounds, Capture, Scene, Surface
from surehand.ports import Screen
from surehand.runtime.parts import Parts
from surehand.runtime.pictures import paint_out
from surehand.runtime.scenes import desk_of
from surehand.runtime.session import Session
from surehand.runtime.sights import windows_of

#: Where each secret field that shows stands, by handle; None where that is not known.
Secrets = dict[str, Bounds | None]


class Shot(NamedTuple):
    """A picture in which nothing secret is left, and what was seen of the windows as it was taken."""

    capture: Capture
    png: bytes
    scenes: dict[str, Scene]
    stacking: tuple[dict[str, Any], ...] = ()
    #: Windows that were painted over whole.
    covered: int = 0


async def check_pictured(parts: Parts, session: Session, surface: Surface) -> None:
    """Refuse a picture of a window of which the operator gives none out.

    Raises:
        PolicyDenied: also where the window may not be read at all.
    """
    if REDACT_PICTURES in await parts.authority.check_read(session, surface):
        raise PolicyDenied(
            "policy gives out no picture of this application",
            gate="policy",
            fix="read the window with observe instead, or ask the operator",
        )


# --- one window -----------------------------------------------------------------------------------------------------


async def window_shot(parts: Parts, session: Session, screen: Screen, scene: Scene) -> Shot:
    """Take a picture of one window; the scene in it is the one that the picture shows.

    Raises:
        CaptureUnavailable: `details["reason"]` is also `moving` or `secret`.
        PolicyDenied: the window was called otherwise when it was read again.
    """
    surface_id = scene.surface.surface_id
    covered: list[Bounds] = []
    for _ in range(limits.PICTURE_TRIES_MAX):
        if secrets_of(scene):
            await _rest(parts, session, surface_id)
            scene = await parts.scenes.observe(session, surface_id)
        await check_pictured(parts, session, scene.surface)
        before = secrets_of(scene)
        capture, data = await screen.capture(scene.surface)
        after = await parts.scenes.observe(session, surface_id, hand_out=False)
        covered += _known_places([*before.values(), *secrets_of(after).values()])
        if secrets_of(after) == before:
            return Shot(capture, await paint_out(capture, data, covered), {surface_id: scene})
        scene = await parts.scenes.observe(session, surface_id)
    raise _moving()


def secrets_of(scene: Scene) -> Secrets:
    """Return the secret fields of a window that show; of what shows nothing there is nothing to paint."""
    gtk4 = scene.surface.toolkit.lower().startswith("gtk 4")
    wide = limits.SECRET_MARGIN_GTK4_PX if gtk4 else limits.SECRET_MARGIN_PX
    return {
        node.handle: None if node.bounds is None else _grown(node.bounds, wide)
        for node in scene.tree.nodes
        if is_secret(node) and (node.bounds is not None or "showing" in node.states)
    }


def _grown(bounds: Bounds, wide: int) -> Bounds:
    """Return a place with a margin: toolkits round at whole scales, and GTK 4 leaves padding out of what it tells."""
    x, y, width, height = bounds
    tall = limits.SECRET_MARGIN_PX
    return (x - wide, y - tall, width + 2 * wide, height + 2 * tall)


def _known_places(places: Iterable[Bounds | None]) -> list[Bounds]:
    found = []
    for bounds in places:
        if bounds is None:
            raise CaptureUnavailable(
                "the window shows a secret field whose place is not known, so its picture is withheld",
                fix="read the window with observe instead",
                details={"reason": "secret"},
            )
        found.append(bounds)
    return found


async def _rest(parts: Parts, session: Session, surface_id: str) -> None:
    """Wait until what accessibility told last is painted: a field that scrolled is drawn a frame after it says so."""
    observer = desk_of(session).observer_of(surface_id)
    until = parts.clock.monotonic_ms() + limits.PICTURE_REST_MS_CAP
    while (left := until - parts.clock.monotonic_ms()) > 0:
        quiet, _ = observer.busy(surface_id)
        if quiet >= limits.PICTURE_REST_MS:
            return
        await observer.stirred(surface_id, observer.mark(surface_id), min(left, limits.PICTURE_REST_MS - quiet))


def _moving() -> CaptureUnavailable:
    return CaptureUnavailable(
        "what may not be shown moved each time a picture was taken, so there is none",
        fix="wait until the window is at rest, or read it with observe",
        details={"reason": "moving"},
    )


# --- a whole desktop ------------------------------------------------------------------------------------------------


class _Around(NamedTuple):
    """What shows on a desktop: windows that were looked at, and where what may not be seen stands."""

    scenes: dict[str, Scene]
    stacking: tuple[dict[str, Any], ...]
    #: What has to be covered, each by what it is.
    hidden: dict[str, Bounds | None]
    windows: int

    def places(self) -> list[Bounds]:
        return [bounds for bounds in self.hidden.values() if bounds is not None]


async def desktop_shot(parts: Parts, session: Session, screen: Screen) -> Shot:
    """Take a picture of a whole desktop as this session may see it.

    Raises:
        CaptureUnavailable: `details["reason"]` is also `moving`.
        PolicyDenied: only where the engine that decides failed.
    """
    covered: list[Bounds] = []
    for attempt in range(limits.PICTURE_TRIES_MAX):
        # Before the picture: what it shows may be newer than this, never older, and newer is refused where it matters.
        before = await _look_around(parts, session, screen, hand_out=True)
        secretive = [surface_id for surface_id, scene in before.scenes.items() if secrets_of(scene)]
        if secretive and not attempt:
            for surface_id in secretive:
                await _rest(parts, session, surface_id)
            before = await _look_around(parts, session, screen, hand_out=True)
        capture, data = await screen.capture(None)
        after = await _look_around(parts, session, screen, hand_out=False)
        covered += [*before.places(), *after.places()]
        if before.hidden == after.hidden:
            png = await paint_out(capture, data, covered)
            return Shot(capture, png, before.scenes, before.stacking, before.windows)
    raise _moving()


async def _look_around(parts: Parts, session: Session, screen: Screen, *, hand_out: bool) -> _Around:
    scenes, closed = await _looked_at(parts, session, hand_out=hand_out)
    stacking, popups = await screen.stacking(), await screen.popups()
    hidden = _hidden_windows(stacking, scenes, closed)
    windows, secretive = len(hidden), set(closed)
    for surface_id, scene in scenes.items():
        for handle, bounds in secrets_of(scene).items():
            secretive.add(scene.surface.app.pid)
            hidden[f"{surface_id} {handle}"] = bounds
            if bounds is None:
                hidden |= _windows_of_process(stacking, scene.surface.app.pid)
    known = {scene.surface.app.pid for scene in scenes.values()}
    for popup in popups:
        # Toolkits do not agree on what places in a pop-up are counted from, so one of a process with secrets is hidden.
        if popup["pid"] not in known or popup["pid"] in secretive:
            hidden[f"popup {popup['id']}"] = tuple(popup["bounds"])
    return _Around(scenes, stacking, hidden, windows)


async def _looked_at(parts: Parts, session: Session, *, hand_out: bool) -> tuple[dict[str, Scene], set[int]]:
    """Return what this session may see, and the processes of which it may not see a window."""
    scenes: dict[str, Scene] = {}
    closed: set[int] = set()
    for surface in await desk_of(session).surfaces():
        try:
            await check_pictured(parts, session, surface)
            scene = await parts.scenes.observe(session, surface.surface_id, hand_out=hand_out)
            await check_pictured(parts, session, scene.surface)
        except PolicyDenied as error:
            if str(error.details.get("rule", "")).startswith("engine."):
                raise  # an engine that failed closed nothing
            closed.add(surface.app.pid)
        except SurehandError:
            closed.add(surface.app.pid)  # it hangs, or is going: nobody knows what it shows
        else:
            scenes[surface.surface_id] = scene
    return scenes, closed


def _hidden_windows(
    stacking: Sequence[Mapping[str, Any]], scenes: Mapping[str, Scene], closed: set[int]
) -> dict[str, Bounds | None]:
    """Return the windows, with their frames, that nobody looked at or that may be those that policy closes."""
    known = {scene.surface.app.pid for scene in scenes.values()}
    shown = [window for window in stacking if not window["minimized"]]
    seen = windows_of(shown, scenes)
    return {
        f"window {window['id']}": framed(window)
        for window, one in zip(shown, seen, strict=True)
        if window["pid"] not in known or (window["pid"] in closed and one.surface_id is None)
    }


def _windows_of_process(stacking: Sequence[Mapping[str, Any]], pid: int) -> dict[str, Bounds | None]:
    return {f"window {one['id']}": framed(one) for one in stacking if one["pid"] == pid and not one["minimized"]}


def framed(window: Mapping[str, Any]) -> Bounds:
    """Return where a window stands with what its manager and its toolkit draw around it."""
    x, y, width, height = window["bounds"]
    left, right, top, bottom = window.get("frame_extents") or (0, 0, 0, 0)
    return (x - left, y - top, width + left + right, height + top + bottom)
