"""Where desktops are written down: private, proven alive, tidied up."""

from __future__ import annotations

import fcntl
import os
import subprocess
from pathlib import Path

import msgspec
import pytest

from surehand.errors import Conflict, PermissionMissing, Unavailable
from surehand.runtime import _desktop_records as records


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setattr(records, "_SHORT_ROOT", str(tmp_path))
    return tmp_path / f"surehand-{os.getuid()}"


def record(name: str = "one", **changes: object) -> records.DesktopRecord:
    own = records.process_generation(os.getpid()) or ""
    value = records.DesktopRecord(
        name=name,
        display=":91",
        xauthority="/x",
        session_bus_address="unix:path=/b",
        a11y_bus_address="unix:path=/a",
        folder="/f",
        isolation="isolated",
        isolation_reason=None,
        geometry=(1280, 800),
        view=False,
        network=False,
        binds=(),
        control="/c",
        owner_pid=os.getpid(),
        owner_generation=own,
        supervisor_pid=os.getpid(),
        supervisor_generation=own,
        started_at_ms=1,
    )
    return msgspec.structs.replace(value, **changes)


def write(value: records.DesktopRecord) -> Path:
    path = records.records_folder() / f"{value.name}.json"
    records.write_record(path, value)
    return path


def test_folders_are_private_and_made_when_missing(root: Path) -> None:
    for folder in (records.runtime_root(), records.records_folder(), records.folders_folder()):
        assert folder.is_relative_to(root)
        assert folder.stat().st_mode & 0o777 == 0o700


def test_the_runtime_folder_of_the_session_is_used_when_it_is_ours_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: Path
) -> None:
    runtime = tmp_path / "run"
    runtime.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    assert records.runtime_root() == runtime / "surehand"
    runtime.chmod(0o755)
    assert records.runtime_root() == root
    monkeypatch.setenv("XDG_RUNTIME_DIR", "relative")
    assert records.runtime_root() == root


@pytest.mark.parametrize("mode", [0o701, 0o710, 0o770, 0o777])
def test_a_folder_that_others_may_enter_is_refused(root: Path, mode: int) -> None:
    root.mkdir()
    root.chmod(mode)
    with pytest.raises(PermissionMissing, match="not a private folder") as caught:
        records.runtime_root()
    assert str(root) in (caught.value.fix or "")


def test_a_link_in_place_of_the_folder_is_refused(root: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    root.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PermissionMissing):
        records.runtime_root()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_somebody_else_is_refused(root: Path) -> None:
    root.mkdir(mode=0o700)
    os.chown(root, 65534, 65534)
    with pytest.raises(PermissionMissing):
        records.runtime_root()


def test_a_record_is_private_and_never_seen_in_part() -> None:
    (records.folders_folder() / "one").mkdir()
    path = write(record())
    assert path.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in records.records_folder().iterdir()] == ["one.json"]


def locked(name: str) -> int:
    path, fd = records.claim_folder(name)
    assert path.is_dir()
    return fd


def test_a_living_desktop_is_listed_and_found() -> None:
    fd = locked("one")
    write(record())
    assert [found.name for found in records.list_desktops()] == ["one"]
    assert records.find_desktop("one") == record()
    with pytest.raises(Unavailable, match=r"no desktop named 'two' runs \(running: one\)") as caught:
        records.find_desktop("two")
    assert "surehand desktop start --name two" in (caught.value.fix or "")
    os.close(fd)


@pytest.mark.parametrize("who", ["owner_generation", "supervisor_generation"])
def test_a_record_whose_process_is_gone_or_another_is_not_listed(who: str) -> None:
    fd = locked("one")
    write(record(**{who: f"{os.getpid()}:1"}))  # the pid lives, as another process
    assert records.list_desktops() == []
    os.close(fd)


def test_the_leftovers_of_a_dead_desktop_are_removed() -> None:
    os.close(locked("dead"))
    path = write(record("dead"))
    records.control_socket(path.stem).touch()
    assert records.list_desktops() == []
    assert list(records.records_folder().iterdir()) == []
    assert list(records.controls_folder().iterdir()) == []
    assert list(records.folders_folder().iterdir()) == []


@pytest.mark.parametrize("junk", [b"", b"{", b"[]", b'{"name": 1}', b"\xff" * 100, b'{"unknown": true}'])
def test_a_damaged_record_is_no_desktop_and_stops_nobody(junk: bytes) -> None:
    fd = locked("one")
    write(record())
    other = locked("two")
    (records.records_folder() / "two.json").write_bytes(junk)
    assert [found.name for found in records.list_desktops()] == ["one"]
    os.close(fd)
    os.close(other)


def test_a_name_in_use_is_a_conflict_and_a_dead_ones_is_free() -> None:
    fd = locked("one")
    with pytest.raises(Conflict, match="runs already"):
        records.claim_folder("one")
    os.close(fd)
    (records.folders_folder() / "one" / "left").touch()
    path, fd = records.claim_folder("one")
    assert list(path.iterdir()) == []
    second = os.open(path, os.O_RDONLY)
    with pytest.raises(BlockingIOError):
        fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(second)
    os.close(fd)


def test_the_lock_passes_to_whoever_inherits_the_descriptor() -> None:
    path, fd = records.claim_folder("one")
    keeper = subprocess.Popen(["sleep", "60"], pass_fds=[fd])
    os.close(fd)
    try:
        records.remove_leftovers()
        assert path.exists()
    finally:
        keeper.kill()
        keeper.wait()
    records.remove_leftovers()
    assert not path.exists()


def test_a_dead_servers_lock_is_removed_and_a_living_ones_is_not(tmp_path: Path) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    for pid, stays in ((gone.pid, False), (os.getpid(), True)):
        fd = locked("one")
        number = 5_000_000 + pid  # beyond every real display
        lock = Path(f"/tmp/.X{number}-lock")  # noqa: S108
        lock.write_text(f"{pid:10d}\n")
        (records.folders_folder() / "one" / "etc").mkdir()
        (records.folders_folder() / "one" / "etc" / "display").write_text(str(number))
        os.close(fd)
        try:
            records.remove_leftovers()
            assert lock.exists() is stays
        finally:
            lock.unlink(missing_ok=True)


def test_generations_tell_processes_apart() -> None:
    own = records.process_generation(os.getpid())
    assert own == records.process_generation(os.getpid())
    child = subprocess.Popen(["sleep", "60"])
    assert records.process_generation(child.pid) not in {own, None}
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert records.process_generation(child.pid) is None  # a zombie runs no more
    child.wait()
    assert records.process_generation(child.pid) is None
