"""Every tool that acts, on real applications of three toolkits; their own logs say what happened."""

from __future__ import annotations

import io
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from PIL import Image, ImageChops, ImageStat

from surehand import limits
from surehand.testing.desktop import IsolatedDesktop
from surehand.testing.fixture_app import TOOLKITS, FixtureApp
from surehand.tools.catalog import UsageError
from surehand.tools.context import Context
from tests.crash.daemon_kit import Daemon
from tests.desktop.mcp.acting_kit import Agent, agent_on

pytestmark = [pytest.mark.desktop, pytest.mark.asyncio(loop_scope="module")]

COUNT = {"role": "button", "name": "Count"}
NAMED_COUNT = ({"role": "button"}, {"name": {"text": "Count"}})
#: How each toolkit calls the same things.
FIELD = {
    "gtk3": {"role": "text", "label": "Name"},
    "gtk4": {"role": "text", "name": "Name"},
    "qt": {"role": "text", "name": "Name"},
}
CHECK = {
    "gtk3": {"role": "togglebutton", "name": "Bold"},
    "gtk4": {"name": "Wi-Fi"},
    "qt": {"role": "checkbox", "name": "Bold"},
}


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=TOOLKITS)
async def agent(request: pytest.FixtureRequest, desktop: IsolatedDesktop, daemon: Daemon) -> AsyncIterator[Agent]:
    app = await FixtureApp.start(desktop, request.param, scroll_rows=40)
    async with agent_on(desktop, app) as made:
        yield made
    app.close()


@pytest_asyncio.fixture(autouse=True, loop_scope="module")
async def fresh(request: pytest.FixtureRequest) -> None:
    """Begin each test in the application's main window, with no dialog before it."""
    if "agent" in request.fixturenames:
        agent: Agent = request.getfixturevalue("agent")
        await agent.app.run("dialog_close")
        await agent.rest()
        agent.context.window = agent.window


# --- each tool --------------------------------------------------------------------------------------------------------


async def test_invoke_presses_once_and_its_late_effect_is_in_the_answer(agent: Agent) -> None:
    mark = agent.app.mark()
    answer = await agent.done("invoke", target=COUNT)
    assert agent.app.presses("counter", after=mark) == ["Count"]
    presses = (await agent.app.run("get", control="presses")) if agent.app.toolkit != "gtk3" else None
    assert "Presses: " in answer.data["change"], answer.text
    assert answer.data["effect"] == "executed_unverified"
    assert presses is None or presses in answer.data["change"]


async def test_what_is_expected_is_read_back(agent: Agent) -> None:
    answer = await agent.done("invoke", target=COUNT, expect={"appears": {"contains": "Presses: "}})
    assert answer.data["effect"] == "verified"


async def test_set_value_is_read_back_and_the_diff_shows_it(agent: Agent) -> None:
    mark = agent.app.mark()
    text = 'v19 "ünïcode" €'
    answer = await agent.done("set_value", target=FIELD[agent.app.toolkit], value=text)
    assert answer.data["effect"] == "verified"
    assert agent.app.events("text", "name", after=mark)[-1].value == text
    assert json.dumps(text, ensure_ascii=False) in answer.data["change"]
    assert answer.data["change"] in answer.text


async def test_toggle_brings_to_a_state_and_back_again(agent: Agent) -> None:
    label = await agent.label(**CHECK[agent.app.toolkit])
    mark = agent.app.mark()
    for to in (True, True, False):
        answer = await agent.done("toggle", target=label, to=to)
        assert answer.data["effect"] == "verified"
    assert [event.value for event in agent.app.events("toggle", after=mark)] == [True, False]


async def test_select_text_by_what_it_says_and_by_place(agent: Agent) -> None:
    field = FIELD[agent.app.toolkit]
    await agent.done("set_value", target=field, value="one two three two")
    mark = agent.app.mark()
    await agent.done("select_text", target=field, text="three")
    assert agent.app.events("selection", "name", after=mark)[-1].value == [8, 13]
    await agent.done("select_text", target=field, start=4, length=3)
    assert agent.app.events("selection", "name", after=mark)[-1].value == [4, 7]
    await agent.refused("target_not_found", "select_text", target=field, text="two")
    await agent.refused("target_not_found", "select_text", target=field, text="four")
    await agent.refused("invalid_request", "select_text", target=field)


