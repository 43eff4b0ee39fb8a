"""Connections to one X server, each owned by a thread of its own.

Promises: nothing here blocks the event loop; a server that is gone or does not answer within
`limits.X_CALL_MS_MAX` gives `Unavailable` with the fix, for this call and every later one; the display and its
authority file are always named by the caller, so no environment variable can lead input to another display (spec
§13); foreign exceptions are translated here and nowhere else in the adapter.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import queue
import select
import socket
import struct
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import xcffib
import xcffib.composite
import xcffib.damage
import xcffib.randr
import xcffib.record
import xcffib.res
import xcffib.shm
import xcffib.xfixes
import xcffib.xinput
import xcffib.xkb
import xcffib.xproto
import xcffib.xtest
from xcffib.ffi import ffi

from surehand import limits
from surehand.errors import InternalError, SurehandError, Unavailable

T = TypeVar("T")
EventHandler = Callable[[Any], None]

FAMILY_LOCAL: Final = 256
FAMILY_WILD: Final = 65_535
_COOKIE: Final = b"MIT-MAGIC-COOKIE-1"
_CLIENT_MESSAGE: Final = 33

#: What a request about a vanished window, pixmap or client raises.
Vanished: Final = (
    xcffib.xproto.WindowError,
    xcffib.xproto.DrawableError,
    xcffib.xproto.MatchError,
    xcffib.xproto.PixmapError,
    xcffib.xproto.ValueError,
)


class _Connection(xcffib.Connection):  # type: ignore[misc]  # xcffib ships no types
    """A connection whose cookie may hold any byte.

    The stock class splits the authority at every colon, which one random cookie in seventeen contains, and lets the
    buffers go before they are read.
    """

    def __init__(self, display: str, cookie: bytes | None) -> None:
        screen = ffi.new("int *")
        if cookie is None:
            self._conn = xcffib.lib.xcb_connect(display.encode(), screen)
        else:
            name, data = ffi.new("char[]", _COOKIE), ffi.new("char[]", cookie)
            auth = ffi.new("xcb_auth_info_t *")
            auth.name, auth.namelen, auth.data, auth.datalen = name, len(_COOKIE), data, len(cookie)
            self._conn = xcffib.lib.xcb_connect_to_display_with_auth_info(display.encode(), auth, screen)
        self.pref_screen = screen[0]
        self.invalid()
        self._init_x()


def display_number(display: str) -> int:
    """Return the number of a local display name such as `:95` or `unix:95.0`.

    Raises:
        Unavailable: for remote displays: input to another machine's screen is nobody's intention.
    """
    host, colon, rest = display.rpartition(":")
    number = rest.partition(".")[0]
    if not colon or host not in {"", "unix"} or not number.isascii() or not number.isdigit():
        raise Unavailable(f"{display!r} is not a local X display", fix="give a display such as :0")
    return int(number)


def cookie_for(number: int, data: bytes, hostname: bytes) -> bytes | None:
    """Return the MIT cookie of a local display from the bytes of an Xauthority file; None when it has none."""
    offset = 0
    wanted = str(number).encode()
    while offset + 2 <= len(data):
        (family,) = struct.unpack_from(">H", data, offset)
        offset += 2
        fields = []
        for _ in range(4):
            if offset + 2 > len(data):
                return None
            (size,) = struct.unpack_from(">H", data, offset)
            fields.append(data[offset + 2 : offset + 2 + size])
            offset += 2 + size
        address, display, name, cookie = fields
        here = family == FAMILY_WILD or (family == FAMILY_LOCAL and address == hostname)
        if here and display in {b"", wanted} and name == _COOKIE:
            return cookie
    return None


def connect(display: str, xauthority: str | None) -> xcffib.Connection:
    """Open a connection in the calling thread.

    Raises:
        Unavailable: no server, or it refuses us.
    """
    number = display_number(display)
    cookie = None
    if xauthority is not None:
        try:
            with Path(xauthority).open("rb") as file:
                data = file.read(limits.X_AUTHORITY_BYTES_MAX)
        except OSError as error:
            raise Unavailable(
                f"the authority file of display {display} cannot be read", fix="start the desktop again"
            ) from error
        cookie = cookie_for(number, data, socket.gethostname().encode())
    try:
        return _Connection(display, cookie)
    except xcffib.XcffibException as error:
        raise Unavailable(
            f"no X server answers on display {display}",
            fix="start one with `surehand desktop run`, or check DISPLAY and XAUTHORITY",
        ) from error


class XServer:
    """One connection and what every part of the adapter asks of it. Used by one thread only."""

    def __init__(self, display: str, xauthority: str | None) -> None:
        self.display = display
        self.conn = connect(display, xauthority)
        self.core = self.conn.core
        screen = self.conn.setup.roots[self.conn.pref_screen]
        self.screen = screen
        self.root: int = screen.root
        self._atoms: dict[str, int] = {}
        self.handler: EventHandler | None = None
        self._grabbed = False

    def extension(self, module: Any) -> Any:
        """Return an extension's requests.

        Raises:
            Unavailable: the server has no such extension.
        """
        if not self.core.QueryExtension(len(module.key.name), module.key.name).reply().present:
            raise Unavailable(
                f"the X server has no {module.key.name} extension", fix="use Xvfb, Xephyr or Xorg with its defaults"
            )
        return self.conn(module.key)

    def atoms(self, names: Iterable[str]) -> None:
        """Learn several atoms in one round trip."""
        wanted = [name for name in names if name not in self._atoms]
        cookies = [self.core.InternAtom(False, len(name), name) for name in wanted]
        for name, cookie in zip(wanted, cookies, strict=True):
            self._atoms[name] = cookie.reply().atom

    def atom(self, name: str) -> int:
        """Return the atom of a name."""
        if name not in self._atoms:
            self.atoms([name])
        return self._atoms[name]

    def ask_property(self, window: int, name: str) -> Any:
        """Send a property request; give the cookie to `read_property`."""
        return self.core.GetProperty(
            False, window, self.atom(name), xcffib.xproto.GetPropertyType.Any, 0, limits.X_PROPERTY_BYTES_MAX // 4
        )

    @staticmethod
    def read_property(cookie: Any) -> Any | None:
        """Return the reply of `ask_property`, or None when the window or the property is not there."""
        try:
            reply = cookie.reply()
        except Vanished:
            return None
        return reply if reply.format else None

    def numbers(self, cookie: Any) -> tuple[int, ...]:
        """Return the 32-bit numbers of a property."""
        reply = self.read_property(cookie)
        if reply is None or reply.format != 32:
            return ()
        data = reply.value.buf()
        return struct.unpack(f"={len(data) // 4}I", data[: len(data) // 4 * 4])

    def text(self, cookie: Any) -> str | None:
        """Return the text of a property; undecodable bytes are replaced, since titles are only observed data."""
        reply = self.read_property(cookie)
        if reply is None or reply.format != 8:
            return None
        latin = reply.type == xcffib.xproto.Atom.STRING
        return str(reply.value.buf().decode("latin-1" if latin else "utf-8", "replace"))

    def get_numbers(self, window: int, name: str) -> tuple[int, ...]:
        """Ask for a property and return its numbers."""
        return self.numbers(self.ask_property(window, name))

    def send_message(self, receiver: int, window: int, kind: str, data: Sequence[int], mask: int) -> None:
        """Send a client message about `window` to `receiver`; `data` is up to five 32-bit numbers."""
        numbers = [number & 0xFFFF_FFFF for number in (*data, 0, 0, 0, 0, 0)][:5]
        event = struct.pack("=BB2xII5I", _CLIENT_MESSAGE, 32, window, self.atom(kind), *numbers)
        self.core.SendEvent(False, receiver, mask, event)
        self.conn.flush()

    def sync(self) -> int:
        """Wait until the server has handled everything sent before; return the focused window."""
        return int(self.core.GetInputFocus().reply().focus)

    def drain(self) -> int:
        """Wait like `sync`, handle every event that the server sent before it answered; return the focused window."""
        focus = self.sync()
        while (event := self.next_event()) is not None:
            if self.handler is not None:
                self.handler(event)
        return focus

    def next_event(self) -> Any | None:
        """Return an event that has arrived, or None."""
        while True:
            try:
                return self.conn.poll_for_event()
            except xcffib.ConnectionException:
                raise
            except xcffib.Error:
                # The late error of an unchecked request about a window that has vanished since.
                continue

    @contextlib.contextmanager
    def grabbed(self) -> Iterator[None]:
        """Keep every other client's requests waiting; always let go, even when the block raises.

        May be nested; the outermost block lets go.
        """
        if self._grabbed:
            yield
            return
        self.core.GrabServer()
        self._grabbed = True
        try:
            yield
        finally:
            self._grabbed = False
            self.core.UngrabServer()
            self.conn.flush()


class XThread:
    """An `XServer` on a daemon thread of its own: jobs in order, events between them.

    A job may set `server.handler`, which then sees each event on the thread as soon as it comes. A daemon thread,
    because a server that never answers must not keep the process from ending.
    """

    def __init__(self, display: str, xauthority: str | None, name: str) -> None:
        self._display = display
        self._xauthority = xauthority
        self._jobs: queue.SimpleQueue[tuple[Callable[[XServer], Any], concurrent.futures.Future[Any]] | None] = (
            queue.SimpleQueue()
        )
        self._wake_read, self._wake_write = socket.socketpair()
        self._wake_read.setblocking(False)
        self._wake_write.setblocking(False)
        self._lost: SurehandError | None = None
        self._closed = False
        self._opened: concurrent.futures.Future[None] = concurrent.futures.Future()
        self._thread = threading.Thread(target=self._main, name=f"surehand-x11-{name}", daemon=True)
        self._thread.start()

    async def open(self) -> None:
        """Wait until the connection stands.

        Raises:
            Unavailable: it cannot be opened.
        """
        await self._bounded(self._opened)

    async def run(self, job: Callable[[XServer], T]) -> T:
        """Run `job` on the thread and return its result.

        Raises:
            Unavailable: the server is gone or does not answer in time. Whatever `job` raises passes.
        """
        return await self._bounded(self.submit(job))

    def start(self, job: Callable[[XServer], T]) -> asyncio.Task[T]:
        """Queue `job` now and return the task of `run`."""
        return asyncio.get_running_loop().create_task(self._bounded(self.submit(job)))

    def submit(self, job: Callable[[XServer], T]) -> concurrent.futures.Future[T]:
        """Queue `job`; the future is also safe to wait for from other threads."""
        future: concurrent.futures.Future[T] = concurrent.futures.Future()
        if self._lost is not None or self._closed:
            future.set_exception(self._lost or _gone(self._display))
            return future
        self._jobs.put((job, future))
        with contextlib.suppress(BlockingIOError, OSError):  # a full wake-up pipe wakes just as well
            self._wake_write.send(b"j")
        return future

    async def close(self) -> None:
        """Disconnect. Jobs still queued end with `Unavailable`."""
        if self._closed:
            return
        self._closed = True
        self._jobs.put(None)
        with contextlib.suppress(BlockingIOError, OSError):
            self._wake_write.send(b"q")
        await asyncio.get_running_loop().run_in_executor(None, self._thread.join, limits.X_CALL_MS_MAX / 1000)

    async def _bounded(self, future: concurrent.futures.Future[T]) -> T:
        waiting = asyncio.wrap_future(future)
        done, _ = await asyncio.wait([waiting], timeout=limits.X_CALL_MS_MAX / 1000)
        if not done:
            waiting.cancel()
            raise Unavailable(
                f"the X server on display {self._display} does not answer",
                fix="check that the display server runs; restart the desktop if it hangs",
            )
        return waiting.result()

    def _main(self) -> None:
        try:
            self._open_and_serve()
        finally:
            self._fail(_gone(self._display))
            self._wake_read.close()
            self._wake_write.close()

    def _open_and_serve(self) -> None:
        try:
            server = XServer(self._display, self._xauthority)
        except SurehandError as error:
            self._fail(error)
            self._opened.set_exception(error)
            return
        self._opened.set_result(None)
        try:
            self._serve(server)
        except xcffib.ConnectionException:
            pass  # whoever asks learns it from `_fail`
        finally:
            server.conn.disconnect()

    def _serve(self, server: XServer) -> None:
        descriptor = server.conn.get_file_descriptor()
        while True:
            while (event := server.next_event()) is not None:
                if server.handler is not None:
                    server.handler(event)
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                readable, _, _ = select.select([descriptor, self._wake_read], [], [])
                if self._wake_read in readable:
                    self._wake_read.recv(4096)
                continue
            if job is None:
                return
            self._do(server, *job)

    def _do(self, server: XServer, job: Callable[[XServer], Any], future: concurrent.futures.Future[Any]) -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            result = job(server)
        except xcffib.ConnectionException as error:
            lost = _gone(self._display)
            lost.__cause__ = error
            future.set_exception(lost)
            raise
        except SurehandError as error:
            future.set_exception(error)
        except xcffib.XcffibException as error:
            defect = InternalError(f"the X server refused a request: {type(error).__name__}", retry_safe=False)
            defect.__cause__ = error
            future.set_exception(defect)
        except BaseException as error:  # noqa: BLE001 - handed over to whoever waits for the job
            future.set_exception(error)
        else:
            future.set_result(result)

    def _fail(self, error: SurehandError) -> None:
        self._lost = self._lost or error
        while True:
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                return
            if job is not None and job[1].set_running_or_notify_cancel():
                job[1].set_exception(error)


def _gone(display: str) -> Unavailable:
    return Unavailable(
        f"the connection to display {display} is closed",
        fix="start the desktop again; `surehand doctor` says what is missing",
    )
