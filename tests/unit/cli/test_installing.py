"""`surehand install`: what it writes for each client, and everything it leaves as it was."""

from __future__ import annotations

import json
import os
import stat
import tomllib
from pathlib import Path
from typing import Any

import pytest

from surehand import limits
from surehand.cli import installing
from surehand.cli.documents import edited, parsed
from surehand.cli.installing import CLIENTS
from surehand.errors import InvalidRequest
from tests.unit.cli.conftest import Cli

SETTINGS = [(("mcpServers", "surehand", "command"), "/bin/s"), (("mcpServers", "surehand", "args"), ["mcp"])]
TABLE = [(("mcp_servers", "surehand", "command"), "/bin/s"), (("mcp_servers", "surehand", "args"), ["mcp"])]
OURS = {"command": "/bin/s", "args": ["mcp"]}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_CONFIG_HOME", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


PLACES = {
    "claude-code": (".claude.json", "mcpServers"),
    "claude-desktop": (".config/Claude/claude_desktop_config.json", "mcpServers"),
    "cursor": (".cursor/mcp.json", "mcpServers"),
    "vscode": (".config/Code/User/mcp.json", "servers"),
    "codex": (".codex/config.toml", "mcp_servers"),
}


@pytest.mark.parametrize("client", CLIENTS)
def test_a_new_file_has_the_entry_where_the_client_looks_for_it(client: str, home: Path, cli: Cli) -> None:
    where, key = PLACES[client]
    said = cli("install", client, "--yes", "--tools", "core")
    assert said.code == 0, said
    path = home / where
    value = parsed(path.read_text(), CLIENTS[client].kind)
    entry = value[key]["surehand"]
    assert Path(entry["command"]).is_absolute()
    assert os.access(entry["command"], os.X_OK)
    assert entry["args"] == ["mcp", "--desktop", "isolated", "--tools", "core"]
    assert entry.get("type") == ("stdio" if CLIENTS[client].typed else None)
    assert set(value) == {key}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert f"+{entry['command']}" not in said.out
    assert "surehand" in said.err  # the change was shown


@pytest.mark.parametrize("client", CLIENTS)
def test_a_second_time_changes_nothing_and_keeps_no_copy(client: str, home: Path, cli: Cli) -> None:
    cli("install", client, "--yes")
    path = home / PLACES[client][0]
    before = path.read_bytes(), sorted(path.parent.iterdir())
    assert cli("install", client, "--json").data["changed"] is False
    assert (path.read_bytes(), sorted(path.parent.iterdir())) == before


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("json", '{"a": 1, "mcpServers": {"other": {"command": "x", "env": {"KEY": "ü"}}}, "z": [1, {"b": null}]}'),
        ("json", '{\n    "mcpServers": {},\n    "numStartups": 34\n}\n'),
        ("json", "{}"),
        ("json", '{"mcpServers": {"surehand": {"command": "old", "env": {"A": "b"}, "disabled": true}}}'),
        ("jsonc", '// mine\n{\n\t"mcpServers": { // here\n\t\t"other": {"command": "x",}, // last\n\t},\n}\n// end\n'),
        ("jsonc", '{"x": "// no comment /*", /* a */ "mcpServers": {"other": {} /* b */ /* c */}\n}'),
        ("jsonc", '{\n  "mcpServers": {\n    "other": {} // why\n  }\n}'),
        ("jsonc", '{\n  /* "mcpServers": {} */\n}'),
        ("jsonc", '\ufeff{"mcpServers":{"surehand":{/* keep */"command":"old","args":["a"/* gone */]}}}'),
    ],
)
def test_everything_else_in_a_json_file_keeps_its_bytes(kind: str, text: str) -> None:
    after = edited(text, SETTINGS, kind)
    value = parsed(after, kind)
    old = parsed(text, kind)
    entry = value["mcpServers"].pop("surehand")
    mine = old.get("mcpServers", {}).pop("surehand", {})
    assert entry == {**mine, **OURS}
    old.setdefault("mcpServers", {})
    assert value == old
    # What stood there still stands there, in its order, but for the values that were ours.
    kept = iter(after)
    for piece in ('"old"', '["a"/* gone */]'):
        text = text.replace(piece, "")
    assert all(character in kept for character in text.strip())


@pytest.mark.parametrize(
    "text",
    [
        "",
        '# mine\nmodel = "x" # why\n',
        'model = "x"\n\n[mcp_servers.other]\ncommand = "y"\n\n# about profiles\n[profiles.z]\nb = 1\n',
        '[mcp_servers.surehand]\ncommand = "old"\nargs = [\n  "a", # first\n]\nstartup_timeout_sec = 30\n\n[mcp_servers.surehand.env]\nA = "b"\n\n# next\n[other]\n',
        '[ mcp_servers . "surehand" ]\ncommand = "old"\n[[list]]\na = 1\n',
        'text = """\n[mcp_servers.surehand]\n"""\n',
    ],
)
def test_everything_else_in_a_toml_file_is_kept(text: str) -> None:
    try:
        after = edited(text, TABLE, "toml")
    except InvalidRequest:
        assert '"""' in text  # what only looks like the table is not touched
        return
    value, old = tomllib.loads(after), tomllib.loads(text)
    entry = value["mcp_servers"].pop("surehand")
    mine = old.setdefault("mcp_servers", {}).pop("surehand", {})
    assert entry == {**mine, **OURS}
    assert value == old
    for comment in ("# mine", "# why", "# about profiles\n[profiles.z]", "# next\n[other]"):
        assert (comment in after) is (comment in text)


