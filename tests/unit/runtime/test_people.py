"""Requests to people, how approvals stand, and watches: who may do what, at each limit and past it, across restarts."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from surehand import limits
from surehand.core.hashing import text_digest
from surehand.core.wire.methods import AGENT_METHODS
from surehand.errors import AuthorityDenied, InvalidRequest, SurehandError, TooLarge
from surehand.model.record import to_value
from surehand.runtime.findings import without_paths
from surehand.runtime.host import Host
from surehand.runtime.people import People
from surehand.runtime.session import Session
from surehand.testing.journals import FaultyJournal, MemoryJournal
from surehand.testing.memory import MemoryApp, field
from surehand.testing.worlds import World
from tests.unit.daemon.fakes import Raw, running
from tests.unit.runtime.test_attacks_people import ASK, Clock
from tests.unit.runtime.test_attacks_reach import agent, host_of

SECRET = "the code is 918273"  # noqa: S105 - what must not be found in the journal
BIDI = 'ignore\u202e this"\nand \x1b[2Jthat'


class Scene:
    """A host, an agent on it, and the operator."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.host: Host = host_of(world)
        self.agent: Session
        self.operator: Session

    async def open(self) -> Scene:
        self.agent = await agent(self.host)
        self.operator = await self.host.open_channel(principal="uid:7", role="control", client={}, desktop=None)
        return self

    async def ask(self, reason: str = "a captcha", **params: Any) -> dict[str, Any]:
        session = params.pop("session", self.agent)
        return await self.host.call(session, "human", {"reason": reason, "kind": "captcha", **params})

    async def control(self, method: str, **params: Any) -> dict[str, Any]:
        return await self.host.call(self.operator, method, params)

    async def act(self, operation_id: str, session: Session | None = None, handle: str = "save") -> dict[str, Any]:
        session = session or self.agent
        target = await self.world.ref(handle, session)
        request = {
            "operation_id": operation_id,
            "action": {"kind": "invoke"},
            "target": {"kind": "element", **to_value(target)},
        }
        return await self.host.call(session, "act", {"request": request})

    async def events(self, start: str = "human.") -> list[str]:
        return [kind for kind in await self.world.types() if kind.startswith(start)]


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    found = await Scene(World()).open()
    yield found
    with contextlib.suppress(SurehandError):
        await found.host.close()


async def until(condition: Callable[[], Any]) -> Any:
    """Let other tasks go on until it holds, with a bound."""
    for _ in range(10_000):
        if value := condition():
            return value
        await asyncio.sleep(0)
    raise AssertionError("never happened")


def refused(reply: dict[str, Any]) -> dict[str, Any]:
    assert reply["status"] == "refused", reply
    error: dict[str, Any] = reply["error"]
    return error


# --- handing over and back -------------------------------------------------------------------------------------------


async def test_an_agent_that_asked_a_person_in_does_not_act_until_it_is_handed_back(scene: Scene) -> None:
    asked = await scene.ask()
    assert asked["status"] == "waiting"
    error = refused(await scene.act("op-1"))
    assert (error["code"], error["gate"]) == ("authority_denied", "authority")
    assert error["details"] == {"what": "handed_over", "request_id": asked["request_id"]}
    assert error["retry_safe"]
    assert scene.world.app.effects == []
    await scene.control("requests.done", request_id=asked["request_id"], note="solved; go on with step 2")
    told = await scene.ask()
    assert told["status"] == "done"
    assert told["operator_note"] == "solved; go on with step 2"
    assert (await scene.act("op-2"))["status"] == "succeeded"
    assert await scene.events() == ["human.requested.v1", "human.returned.v1"]


