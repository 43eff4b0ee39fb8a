"""How much room is left for what a model is shown until the person it serves speaks again; see `tools.projection`."""

from __future__ import annotations

from surehand import limits


class Turn:
    """How much of a turn's room has been used."""

    def __init__(self) -> None:
        self.name: str | None = None
        self.spent = 0
        self._last_ms = 0

    def begin(self, name: str | None, now_ms: int) -> None:
        """Note that a call ends now; a new name or a long enough pause begins a turn."""
        if name != self.name or now_ms - self._last_ms >= limits.MODEL_TURN_IDLE_MS:
            self.name, self.spent = name, 0
        self._last_ms = now_ms

    @property
    def room(self) -> int:
        """How many bytes the next result may have."""
        left = limits.MODEL_TURN_BYTES_MAX - self.spent
        return min(limits.MODEL_RESULT_BYTES_MAX, max(limits.MODEL_RESULT_BYTES_MIN, left))
