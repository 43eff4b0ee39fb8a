"""Drives a fixture application: starts it in an isolated desktop, sends it commands, reads what it received.

The application's own log is the ground truth of at-most-once tests: an effect happened exactly when the log says so.
Commands go over a socket that the application's main loop serves, so an answered `sync` means that everything before
it was handled; while the application hangs, commands time out but its log can still be read.

Example::

    app = await FixtureApp.start(desktop, "gtk3")
    mark = app.mark()
    ...                                     # something presses "Count"
    await app.settle()                      # what the toolkit put off has run
    assert app.presses("counter", after=mark) == ["Count"]
    app.close()
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import select
import signal
import socket
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from surehand.errors import Timeout, Unavailable
from surehand.testing.desktop import IsolatedDesktop, LaunchedApp

__all__ = ["FIXTURES", "TOOLKITS", "FixtureApp", "FixtureEvent", "Toolkit"]

Toolkit = Literal["gtk3", "gtk4", "qt", "tk"]

FIXTURES: Final = Path(__file__).with_name("fixtures")
#: The toolkits that speak AT-SPI.
TOOLKITS: Final[tuple[Toolkit, ...]] = ("gtk3", "gtk4", "qt")
#: The system's Python, which has the toolkits.
PYTHON: Final = "/usr/bin/python3"

#: How long a toolkit puts off a handler after an accessibility action was acknowledged, with room, in milliseconds.
HANDLER_DELAY_MS: Final[dict[Toolkit, int]] = {"gtk3": 30, "gtk4": 320, "qt": 180, "tk": 10}

_START_S: Final = 20.0
_COMMAND_S: Final = 10.0
_DEATH_S: Final = 5.0
_POLL_S: Final = 0.004
_numbers = itertools.count(1)


class FixtureEvent(NamedTuple):
    """One line of the application's log."""

    seq: int
    event: str
    control: str
    value: Any
    t_ns: int


