"""Choosing keycode, group and level."""

from __future__ import annotations

from surehand.core.input.keys import Key, keysym_of, named_key
from surehand.core.input.layout import KeyboardState, KeyType, Layout, LayoutKey

SHIFT, LOCK, CONTROL, NUM, LEVEL3 = 1, 2, 4, 16, 128
ONE = KeyType(0, ())
TWO = KeyType(SHIFT, ((SHIFT, 1),))
ALPHABETIC = KeyType(SHIFT | LOCK, ((SHIFT, 1), (LOCK, 1)))
FOUR = KeyType(SHIFT | LEVEL3, ((SHIFT, 1), (LEVEL3, 2), (SHIFT | LEVEL3, 3)))
KEYPAD = KeyType(SHIFT | NUM, ((NUM, 1),))
X = {name: named_key(name).keysym for name in ("Shift_L", "ISO_Level3_Shift", "Control_L", "KP_1", "KP_End", "Return")}


def sym(text: str) -> tuple[int, ...]:
    return tuple(keysym_of(character) for character in text)


def layout() -> Layout:
    keys = {
        10: LayoutKey(1, (TWO,), (sym("1!"),)),
        24: LayoutKey(2, (FOUR, ALPHABETIC), (sym("qQ@Ω"), sym("θΘ"))),
        25: LayoutKey(2, (ALPHABETIC, ALPHABETIC), (sym("yY"), sym("υΥ"))),
        36: LayoutKey(1, (ONE,), ((X["Return"],),)),
        50: LayoutKey(1, (ONE,), ((X["Shift_L"],),)),
        37: LayoutKey(1, (ONE,), ((X["Control_L"],),)),
        92: LayoutKey(1, (ONE,), ((X["ISO_Level3_Shift"],),)),
        87: LayoutKey(1, (KEYPAD,), ((X["KP_End"], X["KP_1"]),)),
        101: LayoutKey(0, (), ()),
        102: LayoutKey(1, (TWO,), ((0, 0),)),
        103: LayoutKey(1, (ONE,), ((0xFE52,),)),
    }
    return Layout(keys, {50: SHIFT, 37: CONTROL, 92: LEVEL3, 104: 8}, 8, 110)


def state(group: int = 0, locked: int = 0) -> KeyboardState:
    return KeyboardState(0, 0, locked, group, 0, 0, group)


def char(character: str) -> Key:
    return Key(keysym_of(character), character)


def test_the_simplest_way_is_taken() -> None:
    assert layout().stroke(char("q"), state()) == (24, (), 0, 0)
    assert layout().stroke(char("Q"), state()) == (24, (50,), 0, 0)
    assert layout().stroke(char("@"), state()) == (24, (92,), 0, 0)
    assert layout().stroke(char("Ω"), state()) == (24, (50, 92), 0, 0)
    assert layout().stroke(named_key("Return"), state()) == (36, (), 0, 0)


def test_another_group_is_taken_only_when_needed() -> None:
    assert layout().stroke(char("θ"), state(0)) == (24, (), 0, 1)
    assert layout().stroke(char("θ"), state(1)) == (24, (), 0, 1)
    assert layout().stroke(char("q"), state(1)) == (24, (), 0, 0)
    # A key with one group serves every group.
    assert layout().stroke(char("1"), state(1)) == (10, (), 0, 1)


def test_caps_lock_is_taken_away_where_it_would_change_a_letter_and_other_locks_stay() -> None:
    assert layout().stroke(char("y"), state(locked=LOCK | NUM)) == (25, (), NUM, 0)
    assert layout().stroke(char("Y"), state(locked=LOCK)) == (25, (), LOCK, 0)  # it is there, so it is used


def test_a_keypad_digit_needs_num_lock() -> None:
    assert layout().stroke(named_key("KP_1"), state()) == (87, (), NUM, 0)
    assert layout().stroke(named_key("KP_End"), state(locked=NUM)) == (87, (), 0, 0)


def test_what_the_layout_lacks_has_no_stroke() -> None:
    assert layout().stroke(char("漢"), state()) is None
    assert layout().stroke(char("^"), state()) is None  # the dead key writes nothing by itself


def test_only_keycodes_without_symbols_and_modifiers_are_spare() -> None:
    spare = layout().spare
    assert 101 in spare
    assert 102 in spare
    assert 103 not in spare  # a dead key
    assert 104 not in spare  # sets a modifier
    assert spare[0] == 110


def test_modifier_keys_are_found_at_their_first_level() -> None:
    assert layout().modifier(named_key("Control_L")) == 37
    assert layout().modifier(named_key("Super_L")) is None


def test_groups_out_of_range_follow_the_keys_own_rule() -> None:
    levels = (sym("ab"),) * 2
    types = (TWO, TWO)
    assert LayoutKey(0x02, types, levels).group(3) == 1  # wraps
    assert LayoutKey(0x42, types, levels).group(3) == 1  # clamps
    assert LayoutKey(0x82, types, levels).group(3) == 0  # redirects
    assert LayoutKey(0x92, types, levels).group(2) == 1
