"""Open questions to people, their answers, and standing grants (spec §6.4, §3.4).

Guarantees:
- A question is durable before it is shown, and a yes before anything is done with it; a no counts at once.
- An answer counts only through `core/approval`: signed by an allowed approver, for exactly what was shown, in time.
- An approval is used once and a standing grant at most as often as it says: the claim counts the use.
- What was denied, revoked or ran out in the meantime is not used; once it is being used, no answer is taken any more.
- A question nobody answered is recorded as unanswered, as neither yes nor no.
- Whoever proposed is told what becomes of the question, and only of its own; telling answers nothing.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from surehand import canonical, limits
from surehand.core import approval as rules
from surehand.core import standing as standing_rules
from surehand.core.authority import Verify
from surehand.core.history import operation_stream
from surehand.core.lifecycle import Gate, Happening
from surehand.errors import ApprovalDenied, ApprovalUnanswered, AuthorityDenied, InvalidRequest, TooLarge
from surehand.model.approval import ApprovalAnswer, PendingApproval
from surehand.model.authority import StandingGrant
from surehand.model.decision import Decision, PolicyInput
from surehand.model.events import NewEvent
from surehand.model.record import convert, to_value
from surehand.ports import Clock, Journal
from surehand.runtime.notices import Notices
from surehand.runtime.run import Run

Publish = Callable[[str, dict[str, Any]], None]


class ApprovalNeeded(Exception):
    """A person has to answer first; `value` is what the agent is told."""

    def __init__(self, value: dict[str, Any]) -> None:
        super().__init__("approval required")
        self.value = value


@dataclass(slots=True)
class _Question:
    pending: PendingApproval
    #: Bytes of what is shown.
    size: int
    answers: list[ApprovalAnswer] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    #: Callers that wait for the answer.
    waiters: int = 0
    #: A claim is using the yes.
    taken: bool = False
    #: Looks at it when its time is over.
    timer: asyncio.TimerHandle | None = None

    def is_of(self, run: Run) -> bool:
        return (self.pending.principal, self.pending.operation_id) == (run.principal, run.operation_id)


class Approvals:
    """Everything that people are asked in this daemon."""

    def __init__(
        self,
        journal: Journal,
        clock: Clock,
        approvers: tuple[rules.Approver, ...],
        verify: Verify,
        *,
        life_ms: int = limits.APPROVAL_MS_DEFAULT,
        publish: Publish = lambda _kind, _value: None,
    ) -> None:
        self._journal = journal
        self._clock = clock
        self._approvers = approvers
        self._verify = verify
        self._life_ms = life_ms
        self.publish = publish
        self._questions: dict[str, _Question] = {}
        #: Questions whose record is on its way to the disk, and their bytes, by principal.
        self._asking: Counter[str] = Counter()
        self._asking_bytes: Counter[str] = Counter()
        self._standing: dict[str, StandingGrant] = {}
        #: How the newest questions ended, by id.
        self._ended: OrderedDict[str, tuple[str, dict[str, Any]]] = OrderedDict()
        self._sweeping: set[asyncio.Task[None]] = set()
        self.notices = Notices()

    # --- the gateway's side -----------------------------------------------------------------------------------

    async def obtain(self, run: Run, document: PolicyInput, decision: Decision) -> int:
        """Find a yes for the run: a standing grant, an answered question, or a new question.

        Returns how many milliseconds somebody was waited for, and names the uses that the claim must count.

        Raises:
            ApprovalNeeded: a question is open and the caller does not wait, or not any longer.
            ApprovalDenied, ApprovalUnanswered.
        """
        if decision.obligations.approvals_needed == 1 and await self._use_standing(run, document):
            run.step(Happening.APPROVAL_ASKED)
            run.step(Happening.APPROVED)
            return 0
        question = await self._question(run, document, decision)
        run.step(Happening.APPROVAL_ASKED)
        started = self._clock.monotonic_ms()
        state = await self._wait(run, question)
        if state == "waiting":
            raise ApprovalNeeded(_told(question.pending))
        await self._settle(run, question, state)
        run.uses[rules.use_key(question.pending.approval_id)] = 1
        run.approval_id = question.pending.approval_id
        run.step(Happening.APPROVED)
        return self._clock.monotonic_ms() - started

    async def _use_standing(self, run: Run, document: PolicyInput) -> bool:
        left = dict(self._standing)
        while (grant := self._first_match(left, run, document)) is not None:
            if await self._journal.uses(standing_rules.use_key(grant)) < grant.uses_max:
                run.uses[standing_rules.use_key(grant)] = grant.uses_max
                run.standing = grant.grant_id
                return True
            # A spent one answers nothing, and must not stand in the way of the next one or of a person.
            del left[grant.grant_id]
        return False

    def _first_match(self, grants: dict[str, StandingGrant], run: Run, document: PolicyInput) -> StandingGrant | None:
        return standing_rules.first_match(
            grants.values(),
            principal=run.principal,
            app=document.facts.app,
            place=document.facts.place,
            effect=document.action,
            risk=document.risk,
            categories={*document.facts.categories, *document.facts.observed.get("categories", ())},
            now_ms=self._clock.wall_ms(),
        )

    async def _question(self, run: Run, document: PolicyInput, decision: Decision) -> _Question:
        shown = rules.present(document, run.request.action, reason=decision.reason, action_hash=run.action_hash)
        for question in self._questions.values():
            same = question.is_of(run)
            if same and rules.still_covers(question.pending, shown):
                return question
        await self._sweep()
        size = len(canonical.encode_record(shown))
        self._check_room(run.principal, size)
        pending = rules.ask(
            shown,
            approval_id=secrets.token_hex(8),
            operation_id=run.operation_id,
            now_ms=self._clock.wall_ms(),
            life_ms=self._life_ms,
            needed=decision.obligations.approvals_needed,
        )
        question = _Question(pending, size)
        self._asking[run.principal] += 1
        self._asking_bytes[run.principal] += size
        try:
            await self._record_question(pending)
        finally:
            self._asking[run.principal] -= 1
            self._asking_bytes[run.principal] -= size
        self._questions[pending.approval_id] = question
        self._look_at(question, pending.expires_at_ms)
        self.publish("approval.requested", to_value(pending))
        self._tell(question)
        return question

    def _check_room(self, principal: str, size: int) -> None:
        """Refuse a question more, in number or in bytes, than an operator can be shown."""
        sizes = [one.size for one in self._questions.values() if one.pending.principal == principal]
        count, total = len(sizes) + self._asking[principal], sum(sizes) + self._asking_bytes[principal]
        if count >= limits.APPROVALS_PENDING_MAX or total + size > limits.APPROVALS_BYTES_MAX:
            raise TooLarge(
                f"{count} questions of {total} bytes are open; "
                f"the limits are {limits.APPROVALS_PENDING_MAX} and {limits.APPROVALS_BYTES_MAX}",
                gate=Gate.APPROVAL,
                fix="wait until some are answered, or ask for something shorter",
            )

    async def _sweep(self) -> None:
        """Forget what nobody answered in time, so that it holds up nothing and is on record."""
        now = self._clock.wall_ms()
        for question in list(self._questions.values()):
            state = rules.tally(question.answers, question.pending, now_ms=now)
            over = state == "unanswered" or (state == "denied" and now >= question.pending.expires_at_ms)
            if over and not (question.waiters or question.taken):
                self._close(question, state)
                if state == "unanswered":
                    await self._record_unanswered(question)

    def _look_at(self, question: _Question, at_ms: int) -> None:
        """Look at a question again at a time of the wall clock, so that its end is on record and told in time."""
        if question.timer is not None:
            question.timer.cancel()
        delay_s = max(0, at_ms - self._clock.wall_ms()) / 1000
        question.timer = asyncio.get_running_loop().call_later(delay_s, self._time_is_over, question)

    def _time_is_over(self, question: _Question) -> None:
        yes_until = max((one.expires_at_ms for one in question.answers if one.answer == "approve"), default=0)
        if yes_until > self._clock.wall_ms():
            self._look_at(question, yes_until)
            return
        task = asyncio.get_running_loop().create_task(self._sweep())
        self._sweeping.add(task)
        task.add_done_callback(self._sweeping.discard)

    async def close(self) -> None:
        """Let nothing run on."""
        for question in self._questions.values():
            if question.timer is not None:
                question.timer.cancel()
        if self._sweeping:
            await asyncio.wait(self._sweeping)

    async def _wait(self, run: Run, question: _Question) -> str:
        """Wait for the count of answers to decide, as long as the caller waits and the question lives."""
        question.waiters += 1
        try:
            return await self._answered(run, question)
        finally:
            question.waiters -= 1

    async def _answered(self, run: Run, question: _Question) -> str:
        waits_until = self._clock.monotonic_ms() + run.wait_approval_ms
        while True:
            state = rules.tally(question.answers, question.pending, now_ms=self._clock.wall_ms())
            left_ms = min(
                waits_until - self._clock.monotonic_ms(), question.pending.expires_at_ms - self._clock.wall_ms()
            )
            if state != "waiting" or left_ms <= 0 or run.cancelled.is_set():
                return state
            question.changed.clear()
            waiters = [
                asyncio.ensure_future(question.changed.wait()),
                asyncio.ensure_future(run.cancelled.wait()),
            ]
            try:
                await asyncio.wait(waiters, timeout=left_ms / 1000, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for waiter in waiters:
                    waiter.cancel()

    async def _settle(self, run: Run, question: _Question, state: str) -> None:
        pending = question.pending
        if state == "approved":
            # It stays until a claim uses it: an element that moved on after the yes is not asked about again.
            return
        self._close(question, state)
        if state == "unanswered":
            await self._record_unanswered(question)
            raise _unanswered(pending)
        raise _denied(question, run)

    # --- using a yes ------------------------------------------------------------------------------------------

    def take(self, run: Run) -> None:
        """Hold the yes that a claim is about to use; until `used` or `give_back` nobody can answer any more.

        Raises:
            ApprovalDenied, ApprovalUnanswered, AuthorityDenied: it was taken back or ran out since it was found.
        """
        if run.standing is not None:
            grant = self._standing.get(run.standing)
            if grant is None or self._clock.wall_ms() >= grant.expires_at_ms:
                raise AuthorityDenied(
                    "the standing grant was revoked or has expired",
                    gate=Gate.APPROVAL,
                    fix="present it again; a person is asked where no other grant covers it",
                )
        question = None if run.approval_id is None else self._questions.get(run.approval_id)
        if question is None:
            return
        state = rules.tally(question.answers, question.pending, now_ms=self._clock.wall_ms())
        if state == "denied":
            self._close(question, state)
            raise _denied(question, run)
        if state != "approved":
            raise _unanswered(question.pending)
        question.taken = True

    def give_back(self, run: Run) -> None:
        """Let a yes be used or answered again: the claim was not written."""
        if run.approval_id in self._questions:
            self._questions[run.approval_id].taken = False

    def used(self, run: Run) -> None:
        """Forget every question about an operation that a claim has begun: there is nothing left to answer."""
        for question in [one for one in self._questions.values() if one.is_of(run)]:
            self._close(question, "used" if question.pending.approval_id == run.approval_id else "withdrawn")

    def _close(self, question: _Question, state: str) -> None:
        if self._questions.pop(question.pending.approval_id, None) is None:
            return
        if question.timer is not None:
            question.timer.cancel()
        value = _standing_of(question, state)
        self._ended[question.pending.approval_id] = (question.pending.principal, value)
        while len(self._ended) > limits.APPROVALS_ENDED_KEPT_MAX:
            self._ended.popitem(last=False)
        if state != "denied":  # of a no it was told when it was said
            self.notices.tell(question.pending.principal, {"approval": value})

    # --- the proposer's side ----------------------------------------------------------------------------------

    def asked(self, principal: str) -> list[dict[str, Any]]:
        """Return how this principal's questions stand that were not used or ended, oldest first."""
        return [self._stands(one) for one in self._questions.values() if one.pending.principal == principal]

    def status(self, principal: str, approval_id: str | None, operation_id: str | None) -> dict[str, Any] | None:
        """Return how a question of this principal stands, by its id or the newest of an operation.

        None where this run of the daemon knows of none; a question of another principal is not known either.
        """
        known = [value for owner, value in self._ended.values() if owner == principal] + self.asked(principal)
        wanted = {"approval_id": approval_id, "operation_id": operation_id}
        named = {name: text for name, text in wanted.items() if text is not None}
        return next((value for value in reversed(known) if named.items() <= value.items()), None)

    def _stands(self, question: _Question) -> dict[str, Any]:
        state = rules.tally(question.answers, question.pending, now_ms=self._clock.wall_ms())
        return _standing_of(question, "pending" if state == "waiting" else state)

    def _tell(self, question: _Question) -> None:
        self.notices.tell(question.pending.principal, {"approval": self._stands(question)})

    # --- the control side -------------------------------------------------------------------------------------

    def pending(self) -> list[PendingApproval]:
        """Return the open questions that can still be answered, oldest first."""
        now = self._clock.wall_ms()
        return [
            one.pending
            for one in self._questions.values()
            if rules.tally(one.answers, one.pending, now_ms=now) == "waiting"
        ]

    async def answer(self, answer: ApprovalAnswer) -> dict[str, Any]:
        """Take an answer from the control side; it is durable when this returns.

        Raises:
            InvalidRequest: no such open question.
            AuthorityDenied: the answer does not count.
        """
        question = self._questions.get(answer.approval_id)
        if question is None or question.taken:
            raise InvalidRequest(
                "no such open question, or it is being carried out already",
                fix="list them with `surehand approvals`",
                details={"id": answer.approval_id},
            )
        pending = question.pending
        rules.check_answer(answer, pending, self._approvers, self._verify, now_ms=self._clock.wall_ms())
        kind = "operation.approved.v1" if answer.answer == "approve" else "operation.denied.v1"
        if answer.answer == "deny":
            # A no stops a claim that is under way; it need not wait for the disk to do so.
            question.answers.append(answer)
        await self._record_answer(pending, kind, answer.approver, f"ed25519:{answer.key_id}", answer.reason)
        if answer.answer == "approve":
            question.answers.append(answer)
        question.changed.set()
        state = rules.tally(question.answers, pending, now_ms=self._clock.wall_ms())
        if state == "approved":
            self._look_at(question, max(one.expires_at_ms for one in question.answers))
        self._tell(question)
        self.publish("approval.answered", {"approval_id": pending.approval_id, "state": state})
        return {"approval_id": pending.approval_id, "state": state}

    async def _record_question(self, pending: PendingApproval) -> None:
        await self._record(
            pending,
            "operation.approval_requested.v1",
            {
                "action_hash": pending.presentation.action_hash,
                "approval_id": pending.approval_id,
                "presentation_hash": pending.presentation_hash,
                "requested_at_ms": pending.requested_at_ms,
                "expires_at_ms": pending.expires_at_ms,
                "needed": pending.needed,
            },
        )

    async def _record_unanswered(self, question: _Question) -> None:
        if not question.answers:
            await self._record_answer(question.pending, "operation.denied.v1", "", "unanswered", "")

    async def _record_answer(self, pending: PendingApproval, kind: str, approver: str, how: str, reason: str) -> None:
        await self._record(
            pending,
            kind,
            {
                "action_hash": pending.presentation.action_hash,
                "approval_id": pending.approval_id,
                "presentation_hash": pending.presentation_hash,
                "approver": approver,
                "how": how,
                "answered_at_ms": self._clock.wall_ms(),
                "reason": reason[: limits.REASON_CHARS_MAX],
            },
            actor=approver or "daemon",
        )

    async def _record(
        self, pending: PendingApproval, kind: str, payload: dict[str, Any], *, actor: str | None = None
    ) -> None:
        stream = operation_stream(pending.principal, pending.operation_id)
        event = NewEvent(stream=stream, type=kind, actor=actor or pending.principal, payload=payload)
        await self._journal.append([event])

    # --- standing grants --------------------------------------------------------------------------------------

    async def grant(self, grant: StandingGrant) -> None:
        """Give a standing grant; an id is given once."""
        if self._journal.known(f"standing:{grant.grant_id}"):
            raise InvalidRequest("a standing grant of that id exists", details={"grant_id": grant.grant_id})
        await self._standing_event(grant.grant_id, "standing.granted.v1", grant.issued_by, to_value(grant))
        self._standing[grant.grant_id] = grant

    async def revoke(self, grant_id: str, person: str) -> None:
        """Take a standing grant back.

        Raises:
            InvalidRequest: there is none of that id.
        """
        if grant_id not in self._standing:
            raise InvalidRequest("no such standing grant", details={"grant_id": grant_id})
        # First of all it must not be used any more.
        grant = self._standing.pop(grant_id)
        try:
            await self._standing_event(grant_id, "standing.revoked.v1", person, {})
        except BaseException:
            self._standing[grant_id] = grant
            raise

    async def standing(self) -> list[dict[str, Any]]:
        """Return the standing grants in force, with what is left of each."""
        return [
            {**to_value(grant), "uses_left": grant.uses_max - await self._journal.uses(standing_rules.use_key(grant))}
            for grant in self._standing.values()
        ]

    async def _standing_event(self, grant_id: str, kind: str, actor: str, payload: dict[str, Any]) -> None:
        event = NewEvent(stream=f"standing:{grant_id}", type=kind, actor=actor, payload=payload)
        await self._journal.append([event])

    async def restore(self) -> None:
        """Read the standing grants of earlier runs that were not revoked."""
        for stream in await self._journal.streams_ending("standing.granted.v1"):
            events = await self._journal.stream(stream)
            grant = _grant_of(events[0].payload)
            self._standing[grant.grant_id] = grant


