"""What is held down and what was changed, so that it can be undone: by the owner, or by the guard after its death.

The owner notes each change *before* it makes it and strikes it out *after* it took it back. A line too many is
harmless (an X server ignores the release of a key that is up), a line too few would leave a key down.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from surehand import limits
from surehand.errors import InvalidRequest

#: A note of nothing: whoever cannot deliver it cannot deliver the next one either.
HEARTBEAT: Final = b"\n"

HeldKind = Literal["key", "button"]
_CODE_MAX: Final = 255
_LETTERS: Final[dict[str, HeldKind]] = {"k": "key", "b": "button"}
_KINDS: Final[dict[HeldKind, str]] = {kind: letter for letter, kind in _LETTERS.items()}


class Held(NamedTuple):
    """A key (by keycode) or a button (by number) that is down."""

    kind: HeldKind
    code: int


class Locks(NamedTuple):
    """Locked modifiers and locked group of the keyboard, as they were before."""

    modifiers: int
    group: int


class HeldLedger:
    """What one owner holds, in the order in which it was pressed."""

    def __init__(self) -> None:
        self._held: dict[Held, None] = {}

    def check_press(self, held: Held) -> None:
        """Refuse a press that makes no sense before anything is sent.

        Raises:
            InvalidRequest: it is down already, or too much is held.
        """
        if held in self._held:
            raise InvalidRequest(f"the {held.kind} is already held", details={"code": held.code})
        if len(self._held) >= limits.HELD_MAX:
            raise InvalidRequest(f"more than {limits.HELD_MAX} keys and buttons would be held")

    def press(self, held: Held) -> None:
        """Note a press; see `check_press`."""
        self.check_press(held)
        self._held[held] = None

    def release(self, held: Held) -> None:
        """Note a release.

        Raises:
            InvalidRequest: it is not held.
        """
        if held not in self._held:
            raise InvalidRequest(f"the {held.kind} is not held", details={"code": held.code})
        del self._held[held]

    def holds(self, held: Held) -> bool:
        """Return whether it is down."""
        return held in self._held

    def newest_first(self) -> tuple[Held, ...]:
        """Return everything held, in the order in which it must be let go."""
        return tuple(reversed(self._held))


def press_line(held: Held) -> bytes:
    """Return the note of a press."""
    return f"{_KINDS[held.kind]}+ {held.code}\n".encode()


def release_line(held: Held) -> bytes:
    """Return the note that a press was taken back."""
    return f"{_KINDS[held.kind]}- {held.code}\n".encode()


def lending_line(keycode: int, keysym: int, before: tuple[int, ...]) -> bytes:
    """Return the note that a keycode gets a keysym instead of the keysyms `before`."""
    return f"m+ {keycode} {' '.join(f'{number:x}' for number in (keysym, *before))}\n".encode()


def giving_back_line(keycode: int) -> bytes:
    """Return the note that a keycode has its keysyms back."""
    return f"m- {keycode}\n".encode()


def locks_line(before: Locks) -> bytes:
    """Return the note that locks and group are about to differ from `before`."""
    return f"l+ {before.modifiers} {before.group}\n".encode()


def unlocks_line() -> bytes:
    """Return the note that they are back."""
    return b"l- 0\n"


class Lending(NamedTuple):
    """The keysym that a keycode was lent to, and the keysyms it had before."""

    keysym: int
    before: tuple[int, ...]


class Repairs:
    """What the guard has to undo, built from the owner's notes."""

    def __init__(self) -> None:
        self.held: dict[Held, None] = {}
        self.lent: dict[int, Lending] = {}
        self.locks: Locks | None = None

    def apply(self, line: bytes) -> None:
        """Take one note into account.

        Raises:
            InvalidRequest: it is no such note.
        """
        if not line.strip():
            return
        try:
            what, *fields = line.decode("ascii").split()
            code = int(fields[0])
        except (UnicodeDecodeError, ValueError, IndexError) as error:
            raise InvalidRequest("not a note of the input ledger") from error
        if not 0 <= code <= _CODE_MAX:
            raise InvalidRequest("a note of the input ledger is out of range")
        sign = what[-1]
        if what[:-1] in _LETTERS and sign in "+-" and len(fields) == 1:
            held = Held(_LETTERS[what[:-1]], code)
            if sign == "+":
                self.held[held] = None
            else:
                self.held.pop(held, None)
        elif what == "m+" and len(fields) > 1:
            keysym, *before = _keysyms(fields[1:])
            self.lent[code] = Lending(keysym, tuple(before))
        elif what == "m-" and len(fields) == 1:
            self.lent.pop(code, None)
        elif what == "l+" and len(fields) == 2 and fields[1] in {"0", "1", "2", "3"}:
            # The first note has the true state; a second one would only see our own.
            self.locks = self.locks or Locks(code, int(fields[1]))
        elif what == "l-":
            self.locks = None
        else:
            raise InvalidRequest("not a note of the input ledger")

    @property
    def any(self) -> bool:
        """Whether there is anything to undo."""
        return bool(self.held or self.lent or self.locks)


def _keysyms(fields: list[str]) -> list[int]:
    try:
        return [int(field, 16) for field in fields]
    except ValueError as error:
        raise InvalidRequest("not a note of the input ledger") from error
