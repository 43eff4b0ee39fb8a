"""Secrets by reference: how a reference is spelt, and to what an enrolled secret is bound (spec §3.2).

Nothing here holds a secret. A binding names applications by the identity that policy knows, exactly; origins narrow it
to pages; fields name, by role and name, fields that do not say of themselves that they hold a secret.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, Literal, NoReturn

import msgspec

from surehand import limits
from surehand.errors import InvalidRequest
from surehand.model.record import Record, check_count, check_range, check_text

Source = Literal["vault", "env"]

_NAME: Final = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{limits.SECRET_NAME_CHARS_MAX - 1}}}")
_VARIABLE: Final = re.compile(rf"[A-Za-z_][A-Za-z0-9_]{{0,{limits.SECRET_NAME_CHARS_MAX - 1}}}")
_SPELLING: Final[dict[str, re.Pattern[str]]] = {"vault": _NAME, "env": _VARIABLE}
#: What the kernel vouches for; a claimed or unproven identity binds nothing.
_IDENTITY: Final = re.compile(r"(?:exe|script):/.*", re.DOTALL)
_HOST: Final = r"(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*|\[[0-9a-f:.]+\])"
_ORIGIN: Final = re.compile(rf"(https?)://({_HOST})(?::([1-9]\d{{0,4}}))?")
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})
#: The least that Argon2id takes.
_MEMORY_BYTES_MIN: Final = 8 * 1024
_USUAL_PORTS: Final = {"https": 443, "http": 80}


def check_reference(name: str, reference: str) -> None:
    """Refuse anything but `vault:NAME` and `env:NAME`."""
    source, _, called = reference.partition(":")
    spelling = _SPELLING.get(source)
    if spelling is None or spelling.fullmatch(called) is None:
        # What is not a reference may be the secret itself, so it is not repeated.
        raise InvalidRequest(
            f"{name} is vault:NAME or env:NAME",
            fix=f"a NAME has 1..{limits.SECRET_NAME_CHARS_MAX} of A-Z a-z 0-9 . _ -",
        )


def check_name(source: Source, called: str) -> None:
    """Refuse a name that no reference of this source could spell."""
    if _SPELLING[source].fullmatch(called) is None:
        raise InvalidRequest(
            "that is no name of a secret", fix=f"a name has 1..{limits.SECRET_NAME_CHARS_MAX} of A-Z a-z 0-9 . _ -"
        )


def check_secret_text(text: str) -> None:
    """Refuse a secret that could not be entered as it is: a control character would act as a key.

    Raises:
        InvalidRequest: without a character of it.
    """
    try:
        size = len(text.encode("utf-8"))
    except UnicodeEncodeError:
        # The error knows the text, so it is not kept as a cause.
        raise InvalidRequest("the secret holds a lone surrogate") from None
    if not 1 <= size <= limits.SECRET_BYTES_MAX:
        raise InvalidRequest(f"a secret has 1..{limits.SECRET_BYTES_MAX} bytes")
    if any(ord(character) < 0x20 or 0x7F <= ord(character) < 0xA0 for character in text):
        raise InvalidRequest("the secret holds a control character", fix="a secret is one line of text")


class SecretField(Record, frozen=True, kw_only=True):
    """One field by its role and exact name."""

    role: str
    name: str

    def __post_init__(self) -> None:
        check_text("field role", self.role, limits.SECRET_BINDING_BYTES_MAX, empty=False)
        check_text("field name", self.name, limits.SECRET_BINDING_BYTES_MAX, empty=False)


class SecretBinding(Record, frozen=True, kw_only=True):
    """Where a secret may be used: in one of these applications and, where origins are given, at one of these origins.

    `fields` are further fields it may go into, though they show what is in them.
    """

    apps: tuple[str, ...]
    origins: tuple[str, ...] = ()
    fields: tuple[SecretField, ...] = ()

    def __post_init__(self) -> None:
        check_count("apps", len(self.apps), 1, limits.SECRET_BINDINGS_MAX)
        check_count("origins", len(self.origins), 0, limits.SECRET_BINDINGS_MAX)
        check_count("fields", len(self.fields), 0, limits.SECRET_BINDINGS_MAX)
        for app in self.apps:
            check_text("app", app, limits.SECRET_BINDING_BYTES_MAX)
            if "*" in app or _IDENTITY.fullmatch(app) is None:
                raise InvalidRequest(
                    "a secret is bound to exact identities of applications",
                    fix="exe:/PATH or script:/INTERPRETER:/PATH, as `surehand apps` shows them; no *",
                )
        for origin in self.origins:
            check_origin(origin)

    def told(self) -> str:
        """Return it as one line for people."""
        parts = [", ".join(self.apps)]
        if self.origins:
            parts.append(f"at {', '.join(self.origins)}")
        if self.fields:
            listed = ", ".join(f"{field.role} {field.name!r}" for field in self.fields)
            parts.append(f"also into fields that show it: {listed}")
        return " ".join(parts)


def check_origin(origin: str) -> None:
    """Refuse anything but a canonical origin that is encrypted or of this machine.

    Raises:
        InvalidRequest: saying how it is spelt.
    """
    check_text("origin", origin, limits.SECRET_BINDING_BYTES_MAX)
    found = _ORIGIN.fullmatch(origin)
    port = int(found[3]) if found is not None and found[3] else None
    if found is None or port == _USUAL_PORTS[found[1]] or (port is not None and port > 65_535):
        raise InvalidRequest(
            "an origin is spelt https://host or https://host:port, lower case, without the usual port",
            fix="such as https://example.org",
        )
    if found[1] == "http" and found[2] not in _LOOPBACK:
        raise InvalidRequest("a secret goes to no origin that is not encrypted", fix=f"https://{found[2]}")


class EnvSecret(Record, frozen=True, kw_only=True):
    """One variable of the daemon's environment that is a secret, as the operator's configuration lists it."""

    name: str
    bound_to: SecretBinding

    def __post_init__(self) -> None:
        check_name("env", self.name)


class BoundSecret(Record, frozen=True, kw_only=True):
    """A reference that is known, with its binding; never the secret."""

    reference: str
    bound_to: SecretBinding
    #: Since when it is the secret that it is, by the wall clock; 0 for one of the environment.
    changed_at_ms: int = 0


# --- the vault --------------------------------------------------------------------------------------------------

#: Where the key of a vault is: in a file beside the daemon's own keys, in a person's head, in the desktop's keyring.
VaultKeyKind = Literal["file", "passphrase", "keyring"]


class VaultPassphrase(Record, frozen=True, kw_only=True):
    """How a passphrase becomes a vault's key (Argon2id)."""

    ops: int
    memory_bytes: int
    salt: str

    def __post_init__(self) -> None:
        check_range("ops", self.ops, 1, limits.PASSPHRASE_OPS_MAX)
        check_range("memory_bytes", self.memory_bytes, _MEMORY_BYTES_MIN, limits.PASSPHRASE_MEMORY_BYTES_MAX)


