"""Labels, fingerprints and generations over changing trees (spec §8.2, §8.3; reference ST01)."""

from __future__ import annotations

import gc

import pytest

from surehand import limits
from surehand.core.scene import tree as trees
from surehand.core.scene.build import build_scene
from surehand.core.scene.identity import identify
from surehand.core.scene.labels import LabelTable, assign, forget
from surehand.core.scene.tree import Memo, index_of
from surehand.errors import InternalError
from surehand.model.scene import Node, Tree
from tests.scene_kit import El, Watcher, label, place, read, surface


def window(*children: El) -> El:
    return El("window", "Window", *children)


def test_labels_count_from_one_in_document_order():
    root = window(El("button", "A"), El("button", "B"))
    assert [target.label for target in Watcher(root).observe().targets] == ["e1", "e2", "e3"]


def test_an_unchanged_tree_gives_the_same_targets_and_generation_in_a_new_scene():
    watcher = Watcher(window(El("button", "A")))
    first = watcher.observe()
    watcher.now_ms += 5
    second = watcher.observe(first.tree)
    assert second.targets is first.targets
    assert second.generation == first.generation == 1
    assert (second.scene_id, second.observed_at_ms) != (first.scene_id, first.observed_at_ms)
    assert second.expires_at_ms == second.observed_at_ms + limits.SCENE_ACT_MS_MAX


def test_an_equal_reread_keeps_labels_and_generation():
    button = El("button", "A")
    watcher = Watcher(window(button))
    first = watcher.observe()
    button.set()
    second = watcher.observe()
    assert second.tree.nodes[1] is not first.tree.nodes[1]
    assert label(second, button) == label(first, button)
    assert second.generation == first.generation


def test_a_renamed_element_gets_a_new_label_and_the_old_one_never_returns():
    button = El("button", "Save")
    watcher = Watcher(window(button))
    first = label(watcher.observe(), button)
    button.set(name="Delete")
    second = label(watcher.observe(), button)
    button.set(name="Save")
    third = label(watcher.observe(), button)
    assert len({first, second, third}) == 3


def test_an_identical_element_with_another_handle_gets_a_new_label():
    old = El("button", "Save")
    root = window(old)
    watcher = Watcher(root)
    before = label(watcher.observe(), old)
    new = El("button", "Save")
    root.children = [new]
    assert label(watcher.observe(), new) != before


def test_a_defunct_element_keeps_no_label():
    button = El("button", "Save")
    watcher = Watcher(window(button))
    before = label(watcher.observe(), button)
    button.add_states("defunct")
    assert label(watcher.observe(), button) != before


def test_a_removed_element_that_comes_back_gets_a_new_label():
    button, other = El("button", "Save"), El("button", "Other")
    root = window(button, other)
    watcher = Watcher(root)
    before = label(watcher.observe(), button)
    root.children = [other]
    watcher.observe()
    root.children = [button, other]
    assert label(watcher.observe(), button) != before


def test_elements_with_one_fingerprint_have_labels_of_their_own():
    twins = El("button", "Delete"), El("button", "Delete")
    scene = Watcher(window(*twins)).observe()
    first, second = (scene.targets[place(scene, twin)] for twin in twins)
    assert first.fingerprint_hash == second.fingerprint_hash
    assert first.label != second.label


def test_an_insertion_above_moves_no_label():
    kept = [El("button", f"B{number}") for number in range(5)]
    root = window(*kept)
    watcher = Watcher(root)
    first = watcher.observe()
    before = [label(first, button) for button in kept]
    root.children.insert(0, El("label", "news"))
    second = watcher.observe()
    assert [label(second, button) for button in kept] == before
    assert second.generation == first.generation + 1


def test_a_window_title_that_changes_makes_no_stranger_of_its_elements():
    button = El("button", "Save")
    root = window(El("filler", "", button))
    watcher = Watcher(root)
    first = watcher.observe()
    root.set(name="*Window (3)")
    second = watcher.observe()
    assert label(second, button) == label(first, button)
    assert label(second, root) != label(first, root)


