"""From entries to the nodes of a window, in document order, each with what the tree around it gives it.

Pure: reads the entries of one application and changes none but for the node that each remembers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from surehand import limits
from surehand.adapters.atspi import entries, roles
from surehand.adapters.atspi.calls import ROOT_PATH
from surehand.adapters.atspi.entries import Around, Entry
from surehand.adapters.atspi.geometry import Placement, has_size
from surehand.adapters.atspi.profile import Profile
from surehand.model.scene import Node

#: A combo box that holds more than this inside itself is no simple one.
_CAPTION_NODES_MAX: Final = 32


class Shape:
    """Makes the nodes of an application's windows.

    Args:
        owner: The application's unique bus name.
        profile: Its toolkit's rules.
        known: Its entries by path; the maintained tree's own mapping.
    """

    def __init__(self, owner: str, profile: Profile, known: Mapping[str, Entry]) -> None:
        self._owner = owner
        self._profile = profile
        self._known = known

    def flatten(self, window: str, placement: Placement) -> tuple[tuple[Node, ...], tuple[int, ...], bool]:
        """Return nodes, parents' indexes, and whether nothing is missing."""
        nodes: list[Node] = []
        parents: list[int] = []
        complete = True
        seen: set[str] = set()
        waiting: list[tuple[str, int, Around]] = [(window, -1, Around())]
        while waiting:
            path, parent, above = waiting.pop()
            entry = self._known.get(path)
            if entry is None or path in seen:
                complete = False
                continue
            seen.add(path)
            showing = entries.is_showing(entry, self._profile, above.showing)
            enabled = entries.is_enabled(entry, self._profile, above.enabled)
            choice = self._choice_of(entry)
            around = above
            # Most nodes are as what is around them; one object for all of them is what makes this cheap.
            if (showing, enabled, choice) != (above.showing, above.enabled, None):
                around = Around(showing, enabled, above.secret, above.row, above.column, choice)
            node = entries.node_of(entry, around, owner=self._owner, placement=placement)
            complete = complete and not node.incomplete
            index = len(nodes)
            nodes.append(node)
            parents.append(parent)
            if not entry.children:
                continue
            row = around.row if entry.role == "row" else None
            below = around
            if (node.secret, row, None, None) != around[2:]:
                below = Around(showing=showing, enabled=enabled, secret=node.secret, row=row)
            if self._is_plain(entry):
                waiting.extend([(child, index, below) for child in reversed(entry.children)])
            else:
                waiting.extend((child, index, at) for child, at in reversed(self._around_children(entry, below)))
        return tuple(nodes), tuple(parents), complete

    def around(self, entry: Entry, fresh: dict[str, Entry]) -> Around:
        """Return what an entry takes from the tree around it, by `fresh` entries where there are any."""
        chain: list[Entry] = []
        here: Entry | None = entry
        while here is not None and here.path != ROOT_PATH and len(chain) <= limits.SCENE_DEPTH_MAX:
            chain.append(here)
            here = fresh.get(here.parent) or self._known.get(here.parent)
        found = Around()
        for above, link in zip([None, *reversed(chain)], reversed(chain), strict=False):
            found = Around(
                showing=entries.is_showing(link, self._profile, found.showing),
                enabled=entries.is_enabled(link, self._profile, found.enabled),
                secret=found.secret or (above is not None and (above.is_password or entries.is_masked(above))),
            )
        parent = self._known.get(entry.parent)
        if parent is not None:
            row = self._row_of(parent) if parent.role == "row" else None
            at = dict(self._around_children(parent, found._replace(row=row))).get(entry.path, found)
            found = found._replace(row=at.row, column=at.column)
        return found._replace(choice=self._choice_of(entry))

    def _row_of(self, row: Entry) -> int | None:
        holder = self._known.get(row.parent)
        return None if holder is None else dict(self._around_children(holder, Around())).get(row.path, Around()).row

    def _around_children(self, entry: Entry, below: Around) -> list[tuple[str, Around]]:
        if entry.role in roles.GRID_ROLES and entry.columns:
            return self._around_cells(entry, below)
        if entry.role == "row":
            return [(child, below._replace(column=column)) for column, child in enumerate(entry.children)]
        if not self._holds_rows(entry):
            return [(child, below) for child in entry.children]
        placed, rows = [], 0
        for path in entry.children:
            child = self._known.get(path)
            is_row = child is not None and child.role == "row"
            placed.append((path, below._replace(row=rows) if is_row else below))
            rows += is_row
        return placed

    def _is_plain(self, entry: Entry) -> bool:
        """Return whether an entry's children take nothing of it but what all children do."""
        grid = entry.role in roles.GRID_ROLES and entry.columns
        return not grid and entry.role != "row" and not self._holds_rows(entry)

    def _holds_rows(self, entry: Entry) -> bool:
        for path in entry.children[:2]:
            child = self._known.get(path)
            if child is not None and child.role == "row":
                return True
        return False

    def _around_cells(self, entry: Entry, below: Around) -> list[tuple[str, Around]]:
        """Give cells their row and column: toolkits list headers first or between, then cells row by row."""
        placed: list[tuple[str, Around]] = []
        cells = headers = row_headers = rows = 0
        for path in entry.children:
            child = self._known.get(path)
            role = "" if child is None else child.role
            at = below
            if role == "columnheader":
                at = below._replace(column=headers)
                headers += 1
            elif role == "rowheader":
                at = below._replace(row=row_headers)
                row_headers += 1
            elif role == "row":
                at = below._replace(row=rows)
                rows += 1
            elif role not in {"filler", "group", ""}:
                at = below._replace(row=cells // entry.columns, column=cells % entry.columns)
                cells += 1
            placed.append((path, at))
        return placed

    def _choice_of(self, entry: Entry) -> str | None:
        """Return what a combo box has chosen, where anything shows it.

        That is the child that it names; the selected item of its list, or the item by whose name it goes; or the only
        caption that shows inside it.
        """
        if entry.role != "combobox":
            return None
        if entry.choice:
            chosen = self._known.get(entry.choice)
            return None if chosen is None else chosen.name
        for path in entry.children:
            child = self._known.get(path)
            if child is not None and child.role in {"list", "menu"}:
                items = [item for path in child.children if (item := self._known.get(path)) is not None]
                selected = [item.name for item in items if item.bits & roles.BIT_SELECTED]
                if len(selected) == 1:
                    return selected[0]
                return entry.name if entry.name and entry.name in {item.name for item in items} else None
        captions = self._captions_in(entry)
        return captions[0] if len(captions) == 1 else None

    def _captions_in(self, entry: Entry) -> list[str]:
        found: list[str] = []
        waiting = list(entry.children)
        for _ in range(_CAPTION_NODES_MAX):
            if not waiting:
                return found
            child = self._known.get(waiting.pop(0))
            if child is None or not entries.may_show(child, self._profile):
                continue
            if child.role == "text":
                return []  # what is typed is the value, and the text says it itself
            if child.role in roles.CAPTION_ROLES and child.name and has_size(child.extents):
                found.append(child.name)
            waiting.extend(child.children)
        return []
