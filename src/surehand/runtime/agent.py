"""What an agent can ask: reads through policy, effects through the gateway (spec §5.6, §11).

Each method takes its session and strict parameters and returns a JSON value. Nothing here decides anything.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec

from surehand.core.batch import next_step, step_id
from surehand.core.scene.diff import diff
from surehand.core.scene.query import find
from surehand.core.scene.render import RenderOptions, render
from surehand.core.verification import default_expectation
from surehand.errors import Cancelled, StaleTarget, SurehandError
from surehand.model.actions import Hold
from surehand.model.outcome import UNKNOWN_STATEMENT, Reply
from surehand.model.record import to_value
from surehand.model.request import Batch, Request
from surehand.model.scene import Scene, Surface
from surehand.model.verification import NoVerification
from surehand.runtime import asserted, changes, contents, following, halting, launched, picturing, plans, pointed
from surehand.runtime import params as p
from surehand.runtime.asking import approval, human
from surehand.runtime.doctoring import doctor
from surehand.runtime.parts import Parts
from surehand.runtime.scenes import desk_of
from surehand.runtime.session import Session
from surehand.runtime.shown import still_means
from surehand.runtime.views import surface_value, target_value
from surehand.runtime.waiting import settle, wait_for
from surehand.runtime.where import one_surface, surfaces_of

#: What `base` says for the text that the session was given last.
_SHOWN: Final = "shown"

Method = Callable[[Parts, Session, Any], Awaitable[dict[str, Any]]]


# --- reads ----------------------------------------------------------------------------------------------------------


async def capabilities(parts: Parts, session: Session, args: p.SurfaceName) -> dict[str, Any]:
    """Say what works, before anybody acts."""
    desk = desk_of(session)
    value: dict[str, Any] = {
        "desktop": desk.name,
        "isolation": desk.isolation,
        "trust_level": session.trust_level,
        "authority_mode": session.authority_mode,
        "policy_revision": parts.authority.policy.revision,
        "surfaces": {},
    }
    # What aims at no window, such as launching.
    value["desktop_actions"] = [to_value(fact) for actor in desk.actors for fact in actor.capabilities(desk.root)]
    for surface in await surfaces_of(parts, session, p.Where(surface=args.surface)):
        facts = [fact for actor in desk.actors for fact in actor.capabilities(surface)]
        value["surfaces"][surface.surface_id] = [to_value(fact) for fact in facts]
    value["silent"] = [entry for observer in desk.observers for entry in await observer.dead_letters()]
    return value


async def apps(parts: Parts, session: Session, _: p.Nothing) -> dict[str, Any]:
    """List the applications that have windows this session may read."""
    parts.authority.check_usable()
    found: dict[int, dict[str, Any]] = {}
    for surface in await parts.scenes.surfaces(session):
        entry = found.setdefault(
            surface.app.pid,
            {
                "app": surface.app.key,
                "pid": surface.app.pid,
                "claimed_name": surface.app.claimed_name,
                "toolkit": surface.toolkit,
                "surfaces": [],
            },
        )
        entry["surfaces"].append(surface.surface_id)
    silent = [entry for observer in desk_of(session).observers for entry in await observer.dead_letters()]
    return {"apps": list(found.values()), "silent": silent}


async def surfaces(parts: Parts, session: Session, args: p.Where) -> dict[str, Any]:
    """List windows."""
    found = await surfaces_of(parts, session, args)
    if args.app is None and args.surface is None:
        session.shown.windows = {surface.surface_id for surface in found}
    return {"surfaces": [surface_value(surface) for surface in found]}


async def observe(parts: Parts, session: Session, args: p.Observe) -> dict[str, Any]:
    """Observe one window."""
    where: p.Where = args
    if args.scope is not None and args.surface is None and args.app is None:
        where = p.Where(surface=session.shown.meaning(args.scope).surface_id)
    surface = await one_surface(parts, session, where, listed=False)
    settled = "settled"
    if args.after_generation is not None:
        await _newer(parts, session, surface, args)
    elif args.settle:
        desk = desk_of(session)
        observer = desk.observer_of(surface.surface_id)
        settled = await settle(observer, surface.surface_id, parts.clock, desk.effect_at_ms)
    scene = await parts.scenes.observe(session, surface.surface_id)
    base = None
    if args.base == _SHOWN:
        base = session.shown.scenes.get(surface.surface_id)
    elif args.base is not None:
        base = session.scenes.get(args.base) or session.shown.scene(args.base)
    value = _scene_value(session, scene, base, args)
    parts.reads.note(session, scene.surface, "desktop.observe", value["text"], scene.generation)
    return {**value, "settled": settled}


async def _newer(parts: Parts, session: Session, surface: Surface, args: p.Observe) -> None:
    """Wait until the window's generation is above the asked one; running out of time is a normal result."""
    observer = desk_of(session).observer_of(surface.surface_id)
    until = parts.clock.monotonic_ms() + args.timeout_ms
    while True:
        scene = await parts.scenes.observe(session, surface.surface_id)
        left_ms = until - parts.clock.monotonic_ms()
        if scene.generation > (args.after_generation or 0) or left_ms <= 0:
            return
        await observer.changed(surface.surface_id, scene.tree.version, left_ms)


