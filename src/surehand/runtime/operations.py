"""Operations as the journal knows them: lookup, claim, release, terminal, and what is still unresolved.

Guarantees:
- A claim is durable before `claim` returns, with its permit and every counted use in the same commit (spec §5.4).
- A terminal is durable before `finish` returns; if it cannot be written the caller must answer `outcome_unknown`.
- Refusals are durable too; the same refusal repeated within a second is counted, not written again.
- What ended as `outcome_unknown` is remembered by meaning until somebody reconciles it (spec §5.7).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from surehand import limits
from surehand.core import history, reconcile
from surehand.core.history import operation_stream
from surehand.errors import SurehandError
from surehand.model.events import Event, NewEvent
from surehand.model.outcome import Proof, Terminal
from surehand.model.record import to_value
from surehand.ports import Clock, Journal

UNRESOLVED: Final = "unresolved"
_COALESCE_MS: Final = 1_000


class Operations:
    """The gateway's view of the journal."""

    def __init__(self, journal: Journal, clock: Clock) -> None:
        self._journal = journal
        self._clock = clock
        self._refused: dict[tuple[str, str, str], tuple[int, int]] = {}
        #: Principal → meaning key → operation id of an unresolved outcome_unknown, and when it ended.
        self._unresolved: dict[str, dict[str, tuple[str, int]]] = {}
        #: Told whenever an operation came to an end that is on record; set by the host.
        self.changed: Callable[[], None] = lambda: None

    async def load(self, principal: str, operation_id: str) -> history.StoredOperation | None:
        """Return what is stored of an operation, or None when its id was never used."""
        stream = operation_stream(principal, operation_id)
        if not self._journal.known(stream):
            return None
        return history.fold(await self.events(stream))

    async def events(self, stream: str) -> list[Event]:
        """Return a whole stream: an id that was refused a thousand times still has its one claim at the end."""
        found: list[Event] = []
        while page := await self._journal.stream(stream, after_version=len(found)):
            found.extend(page)
        return found

    async def claim(
        self, principal: str, operation_id: str, uses: dict[str, int], payload: dict[str, Any], session: str
    ) -> Event:
        """Write the claim; counts every use named in `uses` in the same commit.

        Raises:
            PermitInvalid: a use is exhausted; nothing was written.
        """
        event = NewEvent(
            stream=operation_stream(principal, operation_id),
            type="operation.claimed.v1",
            actor=principal,
            context={"session": session},
            payload=payload,
        )
        return (await self._journal.consume(uses, [event]))[0]

    async def release(
        self, principal: str, operation_id: str, error: SurehandError, returned: dict[str, int] | None = None
    ) -> None:
        """Record that the final fence refused after the claim: no effect, and the id is free again.

        `returned` names what the claim had counted against a budget; it is counted as returned in the same commit.
        """
        event = NewEvent(
            stream=operation_stream(principal, operation_id),
            type="operation.released.v1",
            actor=principal,
            payload=_in_our_words(error),
        )
        await self._journal.consume(returned or {}, [event])

    async def finish(self, principal: str, operation_id: str, terminal: Terminal, meaning_key: str) -> Proof:
        """Write the terminal, and with it the note that an unknown outcome is unresolved."""
        events = [
            NewEvent(
                stream=operation_stream(principal, operation_id),
                type="operation.terminal.v1",
                actor=principal,
                payload=to_value(terminal),
            )
        ]
        unknown = terminal.kind == "outcome_unknown"
        if unknown:
            events.append(self._opened(principal, operation_id, meaning_key))
            # At once: whoever waits for its turn with the same effect must find it.
            self.suspect(principal, operation_id, meaning_key)
        stored = await self._journal.append(events)
        self.changed()
        return Proof(seq=stored[0].seq, record_hash=stored[0].record_hash)

    @staticmethod
    def _opened(principal: str, operation_id: str, meaning_key: str) -> NewEvent:
        return NewEvent(
            stream=UNRESOLVED,
            type="unresolved.opened.v1",
            actor=principal,
            payload={"operation_id": operation_id, "meaning_key": meaning_key},
        )

    async def refused(
        self, principal: str, operation_id: str, error: SurehandError, facts: dict[str, Any] | None = None
    ) -> None:
        """Record a refusal and what it was of; repeats within a second are counted and ride on the next one."""
        key = (principal, operation_id, error.code)
        now = self._clock.monotonic_ms()
        last, repeats = self._refused.get(key, (-_COALESCE_MS, 0))
        if now - last < _COALESCE_MS:
            self._refused[key] = (last, repeats + 1)
            return
        if len(self._refused) >= limits.REFUSALS_COALESCED_MAX:
            self._refused.clear()
        self._refused[key] = (now, 0)
        payload = {**(facts or {}), **_in_our_words(error), "coalesced": repeats}
        await self._append(principal, operation_id, "operation.refused.v1", payload)
        self.changed()

    async def _append(self, principal: str, operation_id: str, kind: str, payload: dict[str, Any]) -> Event:
        event = NewEvent(stream=operation_stream(principal, operation_id), type=kind, actor=principal, payload=payload)
        return (await self._journal.append([event]))[0]

    # --- unresolved outcomes (spec §5.7) ------------------------------------------------------------------------

    def suspect(self, principal: str, operation_id: str, meaning_key: str) -> None:
        """Hold up repeats of an effect whose end is unknown, recorded or not."""
        self._unresolved.setdefault(principal, {})[meaning_key] = (operation_id, self._clock.monotonic_ms())

    def check_reconciled(
        self, principal: str, meaning_key: str, reconciles: str | None, scene_observed_ms: int | None
    ) -> None:
        """Refuse a repeat of an unresolved effect until it names it and a scene observed later.

        Raises:
            ReconcileRequired: naming the operation to look into; also where too many are unresolved.
        """
        own = self._unresolved.get(principal)
        if not own:
            return
        open_one = own.get(meaning_key)
        if open_one is not None:
            reconcile.check(open_one[0], open_one[1], reconciles, scene_observed_ms)
        else:
            reconcile.check_room(len(own), next(iter(own.values()))[0])

    async def reconciled(self, principal: str, meaning_key: str, by: str) -> None:
        """Close the unresolved effect of this meaning, once its reconciling operation was claimed."""
        if self._unresolved.get(principal, {}).pop(meaning_key, None) is None:
            return
        await self._journal.append([self._closed(principal, meaning_key, by)])

    @staticmethod
    def _closed(principal: str, meaning_key: str, by: str) -> NewEvent:
        return NewEvent(
            stream=UNRESOLVED,
            type="unresolved.closed.v1",
            actor=principal,
            payload={"meaning_key": meaning_key, "by": by},
        )

    def unresolved(self) -> list[tuple[str, str]]:
        """Return (principal, operation id) of every unresolved outcome."""
        return [(principal, entry[0]) for principal, own in self._unresolved.items() for entry in own.values()]

    async def resolve(self, principal: str, operation_id: str, verdict: str, person: str) -> None:
        """Record a person's word beside the terminal, which stays as it is, and close the question."""
        event = NewEvent(
            stream=operation_stream(principal, operation_id),
            type="operation.resolved.v1",
            actor=person,
            payload={"verdict": verdict},
        )
        events = [event]
        own = self._unresolved.get(principal, {})
        for meaning_key in [key for key, entry in own.items() if entry[0] == operation_id]:
            events.append(self._closed(principal, meaning_key, person))
            del own[meaning_key]
        await self._journal.append(events)

    async def restore(self) -> None:
        """Read the unresolved outcomes of earlier runs."""
        after = 0
        while events := await self._journal.stream(UNRESOLVED, after_version=after):
            for event in events:
                meaning_key = str(event.payload["meaning_key"])
                if event.type == "unresolved.opened.v1":
                    self.suspect(event.actor, str(event.payload["operation_id"]), meaning_key)
                else:
                    self._unresolved.get(event.actor, {}).pop(meaning_key, None)
            after = events[-1].stream_version


def _in_our_words(error: SurehandError) -> dict[str, Any]:
    """Return what of an error is kept for ever: nothing that came from a screen."""
    named = {name: error.details[name] for name in ("rule", "what") if isinstance(error.details.get(name), str)}
    return {"code": error.code, "gate": error.gate or "", "message": error.message, **named}
