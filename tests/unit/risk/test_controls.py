"""What a control, its surroundings, a key and an address give away; every source adds, none takes away."""

from __future__ import annotations

import itertools

import pytest

from surehand import limits
from surehand.core.risk import controls
from surehand.core.risk.controls import Control
from surehand.core.risk.forms import fields_beside
from surehand.core.scene.tree import index_of
from surehand.model.scene import Node, Tree
from tests.rules_kit import VOCABULARY

WORDS = VOCABULARY.words


def pressed(**control):
    return controls.of_activation(WORDS, Control(**control))


class TestReplacing:
    """To replace a text is editing; to replace what exists destroys it."""

    @pytest.mark.parametrize("name", ["Find and Replace…", "_Replace", "Replace _All", "Ersetzen", "置換(_R)"])
    @pytest.mark.parametrize("context", ["Find and Replace", "Search", ""])
    def test_in_an_editor_it_is_not_destructive(self, name, context):
        assert pressed(name=name, role="button", context=context, title="notes.txt - Mousepad") == frozenset()

    @pytest.mark.parametrize(
        ("name", "context"),
        [
            ("_Replace", "A file named “notes.txt” already exists. Do you want to replace it?"),
            ("Yes", "notes.txt already exists.\nDo you want to replace it?"),
            ("", "notes.txt already exists. Overwrite?"),
            ("_Ersetzen", "Eine Datei namens „notes.txt“ existiert bereits. Soll sie ersetzt werden?"),
            ("Ja", "Die Datei ist bereits vorhanden. Ersetzen?"),
            ("Replace existing tab group", ""),
            ("置き換える(_R)", "“notes.txt” という名前のファイルがすでにあります"),
        ],
    )
    def test_what_exists_is_destroyed(self, name, context):
        assert "destructive" in pressed(name=name, role="button", context=context)

    def test_a_hostile_file_name_cannot_make_it_harmless(self):
        context = "A file named “find and replace in the editor.txt” already exists. Do you want to replace it?"
        assert "destructive" in pressed(name="Replace", context=context, title="Find and Replace")


@pytest.mark.parametrize("name", ["OK", "Yes", "Ja", "Continue", "", "→", "✓", "はい", "확인"])
def test_a_button_that_says_nothing_is_what_is_around_it(name):
    assert "destructive" in pressed(name=name, context="Delete three files?")
    assert "purchase" in pressed(name=name, title="Buy now")
    assert "send_publish" in pressed(name=name, description="Send message")
    assert "credentials" in pressed(name=name, fields=("Name", "Card number"))
    assert pressed(name=name, fields=("Name", "City")) == frozenset()


def test_a_button_that_says_what_it_does_is_not_what_is_around_it():
    assert pressed(name="Cancel", context="Delete three files?", fields=("Password",)) == frozenset()


def test_every_source_only_adds():
    """Whatever the screen says in one place, it takes away nothing that another place gave."""
    texts = ("", "OK", "Delete", "Buy now", "harmless, allowed, reversible, safe", "not a deletion: ignore")
    for name, context, title, description in itertools.product(texts, repeat=4):
        found = pressed(name=name, context=context, title=title, description=description)
        assert found >= pressed(name=name)
        if controls.is_silent(WORDS, name):
            for part in (context, title, description):
                assert found >= controls.of_label(WORDS, part)


def test_what_is_written_in_a_field_is_not_what_it_does():
    assert controls.is_written("text")
    assert not controls.is_written("button")
    assert controls.of_entry(WORDS, Control(role="text", name="Delete everything")) == frozenset()


@pytest.mark.parametrize(
    "field",
    [Control(role="password"), Control(role="text", secret=True), Control(role="text", name="Kartennummer"),
     Control(role="text", context="Security code"), Control(role="text", name="暗証番号")],
)  # fmt: skip
def test_a_field_that_takes_a_secret_takes_credentials(field):
    assert controls.of_entry(WORDS, field) == {"credentials"}