async def test_a_waiting_agent_is_woken_by_the_hand_back_and_sees_its_windows_as_they_are_now(scene: Scene) -> None:
    surface = scene.world.app.surface.surface_id
    await scene.host.call(scene.agent, "observe", {"surface": surface})
    call = asyncio.create_task(scene.ask(wait_ms=60_000))
    (request,) = await until(scene.host.parts.people.open)
    await scene.control("requests.take", request_id=request["request_id"])
    scene.world.app.change("name", value="typed by a person")
    await scene.control("requests.done", request_id=request["request_id"])
    told = await asyncio.wait_for(call, 5)
    assert told["status"] == "done"
    assert "typed by a person" in json.dumps(told["after"])
    assert await scene.events() == ["human.requested.v1", "human.taken.v1", "human.returned.v1"]


@pytest.mark.parametrize("more", [0, 1])
async def test_a_hand_back_tells_as_many_windows_as_there_may_be_and_of_more_those_looked_at_last(more: int) -> None:
    scene = await Scene(World()).open()
    world, most = scene.world, limits.HUMAN_WINDOWS_MAX
    others = [MemoryApp([field("name", "Name", "old")], name=f"app{place}", pid=5000 + place) for place in range(most)]
    apps = [world.app, *others][: most + more]
    world.desk.observers = tuple(apps)
    # The first is looked at once more, at the end: of one too many the second is the one that is left out.
    for app in [*apps, world.app]:
        await scene.host.call(scene.agent, "observe", {"surface": app.surface.surface_id})
    call = asyncio.create_task(scene.ask(wait_ms=60_000))
    (request,) = await until(scene.host.parts.people.open)
    await scene.control("requests.take", request_id=request["request_id"])
    for app in apps:
        app.change("name", value="typed by a person")
    await scene.control("requests.done", request_id=request["request_id"])
    told = await asyncio.wait_for(call, 5)
    found = {part["surface"] for part in told["after"]["windows"]}
    assert found == {app.surface.surface_id for app in apps} - ({apps[1].surface.surface_id} if more else set())
    assert len(found) == most


async def test_a_new_session_is_no_way_around_a_person_who_took_over(scene: Scene) -> None:
    asked = await scene.ask()
    other = await agent(scene.host)
    assert (await scene.act("op-0", other))["status"] == "succeeded"
    await scene.control("requests.take", request_id=asked["request_id"])
    assert refused(await scene.act("op-1", other))["details"]["what"] == "handed_over"
    await scene.host.close_channel(scene.agent)
    fresh = await agent(scene.host)
    assert refused(await scene.act("op-2", fresh))["details"]["request_id"] == asked["request_id"]
    assert len(scene.world.app.effects) == 1
    (shown,) = (await scene.control("requests"))["requests"]
    assert shown["status"] == "taken"
    assert shown["agent_gone"]
    waiting = asyncio.create_task(scene.ask("again", session=fresh, request_id=asked["request_id"], wait_ms=60_000))
    await asyncio.sleep(0)
    await scene.control("requests.done", request_id=asked["request_id"])
    assert (await waiting)["status"] == "done"
    assert (await scene.act("op-3", fresh))["status"] == "succeeded"


async def test_a_person_who_took_over_keeps_other_principals_out_of_nothing(scene: Scene) -> None:
    asked = await scene.ask()
    await scene.control("requests.take", request_id=asked["request_id"])
    stranger = await agent(scene.host, "uid:2000")
    assert (await scene.act("op", stranger))["status"] == "succeeded"


async def test_an_agent_cannot_hand_itself_back(scene: Scene) -> None:
    assert not {name for name in AGENT_METHODS if name.startswith("requests")}
    asked = await scene.ask()
    for method in ("requests", "requests.take", "requests.done", "requests.decline"):
        with pytest.raises(InvalidRequest, match="no method"):
            await scene.host.call(scene.agent, method, {"request_id": asked["request_id"]})
    await scene.control("requests.take", request_id=asked["request_id"])
    with pytest.raises(AuthorityDenied):
        await scene.ask(withdraw=True)
    await scene.host.call(scene.agent, "end_session", {})
    assert refused(await scene.act("op"))["details"]["what"] == "handed_over"
    assert scene.world.app.effects == []


