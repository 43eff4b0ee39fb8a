"""The person's own desktop over MCP, paired by the operator, whose client may be asked: a real daemon and server.

An isolated desktop plays the person's session: its display and buses are the daemon's environment.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client, StdioServerParameters

from surehand.testing.desktop import IsolatedDesktop
from surehand.testing.fixture_app import FixtureApp
from tests.crash.daemon_kit import Daemon

pytestmark = pytest.mark.desktop
SUREHAND = str(Path(sys.executable).with_name("surehand"))
COUNT = {"target": {"role": "button", "name": "Count"}, "app": "gtk3_app.py"}
PAY = {"target": {"role": "button", "name": "Pay 10"}, "app": "gtk3_app.py"}
IN_SESSION = ("DISPLAY", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS")


@pytest.fixture
def paired(desktop: IsolatedDesktop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Daemon]:
    for name in IN_SESSION:
        monkeypatch.setenv(name, desktop.environment[name])
    made = Daemon(tmp_path)
    monkeypatch.setenv("SUREHAND_RUNTIME_DIR", str(made.run))
    made.config.write_text(f'pairings = ["{desktop.display}"]\n\n[[mcp_elicitation]]\nclient = "desk"\n')
    made.config.chmod(0o600)
    made.start()
    yield made
    made.stop()
    made.close()


@pytest.fixture
async def app(desktop: IsolatedDesktop) -> AsyncIterator[FixtureApp]:
    found = await FixtureApp.start(desktop, "gtk3")
    yield found
    found.close()


async def test_a_paired_desktop_is_read_and_what_would_change_it_is_asked_in_the_named_client(
    paired: Daemon, app: FixtureApp
) -> None:
    asked: list[str] = []

    async def person(_: Any, params: Any) -> types.ElicitResult:
        asked.append(params.message)
        return types.ElicitResult(action="accept", content={"answer": "approve"})

    server = StdioServerParameters(command=SUREHAND, args=["mcp", "--desktop", "current"], env={**os.environ})
    for name, status, questions in (("other", "approval_required", 0), ("desk", "succeeded", 1)):
        info = types.Implementation(name=name, version="1")
        async with Client(server, client_info=info, elicitation_callback=person) as client:
            seen = await client.call_tool("observe", {"app": "gtk3_app.py"})
            assert "Count" in seen.content[0].text  # type: ignore[union-attr]
            found = await client.call_tool("invoke", COUNT)
            assert (found.structured_content or {})["status"] == status, found.content
            paid = await client.call_tool("invoke", PAY)
            assert (paid.structured_content or {})["status"] == "approval_required"
            assert len(asked) == questions
    await app.settle()
    assert app.presses("counter") == ["Count"]
    assert app.presses("pay") == []
    assert "element: button Count" in asked[0].splitlines()
    paired.stop()
    paired.verify()
    (events,) = [found for found in (await paired.operations()).values() if any("approved" in one for one, _ in found)]
    facts = dict(events)
    assert facts["operation.approved.v1"]["how"] == "client_asserted"
    assert facts["operation.approved.v1"]["approver"] == "client:desk"
    (end,) = [payload for kind, payload in events if kind.startswith("operation.terminal")]
    assert end["receipt"]["warnings"] == ["client_asserted"]
