"""What a request is aimed at: from its target to a surface, a scene, an element, a place (spec §3.3).

`look_up` touches nothing outside the session: it says which application is meant, for hashing and for policy.
`fence` is the first fence: it brings the scene up to date and refuses what is stale, gone, forged or covered.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from surehand.core.safety import check_not_copied, check_secret_use, check_untold, copies_anything
from surehand.core.scene.fence import (
    behind_modal,
    blocking_modal,
    check_fence,
    check_modal,
    check_reference,
    fence_handles,
    index_of_label,
)
from surehand.core.scene.query import resolve_one
from surehand.core.scene.tree import index_of
from surehand.core.secrets import UNPROVEN_ORIGIN, check_bound, is_origin
from surehand.errors import (
    CaptureUnavailable,
    StaleTarget,
    SurehandError,
    TargetNotActionable,
    TargetNotFound,
    UnsupportedAction,
    WindowNotFound,
)
from surehand.model.actions import Drag, Window, kind_of, secret_of
from surehand.model.request import Request
from surehand.model.scene import Bounds, LiveNode, Node, Scene, Surface
from surehand.model.secrets import BoundSecret
from surehand.model.targets import ElementTarget, PointTarget, QueryTarget, SurfaceTarget, Target
from surehand.ports import Clock, Observer
from surehand.runtime.scenes import Scenes, desk_of
from surehand.runtime.session import Desk, Session
from surehand.runtime.sights import Sight, check_pixels, check_same, check_window, element_at

Live = Mapping[str, LiveNode | None]

#: What browsers, and what has one inside, call a page, and a frame in one.
_PAGE: Final = "document"
_OBSERVE_AGAIN: Final = "observe again and use the new references"
#: Actions that need an element which shows right now, because the pointer goes there.
_POINTER: Final = frozenset({"click", "hover", "move", "hold", "drag"})
#: Those, and what the pointer does where X11 does it.
_POINTED: Final = _POINTER | {"scroll"}
#: Actions that do not need an enabled element.
_INDIFFERENT: Final = frozenset({"scroll", "scroll_into_view", "hover", "move", "release"})
#: A second look finds what was slow at the first.
_LOOKS_MAX: Final = 2


#: Says what a request enters by reference, and refuses what is not enrolled for an application and a place.
Bound = Callable[[Request, str, str], Awaitable[BoundSecret | None]]


async def _nothing_enrolled(request: Request, app: str, place: str) -> BoundSecret | None:
    reference = secret_of(request.action)
    if reference is not None:
        check_bound(reference, None, app, place)
    return None


@dataclass(slots=True, frozen=True)
class Stop:
    """One place that the pointer goes to, in the picture it was chosen in. `window` is where its window stood."""

    sight: Sight
    seen: Scene
    place: tuple[int, int]
    window: Bounds


class Aim(msgspec.Struct, eq=False):
    """What is aimed at. `seen` is the scene the caller acts on; `index` the element's place in it."""

    surface: Surface | None = None
    observer: Observer | None = None
    seen: Scene | None = None
    index: int | None = None
    #: The element as the caller saw it; follows from these two, which never change.
    node: Node | None = None
    #: The element as the first fence found it; where it is now, which is where a pointer has to go.
    now: Node | None = None
    point: tuple[int, int] | None = None
    stops: tuple[Stop, ...] = ()
    path: tuple[tuple[int, int], ...] = ()
    #: The enrolled secret that is to be entered, by its reference.
    secret: BoundSecret | None = None

    def __post_init__(self) -> None:
        if self.seen is not None and self.index is not None:
            self.node = self.seen.tree.nodes[self.index]

    @property
    def app(self) -> str:
        """Proven application identity, "" where none is aimed at."""
        return "" if self.surface is None else self.surface.app.key

    @property
    def place(self) -> str:
        """Window identity, "" where none is aimed at."""
        return "" if self.surface is None else self.surface.place

    @property
    def origin(self) -> str:
        """Where a secret would go: the window, or a page in it, whose origin accessibility does not prove."""
        if self.seen is None or self.index is None:
            return self.place
        nodes, tree = self.seen.tree.nodes, index_of(self.seen.tree)
        shows_page = any(nodes[above].role == _PAGE for above in (self.index, *tree.ancestors(self.index)))
        return UNPROVEN_ORIGIN if shows_page and not is_origin(self.place) else self.place

    @property
    def window(self) -> str:
        """The one window's id, "" where none is aimed at."""
        return "" if self.surface is None or not self.surface.place else self.surface.surface_id

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

    def __init__(self, scenes: Scenes, clock: Clock, bound: Bound | None = None) -> None:
        self._scenes = scenes
        self._clock = clock
        self._bound = _nothing_enrolled if bound is None else bound

    async def look_up(self, session: Session, request: Request) -> Aim:
        """Say which application, window and element are meant, from what the session has seen.

        A query is resolved here, because its meaning for policy is the element it finds.

        Raises:
            StaleTarget, TargetNotFound, AmbiguousTarget, WindowNotFound, PolicyDenied.
            AuthorityDenied, Unavailable: a secret that is not enrolled for there, or not to be had.
            SecureSurface: a secret for a field that shows what is in it.
        """
        aim = await self._aimed(session, request.target)
        if secret_of(request.action) is not None:
            aim.secret = await self._bound(request, aim.app, aim.origin)
        # Before anybody is asked; the fence sees to it that the field is then still what it was.
        check_secret_use(request.action, aim.node, () if aim.secret is None else aim.secret.bound_to.fields)
        if aim.node is not None and aim.surface is not None:
            known = desk_of(session).secret_fields.knows(aim.surface, aim.node.handle)
            check_untold(request.action, aim.node, known=known)
        if aim.window and copies_anything(request.action):
            check_not_copied((await self._scenes.observe(session, aim.window, hand_out=False, places=False)).tree.nodes)
        if isinstance(request.action, Drag):
            rest = tuple(self._stop(session, step) for step in (*request.action.path, request.action.to))
            _check_one_application(aim, rest)
            aim.stops += rest
            aim.path = tuple(stop.place for stop in rest)
        return aim

    async def _aimed(self, session: Session, target: Target) -> Aim:
        if isinstance(target, ElementTarget):
            return self._element(session, target)
        if isinstance(target, QueryTarget):
            scene = await self._scenes.observe(session, target.surface, hand_out=False)
            return self._aim(session, scene, resolve_one(scene, target.query))
        if isinstance(target, PointTarget):
            return self._point(session, target)
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

    def _point(self, session: Session, target: PointTarget) -> Aim:
        """A place means what the picture showed there, not what stands there now."""
        stop = self._stop(session, target)
        aim = self._aim(session, stop.seen, element_at(stop.seen, stop.place))
        aim.stops, aim.point = (stop,), stop.place
        return aim

    def _stop(self, session: Session, target: PointTarget) -> Stop:
        sight = session.sights.find(target.capture_id, self._clock.monotonic_ms())
        place = sight.place(target)
        surface_id, stood = sight.window_at(place)
        return Stop(sight=sight, seen=sight.scenes[surface_id], place=place, window=stood)

    async def fence(self, session: Session, request: Request, aim: Aim) -> None:
        """Run the first fence: the application as it is now against what the caller saw.

        Only the element, what its meaning hangs on, and the application's windows are read; nothing is waited for.

        Raises:
            TargetError: naming the difference.
        """
        desk = desk_of(session)
        if aim.surface is None or aim.surface is desk.root:
            return
        # A reference holds for as long as the application takes to answer.
        now_ms = self._clock.monotonic_ms()
        surface_id = aim.surface.surface_id
        own, windows, live = await self._look_at_own(desk, aim.surface, aim)
        desk.update(own)
        aim.surface, aim.observer = own, desk.observer_of(surface_id)
        if aim.seen is None:
            return
        pointed = aim.point is not None or is_pointed(request)
        current = self._scenes.latest(session, surface_id)
        if current is None or pointed:
            current = await self._scenes.observe(session, surface_id, hand_out=False)
        if isinstance(request.target, ElementTarget):
            check_reference(
                request.target,
                aim.seen,
                current,
                session=session.session_id,
                now_ms=now_ms,
                labels=session.labels,
            )
        for stop in aim.stops:
            await self._check_stop(session, stop)
        if aim.index is not None:
            if isinstance(live, SurehandError):
                raise live
            self._check_element(request, aim, aim.index, current, windows, live)

    async def _look_at_own(
        self, desk: Desk, surface: Surface, aim: Aim
    ) -> tuple[Surface, tuple[Surface, ...], Live | SurehandError]:
        """Look at the windows and the element, once more where an application was only slow to list its windows.

        Raises:
            WindowNotFound, Unavailable: the window is gone, or its application silent.
        """
        surface_id = surface.surface_id
        for _ in range(_LOOKS_MAX):
            windows, live = await self._look(desk, surface, aim)
            own = next((one for one in windows if one.surface_id == surface_id), None)
            if own is not None:
                return own, windows, live
            # Gone, silent, or back by now; a read tells which.
            await desk.observer_of(surface_id).read(surface_id)
        desk.forget(surface_id)
        raise WindowNotFound("the window is gone", fix="list the surfaces again", details={"surface": surface_id})

    @staticmethod
    async def _look(desk: Desk, surface: Surface, aim: Aim) -> tuple[tuple[Surface, ...], Live | SurehandError]:
        """Ask for the windows and for the element at the same time.

        Why the element could not be read counts only where its window is there.
        """
        if aim.index is None:
            return await desk.siblings(surface), {}
        handles = handles_of(aim)
        return await desk.observer_of(surface.surface_id).look(surface, handles[:1], around=handles[1:])

    @staticmethod
    def _check_element(
        request: Request, aim: Aim, index: int, current: Scene, windows: tuple[Surface, ...], live: Live
    ) -> None:
        """Compare the element and what its meaning hangs on, read live, with what the caller saw."""
        if aim.seen is None:
            return
        handle = aim.seen.tree.nodes[index].handle
        check_fence(aim.seen, index, live, current=current, **needs(request))
        place = index_of(current.tree).by_handle.get(handle)
        found = live.get(handle)
        if is_pointed(request):
            aim.now = None if place is None else current.tree.nodes[place]
        else:
            aim.now = None if found is None else found.node
        check_modal(current if place is not None else aim.seen, index if place is None else place, windows)

    async def _check_stop(self, session: Session, stop: Stop) -> None:
        """A place counts only while its window and what it showed there are where the picture shows them."""
        surface, screen = stop.seen.surface, desk_of(session).screen
        if screen is None:
            raise CaptureUnavailable("this desktop gives no pictures", fix="surehand doctor")
        check_window(stop.window, await screen.place(surface))
        check_same(stop.seen, await self._scenes.observe(session, surface.surface_id, hand_out=False), stop.place)
        if not element_at(stop.seen, stop.place):
            # Nothing but the window itself is known there: its pixels have to stand for it.
            now, png = await screen.capture(surface)
            await check_pixels(stop.sight, now, png, stop.place)


