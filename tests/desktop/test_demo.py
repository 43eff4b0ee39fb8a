"""`scripts/demo` does what it promises a newcomer, and leaves nothing behind."""

from __future__ import annotations

import html
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.test_evidence import TAGS, Reader

pytestmark = [pytest.mark.desktop, pytest.mark.timeout(180)]

ROOT = Path(__file__).parents[2]
DEMO = str(ROOT / "scripts/demo")
RUN_S = 150
UNTIL_S = 60


@pytest.fixture
def tmp_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a short name: below a longer one sockets would be elsewhere, in a folder that is left."""
    return tmp_path_factory.mktemp("demo")


def environment(tmp_path: Path, **more: str) -> dict[str, str]:
    """What a user has, with a home that shows what was written to it. The system's packages are there already."""
    given = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "SUREHAND_", "DISPLAY"))}
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    return {**given, "HOME": str(home), "SUREHAND_NO_APT": "1", "TMPDIR": str(tmp_path), **more}


@dataclass(frozen=True)
class Shown:
    """One whole run."""

    result: dict[str, Any]
    told: str
    output: Path
    home: Path
    started_in: Path

    @property
    def steps(self) -> dict[str, dict[str, Any]]:
        return {step["step"]: step for step in self.result["steps"]}

    @property
    def page(self) -> str:
        return (self.output / "evidence.html").read_text("utf-8")


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    folder = tmp_path_factory.mktemp("demo")
    output = folder / "output"
    done = subprocess.run(
        [DEMO, "--json", "--output", str(output)],
        env=environment(folder),
        cwd="/",
        capture_output=True,
        text=True,
        timeout=RUN_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:] + done.stdout[-3000:]
    return Shown(json.loads(done.stdout), done.stderr, output, folder / "home", folder)


def test_every_step_ends_as_it_has_to_and_the_applications_agree(shown: Shown) -> None:
    assert shown.result["ok"] is True
    assert [step["step"] for step in shown.result["steps"] if not step["ok"]] == []
    assert [check["check"] for check in shown.result["checks"] if not check["ok"]] == []
    assert len(shown.steps) == 22
    assert len(shown.result["checks"]) >= 18
    assert shown.result["seconds"] < 60


def test_each_kind_of_answer_is_shown_with_its_gate_and_a_record_behind_it(shown: Shown) -> None:
    steps = shown.steps
    assert steps["calculator-6"]["effect"] == "verified"
    assert (steps["denied-reset"]["code"], steps["denied-reset"]["gate"]) == ("policy_denied", "policy")
    assert steps["delete-asked"]["outcome"] == "approval_required"
    assert (steps["delete"]["outcome"], steps["delete-again"]["replayed"]) == ("succeeded", True)
    assert steps["delete-again"]["evidence"] == steps["delete"]["evidence"]
    assert steps["recycled"]["code"] == "stale_target"
    assert steps["backup-again"]["outcome"] == "outcome_unknown"
    assert steps["backup-new-id"]["code"] == "reconcile_required"
    assert steps["backup-second"]["effect"] == "verified"
    for step in steps.values():
        seq, _, record_hash = step["evidence"].partition(":")
        assert int(seq) > 0
        assert len(record_hash) == 64


def test_the_page_shows_every_operation_its_picture_and_the_auditors_verdict(shown: Shown) -> None:
    read = Reader(shown.page)
    for step in shown.steps.values():
        assert html.escape(step["operation_id"]) in shown.page
    assert "Whole" in read.text
    assert "Not whole" not in read.text
    assert shown.result["verdict"]["ok"] is True
    assert shown.result["verdict"]["held"] >= 12
    assert f"{shown.result['verdict']['events']}:{shown.result['verdict']['head']}" in read.text
    assert f"Trust level {shown.result['trust_level']}" in read.text
    for words in ("no-resets", "no-programs", "demo-operator", "stale_target", "reconcile_required", "looked into by"):
        assert words in read.text
    operations = {step["operation_id"] for step in shown.steps.values()}
    assert len([tag for tag, attributes in read.tags if tag == "article"]) == len(operations)
    assert "no picture was recorded" not in read.text


def test_every_target_that_has_a_place_is_outlined(shown: Shown) -> None:
    film = json.loads((shown.output / "film/film.json").read_text("utf-8"))["frames"]
    # A closed menu's item has no place, and a launch aims at nothing.
    without = {frame["operation_id"] for frame in film if "outline" not in frame}
    assert without == {"note-save", "denied-terminal"}


def test_nothing_the_screen_said_is_part_of_the_page_itself(shown: Shown) -> None:
    read = Reader(shown.page)
    assert {tag for tag, _ in read.tags} <= TAGS
    assert "<script" not in shown.page
    assert not any(name.startswith("on") for _, attributes in read.tags for name in attributes)


