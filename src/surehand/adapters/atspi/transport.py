"""One D-Bus connection: pipelined calls, signals in order, bounded memory, typed failures.

The codecs are dbus-fast's; this module is the only one that touches its private unmarshaller and the reason that the
dependency is pinned. The transport is our own because the stock writer drops the connection when the socket is full.

Promises: a call ends with the reply, the peer's error, silence for its own time-out, or the loss of the connection,
and never otherwise; a signal that the peer sent before a reply is handed over before that reply; a frame that is above
`limits.DBUS_MESSAGE_BYTES_MAX` or does not decode is dropped alone, because others share the bus with its sender; a
peer that stops reading costs `limits.DBUS_UNSENT_BYTES_MAX` of memory; a reply from anybody but the called unique name
is ignored. It never retries.
"""

from __future__ import annotations

import asyncio
import io
import os
import socket
import struct
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, NamedTuple
from urllib.parse import unquote

from dbus_fast import Message, MessageFlag, MessageType, Variant
from dbus_fast._private.unmarshaller import Unmarshaller
from dbus_fast.unpack import unpack_variants

from surehand import limits
from surehand.errors import Unavailable

#: Signature-free values of a reply's variants: `unwrap(Variant("s", "x")) == "x"`.
unwrap: Callable[[Any], Any] = unpack_variants

BUS_NAME: Final = "org.freedesktop.DBus"
BUS_PATH: Final = "/org/freedesktop/DBus"
PEER: Final = "org.freedesktop.DBus.Peer"

_FIXED_HEADER_BYTES: Final = 16
_UCRED: Final = struct.Struct("3i")
_ERRORS_OF_ABSENT_PEERS: Final = frozenset(
    BUS_NAME + ".Error." + name for name in ("ServiceUnknown", "NameHasNoOwner", "NoReply", "Disconnected")
)

__all__ = [
    "BUS_NAME",
    "BUS_PATH",
    "PEER",
    "Call",
    "CallError",
    "Connection",
    "Failure",
    "Reply",
    "Signal",
    "Variant",
    "connect",
    "parse_address",
    "unwrap",
]

FailureKind = Literal["refused", "gone", "timeout", "lost", "unsent"]


class Call(NamedTuple):
    """One method call. `destination` is "" on a peer-to-peer connection."""

    destination: str
    path: str
    interface: str
    member: str
    signature: str = ""
    body: tuple[Any, ...] = ()


class Signal(NamedTuple):
    """One signal as received; `sender` is the unique name that the bus vouches for ("" on peer-to-peer)."""

    sender: str
    path: str
    interface: str
    member: str
    body: list[Any]


class Failure(NamedTuple):
    """Why a call has no reply.

    `refused`: the peer answered with an error. `gone`: the bus says that nobody has that name. `timeout`: it was
    sent, and nothing came back in time. `lost`: it was sent, then the connection ended. `unsent`: provably not a byte
    of it left. `name` is the D-Bus error name, `text` the peer's words (data, not ours).
    """

    kind: FailureKind
    name: str = ""
    text: str = ""


class CallError(Unavailable):
    """A single call failed; `failure` says how. `retry_safe` only where nothing was sent."""

    def __init__(self, call: Call, failure: Failure) -> None:
        super().__init__(
            f"{call.interface}.{call.member} failed: {failure.kind}",
            details={"kind": failure.kind, "dbus_error": failure.name},
            observed={"text": failure.text[: limits.FIELD_BYTES_STORED_MAX]} if failure.text else None,
            retry_safe=failure.kind == "unsent",
        )
        self.failure = failure


Reply = list[Any] | Failure


class _Batch:
    """Calls that were written together and are awaited together."""

    __slots__ = ("ends_at", "future", "heard_at", "missing", "results", "serials", "silence_s", "timer")

    def __init__(self, future: asyncio.Future[list[Reply]], count: int, silence_s: float) -> None:
        self.future = future
        self.missing = count
        self.results: list[Reply | None] = [None] * count
        self.serials: list[int] = []
        self.silence_s = silence_s
        self.heard_at = 0.0
        self.ends_at = 0.0
        self.timer: asyncio.TimerHandle | None = None

    def settle(self, index: int, reply: Reply, now: float) -> None:
        self.results[index] = reply
        self.missing -= 1
        self.heard_at = now
        if not self.missing:
            self.finish(Failure("lost"))

    def finish(self, filler: Failure) -> None:
        """Complete the batch; calls still open get `filler`."""
        if self.timer is not None:
            self.timer.cancel()
        if not self.future.done():
            self.future.set_result([filler if reply is None else reply for reply in self.results])


