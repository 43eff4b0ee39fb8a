"""The maintained tree against an application that is as hostile as it likes."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from dbus_fast import Variant

from surehand import limits
from surehand.adapters.atspi import entries, events
from surehand.adapters.atspi.calls import CACHE, ROOT_PATH
from surehand.adapters.atspi.geometry import AS_IS
from surehand.adapters.atspi.live import LiveReader
from surehand.adapters.atspi.profile import OTHER, QT5
from surehand.adapters.atspi.reading import Reader
from surehand.adapters.atspi.transport import Signal, connect
from surehand.adapters.atspi.tree import ApplicationSilent, ApplicationTree

from .fake_app import SHOWING, FakeApp
from .peers import private_bus


@pytest.fixture(scope="module")
def bus():
    with private_bus() as (address, _):
        yield address


@pytest.fixture
async def stage(bus):
    """A fake application, the connection to it, and a way to make trees of it."""
    app = FakeApp()
    await app.start(bus)
    connection = await connect(bus, hello=True)
    yield app, lambda profile=OTHER: ApplicationTree(app.owner, app.channel(connection), profile)
    connection.close()
    app.stop()


async def served(tree):
    await tree.refresh_windows()
    await tree.refresh("/w")
    return tree.build("/w", AS_IS)


def names(built):
    return [node.name for node in built.nodes]


def handles(app, built):
    return [node.handle.removeprefix(app.owner) for node in built.nodes]


# --- bounds -----------------------------------------------------------------------------------------------------


async def test_nodes_at_the_limit_are_all_there_and_one_past_it_is_said(stage, monkeypatch):
    app, tree_of = stage
    for number in range(8):
        app.add("/w", f"/n{number}", "label", f"n{number}")
    monkeypatch.setattr(limits, "SCENE_NODES_MAX", 10)  # root, window, eight labels
    built = await served(tree_of())
    assert (len(built.nodes), built.complete) == (9, True)
    app.add("/w", "/n8", "label", "n8")
    built = await served(tree_of())
    assert (len(built.nodes), built.complete) == (9, False)


async def test_depth_at_the_limit_is_read_and_one_past_it_is_said(stage):
    app, tree_of = stage
    above = "/w"
    for level in range(1, limits.SCENE_DEPTH_MAX):
        app.add(above, f"/d{level}", "panel")
        above = f"/d{level}"
    built = await served(tree_of())
    assert (len(built.nodes), built.complete) == (limits.SCENE_DEPTH_MAX, True)
    app.add(above, "/deep", "panel")
    built = await served(tree_of())
    assert (len(built.nodes), built.complete) == (limits.SCENE_DEPTH_MAX, False)


async def test_a_list_beyond_the_limit_is_read_by_index_and_never_whole(stage, monkeypatch):
    monkeypatch.setattr(limits, "CHILDREN_READ_MAX", 10)
    app, tree_of = stage
    app.add("/w", "/list", "list")
    for number in range(10):
        app.add("/list", f"/i{number}", "item", f"i{number}")
    built = await served(tree_of())
    assert (len(built.nodes), built.complete, app.calls["/list", "GetChildren"]) == (12, True, 1)
    app.add("/list", "/i10", "item", "i10")
    app.calls.clear()
    built = await served(tree_of())
    assert names(built)[-1] == "i9"
    assert (len(built.nodes), built.complete, app.calls["/list", "GetChildren"]) == (12, False, 0)


async def test_a_name_beyond_the_limit_is_cut_and_marked(stage):
    app, tree_of = stage
    app.add("/w", "/a", "button", "x" * (limits.FIELD_BYTES_STORED_MAX + 1))
    built = await served(tree_of())
    assert len(built.nodes[1].name.encode()) == limits.FIELD_BYTES_STORED_MAX
    assert built.nodes[1].name.endswith("…")


@pytest.mark.parametrize("profile", [OTHER, QT5._replace(range_clamps=True)])
async def test_a_text_beyond_the_limit_is_cut_and_its_length_is_known(stage, profile):
    app, tree_of = stage
    app.add("/w", "/t", "text", text="y" * 5000, interfaces=("Text",))
    node = (await served(tree_of(profile))).nodes[1]
    assert node.text_chars == 5000
    assert len(node.value.encode()) <= limits.FIELD_BYTES_STORED_MAX
    assert node.value.endswith("y…")


# --- hostile structure ------------------------------------------------------------------------------------------


async def test_a_child_of_another_application_is_refused_and_said(stage):
    app, tree_of = stage
    app.add("/w", "/mine", "button", "mine")
    app.add("/w", "/theirs", "button", "theirs")
    app.foreign["/theirs"] = ":1.999"
    built = await served(tree_of())
    assert names(built) == ["Window", "mine"]
    assert not built.complete
    assert built.nodes[0].incomplete


async def test_circles_and_doubles_end(stage):
    app, tree_of = stage
    app.add("/w", "/a", "panel", "a")
    app.add("/a", "/b", "panel", "b")
    app.objects["/b"].children += ["/a", "/w", "/b", ROOT_PATH]
    app.objects["/w"].children += ["/a", "/b"]
    built = await served(tree_of())
    assert sorted(names(built)) == ["Window", "a", "b"]
    assert not built.complete


# --- trouble ----------------------------------------------------------------------------------------------------


async def test_an_object_that_never_answers_costs_itself_once(stage):
    app, tree_of = stage
    app.add("/w", "/bad", "button", "bad")
    app.add("/w", "/good", "button", "good")
    app.mute.add(("/bad", "Name"))
    tree = tree_of()
    built = await served(tree)
    bad, good = built.nodes[1:]
    assert (bad.name, bad.incomplete, good.name, good.incomplete) == ("", True, "good", False)
    assert not built.complete
    asked = app.calls["/bad", "Name"]
    tree.doubt_all()
    await served(tree)
    assert app.calls["/bad", "Name"] == asked


async def test_a_silent_application_is_said_and_served_again_when_it_answers(stage):
    app, tree_of = stage
    app.add("/w", "/a", "button", "a")
    tree = tree_of()
    first = await served(tree)
    app.silent = True
    tree.doubt("/a", entries.NAME)
    with pytest.raises(ApplicationSilent):
        await tree.refresh("/w")
    app.silent = False
    app.objects["/a"].name = "b"
    assert names(await served(tree)) == ["Window", "b"], "what was in doubt stayed in doubt"
    assert names(first) == ["Window", "a"]


async def test_a_read_that_is_cancelled_leaves_everything_it_asked_in_doubt(stage):
    app, tree_of = stage
    for number in range(4):
        app.add("/w", f"/n{number}", "slider", f"n{number}", value=1, interfaces=("Value", "Action"))
    for steps in range(1, 30):  # cancelled later and later, at whatever it was waiting for
        tree = tree_of()
        reading = asyncio.create_task(served(tree))
        for _ in range(steps):
            await asyncio.sleep(0)
        reading.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await reading
        built = await served(tree)
        assert [(node.name, node.value, node.actions) for node in built.nodes[1:]] == [
            (f"n{number}", "1", ("click", "press")) for number in range(4)
        ]
        assert built.complete


async def test_dead_nodes_go_in_the_same_refresh_and_cost_no_time_out(stage):
    app, tree_of = stage
    app.add("/w", "/list", "panel")
    for number in range(50):
        app.add("/list", f"/i{number}", "item", f"i{number}")
    tree = tree_of()
    assert len((await served(tree)).nodes) == 52
    for number in range(0, 50, 2):
        app.remove("/list", f"/i{number}")
    tree.doubt_subtree("/list", entries.NAME)  # names are asked of objects that are gone; nobody told that they are
    built = await served(tree)
    assert names(built)[2:] == [f"i{number}" for number in range(1, 50, 2)]
    assert built.complete


async def test_a_listed_object_that_refuses_is_kept_and_marked_and_asked_again_each_time(stage):
    app, tree_of = stage
    app.objects["/w"].children.append("/ghost")
    tree = tree_of()
    built = await served(tree)
    assert [node.incomplete for node in built.nodes] == [False, True]
    asked = app.calls["/ghost", "GetRole"]
    app.objects["/ghost"] = app.objects["/w"].__class__("button", "real")
    built = await served(tree)
    assert names(built) == ["Window", "real"]
    assert built.complete
    assert app.calls["/ghost", "GetRole"] == asked + 1


# --- secrets ----------------------------------------------------------------------------------------------------


async def test_a_secret_is_never_asked_for_nor_anything_in_it(stage):
    app, tree_of = stage
    app.add("/w", "/pw", "password", "Pin", text="s3cret", interfaces=("Text", "Value"))
    app.add("/pw", "/inner", "text", text="s3cret", value=7, interfaces=("Text", "Value"))
    tree = tree_of()
    built = await served(tree)
    assert [(n.secret, n.value, n.text_chars) for n in built.nodes[1:]] == [(True, None, None)] * 2
    live = (await LiveReader(tree).read(["/pw", "/inner"])).nodes(AS_IS)
    assert [(n.node.secret, n.node.value) for n in live.values()] == [(True, None)] * 2
    assert (app.count("GetText"), app.count("CharacterCount"), app.count("CurrentValue")) == (0, 0, 0)
    assert "s3cret" not in repr(built)


async def test_a_text_that_becomes_a_secret_is_forgotten(stage):
    app, tree_of = stage
    app.add("/w", "/t", "text", text="s3cret", interfaces=("Text",))
    tree = tree_of()
    assert (await served(tree)).nodes[1].value == "s3cret"
    app.objects["/t"].role = "password"
    events.take(app.signal("/t", "PropertyChange", "accessible-role"), tree)
    built = await served(tree)
    assert (built.nodes[1].secret, built.nodes[1].value, built.nodes[1].text_chars) == (True, None, None)
    assert tree.entries["/t"].text is None


async def test_a_text_of_mask_characters_is_a_secret_whatever_its_role(stage):
    app, tree_of = stage
    app.add("/w", "/t", "text", text="●●●●", interfaces=("Text",))
    node = (await served(tree_of())).nodes[1]
    assert (node.role, node.secret, node.value, node.text_chars) == ("password", True, None, None)


# --- events -----------------------------------------------------------------------------------------------------


async def test_an_event_reads_what_it_names_and_nothing_else(stage):
    app, tree_of = stage
    for name in "abc":
        app.add("/w", f"/{name}", "button", name)
    tree = tree_of()
    first = await served(tree)
    app.calls.clear()
    app.objects["/b"].name = "B"
    assert events.take(app.signal("/b", "PropertyChange", "accessible-name"), tree) == "content"
    second = await served(tree)
    assert dict(app.calls) == {("/b", "Name"): 1}
    assert names(second) == ["Window", "a", "B", "c"]
    assert second.version == first.version + 1
    assert [one is two for one, two in zip(first.nodes, second.nodes, strict=True)] == [True, True, False, True]


async def test_an_event_that_changes_nothing_gives_the_same_tree(stage):
    app, tree_of = stage
    app.add("/w", "/a", "button", "a")
    tree = tree_of()
    first = await served(tree)
    for member, detail in (("StateChanged", "focused"), ("PropertyChange", "accessible-name"), ("TextChanged", "")):
        events.take(app.signal("/a", member, detail), tree)
    assert await served(tree) is first
    assert await served(tree) is first


async def test_a_flood_of_events_costs_one_read(stage):
    app, tree_of = stage
    app.add("/w", "/a", "button", "a")
    tree = tree_of()
    await served(tree)
    app.calls.clear()
    for _ in range(1000):
        events.take(app.signal("/a", "PropertyChange", "accessible-name"), tree)
        events.take(app.signal("/a", "StateChanged", "focused"), tree)
    await served(tree)
    assert dict(app.calls) == {("/a", "Name"): 1, ("/a", "GetState"): 1}


async def test_a_place_that_is_signalled_again_without_moving_costs_nothing(stage):
    app, tree_of = stage
    app.add("/w", "/box", "panel")
    app.add("/box", "/a", "button", "a")
    app.add("/box", "/b", "button", "b")
    app.add("/w", "/far", "button", "far")
    tree = tree_of()
    await served(tree)

    def moved(x):
        place = Variant("(iiii)", [x, 0, 10, 10])
        return Signal(app.owner, "/a", events.OBJECT, "BoundsChanged", ["", 0, 0, place, {}])

    app.calls.clear()
    assert events.take(moved(1), tree) == "content"
    await served(tree)
    assert set(app.calls) == {("/a", "GetExtents")}, "a first signal has nothing to be compared with"
    assert tree.moved == 0
    app.calls.clear()
    for _ in range(1000):
        assert events.take(moved(1), tree) == "content"
    await served(tree)
    assert not app.calls
    assert events.take(moved(2), tree) == "layout"
    await served(tree)
    assert set(app.calls) == {(path, "GetExtents") for path in ("/box", "/a", "/b")}, "and what stands beside it"


async def test_what_is_elsewhere_after_its_first_signal_counts_as_moved_with_what_stands_beside_it(stage):
    app, tree_of = stage
    app.add("/w", "/box", "panel")
    app.add("/box", "/a", "button", "a")
    app.add("/box", "/b", "button", "b")
    app.add("/w", "/far", "button", "far")
    tree = tree_of()
    await served(tree)
    app.calls.clear()
    app.extents["/a"] = [50, 2, 30, 40]
    place = Variant("(iiii)", [49, 0, 30, 40])
    events.take(Signal(app.owner, "/a", events.OBJECT, "BoundsChanged", ["", 0, 0, place, {}]), tree)
    built = await served(tree)
    assert tree.moved == 1
    assert [node.bounds[0] for node in built.nodes if node.name == "a"] == [50]
    assert {path for path, member in app.calls if member == "GetExtents"} == {"/box", "/a", "/b"}


async def test_inserted_removed_and_moved_children_are_followed(stage):
    app, tree_of = stage
    app.add("/w", "/left", "panel", "left")
    app.add("/w", "/right", "panel", "right")
    app.add("/left", "/x", "button", "x")
    tree = tree_of()
    first = await served(tree)
    app.objects["/left"].children.remove("/x")
    app.objects["/right"].children.append("/x")
    events.take(app.signal("/x", "PropertyChange", "accessible-parent"), tree)
    second = await served(tree)
    assert names(second) == ["Window", "left", "right", "x"]
    assert second.parents == (-1, 0, 0, 2)
    assert second.version == first.version + 1
    app.remove("/right", "/x")
    events.take(app.signal("/x", "StateChanged", "defunct"), tree)
    assert names(await served(tree)) == ["Window", "left", "right"]
    assert "/x" not in tree.entries


async def test_an_unknown_object_that_speaks_makes_its_nearest_known_ancestor_be_read(stage):
    app, tree_of = stage
    app.add("/w", "/list", "panel", "list")
    tree = tree_of()
    await served(tree)
    app.add("/list", "/row", "item", "row")
    app.add("/row", "/label", "label", "label")
    events.take(app.signal("/label", "StateChanged", "showing"), tree)
    assert names(await served(tree)) == ["Window", "list", "row", "label"]


async def test_an_object_that_the_cache_announces_is_found_and_its_removal_too(stage):
    app, tree_of = stage
    tree = tree_of()
    await served(tree)
    app.add("/w", "/new", "button", "new")
    row = ((app.owner, "/new"), (app.owner, ROOT_PATH), (app.owner, "/w"), 0, 0, [], "new", 43, "", [0, 0])
    events.take(Signal(app.owner, "/org/a11y/atspi/cache", CACHE, "AddAccessible", [row]), tree)
    assert names(await served(tree)) == ["Window", "new"]
    app.calls.clear()
    events.take(Signal(app.owner, "/org/a11y/atspi/cache", CACHE, "AddAccessible", [row]), tree)
    await served(tree)
    assert not app.calls, "an object that is known and in its place needs no read"
    app.remove("/w", "/new")
    gone = Signal(app.owner, "/org/a11y/atspi/cache", CACHE, "RemoveAccessible", [(app.owner, "/new")])
    events.take(gone, tree)
    assert names(await served(tree)) == ["Window"]


async def test_what_is_announced_while_we_look_is_believed_unless_it_changed_since(stage):
    app, tree_of = stage
    tree = tree_of()
    await served(tree)
    app.add("/w", "/kept", "button", "kept")
    app.add("/w", "/changed", "button", "now")

    def announce():
        for path, name in (("/kept", "kept"), ("/changed", "then")):
            row = ((app.owner, path), (app.owner, ROOT_PATH), (app.owner, "/w"), 0, 0, [], name, 43, "", [0, 0])
            events.take(Signal(app.owner, "/org/a11y/atspi/cache", CACHE, "AddAccessible", [row]), tree)
        events.take(app.signal("/changed", "PropertyChange", "accessible-name"), tree)

    app.hooks["/w", "GetChildren"] = announce
    tree.doubt("/w", entries.CHILDREN)
    assert names(await served(tree)) == ["Window", "kept", "now"]
    assert app.calls["/kept", "Name"] == 0
    assert app.calls["/changed", "Name"] == 1


def test_an_entry_that_becomes_a_password_holds_no_text_from_then_on():
    entry = entries.Entry("/t", "/w")
    reader = Reader(":1.1", None, OTHER, {}, lambda *_: None)
    reader.set_role(entry, 61)
    entry.text, entry.text_chars, entry.value = "s3cret", 6, 7.0
    reader.set_role(entry, 40)
    assert (entry.text, entry.text_chars, entry.value) == (None, None, None)


@pytest.mark.parametrize("body", [[], [7], [None], [["x"]], ["showing"], [Variant("s", "x"), 1]])
@pytest.mark.parametrize("member", ["StateChanged", "PropertyChange", "ChildrenChanged", "AddAccessible", "Nonsense"])
async def test_malformed_signals_harm_nothing(stage, member, body):
    app, tree_of = stage
    tree = tree_of()
    first = await served(tree)
    for interface in (events.OBJECT, events.WINDOW, events.DOCUMENT, CACHE, "org.example.X"):
        for path in ("/w", "/nowhere"):
            events.take(Signal(app.owner, path, interface, member, body), tree)
    assert await served(tree) == first


# --- structure --------------------------------------------------------------------------------------------------


async def test_cells_know_their_row_and_column_between_headers(stage):
    app, tree_of = stage
    app.add("/w", "/t", "table", columns=2, interfaces=("Table",))
    for path, role in (
        ("/h0", "column header"), ("/h1", "column header"), ("/c0", "cell"), ("/c1", "cell"), ("/c2", "cell"),
    ):  # fmt: skip
        app.add("/t", path, role)
    built = await served(tree_of())
    places = [(node.row, node.column) for node in built.nodes[2:]]
    assert places == [(None, 0), (None, 1), (0, 0), (0, 1), (1, 0)]
    assert "Table" in app.objects["/t"].interfaces


async def test_a_combo_box_shows_the_selected_item_of_its_list(stage):
    app, tree_of = stage
    app.add("/w", "/c", "combo box", "Colour")
    app.add("/c", "/l", "list")
    app.add("/l", "/red", "item", "red")
    app.add("/l", "/blue", "item", "blue", states=SHOWING | 1 << 23)
    built = await served(tree_of())
    assert built.nodes[1].value == "blue"


# --- live -------------------------------------------------------------------------------------------------------


async def test_live_sees_what_no_signal_told_and_the_tree_does_not_move(stage):
    app, tree_of = stage
    app.add("/w", "/a", "button", "Pay 10")
    tree = tree_of()
    first = await served(tree)
    app.objects["/a"].name = "Pay 9999"
    app.objects["/a"].states = SHOWING & ~(1 << 8)
    live = ((await LiveReader(tree).read(["/a"])).nodes(AS_IS))["/a"]
    assert (live.node.name, live.parent) == ("Pay 9999", app.owner + "/w")
    assert "enabled" not in live.node.states
    assert await served(tree) is first


async def test_live_says_none_of_the_dead_and_of_what_never_was(stage):
    app, tree_of = stage
    app.add("/w", "/a", "button", "a")
    tree = tree_of()
    await served(tree)
    app.remove("/w", "/a")
    live = (await LiveReader(tree).read(["/a", "/w", "/never"])).nodes(AS_IS)
    assert live["/a"] is None
    assert live["/never"] is None
    assert live["/w"].parent == ""


async def test_live_equals_what_is_served_when_nothing_changed(stage):
    app, tree_of = stage
    app.add("/w", "/t", "text", "Name", text="some text", interfaces=("Text", "EditableText"))
    app.add("/w", "/s", "slider", "Volume", value=2.5, interfaces=("Value",))
    tree = tree_of()
    built = await served(tree)
    live = (await LiveReader(tree).read(handles(app, built))).nodes(AS_IS)
    assert [live[path].node for path in handles(app, built)] == list(built.nodes)
    app.objects["/t"].facts["text"] = "a much longer text than before"
    changed = ((await LiveReader(tree).read(["/t"])).nodes(AS_IS))["/t"]
    assert changed.node.value == "a much longer text than before"


async def test_live_asks_everything_in_one_batch_when_nothing_changed(stage):
    app, tree_of = stage
    for name in "abcd":
        app.add("/w", f"/{name}", "button", name)
    tree = tree_of()
    await served(tree)
    batches = []
    channel = tree.reader.channel
    original = channel.connection.start_many

    def counted(calls, **options):
        batches.append(len(calls))
        return original(calls, **options)

    channel.connection.start_many = counted
    (await LiveReader(tree).read(["/a", "/b", "/c", "/d"])).nodes(AS_IS)
    assert len(batches) == 1


async def test_of_what_is_around_only_what_a_fence_compares_is_asked(stage):
    app, tree_of = stage
    app.add("/w", "/box", "panel", "Card")
    app.add("/box", "/a", "button", "Pay")
    tree = tree_of()
    await served(tree)
    app.calls.clear()
    app.objects["/box"].name = "Bill"
    live = (await LiveReader(tree).read(["/a"], around=["/box", "/w"])).nodes(AS_IS)
    found = [(node.node.role, node.node.name) for node in live.values()]
    assert found == [("button", "Pay"), ("group", "Bill"), ("window", "Window")]
    assert {path for path, member in app.calls if member == "GetExtents"} == {"/a"}
    assert {path for path, member in app.calls if member == "GetState"} == {"/a", "/box", "/w"}
