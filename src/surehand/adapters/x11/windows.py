"""The windows of one display: who owns them, where they stand, in which order.

Promises: the list is kept from events and never polled; a refresh first waits for everything that the server had to
say before, so it is exact at that moment; a pid is what the server knows of the client's socket, never the claim of
`_NET_WM_PID`; a window that vanishes while it is read costs only itself; nothing here guesses between two windows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

import msgspec
import xcffib
import xcffib.res
import xcffib.xproto

from surehand import limits
from surehand.adapters.x11.connection import Vanished, XServer
from surehand.model.scene import Bounds

_EVENT: Final = xcffib.xproto.EventMask
_ICONIC: Final = 3
_TOLERANCE_PX: Final = 2  # toolkits round sizes at fractional scales
_DRAWN_BORDER_PX_MAX: Final = 16  # GTK 4 draws one around its windows where nothing composes them, and tells it nobody
_ROOT_PROPERTIES: Final = (
    "_NET_CLIENT_LIST_STACKING",
    "_NET_CLIENT_LIST",
    "_NET_ACTIVE_WINDOW",
    "_NET_SUPPORTING_WM_CHECK",
    "_NET_SUPPORTED",
)
_WINDOW_PROPERTIES: Final = (
    "_NET_WM_NAME",
    "WM_NAME",
    "WM_CLASS",
    "_NET_WM_PID",
    "WM_STATE",
    "_NET_WM_STATE",
    "_NET_FRAME_EXTENTS",
    "_GTK_FRAME_EXTENTS",
    "WM_PROTOCOLS",
)
_MAXIMIZED: Final = ("_NET_WM_STATE_MAXIMIZED_VERT", "_NET_WM_STATE_MAXIMIZED_HORZ")
_OTHER_ATOMS: Final = (
    "_NET_WM_STATE_HIDDEN",
    "_NET_WM_STATE_MODAL",
    "_NET_WM_PING",
    "WM_DELETE_WINDOW",
    *_MAXIMIZED,
)


class WindowInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One managed top-level window.

    `bounds` is the client area in root pixels, without the window manager's frame; `frame` the window that stands
    directly under the root; `shadow` the part of the client area (left, right, top, bottom) that a toolkit uses for
    its own shadow. `pid` is proven; `claimed_pid`, `title` and `wm_class` are what the application says.
    """

    id: int
    frame: int
    pid: int | None
    claimed_pid: int | None
    title: str
    wm_class: str
    bounds: Bounds
    frame_extents: Bounds
    shadow: Bounds
    minimized: bool
    maximized: bool
    modal: bool
    viewable: bool
    focused: bool
    active: bool
    depth: int
    answers_ping: bool
    deletable: bool

    @property
    def content(self) -> Bounds:
        """The client area without the toolkit's shadow: what GTK 4 counts its extents from."""
        left, right, top, bottom = self.shadow
        x, y, width, height = self.bounds
        return (x + left, y + top, width - left - right, height - top - bottom)


class WindowPlace(NamedTuple):
    """Where an application's window really stands. `scale_milli` is device pixels per unit of the asked size × 1000.

    `modal` is what the toolkit told the window manager.
    """

    window: int
    x: int
    y: int
    width: int
    height: int
    scale_milli: int | None
    modal: bool = False


class Snapshot(NamedTuple):
    """All managed windows from front to back, and what holds the keyboard."""

    windows: tuple[WindowInfo, ...]
    focus: int
    active: int | None
    managed: bool


def locate(snapshot: Snapshot, pid: int, title: str | None, size: tuple[int, int] | None) -> WindowPlace | None:
    """Return the one window of `pid` that has this title or this size, or None where that is not certain.

    `size` may be in logical units: any whole scale up to four fits. An only window that has neither is another one:
    the window that is meant may not have been read yet.
    """
    found = [window for window in snapshot.windows if window.pid == pid]
    titled = [window for window in found if window.title == title[: limits.NAME_CHARS_MAX]] if title else found
    sized = found if size is None else [window for window in found if _scale(window, size) is not None]
    found = titled or sized
    if len(found) > 1:
        found = [window for window in found if window in sized] or found
    if len(found) > 1:
        found = [window for window in found if not window.minimized]
    if len(found) != 1:
        return None
    x, y, width, height = found[0].content
    return WindowPlace(
        found[0].id, x, y, width, height, None if size is None else _scale(found[0], size), found[0].modal
    )


