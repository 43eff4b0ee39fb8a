"""Plans that set a value or select text: EditableText, Value, Text.

`SetTextContents` alone is used: it is one call, and takes no length. `InsertText` counts UTF-8 bytes on GTK 3, means
characters on GTK 4, and reads beyond the text's end on Qt when given bytes (case C16).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from surehand.adapters.atspi import acting_values, calls
from surehand.adapters.atspi.acting_plan import Bench, Decision, Live, Plan, call, must_enabled, now, set_property
from surehand.adapters.atspi.acting_values import Range
from surehand.adapters.atspi.calls import Channel
from surehand.adapters.atspi.transport import Call, Failure, Reply, Variant
from surehand.errors import StaleTarget, TargetNotActionable, UnsupportedAction
from surehand.model.actions import SelectText, SetValue
from surehand.model.scene import Node

VALUE_ROLES: Final = frozenset(["slider", "spinbutton", "scrollbar", "split"])
_UTF16_TOOLKITS: Final = frozenset(["qt5", "qt6"])


async def set_value(bench: Bench, action: SetValue) -> Plan:
    """Replace a text or a number. A combo box with an entry is set through the entry."""
    text = _text_of(bench, action)
    if "set_value" in bench.node.capabilities and bench.node.role in VALUE_ROLES:
        return _set_number(bench, text)
    if bench.node.role == "combobox" and "set_text" not in bench.node.capabilities:
        entry = (await bench.family()).entry(bench.node.handle)
        if entry is None:
            raise UnsupportedAction("the combo box takes no text", fix="use select_option with the option's name")
        return _set_text(bench, entry, text)
    return _set_text(bench, bench.node, text)


def _text_of(bench: Bench, action: SetValue) -> str:
    if action.value is not None:
        return action.value
    if bench.secret is None:
        raise UnsupportedAction("the secret was not resolved")
    # What cannot be encoded would fail only after the line was crossed.
    return bench.secret.reveal()


def _set_text(bench: Bench, node: Node, text: str) -> Plan:
    channel, path = bench.reach(node)
    is_part = node.handle != bench.node.handle

    def decide(live: Live, _: Sequence[Reply]) -> Decision:
        current = now(live, node.handle)
        if is_part:
            must_enabled(current)
        # Qt writes read-only fields all the same, GTK 3 answers true and writes nothing.
        if "editable" not in current.states or "readonly" in current.states:
            raise TargetNotActionable("the field cannot be edited")
        if bench.secret is not None and not bench.secret.may_show and not current.secret:
            raise TargetNotActionable("a secret goes only into a field that is marked as one")
        return call(channel, path, calls.EDITABLE_TEXT, "SetTextContents", "s", text)

    return Plan("atspi.text", "text", channel, (node.handle,), (), decide)


def _set_number(bench: Bench, text: str) -> Plan:
    channel, path = bench.reach(bench.node)

    def decide(live: Live, replies: Sequence[Reply]) -> Decision:
        now(live, bench.node.handle)
        number = acting_values.parse_number(text, range_now(replies))
        return set_property(channel, path, calls.VALUE, "CurrentValue", Variant("d", number))

    return Plan("atspi.value", "value", channel, (bench.node.handle,), range_reads(channel, path), decide)


def range_reads(channel: Channel, path: str) -> tuple[Call, ...]:
    """Return the calls that read a `Value` interface."""
    names = ("MinimumValue", "MaximumValue", "MinimumIncrement", "CurrentValue")
    return tuple(channel.get(path, calls.VALUE, name) for name in names)


def range_now(replies: Sequence[Reply]) -> Range:
    """Return what `range_reads` asked for.

    Raises:
        StaleTarget: the element has no value any more.
    """
    low, high, step, current = (calls.number(reply) for reply in replies[:4])
    if low is None or high is None or current is None:
        raise StaleTarget("the element has no value any more", details={"difference": "value"}, fix="observe again")
    return Range(low, high, max(0.0, step or 0.0), current)


# --- selecting text -----------------------------------------------------------------------------------------------


async def select_text(bench: Bench, action: SelectText) -> Plan:
    """Select characters, or place the caret."""
    channel, path = bench.reach(bench.node)
    reads = [
        channel.get(path, calls.TEXT, "CharacterCount"),
        channel.ask(path, calls.TEXT, "GetNSelections"),
    ]
    units = bench.toolkit in _UTF16_TOOLKITS
    if units:
        reads.append(channel.ask(path, calls.TEXT, "GetText", "ii", 0, -1))
    # GTK 4's text view ignores a second selection and loses the first when that is changed (measured, 4.8).
    one_only = bench.toolkit == "gtk4" and "multiline" in bench.node.states

    def decide(live: Live, replies: Sequence[Reply]) -> Decision:
        now(live, bench.node.handle)
        start, end = _bounds(action, replies, as_utf16=units)
        if action.length == 0:
            return call(channel, path, calls.TEXT, "SetCaretOffset", "i", start)
        if not calls.integer(replies[1]):
            return call(channel, path, calls.TEXT, "AddSelection", "ii", start, end)
        if one_only:
            raise UnsupportedAction(
                "this text view cannot change its selection", fix="place the caret (length 0) first, then select"
            )
        return call(channel, path, calls.TEXT, "SetSelection", "iii", 0, start, end)

    return Plan("atspi.text", "range", channel, (bench.node.handle,), tuple(reads), decide)


def _bounds(action: SelectText, replies: Sequence[Reply], *, as_utf16: bool) -> tuple[int, int]:
    """Return start and end in the toolkit's own units, refusing what ends beyond the text."""
    chars = calls.integer(replies[0])
    if chars is None:
        raise StaleTarget("the element has no text any more", details={"difference": "text"}, fix="observe again")
    start, end = action.start, action.start + action.length
    if not as_utf16:
        acting_values.check_text_range(action.start, action.length, chars)
        return start, end
    text = "" if isinstance(replies[2], Failure) or not replies[2] else str(replies[2][0])
    acting_values.check_text_range(action.start, action.length, len(text))
    return acting_values.utf16_offset(text, start), acting_values.utf16_offset(text, end)
