"""What verifies, what contradicts, and what can only be unknown (spec §9; cases C14, C16, C17)."""

from __future__ import annotations

import pytest

from surehand import limits
from surehand.core.verification import (
    OptionSelected,
    Reading,
    SelectionIs,
    Watch,
    check_expectation,
    default_expectation,
    describe_checks,
    evaluate,
    judge,
    needs_scenes,
    needs_text,
)
from surehand.errors import InvalidRequest
from surehand.model import actions as a
from surehand.model.query import Filter, Query, TextMatch
from surehand.model.scene import Node
from surehand.model.verification import (
    AllOf,
    AnyOf,
    Appears,
    Disappears,
    NoVerification,
    StateIs,
    TextContains,
    TitleContains,
    UrlContains,
    ValueIs,
)
from tests.scene_kit import VISIBLE, El, Watcher

INVOKE = a.Invoke()
BUDGET = 2_000


def node(role: str = "text", **fields) -> Node:
    return Node(handle="h", role=role, **{"states": VISIBLE, **fields})


def alive(role: str = "text", **fields) -> Reading:
    return Reading(target="alive", node=node(role, **fields))


def answer(expectation, reading: Reading, action=INVOKE, **options) -> str:
    return evaluate(expectation, action, reading, **options).answer


def named(name: str, *more: Filter) -> Query:
    return Query(filters=(Filter(name=TextMatch(text=name)), *more))


# --- values and texts ---


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("v19-ünïcode-€", "holds"),
        ("v19-ünïcode-", "fails"),
        ("v19-u\u0308nïcode-€", "fails"),
        ("", "fails"),
        (None, "unreadable"),
    ],
)
def test_a_set_value_is_read_back_exactly(value, expected):
    assert answer(ValueIs(), alive(value=value), a.SetValue(value="v19-ünïcode-€")) == expected


@pytest.mark.parametrize(
    ("role", "seen", "wanted", "expected"),
    [
        ("slider", "3", "3.0", "holds"),
        ("slider", "0.1", "0.10", "holds"),
        ("slider", "35", "33", "fails"),
        ("slider", "NaN", "nan", "fails"),
        ("slider", "1" * 65, "2" * 65, "fails"),
        ("text", "3", "3.0", "fails"),
    ],
)
def test_numbers_are_one_value_however_written_where_the_element_holds_a_number(role, seen, wanted, expected):
    assert answer(ValueIs(equals=wanted), alive(role, value=seen)) == expected


def test_a_secret_is_judged_by_the_adapters_answer_alone():
    expectation, action = ValueIs(), a.SetValue(secret_ref="vault:mail")  # noqa: S106 - a name
    for equal, expected in ((True, "holds"), (False, "fails"), (None, "unreadable")):
        reading = Reading(target="alive", node=node(secret=True, value="hunter2"), secret_equal=equal)
        verdict = evaluate(expectation, action, reading)
        assert verdict.answer == expected
        assert verdict.checks[0].seen is None
    assert answer(ValueIs(equals="hunter2"), reading) == "unreadable"
    assert answer(TextContains(contains="hunter2"), reading) == "unreadable"


def test_half_a_text_proves_nothing_it_does_not_show():
    reading = alive(value="abc", text_chars=9000)
    assert answer(ValueIs(equals="abcdef"), reading) == "unreadable"
    assert answer(ValueIs(equals="abc"), reading) == "unreadable"
    assert answer(ValueIs(equals="xyz"), reading) == "fails"
    assert answer(TextContains(contains="b"), reading) == "holds"
    assert answer(TextContains(contains="z"), reading) == "unreadable"
    whole = Reading(target="alive", node=node(value="abc", text_chars=6), text="abcdef")
    assert answer(ValueIs(equals="abcdef"), whole) == "holds"
    assert answer(TextContains(contains="z"), whole) == "fails"


def test_a_value_cut_when_it_was_stored_is_half_a_text():
    reading = alive(value="x" * limits.FIELD_BYTES_STORED_MAX)
    assert answer(TextContains(contains="y"), reading) == "unreadable"
    assert answer(TextContains(contains="y"), alive(value="x" * (limits.FIELD_BYTES_STORED_MAX - 1))) == "fails"


