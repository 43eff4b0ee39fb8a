"""What is published installs and runs where nothing of this checkout is: the wheel, the source archive, their commands."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from email import message_from_string
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "surehand"

pytestmark = pytest.mark.timeout(300)


def run(*words: str | Path, **options) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, check=False, timeout=250, **options)
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done


def tracked(folder: str) -> set[str]:
    names = run("git", "ls-files", "-z", folder, cwd=ROOT).stdout
    return {name for name in names.split("\0") if name and (ROOT / name).exists()}


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with both archives, built without the network."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT)
    return folder


@pytest.fixture(scope="module")
def wheel(dist: Path) -> Path:
    (found,) = dist.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """Return the commands and the environment of somebody who has the wheel and the locked packages, and no more."""
    folder = tmp_path_factory.mktemp("clean")
    venv.create(folder / "venv", with_pip=False)
    home, run_dir = folder / "home", folder / "run"
    home.mkdir(mode=0o700)
    run_dir.mkdir(mode=0o700)
    commands = folder / "venv" / "bin"
    uv = [sys.executable, "-m", "uv", "pip"]
    here = ["--quiet", "--offline", "--python", commands / "python"]
    # uv itself came through pip, so its own cache does not hold it; nobody needs it here.
    lock = folder / "requirements.lock"
    lock.write_text(
        re.sub(r"^uv==.*?(?=^\S)", "", (ROOT / "requirements.lock").read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    )
    locked = [*uv, "sync", *here, "--require-hashes", lock]
    offline = subprocess.run([str(w) for w in locked], capture_output=True, text=True, check=False, timeout=250)
    if offline.returncode != 0 and "in the cache" in offline.stderr:
        pytest.skip("uv's cache lacks locked packages; after `rm -rf .venv`, scripts/bootstrap fills it")
    assert offline.returncode == 0, offline.stderr
    run(*uv, "install", *here, "--no-deps", wheel)
    environment = {
        "HOME": str(home),
        "XDG_RUNTIME_DIR": str(run_dir),
        "PATH": f"{commands}:/usr/bin:/bin",
        "LANG": "C.UTF-8",
    }
    return commands, environment


def test_the_wheel_has_what_it_needs_and_nothing_of_the_tests(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        metadata = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        about = message_from_string(archive.read(metadata).decode("utf-8"))
    assert {name.removeprefix("src/") for name in tracked("src")} <= names
    assert all(name.startswith("surehand/") for name in names)
    for data in (
        "py.typed",
        "core/policy/data/words.toml",
        "core/policy/data/apps.toml",
        "testing/fixtures/gtk3_app.py",
    ):
        assert f"surehand/{data}" in names, data
    assert about["License-Expression"] == "MIT"
    assert about["Requires-Python"] == ">=3.11"


def test_the_source_archive_is_whole_enough_to_build_from_and_to_read(dist: Path) -> None:
    (found,) = dist.glob("*.tar.gz")
    with tarfile.open(found) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert tracked("src") | tracked("spec") | tracked("docs") <= names
    assert {"README.md", "LICENSE", "CHANGELOG.md", "SECURITY.md", "CONTRIBUTING.md", "pyproject.toml"} <= names
    assert not {name for name in names if name.startswith(("tests/", ".venv/", "benchmarks/"))}


def test_a_new_major_version_of_a_dependency_cannot_break_an_install() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    needs = [
        *project["build-system"]["requires"],
        *project["project"]["dependencies"],
        *project["dependency-groups"]["dev"],
    ]
    assert not [need for need in needs if ">=" not in need or ",<" not in need]


def test_the_lock_is_hashed_and_names_no_address_and_no_folder() -> None:
    lock = (ROOT / "requirements.lock").read_text("utf-8")
    assert "://" not in lock
    assert not [word for line in lock.splitlines()[:2] for word in line.split() if "/" in word]
    pinned = [line for line in lock.splitlines() if line and not line.startswith((" ", "#"))]
    assert all(line.endswith(" \\") and "==" in line for line in pinned)


def test_the_lock_holds_every_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    needs = [*project["project"]["dependencies"], *project["dependency-groups"]["dev"]]
    locked = (ROOT / "requirements.lock").read_text("utf-8")
    assert not [need for need in needs if f"\n{need.partition('>=')[0]}==" not in f"\n{locked}"]


def test_the_installed_commands_run(installed: tuple[Path, dict[str, str]]) -> None:
    commands, environment = installed
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    assert version in run(commands / "surehand", "version", env=environment, cwd="/").stdout
    assert "usage: surehand-verify" in run(commands / "surehand-verify", "--help", env=environment, cwd="/").stdout


def test_the_installed_doctor_looks_and_answers_in_one_line(installed: tuple[Path, dict[str, str]]) -> None:
    commands, environment = installed
    done = subprocess.run(
        [str(commands / "surehand"), "doctor", "--json"],
        env=environment,
        cwd="/",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode in {0, 3}, done.stderr
    assert done.stdout.count("\n") == 1
    said = json.loads(done.stdout)
    assert said["ok"] is (done.returncode == 0)
    assert os.listdir(environment["HOME"]) == []  # noqa: PTH208 - names are all that is asked


def test_the_installed_package_is_the_wheels_and_knows_its_types(installed: tuple[Path, dict[str, str]]) -> None:
    commands, environment = installed
    code = "import surehand, pathlib; p = pathlib.Path(surehand.__file__).parent; print(p); print((p / 'py.typed').exists())"
    folder, typed = run(commands / "python", "-I", "-c", code, env=environment, cwd="/").stdout.split()
    assert Path(folder).is_relative_to(commands.parent)
    assert typed == "True"