async def test_type_text_gives_the_focus_where_it_has_to_and_can_clear_and_submit(agent: Agent) -> None:
    field = FIELD[agent.app.toolkit]
    await agent.done("set_value", target=field, value="before")
    await agent.app.run("focus", control="counter")
    mark = agent.app.mark()
    answer = await agent.done("type_text", target=field, text="typed ü", clear=True)
    assert answer.data["effect"] == "verified"
    assert "focus" in answer.data["prepared"]
    assert agent.app.events("text", "name", after=mark)[-1].value == "typed ü"
    again = await agent.done("type_text", target=field, text="!", submit=True)
    assert "prepared" not in again.data
    assert await agent.app.run("get", control="name") in {"typed ü!", "!typed ü"}


async def test_press_key_sends_chords_to_the_window_that_was_seen_last(agent: Agent) -> None:
    field = FIELD[agent.app.toolkit]
    await agent.done("type_text", target=field, text="gone", clear=True)
    mark = agent.app.mark()
    await agent.done("press_key", keys=["ctrl+a", "Delete"])
    await agent.app.wait_for("text", "name", after=mark, where=lambda event: event.value == "")


async def test_select_option_chooses_by_name_and_says_where_a_toolkit_gives_no_way(agent: Agent) -> None:
    mark = agent.app.mark()
    answer = await agent.done("select_option", target={"role": "list", "name": "Fruit"}, option="cherry")
    assert answer.data["effect"] == "verified"
    assert [event.value for event in agent.app.events("select", "fruit", after=mark)][-1] == "cherry"
    label = await agent.label(role="list", name="Fruit")
    await agent.refused("target_not_found", "select_option", target=label, option="durian")
    if agent.app.toolkit == "qt":
        combo = {"role": "combobox", "value": "red"}  # a closed list of Qt ignores its items
        await agent.refused("unsupported_action", "select_option", target=combo, option="blue")
    else:
        await agent.done("select_option", target={"role": "combobox", "name": "Colour"}, option="blue")
        assert agent.app.events("select", "colour", after=mark)[-1].value == "blue"


async def test_perform_action_runs_an_advertised_action_and_no_other(agent: Agent) -> None:
    await agent.refused("unsupported_action", "perform_action", target=COUNT, name="explode")
    found = await agent.find(*NAMED_COUNT)
    mark = agent.app.mark()
    await agent.done("perform_action", target=COUNT, name=found["actions"][0])
    await agent.app.settle()
    assert agent.app.presses("counter", after=mark) == ["Count"]


async def test_click_on_an_element_uses_the_pointer(agent: Agent) -> None:
    mark = agent.app.mark()
    answer = await agent.done("click", target=COUNT)
    assert answer.data["route"] == "x11.pointer"
    assert agent.app.presses("counter", after=mark) == ["Count"]
    mark = agent.app.mark()
    await agent.done("click", target=COUNT, count=2)
    assert agent.app.presses("counter", after=mark) == ["Count", "Count"]


async def test_a_plain_click_in_a_picture_goes_to_the_button_and_any_other_to_the_pixels(agent: Agent) -> None:
    capture = await agent.picture()
    x, y = await _middle(agent, capture, *NAMED_COUNT)
    place = {"x": x, "y": y, "capture_id": capture["capture_id"]}
    mark = agent.app.mark()
    answer = await agent.done("click", **place)
    assert answer.data["route"] == "atspi.action"
    await agent.app.settle()
    # Once, and nothing of the pointer.
    assert agent.app.presses("counter", after=mark) == ["Count"]
    assert agent.app.events("button_press", after=mark) == []
    answer = await agent.done("click", **place, modifiers=["shift"])
    assert answer.data["route"] == "x11.pointer"


async def test_a_click_on_what_is_no_button_is_one_of_the_pointer(agent: Agent) -> None:
    capture = await agent.picture()
    x, y = await _middle(agent, capture, {"name": {"text": "Canvas"}})
    mark = agent.app.mark()
    answer = await agent.done("click", x=x, y=y, capture_id=capture["capture_id"])
    assert answer.data["route"] == "x11.pointer"
    await agent.app.wait_for("canvas", "button-press", after=mark)
    assert len(agent.app.events("canvas", "button-press", after=mark)) == 1


