"""An agent at work through the whole host on real applications: what the field cases and the ground truth stand on.

`Hand` is one agent's session; every reply it gets is checked to be honest in itself. `On` is a hand on one fixture
application, with the application's own log as the truth about what happened.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import subprocess
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from surehand.model.actions import Action
from surehand.model.outcome import UNKNOWN_STATEMENT
from surehand.model.record import Record, to_value
from surehand.model.verification import Verification
from surehand.runtime.compose import build_host
from surehand.runtime.config import Config
from surehand.runtime.host import Host
from surehand.runtime.session import Session
from surehand.testing.desktop import IsolatedDesktop
from surehand.testing.fixture_app import FixtureApp, FixtureEvent

LONG = bool(os.environ.get("SUREHAND_LONG"))
PRINCIPAL = f"uid:{os.getuid()}"
UNICODE = "v19-ünïcode-€"
PEOPLE = ["alice", "bob", "carol", "dave"]
WAIT_S = 10.0

#: The operator of these tests trusts the agent with everything on an isolated desktop; policy has tests of its own.
POLICY = """
version = 1
[[rule]]
id = "tests"
effect = "allow"
reason = "On a desktop of its own the agent of these tests may do everything."
covers = ["credentials", "destructive", "external", "install", "process_run", "purchase", "send_publish", "settings",
          "upload"]
[rule.match]
isolation = ["isolated", "display_only"]
"""

#: Events that an action may bring along without being its effect.
NOISE = frozenset({"focus", "window_focus", "selection", "command", "key_press", "key_release"})

#: States of an operation in which nothing has reached the application.
_BEFORE = frozenset({"", "proposed", "shaped", "fresh", "authorised", "allowed", "fenced", "permitted", "claimed"})
_names = itertools.count(1)


def write_policy(folder: Path, policy: str = POLICY) -> Path:
    """Write an operator's rules where the host believes that an operator wrote them."""
    folder.chmod(0o700)
    path = folder / "policy.toml"
    path.write_text(policy)
    path.chmod(0o600)
    return path


async def open_host(folder: Path) -> Host:
    """Return a host with the policy of these tests; its journal and keys are below `folder`."""
    return await build_host(Config(policy=str(write_policy(folder))), state_dir=folder / "state")


async def until(condition: Callable[[], Any], what: str, seconds: float = WAIT_S) -> Any:
    """Poll a fact of the outside world that has no event, with a bound."""
    ends_at = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > ends_at:
            raise AssertionError(f"never: {what}")
        await asyncio.sleep(0.005)
    return value


async def until_so(ask: Callable[[], Awaitable[Any]], what: str, seconds: float = WAIT_S) -> Any:
    """Ask again and again until the answer is true, with a bound."""
    ends_at = time.monotonic() + seconds
    while not (answer := await ask()):
        if time.monotonic() > ends_at:
            raise AssertionError(f"never: {what}")
        await asyncio.sleep(0.01)
    return answer


def check_honest(reply: dict[str, Any]) -> None:
    """One outcome in one channel, and nothing claimed that its terminal does not say (C18)."""
    status, terminal, error = reply["status"], reply.get("terminal"), reply.get("error")
    if status == "approval_required":
        assert terminal is None
        assert reply["approval"]
        return
    if status == "refused":
        assert terminal is None
        assert error["retry_safe"] is True
        assert error["code"] != "internal", reply
        return
    assert terminal["kind"] == status, reply
    effect, code = terminal["receipt"]["effect"], terminal.get("code")
    assert (status == "succeeded") == (code is None), reply
    assert effect != "verified" or status in {"succeeded", "withheld"}, reply
    assert not terminal.get("retry_safe") or (status == "failed" and effect == "unknown"), reply
    if status == "outcome_unknown":
        assert error["code"] == code == "outcome_unknown"
        assert error["retry_safe"] is False
        assert UNKNOWN_STATEMENT in terminal["message"]
    else:
        assert error is None, reply


