"""Locators: what to find, not what was found. They resolve when they are used, and wait.

`Finder` holds the ways to find, `Reads` what can be read and waited for, `AsyncLocator` is both with every verb. The
blocking twins are in `sync_client.py`.
"""

from __future__ import annotations

import abc
from collections.abc import Awaitable, Coroutine
from dataclasses import dataclass
from typing import Any, Generic, Literal, Self, TypeAlias, TypeVar

from surehand import limits
from surehand.client import queries
from surehand.client.aim import Aim, Attempt, describe
from surehand.client.options import TIMEOUT_S_DEFAULT, ActOptions
from surehand.client.queries import Text
from surehand.client.results import ApprovalRequired, Interrupted, Receipt, outcome
from surehand.client.scenes import Target
from surehand.client.verbs import Verbs
from surehand.errors import Timeout
from surehand.model.query import Filter, Query
from surehand.model.record import to_value

L = TypeVar("L")

#: What an action comes back as; only a `Receipt` is true.
AsyncResult: TypeAlias = "Receipt | Interrupted | ApprovalRequired[Awaitable[AsyncResult]]"

#: What a locator can be waited for.
Condition = Literal["present", "enabled", "showing", "focused", "checked", "unchecked", "gone"]

_STATES: dict[str, dict[str, bool]] = {
    "enabled": {"enabled": True},
    "showing": {"showing": True},
    "focused": {"focused": True},
    "checked": {"checked": True},
    "unchecked": {"checked": False},
}


class Finder(abc.ABC, Generic[L]):
    """The ways to find elements in a window, an application, or below another element."""

    __slots__ = ()

    @abc.abstractmethod
    def _below(self, filters: tuple[Filter, ...]) -> L:
        """Return the locator of what passes these filters in this place."""

    def get_by_role(
        self,
        role: str,
        *,
        name: Text | None = None,
        exact: bool = True,
        value: Text | None = None,
        context: Text | None = None,
        states: dict[str, bool] | None = None,
    ) -> L:
        """Find by role and what else is known.

        Args:
            role: Such as `button`, `text`, `checkbox`, `menuitem`.
            name: Its name on the screen: the exact text, or a compiled pattern.
            exact: False compares `name`, `value` and `context` as parts.
            value: Its value.
            context: The identifying label around it, such as the first cell of its row.
            states: States it has (true) or has not (false), such as `{"checked": True}`.
        """
        return self._below(queries.by_role(role, name=name, exact=exact, value=value, context=context, states=states))

    def get_by_label(self, text: Text, *, exact: bool = True) -> L:
        """Find what a visible label with this text labels."""
        return self._below(queries.by_label(text, exact=exact))

    def get_by_text(self, text: Text, *, exact: bool = True) -> L:
        """Find what shows this text as its name."""
        return self._below(queries.by_text(text, exact=exact))

    def locator(self, query: Query | dict[str, Any] | list[dict[str, Any]]) -> L:
        """Find by a query of the query language: a record, its JSON value, or a list of filter values."""
        return self._below(queries.filters_of(query))


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a batch: resolved when the batch is sent."""

    aim: Aim
    action: dict[str, Any]
    options: ActOptions


class Steps(Verbs[Step]):
    """The verbs of a locator as batch steps: `locator.step.press()` does nothing yet."""

    __slots__ = ("_aim",)

    def __init__(self, aim: Aim) -> None:
        self._aim = aim

    def _do(self, action: dict[str, Any], options: ActOptions) -> Step:
        return Step(self._aim, action, options)


class Reading:
    """What can be read of an aim and waited for; shared by both kinds of locator."""

    def __init__(self, aim: Aim) -> None:
        self.aim = aim

    async def all(self) -> list[Target]:
        """Return every match now."""
        return [Target(match) for match in await self.aim.matches()]

    async def count(self) -> int:
        """Return how many match now."""
        return len(await self.aim.matches())

    async def one(self, timeout_s: float) -> Target:
        """Return the one match, waiting for it."""
        return Target(await self.aim.resolve(timeout_s, enabled=False))

    async def read(self, start: int, end: int, timeout_s: float) -> str:
        """Return the element's text."""
        match = await self.aim.resolve(timeout_s, enabled=False)
        params = {"surface": await self._surface(match), "label": match["label"], "start": start, "end": end}
        found = await self.aim.session.ask("read_text", params, wait_ms=limits.APP_READ_MS_MAX)
        return str(found["text"])

    async def _surface(self, match: dict[str, Any]) -> str:
        return str(match["surface"]) if match.get("surface") else await self.aim.only_surface()

    async def value(self) -> str | None:
        """Return the element's value."""
        return (await self.one(TIMEOUT_S_DEFAULT)).text

    async def wait_for(self, condition: Condition, timeout_s: float) -> bool:
        """Wait for a condition; false at the time-out."""
        waited = await self.aim.wait([self._condition(condition)], timeout_s)
        return bool(waited["satisfied"])

    def _condition(self, condition: str) -> dict[str, Any]:
        if condition == "gone":
            return {"kind": "element_gone", "query": to_value(self.aim.query(1))}
        states = _STATES.get(condition)
        if states is None and condition != "present":
            raise ValueError(f"cannot wait for {condition!r}; one of present, gone, {', '.join(_STATES)}")
        extra = (queries.by_state(states),) if states else ()
        return {"kind": "element_exists", "query": to_value(self.aim.filtered(extra).query(1))}

    async def expect(
        self, *, value: Text | None, name: Text | None, states: dict[str, bool] | None, exact: bool, timeout_s: float
    ) -> None:
        """Wait until a match has these properties; raise with what was seen instead."""
        extra: list[Filter] = []
        if value is not None:
            extra.append(Filter(value=queries.text_match(value, exact=exact)))
        if name is not None:
            extra.append(Filter(name=queries.text_match(name, exact=exact)))
        if states:
            extra.append(queries.by_state(states))
        if not extra:
            raise ValueError("expect needs a value, a name or states")
        wanted = self.aim.filtered(tuple(extra))
        waited = await wanted.wait([{"kind": "element_exists", "query": to_value(wanted.query(1))}], timeout_s)
        if waited["satisfied"]:
            return
        seen = await self.aim.matches(10)
        shown = [f"{describe(match)} = {match.get('value')!r}" for match in seen]
        raise Timeout(f"{wanted} did not come about in {timeout_s:g} s", observed={"candidates": shown})


