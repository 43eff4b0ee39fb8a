"""Times as people read and write them on this machine; the console and its reader share one."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

_LOCAL: Final = "%Y-%m-%dT%H:%M"
_SHOWN: Final = "%d %b %H:%M:%S"


def of_journal(said: str) -> dict[str, str]:
    """Return a time of the journal for people and for machines; as it stands where it cannot be read."""
    try:
        at = datetime.fromisoformat(said)
    except ValueError:
        return {"text": said, "at": said}
    return {"text": at.astimezone().strftime(_SHOWN), "at": said}


def of_ms(at_ms: Any) -> dict[str, str]:
    """Return milliseconds of the wall clock for people and for machines."""
    try:
        at = datetime.fromtimestamp(int(at_ms) / 1000, UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        return {"text": str(at_ms), "at": ""}
    return {"text": at.astimezone().strftime(_SHOWN), "at": at.isoformat()}


def written(text: str) -> int | None:
    """Return what a person wrote into a field for date and time, in milliseconds; None where it is none."""
    try:
        at = datetime.strptime(text, _LOCAL).astimezone()
    except (ValueError, OverflowError):
        return None
    return max(0, int(at.timestamp() * 1000))
