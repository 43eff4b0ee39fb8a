"""`ports.Actor` for pointer, keyboard and window actions on an X11 desktop.

Turns an action into checked units and has `Delivery` send them; holds no rule. `done` means that the application took
the input in (or the window manager obeyed), never that the effect happened. `enter` and `checkpoint` are called on the
event loop only.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from surehand import limits
from surehand.adapters.x11.connection import XServer
from surehand.adapters.x11.delivery import Delivery, Live
from surehand.adapters.x11.delivery import Unit as DeliveredUnit
from surehand.adapters.x11.input import BUTTONS, WHEEL, wheel_steps
from surehand.adapters.x11.interruptions import X11Interruptions
from surehand.adapters.x11.keyboard import Note
from surehand.adapters.x11.screen import X11Screen
from surehand.adapters.x11.window_actions import plan_window
from surehand.adapters.x11.windows import WindowInfo, counts_in_screen_pixels
from surehand.core.input.keys import CLICK_MODIFIERS
from surehand.core.input.ledger import Held
from surehand.core.input.plan import plan_drag, plan_press, plan_text
from surehand.errors import FocusRequired, InvalidRequest, StaleTarget, TargetNotActionable, UnsupportedAction
from surehand.model.actions import (
    Abort,
    Action,
    Click,
    Drag,
    Hold,
    Hover,
    Move,
    PhysicalState,
    Press,
    Release,
    Scroll,
    TypeText,
    Window,
)
from surehand.model.scene import CapabilityFact, LiveNode, Node, Surface
from surehand.ports import Attempt, Dispatched

POINTER: Final = "x11.pointer"
KEYBOARD: Final = "x11.keyboard"
WINDOW: Final = "x11.window"
STATE: Final = "x11.state"

_POINTER_ACTIONS: Final = (Click, Hover, Move, Hold, Release, Drag, Scroll)
_CAPABILITIES: Final = (
    *(
        (kind, target, POINTER)
        for kind in ("click", "hover", "move", "hold", "drag", "scroll")
        for target in ("element", "point")
    ),
    ("release", "none", POINTER),
    *((kind, target, KEYBOARD) for kind in ("type_text", "press") for target in ("element", "surface")),
    ("window", "surface", WINDOW),
    ("abort", "none", STATE),
    ("physical_state", "none", STATE),
)
#: Roles whose elements may stand in a pop-up window although they belong to another window's tree.
_POPUP_ROLES: Final = frozenset(
    {"menu", "menuitem", "menuitemcheckbox", "menuitemradio", "list", "listitem", "calendar"}
)

#: Reads the live state of a surface's elements past every cache; injected, because only accessibility can.
LiveReader = Callable[[str, Sequence[str]], Awaitable[Mapping[str, LiveNode | None]]]
#: Refuses an element of whose own window something else lies on it; injected for the same reason.
Uncovered = Callable[[Attempt], Awaitable[None]]
Place = tuple[int, int]


class X11Actor:
    """Acts on one display, on a connection of its own.

    Args:
        screen: The display's windows (open).
        note: Takes the guard's notes, such as `Guard.note`; raises when there is no guard.
        live_reader: Reads the fence handles of element targets; without it `enter` gets nothing to compare.
        interruptions: When given, held buttons are released at the person's first input.
        uncovered: Refuses to press an element on which something of its own window lies.
    """

    backend = "x11"

    def __init__(
        self,
        screen: X11Screen,
        note: Note,
        live_reader: LiveReader | None = None,
        interruptions: X11Interruptions | None = None,
        uncovered: Uncovered | None = None,
    ) -> None:
        self._screen = screen
        self._uncovered = uncovered
        self._live_reader = live_reader
        self._interruptions = interruptions
        self._delivery = Delivery(screen.display, screen.xauthority, note)

    async def open(self) -> None:
        """Connect.

        Raises:
            Unavailable: no X server, or one without XTEST, XKB or XRes.
        """
        await self._delivery.open()
        if self._interruptions is not None:
            self._interruptions.on_input(self._delivery.end_all_leases)

    async def close(self) -> None:
        """Let everything go and disconnect."""
        await self._delivery.close()

    def capabilities(self, surface: Surface) -> tuple[CapabilityFact, ...]:
        """Return what works on a surface. Pointer and keyboard are shared with the person, so never in background."""
        del surface
        return tuple(
            CapabilityFact(action=action, target_kind=target, route=route, background="isolated_only")
            for action, target, route in _CAPABILITIES
        )

    def route(self, action: Action, surface: Surface, node: Node | None) -> str | None:
        """Return the route of an action, None when X11 input cannot do it."""
        del surface
        if isinstance(action, _POINTER_ACTIONS):
            return POINTER if node is None or node.bounds is not None else None
        if isinstance(action, TypeText | Press):
            return KEYBOARD
        if isinstance(action, Window):
            return WINDOW
        return STATE if isinstance(action, Abort | PhysicalState) else None

    async def perform(self, attempt: Attempt) -> Dispatched:  # noqa: PLR0911 - one return per kind of action
        """Do one permitted thing; see `ports.Actor`.

        A `drag` ends at the last of `attempt.path`. `output` has `delivered` and `units`; for `physical_state`, what
        was read.
        """
        match attempt.action:
            case Abort():
                attempt.enter({})
                await self.release_all()
                return Dispatched(status="done", route=STATE)
            case PhysicalState():
                attempt.enter({})
                return Dispatched(status="done", route=STATE, output=await self.physical_state())
            case Release() as action:
                return await self._release(attempt, action)
            case Window() as action:
                return await self._window(attempt, action)
            case TypeText() | Press() as action:
                return await self._type(attempt, action)
            case Click() | Hover() | Move() | Hold() | Scroll() as action:
                return await self._point(attempt, action)
            case Drag() as action:
                return await self._drag(attempt, action)
            case _:
                raise UnsupportedAction("X11 input cannot do this")

    async def release_all(self) -> None:
        """Let go of everything held."""
        await self._delivery.release_all()

    async def physical_state(self) -> dict[str, Any]:
        """Return `{x, y, buttons, modifiers, held, sequence}`: root pixels, button numbers, an X modifier mask."""
        injector = self._delivery.injector

        def read(server: XServer) -> dict[str, Any]:
            pointer = server.core.QueryPointer(server.root).reply()
            state = injector.keyboard.state()
            return {
                "x": pointer.root_x,
                "y": pointer.root_y,
                "buttons": [number for number in range(1, 6) if pointer.mask & 1 << (7 + number)],
                "modifiers": state.base | state.latched | state.locked,
                "held": [f"{held.kind}:{held.code}" for held in injector.ledger.newest_first()],
            }

        found = await self._delivery.ask(read)
        found["sequence"] = 0 if self._interruptions is None else self._interruptions.sequence()
        return found

    # --- keyboard -------------------------------------------------------------------------------------------

    async def _type(self, attempt: Attempt, action: TypeText | Press) -> Dispatched:
        if isinstance(action, TypeText):
            units = plan_text(_text_of(attempt, action), clear=action.clear, submit=action.submit)
        else:
            units = plan_press(action.chords)
        window = await self._shown_window(attempt)
        injector, fence = self._delivery.injector, self._delivery.fence
        managed = self._screen.snapshot.managed

        def checked(index: int) -> DeliveredUnit:
            def unit() -> Callable[[], None] | None:
                if index == 0:
                    fence.check_there(window)
                fence.check_keyboard(window, managed=managed)
                return injector.prepare(units[index], units[index + 1 :])

            return unit

        async def read_live() -> Live:
            live = await self._live(attempt)
            _refuse_unfocused(attempt.node, live)
            _refuse_secret_elsewhere(attempt, live)
            return live

        if not units:
            attempt.enter(await read_live())
            return Dispatched(status="done", route=KEYBOARD, output={"delivered": 0, "units": 0})
        return await self._delivery.deliver(
            attempt, window, read_live, [checked(i) for i in range(len(units))], KEYBOARD
        )

    # --- pointer --------------------------------------------------------------------------------------------

    async def _point(self, attempt: Attempt, action: Click | Hover | Move | Hold | Scroll) -> Dispatched:
        place = _place(attempt)
        window = await self._shown_window(attempt)
        _refuse_other_pixels(attempt, window)
        units = [self._checked(attempt, window, send) for send in await self._sends(action, place)]
        return await self._delivery.deliver(
            attempt, window, lambda: self._live_in_place(attempt), units, POINTER, pointer=True
        )

    async def _sends(self, action: Click | Hover | Move | Hold | Scroll, place: Place) -> list[Callable[[], None]]:
        """Return what sends each unit of a pointer action."""
        delivery, injector = self._delivery, self._delivery.injector

        def move() -> None:
            injector.move(*place)

        if isinstance(action, Hover | Move):
            return [move]
        held = await self._button(WHEEL[action.direction] if isinstance(action, Scroll) else BUTTONS[action.button])
        injector.ledger.check_press(held)
        if isinstance(action, Hold):

            def hold() -> None:
                injector.move(*place)
                injector.press(held)
                delivery.lease(held)

            return [hold]
        names = action.modifiers if isinstance(action, Click) else ()
        keysyms = [CLICK_MODIFIERS[name] for name in names]
        modifiers = await delivery.ask(lambda _: injector.modifier_keys(keysyms))

        def tap() -> None:
            injector.move(*place)
            with injector.holding(modifiers):
                injector.tap(held)

        return [tap] * (wheel_steps(action) if isinstance(action, Scroll) else action.count)

    async def _drag(self, attempt: Attempt, action: Drag) -> Dispatched:
        if not attempt.path:
            raise InvalidRequest("a drag needs a place to end")
        start, end = _place(attempt), attempt.path[-1]
        window = await self._shown_window(attempt)
        _refuse_other_pixels(attempt, window)
        injector, fence = self._delivery.injector, self._delivery.fence
        held = await self._button(BUTTONS[action.button])
        injector.ledger.check_press(held)
        expected: list[int] = []

        def press() -> None:
            expected.append(fence.top_at(*end))
            injector.move(*start)
            injector.press(held)

        def step(place: Place) -> DeliveredUnit:
            return lambda: lambda: injector.move(*place)

        def drop() -> Callable[[], None]:
            if fence.top_at(*end) != expected[0]:
                # A drop on the wrong window is worse than none: back to where it began.
                injector.move(*start)
                injector.release(held)
                raise StaleTarget("the window at the end of the drag changed", fix="observe again")
            return lambda: injector.release(held)

        steps = [step(place) for place in plan_drag(start, attempt.path, limits.DRAG_STEPS)]
        units = [self._checked(attempt, window, press), *steps, drop]
        # Applications decide on a drag as they read its steps, so each is read before the next is sent.
        return await self._delivery.deliver(
            attempt, window, lambda: self._live_in_place(attempt), units, POINTER, pointer=True, paced=True
        )

    async def _release(self, attempt: Attempt, action: Release) -> Dispatched:
        held = await self._button(BUTTONS[action.button])
        if not self._delivery.injector.ledger.holds(held):
            raise TargetNotActionable("the button is not held", fix="hold it first")
        attempt.enter({})
        await self._delivery.end_lease(held, attempt.point)
        # The server has let go, which is the whole effect; there is no one window to take it in.
        return Dispatched(status="done", route=POINTER, output={"delivered": 1, "units": 1})

    def _checked(self, attempt: Attempt, window: WindowInfo, send: Callable[[], None]) -> DeliveredUnit:
        fence, place = self._delivery.fence, _place(attempt)
        popups = attempt.node is None or attempt.node.role in _POPUP_ROLES

        def unit() -> Callable[[], None]:
            fence.check_there(window)
            fence.check_point(window, *place, popups=popups)
            return send

        return unit

    async def _button(self, logical: int) -> Held:
        injector = self._delivery.injector
        return await self._delivery.ask(lambda _: injector.button(logical))

    # --- windows --------------------------------------------------------------------------------------------

    async def _window(self, attempt: Attempt, action: Window) -> Dispatched:
        window = await self._screen.window_of(attempt.surface)
        plan = plan_window(action, window, await self._screen.refresh())
        fence = self._delivery.fence
        await self._delivery.once(attempt, lambda: fence.check_there(window), plan.send)
        obeyed = await self._screen.wait_for(plan.happened, limits.WINDOW_ACTION_MS_MAX)
        return Dispatched(status="done" if obeyed else "sent", route=WINDOW)

    # --- what every action needs ----------------------------------------------------------------------------

    async def _shown_window(self, attempt: Attempt) -> WindowInfo:
        window = await self._screen.window_of(attempt.surface)
        if window.minimized or not window.viewable:
            raise TargetNotActionable("the window is minimised or hidden", fix="focus the window first")
        return window

    async def _live(self, attempt: Attempt) -> Live:
        if self._live_reader is None or not attempt.fence_handles:
            return {}
        return await self._live_reader(attempt.surface.surface_id, attempt.fence_handles)

    async def _live_in_place(self, attempt: Attempt) -> Live:
        if self._uncovered is not None and isinstance(attempt.action, Click | Hold | Drag):
            await self._uncovered(attempt)
        live = await self._live(attempt)
        _refuse_moved(attempt, live)
        return live


def _place(attempt: Attempt) -> Place:
    if attempt.point is None:
        raise InvalidRequest("a pointer action needs a place")
    return attempt.point


def _text_of(attempt: Attempt, action: TypeText) -> str:
    if action.text is not None:
        return action.text
    if attempt.secret is None:
        raise UnsupportedAction("the secret was not resolved")
    return attempt.secret.reveal()


def _refuse_secret_elsewhere(attempt: Attempt, live: Live) -> None:
    """Refuse to type a secret unless the element says now that it has the keyboard and is a secret field."""
    if attempt.secret is None:
        return
    now = None if attempt.node is None else live.get(attempt.node.handle)
    if now is None or "focused" not in now.node.states:
        raise FocusRequired("a secret is typed only where the keyboard certainly is", fix="use set_value instead")
    if not (now.node.secret or attempt.secret.may_show):
        raise TargetNotActionable("a secret goes only into a field that is marked as one")


def _refuse_other_pixels(attempt: Attempt, window: WindowInfo) -> None:
    """Refuse places of elements whose application counts in other pixels than the screen (GDK_SCALE and the like)."""
    bounds = attempt.surface.bounds
    if attempt.surface.native_window is not None:
        return  # its place is the window system's own word
    if attempt.node is not None and bounds is not None and not counts_in_screen_pixels(window, bounds[2:]):
        raise StaleTarget(
            "the window is not as large on the screen as its application says",
            fix="observe again; if the application is scaled, use an action that needs no place",
            details={"application": list(bounds[2:]), "screen": list(window.bounds[2:])},
        )


def _refuse_moved(attempt: Attempt, live: Live) -> None:
    """Refuse a place that the element has left: what stands there now may be anything (C06)."""
    now = None if attempt.node is None else live.get(attempt.node.handle)
    if now is None:
        return  # gone or not asked for; the fence knows
    bounds, (x, y) = now.node.bounds, _place(attempt)
    if bounds is None or not (0 <= x - bounds[0] < bounds[2] and 0 <= y - bounds[1] < bounds[3]):
        raise StaleTarget("the element has moved", fix="observe again", details={"what": "place"})


def _refuse_unfocused(node: Node | None, live: Live) -> None:
    """Refuse to type when the element says that it could have the keyboard and does not."""
    now = None if node is None else live.get(node.handle)
    if now is not None and "focusable" in now.node.states and "focused" not in now.node.states:
        raise FocusRequired("the element does not have the keyboard", fix="focus the element first")
