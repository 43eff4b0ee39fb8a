"""Marks drawn on a picture: a box around each element and a tag with its label, legible on any background.

Boxes have a light rim around a strong line, tags light letters on the same strong colour, so that both stand out on
dark and on light. Tags are placed where they hide least of what the picture shows, on the element they name rather than
beside it, and not over other tags where that is possible. The same picture and marks give the same result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

Box = tuple[int, int, int, int]

#: Strong enough for light letters (contrast above 4.5), and told apart by people who see few colours.
_COLOURS: Final = (
    (200, 30, 45),
    (0, 95, 200),
    (0, 120, 60),
    (135, 45, 170),
    (175, 80, 0),
    (0, 115, 125),
    (195, 25, 120),
    (75, 75, 80),
)
_LIGHT: Final = (255, 255, 255)
_FONT_PX: Final = 12
_PAD_X: Final = 3
_PAD_Y: Final = 2
#: What one pixel under a tag costs: of another tag, of another element, of the element itself, and where something is
#: written or drawn.
_TAG_COST: Final = 12.0
_OTHER_COST: Final = 0.7
_OWN_COST: Final = 0.1
_BUSY_COST: Final = 6.0
#: What it costs that a tag does not lie on its element, per pixel of the tag: it could be taken for a neighbour's.
_BESIDE_COST: Final = 0.5
#: Two pixels that differ by more show an edge.
_EDGE_LEVELS: Final = 40

#: How many pixels of a part of the picture something is written or drawn on.
Busy = Callable[[Box], int]


class Drawn(NamedTuple):
    """A mark in the picture's pixels: left, top, right, bottom. `cut` leaves those sides open that lie outside."""

    label: str
    box: Box
    cut: bool = False


def place_tags(
    marks: Sequence[Drawn],
    sizes: Sequence[tuple[int, int]],
    picture: tuple[int, int],
    busy: Busy = lambda _: 0,
) -> list[Box]:
    """Return where each mark's tag goes, all of it inside the picture.

    Args:
        marks: In the order in which they are drawn.
        sizes: Width and height of each tag.
        picture: Width and height of the picture.
        busy: How much a part of the picture shows.
    """
    placed: list[Box] = []
    for number, (mark, size) in enumerate(zip(marks, sizes, strict=True)):
        reach = _grown(mark.box, size)
        others = [one.box for place, one in enumerate(marks) if place != number and _overlap(one.box, reach)]
        tags = [tag for tag in placed if _overlap(tag, reach)]
        best: Box | None = None
        best_cost = float("inf")
        for tag in _candidates(mark.box, size, picture):
            cost = _TAG_COST * sum(_overlap(tag, one) for one in tags)
            on = _overlap(tag, mark.box)
            cost += _OWN_COST * on + _BESIDE_COST * (size[0] * size[1] - on) + _BUSY_COST * busy(tag)
            # A box that holds this one is its background.
            cost += _OTHER_COST * sum(_overlap(tag, one) for one in others if not _holds(one, mark.box))
            if cost < best_cost:
                best, best_cost = tag, cost
        placed.append(best or (0, 0, *size))
    return placed


