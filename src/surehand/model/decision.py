"""What policy is asked and what it answers (spec §6.1), and the permit that follows (spec §6.5)."""

from __future__ import annotations

import re
from typing import Any, Final, Literal, NewType

from surehand import limits
from surehand.errors import InvalidRequest
from surehand.model.record import Record, check_count, check_hash, check_identifier, check_text

Outcome = Literal["allow", "deny", "require_approval"]
#: A text that something other than a screen vouches for; made in `core/policy/proof.py` alone.
Proven = NewType("Proven", str)


#: What `redact` may say: a field of an output, `value`, `png`, or `field:` and what labels hold.
_REDACTED: Final = re.compile(r"[a-z][a-z0-9_]*|field:\s*\S.*", re.DOTALL)


def check_redact(redact: tuple[str, ...]) -> None:
    """Refuse what would take out nothing for a misspelling, or everything for a missing word.

    Raises:
        InvalidRequest: naming it.
    """
    check_count("redact", len(redact), 0, limits.POLICY_PATTERNS_MAX)
    for one in redact:
        check_text("redact", one, limits.NAME_CHARS_MAX, empty=False)
        if _REDACTED.fullmatch(one) is None:
            raise InvalidRequest(
                f"redact: {one[:64]!r} names nothing", fix='"field:TEXT", "value", "png" or the name of an output field'
            )


class Facts(Record, frozen=True, kw_only=True):
    """What the host knows about the request. Only `observed` came from the screen.

    `app`, `place` (window identity or canonical origin) and `secret` are proven; `observed` holds names, titles, roles
    and contexts as data, and policy is decided with and without it.
    """

    app: Proven
    place: Proven
    isolation: Literal["isolated", "display_only", "shared"]
    trust_level: Literal["A", "B"]
    backend: str
    target_role: str = ""
    categories: tuple[Proven, ...] = ()
    sensitive_app: bool = False
    #: The reference of the enrolled secret that is entered, and where it may be used; None where none is.
    secret: Proven | None = None
    secret_bound_to: Proven | None = None
    observed: dict[str, Any] = {}


class PolicyInput(Record, frozen=True, kw_only=True):
    """The whole input document. `action` is the effect's name such as `desktop.invoke`; text is redacted."""

    version: Literal[1] = 1
    principal: str
    action: str
    risk: Literal["read", "reversible", "external", "destructive"]
    interaction_mode: Literal["interactive", "background_only"]
    parameters: dict[str, Any]
    facts: Facts
    approved: bool = False


class Obligations(Record, frozen=True, kw_only=True):
    """What must hold while the decided operation runs."""

    redact: tuple[str, ...] = ()
    release: Literal["always", "ask"] = "always"
    approvals_needed: int = 1

    def __post_init__(self) -> None:
        check_redact(self.redact)


class Decision(Record, frozen=True, kw_only=True):
    """The answer. `rule` names what decided, for people."""

    decision_id: str
    outcome: Outcome
    policy_revision: str
    rule: str
    reason: str
    obligations: Obligations

    def __post_init__(self) -> None:
        check_identifier("decision_id", self.decision_id)
        check_text("reason", self.reason, limits.REASON_CHARS_MAX * 4)


class Permit(Record, frozen=True, kw_only=True):
    """The right to run exactly one decided operation, once, within 30 s. `mac` is HMAC-SHA256 over the rest."""

    request_hash: str
    decision_id: str
    obligations_hash: str
    session: str
    nonce: str
    expires_at_ms: int
    mac: str

    def __post_init__(self) -> None:
        check_hash("request_hash", self.request_hash)
        check_hash("obligations_hash", self.obligations_hash)
        check_hash("mac", self.mac)