class Connection(asyncio.Protocol):
    """A D-Bus connection. Make one with `connect`."""

    def __init__(
        self, on_signal: Callable[[Signal], None] | None, on_closed: Callable[[Connection], None] | None
    ) -> None:
        self.unique_name = ""
        self.peer_pid = 0
        self.peer_uid = -1
        self.closed = False
        #: What went over the wire; benchmarks and tests read these.
        self.calls_sent = 0
        self.bytes_received = 0
        self.frames_dropped = 0
        self._skip_bytes = 0
        self._on_signal = on_signal
        self._on_closed = on_closed
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._greeting: asyncio.Future[None] | None = self._loop.create_future()
        self._incoming = bytearray()
        self._outgoing: list[bytes | bytearray] = []
        self._serial = 0
        self._pending: dict[int, tuple[_Batch, int, str]] = {}

    # --- calls ----------------------------------------------------------------------------------------------------

    async def call(
        self,
        destination: str,
        path: str,
        interface: str,
        member: str,
        signature: str = "",
        body: Sequence[Any] = (),
        *,
        timeout_ms: int = limits.APP_CALL_MS_MAX,
    ) -> list[Any]:
        """Make one call and return the reply's body.

        Raises:
            CallError: the peer refused, did not answer in `timeout_ms`, or is gone.
        """
        call = Call(destination, path, interface, member, signature, tuple(body))
        reply = (await self.call_many([call], timeout_ms=timeout_ms))[0]
        if isinstance(reply, Failure):
            raise CallError(call, reply)
        return reply

    async def call_many(
        self,
        calls: Sequence[Call],
        *,
        timeout_ms: int = limits.APP_CALL_MS_MAX,
        total_ms: int = limits.APP_READ_MS_MAX,
    ) -> list[Reply]:
        """Write all calls at once and return a body or a `Failure` for each, in order.

        `timeout_ms` bounds the silence between two replies, `total_ms` the whole; a long batch that an application
        answers steadily is no time-out.
        """
        return await self.start_many(calls, timeout_ms=timeout_ms, total_ms=total_ms)

    def start_many(
        self,
        calls: Sequence[Call],
        *,
        timeout_ms: int = limits.APP_CALL_MS_MAX,
        total_ms: int = limits.APP_READ_MS_MAX,
        held: bool = False,
    ) -> asyncio.Future[list[Reply]]:
        """Write all calls now, before returning, and return the future of their replies.

        For callers who must put calls on several connections before they wait. Not being awaited is harmless.
        `held` lets them go with what is written next, in their place before it: each write wakes the application, and
        where cores are few it runs at once, before we have asked the rest.
        """
        future: asyncio.Future[list[Reply]] = self._loop.create_future()
        if not calls or self._is_full():
            future.set_result([Failure("unsent")] * len(calls))
            return future
        now = self._loop.time()
        silence_s = timeout_ms / 1000
        batch = _Batch(future, len(calls), silence_s)
        batch.heard_at, batch.ends_at = now, now + max(total_ms, timeout_ms) / 1000
        # Encode first: a value that does not fit its signature raises before anything is registered or written.
        encoded: list[bytearray] = []
        for call in calls:
            encoded.append(self._encode(call))
            batch.serials.append(self._serial)
        for index, (serial, call) in enumerate(zip(batch.serials, calls, strict=True)):
            self._pending[serial] = (batch, index, call.destination)
        self.calls_sent += len(calls)
        self._send_soon(encoded)
        if not held:
            self._flush()
        batch.timer = self._loop.call_at(now + silence_s, self._expire, batch)
        return future

    def send(self, call: Call) -> None:
        """Send a call that nobody waits for; dropped when the connection is closed or full."""
        if not self._is_full():
            self._send_soon([self._encode(call, MessageFlag.NO_REPLY_EXPECTED)])

    def close(self) -> None:
        """Close at once; calls still open end as `lost`."""
        if self._transport is not None:
            self._transport.abort()
        self._lose()

    def _is_full(self) -> bool:
        if self.closed or self._transport is None:
            return True
        return self._transport.get_write_buffer_size() > limits.DBUS_UNSENT_BYTES_MAX

    def _encode(self, call: Call, flags: MessageFlag = MessageFlag.NONE) -> bytearray:
        self._serial = self._serial % 0xFFFF_FFFF + 1
        message = Message(
            destination=call.destination or None,
            path=call.path,
            interface=call.interface,
            member=call.member,
            signature=call.signature,
            body=list(call.body),
            flags=flags,
            serial=self._serial,
            validate=False,
        )
        encoded: bytearray = message._marshall(False)  # noqa: SLF001 - the codec has no public entry
        return encoded

    def _send_soon(self, frames: list[bytearray]) -> None:
        if not self._outgoing:
            self._loop.call_soon(self._flush)
        self._outgoing.extend(frames)

    def _flush(self) -> None:
        if self._outgoing and self._transport is not None:
            waiting, self._outgoing = self._outgoing, []
            self._transport.write(b"".join(waiting))

    def _expire(self, batch: _Batch) -> None:
        now = self._loop.time()
        due = min(batch.heard_at + batch.silence_s, batch.ends_at)
        if due > now:
            batch.timer = self._loop.call_at(due, self._expire, batch)
            return
        for serial in batch.serials:
            self._pending.pop(serial, None)
        batch.finish(Failure("timeout"))

    # --- asyncio.Protocol -----------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember who is at the other end, and authenticate as our uid."""
        if not isinstance(transport, asyncio.Transport):
            raise Unavailable("D-Bus needs a stream socket")
        self._transport = transport
        peer = transport.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
        self.peer_pid, self.peer_uid, _ = _UCRED.unpack(peer)
        transport.write(b"\0AUTH EXTERNAL " + str(os.getuid()).encode().hex().encode() + b"\r\n")

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the reason does not matter
        """Fail whatever waits."""
        self._lose()

    def data_received(self, data: bytes) -> None:
        """Cut the stream into frames and hand each over, in order."""
        self._incoming += data
        self.bytes_received += len(data)
        if self._greeting is not None and not self._greet():
            return
        self._take_frames()

    def _greet(self) -> bool:
        line, ended, rest = bytes(self._incoming).partition(b"\r\n")
        greeting = self._greeting
        if not ended and len(line) <= limits.HELLO_BYTES_MAX:
            return False
        if greeting is None or self._transport is None or not ended or not line.startswith(b"OK "):
            self.close()
            return False
        self._incoming = bytearray(rest)
        self._transport.write(b"BEGIN\r\n")
        self._greeting = None
        if not greeting.done():
            greeting.set_result(None)
        return True

    def _take_frames(self) -> None:
        buffer, position, now = self._incoming, 0, self._loop.time()
        while True:
            skipped = min(self._skip_bytes, len(buffer) - position)
            position += skipped
            self._skip_bytes -= skipped
            if len(buffer) - position < _FIXED_HEADER_BYTES:
                break
            size = _frame_bytes(buffer, position)
            if size > limits.DBUS_MESSAGE_BYTES_MAX:
                self.frames_dropped += 1
                self._skip_bytes = size
                continue
            if len(buffer) - position < size:
                break
            message = _decode(bytes(buffer[position : position + size]))
            position += size
            if message is None:
                self.frames_dropped += 1
            else:
                self._dispatch(message, now)
        del buffer[:position]

    def _dispatch(self, message: Message, now: float) -> None:
        kind = message.message_type
        if kind is MessageType.SIGNAL:
            if self._on_signal is not None:
                path, interface, member = message.path or "", message.interface or "", message.member or ""
                try:
                    self._on_signal(Signal(message.sender or "", path, interface, member, message.body))
                except Exception as error:  # noqa: BLE001 - a defect in a reader must not cost the connection
                    self._loop.call_exception_handler({"message": "signal reader failed", "exception": error})
        elif kind is MessageType.METHOD_CALL:
            self._answer(message)
        else:
            self._take_reply(message, now)

    def _take_reply(self, message: Message, now: float) -> None:
        pending = self._pending.get(message.reply_serial)
        if pending is None:
            return  # late: its batch has timed out
        batch, index, destination = pending
        # The bus itself answers for absent peers; nobody else may answer for a unique name.
        if destination.startswith(":") and message.sender not in {destination, BUS_NAME}:
            return
        del self._pending[message.reply_serial]
        if message.message_type is MessageType.ERROR:
            name = message.error_name or ""
            text = message.body[0] if message.body and isinstance(message.body[0], str) else ""
            batch.settle(index, Failure("gone" if name in _ERRORS_OF_ABSENT_PEERS else "refused", name, text), now)
        else:
            batch.settle(index, message.body, now)

    def _answer(self, message: Message) -> None:
        if message.flags & MessageFlag.NO_REPLY_EXPECTED:
            return
        if message.interface == PEER and message.member == "Ping":
            reply = Message.new_method_return(message)
        else:
            reply = Message.new_error(message, f"{BUS_NAME}.Error.UnknownMethod", "no such method")
        self._serial = self._serial % 0xFFFF_FFFF + 1
        reply.serial = self._serial
        if not self._is_full():
            self._send_soon([reply._marshall(False)])  # noqa: SLF001 - the codec has no public entry

    def _lose(self) -> None:
        if self.closed:
            return
        self.closed = True
        if self._greeting is not None and not self._greeting.done():
            self._greeting.set_exception(Unavailable("the D-Bus peer refused our credentials or closed"))
        pending, self._pending = self._pending, {}
        for batch in {id(entry[0]): entry[0] for entry in pending.values()}.values():
            batch.finish(Failure("lost"))
        if self._on_closed is not None:
            self._on_closed(self)

    async def greeted(self) -> None:
        """Wait until the peer accepted our credentials."""
        if self._greeting is not None:
            await self._greeting


