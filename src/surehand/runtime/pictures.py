"""Pictures before they leave: secret fields painted over, and cut to a part.

The work is done off the event loop, and only where there is something to paint or cut. What has to be painted is found
out in `shots`; here a place that lies partly in a pixel takes the whole pixel.
"""

from __future__ import annotations

import asyncio
import io
import secrets
from collections.abc import Sequence
from typing import Final

import msgspec

from surehand.errors import InvalidRequest, TargetNotActionable
from surehand.model.scene import Bounds, Capture

_PAINT: Final = (96, 96, 96)


async def paint_out(capture: Capture, data: bytes, places: Sequence[Bounds]) -> bytes:
    """Return the PNG with every place covered.

    Args:
        capture: Where the picture's pixels stand.
        data: PNG bytes.
        places: Desktop pixels of what may not be seen; what of them lies outside the picture is not in it.
    """
    if not places:
        return data
    boxes = [_box(capture, bounds) for bounds in dict.fromkeys(places)]
    return await asyncio.to_thread(_paint, data, boxes)


async def crop(capture: Capture, data: bytes, bounds: Bounds | None) -> tuple[Capture, bytes]:
    """Return the part of a picture that shows an element, with a capture record of its own.

    Raises:
        TargetNotActionable: the element has no place, or lies outside the picture.
    """
    if bounds is None:
        raise TargetNotActionable("the element has no place on the screen", fix="bring it into view first")
    box = _within(capture, _box(capture, bounds))
    if box is None:
        raise TargetNotActionable("the element lies outside the picture", fix="bring it into view first")
    return await _part(capture, data, box)


async def crop_region(capture: Capture, data: bytes, region: Bounds) -> tuple[Capture, bytes]:
    """Return a region of a picture; `region` is x, y, width, height in desktop pixels from the picture's corner.

    What of it lies outside is left out.

    Raises:
        InvalidRequest: all of it does.
    """
    x, y, width, height = region
    box = _within(capture, _box(capture, (capture.origin_x + x, capture.origin_y + y, width, height)))
    if box is None:
        size = f"{capture.width * 1000 // capture.scale_milli} x {capture.height * 1000 // capture.scale_milli}"
        raise InvalidRequest(f"the region lies outside; there are {size} pixels", fix="choose a region inside")
    return await _part(capture, data, box)


def _within(capture: Capture, box: tuple[int, int, int, int]) -> tuple[int, int, int, int] | None:
    left, top = max(0, box[0]), max(0, box[1])
    right, bottom = min(capture.width, box[2]), min(capture.height, box[3])
    return None if right <= left or bottom <= top else (left, top, right, bottom)


async def _part(capture: Capture, data: bytes, box: tuple[int, int, int, int]) -> tuple[Capture, bytes]:
    left, top, right, bottom = box
    cut = await asyncio.to_thread(_cut, data, box)
    part = msgspec.structs.replace(
        capture,
        capture_id=secrets.token_hex(12),
        origin_x=capture.origin_x + left * 1000 // capture.scale_milli,
        origin_y=capture.origin_y + top * 1000 // capture.scale_milli,
        width=right - left,
        height=bottom - top,
    )
    return part, cut


def _box(capture: Capture, bounds: Bounds) -> tuple[int, int, int, int]:
    """Return left, top, right, bottom in pixels of the picture."""
    x, y, width, height = bounds
    scale = capture.scale_milli
    return (
        (x - capture.origin_x) * scale // 1000,
        (y - capture.origin_y) * scale // 1000,
        -((capture.origin_x - x - width) * scale // 1000),
        -((capture.origin_y - y - height) * scale // 1000),
    )


def _paint(data: bytes, boxes: list[tuple[int, int, int, int]]) -> bytes:
    from PIL import Image  # noqa: PLC0415 - most daemons never need it

    with Image.open(io.BytesIO(data)) as opened:
        image = opened.convert("RGB")
    for left, top, right, bottom in boxes:
        image.paste(_PAINT, (max(0, left), max(0, top), max(0, right), max(0, bottom)))
    return _png(image)


def _cut(data: bytes, box: tuple[int, int, int, int]) -> bytes:
    from PIL import Image  # noqa: PLC0415 - most daemons never need it

    with Image.open(io.BytesIO(data)) as opened:
        return _png(opened.crop(box))


def _png(image: object) -> bytes:
    out = io.BytesIO()
    image.save(out, format="PNG", compress_level=1)  # type: ignore[attr-defined]
    return out.getvalue()