def _check_one_application(aim: Aim, stops: tuple[Stop, ...]) -> None:
    """Refuse a drag into another application: policy decides, and a person is asked, about the one it begins in."""
    for stop in stops:
        if aim.surface is None or stop.seen.surface.app != aim.surface.app:
            raise UnsupportedAction("a drag ends in the application it begins in", fix="use what both of them offer")


def needs(request: Request) -> dict[str, bool]:
    """Return what an action needs of its element, as arguments of `check_fence`."""
    kind = kind_of(request.action)
    return {"enabled": kind not in _INDIFFERENT, "on_screen": kind in _POINTER}


def is_pointed(request: Request) -> bool:
    """Return whether the pointer goes to the element when X11 does the action."""
    return kind_of(request.action) in _POINTED


def check_unblocked(session: Session, request: Request, aim: Aim) -> None:
    """Refuse what a dialog came in front of since the first fence, from what was read with the fence (spec §8.3).

    The application tells of its windows first; where a toolkit does not say what is modal, the window system does.
    A window as such may be moved or put away whatever its application asks.

    Raises:
        BehindModal: with the dialog's title.
    """
    desk = session.desk
    if aim.surface is None or desk is None or aim.surface is desk.root or isinstance(request.action, Window):
        return
    windows = () if aim.observer is None else aim.observer.windows(aim.surface.surface_id)
    own = next((one for one in windows if one.surface_id == aim.surface.surface_id), None)
    blocker = None if own is None else blocking_modal(own, windows)
    title = None if blocker is None else blocker.title
    if title is None and desk.screen is not None:
        title = desk.screen.modal_before(aim.surface)
    if title is not None:
        raise behind_modal(title)


def handles_of(aim: Aim) -> tuple[str, ...]:
    """Return the handles the final fence reads."""
    if aim.seen is None or aim.index is None:
        return ()
    return fence_handles(aim.seen, aim.index)


async def read_live(observer: Observer, surface_id: str, handles: tuple[str, ...]) -> Live:
    """Read what a fence compares, the element first."""
    return await observer.live(surface_id, handles[:1], around=handles[1:])


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
