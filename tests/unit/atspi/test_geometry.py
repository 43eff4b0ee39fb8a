"""Where a window-relative toolkit's elements stand on the desktop."""

from __future__ import annotations

import pytest

from surehand.adapters.atspi.geometry import place_window

INNER = (355, 486)
ELEMENT = (10, 20, 40, 30)


def element_at(content: tuple[int, ...]) -> tuple[int, int, int, int] | None:
    placement = place_window(
        (0, 0, *INNER), window_relative=True, pid=7, title="Calculator", locate=lambda *_: (100, 200, *content)
    )
    return placement.to_desktop(ELEMENT)


@pytest.mark.parametrize(
    ("border", "where"),
    [(0, (110, 220)), (5, (115, 225)), (16, (126, 236)), (17, (110, 220))],
    ids=["none", "usual", "at the limit", "one past it"],
)
def test_a_border_that_the_application_draws_itself_moves_its_elements(border: int, where: tuple[int, int]) -> None:
    assert element_at((INNER[0] + 2 * border, INNER[1] + 2 * border)) == (*where, 40, 30)


@pytest.mark.parametrize("extra", [(10, 12), (9, 9), (-10, -10)])
def test_a_difference_that_is_no_border_moves_nothing(extra: tuple[int, int]) -> None:
    assert element_at((INNER[0] + extra[0], INNER[1] + extra[1])) == (110, 220, 40, 30)
