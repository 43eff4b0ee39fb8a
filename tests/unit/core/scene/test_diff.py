"""Diffs of the text form: their grammar, their cost, and refusal of what does not fit (spec §8.5; ST02-ST04)."""

from __future__ import annotations

import pytest

from surehand.core.scene.diff import apply, diff
from surehand.core.scene.render import RenderOptions, render_text
from surehand.core.scene.tokens import tokens
from surehand.errors import InvalidRequest
from tests.scene_kit import VISIBLE, El, Watcher, surface


class Window:
    """A window with a list of buttons."""

    def __init__(self, count: int = 12) -> None:
        self.buttons = [El("button", f"button {number}") for number in range(count)]
        self.box = El("group", "Box", *self.buttons)
        self.tail = El("label", "tail")
        self.root = El("window", "Window", self.box, self.tail)
        self.watcher = Watcher(self.root)
        self.base = self.watcher.observe()

    def change(self, **options) -> list[str]:
        """Return the diff's operations, after applying it."""
        options_ = RenderOptions(**options)
        scene = self.watcher.observe()
        change = diff(self.base, scene, options_)
        held = render_text(self.base, options_)
        assert apply(held, change.text) == render_text(scene, options_)
        assert not change.full, change.reason
        self.base = scene
        return change.text.split("\n")


def _rename(el: El) -> None:
    el.set(name=f"{el.name} again")


@pytest.fixture
def window() -> Window:
    return Window()


def test_no_change_is_one_line(window):
    lines = window.change()
    assert len(lines) == 1
    assert lines[0].startswith("diff of=1#")
    assert lines[0].endswith(" generation=1")


def test_a_changed_element_costs_its_line(window):
    window.buttons[3].add_states("focused")
    assert window.change()[1:] == ['~     [e6] button "button 3" focused']


def test_an_inserted_sibling_costs_its_line(window):
    window.box.children.insert(0, El("button", "new"))
    assert window.change()[1:] == ['+ e2     [e16] button "new"']
    window.root.children.insert(0, El("button", "first"))
    assert window.change()[1:] == ['+ e0   [e17] button "first"']


def test_removed_elements_that_stand_together_are_a_run(window):
    del window.box.children[2:6]
    del window.box.children[4]
    assert window.change()[1:] == ["- e5..e8 e11"]


def test_two_elements_are_no_run(window):
    del window.box.children[2:4]
    assert window.change()[1:] == ["- e5 e6"]


def test_a_moved_run_costs_one_line(window):
    children = window.box.children
    window.box.children = children[4:] + children[:4]
    assert window.change()[1:] == ["> e14 e3..e6"]


def test_a_renamed_element_is_removed_and_added(window):
    window.buttons[1].set(name="renamed")
    assert window.change()[1:] == ["- e4", '+ e3     [e16] button "renamed"']


def test_a_new_title_replaces_the_windows_line(window):
    window.root.set(name="*Window")
    assert window.change()[1:] == ['= [e16] window "*Window" app=app surface=w1 generation=2']


def test_an_element_moved_into_another_changes_its_depth(window):
    window.box.children.pop(0)
    window.root.children.append(window.buttons[0])
    lines = window.change()[1:]
    # Its ancestors are others, so it is another element.
    assert lines == ["- e3", '+ e15   [e16] button "button 0"']


def test_the_omission_marker_follows_the_text():
    window = Window(40)
    window.box.children.insert(0, El("button", "new"))
    lines = window.change(nodes_max=10)
    assert lines[-1] == "… 34 more elements: use query or scope"
    del window.box.children[5:]
    assert not any(line.startswith("…") for line in window.change(nodes_max=10))


def test_many_diffs_in_a_row_lead_to_the_last_text(window):
    held = render_text(window.base)
    for number in range(50):
        window.box.children.insert(number % 5, El("button", f"n{number}"))
        window.buttons[number % 12].set(value=str(number))
        scene = window.watcher.observe()
        held = apply(held, diff(window.base, scene).text)
        window.base = scene
    assert held == render_text(window.base)


@pytest.mark.parametrize(
    ("reason", "ruin"),
    [
        ("no earlier scene", lambda window: setattr(window, "base", None)),
        ("another session", lambda window: setattr(window.watcher, "session", "t" * 32)),
        ("replaced", lambda window: setattr(window.watcher, "surface", surface(process_generation="100:2"))),
        ("most of the window", lambda window: list(map(_rename, window.root.walk()[1:]))),
    ],
)
def test_whatever_is_in_doubt_is_told_whole_with_the_reason(window, reason, ruin):
    ruin(window)
    scene = window.watcher.observe()
    change = diff(window.base, scene)
    assert change.full
    assert reason in change.reason
    assert change.text == render_text(scene)
    assert apply("anything", change.text) == change.text


