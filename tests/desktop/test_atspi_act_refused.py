"""What must not happen does not: behind every refusal the application's own log shows nothing."""

from __future__ import annotations

import asyncio

import pytest

from surehand.errors import (
    AmbiguousTarget,
    InvalidRequest,
    PermitInvalid,
    StaleTarget,
    SurehandError,
    TargetNotActionable,
    TargetNotFound,
    Unavailable,
    UnsupportedAction,
)
from surehand.model.actions import (
    Action,
    Expand,
    Focus,
    Invoke,
    Perform,
    ScrollIntoView,
    SelectOption,
    SelectText,
    SetValue,
    Toggle,
)
from surehand.testing.desktop import IsolatedDesktop
from surehand.testing.fixture_app import TOOLKITS, FixtureApp

from .atspi_stage import Stage, stage

pytestmark = pytest.mark.desktop


@pytest.fixture(scope="module", params=TOOLKITS)
def app(request, desktop: IsolatedDesktop):
    running = asyncio.run(FixtureApp.start(desktop, request.param, scroll_rows=40))
    yield running
    running.close()


@pytest.fixture
async def on(desktop: IsolatedDesktop, app: FixtureApp):
    async with stage(desktop, app) as ready:
        yield ready


class Interfering:
    """An observer that lets something happen right before it reads the fence."""

    def __init__(self, observer, interfere):
        self._observer = observer
        self._interfere = interfere

    def object_of(self, handle):
        return self._observer.object_of(handle)

    async def way_to_act(self, handle):
        return await self._observer.way_to_act(handle)

    async def read(self, surface_id, *, places=True):  # noqa: ARG002 - the port names it
        return await self._observer.read(surface_id)

    async def live(self, surface_id, handles, *, around=()):
        self._interfere()
        return await self._observer.live(surface_id, handles, around=around)


async def refused(on: Stage, action: Action, node, error: type[SurehandError], **options) -> SurehandError:
    """Assert that an action is refused before it enters, and that the application saw nothing."""
    attempt = on.begin(action, node, **options)
    with pytest.raises(error) as caught:
        await on.actor.perform(attempt)
    assert not attempt.entered
    await on.rest(action)
    assert on.effects() == []
    return caught.value


async def _entry(on: Stage, control: str, name: str):
    if on.toolkit == "gtk3":
        return await on.find(None, where=lambda n: n.app_id == control)
    return await on.find(name, where=lambda n: n.role in {"text", "password"})


async def test_a_refusing_fence_leaves_the_application_untouched_for_every_action(on: Stage):
    entry = await _entry(on, "name", "Name")
    on.app.command("set_text", control="name", text="kept")
    button = await on.find("Count", "button")
    fruit = await on.find("Fruit", "list")
    on.app.command("set", control="scrolled", value=0)
    tries: list[tuple[Action, object]] = [
        (Invoke(), button),
        (Perform(name=button.actions[0]), button),
        (SetValue(value="new"), entry),
        (SetValue(value="7"), await on.find("Volume")),
        (SelectText(start=1, length=2), entry),
        (SelectOption(option="date"), fruit),
        (ScrollIntoView(), await on.find("Item 35", "button")),
        (Toggle(to=True), await on.find("Wi-Fi")),
    ]
    if on.toolkit != "gtk4":
        tries.append((Focus(), await on.find("Pay 10")))
    if on.toolkit != "qt":
        tries.append((Expand(to=True), await on.find(None, where=lambda n: "expandable" in n.states)))

    def refuse(_live):
        raise StaleTarget("refused by the fence")

    for action, node in tries:
        attempt = on.begin(action, node, on_enter=refuse)
        with pytest.raises(StaleTarget, match="refused by the fence"):
            await on.actor.perform(attempt)
        await on.rest(action)
        assert on.raw_events() == [], action
    assert on.app.command("get", control="name") == "kept"


async def test_the_fence_gets_the_live_nodes_it_asked_for(on: Stage):
    button, entry = await on.find("Count", "button"), await _entry(on, "name", "Name")
    attempt = on.begin(Invoke(), button, fence_handles=(entry.handle, button.handle))
    await on.actor.perform(attempt)
    assert attempt.live[button.handle].node.name == "Count"
    assert attempt.live[entry.handle].node.handle == entry.handle


