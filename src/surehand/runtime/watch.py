"""Reading back: looks at the application until the expected effect shows or the budget ends (spec §9, §8.3).

The rules are `core/verification`; this module reads what they need and waits on events in between. Where a toolkit
runs its handler after it acknowledged (GTK 4), the target's meaning is read again until the effect shows or that time
is over: a handler that finds another meaning than the fence did is not what was asked for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

import msgspec

from surehand import limits
from surehand.core.hashing import Digest
from surehand.core.outcome import Verified
from surehand.core.release import cover_live, is_secret
from surehand.core.scene.fence import check_fence
from surehand.core.scene.tree import index_of
from surehand.core.verification import (
    Expectation,
    Reading,
    Watch,
    default_expectation,
    evaluate,
    judge,
    needs_scenes,
    needs_target,
    needs_text,
)
from surehand.errors import StaleTarget, SurehandError, WindowNotFound
from surehand.model.actions import SelectText
from surehand.model.query import Query
from surehand.model.scene import LiveNode, Node, Scene, Surface
from surehand.model.verification import (
    AllOf,
    AnyOf,
    Appears,
    Disappears,
    NoVerification,
    TitleContains,
    UrlContains,
    ValueIs,
)
from surehand.ports import Clock, Dispatched, Observer
from surehand.runtime.resolve import Aim, handles_of, read_live
from surehand.runtime.run import Run
from surehand.runtime.scenes import Scenes
from surehand.runtime.session import is_gone

#: How long at most until something is noticed that no event tells, such as a late handler's target that changed.
_LOOK_MS: Final = 50
#: How long the windows of an application that tells of every change are believed without a word of it.
_WINDOWS_MS: Final = 220
_PLACE_RELATIONS: Final = frozenset({"contains", "contained-by", "nearest"})
_NATIVE_STATES: Final = frozenset({"active", "iconified", "modal"})
#: An element that is gone cannot be what a late handler acts on.
_MEANING: Final = frozenset({"name", "role", "context", "fingerprint", "app_id", "toolkit_role"})


@dataclass(slots=True)
class Seen:
    """What was expected and seen before dispatch."""

    expectation: Expectation
    held_before: bool


@dataclass(slots=True)
class Found:
    """What watching found."""

    verdict: Verified
    evidence: str | None
    meaning_changed: bool
    warnings: tuple[str, ...] = ()


class _Looks:
    """The looks of one verification: what the application had said at the last one, and what need not be read again.

    Where an application tells of every change, its windows are as they were read until it says something; only the
    target, which a look reads past every cache, is read each time.
    """

    def __init__(self, surface: Surface, observer: Observer) -> None:
        self.surface = surface
        self.observer = observer
        self.add_windows: Callable[[Reading], Reading] = lambda reading: reading
        self._mark = self._windows_mark = -1
        self._windows_at_ms = 0
        self._began_at = 0.0
        self._restless = self._told = False

    def begin(self) -> None:
        """Note what was said before this look."""
        self._mark = self.observer.mark(self.surface.surface_id)
        self._began_at = asyncio.get_running_loop().time()

    def keep(self, add_windows: Callable[[Reading], Reading], now_ms: int) -> None:
        """Remember the windows as read in the look that began last."""
        self.add_windows, self._windows_mark, self._windows_at_ms = add_windows, self._mark, now_ms
        scenes = add_windows(Reading()).scenes
        self._told = bool(scenes) and all(scene.tree.trust == "events" for scene in scenes)

    def still_stands(self, now_ms: int) -> bool:
        """Return whether the windows are surely as they were when they were read last."""
        said = self.observer.mark(self.surface.surface_id) != self._windows_mark
        return self._told and not said and now_ms - self._windows_at_ms < _WINDOWS_MS

    async def wait(self, timeout_ms: int) -> None:
        """Wait until the application says something; an application that never rests is looked at half the time."""
        if timeout_ms <= 0:
            return
        loop = asyncio.get_running_loop()
        rest_until = loop.time() + min(loop.time() - self._began_at, limits.EVENT_COALESCE_MS / 1000)
        try:
            stirred = await self.observer.stirred(self.surface.surface_id, self._mark, timeout_ms)
        except SurehandError:
            stirred = True
        if stirred and self._restless:
            await asyncio.sleep(max(0.0, rest_until - loop.time()))
        self._restless = stirred


class Watcher:
    """Watches for effects."""

    def __init__(self, scenes: Scenes, clock: Clock, digest: Digest) -> None:
        self._scenes = scenes
        self._clock = clock
        self._digest = digest

    def evidence(self, node: Node) -> str:
        """Return a keyed hash of what an element was, for the receipt; no content can be guessed from it."""
        facts = [node.role, node.app_id, node.name, node.value or "", *sorted(node.states)]
        return self._digest("\x00".join(facts))

    def before(self, run: Run) -> Seen:
        """Say what is expected, and whether it already held in what the session has seen."""
        expectation: Expectation = run.request.verification or default_expectation(run.request.action, run.aim.node)
        if isinstance(expectation, NoVerification):
            return Seen(expectation, held_before=False)
        known = [self._scenes.latest(run.session, surface_id) for surface_id in run.session.latest]
        scenes = tuple(scene for scene in known if scene is not None)
        reading = Reading(
            target="none" if run.aim.node is None else "alive", node=run.aim.node, scenes=scenes, complete=False
        )
        held = evaluate(expectation, run.request.action, reading, target=_handle(run.aim)).answer == "holds"
        return Seen(expectation, held)

    async def watch(self, run: Run, seen: Seen, dispatched: Dispatched) -> Found:
        """Look until the expectation is verified, contradicted, or the budget is over."""
        asked = not isinstance(seen.expectation, NoVerification)
        delay_ms = dispatched.handler_delay_ms
        running = ("handler_running",) if dispatched.status == "begun" else ()
        if run.aim.surface is None or run.aim.observer is None or not (asked or delay_ms):
            return Found("not_asked", None, meaning_changed=False, warnings=running)
        budget_ms = max(delay_ms, limits.VERIFY_BUDGET_MS_DEFAULT) if asked else delay_ms
        started = self._clock.monotonic_ms()
        state = Watch(started_ms=started)
        changed = False
        looks = _Looks(run.aim.surface, run.aim.observer)
        while True:
            reading = await self._read(run, seen.expectation, looks, last=self._is_last(started, budget_ms))
            verdict = evaluate(
                seen.expectation, run.request.action, reading, target=_handle(run.aim), salt=self._digest("")
            )
            state, judgement = judge(
                state,
                verdict,
                now_ms=self._clock.monotonic_ms(),
                budget_ms=budget_ms,
                acknowledged=dispatched.status == "done",
            )
            if dispatched.status == "done" and _tells_no_secret(run, reading):
                judgement = "not_asked"
            left_ms = started + budget_ms - self._clock.monotonic_ms()
            in_delay = self._clock.monotonic_ms() < started + delay_ms
            if in_delay and judgement != "verified":
                changed = changed or await self._meaning_changed(run)
            if judgement == "not_asked" and left_ms > 0 and in_delay and not changed:
                judgement = "pending"
            if judgement != "pending":
                break
            await looks.wait(min(left_ms, _LOOK_MS))
        warnings = ("held_before",) if seen.held_before and judgement == "verified" else ()
        evidence = None if reading.node is None else self.evidence(reading.node)
        return Found(judgement, evidence, meaning_changed=changed, warnings=warnings + running)

    def _is_last(self, started: int, budget_ms: int) -> bool:
        return self._clock.monotonic_ms() >= started + budget_ms - _LOOK_MS

    async def _meaning_changed(self, run: Run) -> bool:
        """Read the fence again; true where the target now means something else."""
        aim = run.aim
        if aim.seen is None or aim.index is None or aim.observer is None:
            return False
        try:
            live = await read_live(aim.observer, aim.seen.surface.surface_id, handles_of(aim))
            check_fence(aim.seen, aim.index, live, enabled=False, visible=False)
        except StaleTarget as stale:
            return stale.details.get("what") in _MEANING
        except SurehandError:
            return False
        return False

    # --- one reading --------------------------------------------------------------------------------------------

    async def _read(self, run: Run, expectation: Expectation, looks: _Looks, *, last: bool) -> Reading:
        """Return what was read now; the `last` reading of all, by which a contradiction is judged, spares nothing."""
        surface, observer = looks.surface, looks.observer
        now = self._clock.monotonic_ms()
        if needs_scenes(expectation) and not needs_target(expectation):
            if last or not looks.still_stands(now):
                looks.begin()
                own = await self._scene(run, expectation, surface.surface_id)
                # What shows in the target's own window needs no other to be true.
                shown = Reading(scenes=() if own is None else (own,))
                if evaluate(expectation, run.request.action, shown, target=_handle(run.aim)).answer == "holds":
                    return _with_target(msgspec.structs.replace(shown, surface="there"), run)
                looks.keep(await self._windows(run, expectation, surface, observer, own), now)
            return _with_target(looks.add_windows(Reading()), run)
        if not last and run.aim.node is not None and looks.still_stands(now):
            looks.begin()
            return looks.add_windows(await self._element(run, expectation, surface, observer))
        looks.begin()
        # Neither waits for what the other one asks; the application answers both in one go.
        reading, add_windows = await asyncio.gather(
            self._element(run, expectation, surface, observer), self._windows(run, expectation, surface, observer)
        )
        looks.keep(add_windows, now)
        return add_windows(reading)

    async def _element(self, run: Run, expectation: Expectation, surface: Surface, observer: Observer) -> Reading:
        """Read the target and its texts."""
        aim = run.aim
        state, live = "there", None
        try:
            if aim.node is not None:
                live = (await observer.live(surface.surface_id, (aim.node.handle,)))[aim.node.handle]
                if live is not None and (is_secret(aim.node) or _was_given_a_secret(run, aim)):
                    # A field that shows its secret in clear is compared no more than one that hides it.
                    live = cover_live(live)
        except WindowNotFound:
            state = "gone"
        except SurehandError:
            state = "unread"
        node = None if live is None else live.node
        reading = Reading(
            target=_target(aim, state, live),
            node=node,
            surface="there" if state == "there" else "gone" if state == "gone" else "unread",
        )
        if state == "there" and node is not None:
            reading = await self._texts(run, expectation, reading, observer, node)
        return reading

    @staticmethod
    async def _texts(run: Run, expectation: Expectation, reading: Reading, observer: Observer, node: Node) -> Reading:
        surface = run.aim.surface
        if surface is None:
            return reading
        try:
            if needs_text(expectation, node):
                whole = await whole_text(observer, surface.surface_id, node.handle)
                reading = msgspec.structs.replace(reading, text=whole)
            if isinstance(run.request.action, SelectText):
                found = await observer.selection(surface.surface_id, node.handle)
                reading = msgspec.structs.replace(reading, selection=found)
            if node.secret and isinstance(expectation, ValueIs):
                secret = next(iter(run.revealed()), None)
                equal = None if secret is None else await observer.equals(surface.surface_id, node.handle, secret)
                reading = msgspec.structs.replace(reading, secret_equal=equal)
        except SurehandError:
            return reading
        return reading

    async def _windows(
        self, run: Run, expectation: Expectation, surface: Surface, observer: Observer, seen: Scene | None = None
    ) -> Callable[[Reading], Reading]:
        """Read the application's windows, their titles and states, where the expectation is about them.

        `seen` is the target's own window, where it has just been read. Returns what adds them to a reading.
        """
        if run.aim.node is not None and not needs_scenes(expectation) and not _about_window(expectation):
            return lambda reading: reading
        # The target's own window is most of what there is to read, so it does not wait for the list.
        try:
            if seen is None:
                listing, seen = await asyncio.gather(
                    observer.surfaces(surface.app.pid), self._scene(run, expectation, surface.surface_id)
                )
            else:
                listing = await observer.surfaces(surface.app.pid)
        except SurehandError:
            return lambda reading: reading
        own = next((one for one in listing if one.surface_id == surface.surface_id), None)
        if own is None and not await is_gone(observer, surface):
            # An application that does not answer proves neither that something is there nor that it is not.
            return lambda reading: msgspec.structs.replace(reading, surface="unread")
        others = [one.surface_id for one in listing if one is not own]
        scenes = [
            *([] if own is None else [seen]),
            *[await self._scene(run, expectation, surface_id) for surface_id in others],
        ]
        asked = needs_scenes(expectation)
        facts = {
            "scenes": tuple(scene for scene in scenes if scene is not None),
            "complete": not asked or None not in scenes,
            "surface": "gone" if own is None else "there",
            "surface_states": None if own is None or run.aim.node is not None else await self._states(run, own),
            "title": None if own is None else own.title,
        }
        return lambda reading: msgspec.structs.replace(reading, **facts)

    async def _scene(self, run: Run, expectation: Expectation, surface_id: str) -> Scene | None:
        """Return a window as it is now; None where it is not asked for, or cannot be read."""
        if not needs_scenes(expectation):
            return None
        places = _about_places(expectation)
        try:
            if _names_labels(expectation):
                return await self._scenes.observe(run.session, surface_id, hand_out=False, places=places)
            return await self._scenes.glance(run.session, surface_id, places=places)
        except SurehandError:
            return None

    @staticmethod
    async def _states(run: Run, own: Surface) -> frozenset[str]:
        """Return a window's states; whether it is minimised or active toolkits do not tell, the window system does."""
        screen = None if run.session.desk is None else run.session.desk.screen
        native = None if screen is None else await screen.states(own)
        return own.states if native is None else own.states - _NATIVE_STATES | native


