"""The bubblewrap command line of a desktop's programs, and whether bubblewrap works here.

A confined program gets its own user, pid, network, ipc, uts and cgroup namespaces; a read-only /usr; /etc without
what an ordinary user could not read; an empty /tmp with nothing but its own desktop's X socket; the desktop's folder
at its own path. There is no host home, no host socket, no host process and, unless granted, no network.

Programs of one desktop share its display, its buses and its home, nothing else: each has its own sandbox, and with it
its own SysV shared memory. So has the display server: a program that names a segment of the host gets an error, not the
pixels of the person's applications. Shared memory through descriptors (MIT-SHM 1.2) works everywhere.
"""

from __future__ import annotations

import os
import pwd
import shutil
import stat
import struct
import subprocess
import time
from collections.abc import Sequence
from ctypes import CDLL
from functools import cache, lru_cache
from pathlib import Path
from typing import Final

import msgspec

from surehand.core.wire.places import places, state_dir
from surehand.errors import InvalidRequest, Unavailable
from surehand.runtime._desktop_records import controls_folder, records_folder, runtime_root
from surehand.runtime._desktop_supervisor import STATUS_FD, SYS_LANDLOCK_CREATE_RULESET
from surehand.signing.runtime_folder import with_runtime_folder

_PROBE_S: Final = 5.0
_MASK_S: Final = 60  # /etc is looked through again after this long
_LANDLOCK_SCOPES_SINCE: Final = 6
#: Where a confined program's launcher reads `root_filter`.
FILTER_FD: Final = 5
#: Audit architecture and number of setgroups(2) by machine.
_SETGROUPS: Final = {"x86_64": (0xC000003E, 116), "aarch64": (0xC00000B7, 159)}
# Without the last pair, programs of root keep the capabilities of their user namespace, which owns the mounts: they
# could make /usr writable again.
_NAMESPACES: Final = ("--unshare-user", "--unshare-uts", "--unshare-cgroup-try", "--cap-drop", "ALL")


class Sandbox(msgspec.Struct, frozen=True, kw_only=True):
    """What a confined program may see besides the system.

    `own_pids` is false for the buses alone. A bus learns from the kernel who connects, in pids of its own namespace;
    from a namespace of its own it sees nobody, and no application could be proven (spec §6.2). It gets no /proc then.
    """

    folder: Path
    display: int | None
    network: bool
    binds: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    own_pids: bool = True


@cache
def bubblewrap() -> str | None:
    """Return the path of bubblewrap, or None when it is not installed."""
    return shutil.which("bwrap", path="/usr/local/bin:/usr/bin:/bin")


@cache
def _no_user_namespaces() -> tuple[str, ...]:
    """Return the option that keeps programs from making user namespaces; bubblewrap has it since 0.8."""
    done = subprocess.run([str(bubblewrap()), "--help"], capture_output=True, timeout=_PROBE_S, check=False)  # noqa: S603
    return ("--disable-userns",) if b"--disable-userns" in done.stdout + done.stderr else ()


@cache
def bubblewrap_problem() -> str | None:
    """Return why bubblewrap cannot confine programs here, or None when it can. Tries it once per process."""
    program = bubblewrap()
    if program is None:
        return "bubblewrap is not installed"
    argv = [program, *_NAMESPACES, "--unshare-pid", "--unshare-ipc", "--unshare-net"]
    try:
        argv += [*_no_user_namespaces(), "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--", "/bin/true"]
        done = subprocess.run(argv, capture_output=True, timeout=_PROBE_S, check=False, env={"PATH": "/usr/bin:/bin"})  # noqa: S603
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap does not run: {error}"
    if done.returncode != 0:
        return done.stderr.decode(errors="replace").strip().splitlines()[-1] if done.stderr else "bubblewrap failed"
    return None


@cache
def root_filter() -> bytes | None:
    """Return a seccomp program for desktops of root, None for everybody else.

    Programs that find themselves to be root give up further groups first, and end when that fails, as it does in a
    user namespace (xterm). There is nothing to give up inside, so the call says that it was done.
    """
    known = _SETGROUPS.get(os.uname().machine)
    if os.getuid() != 0 or known is None:
        return None
    architecture, number = known
    load, if_equal, answer = 0x20, 0x15, 0x06
    succeed, allow = 0x0005_0000, 0x7FFF_0000
    program = (
        (load, 0, 0, 4),  # the architecture of the call
        (if_equal, 0, 3, architecture),
        (load, 0, 0, 0),  # its number
        (if_equal, 0, 1, number),
        (answer, 0, 0, succeed),
        (answer, 0, 0, allow),
    )
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program)