def _scene_value(session: Session, scene: Scene, base: Scene | None, args: p.Observe) -> dict[str, Any]:
    form = RenderOptions(nodes_max=args.max_nodes, tokens_max=args.max_tokens, within=args.scope)
    value: dict[str, Any] = {
        "surface": surface_value(scene.surface),
        "scene_id": scene.scene_id,
        "generation": scene.generation,
        "complete": scene.tree.complete,
    }
    whole = render(scene, form)
    value.update(kind="full", text=whole.text)
    asked = args.base is not None and (base is not None or args.base != _SHOWN)
    if asked and not args.full:
        if base is not None and not session.shown.holds(base, form):
            value["reason"] = "the earlier text was given in another form"
        else:
            changed = diff(base, scene, form)
            value.update(kind="full" if changed.full else "diff", text=changed.text)
            if changed.reason:
                value["reason"] = changed.reason
    if args.aside:
        session.shown.aside(scene, form, whole.keys)
    elif args.scope is None:
        session.shown.text(scene, form)
    else:
        # A look at a part is no text of the window: a later diff stands on the one before.
        session.shown.part(scene, whole.keys)
    if args.targets:
        value["targets"] = [target_value(scene, index) for index in range(len(scene.targets))]
    return value


async def query(parts: Parts, session: Session, args: p.Find) -> dict[str, Any]:
    """Find elements in one window, or in all windows of an application."""
    matches: list[dict[str, Any]] = []
    scenes: list[dict[str, Any]] = []
    more = False
    for surface in await surfaces_of(parts, session, args, listed=False):
        scene = await parts.scenes.observe(session, surface.surface_id)
        found = find(scene, args.query)
        names = "\n".join(scene.tree.nodes[index].name for index in found.indexes)
        parts.reads.note(session, scene.surface, "desktop.query", names, scene.generation)
        more = more or found.truncated
        matches.extend(target_value(scene, index) for index in found.indexes)
        for index in found.indexes:
            session.shown.match(scene, index)
        scenes.append({"surface": surface.surface_id, "scene_id": scene.scene_id, "generation": scene.generation})
    most = args.query.max_results
    return {"matches": matches[:most], "scenes": scenes, "truncated": more or len(matches) > most}


async def refs(parts: Parts, session: Session, args: p.Labels) -> dict[str, Any]:
    """Turn labels into references to what is there now, as long as they mean what the caller was shown."""
    found: dict[str, dict[str, Any]] = {}
    for label in args.labels:
        meaning = session.shown.meaning(label)
        scene = await parts.scenes.observe(session, meaning.surface_id)
        try:
            index = still_means(meaning, scene)
        except StaleTarget as stale:
            session.shown.candidates([scene], stale.observed)
            raise
        found[label] = {**target_value(scene, index), "surface": meaning.surface_id}
    return {"refs": found}


async def wait(parts: Parts, session: Session, args: p.Wait) -> dict[str, Any]:
    """Wait for conditions; not satisfied in time is a normal result."""
    value = await wait_for(parts.scenes, session, lambda: surfaces_of(parts, session, args), args, parts.clock)
    if (window := value.get("window")) is not None:
        surface, _ = await desk_of(session).surface(window["surface"])
        parts.reads.note(session, surface, "desktop.wait", repr(value["conditions"]), window.get("generation", 0))
    return value


