"""Canonical bytes: the shared vectors, every bound, and that nothing is repaired silently."""

from __future__ import annotations

import enum
import hashlib
import json
from collections import OrderedDict
from pathlib import Path

import msgspec
import pytest
import rfc8785

from surehand import canonical, limits
from surehand.errors import InvalidRequest, SurehandError, TooLarge
from surehand.model.record import Record
from surehand.verify.records import Fault, digest, read_canonical
from surehand.verify.records import encode as auditor_encode

VECTORS = Path(__file__).parents[2] / "spec" / "vectors"
CANONICAL = json.loads((VECTORS / "canonical.json").read_text("utf-8"))
DIGESTS = json.loads((VECTORS / "digests.json").read_text("utf-8"))

#: The error and a piece of its message for each class of refusal.
CLASSES = {
    "not_json": (InvalidRequest, "not JSON"),
    "duplicate_key": (InvalidRequest, "same key twice"),
    "number": (InvalidRequest, "not an integer"),
    "integer_range": (InvalidRequest, "beyond"),
    "surrogate": (InvalidRequest, "lone surrogate"),
    "key_range": (InvalidRequest, "U+D800"),
    "too_deep": (TooLarge, "nested deeper"),
}


def named(vectors):
    return [pytest.param(vector, id=vector["name"]) for vector in vectors]


def input_of(vector) -> bytes:
    if "hex" in vector:
        return bytes.fromhex(vector["hex"])
    if "repeat" in vector:
        return "".join(text * count for text, count in vector["repeat"]).encode()
    return vector["input"].encode()


# --- the vectors, read by writer, auditor and an independent implementation ---------------------------------------------


@pytest.mark.parametrize("vector", named(CANONICAL["accept"]))
def test_an_accepted_text_is_its_own_canonical_form_for_everybody(vector):
    raw = vector["bytes"].encode()
    value = canonical.parse(raw)
    assert canonical.encode(value) == raw
    assert auditor_encode(read_canonical(raw)) == raw
    assert rfc8785.dumps(value) == raw


@pytest.mark.parametrize("vector", named(CANONICAL["reads"]))
def test_a_readable_text_in_another_form_is_read_by_the_reader_and_refused_by_the_auditor(vector):
    raw = input_of(vector)
    assert canonical.encode(canonical.parse(raw)) == vector["bytes"].encode()
    with pytest.raises(Fault):
        read_canonical(raw)


@pytest.mark.parametrize("vector", named(CANONICAL["reject"]))
def test_a_rejected_text_is_refused_by_everybody_for_its_reason(vector):
    kind, message = CLASSES[vector["class"]]
    with pytest.raises(kind, match=message.replace("+", r"\+")):
        canonical.parse(input_of(vector))
    with pytest.raises(Fault):
        read_canonical(input_of(vector))


def test_every_class_of_refusal_has_a_vector():
    assert {vector["class"] for vector in CANONICAL["reject"]} == set(CLASSES)


@pytest.mark.parametrize("vector", DIGESTS)
def test_digests_put_the_domain_and_a_zero_byte_first(vector):
    data = vector["bytes"].encode()
    assert canonical.digest(vector["domain"], data) == vector["digest"]
    assert digest(vector["domain"].encode() + b"\x00", data) == vector["digest"]
    assert hashlib.sha256(vector["domain"].encode() + b"\x00" + data).hexdigest() == vector["digest"]


def test_the_same_bytes_under_two_domains_have_two_digests():
    assert len({vector["digest"] for vector in DIGESTS}) == len(DIGESTS)


# --- what has no canonical form -----------------------------------------------------------------------------------------


class _Text(str):
    __slots__ = ()


class _Number(int):
    pass


class _Choice(enum.Enum):
    A = "a"


@pytest.mark.parametrize(
    "value",
    [
        1.0, float("nan"), float("inf"), 2**53, -(2**53), "\ud800", "a\udfff", b"bytes", {1, 2}, object(), _Choice.A,
        _Text("x"), _Number(1), OrderedDict(a=1), {1: 2}, {None: 1}, {_Text("a"): 1}, {"\ue000": 1}, {"\U0001f600": 1}, {"\ud800": 1},
        {"a": [{"b": (1.5,)}]}, [[["\ud800"]]], {"a": {"b": 2**53}},
    ],
)  # fmt: skip
def test_a_value_outside_the_domain_is_refused_wherever_it_stands(value):
    for wrapped in (value, [value], {"a": value}, {"a": [{"b": value}]}, (0, value)):
        with pytest.raises(InvalidRequest):
            canonical.encode(wrapped)


@pytest.mark.parametrize("wrap", [lambda inner: [inner], lambda inner: {"a": inner}, lambda inner: (inner,)])
def test_the_deepest_value_is_written_and_one_level_more_is_not(wrap):
    value = 0
    for _ in range(limits.JSON_DEPTH_MAX):
        value = wrap(value)
    assert canonical.parse(canonical.encode(value)) is not None
    with pytest.raises(TooLarge):
        canonical.encode(wrap(value))


def test_a_value_that_holds_itself_is_refused():
    value: list = []
    value.append(value)
    with pytest.raises(TooLarge):
        canonical.encode(value)


def test_the_widest_input_is_read_and_one_value_more_is_not():
    most = limits.JSON_NODES_MAX
    assert len(canonical.parse(b"[" + b"0," * (most - 2) + b"0]")) == most - 1
    for wide in (b"[" + b"0," * (most - 1) + b"0]", b"{" + b",".join(b'"%d":0' % n for n in range(most)) + b"}"):
        with pytest.raises(TooLarge):
            canonical.parse(wide)


def test_input_at_its_limit_is_read_and_one_byte_more_is_not():
    assert canonical.parse(b'"1234"', bytes_max=6) == "1234"
    with pytest.raises(TooLarge):
        canonical.parse(b'"12345"', bytes_max=6)
    with pytest.raises(TooLarge):
        canonical.parse(b" " * (limits.REQUEST_BYTES_MAX + 1))


def test_the_largest_integers_are_read_and_written():
    for number in (limits.INTEGER_MAX, -limits.INTEGER_MAX):
        assert canonical.parse(canonical.encode(number)) == number


# --- records ------------------------------------------------------------------------------------------------------------


class _Sample(Record, frozen=True, kw_only=True):
    b: int
    a: str | None = None
    c: tuple[int, ...] = ()


def test_a_record_leaves_out_what_is_at_its_default():
    assert canonical.encode_record(_Sample(b=1)) == b'{"b":1}'
    assert canonical.encode_record(_Sample(b=1, c=(2,), a="x")) == b'{"a":"x","b":1,"c":[2]}'
    assert canonical.hash_record("surehand/x/v1", _Sample(b=1)) == canonical.digest("surehand/x/v1", b'{"b":1}')
    assert canonical.hash_value("surehand/x/v1", {"b": 1}) == canonical.digest("surehand/x/v1", b'{"b":1}')


def test_every_error_of_the_reader_is_typed_and_names_nothing_of_the_input_at_length():
    for data in (b"{" + b"x" * 10_000, b"1" * 400, b'"' + b"\xff" * 100):
        with pytest.raises(SurehandError) as refused:
            canonical.parse(data)
        assert len(refused.value.message) < 200


def test_msgspec_structs_are_no_plain_values():
    with pytest.raises(InvalidRequest):
        canonical.encode(_Sample(b=1))
    assert msgspec.to_builtins(_Sample(b=1)) == {"b": 1}
