"""How a desktop's programs are started: confined or not, with their output in the desktop's own log folder."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal, NamedTuple

import msgspec

from surehand import limits
from surehand.errors import Unavailable
from surehand.runtime import _desktop_sandbox as sandboxes
from surehand.runtime._desktop_client import Command, Process, SupervisorClient
from surehand.runtime._desktop_folder import PATH, Layout

Isolation = Literal["isolated", "display_only"]

_LAUNCHER: Final = "bwrap"
_PACKAGES: Final = {
    "Xvfb": "xvfb",
    "Xephyr": "xserver-xephyr",
    "openbox": "openbox",
    "dbus-daemon": "dbus",
    "setxkbmap": "x11-xkb-utils",
    "xkbcomp": "x11-xkb-utils",
}


class Started(NamedTuple):
    """A program that was asked for, and where its output goes."""

    process: Process
    log_path: Path


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """One program to start in a desktop. `fds` maps numbers in the program to ours."""

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str
    role: Literal["app", "part"] = "app"
    vital: str = ""
    fds: Mapping[int, int] = {}
    user_namespaces: bool = False


def required(program: str) -> str:
    """Return the path of a program that desktops cannot do without.

    Raises:
        Unavailable: it is not installed; names the package.
    """
    path = shutil.which(program, path=PATH)
    if path is None:
        raise Unavailable(f"{program} is not installed", fix=f"apt install {_PACKAGES[program]}")
    return path


@contextmanager
def _readable(data: bytes | None) -> Iterator[int | None]:
    """Lend a descriptor that reads as `data`."""
    if data is None:
        yield None
        return
    read, write = os.pipe()
    try:
        os.write(write, data)  # far less than a pipe holds
        os.close(write)
        yield read
    finally:
        os.close(read)


class Programs:
    """Starts the programs of one desktop."""

    def __init__(self, client: SupervisorClient, layout: Layout, isolation: Isolation) -> None:
        self.client = client
        self.layout = layout
        self.isolation: Isolation = isolation

    def start(self, program: Program, sandbox: sandboxes.Sandbox) -> Started:
        """Start a program; what became of it is in its futures.

        Raises:
            InvalidRequest: a bind is not an absolute, existing path, or would hand out control of desktops.
        """
        sandboxes.check_binds(sandbox)
        is_confined = self.isolation == "isolated"
        if not is_confined:
            command = Command(
                argv=program.argv,
                env=program.env,
                cwd=program.cwd,
                role=program.role,
                vital=program.vital,
                fds=program.fds,
            )
            return self._logged(command, program.name)
        argv = sandboxes.confined(program.argv, sandbox, program.cwd, user_namespaces=program.user_namespaces)
        with _readable(sandboxes.root_filter()) as filter_fd:
            command = Command(
                argv=tuple(argv),
                env=program.env,
                cwd="/",
                role=program.role,
                vital=program.vital,
                launcher=_LAUNCHER,
                inner_init=sandbox.own_pids,
                scoped=sandbox.network,
                fds={**program.fds, **({sandboxes.FILTER_FD: filter_fd} if filter_fd is not None else {})},
            )
            return self._logged(command, program.name)

    def start_server(self, argv: Sequence[str], fds: Mapping[int, int], viewer: Viewer | None) -> Started:
        """Start the display server."""
        is_confined = self.isolation == "isolated"
        env = {"PATH": PATH, "LANG": "C.UTF-8", **(viewer.environment if viewer else {})}
        if is_confined:
            files = viewer.files if viewer else ()
            argv = sandboxes.confined_server(argv, self.layout.etc, viewer=files)
        command = Command(
            argv=tuple(argv),
            env=env,
            cwd="/",
            role="server",
            vital="display server",
            launcher=_LAUNCHER if is_confined else None,
            fds=fds,
        )
        return self._logged(command, "display")

    def _logged(self, command: Command, name: str) -> Started:
        log_path = self.layout.log / f"{name}.log"
        try:
            log = log_path.open("ab")
        except FileNotFoundError as error:
            raise self.client.gone() from error
        with log:
            fds = {1: log.fileno(), 2: log.fileno(), **command.fds}
            return Started(self.client.spawn(msgspec.structs.replace(command, fds=fds)), log_path)


class Viewer(msgspec.Struct, frozen=True, kw_only=True):
    """The display of the person who looks on."""

    environment: Mapping[str, str]
    files: tuple[Path, ...]


def viewer_of(environment: Mapping[str, str]) -> Viewer:
    """Return the display that an owner's environment names.

    Raises:
        Unavailable: it names none.
    """
    display = environment.get("DISPLAY", "")
    if not display:
        raise Unavailable(
            "there is no display to show the desktop on: DISPLAY is not set",
            fix="run it in a graphical session, or without --view",
        )
    authority = environment.get("XAUTHORITY") or os.path.join(environment.get("HOME", "/"), ".Xauthority")  # noqa: PTH118
    path = Path(authority)
    files = (path,) if path.is_file() else ()
    return Viewer(environment={"DISPLAY": display, **({"XAUTHORITY": authority} if files else {})}, files=files)


def tail(path: Path) -> str:
    """Return the end of a log."""
    try:
        return path.read_bytes()[-limits.DESKTOP_LOG_TAIL_BYTES :].decode(errors="replace")
    except OSError:
        return ""
