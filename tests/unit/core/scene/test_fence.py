"""The right thing or nothing: references, the two fences, modal windows (spec §8.3; cases C01-C05, C10)."""

from __future__ import annotations

import msgspec
import pytest

from surehand import limits
from surehand.core.scene.fence import (
    SceneView,
    blocking_modal,
    check_fence,
    check_modal,
    check_reference,
    fence_handles,
    reference,
)
from surehand.errors import (
    BehindModal,
    InvalidRequest,
    StaleTarget,
    SurehandError,
    TargetNotActionable,
    TargetNotFound,
)
from surehand.model.scene import LiveNode
from tests.scene_kit import VISIBLE, El, Watcher, place, read, surface


class People:
    """A list of people, each with an Open and a Delete button."""

    def __init__(self, *names: str) -> None:
        self.names = [El("label", name) for name in names]
        self.opens = [El("button", "Open") for _ in names]
        self.deletes = [El("button", "Delete") for _ in names]
        self.rows = [
            El("listitem", "", name, El("filler", "", open_, delete))
            for name, open_, delete in zip(self.names, self.opens, self.deletes, strict=True)
        ]
        self.list = El("list", "People", *self.rows)
        self.clock = El("label", "12:00")
        self.root = El("window", "Window", self.list, self.clock)
        self.watcher = Watcher(self.root)


def live_nodes(root: El) -> dict[str, LiveNode | None]:
    tree = read(root)
    return {
        node.handle: LiveNode(node=node, parent=tree.nodes[parent].handle if parent >= 0 else "app")
        for node, parent in zip(tree.nodes, tree.parents, strict=True)
    }


def fence(people: People, scene, el: El, **options) -> None:
    """Run the fence as the first and as the final one; they must agree."""
    index = place(scene, el)
    everything = live_nodes(people.root)
    live = {handle: everything.get(handle) for handle in fence_handles(scene, index)}
    errors = []
    current = people.watcher.observe()
    for nodes in (live, SceneView(current)):
        try:
            check_fence(scene, index, nodes, current=current, **options)
        except SurehandError as error:
            errors.append(error)
    assert len(errors) in {0, 2}
    if errors:
        assert errors[0].details == errors[1].details
        raise errors[0]


def test_what_did_not_change_passes():
    people = People("carol", "dave")
    scene = people.watcher.observe()
    fence(people, scene, people.opens[0])


def test_rows_recreated_in_another_order_are_refused():
    people = People("carol", "dave")
    scene = people.watcher.observe()
    other = People("dave", "carol")
    people.list.children = other.rows
    with pytest.raises(StaleTarget) as caught:
        fence(people, scene, people.deletes[0])
    assert caught.value.observed["difference"] == {"what": "gone", "before": "Delete", "now": None}


def test_a_recycled_row_is_refused_naming_the_change_and_the_candidates():
    people = People("carol", "dave")
    scene = people.watcher.observe()
    people.names[0].set(name="erin")
    people.names[1].set(name="carol")
    with pytest.raises(StaleTarget) as caught:
        fence(people, scene, people.opens[0])
    assert caught.value.observed["difference"] == {"what": "context", "before": "carol", "now": "erin"}
    assert caught.value.details["context"] == "row"
    assert caught.value.observed["candidates"][0].endswith('button "Open" in "People › carol"')
    assert caught.value.retry_safe


def test_a_control_that_means_another_amount_is_refused():
    pay = El("button", "Pay 10")
    people = People("carol")
    people.root.children.append(pay)
    scene = people.watcher.observe()
    pay.set(name="Pay 9999")
    with pytest.raises(StaleTarget) as caught:
        fence(people, scene, pay)
    assert caught.value.observed["difference"] == {"what": "name", "before": "Pay 10", "now": "Pay 9999"}


def test_shifted_positions_and_labels_are_no_difference():
    people = People("carol", "dave")
    first = El("button", "First", states=frozenset({"visible", "showing"}))
    people.root.children.insert(0, first)
    scene = people.watcher.observe()
    first.add_states("enabled")
    people.root.children.insert(0, El("button", "Newest"))
    people.list.children.insert(0, People("zoe").rows[0])
    people.list.children.reverse()
    fence(people, scene, people.opens[1])


def test_churn_elsewhere_is_no_difference():
    people = People("carol", "dave")
    scene = people.watcher.observe()
    for tick in range(200):
        people.clock.set(name=f"12:{tick}")
        people.root.set(name=f"*Window ({tick})")
        people.names[1].set(name=f"dave {tick}")
        people.watcher.observe()
        fence(people, scene, people.opens[0])


