"""Waiting for what comes by itself: elements, values, titles. Not having come is an answer that says what is so."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Annotated, Any, Final, Literal

from msgspec import Meta

from surehand import limits
from surehand.errors import InvalidRequest
from surehand.model.query import Filter, Query
from surehand.model.record import Record, check_count, to_value
from surehand.tools.context import Context
from surehand.tools.places import Element, Find, Where, scope
from surehand.tools.schema import brief
from surehand.tools.tool import Answer, Tool


class Until(Record, frozen=True, kw_only=True):
    """One condition: exactly one of these, but `value` goes with `of`."""

    exists: Element | None = None
    gone: Element | None = None
    of: Element | None = None
    value: str | None = None
    title: str | None = None
    title_not: str | None = None
    url: str | None = None
    url_not: str | None = None
    after_generation: int | None = None

    def condition(self) -> dict[str, Any]:
        """Return the daemon's words for it (spec §8.6).

        Raises:
            InvalidRequest: nothing is said, or several things.
        """
        found = [made for made in (self._of_element(), *self._of_window()) if made is not None]
        if len(found) != 1 or (self.of is None) != (self.value is None):
            raise InvalidRequest(
                "a condition says one thing", fix="exists, gone, of with value, title, title_not, url or url_not"
            )
        return found[0]

    def _of_element(self) -> dict[str, Any] | None:
        said = [
            (kind, element)
            for kind, element in (
                ("element_exists", self.exists),
                ("element_gone", self.gone),
                ("value_equals", self.of),
            )
            if element is not None
        ]
        if len(said) != 1:
            return {} if said else None
        kind, element = said[0]
        equals = {"equals": self.value or ""} if kind == "value_equals" else {}
        return {"kind": kind, "query": _query(element), **equals}

    def _of_window(self) -> list[dict[str, Any] | None]:
        texts = (
            ("title_contains", "contains", self.title),
            ("title_changed", "since", self.title_not),
            ("url_contains", "contains", self.url),
            ("url_changed", "since", self.url_not),
            ("generation_after", "generation", self.after_generation),
        )
        return [None if value is None else {"kind": kind, name: value} for kind, name, value in texts]


def _query(element: Element) -> dict[str, Any]:
    if isinstance(element, Find):
        return element.query()
    value: dict[str, Any] = to_value(Query(filters=(Filter(label=element),)))
    return value


class WaitFor(Where, frozen=True, kw_only=True):
    """A wait."""

    until: Annotated[
        Until | tuple[Until, ...],
        brief(
            "one, or a list of up to 8, of {exists: element}, {gone: element}, {of: element, value}, {title: part}, "
            "{title_not: whole}, {url: part}, {after_generation}; an element is a label or {role,name,…}",
            "object",
            "array",
        ),
    ]
    mode: Literal["all", "any"] = "all"
    timeout_ms: Annotated[int, Meta(ge=1, le=limits.WAIT_MS_MAX)] = limits.WAIT_MS_DEFAULT


async def wait_for(context: Context, args: WaitFor) -> Answer:
    """Wait, and say what is so."""
    conditions = args.until if isinstance(args.until, tuple) else (args.until,)
    check_count("until", len(conditions), 1, limits.WAIT_CONDITIONS_MAX)
    params = {
        **scope(context, args),
        "conditions": [one.condition() for one in conditions],
        "mode": args.mode,
        "timeout_ms": args.timeout_ms,
    }
    telling = asyncio.ensure_future(_tell(context, args.timeout_ms))
    try:
        found = await context.ask("wait", params, wait_ms=args.timeout_ms + limits.APP_READ_MS_MAX)
    finally:
        telling.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await telling
    return _answer(context, found)


async def _tell(context: Context, total_ms: int) -> None:
    """Say every second that the wait goes on."""
    done_ms = 0
    while True:
        await asyncio.sleep(limits.MCP_PROGRESS_MS / 1000)
        done_ms = min(total_ms, done_ms + limits.MCP_PROGRESS_MS)
        await context.progress("still waiting", done_ms, total_ms)


def _answer(context: Context, found: dict[str, Any]) -> Answer:
    data: dict[str, Any] = {"satisfied": found["satisfied"], "elapsed_ms": found["elapsed_ms"], "conditions": []}
    came = "came" if found["satisfied"] else "did not come"
    lines = [f"{came} after {found['elapsed_ms']} ms"]
    for one in found["conditions"]:
        entry = {"kind": one["kind"], "satisfied": one["satisfied"]}
        line = f"{one['kind']}: {'yes' if one['satisfied'] else 'no'}"
        if (element := one.get("element")) is not None:
            entry["matches"] = one["matches"]
            entry["element"] = {name: element[name] for name in ("label", "role", "name", "value") if element.get(name)}
            several = "" if one["matches"] == 1 else f"{one['matches']} match, first "
            line += f"; {several}{_element(element)}"
        data["conditions"].append(entry)
        lines.append(line)
    if (window := found.get("window")) is not None:
        data["window"] = window["surface"]
        data["title"] = window["title"]
        lines.append(f"window {window['surface']} {_quoted(window['title'])}")
        if found["satisfied"]:
            context.window = window["surface"]
    else:
        lines.append("no such window is open")
    return Answer(data, "\n".join(lines))


def _element(element: dict[str, Any]) -> str:
    words = [f"[{element['label']}] {element['role']}"]
    if element["name"]:
        words.append(_quoted(element["name"]))
    if element.get("value"):
        words.append(f"value={_quoted(element['value'])}")
    return " ".join(words)


def _quoted(text: str) -> str:
    from surehand.core.scene.describe import quote  # noqa: PLC0415 - not needed by every call

    return quote(text)


TOOLS: Final = (
    Tool(
        name="wait_for",
        title="Wait",
        description=(
            "Wait until something is there, is gone, has a value, or a title changes; in time or not, says what is so. "
            "Actions wait for their own effect."
        ),
        kind="read",
        args=WaitFor,
        output={"type": "object", "properties": {"satisfied": {"type": "boolean"}}},
        handler=wait_for,
        core=True,
    ),
)
