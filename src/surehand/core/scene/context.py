"""What an element means: the identifying labels around it (spec §8.3).

Which neighbours count, from the element outwards, at most `limits.CONTEXT_PARTS_MAX` parts:

- `content`: the text inside a control that has no name, or only one that its neighbours share;
- `description`: the description of a control that has neither name nor text;
- `labelled-by`: the texts of the elements that the toolkit says label it;
- `column`: the header of its column, for a cell;
- `row`: the identifying texts of each list item, table row, tree item or card around it (`rows.py`);
- `section`: the title of each named group, pane, tab, list, table, tool bar or calendar around it, or the heading of
  an unnamed group;
- `menu`: the title of each menu around it;
- `dialog`: the title of the dialog around it, with an alert's message.

Nothing else counts; in particular not the title of an ordinary window, status lines, siblings that are not in its
row, other texts of its row, and no states: clocks, counters and unread marks elsewhere are no change of meaning.
Marks of unsaved work around a section's title are left out.

A context is computed from the names and values of known nodes and from nothing else, so the same computation runs on
nodes read live a moment before the effect (`fence.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from surehand import limits
from surehand.core.scene.identity import hash_texts
from surehand.core.scene.rows import RowKey, Rows, has_letters, label_text
from surehand.core.scene.tree import Memo, TreeIndex, index_of
from surehand.model.scene import Node, Tree

CONTEXT_DOMAIN: Final = "surehand/context/v1"
#: Between the parts of a context, outermost first, and between the texts of one part. For people; hashes use lists.
PART_SEPARATOR: Final = " › "
TEXT_SEPARATOR: Final = " · "

_SECTION_ROLES: Final = frozenset(
    ["calendar", "combobox", "group", "list", "pane", "tab", "table", "tabpanel", "toolbar", "tree"]
)
_MENU_ROLES: Final = frozenset({"menu", "menuitem"})
_DIALOG_ROLES: Final = frozenset({"alert", "dialog"})
_SCOPE_ROLES: Final = _SECTION_ROLES | _MENU_ROLES | _DIALOG_ROLES
_EDIT_MARKS: Final = "*•●⁕∗ "


class Part(NamedTuple):
    """One label of a context: what kind, the nodes it was read from, their texts then, and whose label it is."""

    kind: str
    handles: tuple[str, ...]
    texts: tuple[str, ...]
    owner: int

    @property
    def text(self) -> str:
        """Return the texts as one line for people."""
        return TEXT_SEPARATOR.join(self.texts)


class Context(NamedTuple):
    """An element's context: its parts from the element outwards, their text outermost first, their hash.

    `handles` are exactly the nodes it was computed from, each once.
    """

    parts: tuple[Part, ...]
    text: str
    hash: str
    handles: tuple[str, ...]

    @property
    def row(self) -> Part | None:
        """Return the nearest row's label."""
        return next((part for part in self.parts if part.kind == "row"), None)


Key = tuple[tuple[str, tuple[str, ...]], ...]


def key_of(parts: tuple[Part, ...]) -> Key:
    """Return what a context's hash covers: kinds and texts, from the element outwards."""
    return tuple((part.kind, part.texts) for part in parts)


def context_hash(key: Key) -> str:
    """Return the hash of a context."""
    return hash_texts(CONTEXT_DOMAIN, [[kind, list(texts)] for kind, texts in key])


def part_texts(kind: str, nodes: list[Node]) -> tuple[str, ...]:
    """Return the texts of a part as read from its nodes, observed or live."""
    if kind == "description":
        return tuple("" if node.name else node.description for node in nodes)
    texts = tuple(map(label_text, nodes))
    return tuple(map(_without_edit_marks, texts)) if kind == "section" else texts


def _without_edit_marks(text: str) -> str:
    return text.strip(_EDIT_MARKS) or text


class Known(NamedTuple):
    """What one tree's contexts leave to the next: contexts by their parts, and texts and hashes by what they cover.

    Parts name places in the tree, so where something is inserted only the hashes still serve.
    """

    made: dict[tuple[Part, ...], Context]
    digests: dict[Key, tuple[str, str]]


