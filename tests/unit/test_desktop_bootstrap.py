"""The set-up script explains itself, and every system package has a reason."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "bootstrap"


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(SCRIPT), *words], capture_output=True, text=True, timeout=30, check=False)


def test_help_says_what_is_installed_and_installs_nothing() -> None:
    done = run("--help")
    assert done.returncode == 0
    assert "requirements.lock" in done.stdout
    assert "apt-packages.txt" in done.stdout
    assert done.stderr == ""


def test_an_unknown_argument_is_refused_before_anything_happens() -> None:
    done = run("--no-such-thing")
    assert done.returncode == 2
    assert "--no-such-thing" in done.stderr


def test_every_package_is_named_once_with_a_reason() -> None:
    lines = (ROOT / "scripts" / "apt-packages.txt").read_text("utf-8").splitlines()
    packages = [line for line in lines if line and not line.startswith("#")]
    for line in packages:
        assert re.fullmatch(r"[a-z0-9][a-z0-9+.-]*\??\s+# \S.*", line), line
    names = [line.split()[0].rstrip("?") for line in packages]
    assert len(set(names)) == len(names)


def test_the_lock_holds_hashes_and_the_installer_itself() -> None:
    text = (ROOT / "requirements.lock").read_text("utf-8")
    block = re.search(r"^uv==\S+ \\\n(    \S.*\n)+", text, re.MULTILINE)
    assert block is not None
    assert "--hash=sha256:" in block.group(0)
    assert "://" not in re.sub(r"^#.*$", "", text, flags=re.MULTILINE)
