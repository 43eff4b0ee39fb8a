"""Commands for agents: serve the tools over MCP."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final

import typer

from surehand.errors import InvalidRequest, Unavailable


def mcp(
    desktop: Annotated[
        str | None,
        typer.Option("--desktop", help="isolated, a desktop's name, or current. Default: the one that runs."),
    ] = None,
    tools: Annotated[
        str,
        typer.Option(
            "--tools",
            help="all, core (8, for small budgets), read, playwright, computer-use (others' words), names; by commas.",
        ),
    ] = "all",
    http: Annotated[
        str | None,
        typer.Option("--http", metavar="[HOST:]PORT", help="Over HTTP instead, on loopback; port 0 is picked."),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option("--token-file", help="With --http: a file of mode 0600 with the bearer token; else one is made."),
    ] = None,
) -> None:
    """Serve the tools to an MCP client over standard input and output, or over HTTP.

    Examples:
      surehand mcp --desktop isolated
      surehand mcp --tools core
      surehand mcp --tools playwright
      surehand mcp --http 8765

    Clients start this by themselves; `surehand install` writes it into their configuration:
      {"mcpServers": {"surehand": {"command": "surehand", "args": ["mcp", "--desktop", "isolated"]}}}

    Which desktop is a wish that policy decides. The daemon starts by itself where none runs. With --http the address
    and the file with the bearer token are told on standard error; clients send "Authorization: Bearer TOKEN".
    """
    if token_file is not None and http is None:
        raise InvalidRequest("--token-file goes with --http")
    try:
        # Half a second that only this command needs.
        from surehand.mcp import http as over_http  # noqa: PLC0415
        from surehand.mcp import stdio  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("mcp"):
            raise
        raise Unavailable("the MCP server is not installed", fix="pip install 'surehand[mcp]'") from error
    if http is None:
        stdio.run(desktop=desktop, tools=tools)
    else:
        over_http.run(http, desktop=desktop, tools=tools, given_token=token_file)


COMMANDS: Final[dict[str, Any]] = {"mcp": mcp}
