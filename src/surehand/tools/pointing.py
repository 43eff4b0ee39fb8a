"""Places in pictures: from the pixels that were delivered to those that were taken, exactly.

A picture may be delivered smaller than it was taken. Then its id says both sizes, so that whoever has the id has the
mapping: `<capture>.<width>x<height>-<width>x<height>`, delivered first. A delivered pixel stands for the middle of what
it shows. An id that was made up maps to another place of the same picture and is fenced there like any other.
"""

from __future__ import annotations

import re
from typing import Any, Final, Literal

from surehand import limits
from surehand.errors import InvalidRequest

Space = Literal["screenshot", "window", "desktop"]
Size = tuple[int, int]

_SCALED: Final = re.compile(r"([A-Za-z0-9_:-]{1,128})\.(\d{1,5})x(\d{1,5})-(\d{1,5})x(\d{1,5})\Z", re.ASCII)


def delivered_id(capture_id: str, taken: Size, delivered: Size) -> str:
    """Return the id under which places of a delivered picture are named."""
    if taken == delivered:
        return capture_id
    return f"{capture_id}.{delivered[0]}x{delivered[1]}-{taken[0]}x{taken[1]}"


def to_taken(place: int, delivered: int, taken: int) -> int:
    """Return the taken pixel in the middle of what a delivered one shows, along one side."""
    return (2 * place + 1) * taken // (2 * delivered)


def to_delivered(place: int, taken: int, delivered: int) -> int:
    """Return the delivered pixel that shows the middle of a taken one, along one side."""
    return (2 * place + 1) * delivered // (2 * taken)


def point(capture_id: str, x: int, y: int, space: Space = "screenshot") -> dict[str, Any]:
    """Return the target of a place (spec §3.3).

    Args:
        capture_id: As `screenshot` gave it.
        x: Counted from the left: of the delivered picture, of the window, or of the desktop.
        y: Counted from the top.
        space: What is counted in.

    Raises:
        InvalidRequest: the id is none, or the place is outside the delivered picture.
    """
    plain, taken, delivered = _sizes(capture_id)
    if space == "screenshot" and taken is not None and delivered is not None:
        if not (0 <= x < delivered[0] and 0 <= y < delivered[1]):
            raise InvalidRequest(
                f"{x}, {y} is outside the picture", fix=f"choose a place inside {delivered[0]} x {delivered[1]}"
            )
        x, y = to_taken(x, delivered[0], taken[0]), to_taken(y, delivered[1], taken[1])
    return {"kind": "point", "space": space, "x": x, "y": y, "capture_id": plain}


def _sizes(capture_id: str) -> tuple[str, Size | None, Size | None]:
    if "." not in capture_id:
        return capture_id, None, None
    found = _SCALED.match(capture_id)
    sides = [] if found is None else [int(side) for side in found.groups()[1:]]
    if found is None or not all(0 < side <= limits.COORDINATE_MAX for side in sides):
        raise InvalidRequest("that is no id of a picture", fix="take it from screenshot as it is")
    return found[1], (sides[2], sides[3]), (sides[0], sides[1])
