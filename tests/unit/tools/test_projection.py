"""What a model is shown of an answer: bounded for one result and for a turn, in whole lines, with what was left out."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import pytest

from surehand import limits
from surehand.mcp.sessions import TURN_KEY, turn_of
from surehand.tools.catalog import UsageError
from surehand.tools.projection import projected
from surehand.tools.tool import Answer, Image
from surehand.tools.turns import Turn
from tests.unit.risk.injections import STRINGS

KEY = b"k" * 16
MOST = limits.MODEL_RESULT_BYTES_MAX


def sizes(answer: Answer) -> tuple[int, int]:
    data = json.dumps(answer.data, ensure_ascii=False, separators=(",", ":"))
    return len(answer.text.encode()), len(data.encode())


def quoted(count: int, text: str = "x" * 80) -> str:
    return "\n".join(f'  [e{number}] label "{text}"' for number in range(count))


@pytest.mark.parametrize("over", [0, 1])
def test_a_text_at_the_bound_is_as_it_was_and_one_past_it_is_cut(over: int) -> None:
    line = "ab\n"
    text = (line * MOST)[: MOST + over]
    shown = projected(Answer({"status": "ok"}, text), Turn(), KEY)
    assert (shown.text == text) is (over == 0)
    assert ("projection" in shown.data) is (over == 1)
    assert sizes(shown)[0] <= MOST


@pytest.mark.parametrize("over", [0, 1])
def test_structured_content_at_the_bound_is_as_it_was_and_one_past_it_is_cut(over: int) -> None:
    data = {"text": "x" * (MOST - len('{"text":""}') + over)}
    shown = projected(Answer(data, "short"), Turn(), KEY)
    assert (shown.data == data) is (over == 0)
    assert shown.text == "short"
    assert sizes(shown)[1] <= MOST


def test_a_cut_text_keeps_head_and_tail_and_says_what_is_missing() -> None:
    text = quoted(2_000)
    shown = projected(Answer({}, text), Turn(), KEY)
    lines = shown.text.split("\n")
    assert lines[0] == text.split("\n")[0]
    assert lines[-1] == text.split("\n")[-1]
    (marker,) = [line for line in lines if line.startswith("[surehand left out")]
    assert f"{len(text)} bytes" in marker
    told = shown.data["projection"]
    assert told["original_bytes"] == len(text)
    assert told["digest"] in marker
    assert sizes(shown)[0] > MOST * 9 // 10


def test_no_line_of_a_screen_leaves_its_quotes_because_it_was_cut() -> None:
    chance = random.Random(7)  # noqa: S311 - repeatable
    for _ in range(20):
        body = "\n".join(f'"{chance.choice(STRINGS)[:200].encode("unicode_escape").decode()}"' for _ in range(3_000))
        shown = projected(Answer({}, body), Turn(), KEY)
        whole = set(body.split("\n"))
        strange = [line for line in shown.text.split("\n") if line not in whole]
        assert len(strange) == 1
        assert strange[0].startswith("[surehand left out")


def test_one_endless_line_is_shown_from_its_beginning() -> None:
    shown = projected(Answer({}, '"' + "é" * MOST), Turn(), KEY)
    first, marker = shown.text.split("\n")
    assert first.startswith('"éé')
    assert first.endswith("…")
    assert marker.startswith("[surehand left out")
    assert sizes(shown)[0] <= MOST


def test_equal_results_have_equal_digests_and_no_digest_can_be_guessed() -> None:
    one, same, other = (
        projected(Answer({}, quoted(2_000, text)), Turn(), KEY) for text in ("x" * 80, "x" * 80, "y" * 80)
    )
    assert one.data["projection"]["digest"] == same.data["projection"]["digest"] != other.data["projection"]["digest"]
    elsewhere = projected(Answer({}, quoted(2_000)), Turn(), b"other key")
    assert elsewhere.data["projection"]["digest"] != one.data["projection"]["digest"]


def test_all_results_of_a_turn_share_its_room_and_small_ones_still_come_whole_after_it() -> None:
    turn = Turn()
    turn.begin("t1", 0)
    total, calls = 0, 0
    while turn.spent < limits.MODEL_TURN_BYTES_MAX:
        total += sizes(projected(Answer({}, quoted(2_000)), turn, KEY))[0]
        calls += 1
    assert calls == 5
    assert total <= limits.MODEL_TURN_BYTES_MAX + limits.MODEL_RESULT_BYTES_MIN
    past = projected(Answer({}, quoted(2_000)), turn, KEY)
    assert sizes(past)[0] <= limits.MODEL_RESULT_BYTES_MIN
    small = Answer({"status": "succeeded"}, quoted(60))
    assert projected(small, turn, KEY) is small


@pytest.mark.parametrize(("name", "after_ms", "is_new"), [
    ("t1", limits.MODEL_TURN_IDLE_MS - 1, False),
    ("t1", limits.MODEL_TURN_IDLE_MS, True),
    ("t2", 1, True),
    (None, 1, True),
])  # fmt: skip
def test_a_turn_ends_with_its_name_or_with_a_pause(name: str | None, after_ms: int, is_new: bool) -> None:
    turn = Turn()
    turn.begin("t1", 1_000)
    turn.spent = 7
    turn.begin(name, 1_000 + after_ms)
    assert turn.spent == (0 if is_new else 7)


@pytest.mark.parametrize("name", ["", "t", "x" * limits.MODEL_TURN_CHARS_MAX])
def test_a_client_may_name_the_turn(name: str) -> None:
    assert turn_of({TURN_KEY: name}) == name
    assert turn_of({}) is turn_of(None) is None


@pytest.mark.parametrize("name", [7, ["t"], "x" * (limits.MODEL_TURN_CHARS_MAX + 1)])
def test_what_is_no_name_of_a_turn_is_refused(name: Any) -> None:
    with pytest.raises(UsageError, match=TURN_KEY):
        turn_of({TURN_KEY: name})


def test_structured_content_keeps_its_types_and_both_ends() -> None:
    rows = [{"cells": [f"r{number}", "x" * 300], "row": number} for number in range(3_000)]
    shown = projected(Answer({"rows": rows, "next": 3_000, "status": "ok"}, "t"), Turn(), KEY)
    kept = shown.data["rows"]
    assert kept[0] == rows[0]
    assert kept[-1]["row"] == 2_999
    assert all(type(row["cells"]) is list and type(row["row"]) is int for row in kept)
    assert (shown.data["next"], shown.data["status"]) == (3_000, "ok")


def test_what_nothing_makes_fit_keeps_how_it_ended() -> None:
    wide = {f"field {number}": "x" * 40 for number in range(5_000)}
    shown = projected(Answer({"status": "succeeded", "operation_id": "op-1", **wide}, "t"), Turn(), KEY)
    assert (shown.data["status"], shown.data["operation_id"]) == ("succeeded", "op-1")
    assert sizes(shown)[1] <= MOST
    deep: Any = "x" * 100
    for _ in range(60):
        deep = {"in": [deep] * 2} if len(json.dumps(deep)) < 500_000 else {"in": deep}
    assert sizes(projected(Answer({"deep": deep}, "t"), Turn(), KEY))[1] <= MOST


def test_pictures_are_not_counted_and_an_error_stays_one() -> None:
    picture = Image(b"x" * 10 * MOST, "image/png")
    turn = Turn()
    shown = projected(Answer({}, quoted(2_000), (picture,), is_error=True), turn, KEY)
    assert shown.images == (picture,)
    assert shown.is_error
    assert turn.spent <= MOST


def test_every_character_of_the_corpus_survives_where_it_fits() -> None:
    for text in STRINGS:
        answer = Answer({"text": text}, re.sub(r"\n", " ", text))
        assert projected(answer, Turn(), KEY) is answer
