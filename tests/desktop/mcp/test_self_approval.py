"""Each way in which an agent with Surehand's tools might answer its own question, against real programs and sockets.

The agent's socket without the methods is in `tests/unit`; here are its hands: programs it starts, the approver's
terminal, and a client of its own from inside the desktop.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
from pathlib import Path

import pytest

from surehand.core.wire.places import places
from surehand.testing.desktop import IsolatedDesktop
from surehand.tools.catalog import TOOLS
from tests.desktop.desktop_support import run_script
from tests.desktop.mcp.test_people import PAY, SUREHAND, Stage, asked_to_pay, stage

__all__ = ["stage"]

pytestmark = pytest.mark.desktop

#: A client of the control socket as an agent would write it, by every road to it.
_FORGED = """
import json, os, socket, sys
where = json.loads(sys.argv[1])
def connect(path):
    try:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(2)
            client.connect(path)
            return "connected"
    except OSError as error:
        return type(error).__name__
print(json.dumps({
    "seen": [path for path in where if os.path.exists(path)],
    "sockets": sorted({connect(path) for path in where}),
    "roots": sorted(path for path in where if os.path.exists("/proc/1/root" + path)),
    "listed": [line.split()[-1] for line in open("/proc/net/unix") if "control" in line],
}))
"""


async def still_open(stage: Stage, approval_id: str) -> None:
    assert approval_id in {one["approval_id"] for one in (await stage.operator("approvals", "list"))["pending"]}
    await stage.app.settle()
    assert stage.app.presses("pay") == []


async def test_no_tool_answers_no_program_does_and_inside_there_is_no_socket_and_no_key(stage: Stage) -> None:
    assert {tool.name for tool in TOOLS if "approv" in tool.name} == {"approval_status"}
    async with stage.client() as agent:
        approval_id = await asked_to_pay(agent, "self-1")
        words = ["approvals", "approve", approval_id, "--yes", "--as", "ann"]
        for number, (name, arguments) in enumerate(
            (
                (SUREHAND, words),
                ("xterm", ["-e", SUREHAND, *words]),
                ("bash", ["-c", f"printf 'guess\\n' | {SUREHAND} {' '.join(words)}"]),
            )
        ):
            found = await agent.call("launch_app", name=name, arguments=arguments, operation_id=f"self-run-{number}")
            assert found.structured_content["status"] == "approval_required", found.structured_content
        again = await agent.data("invoke", target=PAY, operation_id="self-1", app="gtk3_app.py")
        assert again["status"] == "approval_required"

        # Nor from inside, past the tools: a client of its own finds no socket and no key.
        where = places(stage.environment, 0)
        keys = f"{stage.environment['SUREHAND_RUNTIME_DIR']}/state/keys"
        state = f"{stage.environment['SUREHAND_RUNTIME_DIR']}/state"
        bus = stage.folder / "bus"  # where a person's session has its own
        paths = [where.control_socket, where.agent_socket, f"{keys}/approver-ann.key", f"{keys}/daemon.key"]
        paths += [f"{state}/journal.sqlite", f"{state}/approvals", str(bus)]
        script = stage.folder / "forged.py"
        script.write_text(_FORGED)
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(bus))
            listening.listen()
            assert [path for path in paths if not Path(path).exists()] == []  # noqa: ASYNC240 - a handful
            seen = await run_script(stage.desktop, script, json.dumps(paths))
        assert seen == {"seen": [], "sockets": ["FileNotFoundError"], "roots": [], "listed": []}
        await still_open(stage, approval_id)


async def test_no_chord_no_message_on_a_bus_no_desktop_file_and_no_editor_answers(stage: Stage) -> None:
    """Ways around a program's own name: what a window manager, a bus, a launcher or an editor would do for an agent."""
    async with stage.client() as agent:
        approval_id = await asked_to_pay(agent, "self-2")
        for keys in ("alt+F2", "super+r"):
            found = await agent.call("press_key", keys=[keys], app="gtk3_app.py")
            assert found.structured_content["status"] == "approval_required", keys
        # A launcher of the agent's own: as a file in its home that any editor can write.
        launchers = stage.desktop.folder / "home" / ".local" / "share" / "applications"
        launchers.mkdir(parents=True)
        written = (
            f"[Desktop Entry]\nType=Application\nName=Helper\nExec={SUREHAND} approvals approve {approval_id} --yes\n"
        )
        (launchers / "helper.desktop").write_text(written)
        keys_folder = f"{stage.environment['SUREHAND_RUNTIME_DIR']}/state/keys"
        for name, arguments in (
            ("helper", []),
            ("gio", ["launch", str(launchers / "helper.desktop")]),
            ("dbus-send", ["--session", "--dest=org.freedesktop.Notifications", "/", "a.b.ActionInvoked"]),
            ("mousepad", [f"{keys_folder}/approver-ann.key"]),
            ("env", [SUREHAND, "approvals", "approve", approval_id, "--yes"]),
        ):
            found = await agent.call("launch_app", name=name, arguments=arguments)
            value = found.structured_content
            assert value.get("status") == "approval_required" or value["error"]["code"] == "app_not_found", (
                name,
                value,
            )
        await still_open(stage, approval_id)


# --- a desktop without walls: the approver's terminal stands beside the agent's application ---------------------------


async def test_the_approvers_terminal_cannot_be_read_typed_into_or_pressed(stage: Stage) -> None:
    fifo = stage.folder / "begin"
    os.mkfifo(fifo)
    watch = (
        f"read x < {fifo}; SUREHAND_RUNTIME_DIR={stage.environment['SUREHAND_RUNTIME_DIR']} {SUREHAND} approvals watch"
    )
    async with await IsolatedDesktop.start(sandbox=False) as desktop, stage.client(desktop.name) as agent:
        async with stage.client() as other:
            approval_id = await asked_to_pay(other, "self-3")
        app = await desktop.launch(["xterm", "-e", "sh", "-c", watch])
        async with asyncio.timeout(30):
            while not (await agent.data("list_windows"))["windows"]:
                pass
        found = await agent.call("press_key", keys=["a"], app="xterm")
        assert found.structured_content["status"] == "approval_required"

        fifo.write_text("go\n")
        async with asyncio.timeout(30):
            while sum(one["role"] == "control" for one in (await stage.operator("ps"))["sessions"]) < 2:
                pass
        assert (await agent.data("list_windows"))["windows"] == []
        for name, arguments in (
            ("observe", {}),
            ("screenshot", {}),
            ("press_key", {"keys": ["a"]}),
            ("type_text", {"text": "a"}),
        ):
            found = await agent.call(name, **arguments, app="xterm")
            assert found.is_error, (name, found.structured_content)
        await still_open(stage, approval_id)
        await app.terminate()
