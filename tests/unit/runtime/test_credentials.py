"""WebAuthn credentials in a running host: enrolled with a code, counted, over restarts, taken away, and re-checked."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from surehand import limits
from surehand.client.control import unsigned_answer
from surehand.client.credentials import asserted, challenge_of, invitation, new_code
from surehand.errors import AuthorityDenied, InvalidRequest, TooLarge
from surehand.model.approval import ApprovalAnswer, PendingApproval
from surehand.model.authority import StandingGrant
from surehand.model.credential import Assertion, Credential, Registration
from surehand.signing.ed25519 import SigningKey
from surehand.testing.memory import button
from surehand.testing.worlds import APPROVER_KEY, PLAIN_KEY, SECOND_KEY, World
from surehand.verify.proofs import Proofs
from surehand.verify.records import Fault
from tests.authenticator import PRESENT, Authenticator
from tests.unit.runtime.test_approvals import COVER, clock_of, question
from tests.unit.runtime.test_attacks_people import ASK, Clock

PAGES = frozenset({8737})


def world_of(**facts: Any) -> World:
    return paged(World(**{"policy": ASK, "clock": Clock(), **facts}))


def paged(world: World) -> World:
    world.approvals.approvers.pages = lambda: PAGES
    return world


def invite(world: World, key: SigningKey = APPROVER_KEY, approver: str = "operator") -> str:
    code = new_code()
    made, signature = invitation(approver, key, code, now_ms=world.clock.wall_ms())
    world.approvals.credentials.invite(made, signature)
    return code


def registration(world: World, code: str, authenticator: Authenticator) -> Registration:
    asked = world.approvals.credentials.begin(code)
    data, client = authenticator.register(bytes.fromhex(asked["challenge"]))
    return Registration(code=code, label="my key", authenticator_data=data.hex(), client_data=client.hex())


async def enrol(world: World, authenticator: Authenticator, key: SigningKey = APPROVER_KEY) -> Credential:
    name = {APPROVER_KEY: "operator", SECOND_KEY: "second"}[key]
    code = invite(world, key, name)
    return await world.approvals.credentials.enrol(registration(world, code, authenticator))


def signed(
    world: World, pending: PendingApproval, credential: Credential, authenticator: Authenticator, **facts: Any
) -> ApprovalAnswer:
    word = facts.pop("answer", "approve")
    answer = unsigned_answer(
        pending,
        word,
        approver=credential.approver,
        key_id=credential.key_id,
        now_ms=world.clock.wall_ms(),
        **facts,
    )
    data, client, signature = authenticator.get(challenge_of(answer))
    return asserted(answer, Assertion(authenticator_data=data.hex(), client_data=client.hex()), signature.hex())


async def proof_of(world: World) -> dict[str, Any]:
    events = await world.journal.read()
    return next(event.payload for event in reversed(events) if event.type == "operation.approved.v1")


@pytest.mark.parametrize("algorithm", ["ES256", "EdDSA"])
async def test_an_enrolled_authenticator_says_yes_and_the_journal_holds_the_proof_whole(algorithm: Any) -> None:
    world, authenticator = world_of(), Authenticator(algorithm)
    credential = await enrol(world, authenticator)
    pending = await question(world)
    answer = signed(world, pending, credential, authenticator)
    assert (await world.approvals.answer(answer))["state"] == "approved"
    assert (await world.act("op")).status == "succeeded"
    assert len(world.app.effects) == 1
    recorded = await proof_of(world)
    assert recorded["how"] == f"webauthn:{credential.key_id}"
    assert recorded["proof"]["public_key"] == credential.public_key
    assert msgspec.convert(recorded["proof"]["answer"], ApprovalAnswer) == answer


async def test_what_is_consequential_at_level_a_takes_user_verification() -> None:
    world = world_of(policy=COVER, nodes=[button("pay", "Pay now")])
    authenticator = Authenticator()
    credential = await enrol(world, authenticator)
    pending = await question(world, "op", "pay")
    authenticator.flags = PRESENT
    with pytest.raises(AuthorityDenied, match="did not verify"):
        await world.approvals.answer(signed(world, pending, credential, authenticator))
    assert world.approvals.pending() == [pending]
    assert world.app.effects == []
    authenticator.flags = PRESENT | 4
    await world.approvals.answer(signed(world, pending, credential, authenticator))
    assert (await world.act("op", "pay")).status == "succeeded"


async def test_a_no_and_leave_for_a_while_are_given_with_an_authenticator_too() -> None:
    world, authenticator = world_of(), Authenticator()
    credential = await enrol(world, authenticator)
    pending = await question(world)
    await world.approvals.answer(signed(world, pending, credential, authenticator, answer="deny", reason="not now"))
    assert (await world.act("op")).error["code"] == "approval_denied"
    again = await question(world, "op-2")
    shown = again.presentation
    leave = StandingGrant(
        grant_id="sg-1",
        principal=shown.principal,
        app=shown.app,
        place=shown.place,
        actions=(shown.action,),
        risk_max="reversible",
        uses_max=1,
        expires_at_ms=world.clock.wall_ms() + 60_000,
        issued_by="operator",
    )
    await world.approvals.answer(signed(world, again, credential, authenticator, standing=leave))
    assert [one["grant_id"] for one in await world.approvals.leave.listed()] == ["sg-1"]


async def test_a_replayed_assertion_and_a_cloned_authenticator_are_refused_and_nothing_moves() -> None:
    world, authenticator = world_of(policy=ASK.replace("reason =", "approvals = 2\nreason =")), Authenticator()
    credential = await enrol(world, authenticator)
    pending = await question(world)
    first = signed(world, pending, credential, authenticator)
    assert (await world.approvals.answer(first))["state"] == "waiting"
    for step in (0, -1):
        authenticator.step = step
        with pytest.raises(AuthorityDenied, match="a copy of it is in use"):
            await world.approvals.answer(signed(world, pending, credential, authenticator))
    with pytest.raises(AuthorityDenied, match="a copy of it is in use"):
        await world.approvals.answer(first)
    assert world.app.effects == []
    # A phone's passkey counts nothing: there the same assertion is refused as itself.
    silent = Authenticator(step=0)
    other = await enrol(world, silent, SECOND_KEY)
    yes = signed(world, pending, other, silent, answer="deny")
    await world.approvals.answer(yes)
    with pytest.raises(AuthorityDenied, match="given already"):
        await world.approvals.answer(yes)


async def test_one_person_with_two_authenticators_counts_once() -> None:
    world = world_of(policy=ASK.replace("reason =", "approvals = 2\nreason ="))
    one, two = Authenticator(), Authenticator(step=0)
    first, second = await enrol(world, one), await enrol(world, two)
    pending = await question(world)
    for credential, authenticator in ((first, one), (second, two)):
        found = await world.approvals.answer(signed(world, pending, credential, authenticator))
        assert found["state"] == "waiting"
    assert (await world.act("op")).status == "approval_required"
    again = signed(world, pending, second, two, reason="once more")
    await world.approvals.answer(again)
    with pytest.raises(AuthorityDenied, match="given already"):
        await world.approvals.answer(again)


async def test_credentials_counts_and_answers_outlive_the_daemon() -> None:
    world, authenticator = world_of(), Authenticator()
    credential = await enrol(world, authenticator)
    pending = await question(world)
    await world.approvals.answer(signed(world, pending, credential, authenticator))
    second = paged(await world.restart())
    assert (await second.act("op")).status == "succeeded"
    asked = await question(second, "op-2")
    authenticator.count -= 1
    with pytest.raises(AuthorityDenied, match="a copy of it is in use"):
        await second.approvals.answer(signed(second, asked, credential, authenticator))
    authenticator.count += 1
    await second.approvals.answer(signed(second, asked, credential, authenticator))
    assert (await second.act("op-2")).status == "succeeded"


async def test_a_credential_that_was_taken_away_answers_nothing_and_takes_its_yes_with_it() -> None:
    world, authenticator = world_of(), Authenticator()
    credential = await enrol(world, authenticator)
    pending = await question(world)
    await world.approvals.answer(signed(world, pending, credential, authenticator))
    await world.approvals.credentials.remove(credential.key_id, "uid:0")
    assert (await world.act("op")).error["code"] == "approval_unanswered"
    assert world.app.effects == []
    asked = await question(world, "op-2")
    with pytest.raises(AuthorityDenied, match="not signed by an allowed"):
        await world.approvals.answer(signed(world, asked, credential, authenticator))
    with pytest.raises(InvalidRequest, match="no such credential"):
        await world.approvals.credentials.remove(credential.key_id, "uid:0")
    again = paged(await world.restart())
    assert again.approvals.approvers.credentials() == ()


async def test_a_key_that_was_taken_away_takes_its_credentials_with_it() -> None:
    world, authenticator = world_of(), Authenticator()
    credential = await enrol(world, authenticator)
    pending = await question(world)
    world.revoked.add("operator")
    with pytest.raises(AuthorityDenied, match="not signed by an allowed"):
        await world.approvals.answer(signed(world, pending, credential, authenticator))
    assert world.app.effects == []


# --- enrolment ------------------------------------------------------------------------------------------------------


async def test_a_code_is_good_once_and_in_time() -> None:
    world, authenticator = world_of(), Authenticator()
    code = invite(world)
    made = registration(world, code, authenticator)
    await world.approvals.credentials.enrol(made)
    for again in (world.approvals.credentials.begin, lambda code: registration(world, code, authenticator)):
        with pytest.raises(AuthorityDenied, match="not the code"):
            again(code)
    late = invite(world)
    clock_of(world).offset += limits.INVITATION_MS_MAX
    with pytest.raises(AuthorityDenied, match="not the code"):
        world.approvals.credentials.begin(late)
    assert len(world.approvals.approvers.enrolled) == 1


async def test_an_invitation_is_used_up_by_a_registration_that_does_not_hold() -> None:
    world = world_of()
    code = invite(world)
    broken = registration(world, code, Authenticator(flags=PRESENT))
    with pytest.raises(AuthorityDenied, match="did not verify"):
        await world.approvals.credentials.enrol(broken)
    with pytest.raises(AuthorityDenied, match="not the code"):
        world.approvals.credentials.begin(code)
    assert world.approvals.approvers.enrolled == {}


async def test_after_a_few_wrong_codes_every_open_invitation_is_void() -> None:
    world = world_of()
    code = invite(world)
    for _ in range(limits.INVITATION_TRIES_MAX - 1):
        with pytest.raises(AuthorityDenied):
            world.approvals.credentials.begin("AAAAA-AAAAA")
    world.approvals.credentials.begin(code)
    with pytest.raises(AuthorityDenied):
        world.approvals.credentials.begin("AAAAA-AAAAA")
    with pytest.raises(AuthorityDenied):
        world.approvals.credentials.begin(code)


async def test_no_agent_can_invite_itself() -> None:
    """A key that may not say yes to what matters enrols nothing that may; nor does a key that nobody knows."""
    world = world_of()
    with pytest.raises(AuthorityDenied, match="behind a passphrase"):
        invite(world, PLAIN_KEY, "plain")
    for key, name in ((SigningKey(bytes([9]) * 32), "operator"), (APPROVER_KEY, "second")):
        with pytest.raises(AuthorityDenied, match="not signed by an allowed"):
            invite(world, key, name)


async def test_invitations_and_credentials_are_bounded_at_the_limit_and_one_past() -> None:
    world = world_of()
    codes = [invite(world) for _ in range(limits.INVITATIONS_OPEN_MAX)]
    world.approvals.credentials.begin(codes[0])
    last = invite(world)
    world.approvals.credentials.begin(last)
    with pytest.raises(AuthorityDenied):
        world.approvals.credentials.begin(codes[0])
    enrolled = world.approvals.approvers.enrolled
    first = await enrol(world, Authenticator(step=0))
    for number in range(limits.CREDENTIALS_MAX - 2):
        enrolled[f"k{number}"] = msgspec.structs.replace(first, key_id=f"k{number}")
    await enrol(world, Authenticator(step=0))
    assert len(enrolled) == limits.CREDENTIALS_MAX
    with pytest.raises(TooLarge):
        await enrol(world, Authenticator(step=0))


async def test_an_authenticator_is_enrolled_once_and_a_point_off_the_curve_never() -> None:
    world, authenticator = world_of(), Authenticator()
    await enrol(world, authenticator)
    with pytest.raises(InvalidRequest, match="enrolled already"):
        await enrol(world, authenticator)
    code = invite(world)
    made = registration(world, code, Authenticator())
    off = made.authenticator_data[:-64] + "00" * 32
    with pytest.raises(AuthorityDenied, match="not a point"):
        await world.approvals.credentials.enrol(msgspec.structs.replace(made, authenticator_data=off))


@pytest.mark.parametrize("room", [0, 1])
async def test_of_two_that_enrol_at_once_neither_passes_what_the_other_fills(
    room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One authenticator with two codes, and two authenticators for the last place."""
    world, one = world_of(), Authenticator()
    made = [registration(world, invite(world), who) for who in ((one, one) if room else (one, Authenticator()))]
    monkeypatch.setattr(limits, "CREDENTIALS_MAX", 1 + room)
    append = world.journal.append

    async def slow(*args: Any, **facts: Any) -> Any:
        await asyncio.sleep(0)
        return await append(*args, **facts)

    monkeypatch.setattr(world.approvals.credentials, "_journal", SimpleNamespace(append=slow))
    found = await asyncio.gather(*map(world.approvals.credentials.enrol, made), return_exceptions=True)
    assert [type(each) for each in found] == [Credential, InvalidRequest if room else TooLarge]
    assert [event.type for event in await world.journal.read()].count("credential.enrolled.v1") == 1


