"""From what people write in Python to the one query language (spec §8.4)."""

from __future__ import annotations

import difflib
import re
from typing import Any, Final

from surehand.errors import InvalidRequest
from surehand.model.query import Filter, Query, TextMatch
from surehand.model.record import convert
from surehand.model.scene import ROLE_ALIASES, ROLES, STATES

#: A text to find: exactly this, or a compiled pattern (RE2 syntax, unanchored).
Text = str | re.Pattern[str]

_LABEL_ROLE: Final = "label"


def text_match(text: Text, *, exact: bool = True) -> TextMatch:
    """Return how a text is compared: exactly, as a part (`exact=False`), or by a pattern."""
    if isinstance(text, re.Pattern):
        flags = "(?i)" if text.flags & re.IGNORECASE else ""
        return TextMatch(text=flags + text.pattern, match="regex")
    return TextMatch(text=text, match="exact" if exact else "contains")


def checked_role(role: str) -> str:
    """Return a role of the vocabulary.

    Raises:
        InvalidRequest: unknown; names what comes near.
    """
    if role in ROLES:
        return role
    if role in ROLE_ALIASES:
        return ROLE_ALIASES[role]
    near = difflib.get_close_matches(role, [*ROLES, *ROLE_ALIASES], n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else "see docs/reference/cli.md for the roles"
    raise InvalidRequest(f"unknown role {role!r}", fix=hint)


def by_role(
    role: str,
    *,
    name: Text | None = None,
    exact: bool = True,
    value: Text | None = None,
    context: Text | None = None,
    states: dict[str, bool] | None = None,
) -> tuple[Filter, ...]:
    """Return filters for a role and what else is known of the element."""
    filters = [Filter(role=checked_role(role))]
    if name is not None:
        filters.append(Filter(name=text_match(name, exact=exact)))
    if value is not None:
        filters.append(Filter(value=text_match(value, exact=exact)))
    if context is not None:
        filters.append(Filter(context=text_match(context, exact=exact)))
    if states:
        filters.append(by_state(states))
    return tuple(filters)


def by_state(states: dict[str, bool]) -> Filter:
    """Return a filter on states.

    Raises:
        InvalidRequest: an unknown state.
    """
    if unknown := states.keys() - STATES:
        raise InvalidRequest(f"unknown state {min(unknown)!r}", fix=f"one of {', '.join(sorted(STATES))}")
    return Filter(state=states)


def by_label(text: Text, *, exact: bool = True) -> tuple[Filter, ...]:
    """Return filters for what is labelled by a visible text."""
    label = Query(filters=(Filter(role=_LABEL_ROLE), Filter(name=text_match(text, exact=exact))))
    return (Filter(relation="labelled-by", to=label),)


def by_text(text: Text, *, exact: bool = True) -> tuple[Filter, ...]:
    """Return filters for what shows a text as its name."""
    return (Filter(name=text_match(text, exact=exact)),)


def filters_of(query: Query | dict[str, Any] | list[dict[str, Any]]) -> tuple[Filter, ...]:
    """Return the filters of a query record, its JSON value, or a list of filter values."""
    if isinstance(query, Query):
        return query.filters
    value = {"filters": query} if isinstance(query, list) else query
    return convert(Query, value).filters
