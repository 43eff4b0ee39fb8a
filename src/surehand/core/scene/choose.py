"""Which of the elements that the text form could show it does show, and in which order they are worth their tokens.

What is out of sight in long runs is left out but for its ends: of a list scrolled to its middle, what is on the screen
and a few rows before and after it stay. Where nothing in a window has a place, nobody can tell what of a list is in
sight, and long ones are cut in the same way. Under a budget the focus and what is around it come first, and dialogs;
then what can be acted upon, as it stands in the document; then texts; then what is out of sight. An element brings
along those around it. Promises that the order depends on the scene alone, so a larger budget never shows less.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from typing import Final

from surehand import limits
from surehand.core.scene.context import contexts_of
from surehand.core.scene.prune import Shown
from surehand.core.scene.rows import ACTIVE_CAPABILITIES, RowKey
from surehand.core.scene.tree import Memo, index_of
from surehand.model.scene import Node, Scene, Tree

_DIALOG_ROLES: Final = frozenset({"alert", "dialog"})
#: What a person would look for even out of sight.
_NOTABLE_STATES: Final = frozenset({"focused", "selected"})
_LIST_ROLES: Final = frozenset({"list", "table", "tree"})
_POPPING_ROLES: Final = frozenset({"combobox", "menu", "menubar", "menuitem"})
#: Left, top, right, bottom.
_Clip = tuple[int, int, int, int]
_NOTHING: Final = (limits.INTEGER_MAX, limits.INTEGER_MAX, -limits.INTEGER_MAX, -limits.INTEGER_MAX)
#: By tree; each look at an unchanged window asks for it.
_UNSEEN: Final[Memo[Tree, frozenset[int]]] = Memo()
#: How far around the focus, in elements of the text.
_NEAR: Final = 8


def windowed(scene: Scene, shown: Shown) -> list[int]:
    """Return which of the shown elements stay, by their places in `shown`, when long runs out of sight are cut."""
    nodes, unseen = scene.tree.nodes, unseen_in(scene.tree)
    placeless = len(nodes) > limits.RENDER_PLACELESS[0] and all(node.bounds is None for node in nodes[1:])
    left_out: set[int] = set()
    for over, units in _units(scene, shown) if unseen or placeless else ():
        cut, among = limits.RENDER_UNSEEN_DEEP if over in unseen else limits.RENDER_UNSEEN, unseen
        if (
            placeless
            and nodes[over].role in _LIST_ROLES
            and unseen.isdisjoint(shown.places[which] for which in units[:-1])
        ):
            cut, among = limits.RENDER_PLACELESS, frozenset(range(len(nodes)))
        most, first, last = cut
        for run in _runs_unseen(scene, shown, units, among):
            if len(run) > most:
                left_out.update(range(run[first], run[-last]))
    return [which for which in range(len(shown.places)) if which not in left_out]


def unseen_in(tree: Tree) -> frozenset[int]:
    """Return the places of what is out of sight: not showing, or beside all that its surroundings let be seen.

    Qt and GTK 4 say of everything in a scrolled area that it shows. What pops up is not cut off by what it belongs to.
    """
    return _UNSEEN.get(tree, _unseen_in)


def _unseen_in(tree: Tree) -> frozenset[int]:
    unseen: list[int] = []
    clips: list[_Clip | None] = []
    for place, (node, parent) in enumerate(zip(tree.nodes, tree.parents, strict=True)):
        clip = clips[parent] if parent >= 0 else None
        bounds = node.bounds
        seen = "showing" in node.states
        if node.role in _POPPING_ROLES:
            clip = None
        elif bounds is not None and bounds[2] > 0 and bounds[3] > 0:
            left, top, width, height = bounds
            right, bottom = left + width, top + height
            if clip is None:
                clip = (left, top, right, bottom)
            elif left >= clip[2] or right <= clip[0] or top >= clip[3] or bottom <= clip[1]:
                seen, clip = False, _NOTHING
            else:
                clip = (max(left, clip[0]), max(top, clip[1]), min(right, clip[2]), min(bottom, clip[3]))
        if not seen:
            unseen.append(place)
        clips.append(clip)
    return frozenset(unseen)


def _units(scene: Scene, shown: Shown) -> list[tuple[int, list[int]]]:
    """Return the neighbours inside each element, by its place, as where they begin, and where the last ends.

    The cells of one row are one neighbour, and so is what is in one card.
    """
    least = min(limits.RENDER_UNSEEN[0], limits.RENDER_UNSEEN_DEEP[0])
    long = {over for over, count in Counter(shown.overs).items() if count > least}
    rows = contexts_of(scene.tree).row_keys
    units: dict[int, list[int]] = {over: [] for over in long}
    last: dict[int, RowKey | None] = {}
    for which, over in enumerate(shown.overs) if long else ():
        if over not in long:
            continue
        place = shown.places[which]
        row = rows[place]
        # What is a row begins one; a row far out, in which all of these stand, tells none of them apart.
        apart = row is None or row == place or (over >= 0 and row == rows[over])
        if apart or last.get(over) != row:
            units[over].append(which)
        last[over] = None if apart else row
    ends = index_of(scene.tree).ends
    return [
        (over, [*begins, bisect_left(shown.places, ends[over])])
        for over, begins in units.items()
        if len(begins) > least
    ]


def _runs_unseen(scene: Scene, shown: Shown, units: Sequence[int], unseen: frozenset[int]) -> list[list[int]]:
    """Return runs of neighbours of which nothing is in sight or of note."""
    nodes, places = scene.tree.nodes, shown.places
    runs: list[list[int]] = [[]]
    for begin, end in itertools.pairwise(units):
        if unseen.issuperset(places[begin:end]) and all(
            nodes[place].states.isdisjoint(_NOTABLE_STATES) for place in places[begin:end]
        ):
            runs[-1].append(begin)
        elif runs[-1]:
            runs.append([])
    return runs


def ranked(scene: Scene, shown: Shown, chosen: Sequence[int]) -> list[int]:
    """Return `chosen` in the order in which its elements are worth telling, each after those around it."""
    which_of = {shown.places[which]: which for which in chosen}
    near = _near_focus(scene, shown, chosen)
    unseen = unseen_in(scene.tree)
    in_dialog: set[int] = set()
    ranks: list[tuple[int, int]] = []
    for which in chosen:
        place = shown.places[which]
        node = scene.tree.nodes[place]
        if place not in unseen and (node.role in _DIALOG_ROLES or shown.overs[which] in in_dialog):
            in_dialog.add(place)
        first = place in in_dialog or (which in near and place not in unseen)
        ranks.append((_rank(node, first=first, seen=place not in unseen), which))
    # The first stays, so that what is left out before the others has a place to be counted at.
    order: dict[int, None] = dict.fromkeys(chosen[:1])
    for _, which in sorted(ranks):
        path = [which]
        while (over := which_of.get(shown.overs[path[-1]])) is not None and over not in order:
            path.append(over)
        order.update(dict.fromkeys(reversed(path)))
    return list(order)


def _rank(node: Node, *, first: bool, seen: bool) -> int:
    if "focused" in node.states:
        return 0
    if first:
        return 1
    active = not node.capabilities.isdisjoint(ACTIVE_CAPABILITIES)
    return (2 if active else 3) if seen else (4 if active else 5)


def _near_focus(scene: Scene, shown: Shown, chosen: Sequence[int]) -> set[int]:
    """Return the elements of the text around what has the focus."""
    near: set[int] = set()
    for at, which in enumerate(chosen):
        if "focused" in scene.tree.nodes[shown.places[which]].states:
            near.update(chosen[max(0, at - _NEAR) : at + _NEAR + 1])
    return near
