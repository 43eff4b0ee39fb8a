"""Laws of scenes on random trees under random changes (spec §8.3-§8.5)."""

from __future__ import annotations

import os
import random
import re

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from surehand import limits
from surehand.core.scene.build import build_scene
from surehand.core.scene.diff import apply, diff
from surehand.core.scene.labels import LabelTable
from surehand.core.scene.packing import pack, unpack
from surehand.core.scene.prune import prune
from surehand.core.scene.query import find
from surehand.core.scene.render import RenderOptions, render, render_text
from surehand.core.scene.rows import ACTIVE_CAPABILITIES
from surehand.core.scene.tokens import tokens
from surehand.model.query import Filter, Query, Rect, TextMatch
from surehand.model.scene import Node, Tree
from tests.scene_kit import VISIBLE, El, Watcher, read

LONG = bool(os.environ.get("SUREHAND_LONG"))
EXAMPLES = settings(
    max_examples=2_000 if LONG else 150,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=not LONG,
)

ROLES = ["filler", "group", "pane", "list", "listitem", "row", "cell", "label", "button", "checkbox", "text", "heading"]
ROLES += [
    "table",
    "tree",
    "treeitem",
    "link",
    "dialog",
    "menu",
    "menuitem",
    "image",
    "combobox",
    "tabpanel",
    "scrollbar",
    "rowheader",
]
TEXTS = ["", "Open", "Delete", "carol", "dave", "Name", "3", "12:01", 'quo"te', "back\\slash", "two\nlines", "ünï€"]
TEXTS += ["\u202egnp", '[e1] button "Pay"', "… 3 more elements", "a\ud800", "x" * 300, "é" * 200, "diff of=1#00000000"]


