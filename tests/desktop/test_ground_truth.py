"""Every kind of action on every toolkit, through the whole host: the application's own log shows exactly one effect.

The table is data. What a toolkit cannot do is in it too, with the typed refusal that must come instead; a test checks
that no kind of action is missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from surehand.model.actions import TARGET_KINDS
from surehand.testing.desktop import IsolatedDesktop
from surehand.testing.fixture_app import TOOLKITS, Toolkit
from tests.desktop.cases.conftest import app, hand, host, on  # noqa: F401 - fixtures
from tests.desktop.cases.kit import UNICODE, On, appears, named, person, until, window_of

pytestmark = pytest.mark.desktop
in_one_loop = pytest.mark.asyncio(loop_scope="module")

Filters = tuple[dict[str, Any], ...]
Effects = tuple[tuple[str, str, Any], ...]


@dataclass(frozen=True)
class Does:
    """The application's log shows exactly `effects` (of the named event and control only, where they are named)."""

    effects: Effects
    claims: str = "executed_unverified"
    event: str | None = None
    control: str | None = None


@dataclass(frozen=True)
class Cannot:
    """It is refused with this code, and the log shows nothing."""

    code: str = "unsupported_action"


@dataclass(frozen=True)
class Row:
    """One line of the table. `target` finds the element; `setup` are commands to the application."""

    name: str
    action: dict[str, Any]
    target: Filters
    on: dict[Toolkit, Does | Cannot]
    setup: tuple[dict[str, Any], ...] = ()
    front: bool = False


def everywhere(outcome: Does | Cannot) -> dict[Toolkit, Does | Cannot]:
    return dict.fromkeys(TOOLKITS, outcome)


def button(name: str) -> Filters:
    return named(name), {"role": "button"}


def role(name: str, *more: dict[str, Any]) -> Filters:
    return {"role": name}, *more


def text_field(text: str) -> Filters:
    """A field by what is in it: GTK 3 gives entries no name."""
    return {"role": "text"}, {"value": {"text": text}}


def state(name: str) -> dict[str, Any]:
    return {"state": {name: True}}


_SET_NAME = ({"cmd": "set_text", "control": "name", "text": "a name"},)
_FOCUS_NAME = (*_SET_NAME, {"cmd": "focus", "control": "name"}, {"cmd": "sync"})
_CLICK: Effects = (("canvas", "button-press", "middle"), ("canvas", "button-release", "middle"))
_TOP = ({"cmd": "set", "control": "scrolled", "value": 0},)