@cache
def can_scope_sockets() -> bool:
    """Whether this kernel can keep a program with network from the host's abstract sockets (Landlock, Linux 6.12)."""
    version_only = 1
    return int(CDLL(None).syscall(SYS_LANDLOCK_CREATE_RULESET, None, 0, version_only)) >= _LANDLOCK_SCOPES_SINCE


def _system_arguments() -> list[str]:
    arguments = ["--ro-bind", "/usr", "/usr"]
    for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        path = Path("/", name)
        if path.is_symlink():
            arguments += ["--symlink", str(path.readlink()), str(path)]
        elif path.is_dir():
            arguments += ["--ro-bind", str(path), str(path)]
    arguments += ["--ro-bind", "/etc", "/etc"]
    for secret in _unreadable_for_others(int(time.monotonic() / _MASK_S)):
        arguments += ["--tmpfs", secret] if Path(secret).is_dir() else ["--ro-bind", "/dev/null", secret]
    for name in ("/var/cache/fontconfig", "/var/lib/xkb"):
        arguments += ["--ro-bind-try", name, name]
    return [*arguments, "--dev", "/dev"]


@lru_cache(maxsize=1)
def _unreadable_for_others(minute: int) -> tuple[str, ...]:  # noqa: ARG001 - the answer's age
    """Return what in /etc an ordinary user could not read; bubblewrap run by root would show it otherwise."""
    if os.getuid() != 0:
        return ()
    found = []
    for root, folders, files in os.walk("/etc"):
        for name in list(folders):
            path = os.path.join(root, name)  # noqa: PTH118 - 2 000 entries, in the path of every first start
            mode = os.lstat(path).st_mode
            if stat.S_ISDIR(mode) and not (mode & stat.S_IROTH and mode & stat.S_IXOTH):
                folders.remove(name)
                found.append(path)
        for name in files:
            path = os.path.join(root, name)  # noqa: PTH118 - as above
            mode = os.lstat(path).st_mode
            if not stat.S_ISLNK(mode) and not mode & stat.S_IROTH:
                found.append(path)
    return tuple(found)


def _daemons_places() -> tuple[Path, ...]:
    """Return where this user's daemon has its sockets, its journal and keys, and its configuration.

    Whoever reaches the control socket answers approvals; whoever writes the configuration decides what is allowed.
    """
    uid = os.getuid()
    environ = with_runtime_folder(os.environ, uid)
    where = places(environ, uid)
    home = pwd.getpwuid(uid).pw_dir
    usual = (f"{home}/.config/surehand", state_dir({}, home, where), "/etc/surehand")
    return tuple(
        Path(place) for place in (where.runtime_dir, where.socket_dir, state_dir(environ, home, where), *usual)
    )


def _check(path: Path, private: Sequence[Path]) -> None:
    if not path.is_absolute() or "\0" in str(path) or not path.exists():
        raise InvalidRequest(f"{str(path)!r} cannot be bound: it must be an absolute path that exists")
    real = path.resolve()
    if any(place.is_relative_to(real) or real.is_relative_to(place) for place in private):
        raise InvalidRequest(
            f"{str(path)!r} cannot be bound: Surehand's own sockets, keys, configuration or desktops are in it",
            fix="name the folder or the file that the program needs, and nothing above it",
        )


def check_paths(paths: Sequence[Path], folder: Path) -> None:
    """Refuse paths that do not exist or would hand out control of desktops or of the daemon.

    Args:
        paths: What programs are to see.
        folder: A desktop's own folder; that of the others is next to it.

    Raises:
        InvalidRequest: names the path.
    """
    if paths:
        # Whoever reaches a desktop's control socket can start programs outside the sandbox.
        desktops = (runtime_root(), records_folder(), controls_folder(), folder.parent)
        private = [place.resolve() for place in (*desktops, *_daemons_places())]
        for path in paths:
            _check(path, private)


def check_binds(sandbox: Sandbox) -> None:
    """Refuse binds as `check_paths` does, except for what is in the desktop's own folder.

    Raises:
        InvalidRequest: names the path.
    """
    check_paths(_outside(sandbox, (*sandbox.binds, *sandbox.writable)), sandbox.folder)


