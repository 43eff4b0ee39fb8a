"""The policy of a whole host: read where the operator keeps it, told on the control socket, and seen to hold."""

from __future__ import annotations

import contextlib
import json

import pytest

from surehand import limits
from surehand.errors import InvalidRequest
from surehand.runtime import compose, config
from tests import policy_engines

#: The first test that wants OPA may have to wait until it is built, once on a machine.
pytestmark = pytest.mark.timeout(600)
DENYING = 'version = 1\n[[rule]]\nid = "no"\neffect = "deny"\nreason = "r"\n'


@contextlib.asynccontextmanager
async def hosting(folder, text: str = ""):
    folder.chmod(0o700)
    path = folder / "config.toml"
    path.write_text(text)
    host = await compose.build_host(config.load(path), state_dir=folder / "state", denied_apps="")
    try:
        yield host
    finally:
        await host.close()


async def channel(host, role):
    return await host.open_channel(principal="uid:0", role=role, client={}, desktop=None)


async def test_a_policy_beside_the_configuration_holds_and_is_read_again(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "POLICY_LOOK_MS", 0)
    policy = tmp_path / "policy.toml"
    policy.write_text(DENYING)
    async with hosting(tmp_path) as host:
        control = await channel(host, "control")
        found = await host.call(control, "policy", {})
        assert (found["engine"], found["file"], found["generation"], found["closed"]) == (
            "builtin",
            str(policy),
            1,
            None,
        )
        policy.write_text(DENYING + "\n")
        assert (await host.call(control, "policy", {}))["generation"] == 2
        policy.write_text("version = ")
        broken = await host.call(control, "policy.reload", {})
        assert (broken["reloaded"], broken["generation"]) == (False, 2)
        assert "line 1" in broken["reload_failed"]
        agent = await channel(host, "agent")
        assert (await host.call(agent, "doctor", {}))["policy_reload_failed"] is True
        shown = await host.call(control, "audit.show", {"type": "policy.reload_failed.v1"})
        assert "line 1" in shown["events"][0]["payload"]["reason"]


@pytest.mark.parametrize("method", ["policy", "policy.reload"])
async def test_an_agent_can_neither_see_nor_reload_the_policy(method, tmp_path):
    async with hosting(tmp_path) as host:
        with pytest.raises(InvalidRequest):
            await host.call(await channel(host, "agent"), method, {})


@pytest.mark.parametrize("engine", ["rego", "cedar"])
async def test_an_engine_in_process_is_chosen_by_the_configuration(engine, tmp_path):
    (tmp_path / "rules.toml").write_text(DENYING)
    text = f'[policy]\nengine = "{engine}"\nfile = {json.dumps(str(tmp_path / "rules.toml"))}\n'
    async with hosting(tmp_path, text) as host:
        found = await host.call(await channel(host, "control"), "policy", {})
        assert found["engine"] == engine
        assert found["revision"].startswith(f"{engine}:")
        assert found["closed"] is None
        assert "in process" in found["answers"]


async def test_an_opa_server_is_chosen_by_the_configuration(tmp_path):
    if policy_engines.opa_program() is None:
        pytest.skip("no opa on PATH, and no Go that could build it")
    with policy_engines.opa_server() as opa:
        text = f'[policy]\nengine = "opa"\nunix_socket = "{opa.socket_path}"\n'
        async with hosting(tmp_path, text) as host:
            control = await channel(host, "control")
            assert "OPA answers" in (await host.call(control, "policy", {}))["answers"]
            opa.process.kill()
            opa.process.wait()
            assert "unavailable" in (await host.call(control, "policy", {}))["fails"]


async def test_a_policy_that_is_only_tried_is_told_beside_the_one_in_force(tmp_path):
    (tmp_path / "rules.toml").write_text(DENYING)
    text = f'[policy]\nmode = "shadow"\nfile = {json.dumps(str(tmp_path / "rules.toml"))}\n'
    async with hosting(tmp_path, text) as host:
        found = await host.call(await channel(host, "control"), "policy", {})
        assert (found["file"], found["shadow"]["agreed"]) == (None, 0)


async def test_a_host_that_started_without_a_policy_finds_the_one_that_is_put_beside_its_configuration(tmp_path):
    tmp_path.chmod(0o700)
    policy = tmp_path / "policy.toml"
    loaded = config.load(tmp_path / "config.toml")
    host = await compose.build_host(loaded, state_dir=tmp_path / "state", denied_apps="", policy_beside=policy)
    try:
        control = await channel(host, "control")
        assert (await host.call(control, "policy", {}))["file"] is None
        policy.write_text(DENYING)
        assert (await host.call(control, "policy.reload", {}))["file"] == str(policy)
    finally:
        await host.close()


async def test_a_policy_that_is_only_tried_is_not_replaced_by_one_beside_the_configuration(tmp_path):
    (tmp_path / "rules.toml").write_text(DENYING)
    (tmp_path / "policy.toml").write_text(DENYING)
    text = f'[policy]\nmode = "shadow"\nfile = {json.dumps(str(tmp_path / "rules.toml"))}\n'
    async with hosting(tmp_path, text) as host:
        found = await host.call(await channel(host, "control"), "policy.reload", {})
        assert found["file"] is None
