"""Bringing a desktop up: display server, window manager, buses, accessibility; concurrently, on conditions.

Order: the display first, for everything else needs its number; then window manager and buses side by side. Each wait
ends by an event of the part it waits for, or with the time that is left, and then names the part and quotes its log.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import time
from typing import Final, NamedTuple

from surehand import limits
from surehand.errors import Unavailable
from surehand.runtime._desktop_client import settled
from surehand.runtime._desktop_folder import program_environment
from surehand.runtime._desktop_programs import Program, Programs, Viewer, required, tail
from surehand.runtime._desktop_ready import NotReady, start_accessibility, wait_for_window_manager
from surehand.runtime._desktop_sandbox import Sandbox

_READY_FD: Final = 4
_LOGS: Final = {"display server": "display", "keyboard layout": "keyboard", "window manager": "openbox"}
_FIXES: Final = {
    "accessibility bus": "apt install --reinstall at-spi2-core",
    "accessibility registry": "apt install --reinstall at-spi2-core",
}


class Running(NamedTuple):
    """What a desktop's clients need to know."""

    display: int
    a11y_bus_address: str


async def bring_up(
    programs: Programs, *, name: str, geometry: tuple[int, int], viewer: Viewer | None, timeout_ms: int
) -> Running:
    """Start every part and wait until it answers.

    Raises:
        Unavailable: a part did not come up; names it and quotes the end of its log.
    """
    deadline = time.monotonic() + timeout_ms / 1000
    try:
        await settled(programs.client.ready, timeout_ms / 1000)
        display = await _start_display(programs, name, geometry, viewer, deadline)
        async with asyncio.TaskGroup() as group:
            group.create_task(_start_window_manager(programs, display, deadline))
            buses = group.create_task(_start_buses(programs, display, deadline))
            if viewer is not None:
                group.create_task(_set_layout(programs, display, deadline))
        programs.client.up()
        return Running(display, buses.result())
    except TimeoutError as error:
        raise _unavailable(programs, NotReady("supervisor", "it did not answer")) from error
    except NotReady as problem:
        raise _unavailable(programs, problem) from problem
    except BaseExceptionGroup as problems:
        known, _ = problems.split(NotReady)
        if known is None:
            raise
        first = known.exceptions[0]
        raise _unavailable(programs, first if isinstance(first, NotReady) else NotReady("", "")) from problems


def _unavailable(programs: Programs, problem: NotReady) -> Unavailable:
    log = tail(programs.layout.log / f"{_LOGS.get(problem.part, 'dbus')}.log")
    return Unavailable(
        f"the desktop did not start: {problem.part}: {problem.reason}",
        details={"part": problem.part, "log": log},
        fix=_FIXES.get(problem.part, "surehand doctor names what is missing"),
    )


# --- the display ------------------------------------------------------------------------------------------------------


def _free_display() -> int:
    """Return a number that nobody uses now, chosen at random so that starters seldom meet."""
    span = limits.DISPLAY_LAST - limits.DISPLAY_FIRST + 1
    for _ in range(span):
        number = limits.DISPLAY_FIRST + secrets.randbelow(span)
        if not any(os.path.lexists(path) for path in (_lock(number), _socket(number))):
            return number
    raise NotReady("display server", "every display number is taken")


def _lock(number: int) -> str:
    return f"/tmp/.X{number}-lock"  # noqa: S108 - X11's own place


def _socket(number: int) -> str:
    return f"/tmp/.X11-unix/X{number}"  # noqa: S108 - X11's own place


def _claim(programs: Programs, number: int) -> bool:
    """Take a display number by X11's own rule, the lock that only one can create; the supervisor removes it.

    The server does not lock by itself when it is asked to report on a descriptor, and without a lock a second server
    would put its socket in the place of the first one's.
    """
    layout = programs.layout
    layout.display_number.write_text(str(number))
    draft = layout.etc / "lock"
    draft.unlink(missing_ok=True)
    draft.write_text(f"{programs.client.pid:10d}\n")
    draft.chmod(0o444)
    try:
        os.link(draft, _lock(number))
    except FileExistsError:
        return False
    if os.path.lexists(_socket(number)):  # a server that does not lock was there before
        _unclaim(number)
        return False
    return True


def _unclaim(number: int) -> None:
    os.unlink(_lock(number))  # noqa: PTH108 - the counterpart of the link above


def _server_command(number: int, name: str, geometry: tuple[int, int], xauthority: str, *, view: bool) -> list[str]:
    width, height = geometry
    # No TCP, no access without the cookie, no reset when the last client leaves, no blanking.
    common = [
        f":{number}",
        "-displayfd",
        str(_READY_FD),
        "-auth",
        xauthority,
        "-nolisten",
        "tcp",
        "-noreset",
        "-s",
        "0",
    ]
    if view:
        return [
            required("Xephyr"),
            *common,
            "-screen",
            f"{width}x{height}",
            "-title",
            f"Surehand: {name}",
            "-no-host-grab",
        ]
    # No automatic repeat: a release that comes late on a busy machine must not type a key twice.
    return [required("Xvfb"), *common, "-r", "-dpi", "96", "-screen", "0", f"{width}x{height}x24"]


