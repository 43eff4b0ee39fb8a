"""Commands for agents: serve the tools over MCP."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer

from surehand.errors import Unavailable


def mcp(
    desktop: Annotated[
        str | None,
        typer.Option("--desktop", help="isolated, a desktop's name, or current. Default: the one that runs."),
    ] = None,
    tools: Annotated[
        str, typer.Option("--tools", help="all, core (8 tools, for small budgets), read, or names with commas.")
    ] = "all",
) -> None:
    """Serve the tools to an MCP client over standard input and output.

    Examples:
      surehand mcp --desktop isolated
      surehand mcp --tools core

    Clients start this by themselves; their configuration names it:
      {"mcpServers": {"surehand": {"command": "surehand", "args": ["mcp", "--desktop", "isolated"]}}}

    Which desktop is a wish that policy decides. The daemon starts by itself where none runs.
    """
    try:
        from surehand.mcp import stdio  # noqa: PLC0415 - half a second that only this command needs
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("mcp"):
            raise
        raise Unavailable("the MCP server is not installed", fix="pip install 'surehand[mcp]'") from error
    stdio.run(desktop=desktop, tools=tools)


COMMANDS: Final[dict[str, Any]] = {"mcp": mcp}
