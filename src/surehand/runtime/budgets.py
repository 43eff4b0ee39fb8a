"""How much each principal has done since an operator last gave it leave to go on (spec §6.2).

Guarantees:
- An operation is counted before anything awaits, so racing ones do not slip past the limit together.
- What was counted survives a restart: the claim's commit counts it, and a round ends by an operator's word only, never
  by ending the daemon.
- What ended as a refusal is counted no more; a budget is of effects.
- A clock that is set back gives no more minutes.
"""

from __future__ import annotations

from typing import Any, Final

from surehand import limits
from surehand.core import authority as rules
from surehand.core.authority import Ceiling, Spent
from surehand.core.policy.model import Risk
from surehand.errors import BudgetExhausted, InvalidRequest
from surehand.model.events import NewEvent
from surehand.ports import Clock, Journal
from surehand.runtime.run import Run

STREAM: Final = "budgets"
_OPENED: Final = "budget.opened.v1"
_RENEWED: Final = "budget.renewed.v1"
#: Counting only: what is too much is decided here, where what was given back is known.
_ANY: Final = limits.INTEGER_MAX


class Budgets:
    """Every principal's budget. Without a journal they last as long as the process, for tests."""

    def __init__(self, clock: Clock, journal: Journal | None = None) -> None:
        self._clock = clock
        self._since_ms = clock.wall_ms() - clock.monotonic_ms()
        self._journal = journal
        self._spent: dict[str, Spent] = {}
        #: Principals whose round is on record.
        self._opened: set[str] = set()

    def spend(self, run: Run, ceiling: Ceiling, risk: Risk) -> None:
        """Count an operation, and name the uses that its claim must count.

        Raises:
            BudgetExhausted: nothing is counted.
        """
        spent = self._next(run, ceiling, risk)
        if spent is None:
            return
        self._spent[run.principal] = spent
        run.counted = risk
        run.uses.update(dict.fromkeys(rules.budget_keys(run.principal, spent.started_at_ms, risk), _ANY))

    def check(self, run: Run, ceiling: Ceiling | None, risk: Risk) -> None:
        """Refuse what would be refused at the claim, before anybody is asked about it.

        Raises:
            BudgetExhausted: as `spend` would.
        """
        self._next(run, ceiling, risk)

    def _next(self, run: Run, ceiling: Ceiling | None, risk: Risk) -> Spent | None:
        """Return what would be spent with this operation; None where nothing is counted."""
        if ceiling is None or not rules.has_budget(ceiling):
            return None
        now = self._now()
        before = self._spent.get(run.principal) or Spent(started_at_ms=now)
        try:
            return rules.check_budget(ceiling, before, risk=risk, now_ms=now)
        except BudgetExhausted as error:
            error.fix = f"an operator gives leave to go on: surehand budgets renew {run.principal}"
            raise

    async def open(self, run: Run) -> None:
        """Put the round that a counted operation belongs to on record, before its claim."""
        if run.counted is None or run.principal in self._opened or self._journal is None:
            return
        self._opened.add(run.principal)
        try:
            await self._append(_OPENED, run.principal, run.principal)
        except BaseException:
            self._opened.discard(run.principal)
            raise

    def give_back(self, run: Run) -> None:
        """Count an operation no more that ended as a refusal."""
        risk, run.counted = run.counted, None
        spent = self._spent.get(run.principal)
        if risk is None or spent is None:
            return
        if rules.budget_keys(run.principal, spent.started_at_ms, risk)[0] not in run.uses:
            # An operator began a new round meanwhile; what the old one came to matters no more.
            return
        self._spent[run.principal] = rules.given_back(spent, risk=risk)
        keys = rules.budget_keys(run.principal, spent.started_at_ms, risk, returned=True)
        run.returned = dict.fromkeys(keys, _ANY)

    async def renew(self, principal: str, person: str) -> Spent:
        """Begin a new round, as an operator says; return what the old one had come to.

        Raises:
            InvalidRequest: nothing of that principal was counted.
        """
        spent = self._spent.get(principal)
        if spent is None:
            raise InvalidRequest("nothing was counted for that principal", fix="surehand budgets list")
        await self._append(_RENEWED, person, principal)
        # What goes on meanwhile belongs to the old round; it is gone with it.
        self._spent.pop(principal, None)
        self._opened.discard(principal)
        return spent

    async def restore(self) -> None:
        """Read the rounds of earlier runs, and how far they have come."""
        if self._journal is None:
            return
        after, began = 0, dict[str, int]()
        while events := await self._journal.stream(STREAM, after_version=after):
            for event in events:
                principal = str(event.payload["principal"])
                if event.type == _OPENED:
                    began[principal] = int(event.payload["started_at_ms"])
                else:
                    began.pop(principal, None)
            after = events[-1].stream_version
        for principal, started in began.items():
            self._opened.add(principal)
            self._spent[principal] = Spent(
                operations=await self._count(principal, started, 0),
                external=await self._count(principal, started, 1),
                started_at_ms=started,
            )

    def listed(self, ceilings: tuple[Ceiling, ...]) -> list[dict[str, Any]]:
        """Return what each principal has spent of what, and whether it is paused."""
        now, found = self._now(), []
        for principal, spent in sorted(self._spent.items()):
            ceiling = rules.ceiling_of(ceilings, principal)
            if ceiling is None or not rules.has_budget(ceiling):
                continue
            found.append(
                {
                    "principal": principal,
                    "operations": spent.operations,
                    "operations_max": ceiling.operations_max,
                    "external": spent.external,
                    "external_max": ceiling.external_max,
                    "minutes": max(0, now - spent.started_at_ms) // 60_000,
                    "minutes_max": ceiling.minutes_max,
                    "paused": rules.exhausted(ceiling, spent, now) is not None,
                }
            )
        return found

    def _now(self) -> int:
        """Return the time of the wall, and never less of it than passed since this run began."""
        return max(self._clock.wall_ms(), self._since_ms + self._clock.monotonic_ms())

    async def _count(self, principal: str, started: int, which: int) -> int:
        if self._journal is None:
            return 0
        counted = rules.budget_keys(principal, started, "external")[which]
        returned = rules.budget_keys(principal, started, "external", returned=True)[which]
        return await self._journal.uses(counted) - await self._journal.uses(returned)

    async def _append(self, kind: str, actor: str, principal: str) -> None:
        if self._journal is None:
            return
        started = self._spent[principal].started_at_ms
        payload = {"principal": principal, "started_at_ms": started}
        await self._journal.append([NewEvent(stream=STREAM, type=kind, actor=actor, payload=payload)])
