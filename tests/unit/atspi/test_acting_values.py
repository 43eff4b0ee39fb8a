"""Numbers, ranges and scroll positions: at the limit and one past it, refused before anything is sent."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surehand.adapters.atspi.acting_values import (
    Box,
    Range,
    check_text_range,
    into_view,
    parse_number,
    scrolled,
    utf16_offset,
)
from surehand.errors import InvalidRequest, TargetNotActionable
from surehand.model.actions import Scroll

_PERCENT = Range(0, 100, 1, 50)


@pytest.mark.parametrize(("text", "number"), [("0", 0), ("100", 100), ("-0", 0), ("12.5", 12.5), ("007", 7)])
def test_a_plain_decimal_in_range_is_taken(text, number):
    assert parse_number(text, _PERCENT) == number


@pytest.mark.parametrize(
    "text", ["", " ", "1e2", "1_0", "0x1", "inf", "nan", "+1", ".5", "5.", "1,5", "1\n", "٣", "1" * 16]
)
def test_anything_but_a_plain_decimal_is_refused(text):
    with pytest.raises(InvalidRequest):
        parse_number(text, _PERCENT)


@pytest.mark.parametrize("text", ["-1", "101", "100.000000000001", "-0.1"])
def test_a_number_beyond_the_range_is_refused_with_the_range(text):
    with pytest.raises(TargetNotActionable) as caught:
        parse_number(text, _PERCENT)
    assert caught.value.observed == {"low": "0", "high": "100"}


def test_a_range_of_characters_may_end_at_the_end_and_not_beyond():
    check_text_range(0, 5, 5)
    check_text_range(5, 0, 5)
    for start, length in ((0, 6), (5, 1), (6, 0)):
        with pytest.raises(TargetNotActionable):
            check_text_range(start, length, 5)


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=20), st.integers(0, 20))
def test_a_utf16_offset_cuts_where_the_character_offset_cuts(text, offset):
    units = utf16_offset(text, offset)
    assert text.encode("utf-16-le")[: units * 2].decode("utf-16-le") == text[:offset]


@pytest.mark.parametrize(
    ("direction", "amount", "unit", "expected"),
    [
        ("down", 10_000, "pixel", 60),
        ("up", 10_000, "pixel", 40),
        ("down", 1_000, "line", 51),
        ("down", 500, "page", 59),
        ("up", 90_000, "pixel", 0),
        ("right", 90_000, "pixel", 100),
    ],
)
def test_a_scroll_moves_by_its_amount_within_the_bar(direction, amount, unit, expected):
    action = Scroll(direction=direction, amount_milli=amount, unit=unit)
    assert scrolled(action, _PERCENT, 20) == expected


def test_a_line_is_a_tenth_of_what_shows_where_the_bar_names_no_step():
    action = Scroll(direction="down", amount_milli=1_000)
    assert scrolled(action, _PERCENT._replace(step=0), 200) == 70


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (Box(0, 100, 10, 20), None),
        (Box(0, 280, 10, 20), None),
        (Box(0, 281, 10, 20), 51),
        (Box(0, 99, 10, 20), 49),
        (Box(0, 400, 10, 20), 100),
        (Box(0, -500, 10, 20), 0),
        (Box(0, 120, 10, 500), 70),
    ],
)
def test_into_view_moves_no_further_than_needed(item, expected):
    assert into_view(item, Box(300, 100, 15, 200), _PERCENT, "vertical") == expected


def test_into_view_sends_nothing_where_the_bar_can_go_no_further():
    assert into_view(Box(0, 900, 10, 20), Box(0, 100, 15, 200), _PERCENT._replace(current=100), "vertical") is None


def test_into_view_works_sideways():
    assert into_view(Box(320, 0, 20, 10), Box(100, 300, 200, 15), _PERCENT, "horizontal") == 90
