"""Tools that look: applications, windows, one window's text, and elements by what they are."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from typing import Annotated, Any, Final

from msgspec import Meta

from surehand import limits
from surehand.model.query import Filter
from surehand.model.record import Record, to_value
from surehand.tools.context import Context
from surehand.tools.places import Find, Where, scope
from surehand.tools.schema import brief
from surehand.tools.tool import Answer, Tool

_PLAIN: Final = re.compile(r"[A-Za-z0-9._:/@+-]{0,256}", re.ASCII)
_TEXT: Final = {"type": "string"}
_LIST: Final = {"type": "array", "items": {"type": "object"}}


class Nothing(Record, frozen=True, kw_only=True):
    """No arguments."""


class OfApp(Record, frozen=True, kw_only=True):
    """Windows of one application, or all."""

    app: str | None = None


class Observe(Where, frozen=True, kw_only=True):
    """One look at a window."""

    window: Annotated[str | None, Meta(description="an id from list_windows")] = None
    app: Annotated[str | None, Meta(description="or its application; default: the window seen last")] = None

    scope: Annotated[str | None, Meta(description="only this element, whole")] = None
    full: Annotated[bool, Meta(description="the whole text again")] = False
    max_nodes: Annotated[int, Meta(ge=1, le=limits.RENDER_NODES_MAX)] = limits.RENDER_NODES_DEFAULT
    max_tokens: Annotated[
        Annotated[int, Meta(ge=limits.RENDER_TOKENS_MIN, le=limits.RENDER_TOKENS_MAX)] | None,
        Meta(description="what matters most within so many"),
    ] = None
    after_generation: Annotated[int | None, Meta(description="wait for a newer one")] = None
    timeout_ms: Annotated[int, Meta(ge=0, le=limits.WAIT_MS_MAX)] = limits.SETTLE_CAP_MS


class Search(Find, frozen=True, kw_only=True):
    """Elements by what they are."""

    window: str | None = None
    app: str | None = None
    filters: Annotated[
        list[Filter] | None, brief("more conditions, as {name: {text, match}}, {relation, to}, …", "array")
    ] = None
    limit: Annotated[int, Meta(ge=1, le=256)] = 20


def window_line(window: dict[str, Any]) -> str:
    """Return one window in a line."""
    active = " active" if "active" in window.get("states", ()) else ""
    return f"{window['surface_id']} {window['role']} {quoted(window['title'])} app={app_word(window['app'])}{active}"


def app_word(key: str) -> str:
    """Return an application's identity; in quotes where its file's name could be taken for something else."""
    return key if _PLAIN.fullmatch(key) else quoted(key)


def quoted(text: str) -> str:
    """Return observed text so that it cannot be taken for anything else."""
    from surehand.core.scene.describe import quote  # noqa: PLC0415 - not needed by every call

    return quote(text)


async def list_apps(context: Context, _: Nothing) -> Answer:
    """Return the applications with windows."""
    found = await context.ask("apps", {})
    lines = [f"{app_word(one['app'])} pid={one['pid']} windows={','.join(one['surfaces'])}" for one in found["apps"]]
    lines += [f"not answering: {app_word(str(one.get('app') or one.get('pid')))}" for one in found["silent"]]
    return Answer(found, "\n".join(lines) or "no application has a window; use launch_app")


async def list_windows(context: Context, args: OfApp) -> Answer:
    """Return the windows."""
    found = await context.ask("surfaces", {} if args.app is None else {"app": args.app})
    windows = [
        {
            "window": one["surface_id"],
            "app": one["app"],
            "title": one["title"],
            "role": one["role"],
            "active": "active" in one["states"],
            "bounds": one.get("bounds"),
        }
        for one in found["surfaces"]
    ]
    text = "\n".join(window_line(one) for one in found["surfaces"])
    return Answer({"windows": windows}, text or "no window is open; use launch_app")


async def observe(context: Context, args: Observe) -> Answer:
    """Return a window's text, or what changed since the last text of it, or the text of one part."""
    wait_ms = limits.APP_READ_MS_MAX + max(args.timeout_ms, limits.SETTLE_BUSY_CAP_MS)
    found = await context.ask("observe", _observe_params(context, args), wait_ms=wait_ms)
    surface = found["surface"]
    if args.scope is None:
        context.window = surface["surface_id"]
    else:
        # A diff still stands on the window's own last text.
        context.window = surface["surface_id"]
    data = {
        "window": surface["surface_id"],
        "generation": found["generation"],
        "kind": found["kind"],
        "text": found["text"],
    }
    if "reason" in found:
        data["reason"] = found["reason"]
    notes = []
    if not found["complete"]:
        notes.append("some of the window could not be read")
    if found["settled"] != "settled":
        notes.append("the window is still changing")
    if notes:
        data["notes"] = notes
    return Answer(data, "\n".join([found["text"], *notes]))


