"""HMAC-SHA256 (RFC 2104) under one key and one domain, begun once: most of it does not depend on the message.

A daemon has a handful of keys and asks thousands of times a second; how a hash begins is kept and copied.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from typing import Final

from surehand import limits

Mac = Callable[[bytes], str]

_BLOCK_BYTES: Final = 64


@functools.lru_cache(maxsize=limits.KEYS_BEGUN_MAX)
def keyed(key: bytes, domain: bytes) -> Mac:
    """Return what gives HMAC-SHA256 of `domain` and a message, as lower-case hex.

    Raises:
        ValueError: the key is shorter than its hash.
    """
    if len(key) < limits.KEY_BYTES_MIN:
        raise ValueError(f"a key needs at least {limits.KEY_BYTES_MIN} bytes")
    block = (key if len(key) <= _BLOCK_BYTES else hashlib.sha256(key).digest()).ljust(_BLOCK_BYTES, b"\0")
    inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in block) + domain)
    outer = hashlib.sha256(bytes(byte ^ 0x5C for byte in block))

    def mac(message: bytes) -> str:
        first, last = inner.copy(), outer.copy()
        first.update(message)
        last.update(first.digest())
        return last.hexdigest()

    return mac
