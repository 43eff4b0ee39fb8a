"""`surehand setup level-b`: a user each for daemon, agents and approvers, set up by root (docs/guides/level-b.md).

What it would do is shown first, step by step, and asked about. Each step looks whether it is done already, so that it
may be run again; `--undo` takes back what it made and leaves the journal and its keys, which are evidence.
"""

from __future__ import annotations

import grp
import os
import pwd
import shlex
import shutil
import stat
import subprocess
import sys
import tomllib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import typer

from surehand.cli.output import Line, out
from surehand.errors import Conflict, InvalidRequest, PermissionMissing, Unavailable
from surehand.signing.runtime_folder import SYSTEM_FOLDER

_CONFIG_DIR: Final = Path("/etc/surehand")
_STATE_DIR: Final = Path("/var/lib/surehand")
_NOLOGIN: Final = "/usr/sbin/nologin"
#: Says whose work a user is, so that --undo takes away nobody who was there before.
_COMMENT: Final = "Surehand"
_MARK: Final = "# Made by `surehand setup level-b`."


class Step(NamedTuple):
    """One thing to do: what it is in words, whether it is done, how to do it."""

    says: str
    done: Callable[[], bool]
    do: Callable[[], None]


class Plan(NamedTuple):
    """Who is who."""

    daemon: str
    agents: tuple[str, ...]
    approvers: tuple[str, ...]
    #: What `surehand keys create` printed for each approver; made here where there is none.
    keys: tuple[Path, ...]

    @property
    def config(self) -> Path:
        """The operator's configuration."""
        return _CONFIG_DIR / "config.toml"

    @property
    def start(self) -> Path:
        """The script that starts the daemon."""
        return _CONFIG_DIR / "start"


def level_b(
    agent: Annotated[list[str], typer.Option("--agent", help="A user that agents run as; made where missing.")],
    approver: Annotated[list[str], typer.Option("--approver", help="A person's user, who answers; must exist.")],
    daemon: Annotated[str, typer.Option("--daemon", help="The daemon's own user; made where missing.")] = "surehand",
    key: Annotated[
        list[Path] | None,
        typer.Option("--key", help="What `surehand keys create` printed for an approver; made where none is given."),
    ] = None,
    undo: Annotated[bool, typer.Option("--undo", help="Take it back; journal and keys stay.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask. Keys made here have no passphrase then.")] = False,
) -> None:
    """Give daemon, agents and approvers a user each, so that even an agent with a shell is restrained (level B).

    Examples:
      surehand setup level-b --agent bot --approver ann
      /etc/surehand/start

    Both as root. Shows what it will do and asks. It makes users, /etc/surehand with configuration and start script, and
    /var/lib/surehand for journal and keys, which the daemon's user alone can read. Run again it does what is missing.
    docs/guides/level-b.md says what is promised then, and how to start at boot.
    """
    if os.geteuid() != 0:
        raise PermissionMissing("this sets up users, which takes root", fix="run it with sudo")
    plan = Plan(daemon, tuple(agent), tuple(approver), tuple(key or ()))
    _check(plan, undo=undo)
    steps = _undoing(plan) if undo else _steps(plan, ask=not yes)
    open_steps = [step for step in steps if not step.done()]
    lines: list[Line] = [f"  {'will' if step in open_steps else 'done'}  {step.says}" for step in steps]
    if not yes:
        _ask(lines)
    for step in open_steps:
        step.do()
    lines = [f"  done  {step.says}" for step in steps] if yes else []
    if undo:
        value = {"undone": [one.says for one in open_steps], "kept": str(_STATE_DIR)}
        out().data(value, [*lines, f"taken back; what is in {_STATE_DIR} stays"])
        return
    said = [
        f"start it, now and at each boot, as root: {plan.start}",
        f"then `surehand doctor` says, to {approver[0]}, whether level B holds",
    ]
    value = {"done": [one.says for one in open_steps], "config": str(plan.config), "start": str(plan.start)}
    out().data(value, [*lines, *said])


def _ask(lines: Sequence[Line]) -> None:
    if out().as_json or not sys.stdin.isatty():
        raise InvalidRequest("this needs a person at a terminal", fix="add --yes if you are one")
    out().data(None, lines)
    if not typer.confirm("Do this?"):
        raise typer.Abort


