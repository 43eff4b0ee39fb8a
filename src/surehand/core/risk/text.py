"""The ways in which a text can be read, so that words are found however they are written (spec §6.2).

Guarantees: case, accents, compatibility forms, invisible characters, mnemonic marks and look-alike letters make no
difference to what is found. Every further reading only adds to what the others find. Linear in the text.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final, NamedTuple

from surehand.core.risk.look_alikes import LOOK_ALIKES

#: Scripts that put no spaces between words: Thai, Lao, Myanmar, Khmer, kana, Han, hangul (which spaces them freely).
UNSPACED: Final = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]"
)
_NOT_WORD: Final = re.compile(r"\W+")
_MARKED: Final = re.compile(r"[_&](?=\w)")
_HYPHENED: Final = re.compile("(?<=\\w)[-\u2010](?=\\w)")
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_MIXED_DIGITS: Final = re.compile(r"[^\W\d_][0134579@$]|[0134579@$][^\W\d_]")
_ONE_LETTER_RUN: Final = 3
#: The bound of Unicode's stream-safe text format.
_MARKS_MAX: Final = 30
_ASCII_MAX: Final = 127

#: Marks that decorate a letter: Latin, Greek and Cyrillic accents, Hebrew points, Arabic vowel signs. Vowel signs of
#: Indic scripts and of Thai are letters and stay.
_MARKS: Final = (
    (0x0300, 0x036F), (0x0591, 0x05C7), (0x064B, 0x065F), (0x0670, 0x0670), (0x1AB0, 0x1AFF), (0x1DC0, 0x1DFF),
    (0x20D0, 0x20FF), (0xFE20, 0xFE2F),
)  # fmt: skip
#: Choose between glyphs of one character, or join two without a trace.
_GLYPH_CHOICES: Final = frozenset(
    map(chr, (0x034F, *range(0x180B, 0x180E), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)))
)
#: Draw nothing although their category says letter, and the tatweel, which only stretches a word.
_FILLERS: Final = "\u0640\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"


def plain(text: str) -> str:
    """Return text as an operator's pattern is compared with it: no case, nothing invisible, no mnemonic underscore."""
    if text.isascii():
        return text.casefold().replace("_", "")
    # The Turkish dotless and dotted i lose and gain their dot when the case changes, so neither keeps it here.
    normal = unicodedata.normalize("NFKC", text).casefold().replace("\u0131", "i").replace("\u0307", "")
    return "".join(c for c in normal if c != "_" and unicodedata.category(c) != "Cf")


class Reading(NamedTuple):
    """The words of a text under one way of reading it; `loose` where letters were taken for others."""

    words: tuple[str, ...]
    loose: bool


def shown(text: str) -> str:
    """Return text as it is drawn: compatibility forms resolved, nothing invisible; accents and case are kept."""
    if text.isascii():
        return text
    kept = unicodedata.normalize("NFKC", _without_heaps("".join(c for c in text if not _is_hidden(c))))
    # The dotless and the dotted i lose and gain their dot when the case changes, so neither keeps it here.
    return kept.replace("\u0130", "I").replace("\u0131", "i")


def folded(text: str) -> str:
    """Return text as it is drawn, without accents and vowel points."""
    if text.isascii():
        return text
    apart = unicodedata.normalize("NFKD", shown(text))
    # Kana and hangul are put together again; what was dropped does not come back.
    return unicodedata.normalize("NFC", "".join(c for c in apart if not _is_mark(c)))


def flat(text: str) -> str:
    """Return text as phrases of unspaced scripts are looked for in it: folded, without case, blanks and mnemonics."""
    return "".join(_MARKED.sub("", folded(text)).casefold().split())


def tokens_of(text: str) -> tuple[str, ...]:
    """Return the words of a text as they are compared; an apostrophe joins, mnemonic marks vanish, the rest parts."""
    return _split(_MARKED.sub("", shown(text)))


def readings(text: str) -> tuple[Reading, ...]:
    """Return the words of a text in every way it can be read; the plain one first, none twice."""
    base = shown(text)
    close = {_split(_MARKED.sub("", base)): None}
    if _MARKED.search(base):
        # `delete_all` and `Cut&Delete` are two words each, `De_lete` is one.
        close[_split(base.replace("_", " ").replace("&", " "))] = None
    if _CAMEL.search(base):
        close[_split(_CAMEL.sub(" ", base))] = None
    loose = {joined: None for words in close if (joined := _joined(words)) != words}
    if _HYPHENED.search(base):
        # `De-lete` and `un-install` are one word each.
        loose[_split(_HYPHENED.sub("", _MARKED.sub("", base)))] = None
    if not base.isascii() or _MIXED_DIGITS.search(base):
        bare = _MARKED.sub("", folded(base))
        for other in (bare, bare.translate(LOOK_ALIKES)):
            loose.update(dict.fromkeys((words := _split(other), _joined(words))))
    return (
        *(Reading(words, loose=False) for words in close),
        *(Reading(words, loose=True) for words in loose if words not in close),
    )


def _split(text: str) -> tuple[str, ...]:
    bare = text.casefold().replace("'", "").replace("\u2019", "")
    return tuple(_NOT_WORD.sub(" ", bare.replace("_", "")).split())


def _joined(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words with letters that stand alone, three or more in a row, written together: `D e l e t e`."""
    found: list[str] = []
    run: list[str] = []
    for word in (*words, ""):
        if len(word) == 1:
            run.append(word)
            continue
        found += ["".join(run)] if len(run) >= _ONE_LETTER_RUN else run
        run = []
        if word:
            found.append(word)
    return tuple(found)


def _without_heaps(text: str) -> str:
    """Return text with no more marks on one letter than any script needs: putting them in order takes their square."""
    kept: list[str] = []
    marks = 0
    for character in text:
        marks = marks + 1 if unicodedata.combining(character) else 0
        if marks <= _MARKS_MAX:
            kept.append(character)
    return "".join(kept)


def _is_mark(character: str) -> bool:
    code = ord(character)
    return code > _ASCII_MAX and any(first <= code <= last for first, last in _MARKS)


def _is_hidden(character: str) -> bool:
    if character.isascii():
        return False
    return character in _FILLERS or unicodedata.category(character) == "Cf" or character in _GLYPH_CHOICES
