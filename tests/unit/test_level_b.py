"""Trust level B: when it is claimed, what takes it back, who may connect, and what the set-up refuses."""

from __future__ import annotations

import os
import pwd
import socket
from pathlib import Path

import pytest

from surehand import limits
from surehand.cli.separating import Plan, _check, _configuration, _start_script
from surehand.daemon.paths import Lease, listen
from surehand.errors import InvalidRequest
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
