"""Options, entries and scroll bars are found where a person would see them, or not at all."""

from __future__ import annotations

import pytest

from surehand.adapters.atspi.acting_tree import Family
from surehand.errors import AmbiguousTarget, StaleTarget, TargetNotFound
from surehand.model.scene import Node, Tree


def _tree(*lines: tuple[int, str, str, dict]) -> Family:
    """Build a tree from (depth, role, name, more) lines; handles are numbers."""
    nodes, parents, path = [], [], []
    for number, (depth, role, name, more) in enumerate(lines):
        del path[depth:]
        parents.append(path[-1] if path else -1)
        path.append(number)
        nodes.append(Node(handle=str(number), role=role, name=name, **more))
    return Family(Tree(nodes=tuple(nodes), parents=tuple(parents), version=1))


def test_options_of_a_closed_combo_box_are_found_below_its_menu():
    family = _tree(
        (0, "combobox", "Colour", {}), (1, "menu", "", {}), (2, "menuitem", "red", {}), (2, "menuitem", "blue", {})
    )
    option = family.option("0", "blue")
    assert (option.node.handle, option.container.handle, option.position) == ("3", "1", 1)


def test_an_unnamed_item_goes_by_its_first_label():
    family = _tree(
        (0, "list", "", {}),
        (1, "listitem", "", {}),
        (2, "filler", "", {}),
        (3, "label", "apple", {}),
        (3, "label", "3 €", {}),
    )
    option = family.option("0", "apple")
    assert (option.node.handle, option.label.handle) == ("1", "3")
    with pytest.raises(TargetNotFound):
        family.option("0", "3 €")


def test_a_tab_goes_by_its_label_when_all_are_called_tab():
    family = _tree(
        (0, "tablist", "", {}),
        (1, "tab", "Tab", {}),
        (2, "label", "One", {}),
        (1, "tab", "Tab", {}),
        (2, "label", "Two", {}),
    )
    assert family.option("0", "Two").position == 1
    with pytest.raises(AmbiguousTarget) as caught:
        family.option("0", "Tab")
    assert caught.value.observed["candidates"] == ["1. Tab / One", "2. Tab / Two"]


def test_a_row_is_one_option_and_its_cells_are_none():
    family = _tree(
        (0, "list", "", {}), (1, "row", "", {}), (2, "cell", "", {}), (3, "label", "Gizmo", {}), (2, "cell", "", {}),
        (3, "label", "7", {}),
    )  # fmt: skip
    assert family.option("0", "Gizmo").node.handle == "1"
    with pytest.raises(TargetNotFound):
        family.option("0", "7")


def test_flat_cells_are_one_option_per_row():
    family = _tree(
        (0, "table", "", {}),
        *((1, "cell", name, {"row": row, "column": column}) for row, column, name in
          ((0, 0, "a"), (0, 1, "same"), (1, 0, "b"), (1, 1, "same"))),
    )  # fmt: skip
    assert family.option("0", "b").node.row == 1
    with pytest.raises(TargetNotFound):
        family.option("0", "same")


@pytest.mark.parametrize("name", ["Apple", "apple ", "app", ""])
def test_an_option_needs_its_exact_name(name):
    family = _tree((0, "list", "", {}), (1, "listitem", "apple", {}), (1, "listitem", "", {}))
    with pytest.raises(TargetNotFound):
        family.option("0", name)


def test_options_deeper_than_a_menu_are_not_looked_for():
    family = _tree((0, "menubar", "", {}), (1, "menu", "File", {}), (2, "menuitem", "Quit", {}))
    with pytest.raises(TargetNotFound):
        family.option("0", "Quit")


def test_what_is_not_in_the_tree_is_stale():
    family = _tree((0, "list", "", {}))
    for ask in (lambda: family.option("9", "x"), lambda: family.itself("9"), lambda: family.itself("0")):
        with pytest.raises(StaleTarget):
            ask()


def test_a_combo_box_has_an_entry_only_if_there_is_one():
    editable = {"capabilities": frozenset({"set_text"})}
    assert _tree((0, "combobox", "", {}), (1, "text", "", editable)).entry("0").handle == "1"
    assert _tree((0, "combobox", "", {}), (1, "menu", "", {})).entry("0") is None
    assert _tree((0, "combobox", "", {}), (1, "text", "", editable), (1, "text", "", editable)).entry("0") is None


_SHOWN = {"value": "0", "states": frozenset({"showing", "vertical"})}


def test_the_nearest_scroll_bar_is_taken_also_from_its_own_container():
    family = _tree(
        (0, "window", "", {}),
        (1, "scrollpane", "", {}), (2, "pane", "", {}), (3, "filler", "", {}), (4, "button", "far", {}),
        (2, "filler", "", {}), (3, "scrollbar", "", _SHOWN),
    )  # fmt: skip
    assert family.scrollbar("4", "vertical").handle == "6"
    assert family.scrollbar("6", "vertical").handle == "6"
    assert family.scrollbar("4", "horizontal") is None


def test_a_neighbours_scroll_bar_is_not_taken():
    family = _tree(
        (0, "window", "", {}), (1, "button", "here", {}), (1, "scrollpane", "", {}), (2, "text", "", {}),
        (2, "scrollbar", "", _SHOWN),
    )  # fmt: skip
    assert family.scrollbar("1", "vertical") is None


def test_a_bar_that_keeps_its_value_one_level_down_is_understood():
    family = _tree((0, "group", "", {}), (1, "button", "x", {}), (1, "scrollbar", "", {}), (2, "filler", "", _SHOWN))
    assert family.scrollbar("1", "vertical").handle == "3"


def test_a_bar_without_a_stated_direction_is_known_by_its_shape():
    tall = {"value": "0", "states": frozenset({"showing"}), "bounds": (0, 0, 10, 100)}
    family = _tree((0, "scrollpane", "", {}), (1, "scrollbar", "", tall))
    assert family.scrollbar("0", "vertical").handle == "1"
    assert family.scrollbar("0", "horizontal") is None
