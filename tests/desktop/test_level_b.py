"""Trust level B with real users: set up by the documented command, then attacked by an agent with a shell of its own."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.desktop.level_b import SUREHAND, Machine, can_be_made, machine

pytestmark = [pytest.mark.desktop, pytest.mark.skipif(bool(can_be_made()), reason=can_be_made())]

SETUP = (SUREHAND, "setup", "level-b", "--agent", "bot", "--approver", "ann")
POLICY = """\
version = 1
[[rule]]
id = "ask-before-text"
effect = "require_approval"
reason = "Text takes a person."
[rule.match]
action = ["desktop.set_value"]
"""

#: What the agent's own program tries. Each line it prints is one attempt and how it ended.
_ATTACK = r"""
import ctypes, json, os, signal, socket, struct, sys
daemon, run, program = int(sys.argv[1]), sys.argv[2], sys.argv[3]
found = {}
def attempt(name, function):
    try:
        value = function()
        found[name] = "" if value is None else str(value)
    except OSError as error:
        found[name] = type(error).__name__
def connect(path):
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(3)
        client.connect(path)
        return "connected"
def traced():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ptrace(16, daemon, 0, 0) != 0:
        raise PermissionError(ctypes.get_errno(), "ptrace")
attempt("control", lambda: connect(run + "/control.sock"))
attempt("agent", lambda: connect(run + "/agent.sock"))
attempt("list sockets", lambda: os.listdir(run))
attempt("take the place of a socket", lambda: os.rename(run + "/agent.sock", run + "/control.sock"))
attempt("lease", lambda: open(run + "/daemon.lease", "r+"))
attempt("list state", lambda: os.listdir("/var/lib/surehand"))
for name in ("journal.sqlite", "keys/daemon.key", "vault", "approvals"):
    attempt("read " + name, lambda: open("/var/lib/surehand/" + name).read())
    attempt("write " + name, lambda: open("/var/lib/surehand/" + name, "w"))
for name in ("config.toml", "policy.toml", "start"):
    attempt("write " + name, lambda: open("/etc/surehand/" + name, "w"))
attempt("replace config", lambda: os.rename("/etc/surehand/config.toml", "/etc/surehand/other"))
attempt("read the approver's key", lambda: open("/home/ann/.local/state/surehand/keys/approver-ann.key").read())
attempt("write code", lambda: open(program, "a"))
for name in ("mem", "environ", "maps", "fd/3"):
    attempt("proc " + name, lambda: open(f"/proc/{daemon}/{name}", "rb").read(1))
attempt("ptrace", traced)
for number in (0, signal.SIGTERM, signal.SIGSTOP):
    attempt(f"signal {number}", lambda: os.kill(daemon, number))
def forged():
    # Somebody else's word for who one is: the kernel takes it from root alone.
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(run + "/agent.sock")
        client.sendmsg([b"\0"], [(socket.SOL_SOCKET, 2, struct.pack("=iII", daemon, 0, 0))])
attempt("forge credentials", forged)
# The desktops' own sockets: displays and buses of the daemon's user.
seen = [line.split()[-1] for line in open("/proc/net/unix") if "/" in line]
for path in seen:
    if "surehand" in path and not path.endswith(("/agent.sock", "/control.sock")):
        attempt("socket " + path, lambda: connect(path.lstrip("@") if not path.startswith("@") else "\0" + path[1:]))
def display(path):
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(3)
        client.connect(path)
        client.sendall(struct.pack("<BxHHHHxx", 0x6C, 11, 0, 0, 0))
        if client.recv(1) == b"\1":
            return "connected"
        raise PermissionError(13, "no cookie")
displays = sys.argv[4:]
for number in displays:
    for path in ("/tmp/.X11-unix/X" + number, "\0/tmp/.X11-unix/X" + number):
        attempt("display " + path.replace("\0", "@"), lambda: display(path))
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def stage() -> Iterator[Machine]:
    with tempfile.TemporaryDirectory(prefix="surehand-b-") as name:
        Path(name).chmod(0o755)
        with machine(Path(name)) as made:
            done = made.run("root", *SETUP, "--yes")
            assert done.returncode == 0, done.stderr
            made.run("root", "sh", "-c", f"cat > /etc/surehand/policy.toml <<'END'\n{POLICY}\nEND\n")
            made.start()
            yield made


def uid(stage: Machine, name: str) -> int:
    return int(stage.run("root", "id", "-u", name).stdout)


def daemon_pid(stage: Machine) -> int:
    return int(stage.run("root", "cat", "/run/surehand/daemon.lease").stdout)


def test_the_command_is_done_once_and_says_so(stage: Machine) -> None:
    again = stage.run("root", *SETUP, "--yes")
    assert again.returncode == 0
    assert "will" not in again.stdout
    assert again.stdout.count("done") == 6
    facts = stage.run("root", "stat", "-c", "%U %a %n", "/etc/surehand", "/var/lib/surehand", "/run/surehand").stdout
    assert facts.splitlines() == [
        "root 755 /etc/surehand",
        "surehand 700 /var/lib/surehand",
        "surehand 711 /run/surehand",
    ]


def test_what_would_not_be_level_b_is_refused_before_anything_is_made(stage: Machine) -> None:
    look = ("sh", "-c", "cat /etc/passwd; ls -lR /etc/surehand")
    before = stage.run("root", *look).stdout
    other = ("setup", "level-b", "--agent", "other", "--approver", "ann", "--yes")
    assert "does not name these users" in stage.run("root", SUREHAND, *other).stderr
    assert "takes root" in stage.run("ann", *SETUP, "--yes").stderr
    assert stage.run("root", *look).stdout == before


