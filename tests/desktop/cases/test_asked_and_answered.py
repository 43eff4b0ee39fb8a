"""Cases about policy and people (C47–C50), on a real application whose own log says what happened."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Self

import pytest
import pytest_asyncio

from surehand import limits
from surehand.errors import InvalidRequest, PolicyDenied
from surehand.model.actions import Invoke, SetValue
from surehand.model.approval import PendingApproval
from surehand.model.record import to_value
from surehand.runtime import compose
from surehand.runtime.compose import build_host
from surehand.runtime.config import load
from surehand.signing.keystore import KeyStore
from surehand.testing.desktop import IsolatedDesktop
from surehand.testing.fixture_app import FixtureApp
from surehand.testing.worlds import signed_answer
from tests.desktop.cases.kit import Hand, On, named, until, until_so

pytestmark = [pytest.mark.desktop, pytest.mark.asyncio(loop_scope="module")]

RULE = 'version = 1\n[[rule]]\nid = "{id}"\neffect = "{effect}"\nreason = "r"\n[rule.match]\n{match}\n'
ASK = RULE.format(id="ask", effect="require_approval", match='action = ["desktop.invoke", "desktop.set_value"]')
COUNT = (named("Count"), {"role": "button"})


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def app(desktop: IsolatedDesktop) -> AsyncIterator[FixtureApp]:
    made = await FixtureApp.start(desktop, "gtk3")
    yield made
    made.close()


class Operator:
    """A host under a policy file that a test writes, with an approver's key."""

    def __init__(self, folder: Path, policy: str) -> None:
        folder.chmod(0o700)
        self.policy = folder / "policy.toml"
        self.write(policy)
        self._config = folder / "config.toml"
        self._state = folder / "state"
        self._state.mkdir(mode=0o700)
        keys = KeyStore.open(self._state / compose.KEYS_NAME)
        keys.create_approver("ann")
        self._key = keys.approver("ann")
        self.host: Any = None

    def write(self, policy: str) -> None:
        draft = self.policy.with_suffix(".new")
        draft.write_text(policy)
        draft.chmod(0o600)
        draft.replace(self.policy)

    async def __aenter__(self) -> Self:
        self.host = await build_host(load(self._config), state_dir=self._state, policy_beside=self.policy)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.host.close()

    async def control(self, method: str, **params: Any) -> Any:
        channel = await self.host.open_channel(principal="uid:7", role="control", client={}, desktop=None)
        try:
            return await self.host.call(channel, method, params)
        finally:
            await self.host.close_channel(channel)

    @property
    def pending(self) -> list[PendingApproval]:
        found: list[PendingApproval] = self.host.parts.approvals.pending()
        return found

    async def answer(self, pending: PendingApproval, answer: Any = "approve") -> None:
        now = self.host.parts.clock.wall_ms()
        await self.control(
            "answer", answer=to_value(signed_answer(pending, answer, now_ms=now, key=self._key, approver="ann"))
        )


async def on_app(operator: Operator, desktop: IsolatedDesktop, app: FixtureApp) -> On:
    return await On.reach(await Hand.connect(operator.host, desktop), app)


async def test_c47_a_policy_that_is_broken_at_the_start_opens_nothing_until_it_is_mended(
    desktop: IsolatedDesktop, app: FixtureApp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "POLICY_LOOK_MS", 0)
    async with Operator(tmp_path, "version = 1\n[[rule]]\n") as operator:
        hand = await Hand.connect(operator.host, desktop)
        mark = app.mark()
        with pytest.raises(PolicyDenied, match="policy cannot be used"):
            await hand.call("surfaces")
        operator.write("version = 1\n")
        on = await on_app(operator, desktop, app)
        await on.presses_once("counter", "Count", Invoke(), await on.one(*COUNT))
        assert len(app.presses("counter", after=mark)) == 1


async def test_c47_a_policy_that_breaks_at_a_reload_opens_nothing_and_the_one_in_force_stays(
    desktop: IsolatedDesktop, app: FixtureApp, tmp_path: Path
) -> None:
    deny = RULE.format(id="no", effect="deny", match='action = ["desktop.invoke"]')
    async with Operator(tmp_path, deny) as operator:
        on = await on_app(operator, desktop, app)
        counter = await on.one(*COUNT)
        await on.refused("policy_denied", Invoke(), counter)
        for broken in ("version = ", "version = 9\n", deny.replace('"deny"', '"permit"'), "[[rule]]\n", "\x00"):
            operator.write(broken)
            assert (await operator.control("policy.reload"))["reloaded"] is False
            error = await on.refused("policy_denied", Invoke(), counter)
            assert error["details"]["rule"] == "no"


