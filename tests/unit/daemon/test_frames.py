"""Frames under attack: sizes, pieces, garbage."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surehand import limits
from surehand.core.wire.frames import FrameReader, frame
from surehand.errors import InvalidRequest, TooLarge


def bodies(reader: FrameReader) -> list[bytes]:
    found = []
    while (body := reader.next_body()) is not None:
        found.append(body)
    return found


def test_a_frame_is_a_big_endian_length_and_its_json() -> None:
    assert frame({"a": 1}) == b'\x00\x00\x00\x07{"a":1}'


@given(st.lists(st.binary(min_size=1, max_size=200), max_size=20), st.integers(1, 64))
def test_any_cutting_of_the_stream_gives_the_same_frames(sent: list[bytes], piece: int) -> None:
    stream = b"".join(struct.pack(">I", len(body)) + body for body in sent)
    reader, found = FrameReader(1000), []
    for start in range(0, len(stream), piece):
        reader.feed(stream[start : start + piece])
        found += bodies(reader)
    assert found == sent
    assert reader.waiting == 0


@given(st.binary(max_size=400))
def test_random_bytes_never_do_worse_than_a_typed_refusal(data: bytes) -> None:
    reader = FrameReader(100)
    reader.feed(data)
    try:
        for body in bodies(reader):
            assert 1 <= len(body) <= 100
    except (InvalidRequest, TooLarge):
        pass


def test_several_frames_and_a_part_of_the_next_in_one_piece() -> None:
    reader = FrameReader(100)
    reader.feed(frame({"a": 1}) + frame({"b": 2}) + frame({"c": 3})[:6])
    assert bodies(reader) == [b'{"a":1}', b'{"b":2}']
    reader.feed(frame({"c": 3})[6:])
    assert bodies(reader) == [b'{"c":3}']


def test_a_zero_length_is_refused() -> None:
    reader = FrameReader(100)
    reader.feed(b"\x00\x00\x00\x00")
    with pytest.raises(InvalidRequest):
        reader.next_body()


@pytest.mark.parametrize("most", [1, 100, limits.HELLO_BYTES_MAX])
def test_the_limit_itself_passes_and_one_more_is_refused_from_its_header_alone(most: int) -> None:
    reader = FrameReader(most)
    reader.feed(struct.pack(">I", most) + b"x" * most)
    assert bodies(reader) == [b"x" * most]
    reader.feed(struct.pack(">I", most + 1))
    with pytest.raises(TooLarge):
        reader.next_body()
    assert reader.waiting == 4


def test_a_frame_that_is_too_large_to_send_is_refused_before_a_byte_is_sent() -> None:
    assert len(frame("x" * 8, bytes_max=10)) == 14
    with pytest.raises(TooLarge):
        frame("x" * 9, bytes_max=10)