@pytest.mark.parametrize("field", ["role", "toolkit_role", "app_id"])
def test_a_parent_of_another_kind_makes_another_element(field):
    button = El("button", "Save")
    box = El("group", "", button)
    root = window(box)
    watcher = Watcher(root)
    first = watcher.observe()
    before = first.targets[place(first, button)]
    box.set(**{field: "pane"})
    second = watcher.observe()
    after = second.targets[place(second, button)]
    assert after.fingerprint_hash != before.fingerprint_hash
    assert after.label != before.label


def test_case_and_spaces_of_a_name_count():
    names = ["Save", "save", "Save ", "Sa\u0300ve", "S\u00e0ve"]
    scene = Watcher(window(*(El("button", name) for name in names))).observe()
    assert len({target.fingerprint_hash for target in scene.targets}) == len(names) + 1


def test_a_name_with_a_lone_surrogate_is_an_identity_like_any_other():
    scene = Watcher(window(El("button", "a\ud800"), El("button", "a\\ud800"), El("button", "a"))).observe()
    # The spelled-out form may equal another name; the handle still tells the two apart.
    assert len({target.label for target in scene.targets}) == 4


def test_a_changed_process_keeps_no_label():
    button = El("button", "Save")
    watcher = Watcher(window(button))
    before = label(watcher.observe(), button)
    watcher.surface = surface(process_generation="100:2")
    scene = watcher.observe()
    assert label(scene, button) != before
    assert scene.generation == 2


def test_an_object_shown_twice_gives_two_labels_and_breaks_nothing():
    twin = El("button", "Twin", handle="same")
    watcher = Watcher(window(twin, El("button", "Twin", handle="same")))
    first = watcher.observe()
    assert len({target.label for target in first.targets}) == 3
    twin.set(name="Other")
    second = watcher.observe()
    assert len({target.label for target in second.targets}) == 3


def test_a_thousand_rebuilds_forget_retired_labels_and_reuse_none():
    clock = El("label", "0")
    watcher = Watcher(window(clock))
    seen = set()
    for second in range(1000):
        clock.set(name=str(second))
        found = label(watcher.observe(), clock)
        assert found not in seen
        seen.add(found)
    assert sum(len(kept.live) for kept in watcher.labels.surfaces.values()) == 2


def test_the_table_keeps_at_most_the_limit_of_windows_and_the_longest_unseen_goes():
    table = LabelTable()
    node = Node(handle="h", role="button")
    for number in range(limits.LABEL_SURFACES_MAX):
        labels, table = assign(table, f"w{number}", "p", [node], ["f"])
    assert len(table.surfaces) == limits.LABEL_SURFACES_MAX
    labels, table = assign(table, "w0", "p", [node], ["f"])
    assert labels == ["e1"]
    labels, table = assign(table, "another", "p", [node], ["f"])
    assert len(table.surfaces) == limits.LABEL_SURFACES_MAX
    assert "w1" not in table.surfaces
    labels, table = assign(table, "w1", "p", [node], ["f"])
    assert labels == [f"e{limits.LABEL_SURFACES_MAX + 2}"]


def test_a_forgotten_window_gets_new_labels():
    node = Node(handle="h", role="button")
    _, table = assign(LabelTable(), "w", "p", [node], ["f"])
    table = forget(table, ["w", "never seen"])
    labels, _ = assign(table, "w", "p", [node], ["f"])
    assert labels == ["e2"]


def test_issued_knows_what_was_handed_out():
    table = LabelTable(next_number=12)
    assert table.issued("e1")
    assert table.issued("e11")
    for never in ("e12", "e0", "e01", "e", "11", "E1", "e-1", "e1.5", "e²", "e" + "9" * 30, "x1", "null"):
        assert not table.issued(never)


def test_a_table_given_up_leaves_the_old_one_as_it_was():
    button = El("button", "A")
    watcher = Watcher(window(button))
    watcher.observe()
    kept = watcher.labels
    before = dict(kept.surfaces["w1"].live)
    button.set(name="B")
    build_scene(read(watcher.root), watcher.surface, watcher.latest, kept, session="s", scene_id="x", now_ms=0)
    assert watcher.labels.surfaces["w1"].live == before