def test_the_journal_holds_no_text_of_the_screen_or_the_requests(shown: Shown) -> None:
    journal = (shown.output / "journal.sqlite").read_bytes()
    for words in ("Grüße, the agent", "Schweizer Käse", "Welcome!", "frank"):
        assert words.encode() not in journal


def test_it_uses_folders_of_its_own_and_leaves_nothing_running(shown: Shown) -> None:
    assert list(shown.home.rglob("*")) == []
    assert list(shown.started_in.glob("surehand-demo-*")) == []
    assert running(str(shown.started_in)) == []


def running(mark: str) -> list[str]:
    """Return the command lines of processes that name a folder, in their arguments or their environment."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal() or int(entry.name) == os.getpid():
            continue
        try:
            words = (entry / "cmdline").read_bytes() + b"\0" + (entry / "environ").read_bytes()
        except OSError:
            continue
        if mark.encode() in words:
            found.append(words.decode(errors="replace")[:200])
    return found


@contextmanager
def started(tmp_path: Path, *words: str, until: str) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """Start the demo and yield it, with what it said, at the moment it says this."""
    demo = subprocess.Popen(
        [DEMO, *words, "--output", str(tmp_path / "output")],
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    with demo:
        try:
            told: list[str] = []
            for line in demo.stdout or ():
                told.append(line)
                if until in line:
                    break
            assert until in "".join(told[-1:]), "".join(told)
            yield demo, told
        finally:
            if demo.poll() is None:
                demo.send_signal(signal.SIGINT)
                demo.communicate(timeout=UNTIL_S)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("when", ["starting", "the agent begins", "✓ Calculator: press ×", "SIGKILL for the daemon"])
def test_ended_at_any_moment_it_ends_everything(tmp_path: Path, when: str, number: signal.Signals) -> None:
    with started(tmp_path, until=when) as (demo, told):
        # Once for the whole group, as a terminal does it, and once more by somebody who is impatient.
        os.killpg(demo.pid, number)
        os.killpg(demo.pid, signal.SIGINT)
        rest, _ = demo.communicate(timeout=UNTIL_S)
    assert demo.returncode == 130, "".join(told) + rest
    assert "nothing was left running" in rest
    assert "Traceback" not in rest
    assert running(str(tmp_path)) == []
    assert list(tmp_path.glob("surehand-demo-*")) == []


@pytest.mark.parametrize("module", ["story", "world", "surehand.client.control"])
def test_ended_before_it_began_it_is_quiet(tmp_path: Path, module: str) -> None:
    """Its imports take a third of a second; a Ctrl-C in them used to print a traceback."""
    code = f"""
import os, runpy, signal, sys
sys.addaudithook(lambda event, of: event == "import" and of[0] == {module!r} and os.kill(os.getpid(), signal.SIGINT))
runpy.run_path({str(ROOT / "examples/demo")!r}, run_name="__main__")
"""
    demo = [sys.executable, "-c", code]
    done = subprocess.run(demo, env=environment(tmp_path), capture_output=True, timeout=UNTIL_S, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, b"", b"")
    assert running(str(tmp_path)) == []


def test_kept_it_stays_until_it_is_ended(tmp_path: Path) -> None:
    with started(tmp_path, "--keep", until="Ctrl-C ends it") as (demo, told):
        words = next(line.split() for line in told if line.strip().startswith("export "))
        looked = subprocess.run(
            [str(ROOT / ".venv/bin/surehand"), "observe", "guests.py"],
            env={**environment(tmp_path), **dict(word.split("=", 1) for word in words[1:])},
            capture_output=True,
            text=True,
            timeout=UNTIL_S,
            check=False,
        )
        assert 'label "Backups: 2"' in looked.stdout, looked
        assert demo.poll() is None
        demo.send_signal(signal.SIGINT)
        demo.communicate(timeout=UNTIL_S)
    assert demo.returncode == 0
    assert running(str(tmp_path)) == []


def test_killed_it_leaves_nothing_running(tmp_path: Path) -> None:
    with started(tmp_path, until="press ×") as (demo, _):
        demo.kill()
        demo.communicate(timeout=UNTIL_S)
    end = time.monotonic() + 20
    while (left := running(str(tmp_path))) and time.monotonic() < end:
        select.select([], [], [], 0.1)
    assert left == []


def test_a_view_without_a_display_says_what_to_do(tmp_path: Path) -> None:
    done = subprocess.run(
        [DEMO, "--view"], env=environment(tmp_path), capture_output=True, text=True, timeout=UNTIL_S, check=False
    )
    assert done.returncode == 3
    assert done.stdout == ""
    assert "DISPLAY is not set" in done.stderr
    assert "without --view" in done.stderr


def test_help_and_usage(tmp_path: Path) -> None:
    for words, code in ((["--help"], 0), (["-h"], 0), (["--nonsense"], 2)):
        done = subprocess.run(
            [DEMO, *words], env=environment(tmp_path), capture_output=True, text=True, timeout=UNTIL_S, check=False
        )
        assert done.returncode == code
        assert "--keep" in done.stdout + done.stderr