@pytest.mark.parametrize(
    ("client", "text"),
    [
        ("claude-code", "{"),
        ("claude-code", "[]"),
        ("claude-code", "// comment\n{}"),
        ("claude-code", '{"a": 1,}'),
        ("claude-code", '{"a": 1, "a": 2}'),
        ("claude-code", '{"mcpServers": []}'),
        ("claude-code", '{"mcpServers": {"surehand": "x"}}'),
        ("claude-code", "[" * 5000),
        ("claude-code", "{} {}"),
        ("vscode", '{"a" 1}'),
        ("vscode", '{"a": 1 "b": 2}'),
        ("vscode", "{/*"),
        ("vscode", '{"servers": null}'),
        ("codex", "a = "),
        ("codex", "mcp_servers = 3"),
        ("codex", 'mcp_servers = { other = { command = "x" } }'),
        ("codex", '[[mcp_servers]]\nname = "x"'),
        ("cursor", b"\xff{}"),
    ],
)
def test_a_file_that_is_broken_or_strange_is_left_alone(client: str, text: str | bytes, home: Path, cli: Cli) -> None:
    path = home / PLACES[client][0]
    path.parent.mkdir(parents=True, exist_ok=True)
    data = text if isinstance(text, bytes) else text.encode()
    path.write_bytes(data)
    said = cli("install", client, "--yes", "--json")
    assert said.code == 2
    assert str(path) in said.error["message"]
    assert "fix" in said.error or isinstance(text, bytes)
    assert path.read_bytes() == data
    assert [one for one in path.parent.iterdir() if one.is_file()] == [path]


def test_without_somebody_to_ask_and_without_yes_nothing_is_written(home: Path, cli: Cli) -> None:
    said = cli("install", "claude-code")
    assert said.code == 2
    assert not (home / ".claude.json").exists()


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", 1), ("\n", 1), ("", 130)])
def test_the_person_is_asked_after_the_change_is_shown(
    answer: str, code: int, home: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal(__import__("io").StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdin", Terminal(answer))
    said = cli("install", "claude-code")
    assert said.code == code, said
    assert '+    "surehand": {' in said.err
    assert (home / ".claude.json").exists() is (code == 0)


def test_print_changes_nothing(home: Path, cli: Cli) -> None:
    said = cli("install", "codex", "--print", "--desktop", "work")
    assert tomllib.loads(said.out)["mcp_servers"]["surehand"]["args"] == ["mcp", "--desktop", "work"]
    assert list(home.iterdir()) == []


def test_the_file_as_it_was_is_kept_with_its_mode_and_a_link_stays_one(home: Path, cli: Cli) -> None:
    real = home / "dotfiles" / "claude.json"
    real.parent.mkdir()
    real.write_text('{"a": 1}')
    real.chmod(0o640)
    (home / ".claude.json").symlink_to(real)
    for number in (1, 2):
        kept = Path(cli("install", "claude-code", "--yes", "--json", "--desktop", f"d{number}").data["backup"])
        assert stat.S_IMODE(kept.stat().st_mode) == stat.S_IMODE(real.stat().st_mode) == 0o640
    assert (home / ".claude.json").is_symlink()
    assert json.loads(real.read_text())["a"] == 1
    assert sorted(one.name for one in real.parent.iterdir()) == [
        "claude.json", "claude.json.before-surehand", "claude.json.before-surehand.2",
    ]  # fmt: skip
    assert (real.parent / "claude.json.before-surehand").read_text() == '{"a": 1}'


def test_a_file_that_changed_since_it_was_shown_is_left_alone(
    home: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = home / ".claude.json"
    path.write_text("{}")
    plain = installing._ask

    def ask(*given: Any, **named: Any) -> None:
        plain(*given, **named)
        path.write_text('{"somebody": "else"}')

    monkeypatch.setattr(installing, "_ask", ask)
    assert cli("install", "claude-code", "--yes").code == 2
    assert path.read_text() == '{"somebody": "else"}'


def test_a_file_at_the_limit_is_edited_and_one_past_it_is_not(home: Path, cli: Cli) -> None:
    path = home / ".claude.json"
    for size, code in ((limits.MCP_CONFIG_BYTES_MAX, 0), (limits.MCP_CONFIG_BYTES_MAX + 1, 2)):
        path.write_text("{}".ljust(size))
        assert cli("install", "claude-code", "--yes").code == code


@pytest.mark.parametrize(
    "words", [["emacs"], ["codex", "--tools", "nothing"], ["codex", "--name", "a.b"], ["claude-desktop", "--project"]]
)
def test_wrong_usage_writes_nothing(words: list[str], home: Path, cli: Cli) -> None:
    assert cli("install", *words, "--yes").code == 2
    assert list(home.iterdir()) == []


def test_a_project_has_its_own_file(home: Path, cli: Cli) -> None:
    for client, name in (
        ("claude-code", ".mcp.json"),
        ("vscode", ".vscode/mcp.json"),
        ("cursor", ".cursor/mcp.json"),
        ("codex", ".codex/config.toml"),
    ):
        assert cli("install", client, "--project", "--yes").code == 0
        assert (home / name).is_file()
