"""WebAuthn authenticators at the page: what one is asked to sign is formed here, from the question as it is shown.

Guarantees: the challenge is the digest of one answer, which is kept until it comes back signed, once, and only if the
form still says the same; the daemon checks the rest, and knows no answer that was not signed.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from surehand import limits
from surehand.client.control import unsigned_answer
from surehand.client.credentials import asserted, challenge_of
from surehand.console.credentials import Offer, Said
from surehand.console.daemon import Daemon
from surehand.core.approval import presentation_hash
from surehand.core.webauthn import RP_ID
from surehand.errors import AuthorityDenied, InvalidRequest
from surehand.model.approval import ApprovalAnswer, PendingApproval
from surehand.model.credential import Assertion, Credential
from surehand.model.record import convert

KIND: Final = "webauthn"
#: Fields of a form: which answer was signed, and what the authenticator said.
TOKEN_FIELD: Final = "webauthn_token"  # noqa: S105 - its name
_SAID_FIELDS: Final = {"authenticator_data": "webauthn_authenticator", "client_data": "webauthn_client"}
_SIGNATURE_FIELD: Final = "webauthn_signature"


class _Asked(NamedTuple):
    """An answer that an authenticator was asked to sign, and the words it was formed from."""

    answer: ApprovalAnswer
    said: Said


class Authenticators:
    """Every authenticator that the daemon knows."""

    name = KIND
    template = "webauthn.html"

    def __init__(self, daemon: Daemon, approver: str | None = None) -> None:
        self._daemon = daemon
        self._approver = approver
        self._asked: OrderedDict[str, _Asked] = OrderedDict()

    async def known(self) -> list[Credential]:
        """Return the credentials that count."""
        found = (await self._daemon.call("keys")).get("credentials", ())
        return [convert(Credential, one) for one in found]

    async def offers(self, pending: PendingApproval) -> Sequence[Offer]:
        """Return the authenticators that can answer here."""
        del pending
        return [
            Offer(
                kind=self.name,
                value=one.key_id,
                approver=one.approver,
                label=one.approver,
                note=one.label or "authenticator",
                needs_script=True,
            )
            for one in await self.known()
            if self._approver in {None, one.approver}
        ]

    async def begin(self, pending: PendingApproval, said: Said, value: str) -> dict[str, Any]:
        """Form an answer, and return what its authenticator is asked.

        Raises:
            InvalidRequest: no such authenticator, or leave that cannot be given.
        """
        one = next((one for one in await self.known() if one.key_id == value), None)
        if one is None or self._approver not in {None, one.approver}:
            raise InvalidRequest("no such authenticator answers here", fix="load the page again")
        answer = unsigned_answer(
            pending,
            said.answer,
            approver=one.approver,
            key_id=one.key_id,
            reason=said.reason,
            standing=said.standing(pending, one.approver),
        )
        token = secrets.token_hex(16)
        self._asked[token] = _Asked(answer, said)
        while len(self._asked) > limits.CONSOLE_ASKED_MAX:
            self._asked.popitem(last=False)
        return {
            "token": token,
            "challenge": challenge_of(answer).hex(),
            "credential_id": one.credential_id,
            "rp_id": RP_ID,
        }

    async def sign(self, pending: PendingApproval, said: Said, value: str, fields: Mapping[str, str]) -> ApprovalAnswer:
        """Return the answer as the authenticator signed it.

        Raises:
            AuthorityDenied: it was asked for something else.
        """
        asked = self._asked.pop(fields.get(TOKEN_FIELD, ""), None)
        wanted = presentation_hash(pending.presentation)
        if (
            asked is None
            or asked.said != said
            or (asked.answer.approval_id, asked.answer.presentation_hash) != (pending.approval_id, wanted)
            or asked.answer.key_id != value
        ):
            raise AuthorityDenied("the authenticator was not asked for this answer", gate="console", fix="answer again")
        assertion = {name: fields.get(field, "") for name, field in _SAID_FIELDS.items()}
        return asserted(asked.answer, convert(Assertion, assertion), fields.get(_SIGNATURE_FIELD, ""))