def test_a_part_that_was_not_there_before_is_told_whole(window):
    group = El("group", "New")
    window.root.children.append(group)
    scene = window.watcher.observe()
    change = diff(window.base, scene, RenderOptions(within="e16"))
    assert change.full
    assert "part" in change.reason


def test_a_diff_of_another_text_is_refused(window):
    window.buttons[3].add_states("focused")
    scene = window.watcher.observe()
    change = diff(window.base, scene)
    with pytest.raises(InvalidRequest):
        apply(render_text(window.base, RenderOptions(bounds=True)), change.text)
    with pytest.raises(InvalidRequest):
        apply(render_text(scene), change.text)


@pytest.mark.parametrize(
    "operation",
    [
        "- e99",
        "- e5..e3",
        "- ",
        "> e99 e3",
        "> e3",
        "> e5 e4..e6",
        "> e3 e3",
        "~   [e99] button",
        "~ button",
        "+ e99   [e50] button",
        "+ e3   [e4] button",
        "+ e3 button",
        '+ e3   [e50] button "a" [e50] "b"',
        '+ e3   [e50] button "a" | [e4] "b"',
        '+ e3   [e50] "a"',
        '+ e3    [e50] button "odd indent"',
        '+ e3   [e50] button "open',
        '~   [e3] button "a" [e99] "b"',
        "! e3",
        "",
    ],
)
def test_a_made_up_operation_is_refused_and_ends(window, operation):
    held = render_text(window.base)
    head = diff(window.base, window.base).text
    with pytest.raises(InvalidRequest):
        apply(held, f"{head}\n{operation}")


def test_a_malformed_head_is_refused(window):
    with pytest.raises(InvalidRequest):
        apply(render_text(window.base), "diff of=x#12345678 generation=2")


def _row(name: str) -> El:
    return El("listitem", "", El("label", name), El("button", "Open"), El("button", "Delete"))


def test_an_inserted_row_costs_one_line():
    rows = El("list", "People", *map(_row, ["alice", "bob"]))
    watcher = Watcher(El("window", "W", rows, *(El("button", f"{number}") for number in range(20))))
    base = watcher.observe()
    rows.children.insert(1, _row("carol"))
    scene = watcher.observe()
    change = diff(base, scene)
    assert change.text.split("\n")[1:] == ['+ e6     [e31] listitem in="carol": [e33] button "Open" [e34] "Delete"']
    assert apply(render_text(base), change.text) == render_text(scene)


def test_elements_added_together_share_lines_that_follow_each_other(window):
    window.box.children[3:3] = [El("button", "a"), El("button", "b"), El("checkbox", "c"), El("checkbox", "d")]
    assert window.change()[1:] == ['+ e5     [e16] button "a" [e17] "b"', '+ e17     [e18] checkbox "c" [e19] "d"']


def test_an_element_that_leaves_a_joined_line_costs_a_line_whatever_follows_it(window):
    window.buttons[0].add_states("focused")
    assert window.change()[1:] == ['~     [e3] button "button 0" focused']
    del window.box.children[0]
    assert window.change()[1:] == ["- e3"]


def test_another_number_left_out_costs_the_line_it_stands_at():
    shut = VISIBLE - {"showing"}
    rows = El("list", "", *(El("button", f"{number}", states=shut) for number in range(40)))
    watcher = Watcher(El("window", "W", rows))
    base = watcher.observe()
    rows.children.insert(20, El("button", "new", states=shut))
    scene = watcher.observe()
    change = diff(base, scene)
    assert change.text.split("\n")[1:] == ['~     [e10] button "7" hidden … 29 more elements: use query or scope']
    assert apply(render_text(base), change.text) == render_text(scene)


def test_a_diff_of_a_budgeted_text_makes_the_other_within_the_budget():
    buttons = [El("button", f"{number}") for number in range(40)]
    root = El("window", "W", *buttons)
    watcher = Watcher(root)
    options = RenderOptions(tokens_max=300)
    base = watcher.observe()
    # The focus moves to the other end, so most of what is shown is other.
    buttons[-1].add_states("focused")
    scene = watcher.observe()
    change = diff(base, scene, options)
    assert tokens(change.text) <= 300
    assert apply(render_text(base, options), change.text) == render_text(scene, options)