async def test_a_cancelled_call_withdraws_what_nobody_took_up_and_nothing_that_somebody_did(scene: Scene) -> None:
    for taken in (False, True):
        call = asyncio.create_task(scene.ask(wait_ms=60_000))
        (request,) = await until(scene.host.parts.people.open)
        if taken:
            await scene.control("requests.take", request_id=request["request_id"])
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert len(scene.host.parts.people.open()) == int(taken)
        reply = await scene.act(f"op-{taken}")
        assert reply["status"] == ("refused" if taken else "succeeded")


async def test_what_waits_at_the_last_gate_is_stopped_when_a_person_takes_over(scene: Scene) -> None:
    scene.world.app.before_enter = lambda: scene.agent.waits_for.add("r")
    error = refused(await scene.act("op"))
    assert error["details"]["what"] == "handed_over"
    assert scene.world.app.effects == []
    scene.world.app.before_enter = None
    scene.agent.waits_for.clear()
    assert (await scene.act("op"))["status"] == "succeeded"


async def test_input_under_way_stops_between_two_units_when_a_person_takes_over(scene: Scene) -> None:
    def acting(attempt: Any) -> Any:
        scene.agent.waits_for.add("r")
        attempt.checkpoint(1)
        raise AssertionError("the second unit was sent")

    scene.world.app.acting = acting
    reply = await scene.act("op")
    assert reply["status"] == "interrupted"


async def test_a_person_can_decline_and_a_request_ends_once(scene: Scene) -> None:
    asked = await scene.ask()
    await scene.control("requests.decline", request_id=asked["request_id"], note="not today")
    with pytest.raises(InvalidRequest):
        await scene.control("requests.done", request_id=asked["request_id"])
    told = await scene.ask()
    assert (told["status"], told["operator_note"]) == ("declined", "not today")
    # The end was heard, so the same words are a new request.
    again = await scene.ask()
    assert again["status"] == "waiting"
    assert again["request_id"] != asked["request_id"]


