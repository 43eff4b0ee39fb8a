"""Who read what: reads are recorded without anybody waiting for the disk, and repeated ones are counted (spec §5.6).

A record names session, effect, application, place, generation, size, and a keyed hash of what was last given out; no
content. Reads of one kind within `limits.READS_COALESCE_MS` are one record. What waits is written at the end.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import Any, Final

from surehand import limits
from surehand.core.hashing import Digest
from surehand.errors import SurehandError
from surehand.model.events import NewEvent
from surehand.model.scene import Surface
from surehand.ports import Journal
from surehand.runtime.session import Session

_log: Final = logging.getLogger("surehand.reads")


@dataclass(slots=True)
class _Kind:
    """Reads of one kind since the last record."""

    session: Session
    surface: Surface
    effect: str
    count: int = 0
    chars: int = 0
    generation: int = 0
    last: str = ""


class Reads:
    """Records reads in the background."""

    def __init__(self, journal: Journal, digest: Digest) -> None:
        self._journal = journal
        self._digest = digest
        self._waiting: dict[tuple[str, str, str], _Kind] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._writing: set[asyncio.Task[None]] = set()

    def note(self, session: Session, surface: Surface, effect: str, given: str, generation: int = 0) -> None:
        """Note that `given` was given out."""
        key = (session.session_id, effect, surface.surface_id)
        kind = self._waiting.get(key)
        if kind is None:
            kind = self._waiting[key] = _Kind(session, surface, effect)
        kind.count += 1
        kind.chars += len(given)
        kind.generation = generation
        kind.last = given
        if self._timer is None:
            self._arm()

    def _arm(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(limits.READS_COALESCE_MS / 1000, self._due)

    def _due(self) -> None:
        self._timer = None
        if self._writing:
            # A disk that hangs makes nothing queue up: reads are counted on until it has taken the last record.
            self._arm()
            return
        task = asyncio.get_running_loop().create_task(self.flush())
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)

    async def flush(self) -> None:
        """Write what waits."""
        kinds, self._waiting = list(self._waiting.values()), {}
        for start in range(0, len(kinds), limits.APPEND_EVENTS_MAX):
            events = [self._event(kind) for kind in kinds[start : start + limits.APPEND_EVENTS_MAX]]
            try:
                await self._journal.append(events)
            except SurehandError as error:
                # Reads go on while the journal is read-only; effects do not.
                _log.warning("%d reads were not recorded: %s", len(events), error.code)

    def _event(self, kind: _Kind) -> NewEvent:
        payload: dict[str, Any] = {
            "effect": kind.effect,
            "app": kind.surface.app.key,
            "place": kind.surface.place,
            "generation": kind.generation,
            "count": kind.count,
            "chars": kind.chars,
            "hash": self._digest(kind.last),
        }
        return NewEvent(
            stream=f"session:{kind.session.session_id}",
            type="read.recorded.v1",
            actor=kind.session.principal,
            context={"session": kind.session.session_id},
            payload=payload,
        )

    async def close(self) -> None:
        """Write what waits, and let nothing run on."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._writing:
            await asyncio.wait(self._writing)
        await self.flush()
