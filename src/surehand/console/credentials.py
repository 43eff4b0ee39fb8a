"""How a person proves at the page that an answer is theirs: one class for each kind of credential (spec §6.4).

A kind says what it offers for a question, and turns what a form brought into a signed answer. The page knows no more
of it than its name, its template in `templates/credentials/` and these two functions.

Guarantees: a private key is read for one answer and kept nowhere; a wrong passphrase is counted, and after
`CONSOLE_TRIES_MAX` in a row nobody may try for a while, so that guessing at the page is no faster than elsewhere.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, Protocol

from surehand import limits
from surehand.client.control import leave_of, signed_answer
from surehand.errors import AuthorityDenied, InvalidRequest, SurehandError
from surehand.model.approval import ApprovalAnswer, PendingApproval
from surehand.model.authority import StandingGrant
from surehand.model.record import Record
from surehand.signing.ed25519 import SigningKey
from surehand.signing.keystore import KeyStore

Word = Literal["approve", "deny"]
#: Fields of a form: which credential, and a key's passphrase.
CREDENTIAL_FIELD: Final = "credential"
PASSPHRASE_FIELD: Final = "passphrase"  # noqa: S105 - its name


class Offer(Record, frozen=True, kw_only=True):
    """One credential that a form may use: what the form sends of it, and what it is called.

    `note` says what it is, or cannot do; `facts` are its template's own. What takes a script to use is chosen by one.
    """

    kind: str
    value: str
    approver: str
    label: str
    note: str = ""
    needs_script: bool = False
    facts: dict[str, Any] = {}


class Said(Record, frozen=True, kw_only=True):
    """What a person answers."""

    answer: Word
    reason: str = ""
    #: Leave for so many more uses of the same, and for how many minutes.
    leave: tuple[int, int] | None = None

    def standing(self, pending: PendingApproval, approver: str) -> StandingGrant | None:
        """Return the leave that comes with the answer.

        Raises:
            InvalidRequest: none can be given for it.
        """
        return None if self.leave is None else leave_of(pending, approver, *self.leave)


class Kind(Protocol):
    """One kind of credential."""

    name: str
    #: Its template in `templates/credentials/`, given `offers`.
    template: str

    async def offers(self, pending: PendingApproval) -> Sequence[Offer]:
        """Return what can answer this question here."""

    async def sign(self, pending: PendingApproval, said: Said, value: str, fields: Mapping[str, str]) -> ApprovalAnswer:
        """Return the signed answer.

        Args:
            pending: The question as it was shown.
            said: The person's word.
            value: Of the chosen offer.
            fields: The form.

        Raises:
            AuthorityDenied, InvalidRequest: the person is not proven; nothing is signed.
        """


class Keys:
    """Approvers' keys in a folder of this user, behind a passphrase or not."""

    name = "key"
    template = "key.html"

    def __init__(self, folder: Path, approver: str | None = None, *, now: Callable[[], float] = time.monotonic) -> None:
        self._folder = folder
        self._approver = approver
        self._now = now
        self._lock = asyncio.Lock()
        self._wrong = 0
        self._closed_until = 0.0

    async def offers(self, pending: PendingApproval) -> Sequence[Offer]:
        """Return the keys that are here."""
        del pending  # which of them the daemon takes, it says itself
        return await asyncio.to_thread(self._offers)

    def _offers(self) -> list[Offer]:
        store = KeyStore.open(self._folder)
        found = []
        for one in store.approvers():
            if self._approver in {None, one.approver}:
                sealed = store.behind_passphrase(one.approver)
                found.append(
                    Offer(
                        kind=self.name,
                        value=one.approver,
                        approver=one.approver,
                        label=f"{one.approver}, key {one.key_id}",
                        note="" if sealed else "without a passphrase: no yes to what is consequential",
                        facts={"passphrase": sealed},
                    )
                )
        return found

    async def sign(self, pending: PendingApproval, said: Said, value: str, fields: Mapping[str, str]) -> ApprovalAnswer:
        """Sign with the key of an approver; its passphrase is in the form where it has one."""
        if self._approver not in {None, value}:
            raise InvalidRequest("this console answers as somebody else", fix="start one without --as")
        async with self._lock:  # one guess at a time, however many forms are sent
            left_s = self._closed_until - self._now()
            if left_s > 0:
                raise AuthorityDenied(
                    f"too many wrong passphrases; try again in {max(1, round(left_s))} seconds", gate="console"
                )
            try:
                key = await asyncio.to_thread(self._key, value, fields.get(PASSPHRASE_FIELD, ""))
            except AuthorityDenied:
                self._wrong += 1
                if self._wrong >= limits.CONSOLE_TRIES_MAX:
                    self._wrong, self._closed_until = 0, self._now() + limits.CONSOLE_PAUSE_MS / 1000
                raise
            self._wrong = 0
        standing = said.standing(pending, value)
        return signed_answer(pending, said.answer, approver=value, key=key, reason=said.reason, standing=standing)

    def _key(self, approver: str, passphrase: str) -> SigningKey:
        store = KeyStore.open(self._folder)
        if not store.behind_passphrase(approver):
            return store.approver(approver)
        if not passphrase:
            raise InvalidRequest(f"the key of {approver} needs its passphrase")
        return store.approver(approver, passphrase=passphrase)


class Credentials:
    """Every kind there is."""

    def __init__(self, kinds: Sequence[Kind]) -> None:
        self._kinds = {kind.name: kind for kind in kinds}

    def kind(self, name: str) -> Kind | None:
        """Return the kind of that name."""
        return self._kinds.get(name)

    async def offers(self, pending: PendingApproval) -> list[tuple[str, Sequence[Offer]]]:
        """Return what can answer this question here: the template of each kind, and its offers.

        A kind that fails offers nothing; the others still do.
        """
        found = []
        for kind in self._kinds.values():
            try:
                offers = await kind.offers(pending)
            except SurehandError:
                continue
            if offers:
                found.append((f"credentials/{kind.template}", offers))
        return found

    async def sign(self, pending: PendingApproval, said: Said, fields: Mapping[str, str]) -> ApprovalAnswer:
        """Return the answer, signed with the credential that the form chose.

        Raises:
            AuthorityDenied, InvalidRequest: none was chosen, or it does not prove the person.
        """
        name, _, value = fields.get(CREDENTIAL_FIELD, "").partition(":")
        kind = self._kinds.get(name)
        if kind is None or not value:
            raise InvalidRequest("say as whom you answer", fix="choose a key, then answer again")
        return await kind.sign(pending, said, value, fields)