def _check(plan: Plan, *, undo: bool) -> None:
    """Refuse what would not be level B, before anything is made.

    Raises:
        InvalidRequest: two roles share a user, an agent or the daemon is root, or an approver is not there.
        Conflict: there is a configuration that says otherwise, which is not written over.
    """
    names = [plan.daemon, *plan.agents, *plan.approvers]
    uids = {name: _uid(name) for name in names}
    known = [uid for uid in uids.values() if uid is not None]
    if len(set(names)) != len(names) or len(set(known)) != len(known):
        raise InvalidRequest("daemon, agents and approvers are a user each", fix="name different users")
    if 0 in (uids[name] for name in (plan.daemon, *plan.agents)):
        raise InvalidRequest("neither an agent nor the daemon is root: root may do anything")
    missing = [name for name in plan.approvers if uids[name] is None]
    if missing:
        raise InvalidRequest(f"there is no user {missing[0]}", fix="an approver is a person who has one already")
    if not undo and plan.config.exists() and not _is_configured(plan):
        raise Conflict(
            f"{plan.config} is there and does not name these users, or no approver's key, or is not root's alone",
            fix="set agent_uids, approver_uids and [[approvers]] in it, or move it away",
        )


# --- the steps ------------------------------------------------------------------------------------------------------


def _steps(plan: Plan, *, ask: bool) -> list[Step]:
    homes: list[tuple[str, Path | None]] = [(plan.daemon, _STATE_DIR), *((agent, None) for agent in plan.agents)]
    users = [
        Step(f"make the user {name}, who cannot log in", partial(_exists, name), partial(_make_user, name, home))
        for name, home in homes
    ]
    return [
        *users,
        _folder(_CONFIG_DIR, "root", 0o755),
        _folder(_STATE_DIR, plan.daemon, 0o700),
        Step(
            f"write {plan.config}: which users are agents and approvers, and the approvers' keys",
            lambda: _is_configured(plan),
            lambda: _write(plan.config, _configuration(plan, ask=ask), 0o644),
        ),
        Step(
            f"write {plan.start}, which starts the daemon as {plan.daemon}",
            lambda: _holds(plan.start, _start_script(plan)),
            lambda: _write(plan.start, _start_script(plan), 0o755),
        ),
    ]


def _exists(name: str) -> bool:
    return _uid(name) is not None


def _uid(name: str) -> int | None:
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        return None


def _make_user(name: str, home: Path | None) -> None:
    where = ["--create-home"] if home is None else ["--no-create-home", "--home-dir", str(home)]
    _run(["useradd", "--system", "--user-group", "--shell", _NOLOGIN, "--comment", _COMMENT, *where, name])


def _folder(path: Path, owner: str, mode: int) -> Step:
    def done() -> bool:
        if not path.is_dir() or path.is_symlink() or _uid(owner) is None:
            return False
        facts = path.stat()
        return (facts.st_uid, facts.st_mode & 0o7777) == (_uid(owner), mode)

    def do() -> None:
        if path.is_symlink():
            raise Conflict(f"{path} is a link, which whoever made it may give another aim", fix="move it away")
        path.mkdir(mode=mode, parents=True, exist_ok=True)
        user = pwd.getpwnam(owner)
        os.chown(path, user.pw_uid, user.pw_gid, follow_symlinks=False)
        path.chmod(mode)

    return Step(f"make {path} for {owner}, mode {mode:o}", done, do)


def _configuration(plan: Plan, *, ask: bool) -> str:
    """Return the configuration; makes the approvers' keys where none were given."""
    agents, approvers = (sorted(pwd.getpwnam(name).pw_uid for name in names) for names in (plan.agents, plan.approvers))
    keys = [path.read_text("utf-8") for path in plan.keys]
    keys += [_made_key(name, ask=ask) for name in plan.approvers] if not plan.keys else []
    text = "\n".join(
        (
            f"{_MARK} docs/guides/level-b.md",
            f"agent_uids = {agents}",
            f"approver_uids = {approvers}",
            "# Nobody but root starts it, so it does not end by itself.",
            "idle_exit_s = 0",
            "notify_desktop = false",
            "",
            *keys,
        )
    )
    tomllib.loads(text)  # what a file of keys holds is not known to be TOML
    return text


