"""Text as units."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surehand import limits
from surehand.core.input.graphemes import graphemes
from surehand.core.input.keys import keysym_of, named_key
from surehand.core.input.plan import ChordUnit, TextUnit, plan_drag, plan_press, plan_text
from surehand.errors import InvalidRequest


@pytest.mark.parametrize(
    "clusters",
    [
        ["a", "b"],
        ["e\u0301", "x"],
        ["a\u030a\u0323", "e"],
        ["\U0001f468\u200d\U0001f469\u200d\U0001f467", "!"],
        ["\U0001f1e9\U0001f1ea", "\U0001f1eb\U0001f1f7"],
        ["\U0001f44d\U0001f3fd", "a"],
        ["\u2764\ufe0f", "b"],
        ["\u1100\u1161\u11a8", "\uac00\u11a8", "\uac01"],
        ["\u0928\u093f", "\u0924"],
        ["\r\n", "\n", "\r", "a"],
        ["\u05e9\u05c1", "\u05dc"],
        ["a", "\u200b", "b"],
        ["\U0001f3f4\U000e0067\U000e0062\U000e007f", "x"],
        ["a\u200d"],
    ],
)
def test_clusters_are_what_a_reader_takes_for_characters(clusters: list[str]) -> None:
    assert list(graphemes("".join(clusters))) == clusters


@given(st.text())
def test_no_character_is_lost_or_moved(text: str) -> None:
    clusters = list(graphemes(text))
    assert "".join(clusters) == text
    assert all(clusters)


@given(st.text(alphabet=st.characters(exclude_categories=["Cc", "Cs"]), max_size=60))
def test_a_plan_writes_the_text_and_nothing_else(text: str) -> None:
    units = plan_text(text)
    assert all(isinstance(unit, TextUnit) for unit in units)
    assert [key.keysym for unit in units for key in unit.keys] == [keysym_of(character) for character in text]


def test_lines_and_tabulators_are_keys() -> None:
    units = plan_text("a\n\tb\r\n")
    names = [unit.chord.keys[0].label if isinstance(unit, ChordUnit) else unit.keys[0].label for unit in units]
    assert names == ["a", "Return", "Tab", "b", "Return"]


@pytest.mark.parametrize("code", [0x01, 0x07, 0x08, 0x0B, 0x1B, 0x7F, 0x85, 0x9F])
def test_a_control_character_is_refused_and_never_dropped(code: int) -> None:
    with pytest.raises(InvalidRequest) as caught:
        plan_text(f"a{chr(code)}b")
    assert caught.value.details == {"code_point": f"{code:04X}"}


def test_clearing_comes_first_and_submitting_last() -> None:
    units = plan_text("x", clear=True, submit=True)
    first, second, _, last = units
    assert isinstance(first, ChordUnit)
    assert first.chord.modifiers[0].keysym == named_key("Control_L").keysym
    assert isinstance(second, ChordUnit)
    assert second.chord.keys[0].keysym == named_key("BackSpace").keysym
    assert isinstance(last, ChordUnit)
    assert last.chord.keys[0].keysym == named_key("Return").keysym
    assert plan_text("") == ()


def test_chords_keep_their_order() -> None:
    assert [unit.chord.keys[0].label for unit in plan_press(["a", "Return", "ctrl+b"])] == ["a", "Return", "b"]


@given(
    st.tuples(st.integers(0, 4000), st.integers(0, 4000)),
    st.lists(st.tuples(st.integers(0, 4000), st.integers(0, 4000)), min_size=1, max_size=20),
)
def test_a_drag_visits_every_corner_in_order_in_enough_steps(
    start: tuple[int, int], corners: list[tuple[int, int]]
) -> None:
    places = plan_drag(start, corners, limits.DRAG_STEPS)
    assert places[-1] == corners[-1]
    rest = iter(places)
    assert all(corner in rest for corner in corners)
    assert len(places) <= limits.DRAG_STEPS + len(corners)
    if len({start, *corners}) > 1:
        assert len(places) >= limits.DRAG_STEPS
