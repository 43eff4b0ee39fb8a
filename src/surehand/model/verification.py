"""What a caller expects to be true afterwards (spec §9). Evaluated in `core/verification.py`."""

from __future__ import annotations

from surehand import limits
from surehand.errors import TooLarge
from surehand.model.query import Query
from surehand.model.record import Tagged, check_count, check_text


class NoVerification(Tagged, frozen=True, kw_only=True, tag="none"):
    """Nothing is read back; the effect is `executed_unverified`."""


class ValueIs(Tagged, frozen=True, kw_only=True, tag="value"):
    """The target's value equals this; without `equals`, the value the action set."""

    equals: str | None = None

    def __post_init__(self) -> None:
        if self.equals is not None:
            check_text("equals", self.equals, limits.VALUE_BYTES_MAX)


class StateIs(Tagged, frozen=True, kw_only=True, tag="state"):
    """Each named state of the target is present (true) or absent (false)."""

    states: dict[str, bool]

    def __post_init__(self) -> None:
        check_count("states", len(self.states), 1, 32)


class TextContains(Tagged, frozen=True, kw_only=True, tag="text"):
    """The target's name, value or text contains this."""

    contains: str

    def __post_init__(self) -> None:
        check_text("contains", self.contains, limits.TEXT_BYTES_MAX, empty=False)


class Appears(Tagged, frozen=True, kw_only=True, tag="appears"):
    """At least one element of the application matches."""

    query: Query


class Disappears(Tagged, frozen=True, kw_only=True, tag="disappears"):
    """The target, or every match of the query, is gone."""

    query: Query | None = None


class TitleContains(Tagged, frozen=True, kw_only=True, tag="title"):
    """The window title contains this."""

    contains: str

    def __post_init__(self) -> None:
        check_text("contains", self.contains, limits.NAME_CHARS_MAX, empty=False)


class UrlContains(Tagged, frozen=True, kw_only=True, tag="url"):
    """The page's address contains this."""

    contains: str

    def __post_init__(self) -> None:
        check_text("contains", self.contains, 16 * 1024, empty=False)


class AllOf(Tagged, frozen=True, kw_only=True, tag="all"):
    """Every part holds."""

    parts: tuple[Verification, ...]

    def __post_init__(self) -> None:
        check_count("parts", len(self.parts), 1, limits.VERIFICATION_PARTS_MAX)
        _check_depth(self, 1)


class AnyOf(Tagged, frozen=True, kw_only=True, tag="any"):
    """At least one part holds."""

    parts: tuple[Verification, ...]

    def __post_init__(self) -> None:
        check_count("parts", len(self.parts), 1, limits.VERIFICATION_PARTS_MAX)
        _check_depth(self, 1)


Verification = (
    NoVerification
    | ValueIs
    | StateIs
    | TextContains
    | Appears
    | Disappears
    | TitleContains
    | UrlContains
    | AllOf
    | AnyOf
)


def _check_depth(part: Verification, depth: int) -> None:
    if depth > limits.VERIFICATION_DEPTH_MAX:
        raise TooLarge(f"verification nested deeper than {limits.VERIFICATION_DEPTH_MAX}")
    if isinstance(part, AllOf | AnyOf):
        for inner in part.parts:
            _check_depth(inner, depth + 1)