async def test_nothing_else_runs_between_the_fence_and_the_acting_call(on: Stage):
    button = await on.find("Count", "button")
    connection, _ = await on.observer.way_to_act(button.handle)
    sent_when_others_ran: list[int] = []

    def enter(_live):
        before = connection.calls_sent
        asyncio.get_running_loop().call_soon(lambda: sent_when_others_ran.append(connection.calls_sent - before))

    await on.act(Invoke(), button, on_enter=enter)
    assert sent_when_others_ran[0] >= 1
    assert on.effects() == [("press", "counter", "Count")]


async def test_one_attempt_is_entered_once(on: Stage):
    button = await on.find("Count", "button")
    attempt = on.begin(Invoke(), button)
    await on.actor.perform(attempt)
    await on.app.settle()
    on.mark = on.app.mark()
    with pytest.raises(PermitInvalid):
        await on.actor.perform(attempt)
    await on.app.settle()
    assert on.effects() == []


async def test_a_text_view_has_no_activation_and_none_is_guessed(on: Stage):
    view = await on.find("Notes", "text")
    on.app.command("set_text", control="notes", text="keep me")
    assert on.actor.route(Invoke(), on.surface, view) is None
    await refused(on, Invoke(), view, UnsupportedAction)
    assert on.app.command("get", control="notes") == "keep me"


async def test_an_action_that_is_not_advertised_is_not_performed(on: Stage):
    button = await on.find("Count", "button")
    for name in ("Click me", button.actions[0].swapcase(), "0"):
        assert on.actor.route(Perform(name=name), on.surface, button) is None
        await refused(on, Perform(name=name), button, UnsupportedAction)


async def test_actions_that_changed_since_they_were_observed_are_refused(on: Stage):
    if on.toolkit != "qt":
        pytest.skip("only Qt lets an application change a control's actions")
    button = await on.find("Pay 10", "button")
    on.app.command("checkable", control="pay", on=True)
    try:
        error = await refused(on, Invoke(), button, StaleTarget)
        assert error.observed == {"before": ["Press", "SetFocus"], "now": ["Toggle", "SetFocus"]}
        on.app.command("enable", control="pay", enabled=False)
        await refused(on, Invoke(), button, StaleTarget)
    finally:
        on.app.command("enable", control="pay")
        on.app.command("checkable", control="pay", on=False)


async def test_an_object_that_is_gone_is_refused(on: Stage):
    on.app.command("rows_set", names=["alice", "bob", "carol", "dave"])
    label = await on.find("carol")
    tree = await on.tree()
    place = next(i for i, node in enumerate(tree.nodes) if node.handle == label.handle)
    button = next(node for node in tree.nodes[place:] if node.name == "Delete")
    on.app.command("rows_set", names=["dave", "carol", "bob", "alice"])
    await refused(on, Invoke(), button, StaleTarget)


async def test_an_object_destroyed_between_fence_and_call_has_no_effect_elsewhere(on: Stage):
    on.app.command("rows_set", names=["alice", "bob", "carol", "dave"])
    button = await on.find("Delete", "button", within=await on.find("People"), nth=1)
    attempt = on.begin(Invoke(), button, on_enter=lambda _: on.app.command("rows_remove", name="bob"))
    done = await on.actor.perform(attempt)
    assert done.status in {"no_effect", "done", "unknown"}
    await on.app.settle()
    assert on.effects() == []


async def test_an_earlier_control_that_becomes_enabled_does_not_shift_the_press(on: Stage):
    on.app.command("enable", control="early", enabled=False)
    button = await on.find("Later", "button")
    on.app.command("enable", control="early", enabled=True)
    await on.act(Invoke(), button)
    assert on.effects() == [("press", "later", "Later")]


async def test_a_missing_option_is_refused_with_what_there_is(on: Stage):
    error = await refused(on, SelectOption(option="fig"), await on.find("Fruit", "list"), TargetNotFound)
    assert error.observed["candidates"] == [
        "1. apple", "2. banana", "3. cherry", "4. date", "5. elderberry",
    ]  # fmt: skip


