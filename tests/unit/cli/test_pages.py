"""docs/reference/cli.md tells the truth."""

from __future__ import annotations

import re
from pathlib import Path

from surehand.model.scene import ROLE_ALIASES, ROLES, STATES
from tests.unit.cli.test_commands import commands

PAGE = (Path(__file__).parents[3] / "docs/reference/cli.md").read_text("utf-8")


def test_every_command_is_on_the_page_and_no_other() -> None:
    part = PAGE.split("## Commands")[1].split("## Where")[0]
    cells = [line.split("|")[1] for line in part.splitlines() if line.startswith("| `")]
    named = {tuple(name.split()) for cell in cells for name in re.findall(r"`([a-z -]+)`", cell)}
    assert named == set(commands())


def test_the_roles_and_states_are_those_there_are() -> None:
    part = " ".join(PAGE.split("## Roles and states")[1].split())
    roles, also, states = re.split(r"Also understood:|States:", part)
    assert set(re.findall(r"`([^`]+)`", roles)) == set(ROLES)
    assert dict(re.findall(r"`([^`]+)` → `([^`]+)`", also)) == ROLE_ALIASES
    assert set(re.findall(r"`([^`]+)`", states)) == set(STATES)