@pytest.mark.parametrize(
    ("field", "value"), [("role", "link"), ("toolkit_role", "x"), ("app_id", "x"), ("secret", True)]
)
def test_another_kind_of_element_behind_the_same_handle_is_refused(field, value):
    people = People("carol")
    scene = people.watcher.observe()
    people.opens[0].set(**{field: value})
    with pytest.raises(StaleTarget) as caught:
        fence(people, scene, people.opens[0])
    assert caught.value.details["what"] == field


def test_an_element_moved_into_another_row_is_refused():
    people = People("carol", "dave")
    scene = people.watcher.observe()
    box, other = people.rows[0].children[1], people.rows[1].children[1]
    people.rows[0].children[1], people.rows[1].children[1] = other, box
    with pytest.raises(StaleTarget) as caught:
        fence(people, scene, people.opens[0])
    assert caught.value.details["what"] == "parent"


@pytest.mark.parametrize("field", ["role", "toolkit_role", "app_id"])
def test_another_kind_of_thing_around_the_element_is_refused_by_name(field):
    people = People("carol")
    scene = people.watcher.observe()
    people.rows[0].children[1].set(**{field: "group"})
    with pytest.raises(StaleTarget) as caught:
        fence(people, scene, people.opens[0])
    assert caught.value.details["what"] == "parent"


def test_labels_that_changed_rows_are_refused():
    people = People("carol", "dave")
    scene = people.watcher.observe()
    people.rows[0].children[0], people.rows[1].children[0] = people.names[1], people.names[0]
    with pytest.raises(StaleTarget) as caught:
        fence(people, scene, people.opens[0])
    assert caught.value.observed["difference"]["what"] == "context"


def test_a_label_that_is_gone_is_refused():
    people = People("carol", "dave")
    scene = people.watcher.observe()
    people.rows[0].children.pop(0)
    with pytest.raises(StaleTarget) as caught:
        fence(people, scene, people.opens[0])
    assert caught.value.observed["difference"] == {"what": "context", "before": "carol", "now": None}


def test_a_dialog_that_asks_something_else_is_refused():
    people = People("carol")
    message, ok = El("label", "Delete carol?"), El("button", "OK")
    people.root.children.append(El("alert", "Question", message, ok))
    scene = people.watcher.observe()
    message.set(name="Delete everything?")
    with pytest.raises(StaleTarget) as caught:
        fence(people, scene, ok)
    assert caught.value.observed["difference"]["now"] == "Question · Delete everything?"


def test_a_picture_that_stands_for_something_else_is_refused():
    people = People("carol")
    icon = El("button", "", description="Archive")
    people.root.children.append(icon)
    scene = people.watcher.observe()
    fence(people, scene, icon)
    icon.set(description="Delete")
    with pytest.raises(StaleTarget) as caught:
        fence(people, scene, icon)
    assert caught.value.observed["difference"] == {"what": "context", "before": "Archive", "now": "Delete"}


def test_a_text_inside_a_nameless_control_that_changed_is_refused():
    people = People("carol")
    amount = El("label", "Pay 10")
    pay = El("button", "", El("filler", "", amount))
    people.root.children.append(pay)
    scene = people.watcher.observe()
    amount.set(name="Pay 9999")
    with pytest.raises(StaleTarget) as caught:
        fence(people, scene, pay)
    assert caught.value.observed["difference"]["now"] == "Pay 9999"


def test_a_new_row_with_the_same_name_is_no_difference_for_the_old_one():
    people = People("carol", "dave")
    scene = people.watcher.observe()
    people.list.children.append(People("carol").rows[0])
    fence(people, scene, people.opens[0])


def test_a_defunct_element_is_gone():
    people = People("carol")
    scene = people.watcher.observe()
    people.opens[0].add_states("defunct")
    with pytest.raises(StaleTarget) as caught:
        fence(people, scene, people.opens[0])
    assert caught.value.details["what"] == "gone"


def test_an_element_that_was_dead_when_it_was_seen_is_gone_although_nothing_changed():
    for dead in ("element", "ancestor"):
        people = People("carol")
        (people.opens[0] if dead == "element" else people.list).add_states("defunct")
        scene = people.watcher.observe()
        index = place(scene, people.opens[0])
        with pytest.raises(StaleTarget):
            check_fence(scene, index, live_nodes(people.root))


def test_a_secret_that_an_application_shows_in_clear_is_still_the_one_that_was_seen():
    field = El("password", "PIN", secret=True)
    root = El("window", "Window", field)
    scene = Watcher(root).observe()
    index = place(scene, field)
    check_fence(scene, index, live_nodes(root))
    field.set(role="text", secret=False)
    check_fence(scene, index, live_nodes(root))
    field.set(name="Amount")
    with pytest.raises(StaleTarget):
        check_fence(scene, index, live_nodes(root))


