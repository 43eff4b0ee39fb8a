"""A clock and an unread count change all the time: what is meant stays what is meant (spec §8.3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from surehand.testing.desktop import IsolatedDesktop
from surehand.testing.fixture_app import TOOLKITS, FixtureApp
from tests.desktop.cases.kit import LONG, Hand, On, named

pytestmark = [pytest.mark.desktop, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(1800 if LONG else 120)]

#: Sampled, most where an action is soon over: GTK 4 takes a third of a second for each.
ACTIONS = dict.fromkeys(TOOLKITS, 667) if LONG else {"gtk3": 30, "gtk4": 12, "qt": 18}
RATE_HZ = 20
#: How many actions one look at the window serves; meanwhile the status line has changed several times.
_ACTIONS_A_LOOK = 5


@pytest_asyncio.fixture(loop_scope="module", params=TOOLKITS)
async def churning(request: pytest.FixtureRequest, hand: Hand, desktop: IsolatedDesktop) -> AsyncIterator[On]:
    sections = ["buttons", "text", "values", "rows", "status"]
    running = await FixtureApp.start(desktop, request.param, sections=sections)
    on = await On.reach(hand, running)
    await on.focus_window()
    await on.change("churn", rate_hz=RATE_HZ)
    yield on
    running.close()


async def targets(on: On) -> dict[str, dict[str, Any]]:
    row = {"context": {"text": "carol", "match": "contains"}}
    return {
        "count": await on.button("Count"),
        "later": await on.one(named("Later"), {"role": "button"}),
        "open": await on.one(named("Open"), {"role": "button"}, row),
        "name": await on.entry("name", "Name"),
        "switch": await on.one(named("Wi-Fi")),
        "click": await on.button("Count"),
    }


async def test_refusals_are_rare_where_nothing_that_matters_changed(churning: On) -> None:
    on, told, wrong = churning, Counter[str](), []
    work = ("count", "open", "name", "switch", "click", "later")
    clock = await on.change("get", control="clock")
    seen: dict[str, dict[str, Any]] = {}
    for number in range(ACTIONS[on.app.toolkit]):
        if number % _ACTIONS_A_LOOK == 0:
            seen = await targets(on)
        what = work[number % len(work)]
        action, expected = _work(what, number)
        reply = await on.act(action, seen[what])
        told[reply["status"]] += 1
        if reply["status"] == "refused":
            wrong.append(reply["error"])
            continue
        await on.app.settle()
        happened = [one for one in on.effects() if one[2] != ""]
        assert happened == [expected], (what, reply)
    assert await on.change("get", control="clock") != clock
    refused = told["refused"]
    print(f"{on.toolkit}: {dict(told)}")  # noqa: T201 - the numbers of a long run are worth seeing
    assert refused * 100 <= told.total(), wrong[:5]
    assert set(told) <= {"succeeded", "refused"}, told


def _work(what: str, number: int) -> tuple[dict[str, Any], tuple[str, str, Any]]:
    """Return an action, and the one event that it leads to."""
    match what:
        case "name":
            text = f"text {number}"
            return {"kind": "set_value", "value": text}, ("text", "name", text)
        case "switch":
            to = number // 6 % 2 == 0
            return {"kind": "toggle", "to": to}, ("toggle", "switch", to)
        case "click":
            return {"kind": "click"}, ("press", "counter", "Count")
        case "open":
            return {"kind": "invoke"}, ("press", "row.open", "carol")
        case "later":
            return {"kind": "invoke"}, ("press", "later", "Later")
        case _:
            return {"kind": "invoke"}, ("press", "counter", "Count")
