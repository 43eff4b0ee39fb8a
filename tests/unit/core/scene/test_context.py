"""Which neighbours give an element its meaning, and which never do (spec §8.3)."""

from __future__ import annotations

import pytest

from surehand import limits
from surehand.core.scene.context import contexts_of
from tests.scene_kit import El, Watcher, context, place, read


def button(name: str = "Open") -> El:
    return El("button", name)


def contexts(root: El, *els: El) -> list[str]:
    scene = Watcher(root).observe()
    return [context(scene, el) for el in els]


def row(*children: El, role: str = "listitem", name: str = "") -> El:
    return El(role, name, *children)


# --- rows ---


def test_a_control_in_a_list_item_is_known_by_the_first_label():
    opens = [button(), button()]
    items = [
        row(El("label", name), El("label", "3 unread"), press)
        for name, press in zip(["carol", "dave"], opens, strict=True)
    ]
    assert contexts(El("window", "W", El("list", "", *items)), *opens) == ["carol", "dave"]


def test_labels_are_found_through_boxes_and_cells():
    press = button()
    item = row(El("filler", "", El("image", ""), El("filler", "", El("label", "carol")), press))
    assert contexts(El("window", "W", El("list", "", item)), press) == ["carol"]
    cell_press = button()
    line = row(El("cell", "", El("label", "carol")), El("cell", "", cell_press), role="row")
    assert contexts(El("window", "W", El("table", "", line)), cell_press) == ["carol"]


def test_a_row_header_comes_before_the_first_cell():
    press = button()
    line = row(El("cell", "1"), El("rowheader", "carol"), El("cell", "", press), role="row")
    assert contexts(El("window", "W", El("table", "", line)), press) == ["carol"]


def test_an_order_number_in_the_first_cell_is_the_row():
    press = button()
    line = row(El("cell", "1042"), El("cell", "carol"), El("cell", "", press), role="row")
    assert contexts(El("window", "W", El("table", "", line)), press) == ["1042"]


@pytest.mark.parametrize("mark", ["•", "★", " ", "▶", "—"])
def test_marks_name_no_row(mark):
    press = button()
    assert contexts(El("window", "W", El("list", "", row(El("label", mark), El("label", "carol"), press))), press) == [
        "carol"
    ]


def test_an_item_without_texts_is_known_by_its_own_name():
    press = button()
    item = row(press, name="carol")
    got = contexts(El("window", "W", El("list", "", item)), press, item)
    # The item's own name is in its own fingerprint already.
    assert got == ["carol", ""]


def test_a_nameless_item_is_known_by_its_label_too():
    item = row(El("label", "carol"))
    assert contexts(El("window", "W", El("list", "", item)), item) == ["carol"]


def test_a_control_is_not_known_by_the_name_every_row_has():
    rows = [row(button("Open"), button("Delete")) for _ in range(2)]
    deletes = [item.children[1] for item in rows]
    assert contexts(El("window", "W", El("list", "", *rows)), *deletes) == ["", ""]


def test_a_row_of_controls_is_known_by_the_name_no_other_row_has():
    rows = [row(button(name), button("Delete")) for name in ("carol", "dave")]
    deletes = [item.children[1] for item in rows]
    assert contexts(El("window", "W", El("list", "", *rows)), *deletes) == ["carol", "dave"]


def test_a_row_alone_is_known_by_its_link_and_not_by_a_button():
    press, lone = button("Delete"), button("Delete")
    assert contexts(El("window", "W", El("list", "", row(El("link", "carol"), press))), press) == ["carol"]
    assert contexts(El("window", "W", El("list", "", row(button("Open"), lone))), lone) == [""]


def test_rows_with_the_same_first_text_are_told_apart_by_words_before_numbers():
    opens = [button() for _ in range(3)]
    texts = [("bob", "3", "Hello"), ("bob", "5", "Bye"), ("alice", "9", "Hello")]
    items = [row(*(El("label", text) for text in line), press) for line, press in zip(texts, opens, strict=True)]
    assert contexts(El("window", "W", El("list", "", *items)), *opens) == ["bob · Hello", "bob · Bye", "alice"]


def test_rows_that_differ_in_numbers_only_are_told_apart_by_numbers():
    opens = [button() for _ in range(2)]
    items = [
        row(El("label", "bob"), El("label", number), press)
        for number, press in zip(["1042", "1043"], opens, strict=True)
    ]
    assert contexts(El("window", "W", El("list", "", *items)), *opens) == ["bob · 1042", "bob · 1043"]


