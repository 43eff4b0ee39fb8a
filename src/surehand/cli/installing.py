"""`surehand install`: writes one entry into an MCP client's configuration, after showing what changes.

Guarantees: every other entry keeps its bytes; a file that is broken, or that changed since it was shown, is left
alone; the file as it was stays beside it; the new one appears whole or not at all.
"""

from __future__ import annotations

import difflib
import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from surehand import limits
from surehand.cli.documents import Setting, edited
from surehand.cli.output import Finished, Line, out
from surehand.errors import InvalidRequest, Unavailable
from surehand.tools.catalog import toolset

_REFUSED: Final = 1
_NEW_FILE_MODE: Final = 0o600  # these files hold other servers' keys as well


@dataclass(frozen=True, slots=True)
class Client:
    """Where a client keeps its servers, and how.

    Attributes:
        title: Its name.
        kind: The document's language.
        key: Under which its servers stand.
        user: Its file for this user, below the home or configuration folder.
        project: Its file in a project, where it has one.
        typed: Whether an entry says that it is spoken to over standard input and output.
        then: What the person does next.
    """

    title: str
    kind: str
    key: str
    user: str
    project: str | None
    typed: bool
    then: str


CLIENTS: Final[dict[str, Client]] = {
    "claude-code": Client(
        "Claude Code", "json", "mcpServers", "~/.claude.json", ".mcp.json", True, "Start claude; /mcp lists it."
    ),
    "claude-desktop": Client(
        "Claude Desktop",
        "json",
        "mcpServers",
        "$CONFIG/Claude/claude_desktop_config.json",
        None,
        False,
        "Quit Claude Desktop and start it again.",
    ),
    "cursor": Client(
        "Cursor",
        "jsonc",
        "mcpServers",
        "~/.cursor/mcp.json",
        ".cursor/mcp.json",
        True,
        "Turn it on in Cursor's settings, under MCP.",
    ),
    "vscode": Client(
        "VS Code",
        "jsonc",
        "servers",
        "$CONFIG/Code/User/mcp.json",
        ".vscode/mcp.json",
        True,
        "Run “MCP: List Servers” and start it.",
    ),
    "codex": Client(
        "Codex", "toml", "mcp_servers", "$CODEX/config.toml", ".codex/config.toml", False, "Start codex; /mcp lists it."
    ),
}


