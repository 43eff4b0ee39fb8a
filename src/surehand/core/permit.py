"""Permits: the one-use, expiring, MAC'd right to run exactly one decided operation (spec §6.5).

`mint_permit` and `check_permit` are all there is. Whether a permit was used before is not known here: the journal
consumes `use_key(permit)` in the transaction of the claim, so that of two racing holders exactly one wins.
"""

from __future__ import annotations

import functools
import hmac
from typing import Final

from surehand import canonical, limits
from surehand.core.keyed import keyed
from surehand.errors import PermitInvalid
from surehand.model.decision import Obligations, Permit
from surehand.model.record import check_identifier

_DOMAIN: Final = b"surehand/permit/v1\x00"
_OBLIGATIONS_DOMAIN: Final = "surehand/obligations/v1"


@functools.lru_cache(maxsize=limits.OBLIGATIONS_HASHED_MAX)
def obligations_hash(obligations: Obligations) -> str:
    """Return the hash by which a permit binds the obligations of its decision."""
    return canonical.hash_record(_OBLIGATIONS_DOMAIN, obligations)


def mint_permit(
    key: bytes,
    *,
    request_hash: str,
    decision_id: str,
    obligations_hash: str,
    session: str,
    nonce: str,
    now_ms: int,
) -> Permit:
    """Return a permit that is valid for `limits.PERMIT_MS` from `now_ms`.

    Args:
        key: At least 32 random bytes, of this process only.
        request_hash: From `hashing.request_hash`.
        decision_id: The decision that allowed it.
        obligations_hash: From `obligations_hash`.
        session: The session it is for.
        nonce: Random and never used before.
        now_ms: Any clock, as long as `check_permit` reads the same one.
    """
    check_identifier("nonce", nonce)
    expires_at_ms = now_ms + limits.PERMIT_MS
    mac = _mac(key, request_hash, decision_id, obligations_hash, session, nonce, expires_at_ms)
    return Permit(
        request_hash=request_hash,
        decision_id=decision_id,
        obligations_hash=obligations_hash,
        session=session,
        nonce=nonce,
        expires_at_ms=expires_at_ms,
        mac=mac,
    )


def check_permit(
    key: bytes,
    permit: Permit,
    *,
    request_hash: str,
    decision_id: str,
    obligations_hash: str,
    session: str,
    now_ms: int,
) -> None:
    """Refuse a permit that is forged, expired, or for anything else than what is about to run.

    Raises:
        PermitInvalid: without saying more about the key than that the permit is not of it.
    """
    mac = _mac(
        key,
        permit.request_hash,
        permit.decision_id,
        permit.obligations_hash,
        permit.session,
        permit.nonce,
        permit.expires_at_ms,
    )
    # The MAC comes first: nothing that a stranger wrote is worth comparing.
    if not hmac.compare_digest(mac, permit.mac):
        raise PermitInvalid("the permit was not issued here or was changed", gate="permit")
    expected = (request_hash, decision_id, obligations_hash, session)
    if (permit.request_hash, permit.decision_id, permit.obligations_hash, permit.session) != expected:
        raise PermitInvalid("the permit is for something else", gate="permit")
    left_ms = permit.expires_at_ms - now_ms
    # Above the whole life means that the clock went back: the permit could be older than it looks.
    if not 0 < left_ms <= limits.PERMIT_MS:
        raise PermitInvalid("the permit has expired", gate="permit")


def use_key(permit: Permit) -> str:
    """Return the key under which the journal counts the permit's one use."""
    return f"permit/{permit.nonce}"


def _mac(
    key: bytes, request_hash: str, decision_id: str, obligations: str, session: str, nonce: str, expires_at_ms: int
) -> str:
    claims = {
        "request_hash": request_hash,
        "decision_id": decision_id,
        "obligations_hash": obligations,
        "session": session,
        "nonce": nonce,
        "expires_at_ms": expires_at_ms,
    }
    return keyed(key, _DOMAIN)(canonical.encode(claims))