async def test_a_place_whose_element_changed_is_stale_and_nothing_is_pressed(agent: Agent) -> None:
    capture = await agent.picture()
    x, y = await _middle(agent, capture, {"role": "button"}, {"name": {"text": "Later"}})
    await agent.app.run("rename", control="later", name="Never")
    try:
        await agent.refused("stale_target", "click", x=x, y=y, capture_id=capture["capture_id"])
    finally:
        await agent.app.run("rename", control="later", name="Later")
    await agent.refused("stale_target", "click", x=x, y=y, capture_id="of-another-session")


async def test_drag_between_places_and_to_an_element(agent: Agent) -> None:
    capture = await agent.picture()
    x, y = await _middle(agent, capture, {"name": {"text": "Canvas"}})
    mark = agent.app.mark()
    await agent.done("drag", x=x - 20, y=y - 20, to_x=x + 20, to_y=y + 10, capture_id=capture["capture_id"])
    await agent.app.wait_for("canvas", "button-release", after=mark)
    first, last = (
        agent.app.events("canvas", name, after=mark)[-1].value for name in ("button-press", "button-release")
    )
    assert [last[0] - first[0], last[1] - first[1]] == [40, 30]
    mark = agent.app.mark()
    await agent.done("drag", target={"name": "Canvas"}, to=COUNT)
    await agent.app.wait_for("canvas", "button-release", after=mark)
    # Let go outside of the canvas, above it, where the button is.
    assert agent.app.events("canvas", "button-release", after=mark)[-1].value[1] < 0


async def test_scroll_moves_the_content(agent: Agent) -> None:
    mark = agent.app.mark()
    await agent.done("scroll", target={"role": "button", "name": "Item 2"}, direction="down", amount=6)
    await agent.app.wait_for("scroll", "scrolled", after=mark)
    assert agent.app.events("scroll", "scrolled", after=mark)[-1].value > 0
    await agent.done("scroll", target={"role": "button", "name": "Item 4"}, direction="up", amount=30)


async def test_a_dialog_that_opens_and_closes_is_told_with_its_text(agent: Agent) -> None:
    answer = await agent.done("invoke", target={"role": "button", "name": "Open dialog"})
    (opened,) = answer.data["opened"]
    assert "Are you sure?" in answer.data["change"]
    # The dialog is what was seen last, so nothing needs to be named.
    answer = await agent.done("invoke", target={"role": "button", "name": "Cancel"})
    assert answer.data["closed"] == [opened]
    assert f"window {opened} closed" in answer.text


# --- pictures of what came of it --------------------------------------------------------------------------------------


async def test_a_picture_comes_when_asked_and_shows_the_effect(agent: Agent) -> None:
    field, found = FIELD[agent.app.toolkit], []
    for change, value in (("diff", "iiii"), ("none", "MMMM")):
        answer = await agent.done("set_value", target=field, value=value, image=True, change=change)
        (image,), told = answer.images, answer.data["image"]
        assert (image.mime, told["window"], told["bytes"]) == ("image/jpeg", agent.window, len(image.data))
        assert f"capture_id {told['capture_id']}" in answer.text
        (match,) = (await agent.tool("query", window=agent.window, **field)).data["matches"]
        later = await agent.tool("screenshot", target=match["label"])
        x, y = (there - here for there, here in zip(later.data["origin"], told["origin"], strict=True))
        box = (x, y, x + later.data["width"], y + later.data["height"])
        shown, current = _opened(image.data).crop(box), _opened(later.images[0].data)
        assert _unlike(shown, current) < 6, "the picture is older than the effect"
        found.append(shown)
    assert _unlike(*found) > 0.5
    # Places in it are places: a click in the picture reaches what it shows.
    x, y = await _middle(agent, {"origin_x": told["origin"][0], "origin_y": told["origin"][1]}, *NAMED_COUNT)
    mark = agent.app.mark()
    await agent.done("click", x=x, y=y, capture_id=told["capture_id"])
    assert agent.app.presses("counter", after=mark) == ["Count"]