def _candidates(box: Box, size: tuple[int, int], picture: tuple[int, int]) -> list[Box]:
    left, top, right, bottom = box
    width, height = size
    corners = [
        (right - width, top),
        (left, top),
        (left, top - height),
        (right - width, top - height),
        (left - width, top),
        (right, top),
        (left, bottom),
        (right - width, bottom),
        (left, bottom - height),
        (right - width, bottom - height),
        (left - width, (top + bottom - height) // 2),
        (right, (top + bottom - height) // 2),
    ]
    found = []
    for x, y in corners:
        at_x = max(0, min(x, picture[0] - width))
        at_y = max(0, min(y, picture[1] - height))
        found.append((at_x, at_y, at_x + width, at_y + height))
    return found


def _grown(box: Box, size: tuple[int, int]) -> Box:
    return box[0] - size[0], box[1] - size[1], box[2] + size[0], box[3] + size[1]


def _overlap(first: Box, second: Box) -> int:
    width = min(first[2], second[2]) - max(first[0], second[0])
    height = min(first[3], second[3]) - max(first[1], second[1])
    return width * height if width > 0 and height > 0 else 0


def _holds(outer: Box, inner: Box) -> bool:
    return outer[0] <= inner[0] and outer[1] <= inner[1] and outer[2] >= inner[2] and outer[3] >= inner[3]


def draw_marks(image: Any, marks: Sequence[Drawn]) -> Any:
    """Return the picture with its marks on it; the picture itself stays."""
    from PIL import Image, ImageDraw, ImageFont  # noqa: PLC0415 - only pictures with marks need it

    font = ImageFont.load_default(_FONT_PX)
    above = Image.new("RGBA", image.size, (0, 0, 0, 0))
    pen = ImageDraw.Draw(above)
    ascent, descent = _height_of(font)
    sizes = [(round(pen.textlength(mark.label, font)) + 2 * _PAD_X, ascent + descent + 2 * _PAD_Y) for mark in marks]
    for number, mark in enumerate(marks):
        _frame(pen, mark, image.size, _COLOURS[number % len(_COLOURS)])
    tags = place_tags(marks, sizes, image.size, _busy_parts(image))
    for number, (mark, tag) in enumerate(zip(marks, tags, strict=True)):
        colour = _COLOURS[number % len(_COLOURS)]
        left, top, right, bottom = tag
        pen.rounded_rectangle((left, top, right - 1, bottom - 1), radius=3, fill=(*colour, 235), outline=_LIGHT)
        pen.text((left + _PAD_X, top + _PAD_Y + ascent), mark.label, fill=(*_LIGHT, 255), font=font, anchor="ls")
    return Image.alpha_composite(image.convert("RGBA"), above).convert("RGB")


def _busy_parts(image: Any) -> Busy:
    """Return how much parts of a picture show, from sums over all of it."""
    import numpy as np  # noqa: PLC0415 - only pictures with marks need it

    grey = np.asarray(image.convert("L"), dtype=np.int16)
    edges = np.zeros((grey.shape[0] + 1, grey.shape[1] + 1), dtype=np.int32)
    edges[1:-1, 1:] += np.abs(np.diff(grey, axis=0)) > _EDGE_LEVELS
    edges[1:, 1:-1] += np.abs(np.diff(grey, axis=1)) > _EDGE_LEVELS
    sums = edges.cumsum(axis=0).cumsum(axis=1)

    def busy(box: Box) -> int:
        left, top, right, bottom = box
        return int(sums[bottom, right] - sums[top, right] - sums[bottom, left] + sums[top, left])

    return busy


def _height_of(font: Any) -> tuple[int, int]:
    """Return the height of digits and letters above and below their line."""
    _, top, _, bottom = font.getbbox("e0123456789", anchor="ls")
    return -int(top), max(1, int(bottom))


def _frame(pen: Any, mark: Drawn, size: tuple[int, int], colour: tuple[int, int, int]) -> None:
    """Draw a box; sides at which the element goes on outside the picture are left open."""
    left, top, right, bottom = mark.box
    sides = (
        (left > 0 or not mark.cut, (left, top, left, bottom - 1)),
        (top > 0 or not mark.cut, (left, top, right - 1, top)),
        (right < size[0] or not mark.cut, (right - 1, top, right - 1, bottom - 1)),
        (bottom < size[1] or not mark.cut, (left, bottom - 1, right - 1, bottom - 1)),
    )
    for closed, line in sides:
        if closed:
            x1, y1, x2, y2 = line
            pen.rectangle((x1 - 1, y1 - 1, x2 + 1, y2 + 1), fill=(*_LIGHT, 170))
    for closed, line in sides:
        if closed:
            pen.rectangle(line, fill=(*colour, 255))
