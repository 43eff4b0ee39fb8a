"""Differences between two text forms (spec §8.5).

A diff is text, one operation a line:

    diff of=6#1f3a9c2e generation=7
    = [e1] window "New title" app=… surface=… generation=7
    - e5..e9 e12
    > e4 e20..e23
    ~   [e7] button "Save" disabled
    + e7   [e44] button "New"
    + e44   [e45] listitem in="dave": [e46] button "Open"
    … 12 more elements: use query or scope

`diff` names the generation and digest of the text it applies to, and the new generation. `=` replaces the window's
line where more than the generation changed. `-` removes elements, `a..b` being those from a to b as they stand. `>`
moves elements to just after another. `~` replaces an element's line. `+` adds elements just after another one, joined
as in a text (`packing.py`); `e0` stands for the window's line. The operations apply in order. A last line beginning
with `…` is the omission marker of the new text; without it the new text has none. Operations speak of the text with a
line for each element, which any text can be taken apart to; how lines are joined follows from it.

The law: `apply(base, diff) == current`, byte for byte. Whatever is in doubt becomes the full text, with the reason.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from bisect import bisect_left
from typing import Final

import msgspec

from surehand.core.scene.packing import OMISSION, label_of, pack, unpack
from surehand.core.scene.render import DEFAULTS, MARKER_KEY, Rendering, RenderOptions, render
from surehand.core.scene.tokens import tokens
from surehand.errors import InvalidRequest
from surehand.model.scene import Scene

_HEAD: Final = re.compile(r"diff of=(\d+)#([0-9a-f]{8}) generation=(\d+)")
_GENERATION: Final = re.compile(r"generation=\d+\Z")
_WINDOW: Final = "e0"
#: Runs shorter than this are written out.
_RUN_MIN: Final = 3


class SceneDiff(msgspec.Struct, frozen=True, kw_only=True):
    """What to tell a caller who holds the text of an earlier scene.

    `full` says that `text` is the whole text form and not a diff, `reason` why.
    """

    text: str
    full: bool
    reason: str = ""


def diff(base: Scene | None, scene: Scene, options: RenderOptions = DEFAULTS) -> SceneDiff:
    """Return the change from `base` to `scene`, or the full text where a diff is in doubt or no shorter.

    Raises:
        TargetNotFound: the part asked for is not in `scene`.
    """
    current = render(scene, options)
    reason = _doubt(base, scene, options)
    if base is None or reason:
        return SceneDiff(text=current.text, full=True, reason=reason)
    before = render(base, options)
    lines = [] if before is current else _operations(before, current)
    head = f"diff of={base.generation}#{_digest(before.text)} generation={scene.generation}"
    text = "\n".join([head, *lines])
    whole = current.text
    if len(text) >= len(whole) or (options.tokens_max is not None and tokens(text) > options.tokens_max):
        return SceneDiff(text=whole, full=True, reason="most of the window changed")
    return SceneDiff(text=text, full=False)


def _doubt(base: Scene | None, scene: Scene, options: RenderOptions) -> str:
    if base is None:
        return "no earlier scene is known"
    if base.session != scene.session:
        return "the earlier scene is another session's"
    if base.provenance_hash != scene.provenance_hash:
        return "the window or its process was replaced"
    if options.within is not None and all(target.label != options.within for target in base.targets):
        return "the part asked for is not in the earlier scene"
    return ""


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:8]


# --- writing ---------------------------------------------------------------------------------------------------------


def _body(rendering: Rendering) -> tuple[list[str], list[str], str]:
    """Return keys and lines of the elements without window line and marker, and the marker."""
    keys, lines = list(rendering.keys[1:]), list(rendering.lines[1:])
    if keys and keys[-1] == MARKER_KEY:
        keys.pop()
        return keys, lines, lines.pop()
    return keys, lines, ""


def _operations(before: Rendering, current: Rendering) -> list[str]:
    operations: list[str] = []
    old_head, new_head = before.lines[0], current.lines[0]
    if _GENERATION.sub("", old_head) != _GENERATION.sub("", new_head):
        operations.append(f"= {new_head}")
    old_keys, old_lines, _ = _body(before)
    new_keys, new_lines, marker = _body(current)
    operations += _body_operations(old_keys, old_lines, new_keys, new_lines)
    if marker:
        operations.append(marker)
    return operations


def _body_operations(old_keys: list[str], old_lines: list[str], new_keys: list[str], new_lines: list[str]) -> list[str]:
    start, old_end, new_end = _differing(old_lines, new_lines)
    old = {old_keys[place]: place for place in range(start, old_end)}
    wanted = set(new_keys[start:new_end])
    removed = [key for key in old_keys[start:old_end] if key not in wanted]
    kept = [key for key in old_keys[start:old_end] if key in wanted]
    staying = _staying([old[key] for key in new_keys[start:new_end] if key in old])
    writer = _Writer(dict(itertools.pairwise(kept)))
    if removed:
        writer.operations.append(f"- {' '.join(_runs(removed, old_keys))}")
    after = new_keys[start - 1] if start else _WINDOW
    for place in range(start, new_end):
        key, line = new_keys[place], new_lines[place]
        was = old.get(key)
        if was is None:
            writer.add(after, key, line)
        else:
            if was not in staying:
                writer.move(after, key)
            if old_lines[was] != line:
                writer.write(f"~ {line}")
        after = key
    writer.flush()
    return writer.operations


def _differing(old: list[str], new: list[str]) -> tuple[int, int, int]:
    """Return where both begin to differ and where, from there, each ends to."""
    start = 0
    shorter = min(len(old), len(new))
    while start < shorter and old[start] == new[start]:
        start += 1
    old_end, new_end = len(old), len(new)
    while old_end > start and new_end > start and old[old_end - 1] == new[new_end - 1]:
        old_end, new_end = old_end - 1, new_end - 1
    return start, old_end, new_end


class _Writer:
    """Collects operations; elements that move and stand together before and after move as one run.

    Elements that are added one after the other are joined.
    """

    def __init__(self, follows: dict[str, str]) -> None:
        self.operations: list[str] = []
        self._follows = follows
        self._after = ""
        self._run: list[str] = []
        self._added: list[tuple[str, str]] = []

    def write(self, operation: str) -> None:
        self.flush()
        self.operations.append(operation)

    def add(self, after: str, key: str, line: str) -> None:
        if not self._added or after != self._added[-1][0]:
            self.flush()
            self._after = after
        self._added.append((key, line))

    def move(self, after: str, key: str) -> None:
        if self._added:
            self.flush()
        if self._run and (after != self._run[-1] or self._follows.get(after) != key):
            self.flush()
        if not self._run:
            self._after = after
        self._run.append(key)

    def flush(self) -> None:
        if self._run:
            self.operations.append(_move(self._after, self._run))
            self._run = []
        after, place = self._after, 0
        for packed in pack([line for _, line in self._added]):
            self.operations.append(f"+ {after} {packed.text}")
            place += packed.elements
            after = self._added[place - 1][0]
        self._added = []


def _move(after: str, keys: list[str]) -> str:
    return f"> {after} {keys[0] if len(keys) == 1 else f'{keys[0]}..{keys[-1]}'}"


def _runs(removed: list[str], old_keys: list[str]) -> list[str]:
    """Return the removed labels, elements that stand together as `first..last`."""
    follows = dict(itertools.pairwise(old_keys))
    words: list[str] = []
    run: list[str] = []
    for key in removed:
        if run and follows.get(run[-1]) != key:
            words += _run(run)
            run = []
        run.append(key)
    return words + _run(run)


def _run(run: list[str]) -> list[str]:
    return [f"{run[0]}..{run[-1]}"] if len(run) >= _RUN_MIN else run


def _staying(places: list[int]) -> set[int]:
    """Return a longest increasing choice of the old places in their new order: the elements that need not move."""
    tails: list[int] = []
    ends: list[int] = []
    back: list[int] = []
    for which, place in enumerate(places):
        at = bisect_left(tails, place)
        if at == len(tails):
            tails.append(place)
            ends.append(which)
        else:
            tails[at] = place
            ends[at] = which
        back.append(ends[at - 1] if at else -1)
    staying: set[int] = set()
    which = ends[-1] if ends else -1
    while which >= 0:
        staying.add(places[which])
        which = back[which]
    return staying


# --- applying --------------------------------------------------------------------------------------------------------


def apply(base_text: str, diff_text: str) -> str:
    """Return the text form that a diff leads to; a full text leads to itself.

    Raises:
        InvalidRequest: `diff_text` is no diff of `base_text`.
    """
    head, *operations = diff_text.split("\n")
    if not head.startswith("diff "):
        return diff_text
    found = _HEAD.fullmatch(head)
    if found is None or _digest(base_text) != found[2]:
        raise InvalidRequest("the diff is of another text", fix="ask for the full text")
    try:
        return _Text(base_text, found[3]).apply(operations)
    except (KeyError, ValueError, IndexError) as error:
        raise InvalidRequest("the diff does not fit its text", fix="ask for the full text") from error


class _Text:
    """A text form as a chain of lines by label."""

    def __init__(self, text: str, generation: str) -> None:
        head, *body = text.split("\n")
        self._head = _GENERATION.sub(f"generation={generation}", head)
        if body and body[-1].startswith(OMISSION):
            body.pop()
        self._lines: dict[str, str] = {}
        self._next: dict[str, str] = {}
        self._previous: dict[str, str] = {}
        last = _WINDOW
        for line in unpack(body):
            key = label_of(line)
            self._lines[key] = line
            self._next[last], self._previous[key] = key, last
            last = key
        self._next[last], self._previous[""] = "", last

    def apply(self, operations: list[str]) -> str:
        marker = ""
        for operation in operations:
            if operation.startswith(OMISSION):
                marker = operation
            else:
                kind, _, rest = operation.partition(" ")
                self._do(kind, rest)
        lines = [self._head]
        key = self._next[_WINDOW]
        while key:
            lines.append(self._lines.pop(key))
            key = self._next[key]
        # A made-up operation can tie a chain into a ring; then a line comes twice or not at all.
        if self._lines:
            raise ValueError("lines were lost")
        text = [lines[0], *(packed.text for packed in pack(lines[1:]))]
        return "\n".join([*text, marker] if marker else text)

    def _do(self, kind: str, rest: str) -> None:
        if kind == "=":
            self._head = rest
        elif kind == "-":
            for word in rest.split(" "):
                self._remove(word)
        elif kind == ">":
            after, word = rest.split(" ")
            self._move(after, word)
        elif kind == "~":
            for line in unpack([rest]):
                self._lines[self._known(label_of(line))] = line
        elif kind == "+":
            after, _, line = rest.partition(" ")
            for added in unpack([line]):
                self._add(after, added)
                after = label_of(added)
        else:
            raise ValueError(kind)

    def _known(self, key: str) -> str:
        if key not in self._lines:
            raise KeyError(key)
        return key

    def _cut(self, word: str) -> tuple[str, str]:
        """Take `a` or `a..b` out of the chain; return its ends."""
        first, _, last = word.partition("..")
        last = last or first
        before, after = self._previous[first], self._next[last]
        self._next[before], self._previous[after] = after, before
        return first, last

    def _remove(self, word: str) -> None:
        first, last = self._cut(word)
        key = first
        while True:
            del self._lines[key]
            if key == last:
                return
            key = self._next[key]

    def _move(self, after: str, word: str) -> None:
        first, last = self._cut(word)
        self._link(after, first, last)

    def _add(self, after: str, line: str) -> None:
        key = label_of(line)
        if key in self._lines:
            raise ValueError(line)
        self._lines[key] = line
        self._link(after, key, key)

    def _link(self, after: str, first: str, last: str) -> None:
        following = self._next[after]
        self._next[after], self._previous[first] = first, after
        self._next[last], self._previous[following] = following, last
