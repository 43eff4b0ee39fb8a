"""Broken connections: reads are asked once more, effects are looked up, nothing is sent twice (case C23)."""

from __future__ import annotations

import asyncio
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import surehand
from surehand import limits
from surehand.errors import InternalError, OutcomeUnknown, Unavailable
from tests.unit.client.conftest import Desk, match, reply, until
from tests.unit.daemon.fakes import Running


def cut(run: Running) -> None:
    """Close every connection, as a dying daemon does."""
    for group in run.server._connections.values():
        for connection in list(group):
            connection._transport.abort()  # type: ignore[union-attr]


def breaks(run: Running, times: int, then: Any) -> Any:
    """A method that loses its connection so many times, then answers."""
    left = [times]

    async def method(_channel: Any, params: Any, _progress: Any) -> Any:
        if left[0]:
            left[0] -= 1
            cut(run)
            await asyncio.Event().wait()
        return then(params) if callable(then) else then

    return method


def test_a_read_whose_connection_broke_is_asked_once_more(desk: Desk, run: Running) -> None:
    desk.script["apps"] = breaks(run, 1, {"apps": [{"name": "notes"}]})
    with surehand.open() as hand:
        assert hand.apps() == [{"name": "notes"}]
    assert len(desk.named("apps")) == 2


def test_a_read_is_not_asked_a_third_time_and_is_safe_to_repeat(desk: Desk, run: Running) -> None:
    desk.script["apps"] = breaks(run, 2, {"apps": []})
    with surehand.open() as hand, pytest.raises(Unavailable) as lost:
        hand.apps()
    assert len(desk.named("apps")) == 2
    assert lost.value.retry_safe


def test_whatever_breaks_in_a_read_it_is_safe_to_repeat_and_an_effect_is_not(desk: Desk) -> None:
    async def broken(*_: Any) -> dict[str, Any]:
        raise InternalError("broken inside", retry_safe=False)

    desk.script.update(apps=broken, act=broken)
    with surehand.open() as hand:
        with pytest.raises(InternalError) as read:
            hand.apps()
        with pytest.raises(InternalError) as effect:
            hand.act({"kind": "invoke"}, match()["ref"])
    assert (read.value.retry_safe, effect.value.retry_safe) == (True, False)


async def test_the_asynchronous_form_asks_once_more_too(desk: Desk, run: Running) -> None:
    desk.script["apps"] = breaks(run, 1, {"apps": []})
    async with surehand.connect() as hand:
        assert await hand.apps() == []
    assert len(desk.named("apps")) == 2


def test_an_effect_whose_answer_was_lost_is_looked_up_not_sent_again(desk: Desk, run: Running) -> None:
    async def status(_channel: Any, params: Any, _progress: Any) -> Any:
        known = reply(params["operation_id"])
        return {
            "operation_id": params["operation_id"],
            "state": "succeeded",
            "terminal": known["terminal"],
            "proof": known["proof"],
        }

    desk.script["act"] = breaks(run, 1, None)
    desk.script["status"] = status
    with surehand.open() as hand:
        done = hand.app("notes").get_by_role("button").press(operation_id="o1")
    assert isinstance(done, surehand.Receipt)
    assert done.replayed
    assert len(desk.named("act")) == 1
    assert desk.named("status") == [{"operation_id": "o1"}]


def test_a_lost_effect_that_ended_unknown_is_raised_as_that(desk: Desk, run: Running) -> None:
    async def status(_channel: Any, params: Any, _progress: Any) -> Any:
        return {
            "operation_id": "o1",
            "state": "outcome_unknown",
            "terminal": reply("o1", "outcome_unknown")["terminal"],
        }

    desk.script["act"] = breaks(run, 1, None)
    desk.script["status"] = status
    with surehand.open() as hand, pytest.raises(OutcomeUnknown):
        hand.app("notes").get_by_role("button").press(operation_id="o1")
    assert len(desk.named("act")) == 1


