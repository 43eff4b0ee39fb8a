"""How a tool names a window and an element: shared arguments, and their way to the daemon's words.

A window is named by id or by its application; named by neither, it is the one looked at last. An element is named by
the label of a text (`e17`), which must still mean what that text showed, or by what it is, which must be exactly one.
"""

from __future__ import annotations

from typing import Annotated, Any, Protocol

from msgspec import Meta, structs

from surehand import limits
from surehand.client.queries import by_label as by_label_text
from surehand.client.queries import by_role, by_state, text_match
from surehand.errors import AmbiguousTarget, InvalidRequest, TargetNotFound
from surehand.model.query import Filter, Query
from surehand.model.record import Record, to_value
from surehand.tools.context import Context


class Where(Record, frozen=True, kw_only=True):
    """A window by id, or by its application; by neither, the one seen last. Observe says so to models, once."""

    window: str | None = None
    app: str | None = None


class Find(Record, frozen=True, kw_only=True):
    """An element by what it is."""

    role: Annotated[str | None, Meta(description="button, text, menuitem …")] = None
    name: Annotated[str | None, Meta(description="its whole name")] = None
    contains: Annotated[str | None, Meta(description="part of its name")] = None
    label: Annotated[str | None, Meta(description='the label="…" of a field')] = None
    value: str | None = None
    inside: Annotated[str | None, Meta(description='what its row or group is about, as in="…" shows')] = None
    state: Annotated[dict[str, bool] | None, Meta(description='{"checked": true}')] = None

    def shown(self) -> Find | None:
        """Return the same, among what shows on the screen; None where that was said already."""
        said = self.state or {}
        if said.keys() & {"showing", "visible"}:
            return None
        return structs.replace(self, state={**said, "showing": True})

    def filters_said(self) -> tuple[Filter, ...]:
        """Return the filters of the one query language (spec §8.4).

        Raises:
            InvalidRequest: nothing is said, or an unknown role or state.
        """
        found: list[Filter] = []
        if self.role is not None:
            found += by_role(self.role)
        if self.name is not None:
            found.append(Filter(name=text_match(self.name)))
        if self.contains is not None:
            found.append(Filter(name=text_match(self.contains, exact=False)))
        if self.label is not None:
            found += by_label_text(self.label)
        if self.value is not None:
            found.append(Filter(value=text_match(self.value)))
        if self.inside is not None:
            found.append(Filter(context=text_match(self.inside)))
        if self.state is not None:
            found.append(by_state(self.state))
        if not found:
            raise InvalidRequest("say what to find: a role, a name, contains, label, value, inside or state")
        return tuple(found)

    def query(self, max_results: int = limits.CANDIDATES_MAX) -> dict[str, Any]:
        """Return the query's JSON value."""
        value: dict[str, Any] = to_value(Query(filters=self.filters_said(), max_results=max_results))
        return value


#: An element: a label that a text showed, or what it is.
Element = str | Find


class Placed(Protocol):
    """Arguments that may name a window."""

    @property
    def window(self) -> str | None:
        """A window's id."""

    @property
    def app(self) -> str | None:
        """An application."""


def scope(context: Context, where: Placed) -> dict[str, str]:
    """Return the daemon's words for a window; empty where the daemon has to choose."""
    if where.window is not None and where.app is not None:
        raise InvalidRequest("name a window or an app, not both")
    if where.app is not None:
        return {"app": where.app}
    window = where.window or context.window
    return {} if window is None else {"surface": window}


async def surface_of(context: Context, where: Placed) -> str:
    """Return the id of the one window that is meant.

    Raises:
        InvalidRequest, AppNotFound, WindowNotFound: none, or several, as the daemon says.
    """
    meant = scope(context, where)
    if "surface" in meant:
        return meant["surface"]
    found = (await context.ask("surfaces", meant))["surfaces"]
    if len(found) > 1:
        active = [one for one in found if "active" in one["states"]]
        found = active if len(active) == 1 else found
    if len(found) != 1:
        raise InvalidRequest(
            f"{len(found)} windows are meant",
            fix="name one with window",
            observed={"candidates": [_window_words(one) for one in found[: limits.CANDIDATES_MAX]]},
        )
    return str(found[0]["surface_id"])


def _window_words(window: dict[str, Any]) -> str:
    from surehand.core.scene.describe import quote  # noqa: PLC0415 - only an error needs it

    return f"{window['surface_id']} {quote(window['title'])}"


async def target(context: Context, element: Element, where: Placed) -> tuple[dict[str, Any], str]:
    """Return the fenced target of an element, and its window.

    A label becomes a reference to what is there now, refused when it does not mean any more what was shown. What is
    found by query is resolved at the moment it is acted upon.
    """
    if isinstance(element, Find):
        surface = await _window_with(context, element, where)
        return {"kind": "query", "surface": surface, "query": element.query()}, surface
    found = await by_label(context, element)
    return found["ref"], found["surface"]


async def by_label(context: Context, label: str) -> dict[str, Any]:
    """Return what a label that was shown stands for now, with its `surface`."""
    found: dict[str, Any] = (await context.ask("refs", {"labels": [label]}))["refs"][label]
    context.window = str(found["surface"])
    return found


async def one_of(context: Context, element: Element, where: Placed) -> dict[str, Any]:
    """Return the one element that is meant, as it is now, with its `surface`.

    Raises:
        TargetNotFound, AmbiguousTarget: what it is fits none, or several.
    """
    if isinstance(element, str):
        return await by_label(context, element)
    matches = _shown(element, await _matches(context, element, scope(context, where)))
    _check_one(matches)
    return matches[0]


def _shown(element: Find, matches: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the one match that shows, where the others are hidden and nothing was said of that; else all of them."""
    showing = [match for match in matches if "showing" in match["states"]] if element.shown() is not None else []
    return showing if len(showing) == 1 else matches


async def _window_with(context: Context, element: Find, where: Placed) -> str:
    """Return the window in which an element is to be found; of several of an application the one that has it."""
    meant = scope(context, where)
    if "surface" in meant:
        return meant["surface"]
    windows = (await context.ask("surfaces", meant))["surfaces"]
    if len(windows) == 1:
        return str(windows[0]["surface_id"])
    matches = _shown(element, await _matches(context, element, meant))
    if len({match["surface"] for match in matches}) != 1:
        _check_one(matches)
    return str(matches[0]["surface"])


async def _matches(context: Context, element: Find, meant: dict[str, str]) -> list[dict[str, Any]]:
    found = await context.ask("query", {**meant, "query": element.query()})
    surfaces = {one["scene_id"]: one["surface"] for one in found["scenes"]}
    return [{**match, "surface": surfaces[match["ref"]["scene_id"]]} for match in found["matches"]]


def _check_one(matches: list[dict[str, Any]]) -> None:
    if not matches:
        raise TargetNotFound("nothing there is that", fix="look with observe or query", details={"what": "query"})
    if len(matches) > 1:
        from surehand.core.scene.describe import quote  # noqa: PLC0415 - only an error needs it

        lines = [
            f"[{match['label']}] {match['role']} {quote(match['name'])}"
            + (f" in {quote(match['context'])}" if match.get("context") else "")
            + f" window {match['surface']}"
            for match in matches
        ]
        raise AmbiguousTarget(
            f"{len(matches)} elements are that", fix="say more, or use a label", observed={"candidates": lines}
        )
