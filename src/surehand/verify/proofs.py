"""People's answers, checked again: each proof in the log is a signature of the answer that the log says was given.

Written from `spec/approval.md` and the W3C's WebAuthn page, sharing no code with the writer. It shows that the key in
the record signed the answer; that the key was the approver's is the word of the log, as far as it goes: an Ed25519 key
names itself by its digest, a WebAuthn credential must have been enrolled earlier in the log.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from typing import Any, Final

from surehand.verify.records import Fault, Record, encode

_ANSWER_DOMAIN: Final = b"surehand/approval-answer/v1\x00"
_KEY_DOMAIN: Final = b"surehand/key/v1\x00"
_RP_ID_HASH: Final = hashlib.sha256(b"localhost").digest()
_HEAD_BYTES: Final = 37
_ORIGIN: Final = re.compile(r"http://localhost(?::[1-9][0-9]{0,4})?")
_CREDENTIALS_MAX: Final = 64
#: A person is there, and was verified.
_FLAGS: Final = 0x05
_WORDS: Final = {"operation.approved.v1": "approve", "operation.denied.v1": "deny"}
#: What an answer says and the record beside it repeats.
_REPEATED: Final = ("approval_id", "presentation_hash", "approver")


class Proofs:
    """Takes in records in order; remembers the credentials that were enrolled and not taken away."""

    def __init__(self) -> None:
        self._enrolled: dict[str, dict[str, Any]] = {}

    def add(self, record: Record, payload: dict[str, Any]) -> None:
        """Take in one record.

        Raises:
            Fault: it holds a proof that does not hold.
        """
        if record.type == "credential.enrolled.v1":
            self._enrolled[str(payload.get("key_id"))] = payload
            if len(self._enrolled) > _CREDENTIALS_MAX:
                raise Fault("more credentials are in force than any daemon keeps")
        elif record.type == "credential.removed.v1":
            self._enrolled.pop(str(payload.get("key_id")), None)
        elif record.type in _WORDS and "proof" in payload:
            try:
                self._check(record.type, payload, payload["proof"])
            except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
                raise Fault("the proof of an answer does not have its form") from error

    def _check(self, kind: str, payload: dict[str, Any], proof: dict[str, Any]) -> None:
        answer = dict(proof["answer"])
        if answer["answer"] != _WORDS[kind] or any(answer[name] != payload[name] for name in _REPEATED):
            raise Fault("the proof is of another answer than the record's")
        signature = bytes.fromhex(answer.pop("signature"))
        assertion = answer.pop("assertion", None)
        message = _ANSWER_DOMAIN + encode(answer)
        public_key, algorithm = bytes.fromhex(proof["public_key"]), proof["algorithm"]
        if assertion is None:
            named = hashlib.sha256(_KEY_DOMAIN + public_key).hexdigest()[:16]
            if algorithm != "Ed25519" or named != answer["key_id"] or payload["how"] != f"ed25519:{named}":
                raise Fault("the proof of an answer names another key")
        else:
            self._check_credential(answer, payload, proof)
            message = _asserted(assertion, message)
        if not _holds(algorithm, public_key, message, signature):
            raise Fault("the signature of an answer does not hold")

    def _check_credential(self, answer: dict[str, Any], payload: dict[str, Any], proof: dict[str, Any]) -> None:
        key_id = answer["key_id"]
        known = self._enrolled.get(key_id, {})
        named = {"approver": answer["approver"], "public_key": proof["public_key"], "algorithm": proof["algorithm"]}
        if payload["how"] != f"webauthn:{key_id}" or not named.items() <= known.items():
            raise Fault("the proof of an answer names a credential that was not enrolled")


def _asserted(assertion: dict[str, Any], message: bytes) -> bytes:
    """Return what an authenticator signed, once it is shown to be about this message."""
    authenticator, client = (bytes.fromhex(assertion[name]) for name in ("authenticator_data", "client_data"))
    said = json.loads(client)
    challenge = base64.urlsafe_b64encode(hashlib.sha256(message).digest()).rstrip(b"=").decode("ascii")
    if (said["type"], said["challenge"]) != ("webauthn.get", challenge):
        raise Fault("the authenticator signed something else than the answer")
    if _ORIGIN.fullmatch(said["origin"]) is None or said.get("crossOrigin") or "topOrigin" in said:
        raise Fault("an answer was given in a page that is no console's")
    if len(authenticator) < _HEAD_BYTES or authenticator[:32] != _RP_ID_HASH or authenticator[32] & _FLAGS != _FLAGS:
        raise Fault("the authenticator did not verify a person for this site")
    return authenticator + hashlib.sha256(client).digest()


def _holds(algorithm: str, public_key: bytes, message: bytes, signature: bytes) -> bool:
    # Most logs of agents hold few answers of people, and some none: the library is loaded for the first.
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519  # noqa: PLC0415
    from cryptography.hazmat.primitives.hashes import SHA256  # noqa: PLC0415

    try:
        if algorithm == "ES256":
            point = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), public_key)
            point.verify(signature, message, ec.ECDSA(SHA256()))
        elif algorithm in {"Ed25519", "EdDSA"}:
            ed25519.Ed25519PublicKey.from_public_bytes(public_key).verify(signature, message)
        else:
            return False
    except InvalidSignature:
        return False
    return True
