"""A flag wakes whoever waits for it, and those who come later do not wait."""

from __future__ import annotations

import asyncio

import pytest

from surehand.core import outcome
from surehand.core.outcome import Known, row_of, terminal_of
from surehand.runtime.resolve import Aim
from surehand.runtime.run import Flag


async def test_setting_a_flag_wakes_everybody_who_waits_and_nobody_waits_afterwards():
    flag = Flag()
    waiting = [asyncio.ensure_future(flag.wait()) for _ in range(3)]
    await asyncio.sleep(0)
    assert not flag.is_set()
    assert not any(waiter.done() for waiter in waiting)
    flag.set()
    async with asyncio.timeout(5):
        await asyncio.gather(*waiting)
        await flag.wait()
    assert flag.is_set()


async def test_a_waiter_that_gives_up_leaves_the_others_waiting():
    flag = Flag()
    first, second = (asyncio.ensure_future(flag.wait()) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert not second.done()
    flag.set()
    async with asyncio.timeout(5):
        await second


def test_two_flags_are_set_apart():
    one, other = Flag(), Flag()
    one.set()
    assert not other.is_set()


def test_an_ending_is_remembered_by_everything_that_is_known():
    terminal_of.cache_clear()
    known = [Known(status="no_effect", verification="not_asked", cancelled=cancelled) for cancelled in (False, True)]
    for _ in range(2):
        assert [terminal_of(one).code for one in known] == [row_of(one).end(one).code for one in known]
    assert terminal_of(known[0]).code != terminal_of(known[1]).code


def test_endings_are_remembered_up_to_the_limit_and_no_further():
    terminal_of.cache_clear()
    for delivered in range(outcome.ENDINGS_MAX + 1):
        terminal_of(Known(status="sent", verification="not_asked", interrupted=True, delivered=delivered))
    assert terminal_of.cache_info().currsize == outcome.ENDINGS_MAX


def test_what_aims_at_no_element_has_none():
    assert Aim().node is None
    assert Aim(index=0).node is None
