"""The real clock; everything else takes time as an argument or through `ports.Clock`."""

from __future__ import annotations

import time


class SystemClock:
    """Monotonic and wall-clock milliseconds of this machine."""

    def monotonic_ms(self) -> int:
        """Return milliseconds that never go back."""
        return time.monotonic_ns() // 1_000_000

    def wall_ms(self) -> int:
        """Return milliseconds since 1970."""
        return time.time_ns() // 1_000_000
