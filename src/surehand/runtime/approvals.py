"""Open questions to people and their answers (spec §6.4).

Guarantees:
- A question is durable before it is shown, and a yes before anything is done with it; a no counts at once.
- An answer counts only through `core/approval`: signed by an allowed approver, for exactly what was shown, in time.
- An approval is used once: the claim counts the use.
- What was denied, revoked, changed or ran out in the meantime is not used; once it is being used, no answer is taken.
- A restart loses neither a question nor a yes: both are found again by the operation's id, as far as the journal, the
  signatures and the approvers of today bear them out.
- A question nobody answered is recorded as unanswered, as neither yes nor no.
- Whoever proposed is told what becomes of the question, and only of its own; telling answers nothing.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec

from surehand import canonical, limits
from surehand.core import approval as rules
from surehand.core import standing as standing_rules
from surehand.core.approvers import Approvers, Proof, how_of, is_recorded, since_asked
from surehand.core.authority import Verify
from surehand.core.history import APPROVAL_REQUESTED, APPROVED, operation_stream
from surehand.core.lifecycle import Gate, Happening
from surehand.errors import ApprovalDenied, ApprovalUnanswered, InvalidRequest, TooLarge
from surehand.model.approval import CLIENT_ASSERTED, ApprovalAnswer, PendingApproval, Presentation, crop_hash
from surehand.model.authority import StandingGrant
from surehand.model.decision import Decision, PolicyInput
from surehand.model.events import Event, NewEvent
from surehand.model.record import to_value
from surehand.ports import Clock, Journal
from surehand.runtime import asked as events_of
from surehand.runtime.credentials import Credentials
from surehand.runtime.crops import Crops, CropsInMemory, TakeCrop, no_crop
from surehand.runtime.ended import Ended
from surehand.runtime.kept import Kept, NothingKept
from surehand.runtime.leave import Leave
from surehand.runtime.notices import Notices
from surehand.runtime.open_questions import Question, is_asserted, standing_of
from surehand.runtime.run import Run

Publish = Callable[[str, dict[str, Any]], None]


class ApprovalNeeded(Exception):
    """A person has to answer first; `value` is what the agent is told."""

    def __init__(self, value: dict[str, Any]) -> None:
        super().__init__("approval required")
        self.value = value


class Approvals:
    """Everything that people are asked in this daemon."""

    def __init__(
        self,
        journal: Journal,
        clock: Clock,
        approvers: Approvers,
        verify: Verify,
        *,
        life_ms: int = limits.APPROVAL_MS_DEFAULT,
        publish: Publish = lambda _kind, _value: None,
        kept: Kept | None = None,
    ) -> None:
        self._journal = journal
        self._clock = clock
        self.approvers = approvers
        self._verify = verify
        self._life_ms = life_ms
        self._kept: Kept = kept or NothingKept()
        self.crops: Crops = CropsInMemory()
        #: Set by the host: takes the picture beside a question.
        self.take_crop: TakeCrop = no_crop
        self.publish = publish
        self.leave = Leave(journal, clock)
        self.credentials = Credentials(journal, clock, approvers, verify)
        self._questions: dict[str, Question] = {}
        #: Questions whose record is on its way to the disk, and their bytes, by principal.
        self._asking: Counter[str] = Counter()
        self._asking_bytes: Counter[str] = Counter()
        self.ended = Ended()
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
        if await self.leave.use(run, document, decision):
            run.step(Happening.APPROVAL_ASKED)
            run.step(Happening.APPROVED)
            return 0
        question = await self._question(run, document, decision)
        run.step(Happening.APPROVAL_ASKED)
        started = self._clock.monotonic_ms()
        state = await self._wait(run, question)
        if state == "waiting":
            run.check_not_halted()
            raise ApprovalNeeded(told(question.pending))
        await self._settle(run, question, state)
        run.uses[rules.use_key(question.pending.approval_id, run.plan_step)] = 1
        run.approval_id = question.pending.approval_id
        # The question said so, and a client's word is no yes to that.
        run.output_agreed = decision.obligations.release == "ask" and not any(map(is_asserted, question.answers))
        run.step(Happening.APPROVED)
        return self._clock.monotonic_ms() - started

    async def _question(self, run: Run, document: PolicyInput, decision: Decision) -> Question:
        shown = rules.present(
            document,
            run.request.action,
            reason=decision.reason,
            action_hash=run.action_hash,
            releases_output=decision.obligations.release == "ask",
        )
        needed = decision.obligations.approvals_needed
        for question in self._questions.values():
            step = rules.step_of(shown, question.pending, run.operation_id)
            if step is not None and step not in question.used and question.pending.needed >= needed:
                run.plan_step = step
                return question
        for question in self._questions.values():
            same = question.is_of(run) and question.pending.needed == needed
            if same and rules.still_covers(question.pending, shown):
                return question
        picture = await self.take_crop(run)
        return await self.put(
            shown, principal=run.principal, operation_id=run.operation_id, needed=needed, picture=picture
        )

    async def plan(self, shown: Presentation, *, operation_id: str, needed: int) -> PendingApproval | None:
        """Return the open question about a plan; None once it has its yes.

        Raises:
            ApprovalDenied, ApprovalUnanswered.
        """
        self.leave.reviews.check_may_ask()
        of = (shown.principal, operation_id, needed)
        question = next(
            (
                one
                for one in self._questions.values()
                if (one.pending.principal, one.pending.operation_id, one.pending.needed) == of
                and rules.still_covers(one.pending, shown)
            ),
            None,
        )
        if question is None:
            question = await self.put(shown, principal=shown.principal, operation_id=operation_id, needed=needed)
        state = rules.tally(question.answers, question.pending, now_ms=self._clock.wall_ms())
        if state == "approved":
            return None
        if state != "waiting":
            await self._end(question, state)
            raise _unanswered(question.pending) if state == "unanswered" else _denied(question, shown.action)
        return question.pending

    async def put(
        self, shown: Presentation, *, principal: str, operation_id: str, needed: int, picture: bytes | None = None
    ) -> Question:
        """Ask; whatever was asked about the same operation before has changed, and is void from now on.

        Raises:
            TooLarge: more than an operator can be shown.
        """
        await self._sweep()
        of = (principal, operation_id)
        old = [one for one in self._questions.values() if (one.pending.principal, one.pending.operation_id) == of]
        now = self._clock.wall_ms()
        approval_id = secrets.token_hex(8)
        if picture is not None and await self.crops.put(approval_id, picture):
            shown = msgspec.structs.replace(shown, crop_hash=crop_hash(picture))
        pending = rules.ask(
            shown,
            approval_id=approval_id,
            operation_id=operation_id,
            now_ms=now,
            life_ms=self._life_ms,
            needed=needed,
            instead_of=old[-1].pending if old else None,
            was_approved=bool(old) and rules.tally(old[-1].answers, old[-1].pending, now_ms=now) == "approved",
        )
        question = Question(pending, len(canonical.encode_record(pending)))
        try:
            self._check_room(principal, question.size)
        except TooLarge:
            self.crops.forget(approval_id)
            raise
        self._asking[principal] += 1
        self._asking_bytes[principal] += question.size
        try:
            # Beside the journal first: what the journal knows of, a restart must be able to show.
            await self._kept.put(pending, question.given)
            void = [events_of.ended(one.pending, "changed", now) for one in old if not one.denied]
            await self._journal.append([*void, events_of.requested(pending)])
        except BaseException:
            self._kept.forget(pending.approval_id)
            self.crops.forget(pending.approval_id)
            raise
        finally:
            self._asking[principal] -= 1
            self._asking_bytes[principal] -= question.size
        for one in old:
            self._close(one, "denied" if one.denied else "changed")
        self._open(question)
        self.publish("approval.requested", to_value(pending))
        self._tell(question)
        return question

    def _open(self, question: Question) -> None:
        self._questions[question.pending.approval_id] = question
        self._look_at(question, max([question.pending.expires_at_ms, *(one.expires_at_ms for one in question.answers)]))

    def _check_room(self, principal: str, size: int) -> None:
        """Refuse a question more, in number or in bytes, than an operator can be shown."""
        sizes = [one.size for one in self._questions.values() if one.pending.principal == principal]
        count, total = len(sizes) + self._asking[principal], sum(sizes) + self._asking_bytes[principal]
        everybody = len(self._questions) + self._asking.total()
        if (
            count >= limits.APPROVALS_PENDING_MAX
            or total + size > limits.APPROVALS_BYTES_MAX
            or everybody >= limits.APPROVALS_OPEN_MAX
        ):
            raise TooLarge(
                f"{count} questions of {total} bytes are open, {everybody} of all agents; the limits are "
                f"{limits.APPROVALS_PENDING_MAX}, {limits.APPROVALS_BYTES_MAX} and {limits.APPROVALS_OPEN_MAX}",
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
                await self._end(question, state)

    def _look_at(self, question: Question, at_ms: int) -> None:
        """Look at a question again at a time of the wall clock, so that its end is on record and told in time."""
        if question.timer is not None:
            question.timer.cancel()
        delay_s = max(0, at_ms - self._clock.wall_ms()) / 1000
        question.timer = asyncio.get_running_loop().call_later(delay_s, self._time_is_over, question)

    def _time_is_over(self, question: Question) -> None:
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

    async def _wait(self, run: Run, question: Question) -> str:
        """Wait for the count of answers to decide, as long as the caller waits and the question lives."""
        question.waiters += 1
        try:
            return await self._answered(run, question)
        finally:
            question.waiters -= 1

    async def _answered(self, run: Run, question: Question) -> str:
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

    async def _settle(self, run: Run, question: Question, state: str) -> None:
        if state == "approved":
            # It stays until a claim uses it: an element that moved on after the yes is not asked about again.
            if any(is_asserted(one) for one in question.answers):
                run.warnings.append(CLIENT_ASSERTED)
            return
        await self._end(question, state)
        raise _unanswered(question.pending) if state == "unanswered" else _denied(question, run.effect)

    # --- using a yes ------------------------------------------------------------------------------------------

    def take(self, run: Run) -> None:
        """Hold the yes that a claim is about to use; until `used` or `give_back` nobody can answer any more.

        Raises:
            ApprovalDenied, ApprovalUnanswered, AuthorityDenied: it was taken back or ran out since it was found.
        """
        self.leave.check(run)
        if run.approval_id is None:
            return
        question = self._questions.get(run.approval_id)
        if question is None:
            # It ended since: its time was over, or another question took its place. A yes ends with its question.
            raise _gone(run.approval_id)
        # A key that was taken away since, and a policy that asks for more people by now, take a yes with them.
        question.answers = self.approvers.standing_by(question.answers)
        state = rules.tally(question.answers, question.pending, now_ms=self._clock.wall_ms())
        if state == "denied":
            self._close(question, state)
            raise _denied(question, run.effect)
        if state != "approved" or not _enough(question.pending, run):
            raise _unanswered(question.pending)
        question.taken = True

    def give_back(self, run: Run) -> None:
        """Let a yes be used or answered again: the claim was not written."""
        if run.approval_id in self._questions:
            self._questions[run.approval_id].taken = False

    def used(self, run: Run) -> None:
        """Forget every question about an operation that a claim has begun: there is nothing left to answer."""
        plan = None if run.plan_step is None else self._questions.get(run.approval_id or "")
        if plan is not None and run.plan_step is not None:
            plan.taken = False
            plan.used.add(run.plan_step)
            if len(plan.used) == len(plan.pending.presentation.steps):
                self._close(plan, "used")
        for question in [one for one in self._questions.values() if one.is_of(run)]:
            self._close(question, "used" if question.pending.approval_id == run.approval_id else "withdrawn")

    async def _end(self, question: Question, state: str) -> None:
        """Close a question; that nobody answered it is on record before it is forgotten."""
        if self._close(question, state) and state == "unanswered" and not question.answers:
            await self._journal.append([events_of.ended(question.pending, state, self._clock.wall_ms())])
            self._kept.forget(question.pending.approval_id)

    def _close(self, question: Question, state: str) -> bool:
        pending = question.pending
        if self._questions.pop(pending.approval_id, None) is None:
            return False
        if question.timer is not None:
            question.timer.cancel()
        self.crops.forget(pending.approval_id)
        value = standing_of(question, state)
        self.ended.note(pending, value, self._clock.wall_ms())
        if state != "unanswered" or question.answers:
            self._kept.forget(pending.approval_id)
        if state != "denied":  # of a no it was told when it was said
            self.notices.tell(pending.principal, {"approval": value})
            self.publish("approval.ended", {"approval_id": pending.approval_id, "state": state})
        return True

    # --- the proposer's side ----------------------------------------------------------------------------------

    def asked(self, principal: str) -> list[dict[str, Any]]:
        """Return how this principal's questions stand that were not used or ended, oldest first."""
        return [self._stands(one) for one in self._questions.values() if one.pending.principal == principal]

    def status(self, principal: str, approval_id: str | None, operation_id: str | None) -> dict[str, Any] | None:
        """Return how a question of this principal stands, by its id or the newest of an operation.

        None where this run of the daemon knows of none; a question of another principal is not known either.
        """
        known = self.ended.of(principal) + self.asked(principal)
        wanted = {"approval_id": approval_id, "operation_id": operation_id}
        named = {name: text for name, text in wanted.items() if text is not None}
        return next((value for value in reversed(known) if named.items() <= value.items()), None)

    def _stands(self, question: Question) -> dict[str, Any]:
        state = rules.tally(question.answers, question.pending, now_ms=self._clock.wall_ms())
        return standing_of(question, "pending" if state == "waiting" else state)

    def _tell(self, question: Question) -> None:
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

    def show(self, approval_id: str) -> dict[str, Any] | None:
        """Return a question and how it stands, with who has said yes; how it ended; None where none is known."""
        question = self._questions.get(approval_id)
        if question is None:
            ended = self.ended.one(approval_id)
            return None if ended is None else {"pending": None, "stands": ended, "approvers": []}
        yes = [one.approver for one in question.answers if one.answer == "approve"]
        return {"pending": to_value(question.pending), "stands": self._stands(question), "approvers": yes}

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
                fix="list them with `surehand approvals list`",
                details={"id": answer.approval_id},
            )
        now = self._clock.wall_ms()
        proof = self.approvers.check(answer, question.pending, self._verify, now_ms=now)
        counted = self.credentials.counted(answer, proof, (*question.given, *question.answers))
        return await self.count(question, answer, proof, counted, now)

    def question(self, approval_id: str) -> Question | None:
        """Return an open question."""
        return self._questions.get(approval_id)

    async def count(
        self, question: Question, answer: ApprovalAnswer, proof: Proof | None, counted: list[NewEvent], now: int
    ) -> dict[str, Any]:
        """Take in an answer that was found to count; `proof` is None for what a client only says (spec §6.4)."""
        pending = question.pending
        events = [events_of.answered(pending, answer, proof, now), *counted]
        grant = answer.standing
        if grant is not None:
            standing_rules.check_fits(grant, answer, pending, now_ms=self._clock.wall_ms())
            events.append(self.leave.given(grant, how_of(answer), pending.approval_id))
        if answer.answer == "deny":
            # A no stops a claim that is under way; it need not wait for the disk to do so.
            question.answers.append(answer)
        else:
            question.given.append(answer)
            await self._kept.put(pending, question.given)
        await self._journal.append(events)
        if answer.answer == "approve":
            question.answers.append(answer)
        if grant is not None:
            self.leave.hold(grant)
        question.changed.set()
        state = rules.tally(question.answers, pending, now_ms=self._clock.wall_ms())
        if state == "approved":
            self._look_at(question, max(one.expires_at_ms for one in question.answers))
        self._tell(question)
        self.publish("approval.answered", {"approval_id": pending.approval_id, "state": state})
        return {"approval_id": pending.approval_id, "state": state}

    async def grant(self, grant: StandingGrant, key_id: str, signature: str) -> None:
        """Give a standing grant that an approver signed.

        Raises:
            AuthorityDenied: no allowed approver did.
        """
        self.approvers.check_standing(grant, key_id, signature, self._verify)
        await self.leave.grant(grant, f"ed25519:{key_id}")

    # --- after a restart --------------------------------------------------------------------------------------

    async def restore(self) -> None:
        """Read what earlier runs left: standing grants, credentials, questions and the answers given to them."""
        await self.leave.restore()
        await self.credentials.restore()
        for one in await self._kept.all():
            question = await self._of_before(one.pending, one.answers)
            if question is None:
                self._kept.forget(one.pending.approval_id)
                continue
            self._open(question)
            state = rules.tally(question.answers, question.pending, now_ms=self._clock.wall_ms())
            if state == "unanswered":
                await self._end(question, state)
        self.crops.keep(self._questions)
        await self._note_lost()

    async def _of_before(self, pending: PendingApproval, answers: tuple[ApprovalAnswer, ...]) -> Question | None:
        """Return the question as the journal bears it out; None where it knows of none, or that it ended."""
        events = await self._events(operation_stream(pending.principal, pending.operation_id))
        since = since_asked(events, pending)
        if since is None:
            return None
        question = Question(pending, len(canonical.encode_record(pending)))
        for answer in answers:
            if is_recorded(answer, since) and self.approvers.counts(answer, pending, self._verify):
                question.answers.append(answer)
        question.given = list(question.answers)
        return question

    async def _note_lost(self) -> None:
        """Record as lost what the journal knows to be open and nothing can show any more."""
        for kind in (APPROVAL_REQUESTED, APPROVED):
            for stream in await self._journal.streams_ending(kind, limit=limits.APPROVALS_OPEN_MAX):
                last = (await self._events(stream))[-1].payload
                if last.get("approval_id") not in self._questions:
                    await self._journal.append([events_of.lost(stream, last, self._clock.wall_ms())])

    async def _events(self, stream: str) -> list[Event]:
        found: list[Event] = []
        while page := await self._journal.stream(stream, after_version=len(found)):
            found.extend(page)
        return found


