"""Secrets by reference: used where they are bound to, after the permit, and in nothing that is written (C44)."""

# ruff: noqa: S105, S106 - references and made-up texts, not passwords
from __future__ import annotations

import gc
import json
from pathlib import Path

import msgspec
import pytest

from surehand import limits
from surehand.canonical import encode_record
from surehand.core.policy.evaluate import is_interpreter
from surehand.core.scene.fence import reference
from surehand.errors import AuthorityDenied, Conflict, InvalidRequest, SurehandError, Unavailable
from surehand.model.actions import Press, SelectText, SetValue, TypeText
from surehand.model.record import to_value
from surehand.model.request import Request
from surehand.model.scene import Node
from surehand.model.secrets import EnvSecret, HeldSecret, SecretBinding, SecretField
from surehand.model.targets import SurfaceTarget
from surehand.model.verification import ValueIs
from surehand.ports import Dispatched
from surehand.runtime.attempt import StopInput
from surehand.runtime.secrets import take_from_environment
from tests.secrets_kit import ALLOW, APP, CANARY, PERSON, SecretWorld, found_in
from tests.unit.runtime.test_attacks_people import ASK
from tests.unit.runtime.test_attacks_reach import agent, host_of


@pytest.fixture
def world(tmp_path: Path) -> SecretWorld:
    return SecretWorld(tmp_path)


def told(reply):
    return json.dumps(msgspec.to_builtins(reply), ensure_ascii=False)


async def test_a_secret_reaches_its_field_and_is_verified_without_being_told(world):
    await world.enrol()
    reply = await world.enter("op")
    assert (reply.status, reply.terminal.receipt.effect) == ("succeeded", "verified")
    assert world.app.effects == [("set_value", "pw", CANARY)]
    assert not found_in(told(reply).encode())


async def test_no_form_of_a_secret_is_in_what_is_written_or_answered(world, tmp_path, caplog, capfd):
    caplog.set_level(0)
    await world.enrol()
    await world.enrol("other", "x" + CANARY)
    replies = [
        await world.enter("op"),
        await world.enter("op"),
        await world.enter("wrong", "vault:none"),
        await world.enter("shown", handle="name"),
        await world.enter("guess", verification=ValueIs(equals="not it")),
    ]
    world.app.change("pw", secret=False, role="text", value=CANARY)  # a button that shows it
    scene = await world.observe()
    replies += [await world.enter("again"), await world.act("look", "pw", action=SetValue(value="x"))]
    world.app.acting = lambda attempt: (_ for _ in ()).throw(ValueError(attempt.secret.reveal()))
    world.app.change("pw", secret=True, role="password", value="")
    replies.append(await world.enter("defect"))
    await world.secrets.remove(PERSON, "other")
    events = [encode_record(event) for event in await world.journal.read()]
    out, err = capfd.readouterr()
    everything = [
        *events,
        *(told(reply).encode() for reply in replies),
        repr(scene).encode(),
        caplog.text.encode(),
        *(repr(record.__dict__).encode() for record in caplog.records),
        out.encode(),
        err.encode(),
        json.dumps(await world.secrets.listed()).encode(),
        json.dumps(await world.secrets.test("vault:mail", APP, "window")).encode(),
        *(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()),
        *(str(path).encode() for path in tmp_path.rglob("*")),
    ]
    assert [(number, found_in(one)) for number, one in enumerate(everything) if found_in(one)] == []


def test_the_search_finds_a_secret_in_every_form(tmp_path):
    import base64

    for data in (
        CANARY.encode(),
        b"xy" + base64.b64encode(b"k=" + CANARY.encode()),
        json.dumps({"v": CANARY}).encode(),
    ):
        assert found_in(data)


async def test_a_secret_for_another_application_is_refused_before_anybody_is_asked(world):
    await world.enrol(apps=("exe:/opt/other",))
    reply = await world.enter("op")
    assert (reply.status, reply.error["code"]) == ("refused", "authority_denied")
    assert reply.error["details"]["reason"] == "secret_not_bound"
    assert not world.app.effects
    assert not world.approvals.pending()


