"""From the picture that was taken to the one that is delivered: smaller, marked, in the format asked for.

Never enlarges. Shrinks first to the longest edge, then until the bytes fit; a picture that cannot be made to fit is an
error, never a cut one. Needs Pillow, which only calls for pictures pay for.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any, Final, Literal, NamedTuple

from surehand import limits
from surehand.errors import TooLarge
from surehand.tools.drawing import Drawn, draw_marks

Format = Literal["jpeg", "png", "webp"]
MIME: Final[dict[Format, str]] = {"jpeg": "image/jpeg", "png": "image/png", "webp": "image/webp"}
#: Of two sizes that both fit the larger is wanted; each attempt costs an encoding.
_ATTEMPTS_MAX: Final = 12
_CAUTION: Final = 0.95
_STEP_MAX: Final = 0.9
#: Among sizes that fit, one this close to a size that does not, or to the bytes allowed, is good enough.
_NEAR_PX: Final = 8
_ENOUGH: Final = 0.7


class Wish(NamedTuple):
    """How a picture is to be delivered."""

    format: Format
    quality: int
    max_edge: int
    max_bytes: int


class Delivered(NamedTuple):
    """A picture as it is delivered."""

    data: bytes
    width: int
    height: int


def fitted(width: int, height: int, max_edge: int) -> tuple[int, int]:
    """Return the size with the longest edge at most `max_edge`; the proportions stay, a side is never 0."""
    longest = max(width, height)
    if longest <= max_edge:
        return width, height
    return tuple(max(1, (side * max_edge + longest // 2) // longest) for side in (width, height))  # type: ignore[return-value]


def deliver(png: bytes, wish: Wish, marks: Sequence[Drawn] = ()) -> Delivered:
    """Return the picture as wished; marks are in pixels of the picture given.

    Raises:
        TooLarge: at the smallest size it still has more than `max_bytes`.
    """
    from PIL import Image  # noqa: PLC0415 - only pictures need it

    with Image.open(io.BytesIO(png), formats=["PNG"]) as opened:
        if opened.width * opened.height > limits.PICTURE_PIXELS_MAX:
            raise TooLarge(f"the picture has {opened.width} x {opened.height} pixels")
        whole = opened.convert("RGB")
    edge, too_long = min(wish.max_edge, max(whole.size)), 0
    best: Delivered | None = None
    for _ in range(_ATTEMPTS_MAX):
        size = fitted(*whole.size, edge)
        image = whole if size == whole.size else whole.resize(size, Image.Resampling.LANCZOS)
        if marks:
            image = draw_marks(image, [_scaled(mark, whole.size, size) for mark in marks])
        data = _encoded(image, wish)
        if len(data) <= wish.max_bytes:
            best = Delivered(data, *size)
            if too_long - edge < _NEAR_PX or len(data) >= wish.max_bytes * _ENOUGH:
                return best
            edge = (edge + too_long) // 2
        elif edge <= limits.PICTURE_EDGE_MIN:
            break
        else:
            too_long = edge
            edge = _shorter(edge, wish.max_bytes / len(data)) if best is None else (max(best[1:]) + edge) // 2
    if best is None:
        raise TooLarge(
            f"the picture cannot be made smaller than {len(data)} bytes",
            fix="raise max_bytes, use jpeg with a lower quality, or take a region",
        )
    return best


def _shorter(edge: int, ratio: float) -> int:
    """Return the next edge to try: bytes grow with the pixels, roughly."""
    return max(limits.PICTURE_EDGE_MIN, int(edge * min(ratio**0.5 * _CAUTION, _STEP_MAX)))


def _scaled(mark: Drawn, taken: tuple[int, int], size: tuple[int, int]) -> Drawn:
    left, top, right, bottom = mark.box
    box = (
        left * size[0] // taken[0],
        top * size[1] // taken[1],
        -(-right * size[0] // taken[0]),
        -(-bottom * size[1] // taken[1]),
    )
    return mark._replace(box=box)


def _encoded(image: Any, wish: Wish) -> bytes:
    out = io.BytesIO()
    if wish.format == "png":
        image.save(out, format="PNG", compress_level=6)
    elif wish.format == "webp":
        image.save(out, format="WEBP", quality=wish.quality, method=4)
    else:
        # Without thinning out the colours: thin coloured lines are what marks are made of.
        image.save(out, format="JPEG", quality=wish.quality, subsampling=0)
    return out.getvalue()