def test_the_name_of_a_field_is_not_its_content():
    field = alive(name="Name", value="", states=VISIBLE | {"editable"})
    assert answer(TextContains(contains="Name"), field) == "fails"
    unread = alive(name="Name", value=None, states=VISIBLE | {"editable"})
    assert answer(TextContains(contains="Name"), unread) == "unreadable"
    assert answer(TextContains(contains="408"), alive("label", name="= 408")) == "holds"


def test_the_whole_text_is_asked_for_only_where_it_is_needed():
    cut, short = node(value="abc", text_chars=9000), node(value="abc", text_chars=3)
    assert needs_text(ValueIs(), cut)
    assert needs_text(AnyOf(parts=(NoVerification(), TextContains(contains="x"))), cut)
    for expectation, target in ((ValueIs(), short), (ValueIs(), None), (Disappears(), cut)):
        assert not needs_text(expectation, target)
    assert not needs_text(ValueIs(), node(secret=True, text_chars=5))


# --- states, presence ---


def test_states_must_all_be_as_said():
    reading = alive("checkbox", states=VISIBLE | {"checked"})
    assert answer(StateIs(states={"checked": True, "focused": False}), reading) == "holds"
    assert answer(StateIs(states={"checked": True, "focused": True}), reading) == "fails"
    assert answer(StateIs(states={"checked": True}), Reading(target="gone")) == "unreadable"
    assert answer(StateIs(states={"checked": True}), Reading(target="unread")) == "unreadable"


def test_the_states_of_a_window_where_there_is_no_element():
    reading = Reading(surface="there", surface_states=frozenset({"iconified"}))
    assert answer(StateIs(states={"iconified": True}), reading) == "holds"
    assert answer(StateIs(states={"active": True}), Reading(surface="unread")) == "unreadable"


def test_an_element_appears_only_where_windows_were_read():
    scene = Watcher(El("window", "W", El("label", "Sent"))).observe()
    assert answer(Appears(query=named("Sent")), Reading(scenes=(scene,))) == "holds"
    assert answer(Appears(query=named("Lost")), Reading(scenes=(scene,), complete=True)) == "fails"
    assert answer(Appears(query=named("Lost")), Reading(scenes=(scene,), complete=False)) == "unreadable"
    assert answer(Appears(query=named("Sent")), Reading()) == "unreadable"


def test_an_element_is_gone_only_where_everything_was_read():
    scene = Watcher(El("window", "W", El("label", "Sent"))).observe()
    assert answer(Disappears(query=named("Lost")), Reading(scenes=(scene,), complete=True)) == "holds"
    assert answer(Disappears(query=named("Lost")), Reading(scenes=(scene,))) == "unreadable"
    assert answer(Disappears(query=named("Sent")), Reading(scenes=(scene,))) == "fails"


def test_a_label_that_is_not_there_proves_no_absence():
    scene = Watcher(El("window", "W", El("label", "Sent"))).observe()
    by_label = Disappears(query=named("Sent", Filter(relation="child", to="e99")))
    by_query = Disappears(query=named("Sent", Filter(relation="child", to=named("Dialog"))))
    ambiguous = Disappears(
        query=named("Sent", Filter(relation="child", to=Query(filters=(Filter(source="accessibility"),))))
    )
    reading = Reading(scenes=(scene,), complete=True)
    assert [answer(part, reading) for part in (by_label, by_query, ambiguous)] == ["unreadable", "holds", "unreadable"]


@pytest.mark.parametrize(
    ("reading", "expected"),
    [
        (Reading(target="gone"), "holds"),
        (Reading(target="unread", surface="gone"), "holds"),
        (Reading(target="alive", node=node(states=frozenset({"enabled"}))), "holds"),
        (Reading(target="alive", node=node()), "fails"),
        (Reading(target="alive", node=node(states=frozenset({"visible"}))), "fails"),
        (Reading(target="unread"), "unreadable"),
        (Reading(surface="there"), "fails"),
        (Reading(surface="gone"), "holds"),
        (Reading(surface="unread"), "unreadable"),
    ],
)
def test_the_target_is_gone_when_dead_hidden_or_without_its_window(reading, expected):
    assert answer(Disappears(), reading) == expected


