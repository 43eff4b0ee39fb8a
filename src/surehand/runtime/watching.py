"""Telling an agent what changes until it cancels: windows it may read, its approvals, its requests to people.

Events of one window are at least `limits.WATCH_SCENE_MS_MIN` apart; what happens in between is one event with the
newest generation. Everything told is a state, so a listener that lost some (the connection says how many) looks again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from surehand import limits
from surehand.errors import InvalidRequest, PolicyDenied, SurehandError, TooLarge, WindowNotFound
from surehand.runtime import params as p
from surehand.runtime.parts import Parts
from surehand.runtime.scenes import desk_of
from surehand.runtime.session import Session

Progress = Callable[[dict[str, Any]], None]


async def watch(parts: Parts, session: Session, args: p.Watch, progress: Progress | None) -> dict[str, Any]:
    """Tell what happens until the caller cancels.

    Windows are the named ones, else those whose text the session was given, as that grows and shrinks.

    Raises:
        TooLarge: the session has as many watches as it may.
    """
    if progress is None:
        raise InvalidRequest("a watch needs a connection that can be told things")
    if session.watches >= limits.WATCHES_MAX:
        raise TooLarge(f"{session.watches} watches run, which is the limit", fix="cancel one")
    session.watches += 1
    try:
        with (
            parts.approvals.notices.heard(session.principal, progress),
            parts.approvals.notices.heard(session.session_id, progress),
        ):
            progress({"watching": True})
            await _follow_windows(parts, session, args.surfaces, progress)
    finally:
        session.watches -= 1
    return {}


async def _follow_windows(parts: Parts, session: Session, named: tuple[str, ...] | None, progress: Progress) -> None:
    """Follow each window in a task of its own, so that one that does not answer delays no other."""
    following: dict[str, asyncio.Task[None]] = {}
    try:
        while True:
            wanted = named if named is not None else tuple(session.shown.scenes)[-limits.WATCH_SURFACES_MAX :]
            for surface_id in wanted if session.desk is not None else ():
                if surface_id not in following:
                    task = asyncio.create_task(_follow(parts, session, surface_id, progress))
                    following[surface_id] = task
            for surface_id in following.keys() - set(wanted):
                following.pop(surface_id).cancel()
            # What the session is shown next has no event of its own; it does not hurry.
            await asyncio.sleep(limits.WATCH_SCENE_MS_MIN / 1000)
    finally:
        for task in following.values():
            task.cancel()
        await asyncio.gather(*following.values(), return_exceptions=True)


async def _follow(parts: Parts, session: Session, surface_id: str, progress: Progress) -> None:
    """Tell each new generation of one window until it closes or may not be read."""
    shown = session.shown.scenes.get(surface_id)
    told = None if shown is None else shown.generation
    while True:
        version = -1
        try:
            scene = await parts.scenes.observe(session, surface_id, hand_out=False, places=False)
            version = scene.tree.version
            if told is not None and scene.generation != told:
                progress({"scene": {"surface": surface_id, "generation": scene.generation}})
            told = scene.generation
        except WindowNotFound:
            progress({"scene": {"surface": surface_id, "closed": True}})
            return
        except PolicyDenied:
            return
        except SurehandError:
            pass  # it does not answer; it is asked again, no oftener than any other
        await asyncio.sleep(limits.WATCH_SCENE_MS_MIN / 1000)
        if version >= 0:
            await _changed(session, surface_id, version)


async def _changed(session: Session, surface_id: str, version: int) -> None:
    try:
        await desk_of(session).observer_of(surface_id).changed(surface_id, version, limits.WAIT_MS_MAX)
    except SurehandError:
        return  # the next look says what is the matter
