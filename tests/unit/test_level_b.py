"""Trust level B: when it is claimed, what takes it back, who may connect, and what the set-up refuses."""

from __future__ import annotations

import os
import pwd
import socket
import struct
from pathlib import Path

import msgspec
import pytest

from surehand import limits
from surehand.cli import separating
from surehand.cli.separating import Plan, _check, _configuration, _start_script
from surehand.daemon.paths import Lease, listen
from surehand.errors import Conflict, InvalidRequest
from surehand.runtime import levels
from surehand.runtime.config import Config
from surehand.signing import runtime_folder

NOBODY, MAIL = 65534, pwd.getpwnam("mail").pw_uid
APART = Config(agent_uids=(NOBODY,), approver_uids=(MAIL,))
as_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away and be other users")


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    found = tmp_path / "a" / "b"
    found.mkdir(parents=True)
    return found


def held(path: Path, config: Config = APART) -> tuple[str, ...]:
    return tuple(one for one in levels.checked(config, [path]).held_back if str(path.parent.parent) in one)


def test_users_apart_are_level_b_only_while_no_agent_can_change_what_the_daemon_trusts(kept: Path) -> None:
    assert held(kept) == ()
    kept.parent.chmod(0o777)
    assert held(kept) == (f"the agent of uid {NOBODY} may change {kept.parent}",)
    assert levels.checked(APART, [kept]).trust_level == "A"
    kept.parent.chmod(0o1777)
    assert held(kept) == ()
    (kept / "file").touch()
    (kept / "file").chmod(0o666)
    assert levels.checked(APART, [kept / "file"]).trust_level == "A"


def test_what_the_configuration_names_is_looked_at(kept: Path, tmp_path: Path) -> None:
    kept.parent.chmod(0o777)
    for facts in ({"policy": str(kept / "p")}, {"keyring": str(kept / "k")}):
        config = msgspec.structs.replace(APART, **facts)
        assert f"the agent of uid {NOBODY} may change {kept.parent}" in levels.checked(config, [tmp_path]).held_back


@as_root
def test_what_belongs_to_an_agent_or_its_group_takes_the_level_back(kept: Path) -> None:
    group = pwd.getpwuid(NOBODY).pw_gid
    os.chown(kept, NOBODY, 0)
    assert held(kept) == (f"the agent of uid {NOBODY} may change {kept}",)
    os.chown(kept, 0, group)
    assert held(kept) == ()
    kept.chmod(0o770)
    assert held(kept) == (f"the agent of uid {NOBODY} may change {kept}",)
    os.chown(kept, MAIL, 0)
    assert held(kept) == ()


