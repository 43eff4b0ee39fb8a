"""Whether trust level B is really so (spec §1): the uids are apart, and no agent can change what the daemon runs on.

Looks only. Everything found here lowers the level to A and says why; nothing raises it. What no look can tell, such as
a password of root's that an agent knows, is the operator's to see to.
"""

from __future__ import annotations

import grp
import os
import pwd
import stat
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from surehand import limits
from surehand.runtime.config import Config

_ROOT: Final = 0


def checked(config: Config, paths: Iterable[Path]) -> Config:
    """Return the configuration with what keeps it from level B in `held_back`.

    Args:
        config: The operator's.
        paths: Configuration, state, and whatever else the daemon trusts; its own code is looked at as well.
    """
    if config.trust_level != "B":
        return config
    found = dict.fromkeys(_reasons(config.agent_uids, (*paths, *_code())))
    return msgspec.structs.replace(config, held_back=(*config.held_back, *found)[: limits.LEVEL_REASONS_MAX])


def _code() -> tuple[Path, ...]:
    """Return what runs as the daemon: its package, the libraries beside it, and the interpreter."""
    package = Path(__file__).parents[1]
    return (package, Path(msgspec.__file__).parent, Path(sys.executable), Path(os.__file__).parent)


def _reasons(agents: Iterable[int], paths: Iterable[Path]) -> Iterator[str]:
    parts = {part for path in paths for part in _line(path)}
    for agent in agents:
        if agent == _ROOT:
            yield "an agent is root, which may do anything"
            continue
        groups = _groups_of(agent)
        for part in sorted(parts):
            if _may_change(part, agent, groups):
                yield f"the agent of uid {agent} may change {part}"


def _line(path: Path) -> Iterator[Path]:
    """Return a path and all folders above it, as it is named and as it resolves."""
    for start in (path.absolute(), path.resolve()):
        yield start
        yield from start.parents


def _may_change(part: Path, uid: int, groups: frozenset[int]) -> bool:
    try:
        facts = part.stat()
    except OSError:
        return False  # what is not there is made by the daemon, in a folder that is looked at
    if facts.st_uid == uid:
        return True
    if stat.S_ISDIR(facts.st_mode) and facts.st_mode & stat.S_ISVTX:
        return False  # nobody but its owner takes away what stands in a sticky folder
    return bool(facts.st_mode & stat.S_IWOTH or (facts.st_mode & stat.S_IWGRP and facts.st_gid in groups))


def _groups_of(uid: int) -> frozenset[int]:
    try:
        user = pwd.getpwuid(uid)
    except KeyError:
        return frozenset()
    named = {one.gr_gid for one in grp.getgrall() if user.pw_name in one.gr_mem}
    return frozenset({user.pw_gid, *named})
