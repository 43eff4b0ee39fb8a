"""Whether a window has come to rest after something happened (spec §8.6).

At rest: the last effect is at least `SETTLE_MIN_MS` ago, the window's last event `SETTLE_QUIET_MS` or more, and it does
not say that it is busy: a window that is at rest already is not waited for. Not at rest by `SETTLE_CAP_MS`, or
`SETTLE_BUSY_CAP_MS` while it is busy: possibly unsettled, which is an answer and not an error. The time limit wins over
quiet. Reads no clock.

`differs` says whether an effect can be seen: by what the text form shows, and not by where the focus went, which an
attempt moves by itself.
"""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple

from surehand import limits
from surehand.core.scene.render import render
from surehand.model.scene import Scene

#: What pressing an element does to it before anything comes of it.
_PASSING: Final = re.compile(r" (?:focused|pressed|active)(?= |$)")


class Settle(NamedTuple):
    """The answer now; with `wait`, ask again after `wait_ms` or at the next event, whichever is first."""

    status: Literal["wait", "settled", "possibly_unsettled"]
    wait_ms: int


def settle(*, started_ms: int, now_ms: int, effect_ms_ago: int, last_event_ms_ago: int, busy: bool) -> Settle:
    """Return whether to wait on.

    Args:
        started_ms: When the waiting began.
        now_ms: Now, by the same clock.
        effect_ms_ago: Age of the last effect on the window's desktop; a large number when there was none.
        last_event_ms_ago: Age of the window's last event; a large number when there was none.
        busy: Whether the window says that it is loading.
    """
    elapsed = max(0, now_ms - started_ms)
    cap = limits.SETTLE_BUSY_CAP_MS if busy else limits.SETTLE_CAP_MS
    if elapsed >= cap:
        return Settle("possibly_unsettled", 0)
    least = limits.SETTLE_MIN_MS - max(0, effect_ms_ago)
    quiet = limits.SETTLE_QUIET_MS - max(0, last_event_ms_ago)
    if not busy and least <= 0 and quiet <= 0:
        return Settle("settled", 0)
    # A busy window says so by an event when it is done; between events only the limit is worth waking for, but a
    # toolkit may forget to say it, so look again after each quiet span.
    wait = limits.SETTLE_QUIET_MS if busy else max(least, quiet, 1)
    return Settle("wait", min(wait, cap - elapsed))


def differs(before: Scene, now: Scene) -> bool:
    """Return whether the text form shows a difference other than the focus or a button held down."""
    if before.tree is now.tree:
        return False
    one, other = render(before).lines[1:], render(now).lines[1:]
    if one == other:
        return before.surface.title != now.surface.title
    return len(one) != len(other) or any(
        _PASSING.sub("", old) != _PASSING.sub("", new) for old, new in zip(one, other, strict=True) if old != new
    )
