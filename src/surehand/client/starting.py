"""Starting the daemon for whoever needs it: one winner, a built environment, no guessing whether it is ready.

Guarantees:
- Of several clients that find no daemon one starts it; the others wait for that one and then look again.
- The daemon's environment is built from the user database and a short list; nothing else of the caller's reaches it.
- Waiting ends by the daemon's own word, its death, or `DAEMON_START_MS_MAX`; a failure quotes the end of its log.
"""

from __future__ import annotations

import fcntl
import os
import pwd
import select
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import orjson

from surehand import limits
from surehand.core.wire.places import RUNTIME_VARIABLE, Places
from surehand.errors import Unavailable, from_value
from surehand.signing.private_files import open_private, private_directory

#: How texts and times look, and which runtime folder is meant. Nothing here can change what the daemon may do.
PASSED_ON: Final = ("LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LC_MESSAGES", "TZ", "XDG_RUNTIME_DIR", RUNTIME_VARIABLE)
_PATH: Final = "/usr/local/bin:/usr/bin:/bin"


def built_environment(environ: Mapping[str, str], uid: int) -> dict[str, str]:
    """Return the environment a daemon is started with."""
    built = {name: environ[name] for name in PASSED_ON if name in environ}
    built["PATH"] = _PATH
    try:
        user = pwd.getpwuid(uid)
    except KeyError:
        return built
    return {**built, "HOME": user.pw_dir, "USER": user.pw_name, "LOGNAME": user.pw_name}


def start_daemon(places: Places, answers: Callable[[], bool]) -> None:
    """Start the daemon of `places` and return once it accepts connections.

    Raises:
        Unavailable: it could not start; `details["log"]` holds the end of its log.
        PermissionMissing: the runtime folder is not ours alone.
    """
    private_directory(Path(places.runtime_dir))
    with open_private(Path(places.start_lock), os.O_RDWR | os.O_CREAT) as lock:
        # Whoever holds it is starting the daemon and is done, well or badly, within the start's own bound.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not answers():
            _spawn(places)


def _spawn(places: Places) -> None:
    reading, writing = os.pipe()
    command = [sys.executable, "-I", "-m", "surehand.daemon", "--detach", "--ready-fd", str(writing)]
    environment = built_environment({**os.environ, RUNTIME_VARIABLE: places.runtime_dir}, os.getuid())
    if RUNTIME_VARIABLE not in os.environ:
        del environment[RUNTIME_VARIABLE]
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        with open_private(Path(places.log), flags) as log:
            subprocess.run(  # noqa: S603 - our own interpreter and module
                command,
                env=environment,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(writing,),
                check=False,
                timeout=limits.DAEMON_START_MS_MAX / 1000,
            )
        os.close(writing)
        writing = -1
        _await_word(reading, places)
    except (OSError, subprocess.SubprocessError) as error:
        raise _failed("could not be started", places) from error
    finally:
        os.close(reading)
        if writing >= 0:
            os.close(writing)


def _await_word(reading: int, places: Places) -> None:
    """Wait for the daemon's one line: ready, or its error."""
    ready, _, _ = select.select([reading], [], [], limits.DAEMON_START_MS_MAX / 1000)
    if not ready:
        raise _failed(f"was not ready within {limits.DAEMON_START_MS_MAX} ms", places)
    line = os.read(reading, limits.HELLO_BYTES_MAX)
    if not line:
        raise _failed("ended while it started", places)
    word = orjson.loads(line)
    if "error" in word:
        raise from_value(word["error"])


def _failed(how: str, places: Places) -> Unavailable:
    try:
        with Path(places.log).open("rb") as log:
            size = log.seek(0, os.SEEK_END)
            log.seek(max(0, size - limits.LOG_TAIL_BYTES))
            tail = log.read().decode("utf-8", "replace")
    except OSError:
        tail = ""
    return Unavailable(
        f"the daemon {how}",
        fix=f"read {places.log}, or run `surehand serve` in a terminal and look",
        details={"log": tail},
    )
