"""Isolated desktops: a display, buses and a home of their own, for programs that an agent may work on (spec §13).

`IsolatedDesktop.start` makes one, `launch` runs programs in it, `close` removes every trace. Promises:
- Nothing in a desktop comes from the owner's environment, and its programs see no host home, process, socket or
  network (`isolation == "isolated"`); where bubblewrap cannot be used that is said (`"display_only"`).
- Everything dies with it: on close, on an exception, and when its owner is killed.
- Not bound to an event loop: start it in one, use it from another.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import secrets
import shutil
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Literal, Self

from surehand import limits
from surehand.errors import AppNotFound, InvalidRequest, Unavailable
from surehand.runtime import _desktop_folder as folders
from surehand.runtime import _desktop_records as records
from surehand.runtime import _desktop_sandbox as sandboxes
from surehand.runtime._desktop_client import Command, Process, SupervisorClient, settled
from surehand.runtime._desktop_ready import NotReady, start_accessibility, wait_for_window_manager
from surehand.runtime._desktop_records import DesktopRecord, find_desktop, list_desktops

__all__ = ["DesktopRecord", "IsolatedDesktop", "LaunchedApp", "find_desktop", "list_desktops"]

Isolation = Literal["isolated", "display_only"]

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]*\Z")
_READY_FD: Final = 4
_PACKAGES: Final = {"Xvfb": "xvfb", "Xephyr": "xserver-xephyr", "openbox": "openbox", "dbus-daemon": "dbus-daemon"}


class LaunchedApp:
    """One program in a desktop."""

    def __init__(self, process: Process, name: str, log_path: Path) -> None:
        self._process = process
        self.name = name
        self.log_path = log_path

    @property
    def pid(self) -> int:
        """Its pid as the host sees it."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """Its exit status (128 + signal when confined, negative signal when not); None while it runs."""
        return self._process.returncode

    async def wait(self, timeout_s: float | None = None) -> int:
        """Wait until it ends; returns its exit status.

        Raises:
            TimeoutError: it still runs.
        """
        return int(await settled(self._process.exited, timeout_s))

    async def terminate(self) -> int:
        """Ask it to end, kill it and all it started when it does not in time; returns its exit status."""
        if self.returncode is None:
            self._process.signal(signal.SIGTERM)
            try:
                return await self.wait(limits.DESKTOP_TERMINATE_MS / 1000)
            except TimeoutError:
                self._process.kill()
        return await self.wait(limits.DESKTOP_END_MS_MAX / 1000)

    def kill(self) -> None:
        """End it and, where it is confined, everything it started."""
        if self.returncode is None:
            self._process.kill()

    def log_text(self) -> str:
        """Return what it printed."""
        return self.log_path.read_text(errors="replace")


class IsolatedDesktop:
    """A running desktop. Make one with `start`; it is an async context manager.

    Attributes:
        name: Its name among this user's desktops.
        display: Such as `:91`.
        xauthority: Path of the X cookie file.
        cookie: The X cookie itself, for clients that take one.
        session_bus_address: The session bus, the same inside and outside.
        a11y_bus_address: The accessibility bus.
        folder: Its own folder, at the same path inside and outside; removed with it.
        isolation: `isolated` or `display_only`.
        geometry: Width and height in pixels.
    """

    def __init__(
        self, client: SupervisorClient, layout: folders.Layout, *, name: str, geometry: tuple[int, int]
    ) -> None:
        self._client = client
        self._layout = layout
        self._launched = 0
        self._network = False
        self._closed = False
        self._binds: tuple[Path, ...] = ()
        self.name = name
        self.geometry = geometry
        self.folder = layout.folder
        self.xauthority = str(layout.xauthority)
        self.cookie = layout.cookie
        self.session_bus_address = layout.session_bus_address
        self.a11y_bus_address = ""
        self.display = ""
        self.isolation: Isolation = "display_only"

    # --- life -------------------------------------------------------------------------------------------------

    @classmethod
    async def start(
        cls,
        *,
        geometry: tuple[int, int] = (limits.DESKTOP_WIDTH_DEFAULT, limits.DESKTOP_HEIGHT_DEFAULT),
        sandbox: bool = True,
        name: str | None = None,
        network: bool = False,
        extra_binds: Sequence[Path | str] = (),
    ) -> Self:
        """Start a desktop and wait until display, window manager, buses and accessibility answer.

        Args:
            geometry: Width and height in pixels.
            sandbox: Confine its programs with bubblewrap where that works.
            name: Its name; made up when None.
            network: Its programs may use the host's network.
            extra_binds: Paths that its programs may read besides the system.

        Raises:
            InvalidRequest: name or geometry out of bounds.
            Conflict: a desktop of that name runs already.
            Unavailable: something is missing or did not come up; names the part, the fix and the end of its log.
        """
        _check_geometry(geometry)
        name = _checked_name(name)
        for program in ("Xvfb", "openbox", "dbus-daemon"):
            _require(program)
        records.remove_leftovers()
        folder, folder_fd = records.claim_folder(name)
        try:
            layout = folders.fill(folder)
            config = {
                "folder": str(folder),
                "record": str(records.records_folder() / f"{name}.json"),
                "control": str(records.records_folder() / f"{name}.sock"),
            }
            client = await asyncio.to_thread(SupervisorClient.start, config, folder_fd, layout.log / "supervisor.log")
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        finally:
            os.close(folder_fd)
        desktop = cls(client, layout, name=name, geometry=geometry)
        desktop._network = network
        desktop._binds = tuple(Path(path) for path in extra_binds)
        if sandbox and await asyncio.to_thread(sandboxes.bubblewrap_problem) is None:
            desktop.isolation = "isolated"
        try:
            await desktop._bring_up(Path(config["record"]), Path(config["control"]))
        except BaseException:
            await asyncio.to_thread(desktop.close_now)
            raise
        return desktop

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End every program, the display and the buses, and remove the folder. Safe to call again."""
        await asyncio.shield(asyncio.to_thread(self.close_now))

    def close_now(self) -> None:
        """Do what `close` does, blocking."""
        if not self._closed:
            self._closed = True
            self._client.close()

    # --- facts --------------------------------------------------------------------------------------------------

    @property
    def environment(self) -> dict[str, str]:
        """The whole environment of its programs, and of clients outside that must talk to it."""
        return folders.program_environment(self._layout, self.display, self.a11y_bus_address or None)

    # --- programs -----------------------------------------------------------------------------------------------

    async def launch(
        self,
        argv: Sequence[str | Path],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        binds: Sequence[Path | str] = (),
        writable: Sequence[Path | str] = (),
        user_namespaces: bool = False,
    ) -> LaunchedApp:
        """Run a program, never through a shell; returns once it runs.

        Args:
            argv: The program and its arguments; a bare name is looked up on the desktop's PATH.
            env: Added to the desktop's environment.
            cwd: Its working folder; HOME when None.
            binds: Paths it may read besides the system (its own script, say).
            writable: Paths outside the desktop's folder it may write.
            user_namespaces: It may make namespaces of its own.

        Raises:
            AppNotFound: there is no such program.
            InvalidRequest: a bind is no absolute, existing path, or would hand out control of desktops.
            Unavailable: the desktop has ended, or the program ended before it ran.
        """
        words = [os.fspath(word) for word in argv]
        if not words or any("\0" in word for word in words):
            raise InvalidRequest("argv names no program", fix='pass a list of words, such as ["mousepad"]')
        words[0] = _program_path(words[0])
        allowed = (*self._binds, *(Path(path) for path in binds))
        sandbox = sandboxes.Sandbox(
            folder=self.folder,
            display=int(self.display[1:]),
            network=self._network,
            binds=allowed,
            writable=tuple(Path(path) for path in writable),
        )
        self._launched += 1
        name = f"{self._launched}-{Path(words[0]).name}"
        process, log_path = self._spawn(
            name,
            words,
            sandbox,
            env={**self.environment, **(env or {})},
            cwd=os.fspath(cwd) if cwd is not None else str(self._layout.home),
            user_namespaces=user_namespaces,
        )
        try:
            await settled(process.spawned, limits.DESKTOP_LAUNCH_MS_MAX / 1000)
        except (Unavailable, TimeoutError) as error:
            self._give_up(process)
            raise Unavailable(
                f"{words[0]} did not start", details={"log": _tail(log_path)}, fix="see the log; is its folder bound?"
            ) from error
        return LaunchedApp(process, name, log_path)

    @staticmethod
    def _give_up(process: Process) -> None:
        if not process.exited.done():
            with contextlib.suppress(Unavailable):
                process.kill()

    def _spawn(
        self,
        name: str,
        words: Sequence[str],
        sandbox: sandboxes.Sandbox,
        *,
        env: Mapping[str, str],
        cwd: str,
        role: str = "app",
        fds: Mapping[int, int] | None = None,
        user_namespaces: bool = False,
    ) -> tuple[Process, Path]:
        confined = self.isolation == "isolated"
        argv = sandboxes.confined(words, sandbox, cwd, user_namespaces=user_namespaces) if confined else list(words)
        log_path = self._layout.log / f"{name}.log"
        with log_path.open("ab") as log:
            command = Command(
                argv=tuple(argv),
                env=env,
                cwd="/" if confined else cwd,
                role=role,
                launcher="bwrap" if confined else None,
                inner_init=confined,
                fds={1: log.fileno(), 2: log.fileno(), **(fds or {})},
            )
            return self._client.spawn(command), log_path

    # --- bringing up ----------------------------------------------------------------------------------------------

    async def _bring_up(self, record_path: Path, control: Path) -> None:
        deadline = time.monotonic() + limits.DESKTOP_START_MS_MAX / 1000
        await settled(self._client.ready, limits.DESKTOP_START_MS_MAX / 1000)
        await self._start_display(deadline)
        environment = folders.program_environment(self._layout, self.display, None)
        number = int(self.display[1:])
        parts = sandboxes.Sandbox(folder=self.folder, display=number, network=False)
        home = str(self._layout.home)
        openbox = [_require("openbox"), "--sm-disable", "--config-file", str(self._layout.etc / "openbox.xml")]
        self._spawn("openbox", openbox, parts, env=environment, cwd=home, role="part")
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(asyncio.to_thread(wait_for_window_manager, number, self.cookie, deadline))
                group.create_task(self._start_buses(parts, environment, deadline))
        except* NotReady as failures:
            first = failures.exceptions[0]
            raise self._not_ready(first if isinstance(first, NotReady) else NotReady("desktop", str(first))) from None
        supervisor = self._client.pid or 0
        record = DesktopRecord(
            name=self.name,
            display=self.display,
            xauthority=self.xauthority,
            session_bus_address=self.session_bus_address,
            a11y_bus_address=self.a11y_bus_address,
            folder=str(self.folder),
            isolation=self.isolation,
            geometry=self.geometry,
            view=False,
            network=self._network,
            control=str(control),
            owner_pid=os.getpid(),
            owner_generation=records.process_generation(os.getpid()) or "",
            supervisor_pid=supervisor,
            supervisor_generation=records.process_generation(supervisor) or "",
            started_at_ms=int(time.time() * 1000),
        )
        records.write_record(record_path, record)

    async def _start_buses(self, parts: sandboxes.Sandbox, environment: Mapping[str, str], deadline: float) -> None:
        argv = [_require("dbus-daemon"), "--nofork", "--nopidfile", "--nosyslog"]
        argv += ["--config-file", str(self._layout.etc / "bus.conf"), "--print-address", str(_READY_FD)]
        ready, told = os.pipe()
        try:
            self._spawn("dbus", argv, parts, env=environment, cwd="/", role="part", fds={_READY_FD: told})
            os.close(told)
            if not await _read_line(ready, deadline):
                raise NotReady("session bus", "it did not report its address")
        finally:
            os.close(ready)
        self.a11y_bus_address = await start_accessibility(self.session_bus_address, deadline - time.monotonic())

    async def _start_display(self, deadline: float) -> None:
        for _ in range(limits.DISPLAY_TRIES_MAX):
            number = _free_display()
            argv = [_require("Xvfb"), f":{number}", "-displayfd", str(_READY_FD)]
            argv += ["-auth", self.xauthority, "-nolisten", "tcp", "-noreset", "-dpi", "96"]
            argv += ["-screen", "0", f"{self.geometry[0]}x{self.geometry[1]}x24"]
            ready, told = os.pipe()
            log_path = self._layout.log / "display.log"
            try:
                with log_path.open("ab") as log:
                    self._client.spawn(
                        Command(
                            argv=tuple(argv),
                            env={"PATH": folders.PATH, "LANG": "C.UTF-8"},
                            cwd="/",
                            role="server",
                            display=number,
                            fds={1: log.fileno(), 2: log.fileno(), _READY_FD: told},
                        )
                    )
                os.close(told)
                if await _read_line(ready, deadline):
                    self.display = f":{number}"
                    return
            finally:
                os.close(ready)
        raise self._not_ready(NotReady("display server", "no free display number could be taken"))

    def _not_ready(self, problem: NotReady) -> Unavailable:
        logs = {"display server": "display", "window manager": "openbox"}
        tail = _tail(self._layout.log / f"{logs.get(problem.part, 'dbus')}.log")
        return Unavailable(
            f"the desktop did not start: {problem.part}: {problem.reason}",
            details={"part": problem.part, "log": tail},
            fix="surehand doctor names what is missing",
        )


