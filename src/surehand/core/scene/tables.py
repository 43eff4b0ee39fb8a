"""Tables in a tree: which one is meant, and its rows where the toolkit gives them as elements.

A row is an item (list item, table row, tree item) or the cells of one row number; its cells are what has a column
number, else its texts in order. What a secret shows is in no cell.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from surehand import limits
from surehand.core.release import is_secret
from surehand.core.scene.describe import describe
from surehand.core.scene.rows import CONTROL_ROLES, ITEM_ROLES, TEXT_ROLES, label_text
from surehand.core.scene.tree import TreeIndex, index_of
from surehand.errors import AmbiguousTarget, TargetNotFound, UnsupportedAction
from surehand.model.scene import Node, Scene, Tree
from surehand.model.tables import Cell, TableSlice

TABLE_ROLES: Final = frozenset({"table", "tree", "list"})
_TICKED: Final = frozenset({"checkbox", "switch", "radio", "togglebutton", "menuitemcheckbox", "menuitemradio"})
_VALUED: Final = frozenset({"combobox", "progressbar", "slider", "spinbutton"})
_CELLS: Final = frozenset({"cell", "rowheader", "filler", "group"})


def table_at(scene: Scene, index: int | None) -> int:
    """Return the table that an element is, or stands in; with None the only one that shows.

    Raises:
        UnsupportedAction: the element is no part of a table.
        TargetNotFound, AmbiguousTarget: none or several show.
    """
    nodes, look = scene.tree.nodes, index_of(scene.tree)
    if index is not None:
        above = (place for place in (index, *look.ancestors(index)) if nodes[place].role in TABLE_ROLES)
        found = next(above, None)
        if found is None:
            raise UnsupportedAction(
                "the element is no table and stands in none", fix="name a table, list or tree, or something in it"
            )
        return _outermost(nodes, look, found)
    shown = [
        place
        for place, node in enumerate(nodes)
        if node.role in TABLE_ROLES and "showing" in node.states and _outermost(nodes, look, place) == place
    ]
    found_tables = [place for place in shown if nodes[place].role != "list"] or shown
    if not found_tables:
        raise TargetNotFound("the window shows no table", fix="observe it")
    if len(found_tables) > 1:
        raise AmbiguousTarget(
            f"the window shows {len(found_tables)} tables",
            fix="name one with target",
            observed={"candidates": [describe(scene, place) for place in found_tables[: limits.CANDIDATES_MAX]]},
        )
    return found_tables[0]


def _outermost(nodes: tuple[Node, ...], look: TreeIndex, place: int) -> int:
    """Some toolkits keep the rows of a table in a list of its own inside it."""
    parent = look.parents[place]
    return parent if parent >= 0 and nodes[parent].role in {"table", "tree"} else place


def rows_of(tree: Tree, table: int, row_start: int, rows: int, *, virtual: bool) -> TableSlice:
    """Return rows of a table from the elements that there are.

    Args:
        tree: The window's tree.
        table: The table's place in it.
        row_start: The first row wanted.
        rows: How many at most.
        virtual: Whether its toolkit has elements only for rows near those on the screen.
    """
    look = index_of(tree)
    found = list(_rows(look, table))
    headers, found = _headers(look, table, found)
    first = min(row_start, len(found))
    read = [_cells_of(look, row) for row in found[first : first + rows]]
    width = max([*(max(row, default=-1) + 1 for row in read), *(column + 1 for column in headers)], default=0)
    shown = min(width, limits.TABLE_COLUMNS_MAX)
    count = max(1, limits.TABLE_CELLS_MAX // max(1, shown))
    selected = [place for place, row in enumerate(found) if any("selected" in look.nodes[part].states for part in row)]
    known = not virtual and not tree.nodes[table].incomplete
    return TableSlice(
        columns=tuple(headers.get(column, "") for column in range(shown)),
        rows=tuple(tuple(row.get(column, "") for column in range(shown)) for row in read[:count]),
        row_start=first,
        total_rows=len(found) if known else None,
        total_columns=width,
        selected=tuple(place for place in selected if first <= place < first + min(len(read), count)),
    )


def _rows(look: TreeIndex, table: int) -> Iterator[list[int]]:
    """Yield each row as its parts: one item, or the cells of one row number."""
    nodes, end = look.nodes, look.ends[table]
    flat: dict[int, list[int]] = defaultdict(list)
    place = table + 1
    while place < end:
        node = nodes[place]
        if node.role in ITEM_ROLES:
            yield [place]
        elif node.role in {"cell", "rowheader"} and node.row is not None and not _in_item(look, place, table):
            flat[node.row].append(place)
            place = look.ends[place]
            continue
        place += 1
    yield from (flat[row] for row in sorted(flat))


def _in_item(look: TreeIndex, place: int, table: int) -> bool:
    for ancestor in look.ancestors(place):
        if ancestor == table:
            return False
        if look.nodes[ancestor].role in ITEM_ROLES:
            return True
    return False


def _headers(look: TreeIndex, table: int, rows: list[list[int]]) -> tuple[dict[int, str], list[list[int]]]:
    """Return titles by column, and the rows without one that only holds titles."""
    nodes = look.nodes
    titles: dict[int, str] = {}
    for place in range(table + 1, look.ends[table]):
        node = nodes[place]
        if node.role == "columnheader" and node.column is not None:
            titles.setdefault(node.column, str(_shown(look, place) or ""))
    if titles or len(rows) < 2 or len(rows[0]) != 1:
        return titles, rows
    # GTK 4 says "row" of the line of titles too; what tells them apart is where they hang and that they are no cells.
    head, first = rows[0][0], rows[1][0]
    are_titles = nodes[head].role == "row" and all(nodes[part].role != "cell" for part in look.children[head])
    if are_titles and look.parents[head] == table != look.parents[first]:
        return {column: str(text or "") for column, text in _cells_of(look, rows[0]).items()}, rows[1:]
    return titles, rows


def _cells_of(look: TreeIndex, row: list[int]) -> dict[int, Cell]:
    """Return what a row shows by column."""
    nodes = look.nodes
    if len(row) > 1 or nodes[row[0]].role not in ITEM_ROLES:
        return {
            nodes[cell].column or 0: _shown(look, cell)
            for cell in row
            if nodes[cell].role != "rowheader" or nodes[cell].column is not None
        }
    item = row[0]
    cells = [
        place
        for place in look.children[item]
        if nodes[place].column is not None and (nodes[place].role in _CELLS or nodes[place].role in CONTROL_ROLES)
    ]
    if cells:
        return {nodes[cell].column or 0: _shown(look, cell) for cell in cells}
    texts = list(_texts(look, item))
    return dict(enumerate(texts or [_own(nodes[item])]))


def _shown(look: TreeIndex, cell: int) -> Cell:
    """Return what a cell shows: its own text, else that of what is in it, else whether it is ticked."""
    node = look.nodes[cell]
    own = _own(node)
    if own is None or own:
        return own
    inside = list(_texts(look, cell))
    if len(inside) == 1:
        return inside[0]
    if inside:
        return None if None in inside else " ".join(str(part) for part in inside if not isinstance(part, bool) and part)
    return "checked" in node.states if node.states & {"checked", "checkable"} else ""


def _texts(look: TreeIndex, top: int) -> Iterator[Cell]:
    """Yield what is shown below an element, in order; other items, and the names of controls, are not its texts."""
    nodes, place, end = look.nodes, top + 1, look.ends[top]
    while place < end:
        node = nodes[place]
        if node.role in ITEM_ROLES:
            place = look.ends[place]
            continue
        if is_secret(node):
            yield None
        elif node.role in _TICKED:
            yield "checked" in node.states or "pressed" in node.states
        elif node.role in _VALUED:
            yield node.value or node.name
        elif node.role == "link" or node.role in TEXT_ROLES:
            if not (text := _own(node)):
                place += 1
                continue
            yield text
        elif node.role not in CONTROL_ROLES:
            place += 1
            continue
        place = look.ends[place]


def _own(node: Node) -> Cell:
    if is_secret(node):
        return None
    return label_text(node) or node.value or ""