async def test_an_ambiguous_option_is_refused_with_its_candidates(on: Stage):
    on.app.command("fruit", names=["apple", "same", "cherry", "same", "fig"])
    try:
        error = await refused(on, SelectOption(option="same"), await on.find("Fruit", "list"), AmbiguousTarget)
        assert error.observed["candidates"] == ["2. same", "4. same"]
    finally:
        on.app.command("fruit", names=["apple", "banana", "cherry", "date", "elderberry"])


async def test_an_option_whose_widget_was_recycled_is_refused(on: Stage):
    fruit = await on.find("Fruit", "list")
    on.actor = type(on.actor)(
        Interfering(
            on.observer, lambda: on.app.command("fruit", names=["apple", "cherry", "banana", "date", "elderberry"])
        )
    )
    try:
        error = await refused(on, SelectOption(option="cherry"), fruit, StaleTarget)
        assert error.details["difference"] == "name"
        assert error.observed == {"before": "cherry", "now": "banana"}
    finally:
        on.app.command("fruit", names=["apple", "banana", "cherry", "date", "elderberry"])


async def test_a_number_out_of_range_or_malformed_is_refused(on: Stage):
    for name in ("Volume", "Amount"):
        control = await on.find(name)
        for value in ("101", "-1", "100.001", "abc", "1e2", "inf", "nan", "", " 5", "5 ", "٣", "0x10"):
            await refused(on, SetValue(value=value), control, (InvalidRequest, TargetNotActionable))


async def test_a_read_only_field_is_not_written(on: Stage):
    entry = await _entry(on, "readonly", "Read only")
    await refused(on, SetValue(value="written"), entry, TargetNotActionable)
    assert on.app.command("get", control="readonly") == "fixed"


async def test_a_field_that_became_read_only_is_not_written(on: Stage):
    entry = await _entry(on, "name", "Name")
    on.app.command("editable", control="name", on=False)
    try:
        await refused(on, SetValue(value="written"), entry, TargetNotActionable)
    finally:
        on.app.command("editable", control="name", on=True)


async def test_a_secret_goes_into_no_plain_field(on: Stage):
    entry = await _entry(on, "name", "Name")
    error = await refused(on, SetValue(secret_ref="vault:r"), entry, TargetNotActionable, secret="gehe\u00efm")  # noqa: S106
    assert "gehe" not in str(error.to_value())
    field = await on.find(None, "password")
    await refused(on, SetValue(secret_ref="vault:r"), field, UnsupportedAction)  # noqa: S106 - not resolved
    await refused(on, SetValue(secret_ref="vault:r"), field, InvalidRequest, secret="a\x00b")  # noqa: S106


async def test_a_selection_beyond_the_text_is_refused(on: Stage):
    on.app.command("set_text", control="name", text="a😀 wörld €!")
    entry = await _entry(on, "name", "Name")
    for start, length in ((0, 12), (11, 1), (12, 0), (5, 500)):
        await refused(on, SelectText(start=start, length=length), entry, TargetNotActionable)


async def test_a_radio_button_is_not_turned_off_by_itself(on: Stage):
    if on.toolkit == "gtk4":
        pytest.skip("GTK 4.8 gives radio buttons no action")
    radio = await on.find("Low", "radio")
    assert on.actor.route(Toggle(to=False), on.surface, radio) is None
    await refused(on, Toggle(to=False), radio, UnsupportedAction)


async def test_text_that_is_silently_ignored_reads_back_unchanged(on: Stage):
    """Case C17: the actor says `done`, which claims an acknowledgement and nothing else."""
    entry = await _entry(on, "stubborn", "Stubborn")
    done = await on.act(SetValue(value="new"), entry)
    assert done.status == "done"
    read = await on.observer.text(on.surface.surface_id, entry.handle, 0, -1)
    assert read.text == "cannot change"


async def test_a_hung_application_is_refused_in_its_time_and_nothing_reaches_it_later(on: Stage):
    button = await on.find("Count", "button")
    attempt = on.begin(Invoke(), button)
    on.app.stop()
    try:
        async with asyncio.timeout(5):
            with pytest.raises(Unavailable):
                await on.actor.perform(attempt)
    finally:
        on.app.resume()
    assert not attempt.entered
    await on.app.settle()
    assert on.effects() == []
