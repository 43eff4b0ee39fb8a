"""The README's first block does what it says, for somebody with an empty home and no desktop of their own."""

from __future__ import annotations

import os
import re
import secrets
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
INSTALL = "./scripts/bootstrap && . .venv/bin/activate"

pytestmark = pytest.mark.desktop


def first_block() -> list[str]:
    found = re.search(r"```sh\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    assert found
    return found[1].splitlines()


@pytest.fixture
def newcomer(tmp_path: Path):
    """Return the environment of somebody who has just installed Surehand, and end their daemon afterwards."""
    home, run = tmp_path / "home", tmp_path / "run"
    home.mkdir(mode=0o700)
    run.mkdir(mode=0o700)
    environment = {
        "HOME": str(home),
        "XDG_RUNTIME_DIR": str(run),
        "SUREHAND_RUNTIME_DIR": str(run / "surehand"),
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "LANG": "C.UTF-8",
    }
    yield environment
    subprocess.run(
        ["surehand", "stop"], env={**os.environ, **environment}, capture_output=True, timeout=30, check=False
    )


def test_the_first_block_works_line_by_line(newcomer) -> None:
    block = first_block()
    assert len(block) == 10
    assert block[0].startswith(INSTALL)
    assert (ROOT / "scripts/bootstrap").is_file()
    # Desktops of one user have names of their own; somebody else may have taken this one.
    name = f"readme-{secrets.token_hex(3)}"
    script = re.sub(r"\bplay\b", name, "\n".join(block[1:]))
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        env=newcomer,
        cwd=newcomer["HOME"],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    said = f"{done.stdout}\n{done.stderr}"
    assert done.returncode == 0, said
    assert re.search(
        r"^<Receipt desktop\.set_value verified via atspi\.\S+ in \d+ ms: op-\w+>$", done.stdout, re.MULTILINE
    ), said
    assert "\nHello from an agent\n" in done.stdout, said
    assert re.search(r"^OK: every record", done.stdout, re.MULTILINE), said
