"""The vault's key in a Secret Service: on a real bus, a stand-in for the service with its states, and the real one where it is."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from dbus_fast import Message, MessageType, Variant
from dbus_fast.aio import MessageBus

from surehand import limits
from surehand.adapters.secrets_keyring import Keyring
from surehand.errors import Unavailable
from tests.desktop.cases.kit import until_so
from tests.secrets_kit import SecretWorld

VAULT, OTHER = "ab" * 16, "cd" * 16
KEY = bytes(range(32))
COLLECTION = "/org/freedesktop/secrets/collection/login"


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[str]:
    """A session bus of its own."""
    address = f"unix:path={tmp_path}/bus"
    argv = ["dbus-daemon", "--session", "--nofork", f"--address={address}", "--print-address"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as daemon:
        assert daemon.stdout is not None
        daemon.stdout.readline()
        yield address
        daemon.terminate()


class FakeSecretService:
    """Answers as the specification of the Secret Service says: GNOME Keyring needs a person to be locked or to ask."""

    def __init__(self) -> None:
        self.items: dict[str, tuple[dict[str, str], bytes]] = {}
        self.locked = self.asks = self.silent = self.absent = False
        self.default = COLLECTION
        self.said: list[str] = []

    def answer(self, message: Message) -> Message | bool | None:
        if (
            self.absent
            or message.destination != "org.freedesktop.secrets"
            or message.message_type is not MessageType.METHOD_CALL
        ):
            return None
        self.said.append(str(message.member))
        if self.silent:
            return True  # taken, and never answered
        signature, body = getattr(self, f"_{message.member}")(*message.body)
        return Message.new_method_return(message, signature, body)

    def _OpenSession(self, algorithm: str, _: Variant) -> tuple[str, list[Any]]:  # noqa: N802 - the bus's name
        assert algorithm == "plain"
        return "vo", [Variant("s", ""), "/session/1"]

    def _ReadAlias(self, name: str) -> tuple[str, list[Any]]:  # noqa: N802
        assert name == "default"
        return "o", [self.default]

    def _Get(self, interface: str, name: str) -> tuple[str, list[Any]]:  # noqa: N802
        assert (interface, name) == ("org.freedesktop.Secret.Collection", "Locked")
        return "v", [Variant("b", self.locked)]

    def _SearchItems(self, wanted: dict[str, str]) -> tuple[str, list[Any]]:  # noqa: N802
        found = [path for path, (attributes, _) in self.items.items() if attributes == wanted]
        return "aoao", [[], found] if self.locked else [found, []]

    def _GetSecret(self, _: str) -> tuple[str, list[Any]]:  # noqa: N802
        return "(oayays)", [["/session/1", b"", next(iter(self.items.values()))[1], "text/plain"]]

    def _CreateItem(self, properties: dict[str, Variant], secret: list[Any], _: bool) -> tuple[str, list[Any]]:  # noqa: N802
        if self.asks:
            return "oo", ["/", "/prompt/1"]
        self.items["/item/1"] = (properties["org.freedesktop.Secret.Item.Attributes"].value, bytes(secret[2]))
        return "oo", ["/item/1", "/"]


@asynccontextmanager
async def served(address: str) -> AsyncIterator[FakeSecretService]:
    service = FakeSecretService()
    connection = await MessageBus(bus_address=address).connect()
    connection.add_message_handler(service.answer)
    await connection.request_name("org.freedesktop.secrets")
    try:
        yield service
    finally:
        connection.disconnect()


async def test_a_key_that_is_kept_is_found_again_by_its_vault_alone(bus):
    async with served(bus) as service:
        keyring = Keyring(bus)
        assert await keyring.is_open()
        await keyring.keep(VAULT, bytearray(KEY))
        assert await keyring.key(VAULT) == bytearray(KEY)
        with pytest.raises(Unavailable, match="no key of this vault"):
            await keyring.key(OTHER)
        service.items["/item/1"] = (service.items["/item/1"][0], b"zz")
        with pytest.raises(Unavailable, match="no vault key"):
            await keyring.key(VAULT)


@pytest.mark.parametrize("state", ["locked", "no collection", "asks", "silent", "absent", "no bus"])
async def test_a_keyring_that_is_not_open_is_said_and_nobody_is_asked(bus, state, monkeypatch, tmp_path):
    monkeypatch.setattr(limits, "KEYRING_MS_MAX", 200)
    async with served(bus) as service:
        keyring = Keyring(f"unix:path={tmp_path}/none" if state == "no bus" else bus)
        service.locked, service.asks, service.silent = state == "locked", state == "asks", state == "silent"
        service.absent = state == "absent"  # what is asked is then no method of anybody
        if state == "no collection":
            service.default = "/"
        assert await keyring.is_open() is (state == "asks")
        for errand in (keyring.keep(VAULT, bytearray(KEY)), keyring.key(VAULT)):
            with pytest.raises(Unavailable) as refused:
                await errand
            assert refused.value.details == {"reason": "keyring"}
            assert KEY.hex() not in str(refused.value.to_value())
        assert not {"Prompt", "Unlock"} & set(service.said)


async def test_a_vault_has_its_key_in_the_keyring_where_that_is_open(bus, tmp_path):
    async with served(bus) as service:
        world = SecretWorld(tmp_path)
        world.secrets._keyring = Keyring(bus)
        await world.enrol()
        assert (await world.secrets.listed())["vault"] == {"key": "keyring", "state": "open"}
        assert not (tmp_path / "keys" / "vault.key").exists()
        world.new_secrets()._keyring = Keyring(bus)
        assert (await world.enter("op")).status == "succeeded"
        world.new_secrets()._keyring = Keyring(bus)
        service.locked = True
        assert (await world.enter("locked")).error["details"]["reason"] == "keyring"
        world.new_secrets()
        assert (await world.enter("elsewhere")).error["details"]["reason"] == "keyring"


@pytest.fixture
def real(bus: str, tmp_path: Path) -> Iterator[str]:
    """A bus with GNOME Keyring on it, unlocked."""
    if shutil.which("gnome-keyring-daemon") is None:
        pytest.skip("GNOME Keyring is not installed")
    environment = {
        **os.environ,
        "HOME": str(tmp_path),
        "XDG_RUNTIME_DIR": str(tmp_path),
        "DBUS_SESSION_BUS_ADDRESS": bus,
    }
    argv = ["gnome-keyring-daemon", "--unlock", "--components=secrets", "--foreground"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env=environment) as daemon:
        assert daemon.stdin is not None
        daemon.stdin.write(b"password")
        daemon.stdin.close()
        yield bus
        daemon.terminate()


async def test_a_real_keyring_keeps_and_gives_a_key(real):
    keyring = Keyring(real)
    await until_so(keyring.is_open, "the keyring is open")
    await keyring.keep(VAULT, bytearray(KEY))
    assert await keyring.key(VAULT) == bytearray(KEY)
    with pytest.raises(Unavailable, match="no key of this vault"):
        await keyring.key(OTHER)
