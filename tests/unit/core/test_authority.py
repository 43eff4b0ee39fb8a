"""Grants under pinned keys, ceilings, budgets: every binding, at every bound."""

from __future__ import annotations

import msgspec
import pytest

from surehand import limits
from surehand.core import authority
from surehand.core.authority import Ceiling, Keyring, Spent
from surehand.errors import AuthorityDenied, BudgetExhausted, InvalidRequest
from surehand.model.authority import SignedGrant
from tests.rules_kit import OTHER_KEY, ZERO_HASH, pinned, signed_grant, verify

REQUEST = {"principal": "agent", "operation_id": "op-1", "action_hash": ZERO_HASH, "risk": "reversible"}


def check(signed, now_ms=1_000, keyring=None, **changes):
    keyring = Keyring([pinned()]) if keyring is None else keyring
    return authority.check_grant(signed, keyring, verify, **{**REQUEST, **changes}, now_ms=now_ms)


def test_a_grant_of_a_pinned_key_for_exactly_this_is_accepted():
    authorised = check(signed_grant())
    assert (authorised.mode, authorised.by, authorised.expires_at_ms) == ("host", "host/k1", 10_000)


def test_no_grant_is_no_authority():
    with pytest.raises(AuthorityDenied) as denied:
        check(None)
    assert denied.value.gate == "authority"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("principal", "other"),
        ("operation_id", "op-2"),
        ("action_hash", "1" * 64),
        ("risk", "external"),
        ("policy_generation", 8),
    ],
)
def test_a_signed_grant_for_something_else_is_denied_and_names_the_binding(field, value):
    with pytest.raises(AuthorityDenied, match=field):
        check(signed_grant(**{field: value}))
    if field in REQUEST:
        with pytest.raises(AuthorityDenied, match=field):
            check(signed_grant(), **{field: value})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("principal", "other"),
        ("operation_id", "op-2"),
        ("action_hash", "1" * 64),
        ("risk", "external"),
        ("policy_generation", 8),
        ("expires_at_ms", 99_999),
        ("issuer", "host"),
        ("key_id", "k2"),
    ],
)
def test_a_grant_changed_after_signing_is_denied(field, value):
    signed = signed_grant() if field != "issuer" else signed_grant(issuer="other")
    grant = msgspec.structs.replace(signed.grant, **{field: value})
    with pytest.raises(AuthorityDenied, match="not signed by a pinned key"):
        check(SignedGrant(grant=grant, signature=signed.signature), **{field: value} if field in REQUEST else {})


def test_a_key_that_is_not_pinned_and_a_wrong_signature_read_alike():
    messages = set()
    for signed in (signed_grant(OTHER_KEY), signed_grant(issuer="stranger"), signed_grant(key_id="k9")):
        with pytest.raises(AuthorityDenied) as denied:
            check(signed)
        messages.add(str(denied.value))
    assert len(messages) == 1


def test_an_expired_grant_is_denied_at_the_millisecond():
    check(signed_grant(), now_ms=9_999)
    with pytest.raises(AuthorityDenied, match="expired"):
        check(signed_grant(), now_ms=10_000)


def test_expiry_caps_the_deadline():
    authorised = check(signed_grant())
    assert authority.capped_deadline_ms(30_000, authorised, 1_000) == 9_000
    assert authority.capped_deadline_ms(500, authorised, 1_000) == 500
    assert authority.capped_deadline_ms(500, authorised, 20_000) == 0
    assert authority.capped_deadline_ms(30_000, authority.Authorised(mode="daemon", by="*"), 1_000) == 30_000


def test_the_same_key_name_twice_is_a_construction_error():
    with pytest.raises(InvalidRequest, match="twice"):
        Keyring([pinned(), pinned(OTHER_KEY)])
    assert len(Keyring([pinned(), pinned(OTHER_KEY, key_id="k2"), pinned(issuer="b")])) == 3


