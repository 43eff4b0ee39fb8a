"""What must be true of windows at the moment of input (spec §8.3, §10). Every check is made with the server grabbed.

Promises: a pointer action reaches the window it is meant for or nothing; keys are sent only while the keyboard is
with that window, and never to a program that has taken the keyboard for itself, such as a lock screen.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import xcffib
import xcffib.res
import xcffib.xproto

from surehand import limits
from surehand.adapters.x11.connection import Vanished, XServer
from surehand.adapters.x11.windows import WindowInfo, client_pid
from surehand.errors import FocusRequired, SecureSurface, StaleTarget, TargetNotActionable
from surehand.model.scene import Bounds

_GRAB_OK: Final = frozenset({xcffib.xproto.GrabStatus.Success, xcffib.xproto.GrabStatus.NotViewable})
#: Structure besides substructure, because Qt addresses its answers to pings that way.
_ROOT_EVENTS: Final = xcffib.xproto.EventMask.SubstructureNotify | xcffib.xproto.EventMask.StructureNotify
_FOCUS_NOWHERE: Final = frozenset({xcffib.xproto.InputFocus._None, xcffib.xproto.InputFocus.PointerRoot})  # noqa: SLF001


class _Loose(NamedTuple):
    """The owner and the place of a window that nobody manages."""

    pid: int | None
    bounds: Bounds


class Fence:
    """Lives on its `XThread`; `handle` must see every event."""

    def __init__(self, server: XServer) -> None:
        self._server = server
        self._resource = server.extension(xcffib.res)
        self._resource.QueryVersion(1, 2).reply()
        #: Shown windows that no window manager manages: menus, tooltips, lock screens.
        self._loose: dict[int, _Loose] = {}
        core = server.core
        core.ChangeWindowAttributes(server.root, xcffib.xproto.CW.EventMask, [_ROOT_EVENTS])
        for window in core.QueryTree(server.root).reply().children:
            try:
                attributes = core.GetWindowAttributes(window).reply()
            except Vanished:
                continue
            if attributes.override_redirect and attributes.map_state == xcffib.xproto.MapState.Viewable:
                self._meet(window)

    def handle(self, event: Any) -> None:
        """Follow unmanaged windows."""
        if isinstance(event, xcffib.xproto.MapNotifyEvent) and event.override_redirect:
            self._meet(event.window)
        elif isinstance(event, xcffib.xproto.ConfigureNotifyEvent) and event.window in self._loose:
            self._loose[event.window] = _Loose(self._loose[event.window].pid, _bounds(event))
        elif isinstance(event, xcffib.xproto.UnmapNotifyEvent | xcffib.xproto.DestroyNotifyEvent):
            self._loose.pop(event.window, None)

    def check_there(self, window: WindowInfo) -> None:
        """Refuse a window that is gone or whose id belongs to another process now."""
        try:
            self._server.core.GetGeometry(window.id).reply()
        except Vanished as error:
            raise StaleTarget("the window is gone", fix="observe again") from error
        if self._pid(window.id) != window.pid:
            raise StaleTarget("the window is another application's now", fix="observe again")

    def check_point(self, window: WindowInfo, x: int, y: int, *, popups: bool) -> int:
        """Refuse unless input at this place goes to `window`; return the window under the root that it goes through.

        With `popups` a menu or list of the same process counts as the window.

        Raises:
            TargetNotActionable: outside the screen.
            StaleTarget: another window is there.
        """
        geometry = self._server.core.GetGeometry(self._server.root).reply()
        if not (0 <= x < geometry.width and 0 <= y < geometry.height):
            raise TargetNotActionable("the place is outside the screen", fix="move the window or scroll first")
        path = self._path_at(x, y)
        if window.id in path:
            return path[0]
        popup = self._loose.get(path[0]) if popups and path else None
        if popup is not None and window.pid is not None and popup.pid == window.pid:
            return path[0]
        raise StaleTarget(
            "another window is at that place" if path else "no window is at that place",
            fix="bring the window to the front, or observe again",
            observed={"covered_by": self._title(path)} if path else None,
        )

    def top_at(self, x: int, y: int) -> int:
        """Return the window under the root at this place, 0 for none."""
        path = self._path_at(x, y)
        return path[0] if path else 0

    def check_keyboard(self, window: WindowInfo, *, managed: bool) -> None:
        """Refuse unless keys go to `window`.

        Raises:
            FocusRequired: they go elsewhere.
            SecureSurface: another program has the keyboard for itself.
        """
        server = self._server
        active = server.ask_property(server.root, "_NET_ACTIVE_WINDOW") if managed else None
        focus = int(server.core.GetInputFocus().reply().focus)
        if focus in _FOCUS_NOWHERE or focus == server.root or not self._lies_in(focus, window.id):
            raise FocusRequired("another window has the keyboard", fix="focus the window first")
        if active is not None and server.numbers(active)[:1] not in {(window.id,), ()}:
            raise FocusRequired("another window is active", fix="focus the window first")
        # Asking disturbs every program a little, so it is done only where somebody could have taken the keyboard.
        if any(loose.pid != window.pid and self._is_seen(loose.bounds) for loose in self._loose.values()):
            self._check_grab()

    def _check_grab(self) -> None:
        """Find out whether somebody took the keyboard, by taking it for an instant."""
        core = self._server.core
        asynchronous = xcffib.xproto.GrabMode.Async
        reply = core.GrabKeyboard(
            True, self._server.root, xcffib.xproto.Time.CurrentTime, asynchronous, asynchronous
        ).reply()
        if reply.status == xcffib.xproto.GrabStatus.Success:
            core.UngrabKeyboard(xcffib.xproto.Time.CurrentTime)
        if reply.status not in _GRAB_OK:
            raise SecureSurface(
                "another program has taken the keyboard", fix="close its menu or prompt, or unlock the screen"
            )

    def _lies_in(self, window: int, ancestor: int) -> bool:
        try:
            for _ in range(limits.X_TREE_DEPTH_MAX):
                if window == ancestor:
                    return True
                if window in {0, self._server.root}:
                    return False
                window = self._server.core.QueryTree(window).reply().parent
        except Vanished:
            pass
        return False

    def _path_at(self, x: int, y: int) -> list[int]:
        """Return the windows that input at this place goes through, outermost first; shapes count."""
        path: list[int] = []
        window = self._server.root
        try:
            for _ in range(limits.X_TREE_DEPTH_MAX):
                child = self._server.core.TranslateCoordinates(self._server.root, window, x, y).reply().child
                if not child:
                    break
                path.append(child)
                window = child
        except Vanished as error:
            raise StaleTarget("the window is gone", fix="observe again") from error
        return path

    def _meet(self, window: int) -> None:
        try:
            geometry = self._server.core.GetGeometry(window).reply()
        except Vanished:
            return
        self._loose[window] = _Loose(self._pid(window), _bounds(geometry))

    def _is_seen(self, bounds: Bounds) -> bool:
        """Return whether any of it is on the screen; window managers keep helpers of one pixel outside."""
        x, y, width, height = bounds
        screen = self._server.screen
        return (
            min(width, height) > 1
            and x + width > 0
            and y + height > 0
            and x < screen.width_in_pixels
            and y < screen.height_in_pixels
        )

    def _pid(self, window: int) -> int | None:
        return client_pid(self._resource, window)

    def _title(self, path: list[int]) -> str:
        for window in path:
            title = self._server.text(self._server.ask_property(window, "_NET_WM_NAME"))
            if title:
                return title[: limits.NAME_CHARS_MAX]
        return ""


def _bounds(geometry: Any) -> Bounds:
    return (geometry.x, geometry.y, geometry.width, geometry.height)
