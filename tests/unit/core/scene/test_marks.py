"""What is marked in a picture: what can be acted upon and shows, once, where it shows."""

from __future__ import annotations

from typing import Any

from surehand import limits
from surehand.core.scene.marks import Marks, marks_of
from surehand.model.scene import Bounds, Capture, Scene
from tests.scene_kit import El, Watcher


def scene_of(*elements: El) -> Scene:
    return Watcher(El("window", "W", *elements, bounds=(100, 50, 400, 300))).observe()


def capture(bounds: Bounds = (100, 50, 400, 300), scale: int = 1000) -> Capture:
    x, y, width, height = bounds
    size = (width * scale // 1000, height * scale // 1000)
    return Capture(
        capture_id="c" * 24,
        surface_id="w1",
        origin_x=x,
        origin_y=y,
        width=size[0],
        height=size[1],
        scale_milli=scale,
        taken_at_ms=0,
    )


def named(scene: Scene, marks: Marks) -> list[str]:
    return [scene.tree.nodes[mark.place].name for mark in marks.marks]


def button(name: str, bounds: Bounds | None, **fields: Any) -> El:
    return El("button", name, bounds=bounds, **fields)


def test_boxes_are_in_the_pictures_pixels() -> None:
    scene = scene_of(button("A", (110, 60, 80, 20)))
    (mark,) = marks_of(scene, capture()).marks
    assert (mark.box, mark.cut) == ((10, 10, 90, 30), False)
    (mark,) = marks_of(scene, capture(scale=2000)).marks
    assert mark.box == (20, 20, 180, 60)


def test_what_lies_outside_is_named_and_not_marked() -> None:
    scene = scene_of(
        button("In", (110, 60, 80, 20)), button("Below", (110, 350, 80, 20)), button("Left", (20, 60, 80, 20))
    )
    found = marks_of(scene, capture())
    assert named(scene, found) == ["In"]
    assert [scene.tree.nodes[index].name for index in found.outside] == ["Below", "Left"]


def test_what_lies_partly_outside_is_cut_at_the_edge_and_says_so() -> None:
    scene = scene_of(button("Half", (480, 60, 80, 20)))
    (mark,) = marks_of(scene, capture()).marks
    assert (mark.box, mark.cut) == ((380, 10, 400, 30), True)
    # By one pixel it is not cut, by one it is.
    (mark,) = marks_of(scene_of(button("B", (420, 60, 80, 20))), capture()).marks
    assert (mark.box[2], mark.cut) == (400, False)
    (mark,) = marks_of(scene_of(button("B", (421, 60, 80, 20))), capture()).marks
    assert (mark.box[2], mark.cut) == (400, True)
    assert not marks_of(scene_of(button("B", (500, 60, 80, 20))), capture()).marks


def test_what_is_scrolled_out_of_its_pane_is_outside() -> None:
    pane = El(
        "scrollpane",
        "",
        button("Seen", (110, 60, 80, 20)),
        button("Part", (110, 140, 80, 20)),
        button("Gone", (110, 200, 80, 20)),
        bounds=(110, 60, 100, 90),
    )
    scene = scene_of(pane)
    found = marks_of(scene, capture())
    assert named(scene, found) == ["Seen", "Part"]
    assert found.marks[1].box == (10, 90, 90, 100)
    assert [scene.tree.nodes[index].name for index in found.outside] == ["Gone"]


def test_only_what_can_be_used_now_is_marked() -> None:
    place = (110, 60, 80, 20)
    scene = scene_of(
        button("Off", place, states=frozenset({"showing", "visible"})),
        button("Hidden", place, states=frozenset({"enabled", "visible"})),
        button("Nowhere", None),
        El("label", "Text", bounds=place),
        El("pane", "Pane", bounds=place, capabilities=frozenset({"focus", "invoke"})),
        El("password", "Secret", bounds=place, secret=True, capabilities=frozenset({"focus", "set_text"})),
    )
    assert named(scene, marks_of(scene, capture())) == ["Secret"]


def test_a_control_and_its_parts_are_one() -> None:
    inner = El("togglebutton", "Inner", bounds=(116, 62, 60, 16))
    scene = scene_of(El("combobox", "Outer", inner, bounds=(110, 60, 80, 20)))
    assert named(scene, marks_of(scene, capture())) == ["Outer"]
    # Where only the part acts, it is the part.
    holder = El("button", "Outer", inner, bounds=(110, 60, 80, 20), capabilities=frozenset({"point"}))
    scene = scene_of(holder)
    assert named(scene, marks_of(scene, capture())) == ["Inner"]
    # A field in a row is not the row.
    field = El("text", "Field", bounds=(120, 62, 40, 16))
    scene = scene_of(El("listitem", "Row", field, bounds=(110, 60, 80, 20), capabilities=frozenset({"select"})))
    assert named(scene, marks_of(scene, capture())) == ["Row", "Field"]


def test_a_row_of_cells_has_one_mark() -> None:
    cells = [
        El("cell", f"{row}{column}", row=row, column=column, bounds=(110 + 50 * column, 60 + 20 * row, 50, 20),
           capabilities=frozenset({"select", "point"}))
        for row in range(2)
        for column in range(3)
    ]  # fmt: skip
    scene = scene_of(El("table", "T", *cells, bounds=(110, 60, 300, 200)))
    assert named(scene, marks_of(scene, capture())) == ["00", "10"]


def test_what_another_window_covers_is_outside() -> None:
    scene = scene_of(button("Free", (110, 60, 80, 20)), button("Covered", (300, 60, 80, 20)))
    found = marks_of(scene, capture(), lambda place: place[0] < 300)
    assert named(scene, found) == ["Free"]
    assert len(found.outside) == 1


def test_there_are_no_more_marks_than_the_limit() -> None:
    for extra in (0, 1):
        count = limits.MARKS_MAX + extra
        scene = scene_of(*(button(f"B{n}", (110 + n % 20 * 15, 60 + n // 20 * 15, 12, 12)) for n in range(count)))
        found = marks_of(scene, capture())
        assert (len(found.marks), found.more) == (limits.MARKS_MAX, extra)