def test_a_handle_that_was_not_read_counts_as_gone():
    people = People("carol")
    scene = people.watcher.observe()
    index = place(scene, people.opens[0])
    everything = live_nodes(people.root)
    for handle in fence_handles(scene, index):
        live = {other: everything[other] for other in everything if other != handle}
        with pytest.raises(StaleTarget):
            check_fence(scene, index, live)


def test_forged_hashes_in_a_scene_are_noticed_by_recomputing():
    people = People("carol")
    scene = people.watcher.observe()
    index = place(scene, people.opens[0])
    for field in ("fingerprint_hash", "context_hash"):
        targets = list(scene.targets)
        targets[index] = msgspec.structs.replace(targets[index], **{field: "0" * 64})
        forged = msgspec.structs.replace(scene, targets=tuple(targets))
        with pytest.raises(StaleTarget):
            check_fence(forged, index, live_nodes(people.root))


def test_the_final_fence_reads_few_nodes():
    people = People(*(f"person {number}" for number in range(500)))
    scene = people.watcher.observe()
    handles = fence_handles(scene, place(scene, people.opens[250]))
    assert handles[0] == people.opens[250].handle
    assert set(handles) == {
        people.opens[250].handle,
        people.rows[250].children[1].handle,
        people.rows[250].handle,
        people.list.handle,
        people.root.handle,
        people.names[250].handle,
    }


# --- enabled and visible ---


def test_a_disabled_element_is_refused_only_where_that_matters():
    people = People("carol")
    scene = people.watcher.observe()
    people.opens[0].drop_states("enabled")
    with pytest.raises(TargetNotActionable) as caught:
        fence(people, scene, people.opens[0])
    assert caught.value.details["what"] == "disabled"
    fence(people, scene, people.opens[0], enabled=False)


def test_a_hidden_element_is_refused():
    people = People("carol")
    scene = people.watcher.observe()
    people.opens[0].drop_states("visible", "showing")
    with pytest.raises(TargetNotActionable) as caught:
        fence(people, scene, people.opens[0])
    assert caught.value.details["what"] == "hidden"
    fence(people, scene, people.opens[0], visible=False)


def test_an_element_in_a_hidden_box_is_refused_even_inside_a_scrolled_area():
    people = People("carol")
    box = people.rows[0].children[1]
    area = El("scrollpane", "", people.list)
    people.root.children[0] = area
    scene = people.watcher.observe()
    people.opens[0].drop_states("showing")
    box.drop_states("showing", "visible")
    with pytest.raises(TargetNotActionable):
        fence(people, scene, people.opens[0])


def test_an_element_on_a_page_that_does_not_show_is_refused():
    people = People("carol")
    press = El("button", "Apply", states=VISIBLE - {"showing"})
    people.root.children.append(
        El("tablist", "", El("tab", "Other", El("filler", "", press, states=VISIBLE - {"showing"})))
    )
    scene = people.watcher.observe()
    with pytest.raises(TargetNotActionable):
        fence(people, scene, press)


def test_an_item_of_a_closed_menu_is_in_reach_but_not_on_screen():
    people = People("carol")
    item = El("menuitem", "Save", states=VISIBLE - {"showing"})
    people.root.children.append(El("menubar", "", El("menu", "File", item)))
    scene = people.watcher.observe()
    fence(people, scene, item)
    with pytest.raises(TargetNotActionable):
        fence(people, scene, item, on_screen=True)


def test_an_item_taken_out_of_its_menu_is_hidden():
    people = People("carol")
    item = El("menuitem", "Save", states=VISIBLE - {"showing", "visible"})
    people.root.children.append(El("menubar", "", El("menu", "File", item)))
    scene = people.watcher.observe()
    with pytest.raises(TargetNotActionable):
        fence(people, scene, item)


def test_an_element_scrolled_out_of_sight_is_in_reach():
    people = People("carol")
    press = El("button", "Below", states=VISIBLE - {"showing"})
    people.root.children.append(El("scrollpane", "", El("filler", "", press)))
    scene = people.watcher.observe()
    fence(people, scene, press)


# --- references ---


def check(people: People, target, referenced, *, session="s" * 32, now_ms=1_000):
    return check_reference(
        target,
        referenced,
        people.watcher.observe(),
        session=session,
        now_ms=now_ms,
        labels=people.watcher.labels,
    )


