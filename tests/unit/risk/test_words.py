"""The lists: every phrase is found, every kind of phrase means what it says, a broken list is an error."""

from __future__ import annotations

import time
import tomllib

import pytest

from surehand import limits
from surehand.core.risk.words import Words
from surehand.errors import InvalidRequest
from tests.rules_kit import DATA, VOCABULARY

LISTS = tomllib.loads((DATA / "words.toml").read_text("utf-8"))


def test_every_phrase_of_every_list_is_found_again():
    found = VOCABULARY.words.lists_in
    for name, languages in LISTS.items():
        for phrases in languages.values():
            for phrase in phrases:
                bare = phrase.strip("=*")
                assert name in found(bare), phrase
                assert name in found(bare.upper()), phrase
                assert name in found(f"{bare}…"), phrase
                if not phrase.startswith("="):
                    assert name in found(f"… {bare}!"), phrase


def test_every_language_has_every_list_that_a_person_is_asked_by():
    languages = set(LISTS["destructive"])
    assert len(languages) >= 10
    for name in ("generic", "destructive", "overwriting", "existing", "purchase", "send_publish", "settings", "upload",
                 "install", "credentials", "credential_controls"):  # fmt: skip
        assert set(LISTS[name]) == languages, name


def words(**lists):
    return Words((phrase, name) for name, phrases in lists.items() for phrase in phrases).lists_in


def test_a_phrase_is_whole_words_in_a_row():
    found = words(purchase=["place order"], destructive=["delete"])
    assert found("Please place order today") == {"purchase"}
    assert found("place an order") == found("place ordering") == found("undeleted") == frozenset()


def test_a_whole_label_is_nothing_else():
    found = words(send_publish=["=post"])
    for label in ("Post", "_Post", "Post…", "POST:", "post (_P)", "Post\tCtrl+P"):
        assert found(label) == {"send_publish"}, label
    assert found("Post office") == frozenset()


def test_a_beginning_is_of_one_word_and_of_the_last_of_several():
    found = words(destructive=["удал*"], settings=["turn vpn*"])
    assert found("Удаление файла") == {"destructive"}
    assert found("неудал") == frozenset()
    assert found("Turn VPNs off") == {"settings"}
    assert found("Turn") == found("Turn a VPN") == frozenset()


def test_a_part_stands_anywhere():
    found = words(destructive=["*حذف*", "削除"])
    assert found("وللحذف") == found("全削除") == {"destructive"}


def test_without_its_accents_a_short_word_is_another_word():
    found = words(purchase=["köp*", "öde"], destructive=["gỡ", "törlés"])
    assert found("Kopieren") == found("Ode an die Freude") == found("Go") == frozenset()
    assert found("KÖP") == found("Öde") == {"purchase"}
    assert found("TORLES") == {"destructive"}


@pytest.mark.parametrize("phrase", ["", " ", "=", "*", "**", "ab*", "=…", "* *"])
def test_a_phrase_that_means_nothing_is_an_error(phrase):
    with pytest.raises(InvalidRequest):
        Words([(phrase, "destructive")])


def test_only_short_labels_are_remembered():
    one = Words([("delete", "destructive")])
    for label in ("Delete", "Delete", "x" * limits.LABEL_CHARS_REMEMBERED_MAX, "x" * 4_000 + " delete"):
        one.lists_in(label)
    assert one._remembered.cache_info().currsize == 2


def test_a_label_that_nobody_can_have_read_is_asked_about():
    one = words(destructive=["delete"])
    most = limits.LABEL_CHARS_READ_MAX
    assert one("x" * most) == frozenset()
    assert one("x" * (most + 1)) == {"external"}
    assert one("delete " + "x" * most) == {"external", "destructive"}


def test_a_character_that_stands_for_a_sentence_counts_as_long_as_it_is_drawn():
    one = words(destructive=["delete"])
    sentence, most = "\ufdfa", limits.LABEL_CHARS_READ_MAX  # drawn as 18 characters
    fits = "delete " + sentence * ((most - 7) // 18)
    assert one(fits) == {"destructive"}
    assert one(fits + sentence) == {"external", "destructive"}
    # What stands behind the end of what is read is asked about, and not looked for.
    assert one(sentence * (most - 7) + " delete") == {"external"}


@pytest.mark.parametrize("character", ["\ufdfa", "\u3300", "a\ufdfb", "\u0344"])
def test_no_label_takes_longer_to_read_than_a_long_one_without_tricks(character):
    text = (character * limits.LABEL_CHARS_READ_MAX)[: limits.LABEL_CHARS_READ_MAX]
    plain = ("\u4e00\u1f82" * limits.LABEL_CHARS_READ_MAX)[: limits.LABEL_CHARS_READ_MAX]
    lists = VOCABULARY.words.lists_in

    def cpu_s(label: str) -> float:
        begun = time.process_time()
        lists(label)
        return time.process_time() - begun

    lists(text)
    assert min(cpu_s(text) for _ in range(3)) < 3 * min(cpu_s(plain) for _ in range(3)) + 0.02


def test_so_many_labels_are_remembered_and_not_one_more():
    one = Words([("delete", "destructive")])
    for number in range(limits.LABELS_READ_MAX):
        one.lists_in(f"label {number}")
    assert one._remembered.cache_info().currsize == limits.LABELS_READ_MAX
    assert one.lists_in("label 0 delete") == {"destructive"}
    assert one._remembered.cache_info().currsize == limits.LABELS_READ_MAX
    assert one.lists_in("label 0") == frozenset()
