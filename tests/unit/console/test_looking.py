"""What the pages of the journal and the policy make of a daemon's answers, without a browser."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surehand.console.pages import policy, timeline
from surehand.console.pages.times import of_journal, of_ms, written

TEXTS = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\x00"), max_size=40)


@given(st.dictionaries(st.sampled_from(policy._ASKED), TEXTS))
def test_what_a_person_asks_reaches_the_daemon_as_it_was_written(question):
    whole = {name: question.get(name, "") for name in policy._ASKED}
    said = tomllib.loads(policy.case_of(whole))
    observed = said.pop("observed", {})
    assert {**said, **observed} == {name: text for name, text in whole.items() if text}
    assert set(said) <= set(policy._ASKED) - set(policy._OBSERVED)


def test_a_search_asks_for_what_was_written_and_keeps_it_in_its_addresses():
    sought = {"text": "a&b=c", "principal": "", "app": "", "action": "", "outcome": "refused", "category": ""}
    sought |= {"since": "2026-11-30T10:00", "until": "nonsense"}
    asked = timeline.asked(sought, 12)
    assert (asked["text"], asked["outcome"], asked["before_seq"]) == ("a&b=c", "refused", 12)
    assert asked["since_ms"] == written("2026-11-30T10:00")
    assert "until_ms" not in asked
    assert timeline.path_of(sought, 12).startswith("/timeline?text=a%26b%3Dc&outcome=refused&since=")
    assert timeline.path_of(dict.fromkeys(sought, ""), None) == "/timeline"


@pytest.mark.parametrize("said", ["", "yesterday", "2026-13-01", "9" * 40])
def test_a_time_that_is_none_is_shown_as_it_stands(said):
    assert of_journal(said)["text"] == said
    assert written(said) is None


def test_times_are_the_machines_own():
    at = of_ms(written("2026-11-30T10:00"))
    assert at["text"].endswith("10:00:00")
    assert of_journal(at["at"])["text"] == at["text"]
    assert of_ms(10**30)["at"] == ""


def test_an_outcome_that_is_not_known_yet_is_shown_as_it_is_called():
    one = {"seq": 1, "principal": "p", "operation_id": "o", "changed_at": "x", "outcome": "teleported"}
    assert timeline.row(one)["outcome"] == "teleported"
