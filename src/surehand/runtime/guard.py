"""The guard: a process of its own that takes input back when its owner is gone, however it went.

It holds its own X connection and reads the owner's notes (`core/input/ledger.py`) from a pipe. When the pipe ends,
SIGKILL included, it releases every key and button that is still noted, sets locked modifiers and group back, gives
lent keycodes their keysyms back, and ends. What is held longer than `limits.HOLD_MS_MAX` it releases by itself, so
that an owner that hangs holds nothing for ever.

`Guard` is the owner's side: `note` raises when there is no guard, so that nothing is pressed which nobody would
release; a guard that dies is replaced and told everything that is still held.

Run as `python -m surehand.runtime.guard --display :N` with notes on standard input.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any, Final

from surehand import limits
from surehand.core.input.ledger import (
    Held,
    Repairs,
    lending_line,
    locks_line,
    press_line,
)
from surehand.errors import InvalidRequest, Unavailable

_READY: Final = b"ready\n"
_READ_BYTES: Final = 65_536
_LINE_BYTES_MAX: Final = 4_096
_PATH: Final = "/usr/local/bin:/usr/bin:/bin"
_KEY_RELEASE: Final = 3
_BUTTON_RELEASE: Final = 5
_ALL_MODIFIERS: Final = 0xFF


class Guard:
    """The owner's handle on its guard process.

    Args:
        display: Such as `:95`.
        xauthority: Path of the authority file, or None.
    """

    def __init__(self, display: str, xauthority: str | None) -> None:
        self._display = display
        self._xauthority = xauthority
        self._lock = threading.Lock()
        self._repairs = Repairs()
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe: int | None = None
        self._death: int | None = None
        self._revival: asyncio.Task[None] | None = None
        self._closed = False

    async def start(self) -> None:
        """Start the process and wait until it stands ready.

        Raises:
            Unavailable: it cannot be started, or cannot reach the display.
        """
        process, pipe = await asyncio.to_thread(self._spawn)
        with self._lock:
            self._process, self._pipe = process, pipe
            for line in _lines_of(self._repairs):
                os.write(pipe, line)
        self._death = os.pidfd_open(process.pid)
        asyncio.get_running_loop().add_reader(self._death, self._died)

    @property
    def pid(self) -> int | None:
        """The process id, None while there is none."""
        return None if self._process is None else self._process.pid

    def note(self, line: bytes) -> None:
        """Tell the guard of a change that is about to be made, or was taken back. Safe from any thread.

        Raises:
            Unavailable: there is no guard, or it does not keep up; the change must not be made.
        """
        with self._lock:
            if self._pipe is None:
                raise Unavailable("the input guard is not running", fix="try again, or restart the daemon")
            try:
                os.write(self._pipe, line)
            except (BlockingIOError, BrokenPipeError) as error:
                raise Unavailable("the input guard does not answer", fix="try again") from error
            self._repairs.apply(line)

    async def close(self) -> None:
        """End the process; it takes back what is still noted."""
        self._closed = True
        if self._revival is not None:
            self._revival.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._revival
        process = self._let_go_of_process()
        if process is not None:
            await asyncio.to_thread(_end, process)

    def _spawn(self) -> tuple[subprocess.Popen[bytes], int]:
        environment = {"PATH": _PATH, "LC_ALL": "C.UTF-8"}
        if self._xauthority is not None:
            environment["XAUTHORITY"] = self._xauthority
        argv = [sys.executable, "-I", "-m", "surehand.runtime.guard", "--display", self._display]
        notes_read, notes_write = os.pipe()
        said_read, said_write = os.pipe()
        try:
            # A session of its own: signals to the owner's terminal or group must not reach it.
            process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
                argv, stdin=notes_read, stdout=said_write, env=environment, start_new_session=True, cwd="/"
            )
            os.close(said_write)
            said_write = -1
            ready, _, _ = select.select([said_read], [], [], limits.GUARD_START_MS_MAX / 1000)
            if not ready or os.read(said_read, len(_READY)) != _READY:
                os.close(notes_write)
                _end(process)
                raise Unavailable(
                    f"the input guard cannot work on display {self._display}",
                    fix="check that the display server runs",
                )
        except OSError as error:
            os.close(notes_write)
            raise Unavailable("the input guard cannot be started", fix="check the installation") from error
        finally:
            for descriptor in (notes_read, said_read, said_write):
                if descriptor >= 0:
                    os.close(descriptor)
        os.set_blocking(notes_write, False)
        return process, notes_write

    def _died(self) -> None:
        process = self._let_go_of_process()
        if process is not None:
            process.wait()
        if not self._closed:
            self._revival = asyncio.get_running_loop().create_task(self._revive())

    async def _revive(self) -> None:
        for attempt in range(limits.GUARD_RESTARTS_MAX):
            try:
                await self.start()
            except Unavailable:
                # Each round waits longer: a display that is gone does not come back for being asked.
                await asyncio.sleep(limits.GUARD_RESTART_PAUSE_MS / 1000 * 2**attempt)
            else:
                return

    def _let_go_of_process(self) -> subprocess.Popen[bytes] | None:
        with self._lock:
            process, self._process = self._process, None
            pipe, self._pipe = self._pipe, None
        if self._death is not None:
            asyncio.get_running_loop().remove_reader(self._death)
            os.close(self._death)
            self._death = None
        if pipe is not None:
            os.close(pipe)
        return process


def _lines_of(repairs: Repairs) -> Iterator[bytes]:
    """Yield the notes that lead to these repairs."""
    for held in repairs.held:
        yield press_line(held)
    for keycode, lending in repairs.lent.items():
        yield lending_line(keycode, lending.keysym, lending.before)
    if repairs.locks is not None:
        yield locks_line(repairs.locks)


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(limits.GUARD_START_MS_MAX / 1000)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


# --- the process --------------------------------------------------------------------------------------------------


class _Repairer:
    """Undoes on the display what was noted. Knows X, and nothing of the owner."""

    def __init__(self, display: str) -> None:
        # Here and not above: the owner imports this module too and has no use for them.
        import xcffib  # noqa: PLC0415
        import xcffib.xkb  # noqa: PLC0415
        import xcffib.xproto  # noqa: PLC0415
        import xcffib.xtest  # noqa: PLC0415

        self.lost: type[Exception] = xcffib.XcffibException
        self._conn: Any = xcffib.connect(display)
        self._root = self._conn.setup.roots[self._conn.pref_screen].root
        self._xtest = self._conn(xcffib.xtest.key)
        self._xtest.GetVersion(2, 2).reply()
        self._xkb = self._conn(xcffib.xkb.key)
        self._xkb.UseExtension(1, 0).reply()
        self._keyboard = xcffib.xkb.ID.UseCoreKbd
        self.descriptor: int = self._conn.get_file_descriptor()

    def release(self, held: Held) -> None:
        """Let one key or button go; nothing happens when it is up."""
        kind = _KEY_RELEASE if held.kind == "key" else _BUTTON_RELEASE
        self._xtest.FakeInput(kind, held.code, 0, self._root, 0, 0, 0)
        self.sync()

    def repair(self, repairs: Repairs) -> None:
        """Undo everything that is noted."""
        for held in reversed(list(repairs.held)):
            self.release(held)
        if repairs.locks is not None:
            locks = repairs.locks
            self._xkb.LatchLockState(self._keyboard, _ALL_MODIFIERS, locks.modifiers, True, locks.group, 0, False, 0)
        for keycode, lending in repairs.lent.items():
            # Somebody may have set another layout since: theirs stays.
            now = self._conn.core.GetKeyboardMapping(keycode, 1).reply().keysyms
            if lending.before and now and now[0] == lending.keysym:
                self._conn.core.ChangeKeyboardMapping(1, keycode, len(lending.before), lending.before)
        self.sync()

    def sync(self) -> None:
        """Wait until the server has done everything."""
        self._conn.core.GetInputFocus().reply()
        self.drop_events()

    def drop_events(self) -> None:
        """Read what the server sends to everybody; raises when it is gone."""
        while self._conn.poll_for_event() is not None:
            pass


def _watch(repairer: _Repairer, notes: int) -> Repairs:
    """Follow the owner's notes until they end; release what is held too long."""
    repairs = Repairs()
    since: dict[Held, float] = {}
    rest = b""
    while True:
        now = time.monotonic()
        for held in [held for held, start in since.items() if now - start >= limits.HOLD_MS_MAX / 1000]:
            repairer.release(held)
            del since[held]
        wait = min((start + limits.HOLD_MS_MAX / 1000 - now for start in since.values()), default=None)
        readable, _, _ = select.select([notes, repairer.descriptor], [], [], wait)
        if repairer.descriptor in readable:
            repairer.drop_events()
        if notes not in readable:
            continue
        data = os.read(notes, _READ_BYTES)
        if not data:
            return repairs
        *lines, rest = (rest + data).split(b"\n")
        rest = rest[-_LINE_BYTES_MAX:]
        for line in lines:
            with contextlib.suppress(InvalidRequest):  # one bad note must not cost the others
                repairs.apply(line)
        since = {held: since.get(held, now) for held in repairs.held}


def main() -> int:
    """Guard one display until the notes end."""
    parser = argparse.ArgumentParser(prog="python -m surehand.runtime.guard", description="Release held input.")
    parser.add_argument("--display", required=True)
    display = parser.parse_args().display
    # The end of the notes is the only reason to go.
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    try:
        repairer = _Repairer(display)
    except Exception as error:  # noqa: BLE001 - whatever it is, the owner must know that nobody guards
        sys.stderr.write(f"the input guard cannot use display {display}: {type(error).__name__}\n")
        return 3
    os.write(1, _READY)
    os.close(1)
    try:
        repairer.repair(_watch(repairer, 0))
    except repairer.lost:
        return 0  # a server that is gone holds nothing
    return 0


if __name__ == "__main__":
    sys.exit(main())
