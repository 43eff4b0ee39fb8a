"""Applications that hang, die, or put a dialog in the way cost nobody else, and are named (cases C26–C28, C30)."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
import pytest_asyncio

from surehand import limits
from surehand.errors import Unavailable, WindowNotFound
from surehand.model.actions import Click, Invoke, SetValue
from surehand.testing.desktop import IsolatedDesktop
from surehand.testing.fixture_app import TOOLKITS, FixtureApp
from tests.desktop.cases.kit import Hand, On, appears, by_query, named, until

pytestmark = [pytest.mark.desktop, pytest.mark.asyncio(loop_scope="module")]

_SECTIONS = ["buttons", "text", "values"]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def lively(desktop: IsolatedDesktop) -> AsyncIterator[FixtureApp]:
    """An application that does nothing but answer."""
    running = await FixtureApp.start(desktop, "gtk3", sections=_SECTIONS, title="Lively")
    yield running
    running.close()


@pytest_asyncio.fixture(loop_scope="module", params=TOOLKITS)
async def mortal(request: pytest.FixtureRequest, hand: Hand, desktop: IsolatedDesktop) -> AsyncIterator[On]:
    """An application that may hang or die in a test."""
    running = await FixtureApp.start(desktop, request.param, sections=_SECTIONS)
    on = await On.reach(hand, running)
    yield on
    running.resume() if running.process.returncode is None else None
    running.close()


async def timed(work: Callable[[], Awaitable[object]]) -> float:
    started = time.monotonic()
    await work()
    return time.monotonic() - started


async def test_c26_a_hung_application_is_named_in_its_own_time_and_slows_nobody_else(
    mortal: On, hand: Hand, lively: FixtureApp
) -> None:
    other = await On.reach(hand, lively)
    count = await mortal.button("Count")
    await other.button("Count")

    async def round_of_work() -> None:
        await hand.call("observe", surface=other.surface)
        await other.presses_once("counter", "Count", Invoke(), await other.button("Count"))

    before = max([await timed(round_of_work) for _ in range(3)])
    mortal.app.stop()
    try:
        started = time.monotonic()
        reply = await mortal.act(Invoke(), count)
        assert (reply["status"], reply["error"]["code"]) == ("refused", "backend_unavailable")
        # Its own time-out, once to find out that it hangs and once to give it a chance.
        assert time.monotonic() - started < 2 * limits.APP_CALL_MS_MAX / 1000 + 0.5
        during = [await timed(round_of_work) for _ in range(3)]
        # As fast as before, give or take the noise of a shared machine; far from a time-out.
        assert min(during) < max(2 * before, limits.APP_PATIENCE_MS / 1000)
        listed = await hand.call("surfaces")
        assert mortal.surface not in [one["surface_id"] for one in listed["surfaces"]]
        silent = [one for one in (await hand.call("apps"))["silent"] if one["pid"] == mortal.app.pid]
        assert [one["error"]["code"] for one in silent] == ["backend_unavailable"]
        assert mortal.effects() == []
    finally:
        mortal.app.resume()

    async def listed_again() -> bool:
        found = await hand.call("surfaces")
        return mortal.surface in [one["surface_id"] for one in found["surfaces"]]

    ends_at = time.monotonic() + 10
    while not await listed_again():
        assert time.monotonic() < ends_at
        await asyncio.sleep(0.01)
    await mortal.app.settle()
    assert mortal.effects() == []
    await mortal.presses_once("counter", "Count", Invoke(), await mortal.button("Count"))


async def test_c26_a_hung_application_that_took_over_the_name_of_anothers_socket_makes_nobody_wait(
    hand: Hand, desktop: IsolatedDesktop
) -> None:
    """GTK 3 names its socket after its pid, which programs in namespaces of their own have in common."""
    first = await FixtureApp.start(desktop, "gtk3", sections=_SECTIONS, title="First")
    one = await On.reach(hand, first)
    second = await FixtureApp.start(desktop, "gtk3", sections=_SECTIONS, title="Second")
    try:
        await On.reach(hand, second)
        count = await one.button("Count")
        second.stop()
        took = await timed(lambda: one.presses_once("counter", "Count", Invoke(), count))
        assert took < 0.9 * limits.APP_CALL_MS_MAX / 1000
    finally:
        second.resume()
        second.close()
        first.close()


async def test_c26_a_read_and_an_action_on_others_go_on_while_one_is_being_waited_for(
    mortal: On, hand: Hand, lively: FixtureApp
) -> None:
    other = await On.reach(hand, lively)
    count = await mortal.button("Count")
    mortal.app.stop()
    try:
        hanging = asyncio.create_task(hand.act(Invoke(), count))
        took = await timed(lambda: hand.call("observe", surface=other.surface))
        await other.presses_once("counter", "Count", Invoke(), await other.button("Count"))
        # It did not wait for the time-out of the other; the rest is left to a busy machine.
        assert took < 0.9 * limits.APP_CALL_MS_MAX / 1000
        assert (await hanging)["status"] == "refused"
    finally:
        mortal.app.resume()


async def test_c26_what_a_hung_application_shows_is_neither_there_nor_gone(mortal: On, hand: Hand) -> None:
    """Silence proves nothing: no verification and no wait may take it for an answer."""
    pay = await mortal.button("Pay 10")
    # It stops as soon as it has been sent the press.
    request = await hand.request(Invoke(), pay, verification={"kind": "disappears"})
    mortal.mark = mortal.app.mark()
    pressing = asyncio.create_task(hand.present(request))
    await mortal.begun(request["operation_id"])
    mortal.app.stop()
    try:
        reply = await pressing
        assert reply["status"] == "outcome_unknown", reply
        key = next(one["app"] for one in (await hand.call("apps"))["silent"] if one["pid"] == mortal.app.pid)
        for where in ({"surface": mortal.surface}, {"app": str(mortal.app.pid)}, {"app": key}):
            waited = await hand.call(
                "wait",
                **where,
                conditions=[{"kind": "element_gone", "query": {"filters": [named("Pay 10")]}}],
                timeout_ms=100,
            )
            assert waited["satisfied"] is False, where
    finally:
        mortal.app.resume()
    await mortal.app.settle()
    assert len(mortal.presses("pay")) <= 1


async def test_c27_an_application_that_dies_while_it_is_read_costs_no_second_a_node(
    hand: Hand, desktop: IsolatedDesktop, lively: FixtureApp
) -> None:
    other = await On.reach(hand, lively)
    for toolkit in TOOLKITS:
        app = await FixtureApp.start(desktop, toolkit, sections=["buttons"], bulk=400)
        on = await On.reach(hand, app)
        reading = asyncio.create_task(hand.call("observe", surface=on.surface))
        await asyncio.sleep(0)
        app.kill()
        started = time.monotonic()
        with contextlib.suppress(Unavailable, WindowNotFound):
            await reading
        assert time.monotonic() - started < limits.APP_CALL_MS_MAX / 1000
        assert await timed(lambda: hand.call("observe", surface=other.surface)) < limits.APP_CALL_MS_MAX / 1000
        await gone(hand, on.surface)
        app.close()


async def gone(hand: Hand, surface: str) -> None:
    ends_at = time.monotonic() + 10
    while surface in [one["surface_id"] for one in (await hand.call("surfaces"))["surfaces"]]:
        assert time.monotonic() < ends_at, "a dead application is still listed"
        await asyncio.sleep(0.01)


async def test_c27_acting_on_a_dead_application_is_refused_at_once(mortal: On) -> None:
    count = await mortal.button("Count")
    mortal.app.kill()
    started = time.monotonic()
    reply = await mortal.act(Invoke(), count)
    assert reply["status"] == "refused"
    assert reply["error"]["code"] in {"window_not_found", "backend_unavailable", "stale_target"}
    assert time.monotonic() - started < limits.APP_CALL_MS_MAX / 1000


async def test_c27_an_application_that_dies_in_its_handler_leaves_an_honest_end(mortal: On) -> None:
    entry = await mortal.entry("name", "Name")
    await mortal.change("arm", control="name", do={"cmd": "die"})
    reply = await mortal.act(SetValue(value="last words"), entry)
    assert reply["status"] == "outcome_unknown"
    await until(lambda: mortal.app.process.returncode is not None, "the death")
    assert len(mortal.effects()) == 1


async def test_c27_a_press_that_ends_its_application_is_not_failed(mortal: On) -> None:
    reply = await mortal.act(Invoke(), await mortal.button("Crash"))
    assert reply["status"] in {"succeeded", "outcome_unknown"}
    assert mortal.effects() in ([("press", "crash", "Crash")], [])
    await until(lambda: mortal.app.process.returncode is not None, "the death")
    assert mortal.effects() == [("press", "crash", "Crash")]


async def test_c28_a_dialog_that_opens_in_the_middle_of_a_batch_stops_it(on: On) -> None:
    opens, count, later = [await on.button(name) for name in ("Open dialog", "Count", "Later")]
    steps = [
        await on.hand.request(Invoke(), opens, verification=appears(named("Are you sure?"))),
        await on.hand.request(Invoke(), count),
        await on.hand.request(Invoke(), later),
    ]
    on.mark = on.app.mark()
    batch = {"operation_id": f"batch-{on.toolkit}-{on.mark}", "steps": steps}
    done = await on.hand.call("batch", batch=batch)
    await on.app.settle()
    assert [reply["status"] for reply in done["replies"]] == ["succeeded", "refused"]
    error = done["replies"][1]["error"]
    assert (error["code"], error["observed"]["dialog"]) == ("behind_modal", "Question")
    assert done["stopped_by"] == batch["operation_id"] + ":1"
    assert on.effects() == [("press", "open-dialog", "Open dialog"), ("dialog", "dialog", "opened")]


async def test_c28_steps_of_a_batch_act_on_what_an_earlier_step_enabled(on: On) -> None:
    """The submit button is disabled when the batch is written and enabled when its turn comes (C13, native)."""
    await on.change("enable", control="disabled", enabled=False)
    entry, submit = await on.entry("name", "Name"), await on.button("Disabled")
    await on.refused("target_not_actionable", Invoke(), submit)
    await on.change("arm", control="name", do={"cmd": "enable", "control": "disabled"})
    steps = [await on.hand.request(SetValue(value="filled"), entry), await on.hand.request(Invoke(), submit)]
    on.mark = on.app.mark()
    done = await on.hand.call("batch", batch={"operation_id": f"form-{on.toolkit}-{on.mark}", "steps": steps})
    await on.app.settle()
    assert [reply["status"] for reply in done["replies"]] == ["succeeded", "succeeded"], done
    assert on.presses("disabled") == ["Disabled"]


async def test_c30_a_window_of_the_same_application_over_the_control_is_not_clicked(on: On) -> None:
    await on.place(0, 0)
    later = await on.button("Later")
    await on.change("window_open")
    try:
        second = await on.hand.window(on.app.pid, "Second window")
        x, y = later["bounds"][:2]
        over = {"kind": "surface", "ref": second}
        move = {"kind": "window", "op": "move", "x": max(0, x - 10), "y": max(0, y - 40)}
        assert (await on.hand.act(move, over))["status"] == "succeeded"
        assert (await on.hand.act({"kind": "window", "op": "focus"}, over))["status"] == "succeeded"
        await on.refused("stale_target", Click(), later)
        # The right way needs no place.
        await on.presses_once("later", "Later", Invoke(), later)
    finally:
        await on.change("window_close")


async def test_a_query_of_a_hung_application_is_an_error_and_not_an_empty_answer(mortal: On) -> None:
    mortal.app.stop()
    try:
        reply = await mortal.act(Invoke(), by_query(mortal.surface, named("Count")))
        assert (reply["status"], reply["error"]["code"]) == ("refused", "backend_unavailable")
    finally:
        mortal.app.resume()
