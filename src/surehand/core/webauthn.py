"""WebAuthn: what an authenticator's words must hold so that they count (W3C WebAuthn level 2 §6.1, §7; spec §6.4).

Guarantees: an assertion counts only for the very answer whose digest is its challenge, from a console page that the
daemon knows, by the authenticator that was enrolled, which verified its person; a signature count that does not grow
is a copy at work and is refused. Attestation is not asked for: who made an authenticator matters less than who enrolled
it, and that is signed by a key the operator trusts already.

Nothing here parses CBOR: nothing but the public key would need it, and CTAP 2 gives that one exact form.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Container
from typing import Any, Final, Literal, NamedTuple

from surehand import canonical, limits
from surehand.core.authority import Verify
from surehand.errors import AuthorityDenied, SurehandError
from surehand.model.credential import Assertion, Credential, Invitation
from surehand.model.record import to_value

RP_ID: Final = "localhost"
_RP_ID_HASH: Final = hashlib.sha256(RP_ID.encode()).digest()
_CODE_DOMAIN: Final = b"surehand/invitation-code/v1\x00"
_INVITATION_DOMAIN: Final = b"surehand/invitation/v1\x00"
_ENROLMENT_DOMAIN: Final = b"surehand/enrolment/v1\x00"
_USER_DOMAIN: Final = b"surehand/webauthn-user/v1\x00"
_KEY_DOMAIN: Final = b"surehand/webauthn-key/v1\x00"

_PRESENT: Final = 0x01
_VERIFIED: Final = 0x04
_ATTESTED: Final = 0x40
_EXTENDED: Final = 0x80
_HEAD_BYTES: Final = 37
#: WebAuthn takes localhost for secure without TLS; browsers leave out the port of HTTP.
_ORIGIN: Final = re.compile(r"http://localhost(?::([1-9][0-9]{0,4}))?")
_HTTP_PORT: Final = 80
_ID_AT: Final = 55
#: COSE keys in the form that CTAP 2 canonical CBOR gives them, and no other: EC2/ES256/P-256, OKP/EdDSA/Ed25519.
_ES256: Final = re.compile(rb"\xa5\x01\x02\x03\x26\x20\x01\x21\x58\x20(.{32})\x22\x58\x20(.{32})", re.DOTALL)
_EDDSA: Final = re.compile(rb"\xa4\x01\x01\x03\x27\x20\x06\x21\x58\x20(.{32})", re.DOTALL)
#: COSE numbers of the algorithms, as a page asks for them.
ALGORITHMS: Final = {"ES256": -7, "EdDSA": -8}


class Said(NamedTuple):
    """What an authenticator's data says."""

    sign_count: int
    extended: bool
    #: Behind the head: the attested credential, extensions.
    rest: bytes


class Verifiers(NamedTuple):
    """How signatures are verified, by algorithm."""

    eddsa: Verify
    es256: Verify

    def holds(self, credential: Credential, message: bytes, signature: bytes) -> bool:
        """Say whether this is the credential's signature of the message."""
        verify = self.es256 if credential.algorithm == "ES256" else self.eddsa
        return verify(bytes.fromhex(credential.public_key), message, signature)


# --- answers ------------------------------------------------------------------------------------------------------


def challenge(message: bytes) -> bytes:
    """Return what the authenticator is asked to sign for a message that begins with its domain."""
    return hashlib.sha256(message).digest()


def check_assertion(
    assertion: Assertion,
    signature: bytes,
    message: bytes,
    credential: Credential,
    verifiers: Verifiers,
    pages: Container[int] | None,
) -> int:
    """Accept an assertion about exactly this message; return the signature count that it tells.

    Args:
        assertion: What the authenticator and the browser said.
        signature: The authenticator's.
        message: What it must be about.
        credential: Whose it must be.
        verifiers: How signatures are verified.
        pages: Ports of the console pages there are; None where it was accepted before, when they were known.

    Raises:
        AuthorityDenied: naming what does not hold.
    """
    authenticator, client = bytes.fromhex(assertion.authenticator_data), bytes.fromhex(assertion.client_data)
    if not verifiers.holds(credential, authenticator + hashlib.sha256(client).digest(), signature):
        raise _denied("the authenticator's signature does not hold")
    _check_client(client, "webauthn.get", challenge(message), pages)
    said = _authenticator(authenticator, attested=False)
    if said.rest and not said.extended:
        raise _denied("the authenticator's data does not have its length")
    return said.sign_count


def check_count(told: int, credential: Credential) -> None:
    """Refuse a signature count that did not grow: two devices hold the key. Zero for ever means no count is kept.

    Raises:
        AuthorityDenied.
    """
    if (told or credential.sign_count) and told <= credential.sign_count:
        raise _denied(
            f"the authenticator's count went from {credential.sign_count} to {told}: a copy of it is in use",
            fix=f"take it away with `surehand keys remove-webauthn {credential.key_id}` and enrol one again",
        )