class Contexts:
    """The contexts of every node of one tree, and the row each stands in."""

    __slots__ = ("_digests", "_index", "_known", "_made", "_rows", "contexts", "row_keys")

    def __init__(self, index: TreeIndex, known: Known) -> None:
        self._index = index
        self._rows = Rows(index)
        self._known = known
        self._made: dict[tuple[Part, ...], Context] = {}
        self._digests: dict[Key, tuple[str, str]] = {}
        self.contexts: Final[list[Context]] = []
        self.row_keys: Final[list[RowKey | None]] = []
        self._compute()
        self._known = Known({}, {})

    @property
    def known(self) -> Known:
        """Return what the contexts of the next tree may take over."""
        return Known(self._made, self._digests)

    def _compute(self) -> None:
        nothing = self._make(())
        inner: list[Context] = []
        rows, cells, contents = self._rows.rows, self._rows.cells, self._rows.contents
        for place, (node, parent) in enumerate(zip(self._index.nodes, self._index.parents, strict=True)):
            outer = inner[parent] if parent >= 0 else nothing
            row = self.row_keys[parent] if parent >= 0 else None
            own = below = outer
            if node.role in _SCOPE_ROLES or place in rows or place in cells or node.column is not None:
                for part in self._parts(place, node):
                    below = self._extend(below, part)
                    # A label that is the element's own name is in its fingerprint already.
                    if part.handles != (node.handle,):
                        own = self._extend(own, part)
                if place in rows:
                    row = place
                elif place in cells:
                    row = cells[place]
            label = self._labelled_by(place, node) if node.labelled_by else None
            # In a form the row is often known by the same label.
            if label is not None and (not own.parts or own.parts[0].handles != label.handles):
                own = self._extend(own, label)
            if place in contents:
                kind = "description" if contents[place] == place else "content"
                own = self._extend(own, self._part(kind, place, (contents[place],)))
            inner.append(below)
            self.contexts.append(own)
            self.row_keys.append(row)

    def _make(self, parts: tuple[Part, ...]) -> Context:
        found = self._made.get(parts)
        if found is None:
            found = self._known.made.get(parts)
            key = key_of(parts)
            if found is None:
                digest = self._digests.get(key) or self._known.digests.get(key)
                if digest is None:
                    digest = (PART_SEPARATOR.join(part.text for part in reversed(parts)), context_hash(key))
                handles = tuple(dict.fromkeys(handle for part in parts for handle in part.handles))
                found = Context(parts, *digest, handles)
            self._made[parts] = found
            self._digests[key] = (found.text, found.hash)
        return found

    def _extend(self, context: Context, part: Part) -> Context:
        return self._make((part, *context.parts)[: limits.CONTEXT_PARTS_MAX])

    def _part(self, kind: str, owner: int, places: tuple[int, ...]) -> Part:
        nodes = [self._index.nodes[place] for place in places]
        return Part(kind, tuple(node.handle for node in nodes), part_texts(kind, nodes), owner)

    def _parts(self, place: int, node: Node) -> list[Part]:
        """Return what a node says about everything inside it, outermost first."""
        parts: list[Part] = []
        if node.role in _DIALOG_ROLES:
            labels = self._dialog_labels(place, node)
            if labels:
                parts.append(self._part("dialog", place, labels))
        elif node.role in _MENU_ROLES:
            if node.name and self._index.ends[place] > place + 1:
                parts.append(self._part("menu", place, (place,)))
        elif node.role in _SECTION_ROLES and (labels := self._section_labels(place, node)):
            parts.append(self._part("section", place, labels))
        if row := self._rows.labels.get(place):
            parts.append(self._part("row", place, row))
        if node.column is not None and node.role in {"cell", "rowheader"}:
            header = self._header(place, node.column)
            if header is not None:
                parts.append(self._part("column", place, (header,)))
        return parts

    def _header(self, place: int, column: int) -> int | None:
        for ancestor in self._index.ancestors(place):
            if self._index.nodes[ancestor].role in {"table", "tree"}:
                header = self._rows.headers.get((ancestor, column))
                return header if header is not None and label_text(self._index.nodes[header]) else None
        return None

    def _section_labels(self, place: int, node: Node) -> tuple[int, ...]:
        # A combo box carries its current value as its name in some toolkits: only what labels it is a title.
        if node.name and node.role != "combobox":
            return (place,)
        labels = self._labels(node, place)
        if labels or node.role not in {"group", "pane", "tabpanel"}:
            return labels
        for child in self._index.children[place][:3]:
            if self._index.nodes[child].role == "heading" and label_text(self._index.nodes[child]):
                return (child,)
        return ()

    def _dialog_labels(self, place: int, node: Node) -> tuple[int, ...]:
        own = (place,) if node.name else self._labels(node, place)
        # An alert is its message: toolkits title it "Question", or nothing.
        if own and node.role != "alert":
            return own
        message: Callable[[int], bool] = lambda text: has_letters(label_text(self._index.nodes[text]))  # noqa: E731
        return own + tuple(filter(message, self._rows.first_texts(place)))[:1]

    def _labels(self, node: Node, place: int) -> tuple[int, ...]:
        by_handle = self._index.by_handle
        found = [by_handle[handle] for handle in node.labelled_by if handle in by_handle]
        return tuple(label for label in found if label != place and label_text(self._index.nodes[label]))

    def _labelled_by(self, place: int, node: Node) -> Part | None:
        labels = self._labels(node, place)
        return self._part("labelled-by", place, labels) if labels else None


_CONTEXTS: Final[Memo[Tree, Contexts]] = Memo()


def contexts_of(tree: Tree, previous: Tree | None = None) -> Contexts:
    """Return the contexts of a tree; equal contexts of `previous` are not hashed again."""
    found = _CONTEXTS.peek(tree)
    if found is not None:
        return found
    before = _CONTEXTS.peek(previous)
    return _CONTEXTS.keep(tree, Contexts(index_of(tree), Known({}, {}) if before is None else before.known))
