"""The project speaks of itself alone: no paths of one machine, no registry hosts, no secrets, no lock files with URLs."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
REGISTRY_HOSTS = re.compile(r"pypi\.org|pythonhosted|registry\.npmjs|crates\.io|proxy\.golang|deb\.debian\.org")
LOCKS = {"uv.lock", "package-lock.json", "poetry.lock", "yarn.lock"}


def tracked() -> list[Path]:
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / name for name in names.split("\0") if name]


def test_no_file_names_a_registry_host_or_this_checkout() -> None:
    here = str(ROOT.parent) + "/"
    for path in tracked():
        if path == Path(__file__) or not path.is_file():
            continue
        text = path.read_text("utf-8", errors="ignore")
        assert not REGISTRY_HOSTS.search(text), f"{path} names a registry host"
        if len(here) > 5:
            assert here not in text, f"{path} names this checkout"


def test_no_lock_file_that_records_addresses() -> None:
    # npm's can be told to leave addresses out, and then has none of these members.
    there = [path for path in tracked() if path.name in LOCKS]
    assert not [path for path in there if path.suffix != ".json" or '"resolved"' in path.read_text("utf-8")]
