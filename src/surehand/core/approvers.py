"""Who may answer, what a yes of theirs takes, and which answers of an earlier run still stand (spec §6.4).

Guarantees: an answer counts only from a key that was allowed when the daemon started and has not been taken away
since, or from a WebAuthn credential that such a key had enrolled; at trust level A what is consequential takes a key
behind a passphrase or an authenticator that verified its person, for a yes is all that is between an agent and it; of
an earlier run only what the journal bears out is taken up again.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Container, Iterable, Sequence
from typing import Any, Final, Literal, NamedTuple

from surehand import canonical, limits
from surehand.core import approval as rules
from surehand.core import webauthn
from surehand.core.approval import Approver
from surehand.core.authority import Verify
from surehand.core.history import APPROVAL_REQUESTED, APPROVED, CLAIMED, DENIED
from surehand.core.policy.model import CONSEQUENTIAL
from surehand.errors import AuthorityDenied
from surehand.model.approval import CLIENT_ASSERTED, ApprovalAnswer, PendingApproval, Presentation
from surehand.model.authority import StandingGrant
from surehand.model.credential import Credential, Invitation
from surehand.model.events import Event
from surehand.model.record import to_value

_STANDING_DOMAIN: Final = b"surehand/standing/v1\x00"


class Proof(NamedTuple):
    """By what an answer counts: the key, and of a credential the signature count that it told."""

    algorithm: Literal["Ed25519", "ES256", "EdDSA"]
    public_key: str
    told: int | None = None


class Approvers:
    """Who may answer in one daemon.

    Args:
        known: As pinned when the daemon started.
        trust_level: Spec §1.
        revoked: Whether a key was taken away since; asked whenever one counts.
        es256: How signatures of WebAuthn credentials are verified; none count by default.
    """

    def __init__(
        self,
        known: Iterable[Approver],
        *,
        trust_level: Literal["A", "B"],
        revoked: Callable[[Approver], bool] = lambda _: False,
        es256: Verify = lambda _key, _message, _signature: False,
    ) -> None:
        self._known = tuple(known)
        self._trust_level: Final = trust_level
        self._revoked = revoked
        self._es256 = es256
        #: Enrolled credentials by key id, with the count that each told last; `runtime.credentials` keeps them.
        self.enrolled: dict[str, Credential] = {}
        #: Says on which ports of this machine there are console pages now; elsewhere no credential answers.
        self.pages: Callable[[], Container[int]] = frozenset

    def allowed(self) -> tuple[Approver, ...]:
        """Return who may answer now."""
        return tuple(one for one in self._known if not self._revoked(one))

    def credentials(self) -> tuple[Credential, ...]:
        """Return the credentials that count now: those whose approver's key, which had them enrolled, counts."""
        keys = {(one.approver, one.key_id) for one in self.allowed()}
        return tuple(one for one in self.enrolled.values() if (one.approver, one.enrolled_by) in keys)

    def needs_passphrase(self, presentation: Presentation) -> bool:
        """Say whether a yes to this takes a key behind a passphrase: agent and approver are one user."""
        return self._trust_level == "A" and not CONSEQUENTIAL.isdisjoint(presentation.categories)

    def check(self, answer: ApprovalAnswer, pending: PendingApproval, verify: Verify, *, now_ms: int) -> Proof:
        """Accept an answer that counts, and return by what; see `core.approval.check_answer`.

        Raises:
            AuthorityDenied: naming what does not hold; the question stays open.
        """
        return self._check(answer, pending, verify, now_ms=now_ms, pages=self.pages())

    def _check(
        self,
        answer: ApprovalAnswer,
        pending: PendingApproval,
        verify: Verify,
        *,
        now_ms: int,
        pages: Container[int] | None,
    ) -> Proof:
        if answer.assertion is not None:
            return self._check_assertion(answer, pending, verify, now_ms=now_ms, pages=pages)
        approver = rules.check_answer(
            answer,
            pending,
            self.allowed(),
            verify,
            now_ms=now_ms,
            needs_passphrase=self.needs_passphrase(pending.presentation),
        )
        return Proof("Ed25519", approver.public_key)

    def _check_assertion(
        self,
        answer: ApprovalAnswer,
        pending: PendingApproval,
        verify: Verify,
        *,
        now_ms: int,
        pages: Container[int] | None,
    ) -> Proof:
        # No passphrase is asked for: no assertion counts without user verification.
        of = (answer.approver, answer.key_id)
        credential = next((one for one in self.credentials() if (one.approver, one.key_id) == of), None)
        if credential is None or answer.assertion is None:
            raise rules.not_allowed()
        told = webauthn.check_assertion(
            answer.assertion,
            rules.signature_bytes(answer.signature),
            rules.answer_message(answer),
            credential,
            webauthn.Verifiers(eddsa=verify, es256=self._es256),
            pages,
        )
        rules.check_words(answer, pending, now_ms=now_ms)
        return Proof(credential.algorithm, credential.public_key, told)

    def check_invitation(self, invitation: Invitation, signature: str, verify: Verify, *, now_ms: int) -> None:
        """Accept leave to enrol a credential, which the approver named in it signed with a key of theirs.

        Raises:
            AuthorityDenied.
        """
        of = (invitation.approver, invitation.key_id)
        key = next((one for one in self.allowed() if (one.approver, one.key_id) == of), None)
        message = webauthn.invitation_message(invitation)
        if key is None or not verify(bytes.fromhex(key.public_key), message, rules.signature_bytes(signature)):
            raise rules.not_allowed()
        if self._trust_level == "A" and not key.passphrase:
            # It would say yes to what its own key may not.
            raise AuthorityDenied(
                "at level A a credential is enrolled with a key behind a passphrase",
                gate="approval",
                fix="make one with `surehand keys create NAME --passphrase`",
            )
        if not now_ms < invitation.expires_at_ms <= now_ms + limits.INVITATION_MS_MAX:
            raise AuthorityDenied("the invitation has expired, or would hold for too long", gate="approval")

    def counts(self, answer: ApprovalAnswer, pending: PendingApproval, verify: Verify) -> bool:
        """Say whether an answer of an earlier run counted when it was given, by the approvers of today."""
        try:
            self._check(answer, pending, verify, now_ms=answer.answered_at_ms, pages=None)
        except AuthorityDenied:
            return False
        return True

    def standing_by(self, answers: Iterable[ApprovalAnswer]) -> list[ApprovalAnswer]:
        """Return the answers without every yes whose key was taken away; a no stays a no."""
        names = {(one.approver, one.key_id) for one in self.allowed()}
        names |= {(one.approver, one.key_id) for one in self.credentials()}
        # A client has no key to take away; its word counts in this run of the daemon, under this configuration.
        return [
            one
            for one in answers
            if one.answer == "deny" or one.key_id == CLIENT_ASSERTED or (one.approver, one.key_id) in names
        ]

    def check_standing(self, grant: StandingGrant, key_id: str, signature: str, verify: Verify) -> None:
        """Accept a standing grant that the approver named in it signed.

        Raises:
            AuthorityDenied.
        """
        for one in self.allowed():
            if (one.approver, one.key_id) == (grant.issued_by, key_id) and one.approver != grant.principal:
                public = bytes.fromhex(one.public_key)
                if verify(public, standing_message(grant), rules.signature_bytes(signature)):
                    return
        raise AuthorityDenied(
            "the standing grant is not signed by an allowed approver",
            gate="approval",
            fix="use a key that the daemon knows, and name its owner with --as",
        )