async def test_a_picture_is_of_the_window_an_effect_led_to(agent: Agent) -> None:
    answer = await agent.done("invoke", target={"role": "button", "name": "Open dialog"}, image=True)
    assert answer.data["image"]["window"] == answer.data["opened"][0]
    steps = [{"do": "invoke", "target": {"role": "button", "name": "Cancel"}}]
    answer = await agent.done("act", steps=steps, image=True)
    assert answer.data["image"]["error"]["code"] == "window_not_found"
    assert answer.images == ()
    assert "no picture: window_not_found" in answer.text
    steps = [{"do": "invoke", "target": COUNT, "window": agent.window}] * 2
    answer = await agent.done("act", steps=steps, image=True, change="none")
    assert len(answer.images) == 1
    assert answer.data["image"]["window"] == agent.window


async def test_what_did_nothing_gives_no_picture(agent: Agent) -> None:
    for arguments in ({"target": {"role": "button", "name": "no such"}}, {"target": "e999999"}):
        answer = await agent.refused("target_not_found", "invoke", **arguments, image=True)
        assert answer.images == ()
        assert "image" not in answer.data


def _opened(data: bytes) -> Any:
    return Image.open(io.BytesIO(data)).convert("L")


def _unlike(first: Any, second: Any) -> float:
    """Return by how many levels of 255 two pictures differ on average."""
    size = (min(first.width, second.width), min(first.height, second.height))
    difference = ImageChops.difference(first.crop((0, 0, *size)), second.crop((0, 0, *size)))
    return float(ImageStat.Stat(difference).mean[0])


# --- act --------------------------------------------------------------------------------------------------------------


def _dialog_steps(app: str) -> list[dict[str, Any]]:
    return [
        {"do": "set_value", "target": {"role": "spinbutton", "name": "Amount"}, "value": "7"},
        {"do": "invoke", "target": {"role": "button", "name": "Open dialog"}, "expect": {"appears": {"name": "OK"}}},
        {
            "do": "invoke",
            "app": app,
            "target": {"role": "button", "name": "OK"},
            "expect": {"disappears": {"name": "OK"}},
        },
        {"do": "invoke", "target": COUNT},
    ]


async def test_steps_run_in_order_across_windows_and_never_twice(agent: Agent) -> None:
    await agent.done("set_value", target={"role": "spinbutton", "name": "Amount"}, value="1")
    steps = _dialog_steps(f"{agent.app.toolkit}_app.py")
    operation_id = f"steps-{agent.app.toolkit}"
    mark = agent.app.mark()
    answer = await agent.done("act", steps=steps, operation_id=operation_id)
    assert [step["effect"] for step in answer.data["steps"]] == ["verified"] * 3 + ["executed_unverified"]
    assert "Presses: " in answer.data["change"]
    await agent.app.settle()
    pressed = [event.control for event in agent.app.events("press", after=mark)]
    assert pressed == ["open-dialog", "dialog-ok", "counter"]
    mark = agent.app.mark()
    again = await agent.done("act", steps=steps, operation_id=operation_id)
    assert [step["replayed"] for step in again.data["steps"]] == [True] * 4
    await agent.app.settle()
    assert agent.effects(mark) == []


async def test_the_first_refusal_ends_the_steps_unless_asked_otherwise(agent: Agent) -> None:
    steps = [{"do": "invoke", "target": {"role": "button", "name": "Disabled"}}, {"do": "invoke", "target": COUNT}]
    mark = agent.app.mark()
    answer = await agent.tool("act", steps=steps)
    assert answer.is_error
    assert answer.data["not_begun"] == 1
    assert agent.app.presses("counter", after=mark) == []
    answer = await agent.tool("act", steps=steps, on_refusal="continue")
    assert [step["status"] for step in answer.data["steps"]] == ["refused", "succeeded"]
    await agent.app.settle()
    assert agent.app.presses("counter", after=mark) == ["Count"]


