"""Bare X servers and tiny X clients for the tests of the X11 adapter.

These tests need what an isolated desktop hides: servers without a window manager, servers that are stopped, a server
inside another one. Applications under test are real programs.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
import select
import struct
import subprocess
import tempfile
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import xcffib
import xcffib.xproto

from surehand.adapters.x11.screen import X11Screen
from surehand.model.scene import AppIdentity, Surface

WAIT_S = 15.0


class Clock:
    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000


def environment(display: str, **more: str) -> dict[str, str]:
    base = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "DISPLAY": display}
    return base | {"NO_AT_BRIDGE": "1", "GTK_A11Y": "none"} | more


class Display:
    """One X server started for a test, and the programs started on it."""

    def __init__(self, name: str, server: subprocess.Popen[bytes]) -> None:
        self.name = name
        self.server = server
        self._programs: list[subprocess.Popen[bytes]] = []
        # A home of its own: programs remember sizes and states between two starts.
        self._home = tempfile.TemporaryDirectory(prefix="surehand-test-", ignore_cleanup_errors=True)

    def launch(self, *argv: str, **options: Any) -> subprocess.Popen[bytes]:
        more = options.pop("env", {})
        options.setdefault("stdout", subprocess.DEVNULL)
        options.setdefault("stderr", subprocess.DEVNULL)
        more = {"HOME": self._home.name, "XDG_RUNTIME_DIR": self._home.name, "GSETTINGS_BACKEND": "memory"} | more
        program = subprocess.Popen(argv, env=environment(self.name, **more), **options)
        self._programs.append(program)
        return program

    def run(self, *argv: str) -> str:
        return subprocess.run(
            argv, env=environment(self.name), check=True, capture_output=True, text=True, timeout=WAIT_S
        ).stdout

    def close(self) -> None:
        for program in reversed(self._programs):
            end(program)
        end(self.server)
        self._home.cleanup()


def end(program: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(program.pid, 18)  # SIGCONT: a stopped program cannot end
    program.terminate()
    try:
        program.wait(5)
    except subprocess.TimeoutExpired:
        program.kill()
        program.wait(5)


@contextlib.contextmanager
def display(
    *, manager: bool = True, size: str = "1280x800x24", outer: Display | None = None, auth: Path | None = None
) -> Iterator[Display]:
    """Start Xvfb, or Xephyr inside `outer`, on a number that the server picks; with a window manager or without."""
    read, write = os.pipe()
    if outer is None:
        argv = ["Xvfb", "-displayfd", str(write), "-screen", "0", size, "-nolisten", "tcp", "-noreset"]
        env = environment("")
    else:
        argv = ["Xephyr", "-displayfd", str(write), "-screen", size.rpartition("x")[0], "-nolisten", "tcp", "-noreset"]
        env = environment(outer.name)
    argv += ["-auth", str(auth)] if auth is not None else []
    server = subprocess.Popen(argv, env=env, pass_fds=[write], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        ready, _, _ = select.select([pipe], [], [], WAIT_S)
        number = pipe.readline().decode().strip() if ready else ""
    if not number:
        end(server)
        raise RuntimeError("the X server did not start")
    made = Display(f":{number}", server)
    try:
        if manager:
            # openbox loses a window that asks to be mapped before its start is over, and says so only this way.
            made.launch("openbox", "--sm-disable", "--startup", "xprop -root -f _STARTED 8c -set _STARTED 1")
            until(lambda: _manager_is_there(made.name), "the window manager")
        yield made
    finally:
        made.close()


def _manager_is_there(name: str) -> bool:
    conn = xcffib.connect(name)
    try:
        atom = conn.core.InternAtom(False, 8, "_STARTED").reply().atom
        root = conn.setup.roots[0].root
        return conn.core.GetProperty(False, root, atom, 0, 0, 1).reply().value_len == 1
    finally:
        conn.disconnect()


def until(condition: Callable[[], Any], what: str, seconds: float = WAIT_S) -> Any:
    """Wait for a condition of another process, with a bound."""
    end_at = time.monotonic() + seconds
    pause = threading.Event()
    while time.monotonic() < end_at:
        if result := condition():
            return result
        pause.wait(0.01)
    raise AssertionError(f"no {what} within {seconds} s")


async def until_async(condition: Callable[[], Any], what: str, seconds: float = WAIT_S) -> Any:
    """Do the same between turns of the loop; the condition may be a coroutine function."""
    end_at = time.monotonic() + seconds
    while time.monotonic() < end_at:
        result = condition()
        if inspect.isawaitable(result):
            result = await result
        if result:
            return result
        await asyncio.sleep(0.01)
    raise AssertionError(f"no {what} within {seconds} s")


async def window(screen: X11Screen, title: str) -> dict[str, Any]:
    """Wait for a window with this title and return its stacking entry."""

    async def find() -> dict[str, Any] | None:
        return next((entry for entry in await screen.stacking() if title in entry["title"] and entry["viewable"]), None)

    return await until_async(find, f"window {title!r}")


def surface(entry: dict[str, Any], **changes: Any) -> Surface:
    """Return the surface record of a stacking entry."""
    fields: dict[str, Any] = {
        "surface_id": f"x11-{entry['id']}",
        "desktop": "test",
        "app": AppIdentity(key="exe:/test", pid=entry["pid"], process_generation="g", uid=0, executable="/test"),
        "backend": "x11",
        "toolkit": "",
        "title": entry["title"],
        "role": "window",
        "place": "window",
        "bounds": tuple(entry["bounds"]),
        "native_window": entry["id"],
    }
    return Surface(**(fields | changes))


_RECEIVED = {
    xcffib.xproto.ButtonPressEvent: "press",
    xcffib.xproto.ButtonReleaseEvent: "release",
    xcffib.xproto.MotionNotifyEvent: "motion",
    xcffib.xproto.KeyPressEvent: "key down",
    xcffib.xproto.KeyReleaseEvent: "key up",
}


class Painter:
    """An X client with one window of one colour that it draws itself, and only when asked (background None)."""

    def __init__(
        self,
        name: str,
        title: str,
        place: tuple[int, int, int, int],
        colour: int,
        *,
        popup: bool = False,
        draws: bool = True,
    ) -> None:
        self.conn = xcffib.connect(name)
        self.colour = colour
        self.place = place
        self.draws = draws
        self.marks = 0
        screen = self.conn.setup.roots[0]
        mask = xcffib.xproto.EventMask.Exposure | xcffib.xproto.EventMask.ButtonPress
        mask |= xcffib.xproto.EventMask.ButtonRelease | xcffib.xproto.EventMask.PointerMotion
        mask |= xcffib.xproto.EventMask.KeyPress | xcffib.xproto.EventMask.KeyRelease
        self.id = self.conn.generate_id()
        self.received: list[tuple[str, int, int, int, int]] = []
        values = [1, mask] if popup else [mask]
        cw = xcffib.xproto.CW.EventMask | (xcffib.xproto.CW.OverrideRedirect if popup else 0)
        core = self.conn.core
        core.CreateWindow(screen.root_depth, self.id, screen.root, *place, 0, 1, screen.root_visual, cw, values)
        atom = core.InternAtom(False, 12, "_NET_WM_NAME").reply().atom
        utf8 = core.InternAtom(False, 11, "UTF8_STRING").reply().atom
        core.ChangeProperty(0, self.id, atom, utf8, 8, len(title.encode()), title.encode())
        hints = [1 | 2 | 4 | 8, *place, *([0] * 13)]  # user and program position and size
        core.ChangeProperty(0, self.id, 40, 41, 32, 18, hints)
        self.root = screen.root
        self.answers = True
        self._protocols = core.InternAtom(False, 12, "WM_PROTOCOLS").reply().atom
        self._ping = core.InternAtom(False, 12, "_NET_WM_PING").reply().atom
        core.ChangeProperty(0, self.id, self._protocols, 4, 32, 1, [self._ping])
        self.gc = self.conn.generate_id()
        core.CreateGC(self.gc, self.id, xcffib.xproto.GC.Foreground, [colour])
        core.MapWindow(self.id)
        self.conn.flush()
        self._stop_read, self._stop_write = os.pipe()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with contextlib.suppress(xcffib.ConnectionException):  # the display ended first
            self._serve()

    def _serve(self) -> None:
        fd = self.conn.get_file_descriptor()
        while True:
            while (event := self.conn.poll_for_event()) is not None:
                if isinstance(event, xcffib.xproto.ExposeEvent) and self.draws:
                    rectangle = xcffib.xproto.RECTANGLE.synthetic(event.x, event.y, event.width, event.height)
                    self.conn.core.PolyFillRectangle(self.id, self.gc, 1, [rectangle])
                    self.conn.flush()
                elif isinstance(event, xcffib.xproto.ClientMessageEvent):
                    self._message(event)
                elif (name := _RECEIVED.get(type(event))) is not None:
                    self.received.append((name, event.detail, event.root_x, event.root_y, event.state))
            readable, _, _ = select.select([fd, self._stop_read], [], [])
            if self._stop_read in readable:
                return

    def _message(self, event: Any) -> None:
        kind, token, *_ = event.data.data32
        if kind != self._ping:
            self.marks += 1
        elif self.answers:
            data = struct.pack("=BB2xII5I", 33, 32, self.root, self._protocols, kind, token, self.id, 0, 0)
            self.conn.core.SendEvent(False, self.root, 0x180000, data)
            self.conn.flush()

    def buttons(self) -> list[tuple[str, int]]:
        """Return the buttons pressed and released so far, once everything sent has arrived."""
        self.settle()
        return [(what, detail) for what, detail, *_ in self.received if what in {"press", "release"}]

    def key_events(self) -> list[tuple[str, int]]:
        """Return the keys that went down and up so far, once everything sent has arrived."""
        self.settle()
        return [(what, detail) for what, detail, *_ in self.received if what.startswith("key")]

    def settle(self) -> None:
        """Wait until this client has read everything that the server has for it."""
        marker = self.conn.core.InternAtom(False, 7, "_MARKER").reply().atom
        event = struct.pack("=BB2xII20x", 33, 32, self.id, marker)
        count = self.marks
        self.do(lambda core: core.SendEvent(False, self.id, 0, event))
        until(lambda: self.marks > count, "marker")

    def do(self, request: Callable[[Any], None]) -> None:
        """Send requests from the painter's own connection."""
        request(self.conn.core)
        self.conn.flush()

    def close(self) -> None:
        os.write(self._stop_write, b"x")
        self._thread.join(5)
        self.conn.disconnect()
        os.close(self._stop_read)
        os.close(self._stop_write)


def decode_png(data: bytes) -> Any:
    """Return the pixels of a PNG as height × width × 3, by a reader of our own that checks every chunk."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    offset, body, header = 8, b"", None
    while offset < len(data):
        size, kind = struct.unpack_from(">I4s", data, offset)
        content = data[offset + 8 : offset + 8 + size]
        assert struct.unpack_from(">I", data, offset + 8 + size)[0] == zlib.crc32(kind + content)
        if kind == b"IHDR":
            header = struct.unpack(">IIBBBBB", content)
        elif kind == b"IDAT":
            body += content
        offset += 12 + size
    assert header is not None
    width, height, depth, colour, *_ = header
    assert (depth, colour) == (8, 2)
    rows = np.frombuffer(zlib.decompress(body), np.uint8).reshape(height, 1 + width * 3)
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape(height, width, 3)