# --- effects --------------------------------------------------------------------------------------------------------


async def propose(parts: Parts, session: Session, args: p.Propose) -> dict[str, Any]:
    """Return what a host has to sign."""
    return await parts.gateway.propose(session, args.request)


async def act(parts: Parts, session: Session, args: p.Act) -> dict[str, Any]:
    """Run one request; with `observe_after` also say what it changed.

    Who waits for approvals waits for an operator too who paused it.
    """
    halts = session.halts
    until_ms = parts.clock.monotonic_ms() + args.wait_approval_ms
    _will_hold(session, args.request)
    seen = await changes.before(parts, session, [args.request]) if args.observe_after else None
    request = await launched.by_id(session, args.request)
    _check_not_halted(session, halts)
    reply = await parts.gateway.act(session, request, wait_approval_ms=args.wait_approval_ms)
    while _is_held(reply) and await halting.when_free(parts, session, until_ms):
        left_ms = max(0, until_ms - parts.clock.monotonic_ms())
        reply = await parts.gateway.act(session, request, wait_approval_ms=left_ms)
    if reply.error is not None:
        session.shown.candidates(session.latest.values(), reply.error.get("observed") or {})
    # What a withheld operation changed is as little for its caller as what it returned.
    if seen is not None and reply.terminal is not None and reply.status != "withheld":
        # Whoever gives up now still hears the outcome; only the look is dropped.
        with contextlib.suppress(asyncio.CancelledError):
            reply = await launched.window_of(parts, session, seen.windows, reply)
            if args.observe_after == "later":
                changes.note(session, seen, [reply])
            else:
                names = args.observe_after == "windows"
                told = changes.opened if names else changes.after
                change = await told(parts, session, seen, [reply], full=args.full)
                reply = msgspec.structs.replace(reply, output={**(reply.output or {}), "after": change})
    return _reply_value(session, reply)


def _is_held(reply: Reply) -> bool:
    what = ((reply.error or {}).get("details") or {}).get("what")
    return reply.status == "refused" and what in {"paused", "taken_over"}


def _check_not_halted(session: Session, halts: int) -> None:
    """Begin nothing that was asked for before a person stopped the session.

    Raises:
        Cancelled.
    """
    if session.halts != halts:
        raise Cancelled("stopped by a person before any effect", gate="deadline", details={"what": "halted"})


def _will_hold(session: Session, request: Request) -> None:
    # Before it is tried: a connection that breaks in the middle must leave nothing down either.
    session.holds = session.holds or isinstance(request.action, Hold)


def _reply_value(session: Session, reply: Reply) -> dict[str, Any]:
    asserted.told(session, reply.approval)
    value: dict[str, Any] = to_value(reply)
    if reply.status == "outcome_unknown" and reply.terminal is not None:
        value["error"] = {
            "code": "outcome_unknown",
            "message": reply.terminal.message or UNKNOWN_STATEMENT,
            "retry_safe": False,
            "fix": "look at the application, then act again with reconciles set to this operation id",
        }
    return value


async def batch(parts: Parts, session: Session, args: p.RunBatch) -> dict[str, Any]:
    """Run steps one after another until one does not succeed or the caller gives up (spec §5.5)."""
    halts = session.halts
    waits = await plans.agree(parts, session, args.batch)
    if waits is not None:
        return {"replies": [_reply_value(session, waits)], "stopped_by": waits.operation_id}
    seen = await changes.before(parts, session, args.batch.steps) if args.observe_after else None
    replies, stopped_by = await _run_steps(parts, session, args.batch, halts)
    value: dict[str, Any] = {"replies": [_reply_value(session, reply) for reply in replies]}
    if stopped_by is not None:
        value["stopped_by"] = stopped_by
    ended = [reply for reply in replies if reply.terminal is not None and reply.status != "withheld"]
    if seen is not None and ended:
        with contextlib.suppress(asyncio.CancelledError):
            value["after"] = await changes.after(parts, session, seen, ended)
    return value


