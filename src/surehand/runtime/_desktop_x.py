"""As much of the X11 protocol as it takes to wait for a window manager: connect, read one property, wait.

Speaks over the display's own socket with its cookie. It changes nothing on the display.
"""

from __future__ import annotations

import socket
import struct
import time
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
    """One connection to a local display; a context manager."""

    def __init__(self, number: int, cookie: bytes, deadline: float) -> None:
        self._deadline = deadline
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.settimeout(self._left())
            self._socket.connect(f"/tmp/.X11-unix/X{number}")  # noqa: S108 - X11's own place
            self._root = self._set_up(cookie)
        except OSError as error:
            self._socket.close()
            raise DisplayRefused(str(error)) from error
        except BaseException:
            self._socket.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def wait_for_property(self, name: str) -> None:
        """Block until the root window has a property of type WINDOW and that name.

        Raises:
            TimeoutError: it had none in time.
            DisplayRefused: the display went away.
        """
        try:
            atom = self._intern(name.encode("ascii"))
            request = struct.pack("<BxHIII", _CHANGE_WINDOW_ATTRIBUTES, 4, self._root, _CW_EVENT_MASK, _PROPERTY_CHANGE)
            self._socket.sendall(request)
            while not self._has_property(atom):
                while self._packet()[0] in {_REPLY, _ERROR}:
                    pass  # any event is a reason to look again
        except TimeoutError:
            raise
        except OSError as error:
            raise DisplayRefused(str(error)) from error

    def _left(self) -> float:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def _read(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            self._socket.settimeout(self._left())
            piece = self._socket.recv(count - len(data))
            if not piece:
                raise DisplayRefused("the display closed the connection")
            data += piece
        return data

    def _set_up(self, cookie: bytes) -> int:
        head = struct.pack("<BxHHHHxx", _LITTLE_ENDIAN, 11, 0, len(_COOKIE_NAME), len(cookie))
        self._socket.sendall(head + _padded(_COOKIE_NAME) + _padded(cookie))
        status, words = struct.unpack("<B5xH", self._read(8))
        body = self._read(min(words * 4, _SETUP_BYTES_MAX))
        if status != 1:
            raise DisplayRefused("the display refuses the cookie")
        vendor_bytes, formats = struct.unpack_from("<H3xB", body, 16)
        (root,) = struct.unpack_from("<I", body, 32 + vendor_bytes + -vendor_bytes % 4 + 8 * formats)
        return int(root)

    def _packet(self) -> bytes:
        packet = self._read(32)
        if packet[0] == _REPLY:
            packet += self._read(min(struct.unpack_from("<I", packet, 4)[0] * 4, _SETUP_BYTES_MAX))
        return packet

    def _reply(self) -> bytes:
        while (packet := self._packet())[0] != _REPLY:
            if packet[0] == _ERROR:
                raise DisplayRefused(f"the display answers with error {packet[1]}")
        return packet

    def _intern(self, name: bytes) -> int:
        words = 2 + (len(name) + 3) // 4
        self._socket.sendall(struct.pack("<BBHHxx", _INTERN_ATOM, 0, words, len(name)) + _padded(name))
        return int(struct.unpack_from("<I", self._reply(), 8)[0])

    def _has_property(self, atom: int) -> bool:
        self._socket.sendall(struct.pack("<BBHIIIII", _GET_PROPERTY, 0, 6, self._root, atom, _ATOM_WINDOW, 0, 1))
        return bool(struct.unpack_from("<I", self._reply(), 16)[0])