# --- helpers ------------------------------------------------------------------------------------------------------


def _check_geometry(geometry: tuple[int, int]) -> None:
    if not all(limits.DESKTOP_SIDE_MIN <= side <= limits.DESKTOP_SIDE_MAX for side in geometry):
        raise InvalidRequest(
            f"a desktop of {geometry[0]}x{geometry[1]} pixels is out of bounds",
            fix=f"each side {limits.DESKTOP_SIDE_MIN}..{limits.DESKTOP_SIDE_MAX}",
        )


def _checked_name(name: str | None) -> str:
    if name is None:
        return f"desk-{secrets.token_hex(4)}"
    if len(name) > limits.DESKTOP_NAME_CHARS_MAX or not _NAME.match(name):
        raise InvalidRequest(
            f"{name[:64]!r} is no name for a desktop",
            fix=f"1..{limits.DESKTOP_NAME_CHARS_MAX} of a-z, 0-9 and -, beginning with a letter or digit",
        )
    return name


def _require(program: str) -> str:
    path = shutil.which(program, path=folders.PATH)
    if path is None:
        raise Unavailable(f"{program} is not installed", fix=f"apt install {_PACKAGES[program]}")
    return path


def _program_path(word: str) -> str:
    path = shutil.which(word, path=folders.PATH) if "/" not in word else word
    if path is None or not os.access(path, os.X_OK):
        raise AppNotFound(f"there is no program {word[:200]!r}", fix="install it, or give its absolute path")
    return path


