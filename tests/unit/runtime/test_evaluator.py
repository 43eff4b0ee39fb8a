"""An operator's evaluator: a real program that is asked about one request, and what becomes of its answers."""

from __future__ import annotations

import asyncio
import functools
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from surehand import limits
from surehand.adapters.evaluator_program import EvaluatorProgram
from surehand.errors import InvalidRequest, PermissionMissing, TooLarge, Unavailable
from surehand.runtime.compose import build_host
from surehand.runtime.config import Config, EvaluatorChoice, load
from tests.unit.runtime.test_modes import LOW, reviewed, reviews, world_in

Program = Callable[[str], EvaluatorProgram]


@pytest.fixture
def program(tmp_path: Path) -> Program:
    def write(body: str) -> EvaluatorProgram:
        path = tmp_path / "thinks"
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o700)
        return EvaluatorProgram([str(path)])

    return write


def says(value: Any) -> str:
    return f"cat >/dev/null; echo '{json.dumps(value)}'"


def gone(pid: int) -> bool:
    try:
        return "State:\tZ" in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return True


async def until(holds: Callable[[], bool]) -> None:
    for _ in range(500):
        if holds():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("never happened")


def read(path: Path) -> str:
    return path.read_text() if path.exists() else ""


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (says(LOW), "succeeded"),
        (f"echo '{json.dumps(LOW)}'", "succeeded"),  # without reading the question
        (says({**LOW, "risk_level": "high"}), "approval_required"),
        (says({**LOW, "more": 1}), "approval_required"),
        (says([LOW]), "approval_required"),
        (f"{says(LOW)}; exit 1", "approval_required"),
        (f"{says(LOW)}; echo more", "approval_required"),
        ("cat >/dev/null", "approval_required"),
        ("echo low", "approval_required"),
        ("kill -9 $$", "approval_required"),
    ],
)
async def test_only_a_program_that_ends_well_and_says_low_and_allow_answers(
    program: Program, body: str, status: str
) -> None:
    world = world_in("risk-auto")
    reviews(world).evaluator = program(body)
    assert (await world.act("op")).status == status
    assert len(world.app.effects) == (1 if status == "succeeded" else 0)
    if status == "succeeded":
        assert [one["by"] for one in (await reviewed(world))[0]["assessments"]] == ["rules", "thinks"]


