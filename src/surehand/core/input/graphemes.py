"""What a reader takes for one character: the unit in which text is typed.

Follows the extended grapheme clusters of Unicode Standard Annex 29 with the properties that the standard library
knows. Where those do not suffice it errs towards longer units, which is safe: a unit is never split between two
checks, and no character is ever lost.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import Final

_ZWJ: Final = "\u200d"
_ZWNJ: Final = "\u200c"
_SKIN_TONES: Final = range(0x1F3FB, 0x1F400)
_TAGS: Final = range(0xE0020, 0xE0080)
_FLAGS: Final = range(0x1F1E6, 0x1F200)
_HALFWIDTH_MARKS: Final = frozenset("\uff9e\uff9f")
_EXTENDING: Final = frozenset({"Mn", "Me", "Mc"})
_LEADING: Final = (range(0x1100, 0x1160), range(0xA960, 0xA97D))
_VOWELS: Final = (range(0x1160, 0x11A8), range(0xD7B0, 0xD7C7))
_TRAILING: Final = (range(0x11A8, 0x1200), range(0xD7CB, 0xD7FC))
_SYLLABLES: Final = range(0xAC00, 0xD7A4)
_SYLLABLES_PER_PAIR: Final = 28


def graphemes(text: str) -> Iterator[str]:
    """Yield the clusters of `text` in order; joined they are the text."""
    start = 0
    for index in range(1, len(text)):
        if _breaks(text, start, index):
            yield text[start:index]
            start = index
    if text:
        yield text[start:]


def _breaks(text: str, start: int, index: int) -> bool:
    before, after = text[index - 1], text[index]
    if before == "\r" and after == "\n":
        return False
    if _is_control(before) or _is_control(after):
        return True
    if _extends(after):
        return False
    if before == _ZWJ and index - start > 1:
        return False
    if ord(before) in _FLAGS and ord(after) in _FLAGS:
        return (index - start) % 2 == 0
    return not _joins_hangul(before, after)


def _is_control(character: str) -> bool:
    return unicodedata.category(character) in {"Cc", "Zl", "Zp"}


def _extends(character: str) -> bool:
    code = ord(character)
    return (
        unicodedata.category(character) in _EXTENDING
        or character in {_ZWJ, _ZWNJ}
        or code in _SKIN_TONES
        or code in _TAGS
        or character in _HALFWIDTH_MARKS
    )


def _hangul(character: str) -> str:
    code = ord(character)
    for kind, ranges in (("L", _LEADING), ("V", _VOWELS), ("T", _TRAILING)):
        if any(code in part for part in ranges):
            return kind
    if code in _SYLLABLES:
        return "LV" if (code - _SYLLABLES.start) % _SYLLABLES_PER_PAIR == 0 else "LVT"
    return ""


def _joins_hangul(before: str, after: str) -> bool:
    first, second = _hangul(before), _hangul(after)
    return (
        (first == "L" and second in {"L", "V", "LV", "LVT"})
        or (first in {"LV", "V"} and second in {"V", "T"})
        or (first in {"LVT", "T"} and second == "T")
    )
