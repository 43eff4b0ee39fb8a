"""Signatures: published vectors, strictness, domains."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from surehand.errors import InvalidRequest
from surehand.signing.ed25519 import SigningKey, key_id, verify

#: RFC 8032 §7.1: secret key, public key, message, signature.
RFC_8032 = [
    (
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
    ),
    (
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    ),
    (
        "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
    ),
]
MESSAGE = b"surehand/test/v1\x00message"
#: The order of the base point's group, little-endian arithmetic on the second half of a signature.
GROUP_ORDER = 2**252 + 27742317777372353535851937790883648493


@pytest.fixture(scope="module")
def key():
    return SigningKey(bytes(range(32)))


@pytest.mark.parametrize(("secret", "public", "message", "signature"), RFC_8032)
def test_the_vectors_of_the_standard_hold(secret, public, message, signature):
    assert SigningKey(bytes.fromhex(secret)).public_key == public
    assert verify(bytes.fromhex(public), bytes.fromhex(message), bytes.fromhex(signature))


def test_what_was_signed_verifies_and_agrees_with_another_library(key):
    signature = key.sign(MESSAGE)
    assert verify(bytes.fromhex(key.public_key), MESSAGE, bytes.fromhex(signature))
    assert Ed25519PrivateKey.from_private_bytes(bytes(range(32))).sign(MESSAGE).hex() == signature


@given(st.integers(0, 64 * 8 - 1))
def test_a_signature_with_any_bit_flipped_is_refused(bit):
    key = SigningKey(bytes(range(32)))
    signature = bytearray(bytes.fromhex(key.sign(MESSAGE)))
    signature[bit // 8] ^= 1 << bit % 8
    assert not verify(bytes.fromhex(key.public_key), MESSAGE, bytes(signature))


def test_another_message_or_key_is_refused(key):
    signature = bytes.fromhex(key.sign(MESSAGE))
    assert not verify(bytes.fromhex(key.public_key), MESSAGE + b"x", signature)
    assert not verify(bytes.fromhex(SigningKey(b"x" * 32).public_key), MESSAGE, signature)


def test_a_second_encoding_of_a_signature_is_refused(key):
    """S and S + L are the same number to a lax verifier."""
    signature = bytes.fromhex(key.sign(MESSAGE))
    other = signature[:32] + (int.from_bytes(signature[32:], "little") + GROUP_ORDER).to_bytes(32, "little")
    assert not verify(bytes.fromhex(key.public_key), MESSAGE, other)


@pytest.mark.parametrize(
    "public", [b"\x01" + bytes(31), bytes(32), b"\xec" + b"\xff" * 30 + b"\x7f", b"\xee" + b"\xff" * 30 + b"\x7f"]
)
def test_keys_of_small_order_or_second_encoding_verify_nothing(public):
    """Under the identity as key, a signature of zeros would fit every message."""
    for signature in (bytes(64), b"\x01" + bytes(63)):
        assert not verify(public, MESSAGE, signature)


@pytest.mark.parametrize(
    ("public", "signature"),
    [
        (b"", bytes(64)),
        (bytes(31), bytes(64)),
        (bytes(33), bytes(64)),
        (bytes(32), b""),
        (bytes(32), bytes(63)),
        (bytes(32), bytes(65)),
    ],
)
def test_sizes_other_than_the_right_ones_verify_nothing(public, signature):
    assert not verify(public, MESSAGE, signature)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"surehand/grant/v1",
        b"surehand/grant\x00x",
        b"grant/v1\x00x",
        b"surehand//v1x",
        b" surehand/grant/v1\x00",
        b"surehand/grant/v0\x00",
    ],
)
def test_nothing_without_a_domain_is_signed(key, message):
    with pytest.raises(InvalidRequest):
        key.sign(message)


def test_a_key_shows_no_secret(key):
    assert key.seed.hex() not in repr(key) + str(key)
    assert key.key_id == key_id(bytes.fromhex(key.public_key))
    assert len(key.key_id) == 16


def test_a_seed_of_another_size_is_refused():
    for size in (0, 31, 33):
        with pytest.raises(InvalidRequest):
            SigningKey(bytes(size))
