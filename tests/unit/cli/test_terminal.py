"""The command line in a terminal of its own: progress after a second, Ctrl-C that cleans up."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from typing import Any

from tests.unit.client.conftest import Desk, until

SUREHAND = [sys.executable, "-c", "import sys; from surehand.cli import main; sys.exit(main())"]


async def forever(*_: Any) -> dict[str, Any]:
    await asyncio.Event().wait()
    return {}


def test_ctrl_c_cancels_the_call_and_says_so_in_json(desk: Desk) -> None:
    desk.script["act"] = forever
    words = [*SUREHAND, "act", "invoke", "--app", "notes", "--role", "button", "--json"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        until(lambda: bool(desk.named("act")), 15)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=15)
    assert running.returncode == 130
    assert json.loads(out)["error"]["code"] == "cancelled"
    assert err == ""
    until(lambda: desk.cancelled == ["act"] and desk.closed == desk.opened)


def test_a_killed_command_leaves_nothing_held(desk: Desk) -> None:
    desk.script["act"] = forever
    words = [*SUREHAND, "act", "invoke", "--app", "notes", "--role", "button"]
    with subprocess.Popen(words) as running:
        until(lambda: bool(desk.named("act")), 15)
        running.kill()
    until(lambda: desk.cancelled == ["act"] and desk.closed == desk.opened)


def test_a_reader_that_has_enough_ends_the_command_quietly(desk: Desk) -> None:
    async def observe(*_: Any) -> dict[str, Any]:
        return {"surface": "w", "scene_id": "s", "generation": 1, "kind": "full", "text": "line\n" * 200_000}

    desk.script["observe"] = observe
    words = [*SUREHAND, "observe", "notes"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        assert running.stdout.readline() == b"line\n"
        running.stdout.close()
        assert running.stderr.read() == b""
        assert running.wait(15) == 0


def in_terminal(words: list[str], seconds: float = 20, **environ: str) -> tuple[bytes, int]:
    """Run in a terminal whose output is both streams."""
    pid, terminal = pty.fork()
    if pid == 0:  # pragma: no cover - the child
        os.environ.update({"TERM": "xterm", **environ})
        os.execvp(words[0], words)  # noqa: S606
    shown, end = b"", time.monotonic() + seconds
    while time.monotonic() < end:
        if not select.select([terminal], [], [], 0.1)[0]:
            continue
        try:
            data = os.read(terminal, 65536)
        except OSError:
            break
        if not data:
            break
        shown += data
    os.close(terminal)
    return shown, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def slow(seconds: float) -> Any:
    async def method(*_: Any) -> dict[str, Any]:
        await asyncio.sleep(seconds)
        return {"satisfied": True, "elapsed_ms": 1, "conditions": []}

    return method


def test_a_terminal_shows_progress_after_a_second_and_not_before(desk: Desk) -> None:
    words = [*SUREHAND, "wait", "notes", "--role", "dialog"]
    desk.script["wait"] = slow(1.6)
    shown, code = in_terminal(words)
    assert code == 0
    assert b"waiting" in shown
    desk.script["wait"] = slow(0)
    shown, code = in_terminal(words)
    assert shown.strip() == b"satisfied"


def test_a_terminal_shows_colours_unless_it_is_asked_not_to(desk: Desk) -> None:
    words = [*SUREHAND, "act", "invoke", "--app", "notes", "--role", "button"]
    assert b"\x1b[32m" in in_terminal(words)[0]
    assert b"\x1b[" not in in_terminal(words, NO_COLOR="1")[0]
    assert b"\x1b[" not in in_terminal(words, TERM="dumb")[0]
    assert json.loads(in_terminal([*words, "--json"])[0])["ok"] is True
    assert desk.acts
