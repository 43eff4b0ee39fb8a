"""Labelled controls of real applications: how many of the consequential ones are known, and how many alarms are false.

`tests/data/risk/README.md` says where the labels came from, who labelled them, and what "held" means: applications
whose translations nobody looked at while the word lists were written.
"""

from __future__ import annotations

import csv
import sys
from collections import Counter
from pathlib import Path

import pytest

from surehand.core.policy.model import CONSEQUENTIAL
from surehand.core.risk import controls
from surehand.core.risk.controls import Control
from tests.rules_kit import VOCABULARY

CORPUS = Path(__file__).parents[2] / "data" / "risk" / "controls.tsv"
ABOUT = ("part", "source", "role", "category", "label")
#: Of every hundred consequential controls, and of every hundred alarms.
RECALL_MIN, PRECISION_MIN = 0.95, 0.85


def controls_of(part):
    with CORPUS.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            if row["part"] != part:
                continue
            for language, text in row.items():
                if language not in ABOUT and text:
                    yield row, language, text


def found_in(role, text):
    control = Control(role="text" if role == "field" else role, name=text)
    rule = controls.of_entry if role == "field" else controls.of_activation
    return rule(VOCABULARY.words, control)


@pytest.mark.parametrize("part", ["tuned", "held"])
def test_consequential_controls_of_real_applications_are_known(part, capsys):
    known, missed, false, right = Counter(), Counter(), Counter(), 0
    for row, language, text in controls_of(part):
        found = found_in(row["role"], text)
        if row["category"] != "none":
            (known if found else missed)[language] += 1
            right += row["category"] in found
        elif found:
            false[language] += 1
    total = known.total() + missed.total()
    recall, precision = known.total() / total, known.total() / (known.total() + false.total())
    with capsys.disabled():
        sys.stdout.write(
            f"\n{part}: recall {recall:.3f} of {total} consequential controls in {len(known)} languages "
            f"({right / total:.3f} under the very category), precision {precision:.3f} ({false.total()} false alarms)\n"
        )
    assert len(known) >= 10
    assert recall >= RECALL_MIN, missed
    assert precision >= PRECISION_MIN, false


def test_the_corpus_is_large_and_its_labels_are_of_the_vocabulary():
    rows = {(row["source"], row["label"], row["role"]): row["category"] for part in ("tuned", "held")
            for row, _, _ in controls_of(part)}  # fmt: skip
    assert len(rows) >= 300
    assert set(rows.values()) <= CONSEQUENTIAL | {"none"}
    assert {"destructive", "purchase", "send_publish", "settings", "upload", "install", "credentials"} <= set(
        rows.values()
    )