def _outside(sandbox: Sandbox, paths: Sequence[Path]) -> list[Path]:
    # The folder is there anyway, and a program could have swapped a part of it for a link since.
    return [path for path in paths if not path.is_relative_to(sandbox.folder)]


def _bind_arguments(program: str, sandbox: Sandbox) -> list[str]:
    arguments = []
    real = Path(program).resolve()
    if real.is_relative_to("/opt") and len(real.parts) > 3:
        package = str(Path(*real.parts[:3]))
        arguments += ["--ro-bind", package, package]
    wanted = [("--ro-bind", path) for path in sandbox.binds] + [("--bind", path) for path in sandbox.writable]
    # What is inside another one comes after it, or would be covered: it may be meant to stay as it is.
    for option, path in sorted(wanted, key=lambda one: len(one[1].parts)):
        if _outside(sandbox, [path]):
            arguments += [option, str(path), str(path)]
    return arguments


def confined(argv: Sequence[str], sandbox: Sandbox, cwd: str, *, user_namespaces: bool = False) -> list[str]:
    """Return the command line that runs `argv` confined.

    Args:
        argv: The program's absolute path and its arguments.
        sandbox: What it may see.
        cwd: Its working folder, inside.
        user_namespaces: It may make namespaces of its own (browsers confine their pages that way).
    """
    folder = str(sandbox.folder)
    etc, log = f"{folder}/etc", f"{folder}/log"
    arguments = [*_launcher_arguments(), "--unshare-ipc", "--hostname", "desktop"]
    if sandbox.own_pids:
        arguments.append("--unshare-pid")
    if not sandbox.network:
        arguments.append("--unshare-net")
    if not user_namespaces:
        arguments += _no_user_namespaces()
    if root_filter() is not None:
        arguments += ["--seccomp", str(FILTER_FD)]
    arguments += [*_system_arguments(), "--proc" if sandbox.own_pids else "--tmpfs", "/proc"]
    arguments += ["--tmpfs", "/tmp", "--tmpfs", "/run", "--tmpfs", "/var/tmp"]  # noqa: S108
    if sandbox.display is not None:
        x_socket = f"/tmp/.X11-unix/X{sandbox.display}"  # noqa: S108 - X11's own place
        arguments += ["--dir", "/tmp/.X11-unix", "--bind", x_socket, x_socket]  # noqa: S108
    if sandbox.network:
        arguments += _resolver_arguments()
    arguments += _bind_arguments(argv[0], sandbox)
    arguments += ["--bind", folder, folder, "--ro-bind", etc, etc, "--tmpfs", log]
    for name, place in (("machine-id", "/etc/machine-id"), ("passwd", "/etc/passwd"), ("group", "/etc/group")):
        if Path(place).is_file():
            arguments += ["--ro-bind", f"{etc}/{name}", place]
    arguments += ["--ro-bind", f"{etc}/machine-id", "/var/lib/dbus/machine-id"]
    return [*arguments, "--chdir", cwd, "--", *argv]


def confined_server(argv: Sequence[str], etc: Path, *, viewer: Sequence[Path] = ()) -> list[str]:
    """Return the command line that runs a display server: no network, no home, and the host's /tmp for its socket.

    Args:
        argv: The server's absolute path and its arguments.
        etc: The desktop's own configuration, readable.
        viewer: Files it needs to show itself on another display.
    """
    arguments = [*_launcher_arguments(), "--unshare-net", "--unshare-ipc", *_system_arguments()]
    arguments += ["--bind", "/tmp", "/tmp"]  # noqa: S108
    for path in (etc, *viewer):
        arguments += ["--ro-bind", str(path), str(path)]
    return [*arguments, "--chdir", "/", "--", *argv]


def _launcher_arguments() -> list[str]:
    program = bubblewrap()
    if program is None:
        raise Unavailable("bubblewrap is not installed", fix="apt install bubblewrap")
    return [program, "--json-status-fd", str(STATUS_FD), "--die-with-parent", "--new-session", *_NAMESPACES]


def _resolver_arguments() -> list[str]:
    """Names are looked up through a file that often lives in /run."""
    target = Path("/etc/resolv.conf").resolve()
    return ["--ro-bind-try", str(target), str(target)] if target.is_relative_to("/run") else []