def test_level_b_is_what_everybody_is_told(stage: Machine) -> None:
    assert stage.cli("ann", "keys", "show")["data"]["daemon"]["trust_level"] == "B"
    assert "Trust level B" in stage.cli("bot", "doctor")["data"]["trust_level_note"]
    started = stage.cli("ann", "audit", "show", "--type", "daemon.started.v1")["data"]["events"]
    assert started[-1]["payload"]["trust_level"] == "B"


def test_the_agent_acts_and_only_the_approver_answers(stage: Machine) -> None:
    """The whole path: a real application in the daemon's desktop, a proposal, the agent's attempts, a person's yes."""
    assert stage.cli("ann", "desktop", "start", "--name", "work")["ok"]
    assert stage.cli("ann", "desktop", "launch", "work", "--", "mousepad")["ok"]
    act = ("act", "set_value", "Hello", "--app", "mousepad", "--role", "text", "--id", "b-1", "--timeout", "25")
    asked = stage.cli("bot", *act)["error"]
    assert asked["code"] == "approval_required"
    approval_id = asked["details"]["approval"]["approval_id"]
    for words in (
        ("approvals", "approve", approval_id, "--yes", "--as", "ann", "--keys", "/home/ann/.local/state/surehand/keys"),
        ("stop",),
    ):
        refused = stage.cli("bot", *words)
        assert not refused["ok"], words
        assert refused["error"]["code"] in {"permission_missing", "backend_unavailable", "invalid_request"}, refused
    assert stage.cli("ann", "approvals", "approve", approval_id, "--yes")["data"]["state"] == "approved"
    done = stage.cli("bot", *act)["data"]
    assert done["status"] == "succeeded"
    principal = f"uid:{uid(stage, 'bot')}"
    events = stage.cli("ann", "audit", "show", "--operation", "b-1", "--principal", principal)["data"]["events"]
    assert events[-1]["payload"]["receipt"]["trust_level"] == "B"
    # The approver has no way to act as an agent, whatever they may answer.
    refused = stage.cli("ann", "apps")
    assert refused["error"]["code"] == "permission_missing"


def test_an_agent_with_a_shell_reaches_its_own_socket_and_nothing_else(stage: Machine) -> None:
    stage.cli("ann", "desktop", "start", "--name", "other")
    displays = [
        one["display"].removeprefix(":").partition(".")[0]
        for one in stage.cli("ann", "desktop", "list")["data"]["desktops"]
    ]
    pid = daemon_pid(stage)
    done = stage.run("bot", "/usr/bin/python3", "-c", _ATTACK, pid, "/run/surehand", SUREHAND, *displays)
    found: dict[str, str] = json.loads(done.stdout or done.stderr)
    assert found.pop("agent") == "connected"
    assert any(name.startswith("display") for name in found)
    got = {
        name: how
        for name, how in found.items()
        if not re.fullmatch(r"(Permission|FileNotFound|ConnectionRefused)Error", how)
    }
    assert got == {}
    assert daemon_pid(stage) == pid
    assert stage.cli("ann", "ps")["ok"]


def test_who_connected_is_who_speaks_whoever_holds_the_socket(stage: Machine) -> None:
    """A socket that root or the approver inherits from the agent is still the agent's."""
    code = (
        "import json, os, socket, struct, subprocess, sys\n"
        "s = socket.socket(socket.AF_UNIX)\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    os.setgroups([]); os.setgid(int(sys.argv[2])); os.setuid(int(sys.argv[1]))\n"
        "    s.connect('/run/surehand/agent.sock'); os._exit(0)\n"
        "os.waitpid(pid, 0)\n"
        "body = json.dumps({'hello': json.loads(sys.argv[3])}).encode()\n"
        "s.sendall(struct.pack('>I', len(body)) + body)\n"
        "n = struct.unpack('>I', s.recv(4))[0]; print(s.recv(n).decode())\n"
    )
    from tests.unit.daemon.fakes import hello_value

    bot = uid(stage, "bot")
    done = stage.run("root", "/usr/bin/python3", "-c", code, bot, bot, json.dumps(hello_value()))
    assert json.loads(done.stdout)["welcome"]["principal"] == f"uid:{bot}"


def test_a_level_that_does_not_hold_is_not_claimed(stage: Machine) -> None:
    stage.stop()
    stage.run("root", "chown", "bot", "/var/lib")
    try:
        stage.start()
        told: dict[str, Any] = stage.cli("ann", "keys", "show")["data"]["daemon"]
        assert told["trust_level"] == "A"
        assert told["held_back"] == [f"the agent of uid {uid(stage, 'bot')} may change /var/lib"]
    finally:
        stage.stop()
        stage.run("root", "chown", "root", "/var/lib")


def test_undo_takes_back_what_was_made_and_keeps_the_evidence(stage: Machine) -> None:
    stage.stop()
    done = stage.run("root", *SETUP, "--undo", "--yes")
    assert done.returncode == 0, done.stderr
    assert stage.run("root", "id", "bot").returncode != 0
    assert stage.run("root", "id", "surehand").returncode != 0
    assert stage.run("root", "id", "ann").returncode == 0
    assert stage.run("root", "sh", "-c", "ls /etc/surehand").stdout.split() == ["policy.toml"]
    assert stage.run("root", "test", "-s", "/var/lib/surehand/journal.sqlite").returncode == 0
