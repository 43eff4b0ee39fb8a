"""Secrets by reference, from the operator's terminal to a password field of a real application, and nowhere else (C44)."""

# ruff: noqa: S105, S106 - references and made-up texts, not passwords
from __future__ import annotations

import asyncio
import gzip
import json
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from surehand.client.control import Control
from surehand.errors import AuthorityDenied, Unavailable
from surehand.testing.desktop import IsolatedDesktop
from surehand.testing.fixture_app import FixtureApp
from surehand.testing.terminal import terminal
from tests.crash.daemon_kit import Daemon
from tests.desktop.cases.kit import LONG
from tests.desktop.mcp.conftest import SUREHAND
from tests.desktop.mcp.test_field_cases import agent_of
from tests.secrets_kit import CANARY, found_in

pytestmark = [pytest.mark.desktop, pytest.mark.asyncio(loop_scope="module")]

TOKEN = "token-of-the-environment-5b21"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """Return a daemon with a token in its environment."""
    made = Daemon(Path(tmp_path_factory.mktemp("daemon")))
    with made.config.open("a") as config:
        config.write('[[env_secrets]]\nname = "SURE_TOKEN"\nbound_to = { apps = ["exe:/opt/nowhere"] }\n')
    made.environment["SURE_TOKEN"] = TOKEN
    patch = pytest.MonkeyPatch()
    patch.setenv("SUREHAND_RUNTIME_DIR", str(made.run))
    made.start()
    yield made
    made.close()
    patch.undo()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def app(desktop: IsolatedDesktop, daemon: Daemon) -> AsyncIterator[FixtureApp]:
    del daemon  # it outlives the application
    made = await FixtureApp.start(desktop, "gtk3")
    yield made
    made.close()


def surehand(*words: str, stdin: str | None = None) -> tuple[int, Any, bytes]:
    """Run a command; return its exit code, what it answered, and every byte it wrote."""
    done = subprocess.run(
        [SUREHAND, "--json", *words], input=None if stdin is None else stdin.encode(), capture_output=True, timeout=60,
        stdin=subprocess.DEVNULL if stdin is None else None, check=False,
    )  # fmt: skip
    return done.returncode, json.loads(done.stdout), done.stdout + done.stderr


def about(pid: int, what: str) -> Path:
    return Path("/proc", str(pid), what)


