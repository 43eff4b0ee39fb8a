"""Permits: forged, changed, expired or foreign ones are refused."""

from __future__ import annotations

import msgspec
import pytest

from surehand import limits
from surehand.core import permit as permits
from surehand.errors import InvalidRequest, PermitInvalid
from surehand.model.decision import Obligations
from tests.rules_kit import SECRET

BOUND = {
    "request_hash": "1" * 64,
    "decision_id": "decision-1",
    "obligations_hash": permits.obligations_hash(Obligations()),
    "session": "session-1",
}
NOW = 1_000_000


def mint(**changes):
    return permits.mint_permit(SECRET, **{**BOUND, "nonce": "nonce-1", "now_ms": NOW, **changes})


def check(permit, now_ms=NOW, key=SECRET, **changes):
    permits.check_permit(key, permit, **{**BOUND, **changes}, now_ms=now_ms)


def test_a_fresh_permit_holds_for_thirty_seconds_and_not_one_millisecond_more():
    permit = mint()
    assert permit.expires_at_ms == NOW + limits.PERMIT_MS == NOW + 30_000
    check(permit)
    check(permit, now_ms=NOW + limits.PERMIT_MS - 1)
    with pytest.raises(PermitInvalid):
        check(permit, now_ms=NOW + limits.PERMIT_MS)


def test_a_clock_that_went_back_makes_a_permit_invalid():
    with pytest.raises(PermitInvalid):
        check(mint(), now_ms=NOW - 1)


@pytest.mark.parametrize("field", ["request_hash", "decision_id", "obligations_hash", "session"])
def test_a_permit_for_something_else_is_refused(field):
    other = "2" * 64 if field.endswith("hash") else "other"
    with pytest.raises(PermitInvalid, match="something else"):
        check(mint(), **{field: other})
    with pytest.raises(PermitInvalid, match="something else"):
        check(mint(**{field: other}))


@pytest.mark.parametrize(
    "field", ["request_hash", "decision_id", "obligations_hash", "session", "nonce", "expires_at_ms"]
)
def test_a_changed_permit_is_refused_whatever_was_changed(field):
    permit = mint()
    value = getattr(permit, field)
    changed = value + 1 if isinstance(value, int) else ("2" * 64 if field.endswith("hash") else value + "x")
    with pytest.raises(PermitInvalid, match="not issued here"):
        check(msgspec.structs.replace(permit, **{field: changed}))


@pytest.mark.parametrize("bit", range(4))
@pytest.mark.parametrize("position", [0, 31, 63])
def test_one_flipped_bit_of_the_mac_is_refused(position, bit):
    permit = mint()
    digits = list(permit.mac)
    digits[position] = f"{int(digits[position], 16) ^ (1 << bit):x}"
    with pytest.raises(PermitInvalid):
        check(msgspec.structs.replace(permit, mac="".join(digits)))


def test_a_permit_of_another_key_is_refused():
    with pytest.raises(PermitInvalid, match="not issued here"):
        check(mint(), key=bytes(32))


@pytest.mark.parametrize("size", [0, 31])
def test_a_short_key_mints_nothing(size):
    with pytest.raises(ValueError, match="32 bytes"):
        permits.mint_permit(bytes(size), **BOUND, nonce="n", now_ms=0)


def test_a_nonce_is_an_identifier_so_its_use_key_is_its_own():
    with pytest.raises(InvalidRequest):
        mint(nonce="a/b")
    assert permits.use_key(mint(nonce="n1")) == "permit/n1"


def test_obligations_are_bound_by_value():
    assert permits.obligations_hash(Obligations()) != permits.obligations_hash(Obligations(release="ask"))
    assert permits.obligations_hash(Obligations()) != permits.obligations_hash(Obligations(approvals_needed=2))
