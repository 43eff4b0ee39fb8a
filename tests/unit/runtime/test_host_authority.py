"""Authority mode `host`: propose, hash, sign, run; and every way a grant can be wrong (spec §3.4)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from surehand.core.authority import Keyring, PinnedKey, grant_message
from surehand.model.actions import SetValue
from surehand.model.authority import Grant, SignedGrant
from surehand.model.request import Request
from surehand.runtime.config import Config
from surehand.signing.ed25519 import SigningKey
from surehand.testing.worlds import World

HOST = SigningKey(b"a seed for the tests' own host..")
STRANGER = SigningKey(b"a seed that nobody has pinned...")


def world() -> World:
    pinned = PinnedKey(issuer="host", key_id="k1", public_key=HOST.public_key, policy_generation=3)
    return World(config=Config(authority="host"), keyring=Keyring([pinned]))


async def granted(one: World, request: Request, *, key: SigningKey = HOST, **changes: Any) -> Request:
    proposal = await one.gateway.propose(one.session, request)
    facts: dict[str, Any] = {
        "issuer": "host",
        "key_id": "k1",
        "principal": one.session.principal,
        "operation_id": request.operation_id,
        "action_hash": proposal["action_hash"],
        "risk": request.risk,
        "policy_generation": 3,
        "expires_at_ms": one.clock.wall_ms() + 60_000,
    }
    grant = Grant(**{**facts, **changes})
    return msgspec.structs.replace(
        request, authority=SignedGrant(grant=grant, signature=key.sign(grant_message(grant)))
    )


async def test_a_proposal_signed_by_the_host_runs_once() -> None:
    one = world()
    request = await granted(one, await one.request("op", "name", action=SetValue(value="new")))
    assert (await one.gateway.act(one.session, request)).status == "succeeded"
    assert (await one.gateway.act(one.session, request)).replayed
    assert len(one.app.effects) == 1


async def test_without_a_grant_nothing_happens_and_nothing_is_claimed() -> None:
    one = world()
    reply = await one.act("op")
    assert (reply.error["code"], reply.error["gate"]) == ("authority_denied", "authority")
    assert one.app.effects == []
    assert "operation.claimed.v1" not in await one.types()


@pytest.mark.parametrize(
    "changes",
    [
        {"principal": "uid:9"},
        {"operation_id": "other"},
        {"action_hash": "0" * 64},
        {"risk": "destructive"},
        {"policy_generation": 2},
        {"issuer": "nobody"},
        {"key_id": "k2"},
        {"expires_at_ms": 1},
    ],
    ids=lambda changes: next(iter(changes)),
)
async def test_a_grant_for_anything_else_is_refused(changes: dict[str, Any]) -> None:
    one = world()
    request = await granted(one, await one.request("op"), **changes)
    assert (await one.gateway.act(one.session, request)).error["code"] == "authority_denied"
    assert one.app.effects == []


async def test_a_grant_of_a_key_that_is_not_pinned_is_refused() -> None:
    one = world()
    request = await granted(one, await one.request("op"), key=STRANGER)
    assert (await one.gateway.act(one.session, request)).error["code"] == "authority_denied"


async def test_a_grant_does_not_stretch_to_another_text() -> None:
    one = world()
    request = await granted(one, await one.request("op", "name", action=SetValue(value="one")))
    other = msgspec.structs.replace(request, action=SetValue(value="two"))
    assert (await one.gateway.act(one.session, other)).error["code"] == "authority_denied"
    assert one.app.effects == []
