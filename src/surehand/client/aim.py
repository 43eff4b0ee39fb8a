"""What a locator aims at: found again at each use, waited for, and never the first of several.

Guarantees: an action goes to exactly one match that was enabled when it was resolved; several matches are an error
that lists them; waiting is bounded; while waiting for a target the operation id stays the same.
"""

from __future__ import annotations

import difflib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec

from surehand import limits
from surehand.client.options import TIMEOUT_S_DEFAULT, ActOptions, new_operation_id, request_value
from surehand.client.session import Session
from surehand.errors import (
    AccessibilityDisabled,
    AmbiguousTarget,
    AppNotFound,
    StaleTarget,
    SurehandError,
    TargetNotActionable,
    TargetNotFound,
    WindowNotFound,
)
from surehand.model.query import Filter, Query
from surehand.model.record import to_value

_CANDIDATES_MAX: Final = 10
_LOOKED_THROUGH_MAX: Final = 200  # elements of the same role that are compared by name
_PAUSE_S: Final = 0.05
#: Two of a kind while a view is exchanged usually become one; longer than this they are simply ambiguous.
_AMBIGUOUS_S: Final = limits.SETTLE_CAP_MS / 1000
_WAIT_STEP_S: Final = 1.0

#: Refusals that another look can mend; provably nothing happened.
_MENDABLE: Final = (StaleTarget, TargetNotFound, TargetNotActionable, WindowNotFound)
_NOT_YET: Final = (AppNotFound, WindowNotFound, AccessibilityDisabled)


