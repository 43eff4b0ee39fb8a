"""ES256, as WebAuthn authenticators sign: ECDSA over P-256 with SHA-256 (RFC 7518 §3.4, signatures in DER).

Only verifying; nothing of ours is signed with it. The library is loaded at the first use: most daemons never do.
"""

from __future__ import annotations


def verify(public_key: bytes, message: bytes, signature: bytes) -> bool:
    """Say whether this is the key's signature of the message; false for malformed keys and signatures.

    Args:
        public_key: An uncompressed point, 65 bytes.
        message: What was signed.
        signature: In DER.
    """
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - see above
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415
    from cryptography.hazmat.primitives.hashes import SHA256  # noqa: PLC0415

    try:
        key = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), public_key)
        key.verify(signature, message, ec.ECDSA(SHA256()))
    except (InvalidSignature, ValueError):
        return False
    return True


def is_key(public_key: bytes) -> bool:
    """Say whether these bytes are a point of the curve."""
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415 - see above

    try:
        ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), public_key)
    except ValueError:
        return False
    return True
