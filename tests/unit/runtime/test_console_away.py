"""What the daemon makes of a console page: its port, the browsers that show it, and windows that claim to (spec §6.2)."""

from __future__ import annotations

import os
from typing import Any

import msgspec
import pytest

from surehand import limits
from surehand.core.policy.own import leads_to
from surehand.errors import InvalidRequest, PolicyDenied, TooLarge
from surehand.model.actions import App, Navigate, Open, Paste, SetValue, Tab, TypeText
from surehand.runtime.attending import Attending, line_of
from surehand.runtime.params import Console
from surehand.testing.worlds import World

PORT = 47_001
ON = frozenset({PORT})


@pytest.mark.parametrize(
    "address",
    [
        f"http://localhost:{PORT}", f"http://localhost:{PORT}/enter?token=x", f"http://127.0.0.1:{PORT}/",
        f"http://[::1]:{PORT}/approvals", f"http://2130706433:{PORT}", f"http://pointed.example:{PORT}/",
        f"HTTP://LOCALHOST:{PORT}", f"  http://localhost:{PORT}", f"http://user@localhost:{PORT}/",
        f"view-source:http://localhost:{PORT}/", f"ws://localhost:{PORT}/events", "http://[::1",
    ],
)  # fmt: skip
def test_no_action_leads_to_the_page(address: str) -> None:
    for action in (
        Open(uri=address),
        Navigate(url=address),
        Tab(op="open", url=address),
        App(op="launch", name="chromium", arguments=("--new-window", address)),
        TypeText(text=f"{address}\n", submit=True),
        Paste(text=f"see {address} there"),
        SetValue(value=address),
    ):
        if address == "http://[::1" and not isinstance(action, Open | Navigate | Tab):
            continue  # no address in a text
        assert leads_to(action, ON), action
        assert not leads_to(action, frozenset())


@pytest.mark.parametrize("typed", [f"localhost:{PORT}", f"127.0.0.1:{PORT}/x", f"[::1]:{PORT}", f"go to a.b:{PORT}."])
def test_an_address_that_is_typed_without_a_scheme_is_one(typed: str) -> None:
    assert leads_to(TypeText(text=typed), ON)


@pytest.mark.parametrize(
    "text",
    ["hello", "12:45", f"{PORT}", f"x:{PORT}1", "http://localhost:80/", "a:b:c", "https://example.com", ":" * 9000],
)
def test_what_leads_elsewhere_is_let_alone(text: str) -> None:
    assert not leads_to(TypeText(text=text), ON)
    assert not leads_to(SetValue(value=text), ON)
    assert not leads_to(App(op="launch", name="x", arguments=(text[:1000],)), ON)


def test_a_page_and_its_browsers_are_out_of_reach_until_its_session_ends() -> None:
    attending = Attending()
    own = attending.come("s1", "1")
    assert attending.ports == frozenset()

    shown = attending.shows("s1", PORT, (os.getpid(),))
    assert shown == own | line_of(os.getpid())
    assert attending.ports == {PORT}
    # What it tells next stands instead, and another's does not go with it.
    attending.come("s2", "1")
    attending.shows("s2", PORT + 1, ())
    assert attending.shows("s1", PORT, ()) == own
    assert attending.go("s1") == frozenset()
    assert attending.ports == {PORT + 1}


def test_as_many_browsers_as_may_be_told_and_no_more() -> None:
    Console(port=PORT, pids=tuple(range(1, limits.CONSOLE_PIDS_MAX + 1)))
    for wrong in (
        {"port": PORT, "pids": tuple(range(1, limits.CONSOLE_PIDS_MAX + 2))},
        {"port": 0},
        {"port": limits.COORDINATE_MAX + 1},
        {"port": PORT, "pids": (0,)},
    ):
        with pytest.raises((InvalidRequest, TooLarge)):
            Console(**wrong)


# --- what an agent may read -------------------------------------------------------------------------------------------


async def may_read(world: World, **facts: Any) -> bool:
    surface = world.app.surface
    identity = msgspec.structs.replace(surface.app, **{k: v for k, v in facts.items() if k == "pid"})
    seen = msgspec.structs.replace(surface, app=identity, **{k: v for k, v in facts.items() if k != "pid"})
    try:
        await world.authority.check_read(world.session, seen)
    except PolicyDenied:
        return False
    return True


async def test_of_two_processes_of_one_program_only_the_one_that_shows_the_page_is_closed() -> None:
    world = World()
    assert await may_read(world, pid=41, title="New tab")
    world.facts.attend(frozenset({42}), ON)
    world.session.read_decisions.clear()
    # What was decided about the one first is not kept for the other.
    assert await may_read(world, pid=41, title="New tab")
    assert not await may_read(world, pid=42, title="New tab")
    assert await may_read(world, pid=41, title="New tab")


async def test_a_process_with_a_window_that_claims_to_be_the_page_is_closed_whole_while_there_is_one() -> None:
    world = World()
    claim = "Approvals - Surehand console - Chromium"
    assert not await may_read(world, pid=43, title=claim)
    # Without a page it is that window's own business.
    assert await may_read(world, pid=43, title="")
    world.facts.attend(frozenset(), ON)
    assert await may_read(world, pid=43, title="")
    assert not await may_read(world, pid=43, title=claim)
    assert not await may_read(world, pid=43, title="")
    assert await may_read(world, pid=44, title="")
    world.facts.attend(frozenset(), frozenset())
    assert await may_read(world, pid=43, title="")


@pytest.mark.parametrize("title", ["surehand console", "SUREHAND CONSOLE", "(3) Approvals - Surehand console"])
async def test_titles_that_claim(title: str) -> None:
    assert not await may_read(World(), title=title)


@pytest.mark.parametrize("title", ["My Surehand console notes", "surehand", "console"])
async def test_titles_that_do_not(title: str) -> None:
    assert await may_read(World(), title=title)
