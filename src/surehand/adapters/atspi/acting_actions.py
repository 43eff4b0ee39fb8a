"""Plans that run a named action: invoke, perform, toggle, expand; and focus.

Names are read again with the final fence and the index of that moment is used (case C07).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from surehand.adapters.atspi import acting_verbs, calls
from surehand.adapters.atspi.acting_plan import (
    Bench,
    Decision,
    Live,
    Plan,
    action_times,
    call,
    do_action,
    name_reads,
    names_now,
    now,
)
from surehand.adapters.atspi.acting_verbs import Ranks
from surehand.adapters.atspi.roles import CHECKABLE_ROLES
from surehand.adapters.atspi.transport import Reply
from surehand.errors import UnsupportedAction
from surehand.model.actions import Expand, Focus, Invoke, Perform, Toggle
from surehand.model.scene import Node

_RADIO: Final = frozenset(["radio", "menuitemradio"])


def by_name(bench: Bench, node: Node, ranks: Ranks, purpose: str) -> Plan:
    """Return the plan that runs the one action of a node that serves a purpose."""
    acting_verbs.choose(node.actions, node.actions, ranks, purpose)
    channel, path = bench.reach(node)

    def decide(live: Live, replies: Sequence[Reply]) -> Decision:
        now(live, node.handle)
        index = acting_verbs.choose(node.actions, names_now(replies), ranks, purpose)
        return do_action(channel, path, index)

    reads = name_reads(channel, path, len(node.actions))
    return Plan(
        "atspi.action", "action", channel, (node.handle,), reads, decide, action_times(bench.toolkit).handler_ms
    )


async def invoke(bench: Bench, _: Invoke) -> Plan:
    """Press, click, activate: what a click on it does."""
    return by_name(bench, bench.node, acting_verbs.INVOKE, "invoke it")


async def perform(bench: Bench, action: Perform) -> Plan:
    """Run the advertised action of exactly this name."""
    node = bench.node
    acting_verbs.named(node.actions, node.actions, action.name)
    channel, path = bench.reach(node)

    def decide(live: Live, replies: Sequence[Reply]) -> Decision:
        now(live, node.handle)
        return do_action(channel, path, acting_verbs.named(node.actions, names_now(replies), action.name))

    reads = name_reads(channel, path, len(node.actions))
    return Plan(
        "atspi.action", "action", channel, (node.handle,), reads, decide, action_times(bench.toolkit).handler_ms
    )


def is_on(node: Node) -> bool:
    """Return whether a checkable control is on: GTK 4 calls a toggle button pressed, everything else checked."""
    return "checked" in node.states or (node.role in {"togglebutton", "button"} and "pressed" in node.states)


async def toggle(bench: Bench, action: Toggle) -> Plan:
    """Bring a checkable control to a state; nothing is sent when it is there already."""
    if bench.node.role in _RADIO and not action.to:
        raise UnsupportedAction("a radio button is turned off by turning on another one of its group")
    ranks = acting_verbs.TOGGLE_ON if action.to else acting_verbs.TOGGLE_OFF
    plan = by_name(bench, bench.node, ranks, "toggle it")

    def decide(live: Live, replies: Sequence[Reply]) -> Decision:
        current = now(live, bench.node.handle)
        if is_on(current) == action.to and "indeterminate" not in current.states:
            return None
        return plan.decide(live, replies)

    return plan._replace(decide=decide)


async def expand(bench: Bench, action: Expand) -> Plan:
    """Expand or collapse; nothing is sent when it is that way already."""
    ranks = _expand_ranks(bench.node, to=action.to)
    plan = by_name(bench, bench.node, ranks, "expand it" if action.to else "collapse it")

    def decide(live: Live, replies: Sequence[Reply]) -> Decision:
        if ("expanded" in now(live, bench.node.handle).states) == action.to:
            return None
        return plan.decide(live, replies)

    return plan._replace(decide=decide)


def can_toggle(node: Node, *, to: bool) -> bool:
    """Return whether a node can be toggled by a named action."""
    if node.role not in CHECKABLE_ROLES or (node.role in _RADIO and not to):
        return False
    ranks = acting_verbs.TOGGLE_ON if to else acting_verbs.TOGGLE_OFF
    return acting_verbs.find(node.actions, ranks) is not None


def can_expand(node: Node, *, to: bool) -> bool:
    """Return whether a node can be expanded or collapsed by a named action."""
    return acting_verbs.find(node.actions, _expand_ranks(node, to=to)) is not None


def _expand_ranks(node: Node, *, to: bool) -> Ranks:
    ranks = acting_verbs.EXPAND if to else acting_verbs.COLLAPSE
    # A plain press counts only on what says that it expands.
    return ranks if node.states & {"expandable", "expanded"} else ranks[:-1]


async def focus(bench: Bench, _: Focus) -> Plan:
    """Give an element the keyboard focus inside its window."""
    channel, path = bench.reach(bench.node)

    def decide(live: Live, _: Sequence[Reply]) -> Decision:
        now(live, bench.node.handle)
        return call(channel, path, calls.COMPONENT, "GrabFocus")

    return Plan("atspi.component", "focus", channel, (bench.node.handle,), (), decide)