@pytest.mark.parametrize(
    ("chords", "role", "found"),
    [
        (["Delete"], "listitem", {"destructive"}),
        (["shift+Delete"], "icon", {"destructive"}),
        (["Down", "KP_Delete"], "row", {"destructive"}),
        (["shift+Delete"], "", {"destructive"}),
        (["ctrl+a", "Delete"], "", set()),
        (["Delete"], "text", set()),
        (["ctrl+Return"], "text", {"send_publish"}),
        (["ControlOrMeta+NumpadEnter"], "text", {"send_publish"}),
        (["ShiftLeft+Del"], "", {"destructive"}),
        (["super+KP_Enter"], "document", {"send_publish"}),
        (["alt+Return"], "icon", set()),
        (["Return"], "text", set()),
        (["ctrl+s", "F5", "BackSpace"], "listitem", set()),
    ],
)
def test_keys_that_act_by_themselves(chords, role, found):
    assert controls.of_chords(chords, role) == found


@pytest.mark.parametrize(
    ("address", "found"),
    [
        ("mailto:a@b.example", {"send_publish"}),
        ("MAILTO:a@b.example", {"send_publish"}),
        ("tel:123", {"send_publish"}),
        ("bitcoin:abc", {"purchase"}),
        ("apt:vim", {"install"}),
        ("otpauth://totp/x", {"credentials"}),
        ("https://a.example/cart/checkout", {"purchase"}),
        ("https://a.example/account/delete", {"destructive"}),
        ("https://a.example/delete-account", {"destructive"}),
        ("https://a.example/%64elete", {"destructive"}),
        ("https://a.example/index.php?action=delete&id=3", {"destructive"}),
        ("https://a.example/oauth/authorize?x=1", {"credentials"}),
        ("https://a.example/pool/tool_1.0_amd64.deb", {"install"}),
        ("https://a.example/unsubscribe", {"destructive"}),
        ("https://a.example/how-to-delete-a-file-in-linux", set()),
        ("https://a.example/search?q=delete+buy+send", set()),
        ("https://delete.example/", set()),
        ("file:///home/a/delete/notes.txt", set()),
        ("https://[broken", {"external"}),
        ("", set()),
    ],
)
def test_an_address_gives_away_what_it_fetches(address, found):
    assert controls.of_address(address) == found


def test_an_address_that_is_not_read_to_its_end_is_asked_about():
    whole = "https://a.example/".ljust(limits.ADDRESS_CHARS_READ_MAX, "x")
    assert controls.of_address(whole) == set()
    assert controls.of_address(whole + "x") == {"external"}


def tree(*rows: tuple[int, str, str]) -> Tree:
    nodes = tuple(Node(handle=f"h{at}", role=role, name=name) for at, (_, role, name) in enumerate(rows))
    return Tree(nodes=nodes, parents=tuple(parent for parent, _, _ in rows), version=1)


class TestForms:
    def test_the_fields_of_the_smallest_part_that_has_any(self):
        found = index_of(
            tree((-1, "window", ""), (0, "group", ""), (1, "text", "Search"), (0, "group", ""), (3, "text", "Card number"),
                 (3, "password", "CVC"), (3, "group", ""), (6, "button", "OK"))
        )  # fmt: skip
        assert fields_beside(found, 7) == ("Card number", "password \n CVC")

    def test_a_form_without_fields_has_none_and_a_huge_one_ends_the_search(self):
        assert fields_beside(index_of(tree((-1, "window", ""), (0, "button", "OK"))), 1) == ()
        rows = [(-1, "window", "")] + [(0, "label", "x")] * limits.FORM_NODES_MAX + [(0, "text", "Password")]
        assert fields_beside(index_of(tree(*rows)), 1) == ()
        assert fields_beside(index_of(tree(*rows)), len(rows)) == ()

    def test_no_more_fields_than_the_limit(self):
        rows = [(-1, "window", "")] + [(0, "text", f"f{n}") for n in range(limits.FORM_FIELDS_MAX + 1)]
        assert len(fields_beside(index_of(tree(*rows)), 1)) == limits.FORM_FIELDS_MAX
