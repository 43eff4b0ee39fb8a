"""From a role and a wish to connected sockets; the environment is read here, at the moment of connecting."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable

from surehand.client.meeting import meet
from surehand.client.wire import Role, Wire
from surehand.core.wire.places import places
from surehand.signing.runtime_folder import with_runtime_folder


def connector(role: Role, desktop: str | None, client: str, *, start: bool) -> Callable[[], tuple[socket.socket, Wire]]:
    """Return what makes a connected socket and a fresh wire, each time it is called."""

    def connect() -> tuple[socket.socket, Wire]:
        found = meet(places(with_runtime_folder(os.environ, os.getuid()), os.getuid()), role, start=start)
        return found, Wire(role, desktop, client)

    return connect
