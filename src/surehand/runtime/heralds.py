"""Telling people outside that they are asked or asked in: a notification on their desktop, a webhook (spec §6.4).

Guarantees:
- Telling answers nothing and holds nothing up: the question is on record before anybody is told of it.
- Each herald has its own bounded queue, time-out and number of tries; one that fails costs itself only, and says so.
- Of what stands on a screen, and of an agent's words, nothing is told unless the operator asked for it.
- After a restart what is still open is told again: whoever missed it hears of it, with the same id.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Sequence
from typing import Any, Final

from surehand import limits
from surehand.errors import SurehandError
from surehand.model.approval import Notice, PendingApproval
from surehand.model.record import convert
from surehand.ports import Clock, Herald

_log: Final = logging.getLogger("surehand.heralds")


class Heralds:
    """Passes on what becomes of questions. `heard` is told; each herald tells in a task of its own."""

    def __init__(
        self,
        heralds: Sequence[Herald],
        clock: Clock,
        *,
        pauses_s: Sequence[float] = limits.NOTICE_PAUSES_S,
        timeout_s: float = limits.NOTICE_MS_MAX / 1000,
    ) -> None:
        self._clock = clock
        self._pauses_s = tuple(pauses_s)
        self._timeout_s = timeout_s
        self._lines = [_Line(herald) for herald in heralds]
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, pending: Sequence[PendingApproval] = ()) -> None:
        """Begin, with what is open already."""
        self._tasks = [asyncio.get_running_loop().create_task(self._tell(line)) for line in self._lines]
        for one in pending:
            self._pass_on(_requested(one))

    def heard(self, value: dict[str, Any]) -> None:
        """Take one thing that happened; anything but questions and requests to people is passed over."""
        facts = dict(value)
        kind = facts.pop("event", None)
        if kind == "approval.requested":
            self._pass_on(_requested(convert(PendingApproval, facts)))
        elif kind in {"approval.answered", "approval.ended"} and facts.get("state") not in {"waiting", "approved"}:
            self._pass_on(
                Notice(event="approval.ended", approval_id=facts["approval_id"], state=str(facts.get("state")))
            )
        elif kind == "human.requested":
            self._pass_on(_asked_in(facts))
        elif str(kind).startswith("human."):
            # Taken over it needs nobody else any more.
            self._pass_on(Notice(event="human.ended", request_id=facts["request_id"], state=str(facts["status"])))

    def _pass_on(self, notice: Notice) -> None:
        for line in self._lines:
            line.put(notice)

    async def _tell(self, line: _Line) -> None:
        while True:
            await line.waiting.wait()
            while line.queue:
                await self._tell_one(line.herald, line.queue.popleft())
            line.waiting.clear()

    async def _tell_one(self, herald: Herald, notice: Notice) -> None:
        for pause_s in (*self._pauses_s, None):
            if notice.expires_at_ms is not None and self._clock.wall_ms() >= notice.expires_at_ms:
                return
            try:
                async with asyncio.timeout(self._timeout_s):
                    await herald.tell(notice)
            except (SurehandError, TimeoutError) as error:
                # What it says of itself, and nothing of what was to be told.
                said = error.message if isinstance(error, SurehandError) else "it took too long"
                _log.warning("%s was not told of %s: %s", herald.name, notice.about, said)
            else:
                return
            if pause_s is not None:
                await asyncio.sleep(pause_s)

    async def close(self) -> None:
        """Let nothing run on; what was not told yet is not told."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for line in self._lines:
            with contextlib.suppress(SurehandError):
                await line.herald.close()


class _Line:
    """What one herald still has to tell, oldest first; of too much the oldest is let go of."""

    def __init__(self, herald: Herald) -> None:
        self.herald = herald
        self.queue: deque[Notice] = deque()
        self.waiting = asyncio.Event()

    def put(self, notice: Notice) -> None:
        if len(self.queue) >= limits.NOTICES_QUEUED_MAX:
            dropped = self.queue.popleft()
            _log.warning("%s falls behind; it is not told of %s", self.herald.name, dropped.about)
        self.queue.append(notice)
        self.waiting.set()


def _requested(pending: PendingApproval) -> Notice:
    shown = pending.presentation
    return Notice(
        event="approval.requested",
        approval_id=pending.approval_id,
        state="waiting",
        principal=pending.principal,
        action=shown.action,
        app=shown.app,
        risk=shown.risk,
        categories=shown.categories,
        presentation_hash=pending.presentation_hash,
        needed=pending.needed,
        requested_at_ms=pending.requested_at_ms,
        expires_at_ms=pending.expires_at_ms,
        presentation=shown,
    )


def _asked_in(facts: dict[str, Any]) -> Notice:
    """Return the notice of a request to people, as they are shown it."""
    return Notice(
        event="human.requested",
        request_id=facts["request_id"],
        kind=facts["kind"],
        state="waiting",
        principal=facts["principal"],
        requested_at_ms=facts["requested_at_ms"],
        expires_at_ms=facts["expires_at_ms"],
        agent_says=facts["agent_says"],
    )
