"""Nothing is called done that was not read back, nothing failed that may have happened, nothing happens twice
(cases C14, C16–C18, C20, C22, C23, C25).
"""  # fmt: skip

from __future__ import annotations

import asyncio
import contextlib
import json
import time

import pytest

from surehand import limits
from surehand.errors import OutcomeUnknown, SurehandError, from_value
from surehand.model.actions import Invoke, SetValue, Toggle
from surehand.runtime.host import Host
from surehand.testing.desktop import IsolatedDesktop
from tests.desktop.cases.kit import LONG, UNICODE, Hand, On, appears, by_query, named

pytestmark = [pytest.mark.desktop, pytest.mark.asyncio(loop_scope="module")]

#: Longer than a call to an application and than a verification; the whole 8 s in the long run.
_BLOCK_MS = 8_000 if LONG else max(limits.APP_CALL_MS_MAX, limits.VERIFY_BUDGET_MS_DEFAULT) + 300


async def test_c14_a_press_whose_handler_blocks_never_reads_as_failed_and_is_never_done_twice(on: On) -> None:
    await on.change("block", ms=_BLOCK_MS)
    slow = await on.button("Slow")
    request = await on.hand.request(Invoke(), slow)
    on.mark = on.app.mark()
    reply = await on.hand.present(request)
    assert reply["status"] in {"succeeded", "outcome_unknown"}
    if reply["status"] == "succeeded":
        assert reply["terminal"]["receipt"]["effect"] == "executed_unverified"
    again = await on.hand.present(request)
    assert (again["status"], again["replayed"]) == (reply["status"], True)
    await on.app.wait_for("press_done", "slow", after=on.mark, timeout_s=_BLOCK_MS / 1000 + 5)
    await on.app.settle()
    assert on.effects() == [("press", "slow", "Slow"), ("press_done", "slow", None)]


async def test_c14_an_effect_that_the_blocked_handler_still_owes_is_unknown_not_failed(on: On) -> None:
    await on.change("set", control="check", value=False)
    await on.change("arm", control="switch", do={"cmd": "sleep", "ms": _BLOCK_MS})
    await on.change("set", control="switch", value=False)
    switch = await on.one(named("Wi-Fi"))
    late = {"kind": "state", "states": {"checked": True, "busy": True}}
    reply = await on.act(Toggle(to=True), switch, verification=late)
    assert reply["status"] in {"outcome_unknown", "failed"}
    if reply["status"] == "failed":
        assert reply["terminal"]["code"] == "verification_failed"
        # Only a contradiction that was read back after the handler had run is one.
        assert on.effects() == [("toggle", "switch", True)]
    await on.app.run("ping", timeout_s=_BLOCK_MS / 1000 + 5)
    await on.app.settle()
    assert on.effects() == [("toggle", "switch", True)]


@pytest.mark.parametrize("text", [UNICODE, "漢字 😀 e\u0301 עברית", "", "x" * 5_000])
async def test_c16_a_text_arrives_exactly_and_is_verified(on: On, text: str) -> None:
    await on.change("set_text", control="name", text="before")
    await on.done("verified", SetValue(value=text), await on.entry("name", "Name"))
    assert await on.change("get", control="name") == text
    assert on.effects("text", "name")[-1:] == [("text", "name", text)]


async def test_c16_a_text_that_the_field_cuts_is_not_a_success(on: On) -> None:
    entry = await on.entry("name", "Name")
    await on.change("set_text", control="name", text="before")
    await on.change("arm", control="name", do={"cmd": "set_text", "control": "name", "text": "ünïc"})
    reply = await on.act(SetValue(value="ünïcode-€"), entry)
    if await on.change("get", control="name") != "ünïcode-€":
        assert reply["status"] in {"failed", "outcome_unknown"}


async def test_c17_c18_a_text_that_the_field_ignores_is_one_failure_in_every_channel(on: On) -> None:
    """Each reply of every test here is checked by `check_honest`; this one looks at how a failure is shaped."""
    reply = await on.act(SetValue(value="new"), await on.entry("stubborn", "Stubborn"))
    assert (reply["status"], reply["terminal"]["code"]) == ("failed", "verification_failed")
    assert not reply["terminal"].get("retry_safe")
    assert await on.change("get", control="stubborn") == "cannot change"
    assert "ok" not in json.dumps(reply).split('"')
    stored = await on.hand.call("status", operation_id=reply["operation_id"])
    assert stored["terminal"] == reply["terminal"]
    assert stored["state"] == reply["status"] == "failed"


async def test_that_something_changed_verifies_nothing(on: On) -> None:
    """The press counter changes on every press; what was asked for is something else."""
    wrong = appears(named("Presses: ", "prefix"), named("never"))
    reply = await on.act(Invoke(), await on.button("Count"), verification=wrong)
    assert (reply["status"], reply["terminal"]["code"]) == ("failed", "verification_failed")
    await on.app.settle()
    assert on.effects() == [("press", "counter", "Count")]


async def test_c20_what_is_missing_is_reported_at_once_as_missing(on: On) -> None:
    for target in (by_query(on.surface, named("Nowhere")), by_query(on.surface, {"label": "e999999"})):
        started = time.monotonic()
        error = await on.refused("target_not_found", Invoke(), target)
        assert time.monotonic() - started < 1.0
        assert error["gate"] == "idempotency"


