"""Search in long texts and pages of them: every answer against one worked out the plain way."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surehand import limits
from surehand.core.input.graphemes import graphemes
from surehand.core.scene.paging import page_end
from surehand.core.scene.textsearch import Sought, search
from surehand.errors import InvalidRequest, TooLarge

LETTERS = st.text(alphabet="ab\nñ€😀", max_size=60)


@given(LETTERS, st.text(alphabet="ab\nñ€😀", min_size=1, max_size=3), st.integers(0, 70))
def test_plain_text_is_found_where_it_stands(text: str, sought: str, start: int) -> None:
    found = search(text, Sought(text=sought, start=start, max_matches=limits.FIND_MATCHES_MAX))
    expected = [m.span() for m in re.finditer(re.escape(sought), text[start:])]
    assert [(m.start - start, m.end - start) for m in found.matches] == expected
    assert found.count == len(expected)
    for match in found.matches:
        assert text[match.start : match.end] == sought
        assert match.line == text.count("\n", 0, match.start) + 1


@given(LETTERS)
def test_patterns_mean_lines(text: str) -> None:
    found = search(text, Sought(text="^a.*b$", regex=True))
    assert [(m.start, m.end) for m in found.matches] == [m.span() for m in re.finditer("(?m)^a.*b$", text)]


@given(LETTERS, st.integers(0, 3))
def test_the_lines_around_are_those_of_the_text(text: str, around: int) -> None:
    lines = text.split("\n")
    for match in search(text, Sought(text="ñ", context_lines=around)).matches:
        place = match.line - 1
        assert match.text == lines[place]
        assert list(match.before) == lines[max(0, place - around) : place]
        after = lines[place + 1 : place + 1 + around]
        # A last line without anything in it is no line.
        assert list(match.after) == (
            after[:-1] if after and place + len(after) + 1 == len(lines) and not lines[-1] else after
        )


def test_case_counts_unless_it_is_not_to() -> None:
    assert search("Straße STRASSE", Sought(text="straße")).count == 0
    assert search("Straße STRASSE", Sought(text="straße", ignore_case=True)).count == 1


def test_a_pattern_taken_literally_is_no_pattern() -> None:
    assert search("a.c abc", Sought(text="a.c")).count == 1
    assert search("a.c abc", Sought(text="a.c", regex=True)).count == 2
    assert search("(", Sought(text="(")).count == 1
    with pytest.raises(InvalidRequest) as caught:
        search("(", Sought(text="(", regex=True))
    assert "(" not in caught.value.message


def test_empty_matches_are_none() -> None:
    assert search("bbb", Sought(text="a*", regex=True)).count == 0


def test_counting_ends_at_its_limit_and_says_so() -> None:
    most = limits.FIND_COUNTED_MAX
    at = search("x" * most, Sought(text="x"))
    past = search("x" * (most + 1), Sought(text="x"))
    assert (at.count, at.counted_all) == (most, True)
    assert (past.count, past.counted_all) == (most, False)
    assert len(past.matches) == limits.FIND_MATCHES_DEFAULT


def test_a_line_without_end_is_cut_around_the_match() -> None:
    room = limits.FIND_LINE_CHARS_MAX
    text = "a" * 5_000 + "needle" + "b" * 5_000
    (match,) = search(text, Sought(text="needle")).matches
    assert "needle" in match.text
    assert len(match.text) == room + 2
    assert match.text.startswith("…")
    assert match.text.endswith("…")
    (whole,) = search("a" * (room - 6) + "needle", Sought(text="needle")).matches
    assert "…" not in whole.text
    (cut,) = search("a" * (room - 5) + "needle", Sought(text="needle")).matches
    assert cut.text == "…" + "a" * (room - 6) + "needle"


@pytest.mark.parametrize(
    "wrong",
    [
        {"text": ""},
        {"text": "a\x00"},
        {"text": "a", "start": -1},
        {"text": "a", "max_matches": 0},
        {"text": "a", "max_matches": limits.FIND_MATCHES_MAX + 1},
        {"text": "a", "context_lines": limits.FIND_CONTEXT_LINES_MAX + 1},
        {"text": "\ud800"},
    ],
)
def test_wrong_searches_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidRequest):
        Sought(**wrong)  # type: ignore[arg-type]


def test_a_pattern_one_byte_too_long_is_refused() -> None:
    Sought(text="a" * limits.FIND_PATTERN_BYTES_MAX)
    with pytest.raises(TooLarge):
        Sought(text="a" * (limits.FIND_PATTERN_BYTES_MAX + 1))


def test_no_pattern_takes_longer_than_its_text_is_long() -> None:
    text = "a" * 200_000
    started = time.process_time()
    assert search(text, Sought(text="(a+)+$b", regex=True)).count == 0
    assert search(text, Sought(text="(a|a)*b", regex=True)).count == 0
    assert time.process_time() - started < 5


def test_a_lone_surrogate_moves_no_offset() -> None:
    assert [m.start for m in search("\ud800x€x", Sought(text="x")).matches] == [1, 3]


CLUSTERS = st.text(alphabet="ab👍🏽e\u0301🇩🇪\r\n\u200d가", max_size=80)


@given(CLUSTERS, st.integers(1, 40))
def test_pages_end_between_characters_and_lose_none(text: str, chars: int) -> None:
    ends = set()
    at = 0
    for cluster in graphemes(text):
        at += len(cluster)
        ends.add(at)
    start = 0
    pages = []
    while start < len(text):
        end = page_end(text[start : start + chars + limits.GRAPHEME_CHARS_MAX], chars)
        assert 1 <= end <= chars
        pages.append(text[start : start + end])
        longest = max(len(cluster) for cluster in graphemes(text))
        if longest <= chars:
            assert start + end in ends
        start += end
    assert "".join(pages) == text


def test_a_heap_of_marks_is_cut_in_the_end() -> None:
    heap = "e" + "\u0301" * 500
    assert page_end(heap, 100) == 100
    assert page_end("x" + heap, 1) == 1
