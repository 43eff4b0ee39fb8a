"""What a request is aimed at: from its target to a surface, a scene, an element, a place (spec §3.3).

`look_up` touches nothing outside the session: it says which application is meant, for hashing and for policy.
`fence` is the first fence: it brings the scene up to date and refuses what is stale, gone, forged or covered.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from surehand import limits
from surehand.core.scene.fence import (
    check_fence,
    check_modal,
    check_reference,
    fence_handles,
    index_of_label,
)
from surehand.core.scene.query import resolve_one
from surehand.core.scene.tree import index_of
from surehand.errors import StaleTarget, TargetNotActionable, TargetNotFound, WindowNotFound
from surehand.model.actions import Drag, kind_of
from surehand.model.request import Request
from surehand.model.scene import Capture, Node, Scene, Surface
from surehand.model.targets import ElementTarget, PointTarget, QueryTarget, SurfaceTarget
from surehand.ports import Clock, Observer
from surehand.runtime.scenes import Scenes, desk_of
from surehand.runtime.session import Session

_OBSERVE_AGAIN: Final = "observe again and use the new references"
#: Actions that need an element which shows right now, because the pointer goes there.
_POINTER: Final = frozenset({"click", "hover", "move", "hold", "drag"})
#: Actions that do not need an enabled element.
_INDIFFERENT: Final = frozenset({"scroll", "scroll_into_view", "hover", "move", "release"})


@dataclass(slots=True)
class Aim:
    """What is aimed at. `seen` is the scene the caller acts on; `index` the element's place in it."""

    surface: Surface | None = None
    observer: Observer | None = None
    seen: Scene | None = None
    index: int | None = None
    #: The element as the first fence found it; where it is now, which is where a pointer has to go.
    now: Node | None = None
    point: tuple[int, int] | None = None
    path: tuple[tuple[int, int], ...] = ()

    @property
    def app(self) -> str:
        """Proven application identity, "" where none is aimed at."""
        return "" if self.surface is None else self.surface.app.key

    @property
    def place(self) -> str:
        """Window identity, "" where none is aimed at."""
        return "" if self.surface is None else self.surface.place

    @property
    def node(self) -> Node | None:
        """The element as the caller saw it."""
        return None if self.seen is None or self.index is None else self.seen.tree.nodes[self.index]

    @property
    def context(self) -> str:
        """The element's identifying context as the caller saw it."""
        return "" if self.seen is None or self.index is None else self.seen.targets[self.index].context

    @property
    def hashes(self) -> tuple[str, str] | tuple[None, None]:
        """Fingerprint and context hash of the element."""
        if self.seen is None or self.index is None:
            return None, None
        target = self.seen.targets[self.index]
        return target.fingerprint_hash, target.context_hash

    def resolved(self) -> dict[str, str]:
        """Return what a receipt says about what was aimed at; no content."""
        fingerprint, context = self.hashes
        if fingerprint is None or context is None:
            return {}
        return {"fingerprint_hash": fingerprint, "context_hash": context}