@dataclass(frozen=True, slots=True)
class Aim:
    """A place to look (`{"app": …}` or `{"surface": …}`) and filters, or one element exactly as it was observed."""

    session: Session
    scope: dict[str, str]
    filters: tuple[Filter, ...] = ()
    fixed: dict[str, Any] | None = None

    def narrowed(self, filters: tuple[Filter, ...]) -> Aim:
        """Return the aim at matches below this one, or in its whole place where it has no filters yet."""
        if self.filters:
            filters = (*filters, Filter(relation="descendant", to=self.query()))
        return replace(self, filters=filters, fixed=None)

    def filtered(self, filters: tuple[Filter, ...]) -> Aim:
        """Return the aim at those of its matches that also pass these filters."""
        return replace(self, filters=(*self.filters, *filters), fixed=None)

    def query(self, max_results: int = _CANDIDATES_MAX + 1) -> Query:
        """Return the query."""
        return Query(filters=self.filters, max_results=max_results)

    def __str__(self) -> str:
        place = self.scope.get("app") or self.scope.get("surface", "")
        return f"{place}: {' and '.join(_shown(part) for part in self.filters) or 'anything'}"

    # --- looking ----------------------------------------------------------------------------------------------------

    async def matches(self, max_results: int = limits.QUERY_RESULTS_MAX) -> list[dict[str, Any]]:
        """Return every match now, as observed data."""
        if self.fixed is not None:
            return [self.fixed]
        params = {**self.scope, "query": to_value(self.query(max_results))}
        found = await self.session.ask("query", params, wait_ms=limits.APP_READ_MS_MAX)
        # A reference names its scene; the answer says which window each scene is of.
        surfaces = {scene["scene_id"]: scene["surface"] for scene in found.get("scenes", ())}
        return [{"surface": surfaces.get(match["ref"]["scene_id"]), **match} for match in found["matches"]]

    async def resolve(self, timeout_s: float, *, enabled: bool) -> dict[str, Any]:
        """Return the one match, waiting until there is exactly one and, if asked, it is enabled.

        Raises:
            TargetNotFound, AmbiguousTarget, TargetNotActionable, AppNotFound: what still was so at the end.
        """
        if self.fixed is not None:
            return self.fixed
        start = time.monotonic()
        end = start + timeout_s
        while True:
            problem = await self._look(enabled=enabled)
            if isinstance(problem, dict):
                return problem
            limit = end if not isinstance(problem, AmbiguousTarget) else min(end, start + _AMBIGUOUS_S)
            if (left := limit - time.monotonic()) <= 0:
                raise await self._explained(problem)
            await self._until_changed(problem, left, enabled=enabled)

    async def _look(self, *, enabled: bool) -> dict[str, Any] | SurehandError:
        try:
            found = await self.matches(_CANDIDATES_MAX + 1)
        except (*_NOT_YET, TargetNotFound, AmbiguousTarget) as error:
            return error  # the last two: what the query relates to is missing, or several
        if not found:
            return TargetNotFound(f"nothing matches {self}")
        if len(found) > 1:
            most = "" if len(found) <= _CANDIDATES_MAX else "at least "
            titles = await self._titles(found)
            lines = [describe(match, titles.get(match["surface"])) for match in found[:_CANDIDATES_MAX]]
            return AmbiguousTarget(
                f"{most}{len(found)} elements match {self}",
                fix=_telling_apart(found, several_windows=bool(titles)),
                observed={"candidates": lines},
            )
        if enabled and "enabled" not in found[0].get("states", ()):
            return TargetNotActionable(
                f"{self} is there and not enabled", observed={"candidates": [describe(found[0])]}
            )
        return found[0]

    async def _until_changed(self, problem: SurehandError, left: float, *, enabled: bool) -> None:
        """Wait for what is missing, by the daemon's events where it can tell, else for a moment."""
        pause = min(_PAUSE_S, left)
        if not isinstance(problem, AmbiguousTarget):
            state = (Filter(state={"enabled": True}),) if enabled else ()
            condition = {"kind": "element_exists", "query": to_value(self.filtered(state).query(1))}
            try:
                waited = await self.wait([condition], min(left, _WAIT_STEP_S))
            except (*_NOT_YET, TargetNotFound, AmbiguousTarget):
                waited = {}
            if not waited.get("satisfied"):
                # The daemon did the waiting, unless it could not.
                pause = 0 if waited.get("elapsed_ms", 0) >= _PAUSE_S * 1000 else pause
        if pause > 0:
            await self.session.way.pause(pause)

    async def wait(self, conditions: list[dict[str, Any]], timeout_s: float, mode: str = "all") -> dict[str, Any]:
        """Wait in this place until conditions hold; a time-out is a normal answer."""
        timeout_ms = max(1, min(int(timeout_s * 1000), limits.WAIT_MS_MAX))
        params = {**self.scope, "conditions": conditions, "mode": mode, "timeout_ms": timeout_ms}
        waited: dict[str, Any] = await self.session.ask("wait", params, wait_ms=timeout_ms)
        return waited

    async def _explained(self, problem: SurehandError) -> SurehandError:
        """Add what comes nearest to an error that says nothing was found."""
        role = next((part.role for part in self.filters if part.role is not None), None)
        if not isinstance(problem, TargetNotFound) or role is None or len(self.filters) < 2:
            return problem
        near = replace(self, filters=(Filter(role=role),))
        try:
            found = await near.matches(_LOOKED_THROUGH_MAX)
        except SurehandError:
            return problem
        wanted = next((part.name.text for part in self.filters if part.name is not None), "")
        found.sort(key=lambda match: -difflib.SequenceMatcher(None, wanted, str(match.get("name", ""))).ratio())
        if found:
            problem.observed["candidates"] = [describe(match) for match in found[:_CANDIDATES_MAX]]
            problem.fix = "the candidates have the same role; use one of their names"
        return problem

    async def _titles(self, found: list[dict[str, Any]]) -> dict[str, str]:
        """Return the titles of the windows that matches stand in, where there are several."""
        if len({match["surface"] for match in found}) < 2:
            return {}
        try:
            listed = (await self.session.ask("surfaces", self.scope))["surfaces"]
        except SurehandError:
            return {}  # the candidates are told without them
        return {one["surface_id"]: str(one.get("title", "")) for one in listed}

    async def only_surface(self) -> str:
        """Return the id of the one window meant.

        Raises:
            WindowNotFound: none, or several.
        """
        if surface := self.scope.get("surface"):
            return surface
        found = (await self.session.ask("surfaces", self.scope))["surfaces"]
        if len(found) != 1:
            raise WindowNotFound(
                f"{len(found)} windows belong to {self.scope.get('app')}",
                fix="name one of them with hand.surface(…)",
                observed={"candidates": [f"{one['surface_id']} {one.get('title', '')}" for one in found]},
            )
        return str(found[0]["surface_id"])


