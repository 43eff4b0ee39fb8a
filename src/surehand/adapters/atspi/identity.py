"""Who an application is, proven by its process and not by what it says (spec §6.2).

The key is the finest identity that the kernel vouches for: the executable's path when the running file is the file at
that path in our own view of the disk, and for an interpreter the script it was started with. Anything that cannot be
shown keeps the key `unproven:…`, which no rule that allows should name. The script is read from the process's own
argument area, which a process can overwrite: it narrows an interpreter, it does not prove a script.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import Final

from surehand.model.scene import AppIdentity

_INTERPRETERS: Final = re.compile(
    r"(python|pypy|perl|ruby|lua|php|node|nodejs|bun|deno|gjs|java|mono|wine|wine64|Rscript|guile|tclsh|wish|"
    r"bash|dash|sh|zsh|ksh|fish|busybox|electron)[0-9.\-]*"
)
#: Options that take the next argument with them.
_OPTIONS_WITH_VALUE: Final = frozenset(["-W", "-X", "-r", "--require", "-I", "--import", "-cp", "-classpath", "-O"])
_INLINE_OPTIONS: Final = frozenset(["-c", "-e", "--eval", "-E"])
_ARGUMENT_BYTES_MAX: Final = 64 * 1024


def start_time(pid: int) -> str | None:
    """Return field 22 of `/proc/PID/stat`, counted after the last `)`: a command may hold spaces and parentheses."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 else None


def process_generation(pid: int) -> str | None:
    """Return a hash that names this process and no later one with the same pid, or None when it is gone."""
    started = start_time(pid)
    if started is None:
        return None
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return hashlib.sha256(f"{boot}:{pid}:{started}".encode()).hexdigest()[:32]


def identify(pid: int, claimed_name: str) -> AppIdentity:
    """Return the identity of a process; `unproven:` where the process cannot be looked at."""
    generation = process_generation(pid) if pid > 0 else None
    if generation is None:
        return unproven(claimed_name)
    try:
        # A path that is no Unicode becomes one that is not there, so it proves nothing and breaks no answer.
        executable = _printable(str(Path(f"/proc/{pid}/exe").readlink()))
        uid = Path(f"/proc/{pid}").stat().st_uid
    except OSError:
        return unproven(claimed_name, pid=pid, generation=generation)
    script = _script_of(pid, executable)
    if not _is_the_file_at(pid, executable):
        key = f"unproven:{executable}"
    elif script is not None:
        key = f"script:{executable}:{script}"
    else:
        key = f"exe:{executable}"
    if process_generation(pid) != generation:  # the pid changed hands while we looked
        return unproven(claimed_name)
    return AppIdentity(
        key=key,
        pid=pid,
        process_generation=generation,
        uid=uid,
        executable=executable,
        script=script,
        claimed_name=claimed_name,
    )


def unproven(claimed_name: str, *, pid: int = 0, generation: str = "") -> AppIdentity:
    """Return the identity of somebody we know nothing about."""
    return AppIdentity(
        key="unproven:",
        pid=pid,
        process_generation=generation,
        uid=-1,
        executable="",
        claimed_name=claimed_name,
    )


def _is_the_file_at(pid: int, executable: str) -> bool:
    """Return whether the running file is the one at that path for us; a foreign mount can fake the path."""
    try:
        running, named = os.stat(f"/proc/{pid}/exe"), os.stat(executable)  # noqa: PTH116 - a magic link, not a path
    except OSError:
        return False
    return (running.st_dev, running.st_ino) == (named.st_dev, named.st_ino)


def _script_of(pid: int, executable: str) -> str | None:
    if _INTERPRETERS.fullmatch(Path(executable).name) is None:
        return None
    try:
        with Path(f"/proc/{pid}/cmdline").open("rb") as file:
            data = file.read(_ARGUMENT_BYTES_MAX)
        directory = str(Path(f"/proc/{pid}/cwd").readlink())
    except OSError:
        return "unreadable"
    arguments = [part.decode("utf-8", "surrogateescape") for part in data.split(b"\0")[1:]]
    return script_in(arguments, directory)


def script_in(arguments: list[str], directory: str) -> str:
    """Return what an interpreter was told to run: an absolute path, `-m:NAME`, `-c:DIGEST`, or `interactive`."""
    waiting = iter(arguments)
    for argument in waiting:
        if argument in _INLINE_OPTIONS:
            code = next(waiting, "")
            return "-c:" + hashlib.sha256(code.encode("utf-8", "surrogateescape")).hexdigest()[:16]
        if argument == "-m":
            return "-m:" + _printable(next(waiting, ""))
        if argument == "-jar":
            continue
        if argument in _OPTIONS_WITH_VALUE:
            next(waiting, None)
        elif argument and not argument.startswith("-"):
            return _printable(os.path.normpath(Path(directory) / argument))
    return "interactive"


def _printable(text: str) -> str:
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def host_pid(bus_pid: int, bus_daemon_pid: int) -> int | None:
    """Return the pid in our own namespace for a pid that a bus daemon reported, or None when it is not to be found.

    A bus daemon inside a sandbox reports the pids of its own namespace.
    """
    ours = _namespace("self")
    theirs = _namespace(str(bus_daemon_pid))
    if theirs is None:
        return None
    if theirs == ours:
        return bus_pid
    for entry in os.listdir("/proc"):  # noqa: PTH208 - names are all that is needed
        if entry.isdecimal() and _inner_pid(entry) == bus_pid and _namespace(entry) == theirs:
            return int(entry)
    return None


def _namespace(process: str) -> str | None:
    try:
        return str(Path(f"/proc/{process}/ns/pid").readlink())
    except OSError:
        return None


def _inner_pid(process: str) -> int | None:
    try:
        status = Path(f"/proc/{process}/status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    for line in status.splitlines():
        if line.startswith("NSpid:"):
            return int(line.split()[-1])
    return None