ROWS: tuple[Row, ...] = (
    Row("invoke", {"kind": "invoke"}, button("Count"), everywhere(Does((("press", "counter", "Count"),)))),
    Row(
        "invoke of a menu item",
        {"kind": "invoke"},
        role("menuitem", named("New")),
        {
            "gtk3": Does((("press", "menu", "New"),)),
            # Qt says of items of a closed menu and of hidden ones the same; see the test of menus below.
            "qt": Cannot("target_not_actionable"),
        },
    ),
    Row("invoke of a text", {"kind": "invoke"}, (named("Notes"), {"role": "text"}), everywhere(Cannot())),
    Row(
        "set_value of a text",
        {"kind": "set_value", "value": UNICODE},
        text_field("a name"),
        everywhere(Does((("text", "name", UNICODE),), "verified", "text", "name")),
        _SET_NAME,
    ),
    Row(
        "set_value of a slider",
        {"kind": "set_value", "value": "37"},
        (named("Volume"),),
        everywhere(Does((("value", "slider", 37),), "verified")),
        ({"cmd": "set", "control": "slider", "value": 50},),
    ),
    Row(
        "set_value of a spin button",
        {"kind": "set_value", "value": "37"},
        (named("Amount"),),
        everywhere(Does((("value", "spin", 37),), "verified")),
        ({"cmd": "set", "control": "spin", "value": 50},),
    ),
    Row(
        "set_value of what holds none",
        {"kind": "set_value", "value": "x"},
        button("Count"),
        everywhere(Cannot()),
    ),
    Row(
        "select_text",
        {"kind": "select_text", "start": 1, "length": 4},
        text_field("a name"),
        everywhere(Does((("selection", "name", [1, 5]),), "verified", "selection", "name")),
        _SET_NAME,
    ),
    Row(
        "select_option in a list",
        {"kind": "select_option", "option": "cherry"},
        (named("Fruit"), {"role": "list"}),
        everywhere(Does((("select", "fruit", "cherry"),), "verified", "select", "fruit")),
    ),
    Row(
        "select_option in a combo box",
        {"kind": "select_option", "option": "blue"},
        role("combobox", {"value": {"text": "red"}}),
        {
            "gtk3": Does((("select", "colour", "blue"),), "verified"),
            "gtk4": Does((("select", "colour", "blue"),), "verified"),
            "qt": Cannot(),
        },
    ),
    Row(
        "select_option in a combo box of Qt",
        {"kind": "select_option", "option": "blue"},
        role("combobox", named("red")),
        {"qt": Cannot()},  # its closed list ignores its items
    ),
    Row(
        "select_option in an older combo box of GTK 4",
        {"kind": "select_option", "option": "large"},
        role("combobox", named("Size")),
        {"gtk4": Cannot()},  # it tells no texts of its options
    ),
    Row(
        "select_option of a tab",
        {"kind": "select_option", "option": "Three"},
        role("tablist"),
        everywhere(Does((("select", "tabs", "Three"),), "verified")),
    ),
    Row(
        "toggle of a switch",
        {"kind": "toggle", "to": True},
        (named("Wi-Fi"),),
        everywhere(Does((("toggle", "switch", True),), "verified")),
        ({"cmd": "set", "control": "switch", "value": False},),
    ),
    Row(
        "toggle of a check box",
        {"kind": "toggle", "to": True},
        role("checkbox", named("Subscribe")),
        {
            "gtk3": Does((("toggle", "check", True),), "verified"),
            "gtk4": Cannot(),  # GTK 4.8 gives check boxes no action
            "qt": Does((("toggle", "check", True),), "verified"),
        },
        ({"cmd": "set", "control": "check", "value": False},),
    ),
    Row(
        "toggle that is there already",
        {"kind": "toggle", "to": True},
        (named("Wi-Fi"),),
        everywhere(Does((), "verified")),
        ({"cmd": "set", "control": "switch", "value": True},),
    ),
    Row(
        "expand of an expander",
        {"kind": "expand", "to": True},
        role("togglebutton", named("More")),
        {"gtk3": Does((("expand", "expander", True),), "verified")},
        ({"cmd": "set", "control": "expander", "value": False},),
    ),
    Row(
        "expand of a tree row",
        {"kind": "expand", "to": True},
        (named("Animals"), state("expandable")),
        {"gtk3": Does((("expand", "tree:Animals", True),), "verified", "expand"), "qt": Cannot()},
    ),
    Row(
        "expand of what cannot be expanded",
        {"kind": "expand", "to": True},
        button("Count"),
        everywhere(Cannot()),
    ),
    Row(
        "focus",
        {"kind": "focus"},
        button("Count"),
        {
            "gtk3": Does((("focus", "counter", None),), "verified", "focus"),
            "gtk4": Cannot(),  # GTK 4.8 answers NotSupported
            "qt": Does((("focus", "counter", None),), "verified", "focus"),
        },
        ({"cmd": "focus", "control": "later"}, {"cmd": "sync"}),
        front=True,
    ),
    Row(
        "perform",
        {"kind": "perform", "name": "activate"},
        role("cell", named("Gadget")),
        {"gtk3": Does((("activate", "table", "Gadget"),), event="activate")},
    ),
    Row(
        "perform in GTK 4",
        {"kind": "perform", "name": "selection.select-all"},
        (named("Notes"), {"role": "text"}),
        {"gtk4": Does((("selection", "notes", [0, 9]),), event="selection", control="notes")},
        ({"cmd": "set_text", "control": "notes", "text": "all of it"},),
    ),
    Row(
        "perform in Qt",
        {"kind": "perform", "name": "Increase"},
        role("slider", named("Volume")),
        {"qt": Does((("value", "slider", 51),))},
        ({"cmd": "set", "control": "slider", "value": 50},),
    ),
    Row(
        "perform of what is not advertised",
        {"kind": "perform", "name": "self-destruct"},
        button("Count"),
        everywhere(Cannot()),
    ),
    Row(
        "scroll with the wheel",
        {"kind": "scroll", "direction": "down", "amount_milli": 3000},
        (named("Canvas"),),
        {
            "gtk3": Does((("wheel", "raw", "down"),), event="wheel"),
            "gtk4": Does((("wheel", "raw", "down"),), event="wheel"),
            "qt": Does((("wheel", "raw", "down"),), event="wheel"),
        },
        front=True,
    ),
    Row(
        "scroll_into_view",
        {"kind": "scroll_into_view"},
        button("Item 30"),
        everywhere(Does((("scroll", "scrolled", "somewhere"),), "verified", "scroll")),
        _TOP,
    ),
    Row("click", {"kind": "click"}, button("Count"), everywhere(Does((("press", "counter", "Count"),))), front=True),
    Row(
        "click on a canvas",
        {"kind": "click"},
        (named("Canvas"),),
        everywhere(Does(_CLICK)),
        front=True,
    ),
    Row(
        "click twice on a canvas",
        {"kind": "click", "count": 2},
        (named("Canvas"),),
        {
            # GTK 3 tells of the second press twice: as a press and as a double click.
            "gtk3": Does((*_CLICK, _CLICK[0], *_CLICK), event="canvas"),
            "gtk4": Does(_CLICK * 2, event="canvas"),
            "qt": Does(_CLICK * 2, event="canvas"),
        },
        front=True,
    ),
    Row(
        "hover",
        {"kind": "hover"},
        (named("Canvas"),),
        everywhere(Does((("canvas", "motion-notify", "middle"),), control="motion-notify")),
        front=True,
    ),
    Row(
        "move",
        {"kind": "move"},
        (named("Canvas"),),
        everywhere(Does((("canvas", "motion-notify", "middle"),), control="motion-notify")),
        front=True,
    ),
    Row(
        "type_text",
        {"kind": "type_text", "text": "yz@ß€"},
        role("text", state("focused")),
        everywhere(Does((("text", "name", "yz@ß€"),), "verified", "text", "name")),
        ({"cmd": "set_text", "control": "name", "text": ""}, {"cmd": "focus", "control": "name"}, {"cmd": "sync"}),
        front=True,
    ),
    Row(
        "press",
        {"kind": "press", "chords": ["End", "BackSpace"]},
        text_field("a name"),
        everywhere(Does((("text", "name", "a nam"),), event="text", control="name")),
        _FOCUS_NAME,
        front=True,
    ),
)

