"""Conditions of `wait_for` (spec §8.6; ST09; case C10)."""

from __future__ import annotations

import pytest

from surehand import limits
from surehand.core.waiting import (
    ElementExists,
    ElementGone,
    GenerationAfter,
    Sight,
    TitleChanged,
    TitleContains,
    UrlChanged,
    UrlContains,
    ValueEquals,
    Wait,
    needs_scene,
    needs_url,
    over_windows,
    progress,
)
from surehand.errors import InvalidRequest, TooLarge
from surehand.model.query import Filter, Query, TextMatch
from surehand.model.record import convert
from tests.scene_kit import El, Watcher, label


def named(name: str, *more: Filter) -> Query:
    return Query(filters=(Filter(name=TextMatch(text=name)), *more))


@pytest.fixture
def watcher() -> Watcher:
    return Watcher(El("window", "Mail", El("button", "Send"), El("slider", "Size", value="3"), El("label", "x")))


def holds(condition, sight: Sight) -> bool:
    return progress(Wait(conditions=(condition,)), sight).satisfied


def test_elements_exist_or_are_gone(watcher):
    sight = Sight(scene=watcher.observe())
    assert holds(ElementExists(query=named("Send")), sight)
    assert not holds(ElementExists(query=named("send")), sight)
    assert holds(ElementGone(query=named("Sent")), sight)
    assert not holds(ElementGone(query=named("Send")), sight)


def test_what_was_not_read_neither_exists_nor_is_gone():
    for condition in (ElementExists(query=named("A")), ElementGone(query=named("A"))):
        assert not holds(condition, Sight())
    assert holds(ElementGone(query=named("A")), Sight(gone=True))
    assert not holds(ElementExists(query=named("A")), Sight(gone=True))


def test_a_relation_to_an_element_that_is_not_there(watcher):
    scene = watcher.observe()
    by_query = named("Send", Filter(relation="child", to=named("No such dialog")))
    assert holds(ElementGone(query=by_query), Sight(scene=scene))
    # A label can be gone because its element was renamed; what stood by it may still be there.
    by_label = named("Send", Filter(relation="sibling", to="e99"))
    assert not holds(ElementGone(query=by_label), Sight(scene=scene))
    assert not holds(ElementExists(query=by_label), Sight(scene=scene))
    ambiguous = named("Send", Filter(relation="sibling", to=Query(filters=(Filter(state={"visible": True}),))))
    assert not holds(ElementGone(query=ambiguous), Sight(scene=scene))


def test_values_compare_exactly_or_as_numbers(watcher):
    slider = Query(filters=(Filter(role="slider"),))
    sight = Sight(scene=watcher.observe())
    assert holds(ValueEquals(query=slider, equals="3"), sight)
    assert holds(ValueEquals(query=slider, equals="3.0"), sight)
    assert not holds(ValueEquals(query=slider, equals="4"), sight)
    assert not holds(ValueEquals(query=named("Send"), equals=""), sight)


def test_a_secret_has_no_value_to_wait_for():
    scene = Watcher(El("window", "W", El("password", "PIN", value="1", secret=True))).observe()
    assert not holds(ValueEquals(query=named("PIN"), equals="1"), Sight(scene=scene))


def test_titles_and_addresses():
    sight = Sight(title="Inbox (3)", url="https://example.org/in")
    assert holds(TitleContains(contains="(3)"), sight)
    assert not holds(TitleContains(contains="inbox"), sight)
    assert holds(TitleChanged(since="Inbox"), sight)
    assert not holds(TitleChanged(since="Inbox (3)"), sight)
    assert holds(UrlContains(contains="/in"), sight)
    assert holds(UrlChanged(since=""), sight)
    for condition in (
        TitleContains(contains="x"),
        TitleChanged(since="x"),
        UrlContains(contains="x"),
        UrlChanged(since="x"),
    ):
        assert not holds(condition, Sight())


def test_a_newer_generation_is_strictly_newer(watcher):
    scene = watcher.observe()
    assert not holds(GenerationAfter(generation=scene.generation), Sight(scene=scene))
    assert holds(GenerationAfter(generation=scene.generation - 1), Sight(scene=scene))


