"""What an operator asks about secrets on the control socket: enrol, list, remove, try, lock and unlock (spec §3.2).

None of these methods exists on the agent socket: an agent learns neither which secrets there are nor what they are
bound to. No answer here holds a secret.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from surehand import limits
from surehand.errors import Unavailable
from surehand.model.record import Record, check_text, to_value
from surehand.model.secrets import SecretBinding, VaultKeyKind, check_name, check_reference
from surehand.runtime import params as p
from surehand.runtime.parts import Parts
from surehand.runtime.secrets import Secrets
from surehand.runtime.session import Session

Method = Callable[[Parts, Session, Any], Awaitable[dict[str, Any]]]


class BeginVault(Record, frozen=True, kw_only=True):
    """A vault to make. `replace` gives up the one that is there, and what is in it."""

    key: VaultKeyKind | None = None
    passphrase: str | None = None
    replace: bool = False

    def __post_init__(self) -> None:
        if self.passphrase is not None:
            check_text("passphrase", self.passphrase, limits.PASSPHRASE_BYTES_MAX, empty=False)


class Unlock(Record, frozen=True, kw_only=True):
    """The passphrase of the vault, where it has one."""

    passphrase: str | None = None

    def __post_init__(self) -> None:
        if self.passphrase is not None:
            check_text("passphrase", self.passphrase, limits.PASSPHRASE_BYTES_MAX, empty=False)


class SecretName(Record, frozen=True, kw_only=True):
    """A secret of the vault."""

    name: str

    def __post_init__(self) -> None:
        check_name("vault", self.name)


class Enrolment(SecretName, frozen=True, kw_only=True):
    """A secret to keep, and where it may be used."""

    bound_to: SecretBinding
    value: str

    def __repr__(self) -> str:
        return f"Enrolment(name={self.name!r})"


class Trial(Record, frozen=True, kw_only=True):
    """A secret, and where it would be used: an application, and a window's place or an origin."""

    reference: str
    app: str = ""
    place: str = ""

    def __post_init__(self) -> None:
        check_reference("reference", self.reference)
        check_text("app", self.app, limits.SECRET_BINDING_BYTES_MAX)
        check_text("place", self.place, limits.SECRET_BINDING_BYTES_MAX)


def _of(parts: Parts) -> Secrets:
    if parts.gateway.secrets is None:
        raise Unavailable("this host keeps no secrets")
    return parts.gateway.secrets


@contextmanager
def _buffer(text: str | None) -> Iterator[bytearray | None]:
    """Yield a text's bytes in a buffer that is overwritten afterwards; the text itself Python keeps until it goes."""
    buffer = None if text is None else bytearray(text, "utf-8", "surrogatepass")
    try:
        yield buffer
    finally:
        if buffer is not None:
            buffer[:] = bytes(len(buffer))


async def secrets(parts: Parts, _: Session, __: p.Nothing) -> dict[str, Any]:
    """Say which secrets are enrolled and what they are bound to."""
    return await _of(parts).listed()


async def init(parts: Parts, session: Session, args: BeginVault) -> dict[str, Any]:
    """Make the vault."""
    with _buffer(args.passphrase) as passphrase:
        return await _of(parts).begin(session.principal, args.key, passphrase, replace=args.replace)


async def unlock(parts: Parts, session: Session, args: Unlock) -> dict[str, Any]:
    """Hold the vault's key."""
    with _buffer(args.passphrase) as passphrase:
        return await _of(parts).unlock(session.principal, passphrase)


async def lock(parts: Parts, session: Session, _: p.Nothing) -> dict[str, Any]:
    """Forget the vault's key."""
    return await _of(parts).lock(session.principal)


async def enrol(parts: Parts, session: Session, args: Enrolment) -> dict[str, Any]:
    """Keep a secret."""
    with _buffer(args.value) as value:
        kept = await _of(parts).put(session.principal, args.name, args.bound_to, value or bytearray())
    return {"secret": to_value(kept)}


async def remove(parts: Parts, session: Session, args: SecretName) -> dict[str, Any]:
    """Forget a secret."""
    await _of(parts).remove(session.principal, args.name)
    return {"name": args.name}


async def test(parts: Parts, _: Session, args: Trial) -> dict[str, Any]:
    """Say whether a secret opens, and whether it could be used somewhere."""
    return await _of(parts).test(args.reference, args.app, args.place)


SECRETS: Final[dict[str, tuple[type[Any], Method]]] = {
    "secrets": (p.Nothing, secrets),
    "secrets.init": (BeginVault, init),
    "secrets.unlock": (Unlock, unlock),
    "secrets.lock": (p.Nothing, lock),
    "secrets.set": (Enrolment, enrol),
    "secrets.remove": (SecretName, remove),
    "secrets.test": (Trial, test),
}
