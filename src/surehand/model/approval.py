"""What an approver sees and signs, and the answer (spec §6.4)."""

from __future__ import annotations

from typing import Any, Final, Literal

from surehand import canonical, limits
from surehand.model.authority import StandingGrant
from surehand.model.credential import Assertion
from surehand.model.record import Record, check_text

#: How an answer is recorded that an MCP client says its person gave (spec §6.4), and the id of the key it has not.
CLIENT_ASSERTED: Final = "client_asserted"
#: Of the picture beside a question.
_CROP_DOMAIN: Final = "surehand/crop/v1"


def crop_hash(png: bytes) -> str:
    """Return the hash by which a presentation names the picture that is shown beside it."""
    return canonical.digest(_CROP_DOMAIN, png)


class Presentation(Record, frozen=True, kw_only=True):
    """Exactly what the approver sees; the hash of these canonical bytes is what is signed.

    Scene, generation and label are left out on purpose, so that looking again does not void an approval, while any
    change of meaning does. Text is escaped (control and bidi characters) and secrets are masked before it gets here.
    """

    version: Literal[1] = 1
    principal: str
    app: str
    place: str
    element: str
    context: str
    action: str
    parameters: dict[str, Any]
    risk: str
    categories: tuple[str, ...]
    reason: str
    action_hash: str
    crop_hash: str | None = None
    steps: tuple[str, ...] = ()


class Change(Record, frozen=True, kw_only=True):
    """One thing that was shown otherwise before; both texts are as visible as those of the presentation."""

    name: str
    before: str
    after: str


class PendingApproval(Record, frozen=True, kw_only=True):
    """An unanswered question. `expires_at_ms` is wall-clock.

    Where the same operation was asked about before and has changed since, `replaces` names that question, `changed`
    says in what, and `replaces_approved` whether it had a yes, which is void now.
    """

    approval_id: str
    operation_id: str
    principal: str
    presentation: Presentation
    presentation_hash: str
    requested_at_ms: int
    expires_at_ms: int
    needed: int = 1
    replaces: str | None = None
    replaces_approved: bool = False
    changed: tuple[Change, ...] = ()


class Notice(Record, frozen=True, kw_only=True):
    """What is told outside of a question or a request to people: that it was asked, or that it has ended.

    Everything but `presentation` and `agent_says` is proven or decided, and nothing of a screen; those two may not be
    told at all. A question has an `approval_id`, a request a `request_id` and a `kind`.
    """

    version: Literal[1] = 1
    event: Literal["approval.requested", "approval.ended", "human.requested", "human.ended"]
    approval_id: str = ""
    request_id: str = ""
    kind: str = ""
    state: str
    principal: str = ""
    action: str = ""
    app: str = ""
    risk: str = ""
    categories: tuple[str, ...] = ()
    presentation_hash: str | None = None
    needed: int = 1
    requested_at_ms: int | None = None
    expires_at_ms: int | None = None
    presentation: Presentation | None = None
    agent_says: str | None = None

    @property
    def about(self) -> str:
        """The id of what it is about."""
        return self.approval_id or self.request_id


class ApprovalAnswer(Record, frozen=True, kw_only=True):
    """An approver's signed answer.

    `standing` gives leave for more of the same with the yes. `signature` is Ed25519 over the domain
    `surehand/approval-answer/v1`, a zero byte, the canonical bytes of the other fields but `assertion`. With an
    `assertion` it is a WebAuthn credential's, and the SHA-256 of those bytes is the challenge.
    """

    approval_id: str
    presentation_hash: str
    answer: Literal["approve", "deny"]
    approver: str
    key_id: str
    answered_at_ms: int
    expires_at_ms: int
    reason: str = ""
    standing: StandingGrant | None = None
    assertion: Assertion | None = None
    signature: str

    def __post_init__(self) -> None:
        # It goes to the agent and into the journal.
        check_text("reason", self.reason, limits.REASON_CHARS_MAX * 4)
        check_text("signature", self.signature, 2 * limits.WEBAUTHN_SIGNATURE_BYTES_MAX)
