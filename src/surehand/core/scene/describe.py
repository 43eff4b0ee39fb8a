"""Elements in words: how anything read from a screen is quoted, and one line that describes an element.

Promises that text from a screen can never end its own quotes, break its line, reorder what stands beside it or hide
in it: quotes, backslashes, control, format, bidi and invisible characters and lone surrogates are spelled out. A cut
text ends in an ellipsis and never inside a character or an escape.
"""

from __future__ import annotations

import unicodedata
from typing import Final

from surehand import limits
from surehand.core.scene.context import contexts_of
from surehand.model.scene import Node, Scene

ELLIPSIS: Final = "…"
_NAMED: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
#: Categories that are invisible, reorder text, or are no characters. Private use and unassigned code points may draw
#: nothing or anything.
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
#: Joiners that Persian, Indic scripts and emoji need to be written correctly; they move nothing.
_JOINERS: Final = "\u200c\u200d"
#: Draw nothing although their category says letter or mark: fillers, the Braille blank, and variation selectors, in a
#: row of which any text can be hidden. The two that choose between text and picture stay: emoji are written with them.
_BLANK: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0") | {
    chr(code) for codes in ((0x180B, 0x1810), (0xFE00, 0xFE0E), (0xE0100, 0xE01F0)) for code in range(*codes)
}


def _spelled(character: str) -> str:
    if (named := _NAMED.get(character)) is not None:
        return named
    if character in _BLANK or (character not in _JOINERS and unicodedata.category(character) in _HIDDEN):
        code = ord(character)
        return f"\\u{code:04x}" if code <= 0xFFFF else f"\\u{{{code:x}}}"
    return character


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable() and '"' not in text and "\\" not in text


def escape(text: str) -> str:
    """Return text with everything spelled out that could forge, hide or reorder."""
    return text if _is_plain(text) else "".join(map(_spelled, text))


def quote(text: str, bytes_max: int = limits.RENDER_FIELD_BYTES_MAX) -> str:
    """Return text in double quotes, escaped, at most `bytes_max` UTF-8 bytes between them, ellipsis included."""
    if len(text) <= bytes_max and _is_plain(text):
        return f'"{text}"'
    # Every character takes a byte at least, so nothing past the limit can be shown.
    units = [_spelled(character) for character in text[: bytes_max + 1]]
    sizes = [len(unit.encode("utf-8")) for unit in units]
    if len(text) <= bytes_max and sum(sizes) <= bytes_max:
        return f'"{"".join(units)}"'
    left = bytes_max - len(ELLIPSIS.encode("utf-8"))
    shown = 0
    while shown < len(sizes) and sizes[shown] <= left:
        left -= sizes[shown]
        shown += 1
    return f'"{"".join(units[:shown])}{ELLIPSIS}"'


def token(text: str) -> str:
    """Return a role or other single word with everything but letters, digits and hyphens made an underscore."""
    text = text[:64]
    if text.isascii() and text.isalnum():
        return text
    cleaned = "".join(
        character if character.isascii() and (character.isalnum() or character == "-") else "_" for character in text
    )
    return cleaned or "_"


def describe(scene: Scene, index: int) -> str:
    """Return one line such as `[e17] button "Open" in "carol" disabled`."""
    node, target = scene.tree.nodes[index], scene.targets[index]
    words = [f"[{target.label}]", token(node.role), quote(node.name)]
    if target.context:
        words += ["in", quote(target.context)]
    if "enabled" not in node.states:
        words.append("disabled")
    if "showing" not in node.states:
        words.append("hidden")
    return " ".join(words)


def closest(scene: Scene, node: Node, context: str, *, most: int = 5) -> list[str]:
    """Return descriptions of the elements of a scene most like one that was meant, the likeliest first."""
    contexts = contexts_of(scene.tree).contexts
    wanted = node.name.casefold()
    scored: list[tuple[int, int]] = []
    for index, other in enumerate(scene.tree.nodes):
        same_role = other.role == node.role
        same_name = other.name == node.name
        if not (same_role or (same_name and node.name)) or not (other.name or same_name):
            continue
        score = 4 * (same_name and bool(node.name)) + 2 * same_role
        score += 3 * bool(context and contexts[index].text == context)
        score += 2 * bool(node.app_id and other.app_id == node.app_id)
        folded = other.name.casefold()
        score += bool(wanted and folded and (wanted in folded or folded in wanted))
        # The role alone makes no likeness.
        if score > 2:
            scored.append((-score, index))
    return [describe(scene, index) for _, index in sorted(scored)[:most]]
