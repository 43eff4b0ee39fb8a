"""The fixture applications do what tests rely on: they log what reached them, and nothing that only commands did."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from surehand.errors import Timeout, Unavailable
from surehand.testing.desktop import IsolatedDesktop
from surehand.testing.fixture_app import TOOLKITS, FixtureApp

pytestmark = pytest.mark.desktop

_PEOPLE = ["alice", "bob", "carol", "dave"]


@pytest.fixture(scope="module", params=TOOLKITS)
def app(request, desktop: IsolatedDesktop):
    running = asyncio.run(FixtureApp.start(desktop, request.param, scroll_rows=20))
    yield running
    running.close()


def test_every_line_of_the_log_is_numbered_and_in_order(app):
    app.command("mark", text="one")
    app.sync()
    everything = app.events("command") + app.events()
    assert sorted(entry.seq for entry in everything) == list(range(1, len(everything) + 1))
    assert [e.t_ns for e in app.events()] == sorted(e.t_ns for e in app.events())


def test_commands_change_the_application_and_count_as_no_event(app):
    mark = app.mark()
    app.command("set_text", control="name", text="Grüße €")
    app.command("set", control="check", value=True)
    app.command("set", control="slider", value=42)
    app.command("set", control="colour", value="blue")
    app.command("set", control="tabs", value="Two")
    app.command("rename", control="pay", name="Pay 9999")
    app.command("enable", control="early")
    app.sync()
    values = {name: app.command("get", control=name) for name in ("name", "check", "slider", "colour", "tabs", "pay")}
    assert values == {
        "name": "Grüße €", "check": True, "slider": 42, "colour": "blue", "tabs": "Two", "pay": "Pay 9999",
    }  # fmt: skip
    assert [e for e in app.events(after=mark) if e.event not in {"focus", "window_focus"}] == []
    app.command("rename", control="pay", name="Pay 10")


def test_random_changes_depend_on_the_seed_only(app):
    app.command("rows_set", names=_PEOPLE)
    first = app.command("random_mutation", seed=7, count=60)
    app.sync()
    app.command("rows_set", names=_PEOPLE)
    assert app.command("random_mutation", seed=7, count=60) == first
    assert len(set(first)) > 8
    app.command("replace_tree")
    app.command("rows_set", names=_PEOPLE)
    app.sync()


def test_the_stubborn_entry_keeps_its_text(app):
    app.command("set_text", control="stubborn", text="new")
    app.sync()
    assert app.command("get", control="stubborn") == "cannot change"


def test_an_unknown_command_is_refused_and_the_application_lives(app):
    with pytest.raises(ValueError, match="unknown command"):
        app.command("nonsense")
    assert app.command("ping")["toolkit"] == app.toolkit


def test_windows_and_dialogs_open_and_close(app):
    for _ in range(2):
        app.command("dialog_open")
        app.command("window_open")
        app.sync()
        app.command("dialog_close")
        app.command("window_close")
        app.sync()
    assert app.process.returncode is None


def test_the_churning_status_line_runs_at_its_rate_and_stops(app):
    before = app.command("get", control="clock")
    app.command("churn", rate_hz=200)
    app.command("after", ms=200)
    app.command("churn", rate_hz=0)
    stopped = app.command("get", control="clock")
    app.command("after", ms=50)
    assert before != stopped
    assert app.command("get", control="clock") == stopped


async def test_a_hanging_application_answers_nothing_and_its_log_stays_readable(app):
    app.command("hang", ms=700)
    with pytest.raises(Timeout):
        await app.run("ping", timeout_s=0.2)
    assert app.events("ready")
    assert (await app.run("ping"))["toolkit"] == app.toolkit


@pytest.mark.parametrize("toolkit", [*TOOLKITS, "tk"])
async def test_a_killed_application_is_told_from_a_slow_one(desktop: IsolatedDesktop, toolkit):
    app = await FixtureApp.start(desktop, toolkit, sections=["buttons"])
    app.stop()
    with pytest.raises(Timeout):
        await app.run("ping", timeout_s=0.2)
    os.kill(app.pid, signal.SIGKILL)
    await app.process.wait(5)
    with pytest.raises(Unavailable):
        await app.run("ping")
    app.close()


async def test_exit_ends_the_application_with_its_code(desktop: IsolatedDesktop):
    app = await FixtureApp.start(desktop, "gtk3", sections=["buttons"])
    app.command("exit", code=7)
    assert await app.process.wait(5) == 7
    app.close()
