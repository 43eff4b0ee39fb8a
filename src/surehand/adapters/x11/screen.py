"""`ports.Screen` for an X11 desktop: windows from front to back, pictures, and where a window really stands."""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections.abc import Callable
from typing import Any, Final

from surehand.adapters.x11 import png
from surehand.adapters.x11.capture import Capturer, Picture
from surehand.adapters.x11.connection import XServer, XThread
from surehand.adapters.x11.monitors import read_monitors
from surehand.adapters.x11.windows import Snapshot, WindowInfo, WindowPlace, WindowTracker, locate, owned_by
from surehand.errors import CaptureUnavailable, Unavailable, WindowNotFound
from surehand.model.scene import Bounds, Capture, Surface
from surehand.ports import Clock

_UNSCALED: Final = 1000
_CAPTURE_ID_BYTES: Final = 12


class X11Screen:
    """Windows and pixels of one display, on one connection of its own.

    Args:
        display: Such as `:95`; never taken from the environment.
        xauthority: Path of the authority file; None for a server that needs none.
        clock: For the time of captures.
    """

    def __init__(self, display: str, xauthority: str | None, clock: Clock) -> None:
        self.display = display
        self.xauthority = xauthority
        self._clock = clock
        self._thread = XThread(display, xauthority, "screen")
        self._tracker: WindowTracker | None = None
        self._capturer: Capturer | None = None
        self._listeners: list[Callable[[], None]] = []
        self._told = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._look: _Look | None = None

    async def open(self) -> None:
        """Connect and read the windows once.

        Raises:
            Unavailable: no X server, or one without XRes or MIT-SHM.
        """
        self._loop = asyncio.get_running_loop()
        await self._thread.open()
        await self._thread.run(self._start)

    async def close(self) -> None:
        """Disconnect; windows lose the stores that were made for captures."""
        await self._thread.close()

    def on_change(self, listener: Callable[[], None]) -> None:
        """Have `listener` called on the event loop soon after windows changed; changes in between are merged."""
        self._listeners.append(listener)

    @property
    def snapshot(self) -> Snapshot:
        """The windows as last read, without waiting; `refresh` reads them anew."""
        return self._parts()[0].snapshot

    async def refresh(self) -> Snapshot:
        """Return the windows as they are now; those who ask before the thread has begun to look share one look."""
        tracker, _ = self._parts()
        if self._look is None or self._look.begun or self._look.task.done():
            self._look = _Look(self._thread, tracker)
        return await asyncio.shield(self._look.task)

    async def wait_for(self, condition: Callable[[Snapshot], bool], timeout_ms: int) -> bool:
        """Wait until the windows fulfil a condition; false at the time-out. Driven by events, never by a timer."""
        changed = asyncio.Event()
        self._listeners.append(changed.set)
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                while not condition(await self.refresh()):
                    await changed.wait()
                    changed.clear()
        except TimeoutError:
            return False
        finally:
            self._listeners.remove(changed.set)
        return True

    async def changed(self, timeout_ms: int) -> bool:
        """Wait until any window came, went, moved or got the focus; false at the time-out."""
        changed = asyncio.Event()
        self._listeners.append(changed.set)
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await changed.wait()
        except TimeoutError:
            return False
        finally:
            self._listeners.remove(changed.set)
        return True

    async def stacking(self) -> tuple[dict[str, Any], ...]:
        """Return managed windows from front to back.

        Each is `{id, pid, title, bounds, minimized, focused, active, frame, frame_extents, content, viewable, wm_class,
        claimed_pid}`; `pid` is proven (None when the client is not local), `title`, `wm_class` and `claimed_pid` are
        what the application says; `bounds` is the client area in root pixels.
        """
        return tuple(_as_value(window) for window in (await self.refresh()).windows)

    async def popups(self) -> tuple[dict[str, Any], ...]:
        """Return viewable windows that no window manager manages, from back to front: `{id, pid, bounds}`.

        The frames of managed windows and what the window manager draws for itself are none.
        """
        tracker, _ = self._parts()
        return await self._thread.run(lambda _: tracker.popups())

    async def monitors(self) -> tuple[dict[str, Any], ...]:
        """Return the monitors as the server tells them now; without RandR the whole screen is one."""
        return await self._thread.run(read_monitors)

    async def window_origin(
        self, pid: int, title: str | None = None, size: tuple[int, int] | None = None
    ) -> WindowPlace | None:
        """Return the real place of the one window of `pid` with this title and size; None where not certain.

        `x, y` is the root pixel that GTK 4 counts its window-relative extents from. `scale_milli` says how many device
        pixels a unit of `size` has (× 1000), None when no whole scale fits.
        """
        return locate(await self.refresh(), pid, title, size)

    async def window_of(self, surface: Surface) -> WindowInfo:
        """Return the X window of a surface as it is now.

        Raises:
            WindowNotFound: it is gone, belongs to another process, or cannot be told from another.
        """
        tracker, _ = self._parts()
        return await self._thread.run(lambda _: find_window(tracker, surface))

    async def place(self, surface: Surface) -> Bounds | None:
        """Return where a window's client area stands now; None when the window is gone or cannot be told apart."""
        try:
            return (await self.window_of(surface)).bounds
        except WindowNotFound:
            return None

    async def states(self, surface: Surface) -> frozenset[str] | None:
        """Return which of `active`, `iconified` and `modal` a window is; None when it is not certain."""
        try:
            window = await self.window_of(surface)
        except WindowNotFound:
            return None
        facts = {"active": window.active or window.focused, "iconified": window.minimized, "modal": window.modal}
        return frozenset(name for name, holds in facts.items() if holds)

    def modal_before(self, surface: Surface) -> str | None:
        """Return the title of a modal window of the same process in front of this one, as of the last look.

        None where there is none, and where the window cannot be told from another.
        """
        return modal_before(self.snapshot, surface)

    async def capture(self, surface: Surface | None) -> tuple[Capture, bytes]:
        """Return a picture: one window's own pixels even when covered, or with None the desktop.

        Raises:
            CaptureUnavailable: `details["reason"]` is minimized, gone, unpainted, memory or format.
        """
        tracker, capturer = self._parts()

        def take(_: XServer) -> Picture:
            if surface is None:
                return capturer.desktop()
            try:
                window = find_window(tracker, surface)
            except WindowNotFound as error:
                raise CaptureUnavailable(
                    "the window is gone", fix="observe again", details={"reason": "gone"}
                ) from error
            return capturer.window(window)

        picture = await self._thread.run(take)
        taken_at_ms = self._clock.monotonic_ms()
        data = await asyncio.get_running_loop().run_in_executor(None, png.encode, picture.rows)
        record = Capture(
            capture_id=secrets.token_hex(_CAPTURE_ID_BYTES),
            surface_id=None if surface is None else surface.surface_id,
            origin_x=picture.x,
            origin_y=picture.y,
            width=picture.width,
            height=picture.height,
            scale_milli=_UNSCALED,
            taken_at_ms=taken_at_ms,
        )
        return record, data

    def _start(self, server: XServer) -> None:
        tracker, capturer = WindowTracker(server, self._tell), Capturer(server)

        def handle(event: Any) -> None:
            tracker.handle(event)
            capturer.handle(event)

        server.handler = handle
        tracker.refresh()
        self._tracker, self._capturer = tracker, capturer

    def _parts(self) -> tuple[WindowTracker, Capturer]:
        if self._tracker is None or self._capturer is None:
            raise Unavailable("the screen is not open", fix="await open() first")
        return self._tracker, self._capturer

    def _tell(self) -> None:
        # On the X thread. One call in flight is enough for any number of changes.
        if self._listeners and self._loop is not None and not self._told.is_set() and not self._loop.is_closed():
            self._told.set()
            self._loop.call_soon_threadsafe(self._tell_listeners)

    def _tell_listeners(self) -> None:
        self._told.clear()
        for listener in self._listeners:
            listener()