def test_titles_and_addresses_that_were_not_read_are_unknown():
    reading = Reading(title="408 - Calculator", url="https://example.org/")
    assert answer(TitleContains(contains="408"), reading) == "holds"
    assert answer(UrlContains(contains="/done"), reading) == "fails"
    assert answer(TitleContains(contains="408"), Reading()) == "unreadable"
    assert answer(UrlContains(contains="x"), Reading()) == "unreadable"


def test_an_option_without_a_name_is_what_its_first_text_says():
    selected = VISIBLE | {"selected"}
    fruit = El(
        "list",
        "Fruit",
        El("listitem", "", El("label", "apple")),
        El("listitem", "", El("label", "cherry"), El("label", "date"), states=selected),
    )
    tabs = El(
        "tablist", "", El("tab", "Tab", El("label", "One")), El("tab", "Tab", El("label", "Two"), states=selected)
    )
    # What is inside a named item may be an item of its own.
    nested = El("tree", "", El("treeitem", "Animals", El("treeitem", "Cat"), states=selected))

    def said(root: El, option: str) -> str:
        scene = Watcher(El("window", "Own", root)).observe()
        seen = Reading(target="alive", node=root.node(), scenes=(scene,), complete=True)
        return answer(OptionSelected(option=option), seen, target=root.handle)

    assert said(fruit, "cherry") == "holds"
    assert said(fruit, "apple") == "fails"
    assert said(fruit, "date") == "fails"
    assert said(tabs, "Two") == "holds"
    assert said(tabs, "One") == "fails"
    assert said(nested, "Animals") == "holds"
    assert said(nested, "Cat") == "fails"


def test_an_option_is_selected_when_shown_or_held_selected():
    option = El("listitem", "Spain", states=VISIBLE | {"selected"})
    combo = El("combobox", "Country", El("list", "", El("listitem", "France"), option))
    scene = Watcher(El("window", "W", combo)).observe()
    reading = Reading(target="alive", node=combo.node(), scenes=(scene,))

    def ask(name: str, reading_=reading) -> str:
        return answer(OptionSelected(option=name), reading_, target=combo.handle)

    assert ask("Spain") == "holds"
    assert ask("France") == "fails"
    assert ask("Spain", Reading(target="alive", node=combo.node())) == "unreadable"
    shown = El("combobox", "", value="Spain").node()
    assert ask("Spain", Reading(target="alive", node=shown)) == "holds"
    assert ask("Spain", Reading(target="gone")) == "unreadable"


def test_a_selection_is_where_it_was_asked_for():
    expectation = SelectionIs(start=2, length=3)
    assert answer(expectation, Reading(selection=(2, 3))) == "holds"
    assert answer(expectation, Reading(selection=(2, 0))) == "fails"
    assert answer(expectation, Reading()) == "unreadable"


# --- all, any, none ---

YES, NO, UNKNOWN = TitleContains(contains="t"), TitleContains(contains="x"), UrlContains(contains="u")


@pytest.mark.parametrize(
    ("expectation", "expected"),
    [
        (AllOf(parts=(YES, YES)), "holds"),
        (AllOf(parts=(YES, NO)), "fails"),
        (AllOf(parts=(NO, UNKNOWN)), "fails"),
        (AllOf(parts=(YES, UNKNOWN)), "unreadable"),
        (AnyOf(parts=(NO, YES)), "holds"),
        (AnyOf(parts=(UNKNOWN, YES)), "holds"),
        (AnyOf(parts=(NO, UNKNOWN)), "unreadable"),
        (AnyOf(parts=(NO, NO)), "fails"),
        (AllOf(parts=(NoVerification(), YES)), "holds"),
        (AnyOf(parts=(NoVerification(), NO)), "fails"),
        (AllOf(parts=(NoVerification(),)), "not_asked"),
        (AnyOf(parts=(AllOf(parts=(NoVerification(),)),)), "not_asked"),
        (NoVerification(), "not_asked"),
    ],
)
def test_parts_combine_and_asking_nothing_proves_nothing(expectation, expected):
    assert answer(expectation, Reading(title="t")) == expected