async def test_an_agent_is_not_told_which_secrets_there_are(world):
    await world.enrol(apps=("exe:/opt/other",))
    bound_elsewhere, missing = await world.enter("one"), await world.enter("two", "vault:none")
    first, second = (
        json.dumps(reply.error).replace("vault:none", "vault:mail") for reply in (bound_elsewhere, missing)
    )
    assert first == second


async def test_a_name_that_an_application_gives_itself_opens_nothing(world):
    await world.enrol(apps=("exe:/opt/bank",))
    world.app.surface = msgspec.structs.replace(
        world.app.surface,
        title="exe:/opt/bank",
        app=msgspec.structs.replace(world.app.surface.app, claimed_name="bank"),
    )
    assert (await world.enter("op")).error["details"]["reason"] == "secret_not_bound"


async def test_a_process_that_became_another_program_gets_nothing(world):
    await world.enrol()
    world.identity = "exe:/opt/evil"
    reply = await world.enter("op")
    assert (reply.status, reply.error["details"]["reason"]) == ("refused", "secret_not_bound")
    assert "operation.released.v1" in await world.types()
    assert not world.app.effects


@pytest.mark.parametrize(
    ("origins", "place", "allowed"),
    [
        (("https://bank.example",), "https://bank.example", True),
        (("https://bank.example",), "https://bank.example.evil.test", False),
        (("https://bank.example",), "https://bank.example:8443", False),
        (("https://bank.example",), "http://bank.example", False),
        (("https://bank.example",), "HTTPS://bank.example", False),
        (("https://bank.example",), "window", False),
        ((), "https://bank.example", False),
        ((), "data:text/html,bank", False),
        ((), "window", True),
    ],
)
async def test_a_page_gets_a_secret_only_at_an_origin_it_is_bound_to(world, origins, place, allowed):
    await world.enrol(origins=origins)
    world.app.surface = msgspec.structs.replace(world.app.surface, place=place)
    reply = await world.enter("op")
    assert reply.status == ("succeeded" if allowed else "refused")
    assert bool(world.app.effects) is allowed


async def test_a_page_that_went_elsewhere_after_the_yes_gets_nothing(world):
    await world.enrol(origins=("https://bank.example",))
    world.app.surface = msgspec.structs.replace(world.app.surface, place="https://bank.example")
    request = await world.request("op", "pw", action=SetValue(secret_ref="vault:mail"))
    world.app.surface = msgspec.structs.replace(world.app.surface, place="https://evil.test")
    reply = await world.gateway.act(world.session, request)
    assert reply.status == "refused"
    assert not world.app.effects


async def test_a_field_that_shows_its_text_gets_a_secret_only_where_it_is_bound_to_that_very_field(world):
    await world.enrol(fields=(SecretField(role="text", name="Code"),))
    elsewhere = await world.enter("elsewhere", handle="name")
    assert elsewhere.error["code"] == "secure_surface"
    reply = await world.enter("there", handle="code")
    assert (reply.status, reply.terminal.receipt.effect) == ("succeeded", "verified")
    assert world.app.effects == [("set_value", "code", CANARY)]


async def test_a_field_that_was_given_a_secret_is_never_read_again(world):
    await world.enrol(fields=(SecretField(role="text", name="Code"),))
    before = await world.observe()
    await world.enter("there", handle="code")
    scene = await world.observe()
    node = next(node for node in scene.tree.nodes if node.handle == "code")
    assert (node.secret, node.value, node.text_chars) == (True, None, None)
    assert not found_in(repr(scene).encode())
    # Not through a scene from before either: a guess is not answered, and what is there is not quoted.
    place = next(index for index, node in enumerate(before.tree.nodes) if node.handle == "code")
    reply = await world.act("guess", target=reference(before, place), verification=ValueIs(equals=CANARY[:-1]))
    assert not found_in(told(reply).encode())