def _frame_bytes(buffer: bytearray, position: int) -> int:
    """Return the size of the frame at `position` from its fixed header, whatever it claims."""
    order: Literal["little", "big"] = "little" if buffer[position] == ord("l") else "big"
    body = int.from_bytes(buffer[position + 4 : position + 8], order)
    fields = int.from_bytes(buffer[position + 12 : position + 16], order)
    return _FIXED_HEADER_BYTES + fields + (-fields % 8) + body


def _decode(frame: bytes) -> Message | None:
    """Return the message in a frame, or None when its bytes are not one."""
    try:
        message: Message | None = Unmarshaller(io.BytesIO(frame)).unmarshall()  # type: ignore[arg-type]
    except Exception:  # noqa: BLE001 - the decoder raises many kinds; all mean that the peer sent nonsense
        return None
    return message


def parse_address(address: str) -> list[str]:
    """Return the socket names of a D-Bus address, those in the abstract namespace with a leading NUL."""
    names: list[str] = []
    for part in address.split(";"):
        scheme, _, options = part.partition(":")
        if scheme != "unix":
            continue
        for option in options.split(","):
            key, _, value = option.partition("=")
            if key == "path":
                names.append(unquote(value))
            elif key == "abstract":
                names.append("\0" + unquote(value))
    return names