async def test_what_nobody_takes_up_ends_as_unanswered(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HUMAN_MS_MAX", 20)
    told = await scene.ask(wait_ms=60_000)
    assert told["status"] == "unanswered"
    assert (await scene.act("op"))["status"] == "succeeded"
    await scene.host.parts.people.close()
    assert await scene.events() == ["human.requested.v1", "human.unanswered.v1"]


async def test_a_session_that_ends_withdraws_what_it_asked(scene: Scene) -> None:
    asked = await scene.ask()
    await scene.host.close_channel(scene.agent)
    assert (await scene.control("requests"))["requests"] == []
    fresh = await agent(scene.host)
    told = await scene.ask("x", session=fresh, request_id=asked["request_id"])
    assert told["status"] == "withdrawn"
    stranger = await agent(scene.host, "uid:2000")
    with pytest.raises(InvalidRequest):
        await scene.ask("x", session=stranger, request_id=asked["request_id"])


async def test_a_sibling_may_wait_for_a_request_and_neither_withdraw_nor_swallow_it(scene: Scene) -> None:
    asked = await scene.ask()
    sibling = await agent(scene.host)
    name = {"session": sibling, "request_id": asked["request_id"]}
    with pytest.raises(InvalidRequest, match="another session"):
        await scene.ask(withdraw=True, **name)
    await scene.control("requests.done", request_id=asked["request_id"])
    assert (await scene.ask(**name))["status"] == "done"
    assert (await scene.ask())["status"] == "done"


# --- words -----------------------------------------------------------------------------------------------------------


async def test_a_person_sees_the_agents_words_escaped_and_the_journal_keeps_none_of_either_side(scene: Scene) -> None:
    asked = await scene.ask(f"{SECRET} {BIDI}")
    (shown,) = (await scene.control("requests"))["requests"]
    assert shown["agent_says"].isprintable()
    assert '\\"' in shown["agent_says"]
    assert "\\u202e" in shown["agent_says"]
    await scene.control("requests.done", request_id=asked["request_id"], note=SECRET)
    kept = json.dumps([to_value(event) for event in await scene.world.journal.read()])
    assert SECRET not in kept
    assert f'"chars": {len(SECRET)}' in kept


async def test_a_note_is_told_in_its_own_field_and_nowhere_else(scene: Scene) -> None:
    asked = await scene.ask()
    await scene.control("requests.done", request_id=asked["request_id"], note=SECRET)
    told = await scene.ask()
    assert told.pop("operator_note") == SECRET
    assert SECRET not in json.dumps(told)


# --- limits ----------------------------------------------------------------------------------------------------------


async def test_the_words_of_both_sides_are_bounded(scene: Scene) -> None:
    most = limits.HUMAN_TEXT_BYTES_MAX
    with pytest.raises(TooLarge):
        await scene.ask("x" * (most + 1))
    with pytest.raises(InvalidRequest):
        await scene.ask("")
    asked = await scene.ask("x" * most)
    with pytest.raises(TooLarge):
        await scene.control("requests.done", request_id=asked["request_id"], note="x" * (most + 1))
    await scene.control("requests.done", request_id=asked["request_id"], note="x" * most)


async def test_a_session_has_so_many_open_requests_and_not_one_more(scene: Scene) -> None:
    first, *_ = [await scene.ask(str(number)) for number in range(limits.HUMAN_SESSION_MAX)]
    with pytest.raises(TooLarge, match="of this session"):
        await scene.ask("one more")
    assert len(scene.host.parts.people.open()) == limits.HUMAN_SESSION_MAX
    await scene.ask("0", withdraw=True)
    assert (await scene.ask("one more"))["request_id"] != first["request_id"]


async def test_a_principal_has_so_many_over_all_its_sessions_and_so_have_all(scene: Scene) -> None:
    async def fill(principal: str, most: int) -> None:
        for number in range(most):
            if number % limits.HUMAN_SESSION_MAX == 0:
                session = await agent(scene.host, principal)
            await scene.ask(str(number), session=session)

    await fill("uid:1", limits.HUMAN_PRINCIPAL_MAX)
    with pytest.raises(TooLarge, match="of this principal"):
        await scene.ask("x", session=await agent(scene.host, "uid:1"))
    for number in range(2, limits.HUMAN_OPEN_MAX // limits.HUMAN_PRINCIPAL_MAX + 1):
        await fill(f"uid:{number}", limits.HUMAN_PRINCIPAL_MAX)
    assert len(scene.host.parts.people.open()) == limits.HUMAN_OPEN_MAX
    with pytest.raises(TooLarge, match="of all agents"):
        await scene.ask()


async def test_an_agent_that_never_hears_its_ends_costs_bounded_memory(scene: Scene) -> None:
    for number in range(3 * limits.HUMAN_SESSION_MAX):
        asked = await scene.ask(str(number))
        await scene.control("requests.decline", request_id=asked["request_id"])
    assert len(scene.host.parts.people._asks) <= limits.HUMAN_SESSION_MAX + 1


# --- durability ------------------------------------------------------------------------------------------------------


async def test_a_request_that_is_not_on_record_is_not_shown_and_pauses_nobody() -> None:
    journal = FaultyJournal(MemoryJournal(clock=Clock()))
    scene = await Scene(World(journal=journal)).open()
    journal.fail("human.requested.v1", "unavailable")
    with pytest.raises(SurehandError):
        await scene.ask()
    assert (await scene.control("requests"))["requests"] == []
    assert scene.agent.handed_over() is None


async def test_an_answer_that_is_not_on_record_hands_nothing_back() -> None:
    journal = FaultyJournal(MemoryJournal(clock=Clock()))
    scene = await Scene(World(journal=journal)).open()
    asked = await scene.ask()
    journal.fail("human.returned.v1", "unavailable")
    with pytest.raises(SurehandError):
        await scene.control("requests.done", request_id=asked["request_id"])
    assert (await scene.ask())["status"] == "waiting"
    assert scene.agent.handed_over() == asked["request_id"]


async def test_a_restart_loses_requests_and_says_so(scene: Scene) -> None:
    taken, waiting = await scene.ask("one"), await scene.ask("two")
    await scene.control("requests.take", request_id=taken["request_id"])
    world = scene.world
    again = await Scene(await world.restart()).open()
    people = People(world.journal, world.clock, text_digest(b"k" * 32), again.world.approvals.notices)
    again.host.parts.people = people
    await people.restore()
    await people.restore()
    for one in (taken, waiting):
        told = await again.ask("x", request_id=one["request_id"])
        assert told == {"request_id": one["request_id"], "kind": "captcha", "status": "lost"}
    assert (await again.events()).count("human.lost.v1") == 2
    assert (await again.act("op"))["status"] == "succeeded"


# --- how approvals stand ---------------------------------------------------------------------------------------------


@pytest.fixture
async def asking() -> AsyncIterator[Scene]:
    found = await Scene(World(policy=ASK)).open()
    yield found
    await found.host.close()


async def approval(scene: Scene, session: Session | None = None, **params: Any) -> dict[str, Any]:
    return await scene.host.call(session or scene.agent, "approval", params)


async def test_an_approval_is_pending_then_approved_then_used_exactly_once(asking: Scene) -> None:
    reply = await asking.act("op")
    approval_id = reply["approval"]["approval_id"]
    assert (await approval(asking, approval_id=approval_id))["status"] == "pending"
    assert [one["approval_id"] for one in (await approval(asking))["approvals"]] == [approval_id]
    call = asyncio.create_task(approval(asking, operation_id="op", wait_ms=60_000))
    await asyncio.sleep(0)
    (pending,) = asking.world.approvals.pending()
    await asking.world.answer(pending)
    found = await asyncio.wait_for(call, 5)
    assert (found["status"], found["operation_id"], found["given"]) == ("approved", "op", 1)
    assert asking.world.app.effects == []
    assert (await asking.act("op"))["status"] == "succeeded"
    assert (await asking.act("op"))["replayed"]
    assert refused(await asking.act("op", handle="open"))["code"] == "conflict"
    assert asking.world.app.effects == [("invoke", "save", "")]
    assert (await approval(asking, approval_id=approval_id))["status"] == "used"


async def test_a_no_is_told_with_the_operators_reason(asking: Scene) -> None:
    await asking.act("op")
    (pending,) = asking.world.approvals.pending()
    call = asyncio.create_task(approval(asking, operation_id="op", wait_ms=60_000))
    await asyncio.sleep(0)
    await asking.world.answer(pending, "deny")
    assert (await asyncio.wait_for(call, 5))["status"] == "denied"
    assert refused(await asking.act("op"))["code"] == "approval_denied"
    assert (await approval(asking, approval_id=pending.approval_id))["status"] == "denied"
    assert asking.world.app.effects == []


async def test_an_expired_question_is_told_and_recorded_without_anybody_asking() -> None:
    world = World(policy=ASK)
    world.approvals._life_ms = 30
    scene = await Scene(world).open()
    heard: list[dict[str, Any]] = []
    watching = asyncio.create_task(scene.host.call(scene.agent, "watch", {}, progress=heard.append))
    await scene.act("op")
    assert (await approval(scene, operation_id="op", wait_ms=60_000))["status"] == "unanswered"
    await world.approvals.close()
    assert "operation.denied.v1" in await world.types()
    told = [one["approval"]["status"] for one in heard if "approval" in one]
    assert told == ["pending", "unanswered"]
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)


async def test_time_running_out_is_a_normal_answer_and_answers_nothing(asking: Scene) -> None:
    await asking.act("op")
    assert (await approval(asking, operation_id="op", wait_ms=5))["status"] == "pending"
    assert len(asking.world.approvals.pending()) == 1


async def test_another_principal_learns_nothing_of_an_approval(asking: Scene) -> None:
    reply = await asking.act("op")
    stranger = await agent(asking.host, "uid:2000")
    for params in ({"approval_id": reply["approval"]["approval_id"]}, {"operation_id": "op"}):
        with pytest.raises(InvalidRequest, match="no approval of yours"):
            await approval(asking, stranger, **params)
    assert (await approval(asking, stranger))["approvals"] == []


@pytest.mark.parametrize("answer", [None, "approve", "deny"])
async def test_after_a_restart_a_question_is_told_as_what_is_left_of_it(asking: Scene, answer: Any) -> None:
    await asking.act("op")
    (pending,) = asking.world.approvals.pending()
    if answer is not None:
        await asking.world.answer(pending, answer, reason="not this one")
    again = await Scene(await asking.world.restart()).open()
    found = await approval(again, operation_id="op")
    assert found["status"] == {"approve": "approved", "deny": "denied", None: "pending"}[answer]
    if answer != "deny":
        assert (await approval(again, approval_id=pending.approval_id))["status"] == found["status"]
        return
    # What has ended is in the journal, under the operation's id.
    assert found["operator_reason"] == "not this one"
    with pytest.raises(InvalidRequest):
        await approval(again, approval_id=pending.approval_id)


async def test_a_question_that_cannot_be_shown_any_more_is_lost_and_recorded_so(asking: Scene) -> None:
    await asking.act("op")
    asking.world.kept.files.clear()
    again = await Scene(await asking.world.restart()).open()
    assert (await approval(again, operation_id="op"))["status"] == "lost"
    ends = [event for event in await asking.world.journal.read() if event.type == "operation.denied.v1"]
    assert [event.payload["how"] for event in ends] == ["lost"]
    assert (await again.act("op"))["status"] == "approval_required"


async def test_only_so_many_ends_are_kept(asking: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "APPROVALS_ENDED_KEPT_MAX", 2)
    for number in range(3):
        await asking.act(f"op-{number}")
        (pending,) = asking.world.approvals.pending()
        await asking.world.answer(pending, "deny")
        await asking.act(f"op-{number}")
    assert len(asking.world.approvals.ended.newest(9)) == 2
    assert (await approval(asking, operation_id="op-2"))["status"] == "denied"
    # The journal remembers the rest.
    assert (await approval(asking, operation_id="op-0"))["status"] == "denied"


# --- watching --------------------------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def watched(scene: Scene, session: Session | None = None, **params: Any) -> AsyncIterator[list[dict[str, Any]]]:
    heard: list[dict[str, Any]] = []
    task = asyncio.create_task(scene.host.call(session or scene.agent, "watch", params, progress=heard.append))
    await until(lambda: heard or task.done())
    try:
        yield heard
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def told(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110 - the watch tells a plain list
            await asyncio.sleep(0.005)


async def test_a_watch_tells_of_windows_that_were_shown_coalesced(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "WATCH_SCENE_MS_MIN", 50)
    surface = scene.world.app.surface.surface_id
    await scene.host.call(scene.agent, "observe", {"surface": surface})
    async with watched(scene) as heard:
        assert heard == [{"watching": True}]
        for number in range(100):
            scene.world.app.change("name", value=f"v{number}")
            await asyncio.sleep(0)
        await told(lambda: len(heard) > 1)
        scenes = [one["scene"] for one in heard[1:]]
        assert scenes[0]["surface"] == surface
        assert scenes[0]["generation"] > 1
        await asyncio.sleep(0.12)
        assert len(heard) <= 4


async def test_a_watch_tells_nothing_of_what_may_not_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.unit.runtime.test_attacks_reach import CLOSED

    monkeypatch.setattr(limits, "WATCH_SCENE_MS_MIN", 5)
    scene = await Scene(World(policy=CLOSED)).open()
    async with watched(scene, surfaces=[scene.world.app.surface.surface_id]) as heard:
        for number in range(5):
            scene.world.app.change("name", value=f"v{number}")
            await asyncio.sleep(0.01)
        assert heard == [{"watching": True}]


async def test_a_watch_hears_of_its_own_approvals_and_requests_and_of_nobody_elses(asking: Scene) -> None:
    stranger = await agent(asking.host, "uid:2000")
    sibling = await agent(asking.host)
    async with watched(asking) as mine, watched(asking, stranger) as theirs, watched(asking, sibling) as beside:
        await asking.act("op")
        asked = await asking.ask()
        await asking.control("requests.take", request_id=asked["request_id"])
        await asking.control("requests.done", request_id=asked["request_id"])
        assert [one["human"]["status"] for one in mine if "human" in one] == ["waiting", "taken", "done"]
        assert [one["approval"]["status"] for one in mine if "approval" in one] == ["pending"]
        assert theirs == [{"watching": True}]
        # Approvals belong to the principal, requests to the session.
        assert [set(one) for one in beside[1:]] == [{"approval"}]


async def test_a_session_has_so_many_watches_of_so_many_windows_and_not_one_more(scene: Scene) -> None:
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(limits.WATCHES_MAX):
            await stack.enter_async_context(watched(scene))
        with pytest.raises(TooLarge):
            await scene.host.call(scene.agent, "watch", {}, progress=lambda _: None)
    async with watched(scene, surfaces=["w"] * limits.WATCH_SURFACES_MAX) as heard:
        assert heard[0] == {"watching": True}
    with pytest.raises(TooLarge):
        await scene.host.call(
            scene.agent, "watch", {"surfaces": ["w"] * (limits.WATCH_SURFACES_MAX + 1)}, progress=lambda _: None
        )
    assert scene.agent.watches == 0


# --- the doctor ------------------------------------------------------------------------------------------------------


async def test_the_doctor_says_what_works_without_a_path_of_this_user(scene: Scene) -> None:
    found = await scene.host.call(scene.agent, "doctor", {})
    assert found["desktop"] == "memory"
    assert found["isolation"] == "isolated"
    assert found["trust_level"] == "A"
    assert found["actions"]["invoke"] == ["memory"]
    assert {"name", "ok", "needed"} <= set(found["findings"][0])
    for finding in found["findings"]:
        assert finding["ok"] == ("detail" not in finding)


def test_paths_of_one_machine_are_taken_out_of_findings() -> None:
    assert "/home" not in without_paths("no access to /home/ann/.config/x, and ~/keys")
    assert "ann" not in without_paths("~/ann/keys: mode 0644")
    assert without_paths("apt install xvfb; see /usr/bin/Xvfb") == "apt install xvfb; see /usr/bin/Xvfb"


# --- over the sockets ------------------------------------------------------------------------------------------------


async def test_a_watch_over_the_agents_socket_hears_what_a_person_does_on_the_other(tmp_path: Path) -> None:
    async with running(tmp_path, host_of(World())) as run:  # type: ignore[arg-type]
        mine = await Raw.hello(run.places.agent_socket)
        theirs = await Raw.hello(run.places.control_socket, "control")
        mine.send({"id": 1, "method": "watch", "params": {}})
        assert (await mine.read())["data"] == {"watching": True}
        theirs.send({"id": 1, "method": "events.subscribe", "params": {}})
        theirs.send({"id": 3, "method": "requests", "params": {}})
        assert (await theirs.read())["result"] == {"requests": []}
        mine.send({"id": 2, "method": "human", "params": {"reason": "help", "wait_ms": 60_000}})
        assert (await mine.read())["data"]["human"]["status"] == "waiting"
        event = (await theirs.read())["data"]
        assert (event["event"], event["agent_says"]) == ("human.requested", "help")
        theirs.send({"id": 2, "method": "requests.done", "params": {"request_id": event["request_id"], "note": "ok"}})
        heard = [await mine.read(), await mine.read()]
        assert [one["data"]["human"]["operator_note"] for one in heard if "event" in one] == ["ok"]
        assert [one["result"]["status"] for one in heard if "result" in one] == ["done"]
        mine.send({"cancel": 1})
        assert (await mine.read())["error"]["code"] == "cancelled"
