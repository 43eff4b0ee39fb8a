"""Attacks on "at most once" and on honest outcomes: races, cancellations, lost terminals, twins of the unknown."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from surehand import limits
from surehand.errors import Cancelled, InvalidRequest, SurehandError, Unavailable
from surehand.model.actions import Click, SetValue
from surehand.model.outcome import Reply
from surehand.model.query import Filter, Query, TextMatch
from surehand.model.request import Batch, Request
from surehand.model.targets import QueryTarget
from surehand.model.verification import NoVerification
from surehand.ports import Dispatched
from surehand.runtime import agent
from surehand.runtime import params as p
from surehand.testing.journals import FaultyJournal, MemoryJournal
from surehand.testing.worlds import World


def faulty() -> tuple[World, FaultyJournal]:
    journal = FaultyJournal(MemoryJournal(clock=World().clock))
    return World(journal=journal), journal


async def batch(world: World, *steps: Request, operation_id: str = "b", **facts: Any) -> dict[str, Any]:
    parts: Any = SimpleNamespace(gateway=world.gateway)
    envelope = Batch(operation_id=operation_id, steps=steps, **facts)
    return await agent.batch(parts, world.session, p.RunBatch(batch=envelope))


def unknown(_: Any) -> Dispatched:
    return Dispatched(status="unknown", route="memory")


# --- the same id ------------------------------------------------------------------------------------------------------


async def test_one_id_from_many_sessions_at_once_is_one_effect() -> None:
    world = World()
    sessions = [world.new_session() for _ in range(8)]
    requests = [await world.request("op", target=await world.ref("save", one)) for one in sessions]
    pairs = zip(sessions, requests, strict=True)
    replies = await asyncio.gather(*(world.gateway.act(session, request) for session, request in pairs))
    assert {reply.status for reply in replies} == {"succeeded"}
    assert len(world.app.effects) == 1


async def test_one_id_of_two_principals_is_two_operations_and_neither_sees_the_other() -> None:
    world = World()
    other = world.new_session("uid:1000:2")
    request = await world.request("op", target=await world.ref("save", other))
    await world.act("2:op")
    await world.gateway.act(other, request)
    assert await world.operations.load("uid:1000", "op") is None
    assert await world.operations.load("uid:1000:2", "2:op") is None


async def test_a_claim_whose_commit_is_unknown_is_never_dispatched_now_or_later() -> None:
    world, journal = faulty()
    journal.fail("operation.claimed.v1", "lost_after")
    request = await world.request("op")
    assert (await world.gateway.act(world.session, request)).status == "refused"
    journal.reopen()
    assert (await world.gateway.act(world.session, request)).status == "outcome_unknown"
    later = await world.restart()
    assert (await later.gateway.act(later.session, request)).status == "outcome_unknown"
    assert world.app.effects == []


async def test_a_step_of_a_batch_is_the_operation_of_that_name_and_never_a_second_one() -> None:
    world = World()
    request = await world.request("b:0")
    assert (await world.gateway.act(world.session, request)).status == "succeeded"
    found = await batch(world, await world.request("x"))
    assert found["replies"][0]["replayed"] is True
    other = await batch(world, await world.request("x", "open"))
    assert other["replies"][0]["error"]["code"] == "conflict"
    assert len(world.app.effects) == 1


async def test_a_batch_of_batches_names_cannot_reach_one_operation_twice() -> None:
    world = World()
    await batch(world, await world.request("x"), operation_id="a:0")
    assert (await world.act("a:0:0")).replayed
    assert len(world.app.effects) == 1


async def test_a_batch_whose_later_steps_have_no_valid_name_does_nothing_at_all() -> None:
    """Ten steps would fit and the eleventh not: the ten must not have happened behind a "nothing happened"."""
    world = World()
    steps = [await world.request("x") for _ in range(11)]
    with pytest.raises(InvalidRequest):
        await batch(world, *steps, operation_id="b" * (limits.IDENTIFIER_CHARS_MAX - 2))
    assert world.app.effects == []
    fits = await batch(world, *steps[:10], operation_id="b" * (limits.IDENTIFIER_CHARS_MAX - 2))
    assert fits["replies"][0]["status"] == "succeeded"


# --- callers that go --------------------------------------------------------------------------------------------------


async def test_a_caller_that_cancels_after_dispatch_is_told_what_became_of_it() -> None:
    """Cancelled must never read as "nothing happened" once something was sent."""
    world = World()
    world.app.hold = asyncio.Event()
    call = asyncio.create_task(world.act("op"))
    await world.app.entered.wait()
    call.cancel()
    await asyncio.sleep(0)
    call.cancel()
    world.app.hold.set()
    reply = await call
    assert isinstance(reply, Reply)
    assert reply.status == "outcome_unknown"
    assert reply.terminal is not None
    assert reply.terminal.retry_safe is False
    assert len(world.app.effects) == 1


async def test_a_caller_that_cancels_before_dispatch_is_told_that_nothing_happened_and_it_is_true() -> None:
    world, journal = faulty()
    gate = journal.hold("operation.claimed.v1")
    call = asyncio.create_task(world.act("op"))
    while not journal.asked:  # noqa: ASYNC110 - turns of the loop, not time
        await asyncio.sleep(0)
    call.cancel()
    await asyncio.sleep(0)
    gate.set()
    reply = await call
    assert (reply.status, reply.error["code"]) == ("refused", "cancelled")
    assert world.app.effects == []


@pytest.mark.parametrize("turns", range(0, 40, 3))
async def test_cancelled_at_any_moment_the_answer_and_the_journal_agree(turns: int) -> None:
    world = World()
    request = await world.request("op")
    call = asyncio.create_task(world.gateway.act(world.session, request))
    for _ in range(turns):
        await asyncio.sleep(0)
    call.cancel()
    try:
        reply = await call
    except asyncio.CancelledError:
        # It had not begun.
        assert turns == 0
        assert world.app.effects == []
        return
    stored = await world.operations.load("uid:1000", "op")
    if reply.status == "refused":
        assert world.app.effects == []
        assert stored is None or stored.claim is None
    else:
        assert stored is not None
        assert stored.terminal is not None
        assert stored.terminal.kind == reply.status
        assert len(world.app.effects) == 1


async def test_one_of_two_callers_that_goes_neither_stops_the_other_nor_is_told_that_nothing_happened() -> None:
    world = World()
    world.app.hold = asyncio.Event()
    request = await world.request("op")
    stays = asyncio.create_task(world.gateway.act(world.session, request))
    goes = asyncio.create_task(world.gateway.act(world.session, request))
    await world.app.entered.wait()
    goes.cancel()
    with pytest.raises(Cancelled) as told:
        await goes
    assert told.value.retry_safe is False
    world.app.hold.set()
    assert (await stays).status == "succeeded"


async def test_a_batch_that_is_cancelled_gives_the_replies_it_has_and_starts_nothing_more() -> None:
    world = World()
    steps = [await world.request("x"), await world.request("x", "open"), await world.request("x", "save")]
    world.app.hold = asyncio.Event()
    call = asyncio.create_task(batch(world, *steps))
    await world.app.entered.wait()
    call.cancel()
    await asyncio.sleep(0)
    world.app.hold.set()
    found = await call
    assert [reply["operation_id"] for reply in found["replies"]] == ["b:0"]
    assert found["stopped_by"] == "b:0"
    assert len(world.app.effects) == 1


async def test_a_batch_that_is_cancelled_as_its_step_succeeds_stops_there() -> None:
    world = World()
    step = await world.request("x", "name", action=SetValue(value="new"))
    world.app.hold = asyncio.Event()
    call = asyncio.create_task(batch(world, step, step))
    await world.app.entered.wait()
    call.cancel()
    await asyncio.sleep(0)
    world.app.hold.set()
    found = await call
    assert [reply["status"] for reply in found["replies"]] == ["succeeded"]
    assert len(world.app.effects) == 1


async def test_a_batch_whose_session_ends_between_two_steps_still_tells_the_first() -> None:
    world = World()
    step = await world.request("x", "name", action=SetValue(value="new"))
    act = world.gateway.act

    async def then_end(*arguments: Any, **named: Any) -> Reply:
        reply = await act(*arguments, **named)
        world.session.closed = True
        return reply

    world.gateway.act = then_end  # type: ignore[method-assign]
    found = await batch(world, step, step)
    assert [reply["status"] for reply in found["replies"]] == ["succeeded"]
    assert found["stopped_by"] == "b:1"
    assert len(world.app.effects) == 1


async def test_a_session_that_has_ended_starts_nothing() -> None:
    world = World()
    request = await world.request("op")
    world.session.closed = True
    with pytest.raises(Unavailable):
        await world.gateway.act(world.session, request)
    assert world.app.effects == []


# --- twins of the unknown ---------------------------------------------------------------------------------------------


async def test_a_twin_that_waited_behind_an_unknown_is_refused_and_not_sent() -> None:
    """The agent lost patience and sent it again under a new id while the first one hung."""
    world = World()
    world.app.acting = unknown
    world.app.hold = asyncio.Event()
    one, two = await world.request("one"), await world.request("two")
    first = asyncio.create_task(world.gateway.act(world.session, one))
    await world.app.entered.wait()
    second = asyncio.create_task(world.gateway.act(world.session, two))
    while ("uid:1000", "two") not in await claimed(world):  # noqa: ASYNC110 - turns of the loop, not time
        await asyncio.sleep(0)
    world.app.hold.set()
    world.app.acting = None
    assert (await first).status == "outcome_unknown"
    reply = await second
    assert (reply.status, reply.error["code"]) == ("refused", "reconcile_required")
    assert len(world.app.effects) == 1
    assert (await world.types())[-1] == "operation.released.v1"


async def claimed(world: World) -> set[tuple[str, str]]:
    events = await world.journal.read()
    found = [event.stream.split("/") for event in events if event.type == "operation.claimed.v1"]
    return {(principal, operation_id) for _, principal, operation_id in found}


async def test_an_effect_whose_end_could_not_be_written_has_to_be_looked_into_first() -> None:
    world, journal = faulty()
    journal.fail("operation.terminal.v1", "unavailable")
    assert (await world.act("op")).status == "outcome_unknown"
    assert (await world.act("new")).error["code"] == "reconcile_required"
    assert len(world.app.effects) == 1


@pytest.mark.parametrize(
    "words",
    [
        {"risk": "external"},
        {"risk": "read"},
        {"interaction_mode": "background_only"},
        {"verification": NoVerification()},
        {"salt": "1" * 32},
        {"deadline_ms": 1_000},
        {"reconciles": "something-else"},
    ],
    ids=str,
)
async def test_an_unknown_is_not_escaped_by_asking_in_other_words(words: dict[str, Any]) -> None:
    world = World()
    world.app.acting = unknown
    value = SetValue(value="text")
    assert (await world.act("op", "name", action=value)).status == "outcome_unknown"
    world.app.acting = None
    reply = await world.act("new", "name", action=value, **words)
    assert reply.status in {"refused", "approval_required"}
    assert reply.error is None or reply.error["code"] == "reconcile_required"
    assert len(world.app.effects) == 1


async def test_an_unknown_is_not_escaped_by_a_query_or_another_session_or_a_restart() -> None:
    world = World()
    world.app.acting = unknown
    assert (await world.act("op")).status == "outcome_unknown"
    world.app.acting = None
    query = Query(filters=(Filter(name=TextMatch(text="Save")),))
    target = QueryTarget(surface=world.app.surface.surface_id, query=query)
    assert (await world.act("q", target=target)).error["code"] == "reconcile_required"
    other = world.new_session()
    request = await world.request("s", target=await world.ref("save", other))
    assert (await world.gateway.act(other, request)).error["code"] == "reconcile_required"
    later = await world.restart()
    assert (await later.act("r")).error["code"] == "reconcile_required"
    assert len(world.app.effects) == 1


async def test_an_effect_that_reconciled_is_told_even_when_that_could_not_be_recorded() -> None:
    world, journal = faulty()
    world.app.acting = unknown
    assert (await world.act("op")).status == "outcome_unknown"
    world.app.acting = None
    await asyncio.sleep(0.002)
    journal.fail("unresolved.closed.v1", "unavailable")
    assert (await world.act("new", reconciles="op")).status == "succeeded"
    assert len(world.app.effects) == 2


async def test_the_unknown_of_a_foreigner_can_not_be_named_away() -> None:
    world = World()
    world.app.acting = unknown
    assert (await world.act("op")).status == "outcome_unknown"
    world.app.acting = None
    other = world.new_session("uid:2000")
    request = await world.request("mine", target=await world.ref("save", other), reconciles="op")
    await world.gateway.act(other, request)
    assert world.operations.unresolved() == [("uid:1000", "op")]


async def test_a_principal_that_leaves_too_many_unknowns_acts_no_more_until_one_is_looked_into(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "UNRESOLVED_MAX", 2)
    world = World()
    world.app.acting = unknown
    for handle in ("save", "open"):
        assert (await world.act(f"lost-{handle}", handle)).status == "outcome_unknown"
    world.app.acting = None
    name = SetValue(value="x")
    refused = await world.act("third", "name", action=name)
    assert refused.error["code"] == "reconcile_required"
    assert refused.error["details"] == {"operation_id": "lost-save"}
    assert len(world.app.effects) == 2
    other = world.new_session("uid:2000")
    theirs = await world.request("theirs", action=name, target=await world.ref("name", other))
    assert (await world.gateway.act(other, theirs)).status == "succeeded"
    await world.operations.resolve("uid:1000", "lost-save", "happened", "operator")
    assert (await world.act("third", "name", action=name)).status == "succeeded"
    assert len(world.app.effects) == 4


# --- the journal turns ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("event", ["operation.claimed.v1", "operation.terminal.v1", "operation.released.v1"])
@pytest.mark.parametrize("fault", ["unavailable", "recovery", "lost_before", "lost_after"])
async def test_whatever_the_journal_does_a_second_try_is_no_second_effect(event: str, fault: Any) -> None:
    world, journal = faulty()
    if event == "operation.released.v1":
        world.app.before_enter = lambda: world.app.change("save", name="Other")
    journal.fail(event, fault)
    request = await world.request("op")
    first = await world.gateway.act(world.session, request)
    if event == "operation.released.v1":
        assert first.status == "refused"
        world.app.before_enter = None
        world.app.change("save", name="Save")
    journal.reopen()
    world.app.before_enter = None
    await world.gateway.act(world.session, request)
    later = await world.restart()
    await later.gateway.act(later.session, request)
    assert len(world.app.effects) <= 1


async def test_a_defect_in_the_journal_after_dispatch_is_told_as_an_unknown() -> None:
    world = World()
    finish = world.operations.finish

    async def broken(*_: Any) -> Any:
        raise RuntimeError("a defect")

    world.operations.finish = broken  # type: ignore[method-assign]
    reply = await world.act("op")
    assert reply.status == "outcome_unknown"
    world.operations.finish = finish  # type: ignore[method-assign]
    assert (await world.act("op")).status == "outcome_unknown"
    assert (await world.act("new")).error["code"] == "reconcile_required"
    assert len(world.app.effects) == 1


async def test_nothing_is_left_running_and_nothing_is_left_in_memory() -> None:
    world = World()
    before = asyncio.all_tasks()
    for number in range(50):
        await world.act(f"op{number}", action=Click() if number % 2 else None)
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before
    assert world.gateway._running == {}
    assert len(world.session.scenes) <= 96


async def test_an_error_of_look_up_for_a_second_caller_is_a_typed_error() -> None:
    world = World()
    world.app.hold = asyncio.Event()
    call = asyncio.create_task(world.act("op"))
    await world.app.entered.wait()
    world.app.reachable = False
    query = QueryTarget(surface=world.app.surface.surface_id, query=Query(filters=(Filter(role="button"),)))
    try:
        reply = await world.gateway.act(
            world.new_session(), msgspec.structs.replace(await request_of(world), target=query)
        )
        assert reply.status == "refused"
    except SurehandError:
        pass
    world.app.hold.set()
    await call
    assert len(world.app.effects) == 1


async def request_of(world: World) -> Request:
    world.app.reachable = True
    request = await world.request("op")
    world.app.reachable = False
    return request
