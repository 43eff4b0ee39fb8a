"""What lies on an element is what is painted later, shows at the place, and takes the click (case C30)."""

from __future__ import annotations

import pytest

from surehand.core.scene.covering import TAKES_CLICKS, covering
from surehand.model.scene import Bounds, Node, Tree

SHOWN = frozenset({"showing"})
PLACE = (50, 50)


def node(name: str, bounds: Bounds | None, role: str = "button", states: frozenset[str] = SHOWN) -> Node:
    return Node(handle=name, role=role, name=name, bounds=bounds, states=states)


def tree(*more: tuple[Node, int]) -> Tree:
    """Return a window (0) with the element that is to be clicked (1), its label (2), and more."""
    nodes = [node("W", (0, 0, 400, 400), "window"), node("under", (0, 0, 100, 100)), node("its own", None, "label")]
    return Tree(
        nodes=(*nodes, *(one for one, _ in more)), parents=(-1, 0, 1, *(parent for _, parent in more)), version=1
    )


def over(made: Tree, place: tuple[int, int] = PLACE) -> str | None:
    found = covering(made, 1, place, TAKES_CLICKS)
    return None if found is None else found.name


def test_the_last_painted_of_what_takes_the_click_is_on_top():
    made = tree((node("first", (0, 0, 80, 80)), 0), (node("last", (40, 40, 20, 20)), 0))
    assert over(made) == "last"
    assert over(made, (70, 70)) == "first"
    assert covering(made, 4, PLACE) is None


@pytest.mark.parametrize(
    ("place", "covered"), [((40, 40), True), ((59, 59), True), ((60, 59), False), ((39, 40), False)]
)
def test_a_place_at_the_edge_is_covered_and_one_past_it_is_not(place, covered):
    assert (over(tree((node("over", (40, 40, 20, 20)), 0)), place) is not None) is covered


@pytest.mark.parametrize(
    "more",
    [
        [(node("inside", (40, 40, 20, 20)), 1)],
        [(node("hidden", (40, 40, 20, 20), states=frozenset()), 0)],
        [(node("no place", None), 0)],
        [(node("layout", (0, 0, 400, 400), "group"), 0)],
        [(node("scrolled", (0, 60, 100, 300), "pane"), 0), (node("out of it", (0, 0, 100, 90)), 3)],
    ],
    ids=["a part of it", "hidden", "without a place", "layout", "scrolled out of its area"],
)
def test_what_takes_no_click_there_covers_nothing(more):
    assert over(tree(*more)) is None


def test_everything_counts_where_no_roles_are_named():
    found = covering(tree((node("veil", (0, 0, 400, 400), "group"), 0)), 1, PLACE)
    assert found is not None
    assert found.name == "veil"


@pytest.mark.parametrize(("role", "name"), [("combobox", None), ("menu", None), ("list", "over")])
def test_nothing_of_its_window_lies_over_what_a_combo_box_or_menu_has_opened(role, name):
    made = tree(
        (node("opened", (0, 0, 100, 100), role), 0),
        (node("option", (0, 0, 100, 100), "listitem"), 3),
        (node("over", (0, 0, 100, 100)), 0),
    )
    found = covering(made, 4, PLACE, TAKES_CLICKS)
    assert (found and found.name) == name
