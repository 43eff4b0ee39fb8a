"""Input plans: an action as a list of units, each of which is checked, delivered whole and counted."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Final

import msgspec

from surehand.core.input.graphemes import graphemes
from surehand.core.input.keys import Chord, Key, keysym_of, named_key, parse_chord
from surehand.errors import InvalidRequest

_KEYS_FOR_CONTROLS: Final = {"\n": "Return", "\r": "Return", "\r\n": "Return", "\t": "Tab"}


class TextUnit(msgspec.Struct, frozen=True):
    """One grapheme: its characters one after the other."""

    keys: tuple[Key, ...]


class ChordUnit(msgspec.Struct, frozen=True):
    """One chord: all down, then all up."""

    chord: Chord


Unit = TextUnit | ChordUnit


def plan_text(text: str, *, clear: bool = False, submit: bool = False) -> tuple[Unit, ...]:
    """Return the units of a text: select all and delete first when `clear`, Return last when `submit`.

    A line break is the Return key, a tabulator the Tab key.

    Raises:
        InvalidRequest: a control character that no key stands for. It is never dropped.
    """
    units: list[Unit] = []
    if clear:
        units += [ChordUnit(parse_chord("ctrl+a")), ChordUnit(parse_chord("BackSpace"))]
    for cluster in graphemes(text):
        if name := _KEYS_FOR_CONTROLS.get(cluster):
            units.append(ChordUnit(Chord((), (named_key(name),))))
            continue
        for character in cluster:
            if unicodedata.category(character) == "Cc":
                raise InvalidRequest(
                    "the text holds a control character that cannot be typed",
                    fix="send keys with press instead",
                    details={"code_point": f"{ord(character):04X}"},
                )
        units.append(TextUnit(tuple(Key(keysym_of(character), character) for character in cluster)))
    if submit:
        units.append(ChordUnit(Chord((), (named_key("Return"),))))
    return tuple(units)


def plan_press(chords: Sequence[str]) -> tuple[Unit, ...]:
    """Return the units of a press action.

    Raises:
        InvalidRequest, TooLarge: see `parse_chord`.
    """
    return tuple(ChordUnit(parse_chord(chord)) for chord in chords)


def plan_drag(start: tuple[int, int], corners: Sequence[tuple[int, int]], steps: int) -> tuple[tuple[int, int], ...]:
    """Return the places that the pointer visits after `start`: at least `steps`, every corner exactly, in order.

    Steps are shared among the legs by their length; toolkits need several to take a movement for a drag.
    """
    legs = list(zip([start, *corners], corners, strict=False))
    lengths = [max(abs(b[0] - a[0]), abs(b[1] - a[1])) for a, b in legs]
    total = sum(lengths) or 1
    places: list[tuple[int, int]] = []
    for (begin, end), length in zip(legs, lengths, strict=True):
        count = max(1, -(-steps * length // total))
        for index in range(1, count + 1):
            x = begin[0] + (end[0] - begin[0]) * index // count
            y = begin[1] + (end[1] - begin[1]) * index // count
            places.append((x, y))
    return tuple(places)
