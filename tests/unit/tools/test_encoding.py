"""Delivered pictures, decoded again: format, size, caps, and what marks leave visible."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageDraw

from surehand import limits
from surehand.errors import TooLarge
from surehand.tools.drawing import Box, Drawn, place_tags
from surehand.tools.encoding import MIME, Format, Wish, deliver

BIG = limits.PICTURE_BYTES_MAX


def picture(width: int, height: int, seed: int | None = None) -> tuple[Image.Image, bytes]:
    if seed is None:
        image = Image.new("RGB", (width, height), (240, 240, 240))
        ImageDraw.Draw(image).rectangle((width // 4, height // 4, width // 2, height // 2), fill=(200, 30, 40))
    else:
        noise = np.random.default_rng(seed).integers(0, 255, (height, width, 3), dtype=np.uint8)
        image = Image.fromarray(noise)
    out = io.BytesIO()
    image.save(out, "PNG")
    return image, out.getvalue()


def opened(data: bytes) -> Image.Image:
    with Image.open(io.BytesIO(data)) as image:
        image.load()
        return image


@pytest.mark.parametrize("kind", list(MIME))
def test_each_format_shows_what_was_taken(kind: Format) -> None:
    whole, png = picture(300, 200)
    got = deliver(png, Wish(kind, 90, 1568, BIG))
    image = opened(got.data)
    assert (image.format or "").lower() == kind
    assert image.size == (got.width, got.height) == whole.size
    worst = np.abs(np.asarray(image.convert("RGB"), np.int16) - np.asarray(whole, np.int16))
    assert worst.mean() < (0.01 if kind == "png" else 2)


def test_png_is_lossless_and_small_pictures_are_not_enlarged() -> None:
    whole, png = picture(64, 48, seed=1)
    got = deliver(png, Wish("png", 75, limits.DESKTOP_SIDE_MAX, BIG))
    assert np.array_equal(np.asarray(opened(got.data)), np.asarray(whole))


def test_the_long_edge_is_kept_to() -> None:
    _, png = picture(2000, 500)
    for edge in (limits.PICTURE_EDGE_MIN, 100, 1999, 2000):
        got = deliver(png, Wish("png", 75, edge, BIG))
        assert max(got.width, got.height) == edge
        assert opened(got.data).size == (got.width, got.height)


@pytest.mark.parametrize("kind", list(MIME))
def test_it_shrinks_until_the_bytes_fit(kind: Format) -> None:
    _, png = picture(700, 500, seed=2)
    whole = deliver(png, Wish(kind, 75, 1568, BIG))
    for cap in (len(whole.data), len(whole.data) - 1, 20_000, 2_000):
        got = deliver(png, Wish(kind, 75, 1568, cap))
        assert len(got.data) <= cap
        assert (got.width == 700) == (cap == len(whole.data))
        # Not far smaller than it had to be.
        assert len(got.data) > cap / 3


def test_a_cap_that_nothing_meets_is_a_typed_error() -> None:
    _, png = picture(400, 400, seed=3)
    with pytest.raises(TooLarge) as caught:
        deliver(png, Wish("png", 75, 1568, 64))
    assert caught.value.fix


def test_what_is_no_png_is_not_opened() -> None:
    out = io.BytesIO()
    Image.new("RGB", (8, 8)).save(out, "GIF")
    with pytest.raises(OSError, match="identify"):
        deliver(out.getvalue(), Wish("png", 75, 100, BIG))


def test_marks_are_drawn_where_they_stand_also_on_a_smaller_picture() -> None:
    _, png = picture(400, 300)
    marks = [Drawn("e1", (40, 40, 140, 100)), Drawn("e2", (240, 160, 360, 260))]
    for edge in (400, 200):
        plain = np.asarray(opened(deliver(png, Wish("png", 75, edge, BIG)).data), np.int16)
        drawn = np.asarray(opened(deliver(png, Wish("png", 75, edge, BIG), marks).data), np.int16)
        changed = np.abs(plain - drawn).sum(axis=2) > 30
        factor = edge / 400
        for mark in marks:
            left, top, right, bottom = (round(side * factor) for side in mark.box)
            sides = (
                changed[top, left:right],
                changed[bottom - 1, left:right],
                changed[top:bottom, left],
                changed[top:bottom, right - 1],
            )
            # But for the letters of a tag, which lies on one of the corners.
            assert min(side.mean() for side in sides) > 0.4
            assert sorted(side.mean() for side in sides)[2] > 0.8
        # Nothing far from any mark is touched.
        assert not changed[: round(15 * factor)].any()


@pytest.mark.parametrize("shade", [0, 90, 128, 190, 255])
def test_tags_stand_out_on_any_background(shade: int) -> None:
    image = Image.new("RGB", (200, 100), (shade, shade, shade))
    out = io.BytesIO()
    image.save(out, "PNG")
    got = opened(deliver(out.getvalue(), Wish("png", 75, 400, BIG), [Drawn("e17", (50, 20, 180, 80))]).data)
    levels = np.asarray(got.convert("L"), np.int16)
    # Light rim and letters, and a strong colour, whatever is behind.
    assert levels.max() >= 230
    assert levels.min() <= 110
    inside = levels[20:80, 50:180]
    assert (np.abs(inside - shade) > 40).mean() > 0.03


def test_a_side_beyond_the_picture_is_left_open() -> None:
    _, png = picture(200, 100)
    for cut, closed in ((True, False), (False, True)):
        got = deliver(png, Wish("png", 75, 400, BIG), [Drawn("e1", (120, 20, 200, 80), cut)])
        levels = np.asarray(opened(got.data).convert("L"), np.int16)
        assert ((levels[45:75, 199] < 150).mean() > 0.9) == closed


boxes = st.tuples(st.integers(0, 500), st.integers(0, 300), st.integers(1, 200), st.integers(1, 90)).map(
    lambda b: (b[0], b[1], min(640, b[0] + b[2]), min(400, b[1] + b[3]))
)


@settings(max_examples=60, deadline=None)
@given(st.lists(boxes, min_size=1, max_size=25))
def test_every_tag_is_whole_inside_the_picture(found: list[Box]) -> None:
    marks = [Drawn(f"e{number}", box) for number, box in enumerate(found)]
    sizes = [(28, 16)] * len(marks)
    tags = place_tags(marks, sizes, (640, 400))
    assert tags == place_tags(marks, sizes, (640, 400))
    for tag in tags:
        assert tag[0] >= 0
        assert tag[1] >= 0
        assert (tag[2] - tag[0], tag[3] - tag[1]) == (28, 16)
        assert tag[2] <= 640
        assert tag[3] <= 400


def test_tags_of_a_grid_of_small_buttons_do_not_overlap() -> None:
    marks = [
        Drawn(f"e{100 + row * 6 + column}", (20 + column * 44, 20 + row * 30, 58 + column * 44, 46 + row * 30))
        for row in range(6)
        for column in range(6)
    ]
    tags = place_tags(marks, [(34, 16)] * 36, (320, 240))
    for place, one in enumerate(tags):
        for other in tags[:place]:
            apart = one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
            assert apart, (one, other)


def test_a_tag_goes_where_nothing_is_written() -> None:
    mark = Drawn("e1", (100, 100, 300, 160))
    left_half_written = place_tags([mark], [(30, 16)], (400, 300), lambda tag: 200 if tag[0] < 200 else 0)
    right_half_written = place_tags([mark], [(30, 16)], (400, 300), lambda tag: 200 if tag[2] > 200 else 0)
    assert left_half_written[0][0] >= 200
    assert right_half_written[0][2] <= 200