@pytest.mark.parametrize("public_key", ["", "0" * 63, "0" * 65, "G" * 64, "A" * 64])
def test_a_malformed_key_is_not_pinned(public_key):
    with pytest.raises(InvalidRequest):
        pinned(public_key=public_key)


class TestCeiling:
    ASKED = {"effect": "desktop.invoke", "app": "exe:/usr/bin/mousepad", "place": "main", "risk": "reversible"}

    def check(self, ceiling, **changes):
        return authority.check_ceiling(ceiling, **{**self.ASKED, **changes})

    def test_no_ceiling_is_no_authority(self):
        with pytest.raises(AuthorityDenied, match="no authority"):
            self.check(None)

    def test_an_empty_ceiling_limits_nothing_and_says_daemon(self):
        assert self.check(Ceiling()).mode == "daemon"

    @pytest.mark.parametrize(
        ("ceiling", "what"),
        [
            (Ceiling(actions=("desktop.set_value",)), "action"),
            (Ceiling(apps=("exe:/usr/bin/other",)), "application"),
            (Ceiling(places=("dialog*",)), "place"),
            (Ceiling(risk_max="read"), "risk"),
        ],
    )
    def test_what_lies_above_is_denied_by_name(self, ceiling, what):
        with pytest.raises(AuthorityDenied, match=what):
            self.check(ceiling)

    def test_patterns_allow(self):
        self.check(Ceiling(actions=("desktop.*",), apps=("exe:/usr/bin/*",), places=("main",), risk_max="reversible"))

    @pytest.mark.parametrize("risk", ["external", "destructive"])
    def test_risk_counts_as_raised(self, risk):
        with pytest.raises(AuthorityDenied):
            self.check(Ceiling(risk_max="reversible"), risk=risk)

    def test_a_ceiling_of_the_name_goes_before_a_pattern(self):
        wide, narrow = Ceiling(), Ceiling(principal="agent", risk_max="read")
        assert authority.ceiling_of((wide, narrow), "agent") is narrow
        assert authority.ceiling_of((wide, narrow), "other") is wide
        assert authority.ceiling_of((narrow,), "other") is None


class TestBudget:
    def spend(self, ceiling, spent, risk="reversible", now_ms=0):
        return authority.check_budget(ceiling, spent, risk=risk, now_ms=now_ms)

    def test_no_budget_never_runs_out(self):
        assert self.spend(Ceiling(), Spent(operations=10**6)).operations == 10**6 + 1

    def test_operations_run_out_at_the_limit(self):
        ceiling = Ceiling(operations_max=2)
        spent = self.spend(ceiling, self.spend(ceiling, Spent()))
        assert spent.operations == 2
        with pytest.raises(BudgetExhausted) as exhausted:
            self.spend(ceiling, spent)
        assert exhausted.value.details == {"budget": "operations", "limit": 2}

    def test_external_effects_run_out_apart_from_the_rest(self):
        ceiling = Ceiling(external_max=1)
        spent = self.spend(ceiling, self.spend(ceiling, Spent(), "external"), "reversible")
        assert spent == Spent(operations=2, external=1)
        for risk in ("external", "destructive"):
            with pytest.raises(BudgetExhausted):
                self.spend(ceiling, spent, risk)

    def test_minutes_run_out_at_the_limit(self):
        ceiling, spent = Ceiling(minutes_max=1), Spent(started_at_ms=5)
        self.spend(ceiling, spent, now_ms=60_004)
        with pytest.raises(BudgetExhausted):
            self.spend(ceiling, spent, now_ms=60_005)

    @pytest.mark.parametrize("risk", ["read", "reversible", "external", "destructive"])
    def test_what_is_given_back_leaves_what_was_there_before(self, risk):
        before = Spent(operations=4, external=2, started_at_ms=7)
        assert authority.given_back(self.spend(Ceiling(), before, risk), risk=risk) == before

    def test_a_budget_is_bounded(self):
        Ceiling(operations_max=limits.INTEGER_MAX)
        with pytest.raises(InvalidRequest):
            Ceiling(operations_max=-1)
