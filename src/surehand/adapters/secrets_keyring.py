"""The vault's key in the desktop's Secret Service (GNOME Keyring, KWallet), where there is one (spec §7).

Holds one item per vault, and nothing but its key. Never makes the service ask a person: what is locked there stays so,
and is said. The key crosses the session bus as it is, which only programs of the same user can listen on; they could
ask the service for it as well.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final, Self

from dbus_fast import Message, MessageType, Variant
from dbus_fast.aio import MessageBus
from dbus_fast.errors import DBusError

from surehand import limits
from surehand.errors import Unavailable

_NAME: Final = "org.freedesktop.secrets"
_PATH: Final = "/org/freedesktop/secrets"
_SERVICE: Final = "org.freedesktop.Secret.Service"
_COLLECTION: Final = "org.freedesktop.Secret.Collection"
_ITEM: Final = "org.freedesktop.Secret.Item"
_PROPERTIES: Final = "org.freedesktop.DBus.Properties"
_NOTHING: Final = "/"
_KEY_HEX_CHARS: Final = 64


class Keyring:
    """The Secret Service of one session bus.

    Args:
        address: Of the bus.
    """

    def __init__(self, address: str) -> None:
        self._address = address

    async def is_open(self) -> bool:
        """Say whether there is a service whose default collection is unlocked."""
        try:
            async with _Talk(self._address) as talk:
                await talk.collection()
        except Unavailable:
            return False
        return True

    async def key(self, vault_id: str) -> bytearray:
        """Return the key of a vault.

        Raises:
            Unavailable: no service, it is locked, or it has no key of this vault.
        """
        async with _Talk(self._address) as talk:
            session = await talk.session()
            unlocked, locked = await talk.ask(_PATH, _SERVICE, "SearchItems", "a{ss}", _attributes(vault_id))
            if not unlocked:
                raise _unavailable("the keyring is locked" if locked else "the keyring has no key of this vault")
            [secret] = await talk.ask(unlocked[0], _ITEM, "GetSecret", "o", session)
            return _read(bytes(secret[2]))

    async def keep(self, vault_id: str, key: bytearray) -> None:
        """Keep the key of a new vault.

        Raises:
            Unavailable: no service, it is locked, or it would ask a person first.
        """
        async with _Talk(self._address) as talk:
            session, collection = await talk.session(), await talk.collection()
            properties = {
                f"{_ITEM}.Label": Variant("s", "Surehand vault"),
                f"{_ITEM}.Attributes": Variant("a{ss}", _attributes(vault_id)),
            }
            secret = [session, b"", key.hex().encode(), "text/plain"]
            item, _ = await talk.ask(
                collection,
                _COLLECTION,
                "CreateItem",
                "a{sv}(oayays)b",
                properties,
                secret,
                True,
            )
            if item == _NOTHING:
                raise _unavailable("the keyring wants to ask a person first")


class _Talk:
    """One connection to the bus, for one errand."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._bus: Any = None

    async def __aenter__(self) -> Self:
        try:
            async with asyncio.timeout(limits.KEYRING_MS_MAX / 1000):
                self._bus = await MessageBus(bus_address=self._address).connect()
        except (OSError, EOFError, DBusError, ValueError) as error:
            raise _unavailable("the session bus does not answer") from error
        return self

    async def __aexit__(self, *_: object) -> None:
        self._bus.disconnect()

    async def session(self) -> str:
        """Open a session in which values cross the bus as they are."""
        _, path = await self.ask(_PATH, _SERVICE, "OpenSession", "sv", "plain", Variant("s", ""))
        return str(path)

    async def collection(self) -> str:
        """Return the default collection, which is unlocked."""
        [path] = await self.ask(_PATH, _SERVICE, "ReadAlias", "s", "default")
        if path == _NOTHING:
            raise _unavailable("the keyring has no default collection")
        [locked] = await self.ask(path, _PROPERTIES, "Get", "ss", _COLLECTION, "Locked")
        if locked.value:
            raise _unavailable("the keyring is locked")
        return str(path)

    async def ask(self, path: str, interface: str, member: str, signature: str, *body: Any) -> list[Any]:
        """Call and return the answer."""
        message = Message(
            destination=_NAME, path=path, interface=interface, member=member, signature=signature, body=list(body)
        )
        try:
            async with asyncio.timeout(limits.KEYRING_MS_MAX / 1000):
                reply = await self._bus.call(message)
        except (OSError, EOFError, DBusError, TimeoutError) as error:
            raise _unavailable("the keyring does not answer") from error
        if reply is None or reply.message_type is MessageType.ERROR:
            raise _unavailable(f"the keyring refused {member}: {getattr(reply, 'error_name', 'no answer')}")
        return list(reply.body)


def _attributes(vault_id: str) -> dict[str, str]:
    return {"application": "surehand", "vault": vault_id}


def _read(value: bytes) -> bytearray:
    try:
        key = bytearray.fromhex(value.decode("ascii"))
    except ValueError:
        key = bytearray()
    if len(value) != _KEY_HEX_CHARS or not key:
        raise _unavailable("what the keyring has is no vault key")
    return key


def _unavailable(what: str) -> Unavailable:
    return Unavailable(
        what,
        fix="unlock the desktop's keyring, in whose session the daemon has to run",
        details={"reason": "keyring"},
    )
