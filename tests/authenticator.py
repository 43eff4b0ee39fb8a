"""A WebAuthn authenticator and the browser before it, in software: what a test changes, it signs as it stands.

It shares no code with what it is tried on; the keys and the bytes are formed here from the W3C's and the FIDO
Alliance's pages.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import struct
from dataclasses import dataclass, field
from typing import Any, Literal

from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

ORIGIN = "http://localhost:8737"
PRESENT, VERIFIED, ATTESTED, EXTENDED = 0x01, 0x04, 0x40, 0x80


@dataclass
class Authenticator:
    """One authenticator with one credential. Every fact of what it and its browser say can be set."""

    algorithm: Literal["ES256", "EdDSA"] = "ES256"
    origin: str = ORIGIN
    rp_id: str = "localhost"
    flags: int = PRESENT | VERIFIED
    count: int = 0
    #: Added to the count with each use; 0 as passkeys of phones have it.
    step: int = 1
    credential_id: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    #: Members of the browser's data that a test adds or changes.
    client: dict[str, Any] = field(default_factory=dict)
    #: Behind the data: extensions, or what does not belong there.
    tail: bytes = b""

    def __post_init__(self) -> None:
        self._key: Any = (
            ec.generate_private_key(ec.SECP256R1())
            if self.algorithm == "ES256"
            else ed25519.Ed25519PrivateKey.generate()
        )

    def register(self, challenge: bytes) -> tuple[bytes, bytes]:
        """Return authenticator data with the credential in it, and the browser's data."""
        attested = bytes(16) + struct.pack(">H", len(self.credential_id)) + self.credential_id + self.cose()
        return self._data(self.flags | ATTESTED) + attested + self.tail, self._client("webauthn.create", challenge)

    def get(self, challenge: bytes) -> tuple[bytes, bytes, bytes]:
        """Return authenticator data, the browser's data, and the signature."""
        self.count += self.step
        data, client = self._data(self.flags) + self.tail, self._client("webauthn.get", challenge)
        return data, client, self.sign(data + hashlib.sha256(client).digest())

    def sign(self, message: bytes) -> bytes:
        """Return the credential's signature of anything."""
        if self.algorithm == "ES256":
            return bytes(self._key.sign(message, ec.ECDSA(SHA256())))
        return bytes(self._key.sign(message))

    def cose(self) -> bytes:
        """Return the public key as CTAP 2 writes it."""
        public = self._key.public_key()
        if self.algorithm == "ES256":
            point = public.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
            return bytes.fromhex("a5010203262001215820") + point[1:33] + bytes.fromhex("225820") + point[33:]
        return bytes.fromhex("a4010103272006215820") + public.public_bytes(Encoding.Raw, PublicFormat.Raw)

    def _data(self, flags: int) -> bytes:
        return hashlib.sha256(self.rp_id.encode()).digest() + struct.pack(">BI", flags, self.count)

    def _client(self, kind: str, challenge: bytes) -> bytes:
        text = base64.urlsafe_b64encode(challenge).rstrip(b"=").decode()
        value = {"type": kind, "challenge": text, "origin": self.origin, "crossOrigin": False, **self.client}
        return json.dumps(value).encode()
