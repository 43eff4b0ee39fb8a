"""A policy that is only tried: it decides what was decided, is not obeyed, and its differences are counted.

Guarantees: it is asked after the decision, of which it cannot change anything; whatever goes wrong with it is its own
trouble; what it would have decided otherwise is recorded, without content.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

from surehand import limits
from surehand.model.decision import Decision, PolicyInput
from surehand.ports import Clock
from surehand.runtime.policy_source import Ruling

_log: Final = logging.getLogger("surehand.policy")
_SHOWN: Final = 50

Kind = tuple[str, str, str, str, str, str, str]


class Shadow:
    """Tries one ruling beside the one in force."""

    def __init__(
        self,
        ruling: Ruling,
        ask: Callable[[Ruling, PolicyInput, str], Awaitable[Decision]],
        clock: Clock,
        note: Callable[[str, dict[str, Any]], None],
    ) -> None:
        self.ruling = ruling
        self._ask = ask
        self._clock = clock
        self._note = note
        self._tasks: set[asyncio.Task[None]] = set()
        self._agreed = 0
        self._left_out = 0
        self._differences: dict[Kind, int] = {}
        self._unsaid: dict[Kind, int] = {}
        self._said_ms = clock.monotonic_ms()

    def offer(self, document: PolicyInput, decision: Decision) -> None:
        """Try what was just decided, after it went its way. A second look after an approval is not tried again."""
        if document.approved:
            return
        if len(self._tasks) >= limits.SHADOW_PENDING_MAX:
            self._left_out += 1
            return
        task = asyncio.get_running_loop().create_task(self._try(document, decision))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _try(self, document: PolicyInput, decision: Decision) -> None:
        try:
            tried = await self._ask(self.ruling, document, decision.decision_id)
        except Exception as error:  # noqa: BLE001 - a policy that is tried must not be able to harm
            _log.warning("the policy that is tried failed: %s", type(error).__name__)
            self._left_out += 1
            return
        if tried.outcome == decision.outcome:
            self._agreed += 1
            return
        kind = (
            document.principal, document.action, document.facts.app,
            decision.outcome, decision.rule, tried.outcome, tried.rule,
        )  # fmt: skip
        if kind not in self._differences and len(self._differences) >= limits.SHADOW_KINDS_MAX:
            self._left_out += 1
            return
        self._differences[kind] = self._differences.get(kind, 0) + 1
        self._unsaid[kind] = self._unsaid.get(kind, 0) + 1
        if self._clock.monotonic_ms() - self._said_ms >= limits.SHADOW_NOTE_MS:
            self._say()

    def _say(self) -> None:
        self._said_ms = self._clock.monotonic_ms()
        unsaid, self._unsaid = self._unsaid, {}
        for kind, count in unsaid.items():
            self._note("policy.shadowed.v1", {**_value(kind), "count": count, "revision": self.ruling.revision})

    def report(self) -> dict[str, Any]:
        """Return how often it agreed, and the commonest differences."""
        found = sorted(self._differences.items(), key=lambda item: -item[1])[:_SHOWN]
        return {
            "engine": self.ruling.choice.engine,
            "revision": self.ruling.revision,
            "closed": self.ruling.policy.closed,
            "agreed": self._agreed,
            "differed": sum(self._differences.values()),
            "left_out": self._left_out,
            "differences": [{**_value(kind), "count": count} for kind, count in found],
        }

    async def close(self) -> None:
        """Let what is under way end, and record what waits."""
        if self._tasks:
            await asyncio.wait(self._tasks)
        self._say()
        if self.ruling.asked is not None:
            await self.ruling.asked.close()


def _value(kind: Kind) -> dict[str, Any]:
    names = ("principal", "action", "app", "decided", "rule", "would_be", "would_be_rule")
    return dict(zip(names, kind, strict=True))
