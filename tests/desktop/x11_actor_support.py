"""An actor on a bare display and attempts that record what it did with them."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from surehand.adapters.x11.actor import X11Actor
from surehand.adapters.x11.interruptions import X11Interruptions
from surehand.adapters.x11.screen import X11Screen
from surehand.model.decision import Permit
from surehand.model.secrets import HeldSecret
from tests.desktop.x11_support import Clock, Display, surface


class Stop(Exception):
    """What the host's attempt raises when the rest must not be sent."""


class RecordingAttempt:
    """An attempt that is entered once and can be told to refuse or to stop."""

    def __init__(self, action: Any, entry: dict[str, Any], **fields: Any) -> None:
        self.permit = Permit(
            request_hash="0" * 64, decision_id="d", obligations_hash="0" * 64, session="s", nonce="n", expires_at_ms=0,
            mac="0" * 64,
        )  # fmt: skip
        self.action = action
        self.surface = fields.pop("surface", None) or surface(entry)
        self.node = fields.pop("node", None)
        self.fence_handles: tuple[str, ...] = fields.pop("fence_handles", ())
        self.point = fields.pop("point", None)
        self.path = fields.pop("path", ())
        self.secret: HeldSecret | None = None
        self.deadline_ms = 30_000
        self.refuse: Exception | None = fields.pop("refuse", None)
        self.before: Callable[[int], None] = fields.pop("before", lambda _: None)
        self.entered: list[Mapping[str, Any]] = []
        self.checkpoints: list[int] = []
        assert not fields

    def enter(self, live: Mapping[str, Any]) -> None:
        if self.refuse is not None:
            raise self.refuse
        assert not self.entered, "entered twice"
        self.entered.append(live)

    def checkpoint(self, delivered: int) -> None:
        self.checkpoints.append(delivered)
        self.before(delivered)


class Stage:
    """A screen, a listener for the person, and an actor on one display."""

    def __init__(self, screen: X11Screen, actor: X11Actor, interruptions: X11Interruptions, notes: list[bytes]) -> None:
        self.screen = screen
        self.actor = actor
        self.interruptions = interruptions
        self.notes = notes


@contextlib.asynccontextmanager
async def stage(shown: Display, **options: Any) -> AsyncIterator[Stage]:
    screen = X11Screen(shown.name, None, Clock())
    interruptions = X11Interruptions(shown.name, None)
    notes: list[bytes] = []
    actor = X11Actor(screen, options.pop("note", notes.append), interruptions=interruptions, **options)
    await screen.open()
    await interruptions.open()
    await actor.open()
    try:
        yield Stage(screen, actor, interruptions, notes)
    finally:
        await actor.close()
        await interruptions.close()
        await screen.close()
