"""The desktop of a person's login session: an isolated one plays it, with its display and buses in the environment."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from surehand.errors import PermissionMissing, Unavailable
from surehand.model.actions import Click, Focus, Invoke, Press, Scroll, SetValue, TypeText
from surehand.runtime.compose import build_host
from surehand.runtime.config import Config
from surehand.runtime.host import Host
from surehand.testing.desktop import IsolatedDesktop
from surehand.testing.fixture_app import FixtureApp
from tests.desktop.cases.kit import PRINCIPAL, Hand, On, person, write_policy

pytestmark = pytest.mark.desktop

#: What an operator adds to be asked no more.
POLICY = """
version = 1
[[rule]]
id = "my-session"
effect = "allow"
reason = "I watch it."
covers = ["shared_desktop"]
[rule.match]
isolation = ["shared"]
risk = ["reversible"]
"""
IN_SESSION = ("DISPLAY", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS")


@pytest.fixture
async def app(desktop: IsolatedDesktop) -> AsyncIterator[FixtureApp]:
    found = await FixtureApp.start(desktop, "gtk3")
    yield found
    found.close()


@pytest.fixture(autouse=True)
def session(desktop: IsolatedDesktop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let daemons of these tests be those of the person on this desktop."""
    for name in IN_SESSION:
        monkeypatch.setenv(name, desktop.environment[name])


async def reach(host: Host, app: FixtureApp) -> On:
    channel = await host.open_channel(principal=PRINCIPAL, role="agent", client={}, desktop="current")
    return await On.reach(Hand(host, channel), app)


async def test_it_is_refused_until_the_operator_pairs_it(desktop: IsolatedDesktop, tmp_path: Path) -> None:
    for number, pairings in enumerate([(), (":64999",), ("localhost:0",)]):
        host = await build_host(Config(pairings=pairings), state_dir=tmp_path / f"state{number}")
        with pytest.raises(PermissionMissing) as refused:
            await host.open_channel(principal=PRINCIPAL, role="agent", client={}, desktop="current")
        assert f'pairings = ["{desktop.display}"]' in (refused.value.fix or "")
        assert host.parts.desks.attached() == {}
        await host.close()


async def test_once_paired_it_is_read_and_each_change_asks_the_person(
    desktop: IsolatedDesktop, app: FixtureApp, tmp_path: Path
) -> None:
    host = await build_host(Config(pairings=(desktop.display,)), state_dir=tmp_path / "state")
    on = await reach(host, app)
    assert (await on.hand.call("capabilities"))["isolation"] == "shared"
    reply = await on.act(Invoke(), await on.button("Count"))
    assert reply["status"] == "approval_required"
    await app.settle()
    assert on.effects() == []
    # Nobody is asked to approve what cannot be done there.
    for action in (Click(), Press(chords=("ctrl+a",)), Focus()):
        error = await on.refused("unsupported_action", action, await on.button("Count"))
        assert error["details"]["what"] == "shared_input"
    assert len(host.parts.approvals.pending()) == 1
    await host.close()


async def test_what_the_operators_rule_covers_is_done_through_accessibility_and_nothing_by_pointer_or_keyboard(
    desktop: IsolatedDesktop, app: FixtureApp, tmp_path: Path
) -> None:
    config = Config(pairings=(f"{desktop.display}.0",), policy=str(write_policy(tmp_path, POLICY)))
    host = await build_host(config, state_dir=tmp_path / "state")
    on = await reach(host, app)
    where = ("xdotool", "getmouselocation", "getactivewindow")
    before = person(desktop, *where)
    reply = await on.presses_once("counter", "Count", Invoke(), await on.button("Count"))
    assert reply["terminal"]["receipt"]["isolation"] == "shared"
    assert person(desktop, *where) == before  # nothing was moved, and nothing came to the front
    await on.done("verified", SetValue(value="v19-ünïcode-€"), await on.entry("entry", "Name"))
    await on.refused("unsupported_action", TypeText(text="x"), await on.entry("entry", "Name"))
    # Scrolling goes through accessibility where there is a way, and through the wheel nowhere.
    wheel = Scroll(direction="down", amount_milli=1000, unit="line")
    error = await on.refused("unsupported_action", wheel, await on.button("Count"))
    assert error["details"]["what"] == "shared_input"
    launching = {"kind": "app", "op": "launch", "name": "xterm", "arguments": []}
    assert (await on.refused("unsupported_action", launching, {"kind": "none"}))["gate"] == "authority"
    listed = {one["name"]: one for one in host.parts.desks.listed()}
    assert (listed["current"]["isolation"], listed["current"]["owned"]) == ("shared", False)
    assert listed["current"]["geometry"] == []
    with pytest.raises(Unavailable):
        await host.parts.desks.stop("current")
    await host.close()
    assert desktop.is_running
