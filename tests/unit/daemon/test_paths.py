"""Where the sockets are, and what is refused there."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from surehand import limits
from surehand.client import opening
from surehand.core.wire.places import Places, places, places_in
from surehand.daemon import entry
from surehand.daemon.paths import Lease, listen, prepare
from surehand.daemon.peer import trust_of
from surehand.errors import InvalidRequest, PermissionMissing, Unavailable
from surehand.runtime._desktop_records import runtime_root
from surehand.signing import runtime_folder
from surehand.signing.runtime_folder import with_runtime_folder
from tests.unit.daemon.fakes import Raw, running

TMP = "/tmp/surehand-7"  # noqa: S108


def exists(path: str) -> bool:
    return os.path.lexists(path)


def mode(path: str | Path) -> int:
    return stat.S_IMODE(os.lstat(path).st_mode)


@pytest.mark.parametrize(
    ("environ", "folder"),
    [
        ({}, TMP),
        ({"XDG_RUNTIME_DIR": "/run/user/7"}, "/run/user/7/surehand"),
        ({"XDG_RUNTIME_DIR": "/run/user/7/"}, "/run/user/7/surehand"),
        ({"XDG_RUNTIME_DIR": "run/user/7"}, TMP),
        ({"XDG_RUNTIME_DIR": ""}, TMP),
        ({"XDG_RUNTIME_DIR": "/run/user/7", "SUREHAND_RUNTIME_DIR": "/srv/test/"}, "/srv/test"),
    ],
)
def test_the_folder_that_an_environment_chooses(environ: dict[str, str], folder: str) -> None:
    assert places(environ, 7).runtime_dir == folder


@pytest.fixture
def usual(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that the system made for this user."""
    monkeypatch.setattr(runtime_folder, "_MADE_IN", tmp_path)
    found = tmp_path / str(os.getuid())
    found.mkdir(mode=0o700)
    return found


