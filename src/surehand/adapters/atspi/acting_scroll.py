"""Plans that scroll: by the value of the scroll bar beside the content, or by `Component.ScrollTo`.

GTK 3, GTK 4.8 and Qt 5 do not implement `ScrollTo` (false, NotSupported, UnknownObject); their scroll bars count in
pixels, so an element is brought into view by arithmetic on extents in the application's own units.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from surehand.adapters.atspi import acting_values, calls
from surehand.adapters.atspi.acting_plan import Bench, Decision, Live, Plan, call, checked, now, set_property
from surehand.adapters.atspi.acting_text import range_now, range_reads
from surehand.adapters.atspi.acting_tree import Axis, Family
from surehand.adapters.atspi.acting_values import Box
from surehand.adapters.atspi.transport import Call, Reply, Variant
from surehand.errors import StaleTarget, UnsupportedAction
from surehand.model.actions import Scroll, ScrollIntoView
from surehand.model.scene import Node

#: `AtspiScrollType.ANYWHERE`: as little as needed.
_ANYWHERE: Final = 6
BY_BAR: Final = frozenset(["gtk3", "gtk4", "qt5", "qt6"])
_AXES: Final[tuple[Axis, ...]] = ("vertical", "horizontal")
#: A coordinate at or below this stands for "no place": GTK 3 gives the smallest integer (C35).
_NOWHERE: Final = -(2**30)
#: Qt's item views scroll by rows, so pixels mean nothing to their bars.
_QT: Final = frozenset(["qt5", "qt6"])
_QT_ITEMS: Final = frozenset(["listitem", "treeitem", "cell", "row", "list", "tree", "table"])


def can_scroll_into_view(toolkit: str, node: Node) -> bool:
    """Return whether there may be a way; whether there is one shows when the bars are looked for."""
    return not (toolkit in _QT and node.role in _QT_ITEMS)


def can_scroll(node: Node) -> bool:
    """Return whether a node is something that scrolls."""
    return node.role in {"scrollbar", "scrollpane"} or "scroll" in node.capabilities


async def scroll(bench: Bench, action: Scroll) -> Plan:
    """Move the scroll bar of the target's area."""
    axis: Axis = "vertical" if action.direction in {"up", "down"} else "horizontal"
    bar = (await bench.family()).scrollbar(bench.node.handle, axis)
    if bar is None:
        raise UnsupportedAction(f"nothing around the element scrolls {axis}ly by a scroll bar")
    channel, path = bench.reach(bar)
    reads = (*range_reads(channel, path), _extents_of(bench, bar))

    def decide(live: Live, replies: Sequence[Reply]) -> Decision:
        now(live, bench.node.handle)
        now(live, bar.handle)
        where, box = range_now(replies), _box(replies[4])
        wanted = acting_values.scrolled(action, where, box.height if axis == "vertical" else box.width)
        if wanted == where.current:
            return None
        return set_property(channel, path, calls.VALUE, "CurrentValue", Variant("d", wanted))

    return Plan("atspi.value", "value", channel, (bar.handle,), reads, decide)


async def scroll_into_view(bench: Bench, _: ScrollIntoView) -> Plan:
    """Bring the target into the visible part of its scrolled area."""
    if bench.toolkit not in BY_BAR:
        return _scroll_to(bench)
    family = await bench.family()
    plans: list[Plan] = []
    for axis in _AXES:
        bar = family.scrollbar(bench.node.handle, axis)
        if bar is None:
            continue
        place = await _place_of(bench, family, axis)
        if await _is_out(bench, bar, place, axis):
            plans.append(_by_bar(bench, bar, place, axis))
    if len(plans) > 1:
        raise UnsupportedAction("the element is out of view both ways, which takes two steps", fix="scroll first")
    return plans[0] if plans else _nothing_to_do(bench)


class _Place(NamedTuple):
    """Where the target is: an object that has a place, how far along the axis from its beginning, and how long."""

    anchor: Node
    offset: int
    size: int | None


async def _place_of(bench: Bench, family: Family, axis: Axis) -> _Place:
    """Return where the target is along an axis.

    GTK 3 gives objects out of view a size and no place. Their place follows from the container around them that has
    one: its children stand one after another with equal gaps.
    """
    index = family.index(bench.node.handle)
    inside = index
    for around in (index, *family.above(index)):
        box = _box((await _ask_extents(bench, [family.nodes[around]]))[0])
        if box.x > _NOWHERE and box.y > _NOWHERE:
            if around == index:
                return _Place(bench.node, 0, None)
            return await _stacked(bench, family, around, inside, axis)
        inside = around
    raise UnsupportedAction("nothing around the element has a place", fix="bring its window or page up first")


