"""What a test run left running, and which test it was: a daemon or a desktop that outlives its test is a defect of it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

from surehand.runtime._desktop_records import process_generation

#: How long something that was told to end may take, with the whole machine busy.
_ENDS_S = 10.0
#: What pytest says to every process that a test starts.
_STARTED_IN = re.compile(rb"(?:^|\0)PYTEST_CURRENT_TEST=([^\0]*)")


class Leftovers:
    """Knows which test made which folder of the session, and finds the processes that still belong to one."""

    def __init__(self, base: Path) -> None:
        self._base = base
        self._owners: dict[str, str] = {}
        self._inside = re.compile(re.escape(os.fsencode(base)) + rb"(?:/([^/\0]*))?(?=[/\0])")

    def made(self, folder: Path, test: str) -> None:
        """Note the folder of a test's own."""
        self._owners.setdefault(folder.name, test)

    def ended(self, module: str) -> None:
        """Note what else a module made."""
        for name in os.listdir(self._base):  # noqa: PTH208 - names are all that is wanted
            self._owners.setdefault(name, module)

    def end(self) -> list[str]:
        """Wait for what is ending by itself, end the rest, and return a line about each of those."""
        until = time.monotonic() + _ENDS_S
        while (left := dict(self._running())) and time.monotonic() < until:
            time.sleep(0.05)
        said = [f"{pid} {_words(pid)}: {what}" for pid, what in left.items()]
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        return said

    def _running(self) -> Iterator[tuple[int, str]]:
        for entry in os.listdir("/proc"):  # noqa: PTH208
            pid = int(entry) if entry.isdigit() else 0
            if not pid or pid == os.getpid() or process_generation(pid) is None:
                continue
            environment = _read(pid, "environ")
            if inside := self._inside.search(environment):
                started = _STARTED_IN.search(environment)
                yield pid, started[1].decode(errors="replace") if started else self._owner(inside[1] or b"")
            elif _parent(pid) == os.getpid():
                yield pid, "a child of the test process"
        # A daemon shows its environment to nobody but root; it holds its lease for as long as it lives.
        for lease in self._base.glob("**/daemon.lease"):
            if (holder := _holder(lease)) is not None:
                yield holder, self._owner(os.fsencode(lease.relative_to(self._base)))

    def _owner(self, below: bytes) -> str:
        folder = os.fsdecode(below.partition(b"/")[0])
        return self._owners.get(folder, f"whoever made {folder}")


def _holder(lease: Path) -> int | None:
    with contextlib.suppress(OSError), lease.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return int(file.read() or b"0") or None
    return None


def _parent(pid: int) -> int:
    fields = _read(pid, "stat").rpartition(b")")[2].split()
    return int(fields[1]) if fields else 0


def _read(pid: int, name: str) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/{name}").read_bytes()
    return b""


def _words(pid: int) -> str:
    return _read(pid, "cmdline").replace(b"\0", b" ").decode(errors="replace")[:200]
