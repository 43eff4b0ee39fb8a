"""What an action is aimed at (spec §3.3). Every acting request carries exactly one of these."""

from __future__ import annotations

from typing import Literal

from surehand import limits
from surehand.model.query import Query
from surehand.model.record import Tagged, check_hash, check_identifier, check_range


class ElementTarget(Tagged, frozen=True, kw_only=True, tag="element"):
    """An element as it was observed: its label in the session and the hashes that fence it."""

    scene_id: str
    generation: int
    element_id: str
    provenance_hash: str
    fingerprint_hash: str
    context_hash: str

    def __post_init__(self) -> None:
        check_identifier("scene_id", self.scene_id)
        check_range("generation", self.generation, 1, limits.INTEGER_MAX)
        check_identifier("element_id", self.element_id)
        for name in ("provenance_hash", "fingerprint_hash", "context_hash"):
            check_hash(name, getattr(self, name))


class QueryTarget(Tagged, frozen=True, kw_only=True, tag="query"):
    """Exactly one live match in one surface, resolved and policy-decided at the moment of acting."""

    surface: str
    query: Query
    must_match: Literal["one"] = "one"

    def __post_init__(self) -> None:
        check_identifier("surface", self.surface)


class PointTarget(Tagged, frozen=True, kw_only=True, tag="point"):
    """A place in a capture; fenced by window, geometry and the element or the pixels under it."""

    space: Literal["desktop", "window", "screenshot"]
    x: int
    y: int
    capture_id: str

    def __post_init__(self) -> None:
        check_range("x", self.x, -limits.COORDINATE_MAX, limits.COORDINATE_MAX)
        check_range("y", self.y, -limits.COORDINATE_MAX, limits.COORDINATE_MAX)
        check_identifier("capture_id", self.capture_id)


class SurfaceTarget(Tagged, frozen=True, kw_only=True, tag="surface"):
    """A whole window or page."""

    ref: str

    def __post_init__(self) -> None:
        check_identifier("ref", self.ref)


class NoTarget(Tagged, frozen=True, kw_only=True, tag="none"):
    """For actions that have no target yet: launching, opening."""


Target = ElementTarget | QueryTarget | PointTarget | SurfaceTarget | NoTarget
