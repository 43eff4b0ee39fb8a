"""When a window has come to rest (spec §8.6; ST07)."""

from __future__ import annotations

import pytest

from surehand import limits
from surehand.core.scene.settle import settle


def at(elapsed: int, quiet: int, *, busy: bool = False, effect: int | None = None):
    """Ask after an effect, which was when the waiting began if `effect` does not say how long ago."""
    ago = elapsed if effect is None else effect
    return settle(started_ms=1_000, now_ms=1_000 + elapsed, effect_ms_ago=ago, last_event_ms_ago=quiet, busy=busy)


@pytest.mark.parametrize(
    ("elapsed", "quiet", "busy", "status"),
    [
        (0, 10_000, False, "wait"),
        (limits.SETTLE_MIN_MS - 1, 10_000, False, "wait"),
        (limits.SETTLE_MIN_MS, 10_000, False, "settled"),
        (200, limits.SETTLE_QUIET_MS - 1, False, "wait"),
        (200, limits.SETTLE_QUIET_MS, False, "settled"),
        (limits.SETTLE_CAP_MS - 1, 0, False, "wait"),
        (limits.SETTLE_CAP_MS, 0, False, "possibly_unsettled"),
        (limits.SETTLE_CAP_MS, 10_000, False, "possibly_unsettled"),
        (limits.SETTLE_CAP_MS, 10_000, True, "wait"),
        (limits.SETTLE_BUSY_CAP_MS - 1, 10_000, True, "wait"),
        (limits.SETTLE_BUSY_CAP_MS, 10_000, True, "possibly_unsettled"),
    ],
)
def test_the_answer_at_each_limit_and_one_before(elapsed, quiet, busy, status):
    assert at(elapsed, quiet, busy=busy).status == status


@pytest.mark.parametrize(
    ("effect", "quiet", "busy", "status"),
    [
        (limits.SETTLE_MIN_MS, limits.SETTLE_QUIET_MS, False, "settled"),
        (limits.SETTLE_MIN_MS - 1, limits.SETTLE_QUIET_MS, False, "wait"),
        (limits.SETTLE_MIN_MS, limits.SETTLE_QUIET_MS - 1, False, "wait"),
        (10_000, 10_000, True, "wait"),
        (-5, 10_000, False, "wait"),
    ],
)
def test_a_window_at_rest_is_not_waited_for(effect, quiet, busy, status):
    assert at(0, quiet, busy=busy, effect=effect).status == status


def test_the_time_to_wait_ends_where_the_answer_can_change():
    assert at(0, 10_000).wait_ms == limits.SETTLE_MIN_MS
    assert at(100, 50).wait_ms == limits.SETTLE_QUIET_MS - 50
    assert at(limits.SETTLE_CAP_MS - 5, 0).wait_ms == 5


def test_asking_again_after_the_wait_always_ends():
    for busy in (False, True):
        now, asked = 0, 0
        while (answer := at(now, 0, busy=busy)).status == "wait":
            assert answer.wait_ms > 0
            now += answer.wait_ms
            asked += 1
        assert asked < 100


def test_a_clock_that_stood_still_or_an_event_from_the_future_settles_nothing_early():
    assert at(-5, 10_000).status == "wait"
    assert at(200, -5).status == "wait"
