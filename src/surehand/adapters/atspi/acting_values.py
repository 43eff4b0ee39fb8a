"""The arithmetic of acting: numbers, ranges of characters, scroll positions. Pure; refuses before anything is sent.

Toolkits clamp silently: a slider takes 150 for 100, a selection ends where the text ends. What was asked must be what
happens, so a value out of range is refused here.
"""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple

from surehand.adapters.atspi.entries import shown_number
from surehand.errors import InvalidRequest, TargetNotActionable
from surehand.model.actions import Scroll

_DECIMAL: Final = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,15})?\Z")

#: A page is this part of what is visible, a line that part; the toolkits' own habit where they do not say.
_PAGE_MILLI: Final = 900
_LINE_MILLI: Final = 100


class Range(NamedTuple):
    """What a `Value` interface says: bounds, step (0 when not said) and where it stands."""

    low: float
    high: float
    step: float
    current: float


class Box(NamedTuple):
    """Extents in the application's own units."""

    x: int
    y: int
    width: int
    height: int


def parse_number(text: str, limits_of: Range) -> float:
    """Return the number of a decimal text within a control's range.

    Raises:
        InvalidRequest: it is no plain decimal number.
        TargetNotActionable: it is out of the control's range, which would be clamped silently.
    """
    if _DECIMAL.match(text) is None:
        raise InvalidRequest("the value of this control must be a plain decimal number such as 12 or -0.5")
    number = float(text)
    if not limits_of.low <= number <= limits_of.high:
        raise TargetNotActionable(
            "the value is out of the control's range",
            observed={"low": shown_number(limits_of.low), "high": shown_number(limits_of.high)},
        )
    return number


def check_text_range(start: int, length: int, chars: int) -> None:
    """Refuse a range of characters that ends beyond the text.

    Raises:
        TargetNotActionable: naming how many characters there are.
    """
    if start + length > chars:
        raise TargetNotActionable("the range ends beyond the text", observed={"chars": chars})


def utf16_offset(text: str, offset: int) -> int:
    """Return a character offset in UTF-16 units, which is how Qt counts."""
    return len(text[:offset].encode("utf-16-le")) // 2


def scrolled(action: Scroll, where: Range, visible: int) -> float:
    """Return the scroll bar value that an action asks for, within the bar's range.

    Args:
        action: Direction, amount and unit.
        where: The bar.
        visible: How much of the content is visible along the bar, in the bar's unit (pixels).
    """
    amount = action.amount_milli / 1000
    if action.unit == "page":
        amount *= visible * _PAGE_MILLI / 1000
    elif action.unit == "line":
        amount *= where.step or visible * _LINE_MILLI / 1000
    if action.direction in {"up", "left"}:
        amount = -amount
    return min(max(where.current + amount, where.low), where.high)


def into_view(item: Box, bar: Box, where: Range, axis: Literal["vertical", "horizontal"]) -> float | None:
    """Return the scroll bar value that brings an item into the visible part, None when it is there.

    The bar stands beside what it scrolls, so its own extent is the visible part.
    """
    if axis == "vertical":
        start, size, from_, span = item.y, item.height, bar.y, bar.height
    else:
        start, size, from_, span = item.x, item.width, bar.x, bar.width
    if start >= from_ and start + size <= from_ + span:
        return None
    # What does not fit shows its beginning.
    shift = start - from_ if start < from_ or size > span else start + size - from_ - span
    wanted = min(max(where.current + shift, where.low), where.high)
    return None if wanted == where.current else wanted
