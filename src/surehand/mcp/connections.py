"""HTTP connections whose time to ask for something is bounded.

Guarantees:
- A connection that is not being served has `MCP_HEAD_MS_MAX` to bring the whole head of a request, however it fills
  that time: silent, with a head in small pieces, or with a body that nobody wants any more. Then it is closed.
- One that reads nothing of its answers for `MCP_WRITE_MS_MAX`, which keeps them from ending, is closed as well.
- At most `MCP_WAITING_MAX` connections wait like that. One more closes the one that has waited longest, so that
  connections without a request never keep out a client that has one: it asks at once.

The server library closes only connections that were served before and stay silent. Peers are not counted: on loopback
they all look the same.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

from surehand import limits


class Connection(H11Protocol):
    """One connection; its timer runs while no request of it is being answered."""

    _closing: asyncio.TimerHandle | None = None
    #: Runs while more is kept for the client than it takes.
    _deaf: asyncio.TimerHandle | None = None

    @property
    def closes_at(self) -> float | None:
        """When its time to ask for something ends, by the loop's clock; None while it is being served."""
        return None if self._closing is None else self._closing.when()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Give it its time, and make room where too many wait."""
        super().connection_made(transport)
        self._wait()
        waiting = [(one.closes_at, one) for one in self.connections if isinstance(one, Connection)]
        ordered = sorted(((at, one) for at, one in waiting if at is not None), key=lambda pair: pair[0])
        for _, one in ordered[: max(0, len(ordered) - limits.MCP_WAITING_MAX)]:
            one.give_up()

    def _wait(self) -> None:
        self._stop_waiting()
        self._closing = self.loop.call_later(limits.MCP_HEAD_MS_MAX / 1000, self.give_up)

    def _stop_waiting(self) -> None:
        if self._closing is not None:
            self._closing.cancel()
            self._closing = None

    def give_up(self) -> None:
        """Close it, whatever it was about to say."""
        self._stop_waiting()
        self.transport.abort()

    def handle_events(self) -> None:
        """Stop the timer once a request is there."""
        super().handle_events()
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_waiting()

    def on_response_complete(self) -> None:
        """Give it its time again; a request that came meanwhile stops the timer at once."""
        self._wait()
        super().on_response_complete()

    def pause_writing(self) -> None:
        """Give it time to read."""
        super().pause_writing()
        self._deaf = self.loop.call_later(limits.MCP_WRITE_MS_MAX / 1000, self.give_up)

    def resume_writing(self) -> None:
        """Stop that time: it read."""
        self._hears()
        super().resume_writing()

    def _hears(self) -> None:
        if self._deaf is not None:
            self._deaf.cancel()
            self._deaf = None

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the timers."""
        self._stop_waiting()
        self._hears()
        super().connection_lost(exc)
