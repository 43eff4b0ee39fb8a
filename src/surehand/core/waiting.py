"""What `wait_for` can wait for, and whether it has come (spec §8.6).

One to eight conditions, all or any of them. Texts compare exactly as in queries: code points, case. Evaluated on what
was read; a condition about something unreadable does not hold, and does not fail either: the wait goes on. Not having
come at the deadline is a normal result. Reads no clock and waits for nothing itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from surehand import limits
from surehand.core.scene.query import find
from surehand.core.verification import texts_equal
from surehand.errors import AmbiguousTarget, TargetNotFound
from surehand.model.query import Query
from surehand.model.record import Record, Tagged, check_count, check_range, check_text
from surehand.model.scene import Scene


class ElementExists(Tagged, frozen=True, kw_only=True, tag="element_exists"):
    """At least one element of the window matches."""

    query: Query


class ElementGone(Tagged, frozen=True, kw_only=True, tag="element_gone"):
    """No element of the window matches; the window itself being gone counts."""

    query: Query


class ValueEquals(Tagged, frozen=True, kw_only=True, tag="value_equals"):
    """At least one element that matches has exactly this value; a secret's value never does."""

    query: Query
    equals: str

    def __post_init__(self) -> None:
        check_text("equals", self.equals, limits.VALUE_BYTES_MAX)


class TitleContains(Tagged, frozen=True, kw_only=True, tag="title_contains"):
    """The window's title contains this."""

    contains: str

    def __post_init__(self) -> None:
        check_text("contains", self.contains, limits.NAME_CHARS_MAX, empty=False)


class TitleChanged(Tagged, frozen=True, kw_only=True, tag="title_changed"):
    """The window's title is not this any more."""

    since: str

    def __post_init__(self) -> None:
        check_text("since", self.since, limits.FIELD_BYTES_STORED_MAX)


class UrlContains(Tagged, frozen=True, kw_only=True, tag="url_contains"):
    """The page's address contains this."""

    contains: str

    def __post_init__(self) -> None:
        check_text("contains", self.contains, limits.WAIT_URL_BYTES_MAX, empty=False)


class UrlChanged(Tagged, frozen=True, kw_only=True, tag="url_changed"):
    """The page's address is not this any more."""

    since: str

    def __post_init__(self) -> None:
        check_text("since", self.since, limits.WAIT_URL_BYTES_MAX)


class GenerationAfter(Tagged, frozen=True, kw_only=True, tag="generation_after"):
    """The window's generation in this session is greater than this."""

    generation: int

    def __post_init__(self) -> None:
        check_range("generation", self.generation, 0, limits.INTEGER_MAX)


Condition = (
    ElementExists
    | ElementGone
    | ValueEquals
    | TitleContains
    | TitleChanged
    | UrlContains
    | UrlChanged
    | GenerationAfter
)


class Wait(Record, frozen=True, kw_only=True):
    """A wait: 1..8 conditions, whether all or any must hold, and how long at most."""

    conditions: tuple[Condition, ...]
    mode: Literal["all", "any"] = "all"
    timeout_ms: int = limits.WAIT_MS_DEFAULT

    def __post_init__(self) -> None:
        check_count("conditions", len(self.conditions), 1, limits.WAIT_CONDITIONS_MAX)
        check_range("timeout_ms", self.timeout_ms, 1, limits.WAIT_MS_MAX)


class Sight(msgspec.Struct, frozen=True, kw_only=True):
    """What was read of the window: None for what was not, or cannot be.

    `gone` says that the window is known not to exist any more. The title is the surface's, so that title conditions
    cost no tree.
    """

    scene: Scene | None = None
    title: str | None = None
    url: str | None = None
    gone: bool = False


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the wait is over, and each condition's answer in the order asked."""

    satisfied: bool
    conditions: tuple[bool, ...]


def needs_scene(wait: Wait) -> bool:
    """Return whether any condition looks into the window; otherwise its tree need not be read."""
    return any(
        isinstance(part, ElementExists | ElementGone | ValueEquals | GenerationAfter) for part in wait.conditions
    )


def needs_url(wait: Wait) -> bool:
    """Return whether any condition is about the page's address."""
    return any(isinstance(part, UrlContains | UrlChanged) for part in wait.conditions)


def progress(wait: Wait, sight: Sight) -> Progress:
    """Return which conditions hold on what was read.

    Raises:
        InvalidRequest, TooLarge: a condition's query is wrong; waiting would not mend it.
    """
    answers = tuple(_holds(condition, sight) for condition in wait.conditions)
    return Progress(satisfied=all(answers) if wait.mode == "all" else any(answers), conditions=answers)


#: What says that something is not there or not so any more.
_NOT_ANY_MORE: Final = (ElementGone, TitleChanged, UrlChanged)


def over_windows(wait: Wait, looks: Sequence[tuple[bool, ...]], *, all_read: bool) -> tuple[bool, ...]:
    """Return the answers of the window that comes closest, where an application has several.

    What must not be there any more must be so in every one of them, or another window would vouch for its absence;
    a window that could not be read vouches for nothing.

    Args:
        wait: What is waited for.
        looks: The answers of each window that was read; at least one.
        all_read: Whether every window was.
    """
    everywhere = tuple(all_read and all(column) for column in zip(*looks, strict=True))
    return max(
        (
            tuple(
                everywhere[index] if isinstance(condition, _NOT_ANY_MORE) else look[index]
                for index, condition in enumerate(wait.conditions)
            )
            for look in looks
        ),
        key=sum,
    )


def matching(condition: Condition, sight: Sight) -> tuple[int, ...]:
    """Return the elements that a condition is about, as they were read; none where it is about none."""
    if isinstance(condition, ElementExists | ElementGone | ValueEquals):
        return _matches(sight, condition.query) or ()
    return ()


def _holds(condition: Condition, sight: Sight) -> bool:
    match condition:
        case ElementExists():
            return bool(_matches(sight, condition.query))
        case ElementGone():
            return sight.gone or _matches(sight, condition.query) == ()
        case ValueEquals():
            return _has_value(sight, condition)
        case GenerationAfter():
            return sight.scene is not None and sight.scene.generation > condition.generation
        case _:
            return _text_holds(condition, sight)


def _text_holds(condition: TitleContains | TitleChanged | UrlContains | UrlChanged, sight: Sight) -> bool:
    text = sight.title if isinstance(condition, TitleContains | TitleChanged) else sight.url
    if text is None:
        return False
    if isinstance(condition, TitleContains | UrlContains):
        return condition.contains in text
    return condition.since != text


def _matches(sight: Sight, query: Query) -> tuple[int, ...] | None:
    """Return the matches, or None where nothing can be said yet."""
    if sight.scene is None:
        return None
    try:
        return find(sight.scene, query).indexes
    except TargetNotFound as error:
        # Where the one element that a query relates to is not there, nothing stands so to it. A label that is not
        # there may have been renamed away, which says nothing.
        return None if "element" in error.details else ()
    except AmbiguousTarget:
        return None


def _has_value(sight: Sight, condition: ValueEquals) -> bool:
    if sight.scene is None:
        return False
    nodes = sight.scene.tree.nodes
    return any(
        not nodes[index].secret
        and (value := nodes[index].value) is not None
        and texts_equal(nodes[index], value, condition.equals)
        for index in _matches(sight, condition.query) or ()
    )