async def test_c48_one_yes_covers_a_form_as_it_was_shown_and_nothing_else(
    desktop: IsolatedDesktop, app: FixtureApp, tmp_path: Path
) -> None:
    async with Operator(tmp_path, ASK) as operator:
        on = await on_app(operator, desktop, app)
        name, counter = await on.entry("name", "Name"), await on.one(*COUNT)

        async def form(method: str, text: str) -> Any:
            steps = [
                await on.hand.request(SetValue(value=text), name, operation_id="form:0"),
                await on.hand.request(Invoke(), counter, operation_id="form:1"),
            ]
            return await on.hand.call(method, batch={"operation_id": "form", "steps": steps})

        asked = await form("plan", "ann")
        (pending,) = operator.pending
        assert asked["approval"]["approval_id"] == pending.approval_id
        assert [one["action"] for one in pending.presentation.parameters["steps"]] == [
            "desktop.set_value",
            "desktop.invoke",
        ]
        assert pending.expires_at_ms > pending.requested_at_ms
        await on.app.settle()
        assert on.effects() == []
        # Other words are another question: the first one is void, and a yes to it would be too.
        await form("plan", "bob")
        (other,) = operator.pending
        assert other.approval_id != pending.approval_id
        with pytest.raises(InvalidRequest, match="no such open question"):
            await operator.answer(pending)
        await operator.answer(other)
        # The yes covers the steps that were shown, and no other words under their names.
        eve = await on.hand.act(SetValue(value="eve"), name, operation_id="form:0")
        assert eve["status"] == "approval_required"
        on.mark = on.app.mark()
        done = await form("batch", "bob")
        assert [one["status"] for one in done["replies"]] == ["succeeded", "succeeded"]
        await on.app.settle()
        assert on.presses("counter") == ["Count"]
        assert on.effects("text", "name")[-1][2] == "bob"


async def test_c49_a_question_that_nobody_answers_is_unanswered_and_neither_a_yes_nor_a_no(
    desktop: IsolatedDesktop, app: FixtureApp, tmp_path: Path
) -> None:
    async with Operator(tmp_path, ASK) as operator:
        approvals = operator.host.parts.approvals
        approvals._life_ms = 300
        on = await on_app(operator, desktop, app)
        counter = await on.one(*COUNT)
        request = await on.hand.request(Invoke(), counter, operation_id="alone")
        assert (await on.hand.present(request))["status"] == "approval_required"
        await until(lambda: not operator.pending, "its time is over")

        async def ends() -> list[dict[str, Any]]:
            shown = await operator.control("audit.show", operation_id="alone")
            return [one["payload"] for one in shown["events"] if one["type"] == "operation.denied.v1"]

        (end,) = await until_so(ends, "the end is on record")
        assert (end["how"], end["approver"], end["reason"]) == ("unanswered", "", "")
        told = await on.hand.call("approval", operation_id="alone")
        assert told["status"] == "unanswered"
        listed = (await operator.control("operations", text="alone"))["operations"][0]
        assert (listed["outcome"], listed.get("approver")) == ("unanswered", None)
        await on.app.settle()
        assert on.presses("counter") == []
        # It can be asked again, and a yes then counts.
        approvals._life_ms = 60_000
        assert (await on.hand.present(request))["status"] == "approval_required"
        await operator.answer(operator.pending[0])
        assert (await on.hand.present(request))["status"] == "succeeded"
        await on.app.settle()
        assert on.presses("counter") == ["Count"]


async def test_c50_no_python_program_is_let_in_by_the_name_of_its_interpreter(
    desktop: IsolatedDesktop, app: FixtureApp, tmp_path: Path
) -> None:
    """The application is a script; only its own path names it."""
    async with Operator(tmp_path, "version = 1\n") as operator:
        on = await on_app(operator, desktop, app)
        seen = next(one for one in (await on.hand.call("surfaces"))["surfaces"] if one["pid"] == app.pid)
        identity = seen["app"]
        interpreter = await asyncio.to_thread(lambda: str(Path("/proc", str(app.pid), "exe").resolve()))
        assert identity.startswith(f"script:{interpreter}:")
        assert identity.endswith("gtk3_app.py")
        counter = await on.one(*COUNT)
        for names, status in (
            (
                [f"exe:{interpreter}", "exe:/usr/bin/python3", f"script:{interpreter}:/tmp/other.py"],
                "approval_required",
            ),
            ([identity], "succeeded"),
        ):
            listed = ", ".join(f'"{one}"' for one in names)
            more = f'covers = ["external"]\n[rule.match]\naction = ["desktop.invoke"]\napp = [{listed}]\n'
            operator.write(f'version = 1\n[[rule]]\nid = "open"\neffect = "allow"\nreason = "r"\n{more}')
            assert (await operator.control("policy.reload"))["reloaded"] is True
            assert (await on.act(Invoke(), counter, risk="external"))["status"] == status
        await on.app.settle()
        assert on.presses("counter") == ["Count"]
