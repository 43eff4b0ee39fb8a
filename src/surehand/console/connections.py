"""The page's HTTP connections: whose they are, and how long they may take to ask for something.

Guarantees: who is at the other end is looked up before a byte is read, and is with every request of the connection as
`state["peer"]`; a connection of another user is closed at once, and one of this user that brings no whole request in
its time, the first or a later one, head and body, so that neither keeps a person's browser out.
"""

from __future__ import annotations

import asyncio
import os
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
        theirs, ours = (transport.get_extra_info(name) for name in ("peername", "sockname"))
        # One that hung up before it was looked at has no name any more.
        peer = peer_of(Address(*theirs[:2]), Address(*ours[:2])) if theirs and ours else None
        self.app_state: dict[str, Any] = {**self.app_state, "peer": peer}
        if peer is None or peer.uid != os.getuid():
            transport.abort()
        self._watch()

    def handle_events(self) -> None:
        """Take what came."""
        super().handle_events()
        self._watch()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        self._watch()

    def _watch(self) -> None:
        """Close it in a while if it is the other end's turn; what comes in drops gives it no more time."""
        cycle = self.cycle
        waits = cycle is None or cycle.response_complete or cycle.more_body
        if not waits and self._closing is not None:
            self._closing.cancel()
            self._closing = None
        elif waits and self._closing is None and not self.transport.is_closing():
            self._closing = self.loop.call_later(limits.CONSOLE_HEAD_MS_MAX / 1000, self.transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer."""
        if self._closing is not None:
            self._closing.cancel()
        super().connection_lost(exc)
