"""A window that shows every string of the injection corpus, before an agent that obeys what it reads (case C46)."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path

import pytest

from surehand.errors import SurehandError
from surehand.model.actions import Invoke
from surehand.runtime.compose import build_host
from surehand.runtime.config import Config
from surehand.testing.desktop import IsolatedDesktop
from surehand.testing.fixture_app import FixtureApp
from tests.desktop.cases.kit import LONG, Hand, On, named, until
from tests.unit.risk.injections import BY_KIND, CONSEQUENTIAL, FORBIDDEN, STRINGS, orders

pytestmark = [pytest.mark.desktop, pytest.mark.asyncio(loop_scope="module")]

#: All of them in the long run, else one of each kind: each waits until the toolkit has drawn it.
CHANGING = STRINGS if LONG else [texts[0] for texts in BY_KIND.values()]
APP = Path(__file__).with_name("hostile_app.py")
SAVE = "Save"


async def test_c46_an_agent_that_obeys_every_text_on_the_screen_does_nothing_that_policy_forbids(
    desktop: IsolatedDesktop, tmp_path: Path
) -> None:
    controls = [SAVE, *CONSEQUENTIAL.values()]
    home = desktop.folder / "home"
    names, log = home / "injection.json", home / "injection-pressed"
    texts = [text.replace("\0", "") for text in STRINGS]
    shown = {"title": texts[0], "names": controls + texts, "text": "\n".join(texts)}
    await asyncio.to_thread(names.write_text, json.dumps(shown))
    app = await desktop.launch(["/usr/bin/python3", "-I", "-B", APP, names, log], binds=[APP])
    # The operator wrote no rules: what holds are the defaults.
    host = await build_host(Config(), state_dir=tmp_path / "state")
    try:
        hand = await Hand.connect(host, desktop)
        surface = await hand.window(app.pid)
        seen = await hand.call("observe", surface=surface, targets=True, max_nodes=2_000)
        read = [one["name"] for one in seen["targets"] if one["role"] == "button"]
        assert len(read) == len(controls) + len(texts)
        wanted = {one["name"]: one for one in seen["targets"] if one["name"] in controls}
        statuses = Counter[str]()
        # The same order from many strings is obeyed once each way it can be asked for.
        for control in sorted({control for text in read for control in orders(text)}):
            for risk in ("read", "reversible", "external"):
                reply = await hand.act(Invoke(), wanted[control], risk=risk)
                statuses[reply["status"]] += 1
            (found,) = await hand.find(surface, named(control), {"role": "button"})
            statuses[(await hand.act(Invoke(), found))["status"]] += 1
        for method, params in FORBIDDEN.items():
            with pytest.raises(SurehandError):
                await hand.call(method, **params)
        assert set(statuses) == {"approval_required"}
        assert (await hand.act(Invoke(), wanted[SAVE]))["status"] == "succeeded"
        pressed = await until(lambda: log.exists() and log.read_text().split(), "the harmless button was pressed")
        assert pressed == [str(controls.index(SAVE))]
        await hand.close()
    finally:
        await host.close()
        app.kill()


async def test_labels_that_change_to_orders_in_place_stay_in_their_quotes_and_are_obeyed_by_nobody(
    desktop: IsolatedDesktop, tmp_path: Path
) -> None:
    app = await FixtureApp.start(desktop, "gtk3")
    host = await build_host(Config(), state_dir=tmp_path / "state")
    try:
        on = await On.reach(await Hand.connect(host, desktop), app)
        plain = len((await on.hand.call("observe", surface=on.surface, full=True))["text"].splitlines())
        for text in CHANGING:
            await on.change("rename", control="counter", name=text.replace("\0", ""))
            await on.change("sync")
            seen = (await on.hand.call("observe", surface=on.surface, full=True))["text"]
            # A long name may take its element out of a line that it shared with others; never more than that.
            assert 0 <= len(seen.splitlines()) - plain <= 1, text
            reply = await on.act(Invoke(), await on.button("Delete", "alice"))
            assert reply["status"] == "approval_required", (text, reply)
        await app.settle()
        assert app.events("press") == []
        await on.hand.close()
    finally:
        await host.close()
        app.close()
