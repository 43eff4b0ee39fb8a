"""One connection: hello first, then calls, each in its own task; nothing of it outlives the peer.

Guarantees:
- Before a valid hello the host is not touched, and a silent peer is cut off after `HELLO_MS_MAX`.
- A malformed message ends the connection; a wrong parameter or an unknown method ends only its call.
- At most `CONNECTION_REQUESTS_MAX` calls are in flight; one more is refused, not queued.
- A peer that does not read stops being read from, and is cut off at `UNSENT_BYTES_MAX` or after `WRITE_STALL_MS_MAX`.
- When the peer goes, its calls are cancelled and `close_channel` runs exactly once.
"""

from __future__ import annotations

import asyncio
import logging
import traceback
from typing import Any, Final, Literal, Protocol

from surehand import limits
from surehand.core.wire import messages
from surehand.core.wire.frames import FrameReader, frame
from surehand.core.wire.methods import METHODS
from surehand.daemon.facade import Host
from surehand.daemon.peer import Peer, Trust, check_peer, peer_of
from surehand.errors import Cancelled, InternalError, InvalidRequest, SurehandError, Timeout, TooLarge, Unavailable

_log: Final = logging.getLogger("surehand.daemon")

Role = Literal["agent", "control"]

#: How long a peer has to take what was written before the end.
_LAST_WORDS_S: Final = 1.0


class Owner(Protocol):
    """The server, as a connection sees it."""

    host: Host
    trust: Trust
    version: str
    #: Sockets that are open, refused ones included.
    sockets: int

    def admit(self, connection: Connection) -> None:
        """Count a new connection; raises Unavailable when there are too many or the daemon is ending."""

    @property
    def ending(self) -> bool:
        """True once nothing new is begun."""

    def gone(self, connection: Connection) -> None:
        """Forget a connection whose channel is closed."""

    def stop(self) -> None:
        """Begin the daemon's orderly end."""