def standing_message(grant: StandingGrant) -> bytes:
    """Return the bytes that an approver signs to give leave: the domain, a zero byte, the grant's canonical bytes."""
    return _STANDING_DOMAIN + canonical.encode(to_value(grant))


def since_asked(events: Sequence[Event], pending: PendingApproval) -> list[Event] | None:
    """Return what an operation's stream holds since a question; None where it was not asked so, or has ended.

    Args:
        events: The whole stream, in order.
        pending: The question as it was kept beside the journal.
    """
    shown_hash = rules.presentation_hash(pending.presentation)
    asked = {
        "approval_id": pending.approval_id,
        "presentation_hash": shown_hash,
        "action_hash": pending.presentation.action_hash,
        "requested_at_ms": pending.requested_at_ms,
        "expires_at_ms": pending.expires_at_ms,
        "needed": pending.needed,
    }
    if not hmac.compare_digest(pending.presentation_hash, shown_hash):
        return None
    places = [place for place, event in enumerate(events) if _is_of(event, APPROVAL_REQUESTED, asked)]
    if not places:
        return None
    since = list(events[places[0] + 1 :])
    over = any(event.type == CLAIMED or _is_of(event, DENIED, {"approval_id": pending.approval_id}) for event in since)
    return None if over else since


def how_of(answer: ApprovalAnswer) -> str:
    """Return by what proof an answer was given, as it is recorded."""
    if answer.key_id == CLIENT_ASSERTED:
        return CLIENT_ASSERTED
    return f"{'ed25519' if answer.assertion is None else 'webauthn'}:{answer.key_id}"


def is_recorded(answer: ApprovalAnswer, since: Iterable[Event]) -> bool:
    """Say whether the journal holds this yes; one whose record never reached the disk was never given."""
    said = {"approval_id": answer.approval_id, "approver": answer.approver, "how": how_of(answer)}
    return answer.answer == "approve" and any(_is_of(event, APPROVED, said) for event in since)


def _is_of(event: Event, kind: str, facts: dict[str, Any]) -> bool:
    return event.type == kind and all(event.payload.get(name) == value for name, value in facts.items())
