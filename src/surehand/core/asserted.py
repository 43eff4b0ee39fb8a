"""What an MCP client says that its person answered: which questions it may be asked, in which words, as what it counts.

Guarantees (spec §6.4): nothing here is proof that a person answered, and it is recorded as what it is,
`client_asserted`; it counts only for a client that the operator named, and never for what is consequential, is in a
sensitive place, carries a secret, gives out what comes back, or takes more than one person.
"""

from __future__ import annotations

import hmac
from typing import Any, Final, Literal

from surehand import canonical, limits
from surehand.core.approval import GIVES_OUTPUT
from surehand.core.policy.model import CONSEQUENTIAL, PLACES
from surehand.errors import AuthorityDenied
from surehand.model.approval import CLIENT_ASSERTED, ApprovalAnswer, PendingApproval

#: Where every question says so by itself, it is not what makes one grave.
_SHARED: Final = frozenset({"shared_desktop"})
#: Among what is shown: a yes gives away more than what is done.
_GIVING: Final = frozenset({"secret_bound_to", GIVES_OUTPUT})
_HARMLESS: Final = frozenset({"read", "reversible"})


def why_not(pending: PendingApproval) -> str:
    """Return why a question is left to a person's own proof; empty where a client's word may answer it."""
    shown = pending.presentation
    categories = frozenset(shown.categories)
    if pending.needed != 1:
        return "it takes more than one person"
    if categories & CONSEQUENTIAL or shown.risk not in _HARMLESS:
        return "it is consequential"
    if categories & (PLACES - _SHARED):
        return "its place is sensitive"
    if _gives_away(shown.parameters):
        return "it gives away a secret, or what the operation returns"
    return ""


def _gives_away(value: Any) -> bool:
    if isinstance(value, dict):
        return not _GIVING.isdisjoint(value) or any(_gives_away(one) for one in value.values())
    return isinstance(value, list | tuple) and any(_gives_away(one) for one in value)


def words(pending: PendingApproval) -> str:
    """Return everything that the hash covers, a line for each thing; its texts are visible and masked already.

    No text of the screen makes a line of its own: control characters are spelled out where it comes from.
    """
    shown = pending.presentation
    facts: list[tuple[str, Any]] = [
        ("application", shown.app),
        ("window", shown.place),
        ("element", shown.element),
        ("around it", shown.context),
        ("action", shown.action),
        *((name, value) for name, value in sorted(shown.parameters.items()) if not shown.steps),
        *((f"step {place}", _step(one)) for place, one in enumerate(shown.parameters.get("steps", ()), 1)),
        ("risk", shown.risk),
        ("categories", ", ".join(shown.categories)),
        ("reason", shown.reason),
        ("picture", "" if shown.crop_hash is None else f"surehand approvals show {pending.approval_id} --picture FILE"),
        ("who asks", shown.principal),
        ("approval", pending.approval_id),
        ("hash", pending.presentation_hash),
    ]
    return "\n".join(f"{name}: {_said(value)}" for name, value in facts if value not in ("", None))


def _step(value: Any) -> Any:
    """Return a step without what only the hash needs."""
    return {name: one for name, one in value.items() if name != "action_hash"} if isinstance(value, dict) else value


def _said(value: Any) -> str:
    return value if isinstance(value, str) else canonical.encode(value).decode("utf-8")


def answer_of(
    pending: PendingApproval,
    client: str,
    said: Literal["approve", "deny"],
    *,
    presentation_hash: str,
    reason: str,
    now_ms: int,
) -> ApprovalAnswer:
    """Return what a client said as an answer that nobody signed.

    Raises:
        AuthorityDenied: it is about something else than the question, or too late.
    """
    if not hmac.compare_digest(presentation_hash.encode(), pending.presentation_hash.encode()):
        raise AuthorityDenied("the answer is about something else", gate="approval")
    if now_ms >= pending.expires_at_ms:
        raise AuthorityDenied("the question has expired", gate="approval")
    return ApprovalAnswer(
        approval_id=pending.approval_id,
        presentation_hash=pending.presentation_hash,
        answer=said,
        approver=f"client:{client}",
        key_id=CLIENT_ASSERTED,
        answered_at_ms=now_ms,
        expires_at_ms=min(now_ms + limits.ASSERTED_MS_MAX, pending.expires_at_ms),
        reason=reason,
        signature="",
    )
