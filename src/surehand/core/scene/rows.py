"""Which elements stand in rows, and which texts of a row say what the row is about.

A row is a list item, table row or tree item; the cells of one row number where the toolkit gives cells without rows;
or one of several plain boxes of the same build that each hold a text and a control (a card). Of each row this names
the nodes whose texts identify it: a row header, else the first text, else the row's own name, else the name of a
control that no other row of the group has. Rows with the same first text are told apart by further texts, because a
recycled widget that moves between two mails of one sender must not keep its meaning.

Never reads states, times or positions: only names and values that identify.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from surehand import limits
from surehand.core.scene.tree import TreeIndex
from surehand.model.scene import Node

ITEM_ROLES: Final = frozenset({"row", "listitem", "treeitem"})
CELL_ROLES: Final = frozenset({"cell", "rowheader"})
#: Boxes that mean nothing by themselves.
WRAPPER_ROLES: Final = frozenset({"filler", "group", "pane", "paragraph", "unknown"})
#: Roles whose text is written by the application, so that it can say what surrounds it.
TEXT_ROLES: Final = frozenset({"label", "heading", "cell", "rowheader", "columnheader", "paragraph", "text"})
#: Roles that are acted upon; their inner labels repeat their own name.
CONTROL_ROLES: Final = frozenset(
    [
        "button",
        "checkbox",
        "combobox",
        "icon",
        "image",
        "link",
        "menuitem",
        "menuitemcheckbox",
        "menuitemradio",
        "radio",
        "scrollbar",
        "slider",
        "spinbutton",
        "switch",
        "tab",
        "togglebutton",
    ]
)

#: Capabilities of something a person would act upon; any element out of sight can be scrolled or pointed at.
ACTIVE_CAPABILITIES: Final = frozenset({"expand", "focus", "invoke", "select", "set_text", "set_value", "toggle"})

#: Controls whose inner text is their current value and no name.
_VALUED_ROLES: Final = frozenset({"combobox", "scrollbar", "slider", "spinbutton"})
_SORTED_ROLES: Final = ITEM_ROLES | CELL_ROLES | WRAPPER_ROLES | {"columnheader"} | (CONTROL_ROLES - _VALUED_ROLES)

#: What names a row: the index of an item, card or box, or (parent, row number) of cells without a row element.
RowKey = int | tuple[int, int]


def label_text(node: Node) -> str:
    """Return the text with which a node labels what is around it; "" for what a person can edit and for secrets."""
    if node.secret:
        return ""
    if node.name:
        return node.name
    return node.value if node.value and "editable" not in node.states else ""


def has_letters(text: str) -> bool:
    """Return whether a text is more than a number, a time or a mark."""
    return any(map(str.isalpha, text))


def _identifies(text: str) -> bool:
    # Unread dots, stars and arrows are texts too.
    return any(map(str.isalnum, text))


def _is_position(node: Node) -> bool:
    """Return whether a row header only counts: Qt numbers rows, and the numbers stay when the rows are sorted."""
    return node.role == "rowheader" and node.row is not None and label_text(node) in {str(node.row), str(node.row + 1)}


class _Groups:
    """Elements by what they are parts of."""

    def __init__(self) -> None:
        self.items: dict[int, list[int]] = defaultdict(list)
        self.boxes: dict[int, list[int]] = defaultdict(list)
        self.cells: dict[tuple[int, int], list[int]] = defaultdict(list)
        self.controls: dict[tuple[int, str, str], list[int]] = defaultdict(list)


class Rows:
    """The rows of one tree. `labels` maps an item, card or flat cell to the nodes whose texts identify its row."""

    __slots__ = ("_ends", "_index", "_nodes", "cells", "contents", "headers", "labels", "rows")

    def __init__(self, index: TreeIndex) -> None:
        self._index = index
        self._nodes = index.nodes
        self._ends = index.ends
        self.labels: dict[int, tuple[int, ...]] = {}
        #: Row of each flat cell.
        self.cells: dict[int, tuple[int, int]] = {}
        #: Items and cards.
        self.rows: set[int] = set()
        #: For each control whose name does not tell it from its neighbours, the text inside it, or itself where only
        #: its description does.
        self.contents: dict[int, int] = {}
        #: Column headers by table and column number.
        self.headers: dict[tuple[int, int], int] = {}
        self._find()

    def _find(self) -> None:
        groups = _Groups()
        for place, node in enumerate(self._nodes):
            if node.role in _SORTED_ROLES:
                self._sort(place, node, groups)
        for group in groups.items.values():
            self.rows.update(group)
            self._label_rows(group, [self._texts(row) for row in group], own_name=True)
        self._label_cells(groups.cells)
        for group in groups.boxes.values():
            if len(group) > 1:
                self._label_cards(group)
        for (_, _, name), alike in groups.controls.items():
            if not name or len(alike) > 1:
                self._note_contents(alike)

    def _sort(self, place: int, node: Node, groups: _Groups) -> None:
        parent = self._index.parents[place]
        inside = self._ends[place] - place - 1
        if node.role in ITEM_ROLES:
            groups.items[parent].append(place)
        elif node.role in CELL_ROLES:
            if self._is_flat(place, node):
                groups.cells[parent, node.row or 0].append(place)
        elif node.role == "columnheader":
            self._note_header(place, node)
        elif node.role in WRAPPER_ROLES:
            # A whole column of a window is no card.
            if 0 < inside <= limits.CONTEXT_CARD_NODES_MAX and not node.labelled_by:
                groups.boxes[parent].append(place)
        elif inside or not node.name:
            groups.controls[parent, node.role, node.name].append(place)

    def _note_contents(self, controls: list[int]) -> None:
        """Note what is written inside controls without a name, or all called "Tab" as GTK 4 calls them.

        A picture without any text is known by its description, which is what hovering over it tells a person.
        """
        for control in controls:
            node = self._nodes[control]
            texts = self._texts(control)
            if texts and label_text(self._nodes[texts[0]]) != node.name:
                self.contents[control] = texts[0]
            elif not node.name and _identifies(node.description):
                self.contents[control] = control

    def _is_flat(self, place: int, node: Node) -> bool:
        return node.row is not None and place > 0 and self._nodes[self._index.parents[place]].role not in ITEM_ROLES

    def _note_header(self, place: int, node: Node) -> None:
        if node.column is None:
            return
        for ancestor in self._index.ancestors(place):
            if self._nodes[ancestor].role in {"table", "tree"}:
                self.headers.setdefault((ancestor, node.column), place)
                return

    def first_texts(self, place: int) -> list[int]:
        """Return the nodes below `place` that carry its first identifying texts, headings before other texts."""
        texts = self._texts(place)
        return sorted(texts, key=lambda text: self._nodes[text].role != "heading")

    def _texts(self, row: int) -> list[int]:
        """Return up to `CONTEXT_ROW_TEXTS_MAX` text nodes of a row, row headers first; nested rows have their own."""
        found: list[int] = []
        nodes, ends = self._nodes, self._ends
        place, end, budget = row + 1, ends[row], limits.CONTEXT_SCAN_NODES_MAX
        while place < end and budget and len(found) < limits.CONTEXT_ROW_TEXTS_MAX:
            budget -= 1
            node = nodes[place]
            if node.role in ITEM_ROLES or node.role in CONTROL_ROLES:
                place = ends[place]
            elif node.role in TEXT_ROLES and _identifies(label_text(node)) and not _is_position(node):
                found.append(place)
                place = ends[place]
            else:
                place += 1
        found.sort(key=lambda text: nodes[text].role != "rowheader")
        return found

    def _controls(self, row: int) -> list[int]:
        found: list[int] = []
        nodes, ends = self._nodes, self._ends
        place, end, budget = row + 1, ends[row], limits.CONTEXT_SCAN_NODES_MAX
        while place < end and budget:
            budget -= 1
            node = nodes[place]
            if node.role in CONTROL_ROLES and _identifies(node.name):
                found.append(place)
            place = ends[place] if node.role in CONTROL_ROLES or node.role in ITEM_ROLES else place + 1
        return found

    def _label_rows(self, rows: list[int], texts: list[list[int]], *, own_name: bool) -> None:
        """Choose the labels of one group of rows; `texts[i]` are the text nodes of `rows[i]`."""
        groups: dict[str, list[int]] = defaultdict(list)
        bare: list[int] = []
        for which, found in enumerate(texts):
            if found:
                groups[label_text(self._nodes[found[0]])].append(which)
            elif own_name and _identifies(self._nodes[rows[which]].name):
                self.labels[rows[which]] = (rows[which],)
            else:
                bare.append(which)
        for group in groups.values():
            for which, chosen in zip(group, self._tell_apart([texts[which] for which in group]), strict=True):
                self.labels[rows[which]] = chosen
        if bare:
            self._label_by_controls([rows[which] for which in bare])

    def _tell_apart(self, rows: list[list[int]]) -> list[tuple[int, ...]]:
        """Return, for rows with the same first text, that text and as few more as make them differ."""
        chosen: list[tuple[int, ...]] = [(row[0],) for row in rows]
        if len(rows) == 1:
            return chosen
        columns = [
            [label_text(self._nodes[row[column]]) if column < len(row) else "" for row in rows]
            for column in range(1, max(map(len, rows)))
        ]
        # Words before numbers: counts and times change while the row stays what it is.
        order = sorted(range(len(columns)), key=lambda column: not any(map(has_letters, columns[column])))
        keys: list[tuple[str, ...]] = [()] * len(rows)
        for column in order:
            if len(set(columns[column])) == 1:
                continue
            keys = [(*key, text) for key, text in zip(keys, columns[column], strict=True)]
            chosen = [
                (*nodes, row[column + 1]) if column + 1 < len(row) else nodes
                for nodes, row in zip(chosen, rows, strict=True)
            ]
            if len(set(keys)) == len(rows):
                break
        return chosen

    def _label_by_controls(self, rows: list[int]) -> None:
        """Label rows without any text by a control's name that no other of them has; a row alone by its link."""
        controls = [self._controls(row) for row in rows]
        uses: dict[str, int] = defaultdict(int)
        for found in controls:
            for name in {self._nodes[place].name for place in found}:
                uses[name] += 1
        for row, found in zip(rows, controls, strict=True):
            for place in found:
                node = self._nodes[place]
                if uses[node.name] == 1 and (len(rows) > 1 or node.role == "link"):
                    self.labels[row] = (place,)
                    break

    def _label_cells(self, flat: dict[tuple[int, int], list[int]]) -> None:
        """Label the cells of tables whose cells have row numbers and no row element."""
        tables: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for key, cells in flat.items():
            tables[key[0]].append(key)
            self.cells.update((cell, key) for cell in cells)
        for keys in tables.values():
            leads = [flat[key][0] for key in keys]
            texts = [self._cell_texts(flat[key]) for key in keys]
            self._label_rows(leads, texts, own_name=False)
            for key, lead in zip(keys, leads, strict=True):
                label = self.labels.pop(lead, None)
                if label is not None:
                    self.labels.update((cell, label) for cell in flat[key])

    def _cell_texts(self, cells: list[int]) -> list[int]:
        ordered = sorted(cells, key=lambda cell: (self._nodes[cell].role != "rowheader", self._nodes[cell].column or 0))
        found: list[int] = []
        for cell in ordered:
            if len(found) == limits.CONTEXT_ROW_TEXTS_MAX:
                break
            if _is_position(self._nodes[cell]):
                continue
            if _identifies(label_text(self._nodes[cell])):
                found.append(cell)
            else:
                found.extend(self._texts(cell)[:1])
        return found

    def _label_cards(self, boxes: list[int]) -> None:
        """Label plain boxes that repeat one build and each hold a text and a control.

        A name that several of them have tells none of them apart: Qt names every box in a group box after it.
        """
        builds: dict[tuple[str, str, frozenset[str]], list[int]] = defaultdict(list)
        for box in boxes:
            roles = frozenset(self._nodes[child].role for child in self._index.children[box])
            builds[self._nodes[box].role, self._nodes[box].name, roles].append(box)
        for alike in builds.values():
            if len(alike) == 1:
                continue
            # A bare number in a plain box is a count far more often than a name.
            texts = [[text for text in self._texts(box) if has_letters(label_text(self._nodes[text]))] for box in alike]
            cards = [
                (box, found) for box, found in zip(alike, texts, strict=True) if found and self._holds_control(box)
            ]
            # A box alone is layout, and the text in it may be a result or a status; it identifies nothing.
            if len(cards) > 1:
                self.rows.update(box for box, _ in cards)
                self._label_rows([box for box, _ in cards], [found for _, found in cards], own_name=False)

    def _holds_control(self, box: int) -> bool:
        end = min(self._ends[box], box + limits.CONTEXT_SCAN_NODES_MAX)
        return any(self._nodes[place].capabilities & ACTIVE_CAPABILITIES for place in range(box + 1, end))
