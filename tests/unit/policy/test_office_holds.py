"""The guide's policy, on the whole path: may edit in the editor, asks before sending, never the password manager."""

from __future__ import annotations

from importlib import resources

import msgspec
import pytest

from surehand.errors import PolicyDenied
from surehand.model.actions import SetValue
from surehand.model.scene import AppIdentity
from surehand.runtime.clock import SystemClock
from surehand.runtime.compose import open_engine
from surehand.runtime.config import PolicyChoice
from surehand.runtime.policies import Policies
from surehand.runtime.policy_source import first_ruling
from surehand.testing.memory import button, field
from surehand.testing.worlds import World

OFFICE = resources.files("surehand.cli").joinpath("presets", "office.toml").read_text("utf-8")


@pytest.fixture(params=["builtin", "rego", "cedar"])
def world(request, tmp_path):
    found = World([field("text", "Text", "old"), button("send", "Send"), button("bold", "Bold")], isolation="shared")
    path = tmp_path / "policy.toml"
    path.write_text(OFFICE.replace("exe:/usr/bin/mousepad", found.app.surface.app.key))
    ruling = first_ruling(PolicyChoice(engine=request.param, file=str(path)), open_engine)
    found.authority.policies = Policies(ruling, open_engine, SystemClock(), None)
    return found


def becomes(world, executable: str, title: str = "") -> None:
    identity = AppIdentity(key=f"exe:{executable}", pid=9, process_generation="1", uid=0, executable=executable)
    world.app.surface = msgspec.structs.replace(world.app.surface, app=identity, title=title)
    world.desk.forget(world.app.surface.surface_id)


async def test_the_editor_is_edited_without_a_question(world):
    reply = await world.act("op-1", "text", action=SetValue(value="new"))
    assert reply.status == "succeeded"
    assert (await world.act("op-2", "bold")).status == "succeeded"


async def test_sending_waits_for_a_person_even_in_the_editor(world):
    assert (await world.act("op-1", "send")).status == "approval_required"
    (pending,) = world.approvals.pending()
    assert "send_publish" in pending.presentation.categories
    assert "operation.claimed.v1" not in await world.types()


async def test_another_application_is_asked_about(world):
    becomes(world, "/usr/bin/gnome-calculator")
    assert (await world.act("op-1", "bold")).status == "approval_required"


@pytest.mark.parametrize(
    ("executable", "title"),
    [("/usr/bin/keepassxc", ""), ("/home/ann/apps/keepassxc", ""), ("/opt/other", "Passwords.kdbx - KeePassXC")],
)
async def test_the_password_manager_is_neither_seen_nor_touched(executable, title, world):
    target = await world.ref("bold")
    becomes(world, executable, title)
    with pytest.raises(PolicyDenied):
        await world.observe()
    reply = await world.act("op-1", target=target)
    assert reply.status == "refused"
    assert "operation.claimed.v1" not in await world.types()
