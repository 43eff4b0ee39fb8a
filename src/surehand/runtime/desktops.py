"""Isolated desktops: a display, buses and a home of their own, for programs that an agent may work on (spec §13).

`IsolatedDesktop.start` makes one, `launch` runs programs in it, `close` removes every trace. Promises:
- Nothing in a desktop comes from the owner's environment, and its programs see no host home, process, socket or
  network (`isolation == "isolated"`); where that cannot be kept it is said (`"display_only"`, `isolation_reason`).
- Everything dies with it: on close, on an exception, and when its owner is killed.
- Not bound to an event loop: start it in one, use it from another.
Another process of the same user finds it with `find_desktop` and may start programs through `IsolatedDesktop.attach`.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import re
import secrets
import shutil
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

from surehand import limits
from surehand.errors import AppNotFound, InvalidRequest, Unavailable
from surehand.runtime import _desktop_folder as folders
from surehand.runtime import _desktop_records as records
from surehand.runtime import _desktop_sandbox as sandboxes
from surehand.runtime._desktop_bringup import bring_up
from surehand.runtime._desktop_client import Process, SupervisorClient, settled
from surehand.runtime._desktop_doctor import Fact, doctor_facts
from surehand.runtime._desktop_programs import Isolation, Program, Programs, Started, required, tail, viewer_of
from surehand.runtime._desktop_records import DesktopRecord, find_desktop, list_desktops

__all__ = ["DesktopRecord", "Fact", "IsolatedDesktop", "LaunchedApp", "doctor_facts", "find_desktop", "list_desktops"]

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]*\Z")
#: What `--desktop` takes besides names.
_WISHES: Final = frozenset({"isolated", "current"})
#: Numbers the logs of this process's programs: two who met one desktop must not write into the same.
_LAUNCHES: Final = itertools.count(1)
_NO_SCOPE: Final = "this kernel cannot keep programs with network from the host's abstract sockets (Linux 6.12 can)"


class LaunchedApp:
    """One program in a desktop."""

    def __init__(self, started: Started, name: str) -> None:
        self._process = started.process
        self.name = name
        self.log_path = started.log_path

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

    async def check_start(self) -> None:
        """Wait a moment whether it ends at once. Status 0 is well: it handed over to one that runs.

        Raises:
            Unavailable: it ended with another status; quotes the end of what it printed.
        """
        try:
            code = await self.wait(limits.DESKTOP_LAUNCH_SURE_MS / 1000)
        except TimeoutError:
            return
        if code != 0:
            raise Unavailable(
                f"{self.name} ended at once with status {code}",
                details={"exit_code": code},
                observed={"log": tail(self.log_path)},
                fix="a file of yours is in a desktop only where it was started with --bind or --bind-writable",
                retry_safe=False,  # it ran
            )

    async def terminate(self) -> int:
        """Ask it to end, kill it and all it started when it does not in time; returns its exit status."""
        if self.returncode is None:
            with contextlib.suppress(Unavailable):
                self._process.signal(signal.SIGTERM)
            try:
                return await self.wait(limits.DESKTOP_TERMINATE_MS / 1000)
            except TimeoutError:
                self.kill()
        return await self.wait(limits.DESKTOP_END_MS_MAX / 1000)

    def kill(self) -> None:
        """End it and, where it is confined, everything it started."""
        if self.returncode is None:
            with contextlib.suppress(Unavailable):
                self._process.kill()

    def log_text(self) -> str:
        """Return what it printed."""
        return self.log_path.read_text(errors="replace")


class _Facts(NamedTuple):
    """What a desktop is, fixed at its start."""

    name: str
    geometry: tuple[int, int]
    display: int
    a11y_bus_address: str
    isolation_reason: str | None
    network: bool
    view: bool
    binds: tuple[Path, ...]
    writable: tuple[Path, ...]


class IsolatedDesktop:
    """A running desktop. Make one with `start`, or meet one with `attach`; an async context manager.

    Attributes:
        name: Its name among this user's desktops.
        display: Such as `:91`.
        xauthority: Path of the X cookie file.
        cookie: The X cookie itself, for clients that take one.
        session_bus_address: The session bus, the same inside and outside.
        a11y_bus_address: The accessibility bus.
        folder: Its own folder, at the same path inside and outside; removed with it.
        isolation: `isolated` or `display_only`.
        isolation_reason: Why it is only `display_only`, else None.
        geometry: Width and height in pixels.
        network: Whether its programs may use the host's network.
    """

    def __init__(self, programs: Programs, facts: _Facts) -> None:
        layout = programs.layout
        self._programs = programs
        self._binds, self._writable = facts.binds, facts.writable
        self._is_closed = False
        self.name = facts.name
        self.geometry = facts.geometry
        self.display = f":{facts.display}"
        self.folder = layout.folder
        self.xauthority = str(layout.xauthority)
        self.cookie = layout.cookie
        self.session_bus_address = layout.session_bus_address
        self.a11y_bus_address = facts.a11y_bus_address
        self.isolation: Isolation = programs.isolation
        self.isolation_reason = facts.isolation_reason
        self.network = facts.network

    # --- life -------------------------------------------------------------------------------------------------

    @classmethod
    async def start(  # noqa: PLR0913 - all by name, and each of another kind
        cls,
        *,
        geometry: tuple[int, int] = (limits.DESKTOP_WIDTH_DEFAULT, limits.DESKTOP_HEIGHT_DEFAULT),
        sandbox: bool = True,
        view: bool = False,
        view_environment: Mapping[str, str] | None = None,
        name: str | None = None,
        network: bool = False,
        extra_binds: Sequence[Path | str] = (),
        extra_writable: Sequence[Path | str] = (),
        timeout_ms: int = limits.DESKTOP_START_MS_MAX,
    ) -> Self:
        """Start a desktop and wait until display, window manager, buses and accessibility answer.

        Args:
            geometry: Width and height in pixels.
            sandbox: Confine its programs with bubblewrap where that works.
            view: Show it in a window of the display that `view_environment` names (DISPLAY, XAUTHORITY).
            view_environment: The environment of the person who looks on; nothing else is taken from it.
            name: Its name; made up when None.
            network: Its programs may use the host's network, never the host's abstract sockets.
            extra_binds: Paths that its programs may read besides the system.
            extra_writable: Paths outside its folder that they may write.
            timeout_ms: How long all of it may take.

        Raises:
            InvalidRequest: name, geometry or binds out of bounds.
            Conflict: a desktop of that name runs already.
            Unavailable: something is missing or did not come up; names the part, the fix and the end of its log.
        """
        _check_geometry(geometry)
        name = _checked_name(name)
        binds, writable = _paths(extra_binds), _paths(extra_writable)
        sandboxes.check_paths((*binds, *writable), records.folders_folder() / name)
        viewer = viewer_of(view_environment or {}) if view else None
        for program in ("Xephyr" if view else "Xvfb", "openbox", "dbus-daemon"):
            required(program)
        reason = await asyncio.to_thread(_isolation_problem, sandbox=sandbox, network=network)
        programs, record_path = _supervised(name, "isolated" if reason is None else "display_only")
        try:
            running = await bring_up(programs, name=name, geometry=geometry, viewer=viewer, timeout_ms=timeout_ms)
            facts = _Facts(
                name, geometry, running.display, running.a11y_bus_address, reason, network, view, binds, writable
            )
            await asyncio.to_thread(records.write_record, record_path, _record(programs, facts))
        except BaseException:
            await asyncio.shield(asyncio.to_thread(programs.client.close))
            raise
        return cls(programs, facts)

    @classmethod
    async def attach(cls, record: DesktopRecord) -> Self:
        """Connect to a desktop that another process owns. Closing it then only disconnects.

        Raises:
            Unavailable: it has ended.
        """
        client = SupervisorClient.attach(record.control)
        try:
            await settled(client.ready, limits.DESKTOP_START_MS_MAX / 1000)
            layout = await asyncio.to_thread(folders.read, Path(record.folder))
        except (OSError, TimeoutError) as error:
            client.close()
            raise Unavailable(f"the desktop {record.name!r} has ended", fix="start a new one") from error
        isolation: Isolation = "isolated" if record.isolation == "isolated" else "display_only"
        facts = _Facts(
            name=record.name,
            geometry=record.geometry,
            display=int(record.display[1:]),
            a11y_bus_address=record.a11y_bus_address,
            isolation_reason=record.isolation_reason,
            network=record.network,
            view=record.view,
            binds=_paths(record.binds),
            writable=_paths(record.writable),
        )
        return cls(Programs(client, layout, isolation), facts)

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
        if not self._is_closed:
            self._is_closed = True
            self._programs.client.close()

    # --- facts --------------------------------------------------------------------------------------------------

    @property
    def environment(self) -> dict[str, str]:
        """The whole environment of its programs, and of clients outside that must talk to it."""
        return folders.program_environment(self._programs.layout, self.display, self.a11y_bus_address)

    @property
    def is_running(self) -> bool:
        """Whether its supervisor still looks after it."""
        return not self._programs.client.lost.done()

    async def wait_closed(self) -> None:
        """Wait until it has ended, whoever ended it."""
        await settled(self._programs.client.lost)

    def gone(self) -> Unavailable:
        """Return the error that says that it has ended, and why."""
        return self._programs.client.gone()

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
        stdio: tuple[int, int, int] | None = None,
    ) -> LaunchedApp:
        """Run a program, never through a shell; returns once it runs.

        Args:
            argv: The program and its arguments; a bare name is looked up on the desktop's PATH.
            env: Added to the desktop's environment.
            cwd: Its working folder; HOME when None.
            binds: Paths it may read besides the system (its own script, say).
            writable: Paths outside the desktop's folder it may write.
            user_namespaces: It may make namespaces of its own.
            stdio: Descriptors of ours for its input, output and errors; None: none, and its log.

        Raises:
            AppNotFound: there is no such program.
            InvalidRequest: a bind is no absolute, existing path, or would hand out control of desktops.
            Unavailable: the desktop has ended, or the program ended before it ran.
        """
        words = _checked_words(argv)
        sandbox = sandboxes.Sandbox(
            folder=self.folder,
            display=int(self.display[1:]),
            network=self.network,
            binds=(*self._binds, *_paths(binds)),
            writable=(*self._writable, *_paths(writable)),
        )
        program = Program(
            name=f"{next(_LAUNCHES)}-{os.getpid()}-{Path(words[0]).name}",
            argv=words,
            env={**self.environment, **(env or {})},
            cwd=os.fspath(cwd) if cwd is not None else str(self._programs.layout.home),
            fds=dict(enumerate(stdio)) if stdio else {},
            user_namespaces=user_namespaces,
        )
        started = await asyncio.to_thread(self._programs.start, program, sandbox)
        try:
            await settled(started.process.spawned, limits.DESKTOP_LAUNCH_MS_MAX / 1000)
        except (Unavailable, TimeoutError) as error:
            _give_up(started.process)
            reason = error.message if isinstance(error, Unavailable) else "it did not run in time"
            raise Unavailable(
                f"{words[0]} did not start: {reason}",
                observed={"log": tail(started.log_path)},
                fix="read its log; name the files it needs with binds",
            ) from error
        return LaunchedApp(started, Path(words[0]).name)


# --- helpers ------------------------------------------------------------------------------------------------------


def _paths(given: Sequence[Path | str]) -> tuple[Path, ...]:
    return tuple(Path(path) for path in given)


def _isolation_problem(*, sandbox: bool, network: bool) -> str | None:
    """Return why a desktop's programs cannot be confined, or None when they can."""
    if not sandbox:
        return "the sandbox was switched off"
    if (problem := sandboxes.bubblewrap_problem()) is not None:
        return problem
    return _NO_SCOPE if network and not sandboxes.can_scope_sockets() else None