class Connection(asyncio.Protocol):
    """The daemon's end of one socket connection."""

    def __init__(self, owner: Owner, role: Role) -> None:
        self.role = role
        self.peer: Peer | None = None
        self.channel: Any = None
        self._owner = owner
        self._reader = FrameReader(limits.HELLO_BYTES_MAX)
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._calls: dict[int, asyncio.Task[None]] = {}
        self._opening: asyncio.Task[None] | None = None
        self._winding_down: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False
        self._paused = False
        self._lagged = 0

    # --- the transport's side ---------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Look at who it is before reading a byte."""
        if not isinstance(transport, asyncio.Transport):
            raise TypeError("a connection needs a stream transport")
        self._transport = transport
        self._owner.sockets += 1
        try:
            self.peer = peer_of(transport.get_extra_info("socket"))
            check_peer(self._owner.trust, self.role, self.peer)
            self._owner.admit(self)
        except SurehandError as error:
            self._fatal(error)
            return
        self._timer = self._loop.call_later(limits.HELLO_MS_MAX / 1000, self._hello_is_late)

    def data_received(self, data: bytes) -> None:
        """Take bytes; act on every whole message in them."""
        if self._closed:
            return
        self._reader.feed(data)
        if self._opening is None or self._opening.done():
            self._take_messages()
        elif self._reader.waiting > limits.HELLO_BYTES_MAX:
            # Calls sent ahead of the welcome wait in the reader, within this bound.
            self._fatal(TooLarge("too much was sent before the welcome"))

    def connection_lost(self, _exc: Exception | None) -> None:
        """Let everything of this peer end."""
        self._owner.sockets -= 1
        self._stop_timer()
        self._end()

    def pause_writing(self) -> None:
        """The peer does not read: take nothing more from it, and give it a bounded time."""
        self._paused = True
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()
        if self._closed:
            return
        self._stop_timer()
        self._timer = self._loop.call_later(limits.WRITE_STALL_MS_MAX / 1000, self._cut_off, "it reads nothing")

    def resume_writing(self) -> None:
        """The peer reads again."""
        self._paused = False
        if self._closed:
            return
        self._stop_timer()
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def eof_received(self) -> bool:
        """A half-closed peer cannot cancel or be trusted to read: treat it as gone."""
        return False

    # --- messages ---------------------------------------------------------------------------------------------------

    def _take_messages(self) -> None:
        try:
            while not self._closed and (body := self._reader.next_body()) is not None:
                if self.channel is None:
                    self._start_hello(messages.read_hello(body))
                    return
                self._take(messages.read_message(body))
        except SurehandError as error:
            self._fatal(error)

    def _start_hello(self, hello: messages.Hello) -> None:
        if hello.role != self.role:
            raise InvalidRequest(
                f"this is the {self.role} socket", fix=f"say role {self.role}, or use the other socket"
            )
        self._stop_timer()
        self._opening = self._loop.create_task(self._open(hello))

    async def _open(self, hello: messages.Hello) -> None:
        peer = self.peer
        if peer is None:
            raise InternalError("a hello without a peer")
        about = {"name": hello.client.name, "version": hello.client.version, "pid": str(peer.pid)}
        try:
            channel = await self._owner.host.open_channel(
                principal=peer.principal, role=self.role, client=about, desktop=hello.desktop
            )
        except SurehandError as error:
            self._fatal(error)
            return
        except Exception as error:  # noqa: BLE001 - a defect of the host ends this connection, not the daemon
            _log_defect("opening a channel", error)
            self._fatal(InternalError("opening the session failed", fix="the daemon's log says why"))
            return
        self.channel = channel
        if self._closed:
            return  # the peer left meanwhile; winding down closes the channel
        self._reader.bytes_max = limits.REQUEST_BYTES_MAX
        self._write(frame({"welcome": self._welcome(hello)}))
        # What came ahead of the welcome is taken once this task counts as done.
        self._loop.call_soon(self._take_messages)

    def _welcome(self, hello: messages.Hello) -> dict[str, Any]:
        channel = self.channel
        return {
            "protocol": messages.PROTOCOL_VERSION,
            "nonce": hello.nonce,
            "daemon": self._owner.version,
            "session": channel.session,
            "principal": channel.principal,
            "role": self.role,
            "trust_level": channel.trust_level,
            "authority_mode": channel.authority_mode,
            "journal": channel.journal,
        }

    def _take(self, message: messages.Call | messages.Cancel) -> None:
        if isinstance(message, messages.Cancel):
            # Unknown ids are ignored: the call may have ended while the cancel was under way.
            if (task := self._calls.get(message.cancel)) is not None:
                task.cancel()
            return
        if message.id in self._calls:
            # Two answers under one id could be mistaken for each other, so neither is given.
            raise InvalidRequest("that id is already in flight", details={"id": message.id})
        if len(self._calls) >= limits.CONNECTION_REQUESTS_MAX:
            most = limits.CONNECTION_REQUESTS_MAX
            self._answer(
                message.id,
                messages.failure(message.id, TooLarge(f"more than {most} calls in flight", fix="wait for some")),
            )
            return
        if message.method not in METHODS[self.role]:
            self._answer(message.id, messages.failure(message.id, _unknown_method(message.method)))
            return
        if self._owner.ending:
            self._answer(
                message.id, messages.failure(message.id, Unavailable("the daemon is ending", fix="connect again"))
            )
            return
        task = self._loop.create_task(self._run(message))
        self._calls[message.id] = task

    async def _run(self, call: messages.Call) -> None:
        def progress(data: dict[str, Any]) -> None:
            self._send_event(call.id, data)

        try:
            value = await self._owner.host.call(self.channel, call.method, call.params, progress=progress)
            answer = messages.result(call.id, value)
        except SurehandError as error:
            answer = messages.failure(call.id, error)
        except asyncio.CancelledError:
            answer = messages.failure(call.id, Cancelled("cancelled by the caller before any effect"))
        except Exception as error:  # noqa: BLE001 - a defect of the host ends this call, not the daemon
            _log_defect(call.method, error)
            answer = messages.failure(
                call.id, InternalError("the daemon failed here", fix="the daemon's log says why", retry_safe=False)
            )
        self._calls.pop(call.id, None)
        self._answer(call.id, answer)
        if call.method == "stop" and "result" in answer:
            # Known on the control socket only; the answer is on its way before the end begins.
            self._owner.stop()

    # --- sending ----------------------------------------------------------------------------------------------------

    def _send_event(self, call_id: int, data: dict[str, Any]) -> None:
        if call_id not in self._calls:
            return  # an event after the end would belong to nothing
        if self._paused:
            # A reader that lags loses events, never answers, and is told how many.
            self._lagged += 1
            return
        if self._lagged:
            self._write(frame(messages.event("lagged", call_id, {"dropped": self._lagged})))
            self._lagged = 0
        self._write(frame(messages.event("progress", call_id, data)))

    def _answer(self, call_id: int, message: dict[str, Any]) -> None:
        try:
            data = frame(message)
        except SurehandError as error:
            # It may be the answer to something that had an effect, so it must not read as safe to repeat.
            told = TooLarge(f"the answer: {error.message}", fix="ask for less, or for `status`", retry_safe=False)
            data = frame(messages.failure(call_id, told))
        self._write(data)

    def _write(self, data: bytes) -> None:
        transport = self._transport
        if self._closed or transport is None or transport.is_closing():
            return
        transport.write(data)
        if transport.get_write_buffer_size() > limits.UNSENT_BYTES_MAX:
            self._cut_off("too much waits for it")

    def _fatal(self, error: SurehandError) -> None:
        """Say why, and end. The peer gets a second to read it: closing at once would break its own sending first."""
        self._write(frame(messages.fatal(error)))
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        if self._owner.sockets > limits.SOCKETS_MAX or not transport.can_write_eof():
            self.close()
            return
        self._stop_timer()
        self._end()
        transport.write_eof()
        transport.resume_reading()
        self._timer = self._loop.call_later(_LAST_WORDS_S, transport.abort)

    def _cut_off(self, why: str) -> None:
        _log.warning("a peer is cut off: %s", why)
        self._closed = True
        if self._transport is not None:
            self._transport.abort()

    def _hello_is_late(self) -> None:
        self._fatal(Timeout(f"no hello within {limits.HELLO_MS_MAX} ms"))

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # --- the end ----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """End the connection from this side, once what was written is taken or a second has passed."""
        self._closed = True
        self._stop_timer()
        if self._transport is not None:
            self._transport.close()
            self._timer = self._loop.call_later(_LAST_WORDS_S, self._transport.abort)

    @property
    def calls(self) -> list[asyncio.Task[None]]:
        """The calls in flight."""
        return list(self._calls.values())

    def _end(self) -> None:
        """Look at nothing more, and let everything of this peer go; it need not have gone itself."""
        self._closed = True
        if self._winding_down is None:
            self._winding_down = self._loop.create_task(self._wind_down())

    async def _wind_down(self) -> None:
        try:
            if self._opening is not None:
                await asyncio.wait([self._opening])
            calls = self.calls
            for task in calls:
                task.cancel()
            if calls:
                await asyncio.wait(calls)
            if self.channel is not None:
                await self._owner.host.close_channel(self.channel)
        except Exception as error:  # noqa: BLE001 - a defect of the host must not keep the slot taken
            _log_defect("closing a channel", error)
        finally:
            self._owner.gone(self)


def _unknown_method(method: str) -> InvalidRequest:
    shown = "".join(c if c.isprintable() else "?" for c in method[:64])
    return InvalidRequest(f"unknown method {shown!r} on this socket", fix="docs/reference/wire.md lists every method")


def _log_defect(what: str, error: Exception) -> None:
    """Log where a defect is and of what type; its message may hold content, so it stays out of the log."""
    where = "".join(traceback.format_tb(error.__traceback__))
    _log.error("%s failed: %s\n%s", what, type(error).__name__, where)
