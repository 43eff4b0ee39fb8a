"""Reading long texts: a page of one, or the places in it where something stands."""

from __future__ import annotations

from typing import Annotated, Any, Final

from msgspec import Meta

from surehand import limits
from surehand.errors import InvalidRequest
from surehand.tools.context import Context
from surehand.tools.places import Element, Find, Placed, Where, scope
from surehand.tools.schema import brief
from surehand.tools.tool import Answer, Tool

_PAGE_CHARS: Final = 4_096


class ReadText(Where, frozen=True, kw_only=True):
    """A page of a text, or places in it."""

    target: Annotated[
        Element | None, brief("label or {role,name,…}; default: the window's only text", "string", "object")
    ] = None
    start: Annotated[int, Meta(ge=0, description="character to begin at")] = 0
    limit: Annotated[int, Meta(ge=1, le=limits.TEXT_PAGE_CHARS_MAX, description="characters")] = _PAGE_CHARS
    find: Annotated[str | None, Meta(description="search for this instead, from start on")] = None
    regex: Annotated[bool, Meta(description="find is RE2")] = False
    ignore_case: bool = False
    lines: Annotated[int, Meta(ge=0, le=limits.FIND_CONTEXT_LINES_MAX, description="shown around a match")] = 0


def named(context: Context, target: Element | None, where: Placed) -> dict[str, Any]:
    """Return the daemon's words for what is read: an element by its label or by what it is, or only a window."""
    if isinstance(target, str):
        return {"label": target}
    found: dict[str, Any] = dict(scope(context, where))
    if isinstance(target, Find):
        found["query"] = target.query()
    return found


def in_lines(text: str) -> str:
    """Return a text of the screen with each of its lines in quotes, so that nothing in it can be taken for ours."""
    from surehand.core.scene.describe import escape  # noqa: PLC0415 - not needed by every call

    return "\n".join(f'"{escape(line)}"' for line in text.split("\n"))


async def read_text(context: Context, args: ReadText) -> Answer:
    """Return a page of a text, or where it shows something."""
    if args.find is not None:
        return await _found(context, args, args.find)
    if args.regex or args.ignore_case or args.lines:
        raise InvalidRequest("regex, ignore_case and lines go with find")
    params = {**named(context, args.target, args), "start": args.start, "chars": args.limit}
    page = await context.ask("read_text", params)
    context.window = page["surface"]
    end = page["start"] + len(page["text"])
    data = {
        "label": page["label"],
        "text": page["text"],
        "start": page["start"],
        "total": page["total_chars"],
    }
    head = f"[{page['label']}] characters {page['start']} to {end} of {page['total_chars']}"
    if "next" in page:
        data["next"] = page["next"]
        head += f"; go on with start {page['next']}"
    return Answer(data, f"{head}\n{in_lines(page['text'])}" if page["text"] else f"{head}: nothing")


async def _found(context: Context, args: ReadText, sought: str) -> Answer:
    find = {
        "text": sought,
        "regex": args.regex,
        "ignore_case": args.ignore_case,
        "start": args.start,
        "context_lines": args.lines,
    }
    found = await context.ask("find_text", {**named(context, args.target, args), "find": find})
    context.window = found["surface"]
    count = found["count"] if found["counted_all"] else f"more than {found['count']}"
    lines = [f"[{found['label']}] {count} matches in {found['total_chars']} characters"]
    data = {
        "label": found["label"],
        "matches": [{name: match[name] for name in ("start", "end", "line", "text")} for match in found["matches"]],
        "count": found["count"],
        "total": found["total_chars"],
    }
    for match in found["matches"]:
        lines.append(f"line {match['line']}, characters {match['start']} to {match['end']}:")
        lines += [f"  {in_lines(line)}" for line in match["before"]]
        lines.append(("> " if args.lines else "  ") + in_lines(match["text"]))
        lines += [f"  {in_lines(line)}" for line in match["after"]]
    if len(found["matches"]) < found["count"]:
        data["next"] = found["matches"][-1]["end"]
        lines.append(f"go on with start {data['next']}")
    if found["searched_chars"] < found["total_chars"]:
        data["searched"] = found["searched_chars"]
        lines.append(f"only the first {found['searched_chars']} characters were searched")
    return Answer(data, "\n".join(lines))


TOOLS: Final = (
    Tool(
        name="read_text",
        title="Read a long text",
        description=(
            "A text field, document or terminal in full, page by page, where a window's text cuts it; or with find the "
            "places in it, with lines around them. Never a password."
        ),
        kind="read",
        args=ReadText,
        output={"type": "object", "properties": {"text": {"type": "string"}, "next": {"type": "integer"}}},
        handler=read_text,
    ),
)
