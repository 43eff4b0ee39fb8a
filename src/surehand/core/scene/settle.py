"""Whether a window has come to rest after something happened (spec §8.6).

At rest: at least `SETTLE_MIN_MS` passed, the window's last event is `SETTLE_QUIET_MS` old or older, and it does not
say that it is busy. Not at rest by `SETTLE_CAP_MS`, or `SETTLE_BUSY_CAP_MS` while it is busy: possibly unsettled,
which is an answer and not an error. The time limit wins over quiet. Reads no clock.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from surehand import limits


class Settle(NamedTuple):
    """The answer now; with `wait`, ask again after `wait_ms` or at the next event, whichever is first."""

    status: Literal["wait", "settled", "possibly_unsettled"]
    wait_ms: int


def settle(*, started_ms: int, now_ms: int, last_event_ms_ago: int, busy: bool) -> Settle:
    """Return whether to wait on.

    Args:
        started_ms: When the waiting began.
        now_ms: Now, by the same clock.
        last_event_ms_ago: Age of the window's last event; a large number when there was none.
        busy: Whether the window says that it is loading.
    """
    elapsed = max(0, now_ms - started_ms)
    cap = limits.SETTLE_BUSY_CAP_MS if busy else limits.SETTLE_CAP_MS
    if elapsed >= cap:
        return Settle("possibly_unsettled", 0)
    least = limits.SETTLE_MIN_MS - elapsed
    quiet = limits.SETTLE_QUIET_MS - max(0, last_event_ms_ago)
    if not busy and least <= 0 and quiet <= 0:
        return Settle("settled", 0)
    # A busy window says so by an event when it is done; between events only the limit is worth waking for, but a
    # toolkit may forget to say it, so look again after each quiet span.
    wait = limits.SETTLE_QUIET_MS if busy else max(least, quiet, 1)
    return Settle("wait", min(wait, cap - elapsed))
