"""Chooses in a drop-down list of GTK 4, whose options are objects only while it is open (`GtkDropDown`).

One dispatch of three calls: its button is pressed, which is the call behind the final fence; the option is selected in
the list that comes up; and the list's own activation, which is what Return does, takes it over. Nothing but the last
call changes the value.

Promises:
- Before each further call everything that it rests on is read again from the application: the combo box is the one that
  was aimed at, exactly one option goes by the name, it stands where it stood, it is the selected one, and the keyboard
  is in the list, which is what the activation acts upon. The caller may stop it in between.
- Whatever is found otherwise ends it with the list closed again, and only then `no_effect` is said; a list that may be
  left open, or a last call whose answer did not come, is `unknown`.

`GtkComboBox` tells no texts of its options at all, and the list of Qt's `QComboBox` takes nothing over that was
selected through accessibility; they have no plan.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from surehand import limits
from surehand.adapters.atspi import acting_choice, acting_outcome, acting_verbs
from surehand.adapters.atspi.acting_actions import by_name
from surehand.adapters.atspi.acting_choice import by_place, must_be_named
from surehand.adapters.atspi.acting_outcome import Verdict
from surehand.adapters.atspi.acting_plan import (
    Bench,
    Decision,
    Live,
    Plan,
    action_times,
    checked,
    do_action,
    must_enabled,
    name_reads,
    names_now,
    now,
)
from surehand.adapters.atspi.acting_tree import Family, Option
from surehand.adapters.atspi.transport import Reply
from surehand.errors import StaleTarget, SurehandError, TargetNotActionable, UnsupportedAction
from surehand.model.actions import SelectOption
from surehand.model.scene import Node
from surehand.ports import Attempt

_FAMILY: Final = "gtk4"
#: What Return does in an open list.
_TAKE: Final = "default.activate"
_LOOK_S: Final = 0.02
_BELOW: Final = 16


class _Open(NamedTuple):
    """An open list as it was found: the list, the option, what holds the keyboard in it, and what takes it over."""

    option: Option
    focused: Node
    popup: Node


async def select_option(bench: Bench, action: SelectOption) -> Plan:
    """Choose the option of that name in the target, or the target itself; a drop-down list is opened for it."""
    if action.option is None or (bench.toolkit, bench.node.role) != (_FAMILY, "combobox"):
        return await acting_choice.select_option(bench, action)
    return _plan(bench, await bench.family(), action.option)


def _plan(bench: Bench, family: Family, name: str) -> Plan:
    """Return the plan that opens the list, with the rest of the way behind it.

    Raises:
        UnsupportedAction: there is not exactly one button that would open it.
    """
    combo = family.index(bench.node.handle)
    below = [family.nodes[index] for index in family.below(combo, _BELOW)]
    buttons = [node for node in below if node.role in {"button", "togglebutton"} and "click" in node.actions]
    if len(buttons) != 1:
        raise UnsupportedAction("the combo box has not exactly one button that would open it", fix="click it")
    button = buttons[0]
    opening = by_name(bench, button, acting_verbs.INVOKE, "open it")

    def decide(live: Live, replies: Sequence[Reply]) -> Decision:
        if "pressed" in must_enabled(now(live, button.handle)).states:
            raise TargetNotActionable(
                "the list of the combo box is open already", fix="close it (invoke its button), then choose again"
            )
        return opening.decide(live, replies)

    way = _Way(bench, button, name)
    return opening._replace(handles=(bench.node.handle, button.handle), decide=decide, rest=way.go)


class _Way:
    """From the opened list to the chosen option, or back."""

    def __init__(self, bench: Bench, button: Node, name: str) -> None:
        self._bench = bench
        self._button = button
        self._name = name
        self._taken = False
        self._begun_at = 0.0

    async def go(self, attempt: Attempt) -> Verdict:
        """Select and take over; whatever stops it closes the list."""
        self._begun_at = asyncio.get_running_loop().time()
        try:
            found = await self._opened(attempt)
            await self._select(found)
            attempt.checkpoint(2)
            return await self._take(found)
        except SurehandError as error:
            if self._taken or not await self._closed():
                return Verdict("unknown", f"the list of the combo box may be left open: {error.code}")
            return Verdict("no_effect", error.code)
        except Exception:
            # The caller stops it; nothing was taken over, and no list stays open in a person's way.
            await self._closed()
            raise

    async def _opened(self, attempt: Attempt) -> _Open:
        """Return the open list, waiting until the keyboard is in it, which is when its options are there."""
        ends_at = self._begun_at + limits.DROPDOWN_OPEN_MS_MAX / 1000
        while True:
            attempt.checkpoint(1)
            family = await self._bench.family()
            try:
                return self._look(family)
            except SurehandError:
                if asyncio.get_running_loop().time() > ends_at:
                    raise
            await asyncio.sleep(_LOOK_S)

    def _look(self, family: Family) -> _Open:
        combo = family.index(self._bench.node.handle)
        below = list(family.below(combo, _BELOW))
        lists = [index for index in below if family.nodes[index].role == "list"]
        if len(lists) != 1:
            raise TargetNotActionable("the combo box did not open one list")
        focused = [family.nodes[index] for index in family.children(lists[0]) if _has(family.nodes[index], "focused")]
        popups = [family.nodes[index] for index in family.above(lists[0]) if index in below]
        popups = [node for node in popups if node.actions.count(_TAKE) == 1]
        if len(focused) != 1 or len(popups) != 1:
            raise TargetNotActionable("the keyboard is not in the list of the combo box")
        return _Open(family.option(family.nodes[lists[0]].handle, self._name), focused[0], popups[0])

    async def _select(self, found: _Open) -> None:
        selecting = by_place(self._bench, found.option)
        call = await self._prepared(found, selecting, selecting.decide)
        verdict = acting_outcome.judge(call, "selection", _FAMILY)
        if verdict.status != "done":
            raise TargetNotActionable("the option was not selected", details={"why": verdict.detail})

    async def _take(self, found: _Open) -> Verdict:
        channel, path = self._bench.reach(found.popup)
        reads = name_reads(channel, path, len(found.popup.actions))
        taking = Plan("atspi.action", "action", channel, (found.popup.handle,), reads, lambda _, __: None)

        def decide(live: Live, replies: Sequence[Reply]) -> Decision:
            if not _has(now(live, found.option.node.handle), "selected"):
                raise StaleTarget("the option is not selected any more", details={"difference": "selected"})
            if not _has(now(live, found.focused.handle), "focused"):
                raise TargetNotActionable("the keyboard left the list of the combo box")
            index = acting_verbs.named(found.popup.actions, names_now(replies), _TAKE)
            self._taken = True
            return do_action(channel, path, index)

        verdict = acting_outcome.judge(await self._prepared(found, taking, decide), "action", _FAMILY)
        if verdict.status == "no_effect":
            self._taken = False
            raise TargetNotActionable("the list took nothing over")
        return verdict

    async def _prepared(self, found: _Open, step: Plan, decide: Callable[[Live, Sequence[Reply]], Decision]) -> Reply:
        """Read what a step rests on, decide, and send its one call; return the answer."""
        option, combo = found.option, self._bench.node
        handles = (combo.handle, option.node.handle, option.label.handle, found.focused.handle, *step.handles)
        reading = step.channel.connection.start_many(step.reads, held=True)
        live = await self._bench.sight.live(self._bench.surface.surface_id, tuple(dict.fromkeys(handles)))
        replies = checked(await reading)
        if now(live, combo.handle).name != combo.name:
            raise StaleTarget("the combo box goes by another name now", details={"difference": "name"})
        must_enabled(now(live, option.node.handle))
        must_be_named(live, option)
        call = decide(live, replies)
        if call is None:
            raise TargetNotActionable("there is nothing to send")
        return (await step.channel.call_many([call]))[0]

    async def _closed(self) -> bool:
        """Close the list by its button, and return whether it is closed."""
        # Before that it may still come up, and another press would not count.
        times = action_times(_FAMILY)
        ready_at = self._begun_at + max(times.handler_ms, times.again_ms) / 1000
        await asyncio.sleep(ready_at - asyncio.get_running_loop().time())
        ends_at = asyncio.get_running_loop().time() + limits.DROPDOWN_OPEN_MS_MAX / 1000
        pressed_once = False
        while asyncio.get_running_loop().time() < ends_at:
            try:
                live = await self._bench.sight.live(self._bench.surface.surface_id, (self._button.handle,))
                if not _has(now(live, self._button.handle), "pressed"):
                    return True
                if not pressed_once:
                    pressed_once = True
                    closing = by_name(self._bench, self._button, acting_verbs.INVOKE, "close it")
                    replies = checked(await closing.channel.call_many(closing.reads))
                    call = closing.decide(live, replies)
                    checked(await closing.channel.call_many([] if call is None else [call]))
            except SurehandError:
                return False
            await asyncio.sleep(_LOOK_S)
        return False


def _has(node: Node, state: str) -> bool:
    return state in node.states