@dataclass(frozen=True, slots=True)
class Attempt:
    """One operation of a locator: the aim, the action and an id that never changes."""

    aim: Aim
    action: dict[str, Any]
    options: ActOptions
    operation_id: str

    @classmethod
    def of(cls, aim: Aim, action: dict[str, Any], options: ActOptions) -> Attempt:
        """Return a new attempt; its id is the caller's, or made up here, once."""
        return cls(aim, action, options, options.get("operation_id") or new_operation_id())

    async def present(self, wait_approval_ms: int = 0) -> dict[str, Any]:
        """Resolve, send, and return the reply; a refusal that another look can mend is looked at again.

        Args:
            wait_approval_ms: How long the daemon may wait for a person before it says that one has to answer.

        Raises:
            SurehandError: the target did not come about in time, or what the daemon answered.
        """
        end = time.monotonic() + self.options.get("timeout_s", TIMEOUT_S_DEFAULT)
        while True:
            match = await self.aim.resolve(max(0.0, end - time.monotonic()), enabled=True)
            reply = await send(self.aim.session, self.request(match), self.options, wait_approval_ms)
            error = reply.get("error") or {}
            mendable = reply.get("status") == "refused" and error.get("code") in {e.default_code for e in _MENDABLE}
            if not mendable or self.aim.fixed is not None or time.monotonic() >= end:
                return reply
            await self.aim.session.way.pause(_PAUSE_S)

    def request(self, match: dict[str, Any]) -> dict[str, Any]:
        """Return the request for a resolved match."""
        return request_value(self.operation_id, self.action, match["ref"], self.options)

    async def present_until_answered(self, timeout_s: float) -> dict[str, Any]:
        """Present again until the approval is answered or the time is over."""
        return await until_answered(self.aim.session, self.present, timeout_s)


async def send(
    session: Session, request: dict[str, Any], options: ActOptions, wait_approval_ms: int = 0
) -> dict[str, Any]:
    """Send one request and return its reply value."""
    params: dict[str, Any] = {"request": request}
    if options.get("observe_after"):
        params["observe_after"] = True
    if wait_approval_ms:
        params["wait_approval_ms"] = wait_approval_ms
    wait_ms = int(request.get("deadline_ms", limits.DEADLINE_MS_DEFAULT)) + wait_approval_ms
    reply: dict[str, Any] = await session.act("act", params, str(request["operation_id"]), wait_ms=wait_ms)
    return reply


async def until_answered(
    session: Session, present: Callable[[int], Awaitable[dict[str, Any]]], timeout_s: float
) -> dict[str, Any]:
    """Present an operation again, letting the daemon wait for the person, until it is answered or the time is over."""
    end = time.monotonic() + timeout_s
    while True:
        left_ms = max(1, min(round((end - time.monotonic()) * 1000), limits.WAIT_MS_MAX))
        reply = await present(left_ms)
        if reply.get("status") != "approval_required" or time.monotonic() >= end:
            return reply
        await session.way.pause(_PAUSE_S)  # the daemon waited as long as it does; this is for one that does not


def describe(match: dict[str, Any], window: str | None = None) -> str:
    """Return one line about an observed element, for lists of candidates; `window` is its window's title."""
    parts = [str(match.get("label", "")), str(match.get("role", ""))]
    if match.get("name"):
        parts.append(f'"{match["name"]}"')
    if match.get("context"):
        parts.append(f'in "{match["context"]}"')
    if "enabled" not in match.get("states", ()):
        parts.append("(disabled)")
    if "showing" not in match.get("states", ("showing",)):
        parts.append("hidden")
    if window is not None:
        parts.append(f'of window {match["surface"]} "{window}"')
    return " ".join(part for part in parts if part)


def _telling_apart(found: list[dict[str, Any]], *, several_windows: bool) -> str:
    fix = "say more: a name, a context, or a parent" + (", or name one of the windows" if several_windows else "")
    hidden = sum("showing" not in match.get("states", ("showing",)) for match in found)
    return f'{fix}; {{"state":{{"showing":true}}}} leaves out what is hidden' if 0 < hidden < len(found) else fix


def _shown(part: Filter) -> str:
    for name in ("role", "label", "capability", "source"):
        if (value := getattr(part, name)) is not None:
            return f"{name} {value}"
    for name in ("name", "value", "context"):
        if (text := getattr(part, name)) is not None:
            return f'{name} {"" if text.match == "exact" else text.match + " "}"{text.text}"'
    if part.relation is not None:
        inner = (
            part.to if isinstance(part.to, str) else " and ".join(_shown(one) for one in (part.to or _NOTHING).filters)
        )
        return f"{part.relation} ({inner})"
    return str(msgspec.to_builtins(part))


_NOTHING: Final = Query(filters=(Filter(role="unknown"),))
