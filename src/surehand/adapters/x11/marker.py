"""A badge on a person's desktop while an agent acts there: who it is, and which key stops it.

Guarantees:
- It takes no click, no key and no focus: its input region is empty, and no window manager sees it.
- It is in no picture that agents get: those are of single windows, from each window's own pixels.
- It goes within a second of the last action, and with the daemon: its window belongs to a connection of its own.
- Showing it never waits: an action is neither held up nor failed by it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any, Final

import xcffib
import xcffib.shape
import xcffib.xproto

from surehand import limits
from surehand.adapters.x11.connection import XServer, XThread

_log: Final = logging.getLogger("surehand.marker")
_NAME: Final = b"Surehand"
_INK: Final = (255, 255, 255)
_PAPER: Final = (176, 0, 32)
_POINTS: Final = 15
_PADDING: Final = (14, 6)
_DEPTHS: Final = frozenset({24, 32})
_SET: Final = 0
_INPUT: Final = 2
_Z_PIXMAP: Final = 2
_UNOBSCURED: Final = 0


class X11Marker:
    """`ports.Marker` for one display.

    Args:
        display: Such as `:0`.
        xauthority: Path of the authority file, or None.
        stop_key: What to press to stop, as the operator wrote it; empty where nothing does.
    """

    def __init__(self, display: str, xauthority: str | None, stop_key: str) -> None:
        self._thread = XThread(display, xauthority, "marker")
        self._stop_key = stop_key
        self._window: int | None = None
        self._text = ""
        self._acting = 0
        self._shown = ""
        self._raised_at = 0.0
        self._hiding: asyncio.TimerHandle | None = None

    async def open(self) -> None:
        """Connect; nothing is shown yet.

        Raises:
            Unavailable: no X server, or one without the SHAPE extension: a badge that takes clicks is worse than none.
        """
        await self._thread.open()
        await self._thread.run(self._make)

    async def close(self) -> None:
        """Take it away."""
        if self._hiding is not None:
            self._hiding.cancel()
        await self._thread.close()

    def begin(self, principal: str) -> None:
        """Show that an agent of this principal acts; returns at once."""
        self._acting += 1
        if self._hiding is not None:
            self._hiding.cancel()
            self._hiding = None
        stop = f"   stop: {self._stop_key}" if self._stop_key else ""
        text = f"{principal} acts on this desktop{stop}"
        if text != self._shown:
            self._shown = text
            self._thread.submit(lambda server: self._show(server, text))

    def end(self) -> None:
        """Take it away soon, unless another action begins."""
        self._acting -= 1
        if not self._acting and self._hiding is None:
            self._hiding = asyncio.get_running_loop().call_later(limits.MARKER_IDLE_MS / 1000, self._hide)

    def _hide(self) -> None:
        self._hiding = None
        if not self._acting:
            self._shown = ""
            self._thread.submit(self._unmap)

    # --- on the thread --------------------------------------------------------------------------------------------

    def _make(self, server: XServer) -> None:
        shape = server.extension(xcffib.shape)
        screen = server.conn.setup.roots[server.conn.pref_screen]
        window = server.conn.generate_id()
        events = xcffib.xproto.EventMask.VisibilityChange
        which = xcffib.xproto.CW.OverrideRedirect | xcffib.xproto.CW.EventMask
        server.core.CreateWindow(
            screen.root_depth, window, server.root, 0, 0, 1, 1, 0, 1, screen.root_visual, which, [1, events]
        )
        for name in ("WM_NAME", "_NET_WM_NAME"):
            kind = server.atom("UTF8_STRING")
            server.core.ChangeProperty(0, window, server.atom(name), kind, 8, len(_NAME), _NAME)
        shape.Rectangles(_SET, _INPUT, 0, window, 0, 0, 0, [], is_checked=True).check()
        self._window = window
        server.handler = lambda event: self._handle(server, event)
        server.sync()

    def _show(self, server: XServer, text: str) -> None:
        window = self._window
        setup = server.conn.setup
        screen = setup.roots[server.conn.pref_screen]
        if window is None or screen.root_depth not in _DEPTHS:
            return
        width, height, pixels = _draw(text, blue_first=setup.image_byte_order == xcffib.xproto.ImageOrder.LSBFirst)
        core = server.core
        pixmap, context = server.conn.generate_id(), server.conn.generate_id()
        core.CreatePixmap(screen.root_depth, pixmap, window, width, height)
        core.CreateGC(context, pixmap, 0, [])
        core.PutImage(_Z_PIXMAP, pixmap, context, width, height, 0, 0, 0, screen.root_depth, len(pixels), pixels)
        # The server draws a background by itself: nothing here has to answer an exposure in time.
        core.ChangeWindowAttributes(window, xcffib.xproto.CW.BackPixmap, [pixmap])
        core.FreePixmap(pixmap)
        core.FreeGC(context)
        place = xcffib.xproto.ConfigWindow
        middle = max(0, (core.GetGeometry(server.root).reply().width - width) // 2)
        core.ConfigureWindow(
            window, place.X | place.Y | place.Width | place.Height | place.StackMode, [middle, 0, width, height, 0]
        )
        core.MapWindow(window)
        core.ClearArea(False, window, 0, 0, 0, 0)
        server.sync()

    def _unmap(self, server: XServer) -> None:
        if self._window is not None:
            server.core.UnmapWindow(self._window)
            server.sync()

    def _handle(self, server: XServer, event: Any) -> None:
        """Come back to the top when something was put over it, no oftener than somebody else would tire of it."""
        covered = isinstance(event, xcffib.xproto.VisibilityNotifyEvent) and event.state != _UNOBSCURED
        now = time.monotonic()
        if covered and now - self._raised_at > limits.MARKER_IDLE_MS / 1000:
            self._raised_at = now
            server.core.ConfigureWindow(event.window, xcffib.xproto.ConfigWindow.StackMode, [0])
            server.conn.flush()


def _draw(text: str, *, blue_first: bool) -> tuple[int, int, bytes]:
    """Return width, height and 32-bit pixels of the badge."""
    from PIL import Image, ImageDraw, ImageFont  # noqa: PLC0415 - only desktops of people need it

    font = ImageFont.load_default(_POINTS)
    left, top, right, bottom = font.getbbox(text)
    width, height = int(right - left) + 2 * _PADDING[0], int(bottom - top) + 2 * _PADDING[1]
    image = Image.new("RGB", (width, height), _PAPER)
    ImageDraw.Draw(image).text((_PADDING[0] - left, _PADDING[1] - top), text, fill=_INK, font=font)
    return width, height, image.tobytes("raw", "BGRX" if blue_first else "XRGB")
