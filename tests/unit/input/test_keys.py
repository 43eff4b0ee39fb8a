"""Key names and chords in three spellings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surehand import limits
from surehand.core.input import tables
from surehand.core.input.keys import CLICK_MODIFIERS, character_of, copies, keysym_of, parse_chord
from surehand.errors import InvalidRequest, TooLarge

X = tables.x_names()


def described(text: str) -> tuple[list[int], list[int]]:
    chord = parse_chord(text)
    return [key.keysym for key in chord.modifiers], [key.keysym for key in chord.keys]


@pytest.mark.parametrize(
    ("spellings", "modifiers", "keys"),
    [
        (
            ["ctrl+s", "Control+s", "Control+S", "ctrl+S", "ControlLeft+KeyS", "ctrl + s", "Control_L+s"],
            ["Control_L"],
            [0x73],
        ),
        (["ctrl+shift+s", "Control+Shift+S", "Shift+ctrl+KeyS"], ["Control_L", "Shift_L"], [0x73]),
        (["Return", "Enter", "return", "\ue006", "ENTER"], [], [X["Return"]]),
        (["Page_Up", "PageUp", "Prior", "pgup", "\ue00e"], [], [X["Page_Up"]]),
        (["Left", "ArrowLeft", "left", "\ue012"], [], [X["Left"]]),
        (["BackSpace", "Backspace", "\ue003"], [], [X["BackSpace"]]),
        (["super+l", "Meta+l", "win+L", "cmd+l", "OSLeft+KeyL"], ["Super_L"], [0x6C]),
        (["alt+F4", "Alt+F4", "option+f4"], ["Alt_L"], [X["F4"]]),
        (["altgr+e", "AltGraph+e", "ISO_Level3_Shift+e"], ["ISO_Level3_Shift"], [0x65]),
        (["space", " ", "Space", "\ue00d"], [], [0x20]),
        (["ctrl+ ", "ctrl+space"], ["Control_L"], [0x20]),
        (["plus", "+"], [], [0x2B]),
        (["ctrl++", "ctrl+plus"], ["Control_L"], [0x2B]),
        (["Digit1", "1"], [], [0x31]),
        (["KP_1", "Numpad1", "\ue01b"], [], [X["KP_1"]]),
        (["minus", "-", "Minus"], [], [0x2D]),
        (["€", "EuroSign", "U20AC"], [], [0x20AC]),
        (["U1F600", "\U0001f600"], [], [0x0101F600]),
        (["shift", "Shift_L", "ShiftLeft"], ["Shift_L"], []),
        (["a+b"], [], [0x61, 0x62]),
        (["A"], [], [0x41]),
    ],
)
def test_spellings_of_one_chord_mean_the_same(spellings: list[str], modifiers: list[str], keys: list[int]) -> None:
    for spelling in spellings:
        held, pressed = described(spelling)
        assert sorted(held) == sorted(X[name] for name in modifiers), spelling
        assert pressed == keys, spelling


@pytest.mark.parametrize(
    "text",
    ["", "ctrl+", "+ctrl+a", "ctrl++a", "ctrl+ +a", "nosuchkey", "ctrl+nosuchkey", "ctrl+ctrl+a", "a+a", "U110000", "UD800",
     "\x00", "\x1b", "\ue0ff", "Control+Control", "fn+a", "F99"],
)  # fmt: skip
def test_what_is_no_chord_is_refused_and_never_guessed(text: str) -> None:
    with pytest.raises(InvalidRequest):
        parse_chord(text)


def test_a_chord_has_eight_keys_at_most() -> None:
    letters = "abcdefghi"
    assert len(parse_chord("+".join(letters[: limits.CHORD_KEYS_MAX])).keys) == limits.CHORD_KEYS_MAX
    with pytest.raises(TooLarge):
        parse_chord("+".join(letters[: limits.CHORD_KEYS_MAX + 1]))


@given(st.characters(exclude_categories=["Cc", "Cs"]))
def test_every_character_has_a_keysym_that_stands_for_it(character: str) -> None:
    assert character_of(keysym_of(character)) == character


@given(st.text(max_size=40))
def test_no_text_makes_the_parser_fail_otherwise(text: str) -> None:
    try:
        chord = parse_chord(text)
    except (InvalidRequest, TooLarge):
        return
    assert 1 <= len(chord.modifiers) + len(chord.keys) <= limits.CHORD_KEYS_MAX


def test_every_alias_leads_to_a_key() -> None:
    for name in [*tables.aliases(), *tables.webdriver_keys(), *tables.x_names()]:
        chord = parse_chord(name)
        assert len(chord.modifiers) + len(chord.keys) == 1


def test_dead_and_plain_keys_write_nothing() -> None:
    for keysym in (0, 0xFE52, X["Shift_L"], X["F1"], X["KP_1"], 0x0100_0000, 0x0111_0000):
        assert character_of(keysym) is None


def test_every_click_modifier_is_a_modifier_key() -> None:
    assert {parse_chord(name).modifiers[0].keysym for name in CLICK_MODIFIERS} == set(CLICK_MODIFIERS.values())


@pytest.mark.parametrize(
    ("chord", "answer"),
    [
        *((one, True) for one in ("ctrl+c", "Control+X", "ctrl+shift+c", "ctrl+Insert", "super+c", "shift+Delete",
                                  "XF86Copy", "Ctrl+KeyC", "ctrl+U0063", "ctrl+с", "meta+x", "ctrl+KP_Insert")),
        *((one, False) for one in ("c", "shift+c", "ctrl+a", "ctrl+v", "shift+Insert", "Delete", "ctrl+Delete",
                                   "Return", "shift", "с", "no such key")),
    ],
)  # fmt: skip
def test_chords_that_copy_are_known(chord, answer):
    assert copies(chord) is answer
