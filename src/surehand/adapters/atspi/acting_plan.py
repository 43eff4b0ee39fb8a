"""What every prepared action has in common: what to read last, and how that becomes the one acting call.

A plan is made before the final fence. Its `reads` and `handles` are read in one go with the fence, then `decide`,
which is pure and must not wait, turns the answers into the one call or refuses. So nothing lies between the last look
and the act but the fence itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from surehand import limits
from surehand.adapters.atspi import calls
from surehand.adapters.atspi.acting_outcome import Kind, Verdict
from surehand.adapters.atspi.acting_tree import Family
from surehand.adapters.atspi.calls import Channel
from surehand.adapters.atspi.profile import Profile, profile_of
from surehand.adapters.atspi.transport import Call, Connection, Failure, Reply, Variant
from surehand.errors import StaleTarget, TargetNotActionable, Unavailable
from surehand.model.scene import LiveNode, Node, Surface, Tree
from surehand.model.secrets import HeldSecret
from surehand.ports import Attempt

Live = Mapping[str, LiveNode | None]
#: The acting call; None where the wanted state is there already and nothing is to be sent.
Decision = Call | None

_OBSERVE_AGAIN: Final = "observe again"


class Sight(Protocol):
    """What acting needs of the observer."""

    def object_of(self, handle: str) -> tuple[Connection, str, str]:
        """Return connection, destination and path of an object."""

    async def way_to_act(self, handle: str) -> tuple[Connection, Callable[[asyncio.Future[list[Reply]]], None]]:
        """Return the connection to act on, and whom to give the question that is sent behind the act."""

    async def live(
        self, surface_id: str, handles: Sequence[str], *, around: Sequence[str] = ()
    ) -> dict[str, LiveNode | None]:
        """Read nodes straight from the application."""

    async def read(self, surface_id: str, *, places: bool = True) -> Tree:
        """Return the surface's current tree."""


class Plan(NamedTuple):
    """One prepared action.

    Attributes:
        route: The route it takes.
        kind: Which interface is called, for judging the answer.
        channel: Where the acting call goes.
        handles: Nodes beyond the fence's whose live state `decide` needs.
        reads: Calls beyond the fence's whose answers `decide` needs.
        decide: Live nodes and answers → the call; raises `TargetError` when the world is not as prepared for.
        delay_ms: How long after the acknowledgement the toolkit may run the handler.
        rest: What is still to be done once the call was acknowledged; says what is known in the end, and never waits
            for longer than a bound.
    """

    route: str
    kind: Kind
    channel: Channel
    handles: tuple[str, ...]
    reads: tuple[Call, ...]
    decide: Callable[[Live, Sequence[Reply]], Decision]
    delay_ms: int = 0
    rest: Callable[[Attempt], Awaitable[Verdict]] | None = None


class Bench(NamedTuple):
    """Where a plan is made: the request and the way to the application."""

    sight: Sight
    surface: Surface
    node: Node
    secret: HeldSecret | None

    def __repr__(self) -> str:
        # A secret must not show where somebody prints what was being prepared.
        return f"Bench({self.surface.surface_id!r}, {self.node.role!r})"

    @property
    def profile(self) -> Profile:
        """The toolkit's ways."""
        return profile_for(self.surface)

    @property
    def toolkit(self) -> str:
        """Our name of the application's toolkit."""
        return self.profile.family

    def reach(self, node: Node) -> tuple[Channel, str]:
        """Return where an object is called, and its path."""
        connection, destination, path = self.sight.object_of(node.handle)
        return Channel(connection, destination), path

    async def family(self) -> Family:
        """Return the surface's current tree, linked."""
        return Family(await self.sight.read(self.surface.surface_id))


def profile_for(surface: Surface) -> Profile:
    """Return the ways of a surface's toolkit, by what the observer says it is, such as `GTK 4.8.3`."""
    name, _, version = surface.toolkit.partition(" ")
    return profile_of(name, version)


def now(live: Live, handle: str) -> Node:
    """Return a node as it is now.

    Raises:
        StaleTarget: it is gone.
    """
    found = live.get(handle)
    if found is None or "defunct" in found.node.states:
        raise StaleTarget("the element is gone", details={"difference": "handle"}, fix=_OBSERVE_AGAIN)
    return found.node


def checked(replies: Sequence[Reply]) -> Sequence[Reply]:
    """Return the answers to reads, refusing where the application did not answer at all.

    Raises:
        Unavailable: it hangs or is gone.
    """
    for reply in replies:
        if isinstance(reply, Failure) and reply.kind != "refused":
            raise Unavailable(
                "the application did not answer while the action was prepared", details={"kind": reply.kind}
            )
    return replies


def must_enabled(node: Node) -> Node:
    """Refuse a part of a composite control that is disabled; the fence has looked at the target itself.

    Raises:
        TargetNotActionable: it is disabled.
    """
    if "enabled" not in node.states:
        raise TargetNotActionable("the part of the control that would be used is disabled")
    return node


# --- actions by name ----------------------------------------------------------------------------------------------


def name_reads(channel: Channel, path: str, count: int) -> tuple[Call, ...]:
    """Return the calls that read the untranslated names of `count` actions, and how many there are."""
    count = min(count, limits.ACTIONS_READ_MAX)
    names = [channel.ask(path, calls.ACTION, "GetName", "i", index) for index in range(count)]
    return (channel.get(path, calls.ACTION, "NActions"), *names)


def names_now(replies: Sequence[Reply]) -> list[str]:
    """Return the names that `name_reads` asked for.

    Raises:
        StaleTarget: there are more or fewer actions than were observed.
    """
    count = calls.integer(replies[0])
    names = [calls.string(reply) for reply in replies[1:]]
    if count != len(names) or None in names:
        raise StaleTarget(
            "the element's actions have changed since it was observed",
            details={"difference": "actions"},
            fix=_OBSERVE_AGAIN,
        )
    return [name for name in names if name is not None]


def do_action(channel: Channel, path: str, index: int) -> Call:
    """Return the call that runs an action."""
    return Call(channel.destination, path, calls.ACTION, "DoAction", "i", (index,))


def set_property(channel: Channel, path: str, interface: str, name: str, value: Variant) -> Call:
    """Return the call that sets a property."""
    return Call(channel.destination, path, calls.PROPERTIES, "Set", "ssv", (interface, name, value))


def call(channel: Channel, path: str, interface: str, member: str, signature: str = "", *body: Any) -> Call:
    """Return an acting call of another interface."""
    return Call(channel.destination, path, interface, member, signature, body)


class ActionTimes(NamedTuple):
    """Milliseconds after the acknowledgement of `DoAction`: until a handler may run, and until another one counts."""

    handler_ms: int = 0
    again_ms: int = 0


_ACTION_TIMES: Final[dict[str, ActionTimes]] = {
    "gtk4": ActionTimes(limits.GTK4_HANDLER_DELAY_MS, limits.GTK4_PRESS_MS),
    "qt5": ActionTimes(limits.QT5_HANDLER_DELAY_MS, limits.QT5_PRESS_MS),
    "qt6": ActionTimes(limits.QT5_HANDLER_DELAY_MS, limits.QT5_PRESS_MS),
}


def action_times(toolkit: str) -> ActionTimes:
    """Return how a toolkit puts off what `DoAction` asked for."""
    return _ACTION_TIMES.get(toolkit, ActionTimes())
