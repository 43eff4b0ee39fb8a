"""Approvals over restarts and changes: what is found again, what is void, whose yes counts, and what leave covers."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from surehand import limits
from surehand.core.approvers import standing_message
from surehand.errors import AuthorityDenied, InvalidRequest, SurehandError, TooLarge, Unavailable
from surehand.model.actions import SetValue
from surehand.model.approval import PendingApproval
from surehand.model.authority import StandingGrant
from surehand.model.record import to_value
from surehand.runtime.attending import Attending, line_of
from surehand.runtime.kept import KeptFiles
from surehand.runtime.session import Session
from surehand.signing.ed25519 import SigningKey
from surehand.testing.journals import FaultyJournal, MemoryJournal
from surehand.testing.memory import button, field
from surehand.testing.worlds import APPROVER_KEY, PLAIN_KEY, SECOND_KEY, World, signed_answer
from tests.unit.runtime.test_attacks_people import ASK, Clock, held_world
from tests.unit.runtime.test_attacks_reach import agent, host_of

TWO = ASK + "approvals = 2\n" if ASK.startswith("[") else ASK.replace("reason =", "approvals = 2\nreason =")
COVER = ASK.replace("reason =", 'covers = ["purchase"]\nreason =')


def clock_of(world: World) -> Clock:
    assert isinstance(world.clock, Clock)
    return world.clock


async def question(world: World, operation_id: str = "op", handle: str = "save") -> PendingApproval:
    assert (await world.act(operation_id, handle)).status == "approval_required"
    return world.approvals.pending()[-1]


async def answered(world: World, pending: PendingApproval, key: SigningKey = APPROVER_KEY, **facts: Any) -> Any:
    name = {APPROVER_KEY: "operator", SECOND_KEY: "second", PLAIN_KEY: "plain"}[key]
    answer = signed_answer(pending, now_ms=world.clock.wall_ms(), key=key, approver=name, **facts)
    return await world.approvals.answer(answer)


# --- a restart ------------------------------------------------------------------------------------------------------


async def test_a_question_outlives_the_daemon_and_its_yes_is_used_once() -> None:
    world = World(policy=ASK)
    pending = await question(world)
    second = await world.restart()
    assert second.approvals.pending() == [pending]
    # The agent comes back with the same operation: it is the same question, not another one.
    assert (await second.act("op")).approval["approval_id"] == pending.approval_id
    await second.answer(pending)
    third = await second.restart()
    assert third.approvals.pending() == []
    assert (await third.act("op")).status == "succeeded"
    assert (await third.act("op")).replayed
    assert world.kept.files == {}
    fourth = await third.restart()
    assert (await fourth.act("op")).replayed
    assert len(world.app.effects) == 1


async def test_what_ended_before_a_restart_is_not_brought_back_by_what_was_kept() -> None:
    """The file of a question that was used or denied came back, as from a copy of the disk."""
    for answer, status in (("approve", "succeeded"), ("deny", "refused")):
        world = World(policy=ASK)
        pending = await question(world)
        await world.answer(pending, answer)
        copy = dict(world.kept.files)
        assert (await world.act("op")).status == status
        world.kept.files.update(copy)
        again = await world.restart()
        assert again.approvals._questions == {}
        assert again.kept.files == {}


async def test_a_yes_that_is_not_on_record_is_not_taken_up_again() -> None:
    clock = Clock()
    journal = FaultyJournal(MemoryJournal(clock=clock))
    world = World(policy=ASK, journal=journal, clock=clock)
    pending = await question(world)
    journal.fail("operation.approved.v1", "lost_before")
    with pytest.raises(Unavailable):
        await world.answer(pending)
    journal.reopen()
    assert b'"approve"' in world.kept.files[pending.approval_id]
    again = await world.restart()
    assert again.approvals.pending() == [pending]
    assert (await again.act("op")).status == "approval_required"
    assert world.app.effects == []


async def test_a_question_that_is_not_on_record_is_neither_shown_nor_kept() -> None:
    clock = Clock()
    journal = FaultyJournal(MemoryJournal(clock=clock))
    world = World(policy=ASK, journal=journal, clock=clock)
    journal.fail("operation.approval_requested.v1", "lost_before")
    assert (await world.act("op")).status == "refused"
    assert world.approvals.pending() == []
    assert world.kept.files == {}


@pytest.mark.parametrize("changed", ["answer", "presentation", "expires", "needed"])
async def test_what_was_changed_beside_the_journal_counts_for_nothing(changed: str) -> None:
    world = World(policy=TWO)
    pending = await question(world)
    await answered(world, pending)
    (data,) = world.kept.files.values()
    old, new = {
        "answer": (b'"approver":"operator"', b'"approver":"second"'),
        "presentation": (b'"button Save"', b'"button Open"'),
        "expires": (f'"expires_at_ms":{pending.expires_at_ms}'.encode(), b'"expires_at_ms":4000000000000'),
        "needed": (b'"needed":2,', b""),
    }[changed]
    assert old in data
    world.kept.files[pending.approval_id] = data.replace(old, new)
    again = await world.restart()
    if changed == "answer":
        assert again.approvals._questions[pending.approval_id].answers == []
    else:
        assert again.approvals._questions == {}
    assert (await again.act("op")).status == "approval_required"
    assert world.app.effects == []


async def test_a_question_that_ran_out_while_the_daemon_was_down_is_recorded_as_unanswered() -> None:
    world, _ = held_world()
    await question(world)
    clock_of(world).offset += limits.APPROVAL_MS_DEFAULT
    again = await world.restart()
    assert again.approvals.pending() == []
    (end,) = [event for event in await world.journal.read() if event.type == "operation.denied.v1"]
    assert (end.payload["how"], end.payload["approver"], end.actor) == ("unanswered", "", "daemon")
    assert world.kept.files == {}


async def test_an_unanswered_question_stays_until_its_end_is_on_record() -> None:
    world, journal = held_world()
    pending = await question(world)
    clock_of(world).offset += limits.APPROVAL_MS_DEFAULT
    journal.fail("operation.denied.v1", "lost_before")
    with pytest.raises(Unavailable):
        await world.approvals._sweep()
    assert list(world.kept.files) == [pending.approval_id]
    journal.reopen()
    await world.restart()
    assert (await world.types()).count("operation.denied.v1") == 1


async def test_policy_is_asked_again_after_a_restart_and_may_say_no() -> None:
    world = World(policy=ASK)
    pending = await question(world)
    await world.answer(pending)
    world.policy = ASK.replace("require_approval", "deny")
    again = await world.restart()
    assert (await again.act("op")).error["code"] == "policy_denied"
    assert world.app.effects == []


async def test_kept_questions_are_sealed_private_and_bound_to_their_name(tmp_path: Path) -> None:
    world = World(policy=ASK)
    pending = await question(world)
    kept = KeptFiles(tmp_path / "approvals", b"k" * 32)
    await kept.put(pending, [])
    (path,) = (tmp_path / "approvals").iterdir()
    assert path.stat().st_mode & 0o077 == 0
    assert b"Save" not in path.read_bytes()
    assert [one.pending for one in await kept.all()] == [pending]
    swapped = path.with_name("0123456789abcdef.question")
    path.rename(swapped)
    swapped.with_name("strange").write_bytes(b"")
    assert await kept.all() == []
    assert list(swapped.parent.iterdir()) == []
    await kept.put(pending, [])
    assert await KeptFiles(tmp_path / "approvals", b"l" * 32).all() == []


async def test_a_question_that_ends_while_it_is_written_leaves_no_file(tmp_path: Path) -> None:
    world = World(policy=ASK)
    pending = await question(world)
    kept = KeptFiles(tmp_path / "approvals", b"k" * 32)
    writing = asyncio.create_task(kept.put(pending, []))
    await asyncio.sleep(0)
    kept.forget(pending.approval_id)
    await writing
    assert list((tmp_path / "approvals").iterdir()) == []


# --- a change -------------------------------------------------------------------------------------------------------


async def test_a_change_voids_the_yes_and_shows_what_differs() -> None:
    world = World([button("show", "Show 10")], policy=ASK)
    pending = await question(world, handle="show")
    await world.answer(pending)
    world.app.change("show", name="Show 9999")
    other = await question(world, handle="show")
    assert (other.replaces, other.replaces_approved) == (pending.approval_id, True)
    assert [(one.name, one.before, one.after) for one in other.changed] == [
        ("element", "button Show 10", "button Show 9999")
    ]
    with pytest.raises(InvalidRequest, match="no such open question"):
        await world.answer(pending)
    # Back to what was agreed on: the yes was for then.
    world.app.change("show", name="Show 10")
    assert (await question(world, handle="show")).replaces == other.approval_id
    hows = [event.payload["how"] for event in await world.journal.read() if event.type == "operation.denied.v1"]
    assert hows == ["changed", "changed"]
    assert world.app.effects == []


async def test_a_changed_text_is_shown_before_and_after() -> None:
    world = World(policy=ASK.replace("invoke", "set_value"))
    for value in ("10 to carol", "10 to dave"):
        await world.act("op", "name", action=SetValue(value=value))
    (pending,) = world.approvals.pending()
    assert [(one.name, one.before, one.after) for one in pending.changed] == [
        ("parameters.value", "10 to carol", "10 to dave")
    ]


async def test_a_policy_that_asks_for_more_people_is_not_satisfied_by_an_earlier_yes() -> None:
    world = World(policy=ASK)
    pending = await question(world)
    await world.answer(pending)
    world.authority._policy = World(policy=TWO).authority.policy
    other = await question(world)
    assert (other.needed, other.replaces) == (2, pending.approval_id)
    assert world.app.effects == []


# --- who may answer -------------------------------------------------------------------------------------------------


async def test_of_two_people_one_is_not_enough_and_nobody_counts_twice() -> None:
    world = World(policy=TWO)
    pending = await question(world)
    for _ in range(2):
        assert (await answered(world, pending))["state"] == "waiting"
    assert (await world.act("op")).status == "approval_required"
    # Nor after a restart, which finds the first one's yes again.
    world = await world.restart()
    assert (await answered(world, pending))["state"] == "waiting"
    assert (await world.act("op")).status == "approval_required"
    assert (await answered(world, pending, SECOND_KEY))["state"] == "approved"
    assert (await world.act("op")).status == "succeeded"
    assert len(world.app.effects) == 1


async def test_one_no_among_several_people_is_a_no() -> None:
    world = World(policy=TWO)
    pending = await question(world)
    await answered(world, pending)
    assert (await answered(world, pending, SECOND_KEY, answer="deny", reason="no"))["state"] == "denied"
    reply = await world.act("op")
    assert reply.error["code"] == "approval_denied"
    assert reply.error["details"]["operator_reason"] == "no"
    assert world.app.effects == []


async def test_a_yes_of_a_key_that_was_taken_away_counts_no_more() -> None:
    world = World(policy=TWO)
    pending = await question(world)
    await answered(world, pending)
    await answered(world, pending, SECOND_KEY)
    world.revoked.add("second")
    assert (await world.act("op")).error["code"] == "approval_unanswered"
    with pytest.raises(AuthorityDenied, match="not signed by an allowed approver"):
        await answered(world, pending, SECOND_KEY)
    again = await world.restart()
    assert (await again.act("op")).status == "approval_required"
    assert world.app.effects == []


async def test_an_answer_that_was_heard_once_answers_nothing_else() -> None:
    world = World(policy=ASK)
    pending = await question(world)
    answer = signed_answer(pending, now_ms=world.clock.wall_ms())
    await world.approvals.answer(answer)
    assert (await world.act("op")).status == "succeeded"
    with pytest.raises(InvalidRequest):
        await world.approvals.answer(answer)
    other = await question(world, "other")
    for forged in (answer, msgspec.structs.replace(answer, approval_id=other.approval_id)):
        with pytest.raises((InvalidRequest, AuthorityDenied)):
            await world.approvals.answer(forged)
    wrong = signed_answer(other, now_ms=world.clock.wall_ms(), presentation_hash="1" * 64)
    with pytest.raises(AuthorityDenied, match="about something else"):
        await world.approvals.answer(wrong)
    assert (await world.act("other")).status == "approval_required"
    assert len(world.app.effects) == 1


async def test_what_is_consequential_takes_a_key_behind_a_passphrase_and_a_no_does_not() -> None:
    world = World([button("pay", "Pay 10")])
    pending = await question(world, handle="pay")
    assert pending.presentation.categories == ("purchase",)
    with pytest.raises(AuthorityDenied, match="passphrase") as refused:
        await answered(world, pending, PLAIN_KEY)
    assert "--passphrase" in (refused.value.fix or "")
    assert (await world.act("op", "pay")).status == "approval_required"
    assert (await answered(world, pending, PLAIN_KEY, answer="deny"))["state"] == "denied"
    assert (await world.act("op", "pay")).error["code"] == "approval_denied"
    assert world.app.effects == []


async def test_what_is_not_consequential_takes_any_approvers_key() -> None:
    world = World(policy=ASK)
    assert (await answered(world, await question(world), PLAIN_KEY))["state"] == "approved"
    assert (await world.act("op")).status == "succeeded"


async def test_a_reason_is_bounded() -> None:
    world = World(policy=ASK)
    pending = await question(world)
    with pytest.raises(TooLarge):
        await answered(world, pending, answer="deny", reason="x" * (4 * limits.REASON_CHARS_MAX + 1))
    assert world.approvals.pending() == [pending]


# --- leave with a yes -----------------------------------------------------------------------------------------------


def leave(pending: PendingApproval, **changed: Any) -> StandingGrant:
    shown = pending.presentation
    fields: dict[str, Any] = {
        "grant_id": "sg-1",
        "principal": shown.principal,
        "app": shown.app,
        "place": shown.place,
        "actions": (shown.action,),
        "risk_max": shown.risk,
        "uses_max": 2,
        "expires_at_ms": pending.requested_at_ms + 1_800_000,
        "issued_by": "operator",
    }
    return StandingGrant(**{**fields, **changed})


async def test_a_yes_for_a_while_covers_so_many_more_and_outlives_a_restart() -> None:
    world, _ = held_world()
    pending = await question(world)
    await answered(world, pending, standing=leave(pending))
    assert (await world.act("op")).status == "succeeded"
    (left,) = await world.approvals.leave.listed()
    # The operation itself has leave by now, too.
    assert left["uses_left"] == 1
    world = await world.restart()
    assert (await world.act("two")).status == "succeeded"
    assert (await world.approvals.leave.listed())[0]["uses_left"] == 0
    assert (await world.act("three")).status == "approval_required"
    given = next(event for event in await world.journal.read() if event.type == "standing.granted.v1")
    assert given.context == {"how": f"ed25519:{APPROVER_KEY.key_id}", "approval_id": pending.approval_id}
    assert len(world.app.effects) == 2


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"principal": "uid:2"}, "whoever asks"),
        ({"app": "exe:/usr/bin/other"}, "application that is shown"),
        ({"place": "elsewhere"}, "place that is shown"),
        ({"actions": ("desktop.invoke", "desktop.set_value")}, "action that is shown"),
        ({"risk_max": "external"}, "risk that is shown"),
        ({"issued_by": "second"}, "only whoever answers"),
        ({"expires_at_ms": 1}, "end within a day"),
        ({"expires_at_ms": 1_700_000_000_000 + limits.APPROVAL_MS_MAX + 1}, "end within a day"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
async def test_leave_that_says_more_than_was_shown_is_no_leave_and_no_yes(changed: Any, message: str) -> None:
    world, _ = held_world()
    pending = await question(world)
    with pytest.raises(InvalidRequest, match=message):
        await answered(world, pending, standing=leave(pending, **changed))
    assert await world.approvals.leave.listed() == []
    assert world.approvals.pending() == [pending]


async def test_a_consequential_yes_is_for_once() -> None:
    world = World([button("pay", "Pay 10")])
    pending = await question(world, handle="pay")
    with pytest.raises(InvalidRequest, match="asked about each time"):
        await answered(world, pending, standing=leave(pending))
    assert await world.approvals.leave.listed() == []


async def test_a_no_gives_no_leave() -> None:
    world, _ = held_world()
    pending = await question(world)
    with pytest.raises(InvalidRequest, match="comes with a yes"):
        await answered(world, pending, answer="deny", standing=leave(pending))


async def test_leave_is_given_by_a_signature_only() -> None:
    world, _ = held_world()
    grant = leave(await question(world))
    good = APPROVER_KEY.sign(standing_message(grant))
    more = msgspec.structs.replace(grant, uses_max=20)
    for one, key_id, signature in (
        (more, APPROVER_KEY.key_id, good),
        (grant, SECOND_KEY.key_id, SECOND_KEY.sign(standing_message(grant))),
        (grant, APPROVER_KEY.key_id, ""),
    ):
        with pytest.raises(AuthorityDenied, match="not signed by an allowed approver"):
            await world.approvals.grant(one, key_id, signature)
    assert await world.approvals.leave.listed() == []
    await world.approvals.grant(grant, APPROVER_KEY.key_id, good)
    assert (await world.act("op")).status == "succeeded"


async def test_leave_that_ran_out_is_put_aside_at_the_next_start() -> None:
    world, _ = held_world()
    await world.approvals.leave.grant(leave(await question(world)))
    clock_of(world).offset += 1_800_000
    assert await world.approvals.leave.listed() == []
    again = await world.restart()
    assert again.approvals.leave._standing == {}
    assert "standing.expired.v1" in await world.types()


# --- the windows of whoever is asked --------------------------------------------------------------------------------


async def test_the_terminal_of_whoever_is_asked_is_out_of_every_agents_reach_while_they_are_there() -> None:
    """What runs above the approver's program draws its window: the agent neither reads it nor types into it."""
    world = World()
    host = host_of(world)
    session = await agent(host)
    terminal = os.getppid()
    identity = msgspec.structs.replace(world.app.surface.app, pid=terminal)
    world.app.surface = msgspec.structs.replace(world.app.surface, app=identity)
    await host.call(session, "observe", {})
    request = await world.request("op", target=await world.ref("save", session))

    person = await host.open_channel(
        principal="uid:7", role="control", client={"name": "cli", "pid": str(os.getpid())}, desktop=None
    )
    reply = await world.gateway.act(session, request)
    assert (reply.error["code"], reply.error["details"]["rule"]) == ("policy_denied", "default.own-surfaces")
    with pytest.raises(SurehandError):
        await host.call(session, "observe", {"surface": world.app.surface.surface_id})
    assert (await host.call(session, "surfaces", {}))["surfaces"] == []
    assert world.app.effects == []

    await host.close_channel(person)
    assert (await host.call(session, "surfaces", {}))["surfaces"]
    again = await world.request("op", target=await world.ref("save", session))
    assert (await world.gateway.act(session, again)).status == "succeeded"
    await host.close()


