"""Errors over random content: the way to another process and back loses nothing and never fails."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from surehand import canonical
from surehand.errors import SurehandError, from_value
from tests.unit.test_errors import CLASSES, CODES

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(max_codepoint=0xD7FF), max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
objects = st.dictionaries(st.text(st.characters(max_codepoint=0xD7FF), max_size=8), json_values, max_size=3)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=1_500)


@given(
    st.sampled_from(CLASSES),
    texts,
    st.none() | st.sampled_from(sorted(CODES)),
    st.none() | texts,
    st.none() | texts,
    st.none() | objects,
    st.none() | objects,
    st.none() | st.booleans(),
)
def test_there_and_back_through_bytes_is_the_same_value(cls, message, code, fix, gate, details, observed, retry_safe):
    error = cls(message, code=code, fix=fix, gate=gate, details=details, observed=observed, retry_safe=retry_safe)
    value = error.to_value()
    again = from_value(canonical.parse(canonical.encode(value)))
    assert again.to_value() == value
    assert again.retry_safe == error.retry_safe
    assert str(again).startswith(f"{error.code}: ")


@given(
    st.dictionaries(
        st.sampled_from(["code", "message", "retry_safe", "fix", "gate", "details", "observed", "more"]), json_values
    )
)
def test_whatever_another_process_says_becomes_an_error(value):
    error = from_value(value)
    assert isinstance(error, SurehandError)
    assert isinstance(error.retry_safe, bool)
    assert from_value(error.to_value()).to_value() == error.to_value()
    str(error)
