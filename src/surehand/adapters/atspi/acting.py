"""The Actor port over AT-SPI: does one decided thing to one accessible object, once.

Promises:
- Everything is prepared first; the last reads, the final fence and the one acting call follow each other in one task
  without a wait between fence and call. After `enter` no second route is tried and nothing is sent twice; what takes
  several calls (`Plan.rest`) looks again before each of them.
- An action is run by its name, at the index it has at that moment; never by position, never guessed (case C07).
- `done` means acknowledged, not effected; `begun` that the handler is proven to run; silence after sending is `sent`;
  `no_effect` only where it is proven.
- A wanted state that is there already is a success without an acting call: `detail` begins with `already`.

It decides nothing: identity, meaning, enabled and visible are the fence's, effects are verified by the gateway.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple

from surehand import limits
from surehand.adapters.atspi import (
    acting_actions,
    acting_choice,
    acting_dropdown,
    acting_outcome,
    acting_scroll,
    acting_text,
    acting_verbs,
    calls,
)
from surehand.adapters.atspi.acting_plan import Bench, Plan, Sight, action_times, checked, profile_for
from surehand.adapters.atspi.transport import Call, Connection, Reply
from surehand.errors import InvalidRequest, UnsupportedAction
from surehand.model.actions import (
    Action,
    Expand,
    Focus,
    Invoke,
    Perform,
    Scroll,
    ScrollIntoView,
    SelectOption,
    SelectText,
    SetValue,
    Toggle,
)
from surehand.model.record import Tagged
from surehand.model.scene import CapabilityFact, Node, Surface
from surehand.ports import Attempt, Dispatched

__all__ = ["ALREADY", "AtspiActor"]

#: What `Dispatched.detail` begins with when the wanted state was there and nothing was sent.
ALREADY: Final = "already"

#: The connection to act on, and whom to give the question that is sent behind the act.
Way = tuple[Connection, Callable[[asyncio.Future[list[Reply]]], None]]

#: GTK 4.8 answers `GrabFocus` with NotSupported, everywhere.
_WITHOUT_FOCUS: Final = frozenset(["gtk4"])


class _Skill(NamedTuple):
    """How one kind of action is done: its usual route, whether a node can take it, and how it is prepared."""

    usual: str
    route: Callable[[str, Node, Any], str | None]
    plan: Callable[[Bench, Any], Awaitable[Plan]]


def _by_action(possible: bool) -> str | None:
    return "atspi.action" if possible else None


def _value_route(_: str, node: Node, __: SetValue) -> str | None:
    if "set_value" in node.capabilities and node.role in acting_text.VALUE_ROLES:
        return "atspi.value"
    # Whether a combo box has an entry shows only in what is below it.
    return "atspi.text" if "set_text" in node.capabilities or node.role == "combobox" else None


def _focus_route(toolkit: str, node: Node, _: Focus) -> str | None:
    return None if toolkit in _WITHOUT_FOCUS or "focus" not in node.capabilities else "atspi.component"


def _scroll_into_view_route(toolkit: str, node: Node, _: ScrollIntoView) -> str | None:
    if not acting_scroll.can_scroll_into_view(toolkit, node):
        return None
    return "atspi.value" if toolkit in acting_scroll.BY_BAR else "atspi.component"


_SKILLS: Final[dict[type[Tagged], _Skill]] = {
    Invoke: _Skill(
        "atspi.action",
        lambda _, node, __: _by_action(acting_verbs.find(node.actions, acting_verbs.INVOKE) is not None),
        acting_actions.invoke,
    ),
    Perform: _Skill(
        "atspi.action",
        lambda _, node, action: _by_action(node.actions.count(action.name) == 1),
        acting_actions.perform,
    ),
    Toggle: _Skill(
        "atspi.action",
        lambda _, node, action: _by_action(acting_actions.can_toggle(node, to=action.to)),
        acting_actions.toggle,
    ),
    Expand: _Skill(
        "atspi.action",
        lambda _, node, action: _by_action(acting_actions.can_expand(node, to=action.to)),
        acting_actions.expand,
    ),
    SetValue: _Skill("atspi.text", _value_route, acting_text.set_value),
    SelectText: _Skill(
        "atspi.text",
        lambda _, node, __: "atspi.text" if "select_text" in node.capabilities else None,
        acting_text.select_text,
    ),
    SelectOption: _Skill("atspi.selection", acting_choice.route_of, acting_dropdown.select_option),
    Scroll: _Skill(
        "atspi.value",
        lambda _, node, __: "atspi.value" if acting_scroll.can_scroll(node) else None,
        acting_scroll.scroll,
    ),
    ScrollIntoView: _Skill("atspi.value", _scroll_into_view_route, acting_scroll.scroll_into_view),
    Focus: _Skill("atspi.component", _focus_route, acting_actions.focus),
}


def _opens_list(toolkit: str, node: Node, action: Action) -> bool:
    if node.role != "combobox":
        return False
    # GTK 3 has the options as objects while the list is closed.
    chooses = isinstance(action, SelectOption) and action.option is not None and toolkit != "gtk3"
    return chooses or (isinstance(action, Expand) and action.to)


class AtspiActor:
    """Acts on the objects that an observer sees.

    Args:
        observer: The observer of the same desktop; its connections are used.
        may_open_lists: Whether lists of combo boxes may be opened, which take pointer and keyboard while they are open.
    """

    backend = "atspi"

    def __init__(self, observer: Sight, *, may_open_lists: bool = True) -> None:
        self._sight = observer
        self._may_open_lists = may_open_lists
        #: When another action of an object counts again, in the loop's time; only what is still to come is kept.
        self._counts_again: dict[str, float] = {}

    # --- what works -------------------------------------------------------------------------------------------

    def capabilities(self, surface: Surface) -> tuple[CapabilityFact, ...]:
        """Return what this actor can do on a surface; whether an element can is `route`'s answer."""
        toolkit = profile_for(surface).family
        facts: list[CapabilityFact] = []
        for kind, skill in _SKILLS.items():
            if kind is Focus and toolkit in _WITHOUT_FOCUS:
                continue
            by_component = kind is ScrollIntoView and toolkit not in acting_scroll.BY_BAR
            facts.extend(
                CapabilityFact(
                    action=str(kind.__struct_config__.tag),
                    target_kind=target,
                    route="atspi.component" if by_component else skill.usual,
                    # Moving the focus is the one thing here that disturbs a person at the same desktop.
                    background="isolated_only" if kind is Focus else "guarded",
                )
                for target in ("element", "query")
            )
        return tuple(facts)

    def route(self, action: Action, surface: Surface, node: Node | None) -> str | None:
        """Return the route this actor would take on an element, or None when it cannot act on it."""
        skill = _SKILLS.get(type(action))
        if skill is None or node is None:
            return None
        family = profile_for(surface).family
        if not self._may_open_lists and _opens_list(family, node, action):
            return None
        return skill.route(family, node, action)

    async def release_all(self) -> None:
        """Let go of everything held: accessibility holds nothing."""

    # --- acting -----------------------------------------------------------------------------------------------

    async def perform(self, attempt: Attempt) -> Dispatched:
        """Prepare, read the fence, enter, act once, say what is known.

        Raises:
            TargetError, Unavailable, InvalidRequest: before entering; nothing was done.
        """
        bench, skill = self._bench(attempt)
        plan = await skill.plan(bench, attempt.action)
        await self._wait_for_press(plan)
        way = await self._sight.way_to_act(bench.node.handle)
        handles = tuple(dict.fromkeys((*attempt.fence_handles, *plan.handles)))
        # Goes in one write with the fence's own reads, so that one round trip answers both.
        reading = plan.channel.connection.start_many(plan.reads, held=True) if plan.reads else None
        around = [handle for handle in attempt.fence_handles[1:] if handle not in plan.handles]
        whole = [handle for handle in handles if handle not in around]
        live = await self._sight.live(attempt.surface.surface_id, whole, around=around)
        replies = checked(await reading) if reading is not None else []
        acting = plan.decide(live, replies)
        attempt.enter(live)
        if acting is None:
            return Dispatched(status="done", route=plan.route, detail=f"{ALREADY} so; nothing was sent")
        sent = await self._send(plan, acting, bench.toolkit, way)
        if plan.rest is None or sent.status != "done":
            return sent
        verdict = await plan.rest(attempt)
        return Dispatched(status=verdict.status, route=plan.route, detail=verdict.detail)

    def _bench(self, attempt: Attempt) -> tuple[Bench, _Skill]:
        skill = _SKILLS.get(type(attempt.action))
        if skill is None:
            raise UnsupportedAction("accessibility has no such action")
        if attempt.node is None:
            raise InvalidRequest("an accessibility action needs an element")
        return Bench(self._sight, attempt.surface, attempt.node, attempt.secret), skill

    async def _wait_for_press(self, plan: Plan) -> None:
        """Wait until the last press of the same object is over: GTK 4 and Qt acknowledge a second one and drop it."""
        now = asyncio.get_running_loop().time()
        self._counts_again = {handle: due for handle, due in self._counts_again.items() if due > now}
        due = max((self._counts_again.get(handle, now) for handle in plan.handles), default=now)
        if plan.kind == "action" and due > now:
            await asyncio.sleep(due - now)

    def _remember_press(self, plan: Plan, toolkit: str) -> None:
        again_ms = action_times(toolkit).again_ms
        if plan.kind == "action" and again_ms:
            due = asyncio.get_running_loop().time() + again_ms / 1000
            self._counts_again.update(dict.fromkeys(plan.handles, due))

    async def _send(self, plan: Plan, acting: Call, toolkit: str, way: Way) -> Dispatched:
        """Send the one call, in the task and turn that entered; then find out what became of it."""
        connection, remember = way
        acted = connection.start_many([acting], held=True)
        # What an answer to this one proves while the first is silent, `acting_outcome` says. Both are written here and
        # now, in one write.
        after = Call(acting.destination, acting.path, calls.ACCESSIBLE, "GetState")
        behind = connection.start_many([after])
        remember(behind)
        await asyncio.wait([acted, behind], return_when=asyncio.FIRST_COMPLETED)
        if not acted.done():
            await asyncio.wait([acted], timeout=limits.ACTION_ACK_GRACE_MS / 1000)
        self._remember_press(plan, toolkit)
        if acted.done():
            verdict = acting_outcome.judge(acted.result()[0], plan.kind, toolkit)
        else:
            verdict = acting_outcome.judge_silence(behind.result()[0] if behind.done() else None, plan.kind, toolkit)
        # What was begun runs its handler already.
        delay_ms = plan.delay_ms if verdict.status in {"done", "sent", "unknown"} else 0
        return Dispatched(status=verdict.status, route=plan.route, detail=verdict.detail, handler_delay_ms=delay_ms)