async def test_c22_c23_an_unknown_outcome_is_never_true_and_its_effect_waits_until_somebody_looked(on: On) -> None:
    await on.change("block", ms=_BLOCK_MS)
    slow = await on.button("In One")
    await on.change("arm", control="tab-one", do={"cmd": "sleep", "ms": _BLOCK_MS})
    reply = await on.act(Invoke(), slow, verification=appears(named("never")))
    assert reply["status"] == "outcome_unknown"
    error = from_value(reply["error"])
    assert isinstance(error, OutcomeUnknown)
    assert not error
    assert not error.retry_safe
    assert "true" not in json.dumps(reply["error"])
    await on.app.run("ping", timeout_s=_BLOCK_MS / 1000 + 5)
    await on.app.settle()
    assert on.effects() == [("press", "tab-one", "In One")]

    refused = await on.refused("reconcile_required", Invoke(), slow)
    assert refused["details"]["operation_id"] == reply["operation_id"]
    # A scene from before the unknown outcome shows nothing of it.
    await on.refused("reconcile_required", Invoke(), slow, reconciles=reply["operation_id"])
    again = await on.button("In One")
    await on.refused("reconcile_required", Invoke(), again, reconciles="some-other-operation")
    await on.presses_once("tab-one", "In One", Invoke(), again, reconciles=reply["operation_id"])


async def test_c23_one_id_is_one_effect_and_another_text_is_a_conflict(on: On) -> None:
    entry = await on.entry("name", "Name")
    request = await on.hand.request(SetValue(value="first"), entry)
    on.mark = on.app.mark()
    first = await on.hand.present(request)
    assert first["status"] == "succeeded"
    replay = await on.hand.present(request)
    assert (replay["replayed"], replay["terminal"], replay["proof"]) == (True, first["terminal"], first["proof"])
    other = await on.hand.request(SetValue(value="second"), entry, operation_id=request["operation_id"])
    refused = await on.hand.present(other)
    assert (refused["status"], refused["error"]["code"]) == ("refused", "conflict")
    assert [value for _, _, value in on.effects("text", "name") if value] == ["first"]


@pytest.mark.parametrize("target", ["element", "query"])
async def test_c25_two_identical_calls_at_once_are_one_effect_told_to_both(
    on: On, host: Host, desktop: IsolatedDesktop, target: str
) -> None:
    other = await Hand.connect(host, desktop)
    await other.window(on.app.pid, on.app.title)
    button = ({"role": "button"}, named("Count"))
    try:
        if target == "query":
            aims = [by_query(on.surface, *button)] * 2
        else:
            aims = [(await hand.find(on.surface, *button))[0] for hand in (on.hand, other)]
        first = await on.hand.request(Invoke(), aims[0])
        second = await other.request(Invoke(), aims[1], operation_id=first["operation_id"])
        on.mark = on.app.mark()
        replies = await asyncio.gather(on.hand.present(first), other.present(second))
        await on.app.settle()
        assert on.effects() == [("press", "counter", "Count")]
        assert replies[0]["status"] == "succeeded"
        assert replies[0]["terminal"] == replies[1]["terminal"]
        assert replies[0]["proof"] == replies[1]["proof"]
    finally:
        await other.close()


async def test_c25_ten_at_once_of_one_session_are_one_effect(on: On) -> None:
    request = await on.hand.request(Invoke(), await on.button("Count"))
    on.mark = on.app.mark()
    replies = await asyncio.gather(*(on.hand.present(request) for _ in range(10)))
    await on.app.settle()
    assert on.effects() == [("press", "counter", "Count")]
    assert all(reply["terminal"] == replies[0]["terminal"] for reply in replies)


async def test_c25_the_same_id_for_two_things_at_once_is_one_effect_and_one_conflict(on: On) -> None:
    count, later = await on.button("Count"), await on.button("Later")
    first = await on.hand.request(Invoke(), count)
    second = await on.hand.request(Invoke(), later, operation_id=first["operation_id"])
    on.mark = on.app.mark()
    replies = await asyncio.gather(on.hand.present(first), on.hand.present(second))
    await on.app.settle()
    assert [reply["status"] for reply in replies] == ["succeeded", "refused"]
    assert replies[1]["error"]["code"] == "conflict"
    assert on.effects() == [("press", "counter", "Count")]


async def test_a_caller_that_goes_away_before_the_effect_takes_it_along_or_it_ends_honestly(
    on: On, host: Host, desktop: IsolatedDesktop
) -> None:
    """Whatever the moment: pressed and a terminal, or not pressed and none."""
    for moment in range(6):
        other = await Hand.connect(host, desktop)
        await other.window(on.app.pid, on.app.title)
        count = (await other.find(on.surface, {"role": "button"}, named("Count")))[0]
        request = await other.request(Invoke(), count)
        on.mark = on.app.mark()
        calling = asyncio.create_task(other.present(request))
        for _ in range(moment * 4):
            await asyncio.sleep(0)
        await other.close()
        with contextlib.suppress(SurehandError, asyncio.CancelledError):
            await calling
        await on.app.settle()
        stored = await on.hand.call("status", operation_id=request["operation_id"])
        await on.hand.call("observe", surface=on.surface)
        pressed = on.presses("counter")
        if "terminal" in stored:
            assert len(pressed) == 1 or stored["terminal"]["kind"] != "succeeded"
            assert len(pressed) <= 1
        else:
            assert pressed == []
