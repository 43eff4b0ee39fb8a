"""Whether a person touched the desktop: raw input events by the device that they come from.

Promises: input made through XTEST, ours or another program's, is never taken for the person's, nor for their stop key;
every key, button, wheel step, touch and pointer movement of any other device counts, from the moment the server saw it,
also while another program has grabbed the keyboard; devices that are plugged in later count too. Not seen, and not
claimed: programs that warp the pointer or send events to a window.

The server reports a raw event once for the device and once for its master; only the first is counted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

import xcffib
import xcffib.xinput
import xcffib.xproto

from surehand.adapters.x11.connection import XServer, XThread
from surehand.core.input.stop_key import StopKey

_RAW: Final = (
    xcffib.xinput.RawKeyPressEvent,
    xcffib.xinput.RawKeyReleaseEvent,
    xcffib.xinput.RawButtonPressEvent,
    xcffib.xinput.RawButtonReleaseEvent,
    xcffib.xinput.RawMotionEvent,
    xcffib.xinput.RawTouchBeginEvent,
    xcffib.xinput.RawTouchUpdateEvent,
    xcffib.xinput.RawTouchEndEvent,
)
_MASK: Final = (
    xcffib.xinput.XIEventMask.Hierarchy
    | xcffib.xinput.XIEventMask.RawKeyPress
    | xcffib.xinput.XIEventMask.RawKeyRelease
    | xcffib.xinput.XIEventMask.RawButtonPress
    | xcffib.xinput.XIEventMask.RawButtonRelease
    | xcffib.xinput.XIEventMask.RawMotion
    | xcffib.xinput.XIEventMask.RawTouchBegin
    | xcffib.xinput.XIEventMask.RawTouchUpdate
    | xcffib.xinput.XIEventMask.RawTouchEnd
)
_ALL_DEVICES: Final = xcffib.xinput.Device.All
_XTEST_MARK: Final = "XTEST Device"
_VERSION: Final = (2, 2)


class X11Interruptions:
    """`ports.Interruptions` for one display, on a connection and thread of its own.

    Args:
        display: Such as `:95`.
        xauthority: Path of the authority file, or None.
        stop_key: The keysyms that stop agents when they are pressed one after another; none by default.
    """

    def __init__(self, display: str, xauthority: str | None, stop_key: tuple[int, ...] = ()) -> None:
        self._thread = XThread(display, xauthority, "interruptions")
        self._sequence = 0
        self._xinput: Any = None
        self._server: XServer | None = None
        self._robots: frozenset[int] = frozenset()
        self._listeners: list[Callable[[], None]] = []
        self._stop_key = StopKey(stop_key)
        self._stop_listeners: list[Callable[[], None]] = []
        self._loop: asyncio.AbstractEventLoop | None = None

    async def open(self) -> None:
        """Connect and listen from now on.

        Raises:
            Unavailable: no X server, or one without XInput 2.
        """
        self._loop = asyncio.get_running_loop()
        await self._thread.open()
        await self._thread.run(self._start)

    async def close(self) -> None:
        """Stop listening."""
        await self._thread.close()

    def sequence(self) -> int:
        """Return a number that grows with every physical input."""
        return self._sequence

    def mark(self) -> Callable[[], bool]:
        """Return a function that is true once physical input happened after this call."""
        before = self._sequence
        return lambda: self._sequence != before

    async def settle(self) -> int:
        """Return the sequence after everything that the server has seen by now."""
        return await self._thread.run(self._drained)

    def on_input(self, listener: Callable[[], None]) -> None:
        """Have `listener` called on the event loop after physical input."""
        self._listeners.append(listener)

    def on_stop(self, listener: Callable[[], None]) -> None:
        """Have `listener` called on the event loop when the stop key was pressed."""
        self._stop_listeners.append(listener)

    def _start(self, server: XServer) -> None:
        self._server = server
        self._xinput = server.extension(xcffib.xinput)
        self._xinput.XIQueryVersion(*_VERSION).reply()
        masks = [xcffib.xinput.EventMask.synthetic(_ALL_DEVICES, 1, [_MASK])]
        self._xinput.XISelectEvents(server.root, len(masks), masks, is_checked=True).check()
        self._robots = self._find_robots()
        self._learn_keys(server)
        server.handler = self._handle

    def _drained(self, server: XServer) -> int:
        server.drain()
        return self._sequence

    def _handle(self, event: Any) -> None:
        if isinstance(event, xcffib.xinput.HierarchyEvent):
            self._robots = self._find_robots()
        elif isinstance(event, xcffib.xproto.MappingNotifyEvent) and self._server is not None:
            self._learn_keys(self._server)
        elif isinstance(event, _RAW) and event.deviceid == event.sourceid and event.sourceid not in self._robots:
            self._sequence += 1
            self._watch_for_stop(event)
            if self._listeners and self._loop is not None and not self._loop.is_closed():
                self._loop.call_soon_threadsafe(self._tell)

    def _tell(self) -> None:
        for listener in self._listeners:
            listener()

    def _watch_for_stop(self, event: Any) -> None:
        if isinstance(event, xcffib.xinput.RawKeyReleaseEvent):
            self._stop_key.released(event.detail)
        elif (
            isinstance(event, xcffib.xinput.RawKeyPressEvent)
            and self._stop_key.pressed(event.detail, event.time)
            and self._loop is not None
            and not self._loop.is_closed()
        ):
            self._loop.call_soon_threadsafe(self._tell_stop)

    def _tell_stop(self) -> None:
        for listener in self._stop_listeners:
            listener()

    def _learn_keys(self, server: XServer) -> None:
        if not self._stop_key.watched:
            return
        setup = server.conn.setup
        count = setup.max_keycode - setup.min_keycode + 1
        reply = server.core.GetKeyboardMapping(setup.min_keycode, count).reply()
        per, keysyms = reply.keysyms_per_keycode, list(reply.keysyms)
        self._stop_key.learn(
            {setup.min_keycode + index: keysyms[index * per : (index + 1) * per] for index in range(count)}
        )

    def _find_robots(self) -> frozenset[int]:
        """Return the devices that the server itself marks as XTEST's; a name proves nothing."""
        if self._server is None:
            return frozenset()
        mark = self._server.atom(_XTEST_MARK)
        found = set()
        for device in self._xinput.XIQueryDevice(_ALL_DEVICES).reply().infos:
            try:
                reply = self._xinput.XIGetProperty(device.deviceid, False, mark, 0, 0, 1).reply()
            except xcffib.Error:
                continue  # unplugged in between
            if reply.num_items:
                found.add(device.deviceid)
        return frozenset(found)
