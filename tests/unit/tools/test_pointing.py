"""Places of a delivered picture are places of the one that was taken, exactly."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surehand import limits
from surehand.errors import InvalidRequest
from surehand.model.record import convert
from surehand.model.targets import PointTarget
from surehand.tools.encoding import fitted
from surehand.tools.pointing import delivered_id, point, to_delivered, to_taken

CAPTURE = "0123456789abcdef01234567"
sides = st.integers(1, limits.DESKTOP_SIDE_MAX)


@given(sides, st.data())
def test_a_delivered_place_comes_back_from_the_taken_one(taken: int, data: st.DataObject) -> None:
    delivered = data.draw(st.integers(1, taken))
    place = data.draw(st.integers(0, delivered - 1))
    there = to_taken(place, delivered, taken)
    assert 0 <= there < taken
    assert to_delivered(there, taken, delivered) == place


@given(sides, sides, st.integers(limits.PICTURE_EDGE_MIN, limits.DESKTOP_SIDE_MAX), st.data())
def test_the_id_carries_the_mapping(width: int, height: int, edge: int, data: st.DataObject) -> None:
    size = fitted(width, height, edge)
    name = delivered_id(CAPTURE, (width, height), size)
    x, y = data.draw(st.integers(0, size[0] - 1)), data.draw(st.integers(0, size[1] - 1))
    target = point(name, x, y)
    convert(PointTarget, {**target})
    assert target["capture_id"] == CAPTURE
    assert (target["x"], target["y"]) == (to_taken(x, size[0], width), to_taken(y, size[1], height))
    assert 0 <= target["x"] < width
    assert 0 <= target["y"] < height


@given(sides, sides, st.integers(limits.PICTURE_EDGE_MIN, limits.DESKTOP_SIDE_MAX))
def test_fitting_never_enlarges_and_keeps_proportions(width: int, height: int, edge: int) -> None:
    got = fitted(width, height, edge)
    assert max(got) == min(edge, max(width, height))
    assert min(got) >= 1
    if max(width, height) > edge and min(got) > 1:
        assert abs(got[0] * height - got[1] * width) <= max(width, height)


def test_the_boundary_is_not_shrunk() -> None:
    edge = limits.PICTURE_EDGE_DEFAULT
    assert fitted(edge, 10, edge) == (edge, 10)
    assert fitted(edge + 1, 10, edge) == (edge, 10)
    assert delivered_id(CAPTURE, (edge, 10), (edge, 10)) == CAPTURE


def test_an_unscaled_picture_and_other_spaces_pass_as_they_are() -> None:
    scaled = delivered_id(CAPTURE, (1200, 700), (600, 350))
    assert point(CAPTURE, 7, 8) == {"kind": "point", "space": "screenshot", "x": 7, "y": 8, "capture_id": CAPTURE}
    assert (point(scaled, 7, 8)["x"], point(scaled, 7, 8)["y"]) == (15, 17)
    for space in ("window", "desktop"):
        target = point(scaled, -7, 8, space)
        assert (target["x"], target["y"], target["capture_id"]) == (-7, 8, CAPTURE)


@pytest.mark.parametrize(("x", "y"), [(600, 0), (0, 350), (-1, 0), (0, -1)])
def test_a_place_one_past_the_delivered_picture_is_refused(x: int, y: int) -> None:
    scaled = delivered_id(CAPTURE, (1200, 700), (600, 350))
    point(scaled, 599, 349)
    with pytest.raises(InvalidRequest):
        point(scaled, x, y)


@pytest.mark.parametrize(
    "tail", [".", ".1x1", ".0x1-1x1", ".1x1-1x0", ".99999x1-1x1", ".1x1-1x1 ", ".-1x1-1x1", ".١x1-1x1"]
)
def test_a_forged_id_is_refused(tail: str) -> None:
    with pytest.raises(InvalidRequest):
        point(CAPTURE + tail, 0, 0)
