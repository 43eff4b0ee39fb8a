"""Queries: an AND of up to 32 filters over the targets of a scene (spec §8.4). Evaluated in `core/scene/query.py`."""

from __future__ import annotations

from typing import Literal

from surehand import limits
from surehand.errors import InvalidRequest
from surehand.model.record import Record, check_count, check_range, check_text

Match = Literal["exact", "prefix", "contains", "regex"]
Relation = Literal[
    "parent",
    "child",
    "ancestor",
    "descendant",
    "sibling",
    "contains",
    "contained-by",
    "nearest",
    "labelled-by",
    "in-row",
]
Capability = Literal[
    "invoke",
    "set_value",
    "set_text",
    "select_text",
    "select",
    "toggle",
    "expand",
    "focus",
    "scroll",
    "perform",
    "point",
]


class TextMatch(Record, frozen=True, kw_only=True):
    """A text and how to compare it: case-sensitive code points, white space of names and contexts as one blank.

    `regex` is RE2, unanchored, at most 256 bytes.
    """

    text: str
    match: Match = "exact"

    def __post_init__(self) -> None:
        check_text("text", self.text, limits.QUERY_TEXT_BYTES_MAX)
        if self.match == "regex":
            check_text("regex", self.text, limits.QUERY_REGEX_BYTES_MAX, empty=False)


class Rect(Record, frozen=True, kw_only=True):
    """A rectangle in desktop pixels; half-open, so edges that touch do not intersect."""

    x: int
    y: int
    width: int
    height: int

    def __post_init__(self) -> None:
        for name in ("x", "y"):
            check_range(name, getattr(self, name), -limits.COORDINATE_MAX, limits.COORDINATE_MAX)
        for name in ("width", "height"):
            check_range(name, getattr(self, name), 0, limits.COORDINATE_MAX)


class Filter(Record, frozen=True, kw_only=True):
    """One condition; exactly one of the condition fields is set.

    `relation` reads "is the R of `to`": `relation="child", to="e3"` keeps the children of e3. `to` is a label, or a
    query that must have exactly one match.
    """

    label: str | None = None
    role: str | None = None
    name: TextMatch | None = None
    value: TextMatch | None = None
    state: dict[str, bool] | None = None
    capability: Capability | None = None
    source: Literal["accessibility", "dom", "window", "pixels", "ocr"] | None = None
    within: Rect | None = None
    confidence_min: int | None = None
    context: TextMatch | None = None
    relation: Relation | None = None
    to: str | Query | None = None

    def __post_init__(self) -> None:
        fields = [field for field in self.__struct_fields__ if field != "to" and getattr(self, field) is not None]
        if len(fields) != 1:
            raise InvalidRequest("a filter sets exactly one condition")
        if (self.relation is None) != (self.to is None):
            raise InvalidRequest("relation and to go together")
        if self.confidence_min is not None:
            check_range("confidence_min", self.confidence_min, 0, 1000)
        if self.state is not None:
            check_count("state", len(self.state), 1, 32)
        for text in (self.label, self.role):
            if text is not None:
                check_text("filter", text, limits.IDENTIFIER_CHARS_MAX, empty=False)


class Query(Record, frozen=True, kw_only=True):
    """1..32 filters that must all hold; `nth` is not offered on purpose: position is not meaning."""

    filters: tuple[Filter, ...]
    max_results: int = 256

    def __post_init__(self) -> None:
        check_count("filters", len(self.filters), 1, limits.QUERY_FILTERS_MAX)
        check_range("max_results", self.max_results, 1, limits.QUERY_RESULTS_MAX)
