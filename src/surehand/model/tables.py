"""A piece of a table, however it was read: straight from an application's cells, or from the rows of a tree."""

from __future__ import annotations

import msgspec

#: What a cell shows: its text, whether it is ticked, or nothing that may be told.
Cell = str | bool | None


class TableSlice(msgspec.Struct, frozen=True, kw_only=True):
    """Some rows of a table. `columns` are the headers, "" where a column has none.

    Rows count from 0. `total_rows` is None where only the rows near those on the screen exist. `stable` is false where
    the table changed while it was read.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    row_start: int
    total_rows: int | None
    total_columns: int
    selected: tuple[int, ...] = ()
    stable: bool = True