def test_rows_that_are_alike_throughout_share_a_context():
    opens = [button() for _ in range(2)]
    items = [row(El("label", "bob"), press) for press in opens]
    assert contexts(El("window", "W", El("list", "", *items)), *opens) == ["bob", "bob"]


def test_cells_without_rows_are_known_by_the_first_text_of_their_row_number():
    cells = [
        El("cell", text, row=line, column=column)
        for line, texts in enumerate([("carol", "10"), ("dave", "20")])
        for column, text in enumerate(texts)
    ]
    table = El("table", "People", *cells)
    got = contexts(El("window", "W", table), *cells)
    # The first cell's text is its own name.
    assert got == ["People", "People › carol", "People", "People › dave"]


def test_a_cell_knows_the_header_of_its_column():
    boxes = [El("cell", "", row=0, column=column) for column in (1, 2)]
    table = El(
        "table",
        "",
        *(El("columnheader", name, column=column) for column, name in enumerate(["Name", "Read", "Write"])),
        El("cell", "carol", row=0, column=0),
        *boxes,
    )
    assert contexts(El("window", "W", table), *boxes) == ["carol › Read", "carol › Write"]


def test_nested_items_keep_the_whole_path():
    leaf = El("treeitem", "main.py")
    tree = El("tree", "Files", El("treeitem", "src", El("treeitem", "app", leaf)))
    assert contexts(El("window", "W", tree), leaf) == ["Files › src › app"]


def test_an_outer_item_is_not_known_by_a_nested_items_text():
    press = button()
    outer = row(El("list", "", row(El("label", "inner"))), El("label", "outer"), press)
    assert contexts(El("window", "W", El("list", "", outer)), press) == ["outer"]


# --- cards ---


def card(text: str, press: El, **fields: object) -> El:
    return El("filler", "", El("label", text), press, **fields)


def test_plain_boxes_of_one_build_are_cards():
    opens = [button(), button()]
    root = El("window", "W", El("filler", "", card("carol", opens[0]), card("dave", opens[1])))
    assert contexts(root, *opens) == ["carol", "dave"]


def test_a_card_may_have_more_labels_than_its_neighbour():
    opens = [button(), button()]
    boxes = [
        El("filler", "", El("label", "carol"), El("label", "new"), opens[0]),
        El("filler", "", El("label", "dave"), opens[1]),
    ]
    assert contexts(El("window", "W", *boxes), *opens) == ["carol", "dave"]


def test_a_status_label_beside_a_button_is_no_context():
    press, count = button("Press"), El("label", "Pressed 3 times")
    root = El("window", "W", El("filler", "", El("label", "12:00:01 · 3 unread"), press, count))
    assert contexts(root, press) == [""]


def test_boxes_with_bare_numbers_are_no_cards():
    plus = [button("+"), button("+")]
    root = El("window", "W", El("filler", "", card("2", plus[0]), card("7", plus[1])))
    assert contexts(root, *plus) == ["", ""]


def test_the_labels_inside_buttons_make_no_cards_of_a_keypad():
    keys = [El("button", str(number), El("label", str(number))) for number in range(4)]
    root = El("window", "W", El("group", "", El("group", "", *keys[:2]), El("group", "", *keys[2:])))
    assert contexts(root, *keys) == [""] * 4


def test_boxes_that_share_a_name_are_cards_all_the_same():
    opens = [button(), button()]
    boxes = [
        El("filler", "People", El("label", name), press) for name, press in zip(["carol", "dave"], opens, strict=True)
    ]
    assert contexts(El("window", "W", El("group", "People", *boxes)), *opens) == ["People › carol", "People › dave"]


def test_a_box_with_a_name_of_its_own_is_known_by_that():
    presses = [button("Pause"), button("Pause")]
    boxes = [
        El("group", name, El("label", f"Used {number} GB"), press)
        for number, (name, press) in enumerate(zip(["Memory", "Disk"], presses, strict=True))
    ]
    assert contexts(El("window", "W", *boxes), *presses) == ["Memory", "Disk"]


def test_the_columns_of_a_window_are_no_cards():
    columns = []
    for text in ("12:00 o'clock", "3 unread"):
        buttons = [button(f"b{number}") for number in range(limits.CONTEXT_CARD_NODES_MAX)]
        columns.append(El("filler", "", El("label", text), *buttons))
    presses = [column.children[1] for column in columns]
    assert contexts(El("window", "W", *columns), *presses) == ["", ""]
    for column in columns:
        column.children.pop()
    assert contexts(El("window", "W", *columns), *presses) == ["12:00 o'clock", "3 unread"]