def _check_client(
    client: bytes, kind: Literal["webauthn.get", "webauthn.create"], asked: bytes, pages: Container[int] | None
) -> None:
    """Accept what the browser states of what it asked the authenticator."""
    try:
        found: Any = canonical.parse(client, bytes_max=limits.WEBAUTHN_CLIENT_BYTES_MAX)
    except SurehandError as error:
        raise _denied("the browser's data cannot be read") from error
    if not isinstance(found, dict):
        raise _denied("the browser's data cannot be read")
    if found.get("type") != kind:
        raise _denied(f"the browser's data is not of {kind}")
    if found.get("challenge") != base64.urlsafe_b64encode(asked).rstrip(b"=").decode("ascii"):
        raise _denied("the authenticator signed something else")
    if found.get("crossOrigin") not in (None, False) or "topOrigin" in found:
        raise _denied("the answer was given in a frame of another page")
    # Other programs of this machine may serve pages under the same name: the port tells whose page it is.
    origin = _ORIGIN.fullmatch(str(found.get("origin")))
    if origin is None or (pages is not None and int(origin[1] or _HTTP_PORT) not in pages):
        raise _denied(
            "the answer was given in a page that is not the console's", fix="answer where `surehand console` says"
        )


def _authenticator(data: bytes, *, attested: bool) -> Said:
    if len(data) < _HEAD_BYTES:
        raise _denied("the authenticator's data does not have its length")
    flags = data[32]
    checks = (
        ("the authenticator's answer is for another site", data[:32] == _RP_ID_HASH),
        ("the authenticator saw nobody", bool(flags & _PRESENT)),
        ("the authenticator did not verify its person", bool(flags & _VERIFIED)),
        ("the authenticator's data is not of this kind", bool(flags & _ATTESTED) == attested),
    )
    for message, holds in checks:
        if not holds:
            raise _denied(message)
    return Said(int.from_bytes(data[33:_HEAD_BYTES], "big"), bool(flags & _EXTENDED), data[_HEAD_BYTES:])


# --- enrolment ----------------------------------------------------------------------------------------------------


def code_hash(code: str) -> str:
    """Return the digest under which an invitation's code is known; spaces, dashes and case do not count."""
    plain = "".join(character for character in code.upper() if character.isalnum())
    return hashlib.sha256(_CODE_DOMAIN + plain.encode("utf-8")).hexdigest()


def invitation_message(invitation: Invitation) -> bytes:
    """Return the bytes that an approver signs to have a credential enrolled."""
    return _INVITATION_DOMAIN + canonical.encode(to_value(invitation))


def enrolment_challenge(invitation: Invitation) -> bytes:
    """Return what the authenticator is given when it makes the key: bound to the invitation."""
    return challenge(_ENROLMENT_DOMAIN + canonical.encode(to_value(invitation)))


def user_handle(approver: str) -> bytes:
    """Return what an authenticator knows an approver by; their name is in no authenticator's memory this way."""
    return hashlib.sha256(_USER_DOMAIN + approver.encode("ascii")).digest()


def credential_of(
    invitation: Invitation,
    authenticator_data: bytes,
    client_data: bytes,
    *,
    pages: Container[int],
    label: str,
    now_ms: int,
) -> Credential:
    """Return the credential that an authenticator made for an invitation.

    Args:
        invitation: The open one.
        authenticator_data: As the page got it.
        client_data: The browser's, with type, challenge and origin.
        pages: Ports of the console pages there are.
        label: The person's own name for it.
        now_ms: Wall-clock.

    Raises:
        AuthorityDenied: naming what does not hold.
    """
    _check_client(client_data, "webauthn.create", enrolment_challenge(invitation), pages)
    said = _authenticator(authenticator_data, attested=True)
    start = _ID_AT - _HEAD_BYTES
    length = int.from_bytes(said.rest[start - 2 : start], "big")
    credential_id, key = said.rest[start : start + length], said.rest[start + length :]
    if len(credential_id) != length or not 0 < length <= limits.WEBAUTHN_CREDENTIAL_BYTES_MAX:
        raise _denied("the credential's id does not have its length")
    algorithm, public_key, used = _cose(key)
    if len(key) > used and not said.extended:
        raise _denied("the authenticator's data does not have its length")
    return Credential(
        approver=invitation.approver,
        key_id=hashlib.sha256(_KEY_DOMAIN + credential_id + public_key).hexdigest()[:16],
        credential_id=credential_id.hex(),
        algorithm=algorithm,
        public_key=public_key.hex(),
        sign_count=said.sign_count,
        enrolled_by=invitation.key_id,
        enrolled_at_ms=now_ms,
        label=label,
    )


def _cose(data: bytes) -> tuple[Literal["ES256", "EdDSA"], bytes, int]:
    if found := _ES256.match(data):
        return "ES256", b"\x04" + found[1] + found[2], found.end()
    if found := _EDDSA.match(data):
        return "EdDSA", found[1], found.end()
    raise _denied("the authenticator's key is neither ES256 nor EdDSA in the form of CTAP 2")


def _denied(message: str, fix: str | None = None) -> AuthorityDenied:
    return AuthorityDenied(message, gate="approval", fix=fix)
