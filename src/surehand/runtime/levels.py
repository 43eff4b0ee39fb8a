"""Whether trust level B is really so (spec §1): the uids are apart, and no agent can change what the daemon runs on.

Looks only. Everything found here lowers the level to A and says why; nothing raises it. What no look can tell, such as
a password of root's that an agent knows, is the operator's to see to.
"""

from __future__ import annotations

import grp
import os
import pwd
import stat
import struct
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from surehand import limits
from surehand.runtime.config import Config

_ROOT: Final = 0
#: An access list: its version, then for each entry tag, permissions and id.
_VERSION_BYTES: Final = 4
_ENTRY: Final = struct.Struct("<HHI")
_NAMED_USER, _NAMED_GROUP, _MASK, _WRITE = 0x02, 0x08, 0x10, 0x02


def checked(config: Config, paths: Iterable[Path]) -> Config:
    """Return the configuration with what keeps it from level B in `held_back`.

    Args:
        config: The operator's.
        paths: Configuration, state, and whatever else the daemon trusts; what the configuration names
            and its own code are looked at as well.
    """
    if config.trust_level != "B":
        return config
    found = dict.fromkeys(_reasons(config.agent_uids, (*paths, *_named(config), *_code())))
    return msgspec.structs.replace(config, held_back=(*config.held_back, *found)[: limits.LEVEL_REASONS_MAX])


def _named(config: Config) -> Iterator[Path]:
    """Return the files that the configuration names: what decides, and what is asked."""
    tried = config.tried
    named = (
        config.enforced.file,
        tried and tried.file,
        config.keyring,
        config.evaluator and config.evaluator.command[0],
    )
    yield from (Path(one) for one in named if one)


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
    """Return a path and each folder and link on its way, as the kernel comes by them (path_resolution(7))."""
    here, links = Path("/"), 0
    left = list(reversed(path.absolute().parts[1:]))
    yield here
    while left:
        name = left.pop()
        if name == "..":
            here = here.parent
            continue
        part = here / name
        yield part
        try:
            leads_to = part.readlink()
        except OSError:
            here = part
            continue
        links += 1
        if links > limits.LEVEL_LINKS_MAX:
            return  # the kernel goes no further either
        if leads_to.is_absolute():
            here = Path("/")
        left.extend(part for part in reversed(leads_to.parts) if part != "/")


def _may_change(part: Path, uid: int, groups: frozenset[int]) -> bool:
    try:
        facts, own = part.stat(), part.lstat()
    except OSError:
        return False  # what is not there is made by the daemon, in a folder that is looked at
    if uid in (facts.st_uid, own.st_uid):
        return True
    if stat.S_ISDIR(facts.st_mode) and facts.st_mode & stat.S_ISVTX:
        return False  # nobody but its owner takes away what stands in a sticky folder
    if facts.st_mode & stat.S_IWOTH or (facts.st_mode & stat.S_IWGRP and facts.st_gid in groups):
        return True
    return _is_listed(part, uid, groups)


def _is_listed(part: Path, uid: int, groups: frozenset[int]) -> bool:
    """Say whether an access list gives write, which the mode does not tell (acl(5), linux/posix_acl_xattr.h)."""
    try:
        data = os.getxattr(part, "system.posix_acl_access")
    except OSError:
        return False  # none, or a file system that has none
    entries = list(_ENTRY.iter_unpack(data[_VERSION_BYTES:]))
    mask = next((may for tag, may, _ in entries if tag == _MASK), _WRITE)
    named = {(_NAMED_USER, uid), *((_NAMED_GROUP, group) for group in groups)}
    return any(may & mask & _WRITE for tag, may, name in entries if (tag, name) in named)


def _groups_of(uid: int) -> frozenset[int]:
    try:
        user = pwd.getpwuid(uid)
    except KeyError:
        return frozenset()
    named = {one.gr_gid for one in grp.getgrall() if user.pw_name in one.gr_mem}
    return frozenset({user.pw_gid, *named})