def by_query(surface: str, *filters: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "query", "surface": surface, "query": {"filters": list(filters)}}


def named(text: str, match: str = "exact") -> dict[str, Any]:
    return {"name": {"text": text, "match": match}}


def appears(*filters: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "appears", "query": {"filters": list(filters)}}


class Hand:
    """One agent's session with a host."""

    def __init__(self, host: Host, channel: Session) -> None:
        self.host = host
        self.channel = channel

    @classmethod
    async def connect(cls, host: Host, desktop: IsolatedDesktop) -> Hand:
        channel = await host.open_channel(principal=PRINCIPAL, role="agent", client={}, desktop=desktop.name)
        return cls(host, channel)

    async def close(self) -> None:
        await self.host.close_channel(self.channel)

    async def call(self, method: str, **params: Any) -> Any:
        return await self.host.call(self.channel, method, params)

    async def window(self, pid: int, title: str | None = None) -> str:
        """Return the one window of a process with this title, waiting until it is there."""
        async with asyncio.timeout(WAIT_S):
            while True:
                found = [
                    one["surface_id"]
                    for one in (await self.call("surfaces"))["surfaces"]
                    if one["pid"] == pid and title in (None, one["title"])
                ]
                if len(found) == 1:
                    return str(found[0])
                await asyncio.sleep(0.01)

    async def find(self, surface: str, *filters: dict[str, Any]) -> list[dict[str, Any]]:
        found = await self.call("query", surface=surface, query={"filters": list(filters)})
        return list(found["matches"])

    async def request(
        self,
        action: Action | dict[str, Any],
        target: dict[str, Any],
        *,
        verification: Verification | dict[str, Any] | None = None,
        operation_id: str | None = None,
        **more: Any,
    ) -> dict[str, Any]:
        """Return a request record's value."""
        value: dict[str, Any] = {
            "operation_id": operation_id or f"case-{os.getpid()}-{next(_names)}",
            "action": to_value(action) if isinstance(action, Record) else action,
            "target": target["ref"] if isinstance(target.get("ref"), dict) else target,
            **more,
        }
        if verification is not None:
            value["verification"] = to_value(verification) if isinstance(verification, Record) else verification
        return value

    async def act(self, action: Action | dict[str, Any], target: dict[str, Any], **options: Any) -> dict[str, Any]:
        """Present one operation and return its reply, which is honest."""
        return await self.present(await self.request(action, target, **options))

    async def present(self, request: dict[str, Any]) -> dict[str, Any]:
        reply: dict[str, Any] = await self.call("act", request=request)
        assert reply["operation_id"] == request["operation_id"]
        check_honest(reply)
        return reply

    async def state(self, operation_id: str) -> str:
        return str((await self.call("status", operation_id=operation_id)).get("state", ""))


