"""Reading tables, lists and trees by rows, however many there are."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from typing import Annotated, Any, Final, Literal

from msgspec import Meta

from surehand import limits
from surehand.tools.context import Context
from surehand.tools.places import Element, Where
from surehand.tools.reading import named
from surehand.tools.schema import brief
from surehand.tools.tool import Answer, Tool


class ReadTable(Where, frozen=True, kw_only=True):
    """Rows of a table."""

    target: Annotated[
        Element | None,
        brief("the table or something in it: label or {role,name,…}; default: the only one", "string", "object"),
    ] = None
    row_start: Annotated[int, Meta(ge=0)] = 0
    rows: Annotated[int, Meta(ge=1, le=limits.TABLE_ROWS_MAX)] = limits.TABLE_ROWS_DEFAULT
    format: Literal["rows", "csv"] = "rows"


async def read_table(context: Context, args: ReadTable) -> Answer:
    """Return rows of a table."""
    params = {**named(context, args.target, args), "row_start": args.row_start, "rows": args.rows}
    found = await context.ask("read_table", params)
    context.window = found["surface"]
    end = found["row_start"] + len(found["rows"])
    total = found["total_rows"]
    data: dict[str, Any] = {
        "label": found["label"],
        "columns": found["columns"],
        "row_start": found["row_start"],
        "total_rows": total,
    }
    more = bool(found["rows"]) and (end < total if total is not None else len(found["rows"]) == args.rows)
    if more:
        data["next"] = end
    if found["selected"]:
        data["selected"] = found["selected"]
    notes = _notes(found, end, more=more)
    if args.format == "csv":
        data["csv"] = as_csv(found["columns"] if args.row_start == 0 else (), found["rows"])
        # On one line each, so that a line end in a cell cannot begin a line of ours.
        body = [_escaped(line) for line in _csv_lines(found)]
    else:
        data["rows"] = found["rows"]
        body = [f"columns: {_row(found['columns'])}"] if any(found["columns"]) else []
        body += [f"{found['row_start'] + place}: {_row(row)}" for place, row in enumerate(found["rows"])]
    return Answer(data, "\n".join([_head(found, end, total), *body, *notes]))


def _head(found: dict[str, Any], end: int, total: int | None) -> str:
    name = f" {_quoted(found['name'])}" if found["name"] else ""
    of = f" of {total}" if total is not None else ""
    rows = f"rows {found['row_start']} to {end - 1}{of}" if found["rows"] else f"no rows{' there' if total else ''}{of}"
    return f"[{found['label']}] {found['role']}{name}: {rows}"


def _notes(found: dict[str, Any], end: int, *, more: bool) -> list[str]:
    notes = []
    if found["selected"]:
        notes.append("selected: " + ", ".join(map(str, found["selected"])))
    if more:
        notes.append(f"go on with row_start {end}")
    if found["total_rows"] is None:
        notes.append("these are the rows near those on the screen; scroll for others")
    if len(found["columns"]) < found["total_columns"]:
        notes.append(f"{found['total_columns']} columns; the first {len(found['columns'])} are shown")
    if not found["stable"]:
        notes.append("the table changed while it was read")
    return notes


def as_csv(columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """Return RFC 4180: texts in quotes, ticks as true and false, secrets as nothing."""
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_ALL)
    titles = list(columns)
    if any(titles):
        writer.writerow(titles)
    for row in rows:
        writer.writerow([_plain(cell) for cell in row])
    return out.getvalue()


def _csv_lines(found: dict[str, Any]) -> list[str]:
    head = [as_csv(found["columns"], ())] if any(found["columns"]) and found["row_start"] == 0 else []
    return [line.removesuffix("\r\n") for line in [*head, *(as_csv((), [row]) for row in found["rows"])]]


def _plain(cell: Any) -> str:
    if isinstance(cell, bool):
        return "true" if cell else "false"
    return "" if cell is None else str(cell)


def _row(cells: Iterable[Any]) -> str:
    return ", ".join(_quoted(cell) if isinstance(cell, str) else _plain(cell) or "secret" for cell in cells)


def _quoted(text: str) -> str:
    from surehand.core.scene.describe import quote  # noqa: PLC0415 - not needed by every call

    return quote(text, limits.FIELD_BYTES_STORED_MAX)


def _escaped(line: str) -> str:
    from surehand.core.scene.describe import escape  # noqa: PLC0415 - as above

    # Quotes are the format's own; everything else that could forge a line is spelled out.
    return '"'.join(escape(part).replace("\\\\", "\\") for part in line.split('"'))


TOOLS: Final = (
    Tool(
        name="read_table",
        title="Read a table",
        description="Rows of a table, list or tree with its columns, page by page, also those out of sight; or as CSV.",
        kind="read",
        args=ReadTable,
        output={"type": "object", "properties": {"rows": {"type": "array"}, "next": {"type": "integer"}}},
        handler=read_table,
    ),
)
