"""Slow handlers, hung and dying applications: what was sent is never called failed, and happens once."""

from __future__ import annotations

import asyncio
import os

import pytest

from surehand import limits
from surehand.errors import SurehandError
from surehand.model.actions import Invoke, SetValue, Toggle
from surehand.testing.desktop import IsolatedDesktop
from surehand.testing.fixture_app import TOOLKITS, FixtureApp

from .atspi_stage import Stage, stage

pytestmark = pytest.mark.desktop

#: How long a handler blocks: beyond the time-out of a call; the whole 8 s of case C14 in the long run.
_BLOCK_MS = 8_000 if os.environ.get("SUREHAND_LONG") else limits.APP_CALL_MS_MAX + 400


@pytest.fixture(scope="module", params=TOOLKITS)
def app(request, desktop: IsolatedDesktop):
    running = asyncio.run(FixtureApp.start(desktop, request.param, scroll_rows=5, block_ms=_BLOCK_MS))
    yield running
    running.close()


@pytest.fixture
async def on(desktop: IsolatedDesktop, app: FixtureApp):
    async with stage(desktop, app) as ready:
        yield ready


@pytest.fixture(params=TOOLKITS)
async def mortal(request, desktop: IsolatedDesktop):
    """An application that may die in a test."""
    running = await FixtureApp.start(desktop, request.param, sections=["buttons", "text", "values"])
    async with stage(desktop, running) as ready:
        yield ready
    running.close()


async def _entry(on: Stage):
    if on.toolkit == "gtk3":
        return await on.find(None, where=lambda n: n.app_id == "name")
    return await on.find("Name", "text")


async def test_a_press_whose_handler_blocks_is_acknowledged_or_sent_and_runs_once(on: Stage):
    attempt = on.begin(Invoke(), await on.find("Slow", "button"))
    done = await on.actor.perform(attempt)
    assert done.status in {"done", "sent"}
    await on.app.wait_for("press_done", "slow", after=on.mark, timeout_s=_BLOCK_MS / 1000 + 5)
    await on.app.settle()
    assert on.effects() == [("press", "slow", "Slow"), ("press_done", "slow", None)]


async def test_a_text_whose_handler_blocks_is_sent_and_arrives_once(on: Stage):
    on.app.command("set_text", control="name", text="")
    on.app.command("arm", control="name", do={"cmd": "sleep", "ms": _BLOCK_MS})
    attempt = on.begin(SetValue(value="slow"), await _entry(on))
    done = await on.actor.perform(attempt)
    assert done.status == "sent"
    await on.app.run("ping", timeout_s=_BLOCK_MS / 1000 + 5)
    await on.app.settle()
    assert on.app.command("get", control="name") == "slow"
    assert [e for e in on.effects() if e[2] == "slow"] == [("text", "name", "slow")]


async def test_an_application_stopped_after_the_fence_has_it_sent_and_does_it_once_when_it_wakes(on: Stage):
    attempt = on.begin(Invoke(), await on.find("Count", "button"), on_enter=lambda _: on.app.stop())
    try:
        done = await on.actor.perform(attempt)
        assert done.status == "sent"
        assert on.effects() == []
    finally:
        on.app.resume()
    await on.app.wait_for("press", "counter", after=on.mark)
    await on.app.settle()
    assert on.effects() == [("press", "counter", "Count")]


async def test_a_control_that_opens_a_menu_inside_its_handler_is_not_waited_for(on: Stage):
    """Qt runs a menu inside the action; the acknowledgement comes when the menu closes."""
    button = await on.find("Options", where=lambda n: bool(n.actions) and n.role != "label")
    attempt = on.begin(Invoke(), button)
    started = asyncio.get_running_loop().time()
    done = await on.actor.perform(attempt)
    assert done.status == ("begun" if on.toolkit == "qt" else "done")
    assert asyncio.get_running_loop().time() - started < limits.APP_CALL_MS_MAX / 1000
    await on.app.settle()
    assert on.effects() == []


async def test_an_application_that_dies_in_the_handler_leaves_it_unknown(mortal: Stage):
    mortal.app.command("arm", control="name", do={"cmd": "die"})
    attempt = mortal.begin(SetValue(value="last words"), await _entry(mortal))
    done = await mortal.actor.perform(attempt)
    assert done.status == "unknown"
    await mortal.app.process.wait(5)
    assert len(mortal.effects()) == 1


async def test_an_application_that_dies_after_the_acknowledgement_is_not_called_failed(mortal: Stage):
    attempt = mortal.begin(Invoke(), await mortal.find("Crash", "button"))
    done = await mortal.actor.perform(attempt)
    assert done.status in {"done", "unknown"}
    await mortal.app.process.wait(5)
    assert mortal.effects() == [("press", "crash", "Crash")]


async def test_an_application_that_died_before_is_refused_with_its_type(mortal: Stage):
    button = await mortal.find("Count", "button")
    attempt = mortal.begin(Invoke(), button)
    mortal.app.kill()
    await mortal.app.process.wait(5)
    async with asyncio.timeout(3):
        with pytest.raises(SurehandError) as caught:
            await mortal.actor.perform(attempt)
    assert not attempt.entered
    assert caught.value.code in {"backend_unavailable", "target_not_found", "window_not_found", "stale_target"}
    assert caught.value.retry_safe


async def test_an_application_killed_between_fence_and_call_has_no_effect_or_an_unknown_one(mortal: Stage):
    attempt = mortal.begin(Invoke(), await mortal.find("Count", "button"), on_enter=lambda _: mortal.app.kill())
    done = await mortal.actor.perform(attempt)
    assert done.status in {"no_effect", "unknown"}
    assert mortal.effects() == []


async def test_replacing_the_whole_tree_inside_the_handler_is_still_one_press(mortal: Stage):
    mortal.app.command("arm", control="counter", do={"cmd": "replace_tree"})
    done = await mortal.act(Invoke(), await mortal.find("Count", "button"))
    assert done.status in {"done", "sent", "unknown"}
    assert mortal.effects() == [("press", "counter", "Count")]


async def test_a_toggle_whose_handler_blocks_is_not_failed(mortal: Stage):
    mortal.app.command("arm", control="switch", do={"cmd": "sleep", "ms": limits.APP_CALL_MS_MAX + 300})
    attempt = mortal.begin(Toggle(to=True), await mortal.find("Wi-Fi"))
    done = await mortal.actor.perform(attempt)
    # GTK 3 acknowledges before it acts, the others after.
    assert done.status == ("done" if mortal.toolkit == "gtk3" else "sent")
    await mortal.app.run("ping")
    await mortal.app.settle()
    assert mortal.effects() == [("toggle", "switch", True)]


async def test_a_modal_dialog_opened_by_a_press_comes_up_once(mortal: Stage):
    done = await mortal.act(Invoke(), await mortal.find("Open dialog", "button"))
    assert done.status == "done"
    assert mortal.effects() == [("press", "open-dialog", "Open dialog"), ("dialog", "dialog", "opened")]
    assert len(await mortal.surfaces()) == 2
