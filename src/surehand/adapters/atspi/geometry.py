"""From an application's own units to desktop pixels; a place that cannot be proven is no place (spec C06, C32, C35).

GTK 3 and Qt report screen positions in units of their scale factor. GTK 4 reports positions relative to its window, so
they mean nothing until the window's origin is known from the window system.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from surehand import limits
from surehand.adapters.atspi.calls import Extents
from surehand.model.scene import Bounds

#: Asks the window system where a window's content is: (pid, title, size in the application's units) → (x, y) or
#: (x, y, width, height) in desktop pixels, or None when no window or several match. The content is what the
#: application's own extents of the window cover, without invisible borders.
WindowOrigin = Callable[[int, str, tuple[int, int]], tuple[int, ...] | None]

#: Asks the window system whether a window is modal; false where it is not known.
WindowModal = Callable[[int, str, tuple[int, int]], bool]

#: Scale factors are whole or quarters; anything else is a mismatch of windows, not a scale.
_SCALE_STEP_MILLI: Final = 250
_SCALE_MILLI_MAX: Final = 8_000
#: A scaled window may be this many pixels off its scaled size.
_SLACK_PX: Final = 4
#: GTK 4 draws a border of its own around its windows where nothing composes them, and counts from inside it.
_BORDER_PX_MAX: Final = 16
#: And this many more where its frame is counted in.
_FRAME_PX_MAX: Final = 64
_UNPLACED: Final = -(2**31)


class Placement(NamedTuple):
    """desktop = origin + extents × scale / 1000. `known` is false where the origin is not."""

    known: bool = True
    origin_x: int = 0
    origin_y: int = 0
    scale_milli: int = 1000

    def to_desktop(self, extents: Extents | None) -> Bounds | None:
        """Return desktop pixels, or None for what has no place or whose place is not known."""
        if extents is None or not self.known or not has_size(extents):
            return None
        x, y, width, height = extents
        placed = (
            self.origin_x + _scaled(x, self.scale_milli),
            self.origin_y + _scaled(y, self.scale_milli),
            _scaled(width, self.scale_milli),
            _scaled(height, self.scale_milli),
        )
        if any(abs(number) > limits.COORDINATE_MAX for number in placed):
            return None
        return placed


NOWHERE: Final = Placement(known=False)
AS_IS: Final = Placement()


def has_size(extents: Extents | None) -> bool:
    """Return whether extents describe a place at all: closed pop-ups give −2³¹, unallocated widgets no size."""
    return extents is not None and extents[2] > 0 and extents[3] > 0 and _UNPLACED not in extents[:2]


def _scaled(number: int, scale_milli: int) -> int:
    return (number * scale_milli + 500) // 1000


def scale_between(logical: tuple[int, int], pixels: tuple[int, int], *, slack_px: int = _SLACK_PX) -> int | None:
    """Return the scale that turns one size into the other, in thousandths, or None when there is none."""
    if min(*logical, *pixels) <= 0:
        return None
    steps = {round(b * 1000 / a / _SCALE_STEP_MILLI) for a, b in zip(logical, pixels, strict=True)}
    scale = max(1, steps.pop()) * _SCALE_STEP_MILLI
    if steps or scale > _SCALE_MILLI_MAX:
        return None
    fits = all(abs(_scaled(a, scale) - b) <= slack_px * scale // 1000 for a, b in zip(logical, pixels, strict=True))
    return scale if fits else None


def place_window(
    extents: Extents | None, *, window_relative: bool, pid: int, title: str, locate: WindowOrigin | None
) -> Placement:
    """Return how a window's extents map to the desktop.

    Args:
        extents: The window's own extents as the application gives them.
        window_relative: The toolkit reports window-relative extents.
        pid: The window's process.
        title: The window's title.
        locate: Asks the window system; None where there is none.
    """
    found = None
    if locate is not None and extents is not None and has_size(extents):
        found = locate(pid, title, (extents[2], extents[3]))
    if found is None or extents is None:
        return NOWHERE if window_relative else AS_IS
    scale = 1000
    if len(found) >= 4:
        # GTK 3 and Qt count the window manager's frame in, whose size is not scaled.
        slack = _SLACK_PX if window_relative else _FRAME_PX_MAX
        scale = scale_between((extents[2], extents[3]), (found[2], found[3]), slack_px=slack) or 1000
    if window_relative:
        border = _drawn_border((extents[2], extents[3]), found) if scale == AS_IS.scale_milli else 0
        return Placement(
            origin_x=found[0] + border - _scaled(extents[0], scale),
            origin_y=found[1] + border - _scaled(extents[1], scale),
            scale_milli=scale,
        )
    return Placement(scale_milli=scale)


def _drawn_border(inner: tuple[int, int], content: tuple[int, ...]) -> int:
    """Return the width of a border that is the same on all four sides, else 0."""
    if len(content) < 4:
        return 0
    across, along = content[2] - inner[0], content[3] - inner[1]
    return across // 2 if across == along and across % 2 == 0 and 0 < across <= 2 * _BORDER_PX_MAX else 0
