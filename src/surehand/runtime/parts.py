"""Everything a host is made of, wired by `compose` and handed to the methods."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final

from surehand.model.events import NewEvent
from surehand.model.scene import Surface
from surehand.ports import Clock, Journal
from surehand.runtime.approvals import Approvals
from surehand.runtime.authority import Authority
from surehand.runtime.config import Config
from surehand.runtime.desks import Desks
from surehand.runtime.facts import FactFinder
from surehand.runtime.gateway import Gateway
from surehand.runtime.operations import Operations
from surehand.runtime.scenes import Scenes
from surehand.runtime.session import Session

_log: Final = logging.getLogger("surehand.host")


@dataclass(slots=True)
class Parts:
    """One host's parts. `describe_keys` says which keys there are, without them."""

    config: Config
    clock: Clock
    journal: Journal
    operations: Operations
    authority: Authority
    approvals: Approvals
    facts: FactFinder
    scenes: Scenes
    gateway: Gateway
    desks: Desks
    describe_keys: Callable[[], dict[str, Any]]
    describe_journal: Callable[[], dict[str, Any]]
    verify_journal: Callable[[], Awaitable[dict[str, Any]]]
    closers: list[Callable[[], Awaitable[None]]] = field(default_factory=list)
    sessions: dict[str, Session] = field(default_factory=dict)
    background: set[asyncio.Future[Any]] = field(default_factory=set)
    #: Set when an operator asks the daemon to stop.
    stop: Callable[[], None] = lambda: None

    async def record_read(self, session: Session, surface: Surface, effect: str, size: int) -> None:
        """Note who read how much of what; nobody waits for the disk (spec §5.6)."""
        event = NewEvent(
            stream=f"session:{session.session_id}",
            type="read.recorded.v1",
            actor=session.principal,
            payload={"effect": effect, "app": surface.app.key, "place": surface.place, "size": size},
        )
        task = asyncio.ensure_future(self.journal.append([event]))
        self.background.add(task)
        task.add_done_callback(self._read_recorded)

    def _read_recorded(self, task: asyncio.Future[Any]) -> None:
        self.background.discard(task)
        if not task.cancelled() and task.exception() is not None:
            _log.warning("a read was not recorded: %s", task.exception())
