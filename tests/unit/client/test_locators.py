"""Locators: resolved at use, waited for, never the first of several."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest

import surehand
from surehand.errors import (
    AmbiguousTarget,
    AppNotFound,
    InvalidRequest,
    StaleTarget,
    TargetNotActionable,
    TargetNotFound,
    Timeout,
)
from tests.unit.client.conftest import Desk, match, refused, reply


def test_a_locator_asks_nothing_until_it_is_used(desk: Desk) -> None:
    with surehand.open() as hand:
        hand.app("notes").get_by_role("button", name="Save")
        assert desk.calls == []


def test_pressing_resolves_then_acts_on_exactly_that_reference(desk: Desk) -> None:
    with surehand.open() as hand:
        done = hand.app("notes").get_by_role("button", name="Save").press()
    assert done
    assert done.verified
    assert (done.route, done.elapsed_ms) == ("atspi.action", 7)
    assert desk.named("query")[0]["app"] == "notes"
    assert desk.named("query")[0]["query"]["filters"] == [{"role": "button"}, {"name": {"text": "Save"}}]
    (request,) = desk.acts
    assert request["action"] == {"kind": "invoke"}
    assert request["target"] == match()["ref"]


async def test_the_asynchronous_form_does_the_same(desk: Desk) -> None:
    async with surehand.connect(client="a test") as hand:
        locator = hand.app("notes").get_by_role("button", name="Save")
        assert await locator.press(operation_id="op1")
        assert await locator.count() == 1
        assert (await locator.one()).label == "e1"
        assert hand.about["principal"].startswith("uid:")
    assert desk.acts[0]["operation_id"] == "op1"
    assert desk.opened[0].client["name"] == "a test"


def test_a_target_that_comes_late_is_waited_for_with_one_id(desk: Desk) -> None:
    desk.matches = [[], [], [match("e9")]]
    with surehand.open() as hand:
        assert hand.app("notes").get_by_role("button").press()
    assert len(desk.named("query")) == 3
    assert len(desk.named("wait")) == 2
    assert desk.acts[0]["target"]["element_id"] == "e9"


def test_an_application_that_starts_late_is_waited_for(desk: Desk) -> None:
    desk.matches = [AppNotFound("no notes"), [match()]]
    with surehand.open() as hand:
        assert hand.app("notes").get_by_role("button").press()


def test_a_target_that_never_comes_is_missing_and_what_is_near_is_listed(desk: Desk) -> None:
    desk.matches = [[], [match("e0", name="Quit"), match(name="Save as…")]]
    with surehand.open() as hand, pytest.raises(TargetNotFound) as caught:
        hand.app("notes").get_by_role("button", name="Save").press(timeout_s=0)
    assert caught.value.observed["candidates"] == ['e1 button "Save as…"', 'e0 button "Quit"']
    assert 'button and name "Save"' in str(caught.value)
    assert desk.acts == []


def test_several_matches_are_listed_and_none_is_taken(desk: Desk) -> None:
    desk.matches = [[match("e1", context="carol"), match("e2", context="dave")]]
    start = time.monotonic()
    with surehand.open() as hand, pytest.raises(AmbiguousTarget) as caught:
        hand.app("notes").get_by_role("button").press(timeout_s=60)
    assert time.monotonic() - start < 5
    assert caught.value.observed["candidates"] == ['e1 button "Save" in "carol"', 'e2 button "Save" in "dave"']
    assert desk.acts == []


def test_matches_in_several_windows_are_told_apart_by_their_titles(desk: Desk) -> None:
    async def surfaces(*_: Any) -> dict[str, Any]:
        return {"surfaces": [{"surface_id": "w1", "title": "notes"}, {"surface_id": "w2", "title": "letters"}]}

    desk.script.update(surfaces=surfaces)
    desk.matches = [[match("e1", surface="w1"), match("e2", surface="w2")]]
    with surehand.open() as hand, pytest.raises(AmbiguousTarget, match="one of the windows") as caught:
        hand.app("notes").get_by_role("button").press(timeout_s=0)
    assert caught.value.observed["candidates"] == [
        'e1 button "Save" of window w1 "notes"',
        'e2 button "Save" of window w2 "letters"',
    ]
    assert desk.acts == []


def test_several_that_become_one_are_no_error(desk: Desk) -> None:
    desk.matches = [[match("e1"), match("e2")], [match("e2")]]
    with surehand.open() as hand:
        assert hand.app("notes").get_by_role("button").press()
    assert desk.acts[0]["target"]["element_id"] == "e2"


def test_a_disabled_target_is_waited_for_and_then_said_to_be_disabled(desk: Desk) -> None:
    desk.matches = [[match(states=["showing"])]]
    with surehand.open() as hand, pytest.raises(TargetNotActionable, match="not enabled"):
        hand.app("notes").get_by_role("button").press(timeout_s=0)
    desk.matches = [[match(states=["showing"])], [match()]]
    with surehand.open() as hand:
        assert hand.app("notes").get_by_role("button").press()


def test_a_refusal_that_another_look_can_mend_is_looked_at_again_under_the_same_id(desk: Desk) -> None:
    desk.matches = [[match("e1")], [match("e2")]]
    desk.replies = [lambda i: refused(i, "stale_target"), reply]
    with surehand.open() as hand:
        assert hand.app("notes").get_by_role("button").press()
    first, second = desk.acts
    assert first["operation_id"] == second["operation_id"]
    assert (first["target"]["element_id"], second["target"]["element_id"]) == ("e1", "e2")


def test_an_observed_element_is_never_looked_for_again(desk: Desk) -> None:
    desk.replies = [lambda i: refused(i, "stale_target", observed={"candidates": ["e2 button"]}), reply]
    with surehand.open() as hand:
        target = hand.app("notes").get_by_role("button").one()
        with pytest.raises(StaleTarget, match="e2 button"):
            hand.element(target).press()
    assert len(desk.acts) == 1


@pytest.mark.parametrize("code", ["policy_denied", "behind_modal", "secure_surface", "budget_exhausted", "conflict"])
def test_a_refusal_that_looking_cannot_mend_is_raised_at_once(desk: Desk, code: str) -> None:
    desk.replies = [lambda i: refused(i, code)]
    with surehand.open() as hand, pytest.raises(surehand.SurehandError) as caught:
        hand.app("notes").get_by_role("button").press()
    assert caught.value.code == code
    assert caught.value.details["operation_id"] == desk.acts[0]["operation_id"]
    assert len(desk.acts) == 1


VERBS: dict[str, tuple[Any, dict[str, Any]]] = {
    "set_value": (lambda x: x.set_value("v"), {"kind": "set_value", "value": "v"}),
    "set_value of a number": (lambda x: x.set_value(7), {"kind": "set_value", "value": "7"}),
    "set_secret": (lambda x: x.set_secret("vault:mail"), {"kind": "set_value", "secret_ref": "vault:mail"}),
    "type_secret": (
        lambda x: x.type_secret("vault:mail", submit=True),
        {"kind": "type_text", "secret_ref": "vault:mail", "submit": True},
    ),
    "toggle": (lambda x: x.toggle(True), {"kind": "toggle", "to": True}),
    "expand": (lambda x: x.expand(), {"kind": "expand", "to": True}),
    "collapse": (lambda x: x.collapse(), {"kind": "expand", "to": False}),
    "select": (lambda x: x.select("blue"), {"kind": "select_option", "option": "blue"}),
    "select itself": (lambda x: x.select(), {"kind": "select_option"}),
    "select_text": (lambda x: x.select_text(1, 0), {"kind": "select_text", "start": 1, "length": 0}),
    "focus": (lambda x: x.focus(), {"kind": "focus"}),
    "run_action": (lambda x: x.run_action("menu"), {"kind": "perform", "name": "menu"}),
    "click": (lambda x: x.click(), {"kind": "click"}),
    "double click": (
        lambda x: x.click(button="right", count=2, modifiers=("shift",)),
        {"kind": "click", "button": "right", "count": 2, "modifiers": ["shift"]},
    ),
    "hover": (lambda x: x.hover(), {"kind": "hover"}),
    "type": (lambda x: x.type("ab", submit=True), {"kind": "type_text", "text": "ab", "submit": True}),
    "press_keys": (lambda x: x.press_keys("ctrl+a", "Delete"), {"kind": "press", "chords": ["ctrl+a", "Delete"]}),
    "paste": (lambda x: x.paste("p"), {"kind": "paste", "text": "p"}),
    "scroll": (lambda x: x.scroll("up", 1.5, "page"), {"kind": "scroll", "direction": "up", "amount_milli": 1500, "unit": "page"}),
    "scroll_into_view": (lambda x: x.scroll_into_view(), {"kind": "scroll_into_view"}),
}  # fmt: skip


@pytest.mark.parametrize("name", VERBS)
def test_each_verb_sends_its_action(desk: Desk, name: str) -> None:
    verb, action = VERBS[name]
    with surehand.open() as hand:
        assert verb(hand.app("notes").get_by_role("text"))
    assert desk.acts[0]["action"] == action


BAD_USES: dict[str, Any] = {
    "a misspelt option": lambda x: x.press(verfy="none"),
    "too many clicks": lambda x: x.click(count=4),
    "no clicks": lambda x: x.click(count=0),
    "no chord": lambda x: x.press_keys(),
    "a negative start": lambda x: x.select_text(-1, 1),
    "a lone surrogate": lambda x: x.set_value("\ud800"),
    "a NUL": lambda x: x.type("a\x00b"),
    "no scrolling at all": lambda x: x.scroll("down", 0),
    "an id with a space": lambda x: x.press(operation_id="a b"),
    "a deadline of zero": lambda x: x.press(deadline_ms=0),
    "a risk of none": lambda x: x.press(risk="none"),
    "an unknown verification": lambda x: x.press(verify={"kind": "hope"}),
}


@pytest.mark.parametrize("name", BAD_USES)
def test_a_wrong_use_is_refused_here_and_nothing_is_sent(desk: Desk, name: str) -> None:
    with surehand.open() as hand, pytest.raises((TypeError, ValueError)):
        BAD_USES[name](hand.app("notes").get_by_role("text"))
    assert desk.acts == []


def test_options_reach_the_request(desk: Desk) -> None:
    with surehand.open() as hand:
        hand.app("notes").get_by_role("button").press(
            operation_id="o1",
            verify={"kind": "none"},
            risk="external",
            deadline_ms=1234,
            background=True,
            reconciles="o0",
            salt="0" * 32,
            observe_after=True,
        )
    assert desk.acts[0] == {
        "operation_id": "o1",
        "action": {"kind": "invoke"},
        "target": match()["ref"],
        "interaction_mode": "background_only",
        "verification": {"kind": "none"},
        "risk": "external",
        "deadline_ms": 1234,
        "reconciles": "o0",
        "salt": "0" * 32,
    }
    assert desk.named("act")[0]["observe_after"] is True


def filters(desk: Desk) -> Any:
    return desk.named("query")[-1]["query"]["filters"]


def test_the_ways_to_find(desk: Desk) -> None:
    with surehand.open() as hand:
        app = hand.surface("w1")
        app.get_by_text("Total", exact=False).count()
        assert filters(desk) == [{"name": {"text": "Total", "match": "contains"}}]
        app.get_by_label(re.compile("^Na.e", re.IGNORECASE)).count()
        label = {"filters": [{"role": "label"}, {"name": {"text": "(?i)^Na.e", "match": "regex"}}]}
        assert filters(desk) == [{"relation": "labelled-by", "to": label}]
        app.get_by_role("push button", value="x", context="carol", states={"checked": False}).count()
        assert filters(desk) == [
            {"role": "button"},
            {"value": {"text": "x"}},
            {"context": {"text": "carol"}},
            {"state": {"checked": False}},
        ]
        app.locator([{"capability": "toggle"}]).filter(context="dave").count()
        assert filters(desk) == [{"capability": "toggle"}, {"context": {"text": "dave"}}]
        app.get_by_role("row", name="carol").get_by_role("button").count()
        row = {"filters": [{"role": "row"}, {"name": {"text": "carol"}}], "max_results": 11}
        assert filters(desk) == [{"role": "button"}, {"relation": "descendant", "to": row}]
    assert desk.named("query")[0]["surface"] == "w1"


@pytest.mark.parametrize(("role", "hint"), [("buton", "button"), ("check-box", "check box"), ("zzzz", "roles")])
def test_an_unknown_role_says_what_comes_near(desk: Desk, role: str, hint: str) -> None:
    with surehand.open() as hand, pytest.raises(InvalidRequest, match=hint):
        hand.app("notes").get_by_role(role)


def test_an_unknown_state_is_refused(desk: Desk) -> None:
    with surehand.open() as hand, pytest.raises(InvalidRequest, match="unknown state"):
        hand.app("notes").get_by_role("button", states={"clicked": True})


def test_reading(desk: Desk) -> None:
    desk.matches = [[match("e4", role="text", value="twelve", states=["readonly"])]]

    async def read_text(_channel: Any, params: Any, _progress: Any) -> dict[str, Any]:
        assert params == {"surface": "w1", "label": "e4", "start": 0, "end": -1}
        return {"text": "twelve and more"}

    desk.script["read_text"] = read_text
    with surehand.open() as hand:
        locator = hand.app("notes").get_by_role("text")
        assert locator.value == "twelve"
        assert locator.read() == "twelve and more"
        assert [target.label for target in locator.all()] == ["e4"]


def test_waiting_and_expecting(desk: Desk) -> None:
    asked: list[Any] = []
    answer = {"satisfied": True}

    async def wait(_channel: Any, params: Any, _progress: Any) -> dict[str, Any]:
        asked.append(params)
        return {"elapsed_ms": 3, "conditions": [], **answer}

    desk.script["wait"] = wait
    with surehand.open() as hand:
        locator = hand.app("calc").get_by_role("text")
        assert locator.wait_for() is True
        assert locator.wait_for("gone", timeout_s=1.5) is True
        assert locator.wait_for("checked")
        locator.expect(value="408")
        answer["satisfied"] = False
        assert locator.wait_for("enabled") is False
        desk.matches = [[match(role="text", value="407")]]
        with pytest.raises(Timeout, match="'407'"):
            locator.expect(value="408", timeout_s=0.1)
        with pytest.raises(ValueError, match="cannot wait"):
            locator.wait_for("happy")  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="needs"):
            locator.expect()
    role = {"role": "text"}
    one = {"max_results": 1}
    assert asked[0]["conditions"] == [{"kind": "element_exists", "query": {"filters": [role], **one}}]
    assert asked[1]["conditions"] == [{"kind": "element_gone", "query": {"filters": [role], **one}}]
    assert asked[1]["timeout_ms"] == 1500
    assert asked[2]["conditions"][0]["query"]["filters"] == [role, {"state": {"checked": True}}]
    assert asked[3]["conditions"][0]["query"]["filters"] == [role, {"value": {"text": "408"}}]


def test_a_batch_fences_what_is_there_and_leaves_the_rest_to_the_moment(desk: Desk) -> None:
    desk.matches = [[match("e5")], [], [match("e1"), match("e2")]]

    async def batch(_channel: Any, params: Any, _progress: Any) -> dict[str, Any]:
        steps = params["batch"]["steps"]
        return {"replies": [reply(step["operation_id"]) for step in steps]}

    desk.script["batch"] = batch
    with surehand.open() as hand:
        app = hand.app("calc")
        steps = [app.get_by_role("button", name=n).step.press() for n in ("1", "2", "3")]
        done = hand.batch(steps, operation_id="b1")
    assert done
    assert len(done) == 3
    sent = desk.named("batch")[0]["batch"]["steps"]
    assert [step["operation_id"] for step in sent] == ["b1:0", "b1:1", "b1:2"]
    assert [step["target"]["kind"] for step in sent] == ["element", "query", "query"]
    assert sent[1]["target"]["surface"] == "w1"


def test_an_empty_batch_and_a_stopped_one(desk: Desk) -> None:
    async def batch(_channel: Any, params: Any, _progress: Any) -> dict[str, Any]:
        replies = [reply("b:0"), refused("b:1", "stale_target")]
        return {"replies": replies[: len(params["batch"]["steps"])], "stopped_by": "refused"}

    desk.script["batch"] = batch
    with surehand.open() as hand:
        step = hand.app("calc").get_by_role("button").step
        assert hand.batch([])
        stopped = hand.batch([step.press(), step.press(), step.press()])
    assert not stopped
    assert len(stopped.receipts) == 1
    with pytest.raises(StaleTarget):
        stopped.check()


def test_launching_takes_words_never_a_shell_line(desk: Desk) -> None:
    with surehand.open() as hand:
        assert hand.launch(["mousepad", "a b.txt"])
        with pytest.raises(TypeError):
            hand.launch("mousepad; rm -rf /")  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="program"):
            hand.launch([])
    assert desk.acts[0]["action"] == {"kind": "app", "op": "launch", "name": "mousepad", "arguments": ["a b.txt"]}
    assert desk.acts[0]["target"] == {"kind": "none"}
