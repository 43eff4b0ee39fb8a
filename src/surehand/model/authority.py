"""Grants: a host's signed word that one action may run, and standing grants for several (spec §3.4)."""

from __future__ import annotations

import re
from typing import Final, Literal

from surehand import limits
from surehand.errors import InvalidRequest
from surehand.model.record import Record, check_count, check_hash, check_identifier, check_range

_SIGNATURE: Final = re.compile(r"[0-9a-f]{128}")


class Grant(Record, frozen=True, kw_only=True):
    """Bound to one operation, one action hash, one principal. `expires_at_ms` is wall-clock milliseconds."""

    version: Literal[1] = 1
    issuer: str
    key_id: str
    principal: str
    operation_id: str
    action_hash: str
    risk: Literal["read", "reversible", "external", "destructive"]
    policy_generation: int
    expires_at_ms: int

    def __post_init__(self) -> None:
        for name in ("issuer", "key_id", "principal", "operation_id"):
            check_identifier(name, getattr(self, name))
        check_hash("action_hash", self.action_hash)
        check_range("policy_generation", self.policy_generation, 0, limits.INTEGER_MAX)
        check_range("expires_at_ms", self.expires_at_ms, 1, limits.INTEGER_MAX)


class SignedGrant(Record, frozen=True, kw_only=True):
    """A grant and the Ed25519 signature, 128 hex digits, over `surehand/grant/v1`, a zero byte, its canonical bytes."""

    grant: Grant
    signature: str

    def __post_init__(self) -> None:
        if _SIGNATURE.fullmatch(self.signature) is None:
            raise InvalidRequest("signature must be 128 lower-case hex digits")


class StandingGrant(Record, frozen=True, kw_only=True):
    """Leave for several uses: one principal, one application and window or origin, named actions, counted."""

    version: Literal[1] = 1
    grant_id: str
    principal: str
    app: str
    place: str | None = None
    actions: tuple[str, ...]
    risk_max: Literal["read", "reversible", "external"]
    uses_max: int
    expires_at_ms: int
    issued_by: str

    def __post_init__(self) -> None:
        check_identifier("grant_id", self.grant_id)
        check_identifier("principal", self.principal)
        check_count("actions", len(self.actions), 1, 64)
        check_range("uses_max", self.uses_max, 1, limits.STANDING_USES_MAX)
        check_range("expires_at_ms", self.expires_at_ms, 1, limits.INTEGER_MAX)