def _supervised(name: str, isolation: Isolation) -> tuple[Programs, Path]:
    """Make the folder and start the supervisor that looks after it from then on."""
    records.remove_leftovers()
    record_path = records.records_folder() / f"{name}.json"
    folder, folder_fd = records.claim_folder(name)
    try:
        layout = folders.fill(folder)
        control = records.control_socket(name)
        control.unlink(missing_ok=True)
        config = {"folder": str(folder), "record": str(record_path), "control": str(control)}
        # Not in a thread: a cancellation would leave a supervisor that nobody knows. It takes about 5 ms.
        client = SupervisorClient.start(config, folder_fd, layout.log / "supervisor.log")
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    finally:
        os.close(folder_fd)
    client.lost.add_done_callback(lambda _: records.remove_leftovers())  # nothing, unless it was killed
    return Programs(client, layout, isolation), record_path


def _record(programs: Programs, facts: _Facts) -> DesktopRecord:
    supervisor = programs.client.pid or 0
    return DesktopRecord(
        name=facts.name,
        display=f":{facts.display}",
        xauthority=str(programs.layout.xauthority),
        session_bus_address=programs.layout.session_bus_address,
        a11y_bus_address=facts.a11y_bus_address,
        folder=str(programs.layout.folder),
        isolation=programs.isolation,
        isolation_reason=facts.isolation_reason,
        geometry=facts.geometry,
        view=facts.view,
        network=facts.network,
        binds=tuple(str(bind) for bind in facts.binds),
        writable=tuple(str(bind) for bind in facts.writable),
        control=str(records.control_socket(facts.name)),
        owner_pid=os.getpid(),
        owner_generation=records.process_generation(os.getpid()) or "",
        supervisor_pid=supervisor,
        supervisor_generation=records.process_generation(supervisor) or "",
        started_at_ms=int(time.time() * 1000),
    )


