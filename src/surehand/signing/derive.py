"""One master secret to one key a purpose, by HKDF-SHA256 (RFC 5869).

A key for one purpose tells nothing of the master secret or of any other key, so that a part which holds one of them
can do one thing.
"""

from __future__ import annotations

from typing import Final, Literal

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

KEY_BYTES: Final = 32

#: Salts of text hashes (spec §3.1); keyed digests of texts and reads (spec §5.6, §7);
#: the seal of open questions and the signature of what is told about them (spec §6.4).
Purpose = Literal["salt", "digest", "questions", "notices"]


def derive_key(master: bytes, purpose: Purpose) -> bytes:
    """Return the 32-byte key of a purpose."""
    info = f"surehand/derive/{purpose}/v1".encode()
    return HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=None, info=info).derive(master)