def control(*calls: tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Ask the daemon as its operator; return the answers."""
    with Control() as session:
        return [session.call(method, params) for method, params in calls]


async def test_c44_an_enrolled_secret_reaches_its_field_and_is_written_nowhere(
    desktop: IsolatedDesktop, app: FixtureApp, daemon: Daemon, tmp_path: Path
) -> None:
    said: list[Any] = []
    async with agent_of(desktop, app) as agent:
        own = await agent.done("list_windows")
        key = next(one["app"] for one in own["windows"] if one["window"] == agent.window)
        code, answer, written = surehand("secret", "set", "mail", "--app", key, stdin=CANARY + "\n")
        assert code == 0, answer
        said.append(written.decode())
        other = {"name": "elsewhere", "bound_to": {"apps": ["exe:/opt/nowhere"]}, "value": CANARY}
        said += await asyncio.to_thread(control, ("secrets.set", other))

        # What a query alone would pick is put before a person, so the agent names what it has seen.
        found = await agent.done("query", window=agent.window, role="password")
        password = found["matches"][0]["label"]
        mark = app.mark()
        filled = await agent.done("set_value", target=password, secret="vault:mail", operation_id="filled")
        assert filled["status"] == "succeeded"
        await app.settle()
        assert [event.value for event in app.events("text", "secret", after=mark) if event.value] == [CANARY]

        await app.run("set_text", control="secret", text="")
        mark = app.mark()
        typed = await agent.done("type_text", target=password, secret="vault:mail", clear=True)
        assert typed["status"] == "succeeded"
        await app.settle()
        assert [event.value for event in app.events("text", "secret", after=mark)][-1] == CANARY

        mark = app.mark()
        for arguments, expected in (
            ({"target": password, "secret": "vault:elsewhere"}, "authority_denied"),
            ({"target": password, "secret": "vault:none"}, "authority_denied"),
            ({"target": password, "secret": "env:SURE_TOKEN"}, "authority_denied"),
            ({"target": password, "secret": CANARY}, "invalid_request"),
            ({"target": {"role": "text", "label": "Name"}, "secret": "vault:mail"}, "secure_surface"),
        ):
            answer = await agent.ask("set_value", **arguments)
            assert answer["result"]["structuredContent"]["error"]["code"] == expected, answer
            said.append(answer if arguments["secret"] != CANARY else answer["result"]["structuredContent"]["error"])
        await app.settle()
        assert list(app.events("text", after=mark)) == []

        for name, arguments in (
            ("observe", {"window": agent.window, "full": True}),
            ("query", {"window": agent.window, "role": "password"}),
            ("read_text", {"window": agent.window, "target": password}),
            ("screenshot", {"window": agent.window, "marks": True}),
            ("operation_status", {"operation_id": "filled"}),
            ("set_value", {"target": password, "secret": "vault:mail", "operation_id": "filled"}),
        ):
            said.append(await agent.ask(name, **arguments))
        files = [("audit", "report", str(tmp_path / "page.html"))]
        files += [("support-bundle", str(tmp_path / "support.tar.gz"))] if LONG else []
        for words in files:
            code, answer, written = surehand(*words)
            assert code == 0, answer
            said.append(written.decode())
        trial = {"reference": "vault:mail", "app": key}
        said += await asyncio.to_thread(
            control, ("secrets", {}), ("secrets.test", trial), ("ps", {}), ("keys", {}), ("audit.show", {"limit": 1000})
        )
        agent.server.hang_up()
        await agent.server.ended()
        assert agent.server.process.stderr
        said.append((await agent.server.process.stderr.read()).decode())
    await app.run("set_text", control="secret", text="")
    assert [found_in(json.dumps(one, ensure_ascii=False).encode()) for one in said if found_in(_bytes(one))] == []
    folder = daemon.run.parent
    kept = {path: found_in(path.read_bytes()) for path in folder.rglob("*") if path.is_file()}
    kept[tmp_path / "page.html"] = found_in((tmp_path / "page.html").read_bytes())
    if LONG:
        kept[tmp_path / "support.tar"] = found_in(gzip.decompress((tmp_path / "support.tar.gz").read_bytes()))
    assert len(kept) > 5
    assert {path.name: forms for path, forms in kept.items() if forms} == {}


def _bytes(one: Any) -> bytes:
    return (one if isinstance(one, str) else json.dumps(one, ensure_ascii=False)).encode()


async def test_a_program_that_the_daemon_starts_has_no_secret_of_its_environment(
    desktop: IsolatedDesktop, app: FixtureApp, daemon: Daemon
) -> None:
    del app
    code, answer, _ = surehand("desktop", "launch", desktop.name, "--", "sleep", "20")
    assert code == 0, answer
    pid = int(answer["data"]["pid"])
    try:
        environ = about(pid, "environ").read_bytes()
        assert environ
        assert TOKEN.encode() not in environ
    finally:
        os.kill(pid, signal.SIGKILL)
    assert daemon.process is not None
    (listed,) = await asyncio.to_thread(control, ("secrets", {}))
    assert "env:SURE_TOKEN" in [one["reference"] for one in listed["secrets"]]
    assert TOKEN not in json.dumps(listed)


async def test_a_secret_is_asked_for_at_a_terminal_and_not_shown_there(daemon: Daemon) -> None:
    del daemon
    argv = [SUREHAND, "secret", "set", "typed", "--app", "exe:/opt/app"]
    with terminal(argv, piped=True) as running:
        for prompt in ("Secret for typed: ", "Again: "):
            running.expect(prompt)
            running.type(f"{CANARY}\n")
        code, written = running.result()
        assert code == 0, running.shown
        assert not found_in((running.shown + written).encode())
        assert found_in(" ".join(argv).encode()) == []
    with terminal(argv, piped=True) as running:
        running.expect("Secret for typed: ")
        running.type("one\n")
        running.expect("Again: ")
        running.type("another\n")
        code, _ = running.result()
        assert code != 0


async def test_a_secret_is_taken_from_no_argument(daemon: Daemon) -> None:
    del daemon
    code, _, _ = surehand("secret", "set", "argued", CANARY, "--app", "exe:/opt/app", stdin="")
    assert code == 2


async def test_a_vault_with_a_passphrase_is_opened_at_a_terminal_and_locked_again(daemon: Daemon) -> None:
    del daemon
    argv = [SUREHAND, "secret", "init", "--key", "passphrase", "--replace", "--yes"]
    with terminal(argv, piped=True) as running:
        for prompt in ("New passphrase of the vault: ", "Again: "):
            running.expect(prompt)
            running.type("correct horse\n")
        assert running.result()[0] == 0, running.shown
        assert "correct horse" not in running.shown
    enrolled = {"name": "mail", "bound_to": {"apps": ["exe:/opt/app"]}, "value": CANARY}
    await asyncio.to_thread(control, ("secrets.set", enrolled), ("secrets.lock", {}))
    with pytest.raises(Unavailable, match="locked"):
        await asyncio.to_thread(control, ("secrets.test", {"reference": "vault:mail"}))
    with pytest.raises(AuthorityDenied):
        await asyncio.to_thread(control, ("secrets.unlock", {"passphrase": "wrong"}))
    code, answer, _ = surehand("secret", "unlock", stdin="correct horse\n")
    assert (code, answer["data"]["secrets"]) == (0, 1)
    tried, _ = await asyncio.to_thread(
        control, ("secrets.test", {"reference": "vault:mail"}), ("secrets.remove", {"name": "mail"})
    )
    assert (tried["opens"], tried["usable"]) == (True, False)


async def test_the_daemon_leaves_no_core_and_lets_nobody_trace_it(daemon: Daemon) -> None:
    """Last: it ends the daemon as a crash would."""
    process = daemon.process
    assert process is not None
    limits = about(process.pid, "limits").read_text()
    core = next(line for line in limits.splitlines() if line.startswith("Max core file size"))
    assert core.split()[4:6] == ["0", "0"]
    assert about(process.pid, "environ").stat().st_uid == 0  # not dumpable: its files belong to root
    before = set(Path.cwd().glob("core*"))
    process.send_signal(signal.SIGABRT)
    process.wait(20)
    assert set(Path.cwd().glob("core*")) == before
    assert daemon.verify()["ok"]
