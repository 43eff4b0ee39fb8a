"""After the unknown: no escape by a new id, none by an old scene."""

from __future__ import annotations

import pytest

from surehand import limits
from surehand.core.reconcile import Unresolved, check, check_all, check_room
from surehand.errors import ReconcileRequired


def test_a_new_id_with_the_same_effect_is_refused_and_told_what_to_name():
    with pytest.raises(ReconcileRequired) as refused:
        check("op-1", 100, None, 200)
    assert refused.value.details == {"operation_id": "op-1"}
    assert "op-1" in refused.value.message
    assert "reconciles=op-1" in refused.value.fix
    assert refused.value.retry_safe


def test_naming_another_operation_does_not_help():
    with pytest.raises(ReconcileRequired):
        check("op-1", 100, "op-0", 200)


@pytest.mark.parametrize("observed", [None, 0, 99, 100])
def test_a_scene_from_before_the_end_shows_nothing(observed):
    with pytest.raises(ReconcileRequired, match="before"):
        check("op-1", 100, "op-1", observed)


def test_whoever_leaves_too_many_unresolved_is_told_with_which_to_begin():
    check_room(limits.UNRESOLVED_MAX - 1, "op-1")
    with pytest.raises(ReconcileRequired) as refused:
        check_room(limits.UNRESOLVED_MAX, "op-1")
    assert refused.value.details == {"operation_id": "op-1"}
    assert "op-1" in refused.value.fix


def test_naming_it_with_a_later_scene_goes_on():
    check("op-1", 100, "op-1", 101)


def test_only_the_same_effect_is_asked_about_and_the_latest_of_several_must_be_named():
    unresolved = [
        Unresolved(operation_id="op-1", reconcile_key="k", ended_at_ms=100),
        Unresolved(operation_id="op-2", reconcile_key="k", ended_at_ms=200),
        Unresolved(operation_id="op-3", reconcile_key="other", ended_at_ms=300),
    ]
    assert check_all(unresolved, "free", None, None) is None
    assert check_all(unresolved, "k", "op-2", 201) == "op-2"
    with pytest.raises(ReconcileRequired):
        check_all(unresolved, "k", "op-1", 201)
    with pytest.raises(ReconcileRequired):
        check_all(unresolved, "k", "op-2", 150)