async def test_who_is_asked_sees_the_reference_and_where_it_may_go(tmp_path):
    world = SecretWorld(tmp_path, policy="")
    await world.enrol(fields=(SecretField(role="text", name="Code"),))
    assert (await world.enter("op")).status == "approval_required"
    assert (await world.enter("shown", handle="code")).status == "approval_required"
    first, second = (pending.presentation for pending in world.approvals.pending())
    assert first.parameters["secret_ref"] == "vault:mail"
    assert APP in first.parameters["secret_bound_to"]
    assert "secret_will_show" not in first.parameters
    assert second.parameters["secret_will_show"] is True
    assert "credentials" in first.categories


async def test_a_yes_does_not_hold_for_another_binding_or_another_secret(tmp_path):
    world = SecretWorld(tmp_path, policy="")
    await world.enrol()
    request = await world.request("op", "pw", action=SetValue(secret_ref="vault:mail"))
    assert (await world.gateway.act(world.session, request)).status == "approval_required"
    [pending] = world.approvals.pending()
    await world.answer(pending)
    await world.enrol(apps=(APP, "exe:/opt/other"))
    assert (await world.gateway.act(world.session, request)).status == "approval_required"
    assert not world.app.effects


async def test_a_yes_to_a_secret_is_none_to_the_one_that_takes_its_place(tmp_path):
    world = SecretWorld(tmp_path, policy="")
    await world.enrol()
    request = await world.request("op", "pw", action=SetValue(secret_ref="vault:mail"))
    assert (await world.gateway.act(world.session, request)).status == "approval_required"
    [pending] = world.approvals.pending()
    await world.answer(pending)
    await world.enrol(secret="rotated")
    assert (await world.gateway.act(world.session, request)).status == "approval_required"
    assert not world.app.effects


async def test_a_yes_to_a_plan_that_enters_a_secret_is_none_to_the_one_that_takes_its_place(tmp_path):
    world = SecretWorld(tmp_path, policy=ASK.replace('"desktop.invoke"', '"desktop.set_value", "desktop.invoke"'))
    await world.enrol()
    host = host_of(world)
    session = await agent(host)

    async def send():
        steps = [
            {
                "operation_id": "x",
                "action": action,
                "target": {"kind": "element", **to_value(await world.ref(at, session))},
            }
            for at, action in (("pw", {"kind": "set_value", "secret_ref": "vault:mail"}), ("save", {"kind": "invoke"}))
        ]
        return (await host.call(session, "batch", {"batch": {"operation_id": "form", "steps": steps}}))["replies"]

    assert (await send())[0]["approval"]["steps"] == 2
    [pending] = world.approvals.pending()
    await world.answer(pending)
    await world.enrol(secret="rotated")
    assert (await send())[0]["status"] == "approval_required"
    assert not world.app.effects


async def test_a_page_whose_origin_nobody_proves_gets_no_secret(world):
    # Accessibility shows a browser's pages inside of its window, whose place is no origin.
    page = Node(handle="page", role="document", name="Bank", states=frozenset({"visible", "showing"}))
    inside = msgspec.structs.replace(world.app.nodes["pw"], handle="in-page")
    world.app.add(page)
    world.app.add(inside)
    world.app.inside["in-page"] = "page"
    await world.enrol()
    await world.enrol("bank", origins=("https://bank.example",))
    for name in ("mail", "bank"):
        reply = await world.enter(f"{name}-in-page", f"vault:{name}", handle="in-page")
        assert (reply.status, reply.error["details"]["reason"]) == ("refused", "secret_not_bound")
    assert not world.app.effects
    assert (await world.enter("beside", handle="pw")).status == "succeeded"


async def test_nothing_is_selected_in_a_field_that_holds_a_secret(world):
    await world.enrol(fields=(SecretField(role="text", name="Code"),))
    before = await world.observe()
    await world.enter("there", handle="code")
    at = next(index for index, node in enumerate(before.tree.nodes) if node.handle == "code")
    asked = [
        await world.act("own", "pw", action=SelectText(start=0, length=1)),
        await world.act("given", "code", action=SelectText(start=0, length=1)),
        await world.act("old", target=reference(before, at), action=SelectText(start=0, length=1)),
    ]
    assert [reply.error["code"] for reply in asked] == ["secure_surface"] * 3
    assert (await world.act("other", "name", action=SelectText(start=0, length=1))).error["code"] != "secure_surface"


