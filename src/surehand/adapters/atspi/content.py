"""What elements hold beyond their node: texts of any length and the cells of tables, read straight from an application.

Nothing here is kept, and nothing of it is asked of a secret: whoever calls has made sure of that with a live read.
Offsets outside are characters; where a toolkit counts UTF-16 units, units are turned into characters here.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from typing import Final

from surehand import limits
from surehand.adapters.atspi import calls, letters
from surehand.adapters.atspi.bus import Application
from surehand.adapters.atspi.entries import Entry
from surehand.adapters.atspi.transport import Call, Failure, Reply
from surehand.errors import Unavailable, UnsupportedAction
from surehand.model.tables import Cell, TableSlice
from surehand.ports import TextSlice

_BIT_CHECKED: Final = 1 << 4
_TOGGLE: Final = "toggle"
#: A table that changes while its page is read is read once more.
_ATTEMPTS: Final = 2


async def ask(application: Application, wanted: Sequence[Call]) -> list[Reply]:
    """Return the answers to some questions.

    Raises:
        Unavailable: the application does not answer.
    """
    replies = await application.channel.call_many(wanted)
    if any(isinstance(reply, Failure) and reply.kind != "refused" for reply in replies):
        application.call_hung()
        raise letters.silent(application)
    return replies


# --- texts ------------------------------------------------------------------------------------------------------


async def read_text(application: Application, path: str, start: int, end: int, chars_max: int) -> TextSlice:
    """Return characters `start..end` (end −1: to the end) of a text, at most `chars_max` of them.

    Raises:
        UnsupportedAction: the element has no text.
        Unavailable: the application does not give it.
    """
    channel = application.channel
    total = calls.integer((await ask(application, [channel.get(path, calls.TEXT, "CharacterCount")]))[0])
    if total is None:
        raise UnsupportedAction("the element holds no text", fix="read its name and value with observe")
    if application.profile.utf16_offsets:
        # Units cannot be counted without the text before them.
        text = await _in_parts(application, path, 0, min(total, limits.DOCUMENT_CHARS_MAX), together=True)
        first, last = text_range(start, end, len(text), chars_max)
        return TextSlice(text=text[first:last], start=first, total_chars=len(text))
    first, last = text_range(start, end, total, chars_max)
    text = await _in_parts(application, path, first, last)
    return TextSlice(text=text, start=first, total_chars=max(total, first + len(text)))


async def _in_parts(application: Application, path: str, first: int, last: int, *, together: bool = False) -> str:
    """Return a range of a text; a long one in parts, because each answer has to come in time.

    `together` asks for all at once: a part could end inside a pair of UTF-16 units.
    """
    parts: list[str] = []
    step = max(1, last - first) if together else limits.DOCUMENT_PART_CHARS
    for place in range(first, last, step):
        call = application.channel.ask(path, calls.TEXT, "GetText", "ii", place, min(last, place + step))
        reply = (await ask(application, [call]))[0]
        if isinstance(reply, Failure) or not reply or not isinstance(reply[0], str):
            raise Unavailable("the application does not give its text")
        parts.append(reply[0])
    return "".join(parts)


def text_range(start: int, end: int, total: int, chars_max: int) -> tuple[int, int]:
    """Return a range inside a text, no longer than one page."""
    first = min(max(0, start), total)
    last = total if end < 0 else min(end, total)
    return first, max(first, min(last, first + chars_max))


async def whole_text(application: Application, path: str) -> str | None:
    """Return a whole text at once, None where it is not given; for comparing, so a secret's may be asked for."""
    channel = application.channel
    reply = (await channel.call_many([channel.ask(path, calls.TEXT, "GetText", "ii", 0, -1)]))[0]
    if isinstance(reply, Failure) or not reply or not isinstance(reply[0], str):
        return None
    return reply[0]


async def same_text(application: Application, path: str, expected: str) -> bool | None:
    """Compare a whole text, a secret's too; None where it is not given, or only bullets are."""
    text = await whole_text(application, path)
    if text is None:
        return None
    if hmac.compare_digest(text.encode("utf-8", "replace"), expected.encode("utf-8", "replace")):
        return True
    hidden = len(set(text)) <= 1
    return None if hidden else False


async def read_selection(application: Application, path: str) -> tuple[int, int] | None:
    """Return a text's selection as (start, length), its caret as length 0; None where it tells neither."""
    channel = application.channel
    selected, caret = await channel.call_many(
        [channel.ask(path, calls.TEXT, "GetSelection", "i", 0), channel.get(path, calls.TEXT, "CaretOffset")]
    )
    at = calls.integer(caret)
    if not isinstance(selected, Failure) and len(selected) == 2 and selected[0] != selected[1]:
        first, last = sorted(int(place) for place in selected)
    elif at is None or at < 0:
        return None
    else:
        first = last = at
    if application.profile.utf16_offsets:
        text = await whole_text(application, path)
        if text is None:
            return None
        first, last = (len(text.encode("utf-16-le")[: 2 * n].decode("utf-16-le", "ignore")) for n in (first, last))
    return first, last - first


