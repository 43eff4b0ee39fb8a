"""Pixels of the desktop and of single windows, through MIT-SHM and Composite.

Promises: a covered window gives its own pixels; no pixel of another window is ever in the picture of one window,
because a window is read out only after it is known to have drawn all of it (Damage tells) since it got its store; a
window without pixels gives `CaptureUnavailable` with the reason `minimized`, `gone`, `unpainted`, `memory` or `format`.

A store begins with what the screen showed at the window's place, which may be somebody else's: where it is covered, and
just as well where it is in front and has not drawn itself yet. So every window is asked to draw itself once, at its
first picture, and again after it was mapped or got another size.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import select
import time
from collections.abc import Callable
from functools import cache
from typing import Any, Final, NamedTuple

import xcffib
import xcffib.composite
import xcffib.damage
import xcffib.shm
import xcffib.xfixes
import xcffib.xproto

from surehand import limits
from surehand.adapters.x11 import png
from surehand.adapters.x11.connection import Vanished, XServer
from surehand.adapters.x11.windows import WindowInfo
from surehand.errors import CaptureUnavailable

_ZPIXMAP: Final = xcffib.xproto.ImageFormat.ZPixmap
_ALL_PLANES: Final = 0xFFFFFFFF
_DESCRIPTORS_SINCE: Final = (1, 2)
_IPC_PRIVATE: Final = 0
_IPC_RMID: Final = 0
_CREATE_OWNER_ONLY: Final = 0o1600
_DEPTHS: Final = frozenset({24, 32})


class Picture(NamedTuple):
    """PNG rows and where in root pixels they begin."""

    rows: png.Rows
    x: int
    y: int
    width: int
    height: int


class _SharedMemory:
    """One piece of memory shared with the server, as a descriptor where the server takes one (MIT-SHM 1.2).

    A descriptor works from any ipc namespace; the display server of an isolated desktop has one of its own. The SysV
    segment for older servers is removed at once, so it dies with its two users.
    """

    def __init__(self, server: XServer, extension: Any, size: int, *, by_descriptor: bool) -> None:
        self._server = server
        self._extension = extension
        self.size = size
        self.segment = server.conn.generate_id()
        try:
            self._release, address = self._descriptor() if by_descriptor else self._system_v()
        except xcffib.Error as error:
            raise CaptureUnavailable(
                "the display server cannot share memory with us",
                fix="run Surehand and the display server in one IPC namespace",
                details={"reason": "memory"},
            ) from error
        self.data = (ctypes.c_char * size).from_address(address)

    def _descriptor(self) -> tuple[Callable[[], object], int]:
        libc = _libc()
        descriptor = os.memfd_create("surehand-picture", os.MFD_CLOEXEC)
        try:
            os.ftruncate(descriptor, self.size)
            address = libc.mmap(None, self.size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, descriptor, 0)
            if address == ctypes.c_void_p(-1).value:
                raise _no_memory()
            connection = int(xcffib.ffi.cast("intptr_t", self._server.conn._conn))  # noqa: SLF001 - xcffib cannot send descriptors
            # libxcb closes the copy when it has sent it.
            cookie = _xcb_shm().xcb_shm_attach_fd_checked(connection, self.segment, os.dup(descriptor), 0)
        finally:
            os.close(descriptor)
        try:
            self._server.conn.request_check(cookie.sequence)
        except xcffib.Error:
            libc.munmap(address, self.size)
            raise
        return lambda: libc.munmap(address, self.size), address

    def _system_v(self) -> tuple[Callable[[], object], int]:
        libc = _libc()
        identifier = libc.shmget(_IPC_PRIVATE, self.size, _CREATE_OWNER_ONLY)
        if identifier < 0:
            raise _no_memory()
        address = libc.shmat(identifier, None, 0)
        try:
            self._extension.Attach(self.segment, identifier, False, is_checked=True).check()
        except xcffib.Error:
            libc.shmdt(address)
            raise
        finally:
            libc.shmctl(identifier, _IPC_RMID, None)
        return lambda: libc.shmdt(address), address

    def close(self) -> None:
        """Detach on both sides."""
        self._extension.Detach(self.segment)
        self._server.conn.flush()
        self._release()


class _Cookie(ctypes.Structure):
    _fields_ = (("sequence", ctypes.c_uint),)


@cache
def _xcb_shm() -> ctypes.CDLL:
    library = ctypes.CDLL("libxcb-shm.so.0")
    library.xcb_shm_attach_fd_checked.restype = _Cookie
    library.xcb_shm_attach_fd_checked.argtypes = (ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int32, ctypes.c_uint8)
    return library


@cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.shmat.restype = ctypes.c_void_p
    libc.shmat.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_int)
    libc.shmdt.argtypes = (ctypes.c_void_p,)
    libc.shmget.argtypes = (ctypes.c_int, ctypes.c_size_t, ctypes.c_int)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
    libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    return libc


def _no_memory() -> CaptureUnavailable:
    return CaptureUnavailable("no shared memory for pictures", fix="raise kernel.shmmax", details={"reason": "memory"})


class Capturer:
    """Takes pictures. Lives on its `XThread`; `handle` must see every event."""

    def __init__(self, server: XServer) -> None:
        self._server = server
        self._shm = server.extension(xcffib.shm)
        version = self._shm.QueryVersion().reply()
        self._by_descriptor = (version.major_version, version.minor_version) >= _DESCRIPTORS_SINCE
        self._memory: _SharedMemory | None = None
        self._stores: _OwnStores | None = None
        setup = server.conn.setup
        formats = {entry.depth: entry.bits_per_pixel for entry in setup.pixmap_formats}
        self._readable = frozenset(depth for depth in _DEPTHS if formats.get(depth) == 32)
        self._blue_first = setup.image_byte_order == xcffib.xproto.ImageOrder.LSBFirst

    def handle(self, event: Any) -> None:
        """Take note of an event."""
        if self._stores is not None:
            self._stores.handle(event)

    def desktop(self) -> Picture:
        """Return what the screen shows."""
        geometry = self._server.core.GetGeometry(self._server.root).reply()
        rows = self._read(self._server.root, 0, 0, geometry.width, geometry.height, geometry.depth)
        return Picture(rows, 0, 0, geometry.width, geometry.height)

    def window(self, window: WindowInfo) -> Picture:
        """Return one window's client area, covered or not."""
        if window.minimized or not window.viewable:
            raise _unavailable("minimized", "the window is minimised or hidden", "restore the window first")
        if self._stores is None:
            self._stores = _OwnStores(self._server)
        until = time.monotonic() + limits.REPAINT_MS_MAX / 1000
        try:
            while (picture := self._own_pixels(self._stores, window)) is None:
                left = until - time.monotonic()
                if left <= 0:
                    self._stores.ask_again(window)
                    raise _unavailable(
                        "unpainted", "the application has not drawn its window", "wait until the application answers"
                    )
                self._await_event(left)
        except Vanished as error:
            raise _unavailable("gone", "the window is gone", "observe again") from error
        return picture

    def _own_pixels(self, stores: _OwnStores, window: WindowInfo) -> Picture | None:
        server, core = self._server, self._server.core
        # The grab keeps the window's place, its store and what is known of it together.
        with server.grabbed():
            server.drain()
            frame = core.GetGeometry(window.frame).reply()
            client = core.GetGeometry(window.id).reply()
            place = core.TranslateCoordinates(window.id, window.frame, 0, 0).reply()
            origin = core.TranslateCoordinates(window.id, server.root, 0, 0).reply()
            # A frame smaller than its client shows only a part of it.
            left, top = max(0, -place.dst_x), max(0, -place.dst_y)
            x, y = place.dst_x + left, place.dst_y + top
            width = min(client.width, frame.width - place.dst_x) - left
            height = min(client.height, frame.height - place.dst_y) - top
            if width <= 0 or height <= 0:
                return None  # the window manager is still fitting the frame around it
            if not stores.shows_only(window, (x, y, width, height)):
                return None
            pixmap = server.conn.generate_id()
            stores.extension.NameWindowPixmap(window.frame, pixmap, is_checked=True).check()
            border = frame.border_width
            try:
                rows = self._read(pixmap, x + border, y + border, width, height, frame.depth)
            finally:
                core.FreePixmap(pixmap)
        return Picture(rows, origin.dst_x + left, origin.dst_y + top, width, height)

    def _await_event(self, seconds: float) -> None:
        self._server.conn.flush()
        event = self._server.next_event()
        if event is None:
            select.select([self._server.conn.get_file_descriptor()], [], [], seconds)
        elif self._server.handler is not None:
            self._server.handler(event)

    def raw_desktop(self) -> None:
        """Only fetch the screen's bytes: the floor that the benchmark compares with."""
        geometry = self._server.core.GetGeometry(self._server.root).reply()
        self._fetch(self._server.root, 0, 0, geometry.width, geometry.height)

    def _read(self, drawable: int, x: int, y: int, width: int, height: int, depth: int) -> png.Rows:
        if depth not in self._readable:
            raise _unavailable("format", f"pictures of depth {depth} cannot be read", "use a 24-bit display")
        data = self._fetch(drawable, x, y, width, height)
        return png.rows_from_words(data, width, height, width * 4, blue_first=self._blue_first)

    def _fetch(self, drawable: int, x: int, y: int, width: int, height: int) -> Any:
        size = width * height * 4
        if self._memory is None or self._memory.size < size:
            if self._memory is not None:
                self._memory.close()
            self._memory = _SharedMemory(self._server, self._shm, size, by_descriptor=self._by_descriptor)
        memory = self._memory
        self._shm.GetImage(drawable, x, y, width, height, _ALL_PLANES, _ZPIXMAP, memory.segment, 0).reply()
        return memory.data


