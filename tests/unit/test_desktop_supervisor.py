"""The supervisor as a process: what it starts, refuses and survives."""

from __future__ import annotations

import json
import os
import selectors
import signal
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from surehand.errors import InvalidRequest, Unavailable
from surehand.runtime._desktop_client import Command, SupervisorClient
from surehand.runtime._desktop_records import process_generation
from surehand.runtime._desktop_supervisor import Supervisor

WAIT_S = 10.0


def until(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, condition
        time.sleep(0.005)


class Place:
    def __init__(self, path: Path) -> None:
        self.folder = path / "desk"
        (self.folder / "etc").mkdir(parents=True)
        self.record = path / "desk.json"
        self.record.touch()
        self.control = path / "desk.sock"
        config = {"folder": str(self.folder), "record": str(self.record), "control": str(self.control)}
        folder_fd = os.open(self.folder, os.O_RDONLY)
        self.client = SupervisorClient.start(config, folder_fd, path / "log")
        os.close(folder_fd)
        self.client.ready.result(WAIT_S)
        self.log = path / "log"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    made.client.close()
    assert made.log.read_text() == ""
    assert not made.folder.exists()
    assert not made.record.exists()
    assert not made.control.exists()


def command(*argv: str, **more: Any) -> Command:
    return Command(argv=argv, env={"ONLY": "this"}, cwd="/", **more)


def output(place: Place, *argv: str, **more: Any) -> str:
    read, write = os.pipe()
    with open(read) as pipe:  # noqa: PTH123 - a descriptor
        process = place.client.spawn(command(*argv, fds={1: write}, **more))
        os.close(write)
        text = pipe.read()
    assert process.exited.result(WAIT_S) == 0
    return text


def test_a_program_gets_the_given_environment_and_descriptors_only(place: Place) -> None:
    assert output(place, "/usr/bin/env") == "ONLY=this\n"
    assert output(place, "/bin/ls", "/proc/self/fd").split() == ["0", "1", "2", "3"]  # 3 is its own
    read, write = os.pipe()
    os.close(write)
    listed = place.client.spawn(command("/bin/sh", "-c", "test -e /proc/self/fd/7", fds={7: read}))
    os.close(read)
    assert listed.exited.result(WAIT_S) == 0


def test_a_program_leads_its_own_session_with_default_signals(place: Place) -> None:
    stat = output(place, "/bin/cat", "/proc/self/stat").split()
    assert stat[0] == stat[5]
    status = output(place, "/bin/cat", "/proc/self/status").splitlines()
    ignored = next(line for line in status if line.startswith("SigIgn"))
    assert int(ignored.split()[1], 16) == 0


def test_a_program_that_does_not_exist_is_refused_with_the_reason(place: Place) -> None:
    process = place.client.spawn(command("/no/such/program"))
    with pytest.raises(Unavailable, match="FileNotFoundError"):
        process.spawned.result(WAIT_S)
    assert process.exited.result(WAIT_S) == 127


def test_a_folder_that_does_not_exist_is_refused_with_the_reason(place: Place) -> None:
    process = place.client.spawn(Command(argv=("/bin/true",), env={}, cwd="/no/such/folder"))
    with pytest.raises(Unavailable, match="FileNotFoundError"):
        process.spawned.result(WAIT_S)


def test_ends_are_told_with_status_or_signal(place: Place) -> None:
    assert place.client.spawn(command("/bin/sh", "-c", "exit 7")).exited.result(WAIT_S) == 7
    killed = place.client.spawn(command("/bin/sleep", "1000"))
    killed.spawned.result(WAIT_S)
    killed.signal(signal.SIGUSR1)
    assert killed.exited.result(WAIT_S) == -signal.SIGUSR1
    assert killed.returncode == -signal.SIGUSR1


@pytest.mark.parametrize(
    "packet",
    [
        b"{",
        b"[]",
        b"null",
        b"{}",
        b'{"op": "no such thing"}',
        b'{"op": "spawn"}',
        b'{"op": "spawn", "id": 1, "argv": [], "env": {}, "cwd": "/", "fds": []}',
        b'{"op": "spawn", "id": 1, "argv": ["/bin/true"], "env": {}, "cwd": "/", "fds": [1, 2]}',
        b'{"op": "spawn", "id": "x", "argv": ["/bin/true"], "env": {}, "cwd": "/", "fds": []}',
        b'{"op": "signal", "id": 1, "signal": "x", "everything": true}',
        b"\xff\xfe",
        b"[" * 5_000,
        b"x" * 190_000,
    ],
    ids=lambda packet: packet[:40].decode("latin1"),
)
def test_a_malformed_request_is_refused_and_serving_goes_on(place: Place, packet: bytes) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as sock:
        sock.settimeout(WAIT_S)
        sock.connect(str(place.control))
        assert json.loads(sock.recv(1000)) == {"event": "ready"}
        sock.send(packet)
        assert json.loads(sock.recv(10_000))["event"] == "refused"
    assert output(place, "/bin/echo", "still here") == "still here\n"


def test_a_request_as_long_as_a_packet_passes_and_a_longer_one_does_not(place: Place) -> None:
    with pytest.raises(InvalidRequest, match="too long"):
        place.client.spawn(command("/bin/true", *["x" * 1000] * 196))
    fits = place.client.spawn(command("/bin/true", *["x" * 1000] * 195))
    assert fits.exited.result(WAIT_S) == 0


def test_a_visitors_programs_outlive_the_visit_and_die_with_the_desktop(place: Place) -> None:
    visitor = SupervisorClient.attach(str(place.control))
    visitor.ready.result(WAIT_S)
    pid = visitor.spawn(command("/bin/sleep", "1000")).spawned.result(WAIT_S)[1]
    visitor.close()
    assert output(place, "/bin/echo", "still here") == "still here\n"
    assert process_generation(pid) is not None
    place.client.close()
    assert process_generation(pid) is None


def test_a_visitor_cannot_signal_what_others_started(place: Place) -> None:
    mine = place.client.spawn(command("/bin/sleep", "1000"))
    mine.spawned.result(WAIT_S)
    visitor = SupervisorClient.attach(str(place.control))
    visitor.ready.result(WAIT_S)
    visitor.send({"op": "signal", "id": 1, "signal": 9, "everything": True})
    theirs = visitor.spawn(command("/bin/true"))
    assert theirs.exited.result(WAIT_S) == 0
    assert mine.returncode is None
    visitor.close()


def test_the_control_socket_is_for_us_alone(place: Place) -> None:
    assert place.control.stat().st_mode & 0o077 == 0


def test_a_closed_channel_ends_the_desktop_while_its_owner_lives(tmp_path: Path) -> None:
    place = Place(tmp_path)
    pid = place.client.spawn(command("/bin/sleep", "1000")).spawned.result(WAIT_S)[1]
    place.client._sock.shutdown(socket.SHUT_RDWR)
    place.client.lost.result(WAIT_S)
    assert process_generation(pid) is None
    assert not place.folder.exists()


def test_programs_that_leave_the_family_are_found_at_the_end(tmp_path: Path) -> None:
    place = Place(tmp_path)
    mark = tmp_path / "pids"
    script = f"for i in 1 2 3; do setsid sh -c 'echo $$ >> {mark}; setsid sleep 1000 & echo $! >> {mark}; exec sleep 1000' & done"
    assert place.client.spawn(command("/bin/sh", "-c", script)).exited.result(WAIT_S) == 0
    until(lambda: mark.exists() and len(mark.read_text().split()) == 6)
    pids = [int(word) for word in mark.read_text().split()]
    assert all(process_generation(pid) for pid in pids)
    place.client.close()
    assert not any(process_generation(pid) for pid in pids)


def test_a_server_may_end_in_its_own_way_and_after_everything_else(tmp_path: Path) -> None:
    place = Place(tmp_path)
    mark = tmp_path / "mark"
    app = place.client.spawn(command("/bin/sleep", "1000"))
    pid = app.spawned.result(WAIT_S)[1]
    script = f"trap 'kill -0 {pid} 2>/dev/null && echo early > {mark} || echo late > {mark}; exit' TERM; echo ready; while :; do sleep 0.01; done"
    read, write = os.pipe()
    place.client.spawn(command("/bin/sh", "-c", script, role="server", fds={1: write}))
    os.close(write)
    assert os.read(read, 10) == b"ready\n"
    os.close(read)
    place.client.close()
    assert mark.read_text() == "late\n"


def test_a_server_that_does_not_end_is_killed(tmp_path: Path) -> None:
    place = Place(tmp_path)
    read, write = os.pipe()
    server = place.client.spawn(
        command(
            "/bin/sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.01; done", role="server", fds={1: write}
        )
    )
    os.close(write)
    pid = server.spawned.result(WAIT_S)[1]
    assert os.read(read, 10) == b"ready\n"
    os.close(read)
    place.client.close()
    assert process_generation(pid) is None


def test_only_the_lock_of_this_desktop_is_released(tmp_path: Path) -> None:
    for owner, stays in (("supervisor", False), ("somebody", True)):
        folder = tmp_path / owner
        folder.mkdir()
        place = Place(folder)
        number = 6_000_000 + (place.client.pid or 0)
        lock = Path(f"/tmp/.X{number}-lock")  # noqa: S108
        (place.folder / "etc" / "display").write_text(str(number))
        lock.write_text(f"{place.client.pid if owner == 'supervisor' else os.getpid():10d}\n")
        place.client.close()
        assert lock.exists() is stays
        lock.unlink(missing_ok=True)


def test_an_event_about_what_has_just_been_closed_is_dropped() -> None:
    supervisor = Supervisor({})
    pipes = [os.pipe() for _ in range(2)]
    answered = []

    def answer(number: int) -> None:
        answered.append(number)
        for read, write in pipes:
            supervisor.selector.unregister(read)
            os.close(read)
            os.close(write)

    for number, (read, write) in enumerate(pipes):
        supervisor.selector.register(read, selectors.EVENT_READ, lambda _, number=number: answer(number))
        os.write(write, b"x")
    supervisor.turn(WAIT_S)
    supervisor.turn(0)
    assert len(answered) == 1


@pytest.mark.parametrize(
    ("number", "reason"),
    [(signal.SIGTERM, "its supervisor got SIGTERM"), (signal.SIGKILL, "its supervisor was ended by SIGKILL")],
)
def test_a_desktop_that_was_ended_from_outside_says_how(tmp_path: Path, number: int, reason: str) -> None:
    place = Place(tmp_path)
    attached = SupervisorClient.attach(str(place.control))
    attached.ready.result(WAIT_S)
    os.kill(place.client.pid or 0, number)
    place.client.lost.result(WAIT_S)
    with pytest.raises(Unavailable, match=f"the desktop has ended: {reason}"):
        place.client.spawn(command("/bin/true"))
    attached.lost.result(WAIT_S)
    # Another process's supervisor is not ours to wait for: of a killed one nothing more is known.
    known = reason if number == signal.SIGTERM else "its supervisor went without a word"
    with pytest.raises(Unavailable, match=known):
        attached.spawn(command("/bin/true"))
    place.client.close()


def test_a_desktop_that_a_defect_ended_says_where_and_nothing_of_what_it_was_about(tmp_path: Path) -> None:
    folder = tmp_path / "desk"
    folder.mkdir()
    config = {"folder": str(folder), "record": "", "control": str(tmp_path / ("secret" * 30))}
    folder_fd = os.open(folder, os.O_RDONLY)
    client = SupervisorClient.start(config, folder_fd, tmp_path / "log")
    os.close(folder_fd)
    with pytest.raises(Unavailable, match=r"a defect of its supervisor: OSError in _open_control, line \d+") as caught:
        client.ready.result(WAIT_S)
    assert "secret" not in str(caught.value)
    assert "AF_UNIX path too long" in (tmp_path / "log").read_text()
    client.close()
    assert not folder.exists()


def test_a_vital_part_may_end_before_everything_runs_and_not_afterwards(place: Place) -> None:
    assert place.client.spawn(command("/bin/true", vital="display server")).exited.result(WAIT_S) == 0
    place.client.up()
    assert place.client.spawn(command("/bin/true")).exited.result(WAIT_S) == 0
    assert not place.client.lost.done()
    place.client.spawn(command("/bin/false", vital="display server"))
    place.client.lost.result(WAIT_S)
    assert "its display server ended with status 1" in place.client.gone().message


def test_after_the_end_every_call_says_so(tmp_path: Path) -> None:
    place = Place(tmp_path)
    process = place.client.spawn(command("/bin/sleep", "1000"))
    process.spawned.result(WAIT_S)
    place.client.close()
    assert process.exited.result(WAIT_S) == -signal.SIGKILL
    with pytest.raises(Unavailable, match="has ended"):
        place.client.spawn(command("/bin/true"))
    with pytest.raises(Unavailable, match="does not answer"):
        SupervisorClient.attach(str(place.control))