def test_an_effect_that_never_ended_is_presented_again_under_its_own_id(desk: Desk, run: Running) -> None:
    async def status(_channel: Any, params: Any, _progress: Any) -> Any:
        return {"operation_id": params["operation_id"], "state": "refused"}

    desk.script["act"] = breaks(run, 1, lambda params: reply(params["request"]["operation_id"]))
    desk.script["status"] = status
    with surehand.open() as hand:
        assert hand.app("notes").get_by_role("button").press()
    first, second = desk.named("act")
    assert first == second


def test_an_effect_is_not_presented_to_a_daemon_with_another_journal(desk: Desk, run: Running) -> None:
    """It would say that nothing was ever dispatched, which of another journal is no news."""

    async def act(_channel: Any, _params: Any, _progress: Any) -> Any:
        desk.journal = "another"
        cut(run)
        await asyncio.Event().wait()

    desk.script["act"] = act
    desk.script["status"] = breaks(run, 0, {"operation_id": "o1", "known": False})
    with surehand.open() as hand, pytest.raises(OutcomeUnknown):
        hand.app("notes").get_by_role("button").press(operation_id="o1")
    assert len(desk.named("act")) == 1
    assert desk.named("status") == []


def test_an_effect_still_in_flight_is_waited_for_and_never_presented_again(desk: Desk, run: Running) -> None:
    """Presented again with references of the lost session it would read as stale, which is not what happened."""
    looks: list[Any] = []

    async def status(_channel: Any, params: Any, _progress: Any) -> Any:
        looks.append(params)
        value = {"operation_id": params["operation_id"], "known": True, "in_flight": len(looks) < 3}
        return value if len(looks) < 3 else {**value, "terminal": reply("o1")["terminal"]}

    desk.script["act"] = breaks(run, 1, None)
    desk.script["status"] = status
    with surehand.open() as hand:
        assert hand.app("notes").get_by_role("button").press(operation_id="o1")
    assert len(looks) == 3
    assert len(desk.named("act")) == 1


