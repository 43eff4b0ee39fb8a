"""The owner's side of the supervisor: start programs, hear how they ended, end everything.

Independent of any event loop: one reader thread resolves plain futures, so a desktop started in one loop can be used
from another, or without one. It never touches a process by itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Final

import msgspec

from surehand import limits
from surehand.errors import InvalidRequest, Unavailable

_SUPERVISOR: Final = Path(__file__).with_name("_desktop_supervisor.py")
_PACKET_BYTES_MAX: Final = 192 * 1024


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """One program to start. `fds` maps numbers in the new program to ours; `launcher` is the name of the program
    that confines it, if any; `inner_init` says that the program is a child of the launcher's child; `scoped` cuts it
    off from the host's abstract sockets; `vital` names a part without which the desktop is none.
    """  # noqa: D205

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str
    role: str = "app"
    launcher: str | None = None
    inner_init: bool = False
    scoped: bool = False
    vital: str = ""
    fds: Mapping[int, int] = {}


class Process:
    """One started program: `pid` is the program itself as the host sees it, `monitor_pid` the supervisor's child."""

    def __init__(self, key: int, client: SupervisorClient) -> None:
        self._key = key
        self._client = client
        self.spawned: Future[tuple[int, int]] = Future()
        self.exited: Future[int] = Future()

    @property
    def pid(self) -> int:
        """The program's pid on the host."""
        return self.spawned.result(timeout=0)[1]

    @property
    def monitor_pid(self) -> int:
        """The pid whose end ends the program and everything it started."""
        return self.spawned.result(timeout=0)[0]

    @property
    def returncode(self) -> int | None:
        """The exit status, negative for a signal; None while it runs."""
        return self.exited.result() if self.exited.done() else None

    def signal(self, number: int, *, everything: bool = False) -> None:
        """Send a signal to the program, or with `everything` to what confines it."""
        self._client.send({"op": "signal", "id": self._key, "signal": number, "everything": everything})

    def kill(self) -> None:
        """End the program and, where it is confined, everything it started."""
        self.signal(signal.SIGKILL, everything=True)


