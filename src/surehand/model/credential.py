"""WebAuthn credentials of approvers: how one is enrolled, what is kept of it, and what it says (spec §6.4).

Bytes are lower-case hex digits, of which every value has one spelling.
"""

from __future__ import annotations

import re
from typing import Final, Literal

from surehand import limits
from surehand.errors import InvalidRequest, TooLarge
from surehand.model.record import Record, check_hash, check_identifier, check_range, check_text

_HEX: Final = re.compile(r"(?:[0-9a-f]{2})*")
#: An uncompressed point of P-256, and an Ed25519 key.
_KEY_BYTES: Final = {"ES256": 65, "EdDSA": 32}


def check_hex(name: str, value: str, bytes_max: int) -> None:
    """Refuse anything but whole bytes in lower-case hex, at most so many."""
    if len(value) > 2 * bytes_max:
        raise TooLarge(f"{name} has more than {bytes_max} bytes")
    if _HEX.fullmatch(value) is None:
        raise InvalidRequest(f"{name} must be lower-case hex digits")


class Assertion(Record, frozen=True, kw_only=True):
    """What an authenticator signed: its own data, and the data of the browser with the challenge in it."""

    authenticator_data: str
    client_data: str

    def __post_init__(self) -> None:
        check_hex("authenticator_data", self.authenticator_data, limits.WEBAUTHN_AUTHENTICATOR_BYTES_MAX)
        check_hex("client_data", self.client_data, limits.WEBAUTHN_CLIENT_BYTES_MAX)


class Invitation(Record, frozen=True, kw_only=True):
    """Leave to enrol one credential, signed with the approver's Ed25519 key `key_id`.

    `code_hash` is the digest of the code that the approver types into the console page.
    """

    approver: str
    key_id: str
    code_hash: str
    expires_at_ms: int

    def __post_init__(self) -> None:
        check_identifier("approver", self.approver)
        check_identifier("key_id", self.key_id)
        check_hash("code_hash", self.code_hash)
        check_range("expires_at_ms", self.expires_at_ms, 1, limits.INTEGER_MAX)


class Registration(Record, frozen=True, kw_only=True):
    """What the console page brings to enrol a credential; `label` is the person's own name for the authenticator."""

    code: str
    label: str
    authenticator_data: str
    client_data: str

    def __post_init__(self) -> None:
        check_text("code", self.code, limits.INVITATION_CODE_BYTES_MAX)
        check_text("label", self.label, limits.CREDENTIAL_LABEL_BYTES_MAX)
        check_hex("authenticator_data", self.authenticator_data, limits.WEBAUTHN_AUTHENTICATOR_BYTES_MAX)
        check_hex("client_data", self.client_data, limits.WEBAUTHN_CLIENT_BYTES_MAX)


class Credential(Record, frozen=True, kw_only=True):
    """An enrolled credential: whose it is, its public key, and the count that it told last.

    `enrolled_by` names the Ed25519 key that invited it; with that key it goes.
    """

    approver: str
    key_id: str
    credential_id: str
    algorithm: Literal["ES256", "EdDSA"]
    public_key: str
    sign_count: int
    enrolled_by: str
    enrolled_at_ms: int
    label: str

    def __post_init__(self) -> None:
        check_identifier("approver", self.approver)
        check_identifier("key_id", self.key_id)
        check_identifier("enrolled_by", self.enrolled_by)
        check_hex("credential_id", self.credential_id, limits.WEBAUTHN_CREDENTIAL_BYTES_MAX)
        check_hex("public_key", self.public_key, _KEY_BYTES[self.algorithm])
        check_range("sign_count", self.sign_count, 0, limits.WEBAUTHN_COUNT_MAX)
        check_text("label", self.label, limits.CREDENTIAL_LABEL_BYTES_MAX)
        if len(self.public_key) != 2 * _KEY_BYTES[self.algorithm] or not self.credential_id:
            raise InvalidRequest("public_key or credential_id does not have its length")
