"""Canonical bytes against an independent implementation of RFC 8785, over random values."""

from __future__ import annotations

import json

import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st

from surehand import canonical
from surehand.errors import SurehandError
from surehand.verify.records import Fault, read_canonical
from surehand.verify.records import encode as auditor_encode

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
keys = st.text(st.characters(max_codepoint=0xD7FF), max_size=12)
integers = st.integers(-(2**53) + 1, 2**53 - 1)
leaves = st.none() | st.booleans() | integers | texts
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(keys, inner, max_size=5), max_leaves=30
)
#: Like `values`, with everything the domain leaves out among it.
wild = st.recursive(
    leaves | st.floats() | st.integers() | st.text() | st.binary(max_size=3),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text() | st.integers(), inner, max_size=4),
    max_leaves=20,
)


@settings(max_examples=500)
@given(values)
def test_the_bytes_are_those_of_rfc_8785(value):
    assert canonical.encode(value) == rfc8785.dumps(value)


@settings(max_examples=500)
@given(values)
def test_reader_and_auditor_give_back_what_was_written(value):
    data = canonical.encode(value)
    assert canonical.parse(data) == value
    assert read_canonical(data) == value
    assert auditor_encode(value) == data


@settings(max_examples=500)
@given(values, values)
def test_different_values_have_different_bytes(one, other):
    assert (canonical.encode(one) == canonical.encode(other)) == _same(one, other)


def _same(one, other) -> bool:
    """Python takes True for 1; JSON does not."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


@settings(max_examples=500)
@given(wild)
def test_whatever_is_given_is_written_exactly_or_refused(value):
    try:
        data = canonical.encode(value)
    except SurehandError:
        return
    assert data == rfc8785.dumps(value)
    assert canonical.parse(data) == value


@settings(max_examples=1_000)
@given(st.binary(max_size=60) | st.text(max_size=40).map(str.encode) | values.map(json.dumps).map(str.encode))
def test_whatever_is_read_is_a_value_or_a_typed_refusal(data):
    try:
        value = canonical.parse(data)
    except SurehandError:
        return
    form = canonical.encode(value)
    assert canonical.parse(form) == value
    try:
        assert read_canonical(data) == value
        assert form == data
    except Fault:
        assert form != data


@settings(max_examples=300)
@given(values.map(canonical.encode), st.data())
def test_the_auditor_accepts_no_second_form(data, chance):
    """Any one byte added or changed gives another value or a refusal, never the same value."""
    place = chance.draw(st.integers(0, len(data)))
    byte = chance.draw(st.integers(0, 255)).to_bytes(1, "big")
    for other in (data[:place] + byte + data[place:], data[:place] + byte + data[place + 1 :]):
        if other == data:
            continue
        try:
            value = read_canonical(other)
        except Fault:
            continue
        assert not _same(value, read_canonical(data))