# --- evidence ---


def test_evidence_depends_on_what_was_seen_and_on_the_salt_and_tells_neither():
    one = evaluate(ValueIs(equals="1234"), INVOKE, alive(value="1234"), salt="aa")
    same = evaluate(ValueIs(equals="1234"), INVOKE, alive(value="1234"), salt="aa")
    other = evaluate(ValueIs(equals="1234"), INVOKE, alive(value="1235"), salt="aa")
    salted = evaluate(ValueIs(equals="1234"), INVOKE, alive(value="1234"), salt="bb")
    assert one.evidence == same.evidence
    assert len({one.evidence, other.evidence, salted.evidence}) == 3
    assert len(one.evidence) == 64


def test_what_was_seen_is_told_in_part():
    verdict = evaluate(ValueIs(equals="x"), INVOKE, alive(value="y" * 4000))
    assert describe_checks(verdict) == [{"kind": "value", "answer": "fails", "seen": "y" * 255 + "…"}]
    assert describe_checks(evaluate(ValueIs(equals="x"), INVOKE, Reading())) == [
        {"kind": "value", "answer": "unreadable"}
    ]


# --- defaults ---


@pytest.mark.parametrize(
    ("action", "target", "expected"),
    [
        (a.SetValue(value="x"), node(), ValueIs()),
        (a.SetValue(value="x"), node(secret=True), NoVerification()),
        (a.SetValue(secret_ref="vault:r"), node(secret=True), ValueIs()),  # noqa: S106 - a name
        (a.Toggle(to=True), node("checkbox"), StateIs(states={"checked": True})),
        (a.Toggle(to=False), node("switch"), StateIs(states={"checked": False, "pressed": False})),
        (
            a.Toggle(to=True),
            node("togglebutton"),
            AnyOf(parts=(StateIs(states={"checked": True}), StateIs(states={"pressed": True}))),
        ),
        (a.Expand(to=True), node(states=VISIBLE | {"expandable"}), StateIs(states={"expanded": True})),
        (a.Expand(to=False), node(states=VISIBLE | {"expanded"}), StateIs(states={"expanded": False})),
        (a.Expand(to=True), node(), NoVerification()),
        (a.SelectOption(), node("listitem"), StateIs(states={"selected": True})),
        (a.SelectOption(option="Spain"), node("combobox"), OptionSelected(option="Spain")),
        (a.SelectText(start=1, length=2), node(), SelectionIs(start=1, length=2)),
        (a.Focus(), node(), StateIs(states={"focused": True})),
        (a.ScrollIntoView(), node(), StateIs(states={"showing": True})),
        (a.TypeText(text="hi"), node(value=""), TextContains(contains="hi")),
        (a.TypeText(text="hi", submit=True), node(value=""), NoVerification()),
        (a.TypeText(text="", clear=True), node(value="x"), ValueIs(equals="")),
        (a.TypeText(text=""), node(value="x"), NoVerification()),
        (a.TypeText(text="hi"), node(secret=True), NoVerification()),
        (a.TypeText(text="hi"), node("canvas"), NoVerification()),
        (a.TypeText(text="hi"), None, NoVerification()),
        (a.Paste(text="hi"), node(value=""), TextContains(contains="hi")),
        (a.Paste(text=""), node(value=""), NoVerification()),
        (a.Window(op="close"), None, Disappears()),
        (a.Window(op="minimize"), None, StateIs(states={"iconified": True})),
        (a.Window(op="focus"), None, StateIs(states={"active": True})),
        (a.Window(op="maximize"), None, NoVerification()),
        (a.Invoke(), node("button"), NoVerification()),
        (a.Perform(name="copy"), node(), NoVerification()),
        (a.Click(), node("button"), NoVerification()),
        (a.Press(chords=("ctrl+s",)), None, NoVerification()),
        (a.Navigate(url="https://example.org"), None, NoVerification()),
    ],
)
def test_each_action_has_its_natural_default(action, target, expected):
    assert default_expectation(action, target) == expected


