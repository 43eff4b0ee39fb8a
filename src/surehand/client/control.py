"""The operator's side: the control socket, and answers signed with an approver's key.

An answer signs the hash of the very presentation that was shown: it is computed here from what is displayed, never
taken from the daemon's word for it.
"""

from __future__ import annotations

import time
import uuid
from types import TracebackType
from typing import Any, Literal, Protocol, Self

import msgspec

from surehand import limits
from surehand.client.blocking import BlockingWay, run
from surehand.client.opening import connector
from surehand.client.session import Session
from surehand.client.wire import OnEvent
from surehand.core.approval import answer_message, presentation_hash
from surehand.core.approvers import standing_message
from surehand.errors import InvalidRequest
from surehand.model.approval import ApprovalAnswer, PendingApproval
from surehand.model.authority import StandingGrant
from surehand.model.record import convert, to_value

#: How long a given answer may be used, beyond the life of the question itself.
_ANSWER_LIFE_MS = limits.APPROVAL_MS_DEFAULT


class Signer(Protocol):
    """An approver's private key."""

    @property
    def key_id(self) -> str:
        """The key's name."""

    def sign(self, message: bytes) -> str:
        """Return the signature, 128 hex digits."""


class Control:
    """A person's session: `with Control() as control: control.call("ps")`."""

    def __init__(self, *, client: str = "cli", start: bool = False) -> None:
        self._session = Session(BlockingWay(connector("control", None, client, start=start)))

    def __enter__(self) -> Self:
        run(self._session.open())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        run(self._session.close())

    def call(
        self, method: str, params: dict[str, Any] | None = None, *, wait_ms: int = 0, on_event: OnEvent | None = None
    ) -> dict[str, Any]:
        """Call a control method and return its value.

        Raises:
            SurehandError: what the daemon answered, or that it cannot be reached.
        """
        found: dict[str, Any] = run(self._session.ask(method, params or {}, wait_ms=wait_ms, on_event=on_event))
        return found

    def pending(self) -> list[PendingApproval]:
        """Return the open questions, oldest first; more than one answer holds come in several."""
        found: list[PendingApproval] = []
        after: str | None = None
        while True:
            page = self.call("approvals", {} if after is None else {"after": after})
            found += [convert(PendingApproval, value) for value in page["pending"]]
            after = page.get("next")
            if after is None:
                return found

    def answer(
        self,
        pending: PendingApproval,
        answer: Literal["approve", "deny"],
        *,
        approver: str,
        key: Signer,
        reason: str = "",
        standing: StandingGrant | None = None,
    ) -> dict[str, Any]:
        """Sign and give an answer to exactly this question, with leave for more of the same where it is given."""
        signed = signed_answer(pending, answer, approver=approver, key=key, reason=reason, standing=standing)
        return self.call("answer", {"answer": to_value(signed)})

    def give(self, grant: StandingGrant, key: Signer) -> dict[str, Any]:
        """Sign and give a standing grant."""
        signature = key.sign(standing_message(grant))
        return self.call("standing.grant", {"grant": to_value(grant), "key_id": key.key_id, "signature": signature})


def signed_answer(
    pending: PendingApproval,
    answer: Literal["approve", "deny"],
    *,
    approver: str,
    key: Signer,
    reason: str = "",
    now_ms: int | None = None,
    standing: StandingGrant | None = None,
) -> ApprovalAnswer:
    """Return a signed answer.

    Args:
        pending: The question as it was shown.
        answer: The person's word.
        approver: Whose key it is, as the operator's configuration names them.
        key: The approver's private key.
        reason: In the person's words; recorded.
        now_ms: Wall-clock milliseconds; now, when absent.
        standing: Leave for more of the same, with a yes.
    """
    unsigned = unsigned_answer(
        pending, answer, approver=approver, key_id=key.key_id, reason=reason, now_ms=now_ms, standing=standing
    )
    return msgspec.structs.replace(unsigned, signature=key.sign(answer_message(unsigned)))


def unsigned_answer(
    pending: PendingApproval,
    answer: Literal["approve", "deny"],
    *,
    approver: str,
    key_id: str,
    reason: str = "",
    now_ms: int | None = None,
    standing: StandingGrant | None = None,
) -> ApprovalAnswer:
    """Return an answer that still lacks its signature; see `signed_answer` and `client.credentials`."""
    # Cut off as the daemon's clock is; rounded up, a quick answer would lie in its future.
    now_ms = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    return ApprovalAnswer(
        approval_id=pending.approval_id,
        presentation_hash=presentation_hash(pending.presentation),
        answer=answer,
        approver=approver,
        key_id=key_id,
        answered_at_ms=now_ms,
        expires_at_ms=now_ms + _ANSWER_LIFE_MS,
        reason=reason[: limits.REASON_CHARS_MAX],
        standing=standing,
        signature="",
    )


def leave_of(pending: PendingApproval, approver: str, uses: int, minutes: int) -> StandingGrant:
    """Return leave for more of exactly what a question shows.

    Raises:
        InvalidRequest: no leave can be given for it.
    """
    shown = pending.presentation
    if shown.risk == "destructive":
        raise InvalidRequest("what is consequential is asked about each time", fix="approve it once")
    return convert(
        StandingGrant,
        {
            "grant_id": f"sg-{uuid.uuid4().hex[:12]}",
            "principal": shown.principal,
            "app": shown.app,
            "place": shown.place,
            "actions": [shown.action],
            "risk_max": shown.risk,
            "uses_max": uses,
            "expires_at_ms": time.time_ns() // 1_000_000 + minutes * 60_000,
            "issued_by": approver,
        },
    )
