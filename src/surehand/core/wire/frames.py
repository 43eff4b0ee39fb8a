"""Frames: a 4-byte big-endian length and that many bytes of UTF-8 JSON.

The reader takes bytes in any pieces and gives back whole bodies. It refuses a zero length, and refuses an oversized
length as soon as the four bytes are there, so a peer cannot make us hold more than one limit plus one chunk.
"""

from __future__ import annotations

import struct
from typing import Any, Final

import orjson

from surehand import limits
from surehand.errors import InvalidRequest, TooLarge

_HEADER: Final = struct.Struct(">I")
HEADER_BYTES: Final = _HEADER.size


class FrameReader:
    """Cuts a byte stream into frame bodies; `bytes_max` may be raised between frames, as after the hello."""

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self._buffer = bytearray()
        self._start = 0

    def feed(self, data: bytes) -> None:
        """Take received bytes, in any pieces."""
        self._buffer += data

    def next_body(self) -> bytes | None:
        """Return the next whole body, or None until more bytes arrive.

        Raises:
            InvalidRequest: the length is zero.
            TooLarge: the length is above `bytes_max`; nothing of the body was kept on its behalf.
        """
        have = len(self._buffer) - self._start
        if have < _HEADER.size:
            self._compact()
            return None
        (length,) = _HEADER.unpack_from(self._buffer, self._start)
        if length == 0:
            raise InvalidRequest("a frame of length zero")
        if length > self.bytes_max:
            raise TooLarge(f"a frame of {length} bytes; the limit is {self.bytes_max}")
        if have < _HEADER.size + length:
            self._compact()
            return None
        begin = self._start + _HEADER.size
        self._start = begin + length
        return bytes(memoryview(self._buffer)[begin : self._start])

    @property
    def waiting(self) -> int:
        """Bytes received and not yet handed out."""
        return len(self._buffer) - self._start

    def _compact(self) -> None:
        if self._start:
            del self._buffer[: self._start]
            self._start = 0


def frame(value: Any, *, bytes_max: int = limits.FRAME_BYTES_MAX) -> bytes:
    """Return the frame of a plain JSON value.

    Raises:
        TooLarge: the body would exceed `bytes_max`.
        InvalidRequest: the value is not JSON.
    """
    try:
        body = orjson.dumps(value)
    except TypeError as error:
        raise InvalidRequest(f"not JSON: {error}") from error
    if len(body) > bytes_max:
        raise TooLarge(f"a frame of {len(body)} bytes; the limit is {bytes_max}")
    return _HEADER.pack(len(body)) + body
