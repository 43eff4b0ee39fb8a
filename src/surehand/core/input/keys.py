"""Keys and chords: from the names that people and other tools write to keysyms.

A chord is keys joined by `+`, such as `ctrl+shift+s`, `Control+Shift+KeyS` or `ctrl++`: modifiers first pressed, last
released, whatever their place. Accepted are the names of xdotool (X keysyms), of Playwright and of the W3C key and
code values, WebDriver's private characters, `U20AC` for a code point, and any single character. Unknown names are
refused, never skipped.

A capital letter beside a modifier other than shift names the key, not a shifted key: `Control+S` is what every menu
prints for Ctrl with the S key. Write `Control+Shift+S` to hold shift.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

import msgspec

from surehand import limits
from surehand.core.input import tables
from surehand.errors import InvalidRequest, SurehandError, TooLarge
from surehand.model.actions import Modifier

_UNICODE_KEYSYM: Final = 0x0100_0000
_UNICODE_LAST: Final = 0x10_FFFF
_CODE_POINT: Final = re.compile(r"U([0-9A-Fa-f]{4,6})")
_NAME_CHARS_SHOWN: Final = 40

#: Keysyms of keys that change what other keys mean while they are down.
MODIFIER_KEYSYMS: Final = frozenset(
    tables.x_names()[f"{name}_{side}"]
    for name in ("Shift", "Control", "Alt", "Meta", "Super", "Hyper")
    for side in "LR"
) | frozenset(tables.x_names()[name] for name in ("ISO_Level3_Shift", "ISO_Level5_Shift", "Mode_switch"))
_SHIFTS: Final = frozenset(tables.x_names()[name] for name in ("Shift_L", "Shift_R"))

#: Keys that copy or cut what is selected: by themselves, with a modifier beyond shift, with shift alone.
_COPY_KEYS: Final = frozenset(tables.x_names()[name] for name in ("XF86Copy", "XF86Cut"))
_COPY_WITH_CONTROL: Final = frozenset(map(ord, "cxCX")) | {tables.x_names()[name] for name in ("Insert", "KP_Insert")}
_CUT_WITH_SHIFT: Final = frozenset(tables.x_names()[name] for name in ("Delete", "KP_Delete"))

#: The keys of the modifiers that a click may carry.
CLICK_MODIFIERS: Final[dict[Modifier, int]] = {
    "shift": tables.x_names()["Shift_L"],
    "control": tables.x_names()["Control_L"],
    "alt": tables.x_names()["Alt_L"],
    "meta": tables.x_names()["Super_L"],
}


class Key(msgspec.Struct, frozen=True):
    """One key by what it produces."""

    keysym: int
    label: str

    @property
    def modifies(self) -> bool:
        """Whether the key is a modifier."""
        return self.keysym in MODIFIER_KEYSYMS


class Chord(msgspec.Struct, frozen=True):
    """Modifiers to hold, and keys to press while they are held (none: the modifiers themselves are the keys)."""

    modifiers: tuple[Key, ...]
    keys: tuple[Key, ...]


def keysym_of(character: str) -> int:
    """Return the keysym that stands for a character."""
    code = ord(character)
    if 0x20 <= code <= 0x7E or 0xA0 <= code <= 0xFF:
        return code
    return tables.legacy_keysyms().get(character, _UNICODE_KEYSYM | code)


def character_of(keysym: int) -> str | None:
    """Return the character that a keysym stands for, None for keys that write nothing or by themselves (dead keys)."""
    if 0x20 <= keysym <= 0x7E or 0xA0 <= keysym <= 0xFF:
        return chr(keysym)
    if _UNICODE_KEYSYM < keysym <= _UNICODE_KEYSYM | _UNICODE_LAST:
        return chr(keysym & 0xFF_FFFF)
    return tables.legacy_characters().get(keysym)


def named_key(name: str) -> Key:
    """Return the key with this X name, for names known here; `KeyError` is a defect."""
    return Key(tables.x_names()[name], name)


def parse_chord(text: str) -> Chord:
    """Return the chord that `text` names.

    Raises:
        InvalidRequest: an unknown name, an empty part, a key named twice.
        TooLarge: more than `limits.CHORD_KEYS_MAX` keys.
    """
    keys = [_key(part) for part in _parts(text)]
    if len(keys) > limits.CHORD_KEYS_MAX:
        raise TooLarge(f"a chord has {len(keys)} keys; the limit is {limits.CHORD_KEYS_MAX}")
    modifiers = tuple(key for key in keys if key.modifies)
    others = [key for key in keys if not key.modifies]
    if any(key.keysym not in _SHIFTS for key in modifiers):
        others = [_plain(key) for key in others]
    everything = [*modifiers, *others]
    if len({key.keysym for key in everything}) != len(everything):
        raise InvalidRequest("a chord names a key twice")
    return Chord(modifiers, tuple(others))


def copies(text: str) -> bool:
    """Say whether a chord copies or cuts in any usual application; a letter of another script may be on the key."""
    try:
        chord = parse_chord(text)
    except SurehandError:
        return False  # it is refused for what it is
    keys = {key.keysym for key in chord.keys}
    if not keys.isdisjoint(_COPY_KEYS):
        return True
    if all(key.keysym in _SHIFTS for key in chord.modifiers):
        return bool(chord.modifiers) and not keys.isdisjoint(_CUT_WITH_SHIFT)
    letters = (character_of(keysym) or "" for keysym in keys)
    return not keys.isdisjoint(_COPY_WITH_CONTROL) or any(one.isalpha() and not one.isascii() for one in letters)


def _parts(text: str) -> list[str]:
    if text == "+":
        return ["+"]
    last = "+" if text.endswith("++") else None
    parts = (text[:-2] if last else text).split("+")
    named = [part.strip() or part for part in parts]
    # A lone blank is the space bar; between pluses it is a slip.
    if any(not part or (part.isspace() and index < len(parts) - 1) for index, part in enumerate(named)):
        raise InvalidRequest("a chord has an empty part", fix="join keys with single plus signs, such as ctrl+s")
    return [*named, last] if last else named


def _key(part: str) -> Key:
    names = tables.x_names()
    if len(part) == 1:
        return _character_key(part)
    if part in names:
        return Key(names[part], part)
    if found := _CODE_POINT.fullmatch(part):
        code = int(found[1], 16)
        if code > _UNICODE_LAST or 0xD800 <= code <= 0xDFFF:
            raise InvalidRequest("a chord names a code point that does not exist")
        return _character_key(chr(code))
    alias = tables.aliases().get(part.lower())
    if alias is None:
        raise InvalidRequest(
            "a chord names an unknown key",
            fix="use names such as ctrl, Return, Page_Up, ArrowLeft, KeyA, F5 or a single character",
            details={"key": part[:_NAME_CHARS_SHOWN]},
        )
    return Key(names[alias], part) if alias in names else _character_key(alias)


def _character_key(character: str) -> Key:
    if name := tables.webdriver_keys().get(character):
        return named_key(name)
    if character == " " or not (character.isspace() or unicodedata.category(character) in {"Cc", "Cs", "Co", "Cn"}):
        return Key(keysym_of(character), character)
    raise InvalidRequest(
        "a chord names a character that no key writes", details={"code_point": f"{ord(character):04X}"}
    )


def _plain(key: Key) -> Key:
    """Return the key of a capital ASCII letter; other keys as they are."""
    if ord("A") <= key.keysym <= ord("Z"):
        return Key(key.keysym + 0x20, key.label)
    return key
