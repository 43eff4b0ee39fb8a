"""WebAuthn credentials of this daemon's approvers: enrolled, counted, taken away, all in the journal (spec §6.4).

Guarantees:
- A credential is enrolled only with a code that an approver's key signed for, once, in time; after a few wrong codes
  every open invitation is void.
- It is durable before it counts, and a signature count before its answer does.
- Taken away it counts no more at once; so does one whose inviting key goes.
"""

from __future__ import annotations

import asyncio
import hmac
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from surehand import limits
from surehand.core import webauthn
from surehand.core.approvers import Approvers, Proof
from surehand.core.authority import Verify
from surehand.errors import AuthorityDenied, InvalidRequest, TooLarge
from surehand.model.approval import ApprovalAnswer
from surehand.model.credential import Credential, Invitation, Registration
from surehand.model.events import Event, NewEvent
from surehand.model.record import convert, to_value
from surehand.ports import Clock, Journal
from surehand.signing import es256

STREAM: Final = "credentials"
_ENROLLED: Final = "credential.enrolled.v1"
_USED: Final = "credential.used.v1"
_REMOVED: Final = "credential.removed.v1"


class Credentials:
    """Every credential of this daemon, and the open invitations to enrol one."""

    def __init__(self, journal: Journal, clock: Clock, approvers: Approvers, verify: Verify) -> None:
        self._journal = journal
        self._clock = clock
        self._approvers = approvers
        self._verify = verify
        #: Open invitations by the hash of their code, oldest first.
        self._invited: OrderedDict[str, Invitation] = OrderedDict()
        self._wrong = 0
        #: One at a time: what was looked at must still be so when it is written.
        self._enrolling = asyncio.Lock()

    async def restore(self) -> None:
        """Read what earlier runs enrolled, and how far each credential had counted."""
        version = 0
        while page := await self._journal.stream(STREAM, after_version=version):
            for event in page:
                self._read(event)
            version += len(page)

    def _read(self, event: Event) -> None:
        enrolled, key_id = self._approvers.enrolled, str(event.payload.get("key_id"))
        if event.type == _ENROLLED:
            enrolled[key_id] = convert(Credential, event.payload)
        elif event.type == _REMOVED:
            enrolled.pop(key_id, None)
        elif event.type == _USED and key_id in enrolled:
            enrolled[key_id] = msgspec.structs.replace(enrolled[key_id], sign_count=event.payload["sign_count"])

    # --- enrolment --------------------------------------------------------------------------------------------

    def invite(self, invitation: Invitation, signature: str) -> dict[str, Any]:
        """Open an invitation that an approver's key signed; the oldest of too many gives way.

        Raises:
            AuthorityDenied: no allowed key signed it.
        """
        self._approvers.check_invitation(invitation, signature, self._verify, now_ms=self._clock.wall_ms())
        if not self._invited:
            self._wrong = 0
        self._invited[invitation.code_hash] = invitation
        while len(self._invited) > limits.INVITATIONS_OPEN_MAX:
            self._invited.popitem(last=False)
        return {"approver": invitation.approver, "expires_at_ms": invitation.expires_at_ms}

    def begin(self, code: str) -> dict[str, Any]:
        """Return what the page asks the authenticator for: bytes in hex, algorithms by their COSE numbers.

        Raises:
            AuthorityDenied: the code is not that of an open invitation.
        """
        invitation = self._invitation(code)
        return {
            "approver": invitation.approver,
            "rp_id": webauthn.RP_ID,
            "challenge": webauthn.enrolment_challenge(invitation).hex(),
            "user_handle": webauthn.user_handle(invitation.approver).hex(),
            "algorithms": list(webauthn.ALGORITHMS.values()),
            "exclude": [
                one.credential_id for one in self._approvers.credentials() if one.approver == invitation.approver
            ],
            "expires_at_ms": invitation.expires_at_ms,
        }

    def _invitation(self, code: str) -> Invitation:
        given, now = webauthn.code_hash(code), self._clock.wall_ms()
        for found, invitation in list(self._invited.items()):
            if now >= invitation.expires_at_ms:
                del self._invited[found]
            elif hmac.compare_digest(found, given):
                return invitation
        self._wrong += 1
        if self._wrong >= limits.INVITATION_TRIES_MAX:
            self._invited.clear()
        raise AuthorityDenied(
            "that is not the code of an open invitation",
            gate="approval",
            fix="run `surehand keys enrol-webauthn` in a terminal; its code is good once, for ten minutes",
        )

    async def enrol(self, registration: Registration) -> Credential:
        """Enrol a credential; its invitation is used up, whether it holds or not.

        Raises:
            AuthorityDenied: the code, or what the authenticator and the browser say, does not hold.
            TooLarge: more credentials than one daemon keeps.
            InvalidRequest: it is enrolled already.
        """
        invitation = self._invitation(registration.code)
        del self._invited[invitation.code_hash]
        made = webauthn.credential_of(
            invitation,
            bytes.fromhex(registration.authenticator_data),
            bytes.fromhex(registration.client_data),
            pages=self._approvers.pages(),
            label=registration.label,
            now_ms=self._clock.wall_ms(),
        )
        if made.algorithm == "ES256" and not es256.is_key(bytes.fromhex(made.public_key)):
            raise AuthorityDenied("the authenticator's key is not a point of its curve", gate="approval")
        enrolled = self._approvers.enrolled
        async with self._enrolling:
            if any(one.credential_id == made.credential_id for one in enrolled.values()):
                raise InvalidRequest("this authenticator is enrolled already", fix="`surehand keys show` lists it")
            if len(enrolled) >= limits.CREDENTIALS_MAX:
                raise TooLarge(f"{limits.CREDENTIALS_MAX} credentials are enrolled", fix="take one away first")
            await self._journal.append([_event(_ENROLLED, invitation.approver, to_value(made))])
            enrolled[made.key_id] = made
        return made

    async def remove(self, key_id: str, person: str) -> Credential:
        """Take a credential away; it counts no more at once.

        Raises:
            InvalidRequest: there is none of that id.
        """
        gone = self._approvers.enrolled.pop(key_id, None)
        if gone is None:
            raise InvalidRequest("no such credential", fix="`surehand keys show` lists them", details={"id": key_id})
        await self._journal.append([_event(_REMOVED, person, {"key_id": key_id, "approver": gone.approver})])
        return gone

    # --- answers ----------------------------------------------------------------------------------------------

    def counted(self, answer: ApprovalAnswer, proof: Proof, given: Iterable[ApprovalAnswer]) -> list[NewEvent]:
        """Count an assertion, and return what must be durable before its answer counts.

        Raises:
            AuthorityDenied: the count did not grow, or the same assertion came before.
        """
        credential = self._approvers.enrolled.get(answer.key_id)
        if proof.told is None or credential is None:
            return []
        webauthn.check_count(proof.told, credential)
        if any(one.assertion == answer.assertion for one in given):
            raise AuthorityDenied("this assertion was given already", gate="approval")
        if proof.told == credential.sign_count:
            return []
        self._approvers.enrolled[answer.key_id] = msgspec.structs.replace(credential, sign_count=proof.told)
        return [_event(_USED, answer.approver, {"key_id": answer.key_id, "sign_count": proof.told})]


def _event(kind: str, actor: str, payload: dict[str, Any]) -> NewEvent:
    return NewEvent(stream=STREAM, type=kind, actor=actor, payload=payload)
