"""Which table is meant, and its rows out of elements, in the builds that toolkits have."""

from __future__ import annotations

import pytest

from surehand import limits
from surehand.core.scene.tables import rows_of, table_at
from surehand.core.scene.tree import index_of
from surehand.errors import AmbiguousTarget, TargetNotFound, UnsupportedAction
from surehand.model.scene import Scene
from surehand.model.tables import TableSlice
from tests.scene_kit import El, Watcher

GIVEN = (("Widget", "3"), ("Gadget", "5"), ("Gizmo", "7"))


def flat() -> El:
    """Cells and headers below the table, as GTK 3 and Qt have them."""
    heads = [El("columnheader", title, column=column) for column, title in enumerate(("Item", "Quantity"))]
    cells = [
        El("cell", text, row=row, column=column) for row, line in enumerate(GIVEN) for column, text in enumerate(line)
    ]
    counts = [El("rowheader", str(row + 1), row=row) for row in range(3)]
    return El("table", "Stock", *heads, *counts, *cells)


def nested() -> El:
    """A row of titles, and a list of rows of cells of labels, as GTK 4 has them."""
    titles = [
        El("filler", "", El("group", "", El("label", title)), row=0, column=i)
        for i, title in enumerate(("Item", "Quantity"))
    ]
    rows = [
        El("row", "", *[El("cell", "", El("label", text), row=row, column=i) for i, text in enumerate(line)], row=row)
        for row, line in enumerate(GIVEN)
    ]
    return El("tree", "Stock", El("row", "", *titles, row=0), El("list", "", *rows))


def scene_of(*elements: El) -> Scene:
    return Watcher(El("window", "W", *elements)).observe()


def rows(scene: Scene, table: int, start: int = 0, count: int = 50, *, virtual: bool = False) -> TableSlice:
    return rows_of(scene.tree, table, start, count, virtual=virtual)


@pytest.mark.parametrize("build", [flat, nested])
def test_a_table_is_its_titles_and_rows(build: object) -> None:
    scene = scene_of(build())  # type: ignore[operator]
    found = rows(scene, table_at(scene, None))
    assert found.columns == ("Item", "Quantity")
    assert found.rows == GIVEN
    assert (found.total_rows, found.total_columns, found.row_start) == (3, 2, 0)


@pytest.mark.parametrize("build", [flat, nested])
def test_pages_are_parts_of_the_whole(build: object) -> None:
    scene = scene_of(build())  # type: ignore[operator]
    table = table_at(scene, None)
    for start in range(5):
        for count in (1, 2, 3, 50):
            found = rows(scene, table, start, count)
            assert found.rows == GIVEN[start : start + count]
            assert found.total_rows == 3


@pytest.mark.parametrize("build", [flat, nested])
def test_whatever_stands_in_a_table_names_it(build: object) -> None:
    scene = scene_of(build(), El("button", "Out"))  # type: ignore[operator]
    nodes = scene.tree.nodes
    table = next(index for index, node in enumerate(nodes) if node.name == "Stock")
    for index in range(table, index_of(scene.tree).ends[table]):
        assert table_at(scene, index) == table
    with pytest.raises(UnsupportedAction):
        table_at(scene, len(nodes) - 1)


def test_a_table_comes_before_lists_and_several_are_named() -> None:
    scene = scene_of(El("list", "Fruit", El("listitem", "apple")), flat())
    assert scene.tree.nodes[table_at(scene, None)].name == "Stock"
    scene = scene_of(flat(), flat())
    with pytest.raises(AmbiguousTarget) as caught:
        table_at(scene, None)
    assert len(caught.value.observed["candidates"]) == 2
    with pytest.raises(TargetNotFound):
        table_at(scene_of(El("button", "No")), None)


def test_rows_of_a_list_show_their_texts_and_ticks_but_no_buttons() -> None:
    items = [
        El(
            "listitem",
            "",
            El("label", name),
            El("checkbox", "Done", states=frozenset({"showing", *extra})),
            El("button", "Open"),
        )
        for name, extra in (("a", ()), ("b", ("checked",)))
    ]
    scene = scene_of(El("list", "Tasks", *items))
    assert rows(scene, 1).rows == (("a", False), ("b", True))


def test_a_secret_is_in_no_cell() -> None:
    hidden = El("password", "", value="hunter2", secret=True)
    scene = scene_of(
        El("list", "Keys", El("listitem", "", El("label", "mail"), hidden)),
        El("table", "T", El("cell", "hunter2", row=0, column=0, secret=True)),
    )
    assert rows(scene, 1).rows == (("mail", None),)
    assert rows(scene, 5).rows == ((None,),)


def test_items_inside_items_are_rows_of_their_own() -> None:
    leaf = [El("treeitem", name) for name in ("Cat", "Dog")]
    scene = scene_of(El("tree", "Species", El("treeitem", "", El("label", "Animals"), *leaf), El("treeitem", "Plants")))
    assert [row[0] for row in rows(scene, 1).rows] == ["Animals", "Cat", "Dog", "Plants"]


def test_how_many_there_are_is_not_said_where_it_is_not_known() -> None:
    scene = scene_of(flat())
    assert rows(scene, 1, virtual=True).total_rows is None
    cut = flat()
    cut.set(incomplete=True)
    assert rows(scene_of(cut), 1).total_rows is None


def test_selected_rows_are_named_by_their_numbers() -> None:
    table = flat()
    table.children[-1].add_states("selected")
    scene = scene_of(table)
    assert rows(scene, 1).selected == (2,)
    assert rows(scene, 1, 0, 2).selected == ()


def test_a_page_has_no_more_cells_than_its_limit() -> None:
    wide = limits.TABLE_COLUMNS_MAX + 1
    cells = [El("cell", "x", row=row, column=column) for row in range(25) for column in range(wide)]
    found = rows(scene_of(El("table", "Wide", *cells)), 1)
    assert len(found.columns) == limits.TABLE_COLUMNS_MAX
    assert found.total_columns == wide
    assert len(found.rows) == limits.TABLE_CELLS_MAX // limits.TABLE_COLUMNS_MAX