async def _run_steps(parts: Parts, session: Session, batch: Batch, halts: int) -> tuple[list[Reply], str | None]:
    task = asyncio.current_task()
    replies: list[Reply] = []
    for index, step in enumerate(batch.steps):
        request = msgspec.structs.replace(step, operation_id=step_id(batch, index))
        _will_hold(session, request)
        try:
            request = await launched.by_id(session, request)
            _check_not_halted(session, halts)
            reply = await parts.gateway.act(session, request)
        except (SurehandError, asyncio.CancelledError):
            if not replies:
                raise
            # The steps before it happened, and must not be lost behind an error that reads as "nothing happened".
            return replies, request.operation_id
        replies.append(reply)
        unasked = isinstance(request.verification or default_expectation(request.action, None), NoVerification)
        given_up = task is not None and task.cancelling() > 0
        stop = given_up or next_step(reply, batch.on_refusal, asked_for_none=unasked) == "stop"
        if stop and index + 1 < len(batch.steps):
            return replies, request.operation_id
    return replies, None


async def status(parts: Parts, session: Session, args: p.OperationName) -> dict[str, Any]:
    """Say what is known of an operation of this principal, and after an unknown what to check."""
    value: dict[str, Any] = {"operation_id": args.operation_id, "known": False}
    for run in parts.gateway.runs():
        if (run.principal, run.operation_id) == (session.principal, args.operation_id):
            value.update(known=True, state=run.operation.state, in_flight=True)
            return value
    stored = await parts.operations.load(session.principal, args.operation_id)
    if stored is None:
        return value
    value.update(known=True, in_flight=False, state=stored.operation.state)
    if stored.terminal is not None:
        value["terminal"] = to_value(stored.terminal)
    if stored.proof is not None:
        value["proof"] = to_value(stored.proof)
    if stored.claim is not None:
        value["sent"] = {"effect": stored.claim.effect, "app": stored.claim.app, "request": stored.claim.request}
    if (session.principal, args.operation_id) in parts.operations.unresolved():
        if stored.claim is not None:
            value["now"] = await following.seen_since(parts, session, stored.claim)
        value["check"] = (
            "Observe the application and compare it with what was sent; then act with reconciles set to this id, "
            "or have a person resolve it."
        )
    if stored.resolution is not None:
        value["resolution"] = stored.resolution
    return value


async def cancel(parts: Parts, session: Session, args: p.OperationName) -> dict[str, Any]:
    """Cancel what was not dispatched yet."""
    return {"cancelled": parts.gateway.cancel(session.principal, args.operation_id)}


async def end_session(parts: Parts, session: Session, _: p.Nothing) -> dict[str, Any]:
    """Forget everything the session has seen, ask nobody any more, and let go of what it holds.

    Its references are stale from now on. Says on which desktop it was, for whoever begins another session there.
    """
    await parts.people.session_ends(session)
    session.scenes.clear()
    session.latest.clear()
    session.shown.clear()
    session.later = None
    session.sights.clear()
    desk = session.desk
    for actor in desk.actors if desk is not None and session.holds else ():
        await actor.release_all()
    session.holds = False
    return {"ended": True, **({} if desk is None else {"desktop": desk.name})}


AGENT: Final[dict[str, tuple[type[Any], Method]]] = {
    "capabilities": (p.SurfaceName, capabilities),
    "apps": (p.Nothing, apps),
    "surfaces": (p.Where, surfaces),
    "observe": (p.Observe, observe),
    "query": (p.Find, query),
    "refs": (p.Labels, refs),
    "read_text": (p.ReadText, contents.read_text),
    "find_text": (p.FindText, contents.find_text),
    "read_table": (p.ReadTable, contents.read_table),
    "screenshot": (p.TakePicture, picturing.screenshot),
    "at": (p.At, pointed.at),
    "wait": (p.Wait, wait),
    "propose": (p.Propose, propose),
    "act": (p.Act, act),
    "batch": (p.RunBatch, batch),
    "plan": (p.Plan, plans.plan),
    "changes": (p.Changes, changes.changes),
    "status": (p.OperationName, status),
    "cancel": (p.OperationName, cancel),
    "end_session": (p.Nothing, end_session),
    "approval": (p.Approval, approval),
    "approval.form": (asserted.AskClient, asserted.form),
    "approval.assert": (asserted.Asserted, asserted.assertion),
    "human": (p.Human, human),
    "doctor": (p.Nothing, doctor),
}
