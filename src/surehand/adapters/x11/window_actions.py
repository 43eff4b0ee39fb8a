"""Window actions through the window manager (EWMH), or directly where there is none.

A window manager obeys or does not, and says so only by what becomes of the window; so each action has a condition on
the window list, and is `done` when it holds and `sent` when it does not within `limits.WINDOW_ACTION_MS_MAX`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import xcffib.xproto

from surehand.adapters.x11.connection import XServer
from surehand.adapters.x11.windows import Snapshot, WindowInfo
from surehand.errors import UnsupportedAction, WindowNotFound
from surehand.model.actions import Window

_CW: Final = xcffib.xproto.ConfigWindow
_TO_MANAGER: Final = xcffib.xproto.EventMask.SubstructureRedirect | xcffib.xproto.EventMask.SubstructureNotify
_PAGER: Final = 2  # source indication: acts for the person, so a manager must not hold it back
_ICONIC: Final = 3
_REMOVE: Final = 0
_ADD: Final = 1
_STATIC_GRAVITY: Final = 10  # x and y are the client's own, as in the window list
_HAS_X, _HAS_Y, _HAS_WIDTH, _HAS_HEIGHT = (1 << bit for bit in range(8, 12))
_TOLERANCE_PX: Final = 32  # terminals keep to whole character cells


class WindowPlan(NamedTuple):
    """What to send, and how to see that it happened."""

    send: Callable[[XServer], None]
    happened: Callable[[Snapshot], bool]


def plan_window(  # noqa: PLR0911 - one return per operation
    action: Window, window: WindowInfo, snapshot: Snapshot
) -> WindowPlan:
    """Return how to carry out a window action.

    Raises:
        UnsupportedAction: it needs a window manager and there is none, or the window does not take it.
        WindowNotFound: there is no other window to cycle to.
    """
    match action.op:
        case "focus":
            return _focus(window, managed=snapshot.managed)
        case "cycle":
            return _focus(_next(window, snapshot), managed=snapshot.managed)
        case "close":
            return _close(window, managed=snapshot.managed)
        case "minimize" | "maximize" if not snapshot.managed:
            raise UnsupportedAction(f"there is no window manager to {action.op} windows", fix="start a window manager")
        case "minimize":
            return WindowPlan(
                lambda server: _tell_manager(server, window.id, "WM_CHANGE_STATE", (_ICONIC,)),
                lambda seen: _is(seen, window.id, lambda now: now.minimized),
            )
        case "maximize":
            return _maximize(window)
        case "move":
            return _place(window, x=action.x, y=action.y, managed=snapshot.managed)
        case "resize":
            return _place(window, width=action.width, height=action.height, managed=snapshot.managed)


def _focus(window: WindowInfo, *, managed: bool) -> WindowPlan:
    def send(server: XServer) -> None:
        if managed:
            _tell_manager(server, window.id, "_NET_ACTIVE_WINDOW", (_PAGER, xcffib.xproto.Time.CurrentTime, 0))
            return
        server.core.ConfigureWindow(window.id, _CW.StackMode, [xcffib.xproto.StackMode.Above])
        server.core.SetInputFocus(xcffib.xproto.InputFocus.Parent, window.id, xcffib.xproto.Time.CurrentTime)
        server.conn.flush()

    def has_focus(now: WindowInfo) -> bool:
        # A manager moves the focus first and says which window is active a moment later.
        return now.focused and not now.minimized and (now.active or not managed)

    return WindowPlan(send, lambda seen: _is(seen, window.id, has_focus))


def _close(window: WindowInfo, *, managed: bool) -> WindowPlan:
    if not managed and not window.deletable:
        # Killing the client would not ask it to save anything.
        raise UnsupportedAction("the window cannot be asked to close", fix="quit the application instead")

    def send(server: XServer) -> None:
        if managed:
            _tell_manager(server, window.id, "_NET_CLOSE_WINDOW", (xcffib.xproto.Time.CurrentTime, _PAGER))
        else:
            data = (server.atom("WM_DELETE_WINDOW"), xcffib.xproto.Time.CurrentTime)
            server.send_message(window.id, window.id, "WM_PROTOCOLS", data, xcffib.xproto.EventMask.NoEvent)

    return WindowPlan(send, lambda seen: all(now.id != window.id for now in seen.windows))


def _maximize(window: WindowInfo) -> WindowPlan:
    def send(server: XServer) -> None:
        _change_state(server, window, _ADD)

    return WindowPlan(send, lambda seen: _is(seen, window.id, lambda now: now.maximized))


def _change_state(server: XServer, window: WindowInfo, change: int) -> None:
    both = [server.atom(f"_NET_WM_STATE_MAXIMIZED_{way}") for way in ("VERT", "HORZ")]
    _tell_manager(server, window.id, "_NET_WM_STATE", (change, *both, _PAGER))


def _place(
    window: WindowInfo,
    *,
    managed: bool,
    x: int | None = None,
    y: int | None = None,
    width: int | None = None,
    height: int | None = None,
) -> WindowPlan:
    wanted = {"x": x, "y": y, "width": width, "height": height}

    def send(server: XServer) -> None:
        if managed:
            bits = (_HAS_X, _HAS_Y, _HAS_WIDTH, _HAS_HEIGHT)
            flags = sum(bit for bit, number in zip(bits, wanted.values(), strict=True) if number is not None)
            flags |= _STATIC_GRAVITY | _PAGER << 12
            if window.maximized:
                _change_state(server, window, _REMOVE)  # a maximised window keeps its place and size
            _tell_manager(server, window.id, "_NET_MOVERESIZE_WINDOW", (flags, *(n or 0 for n in wanted.values())))
            return
        masks = (_CW.X, _CW.Y, _CW.Width, _CW.Height)
        given = [(mask, n) for mask, n in zip(masks, wanted.values(), strict=True) if n is not None]
        server.core.ConfigureWindow(window.id, sum(mask for mask, _ in given), [n & 0xFFFF_FFFF for _, n in given])
        server.conn.flush()

    def fits(now: WindowInfo) -> bool:
        return all(
            n is None or abs(n - real) <= _TOLERANCE_PX for n, real in zip(wanted.values(), now.bounds, strict=True)
        )

    return WindowPlan(send, lambda seen: _is(seen, window.id, fits))


def _next(window: WindowInfo, snapshot: Snapshot) -> WindowInfo:
    """Return the window furthest back that can be shown: repeated, that visits every window once."""
    others = [other for other in snapshot.windows if other.id != window.id and not other.minimized]
    if not others:
        raise WindowNotFound("there is no other window to go to")
    return others[-1]


def _is(snapshot: Snapshot, window: int, condition: Callable[[WindowInfo], bool]) -> bool:
    return any(now.id == window and condition(now) for now in snapshot.windows)


def _tell_manager(server: XServer, window: int, kind: str, data: Sequence[Any]) -> None:
    server.send_message(server.root, window, kind, data, _TO_MANAGER)
