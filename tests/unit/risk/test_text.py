"""Words are found however they are written: cased, accented, marked, hidden in, imitated, run together."""

from __future__ import annotations

import time

import pytest

from surehand.core.risk.text import flat, folded, plain, readings, shown, tokens_of
from tests.rules_kit import VOCABULARY

LISTS = VOCABULARY.words.lists_in


@pytest.mark.parametrize(
    ("text", "compared"),
    [
        ("_File", "file"),
        ("\uff26ile", "file"),
        ("fi\u00adle", "file"),
        ("STRASSE", "strasse"),
        ("Straße", "strasse"),
        ("\u202efile", "file"),
    ],
)
def test_text_is_compared_as_it_is_read(text, compared):
    assert plain(text) == compared


def test_an_apostrophe_joins_words():
    assert tokens_of("Don\u2019t save!") == ("dont", "save")


@pytest.mark.parametrize(
    "text",
    [
        "Delete",
        "DELETE",
        "_Delete",
        "De_lete",
        "&Delete",
        "De&lete",
        "Delete…",
        "Delete...",
        "Delete\tDel",
        "\N{WASTEBASKET}",
        "btnDelete",
        "delete_all",
        "deleteFile",
        "Cut&Delete",
        "De\u200blete",
        "D\u00adelete",
        "\u202eDelete\u202c",
        "De\ufeffle\u2060te",
        "De\u034flete",
        "D\u3164elete",
        "De\ufe0flete",
        "\uff24\uff45\uff4c\uff45\uff54\uff45",
        "\U0001d403\U0001d41e\U0001d425\U0001d41e\U0001d42d\U0001d41e",
        "\u24b9\u24d4\u24db\u24d4\u24e3\u24d4",
        "D\u0435l\u0435te",
        "\u1d05\u1d07\u029f\u1d07\u1d1b\u1d07",
        "D\u0336e\u0336l\u0336e\u0336t\u0336e\u0336",
        "D\u00e9lete",
        "D3l3te",
        "De1ete",
        "D e l e t e",
        "D.e.l.e.t.e",
        "De-lete",
        "De\u2011lete",
        "Please delete it",
    ],
)
def test_delete_is_found_however_it_is_written(text):
    assert "destructive" in LISTS(text)


@pytest.mark.parametrize(
    ("text", "category"),
    [
        ("LÖSCHEN", "destructive"),
        ("lo\u0308schen", "destructive"),
        ("loschen", "destructive"),
        ("ΔΙΑΓΡΑΦΗ", "destructive"),
        ("διαγραφή", "destructive"),
        ("SİL", "destructive"),
        ("sıfırla", "destructive"),
        ("SIFIRLA", "destructive"),
        ("УДАЛИТЬ", "destructive"),
        ("Удаление…", "destructive"),
        ("削除(_D)", "destructive"),
        ("選択した項目を削除します", "destructive"),
        ("ｱｯﾌﾟﾛｰﾄﾞ", "upload"),
        ("เ_ทขยะ", "destructive"),
        ("وحذف الملف", "destructive"),
        ("حَذْف", "destructive"),
        ("הַמְחָקָה מחיקה", "destructive"),
        ("हटाएं", "destructive"),
        ("Рау nоw", "purchase"),
        ("Вu\u0443", "purchase"),
        ("ＳＥＮＤ", "send_publish"),
        ("p@y now", "purchase"),
        ("\N{CREDIT CARD}", "purchase"),
    ],
)
def test_other_scripts_and_imitations_are_found(text, category):
    assert category in LISTS(text)


@pytest.mark.parametrize(
    "text",
    ["Undelivered", "Payload", "Page setup", "Kopieren", "Reiter oder Fenster schließen", "Inställningar", "Go forward",
     "Adelante", "Tömörített archívum", "Descendants", "Sendai", "Deleuze", "Buying guide index", "", " ", "…", "_", "&",
     "12.5", "x²", "Fit to Page &Height"],
)  # fmt: skip
def test_words_that_only_look_alike_are_not(text):
    assert LISTS(text) <= {"generic"}


def test_a_heap_of_marks_hides_no_letter_and_holds_nobody_up():
    started = time.process_time()
    assert "destructive" in LISTS("".join(letter + "\u0301\u0323" * 1_000 for letter in "Delete"))
    assert time.process_time() - started < 1


def test_every_further_reading_only_adds():
    for text in ("De_lete", "löschen", "p@y now", "btnDelete"):
        found = readings(text)
        assert found[0].words == tokens_of(text)
        assert not found[0].loose
        assert len(found) == len(set(found)) > 1


def test_what_is_drawn_is_kept_and_what_is_not_is_dropped():
    assert shown("a\u200bb\u3164\ufe0f") == "ab"
    assert shown("İı") == "Ii"
    assert folded("ÄÖ ガ 각") == "AO ガ 각"
    assert flat("ゴ_ミ 箱") == "ゴミ箱"


@pytest.mark.parametrize(
    "piece",
    ["D\u0435 ", " ", "(", "\t", "a ", "_", "&a", "-a", "aA", "1l", "\u0301", "\u200b", "削", "\U000e0041", "()"],
)
def test_a_long_text_is_read_in_linear_time(piece):
    def cost(pieces):
        started = time.perf_counter()
        LISTS(piece * pieces)
        return time.perf_counter() - started

    cost(1_000)
    # Sixteen times the text; a square would take 256 times as long.
    assert min(cost(32_000), cost(32_000)) < 80 * max(cost(2_000), 0.0005)
