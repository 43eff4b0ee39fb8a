"""How lines of one element each become the shorter lines that are read, and back (spec §8.5).

Three forms put several elements on one line:

    [e5] menu "File": [e6] menuitem "New" [e7] "Open"         a row, menu or combo box and everything inside it
    [e13] label "carol" | [e15] button "Open" | [e16] "Delete"  neighbours that are about one thing: in="carol"
    [e8] button "One" [e9] "Two"                              neighbours of one kind
    hidden: [e20] button "Three" [e21] "Four"                 all of them out of sight

An element without its role has that of the element before it. Which lines are joined depends on nothing but the lines
themselves, so a diff speaks of elements, and a new one costs one line however it is packed.

Promises `unpack(pack(lines)) == lines`, line by line, for every list of lines of the text form.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from surehand.core.scene.rows import ITEM_ROLES

OMISSION: Final = "… "
HIDDEN: Final = " hidden"
#: Longer lines are hard to read, and what is in them hard to find.
_LINE_CHARS_MAX: Final = 240
#: What may tell all that is inside it on its own line.
_HOST_ROLES: Final = ITEM_ROLES | {"combobox", "group", "filler", "menu", "menuitem"}
_ALL_HIDDEN: Final = "hidden: "
_IN_ROW: Final = " | "
_INSIDE: Final = ": "
_JOINTS: Final = (_IN_ROW, _INSIDE, " ")

_QUOTED: Final = r'"(?:[^"\\]|\\.)*"'
_PART: Final = re.compile(
    r"\[(e\d+)\]"  # its label
    r"(?: ([A-Za-z0-9_-]+)(?![\w=:-]))?"  # its role
    rf"( {_QUOTED})?"  # its name
    rf"((?: (?:value|label|desc)={_QUOTED})*)"
    rf"(?: in=({_QUOTED}))?"
    r"([^\"\[\]…]*)"  # states and places
    rf"( {OMISSION}[^\"\[\]]*)?"  # what is left out after it
)
_STARTS: Final = re.compile(rf"{_QUOTED}|(\[e\d+\])")


class Part(NamedTuple):
    """One element of a line.

    `within` is what its row is about, quoted; `tail` its states and place; `gap` says what is left out after it, and
    ends the line.
    """

    depth: int
    label: str
    role: str
    name: str
    fields: str
    within: str | None
    tail: str
    gap: str

    def spell(self, *, role: bool = True, within: bool = True, hidden: bool = True) -> str:
        """Return its words, without those that the line tells."""
        tail = self.tail if hidden else self.tail.removesuffix(HIDDEN)
        about = f" in={self.within}" if within and self.within is not None else ""
        # A bare word after the label would be taken for a role.
        kind = f" {self.role}" if role or not (self.name or self.fields or about) else ""
        return f"[{self.label}]{kind}{self.name}{self.fields}{about}{tail}{self.gap}"

    @property
    def line(self) -> str:
        """Return its line."""
        return "  " * self.depth + self.spell()

    @property
    def hidden(self) -> bool:
        """Return whether it says that it is out of sight."""
        return self.tail.endswith(HIDDEN)


class Packed(NamedTuple):
    """One line as it is read, and of how many elements."""

    text: str
    elements: int


def pack(lines: Sequence[str]) -> list[Packed]:
    """Return the lines as they are read.

    Raises:
        ValueError: a line is no line of the text form.
    """
    return join([_single(line) for line in lines])


def join(parts: Sequence[Part]) -> list[Packed]:
    """Return elements as they are read."""
    packed: list[Packed] = []
    place = 0
    while place < len(parts):
        found = _hosted(parts, place) or _row(parts, place) or _run(parts, place)
        packed.append(found)
        place += found.elements
    return packed


def unpack(lines: Iterable[str]) -> list[str]:
    """Return one line for each element of packed lines.

    Raises:
        ValueError: a line is no line of the text form.
    """
    return [part.line for line in lines for part in _parts(line)]


def label_of(line: str) -> str:
    """Return the label of an element's line.

    Raises:
        ValueError: it is no line of the text form.
    """
    return _single(line).label


# --- joining ---------------------------------------------------------------------------------------------------------


def _is_leaf(parts: Sequence[Part], place: int) -> bool:
    return place + 1 == len(parts) or parts[place + 1].depth <= parts[place].depth


def _hosted(parts: Sequence[Part], place: int) -> Packed | None:
    """Return an element and everything inside it, where that is neither deep nor long."""
    host = parts[place]
    if host.role not in _HOST_ROLES or host.gap or _is_leaf(parts, place):
        return None
    words = [f"{host.line}:"]
    size = len(words[0])
    role = ""
    end = place + 1
    while end < len(parts) and parts[end].depth > host.depth:
        part = parts[end]
        if part.depth > host.depth + 1 or parts[end - 1].gap:
            return None
        words.append(part.spell(role=part.role != role))
        size += 1 + len(words[-1])
        if size > _LINE_CHARS_MAX:
            return None
        role = part.role
        end += 1
    return Packed(" ".join(words), end - place)


def _row(parts: Sequence[Part], place: int) -> Packed | None:
    """Return neighbours that say that they are about one thing, beginning with what is called so, if there are."""
    first = parts[place]
    end = _row_end(parts, place)
    if end == place + 1:
        return None
    row = parts[place:end]
    all_hidden = all(part.hidden for part in row)
    words = [first.spell(hidden=not all_hidden)]
    size = 2 * first.depth + len(words[0])
    for before, part in itertools.pairwise(row):
        word = part.spell(role=part.role != before.role, within=False, hidden=not all_hidden)
        size += len(_IN_ROW) + len(word)
        if size > _LINE_CHARS_MAX:
            break
        words.append(word)
    if len(words) == 1:
        return None
    if all_hidden != all(part.hidden for part in row[: len(words)]):
        return None
    lead = "  " * first.depth + (_ALL_HIDDEN if all_hidden else "")
    return Packed(lead + _IN_ROW.join(words), len(words))


def _row_end(parts: Sequence[Part], place: int) -> int:
    first = parts[place]
    about = first.within or first.name[1:]
    end = place + 1
    if not about or first.gap or not _is_leaf(parts, place):
        return end
    # What the row is called may come after a box to tick; a second one of that name begins the next row.
    called = first.within is None
    while end < len(parts) and parts[end].depth == first.depth and _is_leaf(parts, end) and not parts[end - 1].gap:
        part = parts[end]
        if part.within is None:
            if called or part.name[1:] != about:
                break
            called = True
        elif part.within != about or part.name[1:] == about:
            break
        end += 1
    return end


def _run(parts: Sequence[Part], place: int) -> Packed:
    """Return neighbours of one kind that have little to say."""
    first = parts[place]
    words = [first.spell()]
    size = 2 * first.depth + len(words[0])
    end = place + 1
    if not first.fields and not first.gap and _is_leaf(parts, place):
        while end < len(parts) and _continues(parts, end, first):
            word = parts[end].spell(role=False, hidden=False)
            size += 1 + len(word)
            if size > _LINE_CHARS_MAX:
                break
            words.append(word)
            end += 1
    lead = "  " * first.depth
    if len(words) > 1 and first.hidden:
        lead += _ALL_HIDDEN
        words[0] = first.spell(hidden=False)
    return Packed(lead + " ".join(words), len(words))


def _continues(parts: Sequence[Part], place: int, first: Part) -> bool:
    part = parts[place]
    return (
        part.depth == first.depth
        and part.role == first.role
        and part.hidden == first.hidden
        and not part.fields
        and not parts[place - 1].gap
        and _is_leaf(parts, place)
        and _row_end(parts, place) == place + 1
    )


# --- taking apart ----------------------------------------------------------------------------------------------------


def _single(line: str) -> Part:
    parts = _parts(line)
    if len(parts) != 1:
        raise ValueError(line)
    return parts[0]


def _parts(line: str) -> list[Part]:
    """Return the elements of a line as it is read."""
    body = line.lstrip(" ")
    depth, odd = divmod(len(line) - len(body), 2)
    all_hidden = body.startswith(_ALL_HIDDEN)
    body = body.removeprefix(_ALL_HIDDEN)
    starts = [found.start() for found in _STARTS.finditer(body) if found[1]]
    if odd or not starts or starts[0]:
        raise ValueError(line)
    pieces = [body[start:end] for start, end in zip(starts, [*starts[1:], len(body)], strict=True)]
    joints = [next((joint for joint in _JOINTS if piece.endswith(joint)), "") for piece in pieces[:-1]]
    if not all(joints):
        raise ValueError(line)
    parts: list[Part] = []
    for piece, joint in zip(pieces, [*joints, ""], strict=True):
        parts.append(_part(piece.removesuffix(joint), depth, parts, joints[0] if parts else ""))
    if all_hidden:
        parts = [part._replace(tail=part.tail + HIDDEN) for part in parts]
    return parts


def _part(piece: str, depth: int, before: Sequence[Part], joint: str) -> Part:
    found = _PART.fullmatch(piece)
    if found is None:
        raise ValueError(piece)
    label, role, name, fields, within, tail, gap = found.groups("")
    if joint == _INSIDE:
        depth += 1
    if not role:
        if not before:
            raise ValueError(piece)
        role = before[-1].role
    about: str | None = within or None
    if joint == _IN_ROW and about is None:
        row = before[0].within or before[0].name[1:]
        about = None if name[1:] == row else row
    return Part(depth, label, role, name, fields, about, tail, gap)