async def test_nothing_is_copied_while_a_field_that_holds_a_secret_has_the_keyboard(world):
    await world.enrol(fields=(SecretField(role="text", name="Code"),))
    await world.enter("there", handle="code")
    window = SurfaceTarget(ref=world.app.surface.surface_id)
    copy, other = Press(chords=("ctrl+a", "ctrl+c")), Press(chords=("ctrl+a",))
    for handle, refused in (("code", True), ("pw", True), ("name", False)):
        states = world.app.nodes[handle].states
        world.app.change(handle, states=states | {"focused"})
        aims = [await world.ref(handle), await world.ref("save"), window]
        for number, target in enumerate(aims):
            for action in (copy, other):
                reply = await world.act(f"{handle}{number}{len(action.chords)}", target=target, action=action)
                # Nobody presses keys here, so what is not refused for the secret is refused for that.
                expected = "secure_surface" if refused and action is copy else "unsupported_action"
                assert reply.error["code"] == expected, (handle, target)
        world.app.change(handle, states=states)


@pytest.mark.parametrize("stopped", [False, True])
async def test_how_long_a_typed_secret_is_is_told_by_nothing(world, stopped):
    await world.enrol()

    def typed(attempt):
        if stopped:
            attempt.delivered, attempt.stopped_by = 17, "person"
            raise StopInput("person")
        output = {"delivered": len(CANARY), "units": len(CANARY), "after": "x"}
        return Dispatched(status="done", route="keyboard", output=output)

    world.app.acting = typed
    reply = await world.enter("op")
    assert reply.status == ("interrupted" if stopped else "succeeded")
    assert reply.output == (None if stopped else {"after": "x"})
    if stopped:
        assert "17" not in reply.terminal.message
        assert "may have been entered" in reply.terminal.message


async def test_a_secret_that_was_exchanged_between_decision_and_act_is_not_entered(world):
    await world.enrol()
    request = await world.request("op", "pw", action=SetValue(secret_ref="vault:mail"))
    took = world.secrets._take

    async def exchanged(agreed):
        await world.enrol(secret="another")
        return await took(agreed)

    world.secrets._take = exchanged
    reply = await world.gateway.act(world.session, request)
    assert (reply.status, reply.error["details"]["reason"]) == ("refused", "secret_changed")
    assert not world.app.effects


async def test_rules_can_name_a_secret(tmp_path):
    policy = ALLOW.replace('match = { app = ["exe:/opt/memory"] }', 'match = { secret = ["vault:mail"] }')
    world = SecretWorld(tmp_path, policy=policy)
    await world.enrol()
    await world.enrol("bank")
    assert (await world.enter("op")).status == "succeeded"
    assert (await world.enter("bank", "vault:bank")).status == "approval_required"


# --- the vault's states -----------------------------------------------------------------------------------------------


async def test_a_locked_vault_gives_nothing_until_an_operator_unlocks_it(world):
    await world.enrol()
    await world.secrets.lock(PERSON)
    reply = await world.enter("op")
    assert (reply.error["code"], reply.error["details"]["reason"]) == ("backend_unavailable", "vault_locked")
    assert reply.error["fix"] == "surehand secret unlock"
    await world.secrets.unlock(PERSON, None)
    assert (await world.enter("op")).status == "succeeded"


async def test_a_vault_with_a_passphrase_is_locked_at_every_start(world, monkeypatch):
    monkeypatch.setattr(limits, "PASSPHRASE_OPS", 1)
    monkeypatch.setattr(limits, "PASSPHRASE_MEMORY_BYTES", 16 * 1024)
    await world.secrets.begin(PERSON, "passphrase", bytearray(b"right"))
    await world.enrol()
    world.new_secrets()
    assert (await world.enter("op")).error["details"]["reason"] == "vault_locked"
    with pytest.raises(AuthorityDenied):
        await world.secrets.unlock(PERSON, bytearray(b"wrong"))
    with pytest.raises(InvalidRequest):
        await world.secrets.unlock(PERSON, None)
    await world.secrets.unlock(PERSON, bytearray(b"right"))
    assert (await world.enter("op")).status == "succeeded"