class VaultHead(msgspec.Struct, frozen=True):
    """What a vault says of itself before its key is there; not proven."""

    vault_id: str
    key: VaultKeyKind
    passphrase: VaultPassphrase | None


class OpenedVault(msgspec.Struct, frozen=True):
    """What is in a vault whose seal held. `generation` grows with every change; `seal` names exactly this content."""

    vault_id: str
    generation: int
    seal: str
    secrets: dict[str, BoundSecret]


class HeldSecret:
    """A secret between the vault and the adapter that enters it, in one buffer that is overwritten afterwards.

    No text form, copy or pickle of it exists. `reveal` makes a text of it, which Python cannot overwrite: it is asked
    for where the text is handed on, and nowhere else.
    """

    __slots__ = ("_buffer", "may_show", "on_entering")

    def __init__(
        self, buffer: bytearray, *, may_show: bool = False, on_entering: Callable[[], None] = lambda: None
    ) -> None:
        self._buffer = buffer
        #: Whether it may go into a field that shows what is in it.
        self.may_show = may_show
        #: Called when the line is crossed behind which the field may hold it.
        self.on_entering = on_entering

    def __repr__(self) -> str:
        return "HeldSecret()"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not copied")

    def reveal(self) -> str:
        """Return it.

        Raises:
            InvalidRequest: it was wiped, or is no text that can be entered.
        """
        try:
            text = self._buffer.decode("utf-8")
        except UnicodeDecodeError:
            raise InvalidRequest("the secret is not text") from None
        check_secret_text(text)
        return text

    def wipe(self) -> None:
        """Overwrite it."""
        self._buffer[:] = bytes(len(self._buffer))
        self._buffer.clear()
