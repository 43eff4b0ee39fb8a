"""Identity comes from the process: what it is called, how it looks and what it says of itself do not count."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from surehand.adapters.atspi import identity

SYSTEM_PYTHON = "/usr/bin/python3"


@pytest.fixture
def run(tmp_path):
    started = []

    def start(*argv, **options):
        process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **options)
        started.append(process)
        assert process.stdout.readline() == b"up\n"
        return process.pid

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def script(path, code="print('up', flush=True)\ninput()"):
    path.write_text(code)
    return str(path)


def test_start_time_is_counted_after_the_last_parenthesis(tmp_path, run):
    copy = tmp_path / "a) b (c) 1 2"
    shutil.copy("/bin/sh", copy)
    pid = run(str(copy), "-c", "echo up; read x")
    stat = Path(f"/proc/{pid}/stat").read_text()
    assert ") b (c)" in stat
    expected = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, check=True).stdout
    assert expected
    started = int(identity.start_time(pid))
    uptime = float(Path("/proc/uptime").read_text().split()[0])
    assert 0 <= uptime - started / os.sysconf("SC_CLK_TCK") < 60


def test_two_processes_have_two_generations_and_one_process_has_one(tmp_path, run):
    name = script(tmp_path / "x.py")
    one, two = run(SYSTEM_PYTHON, name), run(SYSTEM_PYTHON, name)
    assert identity.process_generation(one) == identity.process_generation(one)
    assert identity.process_generation(one) != identity.process_generation(two)
    assert identity.process_generation(2**22 + 1) is None


def test_the_same_interpreter_with_two_scripts_is_two_applications(tmp_path, run):
    one, two = script(tmp_path / "one.py"), script(tmp_path / "two.py")
    keys = {identity.identify(run(SYSTEM_PYTHON, path), "python3").key for path in (one, two)}
    real = os.path.realpath(SYSTEM_PYTHON)
    assert keys == {f"script:{real}:{one}", f"script:{real}:{two}"}


def test_a_relative_script_is_named_by_its_real_place(tmp_path, run):
    script(tmp_path / "one.py")
    pid = run(SYSTEM_PYTHON, "./one.py", cwd=tmp_path)
    assert identity.identify(pid, "").script == str(tmp_path / "one.py")


def test_a_program_is_its_executable_whatever_it_calls_itself(run):
    pid = run("bash", "-c", "exec -a /usr/bin/mousepad sh -c 'echo up; read x'")
    found = identity.identify(pid, "mousepad")
    assert found.executable == os.path.realpath("/bin/sh")
    assert "mousepad" not in found.key
    assert found.claimed_name == "mousepad"
    assert found.uid == os.getuid()
    assert found.pid == pid


def test_an_executable_that_was_deleted_or_replaced_proves_nothing(tmp_path, run):
    copy = tmp_path / "tool"
    shutil.copy("/bin/sh", copy)
    pid = run(str(copy), "-c", "echo up; read x")
    assert identity.identify(pid, "").key == f"exe:{copy}"
    copy.unlink()
    assert identity.identify(pid, "").key.startswith("unproven:")
    shutil.copy("/bin/sh", copy)
    assert identity.identify(pid, "").key.startswith("unproven:")


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
def test_a_program_mounted_over_a_trusted_path_is_not_the_trusted_program(tmp_path, run):
    fake = tmp_path / "fake"
    shutil.copy("/bin/sh", fake)
    fake.chmod(0o755)
    pid = run(
        "bwrap", "--ro-bind", "/", "/", "--ro-bind", str(fake), "/usr/bin/mousepad", "--proc", "/proc", "--dev", "/dev",
        "/usr/bin/mousepad", "-c", "echo up; read x",
    )  # fmt: skip
    inner = _deepest_child(pid)
    assert str(Path(f"/proc/{inner}/exe").readlink()) == "/usr/bin/mousepad"
    assert identity.identify(inner, "mousepad").key.startswith("unproven:")


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
def test_a_pid_from_inside_a_sandbox_is_found_outside(run):
    pid = run("bwrap", "--unshare-pid", "--ro-bind", "/", "/", "--proc", "/proc", "sh", "-c", "echo up; read x")
    inner = _deepest_child(pid)
    inside = identity._inner_pid(str(inner))
    assert inside < inner
    assert identity.host_pid(inside, inner) == inner
    assert identity.host_pid(4711, inner) is None
    assert identity.host_pid(4711, os.getpid()) == 4711
    assert identity.host_pid(4711, 0) is None


def test_nobody_is_unproven():
    for pid in (0, -1, 2**22 + 1):
        found = identity.identify(pid, "whoever")
        assert (found.key, found.pid, found.uid) == ("unproven:", 0, -1)


@pytest.mark.parametrize(
    ("arguments", "script"),
    [
        (["tool.py", "x"], "/w/tool.py"),
        (["-u", "-W", "ignore", "/srv/tool.py"], "/srv/tool.py"),
        (["-m", "http.server"], "-m:http.server"),
        (["-X", "dev", "sub/../tool.py"], "/w/tool.py"),
        (["-jar", "app.jar"], "/w/app.jar"),
        ([], "interactive"),
        (["-i"], "interactive"),
    ],
)
def test_what_an_interpreter_runs_is_read_from_its_arguments(arguments, script):
    assert identity.script_in(arguments, "/w") == script


def test_inline_code_is_named_by_its_digest():
    one, two = identity.script_in(["-c", "a"], "/"), identity.script_in(["-c", "b"], "/")
    assert one.startswith("-c:")
    assert one != two


def test_an_interpreter_in_a_virtual_environment_is_the_real_one(tmp_path):
    found = identity.identify(os.getpid(), "")
    assert found.executable == os.path.realpath(sys.executable)
    assert found.script is not None


def _deepest_child(pid):
    while True:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        if not children:
            return pid
        pid = int(children[0])


def test_a_program_whose_path_is_no_unicode_proves_nothing_and_breaks_no_answer(tmp_path, run):
    copy = os.fsencode(tmp_path) + b"/\xff"
    shutil.copy("/bin/sh", copy)
    found = identity.identify(run(copy, "-c", "echo up; read x"), "")
    found.key.encode("utf-8")
    found.executable.encode("utf-8")
    assert found.key.startswith("unproven:")
