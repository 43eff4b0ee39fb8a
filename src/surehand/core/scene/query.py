"""Queries over one scene: an AND of filters (spec §8.4).

Promises the same answer whatever the order of the filters, results in document order, time linear in the scene for
every pattern (RE2), and that nothing is ever picked for the caller: where exactly one element is asked for, several
are an error that lists them.

What the filters mean: roles also go by their aliases; texts compare exact code points and case; in names and contexts
any white space counts as one blank, and none at the ends, because toolkits pad and wrap what they show ("Save      ");
a control that says the text on it twice, as GTK 4.8 does, goes by it said once as well (`7` finds "7 7");
a context matches as a whole or in any one of its parts; `contains` and `contained-by` compare rectangles, as do
`within` (half-open: edges that touch do not count) and `nearest` (distance of centres, ties in document order, judged
among the elements that pass every other filter); `in-row` means the nearest list item, table row, tree item or card,
or the cells of one row number. Secret values match nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple

from surehand import limits
from surehand.core.scene.context import Contexts, contexts_of
from surehand.core.scene.describe import describe
from surehand.core.scene.fence import index_of_label
from surehand.core.scene.patterns import pattern
from surehand.core.scene.rows import ACTIVE_CAPABILITIES, CONTROL_ROLES, TEXT_ROLES
from surehand.core.scene.tree import Memo, TreeIndex, index_of
from surehand.errors import AmbiguousTarget, InvalidRequest, SurehandError, TargetNotFound, TooLarge
from surehand.model.query import Filter, Query, Rect, TextMatch
from surehand.model.scene import ROLE_ALIASES, ROLES, STATES, Bounds, Scene

#: Keeps of some places, in order, those that pass.
Sieve = Callable[[Sequence[int]], Sequence[int]]

#: Which source a backend's elements come from; several backends are adapters of one source.
_SOURCES: Final = {
    "atspi": "accessibility",
    "cdp": "dom",
    "x11": "window",
    "pixels": "pixels",
    "ocr": "ocr",
}
#: What an application says of itself is certain; only recognised pixels are not.
_CONFIDENCE_FULL: Final = 1000


class Found(NamedTuple):
    """The matches in document order, and whether there were more than the query asked for."""

    indexes: tuple[int, ...]
    truncated: bool


class _Lookup:
    """What queries look up in one scene's tree, built on first use."""

    __slots__ = ("_by_name", "_by_role", "_names", "_once", "_tree", "nodes", "tree")

    def __init__(self, scene: Scene) -> None:
        self._tree: Final = scene.tree
        self.tree: Final[TreeIndex] = index_of(scene.tree)
        self.nodes: Final = scene.tree.nodes
        self._by_role: dict[str, list[int]] | None = None
        self._by_name: dict[str, list[int]] | None = None
        self._names: list[str] | None = None
        self._once: dict[int, str] | None = None

    @property
    def contexts(self) -> Contexts:
        """The contexts; most queries ask for none."""
        return contexts_of(self._tree)

    @property
    def names(self) -> Sequence[str]:
        """The name of every element as queries compare it."""
        if self._names is None:
            self._names = [_evened(node.name) for node in self.nodes]
        return self._names

    @property
    def once(self) -> dict[int, str]:
        """The texts of those elements whose name says the text within them twice."""
        if self._once is None:
            self._once = {}
            for index, own in enumerate(self.names):
                text = own[: len(own) // 2]
                if (
                    text
                    and own == f"{text} {text}"
                    and text in {self.names[child] for child in self.tree.children[index]}
                ):
                    self._once[index] = text
        return self._once

    def with_role(self, role: str) -> Sequence[int]:
        if self._by_role is None:
            self._by_role = {}
            for index, node in enumerate(self.nodes):
                self._by_role.setdefault(node.role, []).append(index)
        return self._by_role.get(role, ())

    def with_name(self, name: str) -> Sequence[int]:
        if self._by_name is None:
            self._by_name = {}
            for index, own in enumerate(self.names):
                self._by_name.setdefault(own, []).append(index)
                if index in self.once:
                    self._by_name.setdefault(self.once[index], []).append(index)
        return self._by_name.get(_evened(name), ())


_LOOKUPS: Final[Memo[Scene, _Lookup]] = Memo()


def find(scene: Scene, query: Query) -> Found:
    """Return the elements that pass every filter.

    Raises:
        InvalidRequest: an unknown role or state, or a pattern RE2 does not take.
        TooLarge: queries nested deeper than `QUERY_DEPTH_MAX`.
        TargetNotFound, AmbiguousTarget: a relation's `to` is not exactly one element.
    """
    matches = _Finder(scene, 1).matches(query)
    return Found(tuple(matches[: query.max_results]), len(matches) > query.max_results)


def resolve_one(scene: Scene, query: Query) -> int:
    """Return the one element that passes every filter; a text inside a control that passes too is part of it.

    Raises:
        TargetNotFound: none; `observed["candidates"]` lists the elements that pass the most filters.
        AmbiguousTarget: several; `observed["candidates"]` lists the first `CANDIDATES_MAX`.
        InvalidRequest, TooLarge: as `find`.
    """
    return _Finder(scene, 1).only(query)


def check_query(query: Query, depth: int = 1) -> None:
    """Refuse a query that no scene could answer, without a scene.

    Raises:
        InvalidRequest: an unknown role or state, or a pattern RE2 does not take.
        TooLarge: queries nested deeper than `QUERY_DEPTH_MAX`.
    """
    if depth > limits.QUERY_DEPTH_MAX:
        raise TooLarge(f"queries nested deeper than {limits.QUERY_DEPTH_MAX}")
    for part in query.filters:
        if part.role is not None:
            _role(part.role)
        if part.state is not None:
            check_states(part.state)
        for match in (part.name, part.value, part.context):
            _text_test(match)
        if isinstance(part.to, Query):
            check_query(part.to, depth + 1)


def check_states(states: dict[str, bool]) -> None:
    """Refuse names that are no states.

    Raises:
        InvalidRequest: naming the first.
    """
    for name in states:
        if name not in STATES:
            raise InvalidRequest(
                "no such state", details={"state": name[:64]}, fix=f"one of {', '.join(sorted(STATES))}"
            )


class _Finder:
    def __init__(self, scene: Scene, depth: int) -> None:
        if depth > limits.QUERY_DEPTH_MAX:
            raise TooLarge(f"queries nested deeper than {limits.QUERY_DEPTH_MAX}")
        self._scene = scene
        self._depth = depth
        self._lookup = _LOOKUPS.get(scene, _Lookup)

    def only(self, query: Query) -> int:
        matches = self.matches(query)
        if len(matches) > 1:
            matches = self._without_repeats(matches)
        if len(matches) == 1:
            return matches[0]
        if not matches:
            raise TargetNotFound(
                "no element matches",
                fix="look at the candidates, or observe again",
                observed={"candidates": self._nearly(query)},
            )
        shown = matches[: limits.CANDIDATES_MAX]
        raise AmbiguousTarget(
            f"{len(matches)} elements match",
            fix=self._telling_apart(matches),
            details={"matches": len(matches)},
            observed={"candidates": [describe(self._scene, index) for index in shown]},
        )

    def _telling_apart(self, matches: Sequence[int]) -> str:
        """Return what to add to a query that several elements pass; what is hidden is never left out unasked."""
        nodes = self._lookup.nodes
        showing = sum("showing" in nodes[index].states for index in matches)
        if 0 < showing < len(matches):
            left = "one match" if showing == 1 else f"{showing} matches"
            return f'add {{"state":{{"showing":true}}}}, which leaves {left}, or another filter that tells them apart'
        return "add a filter that tells them apart, such as context or in-row"

    def _without_repeats(self, matches: Sequence[int]) -> Sequence[int]:
        """Drop the texts inside a matching control: what is written on a button is the button, not a second match."""
        nodes, tree = self._lookup.nodes, self._lookup.tree
        controls = {place for place in matches if nodes[place].role in CONTROL_ROLES}
        return [
            place
            for place in matches
            if nodes[place].role not in TEXT_ROLES
            or not nodes[place].capabilities.isdisjoint(ACTIVE_CAPABILITIES)
            or controls.isdisjoint(tree.ancestors(place))
        ]

    def matches(self, query: Query) -> Sequence[int]:
        last = [part for part in query.filters if part.relation == "nearest"]
        remaining = self._narrow([part for part in query.filters if part.relation != "nearest"])
        chosen = [self._nearest(remaining, part) for part in last]
        for nearest in chosen:
            remaining = [index for index in remaining if index == nearest]
        return remaining

    def _narrow(self, filters: Sequence[Filter]) -> Sequence[int]:
        """Start from the smallest list that is known to hold every match, then test the cheapest filters first."""
        candidates: Sequence[int] = range(len(self._lookup.nodes))
        # Every filter is compiled before any is tested: a wrong one is refused even when nothing is left to test.
        sieves = sorted((self._compile(part) for part in filters), key=lambda compiled: compiled[0])
        for known in filter(None, (self._known(part) for part in filters)):
            if len(known[0]) < len(candidates):
                candidates = known[0]
        for _, sieve in sieves:
            candidates = sieve(candidates)
        return candidates

    def _known(self, part: Filter) -> tuple[Sequence[int]] | None:
        if part.label is not None:
            index = index_of_label(self._scene, part.label)
            return ((),) if index is None else ((index,),)
        if part.name is not None and part.name.match == "exact":
            return (self._lookup.with_name(part.name.text),)
        if part.role is not None:
            return (self._lookup.with_role(_role(part.role)),)
        return None

    def _compile(self, part: Filter) -> tuple[int, Sieve]:
        """Return a filter's cost class and its sieve."""
        for field, build in self._BUILDERS.items():
            if getattr(part, field) is not None:
                return build(self, part)
        raise InvalidRequest("a filter sets exactly one condition")

    def _label(self, part: Filter) -> tuple[int, Sieve]:
        only = index_of_label(self._scene, part.label or "")
        return 0, lambda places: [place for place in places if place == only]

    def _role(self, part: Filter) -> tuple[int, Sieve]:
        nodes, role = self._lookup.nodes, _role(part.role or "")
        return 0, lambda places: [place for place in places if nodes[place].role == role]

    def _state(self, part: Filter) -> tuple[int, Sieve]:
        nodes = self._lookup.nodes
        wanted, unwanted = _states(part.state or {})
        return 1, lambda places: [
            place
            for place in places
            if wanted <= nodes[place].states and (not unwanted or unwanted.isdisjoint(nodes[place].states))
        ]

    def _capability(self, part: Filter) -> tuple[int, Sieve]:
        nodes, capability = self._lookup.nodes, part.capability
        return 1, lambda places: [place for place in places if capability in nodes[place].capabilities]

    def _source(self, part: Filter) -> tuple[int, Sieve]:
        same = _SOURCES.get(self._scene.provenance.backend) == part.source
        return 0, lambda places: places if same else []

    def _confidence(self, part: Filter) -> tuple[int, Sieve]:
        enough = (part.confidence_min or 0) <= _CONFIDENCE_FULL
        return 0, lambda places: places if enough else []

    def _within(self, part: Filter) -> tuple[int, Sieve]:
        nodes, area = self._lookup.nodes, part.within or Rect(x=0, y=0, width=0, height=0)
        return 2, lambda places: [place for place in places if _intersects(nodes[place].bounds, area)]

    def _name(self, part: Filter) -> tuple[int, Sieve]:
        names, once = self._lookup.names, self._lookup.once
        cost, test = _text_test(part.name, evened=True)
        if not once:
            return cost, lambda places: _passing(places, [names[place] for place in places], test)
        return cost, lambda places: [
            place for place in places if test(names[place]) or (place in once and test(once[place]))
        ]

    def _value(self, part: Filter) -> tuple[int, Sieve]:
        nodes = self._lookup.nodes
        cost, test = _text_test(part.value)
        return cost, lambda places: _passing(
            places, [None if nodes[place].secret else nodes[place].value for place in places], test
        )

    def _context(self, part: Filter) -> tuple[int, Sieve]:
        cost, test = _text_test(part.context, evened=True)
        return cost + 1, lambda places: self._pass_context(places, test)

    def _pass_context(self, places: Sequence[int], test: Callable[[str], bool]) -> Sequence[int]:
        """Keep the places whose context passes as a whole or in any part; many share one context."""
        contexts = self._lookup.contexts.contexts
        answers: dict[str, bool] = {}
        kept: list[int] = []
        for place in places:
            context = contexts[place]
            passes = answers.get(context.hash)
            if passes is None:
                passes = test(_evened(context.text)) or any(test(_evened(part.text)) for part in context.parts)
                answers[context.hash] = passes
            if passes:
                kept.append(place)
        return kept

    def _relation(self, part: Filter) -> tuple[int, Sieve]:
        return _RELATIONS[part.relation or ""](self._lookup, self._anchor(part))

    _BUILDERS: Final = {
        "label": _label,
        "role": _role,
        "state": _state,
        "capability": _capability,
        "source": _source,
        "confidence_min": _confidence,
        "within": _within,
        "name": _name,
        "value": _value,
        "context": _context,
        "relation": _relation,
    }

    def _anchor(self, part: Filter) -> int:
        """Return the one element a relation refers to."""
        if isinstance(part.to, Query):
            try:
                return _Finder(self._scene, self._depth + 1).only(part.to)
            except (TargetNotFound, AmbiguousTarget) as error:
                error.details["relation"] = part.relation
                raise
        index = index_of_label(self._scene, part.to) if part.to is not None else None
        if index is None:
            raise TargetNotFound(
                f"{part.to} is not in this scene",
                fix="observe again and use a label of that scene",
                details={"relation": part.relation, "element": part.to},
            )
        return index

    def _nearest(self, candidates: Sequence[int], part: Filter) -> int | None:
        nodes = self._lookup.nodes
        to = self._anchor(part)
        centre = _doubled_centre(nodes[to].bounds)
        best: tuple[int, int] | None = None
        for index in candidates:
            other = _doubled_centre(nodes[index].bounds)
            if index == to or other is None or centre is None:
                continue
            away = (other[0] - centre[0]) ** 2 + (other[1] - centre[1]) ** 2
            if best is None or (away, index) < best:
                best = (away, index)
        return None if best is None else best[1]

    def _nearly(self, query: Query) -> list[str]:
        """Describe the elements that pass most of the filters, at least one of them."""
        passed = [0] * len(self._lookup.nodes)
        for part in query.filters:
            for index in self._passes(part):
                passed[index] += 1
        ranked = sorted(
            (index for index, count in enumerate(passed) if count), key=lambda index: (-passed[index], index)
        )
        best = [index for index in ranked if passed[index] == passed[ranked[0]]]
        # An element without a name helps nobody to choose.
        named = [index for index in best if self._lookup.nodes[index].name] or best
        return [describe(self._scene, index) for index in named[: limits.CANDIDATES_MAX]]

    def _passes(self, part: Filter) -> Sequence[int]:
        if part.name is not None and part.name.match == "exact" and part.name.text:
            # Wrong case or a part of the name is the usual slip.
            folded = _evened(part.name.text).casefold()
            names = self._lookup.names
            return [index for index, name in enumerate(names) if name and _alike(name.casefold(), folded)]
        try:
            return self.matches(Query(filters=(part,)))
        except SurehandError:
            return ()


def _alike(one: str, other: str) -> bool:
    return one in other or other in one


def _passing(places: Sequence[int], texts: Sequence[str | None], test: Callable[[str], bool]) -> Sequence[int]:
    """Keep the places whose text passes; equal texts are tested once."""
    passing = {text for text in set(texts) if text is not None and test(text)}
    return [place for place, text in zip(places, texts, strict=True) if text in passing]


# --- words -----------------------------------------------------------------------------------------------------------


def _role(role: str) -> str:
    known = ROLE_ALIASES.get(role, role)
    if known not in ROLES:
        raise InvalidRequest("no such role", details={"role": role[:64]}, fix=f"one of {', '.join(sorted(ROLES))}")
    return known


def _states(states: dict[str, bool]) -> tuple[frozenset[str], frozenset[str]]:
    check_states(states)
    wanted = frozenset(name for name, present in states.items() if present)
    return wanted, frozenset(states) - wanted


# --- texts -----------------------------------------------------------------------------------------------------------


def _evened(text: str) -> str:
    """Return text with every run of white space as one blank, and none at its ends."""
    return " ".join(text.split())


def _text_test(match: TextMatch | None, *, evened: bool = False) -> tuple[int, Callable[[str], bool]]:
    """Return how dear a comparison is, and the comparison; with `evened` for texts that went through `_evened`."""
    if match is None:
        return 0, lambda _: True
    text = _evened(match.text) if evened and match.match != "regex" else match.text
    if match.match == "exact":
        return 1, lambda candidate: candidate == text
    if match.match == "prefix":
        return 2, lambda candidate: candidate.startswith(text)
    if match.match == "contains":
        return 3, lambda candidate: text in candidate
    search = pattern(text).search
    return 5, lambda candidate: search(_as_bytes(candidate)) is not None


def _as_bytes(text: str) -> bytes:
    """Return UTF-8; an application may show a lone surrogate, which has none."""
    return text.encode() if text.isascii() else text.encode("utf-8", "replace")


# --- relations -------------------------------------------------------------------------------------------------------


def _keep_one(only: int) -> Sieve:
    return lambda places: [place for place in places if place == only]


def _keep_any(wanted: AbstractSet[int]) -> Sieve:
    return lambda places: [place for place in places if place in wanted]


def _sibling(lookup: _Lookup, to: int) -> tuple[int, Sieve]:
    parent = lookup.tree.parents[to]
    siblings = frozenset(lookup.tree.children[parent]) - {to} if parent >= 0 else frozenset()
    return 0, _keep_any(siblings)


def _descendant(lookup: _Lookup, to: int) -> tuple[int, Sieve]:
    end = lookup.tree.ends[to]
    return 0, lambda places: [place for place in places if to < place < end]


def _contains(lookup: _Lookup, to: int) -> tuple[int, Sieve]:
    nodes = lookup.nodes
    inner = nodes[to].bounds
    return 2, lambda places: [place for place in places if place != to and _holds(nodes[place].bounds, inner)]


def _contained_by(lookup: _Lookup, to: int) -> tuple[int, Sieve]:
    nodes = lookup.nodes
    outer = nodes[to].bounds
    return 2, lambda places: [place for place in places if place != to and _holds(outer, nodes[place].bounds)]


def _labelled_by(lookup: _Lookup, to: int) -> tuple[int, Sieve]:
    nodes, handle = lookup.nodes, lookup.nodes[to].handle
    return 1, lambda places: [place for place in places if handle in nodes[place].labelled_by]


def _in_row(lookup: _Lookup, to: int) -> tuple[int, Sieve]:
    rows = lookup.contexts.row_keys
    row = rows[to]
    if row is None:
        return 0, lambda _: []
    return 0, lambda places: [place for place in places if place != to and rows[place] == row]


_RELATIONS: Final[dict[str, Callable[[_Lookup, int], tuple[int, Sieve]]]] = {
    "parent": lambda lookup, to: (0, _keep_one(lookup.tree.parents[to])),
    "child": lambda lookup, to: (0, _keep_any(frozenset(lookup.tree.children[to]))),
    "ancestor": lambda lookup, to: (0, _keep_any(frozenset(lookup.tree.ancestors(to)))),
    "descendant": _descendant,
    "sibling": _sibling,
    "contains": _contains,
    "contained-by": _contained_by,
    "labelled-by": _labelled_by,
    "in-row": _in_row,
}


# --- rectangles ------------------------------------------------------------------------------------------------------
# Python integers do not overflow, so extents at the ends of 32 bits compare as they should.


def _intersects(bounds: Bounds | None, area: Rect) -> bool:
    if bounds is None:
        return False
    x, y, width, height = bounds
    return (
        width > 0
        and height > 0
        and area.width > 0
        and area.height > 0
        and x < area.x + area.width
        and area.x < x + width
        and y < area.y + area.height
        and area.y < y + height
    )


def _holds(outer: Bounds | None, inner: Bounds | None) -> bool:
    if outer is None or inner is None or min(outer[2], outer[3], inner[2], inner[3]) <= 0:
        return False
    return (
        outer[0] <= inner[0]
        and outer[1] <= inner[1]
        and inner[0] + inner[2] <= outer[0] + outer[2]
        and inner[1] + inner[3] <= outer[1] + outer[3]
    )


def _doubled_centre(bounds: Bounds | None) -> tuple[int, int] | None:
    """Return twice the centre, which is always whole; None for what takes no room."""
    if bounds is None or bounds[2] <= 0 or bounds[3] <= 0:
        return None
    return 2 * bounds[0] + bounds[2], 2 * bounds[1] + bounds[3]
