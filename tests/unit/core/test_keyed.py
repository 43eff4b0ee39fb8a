"""A hash that is begun once gives what HMAC-SHA256 gives."""

from __future__ import annotations

import hashlib
import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surehand import limits
from surehand.core.keyed import keyed


@given(
    st.binary(min_size=limits.KEY_BYTES_MIN, max_size=200), st.binary(max_size=40), st.lists(st.binary(max_size=300))
)
def test_it_is_hmac_for_every_key_and_every_message_after_another(
    key: bytes, domain: bytes, messages: list[bytes]
) -> None:
    mac = keyed(key, domain)
    for message in messages:
        assert mac(message) == hmac.new(key, domain + message, hashlib.sha256).hexdigest()


def test_keys_at_the_size_of_a_block_and_one_past_are_taken_as_hmac_takes_them() -> None:
    for size in (limits.KEY_BYTES_MIN, 63, 64, 65):
        key = bytes(range(size))
        assert keyed(key, b"d\0")(b"m") == hmac.new(key, b"d\0m", hashlib.sha256).hexdigest()


def test_a_key_shorter_than_its_hash_is_refused() -> None:
    assert keyed(bytes(limits.KEY_BYTES_MIN), b"")(b"")
    with pytest.raises(ValueError, match="at least"):
        keyed(bytes(limits.KEY_BYTES_MIN - 1), b"")


def test_more_keys_than_are_kept_begun_give_the_same_hashes() -> None:
    keys = [number.to_bytes(limits.KEY_BYTES_MIN, "big") for number in range(limits.KEYS_BEGUN_MAX + 1)]
    first = [keyed(key, b"d")(b"m") for key in keys]
    assert [keyed(key, b"d")(b"m") for key in keys] == first
    assert len(set(first)) == len(keys)
    assert keyed.cache_info().currsize <= limits.KEYS_BEGUN_MAX
