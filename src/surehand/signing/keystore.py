"""Where the daemon's secrets and an approver's key live: files of mode 0600 in a directory of mode 0700.

Guarantees: a key is made only where none is, whole and durable, and never again over one that is there; a file that
others could read or swap is refused with the fix, not repaired; an approver's key may be sealed with a passphrase
(Argon2id, XChaCha20-Poly1305), which covers who it belongs to as well. Secrets are in no text form of any object.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Literal

import nacl.exceptions
from nacl.pwhash import argon2id
from nacl.secret import Aead

from surehand import canonical, limits
from surehand.errors import AuthorityDenied, Conflict, InvalidRequest, SurehandError, Unavailable
from surehand.model.record import Record, check_identifier, check_range, decode, to_value
from surehand.signing.derive import KEY_BYTES, derive_key
from surehand.signing.ed25519 import SEED_BYTES, SigningKey
from surehand.signing.private_files import (
    check_private,
    create_private,
    private_directory,
    read_private,
    sync_directory,
)

_MASTER_NAME: Final = "daemon.key"
_MASTER_HEAD: Final = b"surehand-daemon-key-v1:"
_APPROVER_PREFIX: Final = "approver-"
_APPROVER_SUFFIX: Final = ".key"


class ApproverKey(Record, frozen=True, kw_only=True):
    """The public half of an approver's key, as an operator's configuration lists it."""

    approver: str
    key_id: str
    public_key: str


class _Passphrase(Record, frozen=True, kw_only=True):
    """How a passphrase becomes a key."""

    name: Literal["argon2id"] = "argon2id"
    ops: int
    memory_bytes: int
    salt: str

    def __post_init__(self) -> None:
        check_range("ops", self.ops, 1, limits.PASSPHRASE_OPS_MAX)
        check_range("memory_bytes", self.memory_bytes, argon2id.MEMLIMIT_MIN, limits.PASSPHRASE_MEMORY_BYTES_MAX)


class _ApproverFile(Record, frozen=True, kw_only=True):
    """An approver's key file. `secret` is the seed in hex, sealed where `passphrase` is present."""

    format: Literal["surehand-approver-key"]
    version: Literal[1]
    public: ApproverKey
    passphrase: _Passphrase | None = None
    secret: str