def test_a_link_is_looked_at_where_it_stands_and_where_it_leads(kept: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(kept)
    kept.chmod(0o777)
    assert levels.checked(APART, [link]).trust_level == "A"


def test_each_link_is_looked_at_where_it_stands(kept: Path, tmp_path: Path) -> None:
    middle = tmp_path / "middle"
    middle.mkdir()
    (middle / "link").symlink_to("../a/b")
    (tmp_path / "first").symlink_to(middle / "link")
    # In between, as where it is named and where it leads: there it is given another aim.
    assert levels.checked(APART, [tmp_path / "first"]).held_back == levels.checked(APART, [kept]).held_back
    middle.chmod(0o777)
    reason = f"the agent of uid {NOBODY} may change {middle}"
    assert reason in levels.checked(APART, [tmp_path / "first"]).held_back


def test_links_are_followed_as_far_as_the_kernel_follows_them(kept: Path, tmp_path: Path) -> None:
    kept.chmod(0o777)
    for number in range(limits.LEVEL_LINKS_MAX + 1):
        (tmp_path / f"l{number}").symlink_to(tmp_path / f"l{number - 1}" if number else kept)
    last, past = (tmp_path / f"l{limits.LEVEL_LINKS_MAX - 1 + more}" for more in (0, 1))
    assert last.is_dir()
    assert f"the agent of uid {NOBODY} may change {kept}" in levels.checked(APART, [last]).held_back
    with pytest.raises(OSError, match="symbolic links"):
        past.stat()
    assert f"the agent of uid {NOBODY} may change {kept}" not in levels.checked(APART, [past]).held_back


@as_root
def test_a_link_of_an_agent_in_a_folder_that_all_share_takes_the_level_back(kept: Path, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    link = shared / "link"
    link.symlink_to(kept)
    reason = f"the agent of uid {NOBODY} may change {link}"
    assert reason not in levels.checked(APART, [link]).held_back
    os.lchown(link, NOBODY, 0)
    assert reason in levels.checked(APART, [link]).held_back


@pytest.mark.parametrize(("tag", "may", "mask", "found"), [(2, 6, 7, True), (2, 4, 7, False), (2, 6, 5, False)])
def test_an_access_list_that_lets_an_agent_write_takes_the_level_back(
    kept: Path, tag: int, may: int, mask: int, found: bool
) -> None:
    entries = (
        (1, 7, 0xFFFFFFFF),
        (tag, may, NOBODY),
        (4, 5, 0xFFFFFFFF),
        (0x10, mask, 0xFFFFFFFF),
        (0x20, 5, 0xFFFFFFFF),
    )
    listed = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
    try:
        os.setxattr(kept, "system.posix_acl_access", listed)
    except OSError as error:
        pytest.skip(f"this file system has no access lists: {error.strerror}")
    assert (f"the agent of uid {NOBODY} may change {kept}" in levels.checked(APART, [kept]).held_back) is found


@as_root
def test_an_access_list_that_lets_an_agents_group_write_takes_the_level_back(kept: Path) -> None:
    group = pwd.getpwuid(NOBODY).pw_gid
    entries = ((1, 7, 0xFFFFFFFF), (4, 5, 0xFFFFFFFF), (8, 7, group), (0x10, 7, 0xFFFFFFFF), (0x20, 5, 0xFFFFFFFF))
    try:
        os.setxattr(
            kept,
            "system.posix_acl_access",
            struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries),
        )
    except OSError as error:
        pytest.skip(f"this file system has no access lists: {error.strerror}")
    assert held(kept) == (f"the agent of uid {NOBODY} may change {kept}",)


def test_an_agent_that_is_root_is_never_level_b(kept: Path) -> None:
    config = levels.checked(Config(agent_uids=(0,), approver_uids=(MAIL,)), [kept])
    assert config.trust_level == "A"
    if os.getuid() != 0:
        assert config.held_back == ("an agent is root, which may do anything",)


def test_reasons_are_bounded_at_the_limit_and_one_past(tmp_path: Path) -> None:
    paths = []
    for number in range(limits.LEVEL_REASONS_MAX + 1):
        paths.append(tmp_path / f"f{number:02}")
        paths[-1].touch()
        paths[-1].chmod(0o666)
        found = [one for one in levels.checked(APART, paths).held_back if str(tmp_path) in one]
        assert len(found) == min(number + 1, limits.LEVEL_REASONS_MAX)


@as_root
def test_the_kernel_lets_a_uid_reach_its_own_socket_only(tmp_path: Path) -> None:
    for part in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
        part.chmod(0o711)
    path = str(tmp_path / "s")
    lease = Lease.take(str(tmp_path / "lease"))
    place = listen(path, lease, foreign=True, backlog=4, uids=frozenset({NOBODY}))
    try:
        for uid, reached in ((NOBODY, True), (MAIL, False)):
            child = os.fork()
            if child == 0:
                os.setgroups([])
                os.setgid(uid)
                os.setuid(uid)
                with socket.socket(socket.AF_UNIX) as client:
                    os._exit(client.connect_ex(path))
            assert (os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0) is reached
    finally:
        place.remove()
        place.socket.close()
        lease.release()


@pytest.mark.parametrize(
    ("daemon", "agents", "approvers", "said"),
    [
        ("surehand-x", ("root",), ("mail",), "neither an agent nor the daemon is root"),
        ("root", ("nobody",), ("mail",), "neither an agent nor the daemon is root"),
        ("surehand-x", ("mail",), ("mail",), "a user each"),
        ("nobody", ("nobody",), ("mail",), "a user each"),
        ("surehand-x", ("bot", "bot"), ("mail",), "a user each"),
        ("surehand-x", ("nobody",), ("no-such-person",), "there is no user"),
    ],
)
def test_what_would_not_be_level_b_is_refused(
    daemon: str, agents: tuple[str, ...], approvers: tuple[str, ...], said: str
) -> None:
    with pytest.raises(InvalidRequest, match=said):
        _check(Plan(daemon, agents, approvers, ()), undo=False)


def test_the_configuration_names_the_users_and_the_keys_that_were_given(tmp_path: Path) -> None:
    lines = tmp_path / "key"
    lines.write_text('[[approvers]]\napprover = "mail"\nkey_id = "k"\npublic_key = "' + "0" * 64 + '"\n')
    plan = Plan("surehand", ("nobody",), ("mail",), (lines,))
    text = _configuration(plan, ask=False)
    assert f"agent_uids = [{NOBODY}]" in text
    assert f"approver_uids = [{MAIL}]" in text
    assert 'approver = "mail"' in text
    assert "--reset-env" in _start_script(plan)


@as_root
def test_what_root_runs_is_a_file_that_root_made_and_nobody_else_can_change(tmp_path: Path) -> None:
    start, elsewhere = tmp_path / "start", tmp_path / "elsewhere"
    for mode, owner, holds in ((0o755, 0, True), (0o775, 0, False), (0o757, 0, False), (0o755, NOBODY, False)):
        start.write_text("same")
        os.chown(start, owner, 0)
        start.chmod(mode)
        assert separating._holds(start, "same") is holds
    (tmp_path / "second").hardlink_to(start)
    os.chown(start, 0, 0)
    assert not separating._holds(start, "same")
    # What stood there before leads the writing nowhere, whatever the mask of root's shell is.
    elsewhere.write_text("kept")
    (tmp_path / ".start.new").symlink_to(elsewhere)
    before = os.umask(0)
    try:
        separating._write(start, "ours", 0o755)
    finally:
        os.umask(before)
    assert elsewhere.read_text() == "kept"
    assert (tmp_path / "second").read_text() == "same"
    assert separating._holds(start, "ours")
    assert start.stat().st_mode & 0o7777 == 0o755
    start.unlink()
    start.symlink_to(elsewhere)
    assert not separating._holds(start, "kept")


@as_root
def test_a_folder_that_is_a_link_is_not_set_up(tmp_path: Path) -> None:
    aim = tmp_path / "aim"
    aim.mkdir(mode=0o750)
    (tmp_path / "state").symlink_to(aim)
    step = separating._folder(tmp_path / "state", "mail", 0o700)
    assert not step.done()
    with pytest.raises(Conflict, match="is a link"):
        step.do()
    assert (aim.stat().st_uid, aim.stat().st_mode & 0o777) == (0, 0o750)


@as_root
def test_taken_back_journal_and_keys_are_roots_and_not_the_next_users_of_that_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = tmp_path / "state"
    state.mkdir()
    os.chown(state, MAIL, MAIL)
    monkeypatch.setattr(separating, "_STATE_DIR", state)
    monkeypatch.setattr(separating, "_was_not_made", lambda name: name != "mail")
    steps = separating._undoing(Plan("mail", (), (), ()))
    says = [one.says for one in steps if not one.done()]
    assert says.index(f"give {state} to root") < says.index("remove the user mail; what it owns stays")
    next(one for one in steps if one.says == f"give {state} to root").do()
    assert (state.stat().st_uid, state.stat().st_mode & 0o7777) == (0, 0o700)


def test_the_systems_folder_is_meant_where_there_is_one_and_nobody_else_can_write_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / "surehand"
    monkeypatch.setattr(runtime_folder, "SYSTEM_FOLDER", folder)

    def named(**given: str) -> str | None:
        return runtime_folder.with_runtime_folder(given, os.getuid()).get("SUREHAND_RUNTIME_DIR")

    assert named() is None
    folder.mkdir(mode=0o711)
    assert named() == str(folder)
    assert named(SUREHAND_RUNTIME_DIR="/elsewhere") == "/elsewhere"
    folder.chmod(0o777)
    assert named() is None