async def settled(future: Future[Any], timeout_s: float | None = None) -> Any:
    """Wait for a plain future from any loop, without ever cancelling it for its other waiters.

    Raises:
        TimeoutError: it was not done in time.
    """
    loop = asyncio.get_running_loop()
    waiter: asyncio.Future[None] = loop.create_future()

    def wake() -> None:
        if not waiter.done():
            waiter.set_result(None)

    def done(_: Future[Any]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop that waited may be closed by now
            loop.call_soon_threadsafe(wake)

    future.add_done_callback(done)
    await asyncio.wait_for(waiter, timeout_s)
    return future.result()


class SupervisorClient:
    """Talks to one supervisor."""

    def __init__(self, sock: socket.socket, process: subprocess.Popen[bytes] | None) -> None:
        self._sock = sock
        self._process = process
        self._lock = threading.Lock()
        self._next_key = 1
        self._programs: dict[int, Process] = {}
        self._reason: str | None = None
        self.ready: Future[None] = Future()
        self.lost: Future[None] = Future()
        self._reader = threading.Thread(target=self._read, name="surehand-desktop", daemon=True)
        self._reader.start()

    @classmethod
    def start(cls, config: Mapping[str, Any], folder_fd: int, log_path: Path) -> SupervisorClient:
        """Start a supervisor of our own; it ends when we close, or die. It takes over the lock on the folder."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, log_path.open("ab") as log:
            value = json.dumps({**config, "fd": theirs.fileno(), "folder_fd": folder_fd, "owner_pid": os.getpid()})
            process = subprocess.Popen(  # noqa: S603 - our own file, our own interpreter, a built environment
                [sys.executable, "-I", "-S", str(_SUPERVISOR), value],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(theirs.fileno(), folder_fd),
                start_new_session=True,
                env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
                cwd="/",
            )
        return cls(ours, process)

    @classmethod
    def attach(cls, path: str) -> SupervisorClient:
        """Connect to the supervisor of a desktop that another process owns.

        Raises:
            Unavailable: nobody listens there.
        """
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            sock.connect(path)
        except OSError as error:
            sock.close()
            raise Unavailable(
                "the desktop does not answer any more", fix="start it again: surehand desktop run -- CMD"
            ) from error
        return cls(sock, None)

    @property
    def pid(self) -> int | None:
        """The supervisor's pid, where we started it."""
        return None if self._process is None else self._process.pid

    def send(self, value: Mapping[str, Any], fds: Sequence[int] = ()) -> None:
        """Send one request.

        Raises:
            InvalidRequest: it is longer than one packet.
            Unavailable: the supervisor is gone.
        """
        packet = json.dumps(value).encode()
        if len(packet) > _PACKET_BYTES_MAX:
            raise InvalidRequest("the command and its environment are too long", fix="pass long input through a file")
        try:
            with self._lock:
                socket.send_fds(self._sock, [packet], list(fds))
        except OSError as error:
            raise self.gone() from error

    def gone(self) -> Unavailable:
        """Return the error that says that the desktop has ended, and why as far as anybody said."""
        why = "" if self._reason is None else f": {self._reason}"
        return Unavailable(f"the desktop has ended{why}", fix="start a new one")

    def spawn(self, command: Command) -> Process:
        """Ask for a program; its `spawned` and `exited` futures tell what became of it."""
        with self._lock:
            key, self._next_key = self._next_key, self._next_key + 1
            program = self._programs[key] = Process(key, self)
        request = {
            "op": "spawn",
            "id": key,
            "argv": command.argv,
            "env": dict(command.env),
            "cwd": command.cwd,
            "role": command.role,
            "launcher": command.launcher,
            "inner_init": command.inner_init,
            "scoped": command.scoped,
            "vital": command.vital,
            "fds": list(command.fds),
        }
        self.send(request, list(command.fds.values()))
        return program

    def up(self) -> None:
        """Say that every part runs: from now on the end of a vital one ends the desktop."""
        self.send({"op": "up"})

    def close(self) -> None:
        """End the desktop (when we own it) and wait until the supervisor has removed everything."""
        if self._process is None:
            with contextlib.suppress(OSError):
                self._sock.shutdown(socket.SHUT_RDWR)
        else:
            with contextlib.suppress(Unavailable):
                self.send({"op": "close"})
            try:
                self._process.wait(timeout=limits.DESKTOP_END_MS_MAX / 1000)
            except subprocess.TimeoutExpired:
                self._process.kill()  # what it started dies with it
                self._process.wait()
        self._reader.join(timeout=limits.DESKTOP_END_MS_MAX / 1000)

    def _read(self) -> None:
        while True:
            try:
                packet = self._sock.recv(_PACKET_BYTES_MAX)
            except OSError:
                packet = b""
            if not packet:
                break
            self._hear(json.loads(packet))
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):  # `close` deals with that
                self._process.wait(timeout=limits.DESKTOP_END_MS_MAX / 1000)
        if self._reason is None:
            self._reason = self._last_sign()
        self._lose()

    def _last_sign(self) -> str:
        """Say how a supervisor went that gave no reason."""
        code = None if self._process is None else self._process.returncode
        if code is not None and code < 0:
            return f"its supervisor was ended by {signal.Signals(-code).name}"
        return "its supervisor went without a word"

    def _hear(self, message: dict[str, Any]) -> None:
        event = message["event"]
        program = self._programs.get(message.get("id", 0))
        if event == "ready":
            self.ready.set_result(None)
        elif event == "spawned" and program is not None:
            program.spawned.set_result((message["pid"], message["app_pid"]))
        elif event == "exited" and program is not None:
            del self._programs[message["id"]]
            self._ended(program, message["code"])
        elif event == "ended":
            self._reason = str(message["reason"])
        elif event == "refused" and program is not None:
            del self._programs[message["id"]]
            self._ended(program, 127, message["error"])

    @staticmethod
    def _ended(program: Process, code: int, reason: str = "it ended at once") -> None:
        if not program.spawned.done():
            program.spawned.set_exception(Unavailable(reason))
        program.exited.set_result(code)

    def _lose(self) -> None:
        self._sock.close()
        if not self.ready.done():
            self.ready.set_exception(self.gone())
        for program in list(self._programs.values()):
            self._ended(program, -signal.SIGKILL)
        self._programs.clear()
        self.lost.set_result(None)