class _Look:
    """One refresh on the thread, and whether it has begun: whoever asks later needs another one."""

    def __init__(self, thread: XThread, tracker: WindowTracker) -> None:
        self._tracker = tracker
        self.begun = False
        self.task = thread.start(self._run)

    def _run(self, _: XServer) -> Snapshot:
        self.begun = True
        return self._tracker.refresh()


def find_window(tracker: WindowTracker, surface: Surface) -> WindowInfo:
    """Return a surface's window, by id where known, else by process, title and size.

    Raises:
        WindowNotFound: see `X11Screen.window_of`.
    """
    window: WindowInfo | None = None
    if surface.native_window is not None:
        window = tracker.window(surface.native_window)
    else:
        size = None if surface.bounds is None else (surface.bounds[2], surface.bounds[3])
        place = locate(tracker.refresh(), surface.app.pid, surface.title, size)
        if place is not None:
            window = tracker.window(place.window)
    if window is None or not owned_by(window, surface.app.pid):
        raise WindowNotFound("the window is gone or is another application's now", fix="observe again")
    return window


def modal_before(snapshot: Snapshot, surface: Surface) -> str | None:
    """Return the title of the modal window that keeps a person from using a surface; see `X11Screen.modal_before`."""
    own = surface.native_window
    if own is None:
        size = None if surface.bounds is None else (surface.bounds[2], surface.bounds[3])
        place = locate(snapshot, surface.app.pid, surface.title, size)
        own = None if place is None else place.window
    found = None
    for window in snapshot.windows:  # front to back
        if window.id == own:
            # A modal window is used by who sees it; one that is not waits for every modal one, wherever that stands.
            return found if window.modal else found or _modal_of(snapshot, surface.app.pid, window.id)
        if found is None and _blocks(window, surface.app.pid):
            found = window.title
    return None


def _modal_of(snapshot: Snapshot, pid: int, own: int) -> str | None:
    return next((one.title for one in snapshot.windows if one.id != own and _blocks(one, pid)), None)


def _blocks(window: WindowInfo, pid: int) -> bool:
    return window.modal and window.pid == pid and window.viewable and not window.minimized


def _as_value(window: WindowInfo) -> dict[str, Any]:
    return {
        "id": window.id,
        "pid": window.pid,
        "title": window.title,
        "bounds": window.bounds,
        "minimized": window.minimized,
        "focused": window.focused,
        "active": window.active,
        "viewable": window.viewable,
        "frame": window.frame,
        "frame_extents": window.frame_extents,
        "content": window.content,
        "wm_class": window.wm_class,
        "claimed_pid": window.claimed_pid,
    }
