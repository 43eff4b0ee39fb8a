"""The daemon's life as processes: started once, ready by its own word, ended in order, replaced after a kill."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import surehand
from surehand import limits
from surehand.client.control import Control
from surehand.client.starting import built_environment
from surehand.core.wire.places import Places, places
from surehand.errors import Unavailable

SERVE = [sys.executable, "-c", "import sys; from surehand.cli import main; sys.exit(main(sys.argv[1:]))", "serve"]


def until(fact: Callable[[], object], seconds: float = 15) -> None:
    end = time.monotonic() + seconds
    while not fact():
        assert time.monotonic() < end, "it never became so"
        time.sleep(0.01)


@pytest.fixture
def where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Places]:
    """A daemon folder of this test alone; whatever runs there at the end is ended by its own pid."""
    for name in ("xdg", "run"):
        (tmp_path / name).mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "xdg"))
    monkeypatch.setenv("SUREHAND_RUNTIME_DIR", str(tmp_path / "run"))
    found = places(os.environ, os.getuid())
    yield found
    with contextlib.suppress(FileNotFoundError, ValueError, ProcessLookupError):
        pid = int(Path(found.lease).read_text())
        os.kill(pid, signal.SIGKILL)
        until(lambda: not alive(pid))


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}
    except OSError:
        return False


def pid_of(where: Places) -> int:
    return int(Path(where.lease).read_text())


def test_a_client_starts_the_daemon_and_it_outlives_the_client(where: Places) -> None:
    with surehand.open() as hand:
        assert hand.about["principal"] == f"uid:{os.getuid()}"
        assert hand.about["trust_level"] == "A"
    pid = pid_of(where)
    assert alive(pid)
    # It is nobody's child here: no zombie is left when it ends.
    with pytest.raises(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
    with Control() as control:
        control.call("stop")
    until(lambda: not alive(pid))
    assert not os.path.lexists(where.agent_socket)
    assert not os.path.lexists(where.control_socket)


def test_where_the_operators_own_start_failed_no_client_starts_another_configuration(
    where: Places, tmp_path: Path
) -> None:
    """A mistake in a strict configuration must not make room for the default one (case C47)."""
    config = tmp_path / "strict.toml"
    config.write_text('authority = "hots"\n')
    config.chmod(0o600)
    for _ in range(2):
        done = subprocess.run(
            [*SERVE, "--config", str(config)], capture_output=True, text=True, timeout=30, check=False
        )
        assert done.returncode == 2
        with pytest.raises(Unavailable, match=r"strict\.toml: invalid_request"), surehand.open():
            pass
        assert not os.path.lexists(where.agent_socket)
    config.write_text('authority = "daemon"\nidle_exit_s = 0\n')
    with subprocess.Popen([*SERVE, "--config", str(config)], stderr=subprocess.DEVNULL) as serving:
        until(lambda: os.path.lexists(where.control_socket))
        with surehand.open():
            pass
        with Control() as control:
            control.call("stop")
        assert serving.wait(15) == 0
    with surehand.open():  # and from now on clients start one as ever
        pass


def test_a_daemon_that_runs_already_is_no_failed_configuration(where: Places, tmp_path: Path) -> None:
    config = tmp_path / "fine.toml"
    config.write_text("idle_exit_s = 0\n")
    config.chmod(0o600)
    with surehand.open():
        done = subprocess.run(
            [*SERVE, "--config", str(config)], capture_output=True, text=True, timeout=30, check=False
        )
        assert (done.returncode, "already runs" in done.stderr) == (3, True)
    with Control() as control:
        control.call("stop")
    until(lambda: not os.path.lexists(where.agent_socket))
    with surehand.open():
        pass


def test_of_many_clients_at_once_one_starts_the_daemon(where: Places) -> None:
    def work(_: int) -> str:
        with surehand.open() as hand:
            return str(hand.about["session"])

    with ThreadPoolExecutor(8) as pool:
        sessions = list(pool.map(work, range(8)))
    assert len(set(sessions)) == 8
    assert Path(where.log).read_text().count("ready, pid") == 1


async def test_the_asynchronous_client_starts_it_too(where: Places) -> None:
    async with surehand.connect() as hand:
        assert (await hand.status("never-seen"))["operation_id"] == "never-seen"


def test_the_daemon_gets_a_built_environment(where: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISPLAY", ":99")
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-0")
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere")
    monkeypatch.setenv("LD_PRELOAD", "")
    monkeypatch.setenv("PYTHONPATH", "/nowhere")
    monkeypatch.setenv("HOME", "/nowhere")
    monkeypatch.setenv("AN_API_KEY", "secret")
    monkeypatch.setenv("TZ", "UTC")
    built = built_environment(os.environ, os.getuid())
    assert set(built) <= {"PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LC_MESSAGES", "TZ", "XDG_RUNTIME_DIR", "SUREHAND_RUNTIME_DIR"}  # fmt: skip
    assert built["HOME"] != "/nowhere"
    assert built["TZ"] == "UTC"
    with surehand.open():
        pass
    try:
        real = Path(f"/proc/{pid_of(where)}/environ").read_bytes()
    except PermissionError:
        return  # not dumpable, and we are not root: which is the point of the next test
    for foreign in (b"AN_API_KEY", b"DISPLAY", b"DBUS_SESSION", b"LD_PRELOAD", b"PYTHONPATH", b"/nowhere"):
        assert foreign not in real


def test_the_daemon_cannot_be_dumped(where: Places) -> None:
    with surehand.open():
        pass
    # The kernel gives the files of a process that is not dumpable to root.
    assert Path(f"/proc/{pid_of(where)}/mem").stat().st_uid == 0
    if os.getuid() == 0:
        limits_of = Path(f"/proc/{pid_of(where)}/limits").read_text()
        assert any(line.startswith("Max core file size") and " 0 " in line for line in limits_of.splitlines())


def test_a_killed_daemon_is_replaced_and_its_sockets_with_it(where: Places) -> None:
    with surehand.open() as hand:
        first = pid_of(where)
        os.kill(first, signal.SIGKILL)
        until(lambda: not alive(first))
        assert os.path.lexists(where.agent_socket)
        # A read goes to the new daemon by itself.
        hand.status("never-seen")
        second = pid_of(where)
    assert second != first
    assert alive(second)


def test_a_start_that_fails_says_why_to_whoever_waited(where: Places) -> None:
    Path(where.runtime_dir, "state").write_text("in the way")
    with pytest.raises(surehand.SurehandError) as caught, surehand.open():
        pass
    assert "state" in str(caught.value)
    assert caught.value.exit_code == 3
    assert not os.path.lexists(where.agent_socket)


def test_a_daemon_that_dies_without_a_word_has_its_log_quoted(where: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Path(where.runtime_dir) / "broken-python"
    broken.write_text("#!/bin/sh\necho 'cannot find my head' >&2\nexit 1\n")
    broken.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(broken))
    with pytest.raises(Unavailable, match="ended while it started") as caught, surehand.open():
        pass
    assert "cannot find my head" in caught.value.details["log"]


def test_a_daemon_that_is_never_ready_is_given_up(where: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Path(where.runtime_dir) / "slow-python"
    slow.write_text("#!/bin/sh\nsleep 5 &\n")
    slow.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(slow))
    monkeypatch.setattr(limits, "DAEMON_START_MS_MAX", 200)
    with pytest.raises(Unavailable, match="not ready within 200 ms"), surehand.open():
        pass


def test_without_leave_to_start_nothing_is_started(where: Places) -> None:
    with pytest.raises(Unavailable, match="no daemon answers"), surehand.open(start=False):
        pass
    assert not os.path.lexists(where.lease)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_daemon_in_a_terminal_ends_in_order_on_a_signal(where: Places, number: signal.Signals) -> None:
    with subprocess.Popen(SERVE, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as daemon:
        until(lambda: os.path.lexists(where.control_socket))
        with surehand.open(start=False):
            daemon.send_signal(number)
            out, err = daemon.communicate(timeout=20)
    assert daemon.returncode == 0, err
    assert out == "ended\n"
    assert "serving at" in err
    assert not os.path.lexists(where.agent_socket)


def test_a_second_daemon_in_the_same_folder_is_refused_before_it_looks_at_the_journal(
    where: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    with surehand.open():
        pass
    first = pid_of(where)
    done = subprocess.run([*SERVE, "--json"], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 3
    assert f'"pid":"{first}"' in done.stdout
    assert alive(first)


def test_an_idle_daemon_ends_by_itself_and_not_while_somebody_is_there(where: Places) -> None:
    with subprocess.Popen(
        [*SERVE, "--idle-exit", "0.3"], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    ) as daemon:
        until(lambda: os.path.lexists(where.agent_socket))
        with surehand.open(start=False) as hand:
            end = time.monotonic() + 0.6
            while time.monotonic() < end:
                hand.status("x")
            assert daemon.poll() is None
        assert daemon.wait(15) == 0


def test_a_socket_in_a_folder_that_others_can_write_is_not_used(where: Places) -> None:
    """Anybody could have put it there."""
    with socket.socket(socket.AF_UNIX) as there:
        there.bind(where.agent_socket)
        there.listen()
        for loose in (0o777, 0o720, 0o702):
            Path(where.runtime_dir).chmod(loose)
            with pytest.raises(surehand.SurehandError) as caught, surehand.open(start=False):
                pass
            assert caught.value.code == "permission_missing"
        Path(where.runtime_dir).chmod(0o700)


@pytest.mark.skipif(os.getuid() != 0, reason="needs a second user")
def test_a_process_of_another_user_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    code = (
        "import os, socket, sys\n"
        "os.setuid(65534)\n"
        "s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(); print('up', flush=True); s.accept()\n"
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        monkeypatch.setenv("SUREHAND_RUNTIME_DIR", name)
        folder.chmod(0o711)
        os.chown(folder, 65534, 65534)
        with subprocess.Popen([sys.executable, "-c", code, f"{name}/agent.sock"], stdout=subprocess.PIPE) as stranger:
            assert stranger.stdout is not None
            assert stranger.stdout.readline() == b"up\n"
            os.chown(folder, 0, 0)
            with pytest.raises(surehand.SurehandError) as caught, surehand.open(start=False):
                pass
            stranger.kill()
    assert caught.value.code == "permission_missing"
    assert "neither the folder's owner nor root" in str(caught.value)


def test_a_daemon_that_takes_connections_and_says_nothing_is_not_waited_for(
    where: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    from surehand.client import blocking

    monkeypatch.setattr(blocking, "_HELLO_S", 0.2)
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(where.agent_socket)
        silent.listen()
        with pytest.raises(Unavailable, match="in time"), surehand.open(start=False):
            pass
