"""The reference pages say what the tables say. `SUREHAND_WRITE_DOCS=1` writes the generated parts anew."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from surehand.core import lifecycle
from surehand.core.history import PAYLOADS
from surehand.core.outcome import RULES
from surehand.core.policy.defaults import DEFAULT_RULES
from surehand.core.policy.model import CATEGORIES
from surehand.core.policy.toml_rules import parse_policy
from surehand.runtime.config import load

ROOT = Path(__file__).parents[2]
LIFECYCLE = ROOT / "docs" / "reference" / "lifecycle.md"
POLICY = ROOT / "docs" / "reference" / "policy.md"


def generated():
    gates = "\n".join(f"{number}. `{gate}`" for number, gate in enumerate(lifecycle.GATES, 1))
    outcomes = "\n".join(
        ["| first that applies | ends as |", "|---|---|", *(f"| {row.name} | {row.ends} |" for row in RULES)]
    )
    events = "\n".join(f"- `{name}`" for name in PAYLOADS)
    return {
        "gates": gates,
        "diagram": f"```mermaid\n{lifecycle.mermaid()}\n```",
        "table": lifecycle.table_text(),
        "outcomes": outcomes,
        "events": events,
    }


def with_generated(text):
    for name, part in generated().items():
        pattern = re.compile(rf"(<!-- generated: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        assert pattern.search(text), f"the page has no place for {name}"
        text = pattern.sub(lambda found, part=part: f"{found[1]}{part}\n{found[2]}", text)
    return text


def test_the_lifecycle_page_is_generated_from_the_tables():
    text = LIFECYCLE.read_text("utf-8")
    expected = with_generated(text)
    if os.environ.get("SUREHAND_WRITE_DOCS") == "1":
        LIFECYCLE.write_text(expected, "utf-8")
        return
    assert text == expected, "run this test with SUREHAND_WRITE_DOCS=1"


@pytest.mark.parametrize("word", sorted({*CATEGORIES, "process.run", "require_approval"}))
def test_the_policy_page_names_every_category(word):
    assert f"`{word}`" in POLICY.read_text("utf-8")


def test_the_rules_on_the_policy_page_are_accepted(tmp_path):
    blocks = re.findall(r"```toml\n(.*?)```", POLICY.read_text("utf-8"), re.DOTALL)
    settings = [block for block in blocks if block.startswith("[[ceilings]]")]
    assert len(blocks) > len(settings) > 0
    for block in blocks:
        if block not in settings:
            assert parse_policy(block).closed is None
    for block in settings:
        config = tmp_path / "config.toml"
        config.write_text(block)
        config.chmod(0o600)
        assert load(config).ceilings


def test_the_policy_page_has_a_row_for_every_default():
    section = POLICY.read_text("utf-8").split("## Defaults")[1].split("\n\n")[0]
    # Own surfaces and denied applications share a row, and so do the two rules of a shared desktop.
    assert section.count("\n|") - 2 == len(DEFAULT_RULES) - 2