# --- the auditor ----------------------------------------------------------------------------------------------------


def forged(payload: dict[str, Any], *path: str, value: Any) -> dict[str, Any]:
    """Return a payload with one member changed, deep down."""
    first, *rest = path
    return {**payload, first: forged(payload[first], *rest, value=value) if rest else value}


@pytest.mark.parametrize("algorithm", ["Ed25519", "ES256", "EdDSA"])
async def test_the_auditor_checks_each_answer_again_and_finds_each_forgery(algorithm: Any) -> None:
    """A whole chain can be made anew by whoever writes the file; a person's signature cannot."""
    world = world_of()
    if algorithm == "Ed25519":
        pending = await question(world)
        await world.answer(pending)
    else:
        authenticator = Authenticator(algorithm)
        credential = await enrol(world, authenticator)
        pending = await question(world)
        await world.approvals.answer(signed(world, pending, credential, authenticator))
    records = [(one.type, one.payload) for one in await world.journal.read()]

    def audit(change: Any = lambda _kind, payload: payload, *, without: str = "") -> None:
        proofs = Proofs()
        for kind, payload in records:
            if kind != without:
                proofs.add(SimpleNamespace(type=kind), change(kind, payload))  # type: ignore[arg-type]

    def on_the_yes(*path: str, value: Any) -> Any:
        return lambda kind, payload: forged(payload, *path, value=value) if kind == "operation.approved.v1" else payload

    audit()
    forgeries = [
        (("approver",), "eve"),
        (("presentation_hash",), "0" * 64),
        (("how",), "ed25519:0000000000000000" if algorithm == "Ed25519" else f"ed25519:{SECOND_KEY.key_id}"),
        (("proof", "algorithm"), "none"),
        (("proof", "public_key"), SECOND_KEY.public_key),
        (("proof", "answer", "signature"), "00" * 64),
        (("proof", "answer", "answer"), "deny"),
        (("proof", "answer", "expires_at_ms"), 2**50),
        (("proof", "answer", "reason"), "other words"),
        (("proof",), {}),
        (("proof",), []),
    ]
    for path, value in forgeries:
        with pytest.raises(Fault):
            audit(on_the_yes(*path, value=value))
    if algorithm != "Ed25519":
        with pytest.raises(Fault, match="not enrolled"):
            audit(without="credential.enrolled.v1")
        for hostile in (
            b"[" * 100_000,
            b'{"a":' * 50_000,
            b"\xff",
            b"1" * 5_000,
            b"[]",
            b'{"type": [], "challenge": {}}',
        ):
            with pytest.raises(Fault):
                audit(on_the_yes("proof", "answer", "assertion", "client_data", value=hostile.hex()))


def test_the_auditor_keeps_as_many_credentials_as_a_daemon_and_not_one_more() -> None:
    proofs = Proofs()

    def enrolled(number: int) -> None:
        record: Any = SimpleNamespace(type="credential.enrolled.v1")
        proofs.add(record, {"key_id": f"k{number}"})

    for number in range(limits.CREDENTIALS_MAX):
        enrolled(number)
    with pytest.raises(Fault, match="more credentials"):
        enrolled(limits.CREDENTIALS_MAX)
