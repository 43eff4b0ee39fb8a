"""docs/reference/wire.md is true: its conversations are replayed against the real daemon, its tables compared with
the code. Both sides of the method tables agree."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, get_args

import pytest

from surehand import limits
from surehand.core.waiting import Condition
from surehand.core.wire.methods import AGENT_METHODS, CONTROL_METHODS
from surehand.core.wire.places import places_in
from surehand.runtime import compose
from surehand.runtime.agent import AGENT
from surehand.runtime.config import Config
from surehand.runtime.control import CONTROL
from tests.unit.daemon.fakes import Raw, running

PAGE = (Path(__file__).parents[2] / "docs/reference/wire.md").read_text("utf-8")
CONVERSATIONS = re.findall(r"```conversation (agent|control)\n(.*?)```", PAGE, re.DOTALL)


def agrees(wanted: Any, got: Any) -> bool:
    """Equal, where `…` stands for any text and a message may say more than the page shows in `details`."""
    if wanted == "…":
        return isinstance(got, str)
    if isinstance(wanted, dict) and isinstance(got, dict):
        return set(wanted) == set(got) and all(agrees(value, got[name]) for name, value in wanted.items())
    return bool(wanted == got)


@pytest.mark.parametrize(("socket", "talk"), CONVERSATIONS, ids=[f"{i}-{c[0]}" for i, c in enumerate(CONVERSATIONS)])
async def test_a_conversation_of_the_page_happens_as_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, socket: str, talk: str
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "xdg"))
    (tmp_path / "xdg").mkdir(mode=0o700)
    host = await compose.build_host(Config(), state_dir=tmp_path / "state", denied_apps="")
    try:
        async with running(tmp_path, host) as run:  # type: ignore[arg-type]
            raw = await Raw.to(run.places.agent_socket if socket == "agent" else run.places.control_socket)
            for line in talk.strip().splitlines():
                side, message = line[0], json.loads(line[1:])
                if side == "→":
                    raw.send(message)
                else:
                    got = await raw.read()
                    assert agrees(message, got), f"the page says {message}\nthe daemon said {got}"
    finally:
        await host.close()


def test_the_sockets_know_exactly_the_methods_the_host_has() -> None:
    assert set(AGENT) | {"watch"} == AGENT_METHODS
    assert set(CONTROL) | {"events.subscribe", "console"} == CONTROL_METHODS
    assert not AGENT_METHODS & CONTROL_METHODS


def test_the_page_lists_every_method_and_no_other() -> None:
    agent, control = PAGE.split("## Agent methods")[1].split("## Control methods")
    named = lambda part: set(re.findall(r"^\| `([a-z_.]+)` \|", part, re.MULTILINE))  # noqa: E731
    assert named(agent) == AGENT_METHODS
    assert named(control) == CONTROL_METHODS


def test_the_page_states_the_bounds_as_they_are() -> None:
    stated = re.findall(r"^\| `([A-Z_]+)` \| (\d+) \|", PAGE, re.MULTILINE)
    assert len(stated) >= 9
    assert stated == [(name, str(getattr(limits, name))) for name, _ in stated]


def test_the_page_lists_every_condition_and_no_other() -> None:
    part = PAGE.split("A condition of `wait` is one of")[1].split("with its name")[0]
    kinds = {str(one.__struct_config__.tag) for one in get_args(Condition)}
    assert set(re.findall(r"`([a-z_]+)\{", part)) == kinds


def test_the_page_names_the_digest_rule_as_it_is() -> None:
    import hashlib

    long = "/" + "x" * 100
    digest = hashlib.sha256(long.encode()).hexdigest()[:32]
    assert places_in(long, 7).socket_dir == f"/tmp/surehand-7/{digest}"  # noqa: S108
    assert "first 32 hex digits of SHA-256" in PAGE
