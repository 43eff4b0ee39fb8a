"""Which parts of a screen are monitors, as RandR 1.5 tells; origins other than 0, 0 and gaps are as they are."""

from __future__ import annotations

from typing import Any, Final

import xcffib
import xcffib.randr

from surehand.adapters.x11.connection import Vanished, XServer
from surehand.errors import Unavailable

#: Monitors came with this version of RandR.
_MONITORS_SINCE: Final = (1, 5)


def read_monitors(server: XServer) -> tuple[dict[str, Any], ...]:
    """Return `{name, bounds, primary}` of each active monitor, the primary first; the screen where none is told."""
    try:
        randr = server.extension(xcffib.randr)
        version = randr.QueryVersion(*_MONITORS_SINCE).reply()
        if (version.major_version, version.minor_version) >= _MONITORS_SINCE:
            told = randr.GetMonitors(server.root, get_active=True).reply().monitors
            found = [_value(server, monitor) for monitor in told if monitor.width and monitor.height]
            if found:
                return tuple(sorted(found, key=lambda monitor: not monitor["primary"]))
    except (Unavailable, *Vanished):
        pass
    size = server.core.GetGeometry(server.root).reply()
    return ({"name": "screen", "bounds": [0, 0, size.width, size.height], "primary": True},)


def _value(server: XServer, monitor: Any) -> dict[str, Any]:
    name = bytes(server.core.GetAtomName(monitor.name).reply().name.buf()).decode("latin-1")
    return {
        "name": name,
        "bounds": [monitor.x, monitor.y, monitor.width, monitor.height],
        "primary": bool(monitor.primary),
    }
