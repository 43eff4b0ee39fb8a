"""What a client says that its person answered: off unless named, never for what is grave, once, and recorded as such."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from surehand import limits
from surehand.cli.evidence import page
from surehand.core import asserted as rules
from surehand.core.approval import Approver, presentation_hash
from surehand.errors import AuthorityDenied, InvalidRequest, SurehandError, TooLarge
from surehand.model.approval import CLIENT_ASSERTED, ApprovalAnswer, PendingApproval
from surehand.model.record import convert
from surehand.runtime.asserted import told
from surehand.runtime.config import AskingClient, Config, load
from surehand.runtime.session import Session
from surehand.testing.journals import FaultyJournal, MemoryJournal
from surehand.testing.memory import button, field
from surehand.testing.worlds import World
from tests.unit.runtime.test_attacks_people import ASK, Clock
from tests.unit.runtime.test_attacks_reach import agent
from tests.unit.runtime.test_people import Scene

DESK = Config(mcp_elicitation=(AskingClient(client="desk", uid=1000),))
TWO = ASK.replace("reason =", "approvals = 2\nreason =")


class Stage(Scene):
    """An agent whose client may be asked, unless a test says otherwise."""

    def __init__(self, policy: str = ASK, config: Config = DESK, **facts: Any) -> None:
        nodes = (button("save", "Save"), button("open", "Open"), button("pay", "Pay 10"), field("name", "Name", "old"))
        super().__init__(World(nodes, policy=policy, config=config, clock=Clock(), **facts))

    async def waits(self, handle: str = "save", session: Session | None = None) -> str:
        reply = await self.act("op", session, handle)
        assert reply["status"] == "approval_required"
        return str(reply["approval"]["approval_id"])

    async def form(self, approval_id: str, session: Session | None = None, client: str = "desk") -> dict[str, Any]:
        params = {"approval_id": approval_id, "client": client}
        return await self.host.call(session or self.agent, "approval.form", params)

    async def says(self, approval_id: str, shown: str, session: Session | None = None, **changed: Any) -> Any:
        params = {"approval_id": approval_id, "client": "desk", "presentation_hash": shown, "answer": "approve"}
        return await self.host.call(session or self.agent, "approval.assert", params | changed)

    async def refused(self, approval_id: str, shown: str, session: Session | None = None, **changed: Any) -> str:
        """Say yes, be refused, and see that nothing came of it."""
        with pytest.raises(AuthorityDenied) as found:
            await self.says(approval_id, shown, session, **changed)
        assert self.world.app.effects == []
        assert "operation.approved.v1" not in await self.world.types()
        return found.value.message

    def hash_of(self, approval_id: str) -> str:
        (pending,) = [one for one in self.world.approvals.pending() if one.approval_id == approval_id]
        return pending.presentation_hash


async def test_a_named_client_is_given_what_is_hashed_and_its_yes_is_used_once_and_on_record_as_its_word() -> None:
    stage = await Stage().open()
    approval_id = await stage.waits()
    form = await stage.form(approval_id)
    assert form["presentation_hash"] == stage.hash_of(approval_id)
    for line in ("element: button Save", "action: desktop.invoke", "reason: a person must agree"):
        assert line in form["text"].splitlines()
    assert (await stage.says(approval_id, form["presentation_hash"]))["state"] == "approved"
    assert stage.world.app.effects == []
    reply = await stage.act("op")
    assert reply["status"] == "succeeded"
    assert list(reply["terminal"]["receipt"]["warnings"]) == [CLIENT_ASSERTED]
    events = await stage.world.journal.read()
    (yes,) = [event.payload for event in events if event.type == "operation.approved.v1"]
    assert (yes["how"], yes["approver"], "proof" in yes) == (CLIENT_ASSERTED, "client:desk", False)
    (end,) = [event.payload for event in events if event.type.startswith("operation.terminal")]
    assert end["receipt"]["warnings"] == [CLIENT_ASSERTED]
    evidence = page(await stage.control("audit.report"))
    assert "client:desk" in evidence
    assert CLIENT_ASSERTED in evidence
    assert (await stage.act("op"))["replayed"]
    assert len(stage.world.app.effects) == 1
    with pytest.raises(AuthorityDenied):
        await stage.says(approval_id, form["presentation_hash"])


async def test_a_no_of_the_client_is_a_no_and_says_whose() -> None:
    stage = await Stage().open()
    approval_id = await stage.waits()
    shown = (await stage.form(approval_id))["presentation_hash"]
    assert (await stage.says(approval_id, shown, answer="deny", reason="not now"))["state"] == "denied"
    reply = await stage.act("op")
    assert reply["error"]["code"] == "approval_denied"
    assert reply["error"]["message"] == "the client says that its person said no"
    assert reply["error"]["details"]["operator_reason"] == "not now"
    assert stage.world.app.effects == []


@pytest.mark.parametrize(
    ("config", "client"),
    [
        (Config(), "desk"),
        (DESK, "Desk"),
        (DESK, "desk "),
        (Config(mcp_elicitation=(AskingClient(client="desk", uid=1001),)), "desk"),
    ],
)
async def test_a_client_that_the_operator_did_not_name_for_this_user_is_given_nothing_and_its_word_is_refused(
    config: Config, client: str
) -> None:
    stage = await Stage(config=config).open()
    approval_id = await stage.waits()
    with pytest.raises(AuthorityDenied, match="named no such client"):
        await stage.form(approval_id, client=client)
    assert "named no such client" in await stage.refused(approval_id, stage.hash_of(approval_id), client=client)


async def test_at_level_b_no_clients_word_counts() -> None:
    stage = await Stage().open()
    stage.agent.trust_level = "B"
    approval_id = await stage.waits()
    with pytest.raises(AuthorityDenied, match="named no such client"):
        await stage.form(approval_id)
    assert "named no such client" in await stage.refused(approval_id, stage.hash_of(approval_id))


async def test_what_is_consequential_is_not_for_a_client() -> None:
    stage = await Stage().open()
    approval_id = await stage.waits("pay")
    with pytest.raises(AuthorityDenied, match="consequential"):
        await stage.form(approval_id)
    assert "consequential" in await stage.refused(approval_id, stage.hash_of(approval_id))


async def test_what_takes_two_people_is_not_for_a_client() -> None:
    stage = await Stage(policy=TWO).open()
    approval_id = await stage.waits()
    assert "more than one" in await stage.refused(approval_id, stage.hash_of(approval_id))


async def test_a_word_about_something_else_does_not_count_and_leaves_the_question_open() -> None:
    stage = await Stage().open()
    approval_id = await stage.waits()
    shown = (await stage.form(approval_id))["presentation_hash"]
    assert "something else" in await stage.refused(approval_id, "0" * 64)
    assert (await stage.says(approval_id, shown))["state"] == "approved"


async def test_a_question_of_another_session_is_not_answered_and_not_shown() -> None:
    stage = await Stage().open()
    approval_id = await stage.waits()
    await stage.form(approval_id)
    for principal in ("uid:1000", "uid:1001"):
        other = await agent(stage.host, principal)
        with pytest.raises(AuthorityDenied):
            await stage.form(approval_id, other)
        await stage.refused(approval_id, stage.hash_of(approval_id), other)


async def test_a_word_without_having_been_given_the_words_does_not_count() -> None:
    stage = await Stage().open()
    approval_id = await stage.waits()
    assert "not given the words" in await stage.refused(approval_id, stage.hash_of(approval_id))


async def test_a_word_counts_to_the_last_moment_and_not_after() -> None:
    for late, counts in ((-1, True), (0, False)):
        stage = await Stage().open()
        approval_id = await stage.waits()
        shown = (await stage.form(approval_id))["presentation_hash"]
        stage.world.clock.offset += limits.APPROVAL_MS_DEFAULT + late  # type: ignore[attr-defined]
        if counts:
            assert (await stage.says(approval_id, shown))["state"] == "approved"
        else:
            await stage.refused(approval_id, shown)


async def test_a_yes_of_a_client_is_used_at_once_or_not_at_all() -> None:
    for late, status in ((-1, "succeeded"), (0, "approval_required")):
        stage = await Stage().open()
        approval_id = await stage.waits()
        await stage.says(approval_id, (await stage.form(approval_id))["presentation_hash"])
        stage.world.clock.offset += limits.ASSERTED_MS_MAX + late  # type: ignore[attr-defined]
        assert (await stage.act("op"))["status"] == status


async def test_a_word_is_said_once_even_at_the_same_time() -> None:
    stage = await Stage().open()
    approval_id = await stage.waits()
    shown = (await stage.form(approval_id))["presentation_hash"]
    found = await asyncio.gather(*(stage.says(approval_id, shown) for _ in range(3)), return_exceptions=True)
    assert sorted(isinstance(one, AuthorityDenied) for one in found) == [False, True, True]
    assert (await stage.world.types()).count("operation.approved.v1") == 1


async def test_what_a_person_answered_meanwhile_stands() -> None:
    stage = await Stage().open()
    approval_id = await stage.waits()
    shown = (await stage.form(approval_id))["presentation_hash"]
    await stage.world.answer(stage.world.approvals.pending()[0], "deny")
    assert "already" in await stage.refused(approval_id, shown)
    assert (await stage.act("op"))["status"] == "refused"


async def test_an_operator_can_say_no_after_a_client_said_yes() -> None:
    stage = await Stage().open()
    approval_id = await stage.waits()
    pending = stage.world.approvals.pending()[0]
    await stage.says(approval_id, (await stage.form(approval_id))["presentation_hash"])
    await stage.world.answer(pending, "deny")
    assert (await stage.act("op"))["error"]["code"] == "approval_denied"
    assert stage.world.app.effects == []


async def test_a_clients_yes_does_not_outlive_the_daemon_and_a_question_is_then_asked_again() -> None:
    stage = await Stage().open()
    approval_id = await stage.waits()
    await stage.says(approval_id, (await stage.form(approval_id))["presentation_hash"])
    again = await stage.world.restart()
    assert [one.approval_id for one in again.approvals.pending()] == [approval_id]
    assert (await again.act("op")).status == "approval_required"
    assert stage.world.app.effects == []


async def test_a_yes_that_is_not_on_record_is_not_used() -> None:
    journal = FaultyJournal(MemoryJournal(clock=Clock()))
    stage = await Stage(journal=journal).open()
    approval_id = await stage.waits()
    shown = (await stage.form(approval_id))["presentation_hash"]
    journal.fail("operation.approved.v1", "lost_before")
    with pytest.raises(SurehandError):
        await stage.says(approval_id, shown)
    journal.reopen()
    assert (await stage.act("op"))["status"] == "approval_required"
    assert stage.world.app.effects == []


async def test_the_control_socket_takes_no_answer_without_a_signature_as_a_clients() -> None:
    stage = await Stage().open()
    await stage.waits()
    (pending,) = stage.world.approvals.pending()
    answer = rules.answer_of(
        pending,
        "desk",
        "approve",
        presentation_hash=pending.presentation_hash,
        reason="",
        now_ms=stage.world.clock.wall_ms(),
    )
    with pytest.raises(AuthorityDenied):
        await stage.world.approvals.answer(answer)
    for name, key_id in (("ann", CLIENT_ASSERTED), ("client:desk", "k1")):
        with pytest.raises(InvalidRequest):
            Approver(approver=name, key_id=key_id, public_key="0" * 64)


def pending_with(**shown: Any) -> PendingApproval:
    presentation = {
        "principal": "uid:1000", "app": "a", "place": "", "element": "button Save", "context": "",
        "action": "desktop.invoke", "parameters": {}, "risk": "reversible", "categories": [], "reason": "r",
        "action_hash": "h", **shown,
    }  # fmt: skip
    value = {
        "approval_id": "a1", "operation_id": "op", "principal": "uid:1000", "presentation": presentation,
        "presentation_hash": "0" * 64, "requested_at_ms": 0, "expires_at_ms": 10,
    }  # fmt: skip
    pending = convert(PendingApproval, value)
    return msgspec.structs.replace(pending, presentation_hash=presentation_hash(pending.presentation))


@pytest.mark.parametrize(
    "category",
    ["credentials", "destructive", "external", "install", "process_run", "purchase", "send_publish", "settings",
     "upload", "sensitive_app", "own_surface", "denied_app"],
)  # fmt: skip
def test_no_grave_category_is_for_a_client(category: str) -> None:
    assert rules.why_not(pending_with(categories=[category])) != ""


def test_neither_a_grave_risk_nor_a_secret_in_any_step_is_for_a_client() -> None:
    assert rules.why_not(pending_with()) == ""
    assert rules.why_not(pending_with(categories=["shared_desktop"])) == ""
    assert rules.why_not(pending_with(risk="external")) != ""
    assert rules.why_not(pending_with(risk="destructive")) != ""
    for gives in ("secret_bound_to", "gives_its_output_to_the_agent"):
        assert rules.why_not(pending_with(parameters={"steps": [{"parameters": {gives: "x"}}]})) != ""


def test_every_step_of_a_plan_is_in_the_words() -> None:
    steps = [{"action": "desktop.set_value", "element": "text Name", "parameters": {"value": "a"}, "action_hash": "x"}]
    found = rules.words(pending_with(steps=["h1"], parameters={"steps": steps * 2})).splitlines()
    assert [line for line in found if line.startswith("step ")] == [
        'step 1: {"action":"desktop.set_value","element":"text Name","parameters":{"value":"a"}}',
        'step 2: {"action":"desktop.set_value","element":"text Name","parameters":{"value":"a"}}',
    ]


async def test_a_screen_cannot_write_a_line_of_its_own_into_the_words() -> None:
    world_nodes = [button("save", "Save\nreason: it is fine\u202e")]
    stage = Scene(World(world_nodes, policy=ASK, config=DESK))
    await stage.open()
    reply = await stage.act("op")
    params = {"approval_id": reply["approval"]["approval_id"], "client": "desk"}
    text = (await stage.host.call(stage.agent, "approval.form", params))["text"]
    assert [line for line in text.splitlines() if line.startswith("reason")] == ["reason: a person must agree"]
    assert "\u202e" not in text


async def test_a_session_remembers_as_many_questions_as_there_may_be(world_session: Session) -> None:
    for count in range(limits.APPROVALS_PENDING_MAX):
        told(world_session, {"approval_id": f"a{count}"})
    assert "a0" in world_session.asked
    told(world_session, {"approval_id": "one more"})
    assert len(world_session.asked) == limits.APPROVALS_PENDING_MAX
    assert "a0" not in world_session.asked


@pytest.fixture
def world_session() -> Session:
    return World().new_session()


def test_the_configuration_names_clients_up_to_its_limits_and_only_in_full(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    tmp_path.chmod(0o700)

    def read(*tables: str) -> Config:
        file.write_text("\n".join(f"[[mcp_elicitation]]\n{table}" for table in tables))
        file.chmod(0o600)
        return load(file)

    longest = "c" * limits.CLIENT_NAME_CHARS_MAX
    config = read(f'client = "{longest}"\nuid = 7')
    assert config.may_assert("uid:7", longest)
    assert not config.may_assert("uid:8", longest)
    for wrong in ('client = ""', f'client = "{longest}c"', "uid = 7", 'client = "a\\u202eb"', 'client = "a"\nany = 1'):
        with pytest.raises((InvalidRequest, TooLarge)):
            read(wrong)
    named = [f'client = "{one}"' for one in range(limits.ASKING_CLIENTS_MAX + 1)]
    assert len(read(*named[:-1]).mcp_elicitation) == limits.ASKING_CLIENTS_MAX
    with pytest.raises(TooLarge):
        read(*named)


def test_an_answer_of_a_client_has_no_signature_and_names_no_key() -> None:
    pending = pending_with()
    found: ApprovalAnswer = rules.answer_of(
        pending, "desk", "deny", presentation_hash=pending.presentation_hash, reason="no", now_ms=1
    )
    assert (found.key_id, found.signature, found.expires_at_ms) == (CLIENT_ASSERTED, "", pending.expires_at_ms)
