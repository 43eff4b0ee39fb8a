"""Stop, pause, take over: nothing acts afterwards, whatever an operation was just at, and everything is on record."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from surehand import limits
from surehand.core.wire.methods import AGENT_METHODS
from surehand.errors import InvalidRequest, JournalRecovery, SurehandError, TooLarge
from surehand.model.record import to_value
from surehand.ports import Attempt, Dispatched
from surehand.runtime import halting
from surehand.runtime.brakes import Scope
from surehand.runtime.clock import SystemClock
from surehand.runtime.session import Session
from surehand.testing.journals import FaultyJournal, MemoryJournal
from surehand.testing.worlds import World
from tests.unit.runtime.test_attacks_people import ASK
from tests.unit.runtime.test_attacks_reach import agent
from tests.unit.runtime.test_people import Scene, refused, until

EVERYTHING = 60_000


class Stage(Scene):
    """A scene whose desktop can be named, and that counts what was let go of."""

    released = 0

    async def open(self) -> Stage:
        await super().open()
        desk = self.world.desk
        self.host.parts.desks.attached = lambda: {desk.name: desk}  # type: ignore[method-assign]

        async def release_all() -> None:
            self.released += 1

        self.world.app.release_all = release_all  # type: ignore[method-assign]
        return self

    async def begin(self, operation_id: str, **params: Any) -> asyncio.Task[dict[str, Any]]:
        request = await self.request(operation_id)
        return asyncio.create_task(self.host.call(self.agent, "act", {"request": request, **params}))

    async def request(self, operation_id: str) -> dict[str, Any]:
        target = {"kind": "element", **to_value(await self.world.ref("save", self.agent))}
        return {"operation_id": operation_id, "action": {"kind": "invoke"}, "target": target}


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    made = await Stage(World()).open()
    yield made
    with contextlib.suppress(SurehandError):
        await made.host.close()


class Units:
    """An actor that sends many units of input, and lets the loop go on between two."""

    def __init__(self, stage: Stage) -> None:
        self.sent = 0
        self.most = 10_000
        self._app = stage.world.app
        stage.world.app.perform = self.perform  # type: ignore[method-assign]

    async def perform(self, attempt: Attempt) -> Dispatched:
        attempt.enter(await self._app.live(attempt.surface.surface_id, attempt.fence_handles))
        for index in range(self.most):
            attempt.checkpoint(index)
            self.sent += 1
            await asyncio.sleep(0)
        return Dispatched(status="done", route="memory")


class Gate:
    """Holds an operation between its claim and its dispatch."""

    def __init__(self, stage: Stage) -> None:
        self.reached, self.open = asyncio.Event(), asyncio.Event()
        perform = stage.world.app.perform

        async def waits(attempt: Attempt) -> Dispatched:
            self.reached.set()
            await self.open.wait()
            return await perform(attempt)

        stage.world.app.perform = waits  # type: ignore[method-assign]


# --- stop -----------------------------------------------------------------------------------------------------------


async def test_a_stop_between_claim_and_dispatch_leaves_no_effect_and_frees_the_id(stage: Stage) -> None:
    gate = Gate(stage)
    task = await stage.begin("op")
    await gate.reached.wait()
    stop = asyncio.create_task(stage.control("halt", go_on=True))
    await until(lambda: stage.released)
    gate.open.set()
    error = refused(await task)
    assert (error["code"], error["details"]["what"], error["retry_safe"]) == ("cancelled", "halted", True)
    told = await stop
    assert [(one["operation_id"], one["ended"]) for one in told["operations"]] == [("op", "cancelled")]
    assert stage.world.app.effects == []
    assert await stage.events("operation.") == ["operation.claimed.v1", "operation.released.v1"]
    assert (await stage.act("op"))["status"] == "succeeded"


@pytest.mark.parametrize("go_on", [True, False])
async def test_a_stop_during_input_ends_it_between_two_units_and_says_what_was_delivered(
    stage: Stage, go_on: bool
) -> None:
    units = Units(stage)
    task = await stage.begin("op")
    await until(lambda: units.sent > 20)
    told = await stage.control("halt", go_on=go_on)
    reply = await task
    assert reply["status"] == "interrupted"
    sent = units.sent
    assert str(sent) in reply["terminal"]["message"]
    assert stage.released == 1
    assert told["released"]
    assert told["operations"][0]["ended"] == "interrupted"
    await asyncio.sleep(0)
    assert units.sent == sent < units.most


async def test_a_stop_ends_a_whole_batch(stage: Stage) -> None:
    gate = Gate(stage)
    steps = [{**await stage.request(f"step-{index}")} for index in range(5)]
    batch = {"operation_id": "form", "steps": steps, "on_refusal": "continue"}
    task = asyncio.create_task(stage.host.call(stage.agent, "batch", {"batch": batch}))
    await gate.reached.wait()
    stop = asyncio.create_task(stage.control("halt", go_on=True))
    await until(lambda: stage.released)
    gate.open.set()
    await stop
    value = await task
    assert [one["status"] for one in value["replies"]] == ["refused"]
    assert value["stopped_by"] == "form:0"
    assert stage.world.app.effects == []


async def test_a_stop_between_two_steps_begins_none_after_it(stage: Stage) -> None:
    steps = [{**await stage.request(f"step-{index}"), "verification": {"kind": "none"}} for index in range(5)]
    batch = {"operation_id": "form", "steps": steps}
    stopping: list[asyncio.Task[dict[str, Any]]] = []
    gateway = stage.host.parts.gateway
    act = gateway.act

    async def stopped_after(session: Session, request: Any, **options: Any) -> Any:
        reply = await act(session, request, **options)
        if len(stage.world.app.effects) == 2:
            stopping.append(asyncio.create_task(stage.control("halt", go_on=True)))
            await stopping[0]
        return reply

    gateway.act = stopped_after  # type: ignore[method-assign]
    value = await stage.host.call(stage.agent, "batch", {"batch": batch})
    assert [one["status"] for one in value["replies"]] == ["succeeded", "succeeded"]
    assert value["stopped_by"] == "form:2"
    assert len(stage.world.app.effects) == 2


async def test_a_stop_while_a_person_is_asked_ends_the_waiting_and_a_later_yes_does_nothing() -> None:
    stage = await Stage(World(policy=ASK)).open()
    task = await stage.begin("op", wait_approval_ms=EVERYTHING)
    (pending,) = await until(stage.host.parts.approvals.pending)
    await stage.control("halt")
    assert refused(await task)["details"]["what"] == "halted"
    await stage.world.answer(pending)
    assert refused(await stage.act("op"))["details"]["what"] == "paused"
    assert stage.world.app.effects == []
    await stage.control("resume")
    # The yes was for this, and nobody used it.
    assert (await stage.act("op"))["status"] == "succeeded"
    await stage.host.close()


async def test_after_a_stop_agents_stay_paused_and_the_record_says_who_when_and_why(stage: Stage) -> None:
    told = await stage.control("halt", reason="it clicks on the wrong thing")
    error = refused(await stage.act("op"))
    assert error["message"] == "paused by the operator"
    assert error["details"]["operator_reason"] == "it clicks on the wrong thing"
    assert error["retry_safe"]
    assert told["recorded"]
    events = [one for one in await stage.world.journal.read() if one.stream == "holds"]
    assert [one.type for one in events] == ["agents.halted.v1", "hold.set.v1"]
    assert {one.actor for one in events} == {"uid:7"}
    assert events[0].payload["how"] == "operator"
    assert events[0].payload["reason"] == "it clicks on the wrong thing"


async def test_a_stop_names_as_many_operations_as_it_may_and_counts_them_all(stage: Stage) -> None:
    gate = Gate(stage)
    most = limits.HALT_NAMED_MAX
    tasks = [await stage.begin(f"op-{index}") for index in range(most + 1)]
    await gate.reached.wait()
    await until(lambda: len(stage.host.parts.gateway.runs()) == most + 1)
    stop = asyncio.create_task(stage.control("halt"))
    await until(lambda: stage.released)
    gate.open.set()
    await asyncio.gather(stop, *tasks)
    event = next(one for one in await stage.world.journal.read() if one.type == "agents.halted.v1")
    assert (len(event.payload["operations"]), event.payload["operations_count"]) == (most, most + 1)
    assert stage.world.app.effects == []


async def test_a_stop_works_while_nothing_can_be_recorded() -> None:
    journal = FaultyJournal(MemoryJournal(clock=SystemClock()))
    stage = await Stage(World(journal=journal)).open()
    units = Units(stage)
    task = await stage.begin("op")
    await until(lambda: units.sent > 5)

    async def broken(*_: Any, **__: Any) -> Any:
        raise JournalRecovery("the disk is full")

    journal.append = broken  # type: ignore[method-assign]
    told = await stage.control("halt")
    assert (told["released"], told["recorded"]) == (True, False)
    assert (await task)["status"] == "outcome_unknown"  # its end could not be written
    assert stage.agent.is_held()


async def test_a_desktop_that_does_not_say_that_it_let_go_is_told_of(stage: Stage) -> None:
    async def gone() -> None:
        raise SurehandError("the display is gone")

    stage.world.app.release_all = gone  # type: ignore[method-assign]
    assert (await stage.control("halt"))["released"] is False


# --- pause and resume -----------------------------------------------------------------------------------------------


async def test_a_paused_agent_is_refused_and_who_waits_goes_on_when_the_operator_resumes(stage: Stage) -> None:
    await stage.control("pause")
    assert refused(await stage.act("op"))["details"]["what"] == "paused"
    waiting = await stage.begin("op", wait_approval_ms=EVERYTHING)
    told: list[dict[str, Any]] = []
    watching = asyncio.create_task(stage.host.call(stage.agent, "watch", {}, progress=told.append))
    await until(lambda: told)
    assert stage.world.app.effects == []
    await stage.control("resume")
    assert (await asyncio.wait_for(waiting, 5))["status"] == "succeeded"
    assert {"held": {"what": "paused", "now": False}} in told
    watching.cancel()
    assert await stage.events("hold.") == ["hold.set.v1", "hold.lifted.v1"]


async def test_a_paused_agent_waits_for_the_operator_without_acting_and_sees_the_pause_in_its_doctor(
    stage: Stage,
) -> None:
    await stage.control("pause", reason="lunch")
    told = (await stage.host.call(stage.agent, "doctor", {}))["held"]
    assert (told["what"], told["operator_reason"]) == ("paused", "lunch")
    now = await stage.host.call(stage.agent, "approval", {"wait_ms": 0})
    assert (now["approvals"], now["held"]) == ([], told)
    waiting = asyncio.create_task(stage.host.call(stage.agent, "approval", {"wait_ms": EVERYTHING}))
    for _ in range(20):
        await asyncio.sleep(0)
    assert not waiting.done()
    await stage.control("resume")
    assert await asyncio.wait_for(waiting, 5) == {"approvals": []}
    assert "held" not in await stage.host.call(stage.agent, "doctor", {})


async def test_a_pause_ends_input_under_way_and_lets_go(stage: Stage) -> None:
    units = Units(stage)
    task = await stage.begin("op")
    await until(lambda: units.sent > 20)
    await stage.control("pause")
    assert (await task)["status"] == "interrupted"
    assert stage.released == 1


async def test_a_pause_during_the_claim_refuses_at_the_last_gate(stage: Stage) -> None:
    gate = Gate(stage)
    task = await stage.begin("op")
    await gate.reached.wait()
    await stage.control("pause")
    gate.open.set()
    assert refused(await task)["details"]["what"] == "paused"
    assert stage.world.app.effects == []


async def test_a_pause_leaves_questions_open_and_their_yes_counts_after_it() -> None:
    stage = await Stage(World(policy=ASK)).open()
    task = await stage.begin("op", wait_approval_ms=EVERYTHING)
    (pending,) = await until(stage.host.parts.approvals.pending)
    await stage.control("pause")
    await stage.world.answer(pending)
    await until(lambda: not stage.host.parts.gateway.runs() or None)
    assert stage.world.app.effects == []
    await stage.control("resume")
    assert (await asyncio.wait_for(task, 5))["status"] == "succeeded"
    await stage.host.close()


async def test_paused_stays_paused_over_a_restart_and_taken_stays_taken(stage: Stage) -> None:
    await stage.control("pause", principal="uid:1000", reason="lunch")
    await stage.control("take", name="memory")
    before = (await stage.control("holds"))["holds"]
    stage.agent.closed = True
    again = await Stage(await stage.world.restart()).open()
    await halting.restore(again.host.parts)
    after = (await again.control("holds"))["holds"]
    assert [(one["hold_id"], one["what"], one["reason"]) for one in after] == [
        (one["hold_id"], one["what"], one["reason"]) for one in before
    ]
    assert refused(await again.act("op"))["details"]["what"] == "paused"
    await again.control("resume")
    assert refused(await again.act("op"))["details"]["what"] == "taken_over"
    await again.control("hand_back", name="memory")
    assert (await again.act("op"))["status"] == "succeeded"
    last = await Stage(await again.world.restart()).open()
    await halting.restore(last.host.parts)
    assert (await last.control("holds"))["holds"] == []


async def test_a_resume_that_cannot_be_recorded_leaves_them_paused() -> None:
    journal = FaultyJournal(MemoryJournal(clock=SystemClock()))
    stage = await Stage(World(journal=journal)).open()
    await stage.control("pause")

    async def broken(*_: Any, **__: Any) -> Any:
        raise JournalRecovery("the disk is full")

    journal.append = broken  # type: ignore[method-assign]
    with pytest.raises(JournalRecovery):
        await stage.control("resume")
    assert stage.agent.is_held()


@pytest.mark.parametrize("scope", ["principal", "session", "desktop"])
async def test_a_pause_of_some_leaves_the_others_alone_and_ends_with_its_own_resume(stage: Stage, scope: str) -> None:
    other = await agent(stage.host, "uid:2000")
    named = {"principal": "uid:1000", "session": stage.agent.label, "desktop": "memory"}
    told = await stage.control("pause", **{scope: named[scope]})
    assert told["sessions"] == (2 if scope == "desktop" else 1)
    assert refused(await stage.act("op"))["details"]["what"] == "paused"
    reply = await stage.act("other", other)
    assert reply["status"] == ("refused" if scope == "desktop" else "succeeded")
    with pytest.raises(InvalidRequest, match="no such pause"):
        await stage.control("resume", principal="uid:3000")
    await stage.control("resume", **{scope: named[scope]})
    assert (await stage.act("op"))["status"] == "succeeded"


async def test_a_new_session_is_no_way_around_a_pause(stage: Stage) -> None:
    await stage.control("pause", principal="uid:1000")
    fresh = await agent(stage.host)
    assert refused(await stage.act("op", fresh))["details"]["what"] == "paused"


@pytest.mark.parametrize("method", ["pause", "halt"])
async def test_whose_session_is_paused_is_not_free_in_another_one_and_others_are_let_be(
    stage: Stage, method: str
) -> None:
    before, foreign = await agent(stage.host), await agent(stage.host, "uid:3000")
    await stage.control(method, session=stage.agent.label)
    beside = await agent(stage.host)
    assert refused(await stage.act("op-1", beside))["details"]["what"] == "paused"
    await stage.host.close_channel(stage.agent)
    after = await agent(stage.host)
    assert refused(await stage.act("op-2", after))["details"]["what"] == "paused"
    for number, free in enumerate((before, foreign, await agent(stage.host, "uid:3000"))):
        assert (await stage.act(f"op-free-{number}", free))["status"] == "succeeded"
    [told] = (await stage.control("holds"))["holds"]
    assert (told["session"], told["principal"], told["sessions"]) == (stage.agent.label, "uid:1000", 2)
    await stage.control("resume", session=stage.agent.label)
    assert (await stage.act("op-3", after))["status"] == "succeeded"


async def test_who_was_paused_in_one_session_is_paused_after_a_restart_of_the_daemon(stage: Stage) -> None:
    await stage.control("pause", session=stage.agent.label)
    stage.agent.closed = True
    again = await Stage(await stage.world.restart()).open()
    await halting.restore(again.host.parts)
    assert refused(await again.act("op"))["details"]["what"] == "paused"


async def test_names_that_fit_nobody_stop_nobody(stage: Stage) -> None:
    for method in ("halt", "pause"):
        for wrong in ({"desktop": "elsewhere"}, {"session": "s99"}):
            with pytest.raises(InvalidRequest):
                await stage.control(method, **wrong)
    with pytest.raises(InvalidRequest, match="no such pause"):
        await stage.control("resume", hold_id="none")
    assert (await stage.act("op"))["status"] == "succeeded"
    assert (await stage.control("resume"))["resumed"] == []


async def test_as_many_holds_as_the_limit_says_and_a_stop_past_it_pauses_everything(stage: Stage) -> None:
    for number in range(limits.HOLDS_MAX):
        await stage.control("pause", principal=f"uid:{number + 5000}")
    with pytest.raises(TooLarge):
        await stage.control("pause", principal="uid:1000")
    assert (await stage.act("op"))["status"] == "succeeded"
    told = await stage.control("halt", principal="uid:1000")
    assert told["hold"]["principal"] is None
    assert refused(await stage.act("op-2"))["details"]["what"] == "paused"


async def test_words_at_their_limit_are_taken_and_one_byte_more_is_not(stage: Stage) -> None:
    for method, more in (("pause", {}), ("halt", {}), ("take", {"name": "memory"})):
        with pytest.raises(TooLarge):
            await stage.control(method, reason="x" * (limits.REASON_CHARS_MAX + 1), **more)
        assert not stage.agent.is_held()
        await stage.control(method, reason="x" * limits.REASON_CHARS_MAX, **more)
        await stage.control("resume")
    await stage.control("hand_back", name="memory")


# --- taking over ----------------------------------------------------------------------------------------------------


async def test_a_desktop_taken_over_is_nobody_elses_until_it_is_handed_back(stage: Stage) -> None:
    units = Units(stage)
    task = await stage.begin("op")
    await until(lambda: units.sent > 5)
    await stage.control("take", name="memory", reason="let me see")
    assert (await task)["status"] == "interrupted"
    stranger = await agent(stage.host, "uid:2000")
    for session in (stage.agent, stranger):
        assert refused(await stage.act("op-2", session))["details"]["what"] == "taken_over"
    with pytest.raises(InvalidRequest, match="already"):
        await stage.control("take", name="memory")
    await stage.control("resume")  # of pauses only
    assert refused(await stage.act("op-3"))["details"]["what"] == "taken_over"
    waiting = await stage.begin("op-4", wait_approval_ms=EVERYTHING)
    units.most = 3
    await until(lambda: stage.host.parts.approvals.notices)
    await stage.control("hand_back", name="memory")
    assert (await asyncio.wait_for(waiting, 5))["status"] == "succeeded"
    with pytest.raises(InvalidRequest, match="nobody"):
        await stage.control("hand_back", name="memory")
    with pytest.raises(InvalidRequest, match="no desktop"):
        await stage.control("take", name="elsewhere")


async def test_an_agent_cannot_stop_pause_or_resume_anybody(stage: Stage) -> None:
    methods = ("halt", "pause", "resume", "holds", "take", "hand_back")
    assert not AGENT_METHODS & set(methods)
    await stage.control("pause")
    for method in methods:
        with pytest.raises(InvalidRequest, match="no method"):
            await stage.host.call(stage.agent, method, {})
    assert stage.agent.is_held()


async def test_everybody_who_is_told_hears_of_a_stop_at_once(stage: Stage) -> None:
    told: list[dict[str, Any]] = []
    stage.host.listen(told.append)
    await halting.stop_now(stage.host.parts, Scope(desktop="memory"), by="desktop:memory", how="stop_key")
    kinds = [one["event"] for one in told]
    assert kinds == ["hold.set", "agents.halted"]
    assert told[1]["how"] == "stop_key"