def test_a_reference_as_handed_out_is_taken():
    people = People("carol")
    scene = people.watcher.observe()
    index = place(scene, people.opens[0])
    people.clock.set(name="12:01")
    assert check(people, reference(scene, index), scene) == index


def test_a_scene_of_another_session_looks_like_an_unknown_one():
    people = People("carol")
    scene = people.watcher.observe()
    target = reference(scene, 1)
    for referenced, session in ((None, "s" * 32), (scene, "t" * 32)):
        with pytest.raises(StaleTarget) as caught:
            check(people, target, referenced, session=session)
        assert caught.value.details == {"what": "scene"}


@pytest.mark.parametrize("field", ["provenance_hash", "fingerprint_hash", "context_hash"])
def test_a_forged_hash_is_refused(field):
    people = People("carol")
    scene = people.watcher.observe()
    forged = msgspec.structs.replace(reference(scene, 1), **{field: "0" * 64})
    with pytest.raises(InvalidRequest):
        check(people, forged, scene)


def test_a_reference_to_another_generation_is_refused():
    people = People("carol")
    scene = people.watcher.observe()
    forged = msgspec.structs.replace(reference(scene, 1), generation=scene.generation + 1)
    with pytest.raises(InvalidRequest):
        check(people, forged, scene)


@pytest.mark.parametrize("label", ["e0", "e-1", "e9223372036854775808", "e1.5", "1", "null", "e99"])
def test_an_invented_label_is_not_found(label):
    people = People("carol")
    scene = people.watcher.observe()
    with pytest.raises(TargetNotFound) as caught:
        check(people, msgspec.structs.replace(reference(scene, 1), element_id=label), scene)
    assert "no label this session was given" in caught.value.message


def test_a_label_of_another_scene_is_not_found_there():
    people = People("carol")
    scene = people.watcher.observe()
    people.clock.set(name="12:01")
    newer = people.watcher.observe()
    target = msgspec.structs.replace(
        reference(newer, place(newer, people.clock)), scene_id=scene.scene_id, generation=scene.generation
    )
    with pytest.raises(TargetNotFound) as caught:
        check(people, target, scene)
    assert "is not in that scene" in caught.value.message


def test_a_scene_may_be_acted_upon_for_its_time_and_no_longer():
    people = People("carol")
    scene = people.watcher.observe()
    target = reference(scene, 1)
    check(people, target, scene, now_ms=1_000 + limits.SCENE_ACT_MS_MAX)
    with pytest.raises(StaleTarget) as caught:
        check(people, target, scene, now_ms=1_001 + limits.SCENE_ACT_MS_MAX)
    assert caught.value.details["what"] == "expired"


def test_a_restarted_application_is_another_one():
    people = People("carol")
    scene = people.watcher.observe()
    people.watcher.surface = surface(process_generation="100:2")
    with pytest.raises(StaleTarget) as caught:
        check(people, reference(scene, 1), scene)
    assert caught.value.details["what"] == "process_generation"


# --- modal windows ---

MODAL = VISIBLE | {"modal"}


def test_an_element_behind_a_modal_window_of_its_application_is_refused():
    people = People("carol")
    scene = people.watcher.observe()
    dialog = surface("w2", title="Really?", states=MODAL, role="dialog")
    with pytest.raises(BehindModal) as caught:
        check_modal(scene, 1, [people.watcher.surface, dialog])
    assert caught.value.observed == {"dialog": "Really?"}


@pytest.mark.parametrize(
    "other",
    [
        surface("w2", states=MODAL, pid=200, process_generation="200:1"),
        surface("w2", states=MODAL | {"iconified"}),
        surface("w2", states=frozenset({"modal"})),
        surface("w2", states=VISIBLE),
        surface("w1", states=MODAL),
    ],
)
def test_other_windows_block_nothing(other):
    people = People("carol")
    check_modal(people.watcher.observe(), 1, [people.watcher.surface, other])


def test_of_two_modal_windows_the_one_in_front_is_usable():
    below, above = surface("w2", states=MODAL), surface("w3", states=MODAL | {"active"})
    assert blocking_modal(below, [below, above]) == above
    assert blocking_modal(above, [below, above]) is None
    assert blocking_modal(above, [below, above], front_to_back=["w2", "w3"]) == below


def test_an_element_outside_a_modal_dialog_of_its_own_window_is_refused():
    people = People("carol")
    ok = El("button", "OK")
    people.root.children.append(El("dialog", "Really?", ok, states=MODAL))
    scene = people.watcher.observe()
    with pytest.raises(BehindModal):
        check_modal(scene, place(scene, people.opens[0]))
    check_modal(scene, place(scene, ok))