def test_the_default_of_a_toggle_that_did_nothing_fails_on_every_toolkit():
    for states in (frozenset(), frozenset({"checked"}), frozenset({"pressed"})):
        for to in (True, False):
            target = node("togglebutton", states=states)
            expectation = default_expectation(a.Toggle(to=to), target)
            expected = "holds" if bool(states) == to else "fails"
            assert answer(expectation, Reading(target="alive", node=target)) == expected


@pytest.mark.parametrize(
    "expectation",
    [
        StateIs(states={"chekced": True}),
        Appears(query=Query(filters=(Filter(name=TextMatch(text="(", match="regex")),))),
        AnyOf(parts=(NoVerification(), AllOf(parts=(Disappears(query=Query(filters=(Filter(role="buton"),))),)))),
        Appears(query=named("x", Filter(relation="child", to=Query(filters=(Filter(state={"on": True}),))))),
    ],
)
def test_an_expectation_that_could_never_hold_is_refused_before_anything_is_done(expectation):
    with pytest.raises(InvalidRequest):
        check_expectation(expectation)


def test_sound_expectations_pass_the_check():
    check_expectation(
        AllOf(parts=(ValueIs(), Appears(query=named("x")), Disappears(), StateIs(states={"checked": True})))
    )


def test_windows_are_read_only_where_needed():
    assert needs_scenes(AnyOf(parts=(ValueIs(), Appears(query=named("x")))))
    assert needs_scenes(OptionSelected(option="x"))
    assert needs_scenes(Disappears(query=named("x")))
    assert not needs_scenes(AllOf(parts=(ValueIs(), Disappears())))


# --- over time ---


def readings(*steps: tuple[int, Reading], acknowledged: bool = True, expectation=None) -> list[str]:
    watch, said = Watch(started_ms=0), []
    for now, reading in steps:
        verdict = evaluate(expectation or ValueIs(equals="new"), INVOKE, reading)
        watch, judgement = judge(watch, verdict, now_ms=now, budget_ms=BUDGET, acknowledged=acknowledged)
        said.append(judgement)
    return said


OLD, NEW, DEAD = alive(value="old"), alive(value="new"), Reading(target="gone")
STABLE = limits.VERIFY_STABLE_MS


def test_verified_as_soon_as_it_holds():
    assert readings((0, OLD), (40, NEW)) == ["pending", "verified"]
    assert readings((BUDGET + 1, NEW)) == ["verified"]


def test_a_contradiction_that_stood_until_the_end_is_failed():
    assert readings((0, OLD), (BUDGET - 1, OLD), (BUDGET, OLD)) == ["pending", "pending", "contradicted"]


def test_a_contradiction_must_have_stood_long_enough():
    late = BUDGET - STABLE
    assert readings((0, DEAD), (late, OLD), (BUDGET, OLD))[-1] == "contradicted"
    assert readings((0, DEAD), (late + 1, OLD), (BUDGET, OLD))[-1] == "unreadable"


def test_a_reading_that_still_changes_contradicts_nothing():
    other = alive(value="other")
    assert readings((0, OLD), (BUDGET - 1, other), (BUDGET, OLD))[-1] == "unreadable"


def test_what_was_not_acknowledged_is_never_failed():
    assert readings((0, OLD), (BUDGET, OLD), acknowledged=False)[-1] == "unreadable"


def test_an_element_that_is_gone_contradicts_nothing():
    assert readings((0, DEAD), (BUDGET, DEAD)) == ["pending", "unreadable"]


def test_nothing_asked_is_said_at_once():
    assert readings((0, OLD), expectation=NoVerification()) == ["not_asked"]
