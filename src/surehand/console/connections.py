"""The page's HTTP connections: whose they are, and how long they may take to ask for something.

Guarantees: who is at the other end is looked up before a byte is read, and is with every request of the connection as
`state["peer"]`; one that brings no whole request in its time is closed, so that silent ones keep nobody out.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from surehand import limits
from surehand.console.peers import Address, peer_of


class Connection(H11Protocol):
    """One connection."""

    _closing: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Look at who it is."""
        super().connection_made(transport)
        theirs, ours = (Address(*transport.get_extra_info(name)[:2]) for name in ("peername", "sockname"))
        self.app_state: dict[str, Any] = {**self.app_state, "peer": peer_of(theirs, ours)}
        self._closing = self.loop.call_later(limits.CONSOLE_HEAD_MS_MAX / 1000, transport.abort)

    def handle_events(self) -> None:
        """Let it live once a request is there; from then on the server library watches it."""
        super().handle_events()
        if self.cycle is not None and self._closing is not None:
            self._closing.cancel()
            self._closing = None

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer."""
        if self._closing is not None:
            self._closing.cancel()
        super().connection_lost(exc)
