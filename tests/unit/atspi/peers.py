"""Peers for transport tests: a real private bus, and a scripted D-Bus peer for what no real peer would send."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from dbus_fast import Message, MessageType

GREETING = b"OK 0123456789abcdef0123456789abcdef\r\n"


@contextmanager
def private_bus() -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Run a real dbus-daemon; yields its address and its process."""
    program = shutil.which("dbus-daemon")
    assert program is not None
    with (
        tempfile.TemporaryDirectory() as folder,  # a killed bus leaves its socket
        subprocess.Popen(
            [program, "--session", "--nofork", "--print-address=1", f"--address=unix:dir={folder}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as process,
    ):
        assert process.stdout is not None
        try:
            yield process.stdout.readline().decode().strip(), process
        finally:
            process.kill()


class ScriptedPeer:
    """The server end of one connection; not a real application, only for bytes that none would send."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def greet(self) -> None:
        await self.reader.readuntil(b"\r\n")
        self.writer.write(GREETING)
        assert await self.reader.readuntil(b"\r\n") == b"BEGIN\r\n"

    async def read_call(self) -> int:
        """Read one call and return its serial."""
        head = await self.reader.readexactly(16)
        body, serial = int.from_bytes(head[4:8], "little"), int.from_bytes(head[8:12], "little")
        fields = int.from_bytes(head[12:16], "little")
        await self.reader.readexactly(fields + (-fields % 8) + body)
        return serial

    def send(self, *messages: Message | bytes) -> None:
        for number, message in enumerate(messages):
            if isinstance(message, Message):
                message.serial = message.serial or 1000 + number
                self.writer.write(bytes(message._marshall(False)))
            else:
                self.writer.write(message)


@asynccontextmanager
async def scripted(path: Path, script: Callable[[ScriptedPeer], Awaitable[None]]) -> AsyncIterator[str]:
    """Listen on a socket and run `script` for each connection; yields the address."""
    tasks: set[asyncio.Task[None]] = set()

    async def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await script(ScriptedPeer(reader, writer))
        finally:
            writer.transport.abort()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    server = await asyncio.start_unix_server(accepted, path)
    try:
        yield f"unix:path={path}"
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def reply(serial: int, sender: str | None = None, body: str = "yes") -> Message:
    """Return a method return; `_marshall` leaves the sender out, as clients must, so it is put in by hand."""
    return Message(
        message_type=MessageType.METHOD_RETURN, reply_serial=serial, sender=sender, signature="s", body=[body]
    )


def signed_reply(serial: int, sender: str, body: str) -> bytes:
    """Return a reply that names its sender, as only a bus does."""
    from dbus_fast._private.constants import HeaderField
    from dbus_fast._private.marshaller import Marshaller
    from dbus_fast.signature import Variant

    content = Marshaller("s", [body]).marshall()
    fields = [
        [HeaderField.REPLY_SERIAL.value, Variant("u", serial)],
        [HeaderField.SENDER.value, Variant("s", sender)],
        [HeaderField.SIGNATURE.value, Variant("g", "s")],
    ]
    head = Marshaller("yyyyuua(yv)", [ord("l"), 2, 0, 1, len(content), 77, fields])
    data = head.marshall()
    data += bytes(-len(data) % 8)
    return bytes(data + content)


def ping_signal(number: int) -> Message:
    return Message(
        message_type=MessageType.SIGNAL,
        path="/x",
        interface="org.example.Test",
        member=f"S{number}",
        signature="i",
        body=[number],
    )