class Resolver:
    """Turns targets into aims."""

    def __init__(self, scenes: Scenes, clock: Clock) -> None:
        self._scenes = scenes
        self._clock = clock

    async def look_up(self, session: Session, request: Request) -> Aim:
        """Say which application, window and element are meant, from what the session has seen.

        A query is resolved here, because its meaning for policy is the element it finds.

        Raises:
            StaleTarget, TargetNotFound, AmbiguousTarget, WindowNotFound, PolicyDenied.
        """
        target = request.target
        if isinstance(target, ElementTarget):
            return self._element(session, target)
        if isinstance(target, QueryTarget):
            scene = await self._scenes.observe(session, target.surface, hand_out=False)
            return self._aim(session, scene, resolve_one(scene, target.query))
        if isinstance(target, PointTarget):
            return await self._point(session, request, target)
        if isinstance(target, SurfaceTarget):
            surface, observer = await desk_of(session).surface(target.ref)
            return Aim(surface=surface, observer=observer)
        return Aim(surface=desk_of(session).root)

    @staticmethod
    def _element(session: Session, target: ElementTarget) -> Aim:
        seen = session.scenes.get(target.scene_id)
        if seen is None:
            raise StaleTarget(
                "that scene is not one of this session's recent ones", fix=_OBSERVE_AGAIN, details={"what": "scene"}
            )
        index = index_of_label(seen, target.element_id)
        if index is None:
            raise TargetNotFound(
                f"{target.element_id} is not in that scene", fix=_OBSERVE_AGAIN, details={"element": target.element_id}
            )
        return Aim(surface=seen.surface, seen=seen, index=index)

    @staticmethod
    def _aim(session: Session, scene: Scene, index: int | None) -> Aim:
        observer = desk_of(session).observer_of(scene.surface.surface_id)
        return Aim(surface=scene.surface, observer=observer, seen=scene, index=index)

    async def _point(self, session: Session, request: Request, target: PointTarget) -> Aim:
        capture, point = self._pixel(session, target)
        if capture.surface_id is None:
            surface_id = await self._surface_at(session, point)
        else:
            surface_id = capture.surface_id
        scene = await self._scenes.observe(session, surface_id, hand_out=False)
        aim = self._aim(session, scene, element_at(scene, point))
        aim.point = point
        if isinstance(request.action, Drag):
            steps = (*request.action.path, request.action.to)
            aim.path = tuple(self._pixel(session, step)[1] for step in steps)
        return aim

    async def _surface_at(self, session: Session, point: tuple[int, int]) -> str:
        """Return the front-most window at a place of the desktop."""
        desk = desk_of(session)
        surfaces = await desk.surfaces()
        windows = () if desk.screen is None else await desk.screen.stacking()
        front = next((one for one in windows if not one["minimized"] and inside(one["bounds"], point)), None)
        found = [
            surface.surface_id
            for surface in surfaces
            if front is not None and (surface.app.pid, surface.title) == (front["pid"], front["title"])
        ]
        if len(found) != 1:
            raise TargetNotFound("no window that can be read is at that place", fix="take a picture of one window")
        return found[0]

    def _pixel(self, session: Session, target: PointTarget) -> tuple[Capture, tuple[int, int]]:
        """Return the capture and the place in desktop pixels."""
        capture = session.captures.get(target.capture_id)
        if capture is None or self._clock.monotonic_ms() - capture.taken_at_ms > limits.SCENE_ACT_MS_MAX:
            raise StaleTarget("that picture is not a recent one of this session", fix="take a new screenshot")
        if target.space == "screenshot":
            if not (0 <= target.x < capture.width and 0 <= target.y < capture.height):
                raise StaleTarget("the place is outside the picture", fix="choose a place inside it")
            x = capture.origin_x + target.x * 1000 // capture.scale_milli
            y = capture.origin_y + target.y * 1000 // capture.scale_milli
            return capture, (x, y)
        if target.space == "window":
            return capture, (capture.origin_x + target.x, capture.origin_y + target.y)
        return capture, (target.x, target.y)

    async def fence(self, session: Session, request: Request, aim: Aim) -> None:
        """Run the first fence: the application as it is now against what the caller saw.

        Only the element, what its meaning hangs on, and the application's windows are read; nothing is waited for.

        Raises:
            TargetError: naming the difference.
        """
        desk = desk_of(session)
        if aim.surface is None or aim.surface is desk.root:
            return
        surface_id = aim.surface.surface_id
        windows = await desk.siblings(aim.surface)
        own = next((one for one in windows if one.surface_id == surface_id), None)
        if own is None:
            # Gone, or silent; a read tells which.
            await desk.observer_of(surface_id).read(surface_id)
            desk.forget(surface_id)
            raise WindowNotFound("the window is gone", fix="list the surfaces again", details={"surface": surface_id})
        desk.update(own)
        aim.surface, aim.observer = own, desk.observer_of(surface_id)
        if aim.seen is None:
            return
        pointed = aim.point is not None or is_pointed(request)
        current = session.latest.get(surface_id)
        if current is None or pointed:
            current = await self._scenes.observe(session, surface_id, hand_out=False)
        if isinstance(request.target, ElementTarget):
            check_reference(
                request.target,
                aim.seen,
                current,
                session=session.session_id,
                now_ms=self._clock.monotonic_ms(),
                labels=session.labels,
            )
        if aim.point is not None:
            self._check_place(session, request, aim, current)
        if aim.index is not None:
            await self._check_element(request, aim, aim.index, current, windows)

    @staticmethod
    async def _check_element(
        request: Request, aim: Aim, index: int, current: Scene, windows: tuple[Surface, ...]
    ) -> None:
        """Compare the element and what its meaning hangs on, read live, with what the caller saw."""
        if aim.seen is None or aim.observer is None:
            return
        handle = aim.seen.tree.nodes[index].handle
        live = await aim.observer.live(current.surface.surface_id, handles_of(aim))
        check_fence(aim.seen, index, live, current=current, **needs(request))
        place = index_of(current.tree).by_handle.get(handle)
        found = live.get(handle)
        if is_pointed(request):
            aim.now = None if place is None else current.tree.nodes[place]
        else:
            aim.now = None if found is None else found.node
        check_modal(current if place is not None else aim.seen, index if place is None else place, windows)

    def _check_place(self, session: Session, request: Request, aim: Aim, current: Scene) -> None:
        """A place in a picture counts only while window and element under it are where the picture shows them."""
        target = request.target
        if not isinstance(target, PointTarget) or aim.point is None:
            return
        capture, point = self._pixel(session, target)
        bounds = current.surface.bounds
        if bounds is not None and not inside(bounds, point):
            raise StaleTarget("the window is not at that place any more", fix="take a new screenshot")
        if capture.surface_id is not None and bounds is not None and bounds[:2] != (capture.origin_x, capture.origin_y):
            raise StaleTarget("the window moved since the picture was taken", fix="take a new screenshot")
        aim.point = point
        if element_at(current, point) != aim.index:
            raise StaleTarget("another element is at that place now", fix="take a new screenshot")


