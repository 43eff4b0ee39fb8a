"""The one path for every effect, and the only caller of acting adapters (spec §5.1).

Guarantees:
- An actor's `perform` is called in one place, with an attempt whose permit was consumed by a durable claim.
- One operation id of one principal runs at most once at a time; whoever asks again meanwhile gets the same answer.
- From the claim on a run goes to its end whatever becomes of its caller: `released`, or exactly one terminal.
- A terminal that cannot be written is answered as `outcome_unknown`.
- The rules live in `core/`; this module asks them in the order of the table in `core/lifecycle.py`.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections import deque
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from surehand import limits
from surehand.core import hashing, permit, release, safety
from surehand.core.history import Claimed, Replay, Unknown, idempotency
from surehand.core.history import Conflict as ConflictVerdict
from surehand.core.lifecycle import GATES_OF, Gate, Happening
from surehand.core.outcome import Ending, Known, Status, terminal_of
from surehand.core.policy.inputs import all_categories
from surehand.core.scene.fence import check_fence
from surehand.core.verification import check_expectation
from surehand.errors import (
    Conflict,
    InternalError,
    StaleTarget,
    SurehandError,
    TargetError,
    Unavailable,
    UnsupportedAction,
)
from surehand.model.decision import Decision
from surehand.model.outcome import Proof, Reply, Terminal
from surehand.model.request import Request
from surehand.ports import Actor, Clock, Dispatched
from surehand.runtime.approvals import ApprovalNeeded, Approvals
from surehand.runtime.attempt import LiveAttempt, StopInput
from surehand.runtime.authority import Authority, check_again, check_allowed
from surehand.runtime.chance import Chance
from surehand.runtime.defects import log_defect
from surehand.runtime.endings import gone_on, lost, other_way, unknown_terminal
from surehand.runtime.facts import FactFinder
from surehand.runtime.operations import Operations
from surehand.runtime.resolve import Aim, Resolver, centre_of, check_unblocked, handles_of, is_pointed, needs
from surehand.runtime.run import Run
from surehand.runtime.secrets import Secrets
from surehand.runtime.session import Session
from surehand.runtime.watch import Seen, Watcher

_log: Final = logging.getLogger("surehand.gateway")
_H: Final = Happening
_CHECKED: Final = (_H.SHAPE_CHECKED, _H.SESSION_BOUND)
_DONE: Final = (_H.DEADLINE_HELD, _H.ENTERED, _H.RETURNED)
#: Of a run's random digits the first name its decision, the rest, after the time (so uses lie together), its permit.
_CHANCE_BYTES: Final = 24
_DECISION_DIGITS: Final = 16


@dataclass(slots=True)
class Keys:
    """Secrets of the daemon that the gateway uses; see `signing.keystore`."""

    permit: bytes
    salt: bytes
    digest: bytes


@dataclass
class Gateway:
    """Runs requests. Everything it needs is given; `compose` wires it."""

    clock: Clock
    keys: Keys
    operations: Operations
    authority: Authority
    facts: FactFinder
    approvals: Approvals
    resolver: Resolver
    watcher: Watcher
    secrets: Secrets | None = None

    def __post_init__(self) -> None:
        self._running: dict[tuple[str, str], Run] = {}
        self.recent = deque[dict[str, Any]](maxlen=limits.RECENT_OPERATIONS_MAX)  # for people who watch
        self._digest = hashing.text_digest(self.keys.digest)
        self._chance = Chance(_CHANCE_BYTES)

    # --- callers ------------------------------------------------------------------------------------------------

    async def act(self, session: Session, request: Request, *, wait_approval_ms: int = 0) -> Reply:
        """Run a request to its end and return the reply; refusals are replies too.

        Cancelling the caller cancels the run only while nothing was dispatched; the run itself always ends, and its
        end is the answer: nothing else can say whether anything happened.

        Raises:
            Cancelled: the caller gave up while another one goes on waiting for the same operation.
            Unavailable: the session has ended.
        """
        if session.closed:
            raise Unavailable("this session has ended", fix="connect again")
        key = (session.principal, request.operation_id)
        while (run := self._running.get(key)) is not None:
            same = await self._is_same(run, session, request)
            if same is False:
                return await self._refuse(
                    self._start(session, request, 0),
                    Conflict("this operation id is in flight for something else", gate=Gate.IDEMPOTENCY),
                )
            if same:
                break
        if run is None:
            run = self._start(session, request, wait_approval_ms)
            self._running[key] = run
            run.task = asyncio.get_running_loop().create_task(self._drive(run))
            run.task.add_done_callback(functools.partial(self._forget, key, run))
        return await self._end_of(run)

    def _forget(self, key: tuple[str, str], run: Run, _: asyncio.Task[Reply]) -> None:
        self._running.pop(key, None)  # whatever is amiss, those who wait must be told
        run.ended.set()
        self.recent.append(run.past())

    @staticmethod
    async def _end_of(run: Run) -> Reply:
        if run.task is None:
            raise InternalError("a run without a task")
        run.waiters += 1
        while not run.ended.is_set():
            try:
                await run.ended.wait()
            except asyncio.CancelledError:
                if not run.cancelled.is_set():
                    run.waiters -= 1
                    if run.waiters:
                        raise gone_on() from None
                    run.cancelled.set()
        return run.task.result()

    def cancel(self, principal: str, operation_id: str) -> bool:
        """Cancel an attempt in flight; false when there is none. What was dispatched still ends as it ends."""
        run = self._running.get((principal, operation_id))
        if run is None:
            return False
        run.cancelled.set()
        return True

    def cancel_session(self, session: Session) -> list[asyncio.Task[Reply]]:
        """Cancel what a session has in flight and return the tasks to wait for."""
        runs = [run for run in self._running.values() if run.session is session]
        for run in runs:
            run.cancelled.set()
        return [run.task for run in runs if run.task is not None]

    def runs(self) -> list[Run]:
        """Return what runs now, for whoever watches or stops it."""
        return list(self._running.values())

    async def foresee(self, session: Session, request: Request) -> tuple[Run, Decision]:
        """Return what a request would be, and what policy says of it now; nothing is begun."""
        run = self._start(session, request, 0)
        run.aim = await self.resolver.look_up(session, request)
        run.salt = self._hash(run, run.aim)
        run.document = self.facts.document(run)
        run.effect = run.document.action
        return run, await self._decide(run, approved=False)

    async def propose(self, session: Session, request: Request) -> dict[str, Any]:
        """Return what a host must sign: the action hash, the salt and the meaning, and what policy says now."""
        run, decision = await self.foresee(session, request)
        return run.proposal(decision, self.authority.policy_generation)

    # --- one run ------------------------------------------------------------------------------------------------

    def _start(self, session: Session, request: Request, wait_approval_ms: int) -> Run:
        now = self.clock.monotonic_ms()
        return Run(
            chance=self._chance.next(),
            request=request,
            session=session,
            started_ms=now,
            started_wall_ms=self.clock.wall_ms(),
            deadline_at_ms=now + request.deadline_ms,
            wait_approval_ms=wait_approval_ms,
        )

    async def _is_same(self, run: Run, session: Session, request: Request) -> bool | None:
        """Say whether a second caller means what is in flight; None where that ended before anybody knew."""
        if request == run.request and session is run.session:
            return True
        await run.identified.wait()
        if not run.action_hash:
            if run.task is not None:
                await asyncio.wait([run.task])
            return None
        other = self._start(session, request, 0)
        try:
            aim = await self.resolver.look_up(session, request)
        except TargetError:
            # What is in flight may just have taken its target away; it still is the same.
            aim = run.aim
        self._hash(other, aim)
        return other.action_hash == run.action_hash

    async def _drive(self, run: Run) -> Reply:
        """Run the path; whatever happens before the claim is a refusal, whatever after it an honest end."""
        try:
            return await self._path(run)
        except ApprovalNeeded as needed:
            return Reply(operation_id=run.operation_id, status="approval_required", approval=needed.value)
        except SurehandError as error:
            return await self._refuse(run, error)
        except Exception as error:  # noqa: BLE001 - a defect anywhere must end as a refusal or an honest unknown
            log_defect(_log, f"defect in the path of {run.effect}", error)
            if run.operation.claimed:
                return await self._finish(
                    run, lost("Surehand failed after the claim."), Dispatched(status="unknown", route=""), ""
                )
            return await self._refuse(run, InternalError("a defect of Surehand; nothing was done"))
        finally:
            run.forget_secret()
            run.identified.set()

    async def _path(self, run: Run) -> Reply:
        safety.check_known_action(run.request.action)
        safety.check_fenced(run.request.action, run.request.target)
        if run.request.verification is not None:
            check_expectation(run.request.verification)
        run.operation = run.operation.through(*_CHECKED)
        stored = await self._identify(run)
        if stored is not None:
            return stored
        self._authorise(run)
        await self._agree(run)
        await self._fence(run)
        run.step(_H.FENCE_HELD)
        actor = self._actor(run)
        await self._claim(run)
        return await self._dispatch(run, actor)

    async def _identify(self, run: Run) -> Reply | None:
        """Idempotency (spec §5.3): return the stored answer, refuse a conflict, or go on."""
        stored = await self.operations.load(run.principal, run.operation_id)
        claim = None if stored is None else stored.claim
        try:
            run.aim = await self.resolver.look_up(run.session, run.request)
        except SurehandError:
            # A replay needs no live backend: the claim remembers which application and window were meant.
            if claim is None:
                raise
            self._hash(run, claim)
        else:
            self._hash(run, run.aim)
        run.identified.set()
        verdict = idempotency(stored, None, run.action_hash)
        if isinstance(verdict, Replay):
            return self._reply(run, verdict.terminal, verdict.proof, replayed=True)
        if isinstance(verdict, ConflictVerdict):
            raise Conflict(
                "this operation id was already used for something else",
                gate=Gate.IDEMPOTENCY,
                fix="use a new operation id for a new effect",
            )
        if isinstance(verdict, Unknown):
            # Recovery writes these at start; one found later lost its end in this very process.
            return self._reply(run, unknown_terminal(run, "The claim has no recorded end."), None, replayed=True)
        fingerprint, context = run.aim.hashes
        run.reconcile_key = hashing.reconcile_key(
            self.keys.salt,
            principal=run.principal,
            action=run.request.action,
            meaning=run.meaning,
            fingerprint_hash=fingerprint,
            context_hash=context,
        )
        self._check_reconciled(run)
        run.document = self.facts.document(run)
        run.effect = run.document.action
        run.step(_H.FOUND_FRESH, action_hash=run.action_hash)
        return None

    def _check_reconciled(self, run: Run) -> None:
        observed = None if run.aim.seen is None else run.aim.seen.observed_at_ms
        self.operations.check_reconciled(run.principal, run.reconcile_key, run.request.reconciles, observed)

    def _hash(self, run: Run, aimed: Aim | Claimed) -> str | None:
        salt = hashing.salt_of(run.request, self.keys.salt, run.principal)
        run.meaning = hashing.target_meaning(run.request.target, app=aimed.app, place=aimed.place, window=aimed.window)
        run.action_hash = hashing.action_hash(run.request, run.meaning, salt)
        run.request_hash = hashing.request_hash(run.principal, run.operation_id, run.action_hash)
        return salt

    def _authorise(self, run: Run) -> None:
        left_ms = self.authority.authorise(run)
        run.deadline_at_ms = min(run.deadline_at_ms, self.clock.monotonic_ms() + left_ms)
        run.step(_H.AUTHORISED)

    async def _decide(self, run: Run, *, approved: bool) -> Decision:
        if run.document is None:
            raise InternalError("a decision without its facts")
        document = msgspec.structs.replace(run.document, approved=True) if approved else run.document
        safety.check_host_facts(document.facts, isolation=run.isolation, trust_level=run.session.trust_level)
        decision = await self.authority.decide(document, run.chance[:_DECISION_DIGITS])
        return safety.raise_for_query(decision, document, run.request.target)

    async def _agree(self, run: Run) -> None:
        """Policy, then a person or a standing grant where policy asks, then policy again."""
        decision = await self._decide(run, approved=False)
        if decision.outcome == "require_approval" and run.document is not None:
            run.decision = decision
            waited = await self.approvals.obtain(run, run.document, decision)
            # The deadline stands still while somebody thinks (spec §3.1).
            run.deadline_at_ms += waited
            # Not so a grant: it runs out whoever thinks.
            left_ms = self.authority.authorise(run)
            run.deadline_at_ms = min(run.deadline_at_ms, self.clock.monotonic_ms() + left_ms)
            decision = await self._decide(run, approved=True)
        check_allowed(decision)
        run.decision = decision
        run.step(_H.POLICY_ALLOWED)

    async def _decided(self, run: Run) -> Decision:
        """Return the decision of the policy in force now: one that came since is asked anew (spec §6.1)."""
        while self.authority.is_old(run.decision):
            run.decision = check_again(await self._decide(run, approved=run.operation.approved))
        if run.decision is None:
            raise InternalError("a claim without a decision")
        return run.decision

    async def _fence(self, run: Run) -> None:
        """Run the first fence; a window that is called otherwise now is put before policy again."""
        was, before = run.aim.surface, run.document
        await self.resolver.fence(run.session, run.request, run.aim)
        now = run.aim.surface
        if was is None or now is None or before is None or now.title == was.title:
            return
        run.document = self.facts.document(run)
        decision = await self._decide(run, approved=run.operation.approved)
        if decision.outcome == "deny":
            check_allowed(decision)
        if decision.outcome != "allow" or not all_categories(run.document) <= all_categories(before):
            raise StaleTarget(
                "the window has another title, and what the action means there needs another decision",
                fix="observe again",
                details={"what": "title"},
            )

    def _actor(self, run: Run) -> Actor:
        """Choose the route before anything is attempted; no other is tried for this operation (spec §10)."""
        desk = run.session.desk
        surface = run.aim.surface
        if desk is not None and surface is not None:
            for actor in desk.actors:
                # As it is now: Qt offers no action on what is disabled.
                route = actor.route(run.request.action, surface, run.aim.now or run.aim.node)
                if route is not None:
                    return actor
        raise UnsupportedAction(
            f"nothing here can do {run.effect}",
            gate=Gate.PERMIT,
            fix=other_way(run.request.action),
            observed={"role": "" if run.aim.node is None else run.aim.node.role},
        )

    async def _claim(self, run: Run) -> None:
        await self.authority.spend(run)
        decision = await self._decided(run)
        run.permit = permit.mint_permit(
            self.keys.permit,
            request_hash=run.request_hash,
            decision_id=decision.decision_id,
            obligations_hash=permit.obligations_hash(decision.obligations),
            session=run.session.session_id,
            nonce=f"{run.started_wall_ms:x}-{run.chance[_DECISION_DIGITS:]}",
            now_ms=self.clock.monotonic_ms(),
        )
        run.step(_H.PERMIT_MINTED, permit_nonce=run.permit.nonce)
        run.uses[permit.use_key(run.permit)] = 1
        if run.aim.node is not None:
            run.before_hash = self.watcher.evidence(run.aim.node)
        run.check_time(self.clock.monotonic_ms())
        self.approvals.take(run)
        try:
            await self.operations.claim(
                run.principal, run.operation_id, run.uses, run.claim(self._digest), run.session.session_id
            )
        except BaseException:
            self.approvals.give_back(run)
            raise
        run.step(_H.CLAIM_STORED, permit_nonce=run.permit.nonce)
        self.approvals.used(run)

    # --- dispatch -----------------------------------------------------------------------------------------------

    async def _dispatch(self, run: Run, actor: Actor) -> Reply:
        desk = run.session.desk
        if desk is None:
            raise InternalError("a dispatch without a desktop")
        attempt: LiveAttempt | None = None
        turn = desk.turn(actor.backend, run.aim.surface)
        behind_others = turn.locked()
        try:
            async with turn:
                # Whoever was first may have been the same effect, and nobody knows how it ended.
                self._check_reconciled(run)
                if behind_others:
                    # Whoever was first may have changed everything: above all, opened a modal dialog (C05).
                    await self._fence(run)
                if self.secrets is not None:
                    await self.secrets.reveal(run)
                attempt = self._attempt(run, actor)
                seen = self.watcher.before(run)
                desk.acts(run.principal)
                try:
                    dispatched = await actor.perform(attempt)
                except StopInput as stop:
                    dispatched = Dispatched(status="sent", route=actor.backend, detail=str(stop))
                finally:
                    desk.acted(self.clock.monotonic_ms())
                _check_entered(attempt)
                run.operation = run.operation.through(*_DONE)
                known = await self._known(run, attempt, dispatched, seen)
        except Exception as error:  # noqa: BLE001 - whatever an adapter raises, the claim must find its end
            if attempt is None or not attempt.entered:
                return await self._release(run, error)
            log_defect(_log, "the actor failed after entering", error)
            if run.operation.entered is False:
                run.operation = run.operation.through(*_DONE)
            ending = lost("The adapter failed after it had begun.")
            return await self._finish(run, ending, Dispatched(status="unknown", route=actor.backend), actor.backend)
        due, secrets = self._obligations(run), run.revealed()
        released = release.release_output(dispatched.output, due, secrets=secrets, agreed=run.output_agreed)
        if isinstance(released, release.Withheld):
            known = msgspec.structs.replace(known, withheld=True)
        reply = await self._finish(run, terminal_of(known), dispatched, actor.backend)
        if isinstance(released, release.Released) and released.output is not None:
            reply = msgspec.structs.replace(reply, output=released.output)
        return reply

    @staticmethod
    def _obligations(run: Run) -> Any:
        if run.decision is None:
            raise InternalError("a dispatch without a decision")
        return run.decision.obligations

    def _attempt(self, run: Run, actor: Actor) -> LiveAttempt:
        aim, current_permit = run.aim, run.permit
        if current_permit is None or aim.surface is None:
            raise InternalError("a dispatch without a permit")
        point = aim.point
        if point is None and aim.now is not None and actor.backend == "x11" and is_pointed(run.request):
            point = centre_of(aim.now)
        desk = run.session.desk
        touched = None if desk is None or desk.interruptions is None else desk.interruptions.mark()

        def stop() -> str | None:
            if run.halted or (touched is not None and touched()) or run.session.is_held():
                return "person"
            return "cancelled" if run.cancelled.is_set() else None

        return LiveAttempt(
            permit=current_permit,
            action=run.request.action,
            surface=aim.surface,
            node=aim.now or aim.node,
            fence_handles=handles_of(aim),
            fence=lambda live: self._final_fence(run, live),
            check_last=lambda: self._check_last(run),
            stop=stop,
            deadline_ms=run.deadline_at_ms,
            point=point,
            path=aim.path,
            secret=run.secret,
        )

    def _check_last(self, run: Run) -> None:
        """Policy, permit, cancellation and deadline, a moment before the line is crossed."""
        if run.permit is None or run.decision is None:
            raise InternalError("a dispatch without a permit")
        self.authority.check_current(run.decision)
        now = self.clock.monotonic_ms()
        permit.check_permit(
            self.keys.permit,
            run.permit,
            request_hash=run.request_hash,
            decision_id=run.decision.decision_id,
            obligations_hash=permit.obligations_hash(run.decision.obligations),
            session=run.session.session_id,
            now_ms=now,
        )
        run.check_time(now)

    @staticmethod
    def _final_fence(run: Run, live: Any) -> None:
        aim = run.aim
        if aim.seen is not None and aim.index is not None:
            current = run.session.latest.get(aim.seen.surface.surface_id)
            check_fence(aim.seen, aim.index, live, current=current, **needs(run.request))
        check_unblocked(run.session, run.request, aim)

    async def _known(self, run: Run, attempt: LiveAttempt, dispatched: Dispatched, seen: Seen) -> Known:
        """Read back until the effect shows, or the budget ends."""
        interrupted = attempt.stopped_by == "person"
        status: Status = dispatched.status
        if interrupted or attempt.stopped_by == "cancelled" or status in ("no_effect", "unknown"):
            return Known(
                status=status,
                verification="not_asked",
                interrupted=interrupted,
                cancelled=attempt.stopped_by == "cancelled",
                delivered=attempt.delivered,
                secret=run.secret is not None,
                no_effect_code=dispatched.detail or "internal",
            )
        found = await self.watcher.watch(run, seen, dispatched)
        run.after_hash = found.evidence
        run.warnings.extend(found.warnings)
        return Known(
            status=status,
            verification=found.verdict,
            meaning_changed=found.meaning_changed,
            cancelled=run.cancelled.is_set(),
            expired=self.clock.monotonic_ms() >= run.deadline_at_ms and found.verdict != "verified",
            delivered=attempt.delivered,
        )

    # --- ends ---------------------------------------------------------------------------------------------------

    async def _release(self, run: Run, error: Exception) -> Reply:
        """Nothing was done: free the id, durably, and refuse."""
        self.authority.budgets.give_back(run)
        if not isinstance(error, SurehandError):
            log_defect(_log, "the actor failed before entering", error)
            error = InternalError("a defect of Surehand; nothing was done")
        gate = Gate.DEADLINE if error.gate == Gate.DEADLINE else Gate.FINAL_FENCE
        error.gate = str(gate)
        if gate is Gate.FINAL_FENCE:
            run.step(_H.DEADLINE_HELD)
        run.step(_H.RELEASED, gate=gate, code=error.code)
        await self.operations.release(run.principal, run.operation_id, error, run.returned)
        return Reply(operation_id=run.operation_id, status="refused", error=error.to_value())

    async def _refuse(self, run: Run, error: SurehandError) -> Reply:
        """Record a refusal and say which gate it was."""
        self.authority.budgets.give_back(run)
        if error.gate is None:
            error.gate = str(_gate_of(run))
        try:
            await self.operations.refused(run.principal, run.operation_id, error, run.refusal())
        except SurehandError as fault:
            # The refusal stands either way; a store that is read-only says so to the next effect.
            _log.warning("a refusal was not recorded: %s", fault.code)
        return Reply(operation_id=run.operation_id, status="refused", error=error.to_value())

    async def _finish(self, run: Run, ending: Ending, dispatched: Dispatched, backend: str) -> Reply:
        run.end(ending)
        terminal = Terminal(
            kind=ending.kind,
            receipt=run.receipt(backend, dispatched.route, ending.effect, self.clock.wall_ms()),
            code=ending.code,
            message=ending.message,
            retry_safe=ending.retry_safe,
        )
        try:
            proof = await self.operations.finish(run.principal, run.operation_id, terminal, run.reconcile_key)
        except Exception as fault:  # noqa: BLE001 - whatever broke, something was sent and its end is not on record
            _log.error("a terminal was not recorded: %s", getattr(fault, "code", type(fault).__name__))
            self.operations.suspect(run.principal, run.operation_id, run.reconcile_key)
            return self._reply(run, unknown_terminal(run, "The outcome could not be recorded."), None)
        if run.request.reconciles is not None and ending.kind != "outcome_unknown":
            try:
                await self.operations.reconciled(run.principal, run.reconcile_key, run.operation_id)
            except SurehandError as fault:
                # What happened is on record; the next run of the daemon asks for it once more.
                _log.warning("a reconciliation was not recorded: %s", fault.code)
        return self._reply(run, terminal, proof)

    @staticmethod
    def _reply(run: Run, terminal: Terminal, proof: Proof | None, *, replayed: bool = False) -> Reply:
        return Reply(
            operation_id=run.operation_id, status=terminal.kind, terminal=terminal, replayed=replayed, proof=proof
        )


def _check_entered(attempt: LiveAttempt) -> None:
    if not attempt.entered:
        raise InternalError("an actor returned without entering; nothing was done")


def _gate_of(run: Run) -> Gate:
    return GATES_OF.get(run.operation.state, (Gate.SHAPE,))[0]