async def _start_display(
    programs: Programs, name: str, geometry: tuple[int, int], viewer: Viewer | None, deadline: float
) -> int:
    """Start the display server on a free number; when somebody else takes the number first, on another."""
    for _ in range(limits.DISPLAY_TRIES_MAX):
        number = _free_display()
        if not _claim(programs, number):
            continue
        xauthority = str(programs.layout.xauthority)
        argv = _server_command(number, name, geometry, xauthority, view=viewer is not None)
        ready, told = os.pipe()
        try:
            started = programs.start_server(argv, {_READY_FD: told}, viewer)
            os.close(told)
            if await _read_line(ready, deadline):
                return number
        finally:
            os.close(ready)
        _unclaim(number)
        if time.monotonic() >= deadline:
            raise NotReady("display server", "it did not become ready")
        if "already" not in tail(started.log_path):
            raise NotReady("display server", "it ended at once")
    raise NotReady("display server", "others took every display number that was tried")


async def _set_layout(programs: Programs, display: int, deadline: float) -> None:
    """Give the viewer's server the built layout: it took over the layout of the person's display (C39)."""
    argv = [required("setxkbmap"), "-rules", "evdev", "-model", "pc105", "-layout", "us", "-option", ""]
    started = programs.start(_part(programs, "keyboard", argv, display), _parts_sandbox(programs, display))
    try:
        code = await settled(started.process.exited, deadline - time.monotonic())
    except TimeoutError as error:
        raise NotReady("keyboard layout", "setxkbmap did not end") from error
    if code != 0:
        raise NotReady("keyboard layout", "setxkbmap failed")


# --- the other parts --------------------------------------------------------------------------------------------------


def _parts_sandbox(programs: Programs, display: int, *, own_pids: bool = True) -> Sandbox:
    return Sandbox(folder=programs.layout.folder, display=display, network=False, own_pids=own_pids)


def _part(
    programs: Programs, name: str, argv: list[str], display: int, fds: dict[int, int] | None = None, vital: str = ""
) -> Program:
    return Program(
        name=name,
        argv=tuple(argv),
        env=program_environment(programs.layout, f":{display}", None),
        cwd=str(programs.layout.home),
        role="part",
        vital=vital,
        fds=fds or {},
    )


async def _start_window_manager(programs: Programs, display: int, deadline: float) -> None:
    """Start the window manager and wait until its start is over: it may lose windows that ask for it before."""
    pipe = programs.layout.window_manager_started
    os.mkfifo(pipe, 0o600)
    told = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    argv = [required("openbox"), "--sm-disable", "--config-file", str(programs.layout.etc / "openbox.xml")]
    argv += ["--startup", f"/bin/sh -c 'echo started > {pipe}'"]
    try:
        started = programs.start(_part(programs, "openbox", argv, display), _parts_sandbox(programs, display))
        announced = asyncio.create_task(_read_line(told, deadline))
        ended = asyncio.create_task(settled(started.process.exited))
        try:
            await asyncio.wait({announced, ended}, return_when=asyncio.FIRST_COMPLETED)
            if not announced.done():
                raise NotReady("window manager", f"it ended with status {ended.result()}")
            if not announced.result():
                raise NotReady("window manager", "its start did not end")
        finally:
            announced.cancel()
            ended.cancel()
            await asyncio.gather(announced, ended, return_exceptions=True)  # before the descriptor goes
    finally:
        os.close(told)
    await wait_for_window_manager(display, programs.layout.cookie, deadline - time.monotonic())


async def _start_buses(programs: Programs, display: int, deadline: float) -> str:
    """Start the session bus, have it start the accessibility bus; returns the latter's address."""
    argv = [required("dbus-daemon"), "--nofork", "--nopidfile", "--nosyslog"]
    argv += ["--config-file", str(programs.layout.etc / "bus.conf"), "--print-address", str(_READY_FD)]
    ready, told = os.pipe()
    try:
        part = _part(programs, "dbus", argv, display, {_READY_FD: told}, vital="session bus")
        programs.start(part, _parts_sandbox(programs, display, own_pids=False))
        os.close(told)
        if not await _read_line(ready, deadline):
            raise NotReady("session bus", "it did not report its address")
    finally:
        os.close(ready)
    return await start_accessibility(programs.layout.session_bus_address, deadline - time.monotonic())


# --- waiting ----------------------------------------------------------------------------------------------------------


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
