"""What the demo's agent finds: a desktop with applications, a daemon with an operator's policy, and a person's process.

Everything lives in a folder of its own and ends with it, whatever happens; nothing of the user's is read or changed.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from surehand.client.control import Control
from surehand.core.wire.places import RUNTIME_VARIABLE, places
from surehand.errors import SurehandError
from surehand.testing.desktop import IsolatedDesktop, LaunchedApp

HERE: Final = Path(__file__).parent
SYSTEM_PYTHON: Final = "/usr/bin/python3"
#: What the rows of the guest list hold once the world has moved on: carol's row is frank's now.
RECYCLED: Final = ("alice", "bob", "frank", "grace")

_PR_SET_PDEATHSIG: Final = 1
LOOK_EVERY_S: Final = 0.005
READY_S: Final = 20.0
END_S: Final = 10.0

POLICY: Final = """\
# The operator's policy of the demo. What no rule here speaks of is decided by the defaults.
version = 1

[[rule]]
id = "no-resets"
effect = "deny"
reason = "Agents never reset a list, whatever the application calls it."
[rule.match.observed]
name = ["*reset*"]

[[rule]]
id = "no-programs"
effect = "deny"
reason = "Agents start no programs on this desktop."
[rule.match]
action = ["process.run"]
"""


class Broken(Exception):
    """The demo cannot go on: something did not come about."""


def wait_until(fact: Callable[[], Any], what: str, seconds: float = READY_S) -> Any:
    """Return the first true answer.

    Raises:
        Broken: there was none in time.
    """
    end, again = time.monotonic() + seconds, threading.Event()
    while not (found := fact()):
        if time.monotonic() >= end:
            raise Broken(f"{what} did not come about within {seconds:g} s")
        again.wait(LOOK_EVERY_S)
    return found


def program(name: str) -> str:
    """Return the path of one of Surehand's programs beside this Python."""
    return str(Path(sys.executable).with_name(name))


_libc = ctypes.CDLL(None)


def _end_with_parent() -> None:
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


class _Signals:
    """Whether an end was asked for, and whether it may unwind what is being done right now."""

    held = False
    asked = ""


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Let a process be started *and* be known as ours, whatever signal comes in between."""
    _Signals.held = True
    try:
        yield
    finally:
        _Signals.held = False
        if _Signals.asked:
            raise KeyboardInterrupt(_Signals.asked)


def end_on_signals() -> None:
    """Let Ctrl-C and its kin unwind everything, once: what comes while things are being ended changes nothing."""

    def asked(number: int, _frame: Any) -> None:
        if not _Signals.asked:
            _Signals.asked = signal.Signals(number).name
            if not _Signals.held:
                raise KeyboardInterrupt(_Signals.asked)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, asked)


@contextlib.contextmanager
def private_folder() -> Iterator[Path]:
    """Make this run's own runtime folder, let everything started from here find it, and remove it at the end."""
    folder = Path(tempfile.mkdtemp(prefix="surehand-demo-"))
    names = ("XDG_RUNTIME_DIR", RUNTIME_VARIABLE)
    before = {name: os.environ.get(name) for name in names}
    os.environ.update({"XDG_RUNTIME_DIR": str(folder), RUNTIME_VARIABLE: str(folder / "surehand")})
    try:
        yield folder
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        shutil.rmtree(folder, ignore_errors=True)


class Child:
    """A process of ours that ends with the demo, even a killed one.

    In a session of its own, so that Ctrl-C reaches only the demo, which ends it in order.
    """

    def __init__(self, argv: list[str], **options: Any) -> None:
        self.process = subprocess.Popen(argv, start_new_session=True, preexec_fn=_end_with_parent, **options)  # noqa: PLW1509 - one system call, made by the thread that lives longest

    def end(self) -> None:
        """Ask it to end, then end it."""
        if self.process.poll() is None:
            self.process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(END_S)
            return
        self.kill()

    def kill(self) -> None:
        """End it with SIGKILL and wait until it is gone."""
        self.process.kill()
        self.process.wait(END_S)


