"""The daemon's secrets and approvers' keys."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from surehand import limits
from surehand.errors import AuthorityDenied, Conflict, InvalidRequest, PermissionMissing, SurehandError, Unavailable
from surehand.signing import keystore as module
from surehand.signing.derive import derive_key
from surehand.signing.ed25519 import verify
from surehand.signing.keystore import KeyStore

MESSAGE = b"surehand/test/v1\x00message"
WORD = "correct horse"


@pytest.fixture(autouse=True)
def cheap_passphrases(monkeypatch):
    """The cost of a guess is what `limits` says; these tests pay less of it."""
    monkeypatch.setattr(limits, "PASSPHRASE_MEMORY_BYTES", 8 * 1024 * 1024)
    monkeypatch.setattr(limits, "PASSPHRASE_OPS", 1)


@pytest.fixture
def store(tmp_path):
    return KeyStore.open(tmp_path / "keys")


def change(path, **members):
    value = json.loads(path.read_text("utf-8"))
    value.update(members)
    path.write_text(json.dumps(value), "utf-8")


def test_keys_of_a_purpose_are_the_same_after_a_restart_and_differ_from_each_other(store, tmp_path):
    again = KeyStore.open(tmp_path / "keys")
    assert store.salt_key == again.salt_key
    assert store.digest_key == again.digest_key
    assert len({store.salt_key, store.digest_key, store.permit_key}) == 3
    assert all(len(key) == 32 for key in (store.salt_key, store.digest_key, store.permit_key))


def test_the_permit_key_dies_with_the_process(store, tmp_path):
    assert store.permit_key == store.permit_key
    assert store.permit_key != KeyStore.open(tmp_path / "keys").permit_key


def test_derivation_is_hkdf_with_the_purpose_in_it():
    expected = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"surehand/derive/salt/v1").derive(b"m" * 32)
    assert derive_key(b"m" * 32, "salt") == expected


def test_the_files_are_ours_alone(store, tmp_path):
    assert store.salt_key
    store.create_approver("ada")
    assert (tmp_path / "keys").stat().st_mode & 0o777 == 0o700
    for path in (tmp_path / "keys").iterdir():
        assert path.stat().st_mode & 0o777 == 0o600


def test_racing_first_uses_agree_on_one_key(tmp_path):
    stores = [KeyStore.open(tmp_path / "keys") for _ in range(16)]
    with ThreadPoolExecutor(16) as pool:
        assert len(set(pool.map(lambda store: store.salt_key, stores))) == 1


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"surehand-daemon-key-v1:",
        b"surehand-daemon-key-v1:zz\n",
        b"surehand-daemon-key-v2:" + b"0" * 64,
        b"surehand-daemon-key-v1:" + b"0" * 62,
        b"\xff" * 80,
    ],
)
def test_a_damaged_daemon_key_is_refused_and_left_as_it_is(store, tmp_path, content):
    path = tmp_path / "keys" / "daemon.key"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(Unavailable) as refused:
        _ = store.salt_key
    assert refused.value.fix
    assert path.read_bytes() == content


def test_a_daemon_key_that_others_may_read_is_refused(store, tmp_path):
    assert store.salt_key
    (tmp_path / "keys" / "daemon.key").chmod(0o640)
    with pytest.raises(PermissionMissing) as refused:
        _ = store.salt_key
    assert "chmod 0600" in refused.value.fix


def test_no_secret_is_in_a_text_form(store):
    assert store.salt_key.hex() not in repr(store)
    assert store.permit_key.hex() not in repr(store)


# --- approvers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("passphrase", [None, "correct horse", "päss\u0000 \U0001f600"])
def test_an_approver_can_sign_with_the_key_that_was_made(store, passphrase):
    public = store.create_approver("ada", passphrase=passphrase)
    key = store.approver("ada", passphrase=passphrase)
    assert verify(bytes.fromhex(public.public_key), MESSAGE, bytes.fromhex(key.sign(MESSAGE)))
    assert store.approvers() == (public,)


def test_a_second_key_for_an_approver_is_refused_and_the_first_stays(store):
    public = store.create_approver("ada")
    with pytest.raises(Conflict):
        store.create_approver("ada")
    assert store.approvers() == (public,)


@pytest.mark.parametrize("guess", [None, "wrong", "correct horse ", ""])
def test_without_the_passphrase_there_is_no_key(store, guess):
    store.create_approver("ada", passphrase=WORD)
    with pytest.raises((AuthorityDenied, InvalidRequest)):
        store.approver("ada", passphrase=guess)


def test_a_sealed_file_holds_no_seed(store, tmp_path):
    store.create_approver("ada", passphrase=WORD)
    seed = store.approver("ada", passphrase=WORD).seed
    assert seed.hex() not in (tmp_path / "keys" / "approver-ada.key").read_text("utf-8")


@pytest.mark.parametrize("sealed", [True, False])
def test_a_file_under_another_name_or_with_another_public_key_is_refused(store, tmp_path, sealed):
    passphrase = WORD if sealed else None
    store.create_approver("ada", passphrase=passphrase)
    other = store.create_approver("bob", passphrase=passphrase)
    folder = tmp_path / "keys"
    folder.joinpath("approver-eve.key").write_bytes(folder.joinpath("approver-ada.key").read_bytes())
    folder.joinpath("approver-eve.key").chmod(0o600)
    with pytest.raises(AuthorityDenied):
        store.approver("eve", passphrase=passphrase)
    change(
        folder / "approver-ada.key", public={"approver": "ada", "key_id": other.key_id, "public_key": other.public_key}
    )
    with pytest.raises(AuthorityDenied):
        store.approver("ada", passphrase=passphrase)


def test_cheaper_derivation_cannot_be_written_into_a_sealed_file(store, tmp_path):
    store.create_approver("ada", passphrase=WORD)
    path = tmp_path / "keys" / "approver-ada.key"
    how = json.loads(path.read_text("utf-8"))["passphrase"]
    change(path, passphrase={**how, "ops": how["ops"] + 1})
    with pytest.raises(AuthorityDenied):
        store.approver("ada", passphrase=WORD)


@pytest.mark.parametrize(
    "members",
    [
        {"version": 2},
        {"format": "x"},
        {"more": 1},
        {"secret": "zz"},
        {"secret": 1},
        {"passphrase": {"ops": 17, "memory_bytes": 8192, "salt": "00"}},
        {"passphrase": {"ops": 1, "memory_bytes": 2**31, "salt": "00"}},
        {"passphrase": {"name": "none", "ops": 1, "memory_bytes": 8192, "salt": "00"}},
    ],
)
def test_a_malformed_key_file_is_a_typed_error(store, tmp_path, members):
    store.create_approver("ada")
    change(tmp_path / "keys" / "approver-ada.key", **members)
    with pytest.raises(SurehandError) as refused:
        store.approver("ada")
    assert refused.value.code in {"backend_unavailable", "authority_denied"}


def test_an_oversized_key_file_is_refused(store, tmp_path):
    store.create_approver("ada")
    path = tmp_path / "keys" / "approver-ada.key"
    path.write_bytes(b" " * (limits.KEY_FILE_BYTES_MAX + 1))
    with pytest.raises(SurehandError):
        store.approver("ada")


@pytest.mark.parametrize("name", ["", "a/b", "../x", "a b", "é", "x" * 257])
def test_a_name_that_could_lead_elsewhere_is_refused(store, name):
    with pytest.raises(InvalidRequest):
        store.create_approver(name)
    with pytest.raises(InvalidRequest):
        store.approver(name)


@pytest.mark.parametrize("passphrase", ["", "x" * (limits.PASSPHRASE_BYTES_MAX + 1)])
def test_a_passphrase_out_of_bounds_makes_no_key(store, passphrase):
    with pytest.raises(InvalidRequest):
        store.create_approver("ada", passphrase=passphrase)
    assert store.approvers() == ()


def test_a_missing_key_says_how_to_make_one(store):
    with pytest.raises(Unavailable) as refused:
        store.approver("ada")
    assert refused.value.fix


def test_what_a_guess_costs_is_not_lowered_by_accident():
    assert module.argon2id.MEMLIMIT_MODERATE == 256 * 1024 * 1024
    assert module.argon2id.OPSLIMIT_MODERATE == 3
