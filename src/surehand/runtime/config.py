"""The operator's configuration: read once at start, from operator-owned files only, never from a client.

Unknown keys are errors. A missing file is the default configuration; a broken one stops the start, because a typing
error must not open anything (spec §6.1).
"""

from __future__ import annotations

import os
import stat
import tomllib
from pathlib import Path
from typing import Literal

from surehand import limits
from surehand.core.approval import Approver
from surehand.core.authority import Ceiling
from surehand.errors import InvalidRequest, PermissionMissing
from surehand.model.record import Record, check_count, check_range, convert


class Config(Record, frozen=True, kw_only=True):
    """Everything an operator can set. Paths are absolute."""

    authority: Literal["host", "daemon"] = "daemon"
    keyring: str | None = None
    policy: str | None = None
    agent_uids: tuple[int, ...] = ()
    approver_uids: tuple[int, ...] = ()
    approvers: tuple[Approver, ...] = ()
    ceilings: tuple[Ceiling, ...] = (Ceiling(),)
    denied_apps: tuple[str, ...] = ()
    approval_minutes: int = limits.APPROVAL_MS_DEFAULT // 60_000
    idle_exit_s: int = limits.DAEMON_IDLE_EXIT_S
    pairings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_range("approval_minutes", self.approval_minutes, 1, 24 * 60)
        check_range("idle_exit_s", self.idle_exit_s, 0, limits.INTEGER_MAX)
        check_count("approvers", len(self.approvers), 0, 64)
        check_count("ceilings", len(self.ceilings), 0, 256)

    @property
    def trust_level(self) -> Literal["A", "B"]:
        """Level B needs the daemon's uid to be neither an agent's nor an approver's (spec §1)."""
        me = os.getuid()
        agents, approvers = set(self.agent_uids), set(self.approver_uids)
        if not agents or not approvers or me in agents | approvers or agents & approvers:
            return "A"
        return "B"


def load(path: Path) -> Config:
    """Read the configuration file; absent means defaults.

    Raises:
        PermissionMissing: the file or its folder belongs to someone else or others may write it.
        InvalidRequest: not TOML, an unknown key, or a value out of bounds; names it.
    """
    if not path.exists():
        return Config()
    check_operator_owned(path)
    try:
        value = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"{path}: not TOML: {error}", fix="correct the file; nothing was opened") from error
    return convert(Config, value)


def check_operator_owned(path: Path) -> None:
    """Refuse files that anyone but this user or root owns or may write."""
    for part in (path, path.parent):
        facts = part.stat()
        if facts.st_uid not in (0, os.getuid()):
            raise PermissionMissing(f"{part} belongs to another user", fix=f"chown it to uid {os.getuid()} or root")
        sticky = stat.S_ISDIR(facts.st_mode) and facts.st_mode & stat.S_ISVTX
        if facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not sticky:
            raise PermissionMissing(f"others may write {part}", fix=f"chmod go-w {part}")
