"""A question that the agent's own client shows its person, where the operator named that client (spec §6.4).

Guarantees:
- Off unless the configuration of the daemon names the client and its user; at trust level B it is off altogether.
- What a client says counts for a question that this very session was told of, in exactly the words that it was given,
  once, in time, before anybody else answered; and never for what `core.asserted.why_not` leaves to a person.
- It is recorded as `client_asserted`, with no proof, and does not outlive this run of the daemon.

A client says its name itself, so this is the operator's trust in every program of that user, not a proof.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from surehand import limits
from surehand.core import asserted as rules
from surehand.core.lifecycle import Gate
from surehand.errors import AuthorityDenied
from surehand.model.record import Record, check_identifier, check_text
from surehand.runtime.open_questions import Question
from surehand.runtime.parts import Parts
from surehand.runtime.session import Session

#: One refusal for whatever was not asked here, so that nobody learns of another's questions by it.
_NOT_ASKED: Final = "no open question of this session has that id"


class AskClient(Record, frozen=True, kw_only=True):
    """A question of the caller's session that an MCP client of this name would show its person."""

    approval_id: str
    client: str

    def __post_init__(self) -> None:
        check_identifier("approval_id", self.approval_id)
        check_text("client", self.client, limits.CLIENT_NAME_CHARS_MAX * 4, empty=False)


class Asserted(AskClient, frozen=True, kw_only=True):
    """What such a client says that its person answered."""

    presentation_hash: str
    answer: Literal["approve", "deny"]
    reason: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_identifier("presentation_hash", self.presentation_hash)
        check_text("reason", self.reason, limits.REASON_CHARS_MAX * 4)


def told(session: Session, approval: dict[str, Any] | None) -> None:
    """Remember that a session was told of a question; the newest are kept, as many as there may be."""
    approval_id = (approval or {}).get("approval_id")
    if approval_id is None:
        return
    session.asked.pop(approval_id, None)
    session.asked[approval_id] = False
    while len(session.asked) > limits.APPROVALS_PENDING_MAX:
        session.asked.pop(next(iter(session.asked)))


async def form(parts: Parts, session: Session, args: AskClient) -> dict[str, Any]:
    """Return the words in which a named client asks its person about a question of this session.

    Raises:
        AuthorityDenied: the operator did not name the client, or the question is not for it.
    """
    question = _question(parts, session, args)
    session.asked[args.approval_id] = True
    pending = question.pending
    return {
        "text": rules.words(pending),
        "presentation_hash": pending.presentation_hash,
        "expires_in_ms": max(0, pending.expires_at_ms - parts.clock.wall_ms()),
    }


async def assertion(parts: Parts, session: Session, args: Asserted) -> dict[str, Any]:
    """Take in what a named client says that its person answered; durable when this returns.

    Raises:
        AuthorityDenied: it does not count; the question stays open for a person.
    """
    question = _question(parts, session, args)
    if not session.asked[args.approval_id]:
        raise _refused("this session was not given the words of the question")
    now = parts.clock.wall_ms()
    answer = rules.answer_of(
        question.pending,
        args.client,
        args.answer,
        presentation_hash=args.presentation_hash,
        reason=args.reason,
        now_ms=now,
    )
    # One use: whatever becomes of it now, it is not said twice.
    session.asked.pop(args.approval_id)
    return await parts.approvals.count(question, answer, None, [], now)


def _question(parts: Parts, session: Session, args: AskClient) -> Question:
    if session.trust_level != "A" or not parts.config.may_assert(session.principal, args.client):
        raise _refused("the operator named no such client of this user")
    if args.approval_id not in session.asked:
        raise _refused(_NOT_ASKED)
    question = parts.approvals.question(args.approval_id)
    if question is None or question.taken or question.pending.principal != session.principal:
        raise _refused(_NOT_ASKED)
    if question.given or question.answers:
        raise _refused("somebody has answered it already")
    if reason := rules.why_not(question.pending):
        raise _refused(f"a client's word does not answer this: {reason}")
    return question


def _refused(message: str) -> AuthorityDenied:
    return AuthorityDenied(message, gate=Gate.APPROVAL, fix="a person answers: surehand approvals list")
