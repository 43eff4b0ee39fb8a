"""Where desktops are written down, so that another process of the same user can find them.

One JSON file per desktop, mode 0600 in a folder of mode 0700 that belongs to us. A record counts only while its
supervisor and owner live, proven by pid *and* process start time; the record of a dead desktop is removed when it is
met. Nothing here starts or ends a process.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import stat
from pathlib import Path
from typing import Final

import msgspec

from surehand.errors import Conflict, PermissionMissing, Unavailable
from surehand.signing.runtime_folder import with_runtime_folder

#: Where sockets fit: 108 bytes is the system's limit, and applications add their own folders below ours.
_SHORT_ROOT: Final = "/tmp"  # noqa: S108 - owner and mode are checked before use
_RECORD_BYTES_MAX: Final = 64 * 1024


class DesktopRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What another process needs to attach to a desktop."""

    name: str
    display: str
    xauthority: str
    session_bus_address: str
    a11y_bus_address: str
    folder: str
    isolation: str
    isolation_reason: str | None
    geometry: tuple[int, int]
    view: bool
    network: bool
    binds: tuple[str, ...]
    control: str
    owner_pid: int
    owner_generation: str
    supervisor_pid: int
    supervisor_generation: str
    started_at_ms: int
    writable: tuple[str, ...] = ()


def process_generation(pid: int) -> str | None:
    """Return a text that no other process of this boot shares, `pid:start time in ticks`; None when it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    if fields[0] in {b"Z", b"X"}:
        return None
    return f"{pid}:{int(fields[19])}"


def _private_folder(path: Path) -> Path:
    """Create a folder for us alone, or prove that the existing one is.

    Raises:
        PermissionMissing: somebody else owns it or may enter it, or it is a link.
    """
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=0o700)
    facts = path.lstat()
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.getuid() or stat.S_IMODE(facts.st_mode) & 0o077:
        raise PermissionMissing(
            f"{path} is not a private folder of this user",
            fix=f"remove it (rm -r {path}) or have its owner remove it; it must be yours with mode 0700",
        )
    return path


def runtime_root() -> Path:
    """Return our private folder in the user's runtime folder, else `/tmp/surehand-UID`; created when missing.

    Raises:
        PermissionMissing: the folder exists and is not ours alone.
    """
    given = with_runtime_folder(os.environ, os.getuid()).get("XDG_RUNTIME_DIR", "")
    if given.startswith("/"):
        with contextlib.suppress(OSError):
            facts = Path(given).stat()
            if facts.st_uid == os.getuid() and not stat.S_IMODE(facts.st_mode) & 0o077:
                return _private_folder(Path(given) / "surehand")
    return _private_folder(Path(_SHORT_ROOT) / f"surehand-{os.getuid()}")


def records_folder() -> Path:
    """Return the private folder of the records; created when missing."""
    return _private_folder(runtime_root() / "desktops")


def folders_folder() -> Path:
    """Return the private folder that holds the desktops' own folders, on a short path; created when missing."""
    root = _private_folder(Path(_SHORT_ROOT) / f"surehand-{os.getuid()}")
    return _private_folder(root / "d")


def controls_folder() -> Path:
    """Return the private folder of the control sockets, on a short path like the folders; created when missing."""
    root = _private_folder(Path(_SHORT_ROOT) / f"surehand-{os.getuid()}")
    return _private_folder(root / "c")


def control_socket(name: str) -> Path:
    """Return where the supervisor of a desktop listens; its folder is claimed by name, so the name is its alone."""
    return controls_folder() / f"{name}.sock"


def write_record(path: Path, record: DesktopRecord) -> None:
    """Write a record that no reader ever sees in part."""
    draft = path.with_suffix(".new")
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(fd, "wb") as file:  # noqa: PTH123 - an open descriptor, not a path
        file.write(msgspec.json.encode(record))
    draft.rename(path)


def _is_alive(record: DesktopRecord) -> bool:
    return (
        process_generation(record.supervisor_pid) == record.supervisor_generation
        and process_generation(record.owner_pid) == record.owner_generation
    )


def _read(path: Path) -> DesktopRecord | None:
    try:
        data = path.read_bytes()
        return msgspec.json.decode(data[:_RECORD_BYTES_MAX], type=DesktopRecord)
    except (OSError, msgspec.DecodeError):
        return None


def list_desktops() -> list[DesktopRecord]:
    """Return the desktops of this user that run now, by name; removes what dead ones left behind."""
    remove_leftovers()
    found = (_read(path) for path in sorted(records_folder().glob("*.json")))
    # A supervisor that outlives its owner is removing its desktop at this moment.
    return [record for record in found if record is not None and _is_alive(record)]


def find_desktop(name: str) -> DesktopRecord:
    """Return the running desktop of that name.

    Raises:
        Unavailable: there is none.
    """
    running = list_desktops()
    for record in running:
        if record.name == name:
            return record
    names = ", ".join(record.name for record in running) or "none"
    raise Unavailable(
        f"no desktop named {name!r} runs (running: {names})",
        fix=f"start one: surehand desktop start --name {name}",
    )


def claim_folder(name: str) -> tuple[Path, int]:
    """Create and lock the folder of a new desktop; returns it with the descriptor that holds the lock.

    Raises:
        Conflict: a desktop of that name runs already.
    """
    path = folders_folder() / name
    while True:
        try:
            path.mkdir(mode=0o700)
        except FileExistsError:
            if not _remove_abandoned(path):
                raise Conflict(
                    f"a desktop named {name!r} runs already", fix="choose another name, or end that desktop first"
                ) from None
            continue
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        fcntl.flock(fd, fcntl.LOCK_EX)
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_ino == os.fstat(fd).st_ino:
                return path, fd
        os.close(fd)  # somebody who tidied up took it for abandoned before we held the lock


def _remove_abandoned(path: Path) -> bool:
    """Remove a folder that nobody looks after: a desktop's supervisor holds a lock on it for life."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _end_strays(path)
        _remove_display(path / "etc" / "display")
        shutil.rmtree(path, ignore_errors=True)
    except BlockingIOError:
        return False
    finally:
        os.close(fd)
    return not path.exists()


def _end_strays(folder: Path) -> None:
    """Kill programs of a desktop whose supervisor was killed so early or so oddly that the kernel did not kill them.

    They are known by the HOME that no other program was ever given.
    """
    home = b"HOME=" + os.fsencode(folder / "home")
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):  # gone, or somebody else's
            if entry.name.isdigit() and home in (entry / "environ").read_bytes().split(b"\0"):
                os.kill(int(entry.name), signal.SIGKILL)


def _remove_display(number_file: Path) -> None:
    """Remove the lock and socket of a killed display server, unless a living one has them now."""
    with contextlib.suppress(OSError, ValueError):
        number = int(number_file.read_text())
        lock, sock = Path(f"/tmp/.X{number}-lock"), Path(f"/tmp/.X11-unix/X{number}")  # noqa: S108 - X11's own place
        if process_generation(int(lock.read_text())) is None:
            sock.unlink(missing_ok=True)
            lock.unlink(missing_ok=True)


def remove_leftovers() -> None:
    """Remove what desktops left whose supervisor was killed: folder, display lock and socket, record."""
    for folder in folders_folder().iterdir():
        _remove_abandoned(folder)
    for path in (*records_folder().iterdir(), *controls_folder().iterdir()):
        if not (folders_folder() / path.stem).exists():
            path.unlink(missing_ok=True)
