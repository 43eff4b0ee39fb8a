"""An attempt for tests of actors: records when it was entered and with what, and can refuse or interfere.

It is a real `ports.Attempt`, only without gateway, permit store and fence of its own: what `enter` checks is given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from surehand import limits
from surehand.errors import PermitInvalid
from surehand.model.actions import Action
from surehand.model.decision import Permit
from surehand.model.scene import LiveNode, Node, Surface
from surehand.model.secrets import HeldSecret

__all__ = ["RecordingAttempt"]

Live = Mapping[str, LiveNode | None]

_ZEROS = "0" * 64


class RecordingAttempt:
    """One dispatch. `on_enter` runs inside `enter` and may raise; a second `enter` always does."""

    def __init__(
        self,
        action: Action,
        surface: Surface,
        node: Node | None,
        *,
        fence_handles: tuple[str, ...] = (),
        on_enter: Callable[[Live], None] | None = None,
        point: tuple[int, int] | None = None,
        path: tuple[tuple[int, int], ...] = (),
        secret: str | None = None,
    ) -> None:
        self.permit = Permit(
            request_hash=_ZEROS,
            decision_id="test",
            obligations_hash=_ZEROS,
            session="test",
            nonce="test",
            expires_at_ms=0,
            mac=_ZEROS,
        )
        self.action = action
        self.surface = surface
        self.node = node
        self.fence_handles = fence_handles or (() if node is None else (node.handle,))
        self.point = point
        self.path = path
        self.secret = None if secret is None else HeldSecret(bytearray(secret, "utf-8"))
        self.deadline_ms = limits.DEADLINE_MS_DEFAULT
        self.entered = False
        self.live: Live = {}
        self.delivered: list[int] = []
        self._on_enter = on_enter

    def enter(self, live: Live) -> None:
        """Cross the line once."""
        if self.entered:
            raise PermitInvalid("this permit has already been used")
        if self._on_enter is not None:
            self._on_enter(live)
        self.live = live
        self.entered = True

    def checkpoint(self, delivered: int) -> None:
        """Record how many units were delivered."""
        self.delivered.append(delivered)
