"""The operator's configuration: read once at start, from operator-owned files only, never from a client.

Unknown keys are errors. A missing file is the default configuration; a broken one stops the start, because a typing
error must not open anything (spec §6.1).
"""

from __future__ import annotations

import os
import stat
import tomllib
from pathlib import Path
from typing import Final, Literal

import msgspec

from surehand import limits
from surehand.core.approval import Approver, visible
from surehand.core.authority import Ceiling
from surehand.core.input import stop_key
from surehand.errors import InvalidRequest, PermissionMissing
from surehand.model.record import Record, check_count, check_range, check_text, convert
from surehand.model.secrets import EnvSecret

#: The policy's name beside the configuration file.
POLICY_NAME: Final = "policy.toml"


class PolicyChoice(Record, frozen=True, kw_only=True):
    """Which policy decides (spec §6.1), or is only tried: `mode = "shadow"`.

    `file` is a rule file (`.toml`, for every engine but OPA), a `.rego` or `.cedar` file, or a folder of `.rego` files
    with `data.json`. OPA is named by `url` or `unix_socket`; see `adapters.policy_opa`.
    """

    engine: Literal["builtin", "rego", "cedar", "opa"] = "builtin"
    file: str | None = None
    mode: Literal["enforce", "shadow"] = "enforce"
    decision: str = "surehand/decision"
    timeout_ms: int = limits.POLICY_ENGINE_MS_DEFAULT
    url: str | None = None
    unix_socket: str | None = None
    ca: str | None = None
    cert: str | None = None
    key: str | None = None

    def __post_init__(self) -> None:
        check_range("policy.timeout_ms", self.timeout_ms, 1, limits.POLICY_MS_MAX)
        remote = (self.url, self.unix_socket, self.ca, self.cert, self.key)
        if self.engine != "opa" and any(part is not None for part in remote):
            raise InvalidRequest(f"policy: url, unix_socket, ca, cert and key are of engine opa, not {self.engine}")
        if self.engine == "opa" and self.file is not None:
            raise InvalidRequest("policy: an OPA server has its policies; leave file out")
        if self.engine in ("rego", "cedar") and self.file is None:
            raise InvalidRequest(f"policy: engine {self.engine} needs file")


class AskingClient(Record, frozen=True, kw_only=True):
    """An MCP client whose word counts as its person's answer where nothing grave is asked (spec §6.4).

    `client` is the name that it says of itself; `uid` the user it runs as, the daemon's own by default.
    """

    client: str
    uid: int | None = None

    def __post_init__(self) -> None:
        check_text("mcp_elicitation.client", self.client, limits.CLIENT_NAME_CHARS_MAX * 4, empty=False)
        check_text("mcp_elicitation.client", self.client[limits.CLIENT_NAME_CHARS_MAX :], 0)
        if visible(self.client) != self.client:
            raise InvalidRequest("mcp_elicitation.client holds what does not show")

    @property
    def principal(self) -> str:
        """The principal whose sessions it asks in."""
        return f"uid:{os.getuid() if self.uid is None else self.uid}"


class EvaluatorChoice(Record, frozen=True, kw_only=True):
    """The program that is asked beside the rules in mode `risk-auto` (spec §6.4); it can only object."""

    command: tuple[str, ...]

    def __post_init__(self) -> None:
        check_count("evaluator.command", len(self.command), 1, limits.EVALUATOR_WORDS_MAX)
        for word in self.command:
            check_text("evaluator.command", word, limits.NAME_CHARS_MAX)
        if not Path(self.command[0]).is_absolute():
            raise InvalidRequest("evaluator.command names no absolute path", fix="write the whole path of the program")