class _Store:
    """What is known of the pixels of one window under the root. `painted` is a region kept by the server."""

    __slots__ = ("asked", "damage", "own", "painted", "size")

    def __init__(self, damage: int, painted: int, size: tuple[int, int, int]) -> None:
        self.damage = damage
        self.painted = painted
        self.size = size  # with its border
        self.own = False  # every pixel of the client area is the window's own
        self.asked = False  # it was asked to draw, and `painted` counts from then


class _OwnStores:
    """Has the server keep each top-level window's pixels apart, and knows which of them are its own.

    Damage also reports areas that nobody drew: when a window is mapped, moved or grows. What it reports therefore
    counts only from the moment a window was asked to draw, and not across such an event.
    """

    def __init__(self, server: XServer) -> None:
        self._server = server
        self.extension = server.extension(xcffib.composite)
        self.extension.QueryVersion(0, 4).reply()
        self._fixes = server.extension(xcffib.xfixes)
        self._fixes.QueryVersion(5, 0).reply()
        self._damage = server.extension(xcffib.damage)
        self._damage.QueryVersion(1, 1).reply()
        self._stores: dict[int, _Store] = {}
        self._frames: dict[int, int] = {}
        self._scratch = self._region()
        with server.grabbed():
            for child in server.core.QueryTree(server.root).reply().children:
                self._watch(child)
            # From here on nobody draws into anybody else's pixels. Automatic: the screen looks as before.
            self.extension.RedirectSubwindows(server.root, xcffib.composite.Redirect.Automatic)
        server.sync()

    def handle(self, event: Any) -> None:
        """Follow windows that come, go and change their stores."""
        if isinstance(event, xcffib.xproto.CreateNotifyEvent) and event.parent == self._server.root:
            self._watch(event.window)
        elif isinstance(event, xcffib.xproto.ReparentNotifyEvent):
            if event.parent == self._server.root:
                self._watch(event.window)
            else:
                self._drop(event.window)
        elif isinstance(event, xcffib.xproto.DestroyNotifyEvent):
            self._drop(event.window)
        elif isinstance(event, xcffib.xproto.MapNotifyEvent | xcffib.xproto.UnmapNotifyEvent):
            self._doubt(event.window, None)
        elif isinstance(event, xcffib.xproto.ConfigureNotifyEvent):
            self._doubt(event.window, (event.width, event.height, event.border_width))

    def shows_only(self, window: WindowInfo, place: tuple[int, int, int, int]) -> bool:
        """Return whether `place` in the frame holds only the window's own drawing; ask it to draw where not.

        Called with the server grabbed and all events handled, so that nothing changes in between.
        """
        store = self._stores.get(window.frame)
        if store is None:
            raise _unavailable("gone", "the window is gone", "observe again")
        self._frames[window.id] = window.frame
        if store.own:
            return True
        self._damage.Subtract(store.damage, xcffib.NONE, self._scratch)
        if store.asked:
            self._fixes.UnionRegion(store.painted, self._scratch, store.painted)
        self._fixes.SetRegion(self._scratch, 1, [xcffib.xproto.RECTANGLE.synthetic(*place)])
        self._fixes.SubtractRegion(self._scratch, store.painted, self._scratch)
        store.own = not self._fixes.FetchRegion(self._scratch).reply().rectangles
        if not store.own and not store.asked:
            store.asked = True
            self._ask_to_paint(window.id)
        return store.own

    def ask_again(self, window: WindowInfo) -> None:
        """Have the next picture ask the window anew: it let this request pass."""
        if (store := self._stores.get(window.frame)) is not None:
            store.asked = False

    def _watch(self, window: int) -> None:
        if window in self._stores:
            return
        try:
            attributes = self._server.core.GetWindowAttributes(window).reply()
            if attributes._class != xcffib.xproto.WindowClass.InputOutput:  # noqa: SLF001 - the field's name
                return  # such a window has no pixels
            geometry = self._server.core.GetGeometry(window).reply()
            damage, painted = self._server.conn.generate_id(), self._region()
            self._damage.Create(damage, window, xcffib.damage.ReportLevel.NonEmpty, is_checked=True).check()
        except Vanished:
            return
        self._stores[window] = _Store(damage, painted, (geometry.width, geometry.height, geometry.border_width))

    def _drop(self, window: int) -> None:
        self._frames.pop(window, None)
        store = self._stores.pop(window, None)
        if store is not None:
            self._damage.Destroy(store.damage)
            self._fixes.DestroyRegion(store.painted)

    def _doubt(self, window: int, size: tuple[int, int, int] | None) -> None:
        """Take back what is known: of drawing when a window moved, of everything when its store changed."""
        store = self._stores.get(window)
        frame = self._stores.get(self._frames.get(window, 0))
        if store is not None and store.size == size:
            if store.asked:
                store.asked = False
                self._fixes.SetRegion(store.painted, 0, [])
        elif changed := store or frame:
            changed.own = changed.asked = False
            self._fixes.SetRegion(changed.painted, 0, [])
            if store is not None:
                store.size = size or store.size

    def _ask_to_paint(self, window: int) -> None:
        """Have a window and all that lies in it told that it must draw itself."""
        core = self._server.core
        pending = [window]
        for _ in range(limits.X_TREE_WINDOWS_MAX):
            if not pending:
                return
            current = pending.pop()
            try:
                core.ClearArea(True, current, 0, 0, 0, 0)
                pending.extend(core.QueryTree(current).reply().children)
            except Vanished:
                continue

    def _region(self) -> int:
        region = self._server.conn.generate_id()
        self._fixes.CreateRegion(region, 0, [])
        return int(region)


def _unavailable(reason: str, message: str, fix: str) -> CaptureUnavailable:
    return CaptureUnavailable(message, fix=fix, details={"reason": reason})
