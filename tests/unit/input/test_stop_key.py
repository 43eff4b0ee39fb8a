"""The stop key: which presses complete it, at each limit and past it."""

from __future__ import annotations

import pytest

from surehand import limits
from surehand.core.input.stop_key import DEFAULT, StopKey, parse_stop_key
from surehand.errors import InvalidRequest
from surehand.runtime.config import Config

ESCAPE, PAUSE, LETTER = 9, 127, 38
KEYMAP = {ESCAPE: (0xFF1B,), PAUSE: (0xFF13, 0xFF6B), LETTER: (0x61, 0x41)}


def watching(text: str = DEFAULT) -> StopKey:
    key = StopKey(parse_stop_key(text))
    key.learn(KEYMAP)
    return key


def tap(key: StopKey, keycode: int, time_ms: int) -> bool:
    complete = key.pressed(keycode, time_ms)
    key.released(keycode)
    return complete


def test_two_presses_within_the_time_complete_it_and_one_millisecond_more_does_not() -> None:
    key = watching()
    assert not tap(key, ESCAPE, 1_000)
    assert tap(key, ESCAPE, 1_000 + limits.STOP_KEY_MS_MAX)
    assert not tap(key, ESCAPE, 9_000)
    assert not tap(key, ESCAPE, 9_001 + limits.STOP_KEY_MS_MAX)
    assert tap(key, ESCAPE, 9_002 + limits.STOP_KEY_MS_MAX)


def test_another_key_in_between_breaks_it() -> None:
    key = watching()
    assert not tap(key, ESCAPE, 1_000)
    assert not tap(key, LETTER, 1_050)
    assert not tap(key, ESCAPE, 1_100)


def test_a_key_that_is_held_and_repeats_is_one_press() -> None:
    key = watching()
    assert not any(key.pressed(ESCAPE, 1_000 + 30 * index) for index in range(20))
    key.released(ESCAPE)
    assert not key.pressed(ESCAPE, 3_000)


def test_one_press_too_many_at_the_beginning_loses_nothing() -> None:
    key = watching("Escape Escape Pause")
    for index in range(3):
        assert not tap(key, ESCAPE, 1_000 + 100 * index)
    assert tap(key, PAUSE, 1_300)
    # What completed it once is not half of the next.
    assert not tap(key, ESCAPE, 1_400)
    assert not tap(key, PAUSE, 1_500)


def test_one_press_of_a_single_key_is_enough() -> None:
    key = watching("Pause")
    assert not tap(key, ESCAPE, 1)
    assert tap(key, PAUSE, 2)


def test_a_time_that_wraps_around_is_no_long_time() -> None:
    key = watching()
    assert not tap(key, ESCAPE, 2**32 - 100)
    assert tap(key, ESCAPE, 50)


def test_taking_the_key_out_of_the_keymap_takes_no_stop_away() -> None:
    key = watching("Pause")
    key.learn({LETTER: (0x61,), PAUSE: (0x62,)})
    assert tap(key, PAUSE, 1)


def test_none_is_no_stop_key() -> None:
    key = watching("none")
    assert not key.watched
    assert not tap(key, ESCAPE, 1)


@pytest.mark.parametrize(
    "text", ["", "Nokey", "ctrl+c", "Shift_L", " ".join(["a"] * (limits.STOP_KEY_PRESSES_MAX + 1))]
)
def test_what_is_no_stop_key_stops_the_start_of_the_daemon(text: str) -> None:
    with pytest.raises(InvalidRequest):
        Config(stop_key=text)


def test_as_many_presses_as_the_limit_says_are_taken() -> None:
    assert len(parse_stop_key(" ".join(["a"] * limits.STOP_KEY_PRESSES_MAX))) == limits.STOP_KEY_PRESSES_MAX