def _free_display() -> int:
    """Return a number that nobody uses now, chosen at random so that starters seldom meet."""
    span = limits.DISPLAY_LAST - limits.DISPLAY_FIRST + 1
    for _ in range(span):
        number = limits.DISPLAY_FIRST + secrets.randbelow(span)
        taken = (f"/tmp/.X{number}-lock", f"/tmp/.X11-unix/X{number}")  # noqa: S108 - X11's own place
        if not any(os.path.lexists(path) for path in taken):
            return number
    raise Unavailable("every display number is taken")


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


async def _read_line(fd: int, deadline: float) -> bytes:
    """Read until a newline; empty when the writer is gone or the time is over."""
    loop = asyncio.get_running_loop()
    data = b""
    os.set_blocking(fd, False)
    while not data.endswith(b"\n"):
        readable: asyncio.Future[None] = loop.create_future()
        loop.add_reader(fd, _wake, readable)
        try:
            await asyncio.wait_for(readable, max(0.0, deadline - time.monotonic()))
        except TimeoutError:
            return b""
        finally:
            loop.remove_reader(fd)
        with contextlib.suppress(BlockingIOError):
            piece = os.read(fd, 4096)
            if not piece:
                return b""
            data += piece
    return data


def _tail(path: Path) -> str:
    try:
        return path.read_bytes()[-limits.DESKTOP_LOG_TAIL_BYTES :].decode(errors="replace")
    except OSError:
        return ""