def _enough(pending: PendingApproval, run: Run) -> bool:
    return run.decision is None or run.decision.obligations.approvals_needed <= pending.needed


def _unanswered(pending: PendingApproval) -> ApprovalUnanswered:
    return _gone(pending.approval_id)


def _gone(approval_id: str) -> ApprovalUnanswered:
    return ApprovalUnanswered(
        "nobody answered in time, or the yes ran out; this is neither a yes nor a no",
        gate=Gate.APPROVAL,
        fix="present it again when somebody is there",
        details={"approval_id": approval_id},
    )


def _denied(question: Question, effect: str) -> ApprovalDenied:
    denial = next(answer for answer in question.answers if answer.answer == "deny")
    return ApprovalDenied(
        "the client says that its person said no" if is_asserted(denial) else "a person said no",
        gate=Gate.APPROVAL,
        details={
            "approval_id": question.pending.approval_id,
            "approver": denial.approver,
            "operator_reason": denial.reason,
            "effect": effect,
        },
    )


def told(pending: PendingApproval) -> dict[str, Any]:
    """Return what the agent may know of a question: no link it could open, nothing it could answer with."""
    return {
        "approval_id": pending.approval_id,
        "expires_at_ms": pending.expires_at_ms,
        "reason": pending.presentation.reason,
        "needed": pending.needed,
    }