async def test_a_failed_step_ends_the_steps_whatever_was_asked(agent: Agent) -> None:
    steps = [
        {"do": "invoke", "target": COUNT, "expect": {"appears": {"name": "never"}}},
        {"do": "invoke", "target": COUNT},
    ]
    mark = agent.app.mark()
    answer = await agent.tool("act", steps=steps, on_refusal="continue")
    assert answer.data["steps"][0]["error"]["code"] == "verification_failed"
    assert len(answer.data["steps"]) == 1
    await agent.app.settle()
    assert agent.app.presses("counter", after=mark) == ["Count"]


async def test_window_and_pointer_steps(agent: Agent) -> None:
    answer = await agent.done(
        "act",
        steps=[
            {"do": "window", "op": "focus"},
            {"do": "hover", "target": COUNT},
            {"do": "physical_state"},
            {"do": "expand", "target": {"name": "More", "state": {"expanded": False}}, "to": True}
            if agent.app.toolkit == "gtk3"
            else {"do": "physical_state"},
            {"do": "scroll_into_view", "target": {"role": "button", "name": "Item 39"}}
            if agent.app.toolkit == "gtk3"
            else {"do": "move", "target": COUNT},
            {"do": "release_all"},
        ],
    )
    assert answer.data["steps"][2]["output"]["buttons"] == []


async def test_steps_at_and_past_their_number(agent: Agent) -> None:
    step = {"do": "physical_state"}
    answer = await agent.done("act", steps=[step] * limits.BATCH_STEPS_MAX)
    assert len(answer.data["steps"]) == limits.BATCH_STEPS_MAX
    for number in (0, limits.BATCH_STEPS_MAX + 1):
        with pytest.raises(UsageError):
            await agent.tool("act", steps=[step] * number)


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ({"do": "toggle", "target": "e1"}, "toggle needs to"),
        ({"do": "toggle", "target": "e1", "to": "e2"}, "true or false"),
        ({"do": "invoke", "target": "e1", "text": "x"}, "invoke takes no text"),
        ({"do": "click"}, "click needs a target"),
        ({"do": "click", "target": "e1", "x": 1, "y": 1, "capture_id": "c"}, "not both"),
        ({"do": "drag", "target": "e1"}, "drag needs to"),
        ({"do": "drag", "target": "e1", "to_x": 1, "to_y": 1}, "capture_id"),
        ({"do": "window"}, "window needs op"),
        ({"do": "press_key"}, "press_key needs keys"),
        ({"do": "invoke", "target": {}}, "say what to find"),
        ({"do": "invoke", "target": "e1", "expect": {}}, "expect says nothing"),
    ],
)
async def test_a_step_that_says_too_little_or_too_much_stops_all_before_any(
    agent: Agent, step: dict[str, Any], said: str
) -> None:
    answer = await agent.refused("invalid_request", "act", steps=[{"do": "invoke", "target": COUNT}, step])
    assert said in answer.text


# --- what must not happen ---------------------------------------------------------------------------------------------


async def test_labels_that_were_never_shown_or_are_anothers_are_refused(agent: Agent, desktop: IsolatedDesktop) -> None:
    label = await agent.label(**COUNT)
    async with agent_on(desktop, agent.app) as other:
        await other.done("set_value", target=FIELD[agent.app.toolkit], value="for more labels")
        await agent.refused("target_not_found", "invoke", target="e99999")
    # A new session that has seen nothing knows no label.
    blind = Agent(Context(desktop=desktop.name, client="test", start=False), agent.app)
    try:
        await blind.refused("target_not_found", "invoke", target=label)
    finally:
        await blind.context.close()


async def test_a_recycled_row_is_stale_and_repeating_the_call_is_stale_again(agent: Agent) -> None:
    await agent.app.run("rows_set", names=["alice", "bob", "carol", "dave"])
    await agent.tool("observe", window=agent.window, full=True)
    label = await agent.label(role="button", name="Delete", inside="People › carol")
    await agent.app.run("rows_recycle", names=["alice", "bob", "dave", "carol"])
    for _ in range(2):
        answer = await agent.refused("stale_target", "invoke", target=label)
        assert answer.data["error"]["observed"]["candidates"]
    await agent.tool("observe", window=agent.window)
    # Something that destroys may not be named by what it is alone: a person would be asked.
    answer = await agent.tool("invoke", target={"role": "button", "name": "Delete", "inside": "People › carol"})
    assert answer.data["status"] == "approval_required"
    mark = agent.app.mark()
    await agent.done("invoke", target=await agent.label(role="button", name="Delete", inside="People › carol"))
    await agent.app.settle()
    assert [event.value for event in agent.app.events("press", "row.delete", after=mark)] == ["carol"]