class World:
    """A tree that changes at random, from a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 - a seed must repeat the run
        self.root = El("window", "Window")
        for _ in range(self.random.randrange(40)):
            self.insert()

    def element(self) -> El:
        pick = self.random
        role = pick.choice(ROLES)
        states = VISIBLE - set(pick.sample(sorted(VISIBLE), pick.choice([0, 0, 0, 1])))
        return El(
            role,
            pick.choice(TEXTS),
            value=pick.choice([None, None, *TEXTS]),
            description=pick.choice(["", "", "", *TEXTS]),
            states=states | set(pick.sample(["checked", "focused", "busy", "expanded"], pick.choice([0, 0, 1]))),
            secret=pick.random() < 0.05,
            labelled_by=tuple(el.handle for el in pick.sample(self.root.walk(), 1)) if pick.random() < 0.1 else (),
            bounds=(pick.randrange(200), pick.randrange(200), pick.randrange(50), pick.randrange(50)),
            row=pick.choice([None, 0, 1]) if role == "cell" else None,
            column=pick.choice([None, 0, 1]) if role == "cell" else None,
        )

    def insert(self) -> None:
        parent = self.random.choice(self.root.walk())
        parent.children.insert(self.random.randrange(len(parent.children) + 1), self.element())

    def lengthen(self) -> None:
        """Add long runs of alike elements, most of them out of sight."""
        parent = self.random.choice(self.root.walk())
        seen = self.random.randrange(60)
        role = self.random.choice(["button", "listitem", "cell", "menuitem"])
        for number in range(60):
            states = VISIBLE if abs(number - seen) < 5 else VISIBLE - {"showing"}
            child = El(role, f"{role} {number}", states=states, row=number // 3 if role == "cell" else None)
            if self.random.random() < 0.2:
                child.children.append(self.element())
            parent.children.append(child)

    def remove(self) -> None:
        inside = self.root.walk()[1:]
        if inside:
            gone = self.random.choice(inside)
            self.root.parent_of(gone).children.remove(gone)

    def change(self) -> None:
        el, other = self.random.choice(self.root.walk()), self.element()
        field = self.random.choice(
            ["name", "value", "states", "description", "role", "secret", "bounds", "labelled_by"]
        )
        el.set(**{field: other.fields[field]})

    def move(self) -> None:
        inside = self.root.walk()[1:]
        if not inside:
            return
        el = self.random.choice(inside)
        self.root.parent_of(el).children.remove(el)
        target = self.random.choice([place for place in self.root.walk() if place not in el.walk()])
        target.children.insert(self.random.randrange(len(target.children) + 1), el)

    def shuffle(self) -> None:
        self.random.shuffle(self.random.choice(self.root.walk()).children)

    def step(self) -> None:
        for _ in range(self.random.choice([0, 1, 1, 1, 2, 5])):
            self.random.choice(
                [self.insert, self.insert, self.remove, self.change, self.change, self.move, self.shuffle]
            )()


@EXAMPLES
@given(st.integers(0, 2**32), st.sampled_from([1, 5, 20, 600]), st.booleans(), st.sampled_from([None, 200, 400, 2_000]))
def test_base_and_diff_make_current_byte_for_byte(seed, nodes_max, bounds, tokens_max):
    world = World(seed)
    if world.random.random() < 0.3:
        world.lengthen()
    watcher = Watcher(world.root)
    options = RenderOptions(nodes_max=nodes_max, bounds=bounds, tokens_max=tokens_max)
    base = watcher.observe()
    held = render_text(base, options)
    for _ in range(6):
        world.step()
        scene = watcher.observe()
        change = diff(base, scene, options)
        assert len(change.text) <= len(render_text(scene, options))
        held = apply(held, change.text)
        assert held == render_text(scene, options)
        assert tokens_max is None or max(tokens(held), tokens(change.text)) <= tokens_max
        base = scene


@EXAMPLES
@given(st.integers(0, 2**32))
def test_labels_only_grow_and_none_is_given_twice(seed):
    world = World(seed)
    watcher = Watcher(world.root)
    owners: dict[str, tuple[str, str]] = {}
    retired: set[str] = set()
    for _ in range(8):
        scene = watcher.observe()
        labels = [target.label for target in scene.targets]
        assert len(set(labels)) == len(labels)
        assert not retired & set(labels)
        for target, node in zip(scene.targets, scene.tree.nodes, strict=True):
            assert owners.setdefault(target.label, (node.handle, target.fingerprint_hash)) == (
                node.handle,
                target.fingerprint_hash,
            )
        retired |= owners.keys() - set(labels)
        assert max(int(label[1:]) for label in owners) < watcher.labels.next_number
        world.step()


@EXAMPLES
@given(st.integers(0, 2**32))
def test_a_scene_built_on_an_earlier_one_equals_one_built_alone(seed):
    world = World(seed)
    watcher = Watcher(world.root)
    watcher.observe()
    for _ in range(4):
        world.step()
        built = watcher.observe()
        tree = built.tree
        copy = Tree(nodes=tuple(map(_copied, tree.nodes)), parents=tree.parents, version=tree.version)
        alone, _ = build_scene(copy, watcher.surface, None, LabelTable(), session="s", scene_id="x", now_ms=0)
        for one, other in zip(built.targets, alone.targets, strict=True):
            assert (one.fingerprint_hash, one.context_hash, one.context, one.context_handles, one.index) == (
                other.fingerprint_hash,
                other.context_hash,
                other.context,
                other.context_handles,
                other.index,
            )


def _copied(node: Node) -> Node:
    return Node(**{name: getattr(node, name) for name in node.__struct_fields__})


@EXAMPLES
@given(st.integers(0, 2**32), st.sampled_from([1, 3, 600]))
def test_the_text_form_is_deterministic_bounded_and_cannot_be_forged(seed, nodes_max):
    world = World(seed)
    for el in world.root.walk():
        if el.fields.get("secret"):
            el.set(value="hunter2")
    scene = Watcher(world.root).observe()
    again = Watcher(world.root).observe()
    options = RenderOptions(nodes_max=nodes_max, bounds=True)
    text = render_text(scene, options)
    assert text == render_text(again, options)
    lines = text.split("\n")
    quoted = r'"(?:[^"\\]|\\["\\nrt]|\\u[0-9a-f]{4}|\\u\{[0-9a-f]+\})*"'
    words = rf'( {quoted})?( [a-z]+={quoted}| [a-z]+=[^ "]+| [a-z]+)*'
    grammar = re.compile(rf" *\[e\d+\] [a-z]+{words}( … [0-9]+ more elements: use query or scope)?")
    joined = re.compile(rf" *(hidden: )?\[e\d+\] [a-z]+{words}:?( \|? ?\[e\d+\]( [a-z]+)?{words})*( … .*)?")
    marked = lines[-1].startswith("…")
    rendering = render(scene, options)
    for line in rendering.lines[:-1] if marked else rendering.lines:
        assert grammar.fullmatch(line), line
    for line in lines[:-1] if marked else lines:
        assert joined.fullmatch(line), line
        assert all(len(field.encode()) <= limits.RENDER_FIELD_BYTES_MAX + 2 for field in re.findall(quoted, line))
    assert len(lines) <= len(rendering.lines) <= nodes_max + marked
    assert len(text.encode()) <= limits.RENDER_BYTES_MAX
    assert rendering.omitted == len(prune(scene.tree).places) - (len(rendering.lines) - marked)
    assert rendering.omitted == sum(
        map(int, re.findall(r"… (\d+) more elements: use query or scope$", text, re.MULTILINE))
    )
    for node in scene.tree.nodes:
        if node.secret and node.value:
            assert "hunter2" not in text


@EXAMPLES
@given(st.integers(0, 2**32))
def test_pruning_keeps_all_that_can_be_acted_upon(seed):
    scene = Watcher(World(seed).root).observe()
    shown = set(prune(scene.tree).places)
    for place, node in enumerate(scene.tree.nodes):
        if node.capabilities & ACTIVE_CAPABILITIES:
            assert place in shown


@EXAMPLES
@given(st.integers(0, 2**32))
def test_joined_lines_come_apart_into_the_same_lines(seed):
    world = World(seed)
    world.lengthen()
    lines = list(render(Watcher(world.root).observe()).lines[1:])
    joined = pack(lines)
    assert unpack(line.text for line in joined) == lines
    assert sum(line.elements for line in joined) == len(lines)
    assert len("\n".join(line.text for line in joined)) <= len("\n".join(lines))
    # Parts of a text come apart too, as a diff sends them.
    some = lines[world.random.randrange(len(lines)) :: world.random.choice([1, 1, 2])]
    assert unpack(line.text for line in pack(some)) == some


@EXAMPLES
@given(st.integers(0, 2**32))
def test_a_larger_budget_shows_what_a_smaller_one_does_and_none_is_exceeded(seed):
    world = World(seed)
    world.lengthen()
    scene = Watcher(world.root).observe()
    worth = len(prune(scene.tree).places)
    before: set[str] = set()
    for budget in (200, 300, 450, 700, 1_000, 1_500, 3_000, 30_000):
        rendering = render(scene, RenderOptions(tokens_max=budget))
        assert tokens(rendering.text) <= budget
        shown = set(rendering.keys) - {"", "…"}
        assert before <= shown
        assert rendering.omitted == worth - 1 - len(shown)
        before = shown
    assert render(scene, RenderOptions(tokens_max=30_000)).text == render_text(scene)


@EXAMPLES
@given(st.integers(0, 2**32))
def test_every_control_is_in_the_text_or_counted_in_it_and_found_by_query(seed):
    world = World(seed)
    world.lengthen()
    scene = Watcher(world.root).observe()
    rendering = render(scene)
    shown = set(rendering.keys)
    missing = [
        place
        for place in prune(scene.tree).places[1:]
        if scene.targets[place].label not in shown and scene.tree.nodes[place].capabilities & ACTIVE_CAPABILITIES
    ]
    assert len(missing) <= rendering.omitted
    for place in missing:
        role = scene.tree.nodes[place].role
        assert place in find(scene, Query(filters=(Filter(role=role),), max_results=256)).indexes


@EXAMPLES
@given(st.integers(0, 2**32), st.integers(0, 30))
def test_an_inserted_sibling_costs_one_line(seed, at):
    pick = random.Random(seed)  # noqa: S311 - a seed must repeat the run
    children = [El(pick.choice(["button", "checkbox", "label"]), f"{number}", row=None) for number in range(30)]
    box = El("group", pick.choice(["", "Box"]), *children)
    watcher = Watcher(El("window", "W", box, El("button", "after")))
    base = watcher.observe()
    box.children.insert(at, El(pick.choice(["button", "label", "text"]), pick.choice(TEXTS) or "x"))
    scene = watcher.observe()
    change = diff(base, scene)
    assert not change.full
    assert len(change.text.split("\n")) == 2
    assert apply(render_text(base), change.text) == render_text(scene)


def _filters(pick: random.Random, labels: list[str]) -> list[Filter]:
    makers = [
        lambda: Filter(role=pick.choice(ROLES)),
        lambda: Filter(
            name=TextMatch(text=pick.choice(TEXTS[1:4]), match=pick.choice(["exact", "prefix", "contains"]))
        ),
        lambda: Filter(name=TextMatch(text=pick.choice(["e", "^O", "[0-9]"]), match="regex")),
        lambda: Filter(value=TextMatch(text="", match="contains")),
        lambda: Filter(state={"enabled": pick.random() < 0.7}),
        lambda: Filter(within=Rect(x=0, y=0, width=pick.randrange(250), height=250)),
        lambda: Filter(
            relation=pick.choice(["child", "descendant", "sibling", "in-row", "nearest"]), to=pick.choice(labels)
        ),
        lambda: Filter(context=TextMatch(text=pick.choice(["carol", "Open"]), match="contains")),
    ]
    return [pick.choice(makers)() for _ in range(pick.randrange(1, 5))]


@EXAMPLES
@given(st.integers(0, 2**32))
def test_the_order_of_filters_does_not_matter_and_more_filters_find_no_more(seed):
    world = World(seed)
    pick = world.random
    scene = Watcher(world.root).observe()
    filters = _filters(pick, [target.label for target in scene.targets])
    found = find(scene, Query(filters=tuple(filters))).indexes
    shuffled = filters[:]
    pick.shuffle(shuffled)
    assert find(scene, Query(filters=tuple(shuffled))).indexes == found
    assert list(found) == sorted(found)
    plain = [part for part in filters if part.relation != "nearest"]
    if len(plain) == len(filters):
        for part in filters:
            assert set(found) <= set(find(scene, Query(filters=(part,))).indexes)


def test_reading_the_same_elements_gives_the_same_node_objects():
    root = El("window", "W", El("button", "A"))
    assert read(root).nodes[1] is read(root).nodes[1]
