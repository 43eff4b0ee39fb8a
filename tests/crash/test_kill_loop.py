"""The daemon dies at any moment: nothing is done twice, no end is lost, none is invented (spec §5.3, §5.7; case C23).

The real daemon, a real desktop and a real application, whose log says what happened. Each operation leaves a trace of
its own: a text that holds its id, or one of a counted number of presses.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections import Counter
from typing import Any

import pytest

import surehand
from surehand.errors import SurehandError
from surehand.model.actions import Invoke, SetValue
from surehand.testing.desktop import IsolatedDesktop
from surehand.testing.fixture_app import FixtureApp
from tests.crash.daemon_kit import Daemon, check_history, look, targets_of

pytestmark = [pytest.mark.desktop, pytest.mark.asyncio(loop_scope="module")]

LONG = bool(os.environ.get("SUREHAND_LONG"))
KILLS = 300 if LONG else 10
#: From the first request of a life to its end; an operation takes some ten milliseconds.
_LIFE_S_MAX = 0.4
#: How often the application saw it, by what the journal says of it. Nothing here may end in any other way.
_DONE_ONCE = {"succeeded": (1, 1), "outcome_unknown": (0, 1), "nothing": (0, 0)}
#: What a client is told whose daemon died under it.
_BROKE = frozenset({"lost", "outcome_unknown", "backend_unavailable"})


class Loop:
    """A client that keeps acting, through lives and deaths of its daemon, with an id of its own for each effect."""

    def __init__(self, daemon: Daemon, desktop: IsolatedDesktop, app: FixtureApp) -> None:
        self.daemon = daemon
        self.desktop = desktop
        self.app = app
        self.told: dict[str, str] = {}
        self.last: dict[str, dict[str, Any]] = {}

    async def life(self, number: int, seconds: float) -> None:
        """Act from several tasks at once until the daemon is killed, `seconds` after it took the first request."""
        async with surehand.connect(desktop=self.desktop.name, start=False) as hand:
            targets = targets_of(await look(hand, self.app))
            loop = asyncio.get_running_loop()
            kill = loop.call_later(seconds, self.daemon.kill)
            try:
                await asyncio.gather(*(self._work(hand, number, what, target) for what, target in targets.items()))
            finally:
                kill.cancel()
            assert self.daemon.process is not None
            assert self.daemon.process.poll() is not None

    async def _work(self, hand: surehand.AsyncHand, life: int, what: str, target: surehand.Target) -> None:
        count = 0
        while True:
            count += 1
            name = f"{what}-{life}-{count}"
            action = SetValue(value=name) if what == "text" else Invoke()
            self.last[what] = {"name": name, "action": action}
            self.told[name] = "lost"
            try:
                result = await hand.act(action, target, operation_id=name)
            except SurehandError as error:
                self.told[name] = error.code
                if error.code in {"outcome_unknown", "backend_unavailable"}:
                    return
            else:
                self.told[name] = result.status

    async def after(self) -> None:
        """Retry the last of each kind with its own id, and with a new one, at the daemon's next life."""
        async with surehand.connect(desktop=self.desktop.name, start=False) as hand:
            targets = targets_of(await look(hand, self.app))
            for what, last in self.last.items():
                target = targets[what]
                status = await hand.status(last["name"])
                ended = status.get("terminal", {}).get("kind")
                before = self.happened()
                try:
                    result = await hand.act(last["action"], target, operation_id=last["name"])
                except SurehandError as error:
                    answer = error.code
                else:
                    answer = result.status
                if ended is not None:
                    # What had an end keeps it, and nothing happens again.
                    assert answer == ended, (last, status)
                    assert self.happened() == before
                else:
                    assert answer == "succeeded", (last, status, answer)
                self.told[last["name"]] = answer
                if ended == "outcome_unknown":
                    await self._again_with_a_new_id(hand, last, target)

    async def _again_with_a_new_id(
        self, hand: surehand.AsyncHand, last: dict[str, Any], target: surehand.Target
    ) -> None:
        before = self.happened()
        with pytest.raises(SurehandError) as caught:
            await hand.act(last["action"], target, operation_id=f"{last['name']}-again")
        assert caught.value.code == "reconcile_required"
        assert caught.value.details["operation_id"] == last["name"]
        assert self.happened() == before
        # Whoever looked may go on: presses of one button would otherwise never be possible again.
        if isinstance(last["action"], Invoke):
            name = f"{last['name']}-looked"
            fresh = targets_of(await look(hand, self.app))["press"]
            result = await hand.act(last["action"], fresh, operation_id=name, reconciles=last["name"])
            self.told[name] = result.status

    def happened(self) -> Counter[str]:
        """Return how often each text arrived, and how often the button was pressed, by the application's own word."""
        texts = Counter(event.value for event in self.app.events("text", "name") if event.value)
        return texts + Counter({"press": len(self.app.presses("counter"))})


async def test_the_daemon_is_killed_at_random_moments_and_nothing_happens_twice(
    daemon: Daemon, desktop: IsolatedDesktop, app: FixtureApp
) -> None:
    await app.run("focus", control="name")
    loop = Loop(daemon, desktop, app)
    chance = random.Random(20261130)  # noqa: S311 - reproducible, not secret
    daemon.start()
    for life in range(KILLS):
        await loop.life(life, chance.uniform(0.0, _LIFE_S_MAX))
        daemon.start()
        await loop.after()
    daemon.stop()

    verdict = daemon.verify()
    assert verdict["counts"]["unended"] == 0
    happened = loop.happened()
    histories = await daemon.operations()
    ended = {name: check_history(history) for name, history in histories.items()}
    presses = [0, 0]
    for name, said in loop.told.items():
        kind = ended.get(name, "nothing")
        low, high = _DONE_ONCE[kind]
        if name.startswith("text-"):
            assert low <= happened[name] <= high, (name, kind, happened[name])
        else:
            presses[0] += low
            presses[1] += high
        # What a client was told is what is on record; only that its connection broke may stand for any of them.
        assert said == kind or said in _BROKE or (kind == "nothing" and said not in _DONE_ONCE), (name, said, kind)
    assert presses[0] <= happened["press"] <= presses[1]
    # No operation is on record that nobody presented, but those that had to be refused.
    assert {name for name in ended if name not in loop.told and not name.endswith("-again")} == set()
    print(f"{KILLS} kills, {len(loop.told)} operations: {Counter(ended.values())}, {happened['press']} presses")  # noqa: T201
