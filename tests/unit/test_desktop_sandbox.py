"""The bubblewrap command line, and what is said where bubblewrap does not work."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from surehand.errors import InvalidRequest, Unavailable
from surehand.runtime import _desktop_sandbox as sandboxes
from surehand.runtime._desktop_records import folders_folder, records_folder, runtime_root

# ruff: noqa: S108 - X11's own places and a sandbox's /tmp

CACHED = ("bubblewrap", "bubblewrap_problem", "_no_user_namespaces", "root_filter", "can_scope_sockets")


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    def clear() -> None:
        for name in CACHED:
            cached = getattr(sandboxes, name)
            if hasattr(cached, "cache_clear"):  # and not a stand-in
                cached.cache_clear()

    clear()
    yield
    clear()


def sandbox(**changes: object) -> sandboxes.Sandbox:
    value = {"folder": folders_folder() / "one", "display": 91, "network": False, **changes}
    return sandboxes.Sandbox(**value)  # type: ignore[arg-type]


def pairs(argv: list[str]) -> set[tuple[str, ...]]:
    return {tuple(argv[index : index + 3]) for index in range(len(argv) - 2)}


def stand_in(monkeypatch: pytest.MonkeyPatch, path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    monkeypatch.setattr(sandboxes, "bubblewrap", lambda: str(path))


def test_a_program_gets_only_its_own_display_and_folder(tmp_path: Path) -> None:
    extra = tmp_path / "read"
    extra.touch()
    argv = sandboxes.confined(["/bin/true", "x"], sandbox(binds=(extra,)), "/tmp")
    seen = pairs(argv)
    folder = str(folders_folder() / "one")
    assert ("--bind", "/tmp/.X11-unix/X91", "/tmp/.X11-unix/X91") in seen
    assert ("--bind", folder, folder) in seen
    assert ("--ro-bind", f"{folder}/etc", f"{folder}/etc") in seen
    assert ("--ro-bind", str(extra), str(extra)) in seen
    binds = {argv[index + 1] for index, word in enumerate(argv) if word == "--bind"}
    assert binds == {"/tmp/.X11-unix/X91", folder}
    for option in ("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-net", "--die-with-parent"):
        assert option in argv
    assert argv[argv.index("--cap-drop") + 1] == "ALL"
    assert argv[-3:] == ["--", "/bin/true", "x"]


def test_network_is_shared_only_when_granted() -> None:
    assert "--unshare-net" not in sandboxes.confined(["/bin/true"], sandbox(network=True), "/")
    assert "--unshare-net" in sandboxes.confined(["/bin/true"], sandbox(network=False), "/")


def test_user_namespaces_are_kept_from_programs_unless_granted() -> None:
    assert "--disable-userns" in sandboxes.confined(["/bin/true"], sandbox(), "/")
    assert "--disable-userns" not in sandboxes.confined(["/bin/true"], sandbox(), "/", user_namespaces=True)


def test_an_older_bubblewrap_is_used_without_the_option_it_lacks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stand_in(monkeypatch, tmp_path / "bwrap", 'case "$*" in *disable-userns*) exit 1;; esac')
    assert sandboxes.bubblewrap_problem() is None
    assert "--disable-userns" not in sandboxes.confined(["/bin/true"], sandbox(), "/")


def test_a_program_of_opt_brings_its_own_package_and_no_other(tmp_path: Path) -> None:
    argv = sandboxes.confined(["/opt/vendor/app/bin/app"], sandbox(), "/")
    assert ("--ro-bind", "/opt/vendor", "/opt/vendor") in pairs(argv)
    argv = sandboxes.confined(["/opt/app"], sandbox(), "/")
    assert not any(word.startswith("/opt") for word in argv[:-1])


def test_the_display_server_has_no_network_and_no_home() -> None:
    argv = sandboxes.confined_server(["/usr/bin/Xvfb"], Path("/etc/one"), viewer=[Path("/home/a/.Xauthority")])
    assert "--unshare-net" in argv
    assert ("--ro-bind", "/etc/one", "/etc/one") in pairs(argv)
    assert ("--ro-bind", "/home/a/.Xauthority", "/home/a/.Xauthority") in pairs(argv)
    assert {argv[index + 1] for index, word in enumerate(argv) if word == "--bind"} == {"/tmp"}


@pytest.mark.skipif(os.getuid() != 0, reason="an ordinary user cannot read them anyway")
def test_what_ordinary_users_cannot_read_in_etc_is_covered() -> None:
    argv = sandboxes.confined(["/bin/true"], sandbox(), "/")
    assert ("--ro-bind", "/dev/null", "/etc/shadow") in pairs(argv)


def test_an_ordinary_user_needs_no_covers_and_no_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandboxes.os, "getuid", lambda: 1000)
    assert sandboxes._unreadable_for_others(-1) == ()
    assert sandboxes.root_filter() is None


def test_the_filter_of_root_is_a_whole_number_of_instructions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandboxes.os, "getuid", lambda: 0)
    program = sandboxes.root_filter()
    assert program is not None
    assert [struct.unpack_from("=HBBI", program, place)[0] for place in range(0, len(program), 8)][-2:] == [6, 6]


@pytest.mark.parametrize(
    "place", [runtime_root, records_folder, folders_folder, lambda: Path("/"), lambda: Path("/tmp")]
)
def test_a_bind_that_reaches_desktops_is_refused(place: object) -> None:
    path = place()  # type: ignore[operator]
    for field in ("binds", "writable"):
        with pytest.raises(InvalidRequest, match="cannot be bound"):
            sandboxes.check_binds(sandbox(**{field: (path,)}))


@pytest.mark.parametrize("which", ["sockets", "state", "own state", "usual state", "configuration", "home"])
def test_a_path_that_reaches_the_daemon_or_its_files_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, which: str
) -> None:
    home, run = tmp_path / "home", tmp_path / "run"
    paths = {
        "sockets": run,
        "state": run / "state",
        "own state": run / "state" / "keys",
        "usual state": home / ".local/state/surehand",
        "configuration": home / ".config/surehand/config.toml",
        "home": home,
    }
    for path in paths.values():
        path.mkdir(parents=True, exist_ok=True)
    monkeypatch.setenv("SUREHAND_RUNTIME_DIR", str(run))
    monkeypatch.setattr(sandboxes.pwd, "getpwuid", lambda _: SimpleNamespace(pw_dir=str(home)))
    with pytest.raises(InvalidRequest, match="cannot be bound: Surehand's own"):
        sandboxes.check_paths([paths[which]], folders_folder() / "one")
    (home / "notes").mkdir()
    sandboxes.check_paths([home / "notes"], folders_folder() / "one")


def test_what_is_read_only_inside_a_writable_folder_stays_so(tmp_path: Path) -> None:
    inner = tmp_path / "notes" / "keep"
    inner.mkdir(parents=True)
    argv = sandboxes.confined(["/bin/true"], sandbox(binds=(inner,), writable=(inner.parent,)), "/")
    mounts = [argv[index - 1 : index + 1] for index, word in enumerate(argv) if word.startswith(str(tmp_path))]
    assert [option for option, _ in mounts[::2]] == ["--bind", "--ro-bind"]
    assert [path for _, path in mounts[::2]] == [str(inner.parent), str(inner)]


def test_a_link_to_such_a_place_is_refused_as_well(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(records_folder())
    with pytest.raises(InvalidRequest, match="cannot be bound"):
        sandboxes.check_binds(sandbox(binds=(link,)))


@pytest.mark.parametrize(
    ("script", "named"),
    [
        ("echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1", "setting up uid map: Permission denied"),
        ("exit 1", "bubblewrap failed"),
    ],
)
def test_a_bubblewrap_that_does_not_work_says_why(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str, named: str
) -> None:
    stand_in(monkeypatch, tmp_path / "bwrap", script)
    assert named in (sandboxes.bubblewrap_problem() or "")


def test_a_bubblewrap_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stand_in(monkeypatch, tmp_path / "bwrap", "exec sleep 1000")
    monkeypatch.setattr(sandboxes, "_PROBE_S", 0.1)
    assert "timed out" in (sandboxes.bubblewrap_problem() or "")


def test_a_missing_bubblewrap_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandboxes, "bubblewrap", lambda: None)
    assert sandboxes.bubblewrap_problem() == "bubblewrap is not installed"
    with pytest.raises(Unavailable, match="bubblewrap is not installed"):
        sandboxes.confined(["/bin/true"], sandbox(), "/")