async def connect(
    address: str,
    *,
    hello: bool,
    on_signal: Callable[[Signal], None] | None = None,
    on_closed: Callable[[Connection], None] | None = None,
    timeout_ms: int = limits.APP_CALL_MS_MAX,
) -> Connection:
    """Connect to a bus (`hello=True`) or to an application's own socket (`hello=False`).

    `on_signal` runs inside the event loop, in the order of arrival; `on_closed` once, when the connection ends.

    Raises:
        Unavailable: nothing listens there, or it did not accept us in time.
    """
    last: Exception | None = None
    for name in parse_address(address):
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                return await _open(name, hello=hello, on_signal=on_signal, on_closed=on_closed)
        except (OSError, TimeoutError, Unavailable) as error:
            last = error
    raise Unavailable("cannot connect to D-Bus", details={"address": address}) from last


async def _open(
    name: str,
    *,
    hello: bool,
    on_signal: Callable[[Signal], None] | None,
    on_closed: Callable[[Connection], None] | None,
) -> Connection:
    loop = asyncio.get_running_loop()
    _, connection = await loop.create_unix_connection(lambda: Connection(on_signal, on_closed), name)
    try:
        await connection.greeted()
        if hello:
            reply = await connection.call(BUS_NAME, BUS_PATH, BUS_NAME, "Hello")
            connection.unique_name = str(reply[0])
    except BaseException:
        connection.close()
        raise
    return connection