async def test_a_candidate_that_an_error_names_can_be_acted_upon(agent: Agent) -> None:
    answer = await agent.refused("target_not_found", "invoke", target={"role": "button", "name": "count"})
    candidates = answer.data["error"]["observed"]["candidates"]
    label = next(line for line in candidates if '"Count"' in line).split("]")[0].removeprefix("[")
    mark = agent.app.mark()
    await agent.done("invoke", target=label)
    await agent.app.settle()
    assert agent.app.presses("counter", after=mark) == ["Count"]


async def test_several_that_match_are_refused_and_told_apart(agent: Agent) -> None:
    answer = await agent.refused("ambiguous_target", "invoke", target={"role": "button", "name": "Delete"})
    assert len(answer.data["error"]["observed"]["candidates"]) == 5
    assert len(answer.text) + len(json.dumps(answer.data)) <= 1536


async def test_one_operation_id_acts_once_and_means_one_thing(agent: Agent) -> None:
    operation_id = f"once-{agent.app.toolkit}"
    mark = agent.app.mark()
    await agent.done("invoke", target=COUNT, operation_id=operation_id)
    again = await agent.done("invoke", target=COUNT, operation_id=operation_id)
    assert again.data["replayed"] is True
    await agent.app.settle()
    assert agent.app.presses("counter", after=mark) == ["Count"]
    await agent.refused("conflict", "invoke", target={"role": "button", "name": "Later"}, operation_id=operation_id)


async def test_a_repeat_is_told_its_end_though_its_element_is_gone(agent: Agent) -> None:
    await agent.done("invoke", target={"role": "button", "name": "Open dialog"})
    label = await _label_in_dialog(agent)
    operation_id = f"gone-{agent.app.toolkit}"
    mark = agent.app.mark()
    await agent.done("invoke", target=label, operation_id=operation_id)
    again = await agent.done("invoke", target=label, operation_id=operation_id)
    assert again.data["replayed"] is True
    await agent.app.settle()
    assert [event.control for event in agent.app.events("press", after=mark)] == ["dialog-cancel"]


async def test_unknown_wrong_and_endless_arguments_are_usage_errors(agent: Agent) -> None:
    mark = agent.app.mark()
    for arguments in (
        {"target": COUNT, "unknown": 1},
        {"target": 5},
        {},
        {"target": COUNT, "deadline_ms": 0},
        {"target": COUNT, "deadline_ms": limits.DEADLINE_MS_MAX + 1},
        {"target": {"role": 1}},
    ):
        with pytest.raises(UsageError):
            await agent.tool("invoke", **arguments)
    await agent.refused("invalid_request", "invoke", target={"role": "sorcerer"})
    await agent.refused("invalid_request", "invoke", target=COUNT, operation_id="no spaces")
    await agent.refused("invalid_request", "invoke", target=COUNT, operation_id="x" * (limits.IDENTIFIER_CHARS_MAX + 1))
    assert agent.effects(mark) == []


async def test_texts_at_and_past_their_limit(agent: Agent) -> None:
    field = FIELD[agent.app.toolkit]
    await agent.refused("too_large", "set_value", target=field, value="x" * (limits.VALUE_BYTES_MAX + 1))
    await agent.refused("too_large", "type_text", target=field, text="x" * (limits.TEXT_BYTES_MAX + 1))
    await agent.refused("too_large", "press_key", keys=["a"] * (limits.CHORDS_MAX + 1))
    await agent.done("set_value", target=field, value="x" * 4000)
    await agent.done("set_value", target=field, value="")


