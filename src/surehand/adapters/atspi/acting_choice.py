"""Plans that choose an option: by the option's own named action where it has one, else by its place in its container.

An option is found by exactly its name; what it goes by and where it stands is read again with the final fence, because
a place may hold another option a moment later.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from surehand.adapters.atspi import acting_verbs, calls
from surehand.adapters.atspi.acting_actions import by_name
from surehand.adapters.atspi.acting_plan import Bench, Decision, Live, Plan, call, must_enabled, now
from surehand.adapters.atspi.acting_tree import Option
from surehand.adapters.atspi.transport import Reply
from surehand.errors import StaleTarget, UnsupportedAction
from surehand.model.actions import SelectOption
from surehand.model.scene import Node

_QT: Final = frozenset(["qt5", "qt6"])
_QT_ITEMS: Final = frozenset(["listitem", "treeitem", "cell"])
_GRIDS: Final = frozenset(["table", "tree"])
#: Containers that hold options of their own.
CONTAINERS: Final = frozenset(["combobox", "list", "menu", "menubar", "tablist", "table", "tree", "group"])
#: Options whose container stays what it is; the item of a menu is chosen by being pressed.
_MENU_ITEMS: Final = frozenset(["menuitem", "menuitemcheckbox", "menuitemradio", "menu"])


async def select_option(bench: Bench, action: SelectOption) -> Plan:
    """Choose the option of that name in the target, or the target itself."""
    family = await bench.family()
    if action.option is None:
        return _plan(bench, family.itself(bench.node.handle))
    return _plan(bench, family.option(bench.node.handle, action.option))


def route_of(toolkit: str, node: Node, action: SelectOption) -> str | None:
    """Return the route for a choice, as far as the target alone tells."""
    if action.option is None:
        return _route_of_option(toolkit, node)
    if node.role == "combobox":
        return _route_of_combobox(toolkit, node)
    if node.role not in CONTAINERS:
        return None
    if toolkit in _QT:
        return None if node.role == "group" else "atspi.action"
    if toolkit == "gtk3" and node.role in _GRIDS:
        return "atspi.selection"
    return "atspi.selection" if "select" in node.capabilities else None


def _route_of_combobox(toolkit: str, node: Node) -> str | None:
    if toolkit in _QT:
        # Its list takes nothing over that was selected through accessibility, closed or open.
        return None
    # GTK 4's older combo boxes choose by number, and nothing tells which option a number is.
    return None if toolkit == "gtk4" and "select" in node.capabilities else "atspi.action"


def _route_of_option(toolkit: str, node: Node) -> str | None:
    if _ranks_of(toolkit, node) is not None:
        return "atspi.action"
    return "atspi.selection" if "selectable" in node.states else None


def _ranks_of(toolkit: str, node: Node) -> acting_verbs.Ranks | None:
    """Return which named actions choose an option, None where it has none."""
    if toolkit in _QT and node.role in _QT_ITEMS:
        ranks = acting_verbs.CHOOSE_QT_ITEM
    elif node.role in _MENU_ITEMS or node.role in {"tab", "radio"} or node.role == "listitem":
        ranks = acting_verbs.CHOOSE
    else:
        return None
    return ranks if acting_verbs.find(node.actions, ranks) is not None else None


def _plan(bench: Bench, option: Option) -> Plan:
    ranks = _ranks_of(bench.toolkit, option.node)
    if ranks is not None:
        plan = by_name(bench, option.node, ranks, "choose it")
    elif bench.toolkit == "gtk3" and option.node.role == "cell":
        plan = _by_row(bench, option)
    else:
        plan = by_place(bench, option)
    inner = plan.decide

    def decide(live: Live, replies: Sequence[Reply]) -> Decision:
        current = must_enabled(now(live, option.node.handle))
        must_be_named(live, option)
        # Qt's `Toggle` would take a chosen item out again.
        if "selected" in current.states and option.node.role not in _MENU_ITEMS:
            return None
        return inner(live, replies)

    handles = tuple(dict.fromkeys((*plan.handles, option.node.handle, option.label.handle)))
    return plan._replace(handles=handles, decide=decide)


def must_be_named(live: Live, option: Option) -> None:
    """Refuse an option that goes by another name now: its widget was recycled."""
    name = now(live, option.label.handle).name
    if name != option.label.name:
        raise StaleTarget(
            "the option goes by another name now",
            details={"difference": "name"},
            observed={"before": option.label.name, "now": name},
            fix="observe again",
        )


def by_place(bench: Bench, option: Option) -> Plan:
    """Select by position, after reading who stands there."""
    if "select" not in option.container.capabilities:
        raise UnsupportedAction(
            "neither the option nor what holds it can be selected this way", fix="invoke or click the option"
        )
    channel, path = bench.reach(option.container)
    _, target = bench.reach(option.node)
    reads = (channel.ask(path, calls.ACCESSIBLE, "GetChildAtIndex", "i", option.position),)

    def decide(_: Live, replies: Sequence[Reply]) -> Decision:
        _must_stand(replies[0], target)
        return call(channel, path, calls.SELECTION, "SelectChild", "i", option.position)

    return Plan("atspi.selection", "selection", channel, (option.container.handle,), reads, decide)


def _by_row(bench: Bench, option: Option) -> Plan:
    """Select a row of a GTK 3 table by its first cell, whose `SelectChild` does nothing."""
    if option.node.row is None:
        raise UnsupportedAction("the cell's row is not known", fix="observe again")
    channel, path = bench.reach(option.container)
    _, target = bench.reach(option.node)
    row, column = option.node.row, option.node.column or 0
    reads = (channel.ask(path, calls.TABLE, "GetAccessibleAt", "ii", row, column),)

    def decide(_: Live, replies: Sequence[Reply]) -> Decision:
        _must_stand(replies[0], target)
        return call(channel, path, calls.TABLE, "AddRowSelection", "i", row)

    return Plan("atspi.selection", "selection", channel, (option.container.handle,), reads, decide)


def _must_stand(reply: Reply, path: str) -> None:
    found = calls.reference(reply)
    if found is None or found[1] != path:
        raise StaleTarget(
            "another option stands at that place now", details={"difference": "position"}, fix="observe again"
        )