def test_an_effect_in_flight_for_too_long_is_unknown(desk: Desk, run: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    async def status(_channel: Any, params: Any, _progress: Any) -> Any:
        return {"operation_id": params["operation_id"], "known": True, "in_flight": True}

    monkeypatch.setattr(limits, "CALL_MARGIN_MS", 100)
    desk.script["act"] = breaks(run, 1, None)
    desk.script["status"] = status
    with surehand.open() as hand, pytest.raises(OutcomeUnknown):
        hand.app("notes").get_by_role("button").press(operation_id="o1", deadline_ms=50)
    assert len(desk.named("act")) == 1


def test_a_lost_batch_tells_which_steps_ran_and_sends_none_again(desk: Desk, run: Running) -> None:
    async def status(_channel: Any, params: Any, _progress: Any) -> Any:
        name = params["operation_id"]
        return (
            {"operation_id": name, "known": True, "terminal": reply(name)["terminal"]}
            if name != "b:2"
            else {"operation_id": name, "known": False}
        )

    desk.script["batch"] = breaks(run, 1, None)
    desk.script["status"] = status
    with surehand.open() as hand:
        step = hand.app("calc").get_by_role("button").step
        done = hand.batch([step.press() for _ in range(4)], operation_id="b")
    assert not done
    assert [one["operation_id"] for one in done] == ["b:0", "b:1"]
    assert done.stopped_by == "b:2"
    assert len(desk.named("batch")) == 1


def test_an_effect_that_cannot_be_looked_up_is_unknown_and_names_its_id(desk: Desk, run: Running) -> None:
    desk.script["act"] = breaks(run, 1, None)
    desk.script["status"] = breaks(run, 1, None)
    with surehand.open() as hand, pytest.raises(OutcomeUnknown) as caught:
        hand.app("notes").get_by_role("button").press(operation_id="o1")
    assert caught.value.details == {"operation_id": "o1"}
    assert not caught.value
    assert len(desk.named("act")) == 1


async def test_cancelling_the_task_cancels_the_call_and_leaves_the_connection_usable(desk: Desk) -> None:
    async def forever(*_: Any) -> Any:
        await asyncio.Event().wait()

    desk.script["capabilities"] = forever
    async with surehand.connect() as hand:
        asking = asyncio.create_task(hand.capabilities())
        await asyncio.to_thread(until, lambda: bool(desk.named("capabilities")))
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert await hand.surfaces() == [{"surface_id": "w1", "title": "notes"}]
        assert desk.cancelled == ["capabilities"]
        assert len(desk.opened) == 1


async def test_calls_run_side_by_side_on_one_connection(desk: Desk) -> None:
    started: list[Any] = []
    together = asyncio.Event()

    async def both(_channel: Any, params: Any, _progress: Any) -> Any:
        started.append(params)
        if len(started) == 2:
            together.set()
        await together.wait()
        return {"operation_id": params["operation_id"]}

    desk.script["status"] = both
    async with surehand.connect() as hand:
        one, two = await asyncio.gather(hand.status("a"), hand.status("b"))
    assert (one["operation_id"], two["operation_id"]) == ("a", "b")


def test_ctrl_c_in_a_blocking_call_cancels_it_and_lets_everything_go(desk: Desk) -> None:
    async def interrupted(*_: Any) -> Any:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        await asyncio.Event().wait()

    desk.script["act"] = interrupted
    with surehand.open() as hand:
        with pytest.raises(KeyboardInterrupt):
            hand.launch(["mousepad"])
        until(lambda: desk.cancelled == ["act"] and desk.closed == desk.opened)
        assert hand.surfaces()


async def test_the_blocking_client_works_inside_a_running_event_loop(desk: Desk) -> None:
    """As in a notebook."""
    with surehand.open() as hand:
        assert hand.app("notes").get_by_role("button").press()


def test_threads_that_share_a_hand_take_turns_and_share_one_new_connection(desk: Desk, run: Running) -> None:
    with surehand.open() as hand, ThreadPoolExecutor(8) as pool:
        run.loop.call_soon_threadsafe(cut, run)
        until(lambda: desk.closed == desk.opened)
        assert len(list(pool.map(lambda _: hand.surfaces(), range(32)))) == 32
    assert len(desk.opened) == 2


async def test_tasks_that_find_the_connection_gone_make_one_new_one(desk: Desk, run: Running) -> None:
    async with surehand.connect() as hand:
        run.loop.call_soon_threadsafe(cut, run)
        await asyncio.to_thread(until, lambda: desk.closed == desk.opened)
        await asyncio.gather(*(hand.surfaces() for _ in range(16)))
    assert len(desk.opened) == 2


def test_a_closed_hand_is_not_reopened(desk: Desk) -> None:
    with surehand.open() as hand:
        pass
    with pytest.raises(Unavailable, match="closed"):
        hand.apps()


def test_leaving_the_block_closes_the_channel(desk: Desk) -> None:
    with surehand.open():
        assert desk.closed == []
    until(lambda: desk.closed == desk.opened)


def test_a_refused_request_travels_as_its_type_with_candidates(desk: Desk) -> None:
    async def observe(*_: Any) -> Any:
        raise surehand.AmbiguousTarget("two", observed={"candidates": ["a", "b"]}, fix="choose")

    desk.script["observe"] = observe
    with surehand.open() as hand, pytest.raises(surehand.AmbiguousTarget) as caught:
        hand.observe("notes")
    assert str(caught.value) == "ambiguous_target: two\ncandidates (as shown on screen):\n  a\n  b\nfix: choose"


def test_observe_names_one_place(desk: Desk) -> None:
    with surehand.open() as hand:
        with pytest.raises(TypeError):
            hand.observe()
        with pytest.raises(TypeError):
            hand.observe("notes", surface="w1")


def test_a_request_too_large_for_the_daemon_is_refused_here(desk: Desk) -> None:
    with surehand.open() as hand, pytest.raises(surehand.SurehandError) as caught:
        hand.app("notes").get_by_role("text").set_value("x" * (1024 * 1024 + 1))
    assert caught.value.code == "too_large"
    assert desk.acts == []