def test_row_headers_that_only_count_name_no_row():
    cells = [
        El("rowheader" if column < 0 else "cell", text, row=line, column=None if column < 0 else column)
        for line, texts in enumerate([("1", "carol", "10"), ("2", "dave", "20")])
        for column, text in enumerate(texts, start=-1)
    ]
    assert contexts(El("window", "W", El("table", "", *cells)), cells[2], cells[5]) == ["carol", "dave"]
    press = button()
    line = row(El("rowheader", "3", row=2), El("cell", "carol"), El("cell", "", press), role="row")
    assert contexts(El("window", "W", El("table", "", line)), press) == ["carol"]
    header = El("rowheader", "1042", row=0)
    amount = El("cell", "10", row=0, column=0)
    assert contexts(El("window", "W", El("table", "", header, amount)), amount) == ["1042"]


# --- what is written inside controls ---


def test_a_control_without_a_name_is_known_by_the_text_inside_it():
    pay = El("button", "", El("filler", "", El("label", "Pay 10")))
    assert contexts(El("window", "W", pay), pay) == ["Pay 10"]


def test_controls_with_one_name_are_known_by_the_texts_inside_them():
    tabs = [El("tab", "Tab", El("label", name)) for name in ("One", "Two")]
    assert contexts(El("window", "W", El("tablist", "One", *tabs)), *tabs) == ["One", "Two"]


def test_a_picture_of_a_control_is_known_by_its_description():
    clear = El("button", "", description="Clear display")
    named = El("button", "Save", description="Saved 12:01")
    pay = El("button", "", El("label", "Pay 10"), description="Saved 12:01")
    assert contexts(El("window", "W", clear, named, pay), clear, named, pay) == ["Clear display", "", "Pay 10"]


def test_a_counter_inside_a_named_control_does_not_count():
    press = El("button", "Inbox", El("label", "3 unread"))
    assert contexts(El("window", "W", press), press) == [""]


def test_the_current_value_inside_a_combo_box_does_not_count():
    combo = El("combobox", "", El("label", "red"))
    assert contexts(El("window", "W", combo), combo) == [""]


def test_the_current_tab_is_no_title_of_the_tab_bar():
    tab = El("tab", "Two")
    assert contexts(El("window", "W", El("tablist", "One", tab)), tab) == [""]


# --- sections, menus, dialogs, labels ---


def test_named_groups_around_an_element_count_all_and_outermost_first():
    press = button("Edit")
    root = El("window", "Window title", El("group", "Billing", El("filler", "", El("pane", "Address", press))))
    assert contexts(root, press) == ["Billing › Address"]


def test_a_groups_heading_titles_it():
    press = button("Edit")
    group = El("group", "", El("heading", "Billing"), press)
    assert contexts(El("window", "W", group), press, group) == ["Billing", "Billing"]


def test_the_titles_of_windows_and_documents_do_not_count():
    press = button()
    root = El("window", "Inbox (3)", El("document", "Inbox (3) - Mail", El("statusbar", "12:00", press)))
    assert contexts(root, press) == [""]


def test_marks_of_unsaved_work_do_not_count():
    press = button()
    root = El("window", "W", El("tabpanel", "*notes.txt", press))
    assert contexts(root, press) == ["notes.txt"]
    root.children[0].set(name="notes.txt •")
    assert contexts(root, press) == ["notes.txt"]
    root.children[0].set(name="*")
    assert contexts(root, press) == ["*"]


def test_menus_title_their_items():
    item = El("menuitem", "Recent")
    root = El("window", "W", El("menubar", "", El("menu", "File", El("menu", "Open", item))))
    assert contexts(root, item) == ["File › Open"]


def test_a_dialogs_title_counts():
    press = button("OK")
    assert contexts(El("dialog", "Delete carol?", press), press) == ["Delete carol?"]


def test_an_alert_is_known_by_its_message_too():
    press = button("OK")
    alert = El("alert", "Question", El("filler", "", El("image", ""), El("label", "Delete carol?")), press)
    assert contexts(alert, press) == ["Question · Delete carol?"]
    alert.set(name="")
    assert contexts(alert, press) == ["Delete carol?"]


def test_what_labels_an_element_counts_innermost():
    caption = El("label", "Amount")
    entry = El("text", "", labelled_by=(caption.handle, "not in this window"))
    assert contexts(El("window", "W", El("group", "Order", caption, entry)), entry) == ["Order › Amount"]


def test_a_combo_box_is_no_title_for_its_options_but_its_label_is():
    caption = El("label", "Country")
    option = El("listitem", "Spain")
    combo = El("combobox", "France", El("list", "", option), labelled_by=(caption.handle,))
    assert contexts(El("window", "W", caption, combo), option) == ["Country"]
    combo.set(labelled_by=())
    assert contexts(El("window", "W", caption, combo), option) == [""]


