"""The local vault: one file of secrets, each sealed by itself, the whole sealed against change (spec §3.2, §7).

Guarantees:
- A secret is sealed with ChaCha20-Poly1305 under a key of its own, derived from the vault's key and a
  random salt; its name and its binding are authenticated with it, so a seal moved to another name opens nothing.
- A seal over the whole file shows a removed, added or exchanged secret. That an old file was put back whole shows only
  against a number kept elsewhere: `OpenedVault.generation` and `OpenedVault.seal`, which the caller remembers.
- The file is replaced at once or not at all, by one process at a time; a process that dies leaves the old or the new.
- A secret is decrypted into one buffer, which the caller overwrites. No error holds anything of a secret.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from nacl.pwhash import argon2id

from surehand import canonical, limits
from surehand.errors import AuthorityDenied, Conflict, InvalidRequest, TooLarge, Unavailable
from surehand.model.record import Record, check_count, check_range, decode, to_value
from surehand.model.secrets import (
    BoundSecret,
    OpenedVault,
    SecretBinding,
    VaultHead,
    VaultKeyKind,
    VaultPassphrase,
    check_name,
)
from surehand.signing.private_files import (
    check_private,
    create_private,
    open_private,
    private_directory,
    read_private,
    replace_private,
)

KEY_BYTES: Final = 32
_ID_BYTES: Final = 16
_SALT_BYTES: Final = 32
_TAG_BYTES: Final = 16
_LENGTH_BYTES: Final = 2
#: Each key seals one thing once, so the nonce need not differ.
_NONCE: Final = bytes(12)
_PAUSE_S: Final = 0.01


class _Sealed(Record, frozen=True, kw_only=True):
    """One secret in the file. `sealed` is hex of salt and ciphertext."""

    name: str
    bound_to: SecretBinding
    changed_at_ms: int
    sealed: str

    def __post_init__(self) -> None:
        check_name("vault", self.name)


class _File(Record, frozen=True, kw_only=True):
    """The whole file. `seal` is hex of salt and tag over everything else."""

    format: Literal["surehand-vault"]
    version: Literal[1]
    vault_id: str
    key: VaultKeyKind
    passphrase: VaultPassphrase | None = None
    generation: int
    secrets: tuple[_Sealed, ...] = ()
    seal: str

    def __post_init__(self) -> None:
        check_count("secrets", len(self.secrets), 0, limits.SECRETS_MAX)
        check_range("generation", self.generation, 1, limits.INTEGER_MAX)


class VaultFile:
    """The vault at one path. Every method reads the file anew, so that what another process wrote counts at once.

    Args:
        path: Its file, in a directory of ours alone.
        key_path: Where its key is, for a vault whose key is in a file.
        randomness: Source of random bytes.
    """

    def __init__(self, path: Path, key_path: Path, *, randomness: Callable[[int], bytes] = os.urandom) -> None:
        self._path = path
        self._key_path = key_path
        self._randomness = randomness

    def head(self) -> VaultHead | None:
        """Return what the vault says of itself; None where there is none.

        Raises:
            PermissionMissing, Unavailable: others may open the file, or it is no vault.
        """
        if not check_private(self._path):
            return None
        file = self._read()
        return VaultHead(file.vault_id, file.key, file.passphrase)

    def create(self, key: bytearray, head: VaultHead, *, replace: bool = False) -> OpenedVault:
        """Make an empty vault; with `replace` in place of one that is there, whose secrets are lost.

        Raises:
            Conflict: there is one; it is left as it was.
        """
        private_directory(self._path.parent)
        file = _File(
            format="surehand-vault",
            version=1,
            vault_id=head.vault_id,
            key=head.key,
            passphrase=head.passphrase,
            generation=1,
            seal="",
        )
        file = self._sealed_whole(key, file)
        data = canonical.encode_record(file) + b"\n"
        if replace:
            with self._turn():
                replace_private(self._path, data)
        elif not create_private(self._path, data):
            raise Conflict("there is a vault already", fix="`surehand secret list` shows what is in it")
        return _opened(file)

    def open(self, key: bytearray) -> OpenedVault:
        """Return what the vault holds, without the secrets.

        Raises:
            AuthorityDenied: the key is another one, or the file was changed.
            PermissionMissing, Unavailable: others may open the file, it is gone, or is no vault.
        """
        return _opened(self._proven(key))

    def put(self, key: bytearray, name: str, bound_to: SecretBinding, value: bytearray, now_ms: int) -> OpenedVault:
        """Keep a secret under this name, in place of one of that name.

        Raises:
            InvalidRequest: the vault is full. What `open` raises.
        """

        def change(file: _File) -> _File:
            kept = tuple(one for one in file.secrets if one.name != name)
            if len(kept) >= limits.SECRETS_MAX:
                raise InvalidRequest(
                    f"a vault holds {limits.SECRETS_MAX} secrets", fix="remove one: surehand secret rm"
                )
            about = _Sealed(name=name, bound_to=bound_to, changed_at_ms=now_ms, sealed="")
            sealed = msgspec.structs.replace(about, sealed=self._seal(key, file.vault_id, about, value))
            listed = tuple(sorted((*kept, sealed), key=lambda one: one.name))
            return msgspec.structs.replace(file, secrets=listed)

        return self._change(key, change)

    def remove(self, key: bytearray, name: str) -> OpenedVault:
        """Forget a secret.

        Raises:
            InvalidRequest: there is none of this name. What `open` raises.
        """

        def change(file: _File) -> _File:
            kept = tuple(one for one in file.secrets if one.name != name)
            if len(kept) == len(file.secrets):
                raise InvalidRequest(f"no secret is called {name}", fix="surehand secret list")
            return msgspec.structs.replace(file, secrets=kept)

        return self._change(key, change)

    def reveal(self, key: bytearray, name: str, seal: str) -> bytearray:
        """Return a secret in a buffer that the caller overwrites.

        Args:
            key: The vault's.
            name: The secret's.
            seal: Of the content that the caller has looked at; another one is not read from.

        Raises:
            AuthorityDenied: the file was changed, or is another one than was looked at.
        """
        file = self._proven(key)
        found = next((one for one in file.secrets if one.name == name), None)
        if found is None or file.seal != seal:
            raise AuthorityDenied(
                "the vault was changed meanwhile", fix="try again", details={"reason": "vault_changed"}
            )
        data = bytes.fromhex(found.sealed)
        padded = bytearray(len(data) - _SALT_BYTES - _TAG_BYTES)
        try:
            cipher = ChaCha20Poly1305(_derived(key, data[:_SALT_BYTES], b"entry"))
            cipher.decrypt_into(_NONCE, data[_SALT_BYTES:], _about(file.vault_id, found), padded)
        except (InvalidTag, ValueError) as error:
            raise _changed() from error
        value = padded[_LENGTH_BYTES : _LENGTH_BYTES + int.from_bytes(padded[:_LENGTH_BYTES], "big")]
        padded[:] = bytes(len(padded))
        return value

    # --- its key ----------------------------------------------------------------------------------------------

    def new_head(self, kind: VaultKeyKind) -> VaultHead:
        """Return what a new vault will say of itself."""
        how = None
        if kind == "passphrase":
            salt = self._randomness(argon2id.SALTBYTES).hex()
            how = VaultPassphrase(ops=limits.PASSPHRASE_OPS, memory_bytes=limits.PASSPHRASE_MEMORY_BYTES, salt=salt)
        return VaultHead(self._randomness(_ID_BYTES).hex(), kind, how)

    def new_key(self) -> bytearray:
        """Return a random key, for a keyring to hold."""
        return bytearray(self._randomness(KEY_BYTES))

    def key_in_file(self, *, create: bool = False) -> bytearray:
        """Return the key from a file of ours alone; with `create`, for a new vault, made where there is none of use.

        It protects a vault that is copied without it. Whoever may read this user's files reads both.

        Raises:
            PermissionMissing, Unavailable: others may open it, it is missing, or it is no key.
        """
        path = self._key_path
        if not check_private(path):
            if not create:
                raise _no_key(f"the vault's key file is gone: {path}")
            private_directory(path.parent)
            create_private(path, self.new_key().hex().encode() + b"\n")
        try:
            key = bytearray.fromhex(read_private(path, limits.KEY_FILE_BYTES_MAX).decode("ascii"))
        except ValueError:
            key = bytearray()
        if len(key) != KEY_BYTES and create:
            key = self.new_key()
            replace_private(path, key.hex().encode() + b"\n")
        if len(key) != KEY_BYTES:
            raise _no_key(f"{path} is no vault key")
        return key

    @staticmethod
    def key_of_passphrase(head: VaultHead, passphrase: bytearray) -> bytearray:
        """Return the key that a passphrase becomes; takes about 0.3 s, so never on an event loop.

        Raises:
            InvalidRequest: an empty or too long passphrase, or a vault that has none.
        """
        how = head.passphrase
        if how is None or not 1 <= len(passphrase) <= limits.PASSPHRASE_BYTES_MAX:
            raise InvalidRequest(f"a passphrase has 1..{limits.PASSPHRASE_BYTES_MAX} bytes, where a vault has one")
        salt = bytes.fromhex(how.salt)
        return bytearray(argon2id.kdf(KEY_BYTES, bytes(passphrase), salt, opslimit=how.ops, memlimit=how.memory_bytes))

    # --- the file ---------------------------------------------------------------------------------------------

    def _change(self, key: bytearray, change: Callable[[_File], _File]) -> OpenedVault:
        with self._turn():
            file = change(self._proven(key))
            file = self._sealed_whole(key, msgspec.structs.replace(file, generation=file.generation + 1))
            data = canonical.encode_record(file) + b"\n"
            if len(data) > limits.VAULT_BYTES_MAX:
                raise TooLarge(f"a vault has at most {limits.VAULT_BYTES_MAX} bytes")
            replace_private(self._path, data)
            return _opened(file)

    @contextlib.contextmanager
    def _turn(self) -> Iterator[None]:
        """Keep other processes from writing meanwhile; the lock goes with the process that holds it."""
        deadline = time.monotonic() + limits.VAULT_BUSY_MS_MAX / 1000
        with open_private(self._path.with_name(self._path.name + ".lock"), os.O_RDWR | os.O_CREAT) as descriptor:
            while True:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() >= deadline:
                        raise Unavailable("another process writes the vault", fix="try again") from None
                time.sleep(_PAUSE_S)
            for draft in self._path.parent.glob(f".{self._path.name}.*"):
                with contextlib.suppress(OSError):
                    draft.unlink()  # of a process that died; it holds what the file holds, sealed
            yield

    def _read(self) -> _File:
        if not check_private(self._path):
            raise Unavailable("there is no vault", fix="surehand secret init", details={"reason": "no_vault"})
        data = read_private(self._path, limits.VAULT_BYTES_MAX)
        try:
            return decode(_File, data, bytes_max=limits.VAULT_BYTES_MAX)
        except ValueError:
            raise _changed() from None

    def _proven(self, key: bytearray) -> _File:
        file = self._read()
        try:
            data = bytes.fromhex(file.seal)
            cipher = ChaCha20Poly1305(_derived(key, data[:_SALT_BYTES], b"whole"))
            cipher.decrypt(_NONCE, data[_SALT_BYTES:], _whole(file))
        except (InvalidTag, ValueError) as error:
            raise _changed() from error
        return file

    def _sealed_whole(self, key: bytearray, file: _File) -> _File:
        salt = self._randomness(_SALT_BYTES)
        tag = ChaCha20Poly1305(_derived(key, salt, b"whole")).encrypt(_NONCE, b"", _whole(file))
        return msgspec.structs.replace(file, seal=(salt + tag).hex())

    def _seal(self, key: bytearray, vault_id: str, about: _Sealed, value: bytearray) -> str:
        salt = self._randomness(_SALT_BYTES)
        length = _LENGTH_BYTES + len(value)
        padded = bytearray(-(-length // limits.SECRET_PAD_BYTES) * limits.SECRET_PAD_BYTES)
        padded[:_LENGTH_BYTES] = len(value).to_bytes(_LENGTH_BYTES, "big")
        padded[_LENGTH_BYTES:length] = value
        try:
            sealed = ChaCha20Poly1305(_derived(key, salt, b"entry")).encrypt(_NONCE, padded, _about(vault_id, about))
        finally:
            padded[:] = bytes(len(padded))
        return (salt + sealed).hex()


def _opened(file: _File) -> OpenedVault:
    secrets = {
        one.name: BoundSecret(reference=f"vault:{one.name}", bound_to=one.bound_to, changed_at_ms=one.changed_at_ms)
        for one in file.secrets
    }
    return OpenedVault(file.vault_id, file.generation, file.seal, secrets)


def _derived(key: bytearray, salt: bytes, what: bytes) -> bytes:
    if len(salt) != _SALT_BYTES:
        raise ValueError("a seal begins with its salt")
    return HKDF(SHA256(), KEY_BYTES, salt, b"surehand/vault/" + what + b"/v1").derive(key)


def _about(vault_id: str, one: _Sealed) -> bytes:
    """Return what a secret's seal covers beside the secret: which vault it is in, its name, its binding, its time."""
    value: dict[str, Any] = to_value(one)
    del value["sealed"]
    return canonical.encode({"vault_id": vault_id, **value})


def _whole(file: _File) -> bytes:
    value: dict[str, Any] = to_value(file)
    del value["seal"]
    return canonical.encode(value)


def _changed() -> AuthorityDenied:
    return AuthorityDenied(
        "the vault does not open: its key is another one, or the file was changed",
        fix="put back the vault and its key from a backup, or begin anew with `surehand secret init --replace`",
        details={"reason": "vault_changed"},
    )


def _no_key(what: str) -> Unavailable:
    return Unavailable(
        what,
        fix="put it back from a backup, or begin anew with `surehand secret init --replace`",
        details={"reason": "no_key"},
    )
