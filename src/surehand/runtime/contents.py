"""Reading what elements hold: pages of texts, places in them, rows of tables (spec §5.6).

Each is decided by policy before the application is touched, and again by how its window is called once it was read;
never gives a secret; and is recorded without anybody waiting for the disk. A text is searched here, so that a long
document costs one answer.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

import msgspec

from surehand import limits
from surehand.core.release import check_readable, is_secret
from surehand.core.scene.describe import describe
from surehand.core.scene.paging import page_end
from surehand.core.scene.tables import TABLE_ROLES, rows_of, table_at
from surehand.core.scene.textsearch import search
from surehand.core.scene.tree import index_of
from surehand.errors import AmbiguousTarget, TargetNotFound
from surehand.model.record import to_value
from surehand.model.scene import Node, Scene, Surface
from surehand.model.tables import TableSlice
from surehand.runtime import params as p
from surehand.runtime.parts import Parts
from surehand.runtime.scenes import desk_of
from surehand.runtime.session import Session
from surehand.runtime.where import element_of

_TEXTS: Final = frozenset({"text", "document", "terminal", "paragraph"})


async def read_text(parts: Parts, session: Session, args: p.ReadText) -> dict[str, Any]:
    """Read characters of an element's text; never of a secret."""
    scene, index = await _text(parts, session, args)
    node = scene.tree.nodes[index]
    surface_id = scene.surface.surface_id
    observer = desk_of(session).observer_of(surface_id)
    if args.chars is None:
        found = await observer.text(surface_id, node.handle, args.start, args.end)
        text = found.text
    else:
        ahead = args.start + args.chars + limits.GRAPHEME_CHARS_MAX
        found = await observer.text(surface_id, node.handle, args.start, ahead)
        text = found.text[: page_end(found.text, args.chars)]
    await parts.scenes.check_after(session, scene.surface)
    parts.reads.note(session, scene.surface, "desktop.read_text", text, scene.generation)
    value = {**_of(scene, index), "text": text, "start": found.start, "total_chars": found.total_chars}
    if found.start + len(text) < found.total_chars:
        value["next"] = found.start + len(text)
    return value


async def find_text(parts: Parts, session: Session, args: p.FindText) -> dict[str, Any]:
    """Find where an element's text shows something, with the lines around it."""
    scene, index = await _text(parts, session, args)
    surface_id = scene.surface.surface_id
    whole = await desk_of(session).observer_of(surface_id).document(surface_id, scene.tree.nodes[index].handle)
    await parts.scenes.check_after(session, scene.surface)
    found = await asyncio.to_thread(search, whole.text, args.find)
    told = "\n".join("\n".join((*match.before, match.text, *match.after)) for match in found.matches)
    parts.reads.note(session, scene.surface, "desktop.find_text", told, scene.generation)
    return {
        **_of(scene, index),
        "matches": [to_value(match) for match in found.matches],
        "count": found.count,
        "counted_all": found.counted_all,
        "total_chars": whole.total_chars,
        "searched_chars": len(whole.text),
    }


async def read_table(parts: Parts, session: Session, args: p.ReadTable) -> dict[str, Any]:
    """Read rows of a table, list or tree."""
    if (value := await _next_page(parts, session, args)) is not None:
        return value
    scene, meant = await element_of(parts, session, args)
    index = table_at(scene, meant)
    node, surface_id = scene.tree.nodes[index], scene.surface.surface_id
    check_readable(node)
    observer = desk_of(session).observer_of(surface_id)
    found = await observer.table(surface_id, node.handle, args.row_start, args.rows)
    if found is None:
        virtual = _is_virtual(scene, index)
        found = rows_of(scene.tree, index, args.row_start, args.rows, virtual=virtual)
    await parts.scenes.check_after(session, scene.surface)
    session.shown.match(scene, index)
    return _table_value(parts, session, scene.surface, scene.generation, scene.targets[index].label, node, found)


async def _next_page(parts: Parts, session: Session, args: p.ReadTable) -> dict[str, Any] | None:
    """Read rows of a table that the session was shown, without looking at the rest of its window.

    The object is asked whether it lives and is no secret. What it shows now is what is asked for, so that nothing of
    what surrounds it has to be as it was. None where its rows have to be looked for in the tree.
    """
    if args.label is None or args.surface is not None or args.app is not None:
        return None
    meaning = session.shown.meaning(args.label)
    if meaning.node.role not in TABLE_ROLES:
        return None
    desk = desk_of(session)
    surface, observer = await desk.surface(meaning.surface_id)
    await parts.authority.check_read(session, surface)
    # A new title may be one that policy closes.
    now = next((one for one in await desk.siblings(surface) if one.surface_id == surface.surface_id), None)
    if now is None:
        return None
    desk.update(now)
    await parts.authority.check_read(session, now)
    check_readable(meaning.node)
    found = await observer.table(meaning.surface_id, meaning.node.handle, args.row_start, args.rows)
    if found is None:
        return None
    await parts.scenes.check_after(session, now)
    seen = session.latest.get(meaning.surface_id)
    generation = 0 if seen is None else seen.generation
    return _table_value(parts, session, now, generation, args.label, meaning.node, found)


def _table_value(
    parts: Parts, session: Session, surface: Surface, generation: int, label: str, node: Node, found: TableSlice
) -> dict[str, Any]:
    parts.reads.note(session, surface, "desktop.read_table", repr(found.rows), generation)
    named = {"surface": surface.surface_id, "label": label, "role": node.role, "name": node.name}
    return {**named, **msgspec.structs.asdict(found)}


def _is_virtual(scene: Scene, index: int) -> bool:
    """Return whether the toolkit may have more rows than elements: GTK 4 makes those near the screen only."""
    nodes = scene.tree.nodes
    return scene.surface.toolkit.lower().startswith("gtk 4") and any(
        nodes[above].role == "scrollpane" for above in index_of(scene.tree).ancestors(index)
    )


async def _text(parts: Parts, session: Session, args: p.Element) -> tuple[Scene, int]:
    """Return the text that is meant, if it may be read.

    Raises:
        SecureSurface: it is a secret.
    """
    scene, index = await element_of(parts, session, args)
    if index is None:
        index = _only_text(scene)
    check_readable(scene.tree.nodes[index])
    session.shown.match(scene, index)
    return scene, index


def _only_text(scene: Scene) -> int:
    """Return the one text that shows; of several the only one of many lines."""
    nodes = scene.tree.nodes
    shown = [index for index, node in enumerate(nodes) if _is_text(node)]
    long = [index for index in shown if "multiline" in nodes[index].states]
    meant = long if len(long) == 1 else shown
    if not meant:
        raise TargetNotFound("the window shows no text to read", fix="observe it; names and values are there")
    if len(meant) > 1:
        raise AmbiguousTarget(
            f"the window shows {len(meant)} texts",
            fix="name one with target",
            observed={"candidates": [describe(scene, index) for index in meant[: limits.CANDIDATES_MAX]]},
        )
    return meant[0]


def _is_text(node: Node) -> bool:
    return node.role in _TEXTS and node.text_chars is not None and "showing" in node.states and not is_secret(node)


def _of(scene: Scene, index: int) -> dict[str, str]:
    return {"surface": scene.surface.surface_id, "label": scene.targets[index].label}
