"""Random digits: none is handed out twice, none is asked for one by one."""

from __future__ import annotations

import os

from surehand.runtime.chance import Chance


def test_no_string_comes_twice_and_all_have_the_length():
    chance = Chance(24)
    strings = [chance.next() for _ in range(1_000)]
    assert len(set(strings)) == 1_000
    assert {len(string) for string in strings} == {48}


def test_what_the_system_gave_is_handed_out_once_and_in_order():
    given: list[bytes] = []

    def randomness(size: int) -> bytes:
        given.append(os.urandom(size))
        return given[-1]

    chance = Chance(4, randomness=randomness)
    strings = [chance.next() for _ in range(300)]
    assert "".join(strings) == b"".join(given).hex()[: 300 * 8]
    assert len(given) == 3