def _grant_of(payload: dict[str, Any]) -> StandingGrant:
    return convert(StandingGrant, payload)


def _unanswered(pending: PendingApproval) -> ApprovalUnanswered:
    return ApprovalUnanswered(
        "nobody answered in time, or the yes ran out; this is neither a yes nor a no",
        gate=Gate.APPROVAL,
        fix="present it again when somebody is there",
        details={"approval_id": pending.approval_id},
    )


def _denied(question: _Question, run: Run) -> ApprovalDenied:
    denial = next(answer for answer in question.answers if answer.answer == "deny")
    return ApprovalDenied(
        "a person said no",
        gate=Gate.APPROVAL,
        details={
            "approval_id": question.pending.approval_id,
            "approver": denial.approver,
            "reason": denial.reason,
            "effect": run.effect,
        },
    )


def _standing_of(question: _Question, status: str) -> dict[str, Any]:
    """Return what the proposer may know of how its question stands: nothing it could answer with."""
    pending = question.pending
    yes = {answer.approver for answer in question.answers if answer.answer == "approve"}
    value: dict[str, Any] = {
        "approval_id": pending.approval_id,
        "operation_id": pending.operation_id,
        "status": status,
        "needed": pending.needed,
        "given": len(yes),
        "expires_at_ms": pending.expires_at_ms,
    }
    denial = next((answer for answer in question.answers if answer.answer == "deny"), None)
    if denial is not None and denial.reason:
        value["operator_reason"] = denial.reason
    return value


def _told(pending: PendingApproval) -> dict[str, Any]:
    """Return what the agent may know of a question: no link it could open, nothing it could answer with."""
    return {
        "approval_id": pending.approval_id,
        "expires_at_ms": pending.expires_at_ms,
        "reason": pending.presentation.reason,
        "needed": pending.needed,
    }
