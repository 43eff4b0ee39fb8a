"""Waiting on applications: until a window is at rest, and until conditions hold (spec §8.6).

Driven by events where the observer has them; every wait is bounded and cancellable. The rules are `core/scene/settle`
and `core/waiting`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from surehand import limits
from surehand.core.scene import settle as settling
from surehand.core.waiting import Sight, Wait, matching, needs_scene, over_windows, progress
from surehand.errors import AppNotFound, SurehandError, Unavailable, WindowNotFound
from surehand.model.scene import Surface
from surehand.ports import Clock, Observer
from surehand.runtime.params import Wait as WaitParams
from surehand.runtime.scenes import Scenes, desk_of
from surehand.runtime.session import Session
from surehand.runtime.views import target_value

#: How long at most until a window that appeared elsewhere is noticed while another is waited on.
_LOOK_MS: Final = 100


async def settle(observer: Observer, surface_id: str, clock: Clock, effect_at_ms: int | None = None) -> str:
    """Wait until a window is at rest; return `settled` or `possibly_unsettled`.

    Args:
        observer: Who reads the window.
        surface_id: The window.
        clock: Of the same time as `effect_at_ms`.
        effect_at_ms: When its desktop was last acted upon; now when None.
    """
    started = clock.monotonic_ms()
    effect_at = started if effect_at_ms is None else effect_at_ms
    while True:
        try:
            version = (await observer.read(surface_id)).version
        except SurehandError:
            # It closed, or does not answer; whoever reads it next says so.
            return "possibly_unsettled"
        last_event_ms_ago, busy = observer.busy(surface_id)
        now = clock.monotonic_ms()
        answer = settling.settle(
            started_ms=started,
            now_ms=now,
            effect_ms_ago=now - effect_at,
            last_event_ms_ago=last_event_ms_ago,
            busy=busy,
        )
        if answer.status != "wait":
            return answer.status
        await observer.changed(surface_id, version, answer.wait_ms)


async def settle_after(observer: Observer, surface_id: str, clock: Clock, quiet_ms: int, effect_at_ms: int) -> None:
    """Wait until what a known effect brings along has come: until the window has been quiet for a short span.

    Every look is answered by the application itself, so what its handler did by then has been told. Quiet counts from
    the effect, or from the window's last event since.
    """
    started = clock.monotonic_ms()
    while True:
        version = (await observer.read(surface_id)).version
        left_ms = quiet_ms - min(observer.busy(surface_id)[0], clock.monotonic_ms() - effect_at_ms)
        if left_ms <= 0 or clock.monotonic_ms() - started >= limits.SETTLE_VERIFIED_CAP_MS:
            return
        await observer.changed(surface_id, version, left_ms)


async def come_to_rest(
    observer: Observer, surface_id: str, clock: Clock, effect_at_ms: int, changed: Callable[[], Awaitable[bool]]
) -> None:
    """Wait for what an effect that was not read back leads to.

    Once something is seen to have changed a short quiet span is enough; as long as nothing is, what was done may yet
    show, and only the window's rest ends the waiting (`settle`).
    """
    started = clock.monotonic_ms()
    resting = asyncio.ensure_future(settle(observer, surface_id, clock))
    try:
        while not resting.done():
            await settle_after(observer, surface_id, clock, limits.SETTLE_SEEN_QUIET_MS, effect_at_ms)
            if await changed():
                return
            version = (await observer.read(surface_id)).version
            hearing = asyncio.ensure_future(observer.changed(surface_id, version, limits.SETTLE_BUSY_CAP_MS))
            try:
                await asyncio.wait([resting, hearing], timeout=_LOOK_MS / 1000, return_when=asyncio.FIRST_COMPLETED)
            finally:
                hearing.cancel()
                await asyncio.gather(hearing, return_exceptions=True)
            if clock.monotonic_ms() - started >= limits.SETTLE_BUSY_CAP_MS:
                return
    finally:
        resting.cancel()
        await asyncio.gather(resting, return_exceptions=True)


async def wait_for(
    scenes: Scenes,
    session: Session,
    windows: Callable[[], Awaitable[Sequence[Surface]]],
    args: WaitParams,
    clock: Clock,
) -> dict[str, Any]:
    """Wait until one of the meant windows fulfils the conditions; a time-out is a normal result.

    Raises:
        Unavailable: the session has no desktop, so nothing will ever come about.
    """
    desk_of(session)
    wait = Wait(conditions=args.conditions, mode=args.mode, timeout_ms=args.timeout_ms)
    started = clock.monotonic_ms()
    while True:
        look = await _look(scenes, session, windows, wait)
        best = look.holds
        elapsed = clock.monotonic_ms() - started
        left_ms = wait.timeout_ms - elapsed
        if all(best) if wait.mode == "all" else any(best):
            return _answer(session, wait, look, satisfied=True, elapsed_ms=elapsed)
        if left_ms <= 0:
            return _answer(session, wait, look, satisfied=False, elapsed_ms=elapsed)
        await _first_change(look.changes, min(left_ms, _LOOK_MS))


@dataclass(frozen=True, slots=True)
class _Look:
    """Which conditions hold, in which window that was seen, what was seen of it, and ways to hear of changes."""

    holds: tuple[bool, ...]
    changes: list[Callable[[int], Awaitable[bool]]]
    surface: Surface | None = None
    sight: Sight = Sight()  # noqa: RUF009 - frozen


def _answer(session: Session, wait: Wait, look: _Look, *, satisfied: bool, elapsed_ms: int) -> dict[str, Any]:
    """Say what is so: whether it came, and what of the window that comes closest the conditions are about."""
    value: dict[str, Any] = {"satisfied": satisfied, "elapsed_ms": elapsed_ms, "conditions": []}
    for condition, holds in zip(wait.conditions, look.holds, strict=True):
        found: dict[str, Any] = {"kind": str(type(condition).__struct_config__.tag), "satisfied": holds}
        places = matching(condition, look.sight)
        if places and look.sight.scene is not None:
            found["matches"] = len(places)
            found["element"] = target_value(look.sight.scene, places[0])
            session.shown.match(look.sight.scene, places[0])
        value["conditions"].append(found)
    if look.surface is not None:
        value["window"] = {"surface": look.surface.surface_id, "title": look.sight.title or ""}
        if look.sight.scene is not None:
            value["window"]["generation"] = look.sight.scene.generation
    return value


async def _look(
    scenes: Scenes, session: Session, windows: Callable[[], Awaitable[Sequence[Surface]]], wait: Wait
) -> _Look:
    """Return the answers of the window that comes closest, and ways to hear of changes."""
    looks: list[tuple[bool, ...]] = []
    seen: list[tuple[Surface, Sight]] = []
    changes: list[Callable[[int], Awaitable[bool]]] = []
    try:
        found = await windows()
    except (AppNotFound, WindowNotFound):
        found = ()
    except Unavailable:
        # What does not answer is not gone.
        return _Look(progress(wait, Sight()).conditions, changes)
    for surface in found:
        sight = Sight(title=surface.title)
        if needs_scene(wait):
            try:
                scene = await scenes.observe(session, surface.surface_id)
            except SurehandError:
                continue
            sight = Sight(title=scene.surface.title, scene=scene)
            observer = desk_of(session).observer_of(surface.surface_id)
            changes.append(_change(observer, surface.surface_id, scene.tree.version))
        looks.append(progress(wait, sight).conditions)
        seen.append((surface, sight))
    if not looks:
        return _Look(progress(wait, Sight(gone=not found)).conditions, changes)
    closest = max(range(len(looks)), key=lambda place: sum(looks[place]))
    return _Look(over_windows(wait, looks, all_read=len(looks) == len(found)), changes, *seen[closest])


def _change(observer: Observer, surface_id: str, version: int) -> Callable[[int], Awaitable[bool]]:
    return lambda timeout_ms: observer.changed(surface_id, version, timeout_ms)


async def _first_change(changes: list[Callable[[int], Awaitable[bool]]], timeout_ms: int) -> None:
    if not changes:
        await asyncio.sleep(timeout_ms / 1000)
        return
    tasks = [asyncio.ensure_future(change(timeout_ms)) for change in changes]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
