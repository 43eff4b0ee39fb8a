"""The stop key: which physical presses stop the agents of a desktop (spec §1.5).

Pure: told of every physical key press and release with its keycode and the server's time, it says when the sequence is
complete. What an agent sends through XTEST is never told to it, so it can neither complete nor break a sequence.

A sequence is one key, or several pressed one after another, each within `limits.STOP_KEY_MS_MAX` of the one before. A
key that is held down repeats; a repeat is no press.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from surehand import limits
from surehand.core.input.keys import parse_chord
from surehand.errors import InvalidRequest

DEFAULT: Final = "Escape Escape"
OFF: Final = "none"


def parse_stop_key(text: str) -> tuple[int, ...]:
    """Return the keysyms of a stop key such as `Escape Escape` or `Pause`; nothing for `none`.

    Raises:
        InvalidRequest: an unknown key, a modifier or a combination, or too many.
    """
    if text == OFF:
        return ()
    names = text.split()
    if not 1 <= len(names) <= limits.STOP_KEY_PRESSES_MAX:
        raise InvalidRequest(
            f"stop_key names {len(names)} presses", fix=f'name 1 to {limits.STOP_KEY_PRESSES_MAX} keys, or "{OFF}"'
        )
    keysyms = []
    for name in names:
        chord = parse_chord(name)
        if chord.modifiers or len(chord.keys) != 1:
            raise InvalidRequest("stop_key takes single keys without modifiers", fix=f'such as "{DEFAULT}" or "Pause"')
        keysyms.append(chord.keys[0].keysym)
    return tuple(keysyms)


class StopKey:
    """Follows the presses of one desktop's keyboards."""

    def __init__(self, keysyms: tuple[int, ...]) -> None:
        self._keysyms = keysyms
        self._codes: dict[int, set[int]] = {keysym: set() for keysym in keysyms}
        #: Keycodes of the latest presses, each soon after the one before.
        self._latest: list[int] = []
        self._last_ms = 0
        self._down: set[int] = set()

    @property
    def watched(self) -> bool:
        """Whether there is a stop key at all."""
        return bool(self._keysyms)

    def learn(self, keymap: Mapping[int, Iterable[int]]) -> None:
        """Take the keys of a keymap in. What once was a stop key stays one: remapping takes nobody's stop away."""
        for keycode, keysyms in keymap.items():
            for keysym in self._codes.keys() & set(keysyms):
                self._codes[keysym].add(keycode)

    def pressed(self, keycode: int, time_ms: int) -> bool:
        """Take a physical press; return whether it completes the sequence."""
        if keycode in self._down or not self._keysyms:
            return False
        self._down.add(keycode)
        late = (time_ms - self._last_ms) & 0xFFFF_FFFF > limits.STOP_KEY_MS_MAX  # the server's clock wraps around
        self._last_ms = time_ms
        # The last presses count, however many came before: who strikes a key once too often must be heard as well.
        self._latest = [*([] if late else self._latest), keycode][-len(self._keysyms) :]
        if len(self._latest) < len(self._keysyms) or not all(
            code in self._codes[keysym] for code, keysym in zip(self._latest, self._keysyms, strict=True)
        ):
            return False
        self._latest = []
        return True

    def released(self, keycode: int) -> None:
        """Take a physical release."""
        self._down.discard(keycode)