@pytest.mark.parametrize("environ", [{}, {"XDG_RUNTIME_DIR": ""}, {"XDG_RUNTIME_DIR": "run/user/7"}])
def test_without_the_word_for_it_the_systems_folder_is_found_by_daemon_and_client(
    environ: dict[str, str], usual: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("XDG_RUNTIME_DIR", "SUREHAND_RUNTIME_DIR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    asked: list[str] = []

    def met(found: Places, *_: object, **__: object) -> None:
        asked.append(found.runtime_dir)
        raise Unavailable("not now")

    async def served(_options: object, found: Places, *_: object) -> None:
        asked.append(found.runtime_dir)

    monkeypatch.setattr(opening, "meet", met)
    monkeypatch.setattr(entry, "_serve", served)
    with pytest.raises(Unavailable, match="not now"):
        opening.connector("agent", None, "test", start=False)()
    entry.run_daemon(entry.ServeOptions())
    assert asked == [f"{usual}/surehand"] * 2
    assert runtime_root() == usual / "surehand"


def test_a_folder_that_the_environment_names_is_left_as_it_is(usual: Path) -> None:
    del usual
    for environ in ({"XDG_RUNTIME_DIR": "/srv/x"}, {"XDG_RUNTIME_DIR": "/srv/x", "SUREHAND_RUNTIME_DIR": "/srv/y"}):
        assert with_runtime_folder(environ, os.getuid()) == environ


@pytest.mark.parametrize("what", ["open to others", "a link", "a file", "missing", "another user's"])
def test_a_system_folder_that_is_not_ours_alone_is_not_used(what: str, usual: Path) -> None:
    uid = os.getuid()
    if what == "open to others":
        usual.chmod(0o710)
    elif what == "another user's":
        uid += 1
        usual.rename(usual.with_name(str(uid)))
    else:
        usual.rmdir()
    if what == "a link":
        usual.symlink_to("/")
    elif what == "a file":
        usual.touch(mode=0o700)
    assert with_runtime_folder({"XDG_RUNTIME_DIR": "x"}, uid) == {}


@pytest.mark.parametrize("bad", ["relative", "./x", "~"])
def test_a_relative_folder_is_refused(bad: str) -> None:
    with pytest.raises(InvalidRequest):
        places({"SUREHAND_RUNTIME_DIR": bad}, 7)


def test_a_path_at_the_sockets_limit_is_used_and_one_byte_more_becomes_a_digest() -> None:
    room = limits.SOCKET_PATH_BYTES_MAX - len("/control.sock")
    fits = places_in("/" + "x" * (room - 1), 7)
    assert len(fits.control_socket) == limits.SOCKET_PATH_BYTES_MAX
    assert fits.socket_dir == fits.runtime_dir
    long = places_in("/" + "x" * room, 7)
    assert long.socket_dir.startswith(f"{TMP}/")
    assert len(long.control_socket) <= limits.SOCKET_PATH_BYTES_MAX
    assert long.lease.startswith(long.runtime_dir)
    assert places_in("/" + "y" * room, 7).socket_dir != long.socket_dir


def test_the_limit_counts_bytes_not_characters() -> None:
    assert places_in("/" + "ü" * 60, 7).socket_dir.startswith(TMP)


async def test_a_long_runtime_folder_works_through_its_digest(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 120)
    async with running(deep) as run:
        assert run.places.socket_dir != run.places.runtime_dir
        assert mode(run.places.socket_dir) == 0o700
        await Raw.hello(run.places.agent_socket)
    os.rmdir(run.places.socket_dir)  # noqa: PTH106


async def test_sockets_are_private_files_in_a_private_folder_and_go_at_the_end(tmp_path: Path) -> None:
    async with running(tmp_path) as run:
        assert mode(run.places.runtime_dir) == 0o700
        for path in (run.places.agent_socket, run.places.control_socket):
            assert stat.S_ISSOCK(os.lstat(path).st_mode)
            assert mode(path) == 0o600
            assert os.lstat(path).st_uid == os.getuid()
    assert not exists(run.places.agent_socket)
    assert not exists(run.places.control_socket)


@pytest.mark.parametrize("foreign", [False, True])
@pytest.mark.parametrize("kind", ["symlink", "file", "open to others", "somebody else's"])
def test_a_folder_that_others_could_steer_is_refused_and_left_as_it_is(
    tmp_path: Path, kind: str, foreign: bool
) -> None:
    where = tmp_path / "run"
    if kind == "symlink":
        (tmp_path / "real").mkdir(mode=0o700)
        where.symlink_to(tmp_path / "real")
    elif kind == "file":
        where.touch(mode=0o700)
    else:
        where.mkdir(mode=0o700)
        if kind == "open to others":
            where.chmod(0o722)
        elif os.getuid() == 0:
            os.chown(where, 65534, 65534)
        else:
            pytest.skip("only root can give a folder away")
    before = os.lstat(where)
    with pytest.raises(PermissionMissing) as caught:
        prepare(places_in(str(where), os.getuid()), foreign=foreign)
    assert caught.value.fix
    after = os.lstat(where)
    assert (after.st_mode, after.st_uid, after.st_ino) == (before.st_mode, before.st_uid, before.st_ino)


@pytest.mark.parametrize("foreign", [False, True])
def test_a_folder_that_cannot_be_made_is_a_typed_error(foreign: bool) -> None:
    with pytest.raises(Unavailable, match="/proc/surehand"):
        prepare(places_in("/proc/surehand", os.getuid()), foreign=foreign)


def test_other_users_can_pass_but_not_list_where_the_operator_admits_them(tmp_path: Path) -> None:
    trust = trust_of((65534,), ())
    assert trust.foreign(os.getuid())
    where = places_in(str(tmp_path / "run"), os.getuid())
    prepare(where, foreign=True)
    assert mode(where.runtime_dir) == 0o711
    lease = Lease.take(where.lease)
    place = listen(where.agent_socket, lease, foreign=True, backlog=1)
    assert mode(where.agent_socket) == 0o666
    place.remove()
    place.socket.close()
    lease.release()


def test_what_a_dead_daemon_left_is_replaced_by_the_lease_holder(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    old = socket.socket(socket.AF_UNIX)
    old.bind(path)
    old.close()
    lease = Lease.take(str(tmp_path / "lease"))
    place = listen(path, lease, foreign=False, backlog=1)
    with socket.socket(socket.AF_UNIX) as probe:
        probe.connect(path)
    place.remove()
    place.socket.close()
    lease.release()


@pytest.mark.parametrize("kind", ["symlink", "file", "folder"])
def test_anything_else_than_our_socket_in_its_place_is_left_alone(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "s"
    if kind == "symlink":
        target = socket.socket(socket.AF_UNIX)
        target.bind(str(tmp_path / "real"))
        target.close()
        path.symlink_to(tmp_path / "real")
    elif kind == "file":
        path.write_text("mine")
    else:
        path.mkdir()
    lease = Lease.take(str(tmp_path / "lease"))
    with pytest.raises(PermissionMissing, match="not a socket of ours"):
        listen(str(path), lease, foreign=False, backlog=1)
    assert exists(path)
    lease.release()


def test_a_second_daemon_is_refused_and_names_the_first(tmp_path: Path) -> None:
    lease = Lease.take(str(tmp_path / "lease"))
    with pytest.raises(Unavailable, match="already runs") as caught:
        Lease.take(str(tmp_path / "lease"), wait_ms=0)
    assert caught.value.details == {"pid": str(os.getpid())}
    lease.release()
    Lease.take(str(tmp_path / "lease"), wait_ms=0).release()


def test_a_symlinked_lease_is_refused(tmp_path: Path) -> None:
    (tmp_path / "lease").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic"):
        Lease.take(str(tmp_path / "lease"), wait_ms=0)


def test_a_killed_daemon_holds_no_lease(tmp_path: Path) -> None:
    code = (
        "import sys,time\nfrom surehand.daemon.paths import Lease\n"
        f"lease = Lease.take({str(tmp_path / 'lease')!r})\nprint('held', flush=True)\ntime.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"held\n"
        with pytest.raises(Unavailable):
            Lease.take(str(tmp_path / "lease"), wait_ms=0)
        child.kill()
        child.wait()
    Lease.take(str(tmp_path / "lease"), wait_ms=0).release()


def test_at_the_end_a_newer_daemons_socket_is_not_removed(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    lease = Lease.take(str(tmp_path / "lease"))
    first = listen(path, lease, foreign=False, backlog=1)
    Path(path).rename(tmp_path / "aside")
    second = listen(path, lease, foreign=False, backlog=1)
    first.remove()
    assert exists(path)
    second.remove()
    assert not exists(path)
    for place in (first, second):
        place.socket.close()
    lease.release()
