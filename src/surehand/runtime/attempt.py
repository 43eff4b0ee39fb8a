"""One permitted dispatch as the actor sees it: it can be entered once, and only past the final fence.

Guarantees:
- `enter` runs the final fence, then permit, cancellation and deadline, in the order of spec §5.1, and only then sets
  `entered`. Whatever it raises leaves `entered` false, so the gateway knows that nothing was done.
- A second `enter` raises: one permit is one dispatch.
- After `enter`, `checkpoint` is the only way back to the host before the end; it stops the rest of an input plan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from surehand.errors import Cancelled, PermitInvalid
from surehand.model.actions import Action
from surehand.model.decision import Permit
from surehand.model.scene import LiveNode, Node, Surface
from surehand.model.secrets import HeldSecret

Live = Mapping[str, LiveNode | None]


class StopInput(Exception):
    """Raised by `checkpoint`: the units not yet delivered must not be sent."""


class LiveAttempt:
    """Implements `ports.Attempt`. Made by the gateway for one dispatch and thrown away afterwards."""

    __slots__ = (
        "_check_last",
        "_fence",
        "_stop",
        "action",
        "deadline_ms",
        "delivered",
        "entered",
        "fence_handles",
        "live",
        "node",
        "path",
        "permit",
        "point",
        "secret",
        "stopped_by",
        "surface",
    )

    def __init__(  # noqa: PLR0913 - one dispatch is this many facts; a record of them would only rename them
        self,
        *,
        permit: Permit,
        action: Action,
        surface: Surface,
        node: Node | None,
        fence_handles: tuple[str, ...],
        fence: Callable[[Live], None],
        check_last: Callable[[], None],
        stop: Callable[[], str | None],
        deadline_ms: int,
        point: tuple[int, int] | None = None,
        path: tuple[tuple[int, int], ...] = (),
        secret: HeldSecret | None = None,
    ) -> None:
        self.permit = permit
        self.action = action
        self.surface = surface
        self.node = node
        self.fence_handles = fence_handles
        self.deadline_ms = deadline_ms
        self.point = point
        self.path = path
        self.secret = secret
        self.entered = False
        self.delivered = 0
        self.stopped_by: str | None = None
        self.live: Live = {}
        self._fence = fence
        self._check_last = check_last
        self._stop = stop

    def enter(self, live: Live) -> None:
        """Cross the line once; see the module's guarantees."""
        if self.entered:
            raise PermitInvalid("this permit has already been used")
        self._check_last()
        self._fence(live)
        if self.secret is not None:
            self.secret.on_entering()
        self.live = live
        self.entered = True

    def checkpoint(self, delivered: int) -> None:
        """Record `delivered` units; raise `StopInput` when a person took over or the caller cancelled."""
        self.delivered = delivered
        reason = self._stop()
        if reason is not None:
            self.stopped_by = reason
            if not self.entered:
                raise Cancelled("stopped before any input was sent")
            raise StopInput(reason)