def install(
    client: Annotated[str, typer.Argument(help=f"One of {', '.join(CLIENTS)}.")],
    *,
    desktop: Annotated[
        str, typer.Option("--desktop", help="What the agent works on: isolated, a desktop's name, or current.")
    ] = "isolated",
    tools: Annotated[
        str, typer.Option("--tools", help="all, core, read, playwright, computer-use, names; by commas.")
    ] = "all",
    name: Annotated[str, typer.Option("--name", help="What the entry is called.")] = "surehand",
    project: Annotated[bool, typer.Option("--project", help="For this folder's project instead of for you.")] = False,
    file: Annotated[Path | None, typer.Option("--file", help="Another configuration file.")] = None,
    print_only: Annotated[bool, typer.Option("--print", help="Show the entry, and change nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Write Surehand into an MCP client's configuration: shows the change and asks.

    Examples:
      surehand install claude-code
      surehand install codex --desktop work --tools core
      surehand install vscode --project --yes
      surehand install claude-desktop --print

    Other entries and comments stay as they are, and the file as it was is kept beside it.
    """
    known = _known(client)
    toolset(tools)
    settings = entry(
        known, name, command(), ["mcp", "--desktop", desktop, *([] if tools == "all" else ["--tools", tools])]
    )
    if print_only:
        text = edited("", settings, known.kind)
        where = file or path_of(known, project=project)
        if not out().as_json:
            out().note(f"{known.title} reads it from {where}")
        out().data({"file": str(where), "entry": text}, text.rstrip("\n"))
        return
    path = file or path_of(known, project=project)
    # A link to where somebody keeps such files stays a link.
    path = Path(os.path.realpath(path))
    before = _read(path)
    try:
        after = edited(before or "", settings, known.kind)
    except InvalidRequest as error:
        raise InvalidRequest(
            f"{path}: {error.message}; nothing was written", fix=error.fix or "mend it first"
        ) from error
    if after == before:
        out().data({"file": str(path), "changed": False}, f"{path} has this entry already.")
        return
    _ask(path, before, after, yes=yes)
    kept = _write(path, before, after)
    lines: list[Line] = [
        ("good", f"{known.title} is connected: {path}"),
        *([f"as it was: {kept}"] if kept else []),
        known.then,
    ]
    out().data({"file": str(path), "changed": True, "backup": str(kept) if kept else None}, lines)


def _known(client: str) -> Client:
    if client not in CLIENTS:
        raise InvalidRequest(
            f"unknown client {client!r}",
            fix=f"one of {', '.join(CLIENTS)}; most others take the entry that "
            "`surehand install claude-desktop --print` shows",
        )
    return CLIENTS[client]


def entry(client: Client, name: str, program: str, arguments: list[str]) -> list[Setting]:
    """Return the values that make the entry; what else somebody wrote into it stays."""
    if not name or not name.replace("-", "").replace("_", "").isalnum() or not name.isascii():
        raise InvalidRequest("a name is letters, digits, _ and -")
    at = (client.key, name)
    typed: list[Setting] = [((*at, "type"), "stdio")] if client.typed else []
    return [*typed, ((*at, "command"), program), ((*at, "args"), arguments)]


def command() -> str:
    """Return this program's whole path: clients started from a menu have another PATH."""
    beside = Path(sys.executable).with_name("surehand")
    found = str(beside) if beside.is_file() else shutil.which("surehand")
    if found is None:
        raise Unavailable("the program surehand is not installed", fix="pip install 'surehand[mcp]'")
    return str(Path(found).absolute())


def path_of(client: Client, *, project: bool, environ: Mapping[str, str] | None = None) -> Path:
    """Return where a client keeps its configuration."""
    environ = os.environ if environ is None else environ
    if project:
        if client.project is None:
            raise InvalidRequest(f"{client.title} has no configuration for projects")
        return Path.cwd() / client.project
    home = Path(environ["HOME"]) if environ.get("HOME") else Path.home()
    config = environ.get("XDG_CONFIG_HOME") or str(home / ".config")
    codex = environ.get("CODEX_HOME") or str(home / ".codex")
    return Path(client.user.replace("~", str(home)).replace("$CONFIG", config).replace("$CODEX", codex))


def _read(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            data = file.read(limits.MCP_CONFIG_BYTES_MAX + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InvalidRequest(f"cannot read {path}: {error.strerror}") from error
    if len(data) > limits.MCP_CONFIG_BYTES_MAX:
        raise InvalidRequest(f"{path} is no configuration file: it has more than {limits.MCP_CONFIG_BYTES_MAX} bytes")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"{path} is no UTF-8 text; nothing was written") from error


def _ask(path: Path, before: str | None, after: str, *, yes: bool) -> None:
    shown = difflib.unified_diff(
        (before or "").splitlines(), after.splitlines(), str(path), str(path), lineterm="", n=2
    )
    for line in shown:
        colour = {"+": "good", "-": "bad"}.get(line[:1], "dim")
        out().note(out().coloured(_plain(line), colour, sys.stderr))
    if yes:
        return
    if not sys.stdin.isatty():
        raise InvalidRequest(
            "nobody is there to ask; nothing was written", fix="add --yes, or --print to see the entry"
        )
    if not typer.confirm("Write this?", err=True):
        out().note("nothing was written")
        raise Finished(_REFUSED)


def _plain(line: str) -> str:
    from surehand.client.display import visible  # noqa: PLC0415 - only who is asked pays for it

    return visible(line)


def _write(path: Path, before: str | None, after: str) -> Path | None:
    """Put the new text in place and return where the old one is kept."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        kept = None
        if before is not None:
            if _read(path) != before:
                raise InvalidRequest(f"{path} changed meanwhile; nothing was written", fix="run this again")
            kept = _free(path)
            shutil.copy2(path, kept)
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        mode = _NEW_FILE_MODE if before is None else path.stat().st_mode & 0o7777
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(after.encode())
                file.flush()
                os.fsync(file.fileno())
            draft.chmod(mode)
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise InvalidRequest(f"cannot write {path}: {error.strerror}") from error
    return kept


def _free(path: Path) -> Path:
    """Return a name beside a file that nothing has."""
    for number in range(1, 1000):
        name = path.with_name(f"{path.name}.before-surehand" + ("" if number == 1 else f".{number}"))
        if not name.exists():
            return name
    raise InvalidRequest(f"too many copies of {path} are kept beside it", fix="move some away")


COMMANDS: Final[dict[str, Any]] = {"install": install}