def _check_geometry(geometry: tuple[int, int]) -> None:
    if not all(limits.DESKTOP_SIDE_MIN <= side <= limits.DESKTOP_SIDE_MAX for side in geometry):
        raise InvalidRequest(
            f"a desktop of {geometry[0]}x{geometry[1]} pixels is out of bounds",
            fix=f"each side {limits.DESKTOP_SIDE_MIN}..{limits.DESKTOP_SIDE_MAX}",
        )


def _checked_name(name: str | None) -> str:
    if name is None:
        return f"desk-{secrets.token_hex(4)}"
    if name in _WISHES:
        raise InvalidRequest(f"{name} stands for another desktop", fix="give it a name of its own")
    if len(name) > limits.DESKTOP_NAME_CHARS_MAX or not _NAME.match(name):
        raise InvalidRequest(
            f"{name[:64]!r} is no name for a desktop",
            fix=f"1..{limits.DESKTOP_NAME_CHARS_MAX} of a-z, 0-9 and -, beginning with a letter or digit",
        )
    return name


def _checked_words(argv: Sequence[str | Path]) -> tuple[str, ...]:
    words = [os.fspath(word) for word in argv]
    if not words or not words[0] or any("\0" in word for word in words):
        raise InvalidRequest("argv names no program", fix='pass a list of words, such as ["mousepad"]')
    path = shutil.which(words[0], path=folders.PATH) if "/" not in words[0] else words[0]
    if path is None or not os.path.isabs(path) or not os.access(path, os.X_OK):  # noqa: PTH117 - a word, not a Path
        raise AppNotFound(f"there is no program {words[0][:200]!r}", fix="install it, or give its absolute path")
    return (path, *words[1:])


def _give_up(process: Process) -> None:
    if not process.exited.done():
        with contextlib.suppress(Unavailable):
            process.kill()
