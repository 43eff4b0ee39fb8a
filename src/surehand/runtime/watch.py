"""Reading back: looks at the application until the expected effect shows or the budget ends (spec §9, §8.3).

The rules are `core/verification`; this module reads what they need and waits on events in between. Where a toolkit
runs its handler after it acknowledged (GTK 4), the target's meaning is read again until the effect shows or that time
is over: a handler that finds another meaning than the fence did is not what was asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import msgspec

from surehand import limits
from surehand.core.hashing import Digest
from surehand.core.outcome import Verified
from surehand.core.scene.fence import check_fence
from surehand.core.verification import (
    Expectation,
    Reading,
    Watch,
    default_expectation,
    evaluate,
    judge,
    needs_scenes,
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
from surehand.runtime.resolve import Aim, handles_of
from surehand.runtime.run import Run
from surehand.runtime.scenes import Scenes
from surehand.runtime.session import is_gone

#: How long at most until something is noticed that no event of the watched window tells, such as another window.
_LOOK_MS: Final = 50
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
        scenes = tuple(run.session.latest.values())
        reading = Reading(
            target="none" if run.aim.node is None else "alive", node=run.aim.node, scenes=scenes, complete=False
        )
        held = evaluate(expectation, run.request.action, reading, target=_handle(run.aim)).answer == "holds"
        return Seen(expectation, held)

    async def watch(self, run: Run, seen: Seen, dispatched: Dispatched) -> Found:
        """Look until the expectation is verified, contradicted, or the budget is over."""
        asked = not isinstance(seen.expectation, NoVerification)
        delay_ms = dispatched.handler_delay_ms
        if run.aim.surface is None or run.aim.observer is None or not (asked or delay_ms):
            return Found("not_asked", None, meaning_changed=False)
        budget_ms = max(delay_ms, limits.VERIFY_BUDGET_MS_DEFAULT) if asked else delay_ms
        started = self._clock.monotonic_ms()
        state = Watch(started_ms=started)
        changed = False
        while True:
            version, reading = await self._read(run, seen.expectation)
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
            left_ms = started + budget_ms - self._clock.monotonic_ms()
            in_delay = self._clock.monotonic_ms() < started + delay_ms
            if in_delay and judgement != "verified":
                changed = changed or await self._meaning_changed(run)
            if judgement == "not_asked" and left_ms > 0 and in_delay and not changed:
                judgement = "pending"
            if judgement != "pending":
                break
            await self._wait(run, version, min(left_ms, _LOOK_MS))
        warnings = ("held_before",) if seen.held_before and judgement == "verified" else ()
        evidence = None if reading.node is None else self.evidence(reading.node)
        return Found(judgement, evidence, meaning_changed=changed, warnings=warnings)

    async def _wait(self, run: Run, version: int, timeout_ms: int) -> None:
        surface, observer = run.aim.surface, run.aim.observer
        if surface is None or observer is None or timeout_ms <= 0:
            return
        try:
            await observer.changed(surface.surface_id, version, timeout_ms)
        except SurehandError:
            return

    async def _meaning_changed(self, run: Run) -> bool:
        """Read the fence again; true where the target now means something else."""
        aim = run.aim
        if aim.seen is None or aim.index is None or aim.observer is None:
            return False
        try:
            live = await aim.observer.live(aim.seen.surface.surface_id, handles_of(aim))
            check_fence(aim.seen, aim.index, live, enabled=False, visible=False)
        except StaleTarget as stale:
            return stale.details.get("what") in _MEANING
        except SurehandError:
            return False
        return False

    # --- one reading --------------------------------------------------------------------------------------------

    async def _read(self, run: Run, expectation: Expectation) -> tuple[int, Reading]:
        """Return the version of the window's tree that was read last, and what was read now."""
        aim = run.aim
        surface, observer = aim.surface, aim.observer
        if surface is None or observer is None:
            return -1, Reading()
        state, live = "there", None
        try:
            if aim.node is not None:
                live = (await observer.live(surface.surface_id, (aim.node.handle,)))[aim.node.handle]
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
        reading = await self._windows(run, expectation, reading)
        latest = run.session.latest.get(surface.surface_id)
        return -1 if latest is None else latest.tree.version, reading

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
                equal = (
                    None if run.secret is None else await observer.equals(surface.surface_id, node.handle, run.secret)
                )
                reading = msgspec.structs.replace(reading, secret_equal=equal)
        except SurehandError:
            return reading
        return reading

    async def _windows(self, run: Run, expectation: Expectation, reading: Reading) -> Reading:
        """Add the application's windows, their titles and states, where the expectation is about them."""
        surface, observer = run.aim.surface, run.aim.observer
        alone = run.aim.node is not None and not needs_scenes(expectation) and not _about_window(expectation)
        if surface is None or observer is None or alone:
            return reading
        try:
            found = await observer.surfaces(surface.app.pid)
        except SurehandError:
            return reading
        own = next((one for one in found if one.surface_id == surface.surface_id), None)
        if own is None and not await is_gone(observer, surface.surface_id):
            # An application that does not answer proves neither that something is there nor that it is not.
            return msgspec.structs.replace(reading, surface="unread")
        scenes: list[Scene] = []
        complete = True
        places = _about_places(expectation)
        for one in found:
            if not needs_scenes(expectation):
                break
            try:
                scenes.append(await self._scenes.observe(run.session, one.surface_id, hand_out=False, places=places))
            except SurehandError:
                complete = False
        return msgspec.structs.replace(
            reading,
            scenes=tuple(scenes),
            complete=complete,
            surface="gone" if own is None else "there",
            surface_states=None if own is None else await self._states(run, own),
            title=None if own is None else own.title,
        )

    @staticmethod
    async def _states(run: Run, own: Surface) -> frozenset[str]:
        """Return a window's states; whether it is minimised or active toolkits do not tell, the window system does."""
        screen = None if run.session.desk is None else run.session.desk.screen
        native = None if screen is None else await screen.states(own)
        return own.states if native is None else own.states - _NATIVE_STATES | native


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


def _queries_places(query: Query | str | None) -> bool:
    return isinstance(query, Query) and any(
        one.within is not None or one.relation in _PLACE_RELATIONS or _queries_places(one.to) for one in query.filters
    )
