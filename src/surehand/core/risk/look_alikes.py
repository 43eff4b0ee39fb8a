"""Letters and digits that are drawn like a Latin letter and are not made so by compatibility forms.

As they are drawn, so before case is folded: the Greek capital of a `ν` looks like an N. Only what is used to imitate
words; the whole table of Unicode has thousands of rows that no control ever shows.
"""

from __future__ import annotations

from typing import Final

_BY_LETTER: Final = {
    "a": "аАαΑᎪᴀɑ4@",
    "b": "вВβΒʙ",
    "c": "СсᏟᴄ",
    "d": "ԁᴅđ",
    "e": "еЕεΕᎬᴇ3",
    "f": "ғ",
    "g": "ɢɡ9",
    "h": "һнНΗհᎻʜ",
    "i": "іІιΙɪɩı",
    "j": "јЈᎫᴊ",
    "k": "кКκΚᏦᴋ",
    "l": "ӏӀԼᏞʟł1",
    "m": "мМΜᎷᴍ",
    "n": "ηΝոɴ",
    "o": "оОοΟօᴏø0",
    "p": "рРρΡᏢᴘƿ",
    "q": "ԛ",
    "r": "гᎡʀɾ",
    "s": "ѕЅᏚꜱ5$",
    "t": "тТτΤᎢᴛ7",
    "u": "υսцᴜʋ",
    "v": "ѵνᏙᴠ",
    "w": "ѡԜωᎳᴡ",
    "x": "хХχΧ",
    "y": "уУγΥʏ",
    "z": "ΖᏃᴢ",
}

#: For `str.translate`: each look-alike to its Latin letter.
LOOK_ALIKES: Final = {ord(other): letter for letter, others in _BY_LETTER.items() for other in others}