def test_all_or_any_with_answers_in_the_order_asked(watcher):
    conditions = (ElementExists(query=named("Send")), TitleContains(contains="Sent"), ElementGone(query=named("Send")))
    sight = Sight(scene=watcher.observe(), title="Mail")
    every = progress(Wait(conditions=conditions), sight)
    assert (every.satisfied, every.conditions) == (False, (True, False, False))
    assert progress(Wait(conditions=conditions, mode="any"), sight).satisfied
    assert not progress(Wait(conditions=conditions[1:], mode="any"), sight).satisfied


def test_only_conditions_about_elements_need_the_tree():
    titles = Wait(conditions=(TitleContains(contains="x"), UrlChanged(since="")))
    assert not needs_scene(titles)
    assert needs_url(titles)
    assert needs_scene(Wait(conditions=(TitleContains(contains="x"), ElementGone(query=named("x")))))
    assert not needs_url(Wait(conditions=(TitleContains(contains="x"),)))


def test_a_wrong_query_is_refused_and_not_waited_on(watcher):
    wrong = ElementExists(query=Query(filters=(Filter(name=TextMatch(text="(", match="regex")),)))
    with pytest.raises(InvalidRequest):
        progress(Wait(conditions=(wrong,)), Sight(scene=watcher.observe()))


def test_the_number_of_conditions_and_the_time_are_bounded():
    condition = TitleContains(contains="x")
    Wait(conditions=(condition,) * limits.WAIT_CONDITIONS_MAX, timeout_ms=limits.WAIT_MS_MAX)
    with pytest.raises(TooLarge):
        Wait(conditions=(condition,) * (limits.WAIT_CONDITIONS_MAX + 1))
    for wrong in (0, -1, limits.WAIT_MS_MAX + 1):
        with pytest.raises(InvalidRequest):
            Wait(conditions=(condition,), timeout_ms=wrong)
    with pytest.raises(InvalidRequest):
        Wait(conditions=())


@pytest.mark.parametrize(
    "value",
    [
        {"kind": "title_contains", "contains": ""},
        {"kind": "title_contains", "contains": "x" * (limits.NAME_CHARS_MAX + 1)},
        {"kind": "title_contains", "contains": None},
        {"kind": "title_contains", "contains": "x", "more": 1},
        {"kind": "generation_after", "generation": -1},
        {"kind": "generation_after", "generation": 2**63},
        {"kind": "generation_after", "generation": "1"},
        {"kind": "generation_after", "generation": 1.5},
        {"kind": "element_exists"},
        {"kind": "element_exists", "query": {"filters": []}},
        {"kind": "no_such"},
        {},
    ],
)
def test_a_malformed_condition_is_refused(value):
    with pytest.raises((InvalidRequest, TooLarge)):
        convert(Wait, {"conditions": [value]})


def test_a_label_can_be_waited_for(watcher):
    scene = watcher.observe()
    send = next(el for el in watcher.root.walk() if el.name == "Send")
    assert holds(ElementExists(query=Query(filters=(Filter(label=label(scene, send)),))), Sight(scene=scene))


GONE, THERE, TITLE = ElementGone(query=named("Save")), ElementExists(query=named("Send")), TitleChanged(since="a")


@pytest.mark.parametrize(
    ("conditions", "looks", "all_read", "answers"),
    [
        # A dialog without the element does not make it gone from the window behind it.
        ((GONE,), [(True,), (False,)], True, (False,)),
        ((GONE,), [(True,), (True,)], True, (True,)),
        ((GONE,), [(True,)], False, (False,)),
        ((TITLE,), [(True,), (False,)], True, (False,)),
        # What must be there may be in any of them.
        ((THERE,), [(False,), (True,)], True, (True,)),
        ((THERE,), [(True,)], False, (True,)),
        ((THERE, GONE), [(True, False), (False, True)], True, (True, False)),
        ((THERE, GONE), [(True, True), (False, True)], True, (True, True)),
    ],
)
def test_what_is_gone_is_gone_from_every_window(conditions, looks, all_read, answers):
    assert over_windows(Wait(conditions=conditions), looks, all_read=all_read) == answers
