"""What applications answer may have any shape: readers return exactly their type or None, and cut text."""

from __future__ import annotations

import pytest
from dbus_fast import Variant
from hypothesis import given
from hypothesis import strategies as st

from surehand import limits
from surehand.adapters.atspi import calls
from surehand.adapters.atspi.transport import Failure

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64) | st.floats() | st.text(max_size=8)
    | st.binary(max_size=4) | st.builds(lambda text: Variant("s", text), st.text(max_size=4)),
    lambda inner: st.lists(inner, max_size=5) | st.tuples(inner, inner)
    | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)  # fmt: skip

READERS = {
    calls.string: str,
    calls.integer: int,
    calls.number: float,
    calls.strings: tuple,
    calls.reference: tuple,
    calls.references: tuple,
    calls.states: int,
    calls.extents: tuple,
    calls.relations: dict,
    calls.attributes: dict,
    calls.actions: tuple,
    calls.cache_items: list,
}


@given(st.lists(ANYTHING, max_size=3))
def test_no_answer_makes_a_reader_raise_or_return_another_type(body):
    for read, kind in READERS.items():
        value = read(body)
        assert value is None or type(value) is kind
        if kind is int:
            assert value is not True
            assert value is not False


def test_a_failure_and_an_empty_answer_are_none():
    for read in READERS:
        assert read(Failure("refused")) is None
        assert read([]) is None
        assert read(None) is None


def test_answers_in_the_right_shape_are_read():
    assert calls.string([Variant("s", "Säve")]) == "Säve"
    assert calls.number([Variant("d", 2.5)]) == 2.5
    assert calls.reference([(":1.2", "/a")]) == (":1.2", "/a")
    assert calls.references([[(":1.2", "/a"), (":1.2", "/b")]]) == ((":1.2", "/a"), (":1.2", "/b"))
    assert calls.states([[1, 1 << 11]]) == 1 << 43 | 1
    assert calls.extents([(1, -2, 3, 4)]) == (1, -2, 3, 4)
    assert calls.relations([[(2, [(":1.2", "/a")])]]) == {2: ((":1.2", "/a"),)}
    assert calls.actions([[("Click", "clicks", "")]]) == (("Click", "clicks", ""),)


def test_both_forms_of_cache_rows_are_read_and_malformed_rows_left_out():
    row = ((":1.2", "/a"), (":1.2", "/root"), (":1.2", "/p"), 0, 3, ["org.a11y.atspi.Text"], "n", 29, "d", [1, 0])
    older = ((":1.2", "/b"), (":1.2", "/root"), (":1.2", "/p"), [(":1.2", "/c")], [], "n", 29, "d", [1, 0])
    items = calls.cache_items([[row, older, ("nonsense",), row[:9]]])
    assert [(item.ref[1], item.child_count, item.children) for item in items] == [
        ("/a", 3, None),
        ("/b", 1, ((":1.2", "/c"),)),
    ]
    assert calls.cache_items([row]) == items[:1]


@pytest.mark.parametrize("char", ["x", "é", "€", "😀"])
def test_text_at_the_bound_is_whole_and_one_past_it_is_cut_and_marked(char):
    fits = char * (limits.FIELD_BYTES_STORED_MAX // len(char.encode()))
    assert calls.cut(fits) == fits
    cut = calls.cut(fits + char)
    assert cut.endswith(calls.CUT_MARK)
    assert fits.startswith(cut.removesuffix(calls.CUT_MARK))
    assert limits.FIELD_BYTES_STORED_MAX - 8 < len(cut.encode()) <= limits.FIELD_BYTES_STORED_MAX


def test_the_beginning_of_a_longer_text_is_marked_however_short_it_is():
    assert calls.cut("abc", more=True) == "abc" + calls.CUT_MARK