class AsyncLocator(Finder["AsyncLocator"], Verbs["Coroutine[Any, Any, AsyncResult]"]):
    """What to find in one place, resolved at each use. Verbs wait until there is exactly one and it is enabled."""

    __slots__ = ("_aim",)

    def __init__(self, aim: Aim) -> None:
        self._aim = aim

    def _below(self, filters: tuple[Filter, ...]) -> AsyncLocator:
        return AsyncLocator(self._aim.narrowed(filters))

    def filter(self, *, context: Text | None = None, states: dict[str, bool] | None = None, exact: bool = True) -> Self:
        """Keep only matches with this context or these states."""
        return type(self)(self._aim.filtered(extra_filters(context, states, exact=exact)))

    @property
    def step(self) -> Steps:
        """The same verbs as steps of a batch."""
        return Steps(self._aim)

    async def _act(self, action: dict[str, Any], options: ActOptions) -> AsyncResult:
        attempt = Attempt.of(self._aim, action, options)

        async def again(timeout_s: float) -> AsyncResult:
            return outcome(await attempt.present_until_answered(timeout_s), again)

        return outcome(await attempt.present(), again)

    def _do(self, action: dict[str, Any], options: ActOptions) -> Coroutine[Any, Any, AsyncResult]:
        return self._act(action, options)

    async def all(self) -> list[Target]:
        """Return every match now, without waiting."""
        return await Reading(self._aim).all()

    async def count(self) -> int:
        """Return how many match now, without waiting."""
        return await Reading(self._aim).count()

    async def one(self, *, timeout_s: float = TIMEOUT_S_DEFAULT) -> Target:
        """Return the one match, waiting up to `timeout_s` seconds for it."""
        return await Reading(self._aim).one(timeout_s)

    async def read(self, start: int = 0, end: int = -1, *, timeout_s: float = TIMEOUT_S_DEFAULT) -> str:
        """Return its text, without the cap of the text form; `end` −1 means to the end."""
        return await Reading(self._aim).read(start, end, timeout_s)

    @property
    def value(self) -> Coroutine[Any, Any, str | None]:
        """Its value: `await locator.value`."""
        return Reading(self._aim).value()

    async def wait_for(self, condition: Condition = "present", *, timeout_s: float = TIMEOUT_S_DEFAULT) -> bool:
        """Wait for a condition; returns false when the time is over, which is a normal answer."""
        return await Reading(self._aim).wait_for(condition, timeout_s)

    async def expect(
        self,
        *,
        value: Text | None = None,
        name: Text | None = None,
        states: dict[str, bool] | None = None,
        exact: bool = True,
        timeout_s: float = TIMEOUT_S_DEFAULT,
    ) -> None:
        """Wait until it has this value, name or these states.

        Raises:
            Timeout: it did not; `observed` shows what there was instead.
        """
        await Reading(self._aim).expect(value=value, name=name, states=states, exact=exact, timeout_s=timeout_s)

    def __repr__(self) -> str:
        return f"<AsyncLocator {self._aim}>"


def extra_filters(context: Text | None, states: dict[str, bool] | None, *, exact: bool) -> tuple[Filter, ...]:
    """Return the filters that `filter` adds."""
    found: list[Filter] = []
    if context is not None:
        found.append(Filter(context=queries.text_match(context, exact=exact)))
    if states:
        found.append(queries.by_state(states))
    return tuple(found)