class On:
    """A hand on the main window of one fixture application."""

    def __init__(self, hand: Hand, app: FixtureApp, surface: str) -> None:
        self.hand = hand
        self.app = app
        self.surface = surface
        self.mark = app.mark()

    @classmethod
    async def reach(cls, hand: Hand, app: FixtureApp) -> On:
        return cls(hand, app, await hand.window(app.pid, app.title))

    @property
    def toolkit(self) -> str:
        return self.app.toolkit

    async def change(self, cmd: str, **arguments: Any) -> Any:
        """Have the application change by itself."""
        return await self.app.run(cmd, **arguments)

    async def find(self, *filters: dict[str, Any]) -> list[dict[str, Any]]:
        return await self.hand.find(self.surface, *filters)

    async def one(self, *filters: dict[str, Any]) -> dict[str, Any]:
        """Return the one element that fits, waiting until there is exactly one."""
        ends_at = time.monotonic() + WAIT_S
        while len(found := await self.find(*filters)) != 1:
            if time.monotonic() > ends_at:
                raise AssertionError([(m["label"], m["role"], m["name"], m.get("context")) for m in found] or filters)
            await asyncio.sleep(0.01)
        return found[0]

    async def button(self, name: str, person: str | None = None) -> dict[str, Any]:
        """Return a button by name, in a person's row where one is named."""
        row = () if person is None else ({"context": {"text": person, "match": "contains"}},)
        return await self.one(named(name), {"role": "button"}, *row)

    async def entry(self, control: str, name: str) -> dict[str, Any]:
        """Return a text field; GTK 3 gives entries no name but an id of the application's."""
        if self.toolkit == "gtk3":
            return await self.one({"relation": "labelled-by", "to": {"filters": [named(name), {"role": "label"}]}})
        return await self.one(named(name), {"role": "password" if control == "secret" else "text"})

    async def act(self, action: Action | dict[str, Any], target: dict[str, Any], **options: Any) -> dict[str, Any]:
        """Present one operation, and remember that events from here on count."""
        self.mark = self.app.mark()
        return await self.hand.act(action, target, **options)

    async def refused(
        self, code: str, action: Action | dict[str, Any], target: dict[str, Any], **options: Any
    ) -> dict[str, Any]:
        """Assert that an action is refused with this code and that the application saw nothing; return the error."""
        reply = await self.act(action, target, **options)
        assert (reply["status"], (reply.get("error") or {}).get("code")) == ("refused", code), reply
        await self.app.settle()
        assert self.effects() == [], self.events()
        error: dict[str, Any] = reply["error"]
        return error

    async def done(
        self, effect: str, action: Action | dict[str, Any], target: dict[str, Any], **options: Any
    ) -> dict[str, Any]:
        """Assert that an action succeeded with this effect; return the reply."""
        reply = await self.act(action, target, **options)
        assert reply["status"] == "succeeded", reply
        assert reply["terminal"]["receipt"]["effect"] == effect, reply
        return reply

    async def presses_once(
        self, control: str, value: str, action: Action | dict[str, Any], target: dict[str, Any], **options: Any
    ) -> dict[str, Any]:
        """Assert that an action succeeds and reaches the application as exactly one press; return the reply."""
        reply = await self.act(action, target, **options)
        assert reply["status"] == "succeeded", reply
        await self.app.settle()
        assert self.effects() == [("press", control, value)]
        return reply

    def effects(self, event: str | None = None, control: str | None = None) -> list[tuple[str, str, Any]]:
        """Return what reached the application since the last act, without what merely comes along."""
        return [
            (entry.event, entry.control, entry.value)
            for entry in self.app.events(event, control, after=self.mark)
            if event is not None or (entry.event not in NOISE and entry.control != "raw")
        ]

    def presses(self, control: str) -> list[Any]:
        return self.app.presses(control, after=self.mark)

    def events(self) -> list[FixtureEvent]:
        return self.app.events(after=self.mark)

    async def begun(self, operation_id: str) -> None:
        """Wait until an operation has crossed the line."""
        ends_at = time.monotonic() + WAIT_S
        while await self.hand.state(operation_id) in _BEFORE:
            assert time.monotonic() < ends_at, "it never began"
            await asyncio.sleep(0.002)

    async def place(self, x: int, y: int) -> None:
        """Move the window, by the window manager's own hand."""
        await self.done(
            "executed_unverified", {"kind": "window", "op": "move", "x": x, "y": y}, window_of(self.surface)
        )

    async def focus_window(self) -> None:
        await self.done("verified", {"kind": "window", "op": "focus"}, window_of(self.surface))


def window_of(surface: str) -> dict[str, Any]:
    return {"kind": "surface", "ref": surface}


def person(desktop: IsolatedDesktop, *words: str) -> str:
    """Do something as the person would: a program of the desktop's own, outside Surehand."""
    done = subprocess.run(words, env=desktop.environment, capture_output=True, text=True, timeout=WAIT_S, check=True)
    return done.stdout.strip()
