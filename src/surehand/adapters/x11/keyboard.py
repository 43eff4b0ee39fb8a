"""The server's keyboard layout and state, and keycodes lent to characters that the layout lacks.

Promises: only keycodes that no key of the layout uses are ever bound, so the person's layout stays as it is; each is
noted to the guard with its former keysyms before it is bound and given back as it was; locked modifiers and group
are noted before they differ and set back within the same unit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
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
_SYMBOLS: Final = xcffib.xkb.MapPart.KeySyms
_ONE_LEVEL: Final = 0  # the server's first key type, always there

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
        layout = self.layout  # first, because reading it anew may show that something is no longer lent
        if (keycode := self._lent.get(key.keysym)) is not None:
            return Stroke(keycode, (), state.locked & ~LOCK, state.group)
        return layout.stroke(key, state)

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
        chosen = dict(zip(free, keysyms, strict=False))
        for code, keysym in chosen.items():
            # A spare keycode has no keysyms, which is what the guard would set.
            self._note(lending_line(code, keysym, (0, 0)))
            self._lendings[code] = Lending(keysym, (0, 0))
        self._rewrite({code: _lent_entry(keysym) for code, keysym in chosen.items()})
        self._lent |= {keysym: code for code, keysym in chosen.items()}
        # The change is our own: the rest of the layout is as it was.
        self._server.drain()
        self._layout = layout

    def give_back(self) -> None:
        """Take the keysyms from every lent keycode again, unless somebody else has changed it since."""
        if self._lendings:
            self._rewrite({code: _empty_entry() for code in self._lendings}, only_if_lent=True)
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

    def _rewrite(self, entries: Mapping[int, Any], *, only_if_lent: bool = False) -> None:
        """Set the symbols of some keycodes in one request.

        Programs are told once, and read everything between the first and the last; a notice for each keycode would
        keep a window manager that grabs keys busy for seconds. What lies between is written as it is, which nobody
        can change meanwhile, because the server is grabbed.
        """
        first, last = min(entries), max(entries)
        with self._server.grabbed():
            symbols = list(self._get_map(_SYMBOLS, first, last - first + 1).syms_rtrn)
            for code, entry in entries.items():
                now = symbols[code - first]
                if not only_if_lent or tuple(now.syms) == (self._lendings[code].keysym,):
                    symbols[code - first] = entry
            total = sum(entry.nSyms for entry in symbols)
            setup = self._server.conn.setup
            self._xkb.SetMap(
                _CORE_KEYBOARD, _SYMBOLS, 0, setup.min_keycode, setup.max_keycode, 0, 0, first, len(symbols), total,
                *[0] * 16, [symbols],
            )  # fmt: skip

    def _get_map(self, parts: int, first: int = 0, count: int = 0) -> Any:
        full, partial = (0, parts) if count else (parts, 0)
        return self._xkb.GetMap(_CORE_KEYBOARD, full, partial, 0, 0, first, count, *[0] * 11).reply()

    def _read_layout(self) -> Layout:
        reply = self._get_map(_PARTS)
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


def _lent_entry(keysym: int) -> Any:
    """Return a key with one group of one level: the same keysym whatever shift and group are."""
    return xcffib.xkb.KeySymMap.synthetic([_ONE_LEVEL, 0, 0, 0], 1, 1, 1, [keysym])


def _empty_entry() -> Any:
    return xcffib.xkb.KeySymMap.synthetic([_ONE_LEVEL, 0, 0, 0], 0, 0, 0, [])
