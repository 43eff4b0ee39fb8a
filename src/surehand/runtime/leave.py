"""Standing grants in force: leave for several uses, counted by the journal (spec §3.4).

Guarantees:
- Leave is given only with an approver's signature, by itself or as part of a yes; taking it back needs none.
- It is used at most as often as it says: the claim counts the use, over restarts and races.
- What was revoked or ran out since it was found is not used.
"""

from __future__ import annotations

from typing import Any, Final

from surehand import limits
from surehand.core import standing as rules
from surehand.core.lifecycle import Gate
from surehand.core.policy.inputs import all_categories
from surehand.errors import AuthorityDenied, InvalidRequest
from surehand.model.authority import StandingGrant
from surehand.model.decision import Decision, PolicyInput
from surehand.model.events import NewEvent
from surehand.model.record import convert, to_value
from surehand.ports import Clock, Journal
from surehand.runtime.reviews import Reviews
from surehand.runtime.run import Run

_GRANTED: Final = "standing.granted.v1"


class Leave:
    """Every standing grant of this daemon."""

    def __init__(self, journal: Journal, clock: Clock) -> None:
        self._journal = journal
        self._clock = clock
        self._standing: dict[str, StandingGrant] = {}
        #: What answers in a person's place where no grant does.
        self.reviews = Reviews(journal, clock)

    # --- the gateway's side -----------------------------------------------------------------------------------

    async def use(self, run: Run, document: PolicyInput, decision: Decision) -> bool:
        """Find leave for the run: a grant, naming the use that its claim must count, or the operator's mode.

        Raises:
            ApprovalDenied: the mode says no to everything that would be asked about.
        """
        self.reviews.check_may_ask()
        if decision.obligations.approvals_needed != 1:
            return False
        left = dict(self._standing)
        while (grant := self._first_match(left, run, document)) is not None:
            if await self._journal.uses(rules.use_key(grant)) < grant.uses_max:
                run.uses[rules.use_key(grant)] = grant.uses_max
                run.standing = grant.grant_id
                return True
            # A spent one answers nothing, and must not stand in the way of the next one or of a person.
            del left[grant.grant_id]
        return await self.reviews.answers(run, document, decision)

    def _first_match(self, grants: dict[str, StandingGrant], run: Run, document: PolicyInput) -> StandingGrant | None:
        return rules.first_match(
            grants.values(),
            principal=run.principal,
            app=document.facts.app,
            place=document.facts.place,
            effect=document.action,
            risk=document.risk,
            categories=all_categories(document),
            now_ms=self._clock.wall_ms(),
        )

    def check(self, run: Run) -> None:
        """Refuse leave that was taken back or ran out since the run found it.

        Raises:
            AuthorityDenied.
        """
        self.reviews.check(run)
        if run.standing is None:
            return
        grant = self._standing.get(run.standing)
        needed = 1 if run.decision is None else run.decision.obligations.approvals_needed
        if grant is None or self._clock.wall_ms() >= grant.expires_at_ms or needed > 1:
            raise AuthorityDenied(
                "the standing grant was revoked or has expired, or policy now asks for more than one person",
                gate=Gate.APPROVAL,
                fix="present it again; a person is asked where no other grant covers it",
            )

    # --- the control side -------------------------------------------------------------------------------------

    def given(self, grant: StandingGrant, how: str, approval_id: str | None = None) -> NewEvent:
        """Return the event that gives it; `hold` it once that is durable.

        Raises:
            InvalidRequest: there was one of that id.
        """
        stream = _stream(grant.grant_id)
        if self._journal.known(stream):
            raise InvalidRequest("a standing grant of that id exists", details={"grant_id": grant.grant_id})
        context = {"how": how, **({} if approval_id is None else {"approval_id": approval_id})}
        return NewEvent(
            stream=stream,
            type=_GRANTED,
            actor=grant.issued_by,
            payload=to_value(grant),
            context=context,
            expected_version=0,
        )

    def hold(self, grant: StandingGrant) -> None:
        """Let a grant be used from now on."""
        self._standing[grant.grant_id] = grant

    async def grant(self, grant: StandingGrant, how: str = "operator") -> None:
        """Give a standing grant; an id is given once."""
        await self._journal.append([self.given(grant, how)])
        self.hold(grant)

    async def revoke(self, grant_id: str, person: str) -> None:
        """Take a standing grant back.

        Raises:
            InvalidRequest: there is none of that id.
        """
        if grant_id not in self._standing:
            raise InvalidRequest(
                "no such standing grant", fix="`surehand standing list` shows them", details={"grant_id": grant_id}
            )
        # First of all it must not be used any more.
        grant = self._standing.pop(grant_id)
        try:
            await self._journal.append(
                [NewEvent(stream=_stream(grant_id), type="standing.revoked.v1", actor=person, payload={})]
            )
        except BaseException:
            self._standing[grant_id] = grant
            raise

    async def listed(self) -> list[dict[str, Any]]:
        """Return the grants in force, with what is left of each; expired ones are in force no more."""
        now = self._clock.wall_ms()
        return [
            {**to_value(grant), "uses_left": grant.uses_max - await self._journal.uses(rules.use_key(grant))}
            for grant in list(self._standing.values())
            if now < grant.expires_at_ms
        ]

    async def restore(self) -> None:
        """Read the standing grants of earlier runs that were not revoked; those that ran out are put aside for good."""
        while streams := await self._journal.streams_ending(_GRANTED, limit=limits.APPEND_EVENTS_MAX):
            over = []
            for stream in streams:
                events = await self._journal.stream(stream)
                grant = convert(StandingGrant, events[0].payload)
                if self._clock.wall_ms() >= grant.expires_at_ms:
                    over.append(NewEvent(stream=stream, type="standing.expired.v1", actor="daemon", payload={}))
                else:
                    self.hold(grant)
            if not over:
                return
            await self._journal.append(over)


def _stream(grant_id: str) -> str:
    return f"standing:{grant_id}"
