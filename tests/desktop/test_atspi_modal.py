"""Handlers that run a loop of their own inside the act (Qt's `exec`): begun is said, and verified only what was read."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from surehand import limits
from surehand.testing.desktop import IsolatedDesktop
from surehand.testing.fixture_app import FixtureApp
from tests.desktop.cases.conftest import hand, host  # noqa: F401 - fixtures
from tests.desktop.cases.kit import Hand, On, appears, named

pytestmark = [pytest.mark.desktop, pytest.mark.asyncio(loop_scope="module")]

_PRESS = ("press", "menu", "New")
_OPENED = ("dialog", "dialog", "opened")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def on(hand: Hand, desktop: IsolatedDesktop) -> AsyncIterator[On]:  # noqa: F811 - a fixture
    running = await FixtureApp.start(desktop, "qt", sections=["menus", "choices"])
    yield await On.reach(hand, running)
    running.close()


async def invoke_new(on: On, do: dict[str, Any], **options: Any) -> dict[str, Any]:
    """Run the menu item, whose handler is called inside the act, and have it do something."""
    item = {"role": "menuitem"}, named("New")
    if not await on.find(*item, {"state": {"showing": True}}):
        showing = appears(*item, {"state": {"showing": True}})
        await on.done("verified", {"kind": "perform", "name": "ShowMenu"}, await on.one(named("File")), **_to(showing))
    await on.change("arm", control="menu", do=do)
    return await on.act({"kind": "invoke"}, await on.one(*item), **options)


def _to(verification: dict[str, Any]) -> dict[str, Any]:
    return {"verification": verification}


@pytest.mark.parametrize("asked", [True, False])
async def test_a_dialog_that_runs_inside_the_press_is_no_unknown_end(on: On, asked: bool) -> None:
    expected = _to(appears(named("Are you sure?"))) if asked else {}
    reply = await invoke_new(on, {"cmd": "run_dialog"}, **expected)
    assert reply["status"] == "succeeded", reply
    receipt = reply["terminal"]["receipt"]
    assert receipt["effect"] == ("verified" if asked else "executed_unverified")
    assert receipt["warnings"] == ("handler_running",)
    assert on.effects() == [_PRESS, _OPENED]
    # The dialog is answered while the handler still runs.
    dialog = On(on.hand, on.app, await on.hand.window(on.app.pid, "Question"))
    await dialog.done("executed_unverified", {"kind": "invoke"}, await dialog.button("OK"))
    await on.app.wait_for("ran", after=dialog.mark)
    assert [one for one in dialog.effects() if one[0] == "press"] == [("press", "dialog-ok", "OK")]


async def test_a_window_that_opens_by_itself_while_the_handler_runs_verifies_nothing(on: On) -> None:
    loop = {"cmd": "run_loop", "ms": limits.ACTION_ACK_GRACE_MS + 300, "window": True}
    try:
        reply = await invoke_new(on, dict(loop))
        assert reply["terminal"]["receipt"]["effect"] == "executed_unverified"
        await on.hand.window(on.app.pid, "Second window")
        await on.app.wait_for("ran", after=on.mark)
        assert on.effects() == [_PRESS, ("ran", "menu", "run_loop")]
    finally:
        await on.change("window_close")


async def test_a_handler_that_hangs_and_opens_nothing_stays_unknown(on: On) -> None:
    reply = await invoke_new(on, {"cmd": "sleep", "ms": limits.APP_CALL_MS_MAX + 400})
    assert (reply["status"], reply["terminal"]["receipt"]["effect"]) == ("outcome_unknown", "unknown")
    assert "warnings" not in reply["terminal"]["receipt"]
    await on.app.run("ping")
    assert on.effects() == [_PRESS]


async def test_a_combo_box_of_qt_is_chosen_from_by_opening_it_and_clicking_the_option(on: On) -> None:
    """What the refusal of `select_option` says to do instead."""
    combo = await on.one({"role": "combobox"}, {"value": {"text": "red"}})
    error = await on.refused("unsupported_action", {"kind": "select_option", "option": "blue"}, combo)
    assert error["fix"] == "expand it (or invoke its button), then click the option"
    shows = ({"role": "listitem"}, named("blue"), {"state": {"showing": True}})
    await on.done("verified", {"kind": "expand", "to": True}, combo, verification=appears(*shows))
    takes = {"kind": "appears", "query": {"filters": [{"role": "combobox"}, {"value": {"text": "blue"}}]}}
    await on.done("verified", {"kind": "click"}, await on.one(*shows), verification=takes)
    assert on.effects() == [("select", "colour", "blue")]