# --- tables -----------------------------------------------------------------------------------------------------


def has_cells(application: Application, entry: Entry) -> bool:
    """Return whether the toolkit tells cells by row and column, without making objects that it keeps for ever."""
    if "Table" not in entry.interfaces:
        return False
    if entry.role == "tree":
        return not application.profile.unstable_trees
    return entry.role == "table" or entry.children_cut


async def read_table(application: Application, path: str, row_start: int, rows: int) -> TableSlice:
    """Return rows of a table; only the cells asked for are looked at.

    Raises:
        Unavailable: the application does not answer.
    """
    for attempt in range(_ATTEMPTS):
        found, stable = await _page(application, path, row_start, rows)
        if stable or attempt:
            break
    return found


async def _size(application: Application, path: str) -> tuple[int, int]:
    channel = application.channel
    replies = await ask(application, [channel.get(path, calls.TABLE, name) for name in ("NRows", "NColumns")])
    height, width = (max(0, calls.integer(reply) or 0) for reply in replies)
    return height, width


async def _page(application: Application, path: str, row_start: int, rows: int) -> tuple[TableSlice, bool]:
    channel = application.channel
    height, width = await _size(application, path)
    shown = min(width, limits.TABLE_COLUMNS_MAX)
    first = min(row_start, height)
    # Places outside a table are never asked for: some toolkits only warn about them, and some do worse.
    last = min(height, first + min(rows, limits.TABLE_CELLS_MAX // max(1, shown)))
    places = [(row, column) for row in range(first, last) for column in range(shown)]
    wanted = [channel.ask(path, calls.TABLE, "GetColumnDescription", "i", column) for column in range(shown)]
    wanted.append(channel.ask(path, calls.TABLE, "GetSelectedRows"))
    wanted += [channel.ask(path, calls.TABLE, "GetAccessibleAt", "ii", row, column) for row, column in places]
    replies = await ask(application, wanted)
    titles = [(calls.string(reply) or "").strip() for reply in replies[:shown]]
    cells = await _cells(application, [calls.reference(reply) for reply in replies[shown + 1 :]], shown)
    stable = await _size(application, path) == (height, width)
    return TableSlice(
        columns=tuple(titles),
        rows=tuple(tuple(cells[start : start + shown]) for start in range(0, len(cells), max(1, shown))),
        row_start=first,
        total_rows=height,
        total_columns=width,
        selected=tuple(row for row in _numbers(replies[shown]) if first <= row < last),
        stable=stable,
    ), stable


def _numbers(reply: Reply) -> list[int]:
    listed = [] if isinstance(reply, Failure) or not reply else reply[0]
    return sorted(number for number in listed if isinstance(number, int)) if isinstance(listed, list) else []


async def _cells(application: Application, refs: list[calls.Ref | None], width: int) -> list[Cell]:
    """Return what each cell shows: its text, or whether it is ticked."""
    paths = [ref[1] if ref is not None and ref[0] == application.owner else calls.NULL_PATH for ref in refs]
    known = [path for path in paths if path != calls.NULL_PATH]
    channel = application.channel
    wanted = [channel.get(path, calls.ACCESSIBLE, "Name") for path in known]
    wanted += [channel.ask(path, calls.ACCESSIBLE, "GetState") for path in known]
    replies = await ask(application, wanted)
    names = dict(zip(known, replies[: len(known)], strict=True))
    bits = dict(zip(known, replies[len(known) :], strict=True))
    cells: list[Cell] = [calls.string(names.get(path)) for path in paths]
    ticked = [bool((calls.states(bits.get(path)) or 0) & _BIT_CHECKED) for path in paths]
    for column in range(width):
        places = range(column, len(cells), width)
        # No toolkit says of an unticked cell that it could be ticked; a column without texts that has a tick can.
        if not places or any(cells[place] for place in places):
            continue
        if any(ticked[place] for place in places) or await _toggles(application, paths[column]):
            for place in places:
                cells[place] = None if paths[place] == calls.NULL_PATH else ticked[place]
    return cells


async def _toggles(application: Application, path: str) -> bool:
    """Return whether the first action of a cell ticks it, where a toolkit has that action for nothing else."""
    if application.profile.family != "gtk3" or path == calls.NULL_PATH:
        return False
    call = application.channel.ask(path, calls.ACTION, "GetName", "i", 0)
    return calls.string((await ask(application, [call]))[0]) == _TOGGLE
