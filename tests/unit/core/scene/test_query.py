"""Queries over one scene (spec §8.4; reference S053-S069; cases C08, C10)."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from surehand import limits
from surehand.core.scene.query import check_query, find, resolve_one
from surehand.errors import AmbiguousTarget, InvalidRequest, TargetNotFound, TooLarge
from surehand.model.query import Filter, Query, Rect, TextMatch
from surehand.model.record import convert, decode
from tests.scene_kit import VISIBLE, El, Watcher, label, place


class Form:
    """A small window with one of everything."""

    def __init__(self) -> None:
        self.caption = El("label", "Name", bounds=(0, 0, 50, 20))
        self.entry = El("text", "", value="Ada", labelled_by=(self.caption.handle,), bounds=(60, 0, 100, 20))
        self.secret = El("password", "PIN", value=None, secret=True, bounds=(60, 30, 100, 20))
        self.save = El("button", "Save", bounds=(0, 60, 50, 20))
        self.save_as = El("button", "Save as…", states=VISIBLE - {"enabled"}, bounds=(60, 60, 50, 20))
        self.box = El("filler", "", self.caption, self.entry, self.secret, bounds=(0, 0, 200, 55))
        self.names = [El("cell", name, row=row, column=0) for row, name in enumerate(["carol", "dave"])]
        self.amounts = [El("cell", "10", row=row, column=1, value="ten") for row in range(2)]
        cells = itertools.chain.from_iterable(zip(self.names, self.amounts, strict=True))
        self.table = El("table", "People", *cells)
        self.root = El("window", "Form", self.box, self.save, self.save_as, self.table, bounds=(0, 0, 200, 100))
        self.watcher = Watcher(self.root)
        self.scene = self.watcher.observe()

    def label(self, el: El) -> str:
        return label(self.scene, el)

    def find(self, *filters: Filter, **options) -> list[str]:
        found = find(self.scene, Query(filters=filters, **options))
        return [self.scene.tree.nodes[index].handle for index in found.indexes]

    def found(self, *filters: Filter) -> list[El]:
        by_handle = {el.handle: el for el in self.root.walk()}
        return [by_handle[handle] for handle in self.find(*filters)]


@pytest.fixture
def form() -> Form:
    return Form()


def name(text: str, match: str = "exact") -> Filter:
    return Filter(name=TextMatch(text=text, match=match))


def relation(kind: str, to: str | Query) -> Filter:
    return Filter(relation=kind, to=to)


@pytest.mark.parametrize(
    ("match", "text", "names"),
    [
        ("exact", "Save", ["Save"]),
        ("exact", "save", []),
        ("prefix", "Save", ["Save", "Save as…"]),
        ("contains", "as…", ["Save as…"]),
        ("contains", "AS…", []),
        ("regex", "^Save", ["Save", "Save as…"]),
        ("regex", "^.{8}$", ["Save as…"]),
        ("regex", "(?i)^SAVE$", ["Save"]),
        ("regex", "ave|aro", ["Save", "Save as…", "carol", "dave"]),
    ],
)
def test_names_compare_by_code_points_and_case(form, match, text, names):
    assert [el.name for el in form.found(name(text, match))] == names


@pytest.mark.parametrize("shown", ["Save", "Save      ", "  Save\n", "\tSave\u00a0"])
@pytest.mark.parametrize(
    ("match", "text"),
    [("exact", "Save"), ("exact", " Save "), ("prefix", "Sav"), ("contains", "ave"), ("regex", "^Save$")],
)
def test_blanks_that_a_toolkit_pads_a_name_with_do_not_hide_it(shown, match, text):
    save, other = El("menuitem", shown), El("menuitem", "Save As")
    root = El("window", "W", save, other)
    scene = Watcher(root).observe()
    found = find(scene, Query(filters=(Filter(role="menuitem"), name(text, match))))
    assert scene.tree.nodes[found.indexes[0]].handle == save.handle
    assert len(found.indexes) == (1 if match in ("exact", "regex") else 2)


def test_blanks_between_words_count_as_one_and_do_not_vanish():
    scene = Watcher(El("window", "W", El("button", "Save\n  as"), El("button", "Saveas"))).observe()
    assert [scene.tree.nodes[i].name for i in find(scene, Query(filters=(name("Save as"),))).indexes] == ["Save\n  as"]


def test_two_names_that_differ_in_blanks_alone_are_ambiguous_and_none_is_taken():
    scene = Watcher(El("window", "W", El("button", "Save"), El("button", "Save "))).observe()
    with pytest.raises(AmbiguousTarget):
        resolve_one(scene, Query(filters=(name("Save"),)))


@pytest.mark.parametrize("text", ["7", "7 7", " 7 "])
def test_a_button_that_says_its_text_twice_is_found_by_it(text):
    seven, other = El("button", "7 7", El("label", "7")), El("button", "8 8", El("label", "8"))
    scene = Watcher(El("window", "W", seven, other)).observe()
    found = find(scene, Query(filters=(Filter(role="button"), name(text))))
    assert [scene.tree.nodes[i].handle for i in found.indexes] == [seven.handle]
    assert scene.tree.nodes[resolve_one(scene, Query(filters=(name(text),)))].handle == seven.handle


def test_a_name_of_two_like_words_is_not_cut_in_half():
    scene = Watcher(El("window", "W", El("button", "bye bye", El("label", "bye bye")), El("button", "7 7"))).observe()
    for text in ("bye", "7"):
        assert find(scene, Query(filters=(Filter(role="button"), name(text)))).indexes == ()


def test_the_label_around_an_element_is_found_without_its_blanks():
    button = El("button", "Open")
    rows = El("list", "People", El("listitem", "", El("label", "carol  "), button))
    scene = Watcher(El("window", "W", rows)).observe()
    found = find(scene, Query(filters=(Filter(role="button"), Filter(context=TextMatch(text="carol")))))
    assert [scene.tree.nodes[i].handle for i in found.indexes] == [button.handle]


def test_every_blank_of_a_value_counts(form):
    form.entry.set(value="Ada ")
    scene = form.watcher.observe()
    for text, count in (("Ada", 0), ("Ada ", 1)):
        assert len(find(scene, Query(filters=(Filter(value=TextMatch(text=text)),))).indexes) == count


def test_composed_and_decomposed_names_differ():
    root = El("window", "W", El("button", "S\u00e0ve"))
    scene = Watcher(root).observe()
    assert not find(scene, Query(filters=(name("Sa\u0300ve"),))).indexes
    assert find(scene, Query(filters=(name("S\u00e0ve"),))).indexes


def test_roles_are_found_by_name_and_by_alias(form):
    assert form.found(Filter(role="button")) == [form.save, form.save_as]
    assert form.found(Filter(role="push button")) == [form.save, form.save_as]
    assert form.found(Filter(role="textbox")) == [form.entry]


def test_values_are_found_and_secrets_are_not(form):
    form.secret.set(value="1234")
    form.scene = form.watcher.observe()
    assert form.found(Filter(value=TextMatch(text="Ada"))) == [form.entry]
    assert form.found(Filter(value=TextMatch(text="", match="contains"))) == [form.entry, *form.amounts]


def test_states_are_required_or_excluded(form):
    assert form.found(Filter(role="button"), Filter(state={"enabled": True})) == [form.save]
    assert form.found(Filter(role="button"), Filter(state={"enabled": False, "visible": True})) == [form.save_as]


def test_capabilities_sources_and_confidence(form):
    assert form.found(Filter(capability="set_text")) == [form.entry]
    everything = len(form.root.walk())
    assert len(form.found(Filter(source="accessibility"))) == everything
    assert form.found(Filter(source="ocr")) == []
    assert len(form.found(Filter(confidence_min=1000))) == everything


def test_a_label_finds_its_element_only(form):
    assert form.found(Filter(label=form.label(form.save))) == [form.save]
    for never in ("e0", "e99", "e-1", "1", "null"):
        assert form.found(Filter(label=never)) == []


def test_a_context_matches_whole_or_in_a_part(form):
    for text in ("People › carol", "carol"):
        assert form.found(Filter(context=TextMatch(text=text))) == [form.amounts[0]]
    assert form.found(Filter(context=TextMatch(text="caro", match="prefix"))) == [form.amounts[0]]
    assert set(form.found(Filter(context=TextMatch(text="Peop", match="prefix")))) == {*form.names, *form.amounts}
    assert form.found(Filter(context=TextMatch(text="^carol$", match="regex"))) == [form.amounts[0]]


# --- geometry ---


def test_rectangles_are_half_open():
    el = El("button", "B", bounds=(10, 10, 10, 10))
    scene = Watcher(El("window", "W", el)).observe()

    def hits(*area: int) -> bool:
        x, y, width, height = area
        query = Query(filters=(Filter(within=Rect(x=x, y=y, width=width, height=height)),))
        return bool(find(scene, query).indexes)

    assert hits(0, 0, 11, 11)
    assert not hits(0, 0, 10, 30)
    assert not hits(0, 0, 30, 10)
    assert not hits(20, 10, 5, 5)
    assert hits(19, 19, 1, 1)
    assert not hits(12, 12, 0, 5)


def test_extents_at_the_ends_of_32_bits_do_not_wrap():
    far = El("listitem", "closed", bounds=(-(2**31), -(2**31), 2**31 - 1, 2**31 - 1))
    el = El("button", "B", bounds=(2**31 - 1, 2**31 - 1, 2**31 - 1, 2**31 - 1))
    scene = Watcher(El("window", "W", far, el)).observe()
    query = Query(filters=(Filter(within=Rect(x=0, y=0, width=100, height=100)),))
    assert not find(scene, query).indexes


def test_elements_without_room_are_nowhere():
    els = El("button", "A"), El("button", "B", bounds=(5, 5, 0, 10)), El("button", "C", bounds=(5, 5, -1, 10))
    scene = Watcher(El("window", "W", *els)).observe()
    query = Query(filters=(Filter(within=Rect(x=0, y=0, width=100, height=100)),))
    assert not find(scene, query).indexes


# --- relations ---


def test_relations_of_the_tree(form):
    entry, box, root = (form.label(el) for el in (form.entry, form.box, form.root))
    assert form.found(relation("parent", entry)) == [form.box]
    assert form.found(relation("child", box)) == [form.caption, form.entry, form.secret]
    assert form.found(relation("ancestor", entry)) == [form.root, form.box]
    assert form.found(relation("descendant", box)) == [form.caption, form.entry, form.secret]
    assert form.found(relation("sibling", entry)) == [form.caption, form.secret]
    assert form.found(relation("parent", root)) == []
    assert form.found(relation("sibling", root)) == []
    assert len(form.found(relation("descendant", root))) == len(form.root.walk()) - 1


def test_relations_of_rectangles(form):
    entry, box = form.label(form.entry), form.label(form.box)
    assert form.found(relation("contains", entry)) == [form.root, form.box]
    assert form.found(relation("contained-by", box)) == [form.caption, form.entry, form.secret]
    assert form.found(relation("contained-by", form.label(form.table))) == []


def test_what_a_label_labels(form):
    assert form.found(relation("labelled-by", form.label(form.caption))) == [form.entry]


def test_the_same_row_by_number_item_or_card(form):
    assert form.found(relation("in-row", form.label(form.names[1]))) == [form.amounts[1]]
    assert form.found(relation("in-row", form.label(form.save))) == []
    text, press = El("label", "carol"), El("button", "Open")
    item = El("listitem", "", text, El("filler", "", press))
    other = El("listitem", "", El("label", "dave"), El("button", "Open"))
    scene = Watcher(El("window", "W", El("list", "", item, other))).observe()
    query = Query(filters=(Filter(role="button"), relation("in-row", label(scene, text))))
    assert find(scene, query).indexes == (place(scene, press),)


def test_the_nearest_is_judged_among_what_passes_everything_else(form):
    to = form.label(form.caption)
    assert form.found(Filter(role="button"), relation("nearest", to)) == [form.save]
    assert form.found(relation("nearest", to), Filter(state={"enabled": False}), Filter(role="button")) == [
        form.save_as
    ]


def test_equally_near_elements_are_taken_in_document_order():
    middle = El("label", "m", bounds=(50, 0, 10, 10))
    sides = [El("button", str(x), bounds=(x, 0, 10, 10)) for x in (60, 40)]
    scene = Watcher(El("window", "W", middle, *sides)).observe()
    query = Query(filters=(Filter(role="button"), relation("nearest", label(scene, middle))))
    assert find(scene, query).indexes == (place(scene, sides[0]),)


def test_nothing_is_near_an_element_without_a_place():
    middle = El("label", "m")
    scene = Watcher(El("window", "W", middle, El("button", "b", bounds=(0, 0, 5, 5)))).observe()
    assert not find(scene, Query(filters=(relation("nearest", label(scene, middle)),))).indexes


def test_a_relation_to_a_query_needs_exactly_one_match(form):
    carol = Query(filters=(name("carol"),))
    assert form.found(relation("in-row", carol)) == [form.amounts[0]]
    with pytest.raises(AmbiguousTarget) as ambiguous:
        form.find(relation("in-row", Query(filters=(Filter(role="cell"),))))
    assert len(ambiguous.value.observed["candidates"]) == 4
    with pytest.raises(TargetNotFound) as missing:
        form.find(relation("in-row", Query(filters=(name("nobody"),))))
    assert missing.value.details["relation"] == "in-row"
    with pytest.raises(TargetNotFound):
        form.find(relation("child", "e99"))


def test_queries_nest_to_the_limit_and_not_past_it(form):
    query = Query(filters=(name("carol"),))
    for _ in range(limits.QUERY_DEPTH_MAX - 1):
        query = Query(filters=(relation("in-row", query), Filter(role="cell")))
    find(form.scene, query)
    with pytest.raises(TooLarge):
        find(form.scene, Query(filters=(relation("in-row", query),)))


# --- the query itself ---


def test_all_filters_must_hold(form):
    assert form.found(Filter(role="button"), name("Save", "prefix"), Filter(state={"enabled": True})) == [form.save]
    assert form.found(Filter(role="button"), name("carol")) == []


def test_results_stop_at_the_asked_number_and_say_so(form):
    query = Query(filters=(Filter(role="cell"),), max_results=3)
    found = find(form.scene, query)
    assert len(found.indexes) == 3
    assert found.truncated
    exact = find(form.scene, Query(filters=(Filter(role="cell"),), max_results=4))
    assert (len(exact.indexes), exact.truncated) == (4, False)


def test_the_number_of_filters_is_bounded(form):
    part = Filter(role="button")
    find(form.scene, Query(filters=(part,) * limits.QUERY_FILTERS_MAX))
    with pytest.raises(TooLarge):
        Query(filters=(part,) * (limits.QUERY_FILTERS_MAX + 1))


@pytest.mark.parametrize("count", [0, -1, 10_001, 2**63, 1.5, "1", None, True])
def test_a_wrong_number_of_results_is_refused(count):
    with pytest.raises((InvalidRequest, TooLarge)):
        convert(Query, {"filters": [{"role": "button"}], "max_results": count})


@pytest.mark.parametrize(
    "part",
    [
        {},
        {"role": "button", "label": "e1"},
        {"role": "buton"},
        {"state": {"enabeld": True}},
        {"state": {}},
        {"relation": "child"},
        {"to": "e1"},
        {"relation": "nearby", "to": "e1"},
        {"name": {"text": "(a", "match": "regex"}},
        {"name": {"text": "(?=a)", "match": "regex"}},
        {"name": {"text": "", "match": "regex"}},
        {"name": {"text": "a\x00", "match": "exact"}},
        {"nth": 1},
        {"confidence_min": 1001},
    ],
)
def test_a_filter_that_says_nothing_known_is_refused(form, part):
    with pytest.raises(InvalidRequest):
        find(form.scene, convert(Query, {"filters": [part]}))


def test_a_pattern_at_the_limit_is_taken_and_one_past_it_refused(form):
    form.find(name("a" * limits.QUERY_REGEX_BYTES_MAX, "regex"))
    with pytest.raises(TooLarge):
        name("a" * (limits.QUERY_REGEX_BYTES_MAX + 1), "regex")


def test_a_wrong_filter_is_refused_even_when_another_leaves_nothing(form):
    with pytest.raises(InvalidRequest):
        form.find(Filter(label="e99"), name("(a", "regex"))


def test_a_name_with_a_lone_surrogate_breaks_no_pattern():
    scene = Watcher(El("window", "W", El("button", "a\ud800b"))).observe()
    assert len(find(scene, Query(filters=(name("a.b", "regex"),))).indexes) == 1


# --- exactly one ---


def test_the_one_match_is_returned(form):
    assert resolve_one(form.scene, Query(filters=(name("Save"),))) == place(form.scene, form.save)


def test_two_controls_alike_are_listed_and_none_is_taken(form):
    with pytest.raises(AmbiguousTarget) as caught:
        resolve_one(form.scene, Query(filters=(name("10"),)))
    first, second = caught.value.observed["candidates"]
    assert first.endswith('cell "10" in "People › carol"')
    assert second.endswith('cell "10" in "People › dave"')
    assert caught.value.details == {"matches": 2}


def test_what_is_written_on_a_button_is_no_second_match():
    text, press = El("label", "Open"), El("button", "Open")
    press.children.append(text)
    root = El("window", "W", press)
    scene = Watcher(root).observe()
    assert resolve_one(scene, Query(filters=(name("Open"),))) == place(scene, press)
    assert resolve_one(scene, Query(filters=(name("Open"), Filter(role="label")))) == place(scene, text)
    assert len(find(scene, Query(filters=(name("Open"),))).indexes) == 2
    # A text beside it, or a control inside it, is another match.
    for other in (El("label", "Open"), El("button", "Open")):
        (root if other.fields["role"] == "label" else press).children.append(other)
        with pytest.raises(AmbiguousTarget):
            resolve_one(Watcher(root).observe(), Query(filters=(name("Open"),)))


def test_what_is_hidden_counts_as_a_match_and_the_way_to_leave_it_out_is_said():
    shown = El("button", "B")
    hidden = El("button", "B", states={"enabled"})
    scene = Watcher(El("window", "W", shown, hidden)).observe()
    query = Query(filters=(name("B"),))
    with pytest.raises(AmbiguousTarget) as caught:
        resolve_one(scene, query)
    assert caught.value.observed["candidates"][1].endswith(" hidden")
    assert '{"state":{"showing":true}}' in str(caught.value.fix)
    narrowed = Query(filters=(*query.filters, Filter(state={"showing": True})))
    assert resolve_one(scene, narrowed) == place(scene, shown)


def test_many_matches_are_counted_and_the_first_listed():
    scene = Watcher(El("window", "W", *(El("button", "B") for _ in range(40)))).observe()
    with pytest.raises(AmbiguousTarget) as caught:
        resolve_one(scene, Query(filters=(Filter(role="button"),), max_results=1))
    assert caught.value.details == {"matches": 40}
    assert len(caught.value.observed["candidates"]) == limits.CANDIDATES_MAX


def test_no_match_lists_what_comes_closest(form):
    with pytest.raises(TargetNotFound) as caught:
        resolve_one(form.scene, Query(filters=(Filter(role="button"), name("save"), Filter(state={"enabled": True}))))
    assert caught.value.observed["candidates"] == [f'[{form.label(form.save)}] button "Save"']


def test_the_examples_of_the_reference_page_are_queries(form):
    page = (Path(__file__).parents[4] / "docs/reference/query.md").read_text("utf-8")
    examples = [block.split("```")[0] for block in page.split("```json\n")[1:]]
    assert len(examples) == 2
    for example in examples:
        check_query(decode(Query, example.encode()))
    named = decode(Query, examples[1].replace("Amount", "Name").encode())
    assert find(form.scene, named).indexes == (place(form.scene, form.entry),)