def needs(request: Request) -> dict[str, bool]:
    """Return what an action needs of its element, as arguments of `check_fence`."""
    kind = kind_of(request.action)
    return {"enabled": kind not in _INDIFFERENT, "on_screen": kind in _POINTER}


def is_pointed(request: Request) -> bool:
    """Return whether the pointer goes to the element when X11 does the action."""
    return kind_of(request.action) in _POINTER | {"scroll"}


def handles_of(aim: Aim) -> tuple[str, ...]:
    """Return the handles the final fence reads."""
    if aim.seen is None or aim.index is None:
        return ()
    return fence_handles(aim.seen, aim.index)


def inside(bounds: object, point: tuple[int, int]) -> bool:
    """Return whether a point lies in half-open bounds (x, y, width, height)."""
    if not isinstance(bounds, list | tuple) or len(bounds) != 4:
        return False
    x, y, width, height = bounds
    return bool(x <= point[0] < x + width and y <= point[1] < y + height)


def element_at(scene: Scene, point: tuple[int, int]) -> int | None:
    """Return the smallest showing element at a place; of equal ones the last in document order, which is on top."""
    best: int | None = None
    best_area = 0
    for index, node in enumerate(scene.tree.nodes):
        if node.bounds is None or "showing" not in node.states or not inside(node.bounds, point):
            continue
        area = node.bounds[2] * node.bounds[3]
        if best is None or area <= best_area:
            best, best_area = index, area
    return best


def centre_of(node: Node) -> tuple[int, int]:
    """Return the middle of an element.

    Raises:
        TargetNotActionable: it has no place.
    """
    if node.bounds is None or node.bounds[2] <= 0 or node.bounds[3] <= 0:
        raise TargetNotActionable(
            "the element has no place on the screen", fix="use invoke instead, or bring it into view"
        )
    x, y, width, height = node.bounds
    return x + width // 2, y + height // 2