async def test_answers_of_actions_fit_a_kilobyte_at_the_median(agent: Agent) -> None:
    sizes = []
    for name, arguments in (
        ("invoke", {"target": COUNT}),
        ("set_value", {"target": FIELD[agent.app.toolkit], "value": "short"}),
        ("click", {"target": COUNT}),
        ("press_key", {"keys": ["Tab"]}),
        ("invoke", {"target": {"role": "button", "name": "Later"}}),
    ):
        answer = await agent.done(name, **arguments)
        sizes.append(len(answer.text.encode()) + len(json.dumps(answer.data, ensure_ascii=False).encode()))
    assert sorted(sizes)[len(sizes) // 2] <= 1024, sizes


async def _middle(agent: Agent, capture: dict[str, Any], *filters: dict[str, Any]) -> tuple[int, int]:
    x, y, width, height = (await agent.find(*filters))["bounds"]
    return x + width // 2 - capture["origin_x"], y + height // 2 - capture["origin_y"]


async def _label_in_dialog(agent: Agent) -> str:
    answer = await agent.tool("query", role="button", name="Cancel")
    (match,) = answer.data["matches"]
    return str(match["label"])


# --- launching --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["mousepad", "gnome-calculator"])
async def test_launch_app_answers_with_the_window_of_the_program(
    desktop: IsolatedDesktop, daemon: Daemon, name: str
) -> None:
    context = Context(desktop=desktop.name, client="test", start=False)
    agent = Agent(context, None)  # type: ignore[arg-type]
    try:
        answer = await agent.done("launch_app", name=name)
        (opened,) = answer.data["opened"]
        assert name in answer.text
        await agent.tool("observe", window=opened)
        await agent.done("act", steps=[{"do": "window", "op": "close"}])
    finally:
        await context.close()


async def test_a_launch_says_whether_its_window_shows_what_was_expected(
    desktop: IsolatedDesktop, daemon: Daemon
) -> None:
    context = Context(desktop=desktop.name, client="test", start=False)
    agent = Agent(context, None)  # type: ignore[arg-type]
    try:
        expect = {"title": "Mousepad", "appears": {"name": "File"}}
        answer = await agent.done("launch_app", name="mousepad", expect=expect, change="none", operation_id="start-1")
        assert answer.data["expected"] is True
        assert "File" not in answer.text
        (opened,) = answer.data["opened"]
        # It was not told of the window's text, so the first look is all of it.
        assert "File" in (await agent.tool("observe")).text
        again = await agent.done("launch_app", name="mousepad", expect=expect, operation_id="start-1")
        assert again.data["replayed"]
        await agent.done("act", steps=[{"do": "window", "op": "close", "window": opened}])
        other = await agent.tool(
            "launch_app", name="gnome-calculator", expect={"title": "no such title"}, deadline_ms=1_500
        )
        assert other.is_error
        assert other.data["error"]["code"] == "verification_failed"
        (started,) = other.data["opened"]
        await agent.done("act", steps=[{"do": "window", "op": "close", "window": started}])
    finally:
        await context.close()


async def test_a_program_that_is_not_there_is_refused(desktop: IsolatedDesktop, daemon: Daemon) -> None:
    context = Context(desktop=desktop.name, client="test", start=False)
    agent = Agent(context, None)  # type: ignore[arg-type]
    try:
        answer = await agent.tool("launch_app", name="no-such-program")
        assert answer.data["error"]["code"] == "app_not_found"
    finally:
        await context.close()


async def test_a_program_that_ends_at_once_is_told_so_with_what_it_said(
    desktop: IsolatedDesktop, daemon: Daemon
) -> None:
    context = Context(desktop=desktop.name, client="test", start=False)
    agent = Agent(context, None)  # type: ignore[arg-type]
    try:
        died = await agent.done("launch_app", name="ls", arguments=["/no-such-file"])
        assert died.data["output"]["exit_code"] == 2
        assert "no-such-file" in died.data["output"]["said"]
        assert "the program ended at once with status 2" in died.text
        # Status 0: it may have handed over to a window that is there already.
        began = time.monotonic()
        ended = await agent.done("launch_app", name="true", arguments=[])
        assert time.monotonic() - began < limits.LAUNCH_WINDOW_MS_MAX / 2000
        assert ended.data["output"]["ended"] is True
        assert "opened no window" in ended.text
    finally:
        await context.close()
