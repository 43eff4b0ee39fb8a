"""As much of the X11 protocol as it takes to wait for a window manager: connect, read one property, wait.

Speaks over the display's own socket with its cookie. It changes nothing on the display.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, Self

_COOKIE_NAME: Final = b"MIT-MAGIC-COOKIE-1"
_LITTLE_ENDIAN: Final = 0x6C
_INTERN_ATOM: Final = 16
_GET_PROPERTY: Final = 20
_CHANGE_WINDOW_ATTRIBUTES: Final = 2
_CW_EVENT_MASK: Final = 0x800
_PROPERTY_CHANGE: Final = 0x400000
_ATOM_WINDOW: Final = 33
_REPLY: Final = 1
_ERROR: Final = 0
#: The longest set-up answer that is read; a display that sends more is none of ours.
_SETUP_BYTES_MAX: Final = 256 * 1024


class DisplayRefused(Exception):
    """The display closed the connection or did not accept the cookie."""


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)


class DisplayProbe:
    """One connection to a local display."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._root = 0

    @classmethod
    @asynccontextmanager
    async def connected(cls, number: int, cookie: bytes) -> AsyncIterator[Self]:
        """Connect for the length of a block.

        Raises:
            DisplayRefused: there is no such display, it does not accept the cookie, or it went away.
        """
        writer = None
        try:
            reader, writer = await asyncio.open_unix_connection(f"/tmp/.X11-unix/X{number}")  # noqa: S108 - X11's own
            probe = cls(reader, writer)
            await probe._set_up(cookie)
            yield probe
        except (OSError, EOFError) as error:
            raise DisplayRefused(str(error)) from error
        finally:
            if writer is not None:
                writer.close()

    async def wait_for_property(self, name: str) -> None:
        """Wait until the root window has a property of type WINDOW and that name."""
        atom = await self._intern(name.encode("ascii"))
        request = struct.pack("<BxHIII", _CHANGE_WINDOW_ATTRIBUTES, 4, self._root, _CW_EVENT_MASK, _PROPERTY_CHANGE)
        self._writer.write(request)
        while not await self._has_property(atom):
            while (await self._packet())[0] in {_REPLY, _ERROR}:
                pass  # any event is a reason to look again

    async def _set_up(self, cookie: bytes) -> None:
        head = struct.pack("<BxHHHHxx", _LITTLE_ENDIAN, 11, 0, len(_COOKIE_NAME), len(cookie))
        self._writer.write(head + _padded(_COOKIE_NAME) + _padded(cookie))
        status, words = struct.unpack("<B5xH", await self._reader.readexactly(8))
        body = await self._reader.readexactly(min(words * 4, _SETUP_BYTES_MAX))
        if status != 1:
            raise DisplayRefused("the display refuses the cookie")
        vendor_bytes, formats = struct.unpack_from("<H3xB", body, 16)
        (self._root,) = struct.unpack_from("<I", body, 32 + vendor_bytes + -vendor_bytes % 4 + 8 * formats)

    async def _packet(self) -> bytes:
        packet = await self._reader.readexactly(32)
        if packet[0] == _REPLY:
            extra = struct.unpack_from("<I", packet, 4)[0] * 4
            packet += await self._reader.readexactly(min(extra, _SETUP_BYTES_MAX))
        return packet

    async def _reply(self) -> bytes:
        while (packet := await self._packet())[0] != _REPLY:
            if packet[0] == _ERROR:
                raise DisplayRefused(f"the display answers with error {packet[1]}")
        return packet

    async def _intern(self, name: bytes) -> int:
        words = 2 + (len(name) + 3) // 4
        self._writer.write(struct.pack("<BBHHxx", _INTERN_ATOM, 0, words, len(name)) + _padded(name))
        return int(struct.unpack_from("<I", await self._reply(), 8)[0])

    async def _has_property(self, atom: int) -> bool:
        self._writer.write(struct.pack("<BBHIIIII", _GET_PROPERTY, 0, 6, self._root, atom, _ATOM_WINDOW, 0, 1))
        return bool(struct.unpack_from("<I", await self._reply(), 16)[0])
