"""What the daemon needs of the host behind it: one class, five methods. `runtime/host.py` is the real one.

The channel decides who speaks: principal and role are arguments of `open_channel`, set from the socket's peer
credentials, and no request carries either.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Protocol

Progress = Callable[[dict[str, Any]], None]


class Channel(Protocol):
    """One connection's context in the host."""

    @property
    def session(self) -> str:
        """The session's opaque id."""

    @property
    def principal(self) -> str:
        """Who proposes."""

    @property
    def role(self) -> Literal["agent", "control"]:
        """Which socket it came through."""

    @property
    def trust_level(self) -> Literal["A", "B"]:
        """Spec §1."""

    @property
    def authority_mode(self) -> Literal["host", "daemon"]:
        """Spec §3.4."""

    @property
    def journal(self) -> str:
        """Which store its operations are in."""


class Host(Protocol):
    """Owner of adapters, keys, journal and policy."""

    async def open_channel(
        self, *, principal: str, role: Literal["agent", "control"], client: dict[str, str], desktop: str | None
    ) -> Any:
        """Return a fresh `Channel`; raises SurehandError when the wished desktop is refused."""

    async def call(
        self, channel: Any, method: str, params: dict[str, Any], *, progress: Progress | None = None
    ) -> dict[str, Any]:
        """Run one method; raises SurehandError.

        Cancelling the task that runs this is the caller's cancel. A host lets `CancelledError` out only when nothing
        was dispatched; afterwards it ends with the operation's own outcome.
        """

    async def close_channel(self, channel: Any) -> None:
        """Cancel what is not yet dispatched and release everything held."""

    async def close(self) -> None:
        """Write what waits and let go of everything."""
