"""Which key, with which modifiers, in which group, writes a character: a keyboard layout as data.

The rules are those of the X keyboard extension: a key has groups, a group has levels, the key's type says which
modifiers choose which level. Nothing here knows a particular layout.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from surehand.core.input.keys import Key, character_of, named_key

SHIFT: Final = 1
LOCK: Final = 2
_GROUP_RULE: Final = 0xC0
_CLAMP: Final = 0x40
_REDIRECT: Final = 0x80


class KeyType(NamedTuple):
    """`entries` map exact modifiers (within `mask`) to a level; anything else is level 0."""

    mask: int
    entries: tuple[tuple[int, int], ...]

    def level(self, modifiers: int) -> int:
        """Return the level that these modifiers choose."""
        wanted = modifiers & self.mask
        return next((level for mods, level in self.entries if mods == wanted), 0)

    def modifiers_for(self, level: int) -> Iterable[int]:
        """Yield the modifiers that choose a level, fewest first."""
        choices = {mods for mods, at in self.entries if at == level}
        if level == 0:
            choices.add(0)
        return sorted(
            (mods for mods in choices if self.level(mods) == level), key=lambda mods: (mods.bit_count(), mods)
        )


class LayoutKey(NamedTuple):
    """One key: its keysyms by group and level, the type of each group, and the rule for groups it does not have."""

    group_info: int
    types: tuple[KeyType, ...]
    keysyms: tuple[tuple[int, ...], ...]

    def group(self, effective: int) -> int:
        """Return the key's own group when `effective` is the keyboard's."""
        count = len(self.keysyms)
        if effective < count:
            return effective
        rule = self.group_info & _GROUP_RULE
        if rule == _CLAMP:
            return count - 1
        if rule == _REDIRECT:
            target = self.group_info >> 4 & 0x03
            return target if target < count else 0
        return effective % count


class KeyboardState(NamedTuple):
    """Modifiers and groups of the keyboard: physically down, latched, locked."""

    base: int
    latched: int
    locked: int
    group: int
    base_group: int
    latched_group: int
    locked_group: int


class Stroke(NamedTuple):
    """How to produce something: keys to hold, the key to press, and the locked modifiers and group that must stand."""

    keycode: int
    hold: tuple[int, ...]
    locked: int
    group: int


class _Place(NamedTuple):
    keycode: int
    group: int
    level: int


class Layout:
    """The keyboard as the server has it now.

    Args:
        keys: By keycode.
        modifiers: Which modifiers a keycode sets while it is down.
        first: Lowest keycode there can be.
        last: Highest keycode there can be.
    """

    def __init__(self, keys: Mapping[int, LayoutKey], modifiers: Mapping[int, int], first: int, last: int) -> None:
        self.keys = dict(keys)
        self.modifiers = dict(modifiers)
        self.groups = max((len(key.keysyms) for key in self.keys.values()), default=1)
        self.spare = tuple(code for code in range(last, first - 1, -1) if self._is_spare(code))
        self._by_keysym: dict[int, list[_Place]] = {}
        self._by_character: dict[str, list[_Place]] = {}
        for keycode, key in self.keys.items():
            for group, levels in enumerate(key.keysyms):
                for level, keysym in enumerate(levels):
                    if keysym:
                        self._index(_Place(keycode, group, level), keysym)
        self._holders = self._find_holders()

    def stroke(self, key: Key, state: KeyboardState) -> Stroke | None:
        """Return the simplest way to produce a key, None when the layout has none."""
        places = self._by_keysym.get(key.keysym, ())
        if not key.modifies and (character := character_of(key.keysym)) is not None:
            places = [*places, *self._by_character.get(character, ())]
        best: tuple[tuple[int, ...], Stroke] | None = None
        for place in places:
            for group in self._groups_for(place, state.group):
                kind = self.keys[place.keycode].types[place.group]
                for mods in kind.modifiers_for(place.level):
                    # Locks that do not touch this key stay as the person set them.
                    stroke = self._realise(place.keycode, mods, group, state.locked & ~(kind.mask | LOCK))
                    changed = (stroke.locked ^ state.locked).bit_count()
                    cost = (group != state.group, changed, len(stroke.hold), place.keycode)
                    if best is None or cost < best[0]:
                        best = (cost, stroke)
        return None if best is None else best[1]

    def modifier(self, key: Key) -> int | None:
        """Return the keycode that is this modifier key without any other key held."""
        for place in self._by_keysym.get(key.keysym, ()):
            if place.level == 0 and self.modifiers.get(place.keycode):
                return place.keycode
        return None

    def _is_spare(self, keycode: int) -> bool:
        key = self.keys.get(keycode)
        empty = key is None or not any(any(levels) for levels in key.keysyms)
        return empty and not self.modifiers.get(keycode)

    def _index(self, place: _Place, keysym: int) -> None:
        self._by_keysym.setdefault(keysym, []).append(place)
        if (character := character_of(keysym)) is not None:
            self._by_character.setdefault(character, []).append(place)

    def _groups_for(self, place: _Place, current: int) -> Iterable[int]:
        key = self.keys[place.keycode]
        return (group for group in dict.fromkeys((current, *range(self.groups))) if key.group(group) == place.group)

    def _find_holders(self) -> dict[int, int]:
        """Return for single modifiers the keycode that a person would hold for them."""
        found: dict[int, int] = {}
        for name in ("Shift_L", "Shift_R", "ISO_Level3_Shift", "ISO_Level5_Shift"):
            keycode = self.modifier(named_key(name))
            if keycode is not None and self.modifiers[keycode].bit_count() == 1:
                found.setdefault(self.modifiers[keycode], keycode)
        return found

    def _realise(self, keycode: int, modifiers: int, group: int, locked: int) -> Stroke:
        hold = []
        for bit in (1 << shift for shift in range(8)):
            if modifiers & bit:
                # Lock keys are toggles: they are set by state, never by pressing them.
                if bit != LOCK and bit in self._holders:
                    hold.append(self._holders[bit])
                else:
                    locked |= bit
        return Stroke(keycode, tuple(hold), locked, group)