def _tells_no_secret(run: Run, reading: Reading) -> bool:
    """Return whether a field took an enrolled secret and does not give it back, as most password fields do not.

    Then nothing natural is left to expect. Whoever asks for a verification gets what it says of a field like this.
    """
    if run.secret is None or run.request.verification is not None or reading.node is None:
        return False
    return reading.node.secret and reading.secret_equal is None


def _was_given_a_secret(run: Run, aim: Aim) -> bool:
    """Return whether the element may hold an enrolled secret, by this run or an earlier one, however it looks."""
    desk = run.session.desk
    if run.secret is not None:
        return True
    if desk is None or aim.surface is None or aim.node is None:
        return False
    return desk.secret_fields.knows(aim.surface, aim.node.handle)


async def whole_text(observer: Observer, surface_id: str, handle: str) -> str | None:
    """Return an element's whole text, page by page; None where it is longer than any value may be."""
    text = ""
    while True:
        part = await observer.text(surface_id, handle, len(text), -1)
        text += part.text
        if len(text) >= part.total_chars or not part.text:
            return text
        if len(text) > limits.VALUE_BYTES_MAX:
            return None


def _with_target(reading: Reading, run: Run) -> Reading:
    """Add the target as its window showed it; nothing is judged by it, but its hash is evidence of what was there."""
    surface, handle = run.aim.surface, _handle(run.aim)
    for scene in reading.scenes:
        if surface is not None and scene.surface.surface_id == surface.surface_id:
            place = index_of(scene.tree).by_handle.get(handle)
            if place is not None:
                return msgspec.structs.replace(reading, target="alive", node=scene.tree.nodes[place])
    return reading


