"""Labels `e<N>`: the names by which a session's agent speaks of elements (spec §8.3).

Promises that no label is given twice in a session, whatever is retired, forgotten or rebuilt, and that a label
survives from one scene to the next only if the handle is the same, the object is alive and its fingerprint matches.
State in, state out: a table is never changed, so a build that is given up leaves no trace but its caller's table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from surehand import limits
from surehand.model.scene import Node


class SurfaceLabels(msgspec.Struct, frozen=True, kw_only=True):
    """The labels that live in one window: handle → (label, fingerprint), and the window's last generation."""

    provenance_hash: str
    generation: int
    live: dict[str, tuple[str, str]]


class LabelTable(msgspec.Struct, frozen=True, kw_only=True):
    """All labels of one session. `next_number` only grows, and so does `generation_floor`.

    A window that was forgotten and is seen again must not have an earlier generation than before, so forgetting raises
    the floor on which every window new to the session starts.
    """

    next_number: int = 1
    generation_floor: int = 0
    surfaces: dict[str, SurfaceLabels] = {}

    def generation(self, surface_id: str) -> int:
        """Return the last generation of a window in this session, or what a window not seen starts from."""
        surface = self.surfaces.get(surface_id)
        return self.generation_floor if surface is None else surface.generation

    def issued(self, label: str) -> bool:
        """Return whether this session ever handed out `label`."""
        digits = label.removeprefix("e")
        return (
            label.startswith("e")
            and digits.isascii()
            and digits.isdigit()
            and len(digits) < 20
            and digits[0] != "0"
            and int(digits) < self.next_number
        )


def assign(
    table: LabelTable, surface_id: str, provenance_hash: str, nodes: Sequence[Node], fingerprints: Sequence[str]
) -> tuple[list[str], LabelTable]:
    """Return the label of each node, and the table in which this window's other labels are retired for ever.

    A window whose provenance changed (another process, another backend) keeps no label: its handles are strangers'.
    """
    known = table.surfaces.get(surface_id)
    old = known.live if known is not None and known.provenance_hash == provenance_hash else {}
    number = table.next_number
    labels: list[str] = []
    live: dict[str, tuple[str, str]] = {}
    for node, fingerprint in zip(nodes, fingerprints, strict=True):
        handle = node.handle
        kept = old.get(handle)
        # An object shown twice keeps its label in one place; the other place gets a new one each time.
        if kept is None or kept[1] != fingerprint or handle in live or "defunct" in node.states:
            kept = (f"e{number}", fingerprint)
            number += 1
        if handle not in live:
            live[handle] = kept
        labels.append(kept[0])
    generation = table.generation(surface_id)
    surface = SurfaceLabels(provenance_hash=provenance_hash, generation=generation, live=live)
    return labels, _with(table, number, surface_id, surface)


def with_generation(table: LabelTable, surface_id: str, generation: int) -> LabelTable:
    """Return the table with a window's generation moved on."""
    known = table.surfaces[surface_id]
    if known.generation == generation:
        return table
    return _with(table, table.next_number, surface_id, msgspec.structs.replace(known, generation=generation))


def forget(table: LabelTable, surface_ids: Iterable[str]) -> LabelTable:
    """Return the table without the labels of windows that are gone. Their numbers stay used."""
    gone = set(surface_ids)
    kept = {name: surface for name, surface in table.surfaces.items() if name not in gone}
    if len(kept) == len(table.surfaces):
        return table
    floor = max([table.generation_floor, *(table.generation(name) for name in gone)])
    return LabelTable(next_number=table.next_number, generation_floor=floor, surfaces=kept)


def _with(table: LabelTable, number: int, surface_id: str, surface: SurfaceLabels) -> LabelTable:
    floor = table.generation_floor
    surfaces = {name: other for name, other in table.surfaces.items() if name != surface_id}
    # The window seen last stands last; the one not seen for longest makes room.
    while len(surfaces) >= limits.LABEL_SURFACES_MAX:
        floor = max(floor, surfaces.pop(next(iter(surfaces))).generation)
    surfaces[surface_id] = surface
    return LabelTable(next_number=number, generation_floor=floor, surfaces=surfaces)