class Daemon:
    """`surehand serve` under the operator's configuration."""

    def __init__(self, folder: Path) -> None:
        self.state = folder / "surehand/state"
        self.keys = self.state / "keys"
        self.log = folder / "daemon.log"
        self._config = folder / "config.toml"
        self._child: Child | None = None
        policy = folder / "policy.toml"
        policy.write_text(POLICY, "utf-8")
        self._config.write_text(f"policy = {json.dumps(str(policy))}\n", "utf-8")
        self.keys.mkdir(parents=True, mode=0o700)
        for part in (self.keys, self.state, self.state.parent):
            part.chmod(0o700)

    def start(self) -> None:
        """Start it; `wait_ready` says when it serves."""
        argv = [program("surehand"), "serve", "--config", str(self._config), "--idle-exit", "0"]
        with self.log.open("ab") as log, uninterrupted():
            self._child = Child(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def wait_ready(self) -> None:
        """Wait until it answers."""
        wait_until(self._answers, f"the daemon (its log: {self.log})")

    def _answers(self) -> bool:
        if self._child is None or self._child.process.poll() is not None:
            raise Broken(f"the daemon ended: {self.log.read_text('utf-8', 'replace')[-500:]}")
        if not Path(places(os.environ, os.getuid()).control_socket).exists():
            return False
        try:
            with Control(client="demo"):
                return True
        except SurehandError:
            return False

    def kill(self) -> int:
        """End it with SIGKILL; returns the pid that was killed."""
        child = self._running()
        child.kill()
        return child.process.pid

    def stop(self) -> None:
        """End it in order and wait until the journal is closed."""
        child, self._child = self._running(), None
        with Control(client="demo") as control:
            control.call("stop")
        child.process.wait(END_S)

    def end(self) -> None:
        """End it, whatever it does."""
        if self._child is not None:
            self._child.end()

    def _running(self) -> Child:
        if self._child is None:
            raise Broken("there is no daemon")
        return self._child


class Applications:
    """The desktop and what runs in it."""

    def __init__(self, desktop: IsolatedDesktop) -> None:
        self._desktop = desktop
        self._commands = -1
        self.home = desktop.folder / "home"
        self.guest_log = desktop.folder / "guests.jsonl"
        self.names: dict[str, LaunchedApp] = {}

    def start(self) -> None:
        """Start the applications, as their operator."""
        for name in ("note.txt", "list.txt"):
            (self.home / name).touch()
        reading, self._commands = os.pipe()
        with open(os.devnull, "wb") as nowhere:  # noqa: PTH123
            out = nowhere.fileno()
            guests = [SYSTEM_PYTHON, HERE / "guests.py", "--log", self.guest_log]
            self._launch(guests, binds=[HERE], stdio=(reading, out, out))
        os.close(reading)
        for argv in (["gnome-calculator"], ["mousepad", "note.txt"], ["featherpad", "list.txt"]):
            self._launch(argv)

    def _launch(self, argv: list[Any], **options: Any) -> None:
        with uninterrupted():
            app = asyncio.run(self._desktop.launch(argv, **options))
        self.names[app.name if "guests.py" not in str(argv) else "guests.py"] = app

    def guests_received(self) -> list[tuple[str, Any]]:
        """Return what reached the guest list, by its own log: the ground truth."""
        try:
            lines = self.guest_log.read_text("utf-8").splitlines()
        except FileNotFoundError:
            return []
        events = [json.loads(line) for line in lines]
        return [(event["event"], event["value"]) for event in events]

    def recycle_rows(self) -> None:
        """Let the list put other guests into its rows, and wait until it did."""
        os.write(self._commands, (json.dumps(RECYCLED) + "\n").encode())
        wait_until(lambda: ("recycled", list(RECYCLED)) in self.guests_received(), "recycling the rows")

    def calculator_says(self) -> str:
        """Return what the calculator shows, read by libatspi and not by Surehand."""
        done = subprocess.run(
            [SYSTEM_PYTHON, "-c", _READ_CALCULATOR],
            env={**self._desktop.environment, "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            timeout=READY_S,
            check=False,
        )
        return done.stdout.strip()

    def close(self) -> None:
        """Let go of the pipe; the desktop ends the rest."""
        if self._commands >= 0:
            os.close(self._commands)
            self._commands = -1


_READ_CALCULATOR: Final = """
import gi
gi.require_version("Atspi", "2.0")
from gi.repository import Atspi
def walk(one):
    if one is None:
        return
    states = one.get_state_set()
    if one.get_role() == Atspi.Role.TEXT and states.contains(Atspi.StateType.EDITABLE):
        print(Atspi.Text.get_text(one, 0, -1))
    for i in range(one.get_child_count()):
        walk(one.get_child_at_index(i))
desktop = Atspi.get_desktop(0)
for i in range(desktop.get_child_count()):
    app = desktop.get_child_at_index(i)
    if app is not None and app.get_name() == "gnome-calculator":
        walk(app)
"""


class AgentProcess:
    """The agent, as a process that is talked to by lines."""

    def __init__(self, desktop: str, film: Path, pace_s: float, log: Path) -> None:
        argv = [sys.executable, str(HERE / "agent.py"), "--desktop", desktop, "--film", str(film)]
        with log.open("wb") as errors:
            self._child = Child(
                [*argv, "--pace", str(pace_s)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                encoding="utf-8",
            )
        self._log = log
        self._said: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        for line in self._child.process.stdout or ():
            self._said.put(line)
        self._said.put("")

    def next(self, wait_s: float = READY_S * 2) -> dict[str, Any] | None:
        """Return the next thing it says; None once it has ended.

        Raises:
            Broken: it says nothing, or ended badly.
        """
        try:
            line = self._said.get(timeout=wait_s)
        except queue.Empty as error:
            raise Broken(f"the agent said nothing for {wait_s:g} s") from error
        if line:
            found: dict[str, Any] = json.loads(line)
            return found
        if (code := self._child.process.wait(END_S)) != 0:
            raise Broken(f"the agent ended with {code}: {self._log.read_text('utf-8', 'replace')[-1500:]}")
        return None

    def go(self) -> None:
        """Let it go on."""
        if self._child.process.stdin is not None:
            self._child.process.stdin.write("go\n")
            self._child.process.stdin.flush()

    def end(self) -> None:
        """End it."""
        self._child.end()


class OperatorProcess:
    """The person's process, with a key the agent does not have."""

    def __init__(self, keys: Path) -> None:
        self._keys = str(keys)
        self._child: Child | None = None

    def enroll(self) -> None:
        """Make the key."""
        argv = [sys.executable, str(HERE / "approver.py"), "enroll", "--keys", self._keys]
        subprocess.run(argv, check=True, timeout=READY_S)

    def watch(self) -> None:
        """Start to watch for the one question."""
        argv = [sys.executable, str(HERE / "approver.py"), "answer", "--keys", self._keys, "--context", "dave"]
        with uninterrupted():
            self._child = Child(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, encoding="utf-8")

    def said(self) -> dict[str, Any]:
        """Return what it was asked and answered.

        Raises:
            Broken: it answered nothing.
        """
        if self._child is None:
            raise Broken("nobody watches for questions")
        out, _ = self._child.process.communicate(timeout=READY_S)
        if not out:
            raise Broken("the operator's process answered nothing")
        found: dict[str, Any] = json.loads(out)
        return found

    def end(self) -> None:
        """End it."""
        if self._child is not None:
            self._child.end()