def _handle(aim: Aim) -> str:
    return "" if aim.node is None else aim.node.handle


def _target(aim: Aim, state: str, live: LiveNode | None) -> Literal["alive", "gone", "unread", "none"]:
    if aim.node is None:
        return "none"
    if state != "there":
        return "gone" if state == "gone" else "unread"
    return "gone" if live is None else "alive"


def _about_window(expectation: Expectation) -> bool:
    if isinstance(expectation, AllOf | AnyOf):
        return any(_about_window(part) for part in expectation.parts)
    return isinstance(expectation, TitleContains | UrlContains | Disappears)


def _about_places(expectation: Expectation) -> bool:
    """Return whether where elements are decides whether it holds."""
    if isinstance(expectation, AllOf | AnyOf):
        return any(_about_places(part) for part in expectation.parts)
    return isinstance(expectation, Appears | Disappears) and _queries_places(expectation.query)


def _names_labels(expectation: Expectation) -> bool:
    """Return whether it names elements by their labels, which only a session's own scenes have."""
    if isinstance(expectation, AllOf | AnyOf):
        return any(_names_labels(part) for part in expectation.parts)
    return isinstance(expectation, Appears | Disappears) and _queries_labels(expectation.query)


def _queries_labels(query: Query | str | None) -> bool:
    if isinstance(query, str):
        return True
    return query is not None and any(one.label is not None or _queries_labels(one.to) for one in query.filters)


def _queries_places(query: Query | str | None) -> bool:
    return isinstance(query, Query) and any(
        one.within is not None or one.relation in _PLACE_RELATIONS or _queries_places(one.to) for one in query.filters
    )
