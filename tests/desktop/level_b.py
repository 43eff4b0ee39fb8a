"""A machine of its own for trust level B: a mount namespace in which users, folders and a daemon are set up for real.

`/etc`, `/home`, `/tmp`, `/var/lib` and `/run` are copies or empty, so that the documented command runs as it stands and the
machine of whoever runs the tests stays as it is.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

WAIT_S = 30.0
SUREHAND = Path(sys.executable).parent / "surehand"
_SOURCE = Path(__file__).parents[2]

_FURNISH = r"""
set -e
mount --make-rprivate /
hold=$1; shift
mkdir "$hold/etc" "$hold/lib"
cp -a /etc/. "$hold/etc/"
rm -rf "$hold/etc/surehand"
mount --bind "$hold/etc" /etc
mount --bind "$hold/lib" /var/lib
# A checkout or an interpreter below a folder that is closed to other users, as root's home is, is shown by itself.
for path in "$@"; do
    closed=""
    part="$path"
    while [ "$part" != / ]; do
        part=$(dirname "$part")
        [ $(( $(stat -c 0%a "$part") & 1 )) = 1 ] || closed="$part"
    done
    [ -z "$closed" ] && continue
    mkdir -p "$hold/kept"
    mount --bind "$path" "$hold/kept"
    mount -t tmpfs -o mode=755 none "$closed"
    mkdir -p "$path"
    mount --move "$hold/kept" "$path"
done
# So is what stands below the folders that are empty here; /tmp goes last, for what is put in place may be below it.
mkdir -m 755 "$hold/home" "$hold/run"
mkdir -m 1777 "$hold/tmp"
for path in "$@"; do
    case "$path" in /home/*|/run/*|/tmp/*)
        mkdir -p "$hold$path"
        mount --bind "$path" "$hold$path"
    esac
done
for top in /home /run /tmp; do
    mount --rbind "$hold$top" "$top"
done
useradd --create-home ann
echo ready
cat >/dev/null
"""


class Machine:
    """The namespace, and commands in it as one of its users."""

    def __init__(self, holder: subprocess.Popen[str]) -> None:
        self._enter = ["nsenter", f"--mount=/proc/{holder.pid}/ns/mnt", "--wd=/"]
        self.daemon: subprocess.Popen[str] | None = None

    def run(self, user: str, *command: object, **options: Any) -> subprocess.CompletedProcess[str]:
        words = [*self._enter, *self._as(user), *map(str, command)]
        return subprocess.run(
            words,
            check=False,
            text=True,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=WAIT_S,
            **options,
        )

    def cli(self, user: str, *words: object) -> dict[str, Any]:
        """Run `surehand` as a user; return its envelope."""
        done = self.run(user, SUREHAND, "--json", *words)
        assert done.stdout, done.stderr
        value: dict[str, Any] = json.loads(done.stdout)
        return value

    def start(self) -> None:
        """Start the daemon as the documentation says, and wait for its socket."""
        self.daemon = subprocess.Popen(
            [*self._enter, "/etc/surehand/start"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert self.daemon.stdout is not None
        for line in self.daemon.stdout:
            if "ready, pid" in line:
                return
        raise AssertionError("the daemon ended")

    def stop(self) -> None:
        if self.daemon is not None:
            self.daemon.terminate()
            self.daemon.wait(WAIT_S)
            assert self.daemon.stdout is not None
            self.daemon.stdout.close()
            self.daemon = None

    @staticmethod
    def _as(user: str) -> list[str]:
        if user == "root":
            return []
        return ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", "--reset-env"]


@contextlib.contextmanager
def machine(hold: Path) -> Iterator[Machine]:
    """Make the namespace below a folder; end what runs in it."""
    shown = [str(_SOURCE), sys.base_prefix]
    holder = subprocess.Popen(
        ["unshare", "--mount", "sh", "-c", _FURNISH, "furnish", str(hold), *shown],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdin is not None
    assert holder.stdout is not None
    made = Machine(holder)
    try:
        assert holder.stdout.readline() == "ready\n"
        yield made
    finally:
        made.stop()
        holder.stdin.close()
        holder.wait(WAIT_S)
        holder.stdout.close()


def until(condition: Any) -> Any:
    """Poll a cheap condition of the outside world; there is no event for it."""
    end = time.monotonic() + WAIT_S
    while not (value := condition()):
        assert time.monotonic() < end, f"never happened: {condition}"
    return value


def can_be_made() -> str:
    """Say why no such machine can be made here; nothing where it can."""
    if os.getuid() != 0:
        return "the tests do not run as root"
    if any(shutil.which(name) is None for name in ("unshare", "nsenter", "setpriv", "useradd")):
        return "util-linux or passwd is missing"
    done = subprocess.run(["unshare", "--mount", "true"], check=False, stderr=subprocess.DEVNULL)
    return "" if done.returncode == 0 else "this container makes no mount namespaces"
