"""WebAuthn on the person's side: the code that lets an authenticator be enrolled, and answers that one signs.

A page asks the authenticator; what it is asked to sign is formed here from what the page shows, as for any other key.
"""

from __future__ import annotations

import secrets
import time
from typing import Final

import msgspec

from surehand import limits
from surehand.client.control import Control, Signer
from surehand.core.approval import answer_message
from surehand.core.webauthn import challenge, code_hash, invitation_message
from surehand.model.approval import ApprovalAnswer
from surehand.model.credential import Assertion, Invitation
from surehand.model.record import to_value

#: Letters and digits that nobody mistakes for each other, five bits each.
_ALPHABET: Final = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
_CODE_CHARS: Final = 10


def new_code() -> str:
    """Return a code of 50 bits as a person types it."""
    letters = "".join(secrets.choice(_ALPHABET) for _ in range(_CODE_CHARS))
    return f"{letters[:5]}-{letters[5:]}"


def invitation(approver: str, key: Signer, code: str, *, now_ms: int | None = None) -> tuple[Invitation, str]:
    """Return leave to enrol one credential with this code, and its signature."""
    now_ms = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    made = Invitation(
        approver=approver,
        key_id=key.key_id,
        code_hash=code_hash(code),
        expires_at_ms=now_ms + limits.INVITATION_MS_MAX,
    )
    return made, key.sign(invitation_message(made))


def invite(control: Control, approver: str, key: Signer) -> tuple[str, int]:
    """Open an invitation at the daemon; return its code, which only the person sees, and until when it is good."""
    code = new_code()
    made, signature = invitation(approver, key, code)
    control.call("credentials.invite", {"invitation": to_value(made), "signature": signature})
    return code, made.expires_at_ms


def challenge_of(answer: ApprovalAnswer) -> bytes:
    """Return what an authenticator is asked to sign for an answer that lacks its signature."""
    return challenge(answer_message(answer))


def asserted(answer: ApprovalAnswer, assertion: Assertion, signature: str) -> ApprovalAnswer:
    """Return the answer as an authenticator signed it."""
    return msgspec.structs.replace(answer, assertion=assertion, signature=signature)