def _observe_params(context: Context, args: Observe) -> dict[str, Any]:
    # In which window a part was shown the daemon knows.
    named = args.scope is None or args.window is not None or args.app is not None
    meant = scope(context, args) if named else {}
    params: dict[str, Any] = {**meant, "max_nodes": args.max_nodes, "full": args.full, "settle": True}
    if args.max_tokens is not None:
        params["max_tokens"] = args.max_tokens
    if args.scope is not None:
        params["scope"] = args.scope
    else:
        params["base"] = "shown"
    if args.after_generation is not None:
        params |= {"after_generation": args.after_generation, "timeout_ms": args.timeout_ms}
    return params


async def query(context: Context, args: Search) -> Answer:
    """Return the elements that match."""
    more = list(args.filters or ())
    said = any(getattr(args, name) is not None for name in Find.__struct_fields__)
    filters = [*(args.filters_said() if said or not more else ()), *more]
    params = {
        **scope(context, args),
        "query": {"filters": [to_value(one) for one in filters], "max_results": args.limit},
    }
    found = await context.ask("query", params)
    surfaces = {one["scene_id"]: one["surface"] for one in found["scenes"]}
    matches = [_match(match, surfaces.get(match["ref"]["scene_id"])) for match in found["matches"]]
    if len(surfaces) == 1:
        context.window = next(iter(surfaces.values()))
    lines = []
    for window, of_window in itertools.groupby(matches, lambda match: match["window"]):
        if len(surfaces) > 1:
            lines.append(f"window {window}:")
        lines += _joined(of_window)
    if found["truncated"]:
        lines.append("… more; say more, or raise limit")
    data = {"matches": matches, "truncated": found["truncated"]}
    return Answer(data, "\n".join(lines) or "nothing matches")


def _match(match: dict[str, Any], window: str | None) -> dict[str, Any]:
    entry = {name: match[name] for name in ("label", "role", "name", "value", "context") if match.get(name)}
    if entry.get("value") == entry.get("name"):
        entry.pop("value", None)
    states = [] if "enabled" in match["states"] else ["disabled"]
    states += [state for state in ("checked", "selected", "expanded", "focused") if state in match["states"]]
    if "showing" not in match["states"]:
        states.append("hidden")
    if states:
        entry["states"] = states
    entry["window"] = window
    return entry


def _joined(matches: Iterable[dict[str, Any]]) -> list[str]:
    """Return elements as a window's text has them; `in` is all that they are in."""
    from surehand.core.scene.packing import pack  # noqa: PLC0415 - not needed by every call

    lines = []
    for entry in matches:
        words = [f"[{entry['label']}] {entry['role']}"]
        if name := entry.get("name", "").strip(" "):
            words.append(quoted(name))
        if "value" in entry:
            words.append(f"value={quoted(entry['value'])}")
        if "context" in entry:
            words.append(f"in={quoted(entry['context'])}")
        lines.append(" ".join([*words, *entry.get("states", ())]))
    return [line.text for line in pack(lines)]


TOOLS: Final = (
    Tool(
        name="list_apps",
        title="List applications",
        description="Applications that have windows on this desktop.",
        kind="read",
        args=Nothing,
        output={"type": "object", "properties": {"apps": _LIST}},
        handler=list_apps,
    ),
    Tool(
        name="list_windows",
        title="List windows",
        description="Open windows: id, role, title, application. Start here.",
        kind="read",
        args=OfApp,
        output={"type": "object", "properties": {"windows": _LIST}},
        handler=list_windows,
        core=True,
    ),
    Tool(
        name="observe",
        title="Look at a window",
        description=(
            'A window as text: [label] role "name" value states, two spaces deeper for what is inside. In one line: '
            "a row or menu: its parts; neighbours of one role; a | b of one row. Act on the labels. "
            "Seen before, it is what changed since (~ is now, + after e7, - gone)."
        ),
        kind="read",
        args=Observe,
        output={"type": "object", "properties": {"window": _TEXT, "text": _TEXT, "generation": {"type": "integer"}}},
        handler=observe,
        core=True,
        aliases=("get_app_state", "snapshot"),
    ),
    Tool(
        name="query",
        title="Find elements",
        description="Elements of a window or application by role, name, value, state or row, without the whole text.",
        kind="read",
        args=Search,
        output={"type": "object", "properties": {"matches": _LIST}},
        handler=query,
    ),
)