def test_an_older_scene_does_not_bring_retired_labels_back():
    button = El("button", "A")
    watcher = Watcher(window(button))
    first = watcher.observe()
    button.set(name="B")
    watcher.observe()
    watcher.latest = first
    again = watcher.observe(first.tree)
    assert label(again, button) not in {target.label for target in first.targets}
    assert again.generation == 3


# --- generation ---


@pytest.mark.parametrize(
    "change",
    [
        {"name": "B"},
        {"value": "x"},
        {"description": "x"},
        {"states": frozenset({"enabled"})},
        {"capabilities": frozenset()},
        {"actions": ("click",)},
        {"secret": True},
        {"text_chars": 4},
    ],
)
def test_the_generation_advances_with_every_change_of_a_target(change):
    button = El("button", "A")
    watcher = Watcher(window(button))
    before = watcher.observe().generation
    button.set(**change)
    assert watcher.observe().generation == before + 1


@pytest.mark.parametrize("change", [{"bounds": (1, 2, 3, 4)}, {"row": 7}, {"column": 7}])
def test_the_generation_stands_still_when_only_places_change(change):
    button = El("button", "A")
    watcher = Watcher(window(button))
    before = watcher.observe().generation
    button.set(**change)
    scene = watcher.observe()
    assert scene.generation == before
    assert label(scene, button) == "e2"


def test_the_generation_advances_when_elements_change_places():
    one, other = El("button", "A"), El("button", "B")
    root = window(one, other)
    watcher = Watcher(root)
    before = watcher.observe().generation
    root.children.reverse()
    assert watcher.observe().generation == before + 1


def test_the_generation_goes_on_when_the_last_scene_was_dropped():
    watcher = Watcher(window(El("button", "A")))
    watcher.observe()
    watcher.latest = None
    assert watcher.observe().generation == 2


def test_a_window_that_was_forgotten_does_not_start_over():
    button = El("button", "A")
    watcher = Watcher(window(button))
    for number in range(5):
        button.set(value=str(number))
        before = watcher.observe().generation
    watcher.labels = forget(watcher.labels, ["w1"])
    watcher.latest = None
    assert watcher.observe().generation == before + 1
    table = watcher.labels
    for number in range(limits.LABEL_SURFACES_MAX):
        _, table = assign(table, f"other{number}", "p", [], [])
    assert table.generation("w1") >= before + 1


# --- trees ---


@pytest.mark.parametrize("parents", [(-1, 5), (-1, -1), (0, 0), (-1, 0, 1, 0, 2), (-1,), (-1, 1), (-2, 0)])
def test_a_tree_with_broken_parents_is_refused(parents):
    nodes = tuple(Node(handle=str(number), role="button") for number in range(5 if len(parents) == 5 else 2))
    with pytest.raises(InternalError):
        index_of(Tree(nodes=nodes, parents=parents, version=1))


def test_a_tree_at_the_limit_is_taken_and_one_past_it_refused(monkeypatch):
    monkeypatch.setattr(trees.limits, "SCENE_NODES_MAX", 3)
    nodes = tuple(Node(handle=str(number), role="button") for number in range(4))
    index_of(Tree(nodes=nodes[:3], parents=(-1, 0, 0), version=1))
    with pytest.raises(InternalError):
        index_of(Tree(nodes=nodes, parents=(-1, 0, 0, 0), version=1))


def test_unchanged_nodes_are_not_hashed_again(monkeypatch):
    kept = [El("button", f"B{number}") for number in range(50)]
    root = window(*kept)
    first = read(root)
    identify(first)
    kept[7].set(name="other")
    root.children.insert(3, El("label", "new"))
    hashed = []
    monkeypatch.setattr(
        "surehand.core.scene.identity.fingerprint_hash", lambda _chain, node: hashed.append(node.name) or "0" * 64
    )
    identify(read(root), first)
    assert sorted(hashed) == ["new", "other"]


def test_what_is_derived_from_a_tree_goes_with_it():
    memo: Memo[Tree, object] = Memo()
    tree = Tree(nodes=(Node(handle="a", role="window"),), parents=(-1,), version=1)
    kept = memo.get(tree, lambda _: object())
    assert memo.get(tree, lambda _: object()) is kept
    assert len(memo) == 1
    del tree
    gc.collect()
    assert len(memo) == 0
