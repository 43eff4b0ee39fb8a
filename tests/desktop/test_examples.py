"""The examples check themselves; here they run as somebody would run them, in a home of their own."""

from __future__ import annotations

import os
import re
import secrets
import subprocess
import sys
from pathlib import Path

import pytest

from surehand.testing.terminal import terminal

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
#: Those that need a desktop with an editor in it; the others bring their own.
GUESTS = {"notes.py"}

pytestmark = pytest.mark.desktop


@pytest.fixture
def somebody(tmp_path: Path):
    for name in ("home", "run"):
        (tmp_path / name).mkdir(mode=0o700)
    environment = {
        "HOME": str(tmp_path / "home"),
        "XDG_RUNTIME_DIR": str(tmp_path / "run"),
        "SUREHAND_RUNTIME_DIR": str(tmp_path / "run" / "surehand"),
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "LANG": "C.UTF-8",
    }
    yield environment
    subprocess.run(
        ["surehand", "stop"], env={**os.environ, **environment}, capture_output=True, timeout=30, check=False
    )


def run(environment: dict[str, str], *words: str) -> str:
    done = subprocess.run(
        words, env=environment, cwd=environment["HOME"], capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.parametrize("name", ["notes.py", "approval.py", "host_grant.py"])
def test_an_example_does_what_it_says(name: str, somebody: dict[str, str]) -> None:
    options: list[str] = []
    if name in GUESTS:
        desktop = f"example-{secrets.token_hex(3)}"
        run(somebody, "surehand", "desktop", "start", "--name", desktop)
        run(somebody, "surehand", "desktop", "launch", desktop, "--", "mousepad")
        options = ["--desktop", desktop]
    said = run(somebody, sys.executable, str(EXAMPLES / name), *options)
    assert said.count("ok: ") >= 4
    assert "FAILED" not in said


def test_the_quickstart_needs_nothing_but_itself(somebody: dict[str, str]) -> None:
    program = (EXAMPLES / "quickstart.py").read_text("utf-8")
    assert len(program.partition('"""\n\n')[2].splitlines()) <= 11
    assert "ok: " in run(somebody, sys.executable, str(EXAMPLES / "quickstart.py"))


def test_getting_started_works_block_by_block(somebody: dict[str, str]) -> None:
    page = (ROOT / "docs/getting-started.md").read_text("utf-8")
    blocks = re.findall(r"^```(sh|python)\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 9
    lines = [text if kind == "sh" else f"python3 - <<'END'\n{text}END\n" for kind, text in blocks]
    # Desktops of one user have names of their own; somebody else may have taken this one.
    script = re.sub(r"\bplay\b", f"started-{secrets.token_hex(3)}", "".join(lines))
    with terminal(["bash", "-euo", "pipefail", "-c", f'cd "$HOME"\n{script}'], env=somebody, piped=True) as shell:
        for prompt in ("assphrase", "Again: ", "assphrase"):
            shell.expect(prompt, seconds=60)
            shell.type("correct horse\n")
        code, said = shell.result(seconds=60)
    assert code == 0, f"{said}\n{shell.shown}"
    for words in (
        "verified via atspi",
        "the stored outcome of this id",
        "approved, as ann",
        "Hello from Python",
        "OK: ",
    ):
        assert words in said, said
    page_of_evidence = Path(somebody["HOME"], "evidence.html").read_text("utf-8")
    assert "Whole" in page_of_evidence
    assert "calc" in page_of_evidence


def test_every_example_is_run_here_or_by_a_test_of_its_own() -> None:
    here = {"notes.py", "approval.py", "host_grant.py", "quickstart.py"}
    tests = "\n".join(path.read_text("utf-8") for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__))
    for path in EXAMPLES.glob("*.py"):
        assert path.name in here or path.name in tests, f"nothing runs examples/{path.name}"