async def test_an_old_vault_that_was_put_back_is_refused(world, tmp_path):
    await world.enrol()
    file = tmp_path / "secrets.vault"
    old = file.read_bytes()
    await world.enrol(secret="rotated")
    file.write_bytes(old)
    for _ in range(2):  # in this run of the daemon and in the next
        reply = await world.enter("op")
        assert reply.error["details"]["reason"] == "vault_rolled_back"
        with pytest.raises(AuthorityDenied):
            await world.enrol("more")
        world.new_secrets()
    assert not world.app.effects


async def test_a_vault_that_is_gone_is_not_begun_anew_unasked(world, tmp_path):
    await world.enrol()
    (tmp_path / "secrets.vault").unlink()
    with pytest.raises(AuthorityDenied) as refused:
        await world.enrol("more")
    assert refused.value.details["reason"] == "vault_rolled_back"
    await world.secrets.begin(PERSON, "file", None, replace=True)
    await world.enrol()
    assert (await world.enter("op")).status == "succeeded"


async def test_a_daemon_that_died_before_it_said_what_it_enrolled_goes_on(world):
    await world.enrol()
    key = world.vault.key_in_file()
    world.vault.put(key, "late", SecretBinding(apps=(APP,)), bytearray(b"late"), 1)
    world.new_secrets()
    assert (await world.enter("op", "vault:late")).status == "succeeded"
    assert (await world.journal.stream("secrets"))[-1].type == "vault.found.v1"
    # Two changes ahead is no death between two steps.
    for name in ("a", "b"):
        world.vault.put(key, name, SecretBinding(apps=(APP,)), bytearray(b"x"), 1)
    with pytest.raises(AuthorityDenied):
        await world.secrets.bound(_request("vault:a"), APP, "window")


async def test_enrolling_twice_at_once_keeps_both(world):
    import asyncio

    await asyncio.gather(*(world.enrol(f"s{number}") for number in range(5)))
    assert len((await world.secrets.listed())["secrets"]) == 5
    assert [event.payload["generation"] for event in await world.journal.stream("secrets")] == [1, 2, 3, 4, 5, 6]


async def test_a_second_vault_is_not_made_over_the_first(world):
    await world.enrol()
    with pytest.raises(Conflict):
        await world.secrets.begin(PERSON, "file", None)
    assert len((await world.secrets.listed())["secrets"]) == 1


async def test_what_is_on_record_names_and_binds_and_does_not_tell(world):
    await world.enrol()
    await world.secrets.remove(PERSON, "mail")
    events = await world.journal.stream("secrets")
    assert [event.type for event in events] == ["vault.made.v1", "secret.enrolled.v1", "secret.removed.v1"]
    assert events[1].payload["name"] == "mail"
    assert events[1].payload["bound_to"] == {"apps": [APP]}


async def test_a_claim_keeps_the_reference_and_a_replay_needs_no_vault(world):
    await world.enrol()
    request = await world.request("op", "pw", action=SetValue(secret_ref="vault:mail"))
    await world.gateway.act(world.session, request)
    claim = next(event for event in await world.journal.read() if event.type == "operation.claimed.v1")
    assert claim.payload["request"]["action"] == {"kind": "set_value", "secret_ref": "vault:mail"}
    await world.secrets.lock(PERSON)
    assert (await world.gateway.act(world.session, request)).replayed


# --- the environment --------------------------------------------------------------------------------------------------


async def test_a_listed_variable_is_a_secret_and_is_gone_from_the_environment(world):
    environ = {"TOKEN": CANARY, "PATH": "/bin"}
    listed = (EnvSecret(name="TOKEN", bound_to=SecretBinding(apps=(APP,))),)
    taken = take_from_environment(listed, environ)
    assert environ == {"PATH": "/bin"}
    world.new_secrets(**taken)
    assert (await world.enter("op", "env:TOKEN")).status == "succeeded"
    assert world.app.effects[-1] == ("set_value", "pw", CANARY)
    assert (await world.enter("path", "env:PATH")).error["details"]["reason"] == "secret_not_bound"
    await world.secrets.close()
    assert not any(taken["TOKEN"][1])