def owned_by(window: WindowInfo, pid: int) -> bool:
    """Return whether nothing contradicts that `pid` made the window."""
    return window.pid is None or window.pid == pid


def counts_in_screen_pixels(window: WindowInfo, size: tuple[int, int]) -> bool:
    """Return whether a size that an application tells of its window is the real one, with or without the frame.

    Chromium counts the shadow that it draws itself as part of its window.
    """
    whole = all(abs(told - real) <= _TOLERANCE_PX for told, real in zip(size, window.bounds[2:], strict=True))
    return whole or _scale(window, size) == 1000


def _scale(window: WindowInfo, size: tuple[int, int]) -> int | None:
    left, right, top, bottom = window.frame_extents
    _, _, width, height = window.content
    for factor in (1, 2, 3, 4):
        for real_width, real_height in ((width, height), (width + left + right, height + top + bottom)):
            wide = abs(size[0] * factor - real_width) <= _TOLERANCE_PX
            if wide and abs(size[1] * factor - real_height) <= _TOLERANCE_PX:
                return factor * 1000
        across, along = width - size[0] * factor, height - size[1] * factor
        if across == along and 0 < across <= 2 * _DRAWN_BORDER_PX_MAX * factor:
            return factor * 1000
    return None


class WindowTracker:
    """Keeps the `Snapshot` of one display. Lives on its `XThread`; `handle` sees every event, `refresh` reads.

    Args:
        server: The connection.
        changed: Called (on the thread) when windows may have changed; must not block.
    """

    def __init__(self, server: XServer, changed: Callable[[], None]) -> None:
        self._server = server
        self._changed = changed
        self._known: dict[int, WindowInfo] = {}
        self._stale: set[int] = set()
        self._list_stale = True
        self._frames: dict[int, int] = {}
        self._pids: dict[int, int | None] = {}
        self._snapshot = Snapshot((), 0, None, False)
        self._clients: tuple[int, ...] = ()
        self._managed = False
        self._manager = 0
        self._active: int | None = None
        self._resource = server.extension(xcffib.res)
        self._resource.QueryVersion(1, 2).reply()
        server.atoms(_ROOT_PROPERTIES + _WINDOW_PROPERTIES + _OTHER_ATOMS)
        #: The properties from which anything here is known.
        self._told_by = {server.atom(name) for name in _ROOT_PROPERTIES + _WINDOW_PROPERTIES}
        self._base = server.conn.setup.resource_id_mask
        server.core.ChangeWindowAttributes(
            server.root, xcffib.xproto.CW.EventMask, [_EVENT.SubstructureNotify | _EVENT.PropertyChange]
        )

    @property
    def snapshot(self) -> Snapshot:
        """The last refreshed snapshot; an immutable value, safe to read from any thread."""
        return self._snapshot

    def handle(self, event: Any) -> None:
        """Take note of what an event makes doubtful."""
        if isinstance(event, xcffib.xproto.PropertyNotifyEvent):
            if event.atom not in self._told_by:
                return  # GTK 4 writes properties of its own with each frame
            if event.window == self._server.root:
                self._list_stale = True
            else:
                self._stale.add(event.window)
        elif isinstance(event, xcffib.xproto.ConfigureNotifyEvent):
            # A client keeps its place in its frame, so the frame's move makes the client's place doubtful.
            self._stale.update(client for client, frame in self._frames.items() if frame == event.window)
            self._stale.add(event.window)
            self._list_stale = self._list_stale or not self._managed
        elif isinstance(
            event,
            xcffib.xproto.MapNotifyEvent | xcffib.xproto.UnmapNotifyEvent | xcffib.xproto.ReparentNotifyEvent,
        ):
            self._stale.add(event.window)
            self._stale.update(client for client, frame in self._frames.items() if frame == event.window)
            self._list_stale = self._list_stale or not self._managed
        elif isinstance(event, xcffib.xproto.CreateNotifyEvent | xcffib.xproto.DestroyNotifyEvent):
            self._forget(event.window)
            self._list_stale = self._list_stale or not self._managed or event.window == self._manager
        else:
            return
        self._changed()

    def refresh(self) -> Snapshot:
        """Return the windows as they are now."""
        focus = self._server.drain()
        if self._list_stale:
            self._list_stale = False
            self._read_list()
        wanted = [window for window in self._clients if window in self._stale or window not in self._known]
        if wanted:
            self._stale.difference_update(wanted)
            self._read(wanted)
        holder = self._holder(focus)
        windows = []
        for window in reversed(self._clients):
            info = self._known.get(window)
            if info is not None:
                focused, active = window == holder, window == self._active
                if (info.focused, info.active) != (focused, active):
                    info = msgspec.structs.replace(info, focused=focused, active=active)
                    self._known[window] = info
                windows.append(info)
        self._snapshot = Snapshot(tuple(windows), focus, self._active, self._managed)
        return self._snapshot

    def window(self, window: int) -> WindowInfo | None:
        """Return any window, managed or not (pop-ups are not), as it is now; None when it is gone."""
        self.refresh()
        if window in self._clients:
            return self._known.get(window)
        self._read([window])
        info = self._known.pop(window, None)
        self._frames.pop(window, None)
        self._pids.pop(window, None)
        return info

    def popups(self) -> tuple[dict[str, Any], ...]:
        """Return the viewable windows under the root that nobody manages, such as menus: id, pid, bounds."""
        self.refresh()
        core, found = self._server.core, []
        frames = {*self._frames.values(), *self._clients}
        children = [one for one in core.QueryTree(self._server.root).reply().children if one not in frames]
        asked = [(one, core.GetWindowAttributes(one), core.GetGeometry(one)) for one in children]
        own = client_pid(self._resource, self._manager) if self._managed else None
        for window, *cookies in asked[-limits.WINDOWS_MAX :]:
            try:
                attributes, place = [cookie.reply() for cookie in cookies]
            except Vanished:
                continue
            shows = attributes.map_state == xcffib.xproto.MapState.Viewable
            if not shows or attributes._class != xcffib.xproto.WindowClass.InputOutput:  # noqa: SLF001 - as above
                continue
            pid = client_pid(self._resource, window)
            if pid is None or pid != own:
                width, height = (size + 2 * place.border_width for size in (place.width, place.height))
                found.append({"id": window, "pid": pid, "bounds": (place.x, place.y, width, height)})
        return tuple(found)

    def _forget(self, window: int) -> None:
        self._known.pop(window, None)
        self._pids.pop(window, None)
        self._frames.pop(window, None)
        self._stale.discard(window)

    def _read_list(self) -> None:
        server = self._server
        cookies = {name: server.ask_property(server.root, name) for name in _ROOT_PROPERTIES}
        values = {name: server.numbers(cookie) for name, cookie in cookies.items()}
        self._managed = self._manager_lives(values["_NET_SUPPORTING_WM_CHECK"])
        active = values["_NET_ACTIVE_WINDOW"]
        self._active = active[0] if active and active[0] and self._managed else None
        if self._managed:
            clients = values["_NET_CLIENT_LIST_STACKING"] or values["_NET_CLIENT_LIST"]
        else:
            clients = tuple(self._unmanaged())
        clients = tuple(dict.fromkeys(clients))[-limits.WINDOWS_MAX :]
        for gone in set(self._clients) - set(clients):
            self._forget(gone)
        for new in set(clients) - set(self._clients):
            server.core.ChangeWindowAttributes(
                new, xcffib.xproto.CW.EventMask, [_EVENT.PropertyChange | _EVENT.StructureNotify]
            )
        self._clients = clients

    def _manager_lives(self, check: tuple[int, ...]) -> bool:
        # A dead manager leaves its properties behind; a living one has a window that names itself.
        if not check:
            return False
        if check[0] != self._manager:
            self._manager = check[0]
            self._server.core.ChangeWindowAttributes(
                self._manager, xcffib.xproto.CW.EventMask, [_EVENT.StructureNotify]
            )
        return self._server.get_numbers(self._manager, "_NET_SUPPORTING_WM_CHECK") == check[:1]

    def _unmanaged(self) -> Iterable[int]:
        core = self._server.core
        children = core.QueryTree(self._server.root).reply().children
        cookies = [(child, core.GetWindowAttributes(child)) for child in children]
        for child, cookie in cookies:
            try:
                attributes = cookie.reply()
            except Vanished:
                continue
            shown = attributes.map_state == xcffib.xproto.MapState.Viewable
            if (
                shown
                and not attributes.override_redirect
                and attributes._class == xcffib.xproto.WindowClass.InputOutput  # noqa: SLF001 - the field's name
            ):
                yield child

    def _read(self, wanted: list[int]) -> None:
        server, core = self._server, self._server.core
        asked = []
        for window in wanted:
            properties = {name: server.ask_property(window, name) for name in _WINDOW_PROPERTIES}
            asked.append(
                (
                    window,
                    properties,
                    core.GetGeometry(window),
                    core.TranslateCoordinates(window, server.root, 0, 0),
                    core.GetWindowAttributes(window),
                    core.QueryTree(window),
                )
            )
        for window, properties, *cookies in asked:
            try:
                geometry, origin, attributes, tree = [cookie.reply() for cookie in cookies]
            except Vanished:
                self._known.pop(window, None)
                for cookie in properties.values():
                    server.read_property(cookie)
                continue
            self._known[window] = self._info(window, properties, geometry, origin, attributes, tree)

    def _info(
        self, window: int, properties: dict[str, Any], geometry: Any, origin: Any, attributes: Any, tree: Any
    ) -> WindowInfo:
        server = self._server
        title = server.text(properties["_NET_WM_NAME"])
        old_title = server.text(properties["WM_NAME"])
        wm_class = server.text(properties["WM_CLASS"]) or ""
        numbers = {
            name: server.numbers(properties[name])
            for name in _WINDOW_PROPERTIES
            if name not in {"_NET_WM_NAME", "WM_NAME", "WM_CLASS"}
        }
        border = geometry.border_width
        state = numbers["WM_STATE"]
        hidden = server.atom("_NET_WM_STATE_HIDDEN") in numbers["_NET_WM_STATE"]
        frame = self._frame(window, tree.parent)
        self._frames[window] = frame
        claimed = numbers["_NET_WM_PID"]
        return WindowInfo(
            id=window,
            frame=frame,
            pid=self._pid(window),
            claimed_pid=claimed[0] if claimed else None,
            title=(title or old_title or "")[: limits.NAME_CHARS_MAX],
            wm_class=wm_class.rstrip("\x00").rpartition("\x00")[2][: limits.NAME_CHARS_MAX],
            bounds=(origin.dst_x, origin.dst_y, geometry.width, geometry.height),
            frame_extents=_four(numbers["_NET_FRAME_EXTENTS"]) if frame != window else (border,) * 4,
            shadow=_four(numbers["_GTK_FRAME_EXTENTS"]),
            minimized=hidden or bool(state and state[0] == _ICONIC),
            maximized={server.atom(name) for name in _MAXIMIZED} <= set(numbers["_NET_WM_STATE"]),
            modal=server.atom("_NET_WM_STATE_MODAL") in numbers["_NET_WM_STATE"],
            viewable=attributes.map_state == xcffib.xproto.MapState.Viewable,
            focused=False,
            active=False,
            depth=geometry.depth,
            answers_ping=server.atom("_NET_WM_PING") in numbers["WM_PROTOCOLS"],
            deletable=server.atom("WM_DELETE_WINDOW") in numbers["WM_PROTOCOLS"],
        )

    def _frame(self, window: int, parent: int) -> int:
        core, root = self._server.core, self._server.root
        try:
            for _ in range(limits.X_TREE_DEPTH_MAX):
                if parent in {root, 0}:
                    return window
                window, parent = parent, core.QueryTree(parent).reply().parent
        except Vanished:
            pass
        return window

    def _pid(self, window: int) -> int | None:
        if window not in self._pids:
            self._pids[window] = client_pid(self._resource, window)
        return self._pids[window]

    def _holder(self, focus: int) -> int | None:
        """Return the managed window that the focused window is or lies in."""
        window: int = focus
        try:
            for _ in range(limits.X_TREE_DEPTH_MAX):
                if window in self._known:
                    return window
                if window in {0, 1, self._server.root}:  # None, PointerRoot
                    return None
                window = self._server.core.QueryTree(window).reply().parent
        except Vanished:
            pass
        return None


def client_pid(resource: Any, window: int) -> int | None:
    """Return the pid of the process that made a window, as the server's socket to it proves; None when unknown."""
    spec = xcffib.res.ClientIdSpec.synthetic(window, xcffib.res.ClientIdMask.LocalClientPID)
    try:
        reply = resource.QueryClientIds(1, [spec]).reply()
    except xcffib.Error:
        return None
    for entry in reply.ids:
        if entry.spec.mask == xcffib.res.ClientIdMask.LocalClientPID and len(entry.value) == 1:
            return int(entry.value[0])
    return None


def _four(numbers: tuple[int, ...]) -> Bounds:
    return (numbers[0], numbers[1], numbers[2], numbers[3]) if len(numbers) == 4 else (0, 0, 0, 0)
