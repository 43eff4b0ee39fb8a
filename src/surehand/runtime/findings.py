"""What the machine has for desktops, as an agent may know it: no path of this user, and looked for seldom."""

from __future__ import annotations

import asyncio
import re
from typing import Any, Final

from surehand import limits
from surehand.ports import Clock
from surehand.runtime.desktops import doctor_facts

#: Paths that are the same on every machine say nothing about this one.
_PATH: Final = re.compile(r"(?<![\w.])~?/(?!usr/|proc/sys/|tmp/\.X11-unix)[^\s,;:)]*")


class Findings:
    """What the machine has for desktops, looked for at most once in `limits.DOCTOR_KEPT_MS`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._found: list[dict[str, Any]] = []
        self._until_ms = -1
        self._looking = asyncio.Lock()

    async def get(self) -> list[dict[str, Any]]:
        """Return them, each `{name, ok, needed, detail?, fix?}`; details only of what is wrong."""
        async with self._looking:
            if self._clock.monotonic_ms() >= self._until_ms:
                self._found = [_told(fact) for fact in await doctor_facts()]
                self._until_ms = self._clock.monotonic_ms() + limits.DOCTOR_KEPT_MS
            return self._found


def _told(fact: Any) -> dict[str, Any]:
    value: dict[str, Any] = {"name": fact.name, "ok": fact.ok, "needed": fact.needed}
    if not fact.ok:
        value["detail"] = without_paths(fact.detail)
        if fact.fix is not None:
            value["fix"] = without_paths(fact.fix)
    return value


def without_paths(text: str) -> str:
    """Return text without paths that are of this machine or this user alone."""
    return _PATH.sub("(a path that `surehand doctor` shows)", text)
