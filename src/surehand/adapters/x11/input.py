"""Keys, buttons and motion through XTEST, each noted to the guard before it is pressed.

Promises: what was pressed is released in reverse order, whatever happens in between; a wheel step presses and
releases one and the same button; buttons mean left, middle and right whatever the person's button order is. Nothing
here checks where input goes: that is done before, under the same server grab.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import xcffib
import xcffib.xproto
import xcffib.xtest

from surehand import limits
from surehand.adapters.x11.connection import XServer
from surehand.adapters.x11.keyboard import Keyboard, Note
from surehand.core.input.keys import Chord, Key
from surehand.core.input.layout import KeyboardState
from surehand.core.input.ledger import HEARTBEAT, Held, HeldLedger, press_line, release_line
from surehand.core.input.plan import ChordUnit, TextUnit, Unit
from surehand.errors import TargetNotActionable, UnsupportedAction
from surehand.model.actions import Button, Scroll

_KEY_PRESS: Final = 2
_KEY_RELEASE: Final = 3
_BUTTON_PRESS: Final = 4
_BUTTON_RELEASE: Final = 5
_MOTION: Final = 6
_TYPES: Final = {
    ("key", True): _KEY_PRESS,
    ("key", False): _KEY_RELEASE,
    ("button", True): _BUTTON_PRESS,
    ("button", False): _BUTTON_RELEASE,
}
#: Logical buttons, as applications know them.
BUTTONS: Final[dict[Button, int]] = {"left": 1, "middle": 2, "right": 3}
WHEEL: Final = {"up": 4, "down": 5, "left": 6, "right": 7}
_MODIFIERS: Final = 0xFF
_ALL_BUTTONS: Final = 0x1F00


def wheel_steps(action: Scroll) -> int:
    """Return how many wheel steps come nearest to a scroll action, at least one."""
    per_unit = {
        "line": 1 / limits.WHEEL_LINES,
        "page": float(limits.WHEEL_STEPS_PER_PAGE),
        "pixel": 1 / limits.WHEEL_PIXELS,
    }[action.unit]
    return max(1, round(action.amount_milli * per_unit / 1000))


class Injector:
    """Lives on its `XThread`; `handle` must see every event.

    Args:
        server: The connection.
        note: Takes the guard's notes; raises when the guard is gone, before anything is pressed.
    """

    def __init__(self, server: XServer, note: Note) -> None:
        self._server = server
        self._note = note
        self._xtest = server.extension(xcffib.xtest)
        self._xtest.GetVersion(2, 2).reply()
        self.keyboard = Keyboard(server, note)
        self.ledger = HeldLedger()
        self._place: tuple[int, int] | None = None

    def handle(self, event: Any) -> None:
        """Take note of an event."""
        self.keyboard.handle(event)

    def require_guard(self) -> None:
        """Raise when nobody would release what is pressed next."""
        self._note(HEARTBEAT)

    def button(self, logical: int) -> Held:
        """Return the button that applications see as `logical`, in the person's button order.

        Raises:
            UnsupportedAction: the person's order has no such button.
        """
        order = list(self._server.core.GetPointerMapping().reply().map)
        if logical not in order:
            raise UnsupportedAction("the pointer has no such button", details={"button": logical})
        return Held("button", order.index(logical) + 1)

    def move(self, x: int, y: int) -> None:
        """Put the pointer on a root pixel."""
        self._place = (x, y)
        self._xtest.FakeInput(_MOTION, 0, 0, self._server.root, x, y, 0)

    def press(self, held: Held) -> None:
        """Press a key or button and keep it down."""
        self.ledger.check_press(held)
        self._note(press_line(held))
        self.ledger.press(held)
        self._fake(held, down=True)

    def release(self, held: Held) -> None:
        """Let a key or button go."""
        self.ledger.release(held)
        self._fake(held, down=False)
        self._server.conn.flush()
        with contextlib.suppress(Exception):  # a guard that is gone must not keep a key down
            self._note(release_line(held))

    def release_all(self, keep: Iterable[Held] = ()) -> None:
        """Let everything go, newest first, except what `keep` names; returns once the server has done so."""
        kept = frozenset(keep)
        gone = [held for held in self.ledger.newest_first() if held not in kept]
        for held in gone:
            self.ledger.release(held)
            self._fake(held, down=False)
        if not gone:
            return
        # A server that finds its client gone drops what it has not read; so nobody leaves before it has, and the
        # guard forgets only what is done.
        self._server.sync()
        for held in gone:
            with contextlib.suppress(Exception):  # a guard that is gone must not keep a key down
                self._note(release_line(held))

    @contextlib.contextmanager
    def holding(self, several: Iterable[Held]) -> Iterator[None]:
        """Hold these during the block."""
        pressed: list[Held] = []
        try:
            for held in several:
                self.press(held)
                pressed.append(held)
            yield
        finally:
            for held in reversed(pressed):
                self.release(held)

    def tap(self, held: Held) -> None:
        """Press and release."""
        with self.holding([held]):
            pass

    def pointer_is_through(self) -> bool:
        """Return whether the server has passed on every motion and release so far.

        A window manager that focuses windows on a click has the server hold the pointer's events back until it has
        done so; the server's own idea of the pointer follows only then.
        """
        pointer = self._server.core.QueryPointer(self._server.root).reply()
        holds_a_button = any(held.kind == "button" for held in self.ledger.newest_first())
        there = self._place is None or (pointer.root_x, pointer.root_y) == self._place
        return there and (holds_a_button or not pointer.mask & _ALL_BUTTONS)

    # --- keys -----------------------------------------------------------------------------------------------

    def prepare(self, unit: Unit, ahead: Iterable[Unit]) -> Callable[[], None] | None:
        """Return what delivers a unit; None when keycodes must be given back first.

        Whatever can fail fails here, before anything is sent. Keycodes are lent for `ahead` too, so that
        applications read the layout once.

        Raises:
            UnsupportedAction: a key that this layout cannot produce.
            TargetNotActionable: somebody holds a modifier that would change what the keys mean.
        """
        state = self.keyboard.state()
        self._refuse_held_modifiers(state)
        modifiers = self._modifiers_of(unit)
        missing = self.keyboard.missing(_keys_of(unit), state)
        room = self.keyboard.room()
        if len(missing) > room:
            if not self.keyboard.lent:
                raise UnsupportedAction(
                    "the keyboard layout has too few free keycodes for this character",
                    fix="set the text through accessibility instead",
                )
            return None
        if missing:
            others = self.keyboard.missing((key for later in ahead for key in _keys_of(later)), state)
            missing = tuple(dict.fromkeys(missing + others))[:room]

        def deliver() -> None:
            if missing:
                self.keyboard.lend(missing)
            if isinstance(unit, TextUnit):
                self._type(unit.keys, state)
            else:
                self._chord(unit.chord, modifiers, state)

        return deliver

    def modifier_keys(self, keysyms: Iterable[int]) -> list[Held]:
        """Return the keys of these modifiers."""
        return [Held("key", self.keyboard.modifier(Key(keysym, f"{keysym:#x}"))) for keysym in keysyms]

    def _type(self, keys: Iterable[Key], state: KeyboardState) -> None:
        for key in keys:
            self._stroke(key, state)

    def _chord(self, chord: Chord, modifiers: list[Held], state: KeyboardState) -> None:
        with self.holding(modifiers), contextlib.ExitStack() as stack:
            for key in chord.keys:
                stack.enter_context(self._down(key, state))

    def _stroke(self, key: Key, state: KeyboardState) -> None:
        with self._down(key, state):
            pass

    @contextlib.contextmanager
    def _down(self, key: Key, state: KeyboardState) -> Iterator[None]:
        stroke = self.keyboard.stroke(key, state)
        if stroke is None:
            raise UnsupportedAction("the keyboard layout changed", details={"key": key.label})
        helpers = [held for code in stroke.hold if not self.ledger.holds(held := Held("key", code))]
        differs = (stroke.locked, stroke.group) != (state.locked, state.group)
        try:
            if differs:
                self.keyboard.set_locks(state, stroke.locked, stroke.group)
            with self.holding([*helpers, Held("key", stroke.keycode)]):
                yield
        finally:
            if differs:
                self.keyboard.reset_locks(state)

    def _modifiers_of(self, unit: Unit) -> list[Held]:
        if isinstance(unit, TextUnit):
            return []
        return [Held("key", self.keyboard.modifier(key)) for key in unit.chord.modifiers]

    def _refuse_held_modifiers(self, state: KeyboardState) -> None:
        own = 0
        for held in self.ledger.newest_first():
            if held.kind == "key":
                own |= self.keyboard.layout.modifiers.get(held.code, 0)
        if (state.base | state.latched) & ~own & _MODIFIERS:
            raise TargetNotActionable(
                "somebody holds a modifier key on this desktop", fix="let go of shift, control, alt and super"
            )

    def _fake(self, held: Held, *, down: bool) -> None:
        self._xtest.FakeInput(_TYPES[held.kind, down], held.code, 0, self._server.root, 0, 0, 0)


def _keys_of(unit: Unit) -> tuple[Key, ...]:
    return unit.chord.keys if isinstance(unit, ChordUnit) else unit.keys
