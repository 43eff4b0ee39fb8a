"""The server's keyboard layout and state, and keycodes lent to characters that the layout lacks.

Promises: only keycodes that no key of the layout uses are ever bound, so the person's layout stays as it is; each is
noted to the guard with its former keysyms before it is bound and given back as it was; locked modifiers and group
are noted before they differ and set back within the same unit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any, Final

import xcffib
import xcffib.xkb
import xcffib.xproto

from surehand.adapters.x11.connection import XServer
from surehand.core.input.keys import Key
from surehand.core.input.layout import LOCK, KeyboardState, KeyType, Layout, LayoutKey, Stroke
from surehand.core.input.ledger import Lending, Locks, giving_back_line, lending_line, locks_line, unlocks_line
from surehand.errors import UnsupportedAction

_CORE_KEYBOARD: Final = xcffib.xkb.ID.UseCoreKbd
_PARTS: Final = xcffib.xkb.MapPart.KeyTypes | xcffib.xkb.MapPart.KeySyms | xcffib.xkb.MapPart.ModifierMap
_EVENTS: Final = xcffib.xkb.EventType.MapNotify | xcffib.xkb.EventType.NewKeyboardNotify
_ALL_MODIFIERS: Final = 0xFF
_WIDTH: Final = 4  # two groups of two levels: the same keysym whatever shift and group are

Note = Callable[[bytes], None]


class Keyboard:
    """Lives on its `XThread`; `handle` must see every event.

    Args:
        server: The connection.
        note: Takes the guard's notes; raises when the guard is gone, before anything is changed.
    """

    def __init__(self, server: XServer, note: Note) -> None:
        self._server = server
        self._note = note
        self._xkb = server.extension(xcffib.xkb)
        self._xkb.UseExtension(1, 0).reply()
        self._xkb.SelectEvents(_CORE_KEYBOARD, _EVENTS, 0, _EVENTS, 0xFF, 0xFF, [])
        self._first_event = (
            server.core.QueryExtension(len(xcffib.xkb.key.name), xcffib.xkb.key.name).reply().first_event
        )
        self._layout: Layout | None = None
        self._lent: dict[int, int] = {}
        self._lendings: dict[int, Lending] = {}

    def handle(self, event: Any) -> None:
        """Forget the layout when it changed."""
        kind = event.response_type & 0x7F
        if kind == self._first_event or isinstance(event, xcffib.xproto.MappingNotifyEvent):
            self._layout = None

    @property
    def layout(self) -> Layout:
        """The layout as of the last event."""
        if self._layout is None:
            self._layout = layout = self._read_layout()
            # Somebody set another layout: what it took is no longer lent.
            self._lent = {
                keysym: code
                for keysym, code in self._lent.items()
                if code in layout.keys and any(keysym in levels for levels in layout.keys[code].keysyms)
            }
        return self._layout

    @property
    def lent(self) -> bool:
        """Whether keycodes are lent at the moment."""
        return bool(self._lendings)

    def state(self) -> KeyboardState:
        """Return modifiers and groups as they are now."""
        reply = self._xkb.GetState(_CORE_KEYBOARD).reply()
        return KeyboardState(
            base=reply.baseMods,
            latched=reply.latchedMods,
            locked=reply.lockedMods,
            group=int(reply.group),
            base_group=reply.baseGroup,
            latched_group=reply.latchedGroup,
            locked_group=int(reply.lockedGroup),
        )

    def stroke(self, key: Key, state: KeyboardState) -> Stroke | None:
        """Return how to produce a key now; None when a keycode must be lent to it first."""
        if (keycode := self._lent.get(key.keysym)) is not None:
            return Stroke(keycode, (), state.locked & ~LOCK, state.group)
        return self.layout.stroke(key, state)

    def modifier(self, key: Key) -> int:
        """Return the keycode of a modifier key.

        Raises:
            UnsupportedAction: the layout has no such key, and lending a keycode does not make one.
        """
        keycode = self.layout.modifier(key)
        if keycode is None:
            raise UnsupportedAction("the keyboard layout has no such modifier key", details={"key": key.label})
        return keycode

    def missing(self, keys: Iterable[Key], state: KeyboardState) -> tuple[int, ...]:
        """Return the keysyms of these keys that need a keycode, each once."""
        return tuple(dict.fromkeys(key.keysym for key in keys if self.stroke(key, state) is None))

    def room(self) -> int:
        """Return how many more keysyms can get a keycode."""
        return len(self._free())

    def lend(self, keysyms: Sequence[int]) -> None:
        """Bind keycodes that no key uses to these keysyms.

        Raises:
            UnsupportedAction: there are not enough such keycodes.
        """
        layout, free = self.layout, self._free()
        if len(free) < len(keysyms):
            raise UnsupportedAction(
                "the keyboard layout has no free keycode for this character",
                fix="set the text through accessibility instead",
            )
        chosen = dict(zip(sorted(free[: len(keysyms)]), keysyms, strict=True))
        cookies = {code: self._server.core.GetKeyboardMapping(code, 1) for code in chosen}
        for code, cookie in cookies.items():
            before = tuple(cookie.reply().keysyms)
            self._note(lending_line(code, chosen[code], before))
            self._lendings[code] = Lending(chosen[code], before)
        for run in _runs(chosen):
            self._map(run, [[chosen[code]] * _WIDTH for code in run])
        self._lent |= {keysym: code for code, keysym in chosen.items()}
        # The change is our own: the rest of the layout is as it was.
        self._server.drain()
        self._layout = layout

    def give_back(self) -> None:
        """Give every lent keycode its former keysyms back, unless somebody else has changed it since."""
        cookies = {code: self._server.core.GetKeyboardMapping(code, 1) for code in self._lendings}
        ours = [code for code, cookie in cookies.items() if cookie.reply().keysyms[0] == self._lendings[code].keysym]
        for run in _runs(ours):
            width = max(len(self._lendings[code].before) for code in run)
            rows = [self._lendings[code].before for code in run]
            self._map(run, [[*row, *[0] * (width - len(row))] for row in rows])
        self._server.drain()
        for code in self._lendings:
            self._note(giving_back_line(code))
        self._lent.clear()
        self._lendings.clear()
        self._layout = None

    def set_locks(self, state: KeyboardState, locked: int, group: int) -> None:
        """Lock exactly these modifiers and this group; `state` is what was there before."""
        self._note(locks_line(Locks(state.locked, state.locked_group)))
        self._latch_lock(locked, (group - state.base_group - state.latched_group) % max(1, self.layout.groups))

    def reset_locks(self, state: KeyboardState) -> None:
        """Set modifiers and group back to what `state` says."""
        self._latch_lock(state.locked, state.locked_group)
        self._server.conn.flush()
        self._note(unlocks_line())

    def _free(self) -> list[int]:
        return [code for code in self.layout.spare if code not in self._lendings]

    def _latch_lock(self, locked: int, group: int) -> None:
        self._xkb.LatchLockState(_CORE_KEYBOARD, _ALL_MODIFIERS, locked, True, group, 0, False, 0)

    def _map(self, run: Sequence[int], keysyms: Sequence[Sequence[int]]) -> None:
        flat = [keysym for row in keysyms for keysym in row]
        self._server.core.ChangeKeyboardMapping(len(run), run[0], len(keysyms[0]), flat)

    def _read_layout(self) -> Layout:
        reply = self._xkb.GetMap(_CORE_KEYBOARD, _PARTS, 0, *[0] * 7, 0, *[0] * 7).reply()
        types = [
            KeyType(
                kind.mods_mask,
                tuple((entry.mods_mask, entry.level) for entry in kind.map if entry.active),
            )
            for kind in reply.types_rtrn
        ]
        keys = {}
        for keycode, entry in enumerate(reply.syms_rtrn, reply.firstKeySym):
            groups = entry.groupInfo & 0x0F
            width = entry.width
            symbols = tuple(entry.syms)
            keys[keycode] = LayoutKey(
                entry.groupInfo,
                tuple(types[index] for index in list(entry.kt_index)[:groups]),
                tuple(symbols[group * width : (group + 1) * width] for group in range(groups)),
            )
        modifiers = {entry.keycode: entry.mods for entry in reply.modmap_rtrn}
        return Layout(keys, modifiers, reply.minKeyCode, reply.maxKeyCode)


def _runs(codes: Iterable[int]) -> list[list[int]]:
    """Return the codes as runs of neighbours: one request, and one notice to every client, for each."""
    ordered = sorted(codes)
    runs = [[ordered[0]]] if ordered else []
    for before, code in pairwise(ordered):
        if code == before + 1:
            runs[-1].append(code)
        else:
            runs.append([code])
    return runs
