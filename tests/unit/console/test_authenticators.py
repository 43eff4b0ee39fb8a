"""What an authenticator is asked at the page is for one answer, kept for a few, and given back once."""

from __future__ import annotations

from typing import Any

import pytest

from surehand import limits
from surehand.client.credentials import challenge_of
from surehand.console.authenticators import TOKEN_FIELD, Authenticators
from surehand.console.credentials import Said
from surehand.core import approval
from surehand.errors import AuthorityDenied, InvalidRequest
from tests.browser.kit import presentation

CREDENTIAL = {
    "approver": "ann",
    "key_id": "w1",
    "credential_id": "aa" * 32,
    "algorithm": "EdDSA",
    "public_key": "bb" * 32,
    "sign_count": 0,
    "enrolled_by": "k1",
    "enrolled_at_ms": 1,
    "label": "my key",
}
YES = Said(answer="approve")
FIELDS = {"webauthn_authenticator": "00", "webauthn_client": "00", "webauthn_signature": "00"}


class FakeDaemon:
    """Stands in for the connection: answers which credentials there are."""

    async def call(self, method: str, _params: Any = None) -> dict[str, Any]:
        assert method == "keys"
        return {"credentials": [CREDENTIAL]}


def made(approver: str | None = None) -> Authenticators:
    return Authenticators(FakeDaemon(), approver)  # type: ignore[arg-type]


def question(name: str = "a1") -> Any:
    return approval.ask(presentation(), approval_id=name, operation_id="op", now_ms=1)


async def test_what_was_asked_comes_back_signed_once_and_only_for_the_same_words() -> None:
    authenticators, pending = made(), question()
    for said, value, other in (
        (YES, "w1", question("a2")),
        (YES, "w2", pending),
        (Said(answer="deny"), "w1", pending),
        (Said(answer="approve", reason="x"), "w1", pending),
        (Said(answer="approve", leave=(1, 1)), "w1", pending),
    ):
        token = (await authenticators.begin(pending, YES, "w1"))["token"]
        with pytest.raises(AuthorityDenied, match="not asked for this answer"):
            await authenticators.sign(other, said, value, {TOKEN_FIELD: token, **FIELDS})
    asked = await authenticators.begin(pending, YES, "w1")
    fields = {TOKEN_FIELD: asked["token"], **FIELDS}
    answer = await authenticators.sign(pending, YES, "w1", fields)
    assert challenge_of(answer).hex() == asked["challenge"]
    assert (answer.approver, answer.key_id, answer.signature) == ("ann", "w1", "00")
    with pytest.raises(AuthorityDenied, match="not asked for this answer"):
        await authenticators.sign(pending, YES, "w1", fields)


async def test_answers_that_are_asked_for_are_kept_at_the_limit_and_not_one_past() -> None:
    authenticators, pending = made(), question()
    for more, kept in ((limits.CONSOLE_ASKED_MAX - 1, True), (limits.CONSOLE_ASKED_MAX, False)):
        token = (await authenticators.begin(pending, YES, "w1"))["token"]
        for _ in range(more):
            await authenticators.begin(pending, YES, "w1")
        fields = {TOKEN_FIELD: token, **FIELDS}
        if kept:
            await authenticators.sign(pending, YES, "w1", fields)
            continue
        with pytest.raises(AuthorityDenied):
            await authenticators.sign(pending, YES, "w1", fields)


async def test_a_console_of_one_approver_offers_nobody_elses_authenticator() -> None:
    (offer,) = await made("ann").offers(question())
    assert (offer.value, offer.needs_script) == ("w1", True)
    assert await made("bob").offers(question()) == []
    with pytest.raises(InvalidRequest):
        await made("bob").begin(question(), YES, "w1")
    with pytest.raises(InvalidRequest):
        await made().begin(question(), YES, "w9")