#: Kinds that nothing here can do yet, and how each is aimed. They must say so and do nothing.
NOT_HERE: dict[str, tuple[dict[str, Any], str]] = {
    "paste": ({"kind": "paste", "text": "x"}, "surface"),
    "screenshot": ({"kind": "screenshot"}, "surface"),
    "open": ({"kind": "open", "uri": "file:///etc/hostname"}, "none"),
    "clipboard": ({"kind": "clipboard", "op": "write", "text": "x"}, "none"),
    "navigate": ({"kind": "navigate", "url": "http://127.0.0.1/"}, "surface"),
    "history": ({"kind": "history", "op": "back"}, "surface"),
    "tab": ({"kind": "tab", "op": "close"}, "surface"),
    "upload": ({"kind": "upload", "paths": ["/etc/hostname"]}, "element"),
    "dialog": ({"kind": "dialog", "op": "accept"}, "surface"),
}
#: Kinds with a test of their own below.
ALONE = frozenset({"hold", "release", "drag", "window", "app", "abort", "physical_state"})


def test_the_table_leaves_no_kind_of_action_out() -> None:
    assert {row.action["kind"] for row in ROWS} | set(NOT_HERE) | ALONE == set(TARGET_KINDS)


#: Events that a toolkit also sends for its steps on the way; the effect is the last of them, and comes once.
_IN_STEPS = frozenset({"text", "selection", "select", "expand"})
_AT = ("canvas", "motion-notify", "middle")
CELLS = [pytest.param(row, id=row.name.replace(" ", "-")) for row in ROWS]


def _same(seen: tuple[str, str, Any], wanted: tuple[str, str, Any], middle: tuple[int, int]) -> bool:
    """Compare one event; places and wheel steps are told differently by each toolkit."""
    if seen[:2] != wanted[:2]:
        return False
    match wanted[2]:
        case "middle":
            return all(abs(a - b) <= 3 for a, b in zip(seen[2], middle, strict=True))
        case "down":
            return bool(seen[2][0] == "down" or seen[2][:2] == [0, 1.0] or seen[2][1] < 0)
        case "somewhere":
            return bool(seen[2] > 0)
        case value:
            return bool(seen[2] == value)


