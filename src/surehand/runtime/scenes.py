"""Scenes of sessions: reads a surface through its observer and publishes it as the session's immutable view.

Every read of an application goes through `observe`, so policy is asked before the application is touched (spec §5.6).
The answer is kept per session, application, place and policy generation.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable

import msgspec

from surehand import limits
from surehand.core.scene.build import build_scene, provenance_of
from surehand.core.scene.labels import forget
from surehand.errors import Unavailable, WindowNotFound
from surehand.model.scene import Scene, Surface, Tree
from surehand.ports import Clock
from surehand.runtime.session import Desk, Session

#: Raises PolicyDenied when the session may not read the surface; returns what is redacted in it.
ReadCheck = Callable[[Session, Surface], Awaitable[tuple[str, ...]]]


class Scenes:
    """Builds scenes; sessions hold them."""

    def __init__(self, clock: Clock, check_read: ReadCheck) -> None:
        self._clock = clock
        self._check_read = check_read
        #: What was glanced at and is in no scene yet, by session and window.
        self._glances: OrderedDict[tuple[str, str], tuple[Session, Surface, Tree, int]] = OrderedDict()

    async def surfaces(self, session: Session) -> tuple[Surface, ...]:
        """Return the windows the session may know of: those it may read."""
        found = []
        for surface in await desk_of(session).surfaces():
            try:
                await self._check_read(session, surface)
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
        surface, tree = await self._read(session, surface_id, places=places)
        scene = self._publish(session, surface, tree, self._clock.monotonic_ms())
        if hand_out:
            session.keep_scene(scene)
        return scene

    def _publish(self, session: Session, surface: Surface, tree: Tree, now_ms: int) -> Scene:
        """Make the session's newest scene of a window from what was read."""
        desk, surface_id = desk_of(session), surface.surface_id
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
            now_ms=now_ms,
            host_opt_ins=desk.opt_ins,
        )
        session.latest[surface_id] = scene
        return scene

    async def glance(self, session: Session, surface_id: str, *, places: bool = True) -> Scene:
        """Return what a window shows now, without labels, identities or a generation: nobody can refer to it.

        Those cost more than most looks; `latest` makes them up where they are needed.

        Raises:
            WindowNotFound, PolicyDenied, Unavailable, AccessibilityDisabled.
        """
        surface, tree = await self._read(session, surface_id, places=places)
        now_ms = self._clock.monotonic_ms()
        self._remember(session, surface, tree, now_ms)
        return Scene(
            scene_id="",
            session=session.session_id,
            generation=0,
            surface=surface,
            provenance=provenance_of(surface, desk_of(session).opt_ins),
            provenance_hash="",
            tree=tree,
            targets=(),
            observed_at_ms=now_ms,
            expires_at_ms=now_ms,
        )

    def _remember(self, session: Session, surface: Surface, tree: Tree, now_ms: int) -> None:
        key = (session.session_id, surface.surface_id)
        self._glances[key] = (session, surface, tree, now_ms)
        self._glances.move_to_end(key)
        while len(self._glances) > limits.GLANCES_KEPT_MAX:
            _, oldest = self._glances.popitem(last=False)
            # Whatever a session was shown counts in its next fence.
            if not oldest[0].closed:
                self._publish(*oldest)

    def latest(self, session: Session, surface_id: str) -> Scene | None:
        """Return the session's newest scene of a window, with what was glanced at since; asks nobody."""
        latest = session.latest.get(surface_id)
        glance = self._glances.pop((session.session_id, surface_id), None)
        if glance is None or (latest is not None and latest.observed_at_ms > glance[-1]):
            return latest
        return self._publish(*glance)

    async def _read(self, session: Session, surface_id: str, *, places: bool) -> tuple[Surface, Tree]:
        desk = desk_of(session)
        surface, observer = await desk.surface(surface_id)
        redact = await self._check_read(session, surface)
        try:
            tree = await observer.read(surface_id, places=places)
        except WindowNotFound:
            desk.forget(surface_id)
            raise
        if (now := _as_read(surface, tree)) is not surface:
            desk.update(now)
            # A new title may be one that policy closes.
            redact = await self._check_read(session, now)
            surface = now
        return surface, desk.secret_fields.cover(surface, tree, redact)

    async def check_after(self, session: Session, surface: Surface) -> None:
        """Decide again on what was just read of a window without looking at it: its title may be another one by now.

        Raises:
            PolicyDenied: policy closes the window as it is called now; what was read may not leave.
        """
        known = desk_of(session).observer_of(surface.surface_id).windows(surface.surface_id)
        now = next((one for one in known if one.surface_id == surface.surface_id), surface)
        await self._check_read(session, now)


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
            fix=session.no_desk or "start one with `surehand desktop start --name work`, and connect with its name",
        )
    return session.desk
