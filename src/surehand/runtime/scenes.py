"""Scenes of sessions: reads a surface through its observer and publishes it as the session's immutable view.

Every read of an application goes through `observe`, so policy is asked before the application is touched (spec §5.6).
The answer is kept per session, application, place and policy generation.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from surehand.core.scene.build import build_scene
from surehand.core.scene.labels import forget
from surehand.errors import Unavailable, WindowNotFound
from surehand.model.scene import Scene, Surface, Tree
from surehand.ports import Clock
from surehand.runtime.session import Desk, Session

#: Raises PolicyDenied when the session may not read the surface.
ReadCheck = Callable[[Session, Surface], None]


class Scenes:
    """Builds scenes; holds none itself."""

    def __init__(self, clock: Clock, check_read: ReadCheck) -> None:
        self._clock = clock
        self._check_read = check_read

    async def surfaces(self, session: Session) -> tuple[Surface, ...]:
        """Return the windows the session may know of: those it may read."""
        found = []
        for surface in await desk_of(session).surfaces():
            try:
                self._check_read(session, surface)
            except Exception:  # noqa: BLE001, S112 - a surface that may not be read is not listed, whatever the reason
                continue
            found.append(surface)
        known = {surface.surface_id for surface in found} | desk_of(session).silent.keys()
        for gone in session.latest.keys() - known:
            del session.latest[gone]
            session.shown.forget(gone)
        session.labels = forget(session.labels, session.labels.surfaces.keys() - known)
        return tuple(found)

    async def observe(self, session: Session, surface_id: str, *, hand_out: bool = True, places: bool = True) -> Scene:
        """Return a scene that is current now.

        Args:
            session: Whose view it is.
            surface_id: Of which window.
            hand_out: Whether the caller may refer to it; looks of the host's own must not push out those.
            places: Whether the bounds have to be current.

        Raises:
            WindowNotFound, PolicyDenied, Unavailable, AccessibilityDisabled.
        """
        desk = desk_of(session)
        surface, observer = await desk.surface(surface_id)
        self._check_read(session, surface)
        try:
            tree = await observer.read(surface_id, places=places)
        except WindowNotFound:
            desk.forget(surface_id)
            raise
        if (now := _as_read(surface, tree)) is not surface:
            desk.update(now)
            # A new title may be one that policy closes.
            self._check_read(session, now)
            surface = now
        previous = session.latest.get(surface_id)
        same = previous is not None and previous.tree is tree and previous.surface == surface
        scene, session.labels = build_scene(
            tree,
            surface,
            previous,
            session.labels,
            session=session.session_id,
            # The same sight is the same scene, seen later.
            scene_id=previous.scene_id if previous is not None and same else session.next_scene_id(),
            now_ms=self._clock.monotonic_ms(),
            host_opt_ins=desk.opt_ins,
        )
        session.latest[surface_id] = scene
        if hand_out:
            session.keep_scene(scene)
        return scene


def _as_read(surface: Surface, tree: Tree) -> Surface:
    """Return the surface with the title, states and place that its root has in the tree."""
    root = tree.nodes[0]
    if (root.name, root.states, root.bounds) == (surface.title, surface.states, surface.bounds):
        return surface
    return msgspec.structs.replace(surface, title=root.name, states=root.states, bounds=root.bounds)


def desk_of(session: Session) -> Desk:
    """Return the session's desktop.

    Raises:
        Unavailable: the session has none.
    """
    if session.desk is None:
        raise Unavailable(
            "this session has no desktop",
            fix=session.no_desk or "start one with `surehand desktop run`, and connect with its name",
        )
    return session.desk
