"""What the daemon says of itself to an operator: how the vault stands, which keys stop agents, who may answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from surehand.core.input import stop_key
from surehand.model.secrets import SecretBinding
from surehand.testing.worlds import World
from tests.secrets_kit import APP, CANARY, PERSON, SecretWorld
from tests.unit.runtime.test_people import Scene


async def facts(scene: Scene) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in (await scene.control("health"))["facts"]}


async def test_how_the_vault_stands_is_told_and_what_opens_it(tmp_path: Path) -> None:
    world = SecretWorld(tmp_path)
    scene = await Scene(world).open()
    assert (await facts(scene))["vault"]["detail"] == "none yet; `surehand secret set` makes one"
    await world.enrol()
    assert (await facts(scene))["vault"]["detail"] == "open, its key in: file; 1 secret"
    await world.secrets.put(PERSON, "other", SecretBinding(apps=(APP,)), bytearray(CANARY, "utf-8"))
    assert (await facts(scene))["vault"]["detail"].endswith("; 2 secrets")
    await world.secrets.lock(PERSON)
    vault = (await facts(scene))["vault"]
    assert (vault["ok"], vault["detail"], vault["fix"]) == (False, "the vault is locked", "surehand secret unlock")
    await scene.host.close()


async def test_a_host_that_keeps_no_secrets_says_nothing_of_a_vault() -> None:
    scene = await Scene(World()).open()
    assert "vault" not in await facts(scene)
    await scene.host.close()


async def test_the_keys_that_stop_agents_are_told_and_that_there_are_none() -> None:
    scene = await Scene(World()).open()
    assert stop_key.DEFAULT in (await facts(scene))["stop key"]["detail"]
    parts = scene.host.parts
    parts.config = msgspec.structs.replace(parts.config, stop_key=stop_key.OFF)
    assert "surehand halt" in (await facts(scene))["stop key"]["detail"]
    await scene.host.close()


async def test_who_has_no_key_is_told_a_command_that_works() -> None:
    scene = await Scene(World()).open()
    told = (await facts(scene))["approvers"]
    assert told["fix"].endswith("surehand keys create NAME --passphrase")
    await scene.host.close()
