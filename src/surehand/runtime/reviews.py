"""The operator's mode, and the answers that it gives in a person's place (spec §6.4).

Guarantees:
- Every daemon begins with `ask`. Only the control side sets a mode; raising it takes a confirmation and no operation
  under way, and is on record before it holds; lowering it holds at once.
- An answer is on record, with the assessments that it stands on, before anybody is told and before anything is done.
- An evaluator that is missing, late or broken answers nothing: a person is asked.
- A mode that was lowered since, or a review that was not recorded, takes its answers with it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final, Protocol

from surehand import limits
from surehand.core import review as rules
from surehand.core.lifecycle import Gate
from surehand.core.policy.engine import input_value
from surehand.errors import ApprovalDenied, AuthorityDenied, InvalidRequest
from surehand.model.decision import Decision, PolicyInput
from surehand.model.events import NewEvent
from surehand.model.record import to_value
from surehand.ports import Clock, Journal
from surehand.runtime.run import Run

_log: Final = logging.getLogger("surehand.review")
_SET: Final = "mode.set.v1"
_REVIEWED: Final = "risk.reviewed.v1"


class Evaluator(Protocol):
    """Thinks about one request: what policy is asked, with everything from the screen under `facts.observed`.

    Its answer is data: it counts only in the form of `core.review.Assessment`.
    """

    #: What it is, for the record.
    name: str

    async def assess(self, question: dict[str, Any]) -> Any:
        """Return an assessment as JSON values; whatever it raises is no assessment."""


class Reviews:
    """One mode, and what it answered."""

    def __init__(self, journal: Journal, clock: Clock) -> None:
        self._journal = journal
        self._clock = clock
        self.mode: rules.Mode = rules.FIRST
        self.by = ""
        self.since_ms = clock.wall_ms()
        #: Asked beside the rules, where the operator or the host has one; it can only object.
        self.evaluator: Evaluator | None = None
        #: Told after an answer is on record; set by the host.
        self.publish: Callable[[str, dict[str, Any]], None] = lambda _kind, _value: None

    # --- the gateway's side -----------------------------------------------------------------------------------

    def check_may_ask(self) -> None:
        """Refuse every question where the operator's mode says no to all.

        Raises:
            ApprovalDenied.
        """
        if self.mode == "deny":
            raise ApprovalDenied(
                "the operator's mode says no to everything that would be asked about",
                gate=Gate.APPROVAL,
                details={"what": "mode"},
            )

    def may_answer(self, document: PolicyInput | None, decision: Decision) -> bool:
        """Say whether the mode would answer a question as far as the rules say; decides nothing."""
        if document is None or rules.why_not(self.mode, document, decision):
            return False
        return self.mode == "full-access" or rules.assess(document).counts

    async def answers(self, run: Run, document: PolicyInput, decision: Decision) -> bool:
        """Say whether the mode answers a question with a yes; recorded when this returns true."""
        mode = self.mode
        if run.session.role != "agent" or rules.why_not(mode, document, decision):
            return False
        found = [("rules", rules.assess(document))] if mode == "risk-auto" else []
        if mode == "risk-auto" and found[0][1].counts and self.evaluator is not None:
            assessment = await self._asked(self.evaluator, document)
            if assessment is None:
                return False
            found.append((self.evaluator.name, assessment))
        counts = all(assessment.counts for _, assessment in found)
        await self._record(run, document, mode, found, counts=counts)
        # Whatever was set while somebody thought holds.
        if not counts or self.mode != mode:
            return False
        run.reviewed = True
        self.publish("risk.reviewed", {"operation_id": run.operation_id, "principal": run.principal, "mode": mode})
        return True

    async def _asked(self, evaluator: Evaluator, document: PolicyInput) -> rules.Assessment | None:
        try:
            async with asyncio.timeout(limits.REVIEW_MS_MAX / 1000):
                said = await evaluator.assess(input_value(document, document.facts.observed))
        except TimeoutError:
            why = "late"
        except Exception as error:  # noqa: BLE001 - whatever it raises is no assessment
            why = type(error).__name__
        else:
            found = rules.assessment_of(said)
            if found is not None:
                return found
            why = "not an assessment"
        _log.warning("the evaluator %s answers nothing, so a person is asked: %s", evaluator.name, why)
        return None

    async def _record(
        self,
        run: Run,
        document: PolicyInput,
        mode: rules.Mode,
        found: list[tuple[str, rules.Assessment]],
        *,
        counts: bool,
    ) -> None:
        payload = {
            "operation_id": run.operation_id,
            "action_hash": run.action_hash,
            "effect": document.action,
            "app": document.facts.app,
            "mode": mode,
            "counts": counts,
            "assessments": [{"by": name, **to_value(one)} for name, one in found],
        }
        await self._journal.append([NewEvent(stream="reviews", type=_REVIEWED, actor=run.principal, payload=payload)])

    def check(self, run: Run) -> None:
        """Refuse an answer of a mode that does not hold any more.

        Raises:
            AuthorityDenied.
        """
        if run.reviewed and self.mode not in ("risk-auto", "full-access"):
            raise AuthorityDenied(
                "the operator set another mode since",
                gate=Gate.APPROVAL,
                fix="present it again; a person is asked",
                details={"what": "mode"},
            )

    # --- the control side -------------------------------------------------------------------------------------

    async def set(self, mode: rules.Mode, person: str, *, confirm: str, under_way: int) -> None:
        """Set the mode.

        Args:
            mode: Which.
            person: Who sets it.
            confirm: The mode's name once more, where it is raised.
            under_way: Operations in flight.

        Raises:
            InvalidRequest: raised without a confirmation, or while something is under way.
        """
        raised = rules.is_raise(self.mode, mode)
        # Back to asking a person is no more than every daemon begins with.
        opens = raised and mode != rules.FIRST
        if opens and confirm != mode:
            raise InvalidRequest("raising the mode takes a confirmation", fix=f"say {mode} once more: --confirm {mode}")
        if opens and under_way:
            raise InvalidRequest(
                f"{under_way} operations are under way, and the mode is not raised beneath them",
                fix="wait, or stop them: surehand halt",
            )
        event = NewEvent(
            stream="daemon", type=_SET, actor=person, payload={"mode": mode, "before": self.mode, "raised": raised}
        )
        if raised:
            await self._journal.append([event])
            self._hold(mode, person)
        else:
            self._hold(mode, person)
            await self._journal.append([event])

    def _hold(self, mode: rules.Mode, person: str) -> None:
        self.mode, self.by, self.since_ms = mode, person, self._clock.wall_ms()
        self.publish("mode.set", {"mode": mode})

    def told(self) -> dict[str, Any]:
        """Return the mode, who set it and since when, and what is asked beside the rules."""
        asked = {} if self.evaluator is None else {"evaluator": self.evaluator.name}
        return {"mode": self.mode, "by": self.by, "since_ms": self.since_ms, **asked}
