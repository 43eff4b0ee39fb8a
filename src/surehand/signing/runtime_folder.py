"""Where the system keeps a user's runtime folder, for programs whose environment lost the word for it.

Some MCP clients start servers with a handful of variables. Without this the server would look for the daemon in another
folder than the terminal next to it, start a second one, and fail on the journal that the first has open.
"""

from __future__ import annotations

import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_VARIABLE: Final = "XDG_RUNTIME_DIR"
#: Names a daemon's own folder; `core.wire.places` reads it.
_CHOSEN: Final = "SUREHAND_RUNTIME_DIR"
#: Made by root at each start of a level B daemon.
SYSTEM_FOLDER: Final = Path("/run/surehand")
#: Where the login manager makes one folder for each user, mode 0700.
_MADE_IN: Final = Path("/run/user")


def with_runtime_folder(environ: Mapping[str, str], uid: int) -> dict[str, str]:
    """Return an environment that names the user's runtime folder, where there is one.

    What the environment says counts where it is usable; else the system's folder does, if it is that user's alone.
    Where this machine's operator keeps one daemon for all (level B) its folder is meant, unless another is named.
    """
    found = dict(environ)
    if not found.get(_CHOSEN) and _is_nobody_elses(SYSTEM_FOLDER):
        found[_CHOSEN] = str(SYSTEM_FOLDER)
    # The XDG specification tells readers to ignore relative values.
    if not found.get(_VARIABLE, "").startswith("/"):
        found.pop(_VARIABLE, None)
        usual = _MADE_IN / str(uid)
        if _is_private(usual, uid):
            found[_VARIABLE] = str(usual)
    return found


def _is_private(path: Path, uid: int) -> bool:
    try:
        facts = path.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(facts.st_mode) and facts.st_uid == uid and stat.S_IMODE(facts.st_mode) == stat.S_IRWXU


def _is_nobody_elses(path: Path) -> bool:
    """Say whether this is a folder that only its owner can write; only root makes one in `/run`."""
    try:
        facts = path.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(facts.st_mode) and not facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
