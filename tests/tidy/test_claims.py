"""Every promise has claims, every claim has tests that exist, and every test fails when its guard is gone."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.claims import CLAIMS, PROMISES, Claim

ROOT = Path(__file__).parents[2]


def test_every_promise_has_a_claim() -> None:
    assert {claim.promise for claim in CLAIMS} == set(PROMISES)


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.says)
def test_every_test_of_a_claim_exists(claim: Claim) -> None:
    for test in claim.tests:
        path, _, name = test.partition("::")
        text = (ROOT / path).read_text("utf-8")
        assert re.search(rf"def {re.escape(name.split('[')[0].split('::')[-1])}\(", text), test


def test_nothing_is_claimed_twice() -> None:
    assert len({claim.says for claim in CLAIMS}) == len(CLAIMS)


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.says)
def test_every_guard_stands_once_where_it_is_said_to(claim: Claim) -> None:
    text = (ROOT / claim.guard.path).read_text("utf-8")
    assert text.count(claim.guard.text) == 1


@pytest.mark.timeout(300)
@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.says)
def test_the_tests_of_a_claim_fail_without_its_guard(claim: Claim, tmp_path: Path) -> None:
    if os.environ.get("SUREHAND_LONG") != "1":
        pytest.skip("the long run removes every guard")
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "tests", tmp_path / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    guarded = tmp_path / claim.guard.path
    text = guarded.read_text("utf-8")
    guarded.write_text(text.replace(claim.guard.text, claim.guard.without), "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *claim.tests],
        cwd=tmp_path,
        env={
            **{name: value for name, value in os.environ.items() if name != "SUREHAND_LONG"},
            "PYTHONPATH": str(tmp_path / "src"),
        },
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 1, f"exit {done.returncode}: the tests passed without their guard\n{done.stdout[-2000:]}"
    assert " failed" in done.stdout