class FixtureApp:
    """One running fixture application. Make one with `start`."""

    def __init__(self, toolkit: Toolkit, process: LaunchedApp, title: str, log_path: Path, socket_path: Path) -> None:
        self.toolkit = toolkit
        #: Of its main window, unique in this process unless it was given.
        self.title = title
        self.process = process
        self.log_path = log_path
        self._socket_path = socket_path
        self._socket: socket.socket | None = None
        self._buffer = b""
        self._lock = threading.Lock()

    @classmethod
    async def start(
        cls,
        desktop: IsolatedDesktop,
        toolkit: Toolkit,
        *,
        sections: Sequence[str] | None = None,
        title: str | None = None,
        scroll_rows: int | None = None,
        bulk: int | None = None,
        block_ms: int | None = None,
        env: dict[str, str] | None = None,
    ) -> FixtureApp:
        """Start the application and wait until its main loop is idle.

        Args:
            desktop: Where it runs.
            toolkit: Which fixture.
            sections: The parts it shows; all when None (see `fixture_shared.SECTIONS`).
            title: Its window's title; one of its own when None.
            scroll_rows: Rows of the scrolled area.
            bulk: Number of additional buttons.
            block_ms: How long the handler of the slow button takes.
            env: Added to its environment.

        Raises:
            Unavailable: it did not come up.
        """
        number = next(_numbers)
        stem = desktop.folder / f"fixture-{os.getpid()}-{number}"
        title = title or f"Fixture {toolkit} {number}"
        log_path, socket_path = stem.with_suffix(".jsonl"), stem.with_suffix(".sock")
        argv: list[str | Path] = [PYTHON, FIXTURES / f"{toolkit}_app.py", "--log", log_path, "--socket", socket_path]
        argv += ["--title", title]
        for option, value in (("scroll-rows", scroll_rows), ("bulk", bulk), ("block-ms", block_ms)):
            if value is not None:
                argv += [f"--{option}", str(value)]
        if sections is not None:
            argv += ["--sections", ",".join(sections)]
        process = await desktop.launch(argv, binds=[FIXTURES], env={"PYTHONDONTWRITEBYTECODE": "1", **(env or {})})
        app = cls(toolkit, process, title, log_path, socket_path)
        try:
            await app.wait_for("ready", timeout_s=_START_S)
        except Timeout as error:
            process.kill()
            raise Unavailable(f"the {toolkit} fixture did not come up: {process.log_text()[-800:]}") from error
        return app

    @property
    def pid(self) -> int:
        """Its pid as the host sees it."""
        return self.process.pid

    # --- commands -------------------------------------------------------------------------------------------------

    def command(self, cmd: str, *, timeout_s: float = _COMMAND_S, **arguments: Any) -> Any:
        """Send one command and return its value; blocks.

        Raises:
            Timeout: the application did not answer in time; the connection is given up.
            Unavailable: it is gone.
            ValueError: it refused the command.
        """
        with self._lock:
            reply = self._exchange({"id": 1, "cmd": cmd, **arguments}, timeout_s)
        if not reply["ok"]:
            raise ValueError(f"{cmd}: {reply['error']}")
        return reply.get("value")

    async def run(self, cmd: str, *, timeout_s: float = _COMMAND_S, **arguments: Any) -> Any:
        """Do what `command` does without blocking the event loop."""
        return await asyncio.to_thread(lambda: self.command(cmd, timeout_s=timeout_s, **arguments))

    def sync(self) -> None:
        """Wait until its main loop is idle and the next frame is laid out."""
        self.command("sync")

    async def settle(self) -> None:
        """Wait until everything that an acknowledged action put off has run, by the application's own clock."""
        await self.run("after", ms=HANDLER_DELAY_MS[self.toolkit])

    def _exchange(self, request: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        try:
            if self._socket is None:
                self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                self._buffer = b""
                self._socket.settimeout(timeout_s)
                self._socket.connect(str(self._socket_path))
            self._socket.settimeout(timeout_s)
            self._socket.sendall(json.dumps(request).encode() + b"\n")
            while b"\n" not in self._buffer:
                data = self._socket.recv(65536)
                if not data:
                    raise ConnectionResetError
                self._buffer += data
        except TimeoutError as error:
            self._drop()
            raise Timeout(f"the {self.toolkit} fixture did not answer {request['cmd']}") from error
        except OSError as error:
            self._drop()
            raise Unavailable(f"the {self.toolkit} fixture is gone") from error
        line, _, self._buffer = self._buffer.partition(b"\n")
        reply: dict[str, Any] = json.loads(line)
        return reply

    def _drop(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    # --- what it received -----------------------------------------------------------------------------------------

    def events(self, event: str | None = None, control: str | None = None, *, after: int = 0) -> list[FixtureEvent]:
        """Return what it received after a mark, commands left out unless asked for; works while it hangs or is dead."""
        try:
            lines = self.log_path.read_bytes().split(b"\n")[:-1]
        except FileNotFoundError:
            return []
        found = [FixtureEvent(**json.loads(line)) for line in lines[after:]]
        return [
            entry
            for entry in found
            if (entry.event == event if event is not None else entry.event != "command")
            and (control is None or entry.control == control)
        ]

    def presses(self, control: str, *, after: int = 0) -> list[Any]:
        """Return what stood on a button each time it was pressed."""
        return [entry.value for entry in self.events("press", control, after=after)]

    def mark(self) -> int:
        """Return the number of its last log line, for `after`."""
        try:
            return self.log_path.read_bytes().count(b"\n")
        except FileNotFoundError:
            return 0

    async def wait_for(
        self,
        event: str,
        control: str | None = None,
        *,
        after: int = 0,
        where: Callable[[FixtureEvent], bool] = lambda _: True,
        timeout_s: float = 5.0,
    ) -> FixtureEvent:
        """Wait until its log shows an event.

        Raises:
            Timeout: it did not come.
        """
        ends_at = time.monotonic() + timeout_s
        while True:
            for entry in self.events(event, control, after=after):
                if where(entry):
                    return entry
            if time.monotonic() > ends_at or (self.process.returncode is not None and event != "ready"):
                raise Timeout(f"the {self.toolkit} fixture never logged {event} {control or ''}")
            await asyncio.sleep(_POLL_S)

    # --- violence -------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Stop it with SIGSTOP: it neither answers nor dies."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Let it run again."""
        os.kill(self.pid, signal.SIGCONT)

    def kill(self) -> None:
        """End it with SIGKILL and wait until the kernel says that it is over; blocks.

        Raises:
            Timeout: it did not die.
        """
        try:
            handle = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return
        try:
            os.kill(self.pid, signal.SIGKILL)
            if not select.select([handle], [], [], _DEATH_S)[0]:
                raise Timeout(f"the {self.toolkit} fixture did not die")
        finally:
            os.close(handle)

    def close(self) -> None:
        """End it and let go of its socket."""
        self._drop()
        if self.process.returncode is None:
            self.process.kill()
