"""Talking to the daemon through links that may break: what is asked again, what never is, and what is then known.

Guarantees (spec §11, §5.3):
- A read whose connection broke is asked once more on a new one.
- An effect is never sent twice on our own account. After a break its id is looked up; the same id is presented again
  only where the daemon says that nothing was ever dispatched under it, and no other id is ever made up for it.
- When not even the lookup succeeds the answer is `OutcomeUnknown`, naming the id.
"""

from __future__ import annotations

import time
from typing import Any, Final

from surehand import limits
from surehand.client.wire import ConnectionLost, Link, OnEvent, Way
from surehand.core.wire.messages import Welcome
from surehand.core.wire.methods import CONTROL_READS, READS
from surehand.errors import OutcomeUnknown, SurehandError, Unavailable
from surehand.model.outcome import UNKNOWN_STATEMENT

_REPEATABLE: Final = READS | CONTROL_READS
_LOOK_AGAIN_S: Final = 0.05
_ENDED: Final = ("succeeded", "failed", "interrupted", "withheld", "outcome_unknown")


class Session:
    """A daemon session that comes back after a break, with fresh labels."""

    def __init__(self, way: Way) -> None:
        self.way = way
        self._link: Link | None = None
        self._closed = False

    async def open(self) -> Welcome:
        """Connect now instead of at the first call."""
        return (await self._live()).welcome

    async def close(self) -> None:
        """End the session; the daemon releases everything held for it."""
        self._closed = True
        link, self._link = self._link, None
        if link is not None:
            await link.close()

    async def renew(self, way: Way) -> None:
        """End the session; the next call begins another one in this way, with fresh labels."""
        self.way = way
        link, self._link = self._link, None
        if link is not None:
            await link.close()

    async def _live(self) -> Link:
        async with self.way.turn():  # two callers that find the link gone must not make two
            if self._closed:
                raise Unavailable("this hand is closed", fix="connect again")
            if self._link is None or not self._link.alive:
                self._link = await self.way.link()
            return self._link

    async def ask(
        self, method: str, params: dict[str, Any], *, wait_ms: int = 0, on_event: OnEvent | None = None
    ) -> Any:
        """Call a method that is not an effect; a read is asked once more when the connection breaks.

        Args:
            method: By its name on this socket.
            params: JSON values.
            wait_ms: How long the daemon may rightly take.
            on_event: Called with everything the daemon says before the answer.

        Raises:
            SurehandError: what the daemon answered. Of a read it is `retry_safe` whatever broke on the way: it has no
                effect (spec §12).
        """
        try:
            return await self._asked(method, params, (wait_ms + limits.CALL_MARGIN_MS) / 1000, on_event)
        except SurehandError as error:
            error.retry_safe = error.retry_safe or method in _REPEATABLE
            raise

    async def _asked(self, method: str, params: dict[str, Any], timeout_s: float, on_event: OnEvent | None) -> Any:
        link = await self._live()
        try:
            return await link.call(method, params, timeout_s=timeout_s, on_event=on_event)
        except ConnectionLost as lost:
            if method not in _REPEATABLE and lost.sent:
                raise
        link = await self._live()
        return await link.call(method, params, timeout_s=timeout_s, on_event=on_event)

    async def act(self, method: str, params: dict[str, Any], operation_id: str, *, wait_ms: int) -> Any:
        """Send an effect (`act` or `batch`) and return its reply value.

        Raises:
            OutcomeUnknown: the connection broke after sending, and the daemon cannot be asked what became of it.
            SurehandError: what the daemon answered.
        """
        timeout_s = (wait_ms + limits.CALL_MARGIN_MS) / 1000
        link = await self._live()
        try:
            return await link.call(method, params, timeout_s=timeout_s)
        except ConnectionLost as lost:
            if not lost.sent:
                return await (await self._live()).call(method, params, timeout_s=timeout_s)
            return await self._look_up(link.welcome.journal, method, params, operation_id, timeout_s)

    async def _look_up(
        self, journal: str, method: str, params: dict[str, Any], operation_id: str, timeout_s: float
    ) -> Any:
        """Find out what became of an effect whose answer was lost, from the journal that it was claimed in."""
        try:
            if method == "batch":
                return await self._look_up_steps(journal, params["batch"], timeout_s)
            if (reply := await self._ended(journal, operation_id, timeout_s)) is not None:
                return reply
            # Nothing was dispatched under this id, and what was not dispatched was cancelled with its connection.
            return await (await self._knowing(journal)).call(method, params, timeout_s=timeout_s)
        except Unavailable as error:
            raise lost_track(operation_id) from error

    async def _knowing(self, journal: str) -> Link:
        """Return a link to a daemon over this journal.

        Raises:
            Unavailable: another one answers now: of what was sent before it knows nothing, which proves nothing.
        """
        link = await self._live()
        if link.welcome.journal != journal:
            raise Unavailable("a daemon with another journal answers now", fix="start the one that was there before")
        return link

    async def _look_up_steps(self, journal: str, batch: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        """Return the steps that ran; a step that did not run stopped the batch, and no later one ran either."""
        replies: list[dict[str, Any]] = []
        for index in range(len(batch["steps"])):
            step_id = f"{batch['operation_id']}:{index}"
            if (reply := await self._ended(journal, step_id, timeout_s)) is None:
                return {"replies": replies, "stopped_by": step_id}
            replies.append(reply)
        return {"replies": replies}

    async def _ended(self, journal: str, operation_id: str, timeout_s: float) -> dict[str, Any] | None:
        """Return the end of an operation, waiting for one in flight; None where nothing was dispatched.

        Raises:
            Unavailable: it is still in flight when the time is over, or the daemon cannot be asked.
        """
        end = time.monotonic() + timeout_s
        while True:
            link = await self._knowing(journal)
            status = await link.call("status", {"operation_id": operation_id}, timeout_s=timeout_s)
            if not status.get("in_flight"):
                return reply_of_status(status)
            if time.monotonic() >= end:
                raise Unavailable("the operation is still in flight", fix="ask for its status later")
            await self.way.pause(_LOOK_AGAIN_S)


def reply_of_status(status: dict[str, Any]) -> dict[str, Any] | None:
    """Return the reply that a `status` answer implies, or None where the operation has no end yet."""
    terminal = status.get("terminal")
    if not isinstance(terminal, dict) or terminal.get("kind") not in _ENDED:
        return None
    reply = {
        "operation_id": status["operation_id"],
        "status": terminal["kind"],
        "terminal": terminal,
        "replayed": True,
    }
    if status.get("proof") is not None:
        reply["proof"] = status["proof"]
    return reply


def lost_track(operation_id: str) -> SurehandError:
    """Return the error for an effect that was sent and whose outcome cannot be asked for."""
    return OutcomeUnknown(
        f"the connection broke after the request was sent. {UNKNOWN_STATEMENT}",
        fix=f"ask for the status of {operation_id} once the daemon answers again",
        details={"operation_id": operation_id},
    )
