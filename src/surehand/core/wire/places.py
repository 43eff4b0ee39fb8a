"""Where a daemon and its clients meet: pure rules over an environment and a uid, no file is looked at here.

The runtime folder is `$SUREHAND_RUNTIME_DIR`, else `$XDG_RUNTIME_DIR/surehand`, else `/tmp/surehand-<uid>`. It chooses
*which* daemon a client talks to and nothing else: what that daemon may do comes from the operator's configuration.
Daemon and clients ask through `signing.runtime_folder`, which fills in a session's folder that the environment lost.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final

from surehand import limits
from surehand.errors import InvalidRequest
from surehand.model.record import Record

RUNTIME_VARIABLE: Final = "SUREHAND_RUNTIME_DIR"
_LONGEST_SOCKET: Final = "control.sock"


class Places(Record, frozen=True, kw_only=True):
    """Absolute paths of one daemon; `socket_dir` is `runtime_dir` unless that is too long for a socket."""

    runtime_dir: str
    socket_dir: str
    agent_socket: str
    control_socket: str
    lease: str
    start_lock: str
    log: str
    #: Says that the operator's own start failed here; no client starts a daemon with another configuration then.
    refused: str


def places(environ: Mapping[str, str], uid: int) -> Places:
    """Return the places that an environment chooses.

    Raises:
        InvalidRequest: the chosen folder is not an absolute path.
    """
    if chosen := environ.get(RUNTIME_VARIABLE):
        return places_in(chosen, uid)
    base = environ.get("XDG_RUNTIME_DIR", "")
    # The XDG specification tells readers to ignore relative values.
    return places_in(f"{base.rstrip('/')}/surehand" if base.startswith("/") else fallback_dir(uid), uid)


def fallback_dir(uid: int) -> str:
    """Return the folder used without a session's runtime folder; its owner and mode are checked before use."""
    return f"/tmp/surehand-{uid}"  # noqa: S108 - checked for owner, mode and symlinks wherever it is used


def places_in(runtime_dir: str, uid: int) -> Places:
    """Return the places of the daemon that lives in `runtime_dir`."""
    if not runtime_dir.startswith("/") or "\x00" in runtime_dir:
        raise InvalidRequest(f"{RUNTIME_VARIABLE} must be an absolute path")
    runtime_dir = runtime_dir.rstrip("/") or "/"
    socket_dir = runtime_dir
    if len(f"{runtime_dir}/{_LONGEST_SOCKET}".encode("utf-8", "surrogateescape")) > limits.SOCKET_PATH_BYTES_MAX:
        # The kernel cuts socket paths at 108 bytes; a digest of the folder keeps them short and distinct.
        short = hashlib.sha256(runtime_dir.encode("utf-8", "surrogateescape")).hexdigest()[:32]
        socket_dir = f"{fallback_dir(uid)}/{short}"
    return Places(
        runtime_dir=runtime_dir,
        socket_dir=socket_dir,
        agent_socket=f"{socket_dir}/agent.sock",
        control_socket=f"{socket_dir}/{_LONGEST_SOCKET}",
        lease=f"{runtime_dir}/daemon.lease",
        start_lock=f"{runtime_dir}/start.lock",
        log=f"{runtime_dir}/daemon.log",
        refused=f"{runtime_dir}/start.refused",
    )


def state_dir(environ: Mapping[str, str], home: str, where: Places) -> str:
    """Return where a daemon's journal and keys live unless its operator says otherwise.

    A daemon in a runtime folder of its own has a state of its own: two daemons on one journal could both act on one id.

    Args:
        environ: Looked at for the runtime folder's variable only.
        home: The user's home from the user database; anyone can set HOME.
        where: The daemon's places.
    """
    if RUNTIME_VARIABLE in environ:
        return f"{where.runtime_dir}/state"
    return f"{home}/.local/state/surehand"