class KeyStore:
    """The keys in one directory, opened by `open`."""

    __slots__ = ("_directory", "_permit_key", "_randomness")

    def __init__(self, directory: Path, randomness: Callable[[int], bytes]) -> None:
        self._directory = directory
        self._randomness = randomness
        self._permit_key = randomness(KEY_BYTES)

    @classmethod
    def open(cls, directory: Path, *, randomness: Callable[[int], bytes] = os.urandom) -> KeyStore:
        """Open the key store of a directory, making the directory where it is missing.

        Raises:
            PermissionMissing: owner, mode or kind of the directory is wrong; names the fix.
            Unavailable: it cannot be made.
        """
        return cls(private_directory(directory), randomness)

    def __repr__(self) -> str:
        return f"KeyStore({str(self._directory)!r})"

    # --- the daemon -------------------------------------------------------------------------------------------

    @property
    def permit_key(self) -> bytes:
        """Return the key of permits: random for this process, so that no permit outlives it."""
        return self._permit_key

    @property
    def salt_key(self) -> bytes:
        """Return the key that salts are derived with; the same after a restart, so that a retry hashes the same.

        Raises:
            PermissionMissing, Unavailable: the daemon's key file is not as it must be.
        """
        return derive_key(self._master(), "salt")

    @property
    def digest_key(self) -> bytes:
        """Return the key of keyed digests.

        Raises:
            PermissionMissing, Unavailable: the daemon's key file is not as it must be.
        """
        return derive_key(self._master(), "digest")

    @property
    def questions_key(self) -> bytes:
        """Return the key that open questions are sealed with beside the journal; the same after a restart.

        Raises:
            PermissionMissing, Unavailable: the daemon's key file is not as it must be.
        """
        return derive_key(self._master(), "questions")

    @property
    def notices_key(self) -> SigningKey:
        """Return the key that signs what a webhook is told; the same after a restart.

        Raises:
            PermissionMissing, Unavailable: the daemon's key file is not as it must be.
        """
        return SigningKey(derive_key(self._master(), "notices"))

    def _master(self) -> bytes:
        path = self._directory / _MASTER_NAME
        if not check_private(path):
            # Whoever loses the race reads what the winner wrote.
            create_private(path, _MASTER_HEAD + self._randomness(KEY_BYTES).hex().encode() + b"\n")
        data = read_private(path, limits.KEY_FILE_BYTES_MAX)
        try:
            head, secret = data[: len(_MASTER_HEAD)], bytes.fromhex(data[len(_MASTER_HEAD) :].decode("ascii"))
        except ValueError:
            head, secret = b"", b""
        if head != _MASTER_HEAD or len(secret) != KEY_BYTES:
            raise Unavailable(
                f"{path} is not a daemon key of format 1",
                fix="restore it from a backup; a new key would give retries of open operations other hashes",
            )
        return secret

    # --- approvers --------------------------------------------------------------------------------------------

    def create_approver(self, approver: str, *, passphrase: str | None = None) -> ApproverKey:
        """Make an approver's key pair and return its public half.

        Args:
            approver: An identifier.
            passphrase: Seals the private half; asked for at each answer.

        Raises:
            InvalidRequest: a bad name, or an empty or too long passphrase.
            Conflict: the approver has a key already; it is left as it was.
        """
        path = self._approver_path(approver)
        key = SigningKey(self._randomness(SEED_BYTES))
        public = ApproverKey(approver=approver, key_id=key.key_id, public_key=key.public_key)
        how = None
        if passphrase is not None:
            how = _Passphrase(
                ops=limits.PASSPHRASE_OPS,
                memory_bytes=limits.PASSPHRASE_MEMORY_BYTES,
                salt=self._randomness(argon2id.SALTBYTES).hex(),
            )
        file = _ApproverFile(
            format="surehand-approver-key", version=1, public=public, passphrase=how, secret=key.seed.hex()
        )
        if how is not None and passphrase is not None:
            sealed = _box(how, passphrase).encrypt(key.seed, _covered(file), self._randomness(Aead.NONCE_SIZE))
            file = _ApproverFile(
                format=file.format, version=file.version, public=public, passphrase=how, secret=bytes(sealed).hex()
            )
        if not create_private(path, canonical.encode_record(file) + b"\n"):
            raise Conflict(f"{approver} has a key already", fix=f"use it, or move {path} away")
        return public

    def approver(self, approver: str, *, passphrase: str | None = None) -> SigningKey:
        """Return an approver's private key.

        Raises:
            AuthorityDenied: the passphrase is missing or wrong, or the file was changed.
            Unavailable: there is no such key, or the file is not one.
        """
        file = self._read_approver(self._approver_path(approver))
        if (file.passphrase is None) != (passphrase is None):
            needs = "needs a passphrase" if file.passphrase is not None else "has no passphrase"
            raise AuthorityDenied(f"the key of {approver} {needs}")
        secret = bytes.fromhex(file.secret)
        if file.passphrase is not None and passphrase is not None:
            try:
                secret = _box(file.passphrase, passphrase).decrypt(secret, _covered(file))
            except (nacl.exceptions.CryptoError, ValueError) as error:
                raise AuthorityDenied(f"the passphrase of {approver} is wrong, or the file was changed") from error
        if len(secret) != SEED_BYTES:
            raise AuthorityDenied(f"the key file of {approver} was changed")
        key = SigningKey(secret)
        if file.public != ApproverKey(approver=approver, key_id=key.key_id, public_key=key.public_key):
            raise AuthorityDenied(f"the key file of {approver} is another approver's, or was changed")
        return key

    def approvers(self) -> tuple[ApproverKey, ...]:
        """Return the public halves of all approvers' keys here, by name."""
        names = sorted(self._directory.glob(f"{_APPROVER_PREFIX}*{_APPROVER_SUFFIX}"))
        return tuple(self._read_approver(path).public for path in names)

    def behind_passphrase(self, approver: str) -> bool:
        """Say whether an approver's private half is sealed with a passphrase.

        Raises:
            Unavailable: there is no such key, or the file is not one.
        """
        return self._read_approver(self._approver_path(approver)).passphrase is not None

    def holds(self, approver: str, key_id: str) -> bool:
        """Say whether exactly this key is here; what cannot be read is not."""
        try:
            return self._read_approver(self._approver_path(approver)).public.key_id == key_id
        except SurehandError:
            return False

    def remove_approver(self, approver: str) -> ApproverKey:
        """Destroy an approver's key, and return its public half.

        Raises:
            Unavailable: there is no such key, or it cannot be removed.
        """
        path = self._approver_path(approver)
        public = self._read_approver(path).public
        try:
            path.unlink()
            sync_directory(path.parent)
        except OSError as error:
            raise Unavailable(f"{path} cannot be removed: {error.strerror}") from error
        return public

    def _approver_path(self, approver: str) -> Path:
        check_identifier("approver", approver)
        return self._directory / f"{_APPROVER_PREFIX}{approver}{_APPROVER_SUFFIX}"

    @staticmethod
    def _read_approver(path: Path) -> _ApproverFile:
        if not check_private(path):
            raise Unavailable(f"there is no key at {path}", fix="make one: surehand keys create NAME")
        data = read_private(path, limits.KEY_FILE_BYTES_MAX)
        try:
            file = decode(_ApproverFile, data)
            bytes.fromhex(file.secret)
        except ValueError as error:
            raise Unavailable(f"{path} is not an approver's key of format 1: {error}") from error
        return file


def _covered(file: _ApproverFile) -> bytes:
    """Return what the seal covers beside the secret: everything else in the file."""
    value: dict[str, Any] = to_value(file)
    del value["secret"]
    return canonical.encode(value)


def _box(how: _Passphrase, passphrase: str) -> Aead:
    secret = passphrase.encode("utf-8", "surrogatepass")
    if not 1 <= len(secret) <= limits.PASSPHRASE_BYTES_MAX:
        raise InvalidRequest(f"a passphrase has 1..{limits.PASSPHRASE_BYTES_MAX} bytes")
    salt = bytes.fromhex(how.salt)
    return Aead(argon2id.kdf(Aead.KEY_SIZE, secret, salt, opslimit=how.ops, memlimit=how.memory_bytes))