async def test_the_question_comes_on_its_input_and_nothing_else_of_the_daemon(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_TOKEN", "of the daemon")
    seen = tmp_path / "seen"
    asked = program(f"cat >{seen}; env >{seen}.env; pwd >{seen}.pwd; ls /proc/self/fd >{seen}.fd; echo 1")
    secret = os.open(tmp_path, os.O_RDONLY)
    os.set_inheritable(secret, True)  # what a careless library would do
    try:
        assert await asked.assess({"facts": {"observed": {"name": 'a "name"; rm -rf $HOME'}}}) == 1
    finally:
        os.close(secret)
    assert json.loads(read(seen)) == {"facts": {"observed": {"name": 'a "name"; rm -rf $HOME'}}}
    names = {line.partition("=")[0] for line in read(tmp_path / "seen.env").splitlines()}
    assert names <= {"PATH", "LANG", "PWD", "OLDPWD", "SHLVL", "_"}  # what a shell sets itself
    assert read(tmp_path / "seen.pwd") == "/\n"
    # Input, output, errors, and the folder that the listing itself opens.
    assert read(tmp_path / "seen.fd").split() == ["0", "1", "2", "3"]


async def test_a_program_that_does_not_answer_is_ended_with_all_it_started_and_a_person_is_asked(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "REVIEW_MS_MAX", 300)
    world = world_in("risk-auto")
    reviews(world).evaluator = program(f"sleep 60 & echo $! >{tmp_path}/child; echo $$ >{tmp_path}/self; wait")
    assert (await world.act("op")).status == "approval_required"
    for name in ("self", "child"):
        await until(functools.partial(gone, int(read(tmp_path / name))))


async def test_an_answer_is_read_up_to_its_bound_and_no_further(program: Program) -> None:
    size = limits.REVIEW_ANSWER_BYTES_MAX
    full = await program(f"printf '\"'; head -c {size - 2} /dev/zero | tr '\\0' x; printf '\"'").assess({})
    assert len(full) == size - 2
    with pytest.raises(Unavailable, match=f"more than {size}"):
        await program(f"printf '\"'; head -c {size - 1} /dev/zero | tr '\\0' x; printf '\"'").assess({})
    with pytest.raises(Unavailable, match=f"more than {size}"):
        await program("exec cat /dev/zero").assess({})


async def test_a_question_past_its_bound_is_not_asked(program: Program, tmp_path: Path) -> None:
    asked = program(f"cat >{tmp_path}/seen; echo 1")
    room = limits.POLICY_QUESTION_BYTES_MAX - len('{"a":""}')
    assert await asked.assess({"a": "x" * room}) == 1
    assert (tmp_path / "seen").stat().st_size == limits.POLICY_QUESTION_BYTES_MAX
    (tmp_path / "seen").unlink()
    with pytest.raises(Unavailable, match="larger"):
        await asked.assess({"a": "x" * (room + 1)})
    assert not (tmp_path / "seen").exists()


async def test_few_run_at_once_and_the_others_wait(program: Program, tmp_path: Path) -> None:
    asked = program(f"echo $$ >>{tmp_path}/started; until [ -e {tmp_path}/go ]; do sleep 0.02; done; echo 1")
    running = [asyncio.create_task(asked.assess({})) for _ in range(limits.REVIEWS_AT_ONCE + 1)]

    def started() -> int:
        return len(read(tmp_path / "started").splitlines())

    await until(lambda: started() >= limits.REVIEWS_AT_ONCE)
    assert (started(), any(task.done() for task in running)) == (limits.REVIEWS_AT_ONCE, False)
    (tmp_path / "go").touch()
    assert await asyncio.gather(*running) == [1] * len(running)
    assert started() == limits.REVIEWS_AT_ONCE + 1


async def test_a_program_that_went_away_answers_nothing() -> None:
    world = world_in("risk-auto")
    reviews(world).evaluator = EvaluatorProgram(["/nonexistent/evaluator"])
    assert (await world.act("op")).status == "approval_required"


# --- naming it ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ((), "evaluator.command"),
        (("thinks",), "absolute"),
        (("/a\0b",), "evaluator.command"),
        (("/" + "x" * limits.NAME_CHARS_MAX,), "evaluator.command"),
        (("/x", *["y"] * limits.EVALUATOR_WORDS_MAX), "evaluator.command"),
    ],
)
def test_a_command_that_names_no_program_is_refused(command: tuple[str, ...], said: str) -> None:
    with pytest.raises((InvalidRequest, TooLarge), match=said):
        EvaluatorChoice(command=command)


def test_a_command_at_its_bounds_is_taken() -> None:
    longest = "/" + "x" * (limits.NAME_CHARS_MAX - 1)
    assert EvaluatorChoice(command=(longest, *["y"] * (limits.EVALUATOR_WORDS_MAX - 1))).command[0] == longest


async def test_the_configuration_names_it_and_the_mode_says_so(tmp_path: Path) -> None:
    thinks = tmp_path / "thinks"
    thinks.write_text("#!/bin/sh\n")
    thinks.chmod(0o700)
    file = tmp_path / "config.toml"
    file.write_text(f'notify_desktop = false\n[evaluator]\ncommand = ["{thinks}", "--small"]\n')
    host = await build_host(load(file), state_dir=tmp_path / "state")
    try:
        assert host.parts.approvals.leave.reviews.told()["evaluator"] == "thinks"
    finally:
        await host.close()


@pytest.mark.parametrize(("mode", "raised"), [(0o600, InvalidRequest), (0o722, PermissionMissing)])
async def test_a_program_that_cannot_be_run_or_that_others_may_write_stops_the_start(
    tmp_path: Path, mode: int, raised: type[Exception]
) -> None:
    thinks = tmp_path / "thinks"
    thinks.write_text("#!/bin/sh\n")
    thinks.chmod(mode)
    config = Config(evaluator=EvaluatorChoice(command=(str(thinks),)), notify_desktop=False)
    with pytest.raises(raised):
        await build_host(config, state_dir=tmp_path / "state")