class Config(Record, frozen=True, kw_only=True):
    """Everything an operator can set. Paths are absolute."""

    authority: Literal["host", "daemon"] = "daemon"
    keyring: str | None = None
    policy: str | PolicyChoice | None = None
    shadow_policy: PolicyChoice | None = None
    agent_uids: tuple[int, ...] = ()
    approver_uids: tuple[int, ...] = ()
    approvers: tuple[Approver, ...] = ()
    ceilings: tuple[Ceiling, ...] = (Ceiling(),)
    denied_apps: tuple[str, ...] = ()
    approval_minutes: int = limits.APPROVAL_MS_DEFAULT // 60_000
    idle_exit_s: int = limits.DAEMON_IDLE_EXIT_S
    notify_desktop: bool = True
    webhook: str | None = None
    webhook_content: bool = False
    pairings: tuple[str, ...] = ()
    stop_key: str = stop_key.DEFAULT
    marker: bool = True
    env_secrets: tuple[EnvSecret, ...] = ()
    mcp_elicitation: tuple[AskingClient, ...] = ()
    evaluator: EvaluatorChoice | None = None

    #: What keeps separate uids from being level B; found at the start, and only ever lowers the level.
    held_back: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_range("approval_minutes", self.approval_minutes, 1, 24 * 60)
        check_range("idle_exit_s", self.idle_exit_s, 0, limits.INTEGER_MAX)
        stop_key.parse_stop_key(self.stop_key)
        check_count("approvers", len(self.approvers), 0, 64)
        check_count("ceilings", len(self.ceilings), 0, 256)
        check_count("mcp_elicitation", len(self.mcp_elicitation), 0, limits.ASKING_CLIENTS_MAX)
        check_count("env_secrets", len(self.env_secrets), 0, limits.ENV_SECRETS_MAX)
        if self.shadow_policy is not None and isinstance(self.policy, PolicyChoice) and self.policy.mode == "shadow":
            raise InvalidRequest("only one policy can be tried: policy.mode is shadow, and shadow_policy is there too")

    def may_assert(self, principal: str, client: str) -> bool:
        """Say whether the operator named this client of this principal."""
        return any((one.principal, one.client) == (principal, client) for one in self.mcp_elicitation)

    @property
    def enforced(self) -> PolicyChoice:
        """The policy that decides; the defaults alone where the operator's is only tried."""
        if isinstance(self.policy, str):
            return PolicyChoice(file=self.policy)
        return PolicyChoice() if self.policy is None or self.policy.mode == "shadow" else self.policy

    @property
    def tried(self) -> PolicyChoice | None:
        """The policy that decides as well and is not obeyed."""
        if isinstance(self.policy, PolicyChoice) and self.policy.mode == "shadow":
            return self.policy
        return self.shadow_policy

    @property
    def trust_level(self) -> Literal["A", "B"]:
        """Level B needs the daemon's uid to be neither an agent's nor an approver's (spec §1)."""
        me = os.getuid()
        agents, approvers = set(self.agent_uids), set(self.approver_uids)
        if self.held_back or not agents or not approvers or me in agents | approvers or agents & approvers:
            return "A"
        return "B"


def load(path: Path) -> Config:
    """Read the configuration file; absent means defaults. A `policy.toml` beside it is the policy where none is named.

    Raises:
        PermissionMissing: the file or its folder belongs to someone else or others may write it.
        InvalidRequest: not TOML, an unknown key, or a value out of bounds; names it.
    """
    if not path.exists():
        return _with_policy_beside(Config(), path)
    check_operator_owned(path)
    try:
        value = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"{path}: not TOML: {error}", fix="correct the file; nothing was opened") from error
    return _with_policy_beside(convert(Config, value), path)


def _with_policy_beside(config: Config, path: Path) -> Config:
    beside = path.parent / POLICY_NAME
    if config.policy is not None or not os.path.lexists(beside):
        return config
    return msgspec.structs.replace(config, policy=str(beside))


def check_operator_owned(path: Path) -> None:
    """Refuse files that anyone but this user or root owns or may write."""
    for part in (path, path.parent):
        facts = part.stat()
        if facts.st_uid not in (0, os.getuid()):
            raise PermissionMissing(f"{part} belongs to another user", fix=f"chown it to uid {os.getuid()} or root")
        sticky = stat.S_ISDIR(facts.st_mode) and facts.st_mode & stat.S_ISVTX
        if facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not sticky:
            raise PermissionMissing(f"others may write {part}", fix=f"chmod go-w {part}")