def _is_configured(plan: Plan) -> bool:
    if not _is_kept(plan.config):
        return False
    try:
        found = tomllib.loads(plan.config.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        return False
    wanted = {"agent_uids": plan.agents, "approver_uids": plan.approvers}
    same = all(set(found.get(name, ())) == {_uid(one) for one in names} for name, names in wanted.items())
    return same and bool(found.get("approvers"))


def _made_key(approver: str, *, ask: bool) -> str:
    """Return the public lines of a key that the approver's own user makes and keeps; asks for its passphrase."""
    words = ["keys", "create", approver, *(["--passphrase"] if ask else [])]
    done = _run([*_as(approver), str(_program()), *words])
    return done.stdout


def _as(name: str) -> list[str]:
    return ["setpriv", f"--reuid={name}", f"--regid={pwd.getpwnam(name).pw_gid}", "--init-groups", "--reset-env"]


def _start_script(plan: Plan) -> str:
    program, run = shlex.quote(str(_program())), shlex.quote(str(SYSTEM_FOLDER))
    group = grp.getgrgid(pwd.getpwnam(plan.daemon).pw_gid).gr_name if _uid(plan.daemon) is not None else plan.daemon
    return f"""#!/bin/sh
{_MARK} Starts the daemon as {plan.daemon}; run it as root.
set -eu
install -d -m 0711 -o {shlex.quote(plan.daemon)} -g {shlex.quote(group)} {run}
cd /
exec setpriv --reuid={shlex.quote(plan.daemon)} --regid={shlex.quote(group)} --clear-groups --reset-env \\
  env SUREHAND_RUNTIME_DIR={run} {program} serve --config {plan.config} --state-dir {_STATE_DIR}
"""


def _program() -> Path:
    """Return the command as root has it; the daemon's user must be able to run it, and no agent to change it."""
    beside = Path(sys.executable).with_name("surehand")
    found = str(beside) if os.access(beside, os.X_OK) else shutil.which("surehand")
    if found is None:
        raise Unavailable("the command `surehand` is not on the path", fix="install it for all users")
    return Path(found)


def _holds(path: Path, text: str) -> bool:
    return _is_kept(path) and path.read_text("utf-8") == text


def _is_kept(path: Path) -> bool:
    """Say whether it is a file that nobody but root changes: one that somebody had put there before may be theirs."""
    try:
        facts = path.lstat()
    except OSError:
        return False
    apart = not facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and facts.st_nlink == 1
    return stat.S_ISREG(facts.st_mode) and facts.st_uid == 0 and apart


def _write(path: Path, text: str, mode: int) -> None:
    draft = path.with_name(f".{path.name}.new")
    draft.unlink(missing_ok=True)
    # Made anew, for nobody else: no link leads the writing elsewhere, and nobody opens it meanwhile.
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        os.fchmod(file.fileno(), mode)
        file.write(text)
    draft.replace(path)


def _undoing(plan: Plan) -> list[Step]:
    files = [
        Step(f"remove {path}", partial(_is_not_ours, path), partial(path.unlink)) for path in (plan.config, plan.start)
    ]
    # The number of a user that is gone is given out again: the journal's keys must not be the next one's.
    kept = Step(
        f"give {_STATE_DIR} to root", lambda: _was_not_made(plan.daemon) or not _STATE_DIR.is_dir(), _give_state_to_root
    )
    users = [
        Step(f"remove the user {name}; what it owns stays", partial(_was_not_made, name), partial(_remove_user, name))
        for name in (plan.daemon, *plan.agents)
    ]
    return [*files, kept, *users]


def _give_state_to_root() -> None:
    os.chown(_STATE_DIR, 0, 0, follow_symlinks=False)
    _STATE_DIR.chmod(0o700)


def _is_not_ours(path: Path) -> bool:
    return not path.is_file() or _MARK not in path.read_text("utf-8")


def _was_not_made(name: str) -> bool:
    return not _exists(name) or pwd.getpwnam(name).pw_gecos != _COMMENT


def _remove_user(name: str) -> None:
    _run(["userdel", name])


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    try:
        done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)  # noqa: S603 - words of ours
    except OSError as error:
        raise Unavailable(f"{command[0]} cannot be run: {error.strerror}", fix="install it") from error
    if done.returncode:
        raise Unavailable(f"{command[0]} failed with {done.returncode}", fix="its own words are above")
    return done


COMMANDS: Final[dict[str, Any]] = {"level-b": level_b}
