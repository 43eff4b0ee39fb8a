"""The hosts' public keys that an operator pinned, read from a TOML or JSON file (spec §3.4).

Format: an array `key` of tables with `issuer`, `key_id`, `public_key` (64 hex digits) and `policy_generation`. Two keys
of one issuer under one id would make it a matter of order who is trusted, so they are refused.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any, Final

from surehand import canonical, limits
from surehand.errors import InvalidRequest
from surehand.model.record import Record, check_count, check_identifier, check_range, convert
from surehand.signing.private_files import read_trusted

_PUBLIC_KEY: Final = re.compile(r"[0-9a-f]{64}")


class HostKey(Record, frozen=True, kw_only=True):
    """One pinned key."""

    issuer: str
    key_id: str
    public_key: str
    policy_generation: int

    def __post_init__(self) -> None:
        check_identifier("issuer", self.issuer)
        check_identifier("key_id", self.key_id)
        check_range("policy_generation", self.policy_generation, 0, limits.INTEGER_MAX)
        if _PUBLIC_KEY.fullmatch(self.public_key) is None:
            raise InvalidRequest("public_key must be 64 lower-case hex digits")


class _File(Record, frozen=True, kw_only=True):
    """The whole file."""

    key: tuple[HostKey, ...]

    def __post_init__(self) -> None:
        check_count("key", len(self.key), 0, limits.KEYRING_KEYS_MAX)
        names = [(key.issuer, key.key_id) for key in self.key]
        for name in names:
            if names.count(name) > 1:
                raise InvalidRequest(f"the key {name[0]}/{name[1]} is pinned twice")


def load_keyring(path: Path) -> tuple[HostKey, ...]:
    """Return the keys of a file whose name ends in `.toml` or `.json`.

    Raises:
        PermissionMissing: somebody else could change the file; names the fix.
        Unavailable: it cannot be read.
        InvalidRequest: it is malformed, or pins a key twice; names the place.
    """
    data = read_trusted(path, limits.KEYRING_BYTES_MAX)
    try:
        return convert(_File, _parse(path, data)).key
    except InvalidRequest as error:
        raise InvalidRequest(f"{path}: {error.message}", fix="correct the file; no key was taken") from error


def _parse(path: Path, data: bytes) -> Any:
    if path.suffix == ".json":
        return canonical.parse(data, bytes_max=limits.KEYRING_BYTES_MAX)
    try:
        return tomllib.loads(data.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"not TOML: {error}") from error
