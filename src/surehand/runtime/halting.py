"""Stopping agents, pausing them, and taking their desktop: what the control side and the stop key ask for.

Guarantees:
- Whom a stop or a pause covers sends nothing more from the moment it is asked for: what is not dispatched is refused,
  input under way ends between two units, and everything held is let go of before any disk is waited for.
- A stop holds: agents stay paused until the operator resumes, also over a restart of the daemon, unless it is asked to
  end only what is in flight.
- What was in flight ends as it ends: refused, interrupted, or unknown where nobody can tell. Nothing is called undone.
- Everything is on record with who, when and why. A stop works while nothing can be recorded, and says so.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Coroutine
from typing import Any, Final

from surehand import limits
from surehand.errors import InvalidRequest, SurehandError, TooLarge
from surehand.model.events import NewEvent
from surehand.runtime import params as p
from surehand.runtime.brakes import Hold, Scope, What
from surehand.runtime.parts import Parts
from surehand.runtime.run import Run
from surehand.runtime.session import Desk, Session

STREAM: Final = "holds"
_SET: Final = "hold.set.v1"
_LIFTED: Final = "hold.lifted.v1"
_HALTED: Final = "agents.halted.v1"


# --- the control side -----------------------------------------------------------------------------------------------


async def halt(parts: Parts, session: Session, args: p.Halt) -> dict[str, Any]:
    """Stop what agents have in flight, let go of what they hold, and keep them paused."""
    scope = _scope(parts, args)
    return await stop_now(parts, scope, by=session.principal, how="operator", reason=args.reason, go_on=args.go_on)


async def pause(parts: Parts, session: Session, args: p.Pause) -> dict[str, Any]:
    """Keep agents from acting until the operator resumes; questions to people stay open."""
    scope = _scope(parts, args)
    same = next((one for one in parts.brakes.all() if (one.what, one.scope) == ("paused", scope)), None)
    if same is not None:
        return {**shown(parts, same), "recorded": True, "released": True}
    hold = _put_on(parts, "paused", scope, session.principal, args.reason)
    released = await _let_go(parts, scope)
    return {**shown(parts, hold), "recorded": await _record_set(parts, hold), "released": released}


async def resume(parts: Parts, session: Session, args: p.Resume) -> dict[str, Any]:
    """Let paused agents act again; desktops that a person took stay theirs.

    Raises:
        InvalidRequest: there is no such pause.
    """
    paused = [one for one in parts.brakes.all() if one.what == "paused"]
    if args.hold_id is not None:
        wanted = [one for one in paused if one.hold_id == args.hold_id]
    elif (args.desktop, args.principal, args.session) == (None, None, None):
        wanted = paused
    elif any(args.session == one.scope.label for one in paused if args.session is not None):
        wanted = [one for one in paused if one.scope.label == args.session]  # also of a session that is gone
    else:
        scope = _scope(parts, args)
        wanted = [one for one in paused if one.scope == scope]
    if not wanted and (paused or args.hold_id is not None):
        raise InvalidRequest("no such pause", fix="`surehand holds` shows them")
    for hold in wanted:
        await _lift(parts, hold, session.principal)
    return {"resumed": [one.hold_id for one in wanted], "holds": listed(parts)}


async def take(parts: Parts, session: Session, args: p.TakeDesktop) -> dict[str, Any]:
    """Take a desktop over from every agent, without having been asked.

    Raises:
        InvalidRequest: no such desktop, or somebody has it already.
    """
    scope = _scope(parts, p.Pause(desktop=args.name))
    taken = _taken(parts, args.name)
    if taken is not None:
        raise InvalidRequest(f"{taken.by} has taken that desktop already", fix=f"surehand hand-back {args.name}")
    hold = _put_on(parts, "taken_over", scope, session.principal, args.reason)
    released = await _let_go(parts, scope)
    return {**shown(parts, hold), "recorded": await _record_set(parts, hold), "released": released}


async def hand_back(parts: Parts, session: Session, args: p.DesktopName) -> dict[str, Any]:
    """Give a desktop back to the agents.

    Raises:
        InvalidRequest: nobody took it.
    """
    hold = _taken(parts, args.name)
    if hold is None:
        raise InvalidRequest(
            "nobody has taken that desktop",
            fix="`surehand holds` shows what is held; `surehand requests done` ends what an agent asked for",
        )
    await _lift(parts, hold, session.principal)
    return {"hold_id": hold.hold_id, "desktop": args.name, "holds": listed(parts)}


async def holds(parts: Parts, _: Session, __: p.Nothing) -> dict[str, Any]:
    """Say what keeps agents from acting."""
    return {"holds": listed(parts)}


def listed(parts: Parts) -> list[dict[str, Any]]:
    """Return every hold, as people are shown it."""
    return [shown(parts, hold) for hold in parts.brakes.all()]


def shown(parts: Parts, hold: Hold) -> dict[str, Any]:
    """Return a hold as people are shown it."""
    return {
        "hold_id": hold.hold_id,
        "what": hold.what,
        "desktop": hold.scope.desktop,
        "principal": hold.scope.principal,
        "session": hold.scope.label,
        "by": hold.by,
        "since_ms": hold.since_ms,
        "reason": hold.reason,
        "sessions": sum(hold.scope.covers(one) for one in _agents(parts)),
    }


# --- stopping -------------------------------------------------------------------------------------------------------


async def stop_now(
    parts: Parts, scope: Scope, *, by: str, how: str, reason: str = "", go_on: bool = False
) -> dict[str, Any]:
    """Stop everything in a scope. Returns once everything is let go of, recorded, and has ended or is slow to."""
    began = time.perf_counter()
    runs = [run for run in parts.gateway.runs() if scope.covers(run.session)]
    full = len(parts.brakes.all()) >= limits.HOLDS_MAX
    # A stop is never refused: where no more can be told apart, everything is paused.
    hold = None if go_on else _put_on(parts, "paused", Scope() if full else scope, by, reason)
    for run in runs:
        run.halt()
    for one in _agents(parts):
        one.halts += scope.covers(one)
    released = await _let_go(parts, scope)
    value: dict[str, Any] = {
        "released": released,
        "released_ms": round((time.perf_counter() - began) * 1000),
        "hold": None if hold is None else shown(parts, hold),
    }
    parts.publish("agents.halted", {**value, "by": by, "how": how, "operations": [run.told() for run in runs]})
    recorded = await _record_halt(parts, scope, runs, by, {"how": how, "reason": reason, **_timing(value)})
    if hold is not None:
        recorded = await _record_set(parts, hold) and recorded
    return {**value, "recorded": recorded, "operations": await _ends(runs)}


def by_key(parts: Parts, desktop: str) -> Coroutine[Any, Any, Any] | None:
    """Return what stops the agents of a desktop whose person pressed the stop key there; None where there is none.

    Nobody is kept paused for a key that is pressed while no agent is there.
    """
    scope = Scope(desktop=desktop)
    if not any(scope.covers(one) for one in _agents(parts)):
        return None
    return stop_now(parts, scope, by=f"desktop:{desktop}", how="stop_key")


def _timing(value: dict[str, Any]) -> dict[str, Any]:
    return {name: value[name] for name in ("released", "released_ms")}


async def _let_go(parts: Parts, scope: Scope) -> bool:
    """Have every desktop in the scope release what is held there; false where one did not say that it has.

    Pointer and keyboard are one for all, so whatever anybody holds there goes.
    """
    desks: list[Desk] = []
    narrow = scope.principal is not None or scope.session is not None
    found = [one.desk for one in _agents(parts) if scope.covers(one) and one.desk is not None]
    if not narrow:
        found += [one for one in parts.desks.attached().values() if scope.desktop in (None, one.name)]
    for desk in found:
        if all(desk is not one for one in desks):
            desks.append(desk)
    results = await asyncio.gather(
        *(actor.release_all() for desk in desks for actor in desk.actors), return_exceptions=True
    )
    return not any(isinstance(result, BaseException) for result in results)


async def _ends(runs: list[Run]) -> list[dict[str, Any]]:
    """Return how each ended, `running` where it has not within the time a person waits for an answer."""
    tasks = [run.task for run in runs if run.task is not None]
    if tasks:
        await asyncio.wait(tasks, timeout=limits.HALT_REPORT_MS_MAX / 1000)
    return [{**run.told(), "ended": run.outcome()} for run in runs]


# --- holds ----------------------------------------------------------------------------------------------------------


def _put_on(parts: Parts, what: What, scope: Scope, by: str, reason: str) -> Hold:
    same = next((one for one in parts.brakes.all() if (one.what, one.scope) == (what, scope)), None)
    if same is not None:
        return same
    if len(parts.brakes.all()) >= limits.HOLDS_MAX and scope != Scope():
        raise TooLarge(f"{limits.HOLDS_MAX} holds are in force, which is the limit", fix="resume some, or pause all")
    hold = Hold(
        hold_id=secrets.token_hex(8), what=what, scope=scope, by=by, since_ms=parts.clock.wall_ms(), reason=reason
    )
    parts.brakes.on(hold)
    _tell(parts, hold, on=True)
    return hold


async def _lift(parts: Parts, hold: Hold, by: str) -> None:
    """Lift a hold, durably first: whoever was told that agents act again must not find them paused by a restart."""
    await parts.journal.append([_event(_LIFTED, by, {"hold_id": hold.hold_id})])
    parts.brakes.off(hold.hold_id)
    _tell(parts, hold, on=False)


def _tell(parts: Parts, hold: Hold, *, on: bool) -> None:
    for session in _agents(parts):
        if hold.scope.covers(session):
            parts.approvals.notices.tell(session.session_id, {"held": {"what": hold.what, "now": session.is_held()}})
    parts.publish("hold.set" if on else "hold.lifted", shown(parts, hold))


async def when_free(parts: Parts, session: Session, until_ms: int) -> bool:
    """Wait until nothing holds the session any more, or the time is over; return whether it may act."""
    halts = session.halts
    while session.is_held() and (left_ms := until_ms - parts.clock.monotonic_ms()) > 0:
        await parts.approvals.notices.wait(left_ms)
        if session.halts != halts or session.closed:
            return False
    return not session.is_held()


async def restore(parts: Parts) -> None:
    """Put on what earlier runs left on. Sessions of theirs are gone: what held one holds those that come after it."""
    after = 0
    while events := await parts.journal.stream(STREAM, after_version=after):
        for event in events:
            if event.type == _LIFTED:
                parts.brakes.off(str(event.payload["hold_id"]))
            elif event.type == _SET and (event.payload["session"] is None or event.payload["principal"] is not None):
                facts = event.payload
                scope = Scope(desktop=facts["desktop"], principal=facts["principal"])
                parts.brakes.on(
                    Hold(
                        hold_id=facts["hold_id"],
                        what=facts["what"],
                        scope=scope,
                        by=event.actor,
                        since_ms=facts["since_ms"],
                        reason=facts["reason"],
                    )
                )
        after = events[-1].stream_version


# --- what is named, what is recorded ----------------------------------------------------------------------------------


def _scope(parts: Parts, args: p.Scoped) -> Scope:
    """Return whom it is about; a name that fits nobody must not read as if somebody were stopped.

    Raises:
        InvalidRequest.
    """
    agents = [one for one in _agents(parts) if args.principal in (None, one.principal)]
    session = next((one for one in agents if one.label == args.session), None)
    if args.session is not None and session is None:
        raise InvalidRequest("no agent's session is called so", fix="`surehand ps` shows them")
    desktops = {one.desktop for one in _agents(parts)} | parts.desks.attached().keys()
    if args.desktop is not None and args.desktop not in desktops | {one["name"] for one in parts.desks.listed()}:
        raise InvalidRequest("no desktop is called so", fix="`surehand desktop list` shows them")
    # A principal may be paused before it comes; how many sessions are covered now is part of the answer.
    if session is None:
        return Scope(desktop=args.desktop, principal=args.principal)
    # Not by its id alone: an agent that is stopped and connects again would be free.
    return Scope(
        desktop=args.desktop,
        principal=session.principal,
        session=session.session_id,
        label=session.label,
        others=frozenset(one.session_id for one in agents if one is not session),
    )


def _agents(parts: Parts) -> list[Session]:
    return [one for one in parts.sessions.values() if one.role == "agent"]


def _taken(parts: Parts, desktop: str) -> Hold | None:
    found = (one for one in parts.brakes.all() if one.what == "taken_over" and one.scope.desktop == desktop)
    return next(found, None)


async def _record_set(parts: Parts, hold: Hold) -> bool:
    payload = {
        "hold_id": hold.hold_id,
        "what": hold.what,
        "desktop": hold.scope.desktop,
        "principal": hold.scope.principal,
        "session": hold.scope.session,
        "since_ms": hold.since_ms,
        "reason": hold.reason,
    }
    return await _record(parts, _event(_SET, hold.by, payload))


async def _record_halt(parts: Parts, scope: Scope, runs: list[Run], by: str, facts: dict[str, Any]) -> bool:
    payload = {
        **facts,
        "desktop": scope.desktop,
        "principal": scope.principal,
        "session": scope.session,
        "operations": [
            {"principal": run.principal, "operation_id": run.operation_id} for run in runs[: limits.HALT_NAMED_MAX]
        ],
        "operations_count": len(runs),
    }
    return await _record(parts, _event(_HALTED, by, payload))


async def _record(parts: Parts, event: NewEvent) -> bool:
    try:
        await parts.journal.append([event])
    except SurehandError:
        return False
    return True


def _event(kind: str, actor: str, payload: dict[str, Any]) -> NewEvent:
    return NewEvent(stream=STREAM, type=kind, actor=actor, payload=payload)
