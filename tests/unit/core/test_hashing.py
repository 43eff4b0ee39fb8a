"""What a request means, as a hash: looking again changes nothing, any change of effect changes it."""

from __future__ import annotations

import pytest

from surehand.core import hashing
from surehand.errors import InvalidRequest
from surehand.model.actions import Click, Drag, Invoke, Press, Screenshot, SetValue, TypeText
from surehand.model.query import Filter, Query, TextMatch
from surehand.model.targets import PointTarget, QueryTarget, SurfaceTarget
from surehand.model.verification import NoVerification
from tests.rules_kit import SECRET, element, request


def hash_of(given, *, app="exe:/usr/bin/mousepad", place="main", principal="agent"):
    meaning = hashing.target_meaning(given.target, app=app, place=place)
    return hashing.action_hash(given, meaning, hashing.salt_of(given, SECRET, principal))


BASE = request(Invoke())


@pytest.mark.parametrize(
    "again",
    [
        request(target=element(scene_id="scene-2")),
        request(target=element(generation=99)),
        request(target=element(element_id="e99")),
        request(target=element(provenance_hash="f" * 64)),
        request(operation_id="op-2"),
        request(deadline_ms=5),
        request(reconciles="op-0"),
    ],
    ids=["scene", "generation", "label", "provenance", "operation id", "deadline", "reconciles"],
)
def test_looking_again_keeps_the_action_hash(again):
    assert hash_of(again) == hash_of(BASE)


@pytest.mark.parametrize(
    "other",
    [
        request(Click()),
        request(Click(count=2)),
        request(target=element(fingerprint_hash="d" * 64)),
        request(target=element(context_hash="d" * 64)),
        request(interaction_mode="background_only"),
        request(verification=NoVerification()),
        request(risk="external"),
        request(Screenshot(), SurfaceTarget(ref="w1")),
    ],
)
def test_any_change_of_what_would_happen_changes_the_hash(other):
    assert hash_of(other) != hash_of(BASE)


def test_another_application_or_place_is_another_meaning():
    assert hash_of(BASE, app="exe:/usr/bin/other") != hash_of(BASE)
    assert hash_of(BASE, place="dialog") != hash_of(BASE)


def test_a_point_means_its_capture_and_place():
    def point(**changes):
        fields = {"space": "window", "x": 1, "y": 2, "capture_id": "c1", **changes}
        return hash_of(request(Click(), PointTarget(**fields)))

    assert len({point(), point(x=2), point(y=1), point(capture_id="c2"), point(space="desktop")}) == 5


def test_a_query_means_its_words():
    def query(name):
        return hash_of(
            request(target=QueryTarget(surface="w1", query=Query(filters=(Filter(name=TextMatch(text=name)),))))
        )

    assert query("Save") != query("Delete")


def test_texts_are_salted_per_operation_and_a_retry_hashes_the_same():
    typed = request(TypeText(text="hunter2"))
    assert hash_of(typed) == hash_of(request(TypeText(text="hunter2"), deadline_ms=7))
    assert hash_of(typed) != hash_of(request(TypeText(text="hunter2"), operation_id="op-2"))
    assert hash_of(typed) != hash_of(typed, principal="other")


def test_a_host_may_supply_the_salt():
    salted = request(TypeText(text="x"), salt="0" * 32)
    assert hashing.salt_of(salted, SECRET, "agent") == "0" * 32
    assert hashing.salt_of(salted, SECRET, "other") == "0" * 32


@pytest.mark.parametrize("action", [TypeText(text="x"), SetValue(value="x"), Press(chords=("a",))])
def test_a_text_action_without_a_salt_is_refused(action):
    given = request(action)
    with pytest.raises(InvalidRequest):
        hashing.action_hash(given, hashing.target_meaning(given.target, app="a", place="p"), None)


def test_a_salt_where_no_text_is_changes_nothing():
    assert hashing.salt_of(request(salt="1" * 32), SECRET, "agent") is None
    with pytest.raises(InvalidRequest):
        hashing.action_hash(BASE, hashing.target_meaning(BASE.target, app="a", place="p"), "1" * 32)


@pytest.mark.parametrize("size", [0, 16, 31])
def test_a_short_key_is_refused_everywhere(size):
    short = bytes(size)
    meaning = hashing.target_meaning(BASE.target, app="a", place="p")
    for use in (
        lambda: hashing.derive_salt(short, "agent", "op"),
        lambda: hashing.text_digest(short),
        lambda: hashing.reconcile_key(short, principal="agent", action=Invoke(), meaning=meaning),
    ):
        with pytest.raises(ValueError, match="32 bytes"):
            use()


def test_two_principals_never_share_a_salt_by_running_names_together():
    assert hashing.derive_salt(SECRET, "ab", "c") != hashing.derive_salt(SECRET, "a", "bc")


def test_the_permit_hash_binds_principal_operation_and_action():
    base = hashing.request_hash("agent", "op", "0" * 64)
    assert len({base, hashing.request_hash("other", "op", "0" * 64), hashing.request_hash("agent", "op2", "0" * 64),
                hashing.request_hash("agent", "op", "1" * 64)}) == 4  # fmt: skip


def test_a_plan_hash_knows_the_order_of_its_steps():
    assert hashing.plan_hash(("a" * 64, "b" * 64)) != hashing.plan_hash(("b" * 64, "a" * 64))


class TestReconcileKey:
    def key(self, action=None, target=None, *, principal="agent", app="a", **resolved):
        meaning = hashing.target_meaning(element() if target is None else target, app=app, place="p")
        return hashing.reconcile_key(
            SECRET, principal=principal, action=action or Invoke(), meaning=meaning, **resolved
        )

    def test_a_query_that_resolved_counts_as_the_element_it_resolved_to(self):
        query = QueryTarget(surface="w1", query=Query(filters=(Filter(role="button"),)))
        resolved = self.key(target=query, fingerprint_hash="b" * 64, context_hash="c" * 64)
        assert resolved == self.key()

    def test_a_newer_picture_of_the_same_place_does_not_escape(self):
        first = PointTarget(space="window", x=5, y=6, capture_id="c1")
        second = PointTarget(space="window", x=5, y=6, capture_id="c2")
        assert self.key(Click(), first) == self.key(Click(), second)

    def test_a_newer_picture_of_the_place_where_a_drag_ends_does_not_escape(self):
        first, second = (
            Drag(to=PointTarget(space="window", x=5, y=6, capture_id=name), path=()) for name in ("c1", "c2")
        )
        assert self.key(first) == self.key(second)
        assert self.key(first) != self.key(Drag(to=PointTarget(space="window", x=5, y=7, capture_id="c1")))

    def test_other_text_application_principal_or_element_is_another_effect(self):
        base = self.key(SetValue(value="1"))
        assert base != self.key(SetValue(value="2"))
        assert base != self.key(SetValue(value="1"), app="b")
        assert base != self.key(SetValue(value="1"), principal="other")
        assert base != self.key(SetValue(value="1"), element(context_hash="d" * 64))


def test_text_digests_are_keyed():
    assert hashing.text_digest(SECRET)("x") != hashing.text_digest(bytes(32))("x")
    assert hashing.text_digest(SECRET)("x") == hashing.text_digest(SECRET)("x")
    assert len(hashing.text_digest(SECRET)("\ud800")) == 64