def test_the_line_of_a_process_ends_below_the_first_and_of_none_is_itself() -> None:
    assert {os.getpid(), os.getppid()} - {1} <= line_of(os.getpid())
    assert 1 not in line_of(os.getpid())
    assert line_of(2**22 + 1) == {2**22 + 1}
    assert Attending().come("s", "not a pid") == frozenset()


# --- floods ---------------------------------------------------------------------------------------------------------


async def test_all_agents_together_cannot_bury_an_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "APPROVALS_OPEN_MAX", 3)
    world = World(policy=ASK)
    for number in range(4):
        session = world.new_session(f"uid:{number}")
        reply = await world.gateway.act(
            session, msgspec.structs.replace(await world.request("op"), target=await world.ref("save", session))
        )
        assert reply.status == ("approval_required" if number < 3 else "refused")
    assert len(world.approvals.pending()) == 3
    assert reply.error is not None
    assert reply.error["code"] == "too_large"
    assert world.app.effects == []


# --- one form -------------------------------------------------------------------------------------------------------


FORM = [field("to", "To", ""), field("sum", "Amount", ""), button("send", "Send")]
ASK_ALL = ASK.replace('["desktop.invoke"]', '["desktop.invoke", "desktop.set_value"]')


class Form:
    """A form of three steps, presented as a batch of one agent."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.host = host_of(world)
        self.session: Session

    async def open(self) -> Form:
        self.session = await agent(self.host)
        return self

    async def send(self, amount: str = "10", operation_id: str = "form") -> list[dict[str, Any]]:
        actions: list[dict[str, Any]] = [
            {"kind": "set_value", "value": "carol"},
            {"kind": "set_value", "value": amount},
            {"kind": "invoke"},
        ]
        steps = [
            {
                "operation_id": "x",
                "action": action,
                "target": {"kind": "element", **to_value(await self.world.ref(handle, self.session))},
            }
            for handle, action in zip(("to", "sum", "send"), actions, strict=True)
        ]
        batch = {"operation_id": operation_id, "steps": steps}
        found = await self.host.call(self.session, "batch", {"batch": batch})
        replies: list[dict[str, Any]] = found["replies"]
        return replies


async def test_a_form_is_asked_about_once_with_all_its_steps_and_then_done() -> None:
    form = await Form(World(FORM, policy=ASK_ALL)).open()
    (reply,) = await form.send()
    assert (reply["status"], reply["approval"]["steps"]) == ("approval_required", 3)
    assert form.world.app.effects == []
    (pending,) = form.world.approvals.pending()
    shown = pending.presentation
    assert [(step["action"], step["element"]) for step in shown.parameters["steps"]] == [
        ("desktop.set_value", "text To"), ("desktop.set_value", "text Amount"), ("desktop.invoke", "button Send"),
    ]  # fmt: skip
    assert shown.parameters["steps"][1]["parameters"] == {"value": "10"}
    assert "send_publish" in shown.categories
    await form.world.answer(pending)
    replies = await form.send()
    assert [one["status"] for one in replies] == ["succeeded"] * 3
    assert form.world.approvals._questions == {}
    assert all(one["replayed"] for one in await form.send())
    assert len(form.world.app.effects) == 3


async def test_a_plan_covers_no_other_step_no_other_order_and_no_other_id() -> None:
    form = await Form(World(FORM, policy=ASK_ALL)).open()
    await form.send("10")
    (pending,) = form.world.approvals.pending()
    await form.world.answer(pending)
    assert (await form.send("10", "other"))[0]["status"] == "approval_required"
    # A step of the plan's own by its id, and another by what it does.
    other = SetValue(value="9999")
    target = await form.world.ref("sum", form.session)
    request = await form.world.request("form:1", action=other, target=target)
    reply = await form.world.gateway.act(form.session, request)
    assert reply.status == "approval_required"
    (changed,) = await form.send("9999")
    assert changed["status"] == "approval_required"
    assert form.world.app.effects == []
    void = form.world.approvals.pending()[-1]
    assert (void.replaces, void.replaces_approved) == (pending.approval_id, True)


async def test_a_step_of_a_plan_is_done_once_over_a_restart() -> None:
    form = await Form(World(FORM, policy=ASK_ALL)).open()
    await form.send()
    (pending,) = form.world.approvals.pending()
    await form.world.answer(pending)
    again = await Form(await form.world.restart()).open()
    for _ in range(2):
        assert [one["status"] for one in await again.send()] == ["succeeded"] * 3
    assert len(form.world.app.effects) == 3


async def test_a_no_to_a_plan_does_none_of_it() -> None:
    form = await Form(World(FORM, policy=ASK_ALL)).open()
    await form.send()
    (pending,) = form.world.approvals.pending()
    await form.world.answer(pending, "deny", reason="not carol")
    with pytest.raises(SurehandError, match="a person said no"):
        await form.send()
    assert form.world.app.effects == []


async def test_one_step_that_needs_a_person_is_asked_about_by_itself() -> None:
    form = await Form(World(FORM)).open()
    replies = await form.send()
    assert [one["status"] for one in replies] == ["succeeded", "succeeded", "approval_required"]
    assert form.world.approvals.pending()[0].presentation.steps == ()
