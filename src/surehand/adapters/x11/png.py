"""Turn an X image into PNG bytes: numpy for the pixels, isal for the deflate."""

from __future__ import annotations

import struct
import zlib
from typing import Any, Final

import numpy as np
from isal import isal_zlib
from numpy.typing import NDArray

_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
_EIGHT_BIT: Final = 8
_RGB: Final = 2
_LEVEL: Final = 1  # screens are flat areas: higher levels cost ten times the time and save nothing

Rows = NDArray[np.uint8]


def rows_from_words(data: Any, width: int, height: int, stride: int, *, blue_first: bool) -> Rows:
    """Return PNG rows (a filter byte, then RGB) from rows of 32-bit pixels.

    The fourth byte is dropped: X stores colours already multiplied with it, so what stays is the picture over black.
    No PNG filter: on screens it costs time and bytes.
    """
    words = np.frombuffer(data, np.uint8, count=stride * height).reshape(height, stride)[:, : width * 4]
    rows = np.empty((height, 1 + width * 3), np.uint8)
    rows[:, 0] = 0
    for place, channel in enumerate((2, 1, 0) if blue_first else (1, 2, 3)):
        rows[:, 1 + place :: 3] = words[:, channel::4]
    return rows


def encode(rows: Rows) -> bytes:
    """Return the PNG of such rows."""
    height, row_bytes = rows.shape
    header = struct.pack(">IIBBBBB", (row_bytes - 1) // 3, height, _EIGHT_BIT, _RGB, 0, 0, 0)
    body = isal_zlib.compress(rows, _LEVEL)
    return _SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", body) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(data, zlib.crc32(kind)))
