"""Attacks on approvals and standing grants: late answers, changed minds, spent and revoked leave, floods of questions."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from surehand import limits
from surehand.core.approvers import Proof
from surehand.core.authority import Keyring, PinnedKey, grant_message
from surehand.core.wire.frames import frame
from surehand.errors import InvalidRequest
from surehand.model.actions import App
from surehand.model.authority import Grant, SignedGrant, StandingGrant
from surehand.model.record import to_value
from surehand.model.request import Request
from surehand.model.targets import NoTarget
from surehand.runtime.asked import answered
from surehand.runtime.config import Config
from surehand.runtime.recovery import recover
from surehand.signing.ed25519 import SigningKey
from surehand.testing.journals import FaultyJournal, MemoryJournal
from surehand.testing.memory import button
from surehand.testing.worlds import APPROVER_KEY, World, signed_answer

ASK = """
version = 1
[[rule]]
id = "ask"
effect = "require_approval"
reason = "a person must agree"
[rule.match]
action = ["desktop.invoke"]
"""
HOST_KEY = SigningKey(b"a host's seed for tests, no more")


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.offset = 0

    def monotonic_ms(self) -> int:
        return 1_000_000 + self.offset

    def wall_ms(self) -> int:
        return 1_700_000_000_000 + self.offset


def held_world(**facts: Any) -> tuple[World, FaultyJournal]:
    clock = Clock()
    journal = FaultyJournal(MemoryJournal(clock=clock))
    return World(policy=ASK, journal=journal, clock=clock, **facts), journal


def standing(world: World, **changed: Any) -> StandingGrant:
    fields: dict[str, Any] = {
        "grant_id": "sg",
        "principal": "uid:1000",
        "app": world.app.surface.app.key,
        "actions": ("desktop.invoke",),
        "risk_max": "reversible",
        "uses_max": 1,
        "expires_at_ms": world.clock.wall_ms() + 3_600_000,
        "issued_by": "operator",
    }
    return StandingGrant(**{**fields, **changed})


# --- answers that come late -----------------------------------------------------------------------------------------


async def test_an_answer_that_comes_while_its_claim_is_written_leaves_a_journal_that_can_be_read() -> None:
    world, journal = held_world()
    await world.act("op")
    (pending,) = world.approvals.pending()
    await world.answer(pending)
    gate = journal.hold("operation.claimed.v1")
    call = asyncio.create_task(world.act("op"))
    while ("operation.claimed.v1",) not in journal.asked:  # noqa: ASYNC110 - turns of the loop, not time
        await asyncio.sleep(0)
    with pytest.raises(InvalidRequest):
        await world.answer(pending)
    gate.set()
    assert (await call).status == "succeeded"
    stored = await world.operations.load("uid:1000", "op")
    assert stored is not None
    assert stored.terminal is not None


async def test_a_question_that_a_standing_grant_overtook_cannot_be_answered_into_a_finished_operation() -> None:
    world, _ = held_world()
    await world.act("op")
    (pending,) = world.approvals.pending()
    await world.approvals.leave.grant(standing(world))
    assert (await world.act("op")).status == "succeeded"
    assert world.approvals.pending() == []
    with pytest.raises(InvalidRequest):
        await world.answer(pending)
    assert (await world.act("op")).replayed
    await recover(world.journal, world.operations)


async def test_an_approval_event_after_a_claim_does_not_keep_recovery_from_ending_it() -> None:
    """A journal of before may hold one; the daemon must still start, and the claim still is an unknown outcome."""
    world, journal = held_world()
    await world.act("op")
    (pending,) = world.approvals.pending()
    await world.answer(pending)
    journal.fail("operation.terminal.v1", "lost_before")
    assert (await world.act("op")).status == "outcome_unknown"
    journal.reopen()
    late = signed_answer(pending, now_ms=world.clock.wall_ms())
    await world.journal.append(
        [answered(pending, late, Proof("Ed25519", APPROVER_KEY.public_key), world.clock.wall_ms())]
    )
    later = await world.restart()
    assert (await later.gateway.act(later.session, await later.request("op"))).status == "outcome_unknown"
    assert len(world.app.effects) == 1


async def test_a_no_after_a_yes_stops_what_was_not_claimed_yet() -> None:
    """The person changed their mind while the fence was reading: whoever is told "denied" must be right."""
    world, _ = held_world()
    await world.act("op")
    (pending,) = world.approvals.pending()
    await world.answer(pending)
    reading = asyncio.Event()
    go_on = asyncio.Event()
    live = world.app.live

    async def slow(*arguments: Any, **options: Any) -> Any:
        reading.set()
        await go_on.wait()
        return await live(*arguments, **options)

    world.app.live = slow  # type: ignore[method-assign]
    call = asyncio.create_task(world.act("op"))
    await reading.wait()
    assert (await world.answer(pending, "deny"))["state"] == "denied"
    go_on.set()
    reply = await call
    assert (reply.status, reply.error["code"]) == ("refused", "approval_denied")
    assert world.app.effects == []


async def test_a_yes_that_ran_out_while_the_fence_was_reading_is_not_used() -> None:
    world, _ = held_world()
    clock = world.clock
    assert isinstance(clock, Clock)
    await world.act("op")
    (pending,) = world.approvals.pending()
    await world.answer(pending)
    live = world.app.live

    async def slow(*arguments: Any, **options: Any) -> Any:
        if world.app.effects == [] and clock.offset == 0:
            clock.offset = 60_000
        return await live(*arguments, **options)

    request = await world.request("op", deadline_ms=600_000)
    world.app.live = slow  # type: ignore[method-assign]
    reply = await world.gateway.act(world.session, request)
    assert (reply.status, reply.error["code"]) == ("refused", "approval_unanswered")
    assert world.app.effects == []


@pytest.mark.parametrize("said", ["approve", "deny"])
async def test_a_yes_whose_question_ended_while_the_fence_was_reading_is_not_used(said: Any) -> None:
    """Whoever sweeps what is over, the next question or a timer, must not sweep the reason to refuse with it."""
    world, _ = held_world()
    clock = world.clock
    assert isinstance(clock, Clock)
    await world.act("op")
    (pending,) = world.approvals.pending()
    clock.offset = asked_for = limits.APPROVAL_MS_DEFAULT - 1_000
    await world.answer(pending)
    live = world.app.live

    async def slow(*arguments: Any, **options: Any) -> Any:
        if clock.offset == asked_for:
            if said == "deny":
                await world.answer(pending, said)
            clock.offset += 61_000
            await world.approvals._sweep()
            assert not world.approvals._questions
        return await live(*arguments, **options)

    request = await world.request("op", deadline_ms=600_000)
    world.app.live = slow  # type: ignore[method-assign]
    reply = await world.gateway.act(world.session, request)
    assert (reply.status, reply.error["code"]) == ("refused", "approval_unanswered")
    assert world.app.effects == []


# --- one window is not another --------------------------------------------------------------------------------------


async def test_a_yes_for_one_window_does_not_count_in_another_of_the_same_application() -> None:
    """Two documents of an editor have the same Save button; only the window tells them apart."""
    world, _ = held_world()
    await world.act("op")
    (pending,) = world.approvals.pending()
    await world.answer(pending)
    world.app.surface = msgspec.structs.replace(world.app.surface, surface_id="m-other")
    assert (await world.act("op")).status == "approval_required"
    assert world.app.effects == []


async def test_a_replay_whose_scene_is_gone_still_hashes_to_its_window() -> None:
    world, _ = held_world()
    request = await world.request("op")
    await world.approvals.leave.grant(standing(world))
    await world.gateway.act(world.session, request)
    assert (await world.gateway.act(world.new_session(), request)).replayed


# --- standing grants ------------------------------------------------------------------------------------------------


async def test_a_spent_standing_grant_asks_a_person_instead_of_refusing_for_ever() -> None:
    world, _ = held_world()
    await world.approvals.leave.grant(standing(world))
    assert (await world.act("one")).status == "succeeded"
    assert (await world.act("two")).status == "approval_required"


async def test_behind_a_spent_standing_grant_the_next_one_is_used() -> None:
    world, _ = held_world()
    await world.approvals.leave.grant(standing(world))
    await world.approvals.leave.grant(standing(world, grant_id="second"))
    assert [(await world.act(f"op{n}")).status for n in range(3)] == ["succeeded", "succeeded", "approval_required"]
    assert len(world.app.effects) == 2


async def test_a_race_for_the_last_use_of_a_standing_grant_gives_one_effect() -> None:
    world, _ = held_world()
    await world.approvals.leave.grant(standing(world))
    requests = [await world.request(f"op{n}") for n in range(8)]
    replies = await asyncio.gather(*(world.gateway.act(world.session, request) for request in requests))
    assert [reply.status for reply in replies].count("succeeded") == 1
    assert len(world.app.effects) == 1


async def test_a_standing_grant_revoked_while_the_fence_was_reading_is_not_used() -> None:
    world, _ = held_world()
    await world.approvals.leave.grant(standing(world))
    live = world.app.live

    async def slow(*arguments: Any, **options: Any) -> Any:
        if await world.approvals.leave.listed():
            await world.approvals.leave.revoke("sg", "operator")
        return await live(*arguments, **options)

    request = await world.request("op")
    world.app.live = slow  # type: ignore[method-assign]
    reply = await world.gateway.act(world.session, request)
    assert (reply.status, reply.error["code"]) == ("refused", "authority_denied")
    assert world.app.effects == []


async def test_two_people_revoking_at_once_is_no_defect() -> None:
    world, _ = held_world()
    await world.approvals.leave.grant(standing(world))
    results = await asyncio.gather(
        *(world.approvals.leave.revoke("sg", "operator") for _ in range(2)), return_exceptions=True
    )
    assert all(result is None or isinstance(result, InvalidRequest) for result in results)


async def test_a_standing_grant_for_an_interpreter_covers_none_of_its_programs() -> None:
    world, _ = held_world()
    identity = msgspec.structs.replace(world.app.surface.app, key="exe:/usr/bin/python3.11")
    world.app.surface = msgspec.structs.replace(world.app.surface, app=identity)
    await world.approvals.leave.grant(standing(world))
    assert (await world.act("op")).status == "approval_required"


async def test_a_standing_grant_never_covers_what_the_screen_calls_consequential() -> None:
    world, _ = held_world(nodes=[button("gone", "Delete all files")])
    await world.approvals.leave.grant(standing(world))
    assert (await world.act("op", "gone")).status == "approval_required"
    assert world.app.effects == []


# --- floods -----------------------------------------------------------------------------------------------------------


async def test_questions_nobody_answered_do_not_lock_a_principal_out() -> None:
    world, _ = held_world()
    for number in range(limits.APPROVALS_PENDING_MAX):
        assert (await world.act(f"op{number}")).status == "approval_required"
    assert (await world.act("one-more")).error["code"] == "too_large"
    assert isinstance(world.clock, Clock)
    world.clock.offset += limits.APPROVAL_MS_DEFAULT + 1
    assert (await world.act("later")).status == "approval_required"
    assert len(world.approvals._questions) == 1
    assert (await world.types()).count("operation.denied.v1") == limits.APPROVALS_PENDING_MAX


async def test_questions_too_long_to_list_do_not_keep_the_operator_from_listing_them() -> None:
    """Control characters grow when they are made visible: a few long command lines would fill any frame."""
    world, _ = held_world()
    launch = App(op="launch", name="x", arguments=("\x01" * 1_000,) * 32)
    for number in range(100):
        request = Request(operation_id=f"op{number}", action=launch, target=NoTarget())
        reply = await world.gateway.act(world.session, request)
        assert reply.status in {"approval_required", "refused"}
    assert world.approvals.pending()
    assert len(frame({"pending": [to_value(one) for one in world.approvals.pending()]})) < limits.FRAME_BYTES_MAX / 8
    other = world.new_session("uid:2000")
    request = Request(operation_id="op", action=App(op="launch", name="x"), target=NoTarget())
    assert (await world.gateway.act(other, request)).status == "approval_required"


async def test_many_questions_at_once_stop_at_the_limit() -> None:
    world, _ = held_world()
    request = await world.request("x")
    requests = [
        msgspec.structs.replace(request, operation_id=f"op{n}") for n in range(limits.APPROVALS_PENDING_MAX + 20)
    ]
    replies = await asyncio.gather(*(world.gateway.act(world.session, one) for one in requests))
    statuses = [reply.status for reply in replies]
    assert statuses.count("approval_required") == limits.APPROVALS_PENDING_MAX
    assert len(world.approvals.pending()) == limits.APPROVALS_PENDING_MAX


# --- grants -----------------------------------------------------------------------------------------------------------


def host_world() -> tuple[World, Clock]:
    clock = Clock()
    key = PinnedKey(issuer="host", key_id="k", public_key=HOST_KEY.public_key, policy_generation=1)
    world = World(policy=ASK, clock=clock, config=Config(authority="host", keyring="pinned"), keyring=Keyring((key,)))
    return world, clock


async def granted(world: World, request: Request, *, life_ms: int, **changed: Any) -> Request:
    proposal = await world.gateway.propose(world.session, request)
    fields: dict[str, Any] = {
        "issuer": "host",
        "key_id": "k",
        "principal": "uid:1000",
        "operation_id": request.operation_id,
        "action_hash": proposal["action_hash"],
        "risk": request.risk,
        "policy_generation": 1,
        "expires_at_ms": world.clock.wall_ms() + life_ms,
    }
    grant = Grant(**{**fields, **changed})
    return msgspec.structs.replace(
        request, authority=SignedGrant(grant=grant, signature=HOST_KEY.sign(grant_message(grant)))
    )


async def test_a_grant_that_ran_out_while_a_person_thought_authorises_nothing() -> None:
    world, clock = host_world()
    request = await granted(world, await world.request("op"), life_ms=5_000)
    asked = asyncio.Event()
    world.approvals.publish = lambda kind, _: asked.set() if kind == "approval.requested" else None
    call = asyncio.create_task(world.gateway.act(world.session, request, wait_approval_ms=60_000))
    await asked.wait()
    clock.offset += 20_000
    (pending,) = world.approvals.pending()
    await world.answer(pending)
    reply = await call
    assert (reply.status, reply.error["code"]) == ("refused", "authority_denied")
    assert world.app.effects == []


@pytest.mark.parametrize(
    "changed",
    [
        {"operation_id": "other"},
        {"principal": "uid:1001"},
        {"action_hash": "0" * 64},
        {"risk": "read"},
        {"policy_generation": 2},
        {"key_id": "other"},
    ],
)
async def test_a_grant_for_anything_else_is_refused(changed: dict[str, Any]) -> None:
    world, _ = host_world()
    request = await granted(world, await world.request("op"), life_ms=5_000, **changed)
    reply = await world.gateway.act(world.session, request)
    assert (reply.status, reply.error["code"]) == ("refused", "authority_denied")


async def test_without_a_grant_the_host_mode_does_nothing() -> None:
    world, _ = host_world()
    assert (await world.act("op")).error["code"] == "authority_denied"
    assert world.app.effects == []