def test_a_label_that_also_names_the_row_counts_once():
    rows = []
    for name in ("Name", "Street"):
        caption = El("label", name)
        rows.append(El("filler", "", caption, El("text", "", labelled_by=(caption.handle,))))
    assert contexts(El("window", "W", *rows), *(line.children[1] for line in rows)) == ["Name", "Street"]


def test_editable_texts_and_secrets_never_label():
    caption = El("label", "", value="typed", states=frozenset({"editable", "visible"}))
    hidden = El("label", "hunter2", secret=True)
    entry = El("text", "", labelled_by=(caption.handle, hidden.handle))
    press = button()
    item = row(caption, hidden, press)
    assert contexts(El("window", "W", item, entry), entry, press) == ["", ""]


def test_only_the_nearest_parts_count():
    leaf = button()
    tree = leaf
    for number in range(limits.CONTEXT_PARTS_MAX + 1):
        tree = El("group", f"g{number}", tree)
    parts = contexts(El("window", "W", tree), leaf)[0].split(" › ")
    assert parts == [f"g{number}" for number in reversed(range(limits.CONTEXT_PARTS_MAX))]


# --- stability ---


def test_churn_elsewhere_changes_no_context_and_no_label():
    opens = [button(), button()]
    clock, unread = El("label", "12:00:00"), El("label", "0 unread")
    counts = [El("label", "1"), El("label", "2")]
    items = [
        row(El("label", name), count, press)
        for name, count, press in zip(["carol", "dave"], counts, opens, strict=True)
    ]
    root = El("window", "Mail", El("list", "", *items), El("statusbar", "", clock, unread))
    watcher = Watcher(root)
    first = watcher.observe()
    before = [first.targets[place(first, press)] for press in opens]
    for tick in range(20):
        clock.set(name=f"12:00:{tick:02}")
        unread.set(name=f"{tick} unread")
        counts[tick % 2].set(name=str(tick))
        root.set(name=f"*Mail ({tick})")
        scene = watcher.observe()
        after = [scene.targets[place(scene, press)] for press in opens]
        assert [(target.label, target.context_hash) for target in after] == [
            (target.label, target.context_hash) for target in before
        ]


def test_a_recycled_row_keeps_its_label_and_shows_another_context():
    press, name = button(), El("label", "carol")
    watcher = Watcher(El("window", "W", El("list", "", row(name, press))))
    first = watcher.observe()
    name.set(name="dave")
    second = watcher.observe()
    old, new = (scene.targets[place(scene, press)] for scene in (first, second))
    assert (old.label, old.fingerprint_hash) == (new.label, new.fingerprint_hash)
    assert (old.context, new.context) == ("carol", "dave")
    assert old.context_hash != new.context_hash
    assert second.generation == first.generation + 1


def test_the_context_names_exactly_the_nodes_it_was_read_from():
    press, name, other = button(), El("label", "carol"), El("label", "other")
    group = El("group", "People", El("list", "", row(name, other, press)))
    scene = Watcher(El("window", "W", group)).observe()
    assert scene.targets[place(scene, press)].context_handles == (name.handle, group.handle)


def test_texts_cannot_imitate_two_parts():
    one, other = button(), button()
    root = El("window", "W", El("group", "a › b", one), El("group", "a", El("group", "b", other)))
    scene = Watcher(root).observe()
    first, second = scene.targets[place(scene, one)], scene.targets[place(scene, other)]
    assert first.context == second.context
    assert first.context_hash != second.context_hash


def test_a_row_of_more_nodes_than_are_looked_at_is_still_bounded():
    fillers = [El("filler", "") for _ in range(limits.CONTEXT_SCAN_NODES_MAX - 1)]
    near, far = button(), button()
    item = row(*fillers, El("label", "near"), near)
    too_far = row(*[El("filler", "") for _ in range(limits.CONTEXT_SCAN_NODES_MAX)], El("label", "far"), far)
    assert contexts(El("window", "W", item, too_far), near, far) == ["near", ""]


def test_equal_contexts_are_not_hashed_again(monkeypatch):
    presses = [button() for _ in range(30)]
    names = [El("label", f"name {number}") for number in range(30)]
    root = El("window", "W", El("list", "", *(row(*pair) for pair in zip(names, presses, strict=True))))
    first = read(root)
    contexts_of(first)
    names[4].set(name="other")
    hashed = []
    monkeypatch.setattr("surehand.core.scene.context.context_hash", lambda key: hashed.append(key) or "0" * 64)
    contexts_of(read(root), first)
    assert hashed == [(("row", ("other",)),)]