def test_a_variable_that_cannot_be_entered_stops_the_start_without_being_told():
    listed = (EnvSecret(name="TOKEN", bound_to=SecretBinding(apps=(APP,))),)
    for value in ("", "two\nlines", "x" * (limits.SECRET_BYTES_MAX + 1), "\udcff"):
        with pytest.raises(InvalidRequest) as refused:
            take_from_environment(listed, {"TOKEN": value})
        assert value == "" or value not in str(refused.value.to_value())
    assert take_from_environment(listed, {}) == {}


def test_an_interpreter_is_no_application_to_bind_to():
    assert is_interpreter("exe:/usr/bin/python3.11")
    with pytest.raises(InvalidRequest):
        take_from_environment(
            (EnvSecret(name="T", bound_to=SecretBinding(apps=("exe:/usr/bin/python3.11",))),), {"T": "x"}
        )


# --- in memory --------------------------------------------------------------------------------------------------------


async def test_a_secret_is_overwritten_when_its_run_ends(world):
    await world.enrol()
    held: list[HeldSecret] = []
    buffers: list[bytearray] = []

    def keep(attempt):
        held.append(attempt.secret)
        buffers.append(attempt.secret._buffer)
        raise SurehandError("after entering")

    world.app.acting = keep
    await world.enter("op")
    assert buffers == [bytearray()]
    gc.collect()
    with pytest.raises(InvalidRequest):
        held[0].reveal()


def test_a_held_secret_has_no_text_form_and_is_not_copied():
    import copy
    import pickle

    held = HeldSecret(bytearray(CANARY, "utf-8"))
    assert CANARY not in f"{held} {held!r}"
    for make in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError):
            make(held)


async def test_locking_overwrites_the_key(world):
    await world.enrol()
    key = world.secrets._key
    assert any(key)
    await world.secrets.lock(PERSON)
    assert not any(key)


async def test_a_secret_without_a_permit_is_a_defect(world):
    await world.enrol()
    run, _ = await world.gateway.foresee(
        world.session, await world.request("op", "pw", action=SetValue(secret_ref="vault:mail"))
    )
    with pytest.raises(SurehandError, match="without a permit"):
        await world.secrets.reveal(run)
    assert run.secret is None


async def test_a_host_without_secrets_refuses_a_reference(world):
    from surehand.runtime.resolve import Resolver

    world.gateway.secrets = None
    world.gateway.resolver = Resolver(world.scenes, world.clock)
    assert (await world.enter("op")).error["code"] == "authority_denied"


async def test_bad_enrolments_are_refused_and_change_nothing(world):
    binding = SecretBinding(apps=(APP,))
    for name, bound, value in (
        ("", binding, b"x"),
        ("a b", binding, b"x"),
        ("n" * (limits.SECRET_NAME_CHARS_MAX + 1), binding, b"x"),
        ("n", binding, b""),
        ("n", binding, b"x" * (limits.SECRET_BYTES_MAX + 1)),
        ("n", binding, b"a\nb"),
        ("n", binding, b"\xff"),
        ("n", SecretBinding(apps=("exe:/usr/bin/python3",)), b"x"),
    ):
        with pytest.raises(InvalidRequest):
            await world.secrets.put(PERSON, name, bound, bytearray(value))
    assert await world.secrets.listed() == {"vault": None, "secrets": []}
    await world.secrets.put(
        PERSON, "n" * limits.SECRET_NAME_CHARS_MAX, binding, bytearray(limits.SECRET_BYTES_MAX * b"x")
    )
    with pytest.raises(InvalidRequest):
        await world.secrets.remove(PERSON, "none")
    with pytest.raises(InvalidRequest):
        await world.secrets.test("vault:none", APP, "window")


async def test_without_a_keyring_a_vault_that_has_its_key_there_says_so(world):
    with pytest.raises(Unavailable) as refused:
        await world.secrets.begin(PERSON, "keyring", None)
    assert refused.value.details["reason"] == "keyring"


def _request(reference: str) -> Request:
    return Request(operation_id="x", action=TypeText(secret_ref=reference), target=SurfaceTarget(ref="w1"))