@in_one_loop
@pytest.mark.parametrize("row", CELLS)
async def test_the_log_shows_exactly_what_was_done(on: On, row: Row, desktop: IsolatedDesktop) -> None:  # noqa: F811 - a fixture
    outcome = row.on.get(on.app.toolkit)
    if outcome is None:
        pytest.skip("this toolkit has no such element")
    if row.front:
        await on.place(20, 30)
        await on.focus_window()
        # Through the window and out of it: Qt tells of no movement to where it saw the pointer last.
        person(desktop, "xdotool", "mousemove", "400", "300", "mousemove", "5", "5")
    for command in row.setup:
        await on.change(**command)
    target = await on.one(*row.target)
    if isinstance(outcome, Cannot):
        await on.refused(outcome.code, row.action, target)
        return
    await on.done(outcome.claims, row.action, target)
    await on.app.settle()
    _, _, width, height = target.get("bounds", (0, 0, 0, 0))
    middle = (width // 2, height // 2)
    seen, wanted = counted(on, outcome), list(outcome.effects)
    if outcome.event in _IN_STEPS or outcome.control == "motion-notify":
        matching = [one for one in seen if _same(one, wanted[0], middle)]
        assert len(matching) == 1, seen
        assert matching == seen[-1:], seen
    else:
        assert len(seen) == len(wanted), (seen, on.events())
        assert all(_same(*pair, middle) for pair in zip(seen, wanted, strict=True)), seen


def counted(on: On, outcome: Does) -> list[tuple[str, str, Any]]:  # noqa: F811 - the fixture's type
    """Return the events that count for an outcome."""
    found = on.effects(outcome.event)
    if outcome.control is not None:
        return [one for one in found if one[1] == outcome.control and one[2] is not None]
    return [
        one
        for one in found
        if one[1] != "motion-notify" and (outcome.event is None or one[2] is not None or one[0] == "focus")
    ]


# --- kinds that need more than one step or leave more than the application's log --------------------------------------


@in_one_loop
async def test_hold_and_release_are_one_press_and_one_release(on: On) -> None:  # noqa: F811 - a fixture
    await on.place(20, 30)
    await on.focus_window()
    await on.done("executed_unverified", {"kind": "hold"}, await on.one(named("Canvas")))
    mark = on.mark
    await on.done("executed_unverified", {"kind": "release"}, {"kind": "none"})
    await on.app.settle()
    on.mark = mark
    buttons = [one[1] for one in on.effects("canvas") if one[1] != "motion-notify"]
    assert buttons == ["button-press", "button-release"]


@in_one_loop
async def test_abort_lets_go_and_is_told_to_the_application_as_one_release(on: On) -> None:  # noqa: F811 - a fixture
    await on.place(20, 30)
    await on.focus_window()
    await on.done("executed_unverified", {"kind": "hold"}, await on.one(named("Canvas")))
    mark = on.mark
    await on.done("executed_unverified", {"kind": "abort"}, {"kind": "none"})
    reply = await on.done("executed_unverified", {"kind": "physical_state"}, {"kind": "none"})
    assert reply["output"]["held"] == reply["output"]["buttons"] == []
    await on.app.settle()
    on.mark = mark
    buttons = [one[1] for one in on.effects("canvas") if one[1] != "motion-notify"]
    assert buttons == ["button-press", "button-release"]


@in_one_loop
@pytest.mark.parametrize("start", ["element", "point"])
async def test_drag_is_one_press_at_its_start_and_one_release_at_its_end(on: On, start: str) -> None:  # noqa: F811
    await on.place(20, 30)
    await on.focus_window()
    canvas = await on.one(named("Canvas"))
    x, y, width, height = canvas["bounds"]
    taken = (await on.hand.call("screenshot", surface=on.surface))["capture"]

    def at(right: int, down: int) -> dict[str, Any]:
        place = {"x": x + right - taken["origin_x"], "y": y + down - taken["origin_y"]}
        return {"kind": "point", "space": "screenshot", "capture_id": taken["capture_id"], **place}

    begins = at(width // 2, height // 2) if start == "point" else canvas
    await on.done("executed_unverified", {"kind": "drag", "path": [at(20, 30)], "to": at(30, 20)}, begins)
    await on.app.settle()
    moves = [one for one in on.effects("canvas") if one[1] == "motion-notify"]
    press, release = [one for one in on.effects("canvas") if one[1] != "motion-notify"]
    middle = (width // 2, height // 2)
    assert _same(press, ("canvas", "button-press", "middle"), middle)
    assert _same(release, ("canvas", "button-release", "middle"), (30, 20))
    # GTK takes in one movement a frame; on a busy machine that is not the one to the middle of the path.
    assert any(_same(one, _AT, (20, 30)) for one in moves) if on.app.toolkit == "qt" else moves


@in_one_loop
async def test_a_window_is_moved_resized_and_put_away_as_told(on: On, desktop: IsolatedDesktop) -> None:  # noqa: F811
    def geometry() -> dict[str, str]:
        lines = person(desktop, "xdotool", "search", "--name", f"^{on.app.title}$", "getwindowgeometry", "--shell")
        return dict(line.split("=") for line in lines.splitlines())

    for x, y in ((60, 50), (20, 30)):
        await on.place(x, y)
    before = geometry()
    await on.done("executed_unverified", {"kind": "window", "op": "move", "x": 70, "y": 90}, window_of(on.surface))
    after = geometry()
    assert (int(after["X"]) - int(before["X"]), int(after["Y"]) - int(before["Y"])) == (50, 60)
    for op, shown in (("minimize", "1"), ("focus", "0")):
        reply = await on.act({"kind": "window", "op": op}, window_of(on.surface))
        assert reply["status"] == "succeeded", reply
        states = person(desktop, "xprop", "-id", after["WINDOW"], "_NET_WM_STATE")
        assert ("_NET_WM_STATE_HIDDEN" in states) == (shown == "1")


@in_one_loop
async def test_a_window_is_asked_once_to_close(on: On) -> None:  # noqa: F811 - a fixture
    await on.change("dialog_open", modal=True)
    dialog = await on.hand.window(on.app.pid, "Question")
    reply = await on.act({"kind": "window", "op": "close"}, window_of(dialog))
    assert reply["status"] in {"succeeded", "outcome_unknown"}, reply
    await on.app.settle()
    assert on.effects("dialog") == [("dialog", "dialog", "delete")]


@in_one_loop
async def test_a_program_is_launched_once(on: On, desktop: IsolatedDesktop) -> None:  # noqa: F811 - a fixture
    trace = desktop.folder / "home" / f"launched-{on.app.toolkit}"
    code = f"open({str(trace)!r}, 'a').write('x')"
    launch = {"kind": "app", "op": "launch", "name": "/usr/bin/python3", "arguments": ["-c", code]}
    request = await on.hand.request(launch, {"kind": "none"})
    for replayed in (False, True):
        reply = await on.hand.present(request)
        assert reply["status"] == "succeeded", reply
        assert reply.get("replayed", False) is replayed
    await until(lambda: trace.exists() and trace.read_text() == "x", "one launch")


@in_one_loop
async def test_a_menu_is_opened_and_its_item_pressed_once(on: On, desktop: IsolatedDesktop) -> None:  # noqa: F811
    """What a closed menu does not offer is reached as a person does it."""
    if on.app.toolkit == "gtk4":
        opens, name = await on.one(named("Options"), {"role": "button"}, {"capability": "invoke"}), "Alpha"
    else:
        opens, name = await on.one(named("File"), {"capability": "perform"}), "New"
    how = {"kind": "perform", "name": "ShowMenu"} if on.app.toolkit == "qt" else {"kind": "invoke"}
    await on.done("verified", how, opens, verification=appears(named(name), {"role": "menuitem"}, state("showing")))
    await on.act({"kind": "invoke"}, await on.one(named(name), {"role": "menuitem"}))
    await on.app.settle()
    assert on.effects("press") == [("press", "menu", name)]
    person(desktop, "xdotool", "key", "Escape")  # Qt leaves it open


@in_one_loop
async def test_an_older_combo_box_of_gtk4_is_chosen_from_with_keys(on: On) -> None:  # noqa: F811 - a fixture
    """Its options have no names, open or closed."""
    if on.app.toolkit != "gtk4":
        pytest.skip("only GTK 4 has two kinds")
    await on.change("set", control="size", value="small")
    inside = {"relation": "descendant", "to": {"filters": [*role("combobox", named("Size"))]}}
    button = await on.one({"role": "button"}, inside)
    await on.act({"kind": "invoke"}, button)
    await on.app.settle()
    await on.act({"kind": "press", "chords": ["Down", "Return"]}, window_of(on.surface))
    await on.app.settle()
    assert on.effects() == [("select", "size", "same")]


@in_one_loop
@pytest.mark.parametrize("kind", sorted(NOT_HERE))
async def test_what_nothing_here_can_do_is_said_and_not_done(on: On, kind: str) -> None:  # noqa: F811 - a fixture
    action, aim = NOT_HERE[kind]
    targets = {"surface": window_of(on.surface), "none": {"kind": "none"}}
    await on.refused("unsupported_action", action, targets.get(aim) or await on.button("Count"))
