"""Joining lines of the text form and taking them apart (spec §8.5)."""

from __future__ import annotations

import pytest

from surehand.core.scene.packing import label_of, pack, unpack


def joined(*lines: str) -> list[str]:
    texts = [line.text for line in pack(lines)]
    assert unpack(texts) == list(lines)
    return texts


def test_neighbours_of_one_kind_share_a_line():
    assert joined('  [e1] button "A"', '  [e2] button "B" disabled', '  [e3] link "C"') == [
        '  [e1] button "A" [e2] "B" disabled',
        '  [e3] link "C"',
    ]


def test_an_element_without_a_name_keeps_its_role_so_that_its_states_are_none():
    assert joined("  [e1] button checked", "  [e2] button focused") == ["  [e1] button checked [e2] button focused"]
    assert joined('  [e1] cell "A"', '  [e2] cell in="A" selected') == ['  [e1] cell "A" | [e2] cell selected']


def test_what_is_deep_or_long_is_not_told_on_its_hosts_line():
    deep = ['[e1] menu "A"', '  [e2] menu "B"', '    [e3] menuitem "C"']
    assert joined(*deep) == [deep[0], '  [e2] menu "B": [e3] menuitem "C"']
    long = ['[e1] menu "A"', f'  [e2] menuitem "{"x" * 250}"']
    assert joined(*long) == long


def test_the_second_of_a_name_begins_the_next_row():
    assert joined(
        '  [e1] cell "A"', '  [e2] cell "1" in="A"', '  [e3] cell "A"', '  [e4] cell "2" in="A"', '  [e5] cell "A"'
    ) == ['  [e1] cell "A" | [e2] "1"', '  [e3] cell "A" | [e4] "2"', '  [e5] cell "A"']


def test_a_count_of_what_is_left_out_ends_its_line():
    lines = ['  [e1] button "A"', '  [e2] button "B" … 3 more elements: use query or scope', '  [e6] button "C"']
    assert joined(*lines) == ['  [e1] button "A" [e2] "B" … 3 more elements: use query or scope', '  [e6] button "C"']


@pytest.mark.parametrize(
    "name", [r"\" [e9] \"", "[e9] button", ": [e9]", " | [e9]", "… 3 more", "hidden: ", "=", "\\\\"]
)
def test_no_name_takes_a_line_apart(name):
    joined(f'  [e1] button "{name}"', f'  [e2] button "{name}"')
    joined(f'  [e1] cell "{name}"', f'  [e2] cell "x" in="{name}"')
    joined(f'  [e1] menu "{name}"', f'    [e2] menuitem "{name}" hidden')


@pytest.mark.parametrize(
    "line",
    [
        "",
        "button",
        "  button [e1]",
        "   [e1] button",
        '  [e1] "A"',
        '  [e1] button "A"[e2] "B"',
        '  [e1] button "A',
        "  [e1] button [x]",
        "… 3 more elements: use query or scope",
        "  hidden: ",
    ],
)
def test_what_is_no_line_is_refused(line):
    with pytest.raises(ValueError):  # noqa: PT011 - callers turn it into what they know
        unpack([line])


def test_a_label_is_of_one_element_only():
    assert label_of("  [e7] button") == "e7"
    with pytest.raises(ValueError):  # noqa: PT011 - callers turn it into what they know
        label_of('  [e7] button "A" [e8] "B"')
