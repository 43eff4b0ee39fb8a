"""Standing grants: each bound, and never for anything consequential."""

from __future__ import annotations

import pytest

from surehand.core import standing
from surehand.core.policy.model import CONSEQUENTIAL
from surehand.errors import InvalidRequest
from surehand.model.authority import StandingGrant
from surehand.model.record import convert

FIELDS = {
    "grant_id": "g1",
    "principal": "agent",
    "app": "exe:/a",
    "place": "main",
    "actions": ("desktop.invoke", "desktop.set_value"),
    "risk_max": "reversible",
    "uses_max": 3,
    "expires_at_ms": 1_000,
    "issued_by": "operator",
}
ASKED = {
    "principal": "agent",
    "app": "exe:/a",
    "place": "main",
    "effect": "desktop.invoke",
    "risk": "reversible",
    "categories": frozenset(),
    "now_ms": 999,
}
GRANT = StandingGrant(**FIELDS)


def test_what_lies_inside_every_bound_is_covered():
    assert standing.why_not(GRANT, **ASKED) is None
    assert standing.why_not(GRANT, **{**ASKED, "effect": "desktop.set_value", "risk": "read"}) is None


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("principal", "other"),
        ("app", "exe:/b"),
        ("app", ""),
        ("place", "dialog"),
        ("effect", "desktop.invoke2"),
        ("effect", "desktop"),
        ("risk", "external"),
        ("now_ms", 1_000),
        ("categories", ("shared_desktop", "destructive")),
    ],
)
def test_one_bound_that_does_not_hold_takes_the_grant_away(field, value):
    assert standing.why_not(GRANT, **{**ASKED, field: value}) is not None
    assert standing.first_match([GRANT], **{**ASKED, field: value}) is None


@pytest.mark.parametrize("category", sorted(CONSEQUENTIAL))
def test_no_consequential_category_is_ever_covered(category):
    grant = StandingGrant(**{**FIELDS, "risk_max": "external"})
    assert standing.why_not(grant, **{**ASKED, "categories": {category}}) == "what it would do is consequential"


def test_without_a_place_any_window_of_the_application_is_covered():
    anywhere = StandingGrant(**{**FIELDS, "place": None})
    assert standing.why_not(anywhere, **{**ASKED, "place": "dialog"}) is None


def test_an_empty_application_is_covered_by_nothing_not_even_an_empty_grant():
    assert standing.why_not(StandingGrant(**{**FIELDS, "app": ""}), **{**ASKED, "app": ""}) is not None


def test_the_first_that_covers_is_used_under_a_key_of_its_own():
    other = StandingGrant(**{**FIELDS, "grant_id": "g0", "principal": "other"})
    found = standing.first_match([other, GRANT], **ASKED)
    assert found is GRANT
    assert standing.use_key(found) == "standing/g1"


def test_a_grant_for_destruction_cannot_be_written():
    with pytest.raises(InvalidRequest):
        convert(StandingGrant, {**FIELDS, "actions": ["desktop.invoke"], "risk_max": "destructive"})
