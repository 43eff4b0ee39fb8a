"""Every verb of a locator, written once: the asynchronous, the blocking and the batch form differ only in `_do`."""

from __future__ import annotations

import abc
from typing import Any, Generic, Literal, TypeVar, Unpack

from surehand.client.options import ActOptions, check_options
from surehand.model.actions import Action, kind_of
from surehand.model.record import to_value

R = TypeVar("R")

Direction = Literal["up", "down", "left", "right"]
Modifier = Literal["shift", "control", "alt", "meta"]


class Verbs(abc.ABC, Generic[R]):
    """What can be done with an element. Each verb takes the options of `ActOptions`."""

    __slots__ = ()

    @abc.abstractmethod
    def _do(self, action: dict[str, Any], options: ActOptions) -> R:
        """Carry the action out in this form."""

    def _start(self, action: dict[str, Any], options: ActOptions) -> R:
        check_options(options)
        return self._do(action, options)

    def do(self, action: Action | dict[str, Any], **options: Unpack[ActOptions]) -> R:
        """Do any action there is: a record, or its JSON value."""
        value = action if isinstance(action, dict) else {"kind": kind_of(action), **to_value(action)}
        return self._start(value, options)

    def press(self, **options: Unpack[ActOptions]) -> R:
        """Activate it through its named activation verb: a button, a menu item, a link."""
        return self._start({"kind": "invoke"}, options)

    def set_value(self, value: str | int, **options: Unpack[ActOptions]) -> R:
        """Replace its whole value; it is read back."""
        return self._start({"kind": "set_value", "value": str(value)}, options)

    def set_secret(self, secret_ref: str, **options: Unpack[ActOptions]) -> R:
        """Fill a secret field from an enrolled reference, `vault:NAME`; the secret itself never passes through here."""
        return self._start({"kind": "set_value", "secret_ref": secret_ref}, options)

    def type_secret(
        self, secret_ref: str, *, clear: bool = False, submit: bool = False, **options: Unpack[ActOptions]
    ) -> R:
        """Type an enrolled secret into a secret field that takes no value. Prefer `set_secret`."""
        action = {"kind": "type_text", "secret_ref": secret_ref, "clear": clear, "submit": submit}
        return self._start(action, options)

    def toggle(self, to: bool, **options: Unpack[ActOptions]) -> R:
        """Bring a check box, radio button or switch to this state."""
        return self._start({"kind": "toggle", "to": to}, options)

    def expand(self, **options: Unpack[ActOptions]) -> R:
        """Open it."""
        return self._start({"kind": "expand", "to": True}, options)

    def collapse(self, **options: Unpack[ActOptions]) -> R:
        """Close it."""
        return self._start({"kind": "expand", "to": False}, options)

    def select(self, option: str | None = None, **options: Unpack[ActOptions]) -> R:
        """Select the option of this name in it; without a name, select it itself."""
        action: dict[str, Any] = {"kind": "select_option"}
        if option is not None:
            action["option"] = option
        return self._start(action, options)

    def select_text(self, start: int, length: int, **options: Unpack[ActOptions]) -> R:
        """Select characters; length 0 places the caret."""
        return self._start({"kind": "select_text", "start": start, "length": length}, options)

    def focus(self, **options: Unpack[ActOptions]) -> R:
        """Give it the keyboard focus."""
        return self._start({"kind": "focus"}, options)

    def run_action(self, name: str, **options: Unpack[ActOptions]) -> R:
        """Run one of its advertised secondary actions by exact name."""
        return self._start({"kind": "perform", "name": name}, options)

    def click(
        self,
        *,
        button: Literal["left", "middle", "right"] = "left",
        count: int = 1,
        modifiers: tuple[Modifier, ...] = (),
        **options: Unpack[ActOptions],
    ) -> R:
        """Click it with the pointer. Prefer `press`, which needs no pointer."""
        action: dict[str, Any] = {"kind": "click", "button": button, "count": count, "modifiers": list(modifiers)}
        return self._start(action, options)

    def hover(self, **options: Unpack[ActOptions]) -> R:
        """Rest the pointer on it."""
        return self._start({"kind": "hover"}, options)

    def type(self, text: str, *, clear: bool = False, submit: bool = False, **options: Unpack[ActOptions]) -> R:
        """Type characters into it. Prefer `set_value`, which is exact and needs no focus."""
        return self._start({"kind": "type_text", "text": text, "clear": clear, "submit": submit}, options)

    def press_keys(self, *chords: str, **options: Unpack[ActOptions]) -> R:
        """Press chords such as `ctrl+s`, one after another."""
        return self._start({"kind": "press", "chords": list(chords)}, options)

    def paste(self, text: str, **options: Unpack[ActOptions]) -> R:
        """Insert text at the caret as a paste would."""
        return self._start({"kind": "paste", "text": text}, options)

    def scroll(
        self,
        direction: Direction = "down",
        amount: float = 3,
        unit: Literal["line", "page", "pixel"] = "line",
        **options: Unpack[ActOptions],
    ) -> R:
        """Scroll it by so many lines, pages or pixels."""
        action = {"kind": "scroll", "direction": direction, "amount_milli": round(amount * 1000), "unit": unit}
        return self._start(action, options)

    def scroll_into_view(self, **options: Unpack[ActOptions]) -> R:
        """Bring it into the visible part of its scrolled area."""
        return self._start({"kind": "scroll_into_view"}, options)
