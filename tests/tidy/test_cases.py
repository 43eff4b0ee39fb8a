"""The page of field cases names tests that exist, and names each case of this stage."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/cases.md").read_text("utf-8")
#: What must hold now; cases of browsers and policy come with what they are about.
NOW = {*range(1, 11), 14, *range(16, 19), 20, 22, 23, *range(25, 29), 30, 32, 33}
NOW |= {*range(35, 42), 43, *range(44, 51), 52, 53}


def test_every_test_that_the_page_names_exists() -> None:
    named = set(re.findall(r"`(test_\w+)`", PAGE))
    existing = {
        name
        for path in (ROOT / "tests").rglob("*.py")
        for name in re.findall(r"def (test_\w+)", path.read_text("utf-8"))
    }
    assert len(named) > 50
    assert named - existing == set()


def test_every_case_of_this_stage_has_a_row() -> None:
    rows = [line.split("|")[1] for line in PAGE.splitlines() if line.startswith("| C")]
    cases = {int(number) for row in rows for number in re.findall(r"C(\d\d)", row)}
    assert cases >= NOW


def test_every_field_case_test_is_on_the_page() -> None:
    for path in (*(ROOT / "tests/desktop/cases").glob("test_*.py"), ROOT / "tests/desktop/mcp/test_field_cases.py"):
        for name in re.findall(r"def (test_c\d\d_\w+)", path.read_text("utf-8")):
            assert f"`{name}`" in PAGE, name