async def _stacked(bench: Bench, family: Family, around: int, inside: int, axis: Axis) -> _Place:
    children = [index for index in family.children(around) if "visible" in family.nodes[index].states]
    nodes = [family.nodes[index] for index in (around, *children)]
    boxes = [_box(reply) for reply in await _ask_extents(bench, nodes)]
    sizes = [box.height if axis == "vertical" else box.width for box in boxes]
    before = children.index(inside) if inside in children else 0
    gaps = max(1, len(children) - 1)
    offset = sum(sizes[1 : before + 1]) + max(0, sizes[0] - sum(sizes[1:])) * before // gaps
    return _Place(family.nodes[around], offset, sizes[before + 1])


async def _ask_extents(bench: Bench, nodes: Sequence[Node]) -> Sequence[Reply]:
    channel, _ = bench.reach(bench.node)
    return checked(await channel.call_many([_extents_of(bench, node) for node in nodes]))


def _scroll_to(bench: Bench) -> Plan:
    channel, path = bench.reach(bench.node)

    def decide(live: Live, _: Sequence[Reply]) -> Decision:
        now(live, bench.node.handle)
        return call(channel, path, calls.COMPONENT, "ScrollTo", "u", _ANYWHERE)

    return Plan("atspi.component", "scroll_to", channel, (bench.node.handle,), (), decide)


def _nothing_to_do(bench: Bench) -> Plan:
    """Return a plan that sends nothing: the element is in view. The fence still looks at it."""
    channel, _ = bench.reach(bench.node)

    def decide(live: Live, _: Sequence[Reply]) -> Decision:
        if "showing" not in now(live, bench.node.handle).states:
            raise UnsupportedAction("no scroll bar brings the element into view", fix="open what holds it first")
        return None

    return Plan("atspi.value", "value", channel, (bench.node.handle,), (), decide)


def _by_bar(bench: Bench, bar: Node, place: _Place, axis: Axis) -> Plan:
    channel, path = bench.reach(bar)

    def decide(live: Live, replies: Sequence[Reply]) -> Decision:
        now(live, bench.node.handle)
        now(live, bar.handle)
        wanted = _wanted(replies, place, axis)
        if wanted is None:
            return None
        return set_property(channel, path, calls.VALUE, "CurrentValue", Variant("d", wanted))

    return Plan("atspi.value", "value", channel, (bar.handle,), _bar_reads(bench, bar, place), decide)


async def _is_out(bench: Bench, bar: Node, place: _Place, axis: Axis) -> bool:
    channel, _ = bench.reach(bar)
    replies = checked(await channel.call_many(_bar_reads(bench, bar, place)))
    return _wanted(replies, place, axis) is not None


def _bar_reads(bench: Bench, bar: Node, place: _Place) -> tuple[Call, ...]:
    channel, path = bench.reach(bar)
    return (*range_reads(channel, path), _extents_of(bench, bar), _extents_of(bench, place.anchor))


def _wanted(replies: Sequence[Reply], place: _Place, axis: Axis) -> float | None:
    """Return the bar's value that shows the place, None when it shows."""
    box = _box(replies[5])
    if place.size is not None:
        box = (
            box._replace(y=box.y + place.offset, height=place.size)
            if axis == "vertical"
            else box._replace(x=box.x + place.offset, width=place.size)
        )
    return acting_values.into_view(box, _box(replies[4]), range_now(replies), axis)


def _extents_of(bench: Bench, node: Node) -> Call:
    channel, path = bench.reach(node)
    # Differences are all that counts. Qt 5 shrinks an extent by its offset when asked relative to the window.
    kind = calls.WINDOW_COORDINATES if bench.profile.window_extents else calls.SCREEN_COORDINATES
    return channel.ask(path, calls.COMPONENT, "GetExtents", "u", kind)


def _box(reply: Reply) -> Box:
    found = calls.extents(reply)
    if found is None:
        raise StaleTarget("the element has no place any more", details={"difference": "bounds"}, fix="observe again")
    return Box(*found)
