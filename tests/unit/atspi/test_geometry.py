"""Places: a place that cannot be proven is none (cases C06, C32, C35)."""

from __future__ import annotations

import pytest

from surehand import limits
from surehand.adapters.atspi import geometry
from surehand.adapters.atspi.geometry import AS_IS, NOWHERE, Placement, place_window, scale_between


def place(extents, *, relative=True, found=None):
    return place_window(extents, window_relative=relative, pid=7, title="T", locate=None if found is None else found)


def test_window_relative_extents_have_no_place_until_the_window_is_found():
    assert place((0, 0, 300, 200)) == NOWHERE
    assert place((0, 0, 300, 200), found=lambda *_: None) == NOWHERE
    assert NOWHERE.to_desktop((1, 2, 3, 4)) is None
    assert place(None, found=lambda *_: (1, 2)) == NOWHERE


def test_window_relative_extents_are_moved_to_the_windows_origin():
    asked = []

    def locate(*question):
        asked.append(question)
        return (100, 50)

    placement = place((0, 0, 300, 200), found=locate)
    assert asked == [(7, "T", (300, 200))]
    assert placement.to_desktop((10, 20, 30, 40)) == (110, 70, 30, 40)


def test_scaled_applications_are_placed_in_device_pixels():
    relative = place((0, 0, 300, 200), found=lambda *_: (100, 50, 600, 400))
    assert relative.to_desktop((10, 20, 30, 40)) == (120, 90, 60, 80)
    screen = place((50, 25, 300, 200), relative=False, found=lambda *_: (100, 50, 600, 400))
    assert screen.to_desktop((60, 45, 30, 40)) == (120, 90, 60, 80)


def test_screen_extents_need_no_window():
    assert place((5, 6, 7, 8), relative=False) == AS_IS
    assert AS_IS.to_desktop((5, 6, 7, 8)) == (5, 6, 7, 8)


@pytest.mark.parametrize(
    "extents",
    [(-(2**31), -(2**31), 1, 1), (0, -(2**31), 1, 1), (0, 0, 0, 5), (0, 0, 5, 0), (0, 0, -1, -1), None],
)
def test_what_is_not_placed_has_no_place(extents):
    assert AS_IS.to_desktop(extents) is None


def test_places_end_where_the_window_systems_coordinates_end():
    edge = limits.COORDINATE_MAX
    assert AS_IS.to_desktop((edge, -edge, 1, 1)) == (edge, -edge, 1, 1)
    assert AS_IS.to_desktop((edge + 1, 0, 1, 1)) is None
    assert Placement(origin_x=edge).to_desktop((1, 0, 1, 1)) is None


@pytest.mark.parametrize(
    ("logical", "pixels", "scale"),
    [
        ((300, 200), (300, 200), 1000),
        ((300, 200), (600, 400), 2000),
        ((300, 200), (450, 300), 1500),
        ((301, 201), (376, 251), 1250),
        ((300, 200), (601, 399), 2000),
        ((300, 200), (600, 300), None),
        ((300, 200), (0, 0), None),
        ((10, 10), (200, 200), None),
    ],
)
def test_scales_are_whole_or_quarters_and_fit_both_sides(logical, pixels, scale):
    assert scale_between(logical, pixels) == scale


def test_a_window_of_another_shape_gives_no_scale():
    assert place((0, 0, 300, 200), relative=False, found=lambda *_: (0, 0, 640, 480)) == AS_IS


def test_size_is_what_makes_a_place():
    assert geometry.has_size((0, 0, 1, 1))
    assert not geometry.has_size(None)
