"""WebAuthn: an assertion counts for the answer it was made for, from the page, the site and the person it should be."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
import pytest

from surehand import limits
from surehand.core import approval, webauthn
from surehand.core.approval import Approver
from surehand.core.approvers import Approvers
from surehand.errors import AuthorityDenied, InvalidRequest, SurehandError, TooLarge
from surehand.model.approval import ApprovalAnswer, PendingApproval
from surehand.model.credential import Assertion, Credential, Invitation, Registration
from surehand.signing import ed25519, es256
from surehand.signing.ed25519 import SigningKey
from tests.authenticator import ATTESTED, EXTENDED, ORIGIN, PRESENT, VERIFIED, Authenticator
from tests.unit.core.test_approval import NOW, asked

KEY = SigningKey(bytes([7]) * 32)
CAROL = Approver(approver="carol", key_id=KEY.key_id, public_key=KEY.public_key, passphrase=True)
CODE = "ABCDE-23456"
PAGES = frozenset({8737, 65_535, 80})


def invitation(**changes: Any) -> Invitation:
    fields = {"approver": "carol", "key_id": KEY.key_id, "code_hash": webauthn.code_hash(CODE), **changes}
    return Invitation(**{"expires_at_ms": NOW + 60_000, **fields})


def enrolled(authenticator: Authenticator) -> Credential:
    data, client = authenticator.register(webauthn.enrolment_challenge(invitation()))
    return webauthn.credential_of(invitation(), data, client, pages=PAGES, label="key on my desk", now_ms=NOW)


def approvers(credential: Credential, *known: Approver, level: Any = "A") -> Approvers:
    found = Approvers(known or (CAROL,), trust_level=level, es256=es256.verify)
    found.enrolled[credential.key_id] = credential
    found.pages = lambda: PAGES
    return found


def unsigned(pending: PendingApproval, credential: Credential, **changes: Any) -> ApprovalAnswer:
    fields: dict[str, Any] = {
        "approval_id": pending.approval_id,
        "presentation_hash": pending.presentation_hash,
        "answer": "approve",
        "approver": credential.approver,
        "key_id": credential.key_id,
        "answered_at_ms": NOW + 1,
        "expires_at_ms": NOW + 60_000,
        "signature": "",
        **changes,
    }
    return ApprovalAnswer(**fields)


def by(authenticator: Authenticator, answer: ApprovalAnswer) -> ApprovalAnswer:
    data, client, signature = authenticator.get(webauthn.challenge(approval.answer_message(answer)))
    assertion = Assertion(authenticator_data=data.hex(), client_data=client.hex())
    return msgspec.structs.replace(answer, assertion=assertion, signature=signature.hex())


def check(answer: ApprovalAnswer, pending: PendingApproval, among: Approvers) -> Any:
    return among.check(answer, pending, ed25519.verify, now_ms=NOW + 2)


@pytest.mark.parametrize("algorithm", ["ES256", "EdDSA"])
@pytest.mark.parametrize("word", ["approve", "deny"])
def test_the_answer_an_authenticator_signed_counts_and_tells_its_count(algorithm: Any, word: Any) -> None:
    authenticator, pending = Authenticator(algorithm), asked()
    credential = enrolled(authenticator)
    proof = check(by(authenticator, unsigned(pending, credential, answer=word)), pending, approvers(credential))
    assert proof == (algorithm, credential.public_key, 1)


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "another port": ({"origin": "http://localhost:9999"}, "not the console's"),
    "another host": ({"origin": "https://localhost:8737"}, "not the console's"),
    "a name that begins alike": ({"origin": "http://localhost:8737.example.org"}, "not the console's"),
    "no origin": ({"client": {"origin": None}}, "not the console's"),
    "another site": ({"rp_id": "example.org"}, "another site"),
    "nobody there": ({"flags": VERIFIED}, "saw nobody"),
    "nobody verified": ({"flags": PRESENT}, "did not verify"),
    "a registration": ({"flags": PRESENT | VERIFIED | ATTESTED}, "not of this kind"),
    "another type": ({"client": {"type": "webauthn.create"}}, "not of webauthn.get"),
    "a payment": ({"client": {"type": "payment.get"}}, "not of webauthn.get"),
    "another challenge": ({"client": {"challenge": "AAAA"}}, "something else"),
    "a frame": ({"client": {"crossOrigin": True}}, "in a frame"),
    "a frame of a page": ({"client": {"topOrigin": "http://localhost:8737"}}, "in a frame"),
    "bytes behind": ({"tail": b"\x00"}, "its length"),
}


@pytest.mark.parametrize("name", WRONG)
def test_each_wrong_word_of_browser_or_authenticator_is_refused_although_it_is_signed(name: str) -> None:
    changes, said = WRONG[name]
    authenticator, pending = Authenticator(), asked()
    credential = enrolled(authenticator)
    for field, value in changes.items():
        setattr(authenticator, field, value)
    with pytest.raises(AuthorityDenied, match=said):
        check(by(authenticator, unsigned(pending, credential)), pending, approvers(credential))


def test_an_answer_of_an_earlier_run_stands_wherever_its_page_was() -> None:
    authenticator, pending = Authenticator(), asked()
    among = approvers(credential := enrolled(authenticator))
    yes = by(authenticator, unsigned(pending, credential))
    among.pages = frozenset
    assert among.counts(yes, pending, ed25519.verify)
    with pytest.raises(AuthorityDenied, match="not the console's"):
        check(yes, pending, among)
    authenticator.origin = "https://example.org"
    assert not among.counts(by(authenticator, unsigned(pending, credential)), pending, ed25519.verify)


def test_extensions_are_let_be_where_the_flag_says_so() -> None:
    authenticator, pending = Authenticator(tail=b"\xa0", flags=PRESENT | VERIFIED | EXTENDED), asked()
    credential = enrolled(authenticator)
    assert check(by(authenticator, unsigned(pending, credential)), pending, approvers(credential)).told == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"answer": "deny"},
        {"reason": "other words"},
        {"expires_at_ms": NOW + 60_001},
        {"answered_at_ms": NOW},
        {"approval_id": "a2"},
        {"presentation_hash": "0" * 64},
    ],
)
def test_an_assertion_for_one_answer_is_none_for_another(changes: dict[str, Any]) -> None:
    """What is signed is the answer: a no cannot be turned into a yes, nor given for longer, nor to another question."""
    authenticator, pending = Authenticator(), asked()
    credential = enrolled(authenticator)
    signed = by(authenticator, unsigned(pending, credential))
    with pytest.raises(AuthorityDenied, match="something else"):
        check(msgspec.structs.replace(signed, **changes), pending, approvers(credential))


def test_what_is_signed_must_be_in_time_and_about_the_open_question() -> None:
    authenticator, pending = Authenticator(), asked()
    credential = enrolled(authenticator)
    for changes, said in (
        ({"expires_at_ms": NOW + 2}, "the answer has expired"),
        ({"answered_at_ms": NOW - 1}, "before the question"),
        ({"presentation_hash": "0" * 64}, "about something else"),
        ({"approval_id": "a2"}, "another question"),
        ({"expires_at_ms": NOW + 2 + limits.APPROVAL_MS_MAX}, "too long"),
    ):
        with pytest.raises(AuthorityDenied, match=said):
            check(by(authenticator, unsigned(pending, credential, **changes)), pending, approvers(credential))


def test_a_signature_that_does_not_hold_is_refused_and_so_is_another_key() -> None:
    authenticator, pending = Authenticator(), asked()
    credential, other = enrolled(authenticator), enrolled(Authenticator())
    signed = by(authenticator, unsigned(pending, credential))
    for wrong in ("", "00", signed.signature[:-2] + "00", "zz"):
        with pytest.raises(AuthorityDenied, match="does not hold"):
            check(msgspec.structs.replace(signed, signature=wrong), pending, approvers(credential))
    forged = by(Authenticator(), unsigned(pending, credential))
    with pytest.raises(AuthorityDenied, match="does not hold"):
        check(forged, pending, approvers(credential))
    with pytest.raises(AuthorityDenied, match="not signed by an allowed"):
        check(signed, pending, approvers(other))
    # Nor does the approver's Ed25519 key pass for a credential, or an assertion for a key.
    plain = unsigned(pending, credential, key_id=KEY.key_id)
    for one in (msgspec.structs.replace(signed, key_id=KEY.key_id), by(authenticator, plain)):
        with pytest.raises(AuthorityDenied):
            check(one, pending, approvers(credential))


def test_bytes_that_are_no_data_of_an_authenticator_or_a_browser_are_refused() -> None:
    authenticator, pending = Authenticator(), asked()
    credential = enrolled(authenticator)
    answer = unsigned(pending, credential)
    data, client, _ = authenticator.get(webauthn.challenge(approval.answer_message(answer)))
    for broken, beside in (
        (b"", client),
        (data[:36], client),
        (data, b"{"),
        (data, b"[]"),
        (data, b'{"type":"webauthn.get","type":"webauthn.get"}'),
        (data, client[:-1] + b',"a":1.5}'),
        (data, b"\xff"),
    ):
        signature = authenticator.sign(broken + hashlib.sha256(beside).digest()).hex()
        assertion = Assertion(authenticator_data=broken.hex(), client_data=beside.hex())
        with pytest.raises(AuthorityDenied):
            check(
                msgspec.structs.replace(answer, assertion=assertion, signature=signature),
                pending,
                approvers(credential),
            )


def test_data_is_taken_at_its_limit_and_refused_one_past_it() -> None:
    pending = asked()
    flags = PRESENT | VERIFIED | EXTENDED
    longest = limits.WEBAUTHN_AUTHENTICATOR_BYTES_MAX - 37
    authenticator = Authenticator()
    credential = enrolled(authenticator)
    authenticator.flags = flags
    authenticator.tail = bytes(longest)
    assert check(by(authenticator, unsigned(pending, credential)), pending, approvers(credential)).told == 1
    authenticator.tail += b"\x00"
    with pytest.raises(TooLarge):
        by(authenticator, unsigned(pending, credential))
    authenticator.flags, authenticator.tail = PRESENT | VERIFIED, b""
    empty = len(authenticator.get(bytes(32))[1])
    filler = ', "more": ""'
    authenticator.client = {"more": "x" * (limits.WEBAUTHN_CLIENT_BYTES_MAX - empty - len(filler))}
    assert check(by(authenticator, unsigned(pending, credential)), pending, approvers(credential)).told
    authenticator.client["more"] += "x"
    with pytest.raises(TooLarge):
        by(authenticator, unsigned(pending, credential))
    most = 2 * limits.WEBAUTHN_SIGNATURE_BYTES_MAX
    unsigned(pending, credential, signature="0" * most)
    with pytest.raises(TooLarge):
        unsigned(pending, credential, signature="0" * (most + 1))
    for wrong in ("0", "AB", "0g"):
        with pytest.raises(InvalidRequest):
            Assertion(authenticator_data=wrong, client_data="")


@pytest.mark.parametrize(
    ("before", "told", "counts"),
    [(0, 0, True), (0, 1, True), (5, 6, True), (5, 900, True), (5, 5, False), (5, 4, False), (5, 0, False)],
)
def test_a_count_that_does_not_grow_is_a_copy_at_work(before: int, told: int, counts: bool) -> None:
    credential = msgspec.structs.replace(enrolled(Authenticator()), sign_count=before)
    if counts:
        webauthn.check_count(told, credential)
        return
    with pytest.raises(AuthorityDenied, match="a copy of it is in use"):
        webauthn.check_count(told, credential)


# --- who may --------------------------------------------------------------------------------------------------------


def test_a_credential_counts_only_while_the_key_that_enrolled_it_does() -> None:
    authenticator, pending = Authenticator(), asked()
    credential = enrolled(authenticator)
    gone: set[str] = set()
    among = Approvers([CAROL], trust_level="A", es256=es256.verify, revoked=lambda one: one.approver in gone)
    among.enrolled[credential.key_id] = credential
    among.pages = lambda: PAGES
    check(by(authenticator, unsigned(pending, credential)), pending, among)
    yes = by(authenticator, unsigned(pending, credential))
    assert among.standing_by([yes]) == [yes]
    gone.add("carol")
    with pytest.raises(AuthorityDenied, match="not signed by an allowed"):
        check(by(authenticator, unsigned(pending, credential)), pending, among)
    assert among.standing_by([yes]) == []
    # A key of another approver does not stand in for it.
    other = msgspec.structs.replace(CAROL, approver="dave")
    with pytest.raises(AuthorityDenied):
        check(by(authenticator, unsigned(pending, credential)), pending, approvers(credential, other))


def test_only_an_allowed_key_invites_and_at_level_a_one_behind_a_passphrase() -> None:
    credential, made = enrolled(Authenticator()), invitation()
    signature = KEY.sign(webauthn.invitation_message(made))
    plain = msgspec.structs.replace(CAROL, passphrase=False)

    def invite(among: Approvers, made: Invitation = made, signature: str = signature) -> None:
        among.check_invitation(made, signature, ed25519.verify, now_ms=NOW)

    invite(approvers(credential))
    invite(approvers(credential, plain, level="B"))
    for among, one, signed, said in (
        (approvers(credential, plain), made, signature, "behind a passphrase"),
        (approvers(credential), made, SigningKey(bytes([8]) * 32).sign(webauthn.invitation_message(made)), "allowed"),
        (approvers(credential), invitation(approver="dave"), signature, "allowed"),
        (approvers(credential), invitation(expires_at_ms=NOW + 59_999), signature, "allowed"),
        (approvers(credential), made, "", "allowed"),
    ):
        with pytest.raises(AuthorityDenied, match=said):
            invite(among, one, signed)
    for until, holds in (
        (NOW, False),
        (NOW + limits.INVITATION_MS_MAX, True),
        (NOW + limits.INVITATION_MS_MAX + 1, False),
    ):
        one = invitation(expires_at_ms=until)
        signed = KEY.sign(webauthn.invitation_message(one))
        if holds:
            invite(approvers(credential), one, signed)
            continue
        with pytest.raises(AuthorityDenied, match="expired, or would hold"):
            invite(approvers(credential), one, signed)


# --- enrolment ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"origin": "http://127.0.0.1:8737"}, "not the console's"),
        ({"origin": "http://localhost:65536"}, "not the console's"),
        ({"rp_id": "example.org"}, "another site"),
        ({"flags": PRESENT}, "did not verify"),
        ({"flags": VERIFIED}, "saw nobody"),
        ({"client": {"type": "webauthn.get"}}, "not of webauthn.create"),
        ({"client": {"challenge": "AAAA"}}, "something else"),
        ({"tail": b"\x00"}, "its length"),
        ({"credential_id": b""}, "its length"),
        ({"credential_id": bytes(limits.WEBAUTHN_CREDENTIAL_BYTES_MAX + 1)}, "its length"),
    ],
)
def test_each_wrong_word_at_enrolment_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(AuthorityDenied, match=said):
        enrolled(Authenticator(**changes))


def test_enrolment_takes_the_longest_id_and_each_page_that_the_daemon_knows() -> None:
    longest = bytes([1]) * limits.WEBAUTHN_CREDENTIAL_BYTES_MAX
    assert enrolled(Authenticator(credential_id=longest)).credential_id == longest.hex()
    for origin in (ORIGIN, "http://localhost:65535", "http://localhost"):
        assert enrolled(Authenticator(origin=origin)).approver == "carol"


def test_a_registration_for_one_invitation_is_none_for_another() -> None:
    data, client = Authenticator().register(webauthn.enrolment_challenge(invitation()))
    other = invitation(code_hash=webauthn.code_hash("ZZZZZ-ZZZZZ"))
    with pytest.raises(AuthorityDenied, match="something else"):
        webauthn.credential_of(other, data, client, pages=PAGES, label="", now_ms=NOW)


def test_keys_of_other_kinds_and_cut_off_ones_are_refused() -> None:
    authenticator = Authenticator()
    data, client = authenticator.register(webauthn.enrolment_challenge(invitation()))
    key = authenticator.cose()
    body = data[: -len(key)]
    rsa = bytes.fromhex("a401030339010020590100") + bytes(256) + bytes.fromhex("2143010001")
    for wrong in (b"", key[:-1], b"\xa0", rsa, key.replace(b"\x03\x26", b"\x03\x27", 1)):
        with pytest.raises(AuthorityDenied, match="neither ES256 nor EdDSA"):
            webauthn.credential_of(invitation(), body + wrong, client, pages=PAGES, label="", now_ms=NOW)


def test_a_code_is_known_however_it_is_typed_and_no_other_is() -> None:
    assert webauthn.code_hash("abcde 23456") == webauthn.code_hash(CODE) != webauthn.code_hash("ABCDE-23457")


def test_bounds_of_a_registration_hold_at_the_limit_and_one_past() -> None:
    fields = {"code": "x", "label": "x", "authenticator_data": "", "client_data": ""}
    for name, most, one in (
        ("code", limits.INVITATION_CODE_BYTES_MAX, "x"),
        ("label", limits.CREDENTIAL_LABEL_BYTES_MAX, "x"),
        ("authenticator_data", limits.WEBAUTHN_AUTHENTICATOR_BYTES_MAX, "00"),
        ("client_data", limits.WEBAUTHN_CLIENT_BYTES_MAX, "00"),
    ):
        Registration(**{**fields, name: one * most})
        with pytest.raises(SurehandError):
            Registration(**{**fields, name: one * (most + 1)})


def test_a_point_off_the_curve_is_no_key() -> None:
    assert not es256.is_key(b"\x04" + bytes(64))
    assert not es256.verify(b"\x04" + bytes(64), b"", b"")
    assert not es256.verify(bytes.fromhex(enrolled(Authenticator()).public_key), b"message", bytes(200))
    assert es256.is_key(bytes.fromhex(enrolled(Authenticator()).public_key))
